//! The bearer: circuits of the mobiles of a base station.

use airloom_base::record::PointKind;
use airloom_base::{
    Bearer, Change, Condition, ConfigError, Direction, Instant, Parts, Passed, Summary, Unsupported, config,
};
use serde_json::Value;

use super::circuit::{Circuit, CircuitDirection, Common};
use super::config::PiafsConfig;
use super::tap::Tap;
use crate::cell::{self, Cell, Edge, Points};
use crate::channel::{BlockLoss, Radio};

/// One circuit for each mobile.
pub type Piafs = Cell<Circuit>;

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
            edge: Edge::default(),
        };
        let (errors, flushes) = (parts.fate("loss"), parts.fate("flush"));
        Piafs::around(common, (), parts, |common, parts, station| {
            let circuit = format!("{}.{}", parts.name, station.0);
            let placed = common.config.environment.as_ref();
            let radio = placed.map(|placed| Radio::new(placed, parts, &circuit)).transpose()?;
            let ways = Direction::BOTH.map(|direction| {
                let tap = Tap::new(common.config.line(), flushes.lane(direction, station, 0));
                let loss =
                    BlockLoss::new(common.config.loss.of_direction(direction), errors, direction, station);
                let points = Points::of_station(
                    parts,
                    "piafs",
                    (direction, station),
                    PointKind::Piafs { direction, station },
                );
                points.set_speed(parts, common.config.rate);
                CircuitDirection::new(direction, common, tap, loss, points)
            });
            Ok(Circuit::new(station, common.times, ways, radio))
        })
    }
}

impl cell::Common<Circuit> for Common {
    fn edge(&self) -> &Edge {
        &self.edge
    }

    fn edge_mut(&mut self) -> &mut Edge {
        &mut self.edge
    }

    fn change(&mut self, circuits: &mut [Circuit], change: &Change, now: Instant) -> Result<(), Unsupported> {
        match change {
            Change::Rate(None, rate) => {
                self.times = self.config.times(*rate).map_err(Unsupported)?;
                self.config.rate = *rate;
                circuits.iter_mut().for_each(|circuit| circuit.set_times(self.times, now));
            }
            Change::Rate(Some(_), _) => {
                return Err(Unsupported("a circuit has the same rate both ways: leave the direction out"));
            }
            Change::Queue(direction, limit) => self.config.queue.set(*direction, *limit),
            _ => return Err(Unsupported("the delay of a circuit does not change")),
        }
        Ok(())
    }

    fn conditions(&self, circuits: &[Circuit], out: &mut Vec<Condition>) {
        let is_wanted = circuits.iter().any(Circuit::is_wanted);
        let mut states = circuits.iter().map(Circuit::state);
        let first = states.next().unwrap_or("down");
        let state = if states.all(|state| state == first) { first } else { "mixed" };
        out.push(Condition {
            part: Vec::new(),
            state,
            is_wanted,
            passed: Some(cell::Common::passed(self)),
            faults: Vec::new(),
        });
        // Circuits of several mobiles are counted together.
        if circuits.len() > 1 {
            out.extend(circuits.iter().zip(0..).map(|(circuit, number)| Condition {
                part: vec![number],
                state: circuit.state(),
                is_wanted: circuit.is_wanted(),
                passed: None,
                faults: Vec::new(),
            }));
        }
    }

    fn passed(&self) -> [Passed; 2] {
        Direction::BOTH.map(|direction| {
            let (totals, traffic) =
                (&self.totals[direction as usize], &self.edge.traffic[direction as usize]);
            Passed { frames: totals.frames, errors: totals.crc_errors, octets: traffic.octets_out }
        })
    }

    fn summarise(&self, circuits: &[Circuit], _until: Instant, out: &mut Summary) {
        for direction in Direction::BOTH {
            let (totals, prefix) = (&self.totals[direction as usize], direction.name());
            self.edge.traffic[direction as usize].write(prefix, out);
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
        let [up, down] = &self.totals;
        out.set("piafs_crc_errors", (up.crc_errors + down.crc_errors) as f64);
        out.set("piafs_resent", (up.resent + down.resent) as f64);
        // With several mobiles, of the first one.
        out.set_some("field_dbuv", circuits.first().and_then(Circuit::mean_field));
        out.set("calls_dropped", self.calls_dropped as f64);
        out.set("calls_failed", self.calls_failed as f64);
        out.set("falls_to_32k", self.falls as f64);
        out.set("queue_max_bytes", self.edge.queue_max());
    }
}
