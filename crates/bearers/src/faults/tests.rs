use std::collections::BTreeMap;
use std::net::IpAddr;

use airloom_base::{
    Bearer, Body, Change, ConfigError, Cx, Direction, Duration, Fault, Instant, LinkState, Outbox, Packet,
    Parts, Station, Unsupported,
};
use airloom_testkit::Bench;
use airloom_wire::icmp::{self, Icmp};
use airloom_wire::ip::{self, Ip, protocol};
use airloom_wire::udp::Udp;
use serde_json::json;

use super::{Faults, Faulty};

const CLIENT: &str = "10.0.0.2";
const SERVER: &str = "10.9.0.1";
const SPARE: [&str; 4] = ["10.0.0.254", "10.0.0.253", "fd00::fffe", "fd00::fffd"];

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn datagram(number: u8, (from, from_port): (&str, u16), (to, to_port): (&str, u16), octets: u32) -> Packet {
    let body = Body::filler(1, octets);
    let mut packet = Packet::build(
        |out| match number {
            protocol::UDP => {
                Udp { source: from_port, destination: to_port, len: 8 + octets as u16 }.emit(out)
            }
            _ => {
                out[..20].fill(0);
                out[..2].copy_from_slice(&from_port.to_be_bytes());
                out[2..4].copy_from_slice(&to_port.to_be_bytes());
                out[12] = 5 << 4;
                20
            }
        },
        body,
    );
    let payload = packet.wire_len();
    let len = ip::header_len(address(to));
    ip::emit(packet.prepend(len), address(from), address(to), number, 0, payload);
    packet
}

fn over(bearer: &str, faults: serde_json::Value, seed: u64) -> Result<Bench<Faulty>, ConfigError> {
    let mut records = Outbox::default();
    let mut parts = Parts::new(seed, "link", 1, &mut records);
    let inner = (crate::find(bearer).unwrap().build)(&json!({}), &mut parts).unwrap();
    let faults: Faults = airloom_base::config::read(&faults)?;
    let link = Faulty::new(inner, faults, &SPARE.map(address), &mut parts)?;
    Ok(Bench::new(Box::new(link), records))
}

fn faulty(faults: serde_json::Value) -> Bench<Faulty> {
    over("wireline", faults, 1).unwrap()
}

/// Sends one, and gives what arrives of it.
fn carry(bench: &mut Bench<Faulty>, direction: Direction, packet: Packet) -> Vec<Packet> {
    bench.pass(direction, 0, packet);
    bench.finish();
    assert!(bench.out.iter().all(|(_, d, ..)| *d == direction));
    bench.out.drain(..).map(|(.., packet)| packet).collect()
}

fn up(bench: &mut Bench<Faulty>, octets: u32) -> usize {
    carry(bench, Direction::Uplink, datagram(protocol::UDP, (CLIENT, 5000), (SERVER, 443), octets)).len()
}

fn down(bench: &mut Bench<Faulty>, octets: u32) -> usize {
    carry(bench, Direction::Downlink, datagram(protocol::UDP, (SERVER, 443), (CLIENT, 5000), octets)).len()
}

fn switch(bench: &mut Bench<Faulty>, fault: Fault, on: bool) {
    bench.bearer.switch(bench.now, fault, on).unwrap();
}

#[test]
fn exactly_the_listed_datagrams_vanish() {
    let mut bench = faulty(json!({ "drop_list": { "uplink": [1, 3], "downlink": [2] } }));
    assert_eq!([0; 5].map(|_| up(&mut bench, 100)), [0, 1, 0, 1, 1]);
    assert_eq!([0; 3].map(|_| down(&mut bench, 100)), [1, 0, 1]);
    assert_eq!((bench.value("uplink.dropped_by_list"), bench.value("downlink.dropped_by_list")), (2.0, 1.0));
    assert_eq!(bench.value("uplink.faults_met"), 5.0);
}

