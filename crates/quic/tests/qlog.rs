//! What is told of the packets of a connection, against those that its peer has had.

use std::collections::BTreeSet;

use airloom_base::units::Rate;
use airloom_base::{Body, CloseReason, Duration, Instant};
use airloom_quic::{Config, Controller, Quic, Session};
use airloom_testkit::{End, Fate, LinkConfig, Pair};
use serde_json::Value;

/// A client and a server with these settings, 20 ms apart, which are told of.
fn pair(config: &Config) -> Pair {
    let quic = |end: &str| Box::new(Quic::new(config.clone(), 1, end));
    let link = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::default() };
    let mut pair = Pair::new(quic("client"), quic("server"), link);
    pair.outbox.ask_qlog(true);
    pair
}

/// The events of the client and of the server while both send so many octets, and every eleventh datagram is lost.
fn told(config: &Config, octets: u32) -> [Vec<Value>; 2] {
    let mut pair = pair(config);
    pair.set_fate(Box::new(|sent| if sent.index % 11 == 7 { Fate::Lose } else { Fate::Deliver }));
    pair.open(End::Client);
    for end in [End::Client, End::Server] {
        pair.write(end, Body::filler(1, octets));
        pair.finish(end);
    }
    pair.drive();
    assert_eq!(pair.client().closed(), Some(CloseReason::Finished));
    events(&pair)
}

/// What both ends have told.
fn events(pair: &Pair) -> [Vec<Value>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    let mut groups = BTreeSet::new();
    for record in &pair.outbox.qlog {
        groups.insert(record.of.group.clone());
        let text = std::str::from_utf8(&record.lines).expect("JSON");
        let events = text.split_terminator('\n').map(|line| {
            serde_json::from_str(line.strip_prefix('\u{1e}').expect("a record of RFC 7464")).expect("JSON")
        });
        found[usize::from(!record.of.is_client)].extend(events);
    }
    assert_eq!(groups.len(), 1, "both ends have one name for it");
    // The one that the client sent to first, whatever the server had it take then.
    let first = of(&found[0], "quic:packet_sent").next().map(|sent| sent["header"]["dcid"].clone());
    assert_eq!(first.as_ref().and_then(Value::as_str), groups.first().map(String::as_str));
    found
}

fn of<'a>(events: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["name"] == name).map(|event| &event["data"])
}

/// Kind and number of packets.
fn numbers<'a>(packets: impl Iterator<Item = &'a Value>) -> BTreeSet<(String, u64)> {
    let number = |data: &Value| {
        let header = &data["header"];
        (header["packet_type"].as_str().unwrap().to_owned(), header["packet_number"].as_u64().unwrap())
    };
    packets.map(number).collect()
}

/// Does it ask for an acknowledgement, and is not only there to see whether the path takes packets of its size?
fn has_to_arrive(packet: &&Value) -> bool {
    let kinds: Vec<&str> = packet["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| frame["frame_type"].as_str().unwrap())
        .collect();
    let says_nothing = |kind: &&str| matches!(*kind, "ack" | "padding" | "connection_close");
    let is_search = kinds.iter().all(|kind| matches!(*kind, "ping" | "padding" | "immediate_ack"));
    !kinds.iter().all(says_nothing) && !is_search
}

#[test]
fn what_is_lost_is_told_by_its_number_and_nothing_else_is() {
    for session in [Session::Model, Session::Seeded] {
        let ends = told(&Config { session, ..Config::default() }, 200_000);
        for (one, other) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
            let sent = numbers(of(one, "quic:packet_sent"));
            let arrived = numbers(of(other, "quic:packet_received"));
            let lost = numbers(of(one, "quic:packet_lost"));
            assert!(arrived.is_subset(&sent));
            assert!(lost.is_subset(&sent));
            assert!(lost.is_disjoint(&arrived), "the link reorders nothing");
            assert!(lost.len() > 10);
            let acknowledged = of(one, "quic:packet_received")
                .filter(|packet| packet["header"]["packet_type"] == "1RTT")
                .flat_map(|packet| packet["frames"].as_array().into_iter().flatten())
                .filter_map(|frame| frame["acked_ranges"].as_array()?.last()?.as_array()?.last()?.as_u64())
                .max()
                .unwrap();
            let needed = numbers(of(one, "quic:packet_sent").filter(has_to_arrive));
            let missing = needed.difference(&arrived).filter(|(kind, number)| {
                // Those in front of the last that have arrived are waited for.
                kind == "1RTT" && number + 3 <= acknowledged
            });
            for packet in missing {
                assert!(lost.contains(packet), "{packet:?}");
            }
        }
    }
}

