use airloom_record::Values;

use super::*;

fn found(text: &str) -> Report {
    analyze(text.as_bytes(), 1000).unwrap().report
}

/// The same connection in the words of 0.3 and of the draft.
fn old() -> String {
    let events = [
        r#"{"time":1000.0,"name":"transport:packet_sent","data":{"header":{"packet_type":"initial","packet_number":0},
            "raw":{"length":1200},"frames":[{"frame_type":"crypto"}]}}"#,
        r#"{"time":1050.5,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":3},
            "raw":{"length":80},"frames":[{"frame_type":"handshake_done"},
            {"frame_type":"ack","acked_ranges":[[0,4],[7,9]]}]}}"#,
        r#"{"time":1050.5,"name":"recovery:metrics_updated","data":{"latest_rtt":50.5,"smoothed_rtt":51.0,
            "congestion_window":12000,"bytes_in_flight":1200}}"#,
        r#"{"time":1100,"name":"recovery:packet_lost","data":{"header":{"packet_type":"1RTT","packet_number":2}}}"#,
        r#"{"time":1200,"name":"recovery:metrics_updated","data":{"congestion_window":6000,"pto_count":2}}"#,
        r#"{"time":1300,"name":"http:frame_created","data":{}}"#,
    ];
    events.join(",")
}

fn contained() -> String {
    let events = old();
    format!(
        r#"{{"qlog_version":"0.3","qlog_format":"JSON","traces":[{{"common_fields":{{"ODCID":"ab12"}},"events":[{events}],
        "vantage_point":{{"name":"aioquic","type":"client"}}}}]}}"#
    )
}

/// As a sequence of today's draft.
fn sequence() -> String {
    let mut text = String::from(
        "\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"serialization_format\":\
         \"application/qlog+json-seq\",\"trace\":{\"common_fields\":{\"group_id\":\"ab12\"},\"vantage_point\":\
         {\"name\":\"aioquic\",\"type\":\"client\"},\"event_schemas\":[\"urn:ietf:params:qlog:events:quic-14\"]}}\n",
    );
    let events: Vec<Value> = serde_json::from_str(&format!("[{}]", old())).unwrap();
    for event in events {
        let event = event.to_string();
        let event = event.replace("transport:", "quic:").replace("recovery:m", "quic:recovery_m");
        text += &format!("\u{1e}{}\n", event.replace("recovery:packet", "quic:packet"));
    }
    text
}

#[test]
fn both_dialects_say_the_same_of_a_connection() {
    for (text, form) in [
        (contained(), "0.3 JSON"),
        (sequence(), "urn:ietf:params:qlog:file:sequential application/qlog+json-seq"),
        // Lines are a sequence without marks.
        (sequence().replace('\u{1e}', ""), "urn:ietf:params:qlog:file:sequential application/qlog+json-seq"),
    ] {
        let report = found(&text);
        assert_eq!(report.form, form);
        assert_eq!((report.events, report.other_events, &report.unreadable), (6, 1, &None));
        let [connection] = &report.connections[..] else { panic!("{:?}", report.connections) };
        assert_eq!(connection.group.as_deref(), Some("ab12"));
        assert_eq!((connection.vantage.as_str(), connection.host.as_deref()), ("client", Some("aioquic")));
        assert_eq!((connection.sent.packets, connection.sent.octets), (1, 1200));
        assert_eq!((connection.received.packets, connection.received.octets), (1, 80));
        assert_eq!((connection.lost, connection.most_pto), (1, Some(2)));
        assert_eq!(connection.handshake_s, Some(0.0505));
        assert_eq!((connection.rtt.count, connection.rtt.median_s), (1, Some(0.0505)));
        assert_eq!(connection.cwnd, Some([12000, 6000, 12000, 6000]));
        assert_eq!(connection.most_in_flight, Some(1200));
        assert_eq!(report.duration_s, 0.3);
    }
}

#[test]
fn what_ended_a_connection_is_the_first_word_that_says_something() {
    let head = r#"{"qlog_version":"0.3","trace":{}}"#;
    let closed =
        r#"{"time":1,"name":"quic:connection_closed","data":{"reason":"","application_error":"unknown"}}"#;
    let report = found(&[head, closed].join("\n"));
    assert_eq!(report.connections[0].closed.as_deref(), Some("unknown"));
}

