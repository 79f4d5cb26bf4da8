//! On/off in time: phases of fixed length, losses only while on.

use airloom_base::{Duration, Instant};

/// Alternating phases of fixed length; in *on* each packet or block is lost with the given probability.
#[derive(Clone, Copy, Debug)]
pub struct OnOff {
    on: u64,
    off: u64,
    /// Shift so that phase 0 of the shifted time is *on*.
    shift: u64,
    loss: f64,
}

impl OnOff {
    /// Phases `on` and `off` (not both zero), beginning with *on* if `first_on`.
    pub fn new(on: Duration, off: Duration, first_on: bool, loss: f64) -> Self {
        let (on, off) = (on.as_nanos(), off.as_nanos());
        OnOff { on, off, shift: if first_on { 0 } else { on }, loss }
    }

    /// Is the *on* phase running at `at`?
    pub fn is_on(&self, at: Instant) -> bool {
        let period = u128::from(self.on) + u128::from(self.off);
        let shifted = u128::from(at.as_nanos()) + u128::from(self.shift);
        period > 0 && shifted % period < u128::from(self.on)
    }

    /// Probability of a loss at `at`.
    pub fn probability(&self, at: Instant) -> f64 {
        if self.is_on(at) { self.loss } else { 0.0 }
    }

    /// Changes the loss of the *on* phases.
    pub fn set_loss(&mut self, loss: f64) {
        self.loss = loss;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_alternate_from_the_one_named_first() {
        let s = |n| Instant::ZERO + Duration::from_secs(n);
        let on = |first| {
            let p = OnOff::new(Duration::from_secs(4), Duration::from_secs(6), first, 0.5);
            (0..20).map(|t| p.is_on(s(t))).collect::<Vec<_>>()
        };
        let expected = |t: u64| t % 10 < 4;
        assert_eq!(on(true), (0..20).map(expected).collect::<Vec<_>>());
        assert_eq!(on(false), (0..20).map(|t| t % 10 >= 6).collect::<Vec<_>>());
    }

    #[test]
    fn losses_happen_only_while_on() {
        let p = OnOff::new(Duration::from_secs(1), Duration::from_secs(1), false, 0.5);
        assert_eq!(p.probability(Instant::ZERO), 0.0);
        assert_eq!(p.probability(Instant::ZERO + Duration::from_secs(1)), 0.5);
    }
}
