//! The congestion window and the rules that move it: one controller a file.
//!
//! | controller | slow start, avoidance | after three duplicates | leaves recovery |
//! |---|---|---|---|
//! | `tahoe` | RFC 5681 | as after a timeout | - |
//! | `reno` | RFC 5681 | fast recovery | at the first new acknowledgement |
//! | `newreno` | RFC 5681 | fast recovery | when all that was outstanding is acknowledged |
//!
//! When SACK was agreed on, recovery follows RFC 6675 whatever the controller; Tahoe has none either way. A controller
//! keeps what it needs to itself; the window that all share is [`Window`].

mod newreno;
mod reno;
mod tahoe;
pub(super) mod validation;

use super::config::{AckCounting, Config, Congestion};

/// The congestion window, in octets.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold; `u64::MAX` before the first loss.
    pub ssthresh: u64,
    /// Octets of a full segment.
    pub mss: u64,
    /// What was acknowledged towards the next step of congestion avoidance: octets, or segments.
    credit: u64,
}

/// What an acknowledgement covered.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Octets.
    pub octets: u64,
    /// Segments.
    pub segments: u64,
    /// Was the data resent after a timeout?
    pub after_timeout: bool,
}

/// How a sender repairs losses when there is no SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// It starts again with one segment.
    None,
    /// Fast recovery until the first new acknowledgement.
    Reno,
    /// Fast recovery until everything outstanding at its beginning is acknowledged.
    NewReno,
}

/// The rules for the window.
pub trait Controller: Send {
    /// Name, as in the configuration.
    fn name(&self) -> &'static str;
    /// How losses are repaired without SACK.
    fn recovery(&self) -> Recovery;
    /// New data was acknowledged outside fast recovery, and the window had limited the sender.
    fn on_ack(&mut self, window: &mut Window, acked: Acked, config: &Config) {
        window.grow(acked, config);
    }
    /// The slow start threshold after a loss, when `base` octets count as the window.
    fn ssthresh(&mut self, window: &Window, base: u64) -> u64 {
        //= RFC 5681 (3.1, equation 4): half of what is in flight, at least two segments.
        (base / 2).max(2 * window.mss)
    }
    /// The retransmission timer expired.
    fn on_timeout(&mut self) {}
}

/// Builds the controller of `config`.
pub(super) fn build(config: &Config) -> Box<dyn Controller> {
    match config.congestion {
        Congestion::Tahoe => Box::new(tahoe::Tahoe),
        Congestion::Reno => Box::new(reno::Reno),
        Congestion::NewReno => Box::new(newreno::NewReno),
    }
}

impl Window {
    /// The window at the beginning.
    pub fn new(config: &Config, mss: u64) -> Self {
        Window { cwnd: config.initial_window.octets(mss), ssthresh: u64::MAX, mss, credit: 0 }
    }

    /// Is this slow start? (At equality the standard allows either.)
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// A loss or a timeout: avoidance begins to count again.
    pub fn cut(&mut self, cwnd: u64, ssthresh: u64) {
        self.cwnd = cwnd;
        self.ssthresh = ssthresh;
        self.credit = 0;
    }

    /// Slow start and congestion avoidance of RFC 5681, counted as the configuration says.
    #[inline]
    pub fn grow(&mut self, acked: Acked, config: &Config) {
        match config.ack_counting {
            AckCounting::PerAck if self.in_slow_start() => self.cwnd += self.mss,
            //= RFC 5681 (3.1, equation 3): one segment per round trip, a part of it with each acknowledgement.
            AckCounting::PerAck => self.cwnd += (self.mss * self.mss / self.cwnd).max(1),
            AckCounting::Octets if self.in_slow_start() => {
                //= RFC 3465 (2.2, 2.3): at most L segments per acknowledgement, one after a timeout.
                let limit = if acked.after_timeout { 1 } else { u64::from(config.abc_limit) };
                self.cwnd += acked.octets.min(limit * self.mss);
            }
            AckCounting::Octets => {
                //= RFC 3465 (2.1): a segment more when a whole window was acknowledged.
                self.credit += acked.octets;
                if self.credit >= self.cwnd {
                    self.credit -= self.cwnd;
                    self.cwnd += self.mss;
                }
            }
            AckCounting::Segments => self.grow_by_segments(acked.segments),
        }
    }

