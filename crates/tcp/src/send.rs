//! The sending half: what the application wrote, and the sequence variables of RFC 9293 3.3.1.

use std::collections::VecDeque;

use airloom_base::{Body, Filler, Instant};
use bytes::BytesMut;

use super::pieces::join;

/// What is known of a segment: bits of [`Sent::marks`], kept where recovery counts segments.
pub(super) mod mark {
    /// The peer reported it.
    pub const SACKED: u8 = 1;
    /// It is marked lost.
    pub const LOST: u8 = 2;
    /// It was sent again, and that copy is under way.
    pub const RESENT: u8 = 4;
    /// It was sent again at some time.
    pub const EVER: u8 = 8;
    /// It left in one group with the segment before it (`offload.rs`); says nothing of its fate.
    pub const JOINED: u8 = 16;
}

/// Why a short segment waits beside Nagle's rule: bits for [`Send::cork`].
pub(super) mod corked {
    /// The application has said so until it says otherwise (TCP_CORK).
    pub const CORK: u8 = 1;
    /// The write at hand goes on (MSG_MORE).
    pub const MORE: u8 = 2;
    /// But what is there now leaves (TCP_NODELAY).
    pub const PUSH: u8 = 4;
    /// The last write goes on, so it does not end with PSH.
    pub const UNPUSHED: u8 = 8;
}

/// When the segment that ends at `end` was sent: first, or (where recovery counts segments) last.
#[derive(Clone, Copy, Debug, getset::CopyGetters)]
pub(super) struct Sent {
    /// Above that of the one before.
    #[getset(get_copy = "pub")]
    end: u64,
    pub at: Instant,
    marks: u8,
}

impl Sent {
    /// Does it bear any of these marks?
    #[inline]
    pub fn has(&self, marks: u8) -> bool {
        self.marks & marks != 0
    }
    #[inline]
    pub fn set(&mut self, marks: u8) {
        self.marks |= marks;
    }
    #[inline]
    pub fn clear(&mut self, marks: u8) {
        self.marks &= !marks;
    }
}

/// Send sequence variables and the send buffer.
#[derive(Debug, Default, getset::CopyGetters, getset::Getters, getset::Setters)]
pub(super) struct Send {
    /// SND.UNA: the oldest number not acknowledged.
    #[getset(get_copy = "pub")]
    una: u64,
    /// SND.NXT: one past the highest number sent; never below `una`.
    #[getset(get_copy = "pub")]
    nxt: u64,
    /// One past the highest number that was ever on the wire (a window probe runs ahead of `nxt`); never below `nxt`.
    #[getset(get_copy = "pub")]
    max: u64,
    /// SND.WND, scaled.
    #[getset(get_copy = "pub")]
    wnd: u64,
    /// SND.WL1 and SND.WL2: the segment that brought the window.
    wl1: u64,
    wl2: u64,
    /// The largest window the peer ever offered; never below `wnd`.
    #[getset(get_copy = "pub")]
    max_wnd: u64,
    /// Shift of the peer's window field; at most 14.
    #[getset(get_copy = "pub", set = "pub")]
    shift: u8,
    /// Payload octets of a full segment; never zero.
    #[getset(get_copy = "pub", set = "pub")]
    mss: u64,
    /// End of the last short segment sent (Minshall); never above `nxt`.
    #[getset(get_copy = "pub")]
    short_end: u64,
    /// First transmissions not acknowledged, oldest first: their ends ascend from `una` to `nxt`. Their times and marks are the
    /// recovery's to change.
    #[getset(get = "pub")]
    sent: VecDeque<Sent>,
    /// Acknowledgements of segments that end here or below give no round-trip time (Karn).
    #[getset(get_copy = "pub")]
    resent_below: u64,
    /// With one sample per round trip: the next one is a segment that ends above this.
    sample_above: u64,
    /// The application has finished: a FIN stands at `end`, which does not move any more.
    finished: bool,
    /// One past the last octet written; beyond the FIN's acknowledgement `una` and `nxt` are one more.
    #[getset(get_copy = "pub")]
    end: u64,
    /// What is kept, in order and without gaps from `una` to `end`, each piece with the number of its first octet.
    pieces: VecDeque<(u64, Body)>,
    /// Room in octets; what is there already stays.
    #[getset(get_copy = "pub", set = "pub")]
    limit: u64,
    /// The application was told that the buffer is full.
    #[getset(get_copy = "pub")]
    wants_room: bool,
    /// Why short segments wait for more: bits of [`corked`].
    corked: u8,
    /// Where records end that segments do not pass, in ascending order.
    records: VecDeque<u64>,
}

