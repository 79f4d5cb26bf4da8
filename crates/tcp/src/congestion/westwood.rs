//! Westwood+ (Grieco and Mascolo 2004): after a loss the window is what the path carried lately, rate times least
//! round-trip time, not half of what it was. So a loss that is no congestion costs little.

use airloom_base::{Duration, Instant};

use super::slow_start::SlowStart;
use super::{About, Ack, Controller, Event, Hears, Window};
use crate::config::Config;

/// The rate is sampled once per round-trip time, but not more often than this (Linux; the paper samples each round trip).
const MIN_INTERVAL: Duration = Duration::from_millis(50);
/// Weight of the old estimate, in eighths (Linux; the paper has 0.9).
const OLD: u64 = 7;

/// The controller.
pub struct Westwood {
    slow_start: SlowStart,
    /// Octets per second: one stage of the filter, and the estimate behind both.
    raw: u64,
    bandwidth: u64,
    rtt_min: Option<Duration>,
    /// The sample that is being taken: since when, and octets so far.
    since: Option<Instant>,
    octets: u64,
}

impl Westwood {
    pub fn new(config: &Config) -> Self {
        let slow_start = SlowStart::new(config);
        Westwood { slow_start, raw: 0, bandwidth: 0, rtt_min: None, since: None, octets: 0 }
    }

    fn sample(&mut self, elapsed: Duration) {
        let rate = u128::from(self.octets) * 1_000_000_000 / u128::from(elapsed.as_nanos().max(1));
        let rate = u64::try_from(rate).unwrap_or(u64::MAX >> 4).min(u64::MAX >> 4);
        if self.bandwidth == 0 {
            (self.raw, self.bandwidth) = (rate, rate);
        } else {
            self.raw = (OLD * self.raw + rate) / 8;
            self.bandwidth = (OLD * self.bandwidth + self.raw) / 8;
        }
    }
}

impl Controller for Westwood {
    fn about(&self) -> About {
        About::new(Hears::News)
    }
    fn observe(&mut self, window: &mut Window, ack: &Ack) {
        self.slow_start.observe(window, ack);
        if let Some(rtt) = ack.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |m| m.min(rtt)));
        }
        let since = *self.since.get_or_insert(ack.now);
        let elapsed = ack.now.since(since);
        if elapsed > ack.srtt.unwrap_or_default().max(MIN_INTERVAL) {
            self.sample(elapsed);
            self.since = Some(ack.now);
            self.octets = 0;
        }
        self.octets += ack.delivered;
    }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.slow_start.grow(window, ack);
    }
    fn ssthresh(&mut self, window: &Window, base: u64) -> u64 {
        let Some(rtt_min) = self.rtt_min.filter(|_| self.bandwidth > 0) else {
            return (base / 2).max(2 * window.mss());
        };
        let octets = u128::from(self.bandwidth) * u128::from(rtt_min.as_nanos()) / 1_000_000_000;
        // What the path carries, but never more than there was.
        u64::try_from(octets).unwrap_or(u64::MAX).min(window.cwnd()).max(2 * window.mss())
    }
    fn on_event(&mut self, _window: &mut Window, now: Instant, event: Event) {
        self.slow_start.on_event(now, event);
        if event == Event::Timeout {
            // The path may be another one.
            self.rtt_min = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MSS, TestWindow};
    use super::*;
    use crate::config::Congestion;
    use crate::profile::Profile;

    fn flow(segments: u64) -> (Westwood, TestWindow) {
        let config = Config { congestion: Congestion::Westwood, ..Profile::Rfc.settings() };
        (Westwood::new(&config), TestWindow::new(&config, segments))
    }

    #[test]
    fn the_threshold_is_rate_times_least_round_trip_time() {
        let (mut westwood, mut w) = flow(20);
        // Without growth: 20 to 30 segments per 100 ms at first, then per 200 ms because of a queue.
        (0..10).for_each(|_| w.round_trip(&mut westwood, Duration::from_millis(100)));
        (0..60).for_each(|_| {
            w.window.set_cwnd(40 * MSS);
            w.round_trip(&mut westwood, Duration::from_millis(200));
        });
        // 200 segments a second for 100 ms are 20 segments, half of the window of 40.
        let ssthresh = westwood.ssthresh(&w.window, 40 * MSS);
        assert!((19_000..=20_500).contains(&ssthresh), "{ssthresh}");
        // A loss with an empty queue costs nothing.
        let (mut westwood, mut w) = flow(20);
        (0..60).for_each(|_| {
            w.window.set_cwnd(20 * MSS);
            w.round_trip(&mut westwood, Duration::from_millis(100));
        });
        let ssthresh = westwood.ssthresh(&w.window, 20 * MSS);
        assert!((19_000..=20_000).contains(&ssthresh), "{ssthresh}");
    }

    #[test]
    fn before_the_first_sample_it_halves_and_never_goes_below_two_segments() {
        let (mut westwood, w) = flow(20);
        assert_eq!(westwood.ssthresh(&w.window, 20 * MSS), 10 * MSS);
        assert_eq!(westwood.ssthresh(&w.window, MSS), 2 * MSS);
    }

    #[test]
    fn the_filter_has_two_stages_of_seven_eighths() {
        let (mut westwood, _) = flow(20);
        westwood.octets = 1000;
        westwood.sample(Duration::from_secs(1));
        assert_eq!(westwood.bandwidth, 1000);
        westwood.octets = 9000;
        westwood.sample(Duration::from_secs(1));
        // (7 * 1000 + 9000) / 8 = 2000, then (7 * 1000 + 2000) / 8 = 1125.
        assert_eq!((westwood.raw, westwood.bandwidth), (2000, 1125));
    }

    #[test]
    fn a_timeout_forgets_the_least_round_trip_time() {
        let (mut westwood, mut w) = flow(20);
        (0..5).for_each(|_| w.round_trip(&mut westwood, Duration::from_millis(100)));
        westwood.on_event(&mut w.window, w.now, Event::Timeout);
        assert_eq!(westwood.rtt_min, None);
    }
}
