//! What arrived: TSNs, fragments, and messages in the order of their streams (RFC 9260, 6.2, 6.5, 6.6, 6.9; RFC 8260, 2.2).

use std::collections::{BTreeMap, VecDeque};

use airloom_base::Body;

use super::chunk::{Data, ForwardTsn, Sack};
use super::outbound::names;
use super::serial::{first, unwrap, unwrap16};

/// A message as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its stream.
    pub stream: u16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// It was sent without regard to the order.
    pub unordered: bool,
    /// It is a part of a message that the buffer is too small for: the rest follows on the same stream.
    pub continues: bool,
    /// It is empty: the rest of a message handed over in part was given up by the peer.
    pub is_given_up: bool,
    first: Body,
    /// What does not join the first piece.
    more: VecDeque<Body>,
    /// What it is counted for in the buffer.
    held: u64,
}

impl Message {
    /// Its octets.
    pub fn len(&self) -> usize {
        self.pieces().map(Body::len).sum()
    }

    /// The user data, in pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &Body> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// Is there nothing in it (any more)?
    pub fn is_empty(&self) -> bool {
        self.pieces().all(Body::is_empty)
    }

    pub(super) fn of(data: Data) -> Self {
        let (stream, ppid, unordered) = (data.stream, data.ppid, data.unordered);
        let held = charge(&data.body);
        let (continues, is_given_up) = (false, false);
        Message {
            stream,
            ppid,
            unordered,
            continues,
            is_given_up,
            first: data.body,
            more: VecDeque::new(),
            held,
        }
    }

    /// The end of one whose rest will not come.
    pub(super) fn given_up(stream: u16, unordered: bool) -> Self {
        let (first, more) = (Body::EMPTY, VecDeque::new());
        Message { stream, ppid: 0, unordered, continues: false, is_given_up: true, first, more, held: 0 }
    }

    pub(super) fn push(&mut self, body: Body) {
        self.held += charge(&body);
        let rest = self.more.back_mut().unwrap_or(&mut self.first).try_join(body).err();
        self.more.extend(rest);
    }
}

/// Fragments of one message of I-DATA.
#[derive(Default)]
pub(super) struct Partial {
    pub fragments: BTreeMap<u32, Data>,
    last: Option<u32>,
    /// Fragments handed over already.
    pub taken: u32,
}

#[derive(Default)]
pub(super) struct Stream {
    /// SSN or MID of the next ordered message.
    pub next: u64,
    /// Whole messages that came too early.
    early: BTreeMap<u64, Message>,
    /// Fragments by MID and whether it is unordered.
    pub partial: BTreeMap<(bool, u32), Partial>,
    /// To be read.
    ready: VecDeque<Message>,
    ready_octets: u64,
    used: bool,
}

/// The message of DATA that is handed over in parts.
pub(super) struct Parts {
    /// TSN of its next fragment.
    pub next: u64,
    pub stream: u16,
    pub unordered: bool,
}

/// What became of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was new.
    New,
    /// It was there already.
    Duplicate,
    /// There is no room for it.
    Dropped,
    /// There is no such stream; its TSN counts as received.
    NoStream,
    /// The fragments of a message contradict each other.
    Contradiction,
}

/// Streams that begin anew once everything up to a TSN is there (RFC 6525, 5.2.2).
struct PendingReset {
    last: u64,
    /// Streams; none: all.
    streams: Vec<u16>,
    /// What came under the new numbers already.
    early: Vec<(u64, Data)>,
}

/// What a chunk is counted for in the buffer.
fn charge(body: &Body) -> u64 {
    (body.len() as u64).max(LEAST)
}

/// Receive side of an association.
#[derive(Default)]
pub(super) struct Inbound {
    /// Everything up to here was received.
    pub cumulative: u64,
    /// Runs received beyond, sorted.
    ranges: Vec<(u64, u64)>,
    pub duplicates: Vec<u32>,
    pub(super) fragments: BTreeMap<u64, Data>,
    /// The message that is handed over in parts.
    pub(super) parts: Option<Parts>,
    streams: Vec<Stream>,
    limit: u16,
    /// Octets held.
    held: u64,
    buffer: u64,
    /// A reset of streams that waits for what was sent before it.
    reset: Option<PendingReset>,
    /// Streams that have something to read and had nothing before.
    pub fresh: VecDeque<u16>,
    pub delivered: u64,
}

