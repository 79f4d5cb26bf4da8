//! CUBIC as Linux 6.x computes it: in segments, with a clock that ticks, in whole numbers.
//!
//! The window is a count of segments; a step is one segment per `cnt` segments acknowledged, and `cnt` is found at most
//! once a tick. One thing is not as there: the cube root is exact, where Linux takes one within 0.2 %.

use airloom_base::{Duration, Instant};

use super::super::slow_start::SlowStart;
use super::super::{About, Ack, Controller, Departure, Event, Hears, Window};
use super::ABE_BETA;
use crate::config::Config;

/// Time is counted in parts of a second, for the curve.
const PARTS: u64 = 1024;
/// One second in which round-trip times say nothing after an epoch began.
const SETTLE: Duration = Duration::from_secs(1);

/// The controller.
#[derive(Default)]
pub struct Cubic {
    slow_start: SlowStart,
    /// C in 1024ths: 410 for 0.4.
    c: u64,
    /// Beta in 1024ths: 717 for 0.7.
    beta: u64,
    fast_convergence: bool,
    friendliness: bool,
    tick: Duration,
    /// The inverse of Reno's alpha with the same beta, in eighths.
    reno_eighths: u64,
    /// The least round-trip time since the connection began or timed out.
    delay_min: Option<Duration>,
    /// The same in whole ticks, rounded up; 0 without one.
    delay_ticks: u64,
    /// Ticks when the epoch began; none: the next acknowledgement begins one.
    epoch_start: Option<u64>,
    /// Window before the last reduction, lowered by fast convergence; 0 before the first.
    last_max: u64,
    /// Window at which the curve is flat.
    origin: u64,
    /// Time from the beginning of the epoch to there, in 1024ths of a second.
    k: u64,
    /// Segments to be acknowledged for a step.
    cnt: u64,
    /// Window and tick when `cnt` was found.
    last_window: u64,
    last_tick: u64,
    /// Window that Reno would have, and segments acknowledged towards its next step.
    reno_window: u64,
    reno_acked: u64,
}

impl Cubic {
    pub fn new(config: &Config) -> Self {
        let settings = &config.cubic;
        let beta = (settings.beta * 1024.0).round() as u64;
        Cubic {
            slow_start: SlowStart::new(config),
            c: ((settings.c * 1024.0).round() as u64).max(1),
            beta,
            //= RFC 9438 (4.3, figure 4): alpha = 3 * (1 - beta) / (1 + beta).
            reno_eighths: 8 * (1024 + beta) / 3 / (1024 - beta),
            fast_convergence: settings.fast_convergence,
            friendliness: settings.friendliness,
            tick: settings.tick,
            ..Default::default()
        }
    }

    fn ticks(&self, now: Instant) -> u64 {
        now.as_nanos() / self.tick.as_nanos()
    }

    /// Segments to be acknowledged for a step of a window of `window` segments.
    fn update(&mut self, now: Instant, window: u64, acked: u64) {
        self.reno_acked += acked;
        let tick = self.ticks(now);
        let since = self.tick * tick.saturating_sub(self.last_tick);
        if self.last_window == window && since <= Duration::from_nanos(1_000_000_000 / 32) {
            return;
        }
        if self.epoch_start.is_none() || tick != self.last_tick {
            self.last_window = window;
            self.last_tick = tick;
            self.follow_the_curve(tick, window, acked);
        }
        if self.friendliness {
            self.be_friendly(window);
        }
        // At most half as fast as slow start.
        self.cnt = self.cnt.max(2);
    }

