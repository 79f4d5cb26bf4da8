//! What goes wrong on a link, whatever carries it.
//!
//! ```text
//! link -> too big? black hole? -> n-th datagram: in the list? drawn? -> an octet changed? -> [ NAT ] -> late? twice? -> far end
//! ```
//!
//! Faults strike where datagrams leave the link. What happens to one is a function of (seed, link, direction, station, its
//! number there), as for losses; the number counts those that come that far. A [`Faulty`] stands around any [`Bearer`]: a link
//! without faults pays nothing.
//!
//! ```text
//!   config.rs    the `faults` key of a link
//!   strike.rs    what vanishes or is changed
//!   disorder.rs  what comes late or twice
//!   nat.rs       the far end as a translator of addresses that forgets
//! ```
//!
//! Each of them can be switched off and on again while the link runs; datagrams are numbered and schedules go on meanwhile. A
//! translator that is switched on forgets its bindings at that moment.
//!
//! Left out: errors that a checksum finds (they are losses), and more than one octet changed in a datagram.

mod config;
mod disorder;
mod nat;
mod strike;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::IpAddr;

use airloom_base::random::Fate;
use airloom_base::record::{Event, PacketFacts, PointKind};
use airloom_base::{
    Backlog, Bearer, BearerEvent, Change, Condition, ConfigError, Cx, Direction, Duration, Fault, Grade,
    Instant, LinkState, Packet, Parts, Passed, Point, Station, Summary, Unsupported,
};
use airloom_wire::edge;

pub use config::{Blackhole, DropList, Faults, Only, Side, Strikes};
use delegate::delegate;
pub use disorder::Disorder;
use disorder::Draw;
pub use nat::Nat;
use nat::Translator;
use strike::Luck;

use crate::late::{Delivery, Late};
use crate::traffic::{self, Taken};

/// What one station meets in one direction.
struct Lane {
    /// Datagrams that were numbered, and all that came to the far end.
    number: u64,
    arrivals: u64,
    drop: Luck,
    corrupt: Luck,
    /// Which octet of the n-th is changed, and how.
    places: Fate,
    reordering: Draw,
    duplication: Draw,
}

/// What was counted in one direction.
#[derive(Default)]
struct Counts {
    met: u64,
    too_big: u64,
    swallowed: u64,
    listed: u64,
    dropped: u64,
    corrupted: u64,
    reordered: u64,
    duplicated: u64,
    not_translated: u64,
    cut: u64,
}

