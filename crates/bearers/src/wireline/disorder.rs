//! A wire that hands some packets over late, or twice.
//!
//! ```text
//! wire -> n-th arrival of its direction -> late? -> at once, or after `delay`; overtaken meanwhile
//!                                       -> twice? -> a copy behind it, or after `delay`
//! ```
//!
//! What happens to a packet is a function of (seed, link, direction, its number), as for losses; the number counts the
//! packets that reach the far end. A type of its own around [`Wireline`]: a wire without it pays nothing.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use airloom_base::random::Fate;
use airloom_base::units::{EachWay, Probability};
use airloom_base::{
    Backlog, Bearer, Change, ConfigError, Cx, Direction, Duration, Grade, Instant, LinkState, Packet, Parts,
    Passed, Station, Summary, Unsupported,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Wireline;

/// How often a wire does something to a packet at its far end, and how much later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disorder {
    /// Probability for each candidate, drawn by its number.
    pub probability: EachWay<Probability>,
    /// How much later than the packet would have arrived.
    #[serde(default)]
    pub delay: EachWay<Duration>,
    /// Only every so many-th packet is a candidate: with a probability of 1 the n-th, 2n-th, ... packets of a direction.
    /// Without it: every packet.
    #[serde(default)]
    pub every: Option<EachWay<u32>>,
}

/// One direction's share of a [`Disorder`].
#[derive(Clone, Copy)]
struct Draw {
    probability: f64,
    delay: Duration,
    every: u64,
    fate: Fate,
}

impl Draw {
    fn new(config: Option<Disorder>, fate: Fate, direction: Direction) -> Self {
        let config = config.unwrap_or_default();
        Draw {
            probability: config.probability.get(direction).get(),
            delay: config.delay.get(direction),
            every: u64::from(config.every.map_or(1, |n| n.get(direction))),
            fate: fate.lane(direction, Station(0), 0),
        }
    }

    /// Does it happen to the `n`-th arrival, counted from 0? How much later?
    fn strikes(&self, n: u64) -> Option<Duration> {
        let candidate = (n + 1).is_multiple_of(self.every);
        (candidate && self.fate.nth(n) < self.probability).then_some(self.delay)
    }
}

/// One direction.
struct Way {
    reordering: Draw,
    duplication: Draw,
    arrivals: u64,
    reordered: u64,
    duplicated: u64,
}

/// A packet that waits at the far end; `order` keeps those of one moment in their order.
struct Held {
    at: Instant,
    order: u64,
    direction: Direction,
    packet: Packet,
}

impl Ord for Held {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}

/// See the module.
pub(super) struct Disordered {
    wire: Wireline,
    ways: [Way; 2],
    held: BinaryHeap<Held>,
    order: u64,
    /// Up to when packets have been handed over.
    now: Instant,
}

/// Refuses settings that could do nothing.
fn check(name: &str, disorder: Option<Disorder>, needs_delay: bool) -> Result<(), ConfigError> {
    let Some(disorder) = disorder else { return Ok(()) };
    for direction in Direction::BOTH {
        if disorder.every.is_some_and(|n| n.get(direction) == 0) {
            let mut error = ConfigError::at("every", "every 0th packet is none; 1 means all of them");
            error.path.insert(0, name.into());
            return Err(error);
        }
        let happens = disorder.probability.get(direction).get() > 0.0;
        if needs_delay && happens && disorder.delay.get(direction) == Duration::ZERO {
            let mut error =
                ConfigError::at("delay", "a packet that is not later than others overtakes nobody");
            error.path.insert(0, name.into());
            return Err(error);
        }
    }
    Ok(())
}

impl Disordered {
    pub(super) fn new(
        wire: Wireline,
        duplication: Option<Disorder>,
        reordering: Option<Disorder>,
        parts: &Parts,
    ) -> Result<Self, ConfigError> {
        check("duplication", duplication, false)?;
        check("reordering", reordering, true)?;
        let ways = Direction::BOTH.map(|d| Way {
            reordering: Draw::new(reordering, parts.fate("reordering"), d),
            duplication: Draw::new(duplication, parts.fate("duplication"), d),
            arrivals: 0,
            reordered: 0,
            duplicated: 0,
        });
        Ok(Disordered { wire, ways, held: BinaryHeap::new(), order: 0, now: Instant::ZERO })
    }

    fn hold(&mut self, at: Instant, direction: Direction, packet: Packet) {
        self.held.push(Held { at, order: self.order, direction, packet });
        self.order += 1;
    }

    /// What the wire hands over at `now`.
    fn arrive(&mut self, now: Instant, direction: Direction, packet: Packet) {
        let way = &mut self.ways[direction as usize];
        let n = way.arrivals;
        way.arrivals += 1;
        let (late, again) = (way.reordering.strikes(n), way.duplication.strikes(n));
        way.reordered += u64::from(late.is_some());
        way.duplicated += u64::from(again.is_some());
        let copy = again.map(|later| (now + later, packet.duplicate()));
        self.hold(now + late.unwrap_or(Duration::ZERO), direction, packet);
        if let Some((at, copy)) = copy {
            self.hold(at, direction, copy);
        }
    }
}

impl Bearer for Disordered {
    fn send(&mut self, cx: &mut Cx, dir: Direction, station: Station, sdu: Packet) {
        self.wire.send(cx, dir, station, sdu);
    }

    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        if self.held.peek()?.at > self.now {
            return None;
        }
        self.held.pop().map(|held| (held.direction, Station(0), held.packet))
    }

    fn delivers_by_deadline(&self) -> bool {
        true
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let held = self.held.peek().map(|held| held.at);
        [self.wire.poll_timeout(), held].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.now = self.now.max(cx.now);
        self.wire.handle_timeout(cx);
        while let Some((direction, _, packet)) = self.wire.poll_delivery() {
            self.arrive(cx.now, direction, packet);
        }
    }

    fn backlog(&self, now: Instant, dir: Direction, station: Station) -> Backlog {
        self.wire.backlog(now, dir, station)
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        self.wire.apply(cx, part, change)?;
        if matches!(change, Change::State(LinkState::Down)) {
            for held in self.held.drain() {
                self.wire.ways[held.direction as usize].lose(cx, &held.packet);
            }
        }
        Ok(())
    }

    fn grade(&self) -> Grade {
        // What happens to a packet goes by its number: super-packets are cut.
        Grade::Packet
    }

    fn passed(&self) -> [Passed; 2] {
        self.wire.passed()
    }

    fn summarise(&self, out: &mut Summary) {
        self.wire.summarise(out);
        for d in Direction::BOTH {
            let (way, name) = (&self.ways[d as usize], d.name());
            out.set(&format!("{name}.reordered"), way.reordered as f64);
            out.set(&format!("{name}.duplicated"), way.duplicated as f64);
        }
    }
}
