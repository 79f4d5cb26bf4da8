//! Delays and rates of acknowledged mode beside the figures of an independent simulation, the whole table.
//!
//! `cargo run --release -p airloom-bearers --example rlc_reference_table`

#[path = "../tests/common/rlc_reference.rs"]
mod reference;

use reference::{Case, Figures, LOSSES, OFFSET_MS, TABLE, measure};

fn row(name: &str, f: Figures) {
    println!(
        "{name:<28} {:>6.0} {:>6.0} {:>6.0} {:>7.1} {:>6.3}",
        f.mean_ms, f.median_ms, f.p95_ms, f.bulk_kbit, f.tx
    );
}

fn main() {
    println!("{:<28} {:>6} {:>6} {:>6} {:>7} {:>6}", "", "mean", "median", "p95 ms", "kbit/s", "tx");
    for (kbit, tti_ms, per, cells) in TABLE {
        for (loss, reference) in LOSSES.into_iter().zip(cells) {
            let (ours, error) =
                measure(Case { kbit, tti_ms, per, loss, offset_ms: OFFSET_MS }, &[], 1, 20_000, 1500);
            row(&format!("{kbit} {per} {:.0} % reference", loss * 100.0), reference);
            row(&format!("    ours (+- {error:.1} ms)"), ours);
            let change = |a: f64, b: f64| (a / b - 1.0) * 100.0;
            println!(
                "{:<28} {:>5.1}% {:>5.1}% {:>5.1}% {:>6.1}% {:>5.1}%",
                "    difference",
                change(ours.mean_ms, reference.mean_ms),
                change(ours.median_ms, reference.median_ms),
                change(ours.p95_ms, reference.p95_ms),
                change(ours.bulk_kbit, reference.bulk_kbit),
                change(ours.tx, reference.tx),
            );
        }
    }
}
