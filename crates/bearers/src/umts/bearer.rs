//! The bearer: all mobiles of a cell, one dedicated channel each.

use airloom_base::machine::{Bearer, Change, Unsupported};
use airloom_base::record::{PointKind, Summary};
use airloom_base::{ConfigError, Direction, Instant, Parts, Station, config};
use serde_json::Value;

use super::config::{Resolved, UmtsDchConfig};
use super::hsdpa::{MacHs, SharedChannel, UmtsHsdpaConfig};
use super::mobile::{Common, Mobile};
use super::rrc::RrcConfig;
use super::summary;
use crate::cell::{self, Cell, Edge, Points, directions};
use crate::channel::BlockLoss;

/// Channels of the mobiles of one cell, and the core network behind them.
pub type UmtsDch = Cell<Mobile, Option<Box<SharedChannel>>>;

impl UmtsDch {
    /// From its table in the scenario.
    pub fn build(value: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
        let config: UmtsDchConfig = config::read(value)?;
        Ok(Box::new(UmtsDch::new(config, parts)?))
    }

    /// From its configuration.
    pub fn new(config: UmtsDchConfig, parts: &mut Parts) -> Result<UmtsDch, ConfigError> {
        let resolved = config.resolve()?;
        UmtsDch::assemble(config, resolved, None, |_, _| None, parts)
    }

    /// With HSDPA, from its table in the scenario.
    pub fn build_hsdpa(value: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
        let config: UmtsHsdpaConfig = config::read(value)?;
        Ok(Box::new(UmtsDch::with_hsdpa(config, parts)?))
    }

    /// With HSDPA, from its configuration.
    pub fn with_hsdpa(config: UmtsHsdpaConfig, parts: &mut Parts) -> Result<UmtsDch, ConfigError> {
        let channel = SharedChannel::new(&config, usize::from(parts.stations.max(1)))?;
        let (dch, resolved) = config.dch(channel.rate(&config))?;
        let rules = channel.rules;
        let mac_hs =
            |parts: &Parts, station| Some(Box::new(MacHs::of_mobile(&config, rules, parts, station)));
        UmtsDch::assemble(dch, resolved, Some(Box::new(channel)), mac_hs, parts)
    }

    fn assemble(
        config: UmtsDchConfig,
        resolved: Resolved,
        shared: Option<Box<SharedChannel>>,
        mac_hs: impl Fn(&Parts, Station) -> Option<Box<MacHs>>,
        parts: &mut Parts,
    ) -> Result<UmtsDch, ConfigError> {
        let fach = match &config.rrc {
            Some(_) => RrcConfig::formats(config.pdu_octets)?,
            None => resolved.transport,
        };
        let fach = Direction::BOTH.map(|d| fach[d as usize].with_offset(config.offset_of(d)));
        let fate = parts.fate("loss");
        let link = parts.name.to_owned();
        let common = Common::new(config, resolved.format, resolved.per, fach, link);
        UmtsDch::around(common, shared, parts, |common, parts, station| {
            let points = Direction::BOTH.map(|direction| {
                let li_octets = common.format.li.octets() as u8;
                let kind = PointKind::RlcAm { direction, station, li_octets };
                let points = Points::of_station(parts, "rlc", (direction, station), kind);
                points.set_speed(parts, common.config.rate.get(direction));
                points
            });
            let loss = |d| BlockLoss::new(common.config.loss.of_direction(d), fate, d, station);
            let losses = Direction::BOTH.map(loss);
            Ok(Mobile::new(station, common, resolved.transport, losses, points, mac_hs(parts, station)))
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

    fn change(&mut self, mobiles: &mut [Mobile], change: &Change, now: Instant) -> Result<(), Unsupported> {
        match change {
            Change::Rate(..) if summary::is_shared(mobiles) => {
                return Err(Unsupported(
                    "the rate of a shared channel comes from `snr`, that of the uplinks stays",
                ));
            }
            Change::Rate(direction, rate) => {
                for d in directions(*direction) {
                    let format = self.config.format_of(d, *rate).map_err(|_| {
                        Unsupported(
                            "no rate of a dedicated channel; valid: 8, 16, 32, 64, 128, 144, 256, 384 kbit/s",
                        )
                    })?;
                    mobiles.iter_mut().for_each(|mobile| mobile.set_format(d, format, now));
                }
                self.config.rate.set(*direction, *rate);
            }
            Change::Delay(None, delay) => self.config.core_delay = *delay,
            Change::Queue(direction, limit) => self.config.queue.set(*direction, *limit),
            _ => {
                return Err(Unsupported("the core delay is the same both ways: leave the direction out"));
            }
        }
        Ok(())
    }

    fn summarise(&self, mobiles: &[Mobile], until: Instant, out: &mut Summary) {
        summary::summarise(self, mobiles, until, out);
    }
}
