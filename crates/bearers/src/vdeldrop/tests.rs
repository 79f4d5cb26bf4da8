use airloom_base::{Change, Direction, Duration, Fault, Instant, LinkState, Outbox, Parts};
use airloom_testkit::Bench;
use serde_json::{Value, json};

fn parts(seed: u64, records: &mut Outbox) -> Parts<'_> {
    Parts::new(seed, "wire", 1, records)
}

fn link_of(seed: u64, config: &Value) -> Bench {
    let mut records = Outbox::default();
    let link = super::build(config, &mut parts(seed, &mut records)).unwrap();
    Bench::new(link, records)
}

/// A packet every 100 ms for so many seconds: when each arrived, in ms, by its number, from 0.
fn stream(bench: &mut Bench, direction: Direction, seconds: u64) -> Vec<(u64, u64)> {
    for n in 0..seconds * 10 {
        bench.run_until(Instant::from_nanos(100_000_000 * n));
        bench.send(direction, 100);
    }
    bench.drive().into_iter().map(|(at, id)| (at / 1000, id - 1)).collect()
}

#[test]
fn off_phases_let_everything_through_and_on_phases_drop_every_third() {
    let mut bench = link_of(1, &json!({ "every": 3 }));
    let arrived = stream(&mut bench, Direction::Downlink, 40);
    let of_second = |s: u64| arrived.iter().filter(|(_, id)| id / 10 == s).count();
    // Off from 0 to 10 and 20 to 30 s.
    assert!((0..10).chain(20..30).all(|s| of_second(s) == 10));
    assert!((10..20).chain(30..40).all(|s| (6..=7).contains(&of_second(s))));
    assert_eq!(bench.value("downlink.vdeldrop_met"), 200.0);
    assert_eq!(bench.value("downlink.vdeldrop_dropped").round() as u64 + arrived.len() as u64, 400);
    let lost: Vec<u64> = (100..200).filter(|id| !arrived.iter().any(|(_, a)| a == id)).collect();
    assert!(lost.windows(2).all(|two| two[1] - two[0] == 3), "{lost:?}");
}

#[test]
fn what_is_dropped_was_lost_and_not_delivered() {
    for over in ["umts-dch", "wireline", "piafs"] {
        let mut bench = link_of(1, &json!({ "every": 2, "first": "on", "off": "0s", "over": over }));
        let arrived = stream(&mut bench, Direction::Downlink, 20).len() as f64;
        let value = |name: &str| bench.value(&format!("downlink.{name}"));
        assert_eq!((value("packets"), value("lost")), (200.0, 200.0 - arrived), "{over}");
        assert_eq!(arrived, 100.0);
        if over == "wireline" {
            assert_eq!(bench.value("lost"), 100.0);
        } else {
            assert_eq!((value("delivered"), value("delivered_bytes")), (100.0, 10_000.0), "{over}");
            assert_eq!(value("lost_share"), 0.5);
        }
    }
}

#[test]
fn what_has_passed_is_what_came_out_behind_it() {
    let mut bench = link_of(1, &json!({ "every": 2, "first": "on", "off": "0s", "over": "umts-dch" }));
    let arrived = stream(&mut bench, Direction::Downlink, 20).len() as u64;
    assert_eq!((arrived, bench.bearer.passed()[Direction::Downlink as usize].octets), (100, 100 * 100));
}

#[test]
fn a_datagram_of_which_a_copy_is_dropped_too_is_lost_once() {
    let over = json!({ "wireline": { "duplication": { "probability": 1 } } });
    let mut bench = link_of(1, &json!({ "every": 1, "first": "on", "off": "0s", "over": over }));
    assert_eq!(stream(&mut bench, Direction::Downlink, 1), []);
    assert_eq!((bench.value("downlink.vdeldrop_dropped"), bench.value("downlink.lost")), (20.0, 10.0));
    assert_eq!(bench.bearer.passed()[Direction::Downlink as usize].octets, 0);
}

