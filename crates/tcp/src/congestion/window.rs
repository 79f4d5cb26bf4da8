//! The congestion window that all controllers share, and the growth of RFC 5681 with its three ways of counting.
//! A circle, of which `config.rs` says why.

use super::super::config::{AckCounting, Config};
use super::{Ack, Phase};

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
