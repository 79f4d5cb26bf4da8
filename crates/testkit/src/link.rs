//! A link between two ends: rate, queue, delay, and a fate for every packet.

use std::collections::{BTreeMap, VecDeque};

use airloom_base::units::Rate;
use airloom_base::{Duration, Instant, Packet};

use crate::damage;

/// Which end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The one that opens.
    Client = 0,
    /// The one that is opened to.
    Server = 1,
}

impl End {
    /// The other one.
    pub const fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }
}

/// What happens to a packet behind the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Deliver,
    /// It is lost.
    Lose,
    /// It arrives twice.
    Duplicate,
    /// It arrives so much later than others (and perhaps behind them).
    Late(Duration),
    /// Its datagram is cut, or some of its bits are flipped, as these random bits say. The receiver's checks of lengths
    /// and sums decide whether it arrives.
    Damage(u64),
}

/// What a fate may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When it was offered to the link.
    pub at: Instant,
    /// Who sent it.
    pub from: End,
    /// Number of the packet in this direction, from 0, among those that the queue took.
    pub index: u64,
    /// The same among packets with a body.
    pub data_index: u64,
    /// Octets of the body.
    pub body: usize,
}

/// Decides the fate of each packet that the queue took.
pub type LossPattern = Box<dyn FnMut(&Sent) -> Fate>;

/// Loses the packets with these indexes in one direction; the others arrive.
pub fn lose(from: End, indexes: &[u64]) -> LossPattern {
    let indexes = indexes.to_vec();
    Box::new(
        move |sent| {
            if sent.from == from && indexes.contains(&sent.index) { Fate::Lose } else { Fate::Deliver }
        },
    )
}

/// Loses the packets with a body that have these indexes among their kind, in one direction.
pub fn lose_data(from: End, indexes: &[u64]) -> LossPattern {
    let indexes = indexes.to_vec();
    Box::new(move |sent| {
        let hit = sent.from == from && sent.body > 0 && indexes.contains(&sent.data_index);
        if hit { Fate::Lose } else { Fate::Deliver }
    })
}

/// Properties of both directions.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Rate from the client and from the server; `None`: no serialisation.
    pub rate: [Option<Rate>; 2],
    /// One-way delay.
    pub delay: Duration,
    /// Packets a direction holds, the one in service counted; more are dropped.
    pub queue: usize,
    /// Octets that count beside those of the unit (an IPv4 header).
    pub overhead: u64,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig { rate: [None; 2], delay: Duration::from_millis(50), queue: usize::MAX, overhead: 20 }
    }
}

#[derive(Default)]
struct Queue {
    free_at: Instant,
    departures: VecDeque<Instant>,
    accepted: u64,
    data: u64,
}

/// The link itself.
pub struct Link {
    config: LinkConfig,
    fate: LossPattern,
    queues: [Queue; 2],
    /// By their arrival and the order in which they were sent: to which end, the ECN codepoint.
    flying: BTreeMap<(Instant, u64), (End, u8, Packet)>,
    order: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Packets lost by their fate, damaged ones that were noticed included.
    pub losses: u64,
    /// From so many packets in the queue on those of senders that know ECN are marked.
    pub mark_from: usize,
    /// Packets marked.
    pub ce_marks: u64,
}

impl Link {
    /// A link on which every packet that the queue takes arrives.
    pub fn new(config: LinkConfig) -> Self {
        Link {
            config,
            fate: Box::new(|_| Fate::Deliver),
            queues: Default::default(),
            flying: BTreeMap::new(),
            order: 0,
            queue_drops: 0,
            losses: 0,
            mark_from: usize::MAX,
            ce_marks: 0,
        }
    }

    /// From now on packets meet this fate.
    pub fn set_fate(&mut self, fate: LossPattern) {
        self.fate = fate;
    }

