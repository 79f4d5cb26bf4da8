//! What links count of the packets they carry.

use airloom_base::{Direction, Duration, Histogram, Packet, Passed, Summary};

/// Packets of one direction.
#[derive(Default)]
pub struct Traffic {
    pub sdus_in: u64,
    pub sdus_out: u64,
    pub octets_out: u64,
    pub queue_drops: u64,
    pub lost: u64,
    /// Most octets that ever waited.
    pub queue_max: u64,
    delay: Histogram,
}

impl Traffic {
    /// A packet of so many octets left at the far end so long after it had come.
    pub fn deliver(&mut self, octets: u64, delay: Duration) {
        self.sdus_out += 1;
        self.octets_out += octets;
        self.delay.add(delay.as_nanos());
    }

    /// What has passed, as a live control shows it: packets.
    pub fn passed(&self) -> Passed {
        Passed { frames: self.sdus_in, errors: self.lost, octets: self.octets_out }
    }

    /// Adds the values to a summary; `prefix` is the direction.
    pub fn write(&self, prefix: &str, out: &mut Summary) {
        let ms = |nanos: f64| nanos * 1e-6;
        let mut set = |name: &str, value: f64| out.set(&format!("{prefix}.{name}"), value);
        set("packets", self.sdus_in as f64);
        set("delivered", self.sdus_out as f64);
        set("delivered_bytes", self.octets_out as f64);
        set("lost", self.lost as f64);
        set("lost_share", self.lost as f64 / self.sdus_in as f64);
        set("queue_drops", self.queue_drops as f64);
        set("queue_max_bytes", self.queue_max as f64);
        if let Some(mean) = self.delay.mean() {
            set("sdu_delay_mean_ms", ms(mean));
        }
        for (name, q) in [("sdu_delay_p50_ms", 0.5), ("sdu_delay_p95_ms", 0.95), ("sdu_delay_max_ms", 1.0)] {
            if let Some(value) = self.delay.quantile(q) {
                set(name, ms(value as f64));
            }
        }
    }
}

/// What stands around a link and takes of what it carries: counts of one direction.
#[derive(Clone, Copy, Default)]
pub struct Taken {
    /// Datagrams that came out of the link and were lost behind it, and their octets; without copies of others.
    lost: u64,
    lost_octets: u64,
    /// Those that it was not given.
    refused: u64,
}

impl Taken {
    /// Lost behind the link. A copy was never counted there.
    pub fn lose(&mut self, packet: &Packet, is_copy: bool) {
        if !is_copy {
            self.lost += 1;
            self.lost_octets += packet.wire_len() as u64;
        }
    }

    /// Lost in front of it.
    pub fn refuse(&mut self) {
        self.refused += 1;
    }
}

/// What has passed a link, where octets that were `taken` behind it, or are `held` there still, have not come out.
pub fn passed<'a>(
    mut link: [Passed; 2],
    taken: [Taken; 2],
    held: impl Iterator<Item = (Direction, &'a Packet)>,
) -> [Passed; 2] {
    let held = waiting(held);
    for direction in Direction::BOTH.map(|direction| direction as usize) {
        let behind = taken[direction].lost_octets + held[direction].1;
        link[direction].octets = link[direction].octets.saturating_sub(behind);
    }
    link
}

/// How many packets wait in each direction, and their octets.
fn waiting<'a>(held: impl Iterator<Item = (Direction, &'a Packet)>) -> [(u64, u64); 2] {
    let mut waiting = [(0, 0); 2];
    for (direction, packet) in held {
        let (packets, octets) = &mut waiting[direction as usize];
        (*packets, *octets) = (*packets + 1, *octets + packet.wire_len() as u64);
    }
    waiting
}

/// What a link counts, where not all that it took for delivered has arrived: what was `taken` is lost, and what still waits
/// at its far end, `held`, is neither.
pub fn without<'a>(
    mut link: Summary,
    taken: [Taken; 2],
    held: impl Iterator<Item = (Direction, &'a Packet)>,
) -> Summary {
    let waiting = waiting(held);
    let mut more = |name: &str, change: f64| {
        let before = link.values.get(name).copied();
        link.set_some(name, before.map(|before| before + change));
    };
    for direction in Direction::BOTH {
        let (name, of) = (direction.name(), taken[direction as usize]);
        let (packets, octets) = waiting[direction as usize];
        more(&format!("{name}.packets"), of.refused as f64);
        more(&format!("{name}.delivered"), -((of.lost + packets) as f64));
        more(&format!("{name}.delivered_bytes"), -((of.lost_octets + octets) as f64));
        more(&format!("{name}.lost"), (of.lost + of.refused) as f64);
        // Wires say it for both directions at once, too.
        more("lost", (of.lost + of.refused) as f64);
    }
    for direction in Direction::BOTH {
        let of = |what: &str| link.values.get(&format!("{}.{what}", direction.name())).copied();
        if let (Some(_), Some(lost), Some(packets)) = (of("lost_share"), of("lost"), of("packets")) {
            link.set(&format!("{}.lost_share", direction.name()), lost / packets);
        }
    }
    link
}
