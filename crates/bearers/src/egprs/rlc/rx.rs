//! The receiving side: V(R), V(Q), V(N).

use crate::egprs::wire::header::Split;
use crate::egprs::wire::{AckNack, SNS};

/// What a block that came is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Wanted, and complete now.
    New,
    /// Half of a block.
    Half,
    /// It was here before, or lies before the window.
    Duplicate,
}

const FIRST: u8 = 1;
const SECOND: u8 = 2;
const WHOLE: u8 = FIRST | SECOND;

/// The receiver.
#[derive(Debug)]
pub struct Rx {
    /// V(Q): the lowest not received.
    v_q: u16,
    /// V(R): one more than the highest received.
    v_r: u16,
    /// V(N), as halves.
    v_n: Box<[u8; SNS as usize]>,
    window: u16,
    /// Where the next partial bitmap begins.
    next_partial: Option<u16>,
    /// Missing blocks are given up so many periods after they were noticed; `None`: never.
    patience: Option<u64>,
    /// When a block was noticed to be missing.
    noticed: Vec<u64>,
    /// Blocks given up.
    pub abandoned: u64,
}

impl Rx {
    /// At the beginning of a flow.
    pub fn new(window: u16, patience: Option<u64>) -> Self {
        let noticed = if patience.is_some() { vec![0; SNS.into()] } else { Vec::new() };
        let v_n = Box::new([0; SNS as usize]);
        Rx { v_q: 0, v_r: 0, v_n, window, next_partial: None, patience, noticed, abandoned: 0 }
    }
    /// A new flow begins.
    pub fn restart(&mut self) {
        (self.v_q, self.v_r, self.next_partial) = (0, 0, None);
        self.v_n.fill(0);
    }
    /// Is any block below the highest received missing?
    pub const fn has_gap(&self) -> bool {
        self.v_q != self.v_r
    }

    /// Is it the highest received?
    pub const fn is_newest(&self, bsn: u16) -> bool {
        (bsn + 1) % SNS == self.v_r
    }

    const fn distance(&self, bsn: u16) -> u16 {
        (bsn + SNS - self.v_q) % SNS
    }

    /// A block came in period `now`.
    pub fn receive(&mut self, bsn: u16, split: Split, now: u64) -> Arrived {
        let bsn = bsn % SNS;
        if self.distance(bsn) >= self.window {
            // Not told from V(Q): a window may be half of all numbers, and what was acknowledged then lies as far from it.
            let is_ahead = (bsn + SNS - self.v_r) % SNS < SNS / 2;
            if self.patience.is_none() || !is_ahead {
                //= TS 44.060 (9.1.9): outside of the window: it was received and acknowledged before.
                return Arrived::Duplicate;
            }
            // The sender gave up what lies before: the window follows it, and no further than it has to.
            while self.distance(bsn) >= self.window {
                self.skip();
            }
        }
        let slot = &mut self.v_n[usize::from(bsn)];
        let before = *slot;
        *slot |= match split {
            Split::Whole => WHOLE,
            Split::First => FIRST,
            Split::Second => SECOND,
        };
        if *slot == before {
            return Arrived::Duplicate;
        }
        if *slot != WHOLE {
            return Arrived::Half;
        }
        let reach = (self.v_r + SNS - self.v_q) % SNS;
        let distance = self.distance(bsn);
        if distance >= reach {
            if self.patience.is_some() {
                (reach..distance).for_each(|d| self.noticed[usize::from((self.v_q + d) % SNS)] = now);
            }
            self.v_r = (bsn + 1) % SNS;
        }
        self.advance();
        self.give_up(now);
        Arrived::New
    }

    fn advance(&mut self) {
        while self.v_q != self.v_r && self.v_n[usize::from(self.v_q)] == WHOLE {
            self.step();
        }
    }

    fn step(&mut self) {
        self.v_n[usize::from(self.v_q)] = 0;
        self.v_q = (self.v_q + 1) % SNS;
    }

    /// Goes past V(Q), received or not.
    fn skip(&mut self) {
        if self.v_n[usize::from(self.v_q)] != WHOLE {
            self.abandoned += 1;
        }
        if self.v_q == self.v_r {
            self.v_r = (self.v_r + 1) % SNS;
        }
        self.step();
        self.advance();
    }

    fn give_up(&mut self, now: u64) {
        let Some(patience) = self.patience else { return };
        while self.v_q != self.v_r && self.noticed[usize::from(self.v_q)] + patience <= now {
            self.skip();
        }
    }