#[test]
fn what_vanishes_was_lost_and_not_delivered() {
    for bearer in ["umts-dch", "wireline"] {
        let faults = json!({
            "drop": { "rate": "20%" }, "mtu": 500, "drop_list": { "uplink": [1] }, "duplication": { "probability": "30%", "delay": "1ms" },
        });
        let mut bench = over(bearer, faults, 1).unwrap();
        let mut arrived = BTreeMap::new();
        for n in 0..100 {
            let packet =
                datagram(protocol::UDP, (CLIENT, 5000), (SERVER, 443), if n % 10 == 0 { 600 } else { 100 });
            let id = bench.pass(Direction::Uplink, 0, packet);
            bench.finish();
            arrived.extend(bench.out.drain(..).map(|(.., packet)| (id, packet.wire_len() as f64)));
        }
        let value = |name: &str| bench.value(&format!("uplink.{name}"));
        let delivered = arrived.len() as f64;
        assert!(delivered < 85.0, "{bearer}");
        assert_eq!((value("packets"), value("lost")), (100.0, 100.0 - delivered), "{bearer}");
        if bearer == "wireline" {
            assert_eq!(bench.value("lost"), 100.0 - delivered);
        } else {
            let octets: f64 = arrived.values().sum();
            assert_eq!((value("delivered"), value("delivered_bytes")), (delivered, octets));
            assert_eq!(value("lost_share"), value("lost") / 100.0);
        }
    }
}

#[test]
fn what_has_passed_is_what_came_out_behind_the_faults() {
    let mut bench = faulty(json!({
        "drop": { "rate": "30%" }, "reordering": { "probability": 1, "every": 10, "delay": "1h" },
    }));
    let mut octets = 0;
    for n in 0..100_u64 {
        bench.pass(Direction::Uplink, 0, datagram(protocol::UDP, (CLIENT, 5000), (SERVER, 443), 100));
        bench.run_until(Instant::ZERO + Duration::from_millis(n));
        octets += bench.out.drain(..).map(|(.., packet)| packet.wire_len() as u64).sum::<u64>();
        assert_eq!(bench.bearer.passed()[Direction::Uplink as usize].octets, octets);
    }
    assert!((5000..10_000).contains(&octets), "{octets}");
}

#[test]
fn what_a_translator_does_not_let_in_came_to_the_link_and_was_lost() {
    let mut bench = faulty(json!({ "nat": { "first": "1s" } }));
    assert_eq!((up(&mut bench, 100), down(&mut bench, 100)), (1, 1));
    bench.handle(Instant::ZERO + Duration::from_secs(2));
    assert_eq!(down(&mut bench, 100), 0);
    assert_eq!((bench.value("downlink.packets"), bench.value("downlink.lost")), (2.0, 1.0));
    assert_eq!(bench.value("lost"), 1.0);
}

#[test]
fn what_is_switched_off_does_nothing_and_its_numbers_go_on() {
    let kinds = [Fault::DropList, Fault::Drop, Fault::Corrupt];
    let through = |on: fn(usize) -> bool| {
        let faults = json!({
            "drop_list": { "uplink": [2, 4, 60] }, "drop": { "rate": "20%" }, "corrupt": { "rate": "20%" },
        });
        let mut bench = faulty(faults);
        let mut one = |n| {
            kinds.iter().for_each(|fault| switch(&mut bench, *fault, on(n)));
            let packet = datagram(protocol::UDP, (CLIENT, 5000), (SERVER, 443), 100);
            let arrived = carry(&mut bench, Direction::Uplink, packet);
            arrived.iter().map(|packet| packet.body().to_bytes().to_vec()).collect::<Vec<_>>()
        };
        (0..300).map(&mut one).collect::<Vec<_>>()
    };
    let (always, never) = (through(|_| true), through(|_| false));
    assert!(never.iter().all(|arrived| arrived.len() == 1));
    assert!(always.iter().zip(&never).filter(|(a, b)| a != b).count() > 80);
    let between = through(|n| (50..100).contains(&n));
    assert_eq!(between[..50], never[..50]);
    assert_eq!(between[50..100], always[50..100]);
    assert_eq!(between[100..], never[100..]);
}

#[test]
fn disorder_is_switched_too() {
    let disorder =
        json!({ "duplication": { "probability": 1 }, "reordering": { "probability": 1, "delay": "1s" } });
    let mut bench = faulty(disorder);
    assert_eq!((up(&mut bench, 10), bench.now), (2, Instant::ZERO + Duration::from_secs(1)));
    switch(&mut bench, Fault::Duplication, false);
    assert_eq!((up(&mut bench, 10), bench.now), (1, Instant::ZERO + Duration::from_secs(2)));
    switch(&mut bench, Fault::Reordering, false);
    assert_eq!((up(&mut bench, 10), bench.now), (1, Instant::ZERO + Duration::from_secs(2)));
}

