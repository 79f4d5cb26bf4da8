//! What is known of each segment, and the counters over it.

use super::super::send::mark;
use super::super::sender::Sender;
use super::Next;
use super::Segments;

impl Segments {
    /// The segment at `index` is marked lost.
    pub(super) fn mark_lost(&mut self, tx: &mut Sender, index: usize) {
        let start = tx.snd.start_of(index);
        let Some(segment) = tx.snd.sent_mut(index) else { return };
        if segment.has(mark::SACKED) {
            return;
        }
        if segment.has(mark::LOST) {
            if segment.has(mark::RESENT) {
                // A retransmission is lost.
                segment.clear(mark::RESENT);
                self.resent_out -= 1;
                self.marked += 1;
            }
        } else {
            segment.set(mark::LOST);
            self.lost_out += 1;
            self.marked += 1;
        }
        self.resend_from = self.resend_from.min(start);
    }

    /// Nothing is marked lost any more.
    pub(super) fn unmark_losses(&mut self, tx: &mut Sender) {
        if self.lost_out > 0 {
            tx.snd.clear_marks(mark::LOST);
            self.lost_out = 0;
            self.rack.look_again(tx.snd.una());
        }
    }

    /// Nothing is reported any more: the receiver may have taken it back (RFC 2018 8).
    pub(super) fn forget_reports(&mut self, tx: &mut Sender) {
        tx.snd.clear_marks(mark::SACKED);
        self.sacked.clear();
        self.sacked_out = 0;
    }

    /// The next segment to send again: lost, not reported, not under way again.
    pub(super) fn next_to_resend(&mut self, tx: &Sender) -> Option<usize> {
        if self.resent_out >= self.lost_out {
            return None;
        }
        let mut index = tx.snd.index_above(self.resend_from);
        while let Some(segment) = tx.snd.sent().get(index) {
            if segment.has(mark::LOST) && !segment.has(mark::SACKED | mark::RESENT) {
                self.resend_from = tx.snd.start_of(index);
                return Some(index);
            }
            index += 1;
        }
        self.resend_from = tx.snd.nxt();
        None
    }

    /// Has anything outstanding been sent again?
    pub(super) fn any_resent(&self, tx: &Sender) -> bool {
        self.resent_out > 0 || tx.snd.sent().front().is_some_and(|s| s.has(mark::EVER))
    }

    /// Makes two segments of the one at `index`; the first ends at `at`.
    pub(super) fn split_segment(&mut self, tx: &mut Sender, index: usize, at: u64) {
        let Some(segment) = tx.snd.sent().get(index).copied() else { return };
        if at >= segment.end() || at <= tx.snd.start_of(index) {
            return;
        }
        tx.snd.split_sent(index, at);
        if let Some(second) = tx.snd.sent_mut(index + 1) {
            second.clear(mark::JOINED);
        }
        // Both halves carry the marks, and both are counted.
        self.sacked_out += u64::from(segment.has(mark::SACKED));
        self.lost_out += u64::from(segment.has(mark::LOST));
        self.resent_out += u64::from(segment.has(mark::RESENT));
    }

    /// What was lost leaves first, as soon as it may.
    pub(super) fn resend_lost(&mut self) {
        self.next = Next::Lost;
    }

    /// The counters as they follow from the segments; for assertions.
    #[cfg(debug_assertions)]
    pub(super) fn counters_hold(&self, tx: &Sender) -> bool {
        let count = |m| tx.snd.sent().iter().filter(|s| s.has(m)).count() as u64;
        let by_report = !tx.agreed().sack || self.sacked_out == count(mark::SACKED);
        by_report && self.lost_out == count(mark::LOST) && self.resent_out == count(mark::RESENT)
    }
}
