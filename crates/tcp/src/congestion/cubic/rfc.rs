//! CUBIC as RFC 9438 writes it down, and as RFC 8312 did. Windows here are in segments, and may be fractions; names are the standard's.
//!
//! Only the four basic operations are used on these fractions, so that every machine computes the same.

use airloom_base::Instant;

use super::super::slow_start::SlowStart;
use super::super::{About, Ack, Controller, Departure, Event, Hears, Prior, Window};
use super::{ABE_BETA, Variant};
use crate::config::{AckCounting, Config};

/// What a congestion event overwrites, and a spurious one has to give back.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    w_max: f64,
    k: f64,
    w_est: f64,
    cwnd_prior: f64,
    /// Beginning of this stage of avoidance, if it has begun.
    t_epoch: Option<Instant>,
}

/// The controller.
#[derive(Default)]
pub struct Cubic {
    slow_start: SlowStart,
    variant: Variant,
    c: f64,
    beta: f64,
    fast_convergence: bool,
    friendliness: bool,
    /// An acknowledgement counts, whatever it covers.
    per_ack: bool,
    curve: Curve,
    /// As it was before the last congestion event.
    undo: Curve,
    /// RFC 8312: W_max of the event before, not lowered.
    w_last_max: f64,
    /// The next stage begins without a loss that it could return to: K is zero.
    fresh: bool,
    /// Octets that rounding left over.
    rest: f64,
    /// Up to here silences are taken off: the last acknowledgement seen, or the departure that ended a silence. And whether the
    /// window was not what limited the sender then.
    seen: Instant,
    idle: bool,
}

impl Cubic {
    pub fn new(config: &Config) -> Self {
        let settings = &config.cubic;
        Cubic {
            slow_start: SlowStart::new(config),
            variant: settings.variant,
            c: settings.c,
            beta: settings.beta,
            fast_convergence: settings.fast_convergence,
            friendliness: settings.friendliness,
            per_ack: config.ack_counting == AckCounting::PerAck,
            fresh: true,
            ..Default::default()
        }
    }

    //= RFC 9438 (4.3): alpha = 3 * (1 - beta) / (1 + beta).
    fn alpha(&self) -> f64 {
        3.0 * (1.0 - self.beta) / (1.0 + self.beta)
    }

    fn is_8312(&self) -> bool {
        self.variant == Variant::Rfc8312
    }

    fn w_cubic(&self, t: f64) -> f64 {
        //= RFC 9438 (4.2, figure 1): W_cubic(t) = C * (t - K)^3 + W_max.
        let away = t - self.curve.k;
        self.c * away * away * away + self.curve.w_max
    }

    fn begin(&mut self, now: Instant, cwnd: f64) {
        self.curve.t_epoch = Some(now);
        self.curve.w_est = cwnd;
        if self.fresh || self.curve.w_max <= 0.0 {
            //= RFC 9438 (4.8, 4.10): after a timeout, or without a loss yet, K = 0 and W_max = cwnd.
            self.curve.w_max = cwnd;
            self.curve.k = 0.0;
        } else if self.is_8312() {
            //= RFC 8312 (4.1, equation 2): K = cubic_root(W_max * (1 - beta) / C).
            self.curve.k = cube_root(self.curve.w_max * (1.0 - self.beta) / self.c);
        } else {
            //= RFC 9438 (4.2, figure 2): K = cubic_root((W_max - cwnd_epoch) / C).
            self.curve.k = cube_root((self.curve.w_max - cwnd).max(0.0) / self.c);
        }
        self.fresh = false;
    }

    /// Congestion avoidance: the window after the acknowledgement of `segments`.
    fn avoid(&mut self, ack: &Ack, cwnd: f64, segments: f64) -> f64 {
        if self.curve.t_epoch.is_none() {
            self.begin(ack.now, cwnd);
        }
        let t = self.curve.t_epoch.map_or(0.0, |at| ack.now.since(at).as_secs_f64());
        let rtt = ack.srtt.unwrap_or_default().as_secs_f64();
        if self.is_8312() {
            return self.avoid_8312(cwnd, t, rtt);
        }
        //= RFC 9438 (4.3): once W_est has reached the window before the reduction, alpha is 1.
        let alpha = if self.curve.w_est >= self.curve.cwnd_prior { 1.0 } else { self.alpha() };
        self.curve.w_est += alpha * segments / cwnd;
        if self.friendliness && self.w_cubic(t) < self.curve.w_est {
            return self.curve.w_est.max(cwnd);
        }
        //= RFC 9438 (4.2): the target is not below the window and not above one and a half times.
        let target = self.w_cubic(t + rtt).clamp(cwnd, 1.5 * cwnd);
        //= RFC 9438 (4.4, 4.5): (target - cwnd) / cwnd with each acknowledgement; counted in octets, with each segment of it.
        cwnd + (target - cwnd) / cwnd * if self.per_ack { 1.0 } else { segments }
    }