/// A wire with disorder of its own, and faults around it.
fn wire(config: serde_json::Value, faults: serde_json::Value) -> Bench<Faulty> {
    let mut records = Outbox::default();
    let mut parts = Parts::new(1, "link", 1, &mut records);
    let wire = (crate::find("wireline").unwrap().build)(&config, &mut parts).unwrap();
    let link = Faulty::new(wire, airloom_base::config::read(&faults).unwrap(), &[], &mut parts).unwrap();
    Bench::new(Box::new(link), records)
}

#[test]
fn disorder_of_a_wire_counts_beside_that_of_its_faults() {
    let (twice, late) =
        (json!({ "probability": 1 }), json!({ "probability": 1, "every": 2, "delay": "1ms" }));
    let mut bench = wire(json!({ "duplication": twice }), json!({ "reordering": late }));
    assert_eq!([0; 5].map(|_| up(&mut bench, 100)), [2; 5]);
    assert_eq!((bench.value("uplink.duplicated"), bench.value("uplink.reordered")), (5.0, 5.0));
    let mut bench = wire(json!({ "duplication": twice }), json!({ "duplication": twice }));
    assert_eq!([0; 5].map(|_| up(&mut bench, 100)), [4; 5]);
    assert_eq!(bench.value("uplink.duplicated"), 15.0);
}

#[test]
fn copies_of_a_wire_are_none_of_the_datagrams_that_its_faults_lose_or_hold() {
    let twice = json!({ "duplication": { "probability": 1 } });
    let passed = |bench: &Bench<Faulty>| bench.bearer.passed()[Direction::Uplink as usize].octets;
    let mut bench = wire(twice.clone(), json!({ "drop": { "rate": 1 } }));
    assert_eq!((up(&mut bench, 100), passed(&bench)), (0, 0));
    assert_eq!((bench.value("uplink.packets"), bench.value("uplink.lost")), (1.0, 1.0));
    assert_eq!((bench.value("lost"), bench.value("uplink.dropped_by_rate")), (1.0, 2.0));
    let mut bench = wire(twice, json!({ "reordering": { "probability": 1, "delay": "1s" } }));
    bench.pass(Direction::Uplink, 0, datagram(protocol::UDP, (CLIENT, 5000), (SERVER, 443), 100));
    bench.run_until(Instant::ZERO);
    assert_eq!((bench.out.len(), passed(&bench)), (0, 0), "both wait");
    bench.finish();
    assert_eq!((bench.out.len(), passed(&bench)), (2, 128));
}

#[test]
fn a_wire_and_its_faults_strike_different_datagrams() {
    let late = json!({ "reordering": { "probability": "50%", "delay": "1ms" } });
    let mut bench = wire(late.clone(), late);
    let mut of_delay = BTreeMap::new();
    for _ in 0..1000 {
        let begun = bench.now;
        up(&mut bench, 100);
        *of_delay.entry(bench.now.since(begun).as_nanos() / 1_000_000).or_insert(0) += 1;
    }
    assert!((of_delay[&1] - 500_i32).abs() < 5 * 16, "{of_delay:?}");
}

#[test]
fn a_black_hole_keeps_its_schedule_while_it_is_off() {
    let mut bench = faulty(json!({ "blackhole": { "on": "1s", "off": "1s", "repeat": 0 } }));
    let mut passed = Vec::new();
    for second in 0..8 {
        bench.now = Instant::ZERO + Duration::from_secs(second);
        switch(&mut bench, Fault::Blackhole, second >= 4);
        passed.push(up(&mut bench, 10));
    }
    assert_eq!(passed, [1, 1, 1, 1, 1, 0, 1, 0]);
}

