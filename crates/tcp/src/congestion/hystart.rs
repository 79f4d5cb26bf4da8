//! HyStart (Ha and Rhee 2008) as Linux has it: leave slow start when acknowledgements have come in one train for half of
//! the least round-trip time, or when the round-trip time has grown.
//!
//! The values are those of the module parameters of Linux 6.x.

use airloom_base::{Duration, Instant};

use super::{Ack, Window};

/// Below so many segments it does not look.
const LOW_WINDOW: u64 = 16;
/// Acknowledgements that follow each other within this belong to one train.
const ACK_DELTA: Duration = Duration::from_millis(2);
/// So many samples of a round are only collected; the next one is compared.
const MIN_SAMPLES: u8 = 8;
/// Least and most growth of the round-trip time that counts; between them it is an eighth of the least one.
const DELAY_THRESHOLD: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// Time for which a burst of segmentation offload may stretch a train, at most.
const MAX_BURST_TIME: Duration = Duration::from_millis(1);
/// The largest such burst, in octets, four of which count.
const BURST: u64 = 4 * 65_536;

/// State of one connection.
#[derive(Clone, Debug, Default)]
pub struct HyStart {
    /// The least round-trip time, of rounds that are over too.
    pub delay_min: Option<Duration>,
    /// The exit was found.
    found: bool,
    round_start: Instant,
    last_ack: Instant,
    /// The round ends when this is acknowledged.
    end_seq: u64,
    /// The least round-trip time of this round.
    round_min: Option<Duration>,
    samples: u8,
    /// A timeout began a round then; it ends where SND.NXT was.
    restarted: Option<Instant>,
}

impl HyStart {
    /// Takes the time of an acknowledgement; sets the threshold to the window if slow start has to end.
    #[inline]
    pub fn observe(&mut self, window: &mut Window, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        let least = self.delay_min.map_or(rtt, |d| d.min(rtt));
        self.delay_min = Some(least);
        if !self.found && window.in_slow_start() {
            self.look(window, ack, rtt, least);
        }
    }

    /// A timeout: all is forgotten, and a round begins with it.
    pub fn restart(&mut self, now: Instant) {
        *self = HyStart { restarted: Some(now), ..HyStart::default() };
    }

    fn look(&mut self, window: &mut Window, ack: &Ack, rtt: Duration, least: Duration) {
        if let Some(at) = self.restarted.take() {
            // Nothing new was sent since.
            (self.round_start, self.last_ack, self.end_seq) = (at, at, ack.nxt);
        }
        if ack.una > self.end_seq {
            self.round_start = ack.now;
            self.last_ack = ack.now;
            self.end_seq = ack.nxt;
            self.round_min = None;
            self.samples = 0;
        }
        if window.cwnd() < LOW_WINDOW * window.mss() {
            return;
        }
        if ack.now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = ack.now;
            // A paced sender spreads its segments over half of a round-trip time itself.
            let reach = least + burst_time(window, ack);
            let reach = if ack.paced { reach } else { reach / 2 };
            self.found |= ack.now.since(self.round_start) > reach;
        }
        let round_min = self.round_min.map_or(rtt, |d| d.min(rtt));
        self.round_min = Some(round_min);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let growth = (least / 8).clamp(DELAY_THRESHOLD.0, DELAY_THRESHOLD.1);
            self.found |= round_min > least + growth;
        }
        if self.found {
            window.end_slow_start();
        }
    }
}

/// Time that four bursts of segmentation offload take at the rate of the window.
fn burst_time(window: &Window, ack: &Ack) -> Duration {
    match super::pacing::linux_rate(window, ack.srtt) {
        0 => Duration::ZERO,
        rate => Duration::from_nanos(BURST.saturating_mul(1_000_000_000) / rate).min(MAX_BURST_TIME),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    const MSS: u64 = 1000;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn slow_start(segments: u64) -> Window {
        let mut window = Window::new(&Profile::Linux.settings(), MSS);
        window.set_cwnd(segments * MSS);
        window
    }

    /// A round of `n` acknowledgements `gap` apart after `from`, all with `rtt`; says at which one slow start ended.
    fn round(
        h: &mut HyStart,
        window: &mut Window,
        una: u64,
        from: u64,
        n: u64,
        gap: Duration,
        rtt: Duration,
    ) -> Option<u64> {
        for i in 1..=n {
            let ack = Ack {
                now: Instant::ZERO + ms(from) + gap * i,
                una: una + i,
                nxt: una + n + i - 1,
                rtt: Some(rtt),
                srtt: Some(rtt),
                ..Ack::default()
            };
            h.observe(window, &ack);
            if !window.in_slow_start() {
                assert_eq!(window.ssthresh(), window.cwnd());
                return Some(i);
            }
        }
        None
    }

    #[test]
    fn a_round_trip_time_longer_by_an_eighth_ends_it_at_the_ninth_sample() {
        // An eighth of 100 ms; not below 4 ms, not above 16 ms.
        for (base, longer) in [(100, 113), (20, 25), (400, 417)] {
            let (mut h, mut w) = (HyStart::default(), slow_start(20));
            assert_eq!(round(&mut h, &mut w, 0, 0, 20, ms(5), ms(base)), None);
            assert_eq!(round(&mut h, &mut w, 20, 1000, 20, ms(5), ms(longer)), Some(9), "{base}");
            let (mut h, mut w) = (HyStart::default(), slow_start(20));
            round(&mut h, &mut w, 0, 0, 20, ms(5), ms(base));
            assert_eq!(round(&mut h, &mut w, 20, 1000, 20, ms(5), ms(longer - 1)), None, "{base}");
        }
    }

    #[test]
    fn a_train_of_half_the_least_round_trip_time_ends_it() {
        let (mut h, mut w) = (HyStart::default(), slow_start(20));
        // 1 ms apart: the train is longer than (100 + 1) / 2 ms with the 52nd after the one that began the round.
        assert_eq!(round(&mut h, &mut w, 0, 0, 80, ms(1), ms(100)), Some(52));
        // Acknowledgements more than 2 ms apart are no train.
        let (mut h, mut w) = (HyStart::default(), slow_start(20));
        assert_eq!(round(&mut h, &mut w, 0, 0, 80, Duration::from_micros(2001), ms(100)), None);
    }

    #[test]
    fn a_window_below_sixteen_segments_is_left_alone() {
        let (mut h, mut w) = (HyStart::default(), slow_start(15));
        round(&mut h, &mut w, 0, 0, 15, ms(1), ms(10));
        assert_eq!(round(&mut h, &mut w, 15, 1000, 15, ms(1), ms(100)), None);
    }
}