    /// A packet with this ECN codepoint enters at `from`; says what became of it, `None` if the queue was full.
    pub fn send(&mut self, now: Instant, from: End, mut ecn: u8, packet: Packet) -> Option<Fate> {
        let queue = &mut self.queues[from as usize];
        while queue.departures.front().is_some_and(|d| *d <= now) {
            queue.departures.pop_front();
        }
        if queue.departures.len() >= self.config.queue {
            self.queue_drops += 1;
            return None;
        }
        if ecn != 0 && queue.departures.len() >= self.mark_from {
            ecn = 3;
            self.ce_marks += 1;
        }
        let octets = packet.wire_len() as u64 + self.config.overhead;
        let time = self.config.rate[from as usize].map_or(Duration::ZERO, |r| r.time_for(octets));
        let departure = queue.free_at.max(now) + time;
        queue.free_at = departure;
        if !time.is_zero() {
            queue.departures.push_back(departure);
        }
        let body = packet.body().len();
        let sent = Sent { at: now, from, index: queue.accepted, data_index: queue.data, body };
        queue.accepted += 1;
        queue.data += u64::from(body > 0);
        let fate = (self.fate)(&sent);
        let arrival = departure + self.config.delay;
        match fate {
            Fate::Lose => self.losses += 1,
            Fate::Deliver => self.fly(arrival, from, ecn, packet),
            Fate::Duplicate => {
                let copy = packet.duplicate();
                self.fly(arrival, from, ecn, packet);
                self.fly(arrival, from, ecn, copy);
            }
            Fate::Late(more) => self.fly(arrival + more, from, ecn, packet),
            Fate::Damage(how) => match damage::damaged(&packet, how) {
                Some(packet) => self.fly(arrival, from, ecn, packet),
                None => self.losses += 1,
            },
        }
        Some(fate)
    }

    fn fly(&mut self, at: Instant, from: End, ecn: u8, packet: Packet) {
        self.order += 1;
        self.flying.insert((at, self.order), (from.other(), ecn, packet));
    }

    /// When the next packet arrives.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.flying.first_key_value().map(|(at, _)| at.0)
    }

    /// The next packet that has arrived by `now`: where, its ECN codepoint, and itself.
    pub fn arrival(&mut self, now: Instant) -> Option<(End, u8, Packet)> {
        self.next_arrival().filter(|at| *at <= now)?;
        self.flying.pop_first().map(|(_, flying)| flying)
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Body;

    use super::*;

    fn packet(len: u32) -> Packet {
        Packet::build(|_| 0, Body::filler(1, len))
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn packets_are_serialised_one_after_another_and_the_queue_drops_its_tail() {
        let mut link = Link::new(LinkConfig {
            rate: [Rate::kbit(8).into(), None],
            delay: Duration::from_millis(5),
            queue: 2,
            overhead: 2,
        });
        // Ten octets take 10 ms at 8 kbit/s; the one in service counts for the queue.
        assert_eq!(link.send(at(0), End::Client, 0, packet(8)), Some(Fate::Deliver));
        assert_eq!(link.send(at(0), End::Client, 0, packet(8)), Some(Fate::Deliver));
        assert_eq!(link.send(at(9), End::Client, 0, packet(8)), None);
        assert_eq!(link.send(at(10), End::Client, 0, packet(8)), Some(Fate::Deliver));
        let mut arrivals = Vec::new();
        while let Some(time) = link.next_arrival() {
            assert!(link.arrival(time).is_some_and(|(end, ..)| end == End::Server));
            arrivals.push(time);
        }
        assert_eq!(arrivals, [at(15), at(25), at(35)]);
        assert_eq!(link.queue_drops, 1);
    }

    #[test]
    fn fates_are_met_by_the_number_of_the_packet_in_its_direction() {
        let mut link = Link::new(LinkConfig::default());
        link.set_fate(lose_data(End::Server, &[1]));
        let mut send = |from, len| link.send(at(0), from, 0, packet(len));
        assert_eq!(send(End::Server, 5), Some(Fate::Deliver));
        assert_eq!(send(End::Server, 0), Some(Fate::Deliver));
        assert_eq!(send(End::Client, 5), Some(Fate::Deliver));
        assert_eq!(send(End::Server, 5), Some(Fate::Lose));
        assert_eq!(send(End::Server, 5), Some(Fate::Deliver));
        link.set_fate(Box::new(|_| Fate::Duplicate));
        link.send(at(0), End::Client, 0, packet(1));
        let mut count = 0;
        while link.arrival(at(50)).is_some() {
            count += 1;
        }
        assert_eq!(count, 6);
    }
}