#[test]
fn a_translator_that_is_switched_on_forgets_at_that_moment_and_one_that_is_off_never() {
    let mut bench = faulty(json!({ "nat": { "first": "2s", "every": "2s" } }));
    let mut ports = Vec::new();
    for (second, by_hand) in
        [(0, None), (1, Some(false)), (3, None), (5, Some(true)), (7, None), (7, Some(true))]
    {
        bench.now = Instant::ZERO + Duration::from_secs(second);
        if let Some(on) = by_hand {
            switch(&mut bench, Fault::Nat, on);
        }
        let sent = datagram(protocol::UDP, (CLIENT, 5000), (SERVER, 443), 10);
        let arrived = carry(&mut bench, Direction::Uplink, sent);
        ports.push(u16::from_be_bytes([arrived[0].head()[20], arrived[0].head()[21]]));
    }
    assert_eq!(ports[..3], [5000; 3]);
    // At 5 s by hand, by 7 s by its schedule, at 7 s by hand.
    let mut others = ports[3..].to_vec();
    others.sort_unstable();
    others.dedup();
    assert_eq!((others.len(), bench.value("nat_rebindings")), (3, 3.0));
}

#[test]
fn what_a_link_has_not_cannot_be_switched() {
    let mut bench = faulty(json!({ "mtu": 1000 }));
    for &fault in Fault::ALL {
        let done = bench.bearer.switch(Instant::ZERO, fault, true);
        assert_eq!(bench.bearer.faults(), [(Fault::Mtu, true)]);
        assert_eq!(done, if fault == Fault::Mtu { Ok(()) } else { Err(Unsupported::NO_FAULT) });
    }
}

#[test]
fn datagrams_of_other_protocols_have_no_number() {
    let mut bench = faulty(json!({ "protocol": "udp", "drop_list": { "uplink": [1] } }));
    let tcp = datagram(protocol::TCP, (CLIENT, 5000), (SERVER, 80), 10);
    assert_eq!(carry(&mut bench, Direction::Uplink, tcp).len(), 1);
    assert_eq!([0; 2].map(|_| up(&mut bench, 100)), [0, 1]);
}

#[test]
fn losses_have_the_rate_and_the_largest_burst() {
    let mut bench = faulty(json!({ "drop": { "rate": { "uplink": "30%", "downlink": 0 }, "burst": 3 } }));
    let lost: Vec<bool> = (0..20_000).map(|_| up(&mut bench, 100) == 0).collect();
    let longest = lost.split(|lost| !lost).map(<[bool]>::len).max();
    assert_eq!(longest, Some(3));
    // Of four in a row that are drawn the last one is spared: p (1 - p^3) / (1 - p^4) in the mean.
    let p = 0.3_f64;
    let share = p * (1.0 - p.powi(3)) / (1.0 - p.powi(4));
    let found = lost.iter().filter(|lost| **lost).count() as f64 / 20_000.0;
    assert!((found - share).abs() < 5.0 * (share * (1.0 - share) / 20_000.0).sqrt(), "{found} {share}");
    assert_eq!(bench.value("uplink.dropped_by_rate"), found * 20_000.0);
    assert!((0..100).all(|_| down(&mut bench, 100) == 1));
}

#[test]
fn one_seed_strikes_the_same_datagrams_over_every_bearer() {
    let faults = json!({ "drop": { "rate": "20%" } });
    let pattern = |bearer: &str, seed: u64| {
        let mut bench = over(bearer, faults.clone(), seed).unwrap();
        (0..200).map(|_| up(&mut bench, 100)).collect::<Vec<_>>()
    };
    let wire = pattern("wireline", 1);
    assert_eq!(wire, pattern("umts-dch", 1));
    assert_ne!(wire, pattern("wireline", 2));
}

