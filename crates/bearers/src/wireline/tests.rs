use airloom_base::units::{EachWay, QueueLimit, Rate};
use airloom_base::{
    Body, Change, Cx, Direction, Duration, Instant, LinkState, Outbox, Packet, Parts, Passed,
};
use airloom_testkit::Bench;
use serde_json::json;

const UP: Direction = Direction::Uplink;

fn bench(config: serde_json::Value) -> Bench {
    let mut records = Outbox::default();
    let wire = super::build(&config, &mut Parts::new(1, "wire", 1, &mut records)).unwrap();
    Bench::new(wire, records)
}

#[test]
fn packets_queue_for_the_rate_and_then_take_the_delay() {
    let mut bench = bench(json!({ "rate": "1Mbit/s", "delay": "10ms" }));
    bench.send(UP, 1250);
    bench.send(UP, 1250);
    assert_eq!(bench.drive(), [(20_000, 1), (30_000, 2)]);
    assert_eq!(bench.bearer.poll_timeout(), None, "an idle wire has no deadline");
}

#[test]
fn the_packet_in_service_counts_towards_the_queue_limit() {
    let mut bench = bench(json!({ "rate": "1Mbit/s", "queue": "2 packets" }));
    bench.send_many(UP, 4, 125);
    assert_eq!(bench.drive(), [(1000, 1), (2000, 2)]);
    bench.send(UP, 125);
    assert_eq!(bench.drive(), [(3000, 5)], "room again once they have departed");
}

#[test]
fn an_octet_limit_counts_octets() {
    let mut bench = bench(json!({ "rate": "1Mbit/s", "queue": "300B" }));
    for octets in [200, 200, 100] {
        bench.send(UP, octets);
    }
    assert_eq!(bench.drive().len(), 2);
}

#[test]
fn a_lost_packet_has_used_the_wire() {
    let mut bench = bench(json!({ "rate": "1Mbit/s", "loss": { "model": "list", "list": [0] } }));
    bench.send(UP, 125);
    bench.send(UP, 125);
    assert_eq!(bench.drive(), [(2000, 2)]);
}

#[test]
fn a_cut_wire_loses_what_is_on_it() {
    let mut bench = bench(json!({ "rate": "1Mbit/s", "delay": "10ms" }));
    bench.send(UP, 125);
    bench.apply(&[], Change::State(LinkState::Down));
    bench.send(UP, 125);
    assert_eq!(bench.drive(), []);
    bench.apply(&[], Change::State(LinkState::Up));
    bench.send(UP, 125);
    assert_eq!(bench.drive(), [(11_000, 3)]);
}

#[test]
fn octets_pass_a_wire_when_they_come_out_of_it() {
    let passed = |bench: &Bench| bench.bearer.passed()[UP as usize];
    let mut all = bench(json!({ "rate": "1Mbit/s", "loss": 1.0 }));
    all.send_many(UP, 10, 125);
    all.finish();
    assert_eq!(passed(&all), Passed { frames: 10, errors: 10, octets: 0 });
    let loss = json!({ "model": "list", "list": [1, 4] });
    let mut some = bench(json!({ "rate": "1Mbit/s", "delay": "100ms", "queue": "8 packets", "loss": loss }));
    some.send_many(UP, 10, 125);
    assert_eq!(passed(&some).octets, 0);
    some.run_until(Instant::ZERO + Duration::from_millis(104));
    assert_eq!((some.out.len(), passed(&some).octets), (3, 3 * 125));
    some.apply(&[], Change::State(LinkState::Down));
    assert_eq!(passed(&some), Passed { frames: 10, errors: 5, octets: 3 * 125 });
}

#[test]
fn what_has_left_a_wire_before_it_is_cut_kept_it_busy() {
    let mut bench = bench(json!({ "rate": "1Mbit/s", "delay": "100ms" }));
    bench.send_many(UP, 10, 125);
    bench.run_until(Instant::ZERO + Duration::from_millis(4));
    bench.apply(&[], Change::State(LinkState::Down));
    // A millisecond each: four are on their way, and six were not sent.
    assert_eq!((bench.value("uplink.busy_s"), bench.value("uplink.lost")), (0.004, 10.0));
}

#[test]
fn what_has_left_a_wire_by_the_end_of_the_run_kept_it_busy() {
    let mut bench = bench(json!({ "rate": "1Mbit/s", "delay": "100ms" }));
    bench.send_many(UP, 10, 125);
    bench.run_until(Instant::ZERO + Duration::from_millis(4));
    bench.bearer.close(&mut Cx { now: bench.now, records: &mut bench.records });
    assert_eq!(bench.value("uplink.busy_s"), 0.004);
}

#[test]
fn changes_touch_only_what_is_not_in_service_and_keep_the_order() {
    let mut bench = bench(json!({ "rate": "1Mbit/s", "delay": "10ms", "queue": "9 packets" }));
    bench.send_many(UP, 3, 125);
    bench.apply(&[], Change::Rate(None, Rate::kbit(125)));
    bench.apply(&[], Change::Delay(Some(UP), Duration::ZERO));
    bench.apply(&[], Change::Queue(None, QueueLimit::Packets(4)));
    bench.send(UP, 125);
    bench.send(UP, 125);
    assert_eq!(bench.drive(), [(11_000, 1), (19_000, 2), (27_000, 3), (27_000, 4)]);
}

