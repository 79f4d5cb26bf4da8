//! Which delivery opportunity a packet gets.

use airloom_base::{Duration, Instant};

use super::config::{self, Times};

/// Octets of a delivery opportunity.
pub const OPPORTUNITY: u64 = 1504;
/// Octets by which a packet counts as larger than it is.
pub const OVERHEAD: u64 = 4;

const NANOS_PER_MS: u64 = 1_000_000;

/// A place in an endless trace: number of rounds, number of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    round: u64,
    line: usize,
}

/// One endless trace.
#[derive(Debug)]
struct Endless {
    times: Vec<u64>,
    period: u64,
}

impl Endless {
    fn new(times: &Times) -> Endless {
        Endless { period: times.0.last().copied().unwrap_or(1).max(1), times: times.0.clone() }
    }

    /// When the opportunity at a place comes.
    fn time(&self, place: Position) -> Instant {
        let line = self.times.get(place.line).copied().unwrap_or(0);
        let ms = place.round.saturating_mul(self.period).saturating_add(line);
        Instant::from_nanos(ms.saturating_mul(NANOS_PER_MS))
    }

    /// The first place not before `at`.
    fn first_from(&self, at: Instant) -> Position {
        let ms = at.as_nanos().div_ceil(NANOS_PER_MS);
        // A round ends with an opportunity at the very time at which the next one begins.
        let round = ms.saturating_sub(1) / self.period;
        let line = self.times.partition_point(|time| *time < ms - round * self.period);
        if line < self.times.len() {
            Position { round, line }
        } else {
            Position { round: round + 1, line: 0 }
        }
    }

    fn after(&self, place: Position) -> Position {
        if place.line + 1 < self.times.len() {
            Position { line: place.line + 1, ..place }
        } else {
            Position { round: place.round + 1, line: 0 }
        }
    }
}

/// The opportunities of one direction, and how far they are used up.
#[derive(Debug)]
pub(crate) struct Opportunities {
    light: Endless,
    heavy: Option<Endless>,
    ramp: Duration,
    /// When the present busy period began.
    busy_since: Instant,
    /// The opportunity in use: of the heavy trace?, where, and the octets left in it.
    heavy_now: bool,
    place: Position,
    left: u64,
}

impl Opportunities {
    pub(super) fn new(config: &config::Opportunities, ramp: Duration) -> Opportunities {
        let (light, heavy) = match config {
            config::Opportunities::One(times) => (Endless::new(times), None),
            config::Opportunities::Pair(pair) => (Endless::new(&pair.light), Some(Endless::new(&pair.heavy))),
        };
        let place = light.first_from(Instant::ZERO);
        Opportunities {
            light,
            heavy,
            ramp,
            busy_since: Instant::ZERO,
            heavy_now: false,
            place,
            left: OPPORTUNITY,
        }
    }

    fn trace(&self) -> &Endless {
        self.heavy.as_ref().filter(|_| self.heavy_now).unwrap_or(&self.light)
    }

    /// When a packet that counts for `octets` has been sent whole. It enters at `now`; `idle` if nothing waits before it.
    #[inline(never)]
    pub(crate) fn send(&mut self, now: Instant, octets: u64, idle: bool) -> Instant {
        if idle {
            if self.heavy_now || self.trace().time(self.place) < now {
                // What nobody used is lost, and a busy period begins with the light trace.
                self.begin(now);
            }
            self.busy_since = now;
        }
        let mut missing = octets;
        while missing > self.left {
            missing -= self.left;
            self.advance();
        }
        self.left -= missing;
        let sent = self.trace().time(self.place);
        if self.left == 0 {
            self.advance();
        }
        sent
    }

    /// Nothing waits: the next opportunity is the first one from `now` on.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.heavy_now = false;
        (self.place, self.left) = (self.light.first_from(now), OPPORTUNITY);
    }

    fn advance(&mut self) {
        let time = self.trace().time(self.place);
        self.place = self.trace().after(self.place);
        self.left = OPPORTUNITY;
        let next = self.trace().time(self.place);
        if let (Some(heavy), false) = (&self.heavy, self.heavy_now)
            && next.since(self.busy_since) >= self.ramp
        {
            // From where the light trace ends, or from the end of the ramp if that is later.
            self.place = heavy.first_from(time.max(self.busy_since + self.ramp));
            self.heavy_now = true;
        }
    }
}
