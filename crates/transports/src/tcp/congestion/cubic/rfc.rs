//! CUBIC as RFC 9438 writes it down, and as RFC 8312 did. Windows here are in segments, and may be fractions; names are the standard's.
//!
//! Only the four basic operations are used on these fractions, so that every machine computes the same.

use airloom_base::{Duration, Instant};

use super::super::slow_start::SlowStart;
use super::super::{Ack, Controller, Event, Prior, Recovery, Window};
use super::Variant;
use crate::tcp::config::Config;

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
pub struct Cubic {
    slow_start: SlowStart,
    variant: Variant,
    c: f64,
    beta: f64,
    fast_convergence: bool,
    friendliness: bool,
    curve: Curve,
    /// As it was before the last congestion event.
    undo: Curve,
    /// RFC 8312: W_max of the event before, not lowered.
    w_last_max: f64,
    /// The next stage begins without a loss that it could return to: K is zero.
    fresh: bool,
    /// Octets that rounding left over.
    rest: f64,
    /// The last acknowledgement seen, and whether the window was not what limited the sender then.
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
            curve: Curve::default(),
            undo: Curve::default(),
            w_last_max: 0.0,
            fresh: true,
            rest: 0.0,
            seen: Instant::ZERO,
            idle: false,
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
        //= RFC 9438 (4.4, 4.5): (target - cwnd) / cwnd.
        cwnd + (target - cwnd) / cwnd * segments
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
    fn name(&self) -> &'static str {
        "cubic"
    }
    fn recovery(&self) -> Recovery {
        Recovery::NewReno
    }
    fn watches(&self) -> bool {
        true
    }
    fn observe(&mut self, window: &mut Window, ack: &Ack) {
        self.slow_start.observe(window, ack);
        //= RFC 9438 (4.2): time in which the application limited the sender does not count.
        if self.idle {
            let idle = ack.now.since(self.seen);
            self.curve.t_epoch = self.curve.t_epoch.map(|at| at + idle);
        }
        self.seen = ack.now;
        self.idle = true;
    }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack, config: &Config) {
        self.idle = false;
        if window.in_slow_start() {
            return self.slow_start.grow(window, ack, config);
        }
        let mss = window.mss as f64;
        let cwnd = window.cwnd as f64 / mss;
        let octets = self.avoid(ack, cwnd, ack.octets as f64 / mss) * mss + self.rest;
        window.cwnd = octets as u64;
        self.rest = octets - window.cwnd as f64;
    }
    fn ssthresh(&mut self, window: &Window, base: u64) -> u64 {
        let mss = window.mss as f64;
        let cwnd = window.cwnd as f64 / mss;
        self.undo = self.curve;
        let before = if self.is_8312() { self.w_last_max } else { self.curve.w_max };
        //= RFC 9438 (4.7), RFC 8312 (4.6): fast convergence.
        let lowered = self.fast_convergence && cwnd < before;
        self.w_last_max = cwnd;
        self.curve.w_max = if lowered { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd };
        self.curve.cwnd_prior = cwnd;
        self.curve.t_epoch = None;
        self.rest = 0.0;
        //= RFC 9438 (4.6, figure 5): beta of what is in flight; RFC 8312 (4.5): of the window. At least two segments.
        let base = if self.is_8312() { window.cwnd } else { base };
        ((base as f64 * self.beta) as u64).max(2 * window.mss)
    }
    fn on_event(&mut self, _window: &mut Window, _now: Instant, event: Event) {
        self.slow_start.on_event(event);
        match event {
            Event::Timeout => {
                self.fresh = true;
                self.curve.t_epoch = None;
            }
            Event::Restart { idle } => self.shift(idle),
            _ => {}
        }
    }
    fn undo(&mut self, window: &mut Window, prior: Prior) {
        //= RFC 9438 (4.9): W_max, K, the epoch and W_est too become what they were.
        self.curve = self.undo;
        self.fresh = false;
        window.restore(prior);
    }
}

impl Cubic {
    fn shift(&mut self, idle: Duration) {
        self.curve.t_epoch = self.curve.t_epoch.map(|at| at + idle);
        // The next acknowledgement would count the same time once more.
        self.idle = false;
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
