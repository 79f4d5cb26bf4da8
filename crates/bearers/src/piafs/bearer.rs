//! The bearer: circuits of the mobiles of a base station.

use airloom_base::machine::{
    Backlog, Bearer, BearerEvent, Change, Condition, Cx, Grade, LinkState, Passed, Unsupported,
};
use airloom_base::record::{PointKind, Summary};
use airloom_base::{ConfigError, Direction, Instant, Outbox, Packet, Parts, Station, config};
use serde_json::Value;

use super::circuit::{Circuit, Common, Points, Way};
use super::config::PiafsConfig;
use super::tap::Tap;
use crate::channel::{BlockLoss, Radio};

/// One circuit for each mobile.
pub struct Piafs {
    common: Common,
    circuits: Vec<Circuit>,
    /// Latest nominal time handled.
    clock: Instant,
}

const NO_PART: Unsupported =
    Unsupported("a circuit has no such part: name the link itself or one of its stations");

impl Piafs {
    /// From its table in the scenario.
    pub fn build(value: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
        let config: PiafsConfig = config::read(value)?;
        Ok(Box::new(Piafs::new(config, parts)?))
    }

    /// From its configuration.
    ///
    /// # Errors
    /// The key that makes no sense.
    pub fn new(config: PiafsConfig, parts: &mut Parts) -> Result<Piafs, ConfigError> {
        let times = config.check()?;
        let common = Common {
            config,
            times,
            totals: Default::default(),
            calls_dropped: 0,
            calls_failed: 0,
            falls: 0,
            deliveries: Default::default(),
            events: Default::default(),
        };
        let (errors, flushes) = (parts.fate("loss"), parts.fate("flush"));
        let circuits = (0..parts.stations.max(1))
            .map(|number| {
                let station = Station(number);
                let circuit = format!("{}.{number}", parts.name);
                let placed = common.config.environment.as_ref();
                let radio = placed.map(|placed| Radio::new(placed, parts, &circuit)).transpose()?;
                let ways = Direction::BOTH.map(|direction| {
                    let tap = Tap::new(common.config.line(), flushes.lane(direction, station, 0));
                    let process = common.config.loss.of_direction(direction);
                    let loss = BlockLoss::new(process, errors, direction, station);
                    Way::new(direction, &common, tap, loss, points(parts, &common, direction, station))
                });
                Ok(Circuit::new(station, common.times, ways, radio))
            })
            .collect::<Result<_, ConfigError>>()?;
        Ok(Piafs { common, circuits, clock: Instant::ZERO })
    }

    fn next_event(&self) -> Instant {
        self.circuits.iter().map(Circuit::next_timeout).fold(Instant::FAR_FUTURE, Instant::min)
    }

    /// Handles everything due at `now` or before, each at its own time.
    fn catch_up(&mut self, records: &mut Outbox, now: Instant) {
        loop {
            let at = self.next_event();
            if at > now || at == Instant::FAR_FUTURE {
                break;
            }
            self.clock = self.clock.max(at);
            for circuit in self.circuits.iter_mut().filter(|circuit| circuit.next_timeout() <= at) {
                circuit.run(&mut self.common, records, at);
            }
        }
    }

    /// What should have happened before this call happens first (in real time a timer may be handled late).
    fn catch_up_before(&mut self, cx: &mut Cx) {
        if self.next_event() < cx.now {
            self.catch_up(cx.records, Instant::from_nanos(cx.now.as_nanos() - 1));
        }
        self.clock = self.clock.max(cx.now);
    }
}

fn points(parts: &mut Parts, common: &Common, direction: Direction, station: Station) -> Points {
    let which = if parts.stations > 1 { format!("{}.", station.0) } else { String::new() };
    let mut point = |end| {
        let name = format!("{which}piafs.{}.{end}", direction.short());
        let point = parts.point(&name, PointKind::Piafs { direction, station });
        parts.records.set_speed(point, common.config.rate.bits_per_second());
        point
    };
    Points { tx: point("tx"), rx: point("rx") }
}

