//! Tahoe (Jacobson 1988): three duplicate acknowledgements are answered like a timeout, without waiting for it.

use airloom_base::Instant;

use super::slow_start::SlowStart;
use super::{Ack, Controller, Event, Recovery, Window};
use crate::tcp::config::Config;

/// The controller.
pub struct Tahoe {
    slow_start: SlowStart,
}

impl Tahoe {
    pub fn new(config: &Config) -> Self {
        Tahoe { slow_start: SlowStart::new(config) }
    }
}

impl Controller for Tahoe {
    fn name(&self) -> &'static str {
        "tahoe"
    }
    fn recovery(&self) -> Recovery {
        Recovery::None
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
