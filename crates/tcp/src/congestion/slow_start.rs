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
            //= RFC 9406 (4.3): standard slow start for the remainder of the connection.
            SlowStart::PlusPlus(h) if window.in_slow_start() && !h.done() => h.grow(window, ack),
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

#[cfg(test)]
mod tests {
    use super::super::Phase;
    use super::*;
    use crate::profile::Profile;

    #[test]
    fn rfc_9406_4_3_after_the_initial_slow_start_it_is_the_standard_one() {
        let config = Config { hystart: SlowStartExit::Rfc9406, ..Profile::Rfc.settings() };
        let mut slow_start = SlowStart::new(&config);
        let mut window = Window::new(&config, 1000);
        slow_start.on_event(Instant::ZERO, Event::Timeout);
        window.cut(1000, 20_000);
        slow_start.grow(&mut window, &Ack { octets: 3000, phase: Phase::Loss, ..Ack::default() });
        assert_eq!(window.cwnd(), 2000, "L = 1 after a timeout");
    }
}
