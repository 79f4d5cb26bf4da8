//! Pacing: data leaves at a rate, not in bursts as acknowledgements allow.

use airloom_base::{Duration, Instant};

use super::config::Pacing;
use super::congestion::pacing;
use super::connection::Connection;
use super::timers::Alarm;

/// So many segments leave unpaced at the beginning (Linux).
const UNPACED: u64 = 10;

/// State of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Is data paced?
    pub on: bool,
    /// When the next segment may leave.
    next: Instant,
    sent: u64,
}

impl Pace {
    pub fn new(pacing: Pacing, controlled: bool) -> Self {
        Pace { on: pacing == Pacing::On || controlled, next: Instant::ZERO, sent: 0 }
    }
}

impl Connection {
    /// Must data wait for its turn? Sets the timer if so.
    #[inline]
    pub fn must_wait(&mut self, now: Instant) -> bool {
        if !self.pace.on || now >= self.pace.next {
            return false;
        }
        let at = self.pace.next;
        self.timers.arm(Alarm::Pacing, at);
        true
    }

    /// `octets` of payload left.
    pub fn paced_out(&mut self, now: Instant, octets: u64) {
        self.pace.sent += 1;
        if self.pace.sent <= UNPACED {
            return;
        }
        let rate = match self.controller.pacing_rate() {
            Some(rate) => rate,
            None => pacing::linux_rate(&self.window, self.rtt.srtt()),
        };
        if rate > 0 {
            let nanos = u128::from(octets) * 1_000_000_000 / u128::from(rate);
            // However small the rate: a segment in ten seconds.
            let gap =
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(Duration::from_secs(10));
            self.pace.next = self.pace.next.max(now) + gap;
        }
    }
}