/// Duplicates that are reported at a time.
const MOST_DUPLICATES: usize = 64;
/// Gap blocks count from the cumulative TSN in 16 bits: what is further away cannot be reported.
const REACH: u64 = 65_535;
/// Octets that a chunk is counted for at least where the memory is bounded, since an empty one takes some too.
const LEAST: u64 = 32;

impl Inbound {
    pub fn new(initial: u32, limit: u16, buffer: u64) -> Self {
        Inbound { cumulative: first(initial) - 1, limit, buffer, ..Default::default() }
    }

    /// Streams that the peer may send on.
    pub fn streams(&self) -> u16 {
        self.limit
    }

    /// Octets of the buffer that are free.
    pub fn window(&self) -> u64 {
        self.buffer.saturating_sub(self.held)
    }

    pub fn has_gaps(&self) -> bool {
        !self.ranges.is_empty()
    }

    fn highest(&self) -> u64 {
        self.ranges.last().map_or(self.cumulative, |r| r.1)
    }

    /// Was this TSN received?
    fn has(&self, tsn: u64) -> bool {
        tsn <= self.cumulative || {
            let at = self.ranges.partition_point(|r| r.1 < tsn);
            self.ranges.get(at).is_some_and(|r| r.0 <= tsn)
        }
    }

    fn note(&mut self, tsn: u64) {
        if tsn == self.cumulative + 1 {
            self.cumulative = tsn;
            self.swallow();
            return;
        }
        let at = self.ranges.partition_point(|r| r.1 < tsn);
        let joins_before = at > 0 && self.ranges[at - 1].1 + 1 == tsn;
        let joins_behind = self.ranges.get(at).is_some_and(|r| r.0 == tsn + 1);
        match (joins_before, joins_behind) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = tsn,
            (false, true) => self.ranges[at].0 = tsn,
            (false, false) => self.ranges.insert(at, (tsn, tsn)),
        }
    }

    /// Ranges that the cumulative TSN has reached are part of it.
    fn swallow(&mut self) {
        let mut reached = 0;
        for range in &self.ranges {
            if range.0 > self.cumulative + 1 {
                break;
            }
            self.cumulative = self.cumulative.max(range.1);
            reached += 1;
        }
        self.ranges.drain(..reached);
    }

    fn stream(&mut self, id: u16) -> &mut Stream {
        let at = usize::from(id);
        if at >= self.streams.len() {
            self.streams.resize_with(at + 1, || Stream { next: first(0), ..Stream::default() });
        }
        &mut self.streams[at]
    }

    pub(super) fn streams_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.iter_mut()
    }

    /// Number of the next ordered message of a stream.
    pub(super) fn next_of(&self, id: u16) -> u64 {
        self.streams.get(usize::from(id)).map_or(first(0), |stream| stream.next)
    }

    /// Takes a chunk.
    pub fn take(&mut self, data: Data) -> Taken {
        let tsn = unwrap(self.cumulative, data.tsn);
        if self.has(tsn) {
            if self.duplicates.len() < MOST_DUPLICATES {
                self.duplicates.push(data.tsn);
            }
            return Taken::Duplicate;
        }
        if tsn > self.cumulative + REACH {
            return Taken::Dropped;
        }
        let len = charge(&data.body);
        //= RFC 9260 (6.2): without room, what is beyond the highest TSN received is dropped.
        if self.held + len > self.buffer + len.min(LEAST) && tsn > self.highest() {
            return Taken::Dropped;
        }
        // What fills a gap may be taken beyond the window, within reason.
        if self.held > 2 * self.buffer {
            return Taken::Dropped;
        }
        self.note(tsn);
        if data.stream >= self.limit {
            return Taken::NoStream;
        }
        self.held += len;
        //= RFC 6525 (5.2.2, E2): what was sent after the reset waits for it.
        if let Some(reset) = &mut self.reset
            && tsn > reset.last
            && names(&reset.streams, data.stream)
        {
            reset.early.push((tsn, data));
            return Taken::New;
        }
        if self.place(tsn, data) { Taken::New } else { Taken::Contradiction }
    }

    /// Puts a chunk where it belongs. False: it contradicts others.
    fn place(&mut self, tsn: u64, data: Data) -> bool {
        match (data.begin && data.end, data.interleaved) {
            (true, true) if data.fsn != 0 => false,
            (true, true) => {
                // A fragment of the same message, begun or ended otherwise, contradicts it.
                let key = (data.unordered, data.sequence);
                let whole = self.stream(data.stream).partial.contains_key(&key);
                !whole && self.complete(Message::of(data.clone()), data.sequence, true)
            }
            (true, false) => {
                let sequence = data.sequence;
                !self.contradicts(tsn, &data) && self.complete(Message::of(data), sequence, false)
            }
            (false, true) => self.interleaved(data),
            (false, false) => self.fragment(tsn, data),
        }
    }

    /// Do the neighbours in TSN of this chunk say otherwise about where messages begin and end?
    fn contradicts(&self, tsn: u64, data: &Data) -> bool {
        let before = self.fragments.get(&(tsn - 1)).is_some_and(|b| !b.end && data.begin);
        let behind = self.fragments.get(&(tsn + 1)).is_some_and(|b| !b.begin && data.end);
        before || behind || self.breaks_parts(tsn, data)
    }

    /// A fragment of DATA: consecutive TSNs make the message.
    fn fragment(&mut self, tsn: u64, data: Data) -> bool {
        let same = |other: &Data| {
            other.stream == data.stream
                && other.unordered == data.unordered
                && (data.unordered || other.sequence == data.sequence)
        };
        if self.contradicts(tsn, &data)
            || (!data.begin && self.fragments.get(&(tsn - 1)).is_some_and(|b| b.end || !same(b)))
            || (!data.end && self.fragments.get(&(tsn + 1)).is_some_and(|b| b.begin || !same(b)))
        {
            return false;
        }
        let ends = data.end || self.fragments.contains_key(&(tsn + 1));
        self.fragments.insert(tsn, data);
        if !ends {
            return true;
        }
        // Back to the beginning and on to the end, if all is there.
        let mut begin = tsn;
        while self.fragments.get(&begin).is_some_and(|d| !d.begin) && !self.is_next_part(begin) {
            begin -= 1;
        }
        let mut end = tsn;
        while self.fragments.get(&end).is_some_and(|d| !d.end) {
            end += 1;
        }
        if !self.fragments.contains_key(&begin) || !self.fragments.contains_key(&end) {
            return true;
        }
        if self.is_next_part(begin) {
            self.parts = None;
        }
        let Some(first) = self.fragments.remove(&begin) else { return true };
        let sequence = first.sequence;
        let mut message = Message::of(first);
        for tsn in begin + 1..=end {
            if let Some(data) = self.fragments.remove(&tsn) {
                message.push(data.body);
            }
        }
        self.complete(message, sequence, false)
    }

    /// A fragment of I-DATA: MID and FSN make the message.
    fn interleaved(&mut self, data: Data) -> bool {
        let stream = self.stream(data.stream);
        let key = (data.unordered, data.sequence);
        if !data.unordered && unwrap(stream.next, data.sequence) < stream.next {
            // Of a message that was given up or delivered.
            self.held = self.held.saturating_sub(charge(&data.body));
            return true;
        }
        let partial = stream.partial.entry(key).or_default();
        if data.end && partial.last.replace(data.fsn).is_some() {
            return false;
        }
        let fsn = data.fsn;
        let is_early = fsn < partial.taken;
        if is_early || data.begin != (fsn == 0) || partial.fragments.insert(fsn, data).is_some() {
            return false;
        }
        let Some(last) = partial.last else { return true };
        if partial.fragments.last_key_value().is_some_and(|(fsn, _)| *fsn > last) {
            return false;
        }
        if partial.fragments.len() as u64 + u64::from(partial.taken) != u64::from(last) + 1 {
            return true;
        }
        let Some(partial) = stream.partial.remove(&key) else { return true };
        let mut fragments = partial.fragments.into_values();
        let Some(first) = fragments.next() else { return true };
        let mut message = Message::of(first);
        for data in fragments {
            message.push(data.body);
        }
        self.complete(message, key.1, true)
    }

    /// A message is whole: it waits for its turn, or is ready. False: there is another one of its number.
    fn complete(&mut self, message: Message, sequence: u32, interleaved: bool) -> bool {
        let id = message.stream;
        let stream = self.stream(id);
        if message.unordered {
            self.ready(message);
            return true;
        }
        let sequence =
            if interleaved { unwrap(stream.next, sequence) } else { unwrap16(stream.next, sequence as u16) };
        if sequence != stream.next {
            if sequence < stream.next {
                // It was given up meanwhile.
                self.held = self.held.saturating_sub(message.held);
                return true;
            }
            return stream.early.insert(sequence, message).is_none();
        }
        stream.next += 1;
        self.ready(message);
        self.advance(id);
        true
    }

    /// Messages whose turn has come are ready.
    fn advance(&mut self, id: u16) {
        loop {
            let stream = self.stream(id);
            let next = stream.next;
            let Some(message) = stream.early.remove(&next) else { return };
            stream.next += 1;
            self.ready(message);
        }
    }

    pub(super) fn ready(&mut self, message: Message) {
        let (id, len) = (message.stream, message.len() as u64);
        self.delivered += len;
        let stream = self.stream(id);
        stream.used = true;
        // The end of a message that was given up has no octets, and who reads octets leaves it where it is.
        let was_empty = stream.ready_octets == 0;
        stream.ready_octets += len;
        stream.ready.push_back(message);
        if was_empty {
            self.fresh.push_back(id);
        }
    }

    /// Octets that can be read from a stream.
    pub fn readable(&self, id: u16) -> u64 {
        self.streams.get(usize::from(id)).map_or(0, |s| s.ready_octets)
    }

    /// Is there a message to be read from a stream, if only the end of one that was given up?
    pub fn has_message(&self, id: u16) -> bool {
        self.streams.get(usize::from(id)).is_some_and(|s| !s.ready.is_empty())
    }

    /// Is there nothing that waits to be read?
    pub fn is_read(&self) -> bool {
        self.streams.iter().all(|s| s.ready_octets == 0)
    }

    /// Streams that data came on.
    pub fn used(&self) -> impl Iterator<Item = u16> {
        (0u16..).zip(&self.streams).filter(|(_, s)| s.used).map(|(id, _)| id)
    }

    /// Takes a whole message.
    pub fn receive(&mut self, id: u16) -> Option<Message> {
        let stream = self.streams.get_mut(usize::from(id))?;
        let message = stream.ready.pop_front()?;
        stream.ready_octets -= message.len() as u64;
        self.held = self.held.saturating_sub(message.held);
        Some(message)
    }

    /// Takes octets without regard to where messages end, as many as lie together.
    pub fn read(&mut self, id: u16, max: usize) -> Option<Body> {
        let stream = self.streams.get_mut(usize::from(id))?;
        loop {
            let message = stream.ready.front_mut()?;
            let part = message.first.split_to(max);
            let len = part.len() as u64;
            stream.ready_octets -= len;
            let mut released = len.min(message.held);
            message.held -= released;
            if message.first.is_empty() {
                match message.more.pop_front() {
                    Some(next) => message.first = next,
                    None => {
                        released += message.held;
                        stream.ready.pop_front();
                    }
                }
            }
            self.held = self.held.saturating_sub(released);
            if len > 0 {
                return Some(part);
            }
            if max == 0 {
                return None;
            }
        }
    }

    /// The peer gives up what is missing up to a TSN (RFC 3758, 3.6). False: a chunk of the wrong kind.
    pub fn forward(&mut self, forward: &ForwardTsn) {
        let to = unwrap(self.cumulative, forward.cumulative);
        if to <= self.cumulative || to > self.cumulative + REACH {
            return;
        }
        self.cumulative = to;
        self.ranges.retain_mut(|r| {
            r.0 = r.0.max(to + 1);
            r.0 <= r.1
        });
        self.swallow();
        // Fragments of messages that will not be whole.
        let kept = self.fragments.split_off(&(to + 1));
        let mut dropped: u64 = self.fragments.values().map(|d| charge(&d.body)).sum();
        self.fragments = kept;
        if let Some(Parts { stream, unordered, .. }) = self.parts.take_if(|parts| parts.next <= to) {
            self.break_off(stream, unordered);
        }
        for skipped in &forward.skipped {
            if skipped.stream >= self.limit {
                continue;
            }
            let stream = self.stream(skipped.stream);
            let (mut all, next) = (BTreeMap::new(), stream.next);
            std::mem::swap(&mut all, &mut stream.partial);
            for ((unordered, mid), partial) in all {
                let is_given_up =
                    unordered == skipped.unordered && mid.wrapping_sub(skipped.sequence).cast_signed() <= 0;
                if is_given_up {
                    dropped += partial.fragments.values().map(|d| charge(&d.body)).sum::<u64>();
                    if partial.taken > 0 {
                        self.break_off(skipped.stream, unordered);
                    }
                } else {
                    self.stream(skipped.stream).partial.insert((unordered, mid), partial);
                }
            }
            if skipped.unordered {
                continue;
            }
            let sequence = if forward.interleaved {
                unwrap(next, skipped.sequence)
            } else {
                unwrap16(next, skipped.sequence as u16)
            };
            // What came early and is not missing is delivered in its order.
            while self.stream(skipped.stream).next <= sequence {
                let stream = self.stream(skipped.stream);
                let Some((&early, _)) = stream.early.first_key_value().filter(|(s, _)| **s <= sequence)
                else {
                    stream.next = sequence + 1;
                    break;
                };
                stream.next = early;
                self.advance(skipped.stream);
            }
            self.advance(skipped.stream);
        }
        self.held = self.held.saturating_sub(dropped);
    }

    /// The peer's streams (none: all) begin anew behind this TSN. Done already, or once all before has come
    /// ([`Inbound::reset_done`])?
    pub fn reset(&mut self, last: u32, streams: &[u16]) -> bool {
        let last = unwrap(self.cumulative, last);
        if last <= self.cumulative {
            self.begin_anew(streams);
            return true;
        }
        self.reset = Some(PendingReset { last, streams: streams.to_vec(), early: Vec::new() });
        false
    }

    /// Is it this reset that is waited for?
    pub fn awaits_reset(&self, last: u32, streams: &[u16]) -> bool {
        let last = unwrap(self.cumulative, last);
        self.reset.as_ref().is_some_and(|reset| reset.last == last && reset.streams == streams)
    }

    /// If the reset that was waited for can be done: does it. False: what came behind it contradicts itself.
    pub fn reset_done(&mut self) -> Option<(Vec<u16>, bool)> {
        let reset = self.reset.take_if(|reset| reset.last <= self.cumulative)?;
        self.begin_anew(&reset.streams);
        let is_good = reset.early.into_iter().all(|(tsn, data)| self.place(tsn, data));
        Some((reset.streams, is_good))
    }

    /// The next message of these streams (none: of all) is the first one again.
    fn begin_anew(&mut self, streams: &[u16]) {
        let ids = (0..self.limit).take(self.streams.len());
        for id in ids.filter(|id| names(streams, *id)) {
            // What came early and waits for what was given up is delivered in its order.
            while let Some((&early, _)) = self.stream(id).early.first_key_value() {
                self.stream(id).next = early;
                self.advance(id);
            }
            let stream = self.stream(id);
            stream.next = first(0);
            let partial = std::mem::take(&mut stream.partial);
            let octets: u64 =
                partial.values().flat_map(|p| p.fragments.values()).map(|d| charge(&d.body)).sum();
            self.held = self.held.saturating_sub(octets);
            for ((unordered, _), _) in partial.into_iter().filter(|(_, p)| p.taken > 0) {
                self.break_off(id, unordered);
            }
        }
    }

    /// Everything begins anew: the peer's next TSN is this one, and so do the streams (RFC 6525, 5.2.4).
    pub fn restart(&mut self, next: u32) {
        let dropped: u64 = self.fragments.values().map(|d| charge(&d.body)).sum();
        self.held = self.held.saturating_sub(dropped);
        self.fragments.clear();
        if let Some(Parts { stream, unordered, .. }) = self.parts.take() {
            self.break_off(stream, unordered);
        }
        self.ranges.clear();
        self.duplicates.clear();
        let early = self.reset.take().map_or_else(Vec::new, |reset| reset.early);
        self.held = self.held.saturating_sub(early.iter().map(|(_, d)| charge(&d.body)).sum());
        self.begin_anew(&[]);
        self.cumulative = first(next) - 1;
    }

    /// The peer may send on so many streams more.
    pub fn add(&mut self, streams: u16) {
        self.limit = self.limit.saturating_add(streams);
    }

    /// The acknowledgement, of at most so many gap blocks and duplicates together.
    pub fn sack(&mut self, room: usize) -> Sack {
        //= RFC 9260 (6.7): if not all fit, those of the lowest TSNs.
        let offset = |tsn: u64| (tsn - self.cumulative) as u16;
        let gaps: Vec<_> = self.ranges.iter().take(room).map(|r| (offset(r.0), offset(r.1))).collect();
        let duplicates = self.duplicates.drain(..).take(room - gaps.len()).collect();
        Sack {
            cumulative: self.cumulative as u32,
            window: self.window().min(u64::from(u32::MAX)) as u32,
            gaps,
            duplicates,
        }
    }

    /// Entries that the next acknowledgement has.
    pub fn sack_entries(&self) -> usize {
        self.ranges.len() + self.duplicates.len()
    }
}
