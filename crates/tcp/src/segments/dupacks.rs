//! Without SACK: every duplicate acknowledgement is taken for the report of one segment (Linux).
//!
//! RFC 5681 inflates the window by a segment per duplicate and deflates it later; here the segment counts as arrived
//! instead, with the same effect on what may be sent, and PRR, RACK-like marking and undo work as with SACK.

use super::super::connection::{Connection, Mode};
use super::super::send::mark;
use super::acked::News;

impl Connection {
    /// A duplicate acknowledgement: one more segment has left the network.
    pub(super) fn count_duplicate(&mut self) {
        let before = self.segments.sacked_out;
        self.segments.sacked_out += 1;
        self.limit_duplicates();
        self.segments.delivered += self.segments.sacked_out.saturating_sub(before);
    }

    /// New data was acknowledged: the duplicates counted for it are gone.
    pub(super) fn duplicates_acked(&mut self, news: &mut News) {
        let books = &mut self.segments;
        // One segment filled the hole, the others had been counted.
        books.delivered += news.acked.saturating_sub(books.sacked_out).max(1);
        books.sacked_out = books.sacked_out.saturating_sub(news.acked - 1);
        self.limit_duplicates();
        if news.resent_acked {
            // Without SACK nobody knows which copy it was.
            news.original = false;
        }
    }

    /// No more segments can have arrived than are outstanding beside what is lost.
    fn limit_duplicates(&mut self) {
        let out = self.segments_out();
        let holes = self.segments.lost_out.max(1).min(out);
        if self.segments.sacked_out + holes > out {
            self.segments.sacked_out = out - holes;
            self.note_reordering_without_sack(out);
        }
    }

    pub(super) fn forget_duplicates(&mut self) {
        if !self.agreed.sack {
            self.segments.sacked_out = 0;
        }
    }

    //= RFC 5681 (3.2): three duplicates; RFC 6582 (3.2, step 3): a partial acknowledgement shows the next loss.
    pub(super) fn mark_head_lost(&mut self, advanced: bool) {
        let found = match self.mode {
            Mode::Recovery => advanced,
            Mode::Loss => false,
            _ => self.segments.sacked_out >= self.segments.reordering,
        };
        if found && self.snd.sent.front().is_some_and(|s| !s.has(mark::LOST)) {
            self.split_head();
            if let Some(next) = self.snd.sent.get_mut(1) {
                next.clear(mark::JOINED);
            }
            self.mark_lost(0);
        }
    }
}
