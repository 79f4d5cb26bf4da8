//! Packets that come late, or twice.
//!
//! ```text
//! n-th arrival of its direction -> late? -> at once, or after `delay`; overtaken meanwhile
//!                               -> twice? -> a copy behind it, or after `delay`
//! ```

use airloom_base::random::Fate;
use airloom_base::units::{EachWay, Probability};
use airloom_base::{ConfigError, Direction, Duration, Station};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often a link does something to a packet at its far end, and how much later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disorder {
    /// Probability for each candidate, drawn by its number.
    pub probability: EachWay<Probability>,
    /// How much later than the packet would have arrived.
    #[serde(default)]
    pub delay: EachWay<Duration>,
    /// Only every so many-th packet is a candidate: with a probability of 1 the n-th, 2n-th, ... packets of a direction.
    /// Without it: every packet.
    #[serde(default)]
    pub every: Option<EachWay<u32>>,
}

/// One lane's share of a [`Disorder`].
#[derive(Clone, Copy)]
pub(super) struct Draw {
    probability: f64,
    delay: Duration,
    every: u64,
    fate: Fate,
}

impl Draw {
    pub(super) fn new(config: Option<Disorder>, fate: Fate, direction: Direction, station: Station) -> Self {
        let config = config.unwrap_or_default();
        Draw {
            probability: config.probability.get(direction).get(),
            delay: config.delay.get(direction),
            every: u64::from(config.every.map_or(1, |n| n.get(direction))),
            fate: fate.lane(direction, station, 0),
        }
    }

    /// Does it happen to the `n`-th arrival, counted from 0? How much later?
    pub(super) fn strikes(&self, n: u64) -> Option<Duration> {
        let candidate = (n + 1).is_multiple_of(self.every);
        (candidate && self.fate.nth(n) < self.probability).then_some(self.delay)
    }
}

/// Refuses settings that could do nothing.
pub(super) fn check(name: &str, disorder: Option<Disorder>, needs_delay: bool) -> Result<(), ConfigError> {
    let Some(disorder) = disorder else { return Ok(()) };
    for direction in Direction::BOTH {
        if disorder.every.is_some_and(|n| n.get(direction) == 0) {
            return Err(ConfigError::at("every", "every 0th packet is none; 1 means all of them").below(name));
        }
        let happens = disorder.probability.get(direction).get() > 0.0;
        if needs_delay && happens && disorder.delay.get(direction) == Duration::ZERO {
            let message = "a packet that is not later than others overtakes nobody";
            return Err(ConfigError::at("delay", message).below(name));
        }
    }
    Ok(())
}
