//! The receiving half: what arrived, in order and out of order, the window, and what SACK blocks say of it.

use std::collections::VecDeque;

use airloom_base::{Body, Instant};

use super::pieces::join;
use super::ranges::{Range, Ranges};
use super::wire::SackBlocks;

/// How many blocks are remembered: as many as fit into an option.
const BLOCKS: usize = 4;

/// Octets of the receive buffer for each piece that is held out of order, and pieces that are held in any case. A flood of
/// octets with holes between them would cost fifty times what it carries.
const PIECE: u64 = 64;
const PIECES: u64 = 64;

/// What a data segment did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It was the next one and there are no holes.
    InOrder,
    /// It was the next one, or filled a part of a hole.
    Filling,
    /// It lies beyond a hole.
    OutOfOrder,
    /// Nothing of it was new.
    Duplicate,
}

/// Receive sequence variables and the receive buffer.
#[derive(Debug, Default, getset::CopyGetters, getset::Setters)]
pub(super) struct Receive {
    /// IRS: the number of the peer's SYN.
    #[getset(get_copy = "pub")]
    irs: u64,
    /// RCV.NXT: the next number expected; all below are here.
    #[getset(get_copy = "pub")]
    nxt: u64,
    /// The highest right edge of the window ever announced; only a FIN beyond the window moves `nxt` above it.
    edge: u64,
    /// RCV.NXT as it was last acknowledged (Last.ACK.sent); never above `nxt`.
    last_ack: u64,
    /// Shift of our window field; at most 14.
    #[getset(get_copy = "pub", set = "pub")]
    shift: u8,
    /// The largest window we announce now, and at all; neither shrinks, nor is the first above the second.
    window: u64,
    limit: u64,
    /// MSS that we announced: the receiver's measure of a step of the window.
    #[getset(get_copy = "pub")]
    mss: u64,
    /// The peer's FIN stands here; known once, it stays.
    #[getset(get_copy = "pub")]
    fin: Option<u64>,
    /// TS.Recent (RFC 7323), and when it was set.
    #[getset(get_copy = "pub")]
    ts_recent: u32,
    /// When TS.Recent was set.
    #[getset(get_copy = "pub")]
    ts_recent_at: Instant,
    /// In order, not read.
    ready: VecDeque<Body>,
    ready_octets: u64,
    /// Out of order: disjoint pieces in ascending order, and the ranges they make up, with a FIN beyond a hole.
    held: VecDeque<(u64, Body)>,
    ranges: Ranges,
    /// Starts of the blocks reported lately, the latest first.
    recent: [u64; BLOCKS],
    recent_count: u8,
    /// A duplicate to be reported in the next acknowledgement.
    duplicate: Option<Range>,
    /// There is something to report in SACK blocks: a duplicate or ranges.
    reports: bool,
    /// The right edge moves by so much at least: a segment, or half of a small buffer.
    step: u64,
    /// What was announced last.
    announced: Announced,
}

/// A window field and all it was made from: a sender says the same again in each segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Announced {
    nxt: u64,
    window: u64,
    ready_octets: u64,
    shift: u8,
    field: u16,
}

impl Receive {
    pub fn new(window: u64, limit: u64, mss: u64) -> Self {
        Receive {
            window: window.min(limit),
            limit,
            mss,
            step: (window.min(limit) / 2).min(mss),
            ..Default::default()
        }
    }

    /// An acceptable segment at `seq` carries the timestamp `value`.
    #[inline]
    pub fn take_timestamp(&mut self, now: Instant, value: u32, seq: u64) {
        //= RFC 7323 (4.3): TS.Recent moves with segments at or before the last acknowledgement sent.
        if seq <= self.last_ack {
            self.ts_recent = value;
            self.ts_recent_at = now;
        }
    }

    /// Octets that are here and not acknowledged, and the FIN.
    #[inline]
    pub fn unacked(&self) -> u64 {
        self.nxt - self.last_ack
    }

    /// All that is here is acknowledged now. Says whether something of it had not been.
    #[inline]
    pub fn acknowledged(&mut self) -> bool {
        let news = self.last_ack != self.nxt;
        self.last_ack = self.nxt;
        news
    }

    /// The peer's FIN stands at `at`, if that is possible and was not known. Says whether it is news.
    pub fn note_fin(&mut self, at: u64) -> bool {
        let news = self.fin.is_none() && at >= self.nxt;
        if news {
            self.fin = Some(at);
        }
        news
    }

