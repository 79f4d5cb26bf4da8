//! The congestion window that all controllers share, and the growth of RFC 5681 with its three ways of counting.
//! A circle, of which `config.rs` says why.

use airloom_base::Duration;

use super::super::config::{AckCounting, Config};
use super::{Ack, Phase};

/// No window is larger than this, in octets: sums and products of a window need no care.
const LARGEST: u64 = 1 << 40;

/// The congestion window, in octets.
#[derive(Clone, Copy, Debug, getset::CopyGetters)]
pub struct Window {
    /// Congestion window; never zero, and at most a terabyte.
    #[getset(get_copy = "pub")]
    cwnd: u64,
    /// Slow start threshold; `u64::MAX` before the first loss.
    #[getset(get_copy = "pub")]
    ssthresh: u64,
    /// Octets of a full segment; never zero, and the same as the sender has.
    #[getset(get_copy = "pub")]
    mss: u64,
    /// What was acknowledged towards the next step of congestion avoidance: octets, or segments.
    credit: u64,
    counting: AckCounting,
    /// L of RFC 3465.
    abc_limit: u8,
}

/// A window as it was, for the day when a reduction turns out to have been a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prior {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold.
    pub ssthresh: u64,
}

impl Window {
    /// The window at the beginning.
    pub fn new(config: &Config, mss: u64) -> Self {
        Window {
            cwnd: config.initial_window.octets(mss),
            ssthresh: u64::MAX,
            mss,
            credit: 0,
            counting: config.ack_counting,
            abc_limit: config.abc_limit,
        }
    }

    /// The window is what a controller, or a rule of recovery, has reckoned.
    #[inline]
    pub fn set_cwnd(&mut self, cwnd: u64) {
        self.cwnd = cwnd.clamp(1, LARGEST);
    }

    /// The threshold moves without a loss.
    pub fn set_ssthresh(&mut self, ssthresh: u64) {
        self.ssthresh = ssthresh;
    }

    /// Slow start ends where the window stands.
    pub fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Is this slow start? (At equality the standard allows either.)
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// A loss or a timeout: avoidance begins to count again.
    pub fn cut(&mut self, cwnd: u64, ssthresh: u64) {
        self.set_cwnd(cwnd);
        self.ssthresh = ssthresh;
        self.credit = 0;
    }

    /// Slow start and congestion avoidance of RFC 5681, counted as the configuration says.
    #[inline]
    pub fn grow(&mut self, ack: &Ack) {
        match self.counting {
            AckCounting::PerAck if self.in_slow_start() => self.cwnd += self.mss,
            //= RFC 5681 (3.1, equation 3): one segment per round trip, a part of it with each acknowledgement.
            AckCounting::PerAck => self.cwnd += (self.mss * self.mss / self.cwnd).max(1),
            AckCounting::Octets if self.in_slow_start() => {
                //= RFC 3465 (2.2, 2.3): at most L segments per acknowledgement, one after a timeout.
                let limit = if ack.phase == Phase::Loss { 1 } else { u64::from(self.abc_limit) };
                self.cwnd += ack.octets.min(limit * self.mss);
            }
            AckCounting::Octets => {
                //= RFC 3465 (2.1): a segment more when a whole window was acknowledged.
                self.credit += ack.octets;
                if self.credit >= self.cwnd {
                    self.credit -= self.cwnd;
                    self.cwnd += self.mss;
                }
            }
            AckCounting::Segments => self.grow_by_segments(ack.segments),
        }
    }

    /// Linux: slow start ends exactly at the threshold, what is left over counts for avoidance.
    fn grow_by_segments(&mut self, mut segments: u64) {
        if self.in_slow_start() {
            segments = self.slow_start_by_segments(segments);
            if segments == 0 {
                return;
            }
        }
        self.step_by_segments(self.segments(), segments);
    }

    /// The window in whole segments.
    #[inline]
    pub fn segments(&self) -> u64 {
        (self.cwnd / self.mss).max(1)
    }

    /// Linux: a segment for each of `segments` until the threshold; returns those left over.
    #[inline]
    pub fn slow_start_by_segments(&mut self, segments: u64) -> u64 {
        let room = (self.ssthresh - self.cwnd).div_ceil(self.mss);
        let steps = segments.min(room);
        self.cwnd += steps * self.mss;
        segments - steps
    }

    /// Linux: a segment more for each `needed` of the segments acknowledged.
    #[inline]
    pub fn step_by_segments(&mut self, needed: u64, segments: u64) {
        if self.credit >= needed {
            self.credit = 0;
            self.cwnd += self.mss;
        }
        self.credit += segments;
        if self.credit >= needed {
            let steps = self.credit / needed;
            self.credit -= steps * needed;
            self.cwnd += steps * self.mss;
        }
    }

    // What the sender does to it

    /// Segments have `mss` octets: so the handshake says.
    pub(in super::super) fn set_mss(&mut self, mss: u64) {
        self.mss = mss;
    }

