//! Who receives: what is in order, and what the other side is told.

use super::frame::{Acknowledged, Span};
use super::number::{MODULUS, Number};

/// The receiving half of the repetition procedure.
#[derive(Debug, getset::CopyGetters)]
pub struct Receiver {
    /// Index of the first frame that is missing.
    expected: u64,
    /// What came of the frames from there on.
    ahead: Box<[Option<Span>; MODULUS as usize]>,
    /// Index of the frame that came last; `None`: it had no number, or none came yet.
    last: Option<u64>,
    /// Place in the stream up to which it is complete.
    #[getset(get_copy = "pub")]
    complete: u64,
}

/// What a frame with user data brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The stream is complete up to this place.
    UpTo(u64),
    /// It lies behind a gap.
    Ahead,
    /// It had come before.
    Duplicate,
}

impl Receiver {
    /// A receiver of a call that begins at this place of the stream.
    pub fn new(complete: u64) -> Receiver {
        Receiver { expected: 0, ahead: Box::new([None; MODULUS as usize]), last: None, complete }
    }

    /// An intact frame with user data. Frames further ahead than any window are taken for late copies.
    pub fn receive(&mut self, number: Number, span: Span) -> Arrival {
        let Some(distance) = number.after(self.expected) else {
            self.last = None;
            return Arrival::Duplicate;
        };
        if distance > MODULUS / 2 {
            self.last = self.expected.checked_sub(MODULUS - distance);
            return Arrival::Duplicate;
        }
        self.last = Some(self.expected + distance);
        let place = &mut self.ahead[((self.expected + distance) % MODULUS) as usize];
        if place.is_some() {
            return Arrival::Duplicate;
        }
        *place = Some(span);
        let mut complete = None;
        while let Some(next) = self.ahead[(self.expected % MODULUS) as usize].take() {
            complete = Some(next.end());
            self.complete = next.end();
            self.expected += 1;
        }
        complete.map_or(Arrival::Ahead, Arrival::UpTo)
    }

    /// An intact frame without user data.
    pub fn receive_fill(&mut self) {
        self.last = None;
    }

    /// REQ.
    pub fn request(&self) -> Number {
        Number::of(self.expected)
    }

    /// ACK.
    pub fn acknowledged(&self) -> Acknowledged {
        match self.last {
            None => Acknowledged { number: Number::NONE, flag: true },
            Some(index) => {
                Acknowledged { number: Number::of(index), flag: (index / MODULUS).is_multiple_of(2) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(index: u64) -> Span {
        Span { from: index * 73, len: 73 }
    }

    #[test]
    fn a_gap_holds_the_stream_and_is_asked_for() {
        let mut receiver = Receiver::new(0);
        let mut take = |index: u64| {
            let arrival = receiver.receive(Number::of(index), span(index));
            (arrival, receiver.request().get(), receiver.acknowledged().number.get())
        };
        assert_eq!(take(0), (Arrival::UpTo(73), 2, 1));
        assert_eq!(take(2), (Arrival::Ahead, 2, 3));
        assert_eq!(take(2), (Arrival::Duplicate, 2, 3));
        assert_eq!(take(1), (Arrival::UpTo(3 * 73), 4, 2));
        assert_eq!(take(0), (Arrival::Duplicate, 4, 1));
    }

    #[test]
    fn what_came_last_is_told_with_its_round() {
        let mut receiver = Receiver::new(0);
        assert_eq!(receiver.acknowledged(), Acknowledged { number: Number::NONE, flag: true });
        for index in 0..130 {
            receiver.receive(Number::of(index), span(index));
        }
        assert_eq!(receiver.acknowledged(), Acknowledged { number: Number::new(3), flag: false });
        receiver.receive(Number::of(126), span(126));
        assert_eq!(receiver.acknowledged(), Acknowledged { number: Number::new(127), flag: true });
        receiver.receive_fill();
        assert_eq!(receiver.acknowledged().number, Number::NONE);
    }
}