    /// A segment with the peer's FIN at `at` came beyond a hole: its block covers the FIN.
    pub fn hold_fin(&mut self, at: u64) {
        //= RFC 2018 (3): blocks are of sequence numbers, and a FIN has one: without it the segment does not count as arrived.
        if self.fin == Some(at) && at > self.nxt {
            self.ranges.insert(at, at + 1);
            self.remember(at);
            self.note_reports();
        }
    }

    /// Is the peer's FIN what is expected next?
    #[inline]
    pub fn fin_is_next(&self) -> bool {
        self.fin == Some(self.nxt)
    }

    /// Takes the peer's FIN, which is next.
    pub fn take_fin(&mut self) {
        self.nxt += 1;
        self.ranges.remove_below(self.nxt);
        self.note_reports();
    }

    /// The peer's SYN is here.
    pub fn synchronise(&mut self, irs: u64) {
        // A SYN of ours may have offered a window already.
        let offered = self.wnd();
        self.irs = irs;
        self.nxt = irs + 1;
        self.edge = self.nxt + offered;
        self.last_ack = self.nxt;
    }

    /// RCV.WND as the peer knows it.
    #[inline]
    pub fn wnd(&self) -> u64 {
        self.edge - self.nxt.min(self.edge)
    }

    /// Is anything of `seq..seq + len` inside the window?
    #[inline]
    pub fn accepts(&self, seq: u64, len: u64) -> bool {
        //= RFC 9293 (3.4, table 5): the four cases of the acceptability test.
        //= RFC 9293 (A.2): and an empty segment at the right edge: a peer that has filled the window sends its
        //= acknowledgements from there, and while what it sent is lost they would not be heard.
        match (len, self.wnd()) {
            (0, _) => seq >= self.nxt && seq <= self.edge,
            (_, 0) => false,
            (_, _) => seq < self.edge && seq + len > self.nxt,
        }
    }