#[test]
fn what_is_still_held_is_neither_delivered_nor_lost() {
    let config =
        json!({ "delay": { "law": { "fixed": 5 } }, "first": "on", "over": "umts-dch", "at": "both" });
    let mut bench = link_of(1, &config);
    bench.send(Direction::Downlink, 100);
    bench.run_until(Instant::ZERO + Duration::from_secs(2));
    let value = |bench: &Bench, name: &str| bench.value(&format!("downlink.{name}"));
    assert_eq!(
        (value(&bench, "packets"), value(&bench, "delivered"), value(&bench, "lost")),
        (1.0, 0.0, 0.0)
    );
    bench.run_until(Instant::ZERO + Duration::from_secs(9));
    assert_eq!((value(&bench, "delivered"), value(&bench, "lost")), (1.0, 0.0));
}

#[test]
fn the_count_begins_elsewhere_with_other_seeds() {
    let first_lost = |seed| {
        let arrived =
            stream(&mut link_of(seed, &json!({ "every": 20, "first": "on" })), Direction::Downlink, 10);
        (0..100).find(|id| !arrived.iter().any(|(_, a)| a == id))
    };
    assert_eq!(first_lost(1), first_lost(1));
    assert!((2..10).any(|seed| first_lost(seed) != first_lost(1)));
}

#[test]
fn it_acts_on_what_arrives_where_it_stands() {
    let lost = |at: &str, direction| {
        let config = json!({ "every": 2, "first": "on", "off": "0s", "at": at });
        200 - stream(&mut link_of(1, &config), direction, 20).len()
    };
    assert_eq!((lost("mobile", Direction::Downlink), lost("mobile", Direction::Uplink)), (100, 0));
    assert_eq!((lost("network", Direction::Downlink), lost("network", Direction::Uplink)), (0, 100));
    assert_eq!((lost("both", Direction::Downlink), lost("both", Direction::Uplink)), (100, 100));
}

#[test]
fn chance_drops_its_share() {
    let config = json!({ "probability": "33 %", "off": "0s", "first": "on" });
    let mut bench = link_of(1, &config);
    let share = 1.0 - stream(&mut bench, Direction::Downlink, 1000).len() as f64 / 10_000.0;
    assert!((share - 0.33).abs() < 0.02, "{share}");
    // One in three by chance: now and then two in a row, which no count of three has.
    let config = json!({ "every": 3, "by_chance": true, "off": "0s", "first": "on" });
    let arrived = stream(&mut link_of(1, &config), Direction::Downlink, 1000).len();
    assert!((1.0 - arrived as f64 / 10_000.0 - 1.0 / 3.0).abs() < 0.02, "{arrived}");
    assert_ne!(arrived, 6667);
}

#[test]
fn delays_differ_and_packets_overtake_unless_the_order_is_kept() {
    let run = |keep: bool| {
        let config = json!({
            "first": "on", "off": "0s", "keep_order": keep,
            "delay": { "law": { "uniform": { "from": 0, "to": 0.5 } } },
            "over": { "wireline": { "delay": "20ms" } },
        });
        let mut bench = link_of(1, &config);
        let arrived = stream(&mut bench, Direction::Downlink, 10);
        assert_eq!((arrived.len(), bench.value("downlink.packets")), (100, 100.0));
        arrived
    };
    let free = run(false);
    assert!(free.windows(2).any(|two| two[0].1 > two[1].1), "somebody overtakes");
    assert!(free.iter().all(|(at, id)| (20..=520).contains(&(at - 100 * id))));
    let kept = run(true);
    assert!(kept.windows(2).all(|two| two[0].1 < two[1].1 && two[0].0 <= two[1].0));
}

#[test]
fn without_drops_and_delay_it_is_not_there() {
    let mut bench = link_of(1, &json!({ "over": { "wireline": { "rate": "8kbit/s" } } }));
    assert_eq!(
        stream(&mut bench, Direction::Downlink, 1),
        (0..10).map(|id| (100 * (id + 1), id)).collect::<Vec<_>>()
    );
    assert_eq!(bench.bearer.poll_timeout(), None, "an idle link has no deadline");
}