#[test]
fn the_trace_has_packets_what_acknowledges_them_and_recovery() {
    let analysis = analyze(contained().as_bytes(), 1000).unwrap();
    let column = |name: &str| analysis.trace.iter().find(|column| column.name == name).unwrap();
    let Values::Category { codes, names } = &column("kind").values else { panic!() };
    let kinds: Vec<&str> = codes.iter().map(|code| names[usize::from(*code)].as_str()).collect();
    assert_eq!(kinds, ["sent", "received", "acknowledged", "recovery", "lost", "recovery"]);
    let Values::U64(numbers) = &column("number").values else { panic!() };
    assert_eq!(numbers[2], 9, "the largest that is acknowledged");
    assert_eq!(analyze(contained().as_bytes(), 2).unwrap().report.rows_left_out, 4);
}

#[test]
fn what_is_acknowledged_is_said_by_path_where_there_are_several() {
    let head = r#"{"qlog_version":"0.3","trace":{}}"#;
    let received = r#"{"time":1,"name":"quic:packet_received","data":{"header":{"packet_type":"1RTT",
        "packet_number":7,"path_id":2},"frames":[{"frame_type":"path_ack","path_id":1,"acked_ranges":[[0,4]]}]}}"#;
    let text = [head, &received.replace('\n', "")].join("\n");
    let trace = analyze(text.as_bytes(), 1000).unwrap().trace;
    let column = |name: &str| &trace.iter().find(|column| column.name == name).unwrap().values;
    let Values::Category { codes, names } = column("kind") else { panic!() };
    assert_eq!(names[usize::from(codes[1])], "acknowledged");
    let Values::Category { codes, names } = column("space") else { panic!() };
    assert_eq!(names[usize::from(codes[1])], "application");
    let (Values::U64(numbers), Values::U64(paths)) = (column("number"), column("path")) else { panic!() };
    assert_eq!((&numbers[..], &paths[..]), (&[7, 4][..], &[2, 1][..]));
}

