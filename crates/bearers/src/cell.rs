//! What links with many mobiles have in common: a mobile is a state machine, a [`Cell`] is the [`Bearer`] around all of them.
//!
//! ```text
//!   send, apply ──► [Mobile 0] [Mobile 1] ..  ──► deliveries, events
//!   deadlines ────►      ▲          ▲
//!                    [Scheduler]: who sends when, if they share a channel
//! ```
//!
//! Each thing happens at its own time, of things at one time those of the first mobile first, the scheduler's last.

#[cfg(test)]
mod smallest;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use airloom_base::record::{Event, PacketFacts, PointKind};
use airloom_base::units::Rate;
use airloom_base::{
    Backlog, Bearer, BearerEvent, Change, Condition, Cx, Direction, Duration, Grade, Instant, LinkState,
    Packet, Parts, Passed, Point, Station, Summary, Unsupported,
};

use crate::deadlines::Deadlines;
use crate::timed::Timed;
use crate::traffic::Traffic;

/// A mobile with what the network keeps for it: both ends of its channel, and the air between them.
pub trait Mobile: Send + Sized {
    /// What all of them share.
    type Common: Common<Self>;

    /// A packet enters at the sending end of `direction`.
    fn send(&mut self, cx: &mut Cx, common: &mut Self::Common, direction: Direction, sdu: Packet);
    /// Everything that happens at `cx.now`.
    fn run(&mut self, cx: &mut Cx, common: &mut Self::Common);
    /// Something happened to it: prepares what it does next, and says when that is.
    fn settle(&mut self, common: &mut Self::Common, now: Instant) -> Instant;
    /// What is not sent yet.
    fn backlog(&self, direction: Direction) -> Backlog;
    /// The radio state it is in: told at the beginning of the run, and by itself when it changes.
    fn tell_state(&mut self, _cx: &mut Cx, _common: &Self::Common) {}
    /// Air time that goes on is recorded so far: the run ends.
    fn tell_air_time(&mut self, _cx: &mut Cx, _common: &Self::Common) {}
    /// Its channel is released or set up.
    fn set_up(&mut self, cx: &mut Cx, common: &mut Self::Common, is_up: bool);
    /// A new loss probability of one direction, or of both.
    fn set_loss(&mut self, direction: Option<Direction>, loss: f64) -> Result<(), Unsupported>;
}

/// What all mobiles of a cell share: configuration, counters, and the edge.
pub trait Common<M>: Send {
    /// What has come and gone.
    fn edge(&self) -> &Edge;
    /// The same, to be taken from.
    fn edge_mut(&mut self) -> &mut Edge;
    /// A change of the whole cell, neither of its state nor of its losses.
    fn change(&mut self, mobiles: &mut [M], change: &Change, now: Instant) -> Result<(), Unsupported>;
    /// As [`Bearer::conditions`].
    fn conditions(&self, _mobiles: &[M], _out: &mut Vec<Condition>) {}
    /// As [`Bearer::passed`]: packets, if it does not count what it makes of them.
    fn passed(&self) -> [Passed; 2] {
        self.edge().traffic.each_ref().map(Traffic::passed)
    }
    /// As [`Bearer::summarise`]; nothing has happened after `until`.
    fn summarise(&self, mobiles: &[M], until: Instant, out: &mut Summary);
}

/// Who sends when, on a channel that mobiles share.
pub trait Scheduler<M: Mobile>: Send {
    /// When [`Scheduler::turn`] is needed.
    fn next_turn(&self) -> Instant;
    /// Somebody's turn has come.
    fn turn(&mut self, cx: &mut Cx, common: &mut M::Common, mobiles: &mut [M]);
    /// Something happened to mobiles `which`: is a turn needed?
    fn look(&mut self, common: &M::Common, mobiles: &[M], which: Range<usize>, now: Instant);
}

impl<M: Mobile> Scheduler<M> for () {
    fn next_turn(&self) -> Instant {
        Instant::FAR_FUTURE
    }
    fn turn(&mut self, _: &mut Cx, _: &mut M::Common, _: &mut [M]) {}
    fn look(&mut self, _: &M::Common, _: &[M], _: Range<usize>, _: Instant) {}
}

/// A packet that came out.
#[derive(Debug)]
pub struct Delivered {
    /// It.
    pub packet: Packet,
    /// When it entered the bearer.
    pub arrived: Instant,
}