    fn follow_the_curve(&mut self, tick: u64, window: u64, acked: u64) {
        let start = *self.epoch_start.get_or_insert_with(|| {
            self.reno_acked = acked;
            self.reno_window = window;
            let below = self.last_max.saturating_sub(window);
            //= RFC 9438 (4.2, figure 2): K is the cube root of what is missing, divided by C.
            self.k = cube_root((1 << 40) / u128::from(self.c) * u128::from(below));
            self.origin = self.last_max.max(window);
            tick
        });
        // The curve is read one round trip ahead, in whole ticks.
        let ticks = tick - start + self.delay_ticks;
        // 64 bits hold months.
        let t = match ticks.checked_mul(self.tick.as_nanos()).and_then(|ns| ns.checked_mul(PARTS)) {
            Some(parts) => parts / 1_000_000_000,
            None => {
                let parts = u128::from(ticks) * u128::from(self.tick.as_nanos()) * u128::from(PARTS);
                u64::try_from(parts / 1_000_000_000).unwrap_or(u64::MAX)
            }
        };
        let away = u128::from(t.abs_diff(self.k).min(1 << 31));
        let height = u64::try_from((u128::from(self.c) * away * away * away) >> 40).unwrap_or(u64::MAX);
        let target =
            if t < self.k { self.origin.saturating_sub(height) } else { self.origin.saturating_add(height) };
        self.cnt = if target > window { window / (target - window) } else { 100 * window };
        // Before the first loss nothing is known of what there is: at least five per cent per round trip.
        if self.last_max == 0 {
            self.cnt = self.cnt.min(20);
        }
    }

    /// Not slower than Reno with the same reduction.
    fn be_friendly(&mut self, window: u64) {
        let step = ((window * self.reno_eighths) >> 3).max(1);
        if self.reno_acked > step {
            // As often as it stays above the step.
            let steps = (self.reno_acked - 1) / step;
            self.reno_acked -= steps * step;
            self.reno_window += steps;
        }
        if self.reno_window > window {
            self.cnt = self.cnt.min(window / (self.reno_window - window));
        }
    }
}

impl Controller for Cubic {
    fn about(&self) -> About {
        About::new(Hears::News)
    }
    fn observe(&mut self, window: &mut Window, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        // Times right after a recovery are those of a queue that drains.
        if self
            .epoch_start
            .is_some_and(|start| self.tick * (self.ticks(ack.now).saturating_sub(start)) < SETTLE)
        {
            return;
        }
        if self.delay_min.is_none_or(|least| rtt < least) {
            self.delay_min = Some(rtt);
            self.delay_ticks = rtt.as_nanos().div_ceil(self.tick.as_nanos());
        }
        self.slow_start.observe(window, ack);
    }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let mut left = ack.segments;
        if window.in_slow_start() {
            if matches!(&self.slow_start, SlowStart::PlusPlus(h) if !h.done()) {
                return self.slow_start.grow(window, ack);
            }
            left = window.slow_start_by_segments(left);
            if left == 0 {
                return;
            }
        }
        self.update(ack.now, window.segments(), left);
        window.step_by_segments(self.cnt, left);
    }
    fn ssthresh(&mut self, window: &Window, _base: u64) -> u64 {
        // It is the window that counts, whatever is in flight.
        let now = window.segments();
        self.epoch_start = None;
        //= RFC 9438 (4.7): a maximum below the last one makes room for another flow.
        let lowered = self.fast_convergence && now < self.last_max;
        self.last_max = if lowered { now * (1024 + self.beta) / 2048 } else { now };
        (now * self.beta / 1024).max(2) * window.mss()
    }
    fn ssthresh_on_ecn(&mut self, window: &Window, base: u64, abe: bool) -> u64 {
        let beta = self.beta;
        if abe && !window.in_slow_start() {
            self.beta = (ABE_BETA * 1024.0).round() as u64;
        }
        let ssthresh = self.ssthresh(window, base);
        self.beta = beta;
        ssthresh
    }
    fn on_sent(&mut self, _window: &mut Window, departure: &Departure) {
        let Some(idle) = departure.idle else { return };
        // The curve stands still while the application is silent.
        let (tick, ticks) = (self.ticks(departure.now), idle.as_nanos() / self.tick.as_nanos());
        self.epoch_start = self.epoch_start.map(|start| (start + ticks).min(tick));
    }
    fn on_event(&mut self, _window: &mut Window, now: Instant, event: Event) {
        self.slow_start.on_event(now, event);
        if event == Event::Timeout {
            self.delay_min = None;
            self.delay_ticks = 0;
            self.epoch_start = None;
            self.last_max = 0;
            self.last_window = 0;
            self.last_tick = 0;
            self.cnt = 0;
        }
    }
}