    /// What to report: from the window's beginning, or (`next`) from where the last report ended. The receiver of
    /// the report learns what fits; [`told`](Rx::told) says how much that was.
    pub fn report(&mut self, next: bool, now: u64) -> (AckNack, u16) {
        self.give_up(now);
        let in_window = |bsn: u16| self.distance(bsn) < (self.v_r + SNS - self.v_q) % SNS;
        let from = self.next_partial.filter(|bsn| next && in_window(*bsn));
        //= TS 44.060 (9.1.8.2): BOW: the bitmap begins behind V(Q), which is missing.
        let ssn = from.unwrap_or((self.v_q + 1) % SNS);
        let count = if self.has_gap() { (self.v_r + SNS - ssn) % SNS } else { 0 };
        let bitmap = (0..count).map(|n| self.v_n[usize::from((ssn + n) % SNS)] == WHOLE).collect();
        let report = AckNack {
            is_final: false,
            beginning_of_window: from.is_none(),
            end_of_window: true,
            ssn,
            bitmap,
        };
        (report, ssn)
    }

    /// The last report, which began at `ssn`, held `count` bits; `to_end`: all there was.
    pub fn told(&mut self, ssn: u16, count: usize, to_end: bool) {
        self.next_partial = (!to_end).then(|| (ssn + count as u16) % SNS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn come(rx: &mut Rx, numbers: impl IntoIterator<Item = u16>) -> Vec<Arrived> {
        numbers.into_iter().map(|bsn| rx.receive(bsn, Split::Whole, 0)).collect()
    }

    #[test]
    fn a_report_names_what_is_missing() {
        let mut rx = Rx::new(64, None);
        come(&mut rx, [0, 1, 3, 4, 6]);
        let (report, _) = rx.report(false, 0);
        assert_eq!((report.ssn, report.beginning_of_window, report.end_of_window), (3, true, true));
        assert_eq!(report.bitmap, [true, true, false, true]);
        come(&mut rx, [2, 5]);
        let (report, _) = rx.report(false, 0);
        assert_eq!((report.ssn, report.bitmap.len()), (8, 0), "all has come up to 6");
    }

    #[test]
    fn a_next_partial_bitmap_goes_on_where_the_last_ended() {
        let mut rx = Rx::new(384, None);
        come(&mut rx, (1..301).filter(|n| n % 2 == 0));
        let (first, ssn) = rx.report(false, 0);
        assert_eq!((ssn, first.bitmap.len()), (1, 300));
        rx.told(ssn, 136, false);
        let (next, ssn) = rx.report(true, 0);
        assert_eq!((ssn, next.beginning_of_window, next.bitmap.len()), (137, false, 164));
        rx.told(ssn, 164, true);
        assert!(rx.report(true, 0).0.beginning_of_window);
    }

    #[test]
    fn two_halves_are_a_block() {
        let mut rx = Rx::new(64, None);
        assert_eq!(rx.receive(0, Split::Second, 0), Arrived::Half);
        assert_eq!(rx.receive(0, Split::Second, 0), Arrived::Duplicate);
        assert!(!rx.has_gap(), "V(R) waits for the whole");
        assert_eq!(rx.receive(0, Split::First, 0), Arrived::New);
        assert_eq!(rx.receive(0, Split::Whole, 0), Arrived::Duplicate);
    }

    #[test]
    fn what_the_sender_still_repeats_is_not_given_up_with_what_lies_before() {
        let mut rx = Rx::new(64, Some(10));
        come(&mut rx, 1..64);
        // 0 is out of reach now; 64, the first missing behind it, is not.
        assert_eq!(come(&mut rx, [65, 64]), [Arrived::New, Arrived::New]);
        assert_eq!((rx.abandoned, rx.has_gap()), (1, false));
    }

    #[test]
    fn the_largest_window_follows_the_sender_too() {
        let mut rx = Rx::new(1024, Some(10));
        come(&mut rx, 1..1024);
        assert_eq!(come(&mut rx, [1024]), [Arrived::New]);
        assert_eq!((rx.abandoned, rx.has_gap()), (1, false));
        assert_eq!(come(&mut rx, [1, 1024]), [Arrived::Duplicate; 2], "they lie before the window");
    }

    #[test]
    fn without_patience_the_window_stays_and_with_it_the_receiver_goes_on() {
        let mut persistent = Rx::new(64, None);
        come(&mut persistent, 1..64);
        assert_eq!(come(&mut persistent, [64]), [Arrived::Duplicate]);
        let mut limited = Rx::new(64, Some(10));
        come(&mut limited, 1..64);
        assert_eq!(come(&mut limited, [64]), [Arrived::New]);
        assert_eq!((limited.abandoned, limited.has_gap()), (1, false));
        assert_eq!(limited.receive(70, Split::Whole, 5), Arrived::New);
        assert_eq!(limited.receive(71, Split::Whole, 14), Arrived::New);
        assert!(limited.has_gap());
        limited.report(false, 15);
        assert_eq!((limited.abandoned, limited.has_gap()), (6, false));
    }
}