/// A packet that will not come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its number.
    pub id: u64,
    /// Its flow.
    pub flow: u32,
    /// Its octets.
    pub len: u32,
    /// Why.
    pub reason: &'static str,
}

/// The edge of a cell: what has come, and what leaves.
#[derive(Default)]
pub struct Edge {
    /// Packets of all mobiles, by direction.
    pub traffic: [Traffic; 2],
    deliveries: VecDeque<(Direction, Station, Packet)>,
    /// What became of mobiles.
    pub events: VecDeque<BearerEvent>,
}

impl Edge {
    /// A packet has arrived so long after it came.
    pub fn deliver(&mut self, direction: Direction, station: Station, packet: Packet, took: Duration) {
        self.traffic[direction as usize].deliver(packet.wire_len() as u64, took);
        self.deliveries.push_back((direction, station, packet));
    }

    /// RLC has given these up.
    pub fn lose(&mut self, cx: &mut Cx, direction: Direction, tx: Point, lost: &mut Vec<Lost>) {
        for Lost { id, flow, len, reason } in lost.drain(..) {
            self.traffic[direction as usize].lost += 1;
            let bare = || PacketFacts::bare("rlc", Event::Drop, direction);
            let facts = || PacketFacts { packet: id, flow, len, reason: Some(reason), ..bare() };
            cx.records.packet(cx.now, tx, facts, |_| {});
        }
    }

    /// Most octets that ever waited, in either direction.
    pub fn queue_max(&self) -> f64 {
        self.traffic.iter().map(|traffic| traffic.queue_max).fold(0, u64::max) as f64
    }
}

/// Observation points of one direction.
#[derive(Clone, Copy)]
pub struct Points {
    pub tx: Point,
    pub rx: Point,
}

impl Points {
    /// Those of `layer`: `rlc.dl.tx` and `rlc.dl.rx`.
    pub fn new(parts: &mut Parts, layer: &str, direction: Direction, kind: PointKind) -> Points {
        let mut point = |end| parts.point(&format!("{layer}.{}.{end}", direction.short()), kind);
        Points { tx: point("tx"), rx: point("rx") }
    }

    /// Those of a mobile, with its number in front if there are several: `2.rlc.dl.tx`.
    pub fn of_station(
        parts: &mut Parts,
        layer: &str,
        (direction, station): (Direction, Station),
        kind: PointKind,
    ) -> Points {
        let which = if parts.stations > 1 { format!("{}.", station.0) } else { String::new() };
        Points::new(parts, &format!("{which}{layer}"), direction, kind)
    }

    /// How fast what is seen there can be sent.
    pub fn set_speed(self, parts: &mut Parts, rate: Rate) {
        for point in [self.tx, self.rx] {
            parts.records.set_speed(point, rate.bits_per_second());
        }
    }
}

/// One of the directions, or both.
pub fn directions(direction: Option<Direction>) -> impl Iterator<Item = Direction> {
    Direction::BOTH.into_iter().filter(move |d| direction.is_none_or(|only| only == *d))
}

/// A link with an end for each mobile; without a scheduler each has a channel of its own.
pub struct Cell<M: Mobile, S = ()> {
    common: M::Common,
    mobiles: Vec<M>,
    deadlines: Deadlines,
    scheduler: S,
    /// Latest nominal time handled.
    clock: Instant,
    has_begun: bool,
}

impl<M: Mobile, S: Scheduler<M>> Cell<M, S> {
    /// With as many mobiles as there are stations; `mobile` makes one.
    pub fn around<E>(
        mut common: M::Common,
        scheduler: S,
        parts: &mut Parts,
        mut mobile: impl FnMut(&mut M::Common, &mut Parts, Station) -> Result<M, E>,
    ) -> Result<Cell<M, S>, E> {
        let stations = (0..parts.stations.max(1)).map(Station);
        let mobiles: Vec<M> =
            stations.map(|station| mobile(&mut common, parts, station)).collect::<Result<_, E>>()?;
        let deadlines = Deadlines::new(mobiles.len());
        Ok(Cell { common, mobiles, deadlines, scheduler, clock: Instant::ZERO, has_begun: false })
    }

