//! Reno (RFC 2581): fast recovery halves the window and ends with the first new acknowledgement, so that several losses in one window mean several reductions, or a timeout.

use airloom_base::Instant;

use super::slow_start::SlowStart;
use super::{Ack, Controller, Event, Recovery, Window};
use crate::tcp::config::Config;

/// The controller.
pub struct Reno {
    slow_start: SlowStart,
}

impl Reno {
    pub fn new(config: &Config) -> Self {
        Reno { slow_start: SlowStart::new(config) }
    }
}

impl Controller for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }
    fn recovery(&self) -> Recovery {
        Recovery::Reno
    }
    fn watches(&self) -> bool {
        self.slow_start.watches()
    }
    fn observe(&mut self, window: &mut Window, ack: &Ack) {
        self.slow_start.observe(window, ack);
    }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack, config: &Config) {
        self.slow_start.grow(window, ack, config);
    }
    fn on_event(&mut self, _window: &mut Window, now: Instant, event: Event) {
        self.slow_start.on_event(now, event);
    }
}
