//! What one end of a connection sends, and what the other end says of it.

use std::collections::{BTreeMap, VecDeque};

use airloom_transports::tcp::ranges::Ranges;
use airloom_transports::tcp::wire::Flags;

use crate::samples::Samples;
use crate::segment::Segment;

/// Sequence numbers are counted from here, in 64 bits: what lies before the first one seen has a place, too.
pub(crate) const START: u64 = 1 << 32;

/// How many separate pieces of what was sent are told apart.
const MOST_PIECES: usize = 4096;

/// How many segments wait for their acknowledgement at most, to be measured.
const MOST_WAITING: usize = 1 << 14;

/// Duplicate acknowledgements that mean a loss (RFC 5681 3.2).
const DUPLICATES: u32 = 3;

/// An acknowledgement is followed by what it sets off within this time, or within a round trip where that is longer.
const AT_ONCE_NS: u64 = 20_000_000;

/// A segment that fills a hole so soon after it showed was overtaken (as Wireshark has it).
const OVERTAKEN_NS: u64 = 3_000_000;

/// What made a sender send something again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Duplicate acknowledgements or selective ones (RFC 5681 3.2, RFC 6675).
    Fast,
    /// Nothing came: a retransmission timeout (RFC 6298) or a tail loss probe (RFC 8985 7).
    Timer,
}

/// What a segment with data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sent for the first time.
    New,
    /// Sent again; the other end had it already (`needless`), or it did not say so yet.
    Again { cause: Cause, needless: bool },
    /// A hole filled soon after it showed.
    OutOfOrder,
    /// An octet that is acknowledged already, or its number alone, to hear of the other end (RFC 9293 3.8.4).
    KeepAlive,
    /// An octet into a window that is closed (RFC 9293 3.8.6.1), or nothing but such a number meanwhile.
    WindowProbe,
}

/// Counts of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) segments: u64,
    pub(crate) data_segments: u64,
    /// Octets of data, every transmission.
    pub(crate) octets: u64,
    pub(crate) fast: u64,
    pub(crate) timer: u64,
    /// Of both, those of octets that had not been seen before.
    pub(crate) filled: u64,
    pub(crate) needless: u64,
    pub(crate) fast_recoveries: u64,
    pub(crate) timeouts: u64,
    pub(crate) out_of_order: u64,
    pub(crate) keep_alives: u64,
    pub(crate) window_probes: u64,
    /// Acknowledged octets that were never seen; known at the end.
    pub(crate) unseen_octets: u64,
    /// Times that the other end's window was full.
    pub(crate) window_full: u64,
    pub(crate) duplicate_acks: u64,
    /// Acknowledgements with selective blocks, and those that report a duplicate (RFC 2883).
    pub(crate) selective_acks: u64,
    pub(crate) duplicates_reported: u64,
    /// Times that the other end closed its window.
    pub(crate) zero_windows: u64,
}

struct Waiting {
    end: u64,
    sent_ns: u64,
    is_again: bool,
}

/// The octets that were sent again last, until it is known whether that was needed.
#[derive(Clone, Copy)]
struct Doubt {
    begin: u64,
    sent_ns: u64,
    /// Value of the timestamp option.
    stamp: Option<u32>,
}

/// What was missing in front of a segment: when that showed, and the segment's timestamp.
#[derive(Clone, Copy)]
struct Hole {
    at_ns: u64,
    stamp: Option<u32>,
}

/// Value of the timestamp option.
fn stamp(segment: &Segment) -> Option<u32> {
    segment.header.options.timestamps.map(|(value, _)| value)
}

struct Recovery {
    cause: Cause,
    /// It is over when all up to here is acknowledged.
    point: u64,
}