#[test]
fn a_corrupt_datagram_differs_in_one_octet_of_its_payload() {
    let mut bench = faulty(json!({ "corrupt": { "rate": 1 } }));
    let mut places = BTreeMap::new();
    for number in [protocol::UDP, protocol::TCP] {
        for octets in [1, 20, 1200] {
            for _ in 0..200 {
                let sent = datagram(number, (CLIENT, 1), (SERVER, 2), octets);
                let mut before = Vec::new();
                sent.append_to(&mut before);
                let arrived = carry(&mut bench, Direction::Uplink, sent);
                let mut after = Vec::new();
                arrived[0].append_to(&mut after);
                let differ: Vec<usize> = (0..before.len()).filter(|n| before[*n] != after[*n]).collect();
                assert_eq!((before.len(), differ.len()), (after.len(), 1));
                let at = differ[0] - (before.len() - octets as usize);
                assert!(at < 50);
                *places.entry(at).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(places.len(), 50, "all of them are struck some time");
    let bare = datagram(protocol::TCP, (CLIENT, 1), (SERVER, 2), 0);
    assert_eq!(carry(&mut bench, Direction::Uplink, bare).len(), 1);
    assert_eq!(bench.value("uplink.corrupted"), 1200.0);
}

#[test]
fn version_negotiation_of_quic_is_not_corrupted() {
    let mut bench = faulty(json!({ "corrupt": { "rate": 1 } }));
    let long_header = [0xC0, 0, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut packet = Packet::build(
        |out| Udp { source: 443, destination: 5000, len: 22 }.emit(out),
        Body::Real(long_header.to_vec().into()),
    );
    ip::emit(packet.prepend(20), address(SERVER), address(CLIENT), protocol::UDP, 0, 22);
    let arrived = carry(&mut bench, Direction::Downlink, packet);
    assert_eq!(arrived[0].body().to_bytes()[..], long_header);
}

#[test]
fn a_black_hole_opens_as_often_as_it_says() {
    let hole = json!({ "on": "5s", "off": "2s", "repeat": 2, "direction": "downlink" });
    let mut bench = faulty(json!({ "blackhole": hole }));
    let mut passed = Vec::new();
    for second in 0..25_u64 {
        bench.now = Instant::ZERO + Duration::from_secs(second);
        assert_eq!(up(&mut bench, 10), 1);
        passed.push(down(&mut bench, 10));
    }
    let gone: Vec<usize> = (0..25).filter(|second| passed[*second] == 0).collect();
    assert_eq!(gone, [5, 6, 12, 13]);
    assert_eq!(bench.value("downlink.dropped_by_blackhole"), 4.0);
}

#[test]
fn what_is_too_big_vanishes_without_a_word() {
    let mut bench = faulty(json!({ "mtu": { "uplink": 1280, "downlink": 1500 } }));
    assert_eq!([1252, 1253].map(|octets| up(&mut bench, octets)), [1, 0]);
    assert_eq!(down(&mut bench, 1472), 1);
    assert_eq!(bench.value("uplink.dropped_by_mtu"), 1.0);
}

#[test]
fn copies_and_late_ones_come_over_radio_too() {
    let mut bench = over("umts-dch", json!({ "duplication": { "probability": 1, "every": 2 } }), 1).unwrap();
    assert_eq!([0; 4].map(|_| up(&mut bench, 100)), [1, 2, 1, 2]);
}

/// Source and destination, with ports.
fn ends(packet: &Packet) -> (String, String) {
    let ip = Ip::parse(packet.head()).unwrap();
    let port = |at: usize| {
        u16::from_be_bytes([packet.head()[ip.header_len + at], packet.head()[ip.header_len + at + 1]])
    };
    (format!("{}:{}", ip.source, port(0)), format!("{}:{}", ip.destination, port(2)))
}

fn out(bench: &mut Bench<Faulty>, from: (&str, u16)) -> (String, u16) {
    let packet = datagram(protocol::UDP, from, (if from.0 == CLIENT { SERVER } else { "fd09::1" }, 443), 50);
    let arrived = carry(bench, Direction::Uplink, packet);
    let (source, _) = ends(&arrived[0]);
    let (address, port) = source.rsplit_once(':').unwrap();
    (address.to_owned(), port.parse().unwrap())
}

#[test]
fn a_rebound_client_has_another_port_and_what_comes_for_the_old_one_is_not_let_in() {
    let mut bench = faulty(json!({ "nat": { "first": "1s", "every": "5s" } }));
    assert_eq!(out(&mut bench, (CLIENT, 5000)), (CLIENT.to_owned(), 5000));
    assert_eq!(down(&mut bench, 10), 1);
    bench.now = Instant::ZERO + Duration::from_secs(2);
    assert_eq!(down(&mut bench, 10), 0, "nothing was sent by the new one yet");
    let (same, port) = out(&mut bench, (CLIENT, 5000));
    assert_eq!(same, CLIENT);
    assert_ne!(port, 5000);
    assert_eq!(out(&mut bench, (CLIENT, 5000)).1, port, "until the next time");
    let back = datagram(protocol::UDP, (SERVER, 443), (CLIENT, port), 10);
    let arrived = carry(&mut bench, Direction::Downlink, back);
    assert_eq!(ends(&arrived[0]).1, format!("{CLIENT}:5000"));
    bench.now = Instant::ZERO + Duration::from_secs(6);
    assert_ne!(out(&mut bench, (CLIENT, 5000)).1, port);
    assert_eq!((bench.value("nat_rebindings"), bench.value("downlink.dropped_by_nat")), (2.0, 1.0));
}

#[test]
fn fragments_pass_a_translator_until_it_forgets_its_bindings() {
    let mut bench = faulty(json!({ "nat": { "first": "1s" } }));
    let mut pass = |second, direction, from, to| {
        let mut piece = datagram(protocol::UDP, from, to, 1000);
        // Of a larger one, more follow.
        piece.head_mut()[6..8].copy_from_slice(&0x2000_u16.to_be_bytes());
        bench.now = Instant::ZERO + Duration::from_secs(second);
        carry(&mut bench, direction, piece).len()
    };
    let passed = [0, 2].map(|second| {
        let (near, far) = ((CLIENT, 5000), (SERVER, 443));
        (pass(second, Direction::Uplink, near, far), pass(second, Direction::Downlink, far, near))
    });
    assert_eq!(passed, [(1, 1), (0, 0)]);
}

#[test]
fn a_translator_that_is_full_drops_the_bindings_by_which_nothing_was_sent_for_longest() {
    let mut bench = faulty(json!({ "nat": { "first": "1h" } }));
    let sends = |bench: &mut Bench<Faulty>, port: u16| assert_eq!(out(bench, (CLIENT, port)).1, port);
    let is_let_in = |bench: &mut Bench<Faulty>, port: u16| {
        let back = datagram(protocol::UDP, (SERVER, 443), (CLIENT, port), 10);
        carry(bench, Direction::Downlink, back).len() == 1
    };
    (0..32_768).for_each(|n| sends(&mut bench, 1000 + n));
    sends(&mut bench, 1000);
    assert!([1000, 1001].iter().all(|port| is_let_in(&mut bench, *port)));
    (0..4096).for_each(|n| sends(&mut bench, 40_000 + n));
    let let_in = [1000, 1001, 5096, 5097, 40_000].map(|port| is_let_in(&mut bench, port));
    assert_eq!(let_in, [true, false, false, true, true]);
    sends(&mut bench, 1001);
}

#[test]
fn addresses_change_too_if_asked_and_in_both_families() {
    let mut bench = faulty(json!({ "nat": { "first": "0s", "every": "1s", "address": true } }));
    for (second, [four, six]) in [[0, 2], [1, 3], [0, 2]].into_iter().enumerate() {
        bench.now = Instant::ZERO + Duration::from_secs(second as u64);
        assert_eq!(out(&mut bench, (CLIENT, 5000)).0, SPARE[four]);
        let of_six = datagram(protocol::TCP, ("fd00::2", 5000), ("fd09::1", 80), 50);
        let arrived = carry(&mut bench, Direction::Uplink, of_six);
        assert_eq!(Ip::parse(arrived[0].head()).unwrap().source, address(SPARE[six]));
    }
}

#[test]
fn echoes_and_errors_pass_a_translator() {
    let mut bench = faulty(json!({ "nat": { "first": "0s", "address": true } }));
    let ping = |kind: Icmp, from: &str, to: &str, body: Body| {
        let len = body.len();
        let mut packet = Packet::build(|out| kind.emit(address(to), out), body);
        ip::emit(packet.prepend(20), address(from), address(to), protocol::ICMP, 0, icmp::HEADER + len);
        packet
    };
    let asked = ping(Icmp::EchoRequest { ident: 7, seq: 1 }, CLIENT, SERVER, Body::filler(1, 10));
    let seen = carry(&mut bench, Direction::Uplink, asked).remove(0);
    let header = Ip::parse(seen.head()).unwrap();
    assert_eq!(header.source, address(SPARE[0]));
    let Ok(Icmp::EchoRequest { ident: id, seq: 1 }) = Icmp::parse(header.source, &seen.head()[20..]) else {
        panic!()
    };
    assert_ne!(id, 7);
    let answer = ping(Icmp::EchoReply { ident: id, seq: 1 }, SERVER, SPARE[0], Body::filler(1, 10));
    let back = carry(&mut bench, Direction::Downlink, answer).remove(0);
    let header = Ip::parse(back.head()).unwrap();
    assert_eq!(header.destination, address(CLIENT));
    assert_eq!(Icmp::parse(header.source, &back.head()[20..]), Ok(Icmp::EchoReply { ident: 7, seq: 1 }));
    // A router finds the client's datagram too big.
    let sent = datagram(protocol::UDP, (CLIENT, 5000), (SERVER, 443), 1000);
    let seen = carry(&mut bench, Direction::Uplink, sent).remove(0);
    let mut octets = Vec::new();
    airloom_wire::edge::egress(&seen, &mut octets);
    octets.truncate(28);
    let error = ping(Icmp::TooBig { mtu: 900 }, "10.5.0.1", SPARE[0], Body::Real(octets.into()));
    let back = carry(&mut bench, Direction::Downlink, error).remove(0);
    assert_eq!(Ip::parse(back.head()).unwrap().destination, address(CLIENT));
    let about = back.body().to_bytes();
    assert_eq!(Ip::parse(&[&about[..], &[0; 1000]].concat()).unwrap().source, address(CLIENT));
    assert_eq!(about[20..22], 5000_u16.to_be_bytes());
    assert_eq!(airloom_wire::checksum::internet(&about[..20]), 0, "the inner header's checksum is right");
}

#[test]
fn a_link_that_is_cut_loses_what_was_held_back() {
    let mut bench =
        faulty(json!({ "reordering": { "probability": 1, "delay": "1s" }, "drop": { "rate": 0 } }));
    let packet = datagram(protocol::UDP, (CLIENT, 1), (SERVER, 2), 10);
    let cx = &mut Cx { now: Instant::ZERO, records: &mut bench.records };
    bench.bearer.send(cx, Direction::Uplink, Station(0), packet);
    bench.bearer.handle_timeout(cx);
    assert!(bench.bearer.poll_delivery().is_none());
    bench.bearer.apply(cx, &[], &Change::State(LinkState::Down)).unwrap();
    assert_eq!(bench.bearer.poll_timeout(), None);
    assert_eq!(bench.value("uplink.held_lost"), 1.0);
}

#[test]
fn faults_that_make_no_sense_are_refused() {
    for (faults, path) in [
        (json!({ "drop": { "rate": 0.1, "burst": 0 } }), "drop.burst"),
        (json!({ "corrupt": { "rate": 2 } }), "corrupt.rate"),
        (json!({ "blackhole": { "on": "1s", "off": "0s" } }), "blackhole.off"),
        (json!({ "drop_list": { "uplink": [0] } }), "drop_list.uplink"),
        (json!({ "drop_list": { "downlink": (1..=100_001).collect::<Vec<_>>() } }), "drop_list.downlink"),
        (json!({ "nat": { "first": "1s", "every": "0s" } }), "nat.every"),
        (json!({ "reordering": { "probability": 0.1 } }), "reordering.delay"),
        (json!({ "duplication": { "probability": 0.1, "every": 0 } }), "duplication.every"),
    ] {
        let error = over("wireline", faults, 1).err().expect("refused");
        assert_eq!(error.path.join("."), path, "{error}");
    }
}

#[test]
fn no_octets_make_it_panic() {
    use airloom_base::random::Stream;
    let mut bench = faulty(json!({ "corrupt": { "rate": 1 }, "nat": { "first": "0s", "address": true } }));
    let mut random = Stream::new(1, "octets");
    let begins: [&[u8]; 4] = [&[0x45, 0, 0, 60], &[0x4F, 0, 0, 60], &[0x60], &[0x46, 3]];
    let numbers = [1, 6, 17, 58, 132, 47];
    for n in 0..40_000_u64 {
        let mut octets: Vec<u8> = (0..random.below(120)).map(|_| random.bits() as u8).collect();
        if let Some(begin) = begins.get(n as usize % 5).filter(|begin| begin.len() + 8 < octets.len()) {
            octets[..begin.len()].copy_from_slice(begin);
            let protocol = if begin[0] >> 4 == 6 { 6 } else { 9 };
            octets[protocol] = numbers[random.below(6) as usize];
            // No fragment, most of the time.
            if n % 3 > 0 && protocol == 9 {
                octets[6..8].fill(0);
            }
        }
        let head = random.below(octets.len() as u64 + 1) as usize;
        let Some(packet) = Packet::ingress(octets.clone().into(), head) else { continue };
        let direction = Direction::BOTH[(n % 2) as usize];
        for arrived in carry(&mut bench, direction, packet) {
            assert_eq!(arrived.wire_len(), octets.len());
        }
    }
}
