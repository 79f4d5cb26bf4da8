//! What a run in real time says about itself.

use airloom_base::{Duration, Histogram, Summary};

use super::port::PortCounters;
use crate::virtual_time::Outcome;

/// Departures may be so late, at the 99th percentile.
const LATENESS_LIMIT: Duration = Duration::from_millis(1);
/// Nor later than this part of the base one-way delay: one in so many.
const SHARE_OF_DELAY: u64 = 20;

/// How a run went.
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// Exit code of the command, if one ran to its end.
    pub exit_code: Option<i32>,
    /// How much later than its nominal time each datagram left the model, in nanoseconds.
    pub lateness: Histogram,
    /// The shortest time that a datagram took from one real host to another.
    pub base_delay: Option<Duration>,
    /// Share of the run's time for which the engine kept a processor busy.
    pub cpu_share: f64,
    /// Datagrams that were cut short or had flipped bits; dropped.
    pub malformed: u64,
    /// Counts of all ports together.
    pub ports: PortCounters,
}

impl Report {
    /// Can the figures be believed? Not if departures were late by more than 1 ms, or 5 % of the base one-way
    /// delay, at the 99th percentile, nor if anything was lost outside the model.
    pub fn is_valid(&self) -> bool {
        let limit =
            self.base_delay.map_or(LATENESS_LIMIT, |delay| LATENESS_LIMIT.min(delay / SHARE_OF_DELAY));
        let late = self.lateness.quantile(0.99).is_some_and(|p99| p99 > limit.as_nanos());
        !late && self.ports.overflow == 0 && self.ports.unsent == 0
    }

    /// Adds its figures to the summary of the run.
    pub fn summarise(&self, out: &mut Summary) {
        out.set_owner("");
        let micros = |nanos: Option<u64>| nanos.map(|n| n as f64 / 1e3);
        out.set_some("lateness_p50_us", micros(self.lateness.quantile(0.5)));
        out.set_some("lateness_p99_us", micros(self.lateness.quantile(0.99)));
        out.set_some("lateness_max_us", micros(self.lateness.max()));
        out.set_some("base_delay_ms", self.base_delay.map(|d| d.as_nanos() as f64 / 1e6));
        out.set("engine_cpu_share", self.cpu_share);
        out.set("valid", f64::from(u8::from(self.is_valid())));
        for (name, value) in [
            ("port.received", self.ports.received),
            ("port.sent", self.ports.sent),
            ("port.malformed", self.malformed),
            ("port.not_ip", self.ports.not_ip),
            ("port.link_local", self.ports.link_local),
            ("port.overflow", self.ports.overflow),
            ("port.unsent", self.ports.unsent),
        ] {
            out.set(name, value as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(lateness_us: u64, base_delay: Option<Duration>, ports: PortCounters) -> Report {
        let mut lateness = Histogram::default();
        lateness.add(lateness_us * 1000);
        Report {
            outcome: Outcome::Complete,
            exit_code: None,
            lateness,
            base_delay,
            cpu_share: 0.0,
            malformed: 0,
            ports,
        }
    }

    #[test]
    fn lateness_is_judged_against_the_delay_and_the_clock() {
        let none = PortCounters::default();
        assert!(report(900, None, none).is_valid());
        assert!(!report(1100, None, none).is_valid());
        assert!(report(900, Some(Duration::from_millis(20)), none).is_valid());
        assert!(!report(900, Some(Duration::from_millis(10)), none).is_valid());
    }

    #[test]
    fn a_loss_outside_the_model_spoils_the_run() {
        assert!(!report(1, None, PortCounters { overflow: 1, ..PortCounters::default() }).is_valid());
        assert!(!report(1, None, PortCounters { unsent: 1, ..PortCounters::default() }).is_valid());
    }

    #[test]
    fn figures_carry_their_unit() {
        let mut out = Summary::default();
        report(900, None, PortCounters::default()).summarise(&mut out);
        assert_eq!(out.values["lateness_max_us"], 900.0);
        assert_eq!(out.values["valid"], 1.0);
        assert!(!out.values.contains_key("base_delay_ms"));
    }
}
