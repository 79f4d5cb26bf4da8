//! How fast the path delivers: a sample with each acknowledgement (Cheng, Cardwell, Hassas Yeganeh and Jacobson,
//! draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each segment takes along how much had been delivered when it left, and when. When it arrives, what was delivered since
//! then, divided by the time, is the rate: the longer one of the times it took to send it and to acknowledge it, so that
//! neither a burst nor acknowledgements that come in a lump make the path look faster than it is.

use std::collections::VecDeque;

use airloom_base::{Duration, Instant};

/// What an acknowledgement says about the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Octets delivered between the two ends of the sample.
    pub delivered: u64,
    /// The time that took.
    pub interval: Duration,
    /// Octets delivered in all when the segment had left: rounds are told by it.
    pub prior_delivered: u64,
    /// Had the application nothing to send then, so that the path could do more?
    pub is_app_limited: bool,
}

impl RateSample {
    /// Octets per second.
    pub fn rate(&self) -> u64 {
        let nanos = u128::from(self.interval.as_nanos().max(1));
        u64::try_from(u128::from(self.delivered) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
    }
}

/// What a segment in flight took along. Names are the draft's.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    is_app_limited: bool,
    arrived: bool,
}

/// The sampler of one connection.
#[derive(Clone, Debug, Default, getset::CopyGetters)]
pub struct Sampler {
    /// C.delivered.
    #[getset(get_copy = "pub")]
    delivered: u64,
    /// C.delivered_time.
    delivered_at: Instant,
    /// C.first_sent_time.
    first_sent_at: Instant,
    /// C.app_limited: samples are limited until so much is delivered; zero: they are not.
    app_limited: u64,
    segments: VecDeque<Segment>,
    /// The segment, of those that arrived with the acknowledgement at hand, that was sent last.
    latest: Option<Segment>,
}

impl Sampler {
    /// Nothing was sent yet.
    pub fn new(now: Instant) -> Self {
        Sampler { delivered_at: now, first_sent_at: now, ..Default::default() }
    }

