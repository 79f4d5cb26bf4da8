//! The bearer: a cell with all its mobiles.

use airloom_base::machine::{
    Backlog, Bearer, BearerEvent, Change, Cx, Grade, LinkState, Passed, Unsupported,
};
use airloom_base::record::{PointKind, Summary};
use airloom_base::{ConfigError, Direction, Instant, Outbox, Packet, Parts, Station, config};
use serde_json::Value;

use super::config::EgprsConfig;
use super::llc::Frames;
use super::mobile::{Common, Mobile, Points, Way};
use super::radio::Radio;
use super::rlc::{Rx, Tx};
use super::scheduler::Scheduler;
use super::summary;
use super::tbf::Flow;
use crate::air_time::Burst;
use crate::channel::BlockLoss;

/// One cell: timeslots, and the mobiles that share them.
pub struct Egprs {
    common: Common,
    mobiles: Vec<Mobile>,
    scheduler: Scheduler,
    /// The next block period that somebody needs.
    period: Instant,
    /// Latest nominal time handled.
    clock: Instant,
    states_told: bool,
}

const NO_PART: Unsupported =
    Unsupported("a cell has no such part: name the link itself or one of its stations");

impl Egprs {
    /// From its table in the scenario.
    pub fn build(value: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
        let config: EgprsConfig = config::read(value)?;
        Ok(Box::new(Egprs::new(config, parts)?))
    }

    /// From its configuration.
    pub fn new(config: EgprsConfig, parts: &mut Parts) -> Result<Egprs, ConfigError> {
        let per = config.check()?;
        if config.longest_packet() < u32::from(parts.mtu) {
            let message = format!(
                "at most {} octets: SNDCP cuts a packet into no more than 16 segments, here of {} (`n201_u`)",
                config.longest_packet(),
                config.n201_u
            );
            return Err(ConfigError::at("mtu", message));
        }
        let fate = parts.fate("loss");
        let link = parts.name.to_owned();
        let period = config.grid.duration().as_nanos().max(1);
        let patience = (config.max_tx > 0).then(|| config.transfer_time.as_nanos().div_ceil(period));
        let always = config.times().is_none();
        let mobiles = (0..parts.stations.max(1))
            .map(|number| {
                let station = Station(number);
                let ways = Direction::BOTH.map(|direction| {
                    let loss = BlockLoss::new(config.loss.of_direction(direction), fate, direction, station);
                    Way {
                        direction,
                        frames: Frames::new(direction, config.n201_u, config.max_tx == 0),
                        tx: Tx::default(),
                        rx: Rx::new(config.window.get(direction), patience),
                        rules: config.rules(direction),
                        adaptation: config.adaptation(),
                        flow: Flow::new(always),
                        radio: Radio::new(loss, per, config.ci.clone(), config.incremental_redundancy),
                        air: Default::default(),
                        points: points(parts, direction, station),
                        burst: Burst::default(),
                    }
                });
                Mobile::new(station, (number % u16::from(config.pdchs)) as u8, ways)
            })
            .collect();
        let scheduler = Scheduler::new(config.pdchs);
        let common = Common {
            config,
            link,
            totals: Default::default(),
            deliveries: Default::default(),
            events: Default::default(),
            delivered: Vec::new(),
        };
        let (period, clock) = (Instant::FAR_FUTURE, Instant::ZERO);
        Ok(Egprs { common, mobiles, scheduler, period, clock, states_told: false })
    }

    fn next_event(&self) -> Instant {
        self.mobiles.iter().map(Mobile::next_timeout).fold(self.period, Instant::min)
    }

    /// Handles everything due at `now` or before, each at its own time: arrivals and timers, then the block period.
    fn catch_up(&mut self, records: &mut Outbox, now: Instant) {
        self.tell_states(records);
        loop {
            let at = self.next_event();
            if at > now || at == Instant::FAR_FUTURE {
                break;
            }
            self.clock = self.clock.max(at);
            for mobile in &mut self.mobiles {
                if mobile.next_timeout() <= at {
                    mobile.run(&mut self.common, records, at);
                }
            }
            if self.period <= at {
                self.scheduler.run(&mut self.common, records, &mut self.mobiles, at);
            }
            self.refresh(at);
        }
    }

