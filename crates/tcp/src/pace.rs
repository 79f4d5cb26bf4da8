//! Pacing: data leaves at a rate, not in bursts as acknowledgements allow.

use airloom_base::{Duration, Instant};

use super::config::Pacing;

/// So many segments leave unpaced at the beginning (Linux).
const UNPACED: u64 = 10;

/// State of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Is data paced?
    on: bool,
    /// When the next segment may leave; long ago while none is paced.
    next: Instant,
    /// Segments that have left; beyond [`UNPACED`] more make no difference.
    sent: u64,
}

impl Pace {
    /// Nothing has left. `controlled`: the controller sets the rate.
    pub fn new(pacing: Pacing, controlled: bool) -> Self {
        Pace { on: pacing == Pacing::On || controlled, next: Instant::ZERO, sent: 0 }
    }

    /// Is data paced?
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Until when data must wait for its turn, if it must.
    #[inline]
    pub fn waits_until(&self, now: Instant) -> Option<Instant> {
        (self.on && now < self.next).then_some(self.next)
    }

    /// One more segment leaves. Does the next wait for its turn?
    pub fn is_counted(&mut self) -> bool {
        self.sent += 1;
        self.sent > UNPACED
    }

    /// The next one waits until `octets` have left at `rate` octets per second; zero: there is no rate.
    pub fn wait_for(&mut self, now: Instant, octets: u64, rate: u64) {
        if rate > 0 {
            let nanos = u128::from(octets) * 1_000_000_000 / u128::from(rate);
            // However small the rate: a segment in ten seconds.
            let gap =
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(Duration::from_secs(10));
            self.next = self.next.max(now) + gap;
        }
    }
}
