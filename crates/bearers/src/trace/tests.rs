use airloom_base::{Change, Direction, Duration, Instant, LinkState, Outbox, Parts, Station};
use airloom_testkit::Bench;
use serde_json::{Value, json};

use super::*;

fn make(config: &Value) -> Result<Bench, ConfigError> {
    let mut records = Outbox::default();
    let link = build(config, &mut Parts::new(1, "trace", 1, &mut records))?;
    Ok(Bench::new(link, records))
}

fn send(bench: &mut Bench, at_us: u64, octets: u32) {
    bench.now = Instant::from_nanos(at_us * 1000);
    bench.send(Direction::Uplink, octets);
}

#[test]
fn a_packet_waits_for_the_next_opportunity_and_a_large_one_goes_on_in_the_one_after() {
    let mut b = make(&json!({ "up": [10, 20, 35] })).unwrap();
    // 1500 and 4 octets fill an opportunity exactly; one more octet needs another.
    send(&mut b, 1_000, 1500);
    send(&mut b, 1_000, 1501);
    assert_eq!(b.drive(), [(10_000, 1), (35_000, 2)]);
}

#[test]
fn small_packets_share_an_opportunity_and_what_nobody_uses_is_lost() {
    let mut b = make(&json!({ "up": [10, 20, 30] })).unwrap();
    for _ in 1..=4 {
        send(&mut b, 5_000, 372); // four of 376 octets are 1504
    }
    send(&mut b, 5_000, 100);
    assert_eq!(b.drive(), [(10_000, 1), (10_000, 2), (10_000, 3), (10_000, 4), (20_000, 5)]);
    // The rest of that opportunity is gone a microsecond later.
    send(&mut b, 20_001, 100);
    assert_eq!(b.drive(), [(30_000, 6)]);
}

#[test]
fn at_its_end_a_trace_begins_again_moved_by_its_last_number() {
    let mut b = make(&json!({ "up": [3, 10] })).unwrap();
    for _ in 1..=5 {
        send(&mut b, 0, 1500);
    }
    assert_eq!(b.drive(), [(3_000, 1), (10_000, 2), (13_000, 3), (20_000, 4), (23_000, 5)]);
    send(&mut b, 1_000_000_000, 1500);
    assert_eq!(b.drive(), [(1_000_000_000, 6)], "the last opportunity of round 99,999");
}

#[test]
fn several_opportunities_of_one_millisecond_are_several() {
    let mut b = make(&json!({ "up": [5, 5, 5, 9] })).unwrap();
    for _ in 1..=4 {
        send(&mut b, 0, 1500);
    }
    assert_eq!(b.drive(), [(5_000, 1), (5_000, 2), (5_000, 3), (9_000, 4)]);
}

/// Throughput of a backlogged flow of full packets, in bit/s of opportunities.
fn rate(trace: &Value, packets: u64) -> f64 {
    let mut b = make(&json!({ "up": trace })).unwrap();
    (0..packets).for_each(|_| send(&mut b, 0, 1500));
    let last = b.drive().last().unwrap().0;
    packets as f64 * 1504.0 * 8.0 / (last as f64 / 1e6)
}

#[test]
fn a_constant_trace_has_its_rate() {
    assert_eq!(rate(&json!([1]), 10_000), 12_032_000.0);
    // 300 opportunities in 9400 ms: 384 kbit/s, rounded to whole milliseconds.
    let numbers: Vec<u64> = (1..=300u64).map(|n| n * 9400 / 300).collect();
    assert!((rate(&json!(numbers), 3000) - 384_000.0).abs() < 1e-6);
}

#[test]
fn a_delay_trace_gives_each_packet_the_delay_of_its_moment_and_keeps_the_order() {
    let mut b = make(&json!({ "up": [1], "delay": [[0, 50.5], [10, 20], [20, 30]] })).unwrap();
    send(&mut b, 4_500, 100);
    send(&mut b, 9_500, 100);
    send(&mut b, 19_500, 100);
    send(&mut b, 29_500, 100);
    // The third step lasts as long as the second; then the first one comes again.
    assert_eq!(b.drive(), [(55_500, 1), (55_500, 2), (55_500, 3), (80_500, 4)]);
}