#[test]
fn directions_are_independent() {
    let config: super::Config =
        serde_json::from_value(json!({ "rate": { "uplink": "64kbit/s", "downlink": "384kbit/s" } })).unwrap();
    assert_eq!(config.rate, Some(EachWay { uplink: Rate::kbit(64), downlink: Rate::kbit(384) }));
}

#[test]
fn rfc_3168_a_queue_above_the_threshold_marks_packets_of_senders_that_know_ecn() {
    let mut bench = bench(json!({ "rate": "1Mbit/s", "queue": "10 packets", "ecn": "2 packets" }));
    let (a, b) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
    // Codepoints ECT(0), not-ECT, ECT(1) in turn.
    for id in 0..6_u8 {
        let ecn = [2, 0, 1][usize::from(id % 3)];
        let mut packet = Packet::build(|_| 0, Body::filler(0, 105));
        airloom_wire::ip::emit(packet.prepend(20), a, b, 6, ecn, 105);
        bench.pass(UP, 0, packet);
    }
    bench.finish();
    let seen: Vec<u8> =
        bench.out.iter().map(|(.., p)| airloom_wire::ip::Ip::parse(p.head()).unwrap().ecn).collect();
    assert_eq!(seen, [2, 0, 3, 3, 0, 3]);
    assert_eq!(bench.value("uplink.ecn_marked"), 3.0);
}

#[test]
fn a_late_packet_is_overtaken_by_those_that_arrive_meanwhile() {
    let mut bench = bench(json!({
        "rate": "1Mbit/s", "delay": "10ms", "reordering": { "probability": 1, "every": 3, "delay": "1500us" }
    }));
    bench.send_many(UP, 6, 125);
    let expected = [(11_000, 1), (12_000, 2), (14_000, 4), (14_500, 3), (15_000, 5), (17_500, 6)];
    assert_eq!(bench.drive(), expected);
    assert_eq!(bench.value("uplink.reordered"), 2.0);
    assert_eq!(bench.value("downlink.reordered"), 0.0);
}

#[test]
fn a_copy_comes_directly_behind_its_original_or_later() {
    let config =
        |delay| json!({ "rate": "1Mbit/s", "duplication": { "probability": 1, "every": 2, "delay": delay } });
    for (delay, expected) in [
        ("0s", [(1000, 1), (2000, 2), (2000, 2), (3000, 3)]),
        ("1500us", [(1000, 1), (2000, 2), (3000, 3), (3500, 2)]),
    ] {
        let mut bench = bench(config(delay));
        bench.send_many(UP, 3, 125);
        assert_eq!(bench.drive(), expected);
        assert_eq!(bench.value("uplink.duplicated"), 1.0);
    }
}

#[test]
fn disorder_goes_by_the_number_of_the_packet_and_the_direction() {
    let config = json!({
        "rate": "1Gbit/s",
        "duplication": { "probability": "5%" },
        "reordering": { "probability": { "uplink": 0.1, "downlink": 0 }, "delay": "1ms" },
    });
    let run = |sizes: fn(u64) -> u32| {
        let mut bench = bench(config.clone());
        let mut seen = Vec::new();
        // One at a time: the order of arrivals tells nothing, their times do.
        for id in 0..20_000 {
            bench.send(UP, sizes(id));
            let sent = bench.now;
            let arrivals = bench.drive();
            seen.push((arrivals.len(), arrivals[0].0 - sent.as_nanos() / 1000 >= 1000));
        }
        seen
    };
    let one = run(|_| 125);
    assert_eq!(one, run(|id| 20 + (id % 7) as u32 * 200), "the same packets whatever their size");
    let share = |what: fn(&(usize, bool)) -> bool| one.iter().filter(|p| what(p)).count() as f64 / 20_000.0;
    // Five standard deviations of a binomial share. An original that is late while its copy is not shows as not late.
    assert!((share(|p| p.0 == 2) - 0.05).abs() < 5.0 * (0.05_f64 * 0.95 / 20_000.0).sqrt());
    assert!((share(|p| p.1) - 0.095).abs() < 5.0 * (0.095_f64 * 0.905 / 20_000.0).sqrt());
}

#[test]
fn a_cut_wire_loses_what_is_held_back_on_it() {
    let mut bench = bench(json!({ "delay": "1ms", "reordering": { "probability": 1, "delay": "1s" } }));
    bench.send(UP, 125);
    let at = bench.bearer.poll_timeout().unwrap();
    bench.handle(at);
    assert!(bench.out.is_empty());
    bench.apply(&[], Change::State(LinkState::Down));
    assert_eq!(bench.drive(), []);
    assert_eq!(bench.value("uplink.held_lost"), 1.0);
}

#[test]
fn disorder_that_could_do_nothing_is_refused() {
    let refused = |config: serde_json::Value| {
        let mut records = Outbox::default();
        let mut parts = Parts::new(1, "wire", 1, &mut records);
        super::build(&config, &mut parts).err().expect("refused").path
    };
    assert_eq!(refused(json!({ "reordering": { "probability": 0.1 } })), ["reordering", "delay"]);
    assert_eq!(
        refused(json!({ "duplication": { "probability": 0.1, "every": 0 } })),
        ["duplication", "every"]
    );
    assert_eq!(refused(json!({ "duplication": { "probability": 1.5 } })), ["duplication", "probability"]);
}
