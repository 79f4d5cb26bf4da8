//! TCP-Probing (Tsaoussidis and Badr, ICNP 2000; Lahanas and Tsaoussidis 2002): NewReno that does not take every loss for
//! congestion. It suspends sending, measures two round-trip times with probes, and reduces the window only if they are
//! worse than what it knows. An outage is waited out: lost probes begin a new cycle.
//!
//! ASSUMPTION(wave-and-wait): the threshold is ours, since only abstracts were at hand: the window stays if the larger of the
//! two times is at most SRTT + 2 RTTVAR. A probe is waited for as long as the retransmission timer would wait, and twice as
//! long after each that was lost: a path that has become slower than that must be able to answer some day.

use airloom_base::{Duration, Instant};

use super::slow_start::SlowStart;
use super::window::Prior;
use super::{About, Ack, Controller, Estimate, Event, Reaction, Suspicion, Window};
use crate::config::Config;

/// No probe is waited for longer than that (the ceiling of RFC 6298 2.5).
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The controller.
pub struct Probing {
    slow_start: SlowStart,
    /// The first round-trip time of the cycle.
    first: Option<Duration>,
    /// Probes lost since sending was suspended.
    lost: u32,
    /// Sending is suspended: the window is frozen.
    suspended: bool,
    /// The path is as it was: the window that stays.
    keep: Option<Prior>,
}

impl Probing {
    pub fn new(config: &Config) -> Self {
        Probing { slow_start: SlowStart::new(config), first: None, lost: 0, suspended: false, keep: None }
    }

    /// How long the next probe is waited for.
    fn wait(&self, estimate: Estimate) -> Reaction {
        Reaction::Probe { wait: (estimate.rto * (1 << self.lost.min(6))).min(LONGEST_WAIT) }
    }
}

impl Controller for Probing {
    fn about(&self) -> About {
        About { probes: true, ..About::new(self.slow_start.hears()) }
    }
    fn observe(&mut self, window: &mut Window, ack: &Ack) {
        self.slow_start.observe(window, ack);
    }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if !self.suspended {
            self.slow_start.grow(window, ack);
        }
    }
    fn on_suspicion(&mut self, _window: &Window, _suspicion: Suspicion, estimate: Estimate) -> Reaction {
        (self.first, self.suspended, self.keep) = (None, true, None);
        self.lost = 0;
        self.wait(estimate)
    }
    fn on_probe(&mut self, window: &Window, rtt: Option<Duration>, estimate: Estimate) -> Reaction {
        match (self.first, rtt) {
            (None, Some(rtt)) => self.first = Some(rtt),
            (Some(first), Some(rtt)) => {
                let as_before = first.max(rtt) <= estimate.srtt + estimate.rttvar * 2;
                self.suspended = false;
                self.keep = as_before.then(|| window.prior());
                return Reaction::Repair;
            }
            (_, None) => (self.first, self.lost) = (None, self.lost + 1),
        }
        self.wait(estimate)
    }
    fn ssthresh(&mut self, window: &Window, base: u64) -> u64 {
        match self.keep {
            // Immediate recovery: what was lost is repaired with the window as it is.
            Some(prior) => prior.cwnd,
            None => (base / 2).max(2 * window.mss()),
        }
    }
    fn on_event(&mut self, window: &mut Window, now: Instant, event: Event) {
        match (event, self.keep) {
            (Event::Timeout, Some(prior)) => {
                window.cut(prior.cwnd, prior.ssthresh);
                self.keep = None;
            }
            (Event::Open, Some(prior)) => {
                window.restore(prior);
                self.keep = None;
            }
            (Event::Recovery, Some(_)) => {}
            _ => self.slow_start.on_event(now, event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    const MS: Duration = Duration::from_millis(1);

    fn after_probes(times: [u64; 2]) -> (Window, u64) {
        let config = Profile::Rfc.settings();
        let mut window = Window::new(&config, 1000);
        window.cut(20_000, 15_000);
        let mut p = Probing::new(&config);
        let estimate = Estimate { srtt: MS * 100, rttvar: MS * 10, rto: MS * 1000 };
        let wait = |n| Reaction::Probe { wait: MS * 1000 * n };
        assert_eq!(p.on_suspicion(&window, Suspicion::Timeout, estimate), wait(1));
        // One that is lost makes the first time worthless.
        assert_eq!(p.on_probe(&window, Some(MS), estimate), wait(1));
        assert_eq!(p.on_probe(&window, None, estimate), wait(2));
        assert_eq!(p.on_probe(&window, Some(MS * times[0]), estimate), wait(2));
        assert_eq!(p.on_probe(&window, Some(MS * times[1]), estimate), Reaction::Repair);
        let ssthresh = p.ssthresh(&window, 18_000);
        window.cut(1000, ssthresh);
        p.on_event(&mut window, Instant::ZERO, Event::Timeout);
        (window, ssthresh)
    }

    #[test]
    fn the_window_stays_where_the_round_trip_is_no_longer_than_before() {
        let (window, ssthresh) = after_probes([80, 120]);
        assert_eq!((window.cwnd(), window.ssthresh(), ssthresh), (20_000, 15_000, 20_000));
    }

    #[test]
    fn and_is_reduced_where_one_of_them_is_longer() {
        for times in [[80, 121], [121, 80]] {
            let (window, ssthresh) = after_probes(times);
            assert_eq!((window.cwnd(), ssthresh), (1000, 9000));
        }
    }
}
