//! What a cell tells about a run.

use airloom_base::{Direction, Instant, Summary};

use super::mobile::{Common, Mobile, Totals};

/// Adds the values of all mobiles together, for each direction (`downlink.`, `uplink.`), and some over both.
pub fn summarise(common: &Common, mobiles: &[Mobile], until: Instant, out: &mut Summary) {
    for direction in Direction::BOTH {
        let totals = &common.totals[direction as usize];
        write(common, mobiles, direction, totals, until, out);
    }
    let [up, down] = &common.totals;
    for (name, of) in [
        ("rlc_blocks", (|t| t.blocks) as fn(&Totals) -> u64),
        ("rlc_resent", |t| t.resent),
        ("rlc_pre_emptive", |t| t.pre_emptive),
        ("rlc_reports", |t| t.control),
        ("rlc_duplicates", |t| t.duplicates),
        ("rlc_polls", |t| t.polls),
        ("rlc_failures", |t| t.failures),
    ] {
        out.set(name, (of(up) + of(down)) as f64);
    }
    out.set("queue_max_bytes", common.edge.queue_max());
}

fn write(
    common: &Common,
    mobiles: &[Mobile],
    direction: Direction,
    totals: &Totals,
    until: Instant,
    out: &mut Summary,
) {
    let prefix = direction.name();
    common.edge.traffic[direction as usize].write(prefix, out);
    let mut set = |name: &str, value: f64| out.set(&format!("{prefix}.{name}"), value);
    let sum = |of: &dyn Fn(&Mobile) -> u64| mobiles.iter().map(of).sum::<u64>();
    let way = direction as usize;
    for (name, value) in [
        ("rlc_blocks", totals.blocks),
        ("rlc_blocks_lost", totals.blocks_lost),
        ("rlc_bytes", totals.payload),
        ("rlc_resent", totals.resent),
        ("rlc_pre_emptive", totals.pre_emptive),
        ("rlc_duplicates", totals.duplicates),
        ("rlc_abandoned", sum(&|m| m.ways[way].tx.abandoned)),
        ("rlc_stalls", sum(&|m| m.ways[way].tx.stalls)),
        ("rlc_reports", totals.control),
        ("rlc_reports_lost", totals.control_lost),
        ("rlc_polls", totals.polls),
        ("rlc_polls_lost", totals.polls_lost),
        ("tbf_count", sum(&|m| m.ways[way].flow.count)),
        ("radio_blocks", totals.radio_blocks),
    ] {
        set(name, value as f64);
    }
    set("mcs_mean", totals.schemes as f64 / totals.data_blocks as f64);
    // Of all timeslots, over the run.
    let blocks = common.config.grid.from(until) as f64 * f64::from(common.config.pdchs);
    set("busy_share", if blocks > 0.0 { (totals.radio_blocks as f64 / blocks).min(1.0) } else { f64::NAN });
}