    /// Linux: slow start ends exactly at the threshold, what is left over counts for avoidance.
    fn grow_by_segments(&mut self, mut segments: u64) {
        if self.in_slow_start() {
            let room = (self.ssthresh - self.cwnd).div_ceil(self.mss);
            let steps = segments.min(room);
            self.cwnd += steps * self.mss;
            segments -= steps;
            if segments == 0 {
                return;
            }
        }
        let window = (self.cwnd / self.mss).max(1);
        if self.credit >= window {
            self.credit = 0;
            self.cwnd += self.mss;
        }
        self.credit += segments;
        if self.credit >= window {
            let steps = self.credit / window;
            self.credit -= steps * window;
            self.cwnd += steps * self.mss;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::*;

    const MSS: u64 = 1000;

    fn window(cwnd: u64, ssthresh: u64) -> Window {
        Window { cwnd, ssthresh, mss: MSS, credit: 0 }
    }

    fn acked(octets: u64) -> Acked {
        Acked { octets, segments: octets.div_ceil(MSS), after_timeout: false }
    }

    fn config(ack_counting: AckCounting, abc_limit: u8) -> Config {
        Config { ack_counting, abc_limit, ..Profile::Rfc.settings() }
    }

    #[test]
    fn slow_start_by_each_way_of_counting() {
        for (counting, limit, expected) in [
            (AckCounting::PerAck, 1, 5000),
            (AckCounting::Octets, 1, 5000),
            (AckCounting::Octets, 2, 6000),
            (AckCounting::Segments, 1, 7000),
        ] {
            let mut w = window(4000, u64::MAX);
            w.grow(acked(3000), &config(counting, limit));
            assert_eq!(w.cwnd, expected, "{counting:?} L={limit}");
        }
    }

    #[test]
    fn rfc_3465_2_3_l_is_one_after_a_timeout() {
        let mut w = window(1000, 8000);
        w.grow(Acked { after_timeout: true, ..acked(2000) }, &config(AckCounting::Octets, 2));
        assert_eq!(w.cwnd, 2000);
    }

    #[test]
    fn avoidance_adds_about_a_segment_per_window() {
        let mut w = window(10_000, 10_000);
        (0..10).for_each(|_| w.grow(acked(1000), &config(AckCounting::PerAck, 1)));
        assert!((10_900..=11_000).contains(&w.cwnd), "{}", w.cwnd);
        let mut w = window(10_000, 10_000);
        (0..5).for_each(|_| w.grow(acked(2000), &config(AckCounting::Octets, 1)));
        assert_eq!(w.cwnd, 11_000);
        // One acknowledgement of two segments each: by the acknowledgement it is half as fast.
        let mut w = window(10_000, 10_000);
        (0..5).for_each(|_| w.grow(acked(2000), &config(AckCounting::PerAck, 1)));
        assert!((10_400..10_500).contains(&w.cwnd), "{}", w.cwnd);
    }

    #[test]
    fn linux_counting_stops_slow_start_at_the_threshold_and_goes_on_in_avoidance() {
        let mut w = window(4000, 6000);
        w.grow(acked(10_000), &config(AckCounting::Segments, 1));
        // Two segments in slow start, the other eight are one window of six and two towards the next.
        assert_eq!((w.cwnd, w.credit), (7000, 2));
    }

    #[test]
    fn rfc_5681_equation_4_has_a_floor_of_two_segments() {
        for c in [Congestion::Tahoe, Congestion::Reno, Congestion::NewReno] {
            let mut controller = build(&Config { congestion: c, ..Config::default() });
            assert_eq!(controller.ssthresh(&window(9000, 1), 9000), 4500);
            assert_eq!(controller.ssthresh(&window(9000, 1), 3000), 2000);
        }
    }
}
