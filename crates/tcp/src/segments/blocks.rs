//! SACK blocks (RFC 2018, 2883): which segments they report, and which duplicates.

use airloom_base::Instant;

use super::super::connection::{Connection, Mode, widen};
use super::super::send::mark;
use super::acked::{News, widen_span};

impl Connection {
    /// Takes the blocks of an acknowledgement of `ack`.
    #[inline(never)]
    pub(super) fn take_blocks(&mut self, now: Instant, ack: u64, blocks: &[(u32, u32)], news: &mut News) {
        let prior_una = self.snd.una;
        let wide = |(left, right): (u32, u32)| (widen(prior_una, left), widen(prior_una, right));
        for (i, block) in blocks.iter().enumerate() {
            let (left, right) = wide(*block);
            if left >= right || right > self.snd.nxt {
                continue;
            }
            if i == 0 && self.is_duplicate_report(ack, (left, right), blocks.get(1).map(|b| wide(*b))) {
                self.take_duplicate_report(left, right, prior_una, news);
                continue;
            }
            let left = left.max(prior_una);
            // An honest peer has at most one range for each segment; see `Scoreboard::has_room`.
            if left < right && self.segments.sacked.count() <= self.snd.sent.len() {
                self.take_block(now, left, right, news);
            }
        }
        if (self.mode != Mode::Loss || self.segments.undo.marker.is_some())
            && let Some(from) = news.late_from.take()
        {
            self.note_reordering(from);
        }
    }

    //= RFC 2883 (4): a first block below the acknowledgement, or inside the second, reports a duplicate.
    fn is_duplicate_report(&self, ack: u64, first: (u64, u64), second: Option<(u64, u64)>) -> bool {
        first.0 < ack || second.is_some_and(|(left, right)| left <= first.0 && first.1 <= right)
    }

    fn take_duplicate_report(&mut self, left: u64, right: u64, prior_una: u64, news: &mut News) {
        let segments = (right - left).div_ceil(self.snd.mss).max(1);
        let books = &mut self.segments;
        books.undo.duplicates += segments;
        //= RFC 3708 (3): more duplicates than were sent again come from the network; they say nothing.
        if books.undo.duplicates > self.facts.resent {
            return;
        }
        self.facts.spurious += segments;
        news.dsack = true;
        let of_probe = segments == 1 && books.probe.is_some_and(|p| p.resent && p.end == right);
        news.dsack_of_probe |= of_probe;
        if books.reordered > 0 && !of_probe {
            books.rack.dsack = true;
        }
        let Some(marker) = books.undo.marker.filter(|m| right > *m) else { return };
        let _ = marker;
        if right <= prior_una {
            books.undo.answered(segments);
        } else {
            // A segment that is still outstanding arrived twice.
            let index = self.index_above(left.max(prior_una));
            if let Some(segment) = self.snd.sent.get_mut(index).filter(|s| s.has(mark::EVER)) {
                if segment.has(mark::RESENT) {
                    segment.clear(mark::RESENT);
                    self.segments.resent_out -= 1;
                }
                self.segments.undo.answered(1);
            }
        }
    }

    /// One block: what lies wholly inside what was reported so far is reported.
    fn take_block(&mut self, now: Instant, left: u64, right: u64, news: &mut News) {
        let mut at = left;
        loop {
            let (start, end) = self.segments.sacked.next_gap(at);
            if start >= right {
                return;
            }
            let end = end.min(right);
            let fack = self.fack();
            self.segments.sacked.insert(start, end);
            self.report_segments(now, start, end, fack, news);
            if let Some(rate) = &mut self.rate {
                rate.sacked(start, end);
            }
            at = end;
        }
    }

    /// `from..to` is news.
    fn report_segments(&mut self, now: Instant, from: u64, to: u64, fack: u64, news: &mut News) {
        let mut index = self.index_above(from);
        let mut start = self.start_of(index);
        while start < to
            && let Some(segment) = self.snd.sent.get(index).copied()
        {
            // What lies not within the news may lie within that and what was reported before.
            let whole = (from <= start && segment.end <= to)
                || self.segments.sacked.containing(start).is_some_and(|r| r.end >= segment.end);
            if whole && !segment.has(mark::SACKED) {
                self.rack_arrived(now, segment.at, segment.end, segment.has(mark::EVER));
                self.report_segment(index, start, fack, news);
            }
            start = segment.end;
            index += 1;
        }
    }

