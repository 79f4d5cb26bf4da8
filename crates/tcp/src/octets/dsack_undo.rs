//! Undo by D-SACK where recovery counts octets (RFC 3708): when everything that was sent again since the window was reduced
//! is reported as a duplicate, nothing had been lost, and the window is what it was.
//! A circle, of which `mod.rs` says why.
//!
//! `segments/undo.rs` is the same where recovery counts segments.

use airloom_base::Instant;

use super::super::congestion::Prior;
use super::super::ranges::Ranges;
use super::super::sender::Sender;
use super::Octets;

/// What undoing needs.
#[derive(Debug, Default)]
pub(super) struct DsackUndo {
    /// The window before the reduction; nothing: there is nothing to undo.
    prior: Option<Prior>,
    /// What was sent again since, and what of that was reported as a duplicate.
    resent: Ranges,
    duplicated: Ranges,
    /// The network repeats packets: duplicates say nothing on this connection.
    off: bool,
}

impl DsackUndo {
    /// The window is reduced from `prior`.
    pub fn begin(&mut self, prior: Prior) {
        self.prior = (!self.off).then_some(prior);
        self.resent.clear();
        self.duplicated.clear();
    }

    /// There is nothing to undo in this window.
    pub fn give_up(&mut self) {
        self.prior = None;
        self.resent.clear();
        self.duplicated.clear();
    }

    /// `start..end` is sent again.
    pub fn resent(&mut self, start: u64, end: u64) {
        //= RFC 3708 (3, A.3): what is sent again more than once can tell nothing.
        if self.prior.is_some() && self.resent.insert(start, end) < end - start {
            self.give_up();
        }
    }

    /// `left..right` arrived twice. Returns the window to go back to if that was the last of what was sent again.
    fn duplicated(&mut self, left: u64, right: u64) -> Option<Prior> {
        let prior = self.prior?;
        let known = self.resent.containing(left).is_some_and(|r| right <= r.end);
        //= RFC 3708 (3, A.2): known as a duplicate; of another window otherwise, which says nothing of this one.
        if known {
            self.duplicated.insert(left, right);
        }
        //= RFC 3708 (3, B.1): all of it.
        (known && self.duplicated.total() == self.resent.total()).then(|| {
            self.give_up();
            prior
        })
    }
}

impl Octets {
    /// The window is about to be reduced.
    pub fn dsack_undo_begins(&mut self, tx: &mut Sender) {
        if tx.config().undo_by_dsack && tx.agreed().sack {
            self.dsack_undo.begin(tx.window.prior());
        }
    }

    /// An acknowledgement of `ack` reports a duplicate; nothing else of it was taken in yet.
    pub fn dsack_arrives(&mut self, tx: &mut Sender, now: Instant, left: u64, right: u64) {
        if !tx.config().undo_by_dsack {
            return;
        }
        if right > tx.snd.resent_below() {
            //= RFC 3708 (3, A.4): it was not sent again: the network repeats packets.
            self.dsack_undo.off = true;
            self.dsack_undo.give_up();
        } else if left == tx.snd.una() && self.board.high_sacked().is_none() {
            //= RFC 3708 (3, A.1): a whole window of acknowledgements was lost: the way back is congested.
            self.dsack_undo.give_up();
        } else if let Some(prior) = self.dsack_undo.duplicated(left, right) {
            self.resume_after_spurious(tx, now);
            tx.undo_reduction(prior);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIOR: Prior = Prior { cwnd: 10_000, ssthresh: u64::MAX };

    fn undo() -> DsackUndo {
        let mut undo = DsackUndo::default();
        undo.begin(PRIOR);
        undo.resent(1000, 2000);
        undo.resent(3000, 4000);
        undo
    }

    #[test]
    fn rfc_3708_3_b_all_that_was_sent_again_must_be_reported() {
        let mut u = undo();
        assert_eq!(u.duplicated(1000, 2000), None);
        assert_eq!(u.duplicated(1000, 2000), None, "the same twice");
        assert_eq!(u.duplicated(500, 600), None, "of another window");
        assert_eq!(u.duplicated(3000, 4000), Some(PRIOR));
        assert_eq!(u.duplicated(3000, 4000), None, "once");
    }

    #[test]
    fn rfc_3708_3_a_2_a_duplicate_of_another_window_undoes_nothing_before_something_is_sent_again() {
        let mut u = DsackUndo::default();
        u.begin(PRIOR);
        assert_eq!(u.duplicated(500, 600), None);
        u.resent(1000, 2000);
        assert_eq!(u.duplicated(1000, 2000), Some(PRIOR));
    }

    #[test]
    fn rfc_3708_3_a_3_what_is_sent_again_twice_ends_it() {
        let mut u = undo();
        u.resent(1500, 1600);
        assert_eq!(u.duplicated(1000, 2000).or(u.duplicated(3000, 4000)), None);
    }
}
