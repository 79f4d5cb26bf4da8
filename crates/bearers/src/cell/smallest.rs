//! The smallest bearer of this kind: every mobile has its packets after a while. It is a test's, without a configuration and a line in
//! the registry.

use std::collections::VecDeque;

use airloom_base::{
    Backlog, BearerEvent, Change, ConfigError, Cx, Direction, Duration, Instant, Packet, Parts, Station,
    Summary, Unsupported,
};

use super::{Cell, Common, Edge, Mobile};

/// What a scenario would say, and what is counted.
pub struct Shared {
    pub delay: Duration,
    pub edge: Edge,
}

/// Its packets: when they arrive, and when they came.
pub struct Pager {
    station: Station,
    air: [VecDeque<(Instant, Instant, Packet)>; 2],
    is_up: bool,
}

pub type Paging = Cell<Pager>;

impl Paging {
    pub fn new(delay: Duration, parts: &mut Parts) -> Result<Paging, ConfigError> {
        let shared = Shared { delay, edge: Edge::default() };
        Paging::around(shared, (), parts, |_, _, station| {
            Ok(Pager { station, air: Default::default(), is_up: true })
        })
    }
}

impl Mobile for Pager {
    type Common = Shared;

    fn send(&mut self, cx: &mut Cx, shared: &mut Shared, direction: Direction, sdu: Packet) {
        let traffic = &mut shared.edge.traffic[direction as usize];
        traffic.sdus_in += 1;
        if self.is_up {
            self.air[direction as usize].push_back((cx.now + shared.delay, cx.now, sdu));
        } else {
            traffic.lost += 1;
        }
    }

    fn run(&mut self, cx: &mut Cx, shared: &mut Shared) {
        for direction in Direction::BOTH {
            let air = &mut self.air[direction as usize];
            let due = air.iter().take_while(|(at, ..)| *at <= cx.now).count();
            for (_, since, sdu) in air.drain(..due) {
                shared.edge.deliver(direction, self.station, sdu, cx.now.since(since));
            }
        }
    }

    fn settle(&mut self, _: &mut Shared, _now: Instant) -> Instant {
        let first = self.air.iter().filter_map(|air| air.front()).map(|(at, ..)| *at).min();
        first.unwrap_or(Instant::FAR_FUTURE)
    }

    fn backlog(&self, _: Direction) -> Backlog {
        Backlog::default()
    }

    fn set_up(&mut self, _: &mut Cx, shared: &mut Shared, is_up: bool) {
        if std::mem::replace(&mut self.is_up, is_up) != is_up {
            let lost = std::mem::take(&mut self.air).map(|air| air.len() as u64);
            shared.edge.traffic.iter_mut().zip(lost).for_each(|(traffic, lost)| traffic.lost += lost);
            let down = BearerEvent::Down(self.station, "link down");
            shared.edge.events.push_back(if is_up { BearerEvent::Up(self.station) } else { down });
        }
    }

    fn set_loss(&mut self, _: Option<Direction>, _: f64) -> Result<(), Unsupported> {
        Err(Unsupported("nothing is lost"))
    }
}

impl Common<Pager> for Shared {
    fn edge(&self) -> &Edge {
        &self.edge
    }

    fn edge_mut(&mut self) -> &mut Edge {
        &mut self.edge
    }

    fn change(&mut self, _: &mut [Pager], change: &Change, _now: Instant) -> Result<(), Unsupported> {
        let Change::Delay(None, delay) = change else { return Err(Unsupported("there is a delay only")) };
        self.delay = *delay;
        Ok(())
    }

    fn summarise(&self, _: &[Pager], _until: Instant, out: &mut Summary) {
        Direction::BOTH.iter().for_each(|d| self.edge.traffic[*d as usize].write(d.name(), out));
    }
}