impl Send {
    /// A buffer whose first octet will be `iss + 1`.
    pub fn new(iss: u64, mss: u64, limit: u64) -> Self {
        Send {
            una: iss,
            nxt: iss,
            max: iss,
            mss,
            short_end: iss,
            resent_below: iss,
            sample_above: iss,
            end: iss + 1,
            limit,
            ..Default::default()
        }
    }

    /// A window field of the peer, scaled.
    #[inline]
    pub fn scaled(&self, field: u16) -> u64 {
        u64::from(field) << self.shift
    }

    /// The handshake is over: what it sent again says nothing of data.
    pub fn begin(&mut self) {
        self.resent_below = self.una;
        self.sample_above = self.una;
    }

    /// With one sample per round trip: does a segment that ends at `end` give the next one?
    pub fn gives_sample(&mut self, end: u64) -> bool {
        let gives = end > self.sample_above;
        if gives {
            self.sample_above = self.nxt;
        }
        gives
    }

    /// The SYN leaves, first or again.
    pub fn sent_syn(&mut self) {
        self.nxt = self.una + 1;
        self.max = self.max.max(self.nxt);
    }

    /// `len` octets leave for the first time, of the `room` that a segment has. Says whether a FIN leaves with them.
    #[inline(always)]
    pub fn leaves(&mut self, len: u64, room: u64) -> bool {
        let end = self.nxt + len;
        //= RFC 9293 (3.4): the FIN takes a sequence number, and leaves only if the peer's window has room for that.
        let fin = self.finished && end == self.end && end < self.window_edge();
        if len < room && len > 0 {
            self.short_end = end;
        }
        self.nxt = end + u64::from(fin);
        self.max = self.max.max(self.nxt);
        fin
    }

    /// What ends at `end` leaves again.
    pub fn leaves_again(&mut self, end: u64) {
        self.resent_below = self.resent_below.max(end);
    }

    /// A probe of the peer's window leaves that ends at `end`; it is not counted as sent before it is taken.
    pub fn probed(&mut self, end: u64) {
        self.max = self.max.max(end);
    }

