//! What links count of the packets they carry.

use airloom_base::{Duration, Histogram, Passed, Summary};

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
