//! The bearer: a cell with all its mobiles.

use airloom_base::machine::{Bearer, Change, Unsupported};
use airloom_base::record::{PointKind, Summary};
use airloom_base::{ConfigError, Direction, Instant, Parts, config};
use serde_json::Value;

use super::config::EgprsConfig;
use super::llc::Frames;
use super::mobile::{Common, Mobile, RadioDirection};
use super::radio::Radio;
use super::rlc::{Rx, Tx};
use super::scheduler::Scheduler;
use super::summary;
use super::tbf::Flow;
use crate::air_time::Burst;
use crate::cell::{self, Cell, Edge, Points};
use crate::channel::BlockLoss;

/// One cell: timeslots, and the mobiles that share them.
pub type Egprs = Cell<Mobile, Scheduler>;

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
        let patience = (config.max_tx > 0).then(|| config.patience());
        let always = config.times().is_none();
        let scheduler = Scheduler::new(config.pdchs);
        let common =
            Common { config, link, totals: Default::default(), edge: Edge::default(), delivered: Vec::new() };
        Egprs::around(common, scheduler, parts, |common, parts, station| {
            let config = &common.config;
            let ways = Direction::BOTH.map(|direction| {
                let loss = BlockLoss::new(config.loss.of_direction(direction), fate, direction, station);
                let kind = PointKind::Gsmtap { direction, station };
                RadioDirection {
                    direction,
                    frames: Frames::new(direction, config.n201_u, config.max_tx == 0),
                    tx: Tx::default(),
                    rx: Rx::new(config.window.get(direction), patience),
                    rules: config.rules(direction),
                    adaptation: config.adaptation(),
                    flow: Flow::new(always),
                    radio: Radio::new(loss, per, config.ci.clone(), config.incremental_redundancy),
                    air: Default::default(),
                    points: Points::of_station(parts, "rlc", (direction, station), kind),
                    burst: Burst::default(),
                }
            });
            Ok(Mobile::new(station, (station.0 % u16::from(config.pdchs)) as u8, ways))
        })
    }
}

impl cell::Common<Mobile> for Common {
    fn edge(&self) -> &Edge {
        &self.edge
    }

    fn edge_mut(&mut self) -> &mut Edge {
        &mut self.edge
    }

    fn change(&mut self, _mobiles: &mut [Mobile], change: &Change, _now: Instant) -> Result<(), Unsupported> {
        match change {
            Change::Queue(direction, limit) => self.config.queue.set(*direction, *limit),
            Change::Rate(..) => {
                return Err(Unsupported("the rate of a cell comes from its timeslots and coding schemes"));
            }
            _ => return Err(Unsupported("a cell has no delay of its own: change the links behind it")),
        }
        Ok(())
    }

    fn summarise(&self, mobiles: &[Mobile], until: Instant, out: &mut Summary) {
        summary::summarise(self, mobiles, until, out);
    }
}
