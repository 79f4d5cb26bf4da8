//! What a run in real time says about itself.

use std::fmt;

use airloom_base::{Duration, Grade, Histogram, Summary};

use super::awake::Wakefulness;
use super::pace::Priority;
use super::port::PortCounters;
use crate::virtual_time::Outcome;

/// Departures may be so late, at the 99th percentile.
const LATENESS_LIMIT: Duration = Duration::from_millis(1);
/// Nor later than this part of the base one-way delay: one in so many.
const SHARE_OF_DELAY: u64 = 20;
/// What a bare pair of devices varies by itself: lateness below that is not the engine's alone.
const LATENESS_FLOOR: Duration = Duration::from_micros(100);
/// A run with fewer departures has no 99th percentile to speak of.
const FEW: u64 = 20;
/// An engine that was busier than that in some tenth of a second may have been the bottleneck.
const BUSY: f64 = 0.9;
/// Share of the run for which the engine was ready to work and got no processor.
const WAITED: f64 = 0.05;

/// Can the figures of a run be believed?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Valid,
    /// They may be: why not.
    Suspect(Vec<String>),
    /// No: why.
    Invalid(Vec<String>),
}

impl Verdict {
    /// In a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Valid => "valid",
            Verdict::Suspect(_) => "suspect",
            Verdict::Invalid(_) => "invalid",
        }
    }

    /// Why not, if not.
    pub fn reasons(&self) -> &[String] {
        match self {
            Verdict::Valid => &[],
            Verdict::Suspect(why) | Verdict::Invalid(why) => why,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reasons() {
            [] => f.write_str(self.name()),
            why => write!(f, "{}: {}", self.name(), why.join("; ")),
        }
    }
}

/// How a run went.
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// Exit code of the command, if one ran to its end; 128 and the number of the signal that ended it, as in a shell.
    pub exit_code: Option<i32>,
    /// How much later than its nominal time each datagram left the model, in nanoseconds.
    pub lateness: Histogram,
    /// Departures before their nominal time. There are none unless the engine is wrong.
    pub early: u64,
    /// How much later than its stamp each arrival was told to the model, because that had gone on already.
    pub arrival_lateness: Histogram,
    /// The shortest time that a datagram took from one real host to another.
    pub base_delay: Option<Duration>,
    /// How long the engine ran.
    pub elapsed: Duration,
    /// From the call to the engine's first look at its ports.
    pub start_up: Duration,
    /// Share of the run's time for which the engine kept a processor busy.
    pub cpu_share: f64,
    /// The same in the busiest tenth of a second.
    pub busiest: f64,
    /// Share of the run's time for which the engine wanted a processor and got none. `None` if the kernel does not say.
    pub waited_share: Option<f64>,
    /// Share of the run's time spent looking at the clock before sharp deadlines.
    pub clock_share: f64,
    /// How long before a sharp deadline the engine woke up, at the end of the run.
    pub lead: Duration,
    /// How the kernel scheduled the engine.
    pub priority: Priority,
    /// Whether processors were kept awake.
    pub wakefulness: Wakefulness,
    /// How each link treated super-packets.
    pub grades: Vec<(String, Grade)>,
    /// Datagrams that were cut short or had flipped bits; dropped.
    pub malformed: u64,
    /// Records of any kind that were not kept: there were too many.
    pub records_lost: u64,
    /// Counts of all ports together.
    pub ports: PortCounters,
    /// How late departures may be, where the scenario says.
    pub limit: Option<Duration>,
}

