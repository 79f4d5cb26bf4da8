//! Without SACK: every duplicate acknowledgement is taken for the report of one segment (Linux).
//!
//! RFC 5681 inflates the window by a segment per duplicate and deflates it later; here the segment counts as arrived
//! instead, with the same effect on what may be sent, and PRR, RACK-like marking and undo work as with SACK.

use super::super::send::mark;
use super::super::sender::{Mode, Sender};
use super::Segments;
use super::acked::News;

impl Segments {
    /// A duplicate acknowledgement: one more segment has left the network.
    pub(super) fn count_duplicate(&mut self, tx: &Sender) {
        let before = self.sacked_out;
        self.sacked_out += 1;
        self.limit_duplicates(tx);
        self.delivered += self.sacked_out.saturating_sub(before);
    }

    /// New data was acknowledged: the duplicates counted for it are gone.
    pub(super) fn duplicates_acked(&mut self, tx: &Sender, news: &mut News) {
        // One segment filled the hole, the others had been counted.
        self.delivered += news.acked.saturating_sub(self.sacked_out).max(1);
        self.sacked_out = self.sacked_out.saturating_sub(news.acked - 1);
        self.limit_duplicates(tx);
        if news.resent_acked {
            // Without SACK nobody knows which copy it was.
            news.original = false;
        }
    }

    /// No more segments can have arrived than are outstanding beside what is lost.
    fn limit_duplicates(&mut self, tx: &Sender) {
        let out = tx.snd.segments_out();
        let holes = self.lost_out.max(1).min(out);
        if self.sacked_out + holes > out {
            self.sacked_out = out - holes;
            self.note_reordering_without_sack(out);
        }
    }

    pub(super) fn forget_duplicates(&mut self, tx: &Sender) {
        if !tx.agreed().sack {
            self.sacked_out = 0;
        }
    }

    //= RFC 5681 (3.2): three duplicates; RFC 6582 (3.2, step 3): a partial acknowledgement shows the next loss.
    pub(super) fn mark_head_lost(&mut self, tx: &mut Sender, advanced: bool) {
        let found = match tx.mode() {
            Mode::Recovery => advanced,
            Mode::Loss => false,
            _ => self.sacked_out >= self.reordering,
        };
        if found && tx.snd.sent().front().is_some_and(|s| !s.has(mark::LOST)) {
            // Without SACK no option takes of the room.
            self.split_segment(tx, 0, tx.snd.end_of(tx.snd.una(), tx.snd.mss()));
            if let Some(next) = tx.snd.sent_mut(1) {
                next.clear(mark::JOINED);
            }
            self.mark_lost(tx, 0);
        }
    }
}