    /// SND.UNA moves to `ack`: what lies below is forgotten.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64) {
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        self.release();
    }

    /// The application has finished.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Has the application finished?
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Sets bits of [`corked`], or takes them away.
    pub fn cork(&mut self, bits: u8, on: bool) {
        self.corked = if on { self.corked | bits } else { self.corked & !bits };
    }

    /// Is anything said of short segments, be it that they wait or that they do not?
    #[inline]
    pub fn holds_short(&self) -> bool {
        self.corked != 0
    }

    /// Does the last write go on, so that it does not end with PSH?
    #[inline]
    pub fn is_unpushed(&self) -> bool {
        self.corked & corked::UNPUSHED != 0
    }

    /// Do short segments wait for more?
    #[inline]
    pub fn is_corked(&self) -> bool {
        self.corked & (corked::CORK | corked::MORE) != 0 && self.corked & corked::PUSH == 0
    }

    /// A record ends with the octet written last.
    pub fn end_record(&mut self) {
        let una = self.una;
        self.records.retain(|end| *end > una);
        if self.records.back() != Some(&self.end) && self.end > una {
            self.records.push_back(self.end);
        }
    }

    /// Do records end in what is not acknowledged?
    #[inline]
    pub fn has_records(&self) -> bool {
        !self.records.is_empty()
    }

    /// Where the record ends that `at` is in; the end of all there is, if it is in none.
    #[cold]
    pub fn record_end(&self, at: u64) -> u64 {
        let next = self.records.partition_point(|end| *end <= at);
        self.records.get(next).map_or(self.end, |end| *end)
    }

    /// Does a record end at `at`?
    #[cold]
    pub fn ends_record(&self, at: u64) -> bool {
        self.records.binary_search(&at).is_ok()
    }

    /// Octets written and not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.end.saturating_sub(self.una)
    }

    /// Octets written and not sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.nxt)
    }

    /// Is there anything, data or FIN, that was not sent?
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.nxt < self.end + u64::from(self.finished)
    }

    /// Octets between SND.UNA and SND.NXT: FlightSize.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// Segments sent and not acknowledged cumulatively.
    #[inline]
    pub fn segments_out(&self) -> u64 {
        self.sent.len() as u64
    }

    /// One of them.
    #[inline]
    pub fn sent_mut(&mut self, index: usize) -> Option<&mut Sent> {
        self.sent.get_mut(index)
    }

    /// What was sent up to SND.NXT just now is one more.
    #[inline]
    pub fn note_sent(&mut self, at: Instant, marks: u8) {
        self.sent.push_back(Sent { end: self.nxt, at, marks });
    }

    /// The first of them, if `ack` acknowledges it: it is none of them any more.
    #[inline]
    pub fn pop_acknowledged(&mut self, ack: u64) -> Option<Sent> {
        self.sent.front().filter(|sent| sent.end <= ack)?;
        self.sent.pop_front()
    }

    /// Makes two of the one at `index`, with the same marks. The first ends at `at`, which lies inside it.
    pub fn split_sent(&mut self, index: usize, at: u64) {
        debug_assert!(self.start_of(index) < at && at < self.sent[index].end, "it lies inside");
        self.sent.insert(index, Sent { end: at, ..self.sent[index] });
    }

    /// None of them bears these marks any more.
    pub fn clear_marks(&mut self, marks: u8) {
        self.sent.iter_mut().for_each(|sent| sent.clear(marks));
    }

    /// Index of the first segment that ends above `seq`.
    pub fn index_above(&self, seq: u64) -> usize {
        let sent = &self.sent;
        // Nearly all segments are full ones, which says where it is.
        let guess = (seq.saturating_sub(self.una) / self.mss) as usize;
        let ends_above = |index: usize| sent.get(index).is_some_and(|s| s.end > seq);
        if ends_above(guess) && (guess == 0 || !ends_above(guess - 1)) {
            return guess;
        }
        sent.partition_point(|s| s.end <= seq)
    }

    /// The first octet of a segment that is not acknowledged.
    pub fn start_of(&self, index: usize) -> u64 {
        match index.checked_sub(1).and_then(|i| self.sent.get(i)) {
            Some(before) => before.end.max(self.una),
            None => self.una,
        }
    }

    /// Where a segment ends that begins at `start` and has room for so many octets: the FIN right behind them goes with them.
    #[inline]
    pub fn end_of(&self, start: u64, room: u64) -> u64 {
        let end = start + room;
        end + u64::from(self.finished && end == self.end)
    }

    /// Was our FIN acknowledged?
    #[inline]
    pub fn fin_acked(&self) -> bool {
        self.finished && self.una > self.end
    }

    /// The right edge of the peer's window.
    #[inline]
    pub fn window_edge(&self) -> u64 {
        self.una + self.wnd
    }

    /// Does the segment `seq`, `ack` bring a newer window?
    #[inline]
    pub fn takes_window(&self, seq: u64, ack: u64) -> bool {
        let is_newer = self.wl1 < seq || (self.wl1 == seq && self.wl2 <= ack);
        ack > self.una || (ack == self.una && is_newer)
    }

    /// The segment `seq` brought the window that is known.
    #[inline]
    pub fn note_newer(&mut self, seq: u64) {
        self.wl1 = seq;
    }

    /// Takes the window of the segment `seq`, `ack`.
    #[inline]
    pub fn set_window(&mut self, seq: u64, ack: u64, wnd: u64) {
        self.wnd = wnd;
        self.wl1 = seq;
        self.wl2 = ack;
        self.max_wnd = self.max_wnd.max(wnd);
    }

    /// Takes what fits of `body` and returns how many octets that was.
    pub fn write(&mut self, mut body: Body) -> usize {
        let room = self.limit.saturating_sub(self.end - self.una.min(self.end)) as usize;
        let len = body.len().min(room);
        self.wants_room = len < body.len();
        if len == 0 {
            return 0;
        }
        let piece = if len < body.len() { body.split_to(len) } else { body };
        let (at, before) = (self.end, self.pieces.len());
        self.end += len as u64;
        match self.pieces.back_mut() {
            Some((_, last)) => {
                if let Err(piece) = join(last, before, piece) {
                    self.pieces.push_back((at, piece));
                }
            }
            None => self.pieces.push_back((at, piece)),
        }
        len
    }

    /// The application waits for room.
    pub fn want_room(&mut self) {
        self.wants_room = true;
    }

    /// Room for `octets` at least.
    pub fn raise_limit(&mut self, octets: u64) {
        self.limit = self.limit.max(octets);
    }

    #[inline]
    fn release(&mut self) {
        while let Some((start, body)) = self.pieces.front_mut() {
            let len = body.len() as u64;
            if *start + len <= self.una {
                self.pieces.pop_front();
            } else {
                if *start < self.una {
                    let gone = self.una - *start;
                    let _ = body.split_to(gone as usize);
                    *start = self.una;
                }
                break;
            }
        }
    }

    /// The application wanted to write more: is it time to tell it? (At a third free, so that it is not woken for
    /// every acknowledgement.)
    #[inline]
    pub fn take_room(&mut self) -> bool {
        if !self.wants_room {
            return false;
        }
        let used = self.end - self.una.min(self.end);
        let due = self.limit.saturating_sub(used) >= used / 2;
        self.wants_room = !due;
        due
    }

    /// The octets `at..at + len`, as one body. Pieces of different kinds become real octets.
    #[inline]
    pub fn body(&self, at: u64, len: usize) -> Body {
        // Bulk data is one piece of filler.
        if let Some((start, Body::Filler(f))) = self.pieces.front()
            && let skip = at.wrapping_sub(*start)
            && skip < u64::from(f.len)
            && skip + len as u64 <= u64::from(f.len)
        {
            return Body::Filler(Filler { source: f.source, offset: f.offset + skip, len: len as u32 });
        }
        self.body_of_any(at, len)
    }

    fn body_of_any(&self, at: u64, len: usize) -> Body {
        if len == 0 {
            return Body::EMPTY;
        }
        let first = self.pieces.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        match self.pieces.get(first) {
            Some((start, body)) if *start <= at => {
                let skip = (at - start) as usize;
                if skip + len <= body.len() { body.slice(skip, len) } else { self.gather(first, skip, len) }
            }
            _ => Body::EMPTY,
        }
    }

    #[cold]
    fn gather(&self, first: usize, mut skip: usize, len: usize) -> Body {
        let mut octets = BytesMut::zeroed(len);
        let mut done = 0;
        for (_, body) in self.pieces.iter().skip(first) {
            if done == len {
                break;
            }
            done += body.write(skip, &mut octets[done..]);
            skip = 0;
        }
        octets.truncate(done);
        Body::Real(octets.freeze())
    }

    /// Forgets everything not acknowledged.
    pub fn clear(&mut self) {
        self.pieces = VecDeque::new();
        self.sent = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn send() -> Send {
        Send::new(99, 10, 50)
    }

    #[test]
    fn a_full_buffer_takes_a_part_and_asks_again_at_a_third_free() {
        let mut s = send();
        s.una = 100;
        assert_eq!(s.write(Body::filler(1, 40)), 40);
        assert_eq!(s.write(Body::filler(1, 40)), 10);
        s.una = 110;
        assert!(!s.take_room());
        s.una = 120;
        assert!(s.take_room());
        assert!(!s.take_room());
    }

    #[test]
    fn a_segment_over_pieces_of_different_kinds_becomes_real_octets() {
        let mut s = send();
        s.una = 100;
        s.write(Body::Real(Bytes::from_static(b"head")));
        s.write(Body::filler(3, 20));
        assert_eq!(s.body(100, 4), Body::Real(Bytes::from_static(b"head")));
        assert!(matches!(s.body(104, 10), Body::Filler(f) if f.len == 10));
        let mixed = s.body(102, 6);
        assert_eq!(mixed.to_bytes()[..2], b"ad"[..]);
        assert_eq!(mixed.to_bytes()[2..], Body::filler(3, 4).to_bytes()[..]);
    }

    #[test]
    fn acknowledged_octets_are_forgotten_and_the_rest_stays_in_place() {
        let mut s = send();
        s.una = 100;
        s.write(Body::Real(Bytes::from_static(b"abcdef")));
        s.write(Body::Real(Bytes::from_static(b"ghij")));
        s.una = 103;
        s.release();
        assert_eq!(s.body(103, 7).to_bytes(), Bytes::from_static(b"defghij"));
        s.una = 106;
        s.release();
        assert_eq!(s.body(108, 2).to_bytes(), Bytes::from_static(b"ij"));
        s.una = 110;
        s.release();
        assert!(s.pieces.is_empty());
    }
}