    fn avoid_8312(&self, cwnd: f64, t: f64, rtt: f64) -> f64 {
        //= RFC 8312 (4.2, equation 4): W_est(t) = W_max * beta + alpha * t / RTT.
        let w_est = self.curve.w_max * self.beta + if rtt > 0.0 { self.alpha() * t / rtt } else { 0.0 };
        if self.friendliness && self.w_cubic(t) < w_est {
            return w_est.max(cwnd);
        }
        //= RFC 8312 (4.3, 4.4): (W_cubic(t + RTT) - cwnd) / cwnd with each acknowledgement.
        cwnd + ((self.w_cubic(t + rtt) - cwnd) / cwnd).max(0.0)
    }
}

impl Controller for Cubic {
    fn about(&self) -> About {
        About::new(Hears::News)
    }
    fn on_sent(&mut self, _window: &mut Window, departure: &Departure) {
        if departure.idle.is_some() {
            // The application is silent from the last acknowledgement on: `observe` has judged what was before.
            let silent = departure.now.since(self.seen);
            self.curve.t_epoch = self.curve.t_epoch.map(|at| at + silent);
            // The next acknowledgement would count the same time once more.
            (self.seen, self.idle) = (departure.now, false);
        }
    }
    fn observe(&mut self, window: &mut Window, ack: &Ack) {
        self.slow_start.observe(window, ack);
        //= RFC 9438 (4.2): time in which the application limited the sender does not count.
        if self.idle {
            let idle = ack.now.since(self.seen);
            self.curve.t_epoch = self.curve.t_epoch.map(|at| at + idle);
        }
        self.seen = ack.now;
        // No growth follows one that acknowledges nothing, whatever limits the sender.
        self.idle |= ack.segments > 0;
    }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.idle = false;
        if window.in_slow_start() {
            return self.slow_start.grow(window, ack);
        }
        let mss = window.mss() as f64;
        let cwnd = window.cwnd() as f64 / mss;
        let octets = self.avoid(ack, cwnd, ack.octets as f64 / mss) * mss + self.rest;
        window.set_cwnd(octets as u64);
        self.rest = octets - window.cwnd() as f64;
    }
    fn ssthresh(&mut self, window: &Window, base: u64) -> u64 {
        let mss = window.mss() as f64;
        let cwnd = window.cwnd() as f64 / mss;
        self.undo = self.curve;
        let before = if self.is_8312() { self.w_last_max } else { self.curve.w_max };
        //= RFC 9438 (4.7), RFC 8312 (4.6): fast convergence.
        let lowered = self.fast_convergence && cwnd < before;
        self.w_last_max = cwnd;
        self.curve.w_max = if lowered { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd };
        self.curve.cwnd_prior = cwnd;
        self.curve.t_epoch = None;
        self.fresh = false;
        self.rest = 0.0;
        //= RFC 9438 (4.6, figure 5): beta of what is in flight; RFC 8312 (4.5): of the window. At least two segments.
        let base = if self.is_8312() { window.cwnd() } else { base };
        ((base as f64 * self.beta) as u64).max(2 * window.mss())
    }
    fn ssthresh_on_ecn(&mut self, window: &Window, base: u64, abe: bool) -> u64 {
        let beta = self.beta;
        if abe && !window.in_slow_start() {
            self.beta = ABE_BETA;
        }
        let ssthresh = self.ssthresh(window, base);
        self.beta = beta;
        ssthresh
    }
    fn on_event(&mut self, _window: &mut Window, now: Instant, event: Event) {
        self.slow_start.on_event(now, event);
        if event == Event::Timeout {
            self.fresh = true;
            self.curve.t_epoch = None;
        }
    }
    fn undo(&mut self, window: &mut Window, prior: Prior) {
        //= RFC 9438 (4.9): W_max, K, the epoch and W_est too become what they were.
        self.curve = self.undo;
        self.fresh = false;
        window.restore(prior);
    }
}