    /// Octets that can be read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.ready_octets
    }

    /// The peer has finished and everything before that is here.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    /// Data arrived at `seq`. What lies outside the window is cut off.
    #[inline(always)]
    pub fn data(&mut self, seq: u64, body: Body) -> Arrival {
        let len = body.len() as u64;
        if seq == self.nxt && self.ranges.is_empty() && seq + len <= self.edge {
            self.take(body);
            return Arrival::InOrder;
        }
        let arrival = self.data_out_of_order(seq, body, len);
        self.note_reports();
        arrival
    }

    fn note_reports(&mut self) {
        self.reports = self.duplicate.is_some() || !self.ranges.is_empty();
    }

    #[inline(never)]
    fn data_out_of_order(&mut self, seq: u64, mut body: Body, len: u64) -> Arrival {
        let end = seq + len;
        if seq < self.nxt {
            //= RFC 2883 (4): a duplicate below the cumulative acknowledgement is reported by the part that is one.
            self.duplicate = Some(Range { start: seq, end: end.min(self.nxt) });
            if end <= self.nxt {
                return Arrival::Duplicate;
            }
            let _ = body.split_to((self.nxt - seq) as usize);
        }
        let seq = seq.max(self.nxt);
        let end = end.min(self.edge);
        if end <= seq {
            return Arrival::Duplicate;
        }
        self.hold(seq, end, body)
    }

    fn hold(&mut self, seq: u64, end: u64, body: Body) -> Arrival {
        if seq > self.nxt && self.held.len() as u64 >= PIECES + self.limit / PIECE {
            //= RFC 2018 (8): what was not reported may be dropped; the next octet expected is always taken.
            return Arrival::OutOfOrder;
        }
        let mut at = seq;
        let mut fresh = 0;
        while at < end {
            let (start, stop) = self.ranges.next_gap(at);
            let (start, stop) = (start.min(end), stop.min(end));
            if start > at {
                //= RFC 2883 (4.2): a duplicate of data beyond a hole is reported too, inside the second block.
                self.duplicate = Some(Range { start: at, end: start });
            }
            if stop > start {
                self.insert(start, body.slice((start - seq) as usize, (stop - start) as usize));
                fresh += stop - start;
            }
            at = stop.max(start);
        }
        self.ranges.insert(seq, end);
        if seq > self.nxt {
            self.remember(seq);
            return if fresh > 0 { Arrival::OutOfOrder } else { Arrival::Duplicate };
        }
        while self.held.front().is_some_and(|(start, _)| *start == self.nxt) {
            if let Some((_, body)) = self.held.pop_front() {
                self.take(body);
            }
        }
        self.ranges.remove_below(self.nxt);
        Arrival::Filling
    }

    fn insert(&mut self, start: u64, body: Body) {
        let at = match self.held.back() {
            Some((last, _)) if *last < start => self.held.len(),
            _ => self.held.partition_point(|(s, _)| *s < start),
        };
        let before = self.held.len();
        let body = match at.checked_sub(1).and_then(|i| self.held.get_mut(i)) {
            Some((s, last)) if *s + last.len() as u64 == start => match join(last, before, body) {
                Ok(()) => return,
                Err(body) => body,
            },
            _ => body,
        };
        self.held.insert(at, (start, body));
    }

    #[inline(always)]
    fn take(&mut self, body: Body) {
        let len = body.len() as u64;
        self.nxt += len;
        self.ready_octets += len;
        let before = self.ready.len();
        match self.ready.back_mut() {
            Some(last) => {
                if let Err(body) = join(last, before, body) {
                    self.ready.push_back(body);
                }
            }
            None => self.ready.push_back(body),
        }
    }

    /// A duplicate that is not looked at further, to be reported.
    pub fn note_duplicate(&mut self, start: u64, end: u64) {
        if start < end.min(self.nxt) {
            self.duplicate = Some(Range { start, end: end.min(self.nxt) });
            self.note_reports();
        }
    }

    /// Gives at most `max` octets.
    pub fn read(&mut self, max: usize) -> Option<Body> {
        if max == 0 {
            return None;
        }
        let first = self.ready.front_mut()?;
        let len = first.len();
        self.ready_octets -= len.min(max) as u64;
        if len <= max { self.ready.pop_front() } else { Some(first.split_to(max)) }
    }

    /// Full segments come: a window that began small grows. Says if it did.
    #[inline]
    pub fn grow(&mut self, len: u64) -> bool {
        let grows = self.window < self.limit && len >= self.mss.min(536);
        if grows {
            self.window = (self.window + 2 * len).min(self.limit);
        }
        grows
    }

    /// The buffer takes `limit` octets; the window grows into it with full segments that come in order. It never shrinks, so
    /// nothing that was announced is taken back.
    pub fn raise_limit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
        self.step = (self.window / 2).min(self.mss);
    }

    /// The right edge that could be announced now.
    #[inline]
    fn possible_edge(&self) -> u64 {
        // What is not read takes room in the buffer; it lowers the window only where the window is as large as that.
        //= RFC 7323 (2.3): nor is more of it told than the field can say, 65,535 octets to a peer without scaling.
        let window = self.window.min(self.limit.saturating_sub(self.ready_octets));
        self.nxt + window.min(65_535 << self.shift)
    }

    /// Announces a window: the value of the field, for a header whose window is shifted by `shift`.
    #[inline]
    pub fn announce(&mut self, shift: u8) -> u16 {
        let last = &self.announced;
        let unchanged = last.nxt == self.nxt && last.window == self.window;
        if unchanged && last.ready_octets == self.ready_octets && last.shift == shift {
            return last.field;
        }
        self.announce_anew(shift)
    }

    /// Announces a window in a segment of the connection.
    #[inline]
    pub fn announce_scaled(&mut self) -> u16 {
        self.announce(self.shift)
    }

    #[inline]
    fn announce_anew(&mut self, shift: u8) -> u16 {
        //= RFC 9293 (3.8.6.2.2): the right edge stays until it can move by a segment or half of the buffer.
        let possible = self.possible_edge();
        let edge = if possible >= self.edge + self.step { possible } else { self.edge.max(self.nxt) };
        let mut field = (edge - self.nxt) >> shift;
        if self.nxt + (field << shift) < self.edge {
            // Rounding must not take back what was announced.
            field += 1;
        }
        let field = field.min(65_535);
        self.edge = self.edge.max(self.nxt + (field << shift));
        let field = field as u16;
        self.announced =
            Announced { nxt: self.nxt, window: self.window, ready_octets: self.ready_octets, shift, field };
        field
    }

    /// After reading: should the peer be told that there is room again?
    #[inline]
    pub fn wants_update(&self) -> bool {
        let possible = self.possible_edge();
        // Two segments: one is on its way to be acknowledged anyway.
        possible >= self.edge + (self.window / 2).min(2 * self.mss) && possible - self.nxt >= 2 * self.wnd()
    }

    fn remember(&mut self, seq: u64) {
        let Some(range) = self.ranges.containing(seq) else { return };
        let mut kept = [range.start; BLOCKS];
        let mut count = 1;
        for old in &self.recent[..usize::from(self.recent_count)] {
            if !range.contains(*old) && *old > self.nxt && count < BLOCKS {
                kept[count] = *old;
                count += 1;
            }
        }
        self.recent = kept;
        self.recent_count = count as u8;
    }

    /// Is there anything to report in SACK blocks?
    #[inline]
    pub fn wants_sack(&self) -> bool {
        self.reports
    }

    /// The blocks of an acknowledgement that leaves now. A duplicate is reported once.
    pub fn sack_blocks(&mut self, report_duplicates: bool) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut push = |r: Range| blocks.push(r.start as u32, r.end as u32);
        let mut around = None;
        if let Some(duplicate) = self.duplicate.take().filter(|_| report_duplicates) {
            push(duplicate);
            //= RFC 2883 (4.2): the second block holds the duplicate, if that lies beyond a hole.
            around = self.ranges.containing(duplicate.start);
            if let Some(range) = around {
                push(range);
            }
        }
        //= RFC 2018 (4): the block with the latest segment first, then those reported most recently, none of them twice.
        let mut last = None;
        for start in &self.recent[..usize::from(self.recent_count)] {
            if let Some(range) = self.ranges.containing(*start)
                && last != Some(range)
                && around != Some(range)
            {
                push(range);
                last = Some(range);
            }
        }
        self.note_reports();
        blocks
    }

    /// Forgets what was not read.
    pub fn clear(&mut self) {
        self.ready = VecDeque::new();
        self.ready_octets = 0;
        self.held = VecDeque::new();
        self.ranges.clear();
        self.duplicate = None;
        self.reports = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects octet 1000 next, with a window of 10,000 and segments of 100.
    fn receive() -> Receive {
        let mut r = Receive::new(10_000, 10_000, 100);
        r.synchronise(999);
        assert_eq!(r.announce(0), 10_000);
        r
    }

    fn piece(seq: u64, len: u64) -> Body {
        let mut whole = Body::filler(5, 100_000);
        let _ = whole.split_to(seq as usize);
        whole.split_to(len as usize)
    }

    fn blocks(r: &mut Receive) -> Vec<(u32, u32)> {
        r.sack_blocks(true).as_slice().to_vec()
    }

    fn read_all(r: &mut Receive) -> Vec<u8> {
        let mut octets = Vec::new();
        while let Some(body) = r.read(37) {
            octets.extend_from_slice(&body.to_bytes());
        }
        octets
    }

    #[test]
    fn pieces_in_any_order_become_the_stream() {
        let mut r = receive();
        for (seq, len, expected) in [
            (1000, 100, Arrival::InOrder),
            (1200, 100, Arrival::OutOfOrder),
            (1400, 100, Arrival::OutOfOrder),
            (1150, 300, Arrival::OutOfOrder),
            (1250, 20, Arrival::Duplicate),
            (1050, 60, Arrival::Filling),
            (1100, 60, Arrival::Filling),
            (1000, 10, Arrival::Duplicate),
        ] {
            assert_eq!(r.data(seq, piece(seq, len)), expected, "{seq}");
        }
        assert_eq!((r.nxt, r.readable()), (1500, 500));
        assert_eq!(read_all(&mut r), piece(1000, 500).to_bytes());
    }

    #[test]
    fn octets_with_holes_between_them_are_bounded_in_pieces_and_the_next_one_is_still_taken() {
        let mut r = Receive::new(65_535, 65_535, 100);
        r.synchronise(999);
        r.announce(0);
        for seq in (1002..66_000).step_by(2) {
            r.data(seq, Body::Real(piece(seq, 1).to_bytes()));
        }
        let most = (PIECES + 65_535 / PIECE) as usize;
        assert_eq!((r.held.len(), r.ranges.count()), (most, most));
        // What could not be kept was not reported, and comes again; nothing that was reported is dropped.
        let reported = r.ranges.total();
        assert_eq!(r.data(1000, piece(1000, 60_000)), Arrival::Filling);
        assert_eq!((r.nxt, r.readable(), r.held.len()), (61_000, 60_000, 0));
        assert_eq!((reported, r.ranges.total()), (most as u64, 0));
        assert_eq!(read_all(&mut r), piece(1000, 60_000).to_bytes());
    }

    #[test]
    fn octets_that_come_one_at_a_time_and_are_not_read_cost_no_block_each() {
        let mut r = Receive::new(65_535, 65_535, 100);
        r.synchronise(999);
        r.announce(0);
        for seq in 1000..60_000 {
            assert_eq!(r.data(seq, Body::Real(piece(seq, 1).to_bytes())), Arrival::InOrder);
        }
        assert!(r.ready.len() < 100, "{} pieces", r.ready.len());
        assert_eq!(read_all(&mut r), piece(1000, 59_000).to_bytes());
    }

    #[test]
    fn rfc_2018_4_blocks_are_reported_latest_first() {
        let mut r = receive();
        for seq in [1200, 1400, 1600, 1800, 2000] {
            r.data(seq, piece(seq, 100));
        }
        assert_eq!(blocks(&mut r), [(2000, 2100), (1800, 1900), (1600, 1700), (1400, 1500)]);
        r.data(1500, piece(1500, 100));
        assert_eq!(blocks(&mut r), [(1400, 1700), (2000, 2100), (1800, 1900)]);
        r.data(1300, piece(1300, 100));
        r.data(1000, piece(1000, 200));
        assert_eq!(r.nxt, 1700);
        assert_eq!(blocks(&mut r), [(2000, 2100), (1800, 1900)]);
    }

    #[test]
    fn rfc_2883_4_a_duplicate_is_reported_once_and_first() {
        let mut r = receive();
        r.data(1000, piece(1000, 200));
        r.data(1100, piece(1100, 200));
        assert_eq!(blocks(&mut r), [(1100, 1200)]);
        assert_eq!(blocks(&mut r), []);
        r.data(1500, piece(1500, 300));
        assert_eq!(blocks(&mut r), [(1500, 1800)]);
        r.data(1600, piece(1600, 100));
        assert_eq!(blocks(&mut r), [(1600, 1700), (1500, 1800)]);
    }

    #[test]
    fn rfc_9293_3_8_6_2_2_the_edge_moves_in_steps_of_a_segment() {
        let mut r = receive();
        r.data(1000, piece(1000, 250));
        assert_eq!(r.announce(0), 9750);
        let _ = r.read(99);
        assert_eq!(r.announce(0), 9750);
        let _ = r.read(1);
        assert_eq!(r.announce(0), 9850);
    }

    #[test]
    fn rfc_9293_3_8_6_2_2_room_that_an_unscaled_field_cannot_tell_of_asks_for_no_update() {
        let mut r = Receive::new(256 * 1024, 256 * 1024, 100);
        r.synchronise(999);
        assert_eq!(r.announce_scaled(), 65_535);
        r.data(1000, piece(1000, 1000));
        assert_eq!(r.announce_scaled(), 65_535);
        let _ = r.read(1000);
        assert!(!r.wants_update());
    }

    #[test]
    fn rfc_7323_f_rounding_to_the_scale_never_takes_back_what_was_announced() {
        let mut r = Receive::new(10_000, 10_000, 100);
        r.synchronise(999);
        let edge = |r: &mut Receive| r.nxt + (u64::from(r.announce(7)) << 7);
        let mut last = edge(&mut r);
        for len in [1, 99, 13, 255, 1000, 3, 77] {
            let seq = r.nxt;
            r.data(seq, piece(seq, len));
            let now = edge(&mut r);
            assert!(now >= last);
            last = now;
            let _ = r.read(50);
        }
    }

    #[test]
    fn rfc_9293_3_4_the_four_cases_of_the_acceptability_test() {
        let mut r = receive();
        assert!(r.accepts(1000, 0) && r.accepts(11_000, 0) && !r.accepts(999, 0) && !r.accepts(11_001, 0));
        assert!(
            r.accepts(900, 101) && !r.accepts(900, 100) && r.accepts(10_999, 50) && !r.accepts(11_000, 1)
        );
        r.data(1000, piece(1000, 10_000));
        assert_eq!(r.announce(0), 0);
        assert!(r.accepts(11_000, 0) && !r.accepts(11_001, 0) && !r.accepts(11_000, 1));
        assert!(!r.wants_update());
        let _ = r.read(200);
        assert!(r.wants_update());
    }

    #[test]
    fn what_lies_beyond_the_window_is_cut_off() {
        let mut r = receive();
        assert_eq!(r.data(10_900, piece(10_900, 500)), Arrival::OutOfOrder);
        assert_eq!(blocks(&mut r), [(10_900, 11_000)]);
        assert_eq!(r.data(1000, piece(1000, 20_000)), Arrival::Filling);
        assert_eq!(r.nxt, 11_000);
        assert_eq!(read_all(&mut r), piece(1000, 10_000).to_bytes());
    }
}