#[derive(Default)]
pub(crate) struct Sender {
    /// The sequence number that is counted as [`START`].
    base: Option<u32>,
    /// One past the highest octet sent.
    pub(crate) end: u64,
    /// One past the highest octet acknowledged.
    pub(crate) acked: u64,
    seen: Ranges,
    /// Has the other end acknowledged anything? Before that `acked` is a guess: where the capture began.
    has_acks: bool,
    has_syn: bool,
    /// The places of the first octet of data since the capture began, and of the FIN.
    first: Option<u64>,
    fin: Option<u64>,
    /// What selective blocks said above `acked`.
    sacked: Ranges,
    /// Duplicates as a sender counts them to find a loss: with selective blocks any that says something new
    /// (RFC 6675 2).
    duplicates: u32,
    waiting: VecDeque<Waiting>,
    recovery: Option<Recovery>,
    doubt: Option<Doubt>,
    /// By the place of the segment behind it.
    holes: BTreeMap<u64, Hole>,
    pub(crate) counts: Counts,
    pub(crate) rtt: Samples,
    /// Round trip of the handshake, or the first of the others: both halves of the way, wherever the capture was.
    pub(crate) round_trip_ns: Option<u64>,
    /// The window field of the other end's last segment, and its shift; not known before that.
    field: Option<(u16, Option<u8>)>,
    pub(crate) windows: Option<(u64, u64)>,
    /// Shift of the window that the other end offers; SYNs alone say it.
    pub(crate) scale: Option<u8>,
    pub(crate) most_in_flight: u64,
    pub(crate) last_ack_ns: Option<u64>,
    /// Since when there has been nothing to acknowledge.
    pub(crate) idle_since_ns: Option<u64>,
    pub(crate) mss: Option<u16>,
    /// First and last time that data was sent.
    pub(crate) data_ns: Option<(u64, u64)>,
}

impl Sender {
    /// The place of a sequence number: the one nearest to the highest seen.
    pub(crate) fn place(&mut self, seq: u32) -> u64 {
        let base = *self.base.get_or_insert_with(|| {
            (self.end, self.acked) = (START, START);
            seq
        });
        let expected = base.wrapping_add((self.end - START) as u32);
        self.end.saturating_add_signed(i64::from(seq.wrapping_sub(expected) as i32))
    }

    /// Has a sequence number been seen?
    pub(crate) fn is_known(&self) -> bool {
        self.base.is_some()
    }

    /// Shift of the window that the other end offers, agreed on in the handshake (RFC 7323 2).
    pub(crate) fn set_scale(&mut self, shift: u8) {
        self.scale = Some(shift.min(14));
    }

    /// The window that the other end offers, in octets; not known before its first segment, nor without the shift, unless it is closed.
    pub(crate) fn window(&self) -> Option<u64> {
        match self.field? {
            (0, _) => Some(0),
            (field, shift) => Some(u64::from(field) << shift?),
        }
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.end.saturating_sub(self.acked)
    }

    /// Octets of data that were seen, each once.
    pub(crate) fn unique(&self) -> u64 {
        self.seen.total()
    }

    fn is_answer(&self, at_ns: u64) -> bool {
        let soon = self.round_trip_ns.unwrap_or(0).max(AT_ONCE_NS);
        self.last_ack_ns.is_some_and(|last| at_ns.saturating_sub(last) <= soon)
    }

