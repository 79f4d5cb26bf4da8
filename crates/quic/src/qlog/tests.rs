use std::net::SocketAddr;

use super::*;

fn trace(is_client: bool) -> Trace {
    let about = About {
        host: "end".to_owned(),
        flow: 1,
        is_client,
        local: (None, None),
        remote: SocketAddr::from(([10, 0, 0, 2], 443)),
        first: Some(ConnectionId::new(&[0xAB; 8])),
        initial_rtt: Duration::from_millis(333),
        packet_threshold: 3,
    };
    Trace::new(about, Instant::ZERO)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn taken(trace: &Trace) -> Vec<Value> {
    let Some((of, lines)) = trace.take() else { return Vec::new() };
    assert_eq!(of.group, "abababababababab");
    let text = String::from_utf8(lines).unwrap();
    let records = text.split_terminator('\n');
    records.map(|line| serde_json::from_str(line.strip_prefix('\u{1e}').unwrap()).unwrap()).collect()
}

/// The header of a 1-RTT packet with a number of one octet.
const SHORT: [u8; 10] = [0x40, 1, 2, 3, 4, 5, 6, 7, 8, 0];

impl Trace {
    fn send(&self, now: Instant, number: u64, payload: &[u8]) {
        self.at(now);
        self.lock().sent(0, number, &SHORT, payload, SHORT.len() + payload.len() + 16);
    }
    fn receive(&self, now: Instant, number: u64, payload: &[u8]) {
        self.at(now);
        self.lock().received(0, number, &SHORT, payload, SHORT.len() + payload.len() + 16);
    }
    fn view(&self, smoothed_us: u64) {
        self.lock().follow(&PathView {
            number: 0,
            local: None,
            remote: SocketAddr::from(([10, 0, 0, 2], 443)),
            window: 12_000,
            ssthresh: Some(u64::MAX),
            pacing_rate: Some(1000),
            smoothed: std::time::Duration::from_micros(smoothed_us),
        });
    }
}

#[test]
fn sizes_and_numbers_are_where_readers_look_for_them() {
    let trace = trace(true);
    trace.send(at(1), 7, &[0x01]);
    assert_eq!(
        taken(&trace),
        [json!({
            "time": 1.0, "name": "quic:packet_sent", "tuple": "p0", "data": {
                "header": { "packet_type": "1RTT", "dcid": "0102030405060708", "packet_number": 7 },
                "frames": [{ "frame_type": "ping" }],
                "raw": { "length": 27 },
            },
        })]
    );
    assert_eq!(taken(&trace), [] as [Value; 0]);
}

#[test]
fn a_path_that_goes_by_other_addresses_is_told_and_carries_nothing() {
    let trace = trace(true);
    trace.send(at(0), 0, &[0x01]);
    trace.view(333_000);
    taken(&trace);
    let elsewhere = PathView {
        number: 0,
        local: Some([10, 0, 0, 1].into()),
        remote: SocketAddr::from(([10, 0, 0, 9], 443)),
        window: 12_000,
        ssthresh: None,
        pacing_rate: None,
        smoothed: std::time::Duration::from_millis(333),
    };
    trace.lock().follow(&elsewhere);
    let told = taken(&trace);
    assert_eq!(told[0]["name"], "quic:tuple_assigned");
    assert_eq!(
        told[0]["data"],
        json!({
            "tuple_id": "p0", "tuple_remote": { "ip_v4": "10.0.0.9", "port_v4": 443 },
            "tuple_local": { "ip_v4": "10.0.0.1" },
        })
    );
    assert_eq!(told[1]["data"]["bytes_in_flight"], 0);
    trace.lock().follow(&elsewhere);
    assert_eq!(taken(&trace), [] as [Value; 0]);
}

#[test]
fn a_long_header_has_both_ids() {
    let (space, told) = header(&[0xE0, 0, 0, 0, 1, 2, 0xAA, 0xBB, 1, 0xCC, 0x40, 0x20, 0]);
    assert_eq!(space, Space::Handshake);
    assert_eq!(Value::from(told), json!({ "packet_type": "handshake", "dcid": "aabb", "scid": "cc" }));
    // What is cut short says what it has.
    assert_eq!(header(&[0xD0, 0, 0, 0, 1, 9, 1]).1.len(), 1);
    assert_eq!(header(&[]).1["packet_type"], "1RTT");
}

#[test]
fn a_peers_delays_are_scaled_as_the_peer_said() {
    let trace = trace(true);
    trace.lock().exponents = [3, 10];
    trace.receive(at(1), 0, &[0x02, 0, 5, 0, 0]);
    trace.send(at(1), 0, &[0x02, 0, 5, 0, 0]);
    let delays: Vec<f64> =
        taken(&trace).iter().map(|event| event["data"]["frames"][0]["ack_delay"].as_f64().unwrap()).collect();
    assert_eq!(delays, [5.12, 0.04]);
}

#[test]
fn what_was_not_measured_is_not_told() {
    let trace = trace(true);
    trace.view(333_000);
    trace.send(at(0), 0, &[0x01]);
    trace.receive(at(50), 0, &[0x02, 0, 0, 0, 0]);
    trace.view(50_000);
    let told: Vec<Value> = taken(&trace)
        .into_iter()
        .filter(|event| event["name"] == "quic:recovery_metrics_updated")
        .map(|event| event["data"].clone())
        .collect();
    assert_eq!(
        told,
        [
            json!({
                "congestion_window": 12_000, "bytes_in_flight": 0, "packets_in_flight": 0, "pacing_rate": 8000,
                "pto_count": 0,
            }),
            json!({ "min_rtt": 50.0, "smoothed_rtt": 50.0, "latest_rtt": 50.0, "rtt_variance": 25.0 }),
        ]
    );
}

#[test]
fn octets_are_under_way_until_they_are_acknowledged_lost_or_without_keys() {
    let trace = trace(true);
    let under_way = || {
        trace.view(333_000);
        let told = taken(&trace);
        let data = told.iter().rfind(|event| event["name"] == "quic:recovery_metrics_updated");
        data.and_then(|event| event["data"]["bytes_in_flight"].as_u64())
    };
    for number in 0..5 {
        trace.send(at(number), number, &[0x01, 0, 0]);
    }
    // Nothing but an acknowledgement, and the end, count for nothing.
    trace.send(at(5), 5, &[0x02, 0, 0, 0, 0]);
    trace.send(at(5), 6, &[0x1D, 0, 0]);
    assert_eq!(under_way(), Some(5 * 29));
    trace.receive(at(9), 0, &[0x02, 4, 0, 0, 0]);
    // Those that three others have overtaken the library gives up without a word.
    assert_eq!(under_way(), Some(2 * 29));
    trace.lost(0, 2, 29);
    trace.lost(0, 3, 30);
    trace.lost(1, 3, 29);
    let lost = taken(&trace);
    assert_eq!(
        lost.iter().map(|event| event["data"].clone()).collect::<Vec<_>>(),
        [json!({
            "header": { "packet_type": "1RTT", "packet_number": 2 }, "trigger": "time_threshold",
            "raw": { "length": 29 },
        })]
    );
    assert_eq!(under_way(), Some(29));
    trace.lock().recovery.discarded(at(9), Space::Data);
    assert_eq!(under_way(), Some(0));
}

#[test]
fn a_lost_packet_is_of_the_space_in_which_later_ones_have_arrived() {
    let trace = trace(true);
    let initial = [&[0xC0, 0, 0, 0, 1, 0, 0][..], &[0; 4]].concat();
    trace.lock().sent(0, 0, &initial, &[0x01], 28);
    for number in 0..4 {
        trace.send(at(1), number, &[0x01, 0]);
    }
    trace.receive(at(9), 0, &[0x02, 3, 0, 0, 0]);
    trace.lost(0, 0, 28);
    let lost = taken(&trace).pop().unwrap();
    assert_eq!(lost["data"]["header"]["packet_type"], "1RTT");
    assert_eq!(lost["data"]["trigger"], "reordering_threshold");
}

#[test]
fn losses_up_to_a_moment_are_those_that_later_ones_have_overtaken() {
    let trace = trace(true);
    for number in 0..6 {
        trace.send(at(number), number, &[0x01]);
    }
    // A search for a larger packet size is no loss.
    trace.send(at(6), 6, &[&[0x01][..], &[0; 1400]].concat());
    trace.send(at(7), 7, &[0x01]);
    trace.receive(at(20), 0, &[0x02, 7, 0, 0, 0]);
    trace.lost_until(at(4));
    trace.lost_until(at(6));
    let numbers: Vec<u64> = taken(&trace)
        .iter()
        .filter(|event| event["name"] == "quic:packet_lost")
        .map(|event| event["data"]["header"]["packet_number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
}

/// What `pto_count` is, if it is another one than it was.
fn probes(trace: &Trace, smoothed_us: u64) -> Option<u64> {
    trace.view(smoothed_us);
    let told = taken(trace);
    told.iter().filter_map(|event| event["data"]["pto_count"].as_u64()).next_back()
}

#[test]
fn a_probe_timeout_is_counted_when_it_passes_and_forgotten_with_an_acknowledgement() {
    let trace = trace(true);
    let passes = |ms| {
        trace.due(at(ms));
        probes(&trace, 333_000)
    };
    trace.lock().recovery.discarded(at(0), Space::Handshake);
    trace.send(at(0), 0, &[0x01]);
    //= RFC 9002 (6.2.1): 333 ms and four times half of that, and the 25 ms that the peer may wait.
    assert_eq!(passes(1023), Some(0));
    assert_eq!(passes(1024), Some(1));
    trace.send(at(1024), 1, &[0x01]);
    // Twice as long, whatever asks for no acknowledgement.
    trace.send(at(2048), 2, &[0x02, 0, 0, 0, 0]);
    assert_eq!(passes(1024 + 2047), None);
    assert_eq!(passes(1024 + 2048), Some(2));
    trace.receive(at(4200), 0, &[0x02, 1, 0, 0, 0]);
    assert_eq!(probes(&trace, 333_000), Some(0));
}

#[test]
fn a_client_that_is_not_believed_probes_with_nothing_under_way() {
    for (is_client, ms, count) in [(true, 199, 0), (true, 200, 1), (false, 200, 0)] {
        let trace = trace(is_client);
        let initial = [&[0xC0, 0, 0, 0, 1, 0, 0][..], &[0; 4]].concat();
        trace.lock().sent(0, 0, &initial, &[0x01], 28);
        trace.at(at(50));
        trace.lock().received(0, 0, &initial, &[0x02, 0, 0, 0, 0], 28);
        trace.view(50_000);
        trace.due(at(ms));
        //= RFC 9002 (6.2.2.1): a round trip of 50 ms and four times half of that after the timer was set by the acknowledgement.
        let expected = Some(count).filter(|count| *count > 0);
        assert_eq!(probes(&trace, 50_000).filter(|count| *count > 0), expected, "{is_client} {ms}");
    }
}
