//! People who cross the path.

use airloom_base::random::Fate;
use airloom_base::{Duration, Instant};

use super::config::People;

/// Blocked and free moments, walked forward. Which moment is the n-th, and how long it is, follows from the draws alone.
#[derive(Clone, Debug)]
pub(super) struct Crossings {
    people: People,
    draws: Fate,
    /// The visit that is under way or comes next, and when it begins.
    visit: u64,
    begin: Instant,
    /// The moment that ends (excluded) at `end`, and its number in the visit.
    moment: u64,
    end: Instant,
}

impl Crossings {
    pub(super) fn new(people: People, draws: Fate) -> Crossings {
        let begin = Instant::ZERO + people.from;
        let mut this = Crossings { people, draws, visit: 0, begin, moment: 0, end: begin };
        this.end = begin + this.length();
        this
    }

    /// The visit begins with somebody in the path.
    fn is_blocked(&self) -> bool {
        self.moment.is_multiple_of(2)
    }

    fn length(&self) -> Duration {
        let mean = if self.is_blocked() { self.people.blocked } else { self.people.free };
        // A visit has far fewer moments than that.
        let place = self.visit << 32 | self.moment;
        let length = -(1.0 - self.draws.nth(place)).ln() * mean.as_secs_f64();
        Duration::from_secs_f64(length).max(Duration::from_nanos(1))
    }

    /// How much of the field they take at a time, dB. Times do not decrease from call to call.
    pub(super) fn loss(&mut self, at: Instant) -> f64 {
        if let Some(every) = self.people.every
            && at >= self.begin + every
        {
            let visits = (at - self.begin).as_nanos() / every.as_nanos();
            self.visit += visits;
            self.begin += every * visits;
            self.moment = 0;
            self.end = self.begin + self.length();
        }
        if at < self.begin || at >= self.begin + self.people.lasting {
            return 0.0;
        }
        while at >= self.end {
            self.moment += 1;
            self.end += self.length();
        }
        if self.is_blocked() { self.people.depth } else { 0.0 }
    }
}
