//! Who sends: which frame leaves next.

use std::collections::VecDeque;

use airloom_base::{Duration, Instant};

use super::frame::Span;
use super::number::Number;

/// A frame that was sent and is not known to have arrived.
#[derive(Clone, Copy, Debug)]
struct Sent {
    span: Span,
    /// When it left for the last time.
    at: Instant,
    attempts: u32,
    is_acknowledged: bool,
    /// Something that left later has arrived.
    is_missing: bool,
}

/// What leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Its number; none if there is nothing to send.
    pub number: Number,
    /// The user's octets.
    pub span: Span,
    /// Which transmission, from 1; 0 if there is nothing to send.
    pub attempt: u32,
}

/// The sending half of the repetition procedure.
///
/// Read from the monitor's log (Kojima and others 2000, Fig. 2): first what is missing is sent again, a round trip after it
/// left at the earliest; then comes what is new, within the window; then, rather than nothing, what may still be on its way.
/// Missing is what is not acknowledged though something that left later is: frames keep their order on the air.
#[derive(Debug)]
pub struct Sender {
    window: usize,
    /// A round trip: what is unacknowledged for so long has to be sent again.
    patience: Duration,
    /// Index of the first frame in `sent`.
    base: u64,
    sent: VecDeque<Sent>,
}

impl Sender {
    /// A sender with at most `window` frames under way.
    pub fn new(window: u8, patience: Duration) -> Sender {
        Sender { window: usize::from(window), patience, base: 0, sent: VecDeque::new() }
    }

    /// Another round trip, as the rate has changed.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Has everything that was sent arrived?
    pub fn is_idle(&self) -> bool {
        self.sent.is_empty()
    }

    /// Place in the stream of the first octet that is not known to have arrived, if one is under way.
    pub fn oldest(&self) -> Option<u64> {
        self.sent.front().map(|sent| sent.span.from)
    }

    /// What leaves at `now`; `fresh` takes the next octets of the stream, if there are some.
    pub fn next(&mut self, now: Instant, fresh: impl FnOnce() -> Option<Span>) -> Next {
        let waiting = || self.sent.iter().enumerate().filter(|(_, sent)| !sent.is_acknowledged);
        let is_due = |sent: &Sent| sent.is_missing && now.since(sent.at) >= self.patience;
        if let Some((place, _)) = waiting().find(|(_, sent)| is_due(sent)) {
            return self.repeat(place, now);
        }
        // The one that waits longest, the oldest of several: so repetitions go round.
        let stalest = waiting().min_by_key(|(_, sent)| sent.at).map(|(place, _)| place);
        if self.sent.len() < self.window
            && let Some(span) = fresh()
        {
            self.sent.push_back(Sent {
                span,
                at: now,
                attempts: 1,
                is_acknowledged: false,
                is_missing: false,
            });
            let number = Number::of(self.base + self.sent.len() as u64 - 1);
            return Next { number, span, attempt: 1 };
        }
        match stalest {
            Some(place) => self.repeat(place, now),
            None => Next { number: Number::NONE, span: Span::default(), attempt: 0 },
        }
    }

    fn repeat(&mut self, place: usize, now: Instant) -> Next {
        let sent = &mut self.sent[place];
        (sent.at, sent.is_missing) = (now, false);
        sent.attempts = sent.attempts.saturating_add(1);
        Next { number: Number::of(self.base + place as u64), span: sent.span, attempt: sent.attempts }
    }

    /// The other side said which number it wants next, and which it received last.
    pub fn take(&mut self, request: Number, acknowledged: Number) {
        let in_window = |number: Number| {
            let place = number.after(self.base)? as usize;
            (place <= self.sent.len()).then_some(place)
        };
        let (wanted, received) = (in_window(request), in_window(acknowledged));
        if let Some(sent) = received.and_then(|place| self.sent.get_mut(place)) {
            sent.is_acknowledged = true;
            // Frames keep their order on the air.
            let at = sent.at;
            self.sent
                .iter_mut()
                .filter(|earlier| earlier.at < at)
                .for_each(|earlier| earlier.is_missing = true);
        }
        for _ in 0..wanted.unwrap_or(0) {
            self.sent.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    /// A sender that is fed full frames, `left` of them yet, and what it sends in each interval.
    struct Fed {
        sender: Sender,
        left: u64,
        now: u64,
    }

    impl Fed {
        fn new(window: u8, left: u64) -> Fed {
            Fed { sender: Sender::new(window, Duration::from_millis(60)), left, now: 0 }
        }

        fn step(&mut self) -> u8 {
            let at = ms(self.now);
            self.now += 10;
            let left = &mut self.left;
            let fresh = || {
                *left = left.checked_sub(1)?;
                Some(Span { from: 0, len: 73 })
            };
            self.sender.next(at, fresh).number.get()
        }

        fn steps(&mut self, count: usize) -> Vec<u8> {
            (0..count).map(|_| self.step()).collect()
        }
    }

    #[test]
    fn with_nothing_new_the_unacknowledged_go_round_oldest_first() {
        let mut fed = Fed::new(16, 2);
        assert_eq!(fed.steps(6), [1, 2, 1, 2, 1, 2]);
        fed.sender.take(Number::new(2), Number::new(1));
        assert_eq!(fed.steps(2), [2, 2]);
        fed.sender.take(Number::new(3), Number::new(2));
        assert!(fed.sender.is_idle());
        assert_eq!(fed.step(), 0);
    }

    #[test]
    fn what_is_missing_after_a_round_trip_comes_before_what_is_new() {
        let mut fed = Fed::new(16, 100);
        assert_eq!(fed.steps(7), [1, 2, 3, 4, 5, 6, 7]);
        // Number 1 was lost, 2 arrived and so on: each answer comes six intervals after its frame.
        fed.sender.take(Number::new(1), Number::new(2));
        assert_eq!(fed.step(), 1);
        fed.sender.take(Number::new(1), Number::new(3));
        assert_eq!(fed.step(), 8);
        // What arrives later than the repetition left says something of it; what left before says nothing.
        (4..=7).for_each(|number| fed.sender.take(Number::new(1), Number::new(number)));
        assert_eq!(fed.steps(5), [9, 10, 11, 12, 13]);
        fed.sender.take(Number::new(1), Number::new(8));
        assert_eq!(fed.step(), 1);
    }

    #[test]
    fn no_more_than_the_window_is_under_way() {
        let mut fed = Fed::new(4, 100);
        assert_eq!(fed.steps(6), [1, 2, 3, 4, 1, 2]);
        // One in the middle does not open it, the first one does.
        fed.sender.take(Number::new(1), Number::new(3));
        assert_eq!(fed.step(), 4);
        fed.sender.take(Number::new(2), Number::new(1));
        assert_eq!(fed.step(), 5);
    }

    #[test]
    fn numbers_outside_the_window_acknowledge_nothing() {
        let mut fed = Fed::new(16, 3);
        fed.steps(3);
        fed.sender.take(Number::new(90), Number::new(5));
        fed.sender.take(Number::NONE, Number::NONE);
        assert_eq!(fed.steps(3), [1, 2, 3]);
        // All of them, and around the end of the numbers.
        fed.sender.take(Number::new(4), Number::new(3));
        assert!(fed.sender.is_idle());
    }
}
