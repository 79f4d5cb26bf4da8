//! The bearer `trace` against what Mahimahi's mm-link did with the same arrivals (see `data/mahimahi`).

use airloom_base::{Body, Cx, Direction, Instant, Outbox, Packet, Parts, Station};
use serde_json::json;

/// Arrival in microseconds, octets, departure from mm-link in milliseconds.
type Line = (u64, u32, u64);

fn numbers(text: &str) -> impl Iterator<Item = Vec<u64>> + '_ {
    text.lines().map(|line| line.split(' ').map(|word| word.parse().expect("a number")).collect())
}

/// Numbers of the packets and milliseconds, in order of departure.
fn departures(trace: &str, lines: &[Line]) -> Vec<(u64, f64)> {
    let opportunities: Vec<u64> = numbers(trace).map(|line| line[0]).collect();
    let mut records = Outbox::default();
    let mut parts = Parts::new(1, "trace", 1, &mut records);
    let bearer = airloom_bearers::find("trace").expect("it is in the list");
    let mut link = (bearer.build)(&json!({ "up": opportunities }), &mut parts).expect("a good table");
    let mut left = Vec::new();
    let mut waiting = lines.iter().zip(1..).peekable();
    loop {
        let arrival = waiting.peek().map(|((us, ..), _)| Instant::from_nanos(us * 1000));
        let deadline = link.poll_timeout();
        let Some(now) = arrival.into_iter().chain(deadline).min() else { return left };
        let cx = &mut Cx { now, records: &mut records };
        if deadline == Some(now) {
            link.handle_timeout(cx);
        } else if let Some(((_, octets, _), number)) = waiting.next() {
            let mut packet = Packet::build(|_| 0, Body::filler(0, *octets));
            packet.set_id(number);
            link.send(cx, Direction::Uplink, Station(0), packet);
        }
        while let Some((_, _, packet)) = link.poll_delivery() {
            left.push((packet.id(), now.as_nanos() as f64 / 1e6));
        }
    }
}

fn packets_leave_when_mm_link_lets_them(trace: &str, recorded: &str) {
    let lines: Vec<Line> = numbers(recorded).map(|line| (line[0], line[1] as u32, line[2])).collect();
    assert!(lines.len() >= 1000);
    let ours = departures(trace, &lines);
    let theirs: Vec<(u64, f64)> =
        lines.iter().zip(1..).map(|((.., ms), number)| (number, *ms as f64)).collect();
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "(packet, ms)");
    }
}

#[test]
fn at_12_mbit_s() {
    packets_leave_when_mm_link_lets_them(
        include_str!("data/mahimahi/const-12M.mahi"),
        include_str!("data/mahimahi/const-12M.txt"),
    );
}

#[test]
fn at_384_kbit_s() {
    packets_leave_when_mm_link_lets_them(
        include_str!("data/mahimahi/const-384k.mahi"),
        include_str!("data/mahimahi/const-384k.txt"),
    );
}

#[test]
fn at_rates_in_steps_and_around_the_end_of_the_trace() {
    packets_leave_when_mm_link_lets_them(
        include_str!("data/mahimahi/steps.mahi"),
        include_str!("data/mahimahi/steps.txt"),
    );
}
