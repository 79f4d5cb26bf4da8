//! The bearer: all mobiles of a cell, one dedicated channel each.

use airloom_base::machine::{
    Backlog, Bearer, BearerEvent, Change, Cx, Grade, LinkState, Passed, Unsupported,
};
use airloom_base::record::{PointKind, Summary};
use airloom_base::{ConfigError, Direction, Instant, Outbox, Packet, Parts, Station, config};
use serde_json::Value;

use super::config::{Resolved, UmtsDchConfig};
use super::hsdpa::{MacHs, SharedChannel, UmtsHsdpaConfig};
use super::mobile::{Common, Mobile, Points};
use super::rlc::am::Format;
use super::rrc::RrcConfig;
use super::summary;
use crate::channel::BlockLoss;
use crate::deadlines::Deadlines;

/// Channels of the mobiles of one cell, and the core network behind them.
pub struct UmtsDch {
    common: Common,
    mobiles: Vec<Mobile>,
    deadlines: Deadlines,
    /// The shared channel, if the downlink is one.
    shared: Option<Box<SharedChannel>>,
    /// Latest nominal time handled.
    clock: Instant,
}

const NO_PART: Unsupported =
    Unsupported("a dedicated channel has no such part: name the link itself or one of its stations");

impl UmtsDch {
    /// From its table in the scenario.
    pub fn build(value: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
        let config: UmtsDchConfig = config::read(value)?;
        Ok(Box::new(UmtsDch::new(config, parts)?))
    }

    /// From its configuration.
    pub fn new(config: UmtsDchConfig, parts: &mut Parts) -> Result<UmtsDch, ConfigError> {
        let resolved = config.resolve()?;
        UmtsDch::assemble(config, resolved, |_, _| None, parts)
    }

    /// With HSDPA, from its table in the scenario.
    pub fn build_hsdpa(value: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
        let config: UmtsHsdpaConfig = config::read(value)?;
        Ok(Box::new(UmtsDch::with_hsdpa(config, parts)?))
    }

    /// With HSDPA, from its configuration.
    pub fn with_hsdpa(config: UmtsHsdpaConfig, parts: &mut Parts) -> Result<UmtsDch, ConfigError> {
        let cell = SharedChannel::new(&config, usize::from(parts.stations.max(1)))?;
        let (dch, resolved) = config.dch(cell.rate(&config))?;
        let shared = Some(Box::new(cell));
        let mac_hs =
            |parts: &Parts, station| Some(Box::new(shared.as_ref()?.mobile(&config, parts, station)));
        let mut new = UmtsDch::assemble(dch, resolved, mac_hs, parts)?;
        new.shared = shared;
        Ok(new)
    }

    fn assemble(
        config: UmtsDchConfig,
        resolved: Resolved,
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
        let mobiles: Vec<Mobile> = (0..parts.stations.max(1))
            .map(|number| {
                let station = Station(number);
                let points = Direction::BOTH.map(|d| points(parts, &common, d, station));
                let loss = |d| BlockLoss::new(common.config.loss.of_direction(d), fate, d, station);
                let losses = Direction::BOTH.map(loss);
                Mobile::new(station, &common, resolved.transport, losses, points, mac_hs(parts, station))
            })
            .collect();
        let deadlines = Deadlines::new(mobiles.len());
        Ok(UmtsDch { common, mobiles, deadlines, shared: None, clock: Instant::ZERO })
    }

    /// Handles everything with a deadline at `now` or before, each at its own time.
    fn catch_up(&mut self, records: &mut Outbox, now: Instant) {
        loop {
            let tti = self.next_tti();
            let earliest = self.deadlines.earliest();
            if earliest > now && tti > now {
                return;
            }
            // What arrives when an interval begins is sent in it.
            if earliest <= tti {
                self.clock = self.clock.max(earliest);
                let index = self.deadlines.holder();
                self.mobiles[index].run(&mut self.common, records, self.clock);
                self.settle(index, self.clock);
            } else {
                self.clock = self.clock.max(tti);
                self.run_shared_channel(records);
            }
        }
    }

    fn next_tti(&self) -> Instant {
        self.shared.as_ref().map_or(Instant::FAR_FUTURE, |cell| cell.next_tti())
    }

    #[cold]
    fn run_shared_channel(&mut self, records: &mut Outbox) {
        let Some(cell) = &mut self.shared else { return };
        cell.run(&mut self.common, records, &mut self.mobiles, self.clock);
        for index in 0..self.mobiles.len() {
            self.settle(index, self.clock);
        }
    }

    /// When this mobile is to be looked at next.
    fn settle(&mut self, index: usize, now: Instant) {
        let mobile = &self.mobiles[index];
        self.deadlines.set(index, mobile.next_timeout(&self.common, now));
        if let Some(cell) = &mut self.shared
            && mobile.wants_shared_channel(now)
        {
            cell.wake(now);
        }
    }

