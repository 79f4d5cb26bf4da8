//! Acknowledged mode against the figures of an independent simulation: a quick selection of the table that
//! `examples/rlc_reference_table.rs` prints in full.

#[path = "common/rlc_reference.rs"]
mod reference;

use reference::{Case, LOSSES, OFFSET_MS, TABLE, bulk, isolated, mean, measure};
use serde_json::json;

/// 384 kbit/s with 10 % of its intervals lost, the case of the lines below the table.
const FEC_10: Case = Case { kbit: 384, tti_ms: 10, per: "fec-frame", loss: 0.10, offset_ms: OFFSET_MS };

/// 3 % on bulk rates, 5 % on mean delays (or three standard errors), 10 % on 95th percentiles.
fn check(case: Case, reference: reference::Figures, count: usize, seconds: u64) {
    let (ours, error) = measure(case, &[], 1, count, seconds);
    let off = |a: f64, b: f64| (a / b - 1.0).abs();
    let shown = format!("{case:?}\n  reference {reference:?}\n  ours      {ours:?}");
    assert!(off(ours.bulk_kbit, reference.bulk_kbit) < 0.03, "bulk rate: {shown}");
    let mean_off = (ours.mean_ms - reference.mean_ms).abs();
    assert!(mean_off < (0.05 * reference.mean_ms).max(3.0 * error), "mean delay: {shown}");
    if case == FEC_10 {
        // Hardly a delay lies between 400 and 465 ms here, and 94.5 % lie below: our 95th percentile is on the upper side of
        // that gap (10.7 % above the reference, measured with many more SDUs), the reference has it inside. So the
        // ranks are compared: at the reference's value ours has 95 % within 1 %.
        let delays = isolated(case, &[], 1, count);
        let below = |ms: f64| delays.iter().filter(|d| **d <= ms).count() as f64 / count as f64;
        assert!((below(reference.p95_ms) - 0.95).abs() < 0.01, "95th percentile: {shown}");
        assert!(below(465.0) - below(400.0) < 0.005, "the gap");
    } else {
        assert!(off(ours.p95_ms, reference.p95_ms) < 0.10, "95th percentile: {shown}");
    }
    assert!(off(ours.tx, reference.tx) < 0.03, "transmitted over delivered: {shown}");
}

#[test]
fn delays_and_rates_agree_with_the_reference() {
    for (kbit, tti_ms, per, cells) in TABLE {
        for (loss, reference) in LOSSES.into_iter().zip(cells) {
            check(Case { kbit, tti_ms, per, loss, offset_ms: OFFSET_MS }, reference, 4000, 400);
        }
    }
}

#[test]
fn without_loss_the_delay_is_exact() {
    // TTI/2 on average, ceil(38 / blocks) TTIs, 30 ms: each delay lies in one TTI, and their mean in its middle.
    for (kbit, tti_ms, expected) in [(384, 10, 75.0), (256, 20, 100.0), (64, 20, 240.0)] {
        let delays =
            isolated(Case { kbit, tti_ms, per: "pdu", loss: 0.0, offset_ms: OFFSET_MS }, &[], 3, 2000);
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
        let (rate, tx) =
            bulk(Case { kbit, tti_ms, per: "pdu", loss: 0.0, offset_ms: OFFSET_MS }, &[], 1, 300);
        let full = kbit as f64;
        assert!(rate > full * 1500.0 / 1520.0 && rate < full, "{rate}");
        assert!((rate / (full * 1500.0 / 1501.0) - 1.0).abs() < 0.002, "{rate}");
        assert!(tx > 1.0 && tx < 1.01, "{tx}");
    }
}

fn with_prohibit(case: Case, ms: u64) -> (f64, f64) {
    bulk(case, &[("timer_status_prohibit", json!(format!("{ms}ms")))], 1, 600)
}

#[test]
fn a_status_prohibit_below_the_round_trip_doubles_repetitions() {
    for (ms, rate, tx) in [(0, 285.0, 1.35), (100, 323.0, 1.19), (150, 340.0, 1.13), (200, 340.0, 1.13)] {
        let ours = with_prohibit(FEC_10, ms);
        assert!((ours.0 / rate - 1.0).abs() < 0.03 && (ours.1 / tx - 1.0).abs() < 0.03, "{ms} ms: {ours:?}");
    }
}

#[test]
fn a_prohibit_of_100_ms_is_below_the_round_trip_unless_the_grids_are_aligned() {
    // Aligned, a report is answered after 90 or 100 ms and none is early; otherwise after 100 or 110 ms. Where
    // between two downlink intervals the uplink's begin does not matter.
    let [aligned, also_aligned] = [0, 10].map(|offset_ms| with_prohibit(Case { offset_ms, ..FEC_10 }, 100));
    let enough = with_prohibit(FEC_10, 150);
    for (rate, tx) in [aligned, also_aligned] {
        assert!(rate > 0.98 * enough.0 && tx < 1.02 * enough.1, "{rate} {tx} {enough:?}");
    }
    for offset_ms in [1, 5, 9, 12, 18] {
        let (rate, tx) = with_prohibit(Case { offset_ms, ..FEC_10 }, 100);
        assert!(rate < 0.97 * aligned.0 && tx > 1.03 * aligned.1, "{offset_ms} ms: {rate} {tx} {aligned:?}");
    }
}

#[test]
fn a_shorter_timer_poll_shortens_the_wait_for_lost_last_pdus() {
    for (ms, expected) in [(100, 140.0), (200, 151.0), (500, 201.0)] {
        let delays = isolated(FEC_10, &[("timer_poll", json!(format!("{ms}ms")))], 1, 10_000);
        let (mean, error) = mean(&delays);
        let off = (mean - expected).abs();
        assert!(off < (0.05 * expected).max(3.0 * error), "{ms} ms: {mean} +- {error}");
    }
}
