//! Which stream sends next (RFC 8260, section 3). The receiver need not know.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// The schedulers of RFC 8260.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// The message that was written first (3.1).
    #[default]
    Fcfs,
    /// A message of each stream in turn; with I-DATA a chunk of each (3.2).
    RoundRobin,
    /// As round-robin, but a packet carries one stream only (3.3).
    RoundRobinPacket,
    /// The stream of the smallest priority number, those of the same in turn (3.4).
    Priority,
    /// The stream that has sent the fewest octets (3.5).
    FairCapacity,
    /// The same by weights: a stream of weight two sends twice as much (3.6).
    WeightedFairQueueing,
}

/// What a stream is to the scheduler.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub(super) struct Standing {
    /// Smaller goes first.
    pub priority: u16,
    /// Share.
    #[default(1)]
    pub weight: u16,
    /// Octets sent, by weight.
    served: u64,
}

/// Octets are counted in these units so that weights divide them.
const UNIT: u64 = 1 << 16;

/// The state of the choice.
#[derive(Clone, Debug, SmartDefault)]
pub(super) struct Scheduler {
    kind: Scheduling,
    #[default(u16::MAX)]
    last: u16,
    /// Where a stream that begins to send stands: it has no claim from the time when it was idle.
    virtual_time: u64,
}

impl Scheduler {
    pub fn new(kind: Scheduling) -> Self {
        Scheduler { kind, ..Default::default() }
    }

    pub fn keeps_to_one_stream_per_packet(&self) -> bool {
        self.kind == Scheduling::RoundRobinPacket
    }

    /// A stream has something to send again.
    pub fn begins(&self, standing: &mut Standing) {
        standing.served = standing.served.max(self.virtual_time);
    }

    /// The next of the streams that have something to send: their number, standing, and when their message was written.
    pub fn next<'a>(&self, streams: impl Iterator<Item = (u16, &'a Standing, u64)>) -> Option<u16> {
        let last = self.last;
        // Distance behind the last one, so that turns go round.
        let turn = |id: u16| u64::from(id.wrapping_sub(last).wrapping_sub(1));
        let key = |(id, standing, order): &(u16, &Standing, u64)| match self.kind {
            Scheduling::Fcfs => (*order, 0),
            Scheduling::RoundRobin | Scheduling::RoundRobinPacket => (turn(*id), 0),
            Scheduling::Priority => (u64::from(standing.priority), turn(*id)),
            Scheduling::FairCapacity | Scheduling::WeightedFairQueueing => (standing.served, turn(*id)),
        };
        streams.min_by_key(key).map(|(id, ..)| id)
    }

    /// Stream `id` sent a chunk of so many octets.
    pub fn sent(&mut self, id: u16, standing: &mut Standing, octets: usize) {
        self.last = id;
        self.virtual_time = self.virtual_time.max(standing.served);
        let weight = match self.kind {
            Scheduling::WeightedFairQueueing => u64::from(standing.weight.max(1)),
            _ => 1,
        };
        standing.served += octets as u64 * UNIT / weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the streams of these priorities and weights send 700 chunks of 100 octets, all always ready.
    fn run(kind: Scheduling, streams: &[(u16, u16)], chunks: usize) -> Vec<u16> {
        let mut scheduler = Scheduler::new(kind);
        let mut standing: Vec<Standing> = streams
            .iter()
            .map(|(priority, weight)| Standing { priority: *priority, weight: *weight, served: 0 })
            .collect();
        let mut order = Vec::new();
        for n in 0..chunks {
            let all = standing.iter().enumerate().map(|(id, s)| (id as u16, s, (id + n * 7) as u64 % 3));
            let id = scheduler.next(all).unwrap();
            scheduler.sent(id, &mut standing[usize::from(id)], 100);
            order.push(id);
        }
        order
    }

    fn share(order: &[u16], id: u16) -> usize {
        order.iter().filter(|o| **o == id).count()
    }

    #[test]
    fn each_kind_orders_streams_as_it_says() {
        assert_eq!(run(Scheduling::RoundRobin, &[(0, 1); 3], 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(run(Scheduling::Priority, &[(2, 1), (1, 1), (1, 1)], 5), [1, 2, 1, 2, 1]);
        let fair = run(Scheduling::FairCapacity, &[(0, 1), (0, 5)], 100);
        assert_eq!((share(&fair, 0), share(&fair, 1)), (50, 50));
        let weighted = run(Scheduling::WeightedFairQueueing, &[(0, 1), (0, 2), (0, 4)], 700);
        assert_eq!([0, 1, 2].map(|id| share(&weighted, id)), [100, 200, 400]);
        assert_eq!(run(Scheduling::Fcfs, &[(0, 1); 3], 3), [0, 2, 1]);
    }

    #[test]
    fn a_stream_that_was_idle_has_no_claim_on_the_past() {
        let mut scheduler = Scheduler::new(Scheduling::FairCapacity);
        let (mut busy, mut idle) = (Standing::default(), Standing::default());
        for _ in 0..100 {
            scheduler.sent(0, &mut busy, 1000);
        }
        scheduler.begins(&mut idle);
        let mut first = 0;
        for _ in 0..10 {
            match scheduler.next([(0, &busy, 0), (1, &idle, 0)].into_iter()) {
                Some(0) => {
                    first += 1;
                    scheduler.sent(0, &mut busy, 1000);
                }
                _ => scheduler.sent(1, &mut idle, 1000),
            }
        }
        assert!((4..=6).contains(&first), "{first}");
    }
}