/// The whole part of the cube root.
fn cube_root(x: u128) -> u64 {
    let (mut low, mut high) = (0_u64, 1 << 42);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if u128::from(middle).pow(3) <= x {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{MSS, TestWindow};
    use super::*;
    use crate::profile::Profile;

    const RTT: Duration = Duration::from_millis(100);

    fn after_loss(cwnd: u64) -> (Cubic, TestWindow) {
        let config = Profile::Linux.settings();
        let mut cubic = Cubic::new(&config);
        let mut w = TestWindow::new(&config, cwnd);
        let ssthresh = cubic.ssthresh(&w.window, 0);
        w.window.cut(ssthresh, ssthresh);
        (cubic, w)
    }

    #[test]
    fn constants_are_those_of_the_module() {
        let cubic = Cubic::new(&Profile::Linux.settings());
        assert_eq!((cubic.c, cubic.beta, cubic.tick), (410, 717, Duration::from_millis(4)));
        // Beta of 717/1024, in whole segments.
        assert_eq!(after_loss(1000).1.segments(), 700);
        assert_eq!(after_loss(2).1.segments(), 2);
    }

    #[test]
    fn the_window_is_back_after_k() {
        let (mut cubic, mut w) = after_loss(1000);
        w.round_trip(&mut cubic, RTT);
        // 9.08 seconds in parts of 1024.
        assert!((9290..9310).contains(&cubic.k), "{}", cubic.k);
        while w.now < Instant::ZERO + Duration::from_millis(9000) {
            w.round_trip(&mut cubic, RTT);
        }
        assert!((990..=1003).contains(&w.segments()), "{}", w.segments());
    }

    #[test]
    fn before_the_first_loss_the_window_grows_by_five_per_cent_at_least() {
        let config = Profile::Linux.settings();
        let mut cubic = Cubic::new(&config);
        let mut w = TestWindow::new(&config, 100);
        (0..10).for_each(|_| w.round_trip(&mut cubic, RTT));
        assert!((150..170).contains(&w.segments()), "{}", w.segments());
    }

    #[test]
    fn a_timeout_forgets_the_maximum_and_the_least_delay() {
        let (mut cubic, mut w) = after_loss(1000);
        w.round_trip(&mut cubic, RTT);
        cubic.on_event(&mut w.window, w.now, Event::Timeout);
        assert_eq!((cubic.last_max, cubic.delay_min, cubic.epoch_start), (0, None, None));
    }

    #[test]
    fn round_trip_times_within_a_second_of_an_epoch_are_not_looked_at() {
        let (mut cubic, mut w) = after_loss(100);
        w.round_trip(&mut cubic, RTT);
        w.round_trip(&mut cubic, RTT / 2);
        assert_eq!(cubic.delay_min, Some(RTT));
        (0..30).for_each(|_| w.round_trip(&mut cubic, RTT / 2));
        assert_eq!(cubic.delay_min, Some(RTT / 2));
    }

    #[test]
    fn an_idle_time_moves_the_epoch() {
        let (mut cubic, mut w) = after_loss(100);
        w.round_trip(&mut cubic, RTT);
        let start = cubic.epoch_start.expect("an epoch");
        w.now += Duration::from_secs(10);
        let departure = Departure { now: w.now, octets: MSS, idle: Some(Duration::from_secs(10)) };
        cubic.on_sent(&mut w.window, &departure);
        assert_eq!(cubic.epoch_start, Some(start + 2500));
        assert_eq!(w.window.mss(), MSS);
    }

    #[test]
    fn cube_roots_are_exact() {
        for n in [0_u64, 1, 2, 9085, 1 << 20, (1 << 24) - 1] {
            let cube = u128::from(n).pow(3);
            assert_eq!(cube_root(cube), n);
            assert_eq!(cube_root(cube + 1), if n == 0 { 1 } else { n });
            if n > 1 {
                assert_eq!(cube_root(cube - 1), n - 1);
            }
        }
    }
}
