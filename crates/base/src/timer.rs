//! A deadline that may be armed or not: the field every protocol timer is made of.

use crate::{Duration, Instant};

/// One protocol timer. It never fires by itself: its owner asks [`Timer::is_due`] in `handle_timeout` and
/// reports [`Timer::deadline`] from `poll_timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer(Instant);

impl Default for Timer {
    fn default() -> Self {
        Timer(Instant::FAR_FUTURE)
    }
}

impl Timer {
    /// Fires at `at`.
    #[inline]
    pub fn arm(&mut self, at: Instant) {
        self.0 = at;
    }
    /// Fires `after` from `now`.
    #[inline]
    pub fn arm_after(&mut self, now: Instant, after: Duration) {
        self.0 = now + after;
    }
    /// Will not fire.
    #[inline]
    pub fn stop(&mut self) {
        self.0 = Instant::FAR_FUTURE;
    }
    /// Is it waiting for a moment?
    #[inline]
    pub fn is_armed(&self) -> bool {
        self.0 != Instant::FAR_FUTURE
    }
    /// Has the moment come?
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        self.0 <= now && self.is_armed()
    }
    /// If due: stops it and says yes.
    #[inline]
    pub fn take_due(&mut self, now: Instant) -> bool {
        let due = self.is_due(now);
        if due {
            self.stop();
        }
        due
    }
    /// The moment it waits for, `FAR_FUTURE` if none: the form in which minima are cheap.
    #[inline]
    pub fn raw(&self) -> Instant {
        self.0
    }
    /// The moment it waits for.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.is_armed().then_some(self.0)
    }
}

/// The earliest of several timers, in the form `poll_timeout` returns.
#[inline]
pub fn earliest(timers: &[Timer]) -> Option<Instant> {
    let first = timers.iter().map(|t| t.0).min().unwrap_or(Instant::FAR_FUTURE);
    (first != Instant::FAR_FUTURE).then_some(first)
}