    /// A segment of this end that takes up sequence numbers. `begin` is the place of its first. What is seen
    /// here reaches both ends, and what they make of it comes here, within `round_ns` at the soonest.
    pub(crate) fn data(&mut self, segment: &Segment, begin: u64, round_ns: u64) -> Kind {
        let at_ns = segment.at_ns;
        let flags = segment.header.flags;
        let ends = u64::from(flags.has(Flags::SYN)) + u64::from(flags.has(Flags::FIN));
        let end = begin + u64::from(segment.payload) + ends;
        let data = begin + u64::from(flags.has(Flags::SYN));
        self.has_syn |= flags.has(Flags::SYN);
        if segment.payload > 0 || flags.has(Flags::SYN) {
            self.first.get_or_insert(data.max(START));
        }
        if flags.has(Flags::FIN) {
            self.fin.get_or_insert(end - 1);
        }
        let kind = self.kind(segment, begin, end, ends > 0, round_ns);
        if begin > self.end {
            if self.holes.len() == MOST_PIECES {
                self.holes.pop_first();
            }
            self.holes.insert(begin, Hole { at_ns, stamp: stamp(segment) });
        }
        match kind {
            Kind::KeepAlive => self.counts.keep_alives += 1,
            Kind::WindowProbe => {
                self.counts.window_probes += 1;
                // It may be taken: then what comes next is what follows it.
                self.seen.insert(begin, end);
            }
            Kind::OutOfOrder => self.counts.out_of_order += 1,
            Kind::New => {}
            Kind::Again { cause, needless } => {
                self.sent_again(cause, at_ns, begin);
                self.counts.filled += u64::from(self.is_hole(data, segment.payload));
                self.counts.needless += u64::from(needless);
                if !needless && self.doubt.is_none() {
                    self.doubt = Some(Doubt { begin, sent_ns: at_ns, stamp: stamp(segment) });
                }
            }
        }
        if matches!(kind, Kind::KeepAlive | Kind::WindowProbe) {
            return kind;
        }
        self.counts.octets += u64::from(segment.payload);
        if segment.payload > 0 {
            self.counts.data_segments += 1;
            let first = self.data_ns.map_or(at_ns, |(first, _)| first);
            self.data_ns = Some((first, at_ns));
            self.seen.insert(data, data + u64::from(segment.payload));
            if self.seen.count() > MOST_PIECES {
                let (from, to) = self.seen.next_gap(self.seen.lowest().unwrap_or(START));
                self.seen.insert(from, to);
            }
        }
        self.end = self.end.max(end);
        self.idle_since_ns = None;
        self.most_in_flight = self.most_in_flight.max(self.in_flight());
        let edge = self.window().map(|window| self.acked + window);
        self.counts.window_full += u64::from(segment.payload > 0 && edge.is_some_and(|edge| end >= edge));
        self.wait(end, at_ns, kind != Kind::New);
        kind
    }

    /// A segment of this end with an acknowledgement and nothing else. One that goes back by an octet asks for an answer: so do
    /// systems that send no octet for that, whether they wait for the window or for a sign of life.
    pub(crate) fn bare(&mut self, begin: u64) -> Option<Kind> {
        if !self.is_before_all(begin) {
            return None;
        }
        if self.window() == Some(0) {
            self.counts.window_probes += 1;
            return Some(Kind::WindowProbe);
        }
        self.counts.keep_alives += 1;
        Some(Kind::KeepAlive)
    }

    /// Does it begin an octet before what is sent next, although all is acknowledged?
    fn is_before_all(&self, begin: u64) -> bool {
        begin + 1 == self.end && self.acked >= self.end
    }

    fn kind(&self, segment: &Segment, begin: u64, end: u64, is_control: bool, round_ns: u64) -> Kind {
        let (at_ns, payload) = (segment.at_ns, segment.payload);
        if payload == 1 && !is_control && self.is_before_all(begin) {
            return Kind::KeepAlive;
        }
        if payload == 1 && !is_control && self.window() == Some(0) && begin <= self.end && begin >= self.acked
        {
            return Kind::WindowProbe;
        }
        if begin >= self.end {
            return Kind::New;
        }
        let needless = self.has_acks && end <= self.acked;
        if !needless && self.is_hole(begin, payload) && self.is_overtaken(segment, end, round_ns) {
            return Kind::OutOfOrder;
        }
        let cause = match &self.recovery {
            _ if !self.is_answer(at_ns) => Cause::Timer,
            Some(recovery) if self.acked < recovery.point => recovery.cause,
            _ if self.is_loss_known(end) => Cause::Fast,
            _ => Cause::Timer,
        };
        Kind::Again { cause, needless }
    }

    /// Is this data, and was nothing of it seen before, although what lies above it was? A SYN or a FIN alone is none.
    fn is_hole(&self, begin: u64, payload: u32) -> bool {
        let (from, to) = self.seen.next_gap(begin);
        payload > 0 && from == begin && to >= begin + u64::from(payload)
    }

