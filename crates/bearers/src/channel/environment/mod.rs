//! A radio environment that several links share: how strong the field of each base station unit is where the mobile stands, how it
//! fades, and who walks through the path.
//!
//! ```text
//!   distance ──> field strength, dBuV      log-distance, + shadowing of the place and of each unit (drawn once a run)
//!                      │
//!                      + fading, dB        Rayleigh or Rician, a sum of sinusoids with the Doppler shift of whoever moves
//!                      - people, dB        crossings: for tens of seconds bursts of some 100 ms in which the path is blocked
//!                      ▼
//!               frame in error?            a logistic curve of the field at the middle of the frame
//! ```
//!
//! Everything is a function of the seed, the name of the environment and the time: links that name the same unit see the same
//! shadowing, and fades and crossings are common to all, to a unit, or each circuit's own, as `shared` says. Nothing is
//! handed from link to link, so that adding one changes nothing for the others.
//!
//! ```text
//!   config.rs   the scenario's keys
//!   fading.rs   Rayleigh and Rician
//!   people.rs   crossings
//! ```
//!
//! **Sources.** Sum of sinusoids: Jakes' spectrum by angles of arrival drawn at random (Clarke's model). The defaults of field, exponent and
//! shadowing fit the four indoor points of Kojima and others 2000, Table 1. That frames fail around 30 dBuV is that paper's too; with
//! a Rice factor of 10 dB 2 to 3 % of the frames fail at 35 dBuV and one in a thousand at 40.
//!
//! **Left out.** Delay spread, interference, mobiles that move through the field (the distance stays), and the bursts of TDMA: a frame
//! meets one field.

mod config;
mod fading;
mod people;
#[cfg(test)]
mod tests;

pub use config::{Environment, Fading, FrameErrors, Law, People, Placed, Shadowing, Shared};

use airloom_base::random::Fate;
use airloom_base::{ConfigError, Direction, Duration, Instant, Parts};

pub(crate) use fading::Fades;
use people::Crossings;

/// The radio of one circuit: one unit of an environment, seen by one link.
#[derive(Clone, Debug)]
pub struct Radio {
    /// Mean field, dBuV.
    field: f64,
    /// What the uplink has more.
    uplink: f64,
    errors: FrameErrors,
    fades: Option<Fades>,
    crossings: Option<Crossings>,
}

impl Radio {
    /// The radio of `circuit` at the place that its link's table says.
    ///
    /// # Errors
    /// There is no such environment or unit; the path begins with `environment`.
    pub fn new(placed: &Placed, parts: &Parts, circuit: &str) -> Result<Radio, ConfigError> {
        let at = |key: &str, message: String| ConfigError::at(key, message).below("environment");
        let Some(table) = parts.environments.get(&placed.name) else {
            let known: Vec<String> = parts.environments.keys().map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(at("name", format!("there is no environment `{}`; there are: {known}", placed.name)));
        };
        let environment: Environment = airloom_base::config::read(table)?;
        environment.check()?;
        let unit = usize::from(placed.unit);
        if unit >= usize::from(environment.units) {
            return Err(at("unit", format!("units of `{}` are 0 to {}", placed.name, environment.units - 1)));
        }
        let draws = |purpose: &str| Fate::new(parts.seed, &format!("{}.{purpose}", placed.name));
        let whose = |shared: Shared| match shared {
            Shared::All => "all".to_owned(),
            Shared::Unit => format!("unit {unit}"),
            Shared::Circuit => format!("circuit {circuit}"),
        };
        let fades = environment.fading.map(|fading| {
            let own = draws(&format!("fading.{}", whose(fading.shared)));
            Fades::new(&fading, own)
        });
        let crossings = environment.people.map(|people| {
            let own = draws(&format!("people.{}", whose(people.shared)));
            Crossings::new(people, own)
        });
        Ok(Radio {
            field: environment.field_of(placed.unit, draws("shadowing")),
            uplink: environment.uplink,
            errors: environment.frame_errors,
            fades,
            crossings,
        })
    }

    /// Mean field strength, dBuV.
    pub fn mean_field(&self) -> f64 {
        self.field
    }

    /// Field strength at a time, dBuV. Times do not decrease from call to call.
    pub fn field(&mut self, at: Instant) -> f64 {
        let fade = self.fades.as_ref().map_or(0.0, |fades| fades.gain(at));
        let blocked = self.crossings.as_mut().map_or(0.0, |crossings| crossings.loss(at));
        self.field + fade - blocked
    }

    /// Probability that the frame of a direction which begins at `at` and takes `slot` is in error. Times do not decrease from call
    /// to call.
    pub fn probability(&mut self, direction: Direction, at: Instant, slot: Duration) -> f64 {
        let more = if direction == Direction::Uplink { self.uplink } else { 0.0 };
        let field = self.field(at + slot / 2);
        self.errors.probability(field + more)
    }
}
