//! What is known of each segment, and the counters over it.

use super::super::connection::Connection;
use super::super::send::{Sent, mark};
use super::Next;

impl Connection {
    /// Index of the first segment that ends above `seq`.
    pub(super) fn index_above(&self, seq: u64) -> usize {
        let sent = &self.snd.sent;
        // Nearly all segments are full ones, which says where it is.
        let guess = (seq.saturating_sub(self.snd.una) / self.snd.mss) as usize;
        let ends_above = |index: usize| sent.get(index).is_some_and(|s| s.end > seq);
        if ends_above(guess) && (guess == 0 || !ends_above(guess - 1)) {
            return guess;
        }
        sent.partition_point(|s| s.end <= seq)
    }

    /// The first octet of a segment that is not acknowledged.
    pub(crate) fn start_of(&self, index: usize) -> u64 {
        match index.checked_sub(1).and_then(|i| self.snd.sent.get(i)) {
            Some(before) => before.end.max(self.snd.una),
            None => self.snd.una,
        }
    }

    /// The segment at `index` is marked lost; says whether that is news.
    pub(super) fn mark_lost(&mut self, index: usize) {
        let start = self.start_of(index);
        let books = &mut self.segments;
        let Some(segment) = self.snd.sent.get_mut(index) else { return };
        if segment.has(mark::SACKED) {
            return;
        }
        if segment.has(mark::LOST) {
            if segment.has(mark::RESENT) {
                // A retransmission is lost.
                segment.clear(mark::RESENT);
                books.resent_out -= 1;
                books.marked += 1;
            }
        } else {
            segment.set(mark::LOST);
            books.lost_out += 1;
            books.marked += 1;
        }
        books.resend_from = books.resend_from.min(start);
    }

    /// Nothing is marked lost any more.
    pub(super) fn unmark_losses(&mut self) {
        if self.segments.lost_out > 0 {
            for segment in &mut self.snd.sent {
                segment.clear(mark::LOST);
            }
            self.segments.lost_out = 0;
            self.segments.rack.look_again(self.snd.una);
        }
    }

    /// Nothing is reported any more: the receiver may have taken it back (RFC 2018 8).
    pub(super) fn forget_reports(&mut self) {
        for segment in &mut self.snd.sent {
            segment.clear(mark::SACKED);
        }
        self.segments.sacked.clear();
        self.segments.sacked_out = 0;
    }

    /// The next segment to send again: lost, not reported, not under way again.
    pub(super) fn next_to_resend(&mut self) -> Option<usize> {
        if self.segments.resent_out >= self.segments.lost_out {
            return None;
        }
        let mut index = self.index_above(self.segments.resend_from);
        while let Some(segment) = self.snd.sent.get(index) {
            if segment.has(mark::LOST) && !segment.has(mark::SACKED | mark::RESENT) {
                self.segments.resend_from = self.start_of(index);
                return Some(index);
            }
            index += 1;
        }
        self.segments.resend_from = self.snd.nxt;
        None
    }

    /// Has anything outstanding been sent again?
    pub(super) fn any_resent(&self) -> bool {
        self.segments.resent_out > 0 || self.snd.sent.front().is_some_and(|s| s.has(mark::EVER))
    }

    /// Makes two segments of the one at `index`; the first ends at `at`.
    pub(super) fn split_segment(&mut self, index: usize, at: u64) {
        let Some(segment) = self.snd.sent.get(index).copied() else { return };
        if at >= segment.end || at <= self.start_of(index) {
            return;
        }
        self.snd.sent.insert(index, Sent { end: at, ..segment });
        if let Some(second) = self.snd.sent.get_mut(index + 1) {
            second.clear(mark::JOINED);
        }
        // Both halves carry the marks, and both are counted.
        let books = &mut self.segments;
        books.sacked_out += u64::from(segment.has(mark::SACKED));
        books.lost_out += u64::from(segment.has(mark::LOST));
        books.resent_out += u64::from(segment.has(mark::RESENT));
    }

    /// What was lost leaves first, as soon as it may.
    pub(super) fn resend_lost(&mut self) {
        self.segments.next = Next::Lost;
    }

    /// The counters as they follow from the segments; for assertions.
    #[cfg(debug_assertions)]
    pub(super) fn counters_hold(&self) -> bool {
        let count = |m| self.snd.sent.iter().filter(|s| s.has(m)).count() as u64;
        let by_report = !self.agreed.sack || self.segments.sacked_out == count(mark::SACKED);
        by_report
            && self.segments.lost_out == count(mark::LOST)
            && self.segments.resent_out == count(mark::RESENT)
    }
}