#[test]
fn a_mark_of_congestion_halves_the_window_and_nothing_is_lost() {
    let windows = |mark_from| {
        let config = Config { controller: Controller::NewReno, mtu_discovery: false, ..Config::default() };
        let quic = |end: &str| Box::new(Quic::new(config.clone(), 1, end));
        let rate = [Some(Rate::kbit(10_000)), None];
        let link = LinkConfig { delay: Duration::from_millis(20), rate, ..LinkConfig::default() };
        let mut pair = Pair::new(quic("client"), quic("server"), link);
        pair.outbox.ask_qlog(true);
        pair.link.mark_from = mark_from;
        pair.open(End::Client);
        pair.write(End::Client, Body::filler(1, 2_000_000));
        [End::Client, End::Server].into_iter().for_each(|end| pair.finish(end));
        pair.drive();
        assert_eq!(pair.client().closed(), Some(CloseReason::Finished));
        assert_eq!(pair.link.ce_marks > 0, mark_from < 1000);
        let [client, _] = events(&pair);
        assert_eq!(of(&client, "quic:packet_lost").count(), 0);
        let updates = of(&client, "quic:recovery_metrics_updated");
        updates.filter_map(|update| update["congestion_window"].as_u64()).collect::<Vec<_>>()
    };
    let fall = |windows: &[u64]| windows.windows(2).find(|two| two[1] < two[0]).map(|two| [two[0], two[1]]);
    assert_eq!(fall(&windows(usize::MAX)), None);
    let [before, after] = fall(&windows(10)).expect("it shrinks");
    //= RFC 9002 (7.1, 7.3.2): a CE mark is an event of congestion as a loss is. What the acknowledgement that tells of it brought before
    //= that is a few packets more.
    assert!((before / 2..before / 2 + 3000).contains(&after), "{before} {after}");
}

#[test]
fn a_connection_begins_with_its_ends_and_what_they_say_of_themselves() {
    let [client, server] = told(&Config { session: Session::Seeded, ..Config::default() }, 1000);
    let said = |events: &[Value], whose: &str| {
        let set: Vec<&Value> =
            of(events, "quic:parameters_set").filter(|set| set["initiator"] == whose).collect();
        assert_eq!(set.len(), 1, "{whose}");
        set[0].clone()
    };
    for (one, other) in [(&client, &server), (&server, &client)] {
        assert_eq!(one[0]["name"], "quic:connection_started");
        let (own, heard) = (said(one, "local"), said(other, "remote"));
        for (name, value) in heard.as_object().unwrap() {
            if !matches!(name.as_str(), "initiator" | "unknown_parameters") {
                assert_eq!(&own[name], value, "{name}");
            }
        }
        assert_eq!(one[0]["data"]["local"]["connection_ids"][0], own["initial_source_connection_id"]);
        assert_eq!(of(one, "quic:connection_closed").count(), 1);
    }
    // The packet that opened it is the first that the server tells of.
    let first = of(&server, "quic:packet_received").next().unwrap();
    assert_eq!(first["header"]["packet_type"], "initial");
    assert_eq!(first["raw"]["length"], 1200);
    assert_eq!(
        Some(first["frames"].clone()),
        of(&client, "quic:packet_sent").next().map(|sent| sent["frames"].clone())
    );
}

#[test]
fn a_retry_is_told_as_one() {
    let [client, server] = told(&Config { retry: true, ..Config::default() }, 1000);
    let kinds: Vec<&Value> =
        of(&client, "quic:packet_received").map(|data| &data["header"]["packet_type"]).collect();
    assert_eq!(kinds[0], "retry");
    assert!(kinds[1..].iter().all(|kind| *kind != "retry"));
    let parameters = of(&server, "quic:parameters_set").next().unwrap();
    assert!(parameters["retry_source_connection_id"].is_string());
}

#[test]
fn probe_timeouts_are_counted_as_they_pass() {
    for end in [End::Client, End::Server] {
        let mut pair = pair(&Config::default());
        pair.open(End::Client);
        pair.drive_until(Instant::ZERO + Duration::from_millis(1000));
        pair.set_fate(Box::new(move |sent| if sent.from == end { Fate::Lose } else { Fate::Deliver }));
        pair.write(end, Body::filler(1, 100));
        pair.drive_until(Instant::ZERO + Duration::from_millis(4000));
        pair.set_fate(Box::new(|_| Fate::Deliver));
        pair.drive_until(Instant::ZERO + Duration::from_millis(9000));
        let found = &events(&pair)[usize::from(end == End::Server)];
        let times_of = |is_it: &dyn Fn(&Value) -> bool| -> Vec<f64> {
            found.iter().filter(|event| is_it(event)).filter_map(|event| event["time"].as_f64()).collect()
        };
        let counts: Vec<u64> = found.iter().filter_map(|event| event["data"]["pto_count"].as_u64()).collect();
        let passed = times_of(&|event| event["data"]["pto_count"].as_u64() > Some(0));
        // Each is one more, and none is left once something has arrived.
        let most = passed.len() as u64;
        assert!(most >= 4, "{counts:?}");
        assert_eq!(counts, [0].into_iter().chain(1..=most).chain([0]).collect::<Vec<u64>>());
        // At each something leaves, and nothing does between.
        let mut sent = times_of(&|event| event["name"] == "quic:packet_sent");
        sent.retain(|at| (passed[0]..=passed[passed.len() - 1]).contains(at));
        sent.dedup();
        assert_eq!(sent, passed);
    }
}
