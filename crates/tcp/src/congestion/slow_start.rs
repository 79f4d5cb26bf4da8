//! How slow start ends by itself, before a loss ends it: not at all, or by one of the two HyStarts.

use airloom_base::Instant;

use super::super::config::{Config, SlowStartExit};
use super::hystart::HyStart;
use super::hystart_pp::HyStartPp;
use super::{Ack, Event, Hears, Window};

/// The exit in use, with its state.
#[derive(Clone, Debug, Default)]
pub enum SlowStart {
    /// A loss or the threshold ends it.
    #[default]
    Standard,
    /// HyStart as Linux has it.
    Linux(HyStart),
    /// HyStart++ (RFC 9406).
    PlusPlus(HyStartPp),
}

impl SlowStart {
    /// As the configuration says.
    pub fn new(config: &Config) -> Self {
        match config.hystart {
            SlowStartExit::Off => SlowStart::Standard,
            SlowStartExit::Linux => SlowStart::Linux(HyStart::default()),
            SlowStartExit::Rfc9406 => SlowStart::PlusPlus(HyStartPp::default()),
        }
    }

    /// What it has to hear.
    pub fn hears(&self) -> Hears {
        if matches!(self, SlowStart::Standard) { Hears::Growth } else { Hears::News }
    }

    /// An acknowledgement, before the window moves: may set the threshold to the window.
    #[inline]
    pub fn observe(&mut self, window: &mut Window, ack: &Ack) {
        match self {
            SlowStart::Standard => {}
            SlowStart::Linux(h) => h.observe(window, ack),
            SlowStart::PlusPlus(h) => h.observe(window, ack),
        }
    }

    /// The window grows: slow start as this exit wants it, avoidance by RFC 5681.
    #[inline]
    pub fn grow(&mut self, window: &mut Window, ack: &Ack) {
        match self {
            SlowStart::PlusPlus(h) if window.in_slow_start() => h.grow(window, ack),
            _ => window.grow(ack),
        }
    }

    /// A loss, or a report of congestion, ends the initial slow start.
    pub fn on_event(&mut self, now: Instant, event: Event) {
        match (self, event) {
            (SlowStart::Linux(h), Event::Timeout) => h.restart(now),
            (SlowStart::PlusPlus(h), Event::Timeout | Event::Recovery | Event::CongestionReported) => {
                h.lost()
            }
            _ => {}
        }
    }
}
