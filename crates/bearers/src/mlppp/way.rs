//! One direction of the bundle: the sender's queue and numbers, the receiver, and what was lost between them.

use std::collections::VecDeque;

use airloom_base::units::QueueLimit;
use airloom_base::{Direction, Duration, Instant, Packet};

use super::config::MlpppConfig;
use super::plan::Planner;
use super::reassembly::{Counters, Reassembler};
use crate::traffic::Traffic;

/// Packets on their way of which nobody knows yet whether they arrive.
const MOST_UNDER_WAY: usize = 1 << 16;

/// A packet, and when it came to the bundle.
pub struct Sdu {
    pub packet: Packet,
    pub since: Instant,
}

/// One direction.
pub struct BundleDirection {
    pub direction: Direction,
    pub queue: VecDeque<Sdu>,
    pub queued: u64,
    pub planner: Planner,
    /// Number of the next fragment, counted on beyond those of the format.
    pub next: u64,
    pub receiver: Reassembler<Packet>,
    /// First number and beginning of the packets under way.
    under_way: VecDeque<(u64, Instant)>,
    pub traffic: Traffic,
    pub fragments: u64,
    pub null_fragments: u64,
    /// Packets and frames of a kind that nobody knows, or that cannot be read.
    pub unreadable: u64,
    /// The last number that each member carried.
    pub carried: Vec<u64>,
    /// Those of receivers of bundles that are gone.
    pub before: Counters,
}

impl BundleDirection {
    pub fn new(config: &MlpppConfig, members: usize, direction: Direction) -> BundleDirection {
        BundleDirection {
            direction,
            queue: VecDeque::new(),
            queued: 0,
            planner: Planner::new(config.fragments, config.least_fragment.0 as usize),
            next: 0,
            receiver: Reassembler::new(config.format(), config.limits()),
            under_way: VecDeque::new(),
            traffic: Traffic::default(),
            fragments: 0,
            null_fragments: 0,
            unreadable: 0,
            carried: vec![0; members],
            before: Counters::default(),
        }
    }

    /// Is there no room for a packet of so many octets?
    pub fn refuses(&self, limit: QueueLimit, octets: u64) -> bool {
        limit.refuses(self.queue.len(), self.queued, octets)
    }

    /// A packet waits.
    pub fn push(&mut self, packet: Packet, now: Instant) {
        self.queued += packet.wire_len() as u64;
        self.queue.push_back(Sdu { packet, since: now });
        self.traffic.queue_max = self.traffic.queue_max.max(self.queued);
    }

    /// The next one that does.
    pub fn pop(&mut self) -> Option<Sdu> {
        let sdu = self.queue.pop_front()?;
        self.queued -= sdu.packet.wire_len() as u64;
        Some(sdu)
    }

    /// A packet leaves whose first fragment has the next number.
    pub fn depart(&mut self, since: Instant) {
        if self.under_way.len() >= MOST_UNDER_WAY {
            self.under_way.pop_front();
            self.traffic.lost += 1;
        }
        self.under_way.push_back((self.next, since));
    }

    /// The packet with this first number is whole: how long it took, if it is one of those that left.
    pub fn arrive(&mut self, first: u64, now: Instant) -> Option<Duration> {
        self.forget_below(first);
        let (_, since) = *self.under_way.front().filter(|(number, _)| *number == first)?;
        self.under_way.pop_front();
        Some(now.since(since))
    }

    /// Packets that the receiver waits for no more are lost.
    pub fn forget_given_up(&mut self) {
        self.forget_below(self.receiver.next());
    }

    fn forget_below(&mut self, number: u64) {
        while self.under_way.front().is_some_and(|(first, _)| *first < number) {
            self.under_way.pop_front();
            self.traffic.lost += 1;
        }
    }

    /// What this receiver and those before it counted.
    pub fn counters(&self) -> Counters {
        self.before.and(self.receiver.counters())
    }

    /// The bundle is gone: its numbers begin again, and what was under way is lost.
    pub fn reset(&mut self, config: &MlpppConfig) {
        self.traffic.lost += self.under_way.len() as u64;
        self.under_way.clear();
        self.before = self.counters();
        self.receiver = Reassembler::new(config.format(), config.limits());
        self.next = 0;
        self.carried.fill(0);
    }
}