#[test]
fn a_short_burst_meets_the_light_trace_and_a_backlog_the_heavy_one() {
    let pair = json!({ "light": [10], "heavy": [2] });
    let mut b = make(&json!({ "up": pair, "ramp": "30ms" })).unwrap();
    (1..=6).for_each(|_| send(&mut b, 0, 1500));
    let first: Vec<_> = b.drive().iter().map(|a| a.0).collect();
    assert_eq!(first, [10_000, 20_000, 30_000, 32_000, 34_000, 36_000]);
    // After a rest it is light again, however short: the next opportunity of the heavy trace is still to come.
    send(&mut b, 37_000, 1500);
    assert_eq!(b.drive(), [(40_000, 7)]);
    send(&mut b, 101_000, 1500);
    assert_eq!(b.drive(), [(110_000, 8)]);
}

#[test]
fn a_full_queue_drops_and_a_cut_link_loses_everything() {
    let mut b = make(&json!({ "up": [10], "queue": "2 packets" })).unwrap();
    (1..=3).for_each(|_| send(&mut b, 1_000, 1500));
    assert_eq!(b.bearer.backlog(b.now, Direction::Uplink, Station(0)).sdus, 2);
    b.apply(&[], Change::State(LinkState::Down));
    b.apply(&[], Change::Delay(None, Duration::from_millis(1)));
    assert_eq!(b.drive(), []);
    assert_eq!((b.value("uplink.queue_drops"), b.value("uplink.lost")), (1.0, 2.0));
}

#[test]
fn behind_a_cut_nothing_waits_for_opportunities_of_what_was_lost() {
    let at = |us| Instant::from_nanos(us * 1000);
    let run = |config: Value, cut: u64, again: u64| {
        let mut b = make(&config).unwrap();
        (1..=100).for_each(|_| send(&mut b, 1_000, 1500));
        b.run_until(at(cut));
        b.out.clear();
        b.apply(&[], Change::State(LinkState::Down));
        b.run_until(at(again));
        b.apply(&[], Change::State(LinkState::Up));
        send(&mut b, again, 1500);
        b.drive()
    };
    assert_eq!(run(json!({ "up": [10] }), 12_000, 25_000), [(30_000, 101)]);
    // A link that was busy for long is light again.
    let pair = json!({ "light": [10], "heavy": [2] });
    assert_eq!(run(json!({ "up": pair, "ramp": "30ms" }), 35_000, 41_000), [(50_000, 101)]);
}

#[test]
fn wrong_traces_are_refused_with_what_is_wrong() {
    let file = std::env::temp_dir().join(format!("airloom-trace-{}", std::process::id()));
    let name = file.to_str().unwrap().to_owned();
    for (text, said) in [
        ("1\n2\nx\n", ":3: expected a number of milliseconds"),
        ("5\n4\n", "opportunity 2 comes before"),
        ("0\n", "its period; it is above zero"),
        ("", "at least one line"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = make(&json!({ "up": name })).err().unwrap();
        // An untagged enum would say only that nothing fits.
        assert!(error.message.contains(said), "{text:?}: {}", error.message);
    }
    std::fs::write(&file, "t_s,owd_ms,other\n0,10.5,x\n1,20,x\n").unwrap();
    let mut b = make(&json!({ "up": [1], "delay": name })).unwrap();
    send(&mut b, 1_000, 100);
    assert_eq!(b.drive(), [(11_500, 1)]);
    std::fs::remove_file(&file).unwrap();
    assert!(make(&json!({ "up": name })).err().unwrap().message.contains("No such file"));
    assert!(make(&json!({ "delay": "40parsecs" })).is_err());
}