    fn report_segment(&mut self, index: usize, start: u64, fack: u64, news: &mut News) {
        let Some(segment) = self.snd.sent.get_mut(index) else { return };
        let books = &mut self.segments;
        if segment.has(mark::RESENT) {
            // A probe that was not marked lost stays under way.
            if segment.has(mark::LOST) {
                segment.clear(mark::LOST | mark::RESENT);
                books.lost_out -= 1;
                books.resent_out -= 1;
            }
        } else {
            if !segment.has(mark::EVER) {
                if start < fack {
                    news.late(start);
                }
                news.original |= segment.end <= self.recover;
                widen_span(&mut news.sacked_sent, segment.at);
            }
            if segment.has(mark::LOST) {
                segment.clear(mark::LOST);
                books.lost_out -= 1;
            }
        }
        segment.set(mark::SACKED);
        books.sacked_out += 1;
        books.delivered += 1;
        news.sacked = true;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use airloom_base::service::{Identity, Path};
    use airloom_base::{Body, Cx, Duration, Outbox, Transport};

    use super::super::super::config::{Config, InitialWindow, LossDetection};
    use super::super::super::connection::Books;
    use super::super::super::profile::Profile;
    use super::super::super::wire::{Flags, Header, Options, SackBlocks};
    use super::*;

    /// A sender with ten segments outstanding.
    fn sender(loss_detection: LossDetection) -> (Connection, Outbox) {
        let config = Config {
            loss_detection,
            initial_window: InitialWindow::Segments(10),
            timestamps: false,
            ..Profile::Rfc.settings()
        };
        let address = |n| std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, n));
        let path = Path { local: address(1), remote: address(2), mtu: 1500 };
        let mut c = Connection::new(Arc::new(config), Instant::ZERO, path, (1, 2), Identity::default(), 0, 0);
        let mut outbox = Outbox::default();
        let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
        c.connect(&mut cx);
        assert!(c.poll_transmit(&mut cx).is_some(), "the SYN");
        let options = Options { mss: Some(1460), sack_permitted: true, ..Options::default() };
        let syn_ack = Header {
            flags: Flags::SYN.with(Flags::ACK),
            ack: 1,
            window: 65_535,
            options,
            ..Header::default()
        };
        c.segment_arrives(cx.now, &syn_ack, 0, Body::EMPTY);
        c.write(&mut cx, 0, Body::filler(1, 100_000)).unwrap();
        while c.poll_transmit(&mut cx).is_some() {}
        assert_eq!(c.snd.sent.len(), 10);
        (c, outbox)
    }

    #[test]
    fn blocks_of_single_octets_make_no_more_ranges_than_there_are_segments() {
        for loss_detection in [LossDetection::Rack, LossDetection::DupAcks] {
            let (mut c, mut outbox) = sender(loss_detection);
            let mut ranges = 0;
            for i in 0..3000_u32 {
                let mut sack = SackBlocks::default();
                for k in 0..4 {
                    // Every second octet, from the top down so that no two touch.
                    let left = 14_600 - 2 * (4 * i + k) % 13_000;
                    sack.push(left, left + 1);
                }
                let options = Options { sack, ..Options::default() };
                let ack = Header {
                    flags: Flags::ACK,
                    seq: 1,
                    ack: 1,
                    window: 65_535,
                    options,
                    ..Header::default()
                };
                let mut cx = Cx { now: Instant::ZERO + Duration::from_millis(1), records: &mut outbox };
                c.segment_arrives(cx.now, &ack, 0, Body::EMPTY);
                while c.poll_transmit(&mut cx).is_some() {}
                let count =
                    if c.books == Books::Segments { c.segments.sacked.count() } else { c.octets.ranges() };
                assert!(count <= c.snd.sent.len() + 1, "{count} ranges of {} segments", c.snd.sent.len());
                ranges = ranges.max(count);
            }
            assert!(ranges >= 10, "the flood was not felt: {ranges}");
        }
    }
}