impl Report {
    /// Can the figures be believed?
    ///
    /// Not if departures were late by more than 1 ms, or 5 % of the base one-way delay, or what the scenario says instead, at
    /// the 99th percentile, nor if anything was lost outside the model. There is doubt if it came to half of that, if the engine was the bottleneck
    /// at times or had to wait for a processor, or if there were too few departures to tell.
    pub fn verdict(&self) -> Verdict {
        let (mut wrong, mut doubts) = (Vec::new(), Vec::new());
        self.judge_lateness(&mut wrong, &mut doubts);
        let lost = [
            (self.ports.overflow, "frames were lost before the engine read them"),
            (self.ports.no_memory, "frames found no memory: the model held all there is"),
            (self.ports.unsent, "datagrams were refused by the device"),
            (self.ports.device_drops, "frames were dropped by the devices"),
        ];
        wrong.extend(lost.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
        if self.early > 0 {
            wrong.push(format!("{} datagrams left before their time", self.early));
        }
        if self.busiest > BUSY {
            doubts.push(format!(
                "the engine was busy for {:.0} % of a tenth of a second: it may have been the bottleneck",
                self.busiest * 100.0
            ));
        }
        if let Some(share) = self.waited_share.filter(|share| *share > WAITED) {
            doubts.push(format!("the engine waited for a processor for {:.0} % of the time", share * 100.0));
        }
        match (wrong.is_empty(), doubts.is_empty()) {
            (false, _) => {
                wrong.append(&mut doubts);
                Verdict::Invalid(wrong)
            }
            (true, false) => Verdict::Suspect(doubts),
            (true, true) => Verdict::Valid,
        }
    }

    /// Is the verdict anything but invalid?
    pub fn is_valid(&self) -> bool {
        !matches!(self.verdict(), Verdict::Invalid(_))
    }

    fn judge_lateness(&self, wrong: &mut Vec<String>, doubts: &mut Vec<String>) {
        let share = self.base_delay.map_or(Duration::MAX, |delay| delay / SHARE_OF_DELAY);
        let limit = self.limit.unwrap_or(LATENESS_LIMIT.min(share.max(LATENESS_FLOOR)));
        let both = [(&self.lateness, "departures were"), (&self.arrival_lateness, "arrivals were told")];
        for (histogram, what) in both {
            let Some(p99) = histogram.quantile(0.99).map(Duration::from_nanos) else { continue };
            let asleep = match self.wakefulness {
                Wakefulness::Kept(_) => String::new(),
                Wakefulness::Not(_) => format!(", {}", self.wakefulness),
            };
            let text = |limit: Duration| {
                format!("1 % of the {what} {} late or more, limit {}{asleep}", p99.rounded(), limit.rounded())
            };
            if p99 > limit {
                wrong.push(text(limit));
            } else if p99 > limit / 2 || p99 > share {
                doubts.push(text((limit / 2).min(share)));
            }
        }
        if (1..FEW).contains(&self.lateness.count()) {
            // Then the worst of them stands for all.
            if self.lateness.max().is_some_and(|max| max > (limit / 2).as_nanos()) {
                doubts.push(format!("only {} datagrams left the model", self.lateness.count()));
            }
        }
    }

    /// Adds its figures to the summary of the run.
    pub fn summarise(&self, out: &mut Summary) {
        out.set_owner("");
        let micros = |nanos: Option<u64>| nanos.map(|n| n as f64 / 1e3);
        for (name, histogram) in [("lateness", &self.lateness), ("arrival_lateness", &self.arrival_lateness)]
        {
            out.set_some(&format!("{name}_p50_us"), micros(histogram.quantile(0.5)));
            out.set_some(&format!("{name}_p99_us"), micros(histogram.quantile(0.99)));
            out.set_some(&format!("{name}_max_us"), micros(histogram.max()));
        }
        out.set("early", self.early as f64);
        out.set_some("base_delay_ms", self.base_delay.map(|d| d.as_nanos() as f64 / 1e6));
        out.set("engine_cpu_s", self.cpu_share * self.elapsed.as_secs_f64());
        out.set("engine_cpu_share", self.cpu_share);
        out.set("engine_cpu_share_max", self.busiest);
        out.set("engine_clock_share", self.clock_share);
        out.set_some("engine_waited_share", self.waited_share);
        out.set("engine_lead_us", self.lead.as_nanos() as f64 / 1e3);
        let kept = if let Wakefulness::Kept(count) = self.wakefulness { count } else { 0 };
        out.set("engine_kept_awake", kept as f64);
        out.set("engine_start_ms", self.start_up.as_nanos() as f64 / 1e6);
        out.set("valid", f64::from(u8::from(self.is_valid())));
        out.set("suspect", f64::from(u8::from(matches!(self.verdict(), Verdict::Suspect(_)))));
        out.set("records_lost", self.records_lost as f64);
        out.set_all([
            ("port.received", self.ports.received),
            ("port.sent", self.ports.sent),
            ("port.sent_frames", self.ports.sent_frames),
            ("port.malformed", self.malformed),
            ("port.not_ip", self.ports.not_ip),
            ("port.link_local", self.ports.link_local),
            ("port.overflow", self.ports.overflow),
            ("port.no_memory", self.ports.no_memory),
            ("port.unsent", self.ports.unsent),
            ("port.device_drops", self.ports.device_drops),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand departures, each so late.
    fn report(lateness_us: u64, base_delay: Option<Duration>) -> Report {
        let mut lateness = Histogram::default();
        (0..1000).for_each(|_| lateness.add(lateness_us * 1000));
        Report {
            outcome: Outcome::Complete,
            exit_code: None,
            lateness,
            early: 0,
            arrival_lateness: Histogram::default(),
            base_delay,
            elapsed: Duration::from_secs(10),
            start_up: Duration::from_millis(20),
            cpu_share: 0.1,
            busiest: 0.5,
            waited_share: Some(0.001),
            clock_share: 0.01,
            lead: Duration::from_micros(70),
            priority: Priority::Ordinary,
            wakefulness: Wakefulness::Kept(2),
            grades: Vec::new(),
            malformed: 0,
            records_lost: 0,
            ports: PortCounters::default(),
            limit: None,
        }
    }

    fn verdict(lateness_us: u64, base_delay_ms: Option<u64>) -> &'static str {
        report(lateness_us, base_delay_ms.map(Duration::from_millis)).verdict().name()
    }

    #[test]
    fn lateness_is_judged_against_the_delay_and_the_clock() {
        assert_eq!(verdict(400, None), "valid");
        assert_eq!(verdict(700, None), "suspect");
        assert_eq!(verdict(1100, None), "invalid");
        assert_eq!(verdict(400, Some(20)), "valid");
        assert_eq!(verdict(400, Some(10)), "suspect");
        assert_eq!(verdict(700, Some(10)), "invalid");
        // Below what a cable varies by itself nothing is called wrong, and nothing is called right that exceeds 5 %.
        assert_eq!(verdict(90, Some(1)), "suspect");
        assert_eq!(verdict(40, Some(1)), "valid");
        assert_eq!(verdict(10, Some(0)), "suspect");
        assert_eq!(verdict(150, Some(0)), "invalid");
    }

    #[test]
    fn a_limit_of_the_scenario_takes_the_place_of_ours() {
        let judged = |lateness_us, limit_us| {
            let limit = Some(Duration::from_micros(limit_us));
            Report { limit, ..report(lateness_us, Some(Duration::from_millis(10))) }.verdict().name()
        };
        assert_eq!(judged(700, 5000), "suspect");
        assert_eq!(judged(400, 5000), "valid");
        assert_eq!(judged(5100, 5000), "invalid");
        assert_eq!(judged(30, 20), "invalid");
    }

    #[test]
    fn a_tail_of_one_percent_counts_and_a_single_one_does_not() {
        let mut late = report(10, None);
        late.lateness.add(50_000_000);
        assert_eq!(late.verdict(), Verdict::Valid);
        (0..20).for_each(|_| late.lateness.add(50_000_000));
        assert_eq!(late.verdict().name(), "invalid");
        let said = late.verdict().to_string();
        assert!(said.contains("1 % of the departures were 50 ms late or more, limit 1 ms"), "{said}");
    }

    #[test]
    fn a_loss_outside_the_model_spoils_the_run() {
        let spoil: [fn(&mut Report); 5] = [
            |r| r.ports.overflow = 1,
            |r| r.ports.unsent = 1,
            |r| r.ports.no_memory = 1,
            |r| r.ports.device_drops = 1,
            |r| r.early = 1,
        ];
        for spoil in spoil {
            let mut report = report(1, None);
            spoil(&mut report);
            assert_eq!(report.verdict().name(), "invalid");
            assert_eq!(report.verdict().reasons().len(), 1);
        }
    }

    #[test]
    fn a_saturated_engine_and_a_busy_machine_are_recognised() {
        let doubt: [fn(&mut Report); 3] = [
            |r| r.busiest = 0.95,
            |r| r.waited_share = Some(0.2),
            |r| (0..100).for_each(|_| r.arrival_lateness.add(600_000)),
        ];
        for doubt in doubt {
            let mut report = report(1, None);
            doubt(&mut report);
            assert_eq!(report.verdict().name(), "suspect");
        }
        let mut unknown = report(1, None);
        unknown.waited_share = None;
        assert_eq!(unknown.verdict(), Verdict::Valid);
    }

    #[test]
    fn a_run_without_traffic_is_valid_and_one_late_datagram_of_few_is_doubted() {
        let mut few = report(1, None);
        few.lateness = Histogram::default();
        assert_eq!(few.verdict(), Verdict::Valid);
        few.lateness.add(600_000);
        assert_eq!(few.verdict().name(), "suspect");
    }

    #[test]
    fn figures_carry_their_unit() {
        let mut out = Summary::default();
        report(400, None).summarise(&mut out);
        assert_eq!(out.values["lateness_max_us"], 400.0);
        assert_eq!((out.values["valid"], out.values["suspect"]), (1.0, 0.0));
        assert!(!out.values.contains_key("base_delay_ms"));
        assert_eq!(out.values["engine_start_ms"], 20.0);
    }
}
