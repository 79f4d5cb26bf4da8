//! Acknowledged mode against the figures of an independent simulation: a quick selection of the table that
//! `examples/rlc_reference_table.rs` prints in full.

#[path = "common/rlc_reference.rs"]
mod reference;

use reference::{Case, LOSSES, TABLE, bulk, isolated, mean, measure};
use serde_json::json;

/// 3 % on bulk rates, 5 % on mean delays (or three standard errors), 10 % on 95th percentiles.
fn check(case: Case, reference: reference::Figures, count: usize, seconds: u64) {
    let (ours, error) = measure(case, &[], 1, count, seconds);
    let off = |a: f64, b: f64| (a / b - 1.0).abs();
    let shown = format!("{case:?}\n  reference {reference:?}\n  ours      {ours:?}");
    assert!(off(ours.bulk_kbit, reference.bulk_kbit) < 0.03, "bulk rate: {shown}");
    let mean_off = (ours.mean_ms - reference.mean_ms).abs();
    assert!(mean_off < (0.05 * reference.mean_ms).max(3.0 * error), "mean delay: {shown}");
    assert!(off(ours.p95_ms, reference.p95_ms) < 0.10, "95th percentile: {shown}");
    assert!(off(ours.tx, reference.tx) < 0.03, "transmitted over delivered: {shown}");
}

#[test]
fn delays_and_rates_agree_with_the_reference() {
    for (kbit, tti_ms, per, cells) in TABLE {
        for (loss, reference) in LOSSES.into_iter().zip(cells) {
            check(Case { kbit, tti_ms, per, loss }, reference, 4000, 400);
        }
    }
}

#[test]
fn without_loss_the_delay_is_exact() {
    // TTI/2 on average, ceil(38 / blocks) TTIs, 30 ms: each delay lies in one TTI, and their mean in its middle.
    for (kbit, tti_ms, expected) in [(384, 10, 75.0), (256, 20, 100.0), (64, 20, 240.0)] {
        let delays = isolated(Case { kbit, tti_ms, per: "pdu", loss: 0.0 }, &[], 3, 2000);
        let half = tti_ms as f64 / 2.0;
        assert!(delays[0] >= expected - half && delays[1999] <= expected + half, "{kbit}");
        let (mean, error) = mean(&delays);
        assert!((mean - expected).abs() < 3.0 * error, "{kbit}: {mean} +- {error}");
    }
}

#[test]
fn without_loss_a_saturated_link_carries_its_rate_less_one_octet_an_sdu() {
    // Concatenation: an SDU of 1500 octets costs one length indicator (most end inside a PDU). The reference, which
    // gives each SDU PDUs of its own, has 1500/1520.
    for (kbit, tti_ms) in [(384, 10), (256, 20), (64, 20)] {
        let (rate, tx) = bulk(Case { kbit, tti_ms, per: "pdu", loss: 0.0 }, &[], 1, 300);
        let full = kbit as f64;
        assert!(rate > full * 1500.0 / 1520.0 && rate < full, "{rate}");
        assert!((rate / (full * 1500.0 / 1501.0) - 1.0).abs() < 0.002, "{rate}");
        assert!(tx > 1.0 && tx < 1.01, "{tx}");
    }
}

#[test]
fn a_status_prohibit_below_the_round_trip_doubles_repetitions() {
    let case = Case { kbit: 384, tti_ms: 10, per: "fec-frame", loss: 0.10 };
    let of = |ms: u64| bulk(case, &[("timer_status_prohibit", json!(format!("{ms}ms")))], 1, 600);
    let reference = [(0, 285.0, 1.35), (100, 323.0, 1.19), (150, 340.0, 1.13), (200, 340.0, 1.13)];
    let ours = reference.map(|(ms, ..)| of(ms));
    assert!(ours[0].1 > 1.2 && ours[0].1 > ours[1].1 && ours[1].1 > ours[2].1, "{ours:?}");
    for ((_, rate, _), ours) in reference.into_iter().zip(ours).skip(2) {
        assert!((ours.0 / rate - 1.0).abs() < 0.03, "{ours:?}");
    }
}

#[test]
fn a_shorter_timer_poll_shortens_the_wait_for_lost_last_pdus() {
    let case = Case { kbit: 384, tti_ms: 10, per: "fec-frame", loss: 0.10 };
    let of = |ms: u64| mean(&isolated(case, &[("timer_poll", json!(format!("{ms}ms")))], 1, 4000));
    // At 100 ms, the round trip itself, many polls are sent before the answer is there; the reference has 140 ms.
    assert!(of(100).0 < of(200).0);
    for (ms, expected) in [(200, 151.0), (500, 201.0)] {
        let (mean, error) = of(ms);
        assert!((mean - expected).abs() < (0.05 * expected).max(3.0 * error), "{ms}: {mean} +- {error}");
    }
}