#[test]
fn a_round_trip_counts_once_whether_a_writer_says_all_of_it_each_time_or_what_changed() {
    let head = r#"{"qlog_version":"0.3","trace":{}}"#;
    let all = |least: u32, smoothed: u32, latest: u32, variance: u32| {
        format!(
            r#""min_rtt":{least},"smoothed_rtt":{smoothed},"latest_rtt":{latest},"rtt_variance":{variance}"#
        )
    };
    let some = str::to_owned;
    // What each event says, what was measured by each, and the smoothed round trip at the end.
    for (events, measured, smoothed) in [
        // The second is as long as the first.
        (
            vec![all(50, 50, 50, 25), some(r#""rtt_variance":18.75"#), some(r#""bytes_in_flight":0"#)],
            vec![Some(50_000_000), Some(50_000_000), None],
            Some(0.05),
        ),
        // As ngtcp2 has it, which knows no least one before it has measured.
        (
            vec![
                some(r#""smoothed_rtt":333,"latest_rtt":0,"rtt_variance":166"#),
                all(1, 1, 1, 0),
                all(1, 1, 1, 0),
                all(0, 1, 0, 0),
            ],
            vec![None, Some(1_000_000), None, Some(0)],
            Some(0.001),
        ),
        // Nothing was measured.
        (vec![all(0, 0, 0, 0)], vec![None], None),
        (vec![some(r#""smoothed_rtt":333,"rtt_variance":166"#)], vec![None], None),
        // Each path has its own.
        (
            vec![all(50, 50, 50, 25), all(50, 50, 50, 25) + r#","path_id":1"#, all(50, 50, 50, 25)],
            vec![Some(50_000_000), Some(50_000_000), None],
            Some(0.05),
        ),
    ] {
        let mut text = head.to_owned();
        for said in &events {
            text += &format!("\n{{\"time\":1,\"name\":\"recovery:metrics_updated\",\"data\":{{{said}}}}}");
        }
        let analysis = analyze(text.as_bytes(), 1000).unwrap();
        let column = analysis.trace.iter().find(|column| column.name == "rtt_ns").unwrap();
        let Values::U64(values) = &column.values else { panic!() };
        let times: Vec<Option<u64>> = (values.iter().zip(column.valid.as_ref().unwrap()))
            .map(|(ns, is_measured)| is_measured.then_some(*ns))
            .collect();
        assert_eq!(times, measured, "{events:?}");
        let connection = &analysis.report.connections[0];
        assert_eq!(connection.rtt.count, measured.iter().flatten().count() as u64);
        assert_eq!(connection.smoothed_rtt_s, smoothed, "{events:?}");
    }
}

#[test]
fn connections_of_one_file_are_told_apart_by_their_group() {
    let head = r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{}}"#;
    let event = |group: &str| {
        format!(r#"{{"time":1,"group_id":"{group}","name":"transport:packet_sent","data":{{}}}}"#)
    };
    let report = found(&[head, &event("a"), &event("b"), &event("a")].join("\n"));
    let counts: Vec<_> =
        report.connections.iter().map(|c| (c.group.clone().unwrap(), c.sent.packets)).collect();
    assert_eq!(counts, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
}

#[test]
fn times_that_are_counted_from_the_event_before_are_added_up() {
    let head = r#"{"qlog_version":"0.3","trace":{"common_fields":{"time_format":"delta"}}}"#;
    let event = r#"{"time":10,"name":"transport:packet_sent","data":{}}"#;
    assert_eq!(found(&[head, event, event, event].join("\n")).duration_s, 0.02);
}

#[test]
fn an_event_may_say_for_itself_how_its_time_is_counted() {
    let event = |time: u32, format: &str| {
        format!(r#"{{"time":{time},"time_format":"{format}","name":"transport:packet_sent","data":{{}}}}"#)
    };
    let plain = r#"{"qlog_version":"0.3","trace":{}}"#;
    let first = r#"{"time":10,"name":"transport:packet_sent","data":{}}"#;
    let later = event(10, "relative_to_previous_event");
    assert_eq!(found(&[plain, first, &later].join("\n")).duration_s, 0.01);
    let delta = r#"{"qlog_version":"0.3","trace":{"common_fields":{"time_format":"delta"}}}"#;
    assert_eq!(found(&[delta, first, &event(15, "relative_to_epoch")].join("\n")).duration_s, 0.005);
}

#[test]
fn a_time_that_none_can_be_is_0() {
    let head = r#"{"qlog_version":"0.3","trace":{}}"#;
    for time in ["1e303", "-1e303", "1e16"] {
        let event = format!(r#"{{"time":{time},"name":"transport:packet_sent","data":{{}}}}"#);
        let later = r#"{"time":10,"name":"transport:packet_sent","data":{}}"#;
        assert_eq!(found(&[head, &event, later].join("\n")).duration_s, 0.01, "{time}");
    }
}

#[test]
fn a_file_that_is_cut_is_read_up_to_there() {
    let whole = sequence();
    let report = found(&whole[..whole.len() - 10]);
    assert_eq!(report.events, 5);
    assert!(report.unreadable.unwrap().contains("EOF"));
    let whole = contained();
    let report = found(&whole[..whole.len() - 200]);
    assert!(report.events >= 3, "{}", report.events);
    assert!(report.unreadable.is_some());
}

#[test]
fn what_is_no_qlog_is_an_error_and_an_event_without_an_end_takes_no_memory() {
    for text in ["", "[]", "{}", r#"{"log":{"version":"1.2"}}"#, "\u{1e}", "not", "{\"a\": 1e999}"] {
        assert!(matches!(analyze(text.as_bytes(), 10), Err(Error::NotQlog(_))), "{text}");
    }
    let endless =
        format!(r#"{{"qlog_version":"0.3","traces":[{{"events":[{{"name":"{}"#, "x".repeat(3 << 20));
    assert!(found(&endless).unreadable.unwrap().contains("octets"));
    let deep = format!(r#"{{"qlog_version":"0.3","traces":[{{"events":[{}"#, "[".repeat(100_000));
    assert!(found(&deep).unreadable.is_some());
}