/// What struck a datagram, and its number, if it has one.
type Why = (&'static str, Option<u64>);

/// A link with faults.
pub struct Faulty {
    link: Box<dyn Bearer>,
    config: Faults,
    only: Option<u8>,
    /// What strikes at the moment, by its place among all faults.
    on: [bool; Fault::ALL.len()],
    /// By direction, then station.
    lanes: [Vec<Lane>; 2],
    counts: [Counts; 2],
    /// What came to the link, or out of it, and does not arrive.
    taken: [Taken; 2],
    nat: Option<Translator>,
    points: Option<[Point; 2]>,
    /// What waits at the far end.
    held: Late,
}

impl Faulty {
    /// `link` with these faults. `spare` are addresses of its networks that a translator may use.
    ///
    /// # Errors
    /// What makes no sense; the path begins in the table of the faults.
    pub fn new(
        link: Box<dyn Bearer>,
        config: Faults,
        spare: &[IpAddr],
        parts: &mut Parts,
    ) -> Result<Faulty, ConfigError> {
        config.check()?;
        // A wire that does the same by itself does it to other datagrams.
        let below = link.faults();
        let purpose = |fault: Fault, name: &'static str, other: &'static str| {
            if below.iter().any(|(own, _)| *own == fault) { other } else { name }
        };
        let reordering = purpose(Fault::Reordering, "reordering", "faults.reordering");
        let duplication = purpose(Fault::Duplication, "duplication", "faults.duplication");
        let lane = |d: Direction, station: u16| {
            let station = Station(station);
            Lane {
                number: 0,
                arrivals: 0,
                drop: Luck::new(config.drop, parts.fate("faults.drop"), d, station),
                corrupt: Luck::new(config.corrupt, parts.fate("faults.corrupt"), d, station),
                places: parts.fate("faults.corrupt.places").lane(d, station, 0),
                reordering: Draw::new(config.reordering, parts.fate(reordering), d, station),
                duplication: Draw::new(config.duplication, parts.fate(duplication), d, station),
            }
        };
        let lanes = Direction::BOTH.map(|d| (0..parts.stations).map(|station| lane(d, station)).collect());
        let translator = |nat| Translator::new(nat, spare, parts.stream("faults.nat"));
        let nat = config.nat.map(translator).transpose()?;
        let strikes = config.mtu.is_some()
            || config.blackhole.is_some()
            || config.drop_list.is_some()
            || config.drop.is_some()
            || config.corrupt.is_some()
            || nat.is_some();
        let points = strikes
            .then(|| Direction::BOTH.map(|d| parts.point(&format!("faults.{}", d.short()), PointKind::Ip)));
        let only = config.protocol.map(Only::number);
        Ok(Faulty {
            link,
            config,
            only,
            on: [true; Fault::ALL.len()],
            lanes,
            counts: Default::default(),
            taken: Default::default(),
            nat,
            points,
            held: Late::default(),
        })
    }

    /// Is it among the settings?
    fn has(&self, fault: Fault) -> bool {
        let config = &self.config;
        match fault {
            Fault::Mtu => config.mtu.is_some(),
            Fault::Blackhole => config.blackhole.is_some(),
            Fault::DropList => config.drop_list.is_some(),
            Fault::Drop => config.drop.is_some(),
            Fault::Corrupt => config.corrupt.is_some(),
            Fault::Duplication => config.duplication.is_some(),
            Fault::Reordering => config.reordering.is_some(),
            Fault::Nat => config.nat.is_some(),
        }
    }

    /// Takes what the link delivers at `cx.now`.
    fn take(&mut self, cx: &mut Cx) {
        self.held.reach(cx.now);
        while let Some((direction, station, packet)) = self.link.poll_delivery() {
            let is_copy = self.link.delivered_a_copy();
            let Some(mut packet) = self.strike(cx, direction, station, packet, is_copy) else { continue };
            if let (Some(nat), Direction::Uplink) = (&mut self.nat, direction)
                && nat.out(cx.now, station, &mut packet).is_none()
            {
                self.refuse(cx, direction, &packet, is_copy);
                continue;
            }
            self.arrive(cx.now, (direction, station, packet), is_copy);
        }
    }

    /// The packet as it is behind what may strike it; `None` if nothing is left.
    fn strike(
        &mut self,
        cx: &mut Cx,
        d: Direction,
        station: Station,
        packet: Packet,
        is_copy: bool,
    ) -> Option<Packet> {
        let on = |fault: Fault| self.on[fault as usize];
        let counts = &mut self.counts[d as usize];
        if on(Fault::Mtu) && self.config.mtu.is_some_and(|mtu| packet.wire_len() > usize::from(mtu.get(d))) {
            counts.too_big += 1;
            return self.lose(cx, d, &packet, is_copy, ("mtu", None));
        }
        if on(Fault::Blackhole) && self.config.blackhole.is_some_and(|hole| hole.swallows(d, cx.now)) {
            counts.swallowed += 1;
            return self.lose(cx, d, &packet, is_copy, ("black hole", None));
        }
        let Some(lane) = self.lanes[d as usize].get_mut(usize::from(station.0)) else { return Some(packet) };
        if !strike::concerns(self.only, &packet) {
            return Some(packet);
        }
        lane.number += 1;
        counts.met += 1;
        let n = lane.number;
        let list = self.config.drop_list.as_ref().filter(|_| on(Fault::DropList));
        if list.is_some_and(|list| listed(list, d).contains(&n)) {
            counts.listed += 1;
            return self.lose(cx, d, &packet, is_copy, ("drop list", Some(n)));
        }
        if on(Fault::Drop) && lane.drop.strikes(n) {
            counts.dropped += 1;
            return self.lose(cx, d, &packet, is_copy, ("drop", Some(n)));
        }
        if on(Fault::Corrupt) && lane.corrupt.strikes(n) {
            // 53 bits of a number below 1.
            let luck = (lane.places.nth(n) * (1_u64 << 53) as f64) as u64;
            if let Some(changed) = strike::corrupt(&packet, luck) {
                counts.corrupted += 1;
                self.record(cx, d, Event::Receive, &changed, ("corrupt", Some(n)));
                return Some(changed);
            }
        }
        Some(packet)
    }

    /// Waits at the far end until it is handed over.
    fn arrive(&mut self, now: Instant, (direction, station, packet): Delivery, is_copy: bool) {
        let counts = &mut self.counts[direction as usize];
        let (late, again) = match self.lanes[direction as usize].get_mut(usize::from(station.0)) {
            Some(lane) => {
                let n = lane.arrivals;
                lane.arrivals += 1;
                let late = lane.reordering.strikes(n).filter(|_| self.on[Fault::Reordering as usize]);
                (late, lane.duplication.strikes(n).filter(|_| self.on[Fault::Duplication as usize]))
            }
            None => (None, None),
        };
        counts.reordered += u64::from(late.is_some());
        counts.duplicated += u64::from(again.is_some());
        let copy = again.map(|later| (now + later, packet.duplicate()));
        self.held.push(now + late.unwrap_or(Duration::ZERO), (direction, station, packet), is_copy);
        if let Some((at, copy)) = copy {
            self.held.push(at, (direction, station, copy), true);
        }
    }

    fn lose(
        &mut self,
        cx: &mut Cx,
        d: Direction,
        packet: &Packet,
        is_copy: bool,
        why: Why,
    ) -> Option<Packet> {
        self.taken[d as usize].lose(packet, is_copy);
        self.record(cx, d, Event::Drop, packet, why);
        None
    }

    /// The translator did not let it pass.
    fn refuse(&mut self, cx: &mut Cx, d: Direction, packet: &Packet, is_copy: bool) {
        self.counts[d as usize].not_translated += 1;
        match d {
            Direction::Uplink => self.taken[d as usize].lose(packet, is_copy),
            Direction::Downlink => self.taken[d as usize].refuse(),
        }
        self.record(cx, d, Event::Drop, packet, ("no binding", None));
    }

    fn record(&self, cx: &mut Cx, d: Direction, event: Event, packet: &Packet, (reason, number): Why) {
        let Some(point) = self.points.map(|points| points[d as usize]) else { return };
        let reason = Some(reason);
        let facts = || PacketFacts { reason, seq: number, ..PacketFacts::of(packet, "ip", event, d) };
        cx.records.packet(cx.now, point, facts, |out| edge::egress(packet, out));
    }
}

fn listed(list: &DropList, direction: Direction) -> &BTreeSet<u64> {
    match direction {
        Direction::Uplink => &list.uplink,
        Direction::Downlink => &list.downlink,
    }
}

impl Bearer for Faulty {
    fn send(&mut self, cx: &mut Cx, dir: Direction, mut station: Station, mut sdu: Packet) {
        if let (Some(nat), Direction::Downlink) = (&mut self.nat, dir) {
            match nat.come(cx.now, station, &mut sdu) {
                Some(inside) => station = inside,
                None => return self.refuse(cx, dir, &sdu, false),
            }
        }
        self.link.send(cx, dir, station, sdu);
        self.take(cx);
    }

    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        self.held.pop()
    }

    fn delivered_a_copy(&self) -> bool {
        self.held.was_copy
    }

    delegate! {
        to self.link {
            fn delivers_by_deadline(&self) -> bool;
            fn tells_events(&self) -> bool;
            fn poll_event(&mut self) -> Option<BearerEvent>;
            fn backlog(&self, now: Instant, dir: Direction, station: Station) -> Backlog;
            fn conditions(&self, out: &mut Vec<Condition>);
            fn close(&mut self, cx: &mut Cx);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.link.poll_timeout(), self.held.next()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.link.handle_timeout(cx);
        self.take(cx);
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        self.link.apply(cx, part, change)?;
        self.take(cx);
        if part.is_empty() && matches!(change, Change::State(LinkState::Down)) {
            for ((direction, _, packet), is_copy) in self.held.take() {
                self.counts[direction as usize].cut += 1;
                self.taken[direction as usize].lose(&packet, is_copy);
                self.record(cx, direction, Event::Drop, &packet, ("link down", None));
            }
        }
        Ok(())
    }

    fn switch(&mut self, now: Instant, fault: Fault, on: bool) -> Result<(), Unsupported> {
        if !self.has(fault) {
            return self.link.switch(now, fault, on);
        }
        self.on[fault as usize] = on;
        if let (Fault::Nat, Some(nat)) = (fault, &mut self.nat) {
            nat.switch(now, on);
        }
        Ok(())
    }

    fn faults(&self) -> Vec<(Fault, bool)> {
        let own = |fault: &Fault| self.has(*fault).then_some((*fault, self.on[*fault as usize]));
        let mut all: Vec<_> = Fault::ALL.iter().filter_map(own).collect();
        all.extend(self.link.faults().into_iter().filter(|(fault, _)| !self.has(*fault)));
        all
    }

    fn passed(&self) -> [Passed; 2] {
        traffic::passed(self.link.passed(), self.taken, self.held.originals())
    }

    fn grade(&self) -> Grade {
        // What happens to a packet goes by its number: super-packets are cut.
        match self.link.grade() {
            Grade::Transparent => Grade::Packet,
            grade => grade,
        }
    }

    fn summarise(&self, out: &mut Summary) {
        let mut link = Summary::default();
        self.link.summarise(&mut link);
        let link = traffic::without(link, self.taken, self.held.originals());
        for (name, value) in link.values.iter() {
            out.set(name, *value);
        }
        let config = &self.config;
        let numbered = config.drop_list.is_some() || config.drop.is_some() || config.corrupt.is_some();
        let disorder = config.reordering.is_some() || config.duplication.is_some();
        for d in Direction::BOTH {
            let (counts, name) = (&self.counts[d as usize], d.name());
            for (is_asked, what, value) in [
                (numbered, "faults_met", counts.met),
                (config.mtu.is_some(), "dropped_by_mtu", counts.too_big),
                (config.blackhole.is_some(), "dropped_by_blackhole", counts.swallowed),
                (config.drop_list.is_some(), "dropped_by_list", counts.listed),
                (config.drop.is_some(), "dropped_by_rate", counts.dropped),
                (config.corrupt.is_some(), "corrupted", counts.corrupted),
                (self.nat.is_some(), "dropped_by_nat", counts.not_translated),
                (disorder, "reordered", counts.reordered),
                (disorder, "duplicated", counts.duplicated),
                (disorder, "held_lost", counts.cut),
            ] {
                if is_asked {
                    let name = format!("{name}.{what}");
                    // A wire may bring disorder of its own.
                    let own = link.values.get(&name).copied().unwrap_or(0.0);
                    out.set(&name, own + value as f64);
                }
            }
        }
        if let Some(nat) = &self.nat {
            out.set("nat_rebindings", nat.rebindings() as f64);
        }
    }
}