#[test]
fn what_it_holds_is_lost_with_the_link() {
    let config = json!({ "first": "on", "delay": { "law": { "fixed": 5 } } });
    let mut bench = link_of(1, &config);
    bench.send(Direction::Downlink, 100);
    bench.handle(Instant::ZERO);
    assert!(bench.bearer.poll_timeout().is_some());
    bench.apply(&[], Change::State(LinkState::Down));
    assert_eq!(bench.bearer.poll_timeout(), None);
}

/// The first second is an on phase, in which packets are five seconds late; what comes behind them keeps its place.
fn late_at_first(over: &str, stations: u16) -> Bench {
    let config = json!({
        "first": "on", "on": "1s", "off": "100s", "keep_order": true, "delay": { "law": { "fixed": 5 } }, "over": over,
    });
    let mut records = Outbox::default();
    let link = super::build(&config, &mut Parts::new(1, "link", stations, &mut records)).unwrap();
    let mut bench = Bench::new(link, records);
    bench.send(Direction::Downlink, 100);
    bench.run_until(Instant::ZERO + Duration::from_secs(2));
    bench
}

#[test]
fn behind_a_cut_nothing_waits_for_what_was_lost() {
    let mut bench = late_at_first("wireline", 1);
    bench.apply(&[], Change::State(LinkState::Down));
    bench.apply(&[], Change::State(LinkState::Up));
    bench.send(Direction::Downlink, 100);
    assert_eq!(bench.drive(), [(2_000_000, 2)]);
}

#[test]
fn packets_of_one_mobile_do_not_wait_for_those_of_another() {
    let mut bench = late_at_first("umts-dch", 2);
    for station in [0, 1] {
        bench.send_to(Direction::Downlink, station, 100);
    }
    bench.run_until(Instant::ZERO + Duration::from_secs(4));
    assert_eq!(bench.ids(Direction::Downlink), [3]);
    bench.finish();
    assert_eq!(bench.ids(Direction::Downlink), [3, 1, 2]);
}

#[test]
fn faults_of_the_link_below_are_shown_and_switched() {
    let late = json!({ "probability": 1, "delay": "1s" });
    let mut bench = link_of(1, &json!({ "over": { "wireline": { "reordering": late } } }));
    assert_eq!(bench.bearer.faults(), [(Fault::Reordering, true)]);
    bench.bearer.switch(Instant::ZERO, Fault::Reordering, false).unwrap();
    assert_eq!(bench.bearer.faults(), [(Fault::Reordering, false)]);
    bench.send(Direction::Downlink, 100);
    assert_eq!(bench.drive(), [(0, 1)]);
}

#[test]
fn radio_links_can_be_below() {
    let mut records = Outbox::default();
    let mut parts = Parts::new(1, "radio", 4, &mut records);
    assert!(super::build(&json!({ "over": "umts-dch", "every": 3 }), &mut parts).is_ok());
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let path = |config: Value| {
        let mut records = Outbox::default();
        super::build(&config, &mut parts(1, &mut records)).err().unwrap().path.join(".")
    };
    assert_eq!(path(json!({ "every": 3, "probability": 0.5 })), "probability");
    assert_eq!(path(json!({ "every": 0 })), "every");
    assert_eq!(path(json!({ "on": "0s", "off": "0s" })), "on");
    assert_eq!(path(json!({ "on": "10s", "off": "1ns" })), "off");
    assert_eq!(path(json!({ "delay": { "law": { "exponential": { "mean": -1 } } } })), "delay.law.mean");
    assert_eq!(path(json!({ "over": "nothing" })), "over");
    let mut records = Outbox::default();
    let mut two = Parts::new(1, "wire", 2, &mut records);
    let error = super::build(&json!({ "every": 3 }), &mut two).err().unwrap();
    assert_eq!(error.path, ["over", "wireline"]);
    let twice = super::build(&json!({ "every": 3, "over": { "vdeldrop": { "every": 3 } } }), &mut two);
    assert!(twice.err().unwrap().to_string().contains("not over another"));
}