impl Bearer for Piafs {
    fn send(&mut self, cx: &mut Cx, dir: Direction, station: Station, sdu: Packet) {
        self.catch_up_before(cx);
        if let Some(circuit) = self.circuits.get_mut(usize::from(station.0)) {
            circuit.send(&mut self.common, cx.records, dir, sdu, cx.now);
        }
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
        let (sdus, octets) = self.circuits.get(usize::from(station.0)).map_or((0, 0), |c| c.backlog(dir));
        Backlog { sdus, octets }
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        self.catch_up_before(cx);
        let concerned = match part {
            [] => 0..self.circuits.len(),
            [one] if usize::from(*one) < self.circuits.len() => usize::from(*one)..usize::from(*one) + 1,
            _ => return Err(NO_PART),
        };
        match change {
            Change::State(state) => {
                for circuit in &mut self.circuits[concerned] {
                    circuit.set_up(&mut self.common, cx.records, *state == LinkState::Up, cx.now);
                }
            }
            Change::Loss(direction, loss) => {
                for circuit in &mut self.circuits[concerned] {
                    for d in Direction::BOTH.into_iter().filter(|d| direction.is_none_or(|only| only == *d)) {
                        circuit.loss_mut(d).set_loss(*loss)?;
                    }
                }
            }
            _ if !part.is_empty() => {
                return Err(Unsupported(
                    "one circuit can change its state and its loss; the rest is the link's",
                ));
            }
            Change::Rate(None, rate) => {
                self.common.times = self.common.config.times(*rate).map_err(Unsupported)?;
                self.common.config.rate = *rate;
                for circuit in &mut self.circuits {
                    circuit.set_times(self.common.times, cx.now);
                }
            }
            Change::Rate(Some(_), _) => {
                return Err(Unsupported("a circuit has the same rate both ways: leave the direction out"));
            }
            Change::Queue(direction, limit) => self.common.config.queue.set(*direction, *limit),
            Change::Delay(..) => return Err(Unsupported("the delay of a circuit does not change")),
        }
        Ok(())
    }

    fn conditions(&self, out: &mut Vec<Condition>) {
        let is_wanted = self.circuits.iter().any(Circuit::is_wanted);
        let mut states = self.circuits.iter().map(Circuit::state);
        let first = states.next().unwrap_or("down");
        let state = if states.all(|state| state == first) { first } else { "mixed" };
        out.push(Condition { part: Vec::new(), state, is_wanted, passed: Some(self.passed()) });
        // Circuits of several mobiles are counted together.
        if self.circuits.len() > 1 {
            out.extend(self.circuits.iter().zip(0..).map(|(circuit, number)| Condition {
                part: vec![number],
                state: circuit.state(),
                is_wanted: circuit.is_wanted(),
                passed: None,
            }));
        }
    }

    fn passed(&self) -> [Passed; 2] {
        self.common.totals.each_ref().map(|totals| Passed {
            frames: totals.frames,
            errors: totals.crc_errors,
            octets: totals.traffic.octets_out,
        })
    }

    fn grade(&self) -> Grade {
        Grade::Radio
    }

    fn summarise(&self, out: &mut Summary) {
        for direction in Direction::BOTH {
            let (totals, prefix) = (&self.common.totals[direction as usize], direction.name());
            totals.traffic.write(prefix, out);
            for (name, value) in [
                ("piafs_frames", totals.frames),
                ("piafs_crc_errors", totals.crc_errors),
                ("piafs_resent", totals.resent),
                ("piafs_fill", totals.fill),
                ("piafs_duplicates", totals.duplicates),
                ("piafs_bytes", totals.octets),
            ] {
                out.set(&format!("{prefix}.{name}"), value as f64);
            }
        }
        let [up, down] = &self.common.totals;
        out.set("piafs_crc_errors", (up.crc_errors + down.crc_errors) as f64);
        out.set("piafs_resent", (up.resent + down.resent) as f64);
        // With several mobiles, of the first one.
        out.set_some("field_dbuv", self.circuits.first().and_then(Circuit::mean_field));
        out.set("calls_dropped", self.common.calls_dropped as f64);
        out.set("calls_failed", self.common.calls_failed as f64);
        out.set("falls_to_32k", self.common.falls as f64);
        out.set("queue_max_bytes", up.traffic.queue_max.max(down.traffic.queue_max) as f64);
    }
}
