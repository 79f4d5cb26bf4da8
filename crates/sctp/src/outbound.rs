//! Messages that wait to be sent, stream by stream, and how they become chunks.

use std::collections::{BTreeSet, VecDeque};

use airloom_base::{Body, Instant};

use super::chunk::Data;
use super::scheduler::{Scheduler, Scheduling, Standing};

/// How long a message is worth sending (RFC 3758, 7496).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// Until it arrives.
    Full,
    /// Until this moment.
    Until(Instant),
    /// With so many retransmissions of any of its chunks.
    Retransmissions(u32),
    /// Until it arrives, or a more important message needs its room in the send buffer before it was begun; 0 is the most
    /// important.
    Priority(u32),
}

impl Reliability {
    /// May a message of this kind take the room of one that is sent by `other` (RFC 7496, 3.2)?
    fn displaces(self, other: Reliability) -> bool {
        match (self, other) {
            (Reliability::Full, Reliability::Priority(_)) => true,
            (Reliability::Priority(own), Reliability::Priority(other)) => own < other,
            _ => false,
        }
    }
}

/// A message as the user gives it.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The user data.
    pub body: Body,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Delivered without regard to the order of the stream.
    pub unordered: bool,
    /// The peer shall acknowledge it at once.
    pub immediate: bool,
    /// How long it is worth sending.
    pub reliability: Reliability,
}

impl Outgoing {
    /// An ordered message that is sent until it arrives.
    pub fn new(body: Body) -> Self {
        Outgoing { body, ppid: 0, unordered: false, immediate: false, reliability: Reliability::Full }
    }
}

struct Waiting {
    message: Outgoing,
    /// When it was written, among all messages.
    order: u64,
    /// Number of its next fragment.
    fsn: u32,
}

#[derive(Default)]
struct Stream {
    queue: VecDeque<Waiting>,
    ordered: u32,
    unordered: u32,
    standing: Standing,
}

/// All outgoing streams.
#[derive(Default)]
pub(super) struct Outbound {
    streams: Vec<Stream>,
    limit: u16,
    /// Streams with something to send.
    ready: BTreeSet<u16>,
    scheduler: Scheduler,
    /// The stream whose message is being sent and, without I-DATA, must be finished first.
    current: Option<u16>,
    /// Octets that wait.
    pub waiting: u64,
    orders: u64,
    /// What waits for a reset of its stream.
    held: Option<Renumbering>,
}

/// Messages that are to be sent under numbers that begin anew (RFC 6525, 5.1.2).
struct Renumbering {
    /// Streams; none: all.
    streams: Vec<u16>,
    /// What was written up to this one goes out under the old numbers.
    after: u64,
}

impl Renumbering {
    fn holds(&self, stream: u16, order: u64) -> bool {
        order > self.after && names(&self.streams, stream)
    }
}

/// Does a list of streams of RFC 6525 name this one? An empty one names all.
pub(super) fn names(streams: &[u16], id: u16) -> bool {
    streams.is_empty() || streams.contains(&id)
}

/// The next fragment.
pub(super) struct Fragment {
    pub data: Data,
    pub reliability: Reliability,
    /// Number of its message.
    pub order: u64,
}

impl Outbound {
    pub fn new(limit: u16, kind: Scheduling) -> Self {
        Outbound { limit, scheduler: Scheduler::new(kind), ..Default::default() }
    }

    /// The number of streams that both ends agreed on. What waits on others is dropped; returns its octets.
    pub fn limit(&mut self, streams: u16) -> u64 {
        self.limit = streams;
        let beyond = self.streams.get_mut(usize::from(streams)..).unwrap_or_default();
        let dropped: u64 =
            beyond.iter_mut().flat_map(|s| s.queue.drain(..)).map(|w| w.message.body.len() as u64).sum();
        let _ = self.ready.split_off(&streams);
        self.waiting -= dropped;
        dropped
    }

    /// Streams there are.
    pub fn streams(&self) -> u16 {
        self.limit
    }

    pub fn has(&self, stream: u16) -> bool {
        stream < self.limit
    }

    fn stream(&mut self, id: u16) -> &mut Stream {
        let at = usize::from(id);
        if at >= self.streams.len() {
            self.streams.resize_with(at + 1, Stream::default);
        }
        &mut self.streams[at]
    }

