//! What a dedicated channel tells about a run.

use airloom_base::{Direction, Instant, Summary};
use derive_more::AddAssign;

use super::hsdpa::MacHs;
use super::mobile::{Common, Mobile, Totals};

/// Adds the values of all mobiles together: over both directions, then for each (`downlink.`, `uplink.`). The downlink may be
/// a channel that they share.
pub fn summarise(common: &Common, mobiles: &[Mobile], until: Instant, out: &mut Summary) {
    let is_shared = is_shared(mobiles);
    let mut all = Sums::default();
    for direction in Direction::BOTH {
        let sums = Sums::of(mobiles, direction);
        let prefix = direction.name();
        sums.write(out, prefix);
        let channels = if is_shared && direction == Direction::Downlink { 1 } else { mobiles.len() };
        common.edge.traffic[direction as usize].write(prefix, out);
        write_totals(&common.totals[direction as usize], prefix, channels, until, out);
        all += sums;
    }
    all.write(out, "");
    if is_shared {
        write_shared(common, mobiles, out);
    }
    out.set("queue_max_bytes", common.edge.queue_max());
}

/// Is the downlink a channel that the mobiles share?
pub fn is_shared(mobiles: &[Mobile]) -> bool {
    mobiles.iter().any(|mobile| mobile.mac_hs.is_some())
}

#[derive(Clone, Copy, Default, AddAssign)]
struct Sums {
    pdus: u64,
    resent: u64,
    status: u64,
    piggybacked: u64,
    polls: u64,
    duplicates: u64,
    malformed: u64,
    resets: u64,
    failures: u64,
    discards: u64,
}

impl Sums {
    /// Of the entities that send in `direction`; duplicates are what their peers received twice.
    fn of(mobiles: &[Mobile], direction: Direction) -> Sums {
        let mut sums = Sums::default();
        for mobile in mobiles {
            let (am, peer) = (mobile.am(direction), mobile.am(direction.reverse()));
            sums += Sums {
                pdus: am.counters.pdus,
                resent: am.counters.resent,
                status: am.counters.status,
                piggybacked: am.counters.piggybacked,
                polls: am.counters.polls,
                duplicates: peer.counters.duplicates,
                malformed: peer.counters.malformed,
                resets: am.resets(),
                failures: am.counters.failures,
                discards: am.discards(),
            };
        }
        sums
    }

    fn write(&self, out: &mut Summary, prefix: &str) {
        for (name, value) in [
            ("rlc_pdus", self.pdus),
            ("rlc_resent", self.resent),
            ("rlc_status_pdus", self.status),
            ("rlc_status_piggybacked", self.piggybacked),
            ("rlc_polls", self.polls),
            ("rlc_duplicates", self.duplicates),
            ("rlc_malformed", self.malformed),
            ("rlc_resets", self.resets),
            ("rlc_failures", self.failures),
            ("rlc_discards", self.discards),
        ] {
            out.set(&named(prefix, name), value as f64);
        }
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
    // Of all mobiles together, over the time until something last happened.
    set("busy_share", totals.busy.as_secs_f64() / (until.as_secs_f64() * mobiles as f64));
}
