//! NewReno (RFC 6582): fast recovery goes on, a segment per partial acknowledgement, until all that was outstanding when it began is acknowledged.

use airloom_base::Instant;

use super::slow_start::SlowStart;
use super::{Ack, Controller, Event, Recovery, Window};
use crate::tcp::config::Config;

/// The controller.
pub struct NewReno {
    slow_start: SlowStart,
}

impl NewReno {
    pub fn new(config: &Config) -> Self {
        NewReno { slow_start: SlowStart::new(config) }
    }
}

impl Controller for NewReno {
    fn name(&self) -> &'static str {
        "newreno"
    }
    fn recovery(&self) -> Recovery {
        Recovery::NewReno
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