    /// What the scheduler knows of a stream.
    pub fn standing(&mut self, id: u16) -> &mut Standing {
        &mut self.stream(id).standing
    }

    /// All that waits is dropped; there are so many streams, and priorities and weights stay.
    pub fn begin_again(&mut self, limit: u16, scheduling: Scheduling) {
        let before = std::mem::replace(self, Outbound::new(limit, scheduling));
        for (id, stream) in (0..limit).zip(before.streams) {
            let standing = self.standing(id);
            (standing.priority, standing.weight) = (stream.standing.priority, stream.standing.weight);
        }
    }

    /// Takes a message for a stream that there is.
    pub fn push(&mut self, id: u16, message: Outgoing) {
        self.waiting += message.body.len() as u64;
        self.orders += 1;
        let order = self.orders;
        self.stream(id).queue.push_back(Waiting { message, order, fsn: 0 });
        if !self.is_held(id, order) {
            self.begin(id);
        }
    }

    /// A stream has something to send.
    fn begin(&mut self, id: u16) {
        if self.ready.insert(id) {
            let scheduler = self.scheduler.clone();
            scheduler.begins(&mut self.stream(id).standing);
        }
    }

    fn is_held(&self, id: u16, order: u64) -> bool {
        self.held.as_ref().is_some_and(|held| held.holds(id, order))
    }

    /// The stream sends no more for now if nothing waits on it, or what does is held back.
    fn rest(&mut self, id: u16) {
        let front = self.streams.get(usize::from(id)).and_then(|s| s.queue.front());
        if front.is_none_or(|w| self.is_held(id, w.order)) {
            self.ready.remove(&id);
        }
    }

    /// Holds back what is written to these streams (none: to all) from now on.
    pub fn hold(&mut self, streams: Vec<u16>) {
        self.held = Some(Renumbering { streams, after: self.orders });
    }

    /// Has everything been given away that was written before [`Outbound::hold`]?
    pub fn is_held_up(&self) -> bool {
        let is_named = |id: &u16| self.held.as_ref().is_none_or(|held| names(&held.streams, *id));
        !self.ready.iter().any(is_named)
    }

    /// Lets go what was held back, the streams beginning anew or going on as before.
    pub fn release(&mut self, anew: bool) {
        let Some(held) = self.held.take() else { return };
        for id in (0..self.limit).take(self.streams.len()).filter(|id| names(&held.streams, *id)) {
            let stream = self.stream(id);
            if anew {
                (stream.ordered, stream.unordered) = (0, 0);
            }
            if !stream.queue.is_empty() {
                self.begin(id);
            }
        }
    }

    /// Has nothing been written to these streams (none: to any) since they began?
    pub fn are_new(&self, streams: &[u16]) -> bool {
        let is_new = |s: &Stream| (s.ordered, s.unordered) == (0, 0) && s.queue.is_empty();
        (0u16..).zip(&self.streams).filter(|(id, _)| names(streams, *id)).all(|(_, s)| is_new(s))
    }

    /// So many streams more.
    pub fn add(&mut self, streams: u16) {
        self.limit = self.limit.saturating_add(streams);
    }

    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// The stream that sends next; `packet`: the one that has sent into this packet.
    fn next(&self, interleaved: bool, packet: Option<u16>) -> Option<u16> {
        if !interleaved && self.current.is_some() {
            return self.current;
        }
        if let Some(stream) = packet.filter(|_| self.scheduler.keeps_to_one_stream_per_packet()) {
            return self.ready.contains(&stream).then_some(stream);
        }
        if self.ready.len() == 1 {
            return self.ready.first().copied();
        }
        let standing = |id: &u16| {
            let stream = self.streams.get(usize::from(*id))?;
            Some((*id, &stream.standing, stream.queue.front()?.order))
        };
        self.scheduler.next(self.ready.iter().filter_map(standing))
    }

    /// Octets of user data of the next fragment, whose chunk may have `payload` at most, and whether a message begins with it.
    pub fn peek(&self, payload: usize, interleaved: bool, packet: Option<u16>) -> Option<(usize, bool)> {
        let id = self.next(interleaved, packet)?;
        let waiting = self.streams.get(usize::from(id))?.queue.front()?;
        Some((waiting.message.body.len().min(payload), waiting.fsn == 0))
    }