    fn refresh(&mut self, index: usize, now: Instant) {
        self.mobiles[index].arm(&mut self.common, now);
        self.settle(index, now);
    }

    fn set_rate(
        &mut self,
        direction: Option<Direction>,
        rate: airloom_base::units::Rate,
    ) -> Result<(), Unsupported> {
        let both: Vec<Direction> = directions(direction).collect();
        for &d in &both {
            let format = self.common.config.format_of(d, rate).map_err(|_| {
                Unsupported("no rate of a dedicated channel; valid: 8, 16, 32, 64, 128, 144, 256, 384 kbit/s")
            })?;
            self.mobiles.iter_mut().for_each(|m| m.set_format(d, format));
        }
        self.common.config.rate.set(direction, rate);
        Ok(())
    }
}

fn points(parts: &mut Parts, common: &Common, direction: Direction, station: Station) -> Points {
    let Format { li, .. } = common.format;
    let kind = PointKind::RlcAm { direction, station, li_octets: li.octets() as u8 };
    let which = if parts.stations > 1 { format!("{}.", station.0) } else { String::new() };
    let mut point = |end| {
        let point = parts.point(&format!("{which}rlc.{}.{end}", direction.short()), kind);
        parts.records.set_speed(point, common.config.rate.get(direction).bits_per_second());
        point
    };
    Points { tx: point("tx"), rx: point("rx") }
}

fn directions(direction: Option<Direction>) -> impl Iterator<Item = Direction> {
    Direction::BOTH.into_iter().filter(move |d| direction.is_none_or(|only| only == *d))
}

impl Bearer for UmtsDch {
    fn send(&mut self, cx: &mut Cx, dir: Direction, station: Station, sdu: Packet) {
        self.catch_up_before(cx);
        let index = usize::from(station.0);
        let Some(mobile) = self.mobiles.get_mut(index) else { return };
        mobile.send(&mut self.common, cx.records, dir, sdu, cx.now);
        self.refresh(index, cx.now);
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
        let at = self.deadlines.earliest().min(self.next_tti());
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.catch_up(cx.records, cx.now);
    }

    fn backlog(&self, _now: Instant, dir: Direction, station: Station) -> Backlog {
        let (sdus, octets) = self.mobiles.get(usize::from(station.0)).map_or((0, 0), |m| m.backlog(dir));
        Backlog { sdus, octets }
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        self.catch_up_before(cx);
        let concerned = match part {
            [] => 0..self.mobiles.len(),
            [one] if usize::from(*one) < self.mobiles.len() => usize::from(*one)..usize::from(*one) + 1,
            _ => return Err(NO_PART),
        };
        if self.shared.is_some() {
            let refused = match change {
                Change::Rate(..) => {
                    "the rate of a shared channel comes from `snr`, that of the uplinks stays"
                }
                Change::Loss(Some(Direction::Uplink), _) => "",
                Change::Loss(..) => {
                    "block errors of the shared channel come from `snr`: change those of the uplink"
                }
                _ => "",
            };
            if !refused.is_empty() {
                return Err(Unsupported(refused));
            }
        }
        match change {
            Change::State(state) => {
                for mobile in &mut self.mobiles[concerned] {
                    mobile.set_up(&mut self.common, cx.records, *state == LinkState::Up, cx.now);
                }
            }
            Change::Loss(direction, loss) => {
                for mobile in &mut self.mobiles[concerned] {
                    for d in directions(*direction) {
                        mobile.loss_mut(d).set_loss(*loss)?;
                    }
                }
            }
            _ if !part.is_empty() => {
                return Err(Unsupported(
                    "one station can change its state and its loss; the rest is the link's",
                ));
            }
            Change::Rate(direction, rate) => self.set_rate(*direction, *rate)?,
            Change::Delay(None, delay) => self.common.config.core_delay = *delay,
            Change::Delay(Some(_), _) => {
                return Err(Unsupported("the core delay is the same both ways: leave the direction out"));
            }
            Change::Queue(direction, limit) => self.common.config.queue.set(*direction, *limit),
        }
        (0..self.mobiles.len()).for_each(|index| self.refresh(index, cx.now));
        Ok(())
    }

    fn passed(&self) -> [Passed; 2] {
        self.common.totals.each_ref().map(|totals| totals.traffic.passed())
    }

    fn grade(&self) -> Grade {
        Grade::Radio
    }

    fn summarise(&self, out: &mut Summary) {
        summary::summarise(&self.common, &self.mobiles, self.shared.is_some(), self.clock, out);
    }
}

impl UmtsDch {
    /// What should have happened before this call happens first (in real time a timer may be handled late).
    fn catch_up_before(&mut self, cx: &mut Cx) {
        if self.deadlines.earliest().min(self.next_tti()) < cx.now {
            self.catch_up(cx.records, Instant::from_nanos(cx.now.as_nanos() - 1));
        }
        self.clock = self.clock.max(cx.now);
    }
}