/// The cube root by Newton's method.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // From above the root it only falls, until rounding stops it.
    let mut root = x.max(1.0);
    loop {
        let next = root - (root * root * root - x) / (3.0 * root * root);
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Duration;

    use super::super::super::tests::{MSS, TestWindow};
    use super::*;
    use crate::config::Congestion;
    use crate::profile::Profile;

    const RTT: Duration = Duration::from_millis(100);

    fn config(variant: Variant) -> Config {
        let mut config = Config { congestion: Congestion::Cubic, ..Profile::Rfc.settings() };
        config.cubic.variant = variant;
        config
    }

    /// A window of `cwnd` segments in avoidance that lost something just now.
    fn after_loss(variant: Variant, cwnd: u64) -> (Cubic, TestWindow) {
        let config = config(variant);
        let mut cubic = Cubic::new(&config);
        let mut w = TestWindow::new(&config, cwnd);
        let ssthresh = cubic.ssthresh(&w.window, cwnd * MSS);
        w.window.cut(ssthresh, ssthresh);
        cubic.on_event(&mut w.window, w.now, Event::Recovery);
        (cubic, w)
    }

    #[test]
    fn rfc_9438_4_6_beta_of_what_is_in_flight_and_at_least_two_segments() {
        let mut cubic = Cubic::new(&config(Variant::Rfc9438));
        let w = TestWindow::new(&config(Variant::Rfc9438), 100);
        assert_eq!(cubic.ssthresh(&w.window, 50 * MSS), 35 * MSS);
        assert_eq!(cubic.ssthresh(&w.window, 2 * MSS), 2 * MSS);
        // RFC 8312 (4.5) takes the window.
        let mut cubic = Cubic::new(&config(Variant::Rfc8312));
        assert_eq!(cubic.ssthresh(&w.window, 50 * MSS), 70 * MSS);
    }

    #[test]
    fn rfc_9438_4_2_k_is_the_time_back_to_the_window_before() {
        let (mut cubic, mut w) = after_loss(Variant::Rfc9438, 1000);
        w.round_trip(&mut cubic, RTT);
        // The cube root of 300 segments / 0.4.
        assert!((cubic.curve.k - 9.0856).abs() < 0.001, "{}", cubic.curve.k);
        while w.now < Instant::ZERO + Duration::from_secs_f64(cubic.curve.k) {
            w.round_trip(&mut cubic, RTT);
        }
        assert!((990..=1003).contains(&w.segments()), "{}", w.segments());
        // Steep at first, flat there, and steep beyond.
        let at_k = w.segments();
        (0..40).for_each(|_| w.round_trip(&mut cubic, RTT));
        assert!((1020..1040).contains(&w.segments()), "{at_k} {}", w.segments());
    }

    #[test]
    fn rfc_9438_4_2_the_target_is_at_most_one_and_a_half_windows() {
        let mut cubic = Cubic::new(&config(Variant::Rfc9438));
        cubic.curve = Curve { w_max: 1000.0, t_epoch: Some(Instant::ZERO), ..Curve::default() };
        cubic.fresh = false;
        let ack = Ack { now: Instant::ZERO + Duration::from_secs(20), srtt: Some(RTT), ..Ack::default() };
        assert!((cubic.avoid(&ack, 100.0, 1.0) - 100.5).abs() < 1e-9);
        // RFC 8312 (4.3) has no such bound.
        cubic.variant = Variant::Rfc8312;
        assert!(cubic.avoid(&ack, 100.0, 1.0) > 110.0);
    }

    #[test]
    fn rfc_9438_4_3_small_windows_grow_as_renos_would() {
        assert!((Cubic::new(&config(Variant::Rfc9438)).alpha() - 0.5294).abs() < 0.0001);
        let (mut cubic, mut w) = after_loss(Variant::Rfc9438, 20);
        assert_eq!(w.segments(), 14);
        // From 14 segments at 0.53 a round trip it takes 11 or 12 back to 20, then 1 a round trip.
        (0..12).for_each(|_| w.round_trip(&mut cubic, RTT / 10));
        assert!((19..=20).contains(&w.segments()), "{}", w.segments());
        (0..10).for_each(|_| w.round_trip(&mut cubic, RTT / 10));
        assert!((28..=30).contains(&w.segments()), "{}", w.segments());
        // Without friendliness the curve stands nearly still for so short a time.
        let (mut cubic, mut w) = after_loss(Variant::Rfc9438, 20);
        cubic.friendliness = false;
        (0..22).for_each(|_| w.round_trip(&mut cubic, RTT / 10));
        assert!(w.segments() < 20, "{}", w.segments());
    }

    #[test]
    fn rfc_9438_4_7_fast_convergence_gives_way_after_a_second_loss_below_the_maximum() {
        let (mut cubic, mut w) = after_loss(Variant::Rfc9438, 1000);
        assert!((cubic.curve.w_max - 1000.0).abs() < 1e-9);
        cubic.ssthresh(&w.window, w.window.cwnd());
        assert!((cubic.curve.w_max - 700.0 * 0.85).abs() < 1e-9);
        let (mut cubic, _) = after_loss(Variant::Rfc9438, 1000);
        cubic.fast_convergence = false;
        cubic.ssthresh(&w.window, w.window.cwnd());
        assert!((cubic.curve.w_max - 700.0).abs() < 1e-9);
        w.round_trip(&mut cubic, RTT);
    }

    #[test]
    fn rfc_9438_4_8_after_a_timeout_the_curve_is_flat_where_avoidance_begins() {
        let (mut cubic, mut w) = after_loss(Variant::Rfc9438, 1000);
        cubic.on_event(&mut w.window, w.now, Event::Timeout);
        w.window.cut(500 * MSS, 500 * MSS);
        w.round_trip(&mut cubic, RTT);
        assert!(cubic.curve.k.abs() < 1e-9 && (cubic.curve.w_max - 500.0).abs() < 1.0, "{:?}", cubic.curve);
    }

    #[test]
    fn rfc_9438_4_9_a_spurious_reduction_gives_the_curve_back() {
        let (mut cubic, mut w) = after_loss(Variant::Rfc9438, 1000);
        (0..30).for_each(|_| w.round_trip(&mut cubic, RTT));
        let (before, prior) = (cubic.curve, w.window.prior());
        let ssthresh = cubic.ssthresh(&w.window, w.window.cwnd());
        w.window.cut(ssthresh, ssthresh);
        cubic.undo(&mut w.window, prior);
        assert_eq!(w.window.prior(), prior);
        assert_eq!(format!("{before:?}"), format!("{:?}", cubic.curve));
    }

    #[test]
    fn rfc_9438_4_2_time_in_which_the_application_is_silent_does_not_count() {
        let (mut cubic, mut w) = after_loss(Variant::Rfc9438, 1000);
        w.round_trip(&mut cubic, RTT);
        let grown = w.segments();
        w.now += Duration::from_secs(60);
        let departure = Departure { now: w.now, octets: MSS, idle: Some(Duration::from_secs(60)) };
        cubic.on_sent(&mut w.window, &departure);
        w.round_trip(&mut cubic, RTT);
        assert!(w.segments() < grown + 20, "{grown} {}", w.segments());
        // Acknowledgements that do not count because something else limited the sender.
        for _ in 0..600 {
            w.now += RTT;
            cubic.observe(&mut w.window, &Ack { now: w.now, segments: 1, ..Ack::default() });
        }
        let before = w.segments();
        w.round_trip(&mut cubic, RTT);
        assert!(w.segments() < before + 20, "{before} {}", w.segments());
    }

    #[test]
    fn rfc_9438_4_2_a_silence_is_not_counted_twice() {
        let (mut cubic, mut w) = after_loss(Variant::Rfc9438, 1000);
        w.round_trip(&mut cubic, RTT);
        // Requests of ten segments, of which the window holds more, and a pause behind each.
        for _ in 0..300 {
            let sent = w.now;
            for _ in 0..10 {
                w.now += RTT / 10;
                cubic.observe(&mut w.window, &Ack { now: w.now, segments: 1, ..Ack::default() });
            }
            w.now += RTT * 9;
            let departure = Departure { now: w.now, octets: MSS, idle: Some(w.now.since(sent)) };
            cubic.on_sent(&mut w.window, &departure);
        }
        assert!(cubic.curve.t_epoch.is_some_and(|at| at <= w.now), "{:?} {}", cubic.curve, w.now);
    }

    #[test]
    fn rfc_9438_4_2_time_in_which_segments_overtake_each_other_counts() {
        let (mut cubic, mut w) = after_loss(Variant::Rfc9438, 1000);
        // A little more than K, the time back to the window before.
        while w.now < Instant::ZERO + Duration::from_secs_f64(9.1) {
            let segments = w.segments();
            for _ in 0..segments {
                // Half of the time passes before a SACK block, and half before the acknowledgement.
                w.now += RTT / segments / 2;
                let sack = Ack { now: w.now, delivered: MSS, ..Ack::default() };
                cubic.observe(&mut w.window, &sack);
                w.now += RTT / segments / 2;
                let ack = Ack { octets: MSS, segments: 1, now: w.now, srtt: Some(RTT), ..Ack::default() };
                cubic.observe(&mut w.window, &ack);
                cubic.on_ack(&mut w.window, &ack);
            }
        }
        assert!((990..=1003).contains(&w.segments()), "{}", w.segments());
    }

    #[test]
    fn rfc_8312_4_1_k_comes_from_the_maximum_and_beta() {
        let (mut cubic, mut w) = after_loss(Variant::Rfc8312, 1000);
        w.round_trip(&mut cubic, RTT);
        assert!((cubic.curve.k - 9.0856).abs() < 0.001, "{}", cubic.curve.k);
    }

    #[test]
    fn cube_roots() {
        for x in [0.0, 0.001, 1.0, 8.0, 27.0, 750.0, 1e6, 1e15] {
            let root = cube_root(x);
            assert!((root * root * root - x).abs() <= x * 1e-12, "{x} {root}");
        }
    }
}