    /// `start..end` leaves for the first time.
    pub fn sent(&mut self, now: Instant, start: u64, end: u64) {
        if self.segments.is_empty() {
            // A flight begins: its time counts from here.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let segment = self.stamp(now, start, end);
        self.segments.push_back(segment);
    }

    fn stamp(&self, now: Instant, start: u64, end: u64) -> Segment {
        Segment {
            start,
            end,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_app_limited: self.app_limited != 0,
            arrived: false,
        }
    }

    /// What `start` belongs to leaves again.
    pub fn resent(&mut self, now: Instant, start: u64) {
        let at = self.segments.partition_point(|s| s.end <= start);
        if let Some(old) = self.segments.get(at).copied().filter(|s| !s.arrived) {
            self.segments[at] = self.stamp(now, old.start, old.end);
        }
    }

    /// A SACK block reports `start..end`.
    pub fn sacked(&mut self, start: u64, end: u64) {
        let first = self.segments.partition_point(|s| s.start < start);
        for i in first..self.segments.len() {
            let segment = &mut self.segments[i];
            if segment.end > end {
                break;
            }
            if !segment.arrived {
                segment.arrived = true;
                let segment = *segment;
                self.arrived(segment);
            }
        }
    }

    /// Everything below `ack` is acknowledged.
    pub fn acknowledged(&mut self, ack: u64) {
        while let Some(segment) = self.segments.front().copied().filter(|s| s.end <= ack) {
            self.segments.pop_front();
            if !segment.arrived {
                self.arrived(segment);
            }
        }
    }

    fn arrived(&mut self, segment: Segment) {
        let later = self.latest.is_none_or(|l| (l.sent_at, l.end) < (segment.sent_at, segment.end));
        if later {
            self.latest = Some(segment);
        }
    }

    /// The acknowledgement was taken in whole and delivered `octets` more: the sample, unless there is none or it is
    /// shorter than the least round-trip time (a retransmission that cannot have been answered yet).
    pub fn sample(&mut self, now: Instant, octets: u64, min_rtt: Option<Duration>) -> Option<RateSample> {
        self.delivered += octets;
        if octets > 0 {
            self.delivered_at = now;
        }
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let segment = self.latest.take()?;
        self.first_sent_at = segment.sent_at;
        let send_elapsed = segment.sent_at.since(segment.first_sent_at);
        let ack_elapsed = now.since(segment.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || min_rtt.is_some_and(|m| interval < m) {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - segment.delivered,
            interval,
            prior_delivered: segment.delivered,
            is_app_limited: segment.is_app_limited,
        })
    }

    /// The application has nothing to send while `in_flight` octets are under way and more would be allowed.
    pub fn limited_by_application(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// Is it the application that limits the flow?
    pub fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_steady_flow_is_measured_exactly() {
        let mut s = Sampler::new(at(0));
        // A segment of 1000 octets every 10 ms, acknowledged 100 ms later.
        for i in 0..50_u64 {
            if i >= 10 {
                s.acknowledged((i - 9) * 1000);
                let sample = s.sample(at(i * 10), 1000, None).expect("a sample");
                if i > 25 {
                    assert_eq!(sample.rate(), 100_000, "{sample:?}");
                    assert_eq!(sample.interval, Duration::from_millis(100));
                }
            }
            s.sent(at(i * 10), i * 1000, (i + 1) * 1000);
        }
    }

    #[test]
    fn acknowledgements_in_a_lump_do_not_raise_the_rate() {
        let mut s = Sampler::new(at(0));
        (0..10).for_each(|i| s.sent(at(i * 10), i * 1000, (i + 1) * 1000));
        // All ten are acknowledged at once, 100 ms after the last left.
        s.acknowledged(10_000);
        let sample = s.sample(at(190), 10_000, None).expect("a sample");
        assert_eq!((sample.delivered, sample.interval), (10_000, Duration::from_millis(190)));
    }

    #[test]
    fn a_burst_is_measured_by_its_acknowledgements() {
        let mut s = Sampler::new(at(0));
        (0..10).for_each(|i| s.sent(at(0), i * 1000, (i + 1) * 1000));
        for i in 0..10 {
            s.acknowledged((i + 1) * 1000);
            let sample = s.sample(at(100 + i * 10), 1000, None).expect("a sample");
            assert_eq!(sample.interval, Duration::from_millis(100 + i * 10));
        }
    }

    #[test]
    fn what_is_sacked_counts_once_and_the_segment_sent_last_gives_the_sample() {
        let mut s = Sampler::new(at(0));
        (0..4).for_each(|i| s.sent(at(i), i * 1000, (i + 1) * 1000));
        s.sacked(1000, 3000);
        let sample = s.sample(at(100), 2000, None).expect("a sample");
        assert_eq!((sample.delivered, s.delivered()), (2000, 2000));
        s.sacked(1000, 3000);
        assert_eq!(s.sample(at(101), 0, None), None);
        s.resent(at(110), 0);
        s.acknowledged(4000);
        // Of the first (sent again at 110 ms) and the fourth, the first was sent last.
        let sample = s.sample(at(210), 2000, None).expect("a sample");
        assert_eq!((sample.prior_delivered, sample.delivered), (2000, 2000));
        assert_eq!(sample.interval, Duration::from_millis(110));
    }

    #[test]
    fn a_sample_shorter_than_the_least_round_trip_time_is_none() {
        let mut s = Sampler::new(at(0));
        s.sent(at(0), 0, 1000);
        s.acknowledged(1000);
        assert_eq!(s.sample(at(50), 1000, Some(Duration::from_millis(100))), None);
    }

    #[test]
    fn samples_are_marked_while_the_application_limits_the_flow() {
        let mut s = Sampler::new(at(0));
        s.sent(at(0), 0, 1000);
        s.limited_by_application(1000);
        s.acknowledged(1000);
        assert!(!s.sample(at(100), 1000, None).expect("a sample").is_app_limited);
        s.sent(at(200), 1000, 2000);
        s.acknowledged(2000);
        assert!(s.sample(at(300), 1000, None).expect("a sample").is_app_limited);
        assert!(!s.is_app_limited());
    }
}
