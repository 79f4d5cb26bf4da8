//! Our `linux` profile against recorded transfers of Linux: the same link, acknowledged octets against time.

mod linux;

use airloom_base::{Duration, Instant};
use airloom_tcp::wire::Header;
use airloom_testkit::End;
use serde_json::Value;

use linux::{begun, delay, number, rate};

const CASES: [(&str, &str); 5] = [
    (
        "2M, sack off, iw 10, q 200",
        include_str!("data/linux_tcp/2M_100ms_0-default-cubic-sack0-iw10-q200.json"),
    ),
    (
        "2M, sack, iw 10, q 1000",
        include_str!("data/linux_tcp/2M_100ms_0-default-cubic-sack1-iw10-q1000.json"),
    ),
    ("2M, sack, iw 3, q 200", include_str!("data/linux_tcp/2M_100ms_0-default-cubic-sack1-iw3-q200.json")),
    (
        "384k, sack, iw 10, q 1000",
        include_str!("data/linux_tcp/384k_300ms_0-default-cubic-sack1-iw10-q1000.json"),
    ),
    (
        "64k, sack, iw 10, q 1000",
        include_str!("data/linux_tcp/64k_600ms_0-default-cubic-sack1-iw10-q1000.json"),
    ),
];

/// (microseconds after the SYN, octets acknowledged).
type Trace = Vec<(u64, u64)>;

fn recorded(case: &Value) -> Trace {
    case["ack_trace"].as_array().expect("a list").iter().map(|p| (number(&p[0]), number(&p[1]))).collect()
}

/// The same transfer by our TCP, up to `until`.
fn ours(case: &Value, until: Instant) -> Trace {
    let mut pair = begun(case, |pair| pair.watch = true);
    pair.drive_until(until);
    assert_eq!(pair.link.queue_drops, 0);
    let (syn, _) = Header::parse(&pair.seen[0].head).expect("a SYN");
    // Acknowledgements were offered to the link at `at`; they reach the sender after serialisation and delay. They
    // never wait: their direction carries nothing else.
    let acks = pair.seen.iter().filter(|s| s.from == End::Server).skip(1);
    acks.map(|s| {
        let (h, _) = Header::parse(&s.head).expect("a header");
        let serialisation = rate(case).expect("a rate").time_for(s.head.len() as u64 + 20);
        let at = s.at + serialisation + delay(case);
        (at.as_nanos() / 1000, u64::from(h.ack.wrapping_sub(syn.seq).wrapping_sub(1)))
    })
    .collect()
}

/// When `octets` were acknowledged.
fn time_of(trace: &Trace, octets: u64) -> Option<u64> {
    trace.iter().find(|(_, acked)| *acked >= octets).map(|(at, _)| *at)
}

#[test]
fn linux_without_losses_is_matched_within_one_per_cent_for_ten_round_trips() {
    println!("| case | points | acked in 10 RTT, Linux | ours | largest error of time | of octets |");
    println!("|---|---|---|---|---|---|");
    for (name, text) in CASES {
        let case: Value = serde_json::from_str(text).expect("a record");
        let theirs = recorded(&case);
        let end = theirs.last().expect("points").0;
        let mine = ours(&case, Instant::ZERO + Duration::from_micros(end + end / 50));
        let (mut time_error, mut octets_error) = (0.0_f64, 0.0_f64);
        for (at, octets) in &theirs {
            let mine_at = time_of(&mine, *octets).expect("we get that far");
            time_error = time_error.max((mine_at as f64 - *at as f64).abs() / *at as f64);
            // At the moment of their acknowledgement, give or take a hundredth of the time.
            let acked = |t: u64| mine.iter().take_while(|(m, _)| *m <= t).last().map_or(0, |(_, a)| *a);
            let (low, high) = (acked(at - at / 100), acked(at + at / 100));
            if !(low..=high).contains(octets) {
                let miss = low.abs_diff(*octets).min(high.abs_diff(*octets));
                octets_error = octets_error.max(miss as f64 / *octets as f64);
            }
        }
        let mine_octets = mine.iter().take_while(|(t, _)| *t <= end).last().map_or(0, |(_, a)| *a);
        println!(
            "| {name} | {} | {} | {mine_octets} | {:.2} % | {:.2} % |",
            theirs.len(),
            theirs.last().expect("points").1,
            time_error * 100.0,
            octets_error * 100.0
        );
        assert!(time_error < 0.01, "{name}: {:.2} %", time_error * 100.0);
        assert!(octets_error < 0.01, "{name}: {:.2} %", octets_error * 100.0);
        assert!(mine.iter().zip(&theirs).all(|(m, t)| m.1 == t.1), "{name}: other acknowledgements");
    }
}
