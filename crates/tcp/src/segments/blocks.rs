//! SACK blocks (RFC 2018, 2883): which segments they report, and which duplicates.

use airloom_base::Instant;

use super::super::send::mark;
use super::super::sender::{Mode, Sender, widen};
use super::Segments;
use super::acked::{News, widen_span};

impl Segments {
    /// Takes the blocks of an acknowledgement of `ack`.
    #[inline(never)]
    pub(super) fn take_blocks(
        &mut self,
        tx: &mut Sender,
        now: Instant,
        ack: u64,
        blocks: &[(u32, u32)],
        news: &mut News,
    ) {
        let prior_una = tx.snd.una();
        let wide = |(left, right): (u32, u32)| (widen(prior_una, left), widen(prior_una, right));
        let mut twice = None;
        for (i, block) in blocks.iter().enumerate() {
            let (left, right) = wide(*block);
            if left >= right || right > tx.snd.nxt() {
                continue;
            }
            if i == 0 && self.is_duplicate_report(ack, (left, right), blocks.get(1).map(|b| wide(*b))) {
                self.take_duplicate_report(tx, left, right, prior_una, news);
                twice = Some((left, right)).filter(|_| left >= ack);
                continue;
            }
            self.take_outstanding(tx, now, (left, right), news);
        }
        // What came twice has come, also where the block around it is none of ours, since it reaches beyond what was sent.
        if let Some(block) = twice {
            self.take_outstanding(tx, now, block, news);
        }
        if (tx.mode() != Mode::Loss || self.undo.marker.is_some())
            && let Some(from) = news.late_from.take()
        {
            self.note_reordering(tx, from);
        }
    }

    //= RFC 2883 (4): a first block below the acknowledgement, or inside the second, reports a duplicate.
    fn is_duplicate_report(&self, ack: u64, first: (u64, u64), second: Option<(u64, u64)>) -> bool {
        first.0 < ack || second.is_some_and(|(left, right)| left <= first.0 && first.1 <= right)
    }

    fn take_duplicate_report(
        &mut self,
        tx: &mut Sender,
        left: u64,
        right: u64,
        prior_una: u64,
        news: &mut News,
    ) {
        let segments = (right - left).div_ceil(tx.snd.mss()).max(1);
        self.undo.duplicates += segments;
        //= RFC 3708 (3): more duplicates than were sent again come from the network; they say nothing.
        if self.undo.duplicates > tx.facts.resent {
            return;
        }
        if right <= tx.snd.resent_below() {
            tx.facts.spurious += self.undo.needless.reports(left, right, segments);
        }
        news.dsack = true;
        let of_probe = segments == 1 && self.probe.is_some_and(|p| p.resent && p.end == right);
        news.dsack_of_probe |= of_probe;
        if self.reordered > 0 && !of_probe {
            self.rack.dsack = true;
        }
        let Some(marker) = self.undo.marker.filter(|m| right > *m) else { return };
        let _ = marker;
        if right <= prior_una {
            self.undo.answered(segments);
        } else {
            // A segment that is still outstanding arrived twice.
            let index = tx.snd.index_above(left.max(prior_una));
            if let Some(segment) = tx.snd.sent_mut(index).filter(|s| s.has(mark::EVER)) {
                // Of one that the receiver's window cuts a part is reported each time: what is behind that is under way still.
                if segment.has(mark::RESENT) && segment.end() <= right {
                    segment.clear(mark::RESENT);
                    self.resent_out -= 1;
                }
                self.undo.answered(1);
            }
        }
    }

    fn take_outstanding(
        &mut self,
        tx: &mut Sender,
        now: Instant,
        (left, right): (u64, u64),
        news: &mut News,
    ) {
        let left = left.max(tx.snd.una());
        // An honest peer has at most one range for each segment; see `Scoreboard::has_room`.
        if left < right && self.sacked.count() <= tx.snd.sent().len() {
            self.take_block(tx, now, left, right, news);
        }
    }

    /// One block: what lies wholly inside what was reported so far is reported.
    fn take_block(&mut self, tx: &mut Sender, now: Instant, left: u64, right: u64, news: &mut News) {
        let mut at = left;
        loop {
            let (start, end) = self.sacked.next_gap(at);
            if start >= right {
                return;
            }
            let end = end.min(right);
            let fack = self.fack(tx);
            self.sacked.insert(start, end);
            self.report_segments(tx, now, start, end, fack, news);
            if let Some(rate) = tx.rate() {
                rate.sacked(start, end);
            }
            at = end;
        }
    }

    /// `from..to` is news.
    fn report_segments(
        &mut self,
        tx: &mut Sender,
        now: Instant,
        from: u64,
        to: u64,
        fack: u64,
        news: &mut News,
    ) {
        let mut index = tx.snd.index_above(from);
        let mut start = tx.snd.start_of(index);
        while start < to
            && let Some(segment) = tx.snd.sent().get(index).copied()
        {
            // What lies not within the news may lie within that and what was reported before.
            let whole = (from <= start && segment.end() <= to)
                || self.sacked.containing(start).is_some_and(|r| r.end >= segment.end());
            if whole && !segment.has(mark::SACKED) {
                self.rack_arrived(tx, now, segment.at, segment.end(), segment.has(mark::EVER));
                self.report_segment(tx, index, start, fack, news);
            }
            start = segment.end();
            index += 1;
        }
    }

    fn report_segment(&mut self, tx: &mut Sender, index: usize, start: u64, fack: u64, news: &mut News) {
        let recover = tx.recover();
        let Some(segment) = tx.snd.sent_mut(index) else { return };
        if segment.has(mark::RESENT) {
            // A probe that was not marked lost stays under way.
            if segment.has(mark::LOST) {
                segment.clear(mark::LOST | mark::RESENT);
                self.lost_out -= 1;
                self.resent_out -= 1;
            }
        } else {
            if !segment.has(mark::EVER) {
                if start < fack {
                    news.late(start);
                }
                news.original |= segment.end() <= recover;
                widen_span(&mut news.sacked_sent, segment.at);
            }
            if segment.has(mark::LOST) {
                segment.clear(mark::LOST);
                self.lost_out -= 1;
            }
        }
        segment.set(mark::SACKED);
        self.sacked_out += 1;
        self.delivered += 1;
        news.sacked = true;
    }
}