    fn refresh(&mut self, now: Instant) {
        self.period = self.scheduler.next_period(&self.common, &self.mobiles, now);
    }

    /// What should have happened before this call happens first (in real time a timer may be handled late).
    fn catch_up_before(&mut self, cx: &mut Cx) {
        self.tell_states(cx.records);
        if self.next_event() < cx.now {
            self.catch_up(cx.records, Instant::from_nanos(cx.now.as_nanos() - 1));
        }
        self.clock = self.clock.max(cx.now);
    }

    fn tell_states(&mut self, records: &mut Outbox) {
        if !std::mem::replace(&mut self.states_told, true) {
            for mobile in &mut self.mobiles {
                mobile.tell_state(&self.common, records, Instant::ZERO);
            }
        }
    }
}

fn points(parts: &mut Parts, direction: Direction, station: Station) -> Points {
    let which = if parts.stations > 1 { format!("{}.", station.0) } else { String::new() };
    let kind = PointKind::Gsmtap { direction, station };
    let mut point = |end| parts.point(&format!("{which}rlc.{}.{end}", direction.short()), kind);
    Points { tx: point("tx"), rx: point("rx") }
}

impl Bearer for Egprs {
    fn send(&mut self, cx: &mut Cx, dir: Direction, station: Station, sdu: Packet) {
        self.catch_up_before(cx);
        let Some(mobile) = self.mobiles.get_mut(usize::from(station.0)) else { return };
        mobile.send(&mut self.common, cx.records, dir, sdu, cx.now);
        self.refresh(cx.now);
    }

    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        self.common.deliveries.pop_front()
    }

    fn tells_events(&self) -> bool {
        true
    }

    fn poll_event(&mut self) -> Option<BearerEvent> {
        self.common.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let at = self.next_event();
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.catch_up(cx.records, cx.now);
    }

    fn backlog(&self, _now: Instant, dir: Direction, station: Station) -> Backlog {
        let backlog = |m: &Mobile| m.ways[dir as usize].frames.backlog();
        let (sdus, octets) = self.mobiles.get(usize::from(station.0)).map_or((0, 0), backlog);
        Backlog { sdus, octets }
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        self.catch_up_before(cx);
        let concerned = match part {
            [] => 0..self.mobiles.len(),
            [one] if usize::from(*one) < self.mobiles.len() => usize::from(*one)..usize::from(*one) + 1,
            _ => return Err(NO_PART),
        };
        match change {
            Change::State(state) => {
                for mobile in &mut self.mobiles[concerned] {
                    mobile.set_up(&mut self.common, cx.records, *state == LinkState::Up, cx.now);
                }
            }
            Change::Loss(direction, loss) => {
                for mobile in &mut self.mobiles[concerned] {
                    for way in
                        mobile.ways.iter_mut().filter(|w| direction.is_none_or(|only| only == w.direction))
                    {
                        way.radio.set_loss(*loss)?;
                    }
                }
            }
            Change::Queue(direction, limit) if part.is_empty() => {
                self.common.config.queue.set(*direction, *limit)
            }
            Change::Queue(..) => {
                return Err(Unsupported(
                    "one station can change its state and its loss; the rest is the link's",
                ));
            }
            Change::Rate(..) => {
                return Err(Unsupported("the rate of a cell comes from its timeslots and coding schemes"));
            }
            Change::Delay(..) => {
                return Err(Unsupported("a cell has no delay of its own: change the links behind it"));
            }
        }
        self.refresh(cx.now);
        Ok(())
    }

    fn passed(&self) -> [Passed; 2] {
        self.common.totals.each_ref().map(|totals| totals.traffic.passed())
    }

    fn grade(&self) -> Grade {
        Grade::Radio
    }

    fn summarise(&self, out: &mut Summary) {
        summary::summarise(&self.common, &self.mobiles, self.clock, out);
    }
}