    /// Did what fills a hole leave before the segment behind it? Not every report of the hole set it off: near the receiver one is
    /// always there first.
    fn is_overtaken(&self, segment: &Segment, end: u64, round_ns: u64) -> bool {
        let Some((_, hole)) = self.holes.range(end..).next() else { return false };
        let since_ns = segment.at_ns.saturating_sub(hole.at_ns);
        // A sender's timestamps never go back (RFC 7323 5.1).
        let stamps = stamp(segment).zip(hole.stamp);
        let is_later = stamps.is_some_and(|(own, behind)| (own.wrapping_sub(behind) as i32) > 0);
        let soon_ns = self.round_trip_ns.unwrap_or(0).max(OVERTAKEN_NS);
        // Sooner than anything can be an answer.
        let is_too_soon = since_ns < round_ns / 4 * 3;
        !is_later && (is_too_soon || (since_ns < soon_ns && !self.is_loss_known(end)))
    }

    /// Has the other end said that what ends here is missing?
    fn is_loss_known(&self, end: u64) -> bool {
        self.duplicates >= DUPLICATES || self.sacked.end().is_some_and(|sacked| sacked > end)
    }

    fn sent_again(&mut self, cause: Cause, at_ns: u64, begin: u64) {
        let is_under_way = self.recovery.as_ref().is_some_and(|r| self.acked < r.point && r.cause == cause);
        // While nothing is answered each further transmission is a timeout of its own.
        let is_new =
            !is_under_way || (cause == Cause::Timer && !self.is_answer(at_ns) && !self.is_burst(at_ns));
        match cause {
            Cause::Fast => {
                self.counts.fast += 1;
                self.counts.fast_recoveries += u64::from(is_new);
            }
            Cause::Timer => {
                self.counts.timer += 1;
                self.counts.timeouts += u64::from(is_new);
            }
        }
        // A tail loss probe is the last segment: what its answer reports to be missing before it is sent again by that (RFC 8985 7).
        let is_probe = cause == Cause::Timer && begin > self.acked;
        if is_new && !is_probe {
            self.recovery = Some(Recovery { cause, point: self.end });
        }
    }

    /// Did another segment leave just before?
    fn is_burst(&self, at_ns: u64) -> bool {
        self.waiting.back().is_some_and(|last| at_ns.saturating_sub(last.sent_ns) < AT_ONCE_NS)
    }