    /// The path takes segments of `mss` octets only.
    pub(in super::super) fn in_smaller_segments(&mut self, mss: u64) {
        //= RFC 5681 (3.1): the window keeps its number of segments, so that no burst of smaller ones leaves.
        self.set_cwnd((self.cwnd * mss / self.mss).max(mss));
        self.mss = mss;
    }

    /// A reduction is over: the window is the threshold, or `at_most` if that is less.
    pub(in super::super) fn settle(&mut self, at_most: u64) {
        self.set_cwnd(self.ssthresh.min(at_most));
    }

    /// RFC 5681 (3.2, step 4): a duplicate shows that a segment has left the network.
    pub(in super::super) fn inflate(&mut self) {
        self.set_cwnd(self.cwnd + self.mss);
    }

    /// RFC 6582 (3.2, step 3): what a partial acknowledgement of `octets` takes off an inflated window.
    pub(in super::super) fn deflate(&mut self, octets: u64) {
        let back = if octets >= self.mss { self.mss } else { 0 };
        self.cwnd = (self.cwnd.saturating_sub(octets) + back).max(self.mss);
    }

    /// RFC 5681 (4.1): after an idle time it is not more than the initial window.
    pub(in super::super) fn restart(&mut self, initial: u64) {
        self.cwnd = self.cwnd.min(initial);
    }

    /// RFC 2861 (3.2): half for each `rto` of an idle time, not below `initial`; the threshold remembers the window.
    pub(in super::super) fn decay(&mut self, idle: Duration, rto: Duration, initial: u64) {
        self.remember();
        let floor = initial.min(self.cwnd);
        let mut left = idle;
        while left > rto && self.cwnd > floor {
            self.cwnd /= 2;
            left -= rto;
        }
        self.cwnd = self.cwnd.max(floor);
    }

    /// RFC 2861 (3.2): half of the way to what was used of it; the threshold remembers the window.
    pub(super) fn approach(&mut self, used: u64) {
        if used < self.cwnd {
            self.remember();
            self.cwnd = (self.cwnd + used) / 2;
        }
    }

    /// Three quarters of a window given up without a loss are remembered by the threshold.
    fn remember(&mut self) {
        self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
    }

    /// What to return to if the reduction that follows turns out to have been a mistake.
    pub fn prior(&self) -> Prior {
        Prior { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    /// Takes a reduction back. What has grown since stays.
    pub fn restore(&mut self, prior: Prior) {
        self.cwnd = self.cwnd.max(prior.cwnd);
        self.ssthresh = self.ssthresh.max(prior.ssthresh);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::profile::Profile;
    use super::*;

    const MSS: u64 = 1000;

    fn window(cwnd: u64, ssthresh: u64, ack_counting: AckCounting, abc_limit: u8) -> Window {
        let config = Config { ack_counting, abc_limit, ..Profile::Rfc.settings() };
        Window { cwnd, ssthresh, ..Window::new(&config, MSS) }
    }

    fn acked(octets: u64) -> Ack {
        Ack { octets, segments: octets.div_ceil(MSS), ..Ack::default() }
    }

    #[test]
    fn slow_start_by_each_way_of_counting() {
        for (counting, limit, expected) in [
            (AckCounting::PerAck, 1, 5000),
            (AckCounting::Octets, 1, 5000),
            (AckCounting::Octets, 2, 6000),
            (AckCounting::Segments, 1, 7000),
        ] {
            let mut w = window(4000, u64::MAX, counting, limit);
            w.grow(&acked(3000));
            assert_eq!(w.cwnd, expected, "{counting:?} L={limit}");
        }
    }

    #[test]
    fn rfc_3465_2_3_l_is_one_after_a_timeout() {
        let mut w = window(1000, 8000, AckCounting::Octets, 2);
        w.grow(&Ack { phase: Phase::Loss, ..acked(2000) });
        assert_eq!(w.cwnd, 2000);
    }

    #[test]
    fn avoidance_adds_about_a_segment_per_window() {
        let mut w = window(10_000, 10_000, AckCounting::PerAck, 1);
        (0..10).for_each(|_| w.grow(&acked(1000)));
        assert!((10_900..=11_000).contains(&w.cwnd), "{}", w.cwnd);
        let mut w = window(10_000, 10_000, AckCounting::Octets, 1);
        (0..5).for_each(|_| w.grow(&acked(2000)));
        assert_eq!(w.cwnd, 11_000);
        // One acknowledgement of two segments each: by the acknowledgement it is half as fast.
        let mut w = window(10_000, 10_000, AckCounting::PerAck, 1);
        (0..5).for_each(|_| w.grow(&acked(2000)));
        assert!((10_400..10_500).contains(&w.cwnd), "{}", w.cwnd);
    }

    #[test]
    fn linux_counting_stops_slow_start_at_the_threshold_and_goes_on_in_avoidance() {
        let mut w = window(4000, 6000, AckCounting::Segments, 1);
        w.grow(&acked(10_000));
        // Two segments in slow start, the other eight are one window of six and two towards the next.
        assert_eq!((w.cwnd, w.credit), (7000, 2));
    }
}
