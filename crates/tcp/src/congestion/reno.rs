//! Tahoe, Reno and NewReno: slow start and congestion avoidance of RFC 5681, and three ways to repair a loss without SACK.
//!
//! - Tahoe (Jacobson 1988): three duplicate acknowledgements are answered like a timeout, without waiting for it.
//! - Reno (RFC 2581): fast recovery halves the window and ends with the first new acknowledgement, so that several losses in one
//!   window mean several reductions, or a timeout.
//! - NewReno (RFC 6582): fast recovery goes on, a segment per partial acknowledgement, until all that was outstanding when it
//!   began is acknowledged.

use airloom_base::Instant;

use super::slow_start::SlowStart;
use super::{About, Ack, Controller, Event, FastRecovery, Window};
use crate::config::Config;

/// The controller.
pub struct Reno {
    recovery: FastRecovery,
    slow_start: SlowStart,
}

impl Reno {
    /// The one that repairs losses by `recovery`.
    pub fn new(recovery: FastRecovery, config: &Config) -> Self {
        Reno { recovery, slow_start: SlowStart::new(config) }
    }
}

impl Controller for Reno {
    fn about(&self) -> About {
        About { recovery: self.recovery, ..About::new(self.slow_start.hears()) }
    }
    fn observe(&mut self, window: &mut Window, ack: &Ack) {
        self.slow_start.observe(window, ack);
    }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.slow_start.grow(window, ack);
    }
    fn on_event(&mut self, _window: &mut Window, now: Instant, event: Event) {
        self.slow_start.on_event(now, event);
    }
}
