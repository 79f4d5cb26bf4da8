//! What a dedicated channel tells about a run.

use airloom_base::{Direction, Instant, Summary};

use super::hsdpa::MacHs;
use super::mobile::{Common, Mobile, Totals};
use super::rlc::am::Am;

/// Adds the values of all mobiles together: over both directions, then for each (`downlink.`, `uplink.`). The downlink may be
/// a channel that they share.
pub fn summarise(common: &Common, mobiles: &[Mobile], until: Instant, out: &mut Summary) {
    let is_shared = is_shared(mobiles);
    for direction in Direction::BOTH {
        let prefix = direction.name();
        write_entities(mobiles, &[direction], prefix, out);
        let channels = if is_shared && direction == Direction::Downlink { 1 } else { mobiles.len() };
        common.edge.traffic[direction as usize].write(prefix, out);
        write_totals(&common.totals[direction as usize], prefix, channels, until, out);
    }
    write_entities(mobiles, &Direction::BOTH, "", out);
    if is_shared {
        write_shared(common, mobiles, out);
    }
    out.set("queue_max_bytes", common.edge.queue_max());
}

/// Is the downlink a channel that the mobiles share?
pub fn is_shared(mobiles: &[Mobile]) -> bool {
    mobiles.iter().any(|mobile| mobile.mac_hs.is_some())
}

/// Of the entities that send in `directions`; duplicates are what their peers received twice.
fn write_entities(mobiles: &[Mobile], directions: &[Direction], prefix: &str, out: &mut Summary) {
    for (name, of) in [
        ("rlc_pdus", (|am, _| am.counters.pdus) as fn(&Am, &Am) -> u64),
        ("rlc_resent", |am, _| am.counters.resent),
        ("rlc_status_pdus", |am, _| am.counters.status),
        ("rlc_status_piggybacked", |am, _| am.counters.piggybacked),
        ("rlc_polls", |am, _| am.counters.polls),
        ("rlc_duplicates", |_, peer| peer.counters.duplicates),
        ("rlc_malformed", |_, peer| peer.counters.malformed),
        ("rlc_resets", |am, _| am.resets()),
        ("rlc_failures", |am, _| am.counters.failures),
        ("rlc_discards", |am, _| am.discards()),
    ] {
        let ends = mobiles.iter().flat_map(|m| directions.iter().map(|d| (m.am(*d), m.am(d.reverse()))));
        out.set(&named(prefix, name), ends.map(|(am, peer)| of(am, peer)).sum::<u64>() as f64);
    }
}

fn named(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

fn write_shared(common: &Common, mobiles: &[Mobile], out: &mut Summary) {
    let sum =
        |of: &dyn Fn(&MacHs) -> u64| mobiles.iter().filter_map(|m| m.mac_hs.as_deref()).map(of).sum::<u64>();
    let blocks = sum(&|mac| mac.counters.blocks);
    let resent = sum(&|mac| mac.counters.resent);
    let queues = mobiles.iter().filter_map(|m| m.mac_hs.as_deref()).map(|mac| mac.counters.queue_max);
    let octets = queues.max().unwrap_or_default() * u64::from(common.format.pdu_octets);
    for (name, value) in [
        ("mac_hs_blocks", blocks),
        ("mac_hs_resent", resent),
        ("mac_hs_given_up", sum(&|mac| mac.counters.given_up)),
        ("mac_hs_reordering_timeouts", sum(&MacHs::reordering_timeouts)),
        ("node_b_queue_max_bytes", octets),
    ] {
        out.set(&named("downlink", name), value as f64);
    }
    // Of the formats of new blocks.
    let formats = sum(&|mac| mac.counters.formats);
    out.set("downlink.cqi_mean", formats as f64 / (blocks - resent) as f64);
}

fn write_totals(totals: &Totals, prefix: &str, mobiles: usize, until: Instant, out: &mut Summary) {
    let mut set = |name: &str, value: f64| out.set(&named(prefix, name), value);
    set("blocks", totals.blocks as f64);
    set("blocks_lost", totals.blocks_lost as f64);
    // Of all mobiles together, over the run; a block that began counts as a whole.
    let of = until.as_secs_f64() * mobiles as f64;
    set("busy_share", if of > 0.0 { (totals.busy.as_secs_f64() / of).min(1.0) } else { f64::NAN });
}