    fn begin(&mut self, cx: &mut Cx) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let cx = &mut Cx { now: Instant::ZERO, records: &mut *cx.records };
            self.mobiles.iter_mut().for_each(|mobile| mobile.tell_state(cx, &self.common));
        }
    }

    /// Before something happens at `cx.now`.
    fn prepare(&mut self, cx: &mut Cx) {
        self.begin(cx);
        self.catch_up_before(cx);
        self.clock = self.clock.max(cx.now);
    }

    /// When these mobiles, and the scheduler, are to be looked at next.
    fn settle(&mut self, which: Range<usize>, now: Instant) {
        for index in which.clone() {
            self.deadlines.set(index, self.mobiles[index].settle(&mut self.common, now));
        }
        self.scheduler.look(&self.common, &self.mobiles, which, now);
    }
}

impl<M: Mobile, S: Scheduler<M>> Timed for Cell<M, S> {
    #[inline]
    fn next_timeout(&self) -> Instant {
        self.deadlines.earliest().min(self.scheduler.next_turn())
    }

    fn step(&mut self, cx: &mut Cx) {
        self.clock = self.clock.max(cx.now);
        let turn = self.scheduler.next_turn();
        // What arrives when a turn begins is sent in it.
        if self.deadlines.earliest() <= turn {
            let index = self.deadlines.holder();
            let mobile = &mut self.mobiles[index];
            mobile.run(&mut Cx { now: self.clock, records: &mut *cx.records }, &mut self.common);
            self.deadlines.set(index, self.mobiles[index].settle(&mut self.common, self.clock));
            // A turn that is due is taken, whatever has arrived.
            if turn > self.clock {
                self.scheduler.look(&self.common, &self.mobiles, index..index + 1, self.clock);
            }
        } else {
            let cx = &mut Cx { now: self.clock, records: &mut *cx.records };
            self.scheduler.turn(cx, &mut self.common, &mut self.mobiles);
            self.settle(0..self.mobiles.len(), self.clock);
        }
    }
}

impl<M: Mobile, S: Scheduler<M>> Bearer for Cell<M, S> {
    fn send(&mut self, cx: &mut Cx, dir: Direction, station: Station, sdu: Packet) {
        self.prepare(cx);
        let index = usize::from(station.0);
        let Some(mobile) = self.mobiles.get_mut(index) else { return };
        mobile.send(cx, &mut self.common, dir, sdu);
        self.settle(index..index + 1, cx.now);
    }

    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        self.common.edge_mut().deliveries.pop_front()
    }

    fn tells_events(&self) -> bool {
        true
    }

    fn poll_event(&mut self) -> Option<BearerEvent> {
        self.common.edge_mut().events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_timeout()).filter(|at| *at != Instant::FAR_FUTURE)
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.begin(cx);
        self.catch_up(cx, cx.now);
    }

    fn backlog(&self, _now: Instant, dir: Direction, station: Station) -> Backlog {
        let mobile = self.mobiles.get(usize::from(station.0));
        mobile.map_or(Backlog::default(), |mobile| mobile.backlog(dir))
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        self.prepare(cx);
        let all = 0..self.mobiles.len();
        let concerned = match part {
            [] => all.clone(),
            [one] if all.contains(&usize::from(*one)) => usize::from(*one)..usize::from(*one) + 1,
            _ => {
                return Err(Unsupported(
                    "a cell has no such part: name the link itself or one of its stations",
                ));
            }
        };
        match change {
            Change::State(state) => {
                for mobile in &mut self.mobiles[concerned] {
                    mobile.set_up(cx, &mut self.common, *state == LinkState::Up);
                }
            }
            Change::Loss(direction, loss) => {
                for mobile in &mut self.mobiles[concerned] {
                    mobile.set_loss(*direction, *loss)?;
                }
            }
            _ if !part.is_empty() => {
                return Err(Unsupported(
                    "one station can change its state and its loss; the rest is the link's",
                ));
            }
            _ => self.common.change(&mut self.mobiles, change, cx.now)?,
        }
        self.settle(all, cx.now);
        Ok(())
    }

    fn conditions(&self, out: &mut Vec<Condition>) {
        self.common.conditions(&self.mobiles, out);
    }

    fn passed(&self) -> [Passed; 2] {
        self.common.passed()
    }

    fn grade(&self) -> Grade {
        Grade::Radio
    }

    fn close(&mut self, cx: &mut Cx) {
        self.clock = self.clock.max(cx.now);
        self.mobiles.iter_mut().for_each(|mobile| mobile.tell_air_time(cx, &self.common));
    }

    fn summarise(&self, out: &mut Summary) {
        self.common.summarise(&self.mobiles, self.clock, out);
    }
}