    /// Takes the next fragment; its TSN is for the caller to give.
    pub fn pop(&mut self, payload: usize, interleaved: bool, packet: Option<u16>) -> Option<Fragment> {
        let id = self.next(interleaved, packet)?;
        let stream = self.streams.get_mut(usize::from(id))?;
        let waiting = stream.queue.front_mut()?;
        let message = &mut waiting.message;
        let body = message.body.split_to(payload);
        let end = message.body.is_empty();
        let begin = waiting.fsn == 0;
        let sequence = if message.unordered { &mut stream.unordered } else { &mut stream.ordered };
        let data = Data {
            tsn: 0,
            stream: id,
            //= RFC 9260 (3.3.1): the SSN of unordered data means nothing.
            sequence: match (interleaved, message.unordered) {
                (true, _) => *sequence,
                (false, true) => 0,
                (false, false) => *sequence & 0xFFFF,
            },
            ppid: message.ppid,
            fsn: waiting.fsn,
            unordered: message.unordered,
            begin,
            end,
            immediate: message.immediate && end,
            interleaved,
            body,
        };
        let fragment = Fragment { reliability: message.reliability, order: waiting.order, data };
        waiting.fsn += 1;
        if end {
            *sequence = sequence.wrapping_add(1);
            stream.queue.pop_front();
        }
        self.current = (!end).then_some(id);
        let len = fragment.data.body.len();
        self.waiting -= len as u64;
        self.scheduler.sent(id, &mut stream.standing, len);
        if end {
            self.rest(id);
        }
        Some(fragment)
    }

    /// Gives up what waits of message `order` of a stream, of which something was sent; returns its octets.
    pub fn abandon(&mut self, id: u16, order: u64) -> u64 {
        let Some(stream) = self.streams.get_mut(usize::from(id)) else { return 0 };
        if stream.queue.front().is_none_or(|w| w.order != order) {
            return 0;
        }
        let Some(waiting) = stream.queue.pop_front() else { return 0 };
        let sequence = if waiting.message.unordered { &mut stream.unordered } else { &mut stream.ordered };
        *sequence = sequence.wrapping_add(1);
        self.rest(id);
        if self.current == Some(id) {
            self.current = None;
        }
        let octets = waiting.message.body.len() as u64;
        self.waiting -= octets;
        octets
    }

    /// Drops messages that were not begun and are less important than a new one, until so many octets are free: the least
    /// important first, of those the newest. Nothing, if that would not be enough. Returns the octets of each.
    pub fn displace(&mut self, by: Reliability, octets: u64) -> Vec<u64> {
        let mut least = Vec::new();
        for id in &self.ready {
            let Some(stream) = self.streams.get(usize::from(*id)) else { continue };
            least.extend(stream.queue.iter().filter(|w| w.fsn == 0).filter_map(|waiting| {
                let Reliability::Priority(priority) = waiting.message.reliability else { return None };
                let len = waiting.message.body.len() as u64;
                by.displaces(waiting.message.reliability).then_some((priority, waiting.order, *id, len))
            }));
        }
        least.sort_unstable_by(|a, b| b.cmp(a));
        let mut freed = 0;
        let enough = least.iter().position(|(.., len)| {
            freed += len;
            freed >= octets
        });
        let Some(last) = enough else { return Vec::new() };
        least.truncate(last + 1);
        for (_, order, id, _) in &least {
            let Some(stream) = self.streams.get_mut(usize::from(*id)) else { continue };
            stream.queue.retain(|waiting| waiting.order != *order);
            self.rest(*id);
        }
        self.waiting -= freed;
        least.into_iter().map(|(.., len)| len).collect()
    }

    /// Drops messages that were not begun and whose time is over; returns their octets.
    pub fn expire(&mut self, now: Instant) -> u64 {
        let mut octets = 0;
        let mut over = Vec::new();
        for id in &self.ready {
            let Some(stream) = self.streams.get_mut(usize::from(*id)) else { continue };
            while let Some(front) = stream.queue.front()
                && front.fsn == 0
                && matches!(front.message.reliability, Reliability::Until(at) if at <= now)
            {
                octets += front.message.body.len() as u64;
                stream.queue.pop_front();
                over.push(*id);
            }
        }
        for id in over {
            self.rest(id);
        }
        self.waiting -= octets;
        octets
    }
}