    fn wait(&mut self, end: u64, sent_ns: u64, is_again: bool) {
        if is_again {
            // Which transmission is acknowledged cannot be told (Karn's rule, RFC 6298 3).
            for one in self.waiting.iter_mut().rev().take_while(|one| one.end >= end) {
                one.is_again = true;
            }
        }
        if self.waiting.len() == MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting { end, sent_ns, is_again });
    }

    /// The other end says what it has: a segment with an acknowledgement of this place, `is_bare` without anything else.
    /// Is it a duplicate?
    pub(crate) fn acknowledged(&mut self, segment: &Segment, ack: u64, is_bare: bool) -> bool {
        let at_ns = segment.at_ns;
        let flags = segment.header.flags;
        let says_new = self.selective(segment, ack);
        // That of a SYN is not scaled (RFC 7323 2.2).
        let shift = if flags.has(Flags::SYN) { Some(0) } else { self.scale };
        let field = (segment.header.window, shift);
        let is_same_window = self.field == Some(field);
        if !flags.has(Flags::RST) {
            self.offered(field, flags.has(Flags::SYN));
        }
        let is_duplicate = is_bare && ack == self.acked && is_same_window && self.end > ack;
        if ack > self.acked {
            self.end = self.end.max(ack);
            self.settle_doubt(segment, ack);
            self.measure(at_ns, ack);
            self.acked = ack;
            self.sacked.remove_below(ack);
            self.holes = self.holes.split_off(&ack);
            // An answer to a SYN with data that acknowledges the SYN alone reports a loss, too (RFC 7413 4.2.2).
            self.duplicates = if flags.has(Flags::SYN) && ack < self.end { DUPLICATES } else { 0 };
            if ack == self.end {
                self.idle_since_ns = Some(at_ns);
            }
            if self.recovery.as_ref().is_some_and(|r| ack >= r.point) {
                self.recovery = None;
            }
        } else if !self.has_acks && !self.has_syn {
            // The capture began in the middle, with data that was sent before all in front of it was acknowledged.
            self.acked = ack;
        }
        self.has_acks = true;
        self.duplicates += u32::from(is_duplicate || says_new);
        if segment.has_cut_blocks && ack == self.acked && self.end > ack {
            self.duplicates = self.duplicates.max(DUPLICATES);
        }
        self.counts.duplicate_acks += u64::from(is_duplicate);
        self.last_ack_ns = Some(at_ns);
        is_duplicate
    }

    fn offered(&mut self, field: (u16, Option<u8>), is_first: bool) {
        self.counts.zero_windows += u64::from(field.0 == 0 && self.window() != Some(0));
        self.field = Some(field);
        // That of a SYN is none to send by.
        if !is_first
            && self.scale.is_some()
            && let Some(window) = self.window()
        {
            let (least, most) = self.windows.unwrap_or((window, window));
            self.windows = Some((least.min(window), most.max(window)));
        }
    }

    /// Takes selective blocks. Do they say something new?
    fn selective(&mut self, segment: &Segment, ack: u64) -> bool {
        let blocks = segment.header.options.sack.as_slice();
        if blocks.is_empty() || !self.is_known() {
            return false;
        }
        self.counts.selective_acks += 1;
        let mut new = 0;
        let second = blocks.get(1).map(|(left, right)| (self.place(*left), self.place(*right)));
        for (number, (left, right)) in blocks.iter().enumerate() {
            let (left, right) = (self.place(*left), self.place(*right));
            //= RFC 2883 (5): the first block reports a duplicate if it is acknowledged, or a part of the second one.
            let is_within = second.is_some_and(|(l, r)| l <= left && right <= r);
            if number == 0 && (right <= ack || is_within) && left < right {
                self.counts.duplicates_reported += 1;
            } else if ack <= left && left < right && right <= self.end && self.sacked.count() < MOST_PIECES {
                new += self.sacked.insert(left.max(self.acked), right.max(self.acked));
            }
        }
        new > 0
    }

    /// The capture ended: what was acknowledged since it began, and is not among what was seen.
    pub(crate) fn finish(&mut self) {
        let first = self.first.unwrap_or(START);
        let octets = self.acked.saturating_sub(first);
        let fin = u64::from(self.fin.is_some_and(|fin| (first..self.acked).contains(&fin)));
        let seen = self.seen.total_from(first).saturating_sub(self.seen.total_from(self.acked.max(first)));
        self.counts.unseen_octets = octets.saturating_sub(fin + seen);
    }

    /// A retransmission was needless if the acknowledgement that covers it answers the first transmission: by the
    /// timestamp that it echoes (RFC 3522 3.2), or because it came sooner than anything can.
    fn settle_doubt(&mut self, segment: &Segment, ack: u64) {
        let Some(doubt) = self.doubt else { return };
        if ack <= doubt.begin {
            return;
        }
        self.doubt = None;
        let echoed = segment.header.options.timestamps.map(|(_, echo)| echo);
        let is_of_first = match (doubt.stamp, echoed) {
            (Some(sent), Some(echoed)) => (echoed.wrapping_sub(sent) as i32) < 0,
            _ => {
                let since = segment.at_ns.checked_sub(doubt.sent_ns);
                self.rtt.least().zip(since).is_some_and(|(least, since)| since < least / 4 * 3)
            }
        };
        self.counts.needless += u64::from(is_of_first);
    }

    fn measure(&mut self, at_ns: u64, ack: u64) {
        let mut newest = None;
        while let Some(one) = self.waiting.front().filter(|one| one.end <= ack) {
            newest = Some((one.sent_ns, one.is_again));
            self.waiting.pop_front();
        }
        // A clock that was set back meanwhile measures nothing.
        if let Some((sent_ns, false)) = newest
            && let Some(took) = at_ns.checked_sub(sent_ns)
        {
            self.rtt.push(took);
            // Near the receiver this is no round trip: that of the handshake then stays the larger one.
            self.round_trip_ns.get_or_insert(took);
        }
    }
}
