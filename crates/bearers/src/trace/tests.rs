use airloom_base::{
    Body, Change, Cx, Direction, Duration, Instant, LinkState, Outbox, Packet, Parts, Station,
};
use serde_json::{Value, json};

use super::*;

struct Bench {
    link: Box<dyn Bearer>,
    records: Outbox,
    now: Instant,
}

fn make(config: &Value) -> Result<Bench, ConfigError> {
    let mut records = Outbox::default();
    let mut parts = Parts::new(1, "trace", 1, &mut records);
    let link = build(config, &mut parts)?;
    Ok(Bench { link, records, now: Instant::ZERO })
}

impl Bench {
    fn send(&mut self, at_us: u64, id: u64, octets: u32) {
        self.now = Instant::from_nanos(at_us * 1000);
        let mut packet = Packet::build(|_| 0, Body::filler(0, octets));
        packet.set_id(id);
        let mut cx = Cx { now: self.now, records: &mut self.records };
        self.link.send(&mut cx, Direction::Uplink, Station(0), packet);
    }
    /// Runs until idle: (arrival in us, id).
    fn drive(&mut self) -> Vec<(u64, u64)> {
        let mut arrivals = Vec::new();
        loop {
            while let Some((_, _, packet)) = self.link.poll_delivery() {
                arrivals.push((self.now.as_nanos() / 1000, packet.id()));
            }
            let Some(at) = self.link.poll_timeout() else { return arrivals };
            self.now = at;
            self.link.handle_timeout(&mut Cx { now: at, records: &mut self.records });
        }
    }
}

#[test]
fn a_packet_waits_for_the_next_opportunity_and_a_large_one_goes_on_in_the_one_after() {
    let mut b = make(&json!({ "up": [10, 20, 35] })).unwrap();
    // 1500 and 4 octets fill an opportunity exactly; one more octet needs another.
    b.send(1_000, 1, 1500);
    b.send(1_000, 2, 1501);
    assert_eq!(b.drive(), [(10_000, 1), (35_000, 2)]);
}

#[test]
fn small_packets_share_an_opportunity_and_what_nobody_uses_is_lost() {
    let mut b = make(&json!({ "up": [10, 20, 30] })).unwrap();
    for id in 1..=4 {
        b.send(5_000, id, 372); // four of 376 octets are 1504
    }
    b.send(5_000, 5, 100);
    assert_eq!(b.drive(), [(10_000, 1), (10_000, 2), (10_000, 3), (10_000, 4), (20_000, 5)]);
    // The rest of that opportunity is gone a microsecond later.
    b.send(20_001, 6, 100);
    assert_eq!(b.drive(), [(30_000, 6)]);
}

#[test]
fn at_its_end_a_trace_begins_again_moved_by_its_last_number() {
    let mut b = make(&json!({ "up": [3, 10] })).unwrap();
    for id in 1..=5 {
        b.send(0, id, 1500);
    }
    assert_eq!(b.drive(), [(3_000, 1), (10_000, 2), (13_000, 3), (20_000, 4), (23_000, 5)]);
    b.send(1_000_000_000, 6, 1500);
    assert_eq!(b.drive(), [(1_000_000_000, 6)], "the last opportunity of round 99,999");
}

#[test]
fn several_opportunities_of_one_millisecond_are_several() {
    let mut b = make(&json!({ "up": [5, 5, 5, 9] })).unwrap();
    for id in 1..=4 {
        b.send(0, id, 1500);
    }
    assert_eq!(b.drive(), [(5_000, 1), (5_000, 2), (5_000, 3), (9_000, 4)]);
}

/// Throughput of a backlogged flow of full packets, in bit/s of opportunities.
fn rate(trace: &Value, packets: u64) -> f64 {
    let mut b = make(&json!({ "up": trace })).unwrap();
    (0..packets).for_each(|id| b.send(0, id, 1500));
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
    b.send(4_500, 1, 100);
    b.send(9_500, 2, 100);
    b.send(19_500, 3, 100);
    b.send(29_500, 4, 100);
    // The third step lasts as long as the second; then the first one comes again.
    assert_eq!(b.drive(), [(55_500, 1), (55_500, 2), (55_500, 3), (80_500, 4)]);
}

#[test]
fn a_short_burst_meets_the_light_trace_and_a_backlog_the_heavy_one() {
    let pair = json!({ "light": [10], "heavy": [2] });
    let mut b = make(&json!({ "up": pair, "ramp": "30ms" })).unwrap();
    (1..=6).for_each(|id| b.send(0, id, 1500));
    let first: Vec<_> = b.drive().iter().map(|a| a.0).collect();
    assert_eq!(first, [10_000, 20_000, 30_000, 32_000, 34_000, 36_000]);
    // After a rest it is light again.
    b.send(101_000, 7, 1500);
    assert_eq!(b.drive(), [(110_000, 7)]);
}

#[test]
fn a_full_queue_drops_and_a_cut_link_loses_everything() {
    let mut b = make(&json!({ "up": [10], "queue": "2 packets" })).unwrap();
    (1..=3).for_each(|id| b.send(1_000, id, 1500));
    assert_eq!(b.link.backlog(b.now, Direction::Uplink, Station(0)).sdus, 2);
    let mut cx = Cx { now: b.now, records: &mut b.records };
    b.link.apply(&mut cx, &[], &Change::State(LinkState::Down)).unwrap();
    assert!(b.link.apply(&mut cx, &[], &Change::Delay(None, Duration::from_millis(1))).is_ok());
    assert_eq!(b.drive(), []);
    let mut out = Summary::default();
    b.link.summarise(&mut out);
    assert_eq!((out.values["uplink.queue_drops"], out.values["uplink.lost"]), (1.0, 2.0));
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
    b.send(1_000, 1, 100);
    assert_eq!(b.drive(), [(11_500, 1)]);
    std::fs::remove_file(&file).unwrap();
    assert!(make(&json!({ "up": name })).err().unwrap().message.contains("No such file"));
    assert!(make(&json!({ "delay": "40parsecs" })).is_err());
}
