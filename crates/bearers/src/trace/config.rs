//! The table of a trace-driven link, and the files it names.

use airloom_base::units::{EachWay, QueueLimit};
use airloom_base::{Direction, Duration};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use super::delay;
use super::file::{read, short};
use crate::channel::LossConfig;

/// A link that sends when a recorded trace says (Mahimahi's format), with a fixed or recorded delay.
///
/// It does not answer to load as a cell does, unless a pair of traces says how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Delivery opportunities towards the network: a Mahimahi trace file, its numbers as a list, or
    /// `{ light = .., heavy = .. }`. Without it one per millisecond (12 Mbit/s).
    pub up: Opportunities,
    /// The same towards the mobile.
    pub down: Opportunities,
    /// One-way delay after sending: a duration, a file with a time and a delay in each line, or a list of pairs of
    /// milliseconds.
    #[default(Delays::Both(delay::Config::default()))]
    pub delay: Delays,
    /// How much the sending side holds (drop-tail). Without it: no limit.
    pub queue: Option<EachWay<QueueLimit>>,
    /// Losses after the queue, in the order of packets.
    pub loss: LossConfig,
    /// Of a pair of traces: how long a busy period has the light one.
    #[default(Duration::from_millis(500))]
    pub ramp: Duration,
}

/// The delay of both directions, or of each.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Delays {
    /// The same both ways.
    Both(delay::Config),
    /// One for each direction.
    Each {
        /// Towards the network.
        uplink: delay::Config,
        /// Towards the mobile.
        downlink: delay::Config,
    },
}

impl Delays {
    pub(super) fn get(&self, direction: Direction) -> &delay::Config {
        match (self, direction) {
            (Delays::Both(both), _) => both,
            (Delays::Each { uplink, .. }, Direction::Uplink) => uplink,
            (Delays::Each { downlink, .. }, Direction::Downlink) => downlink,
        }
    }
}

/// One trace, or a pair.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Opportunities {
    /// What happens whatever the load.
    One(Times),
    /// What happens under light and under heavy load.
    Pair(Pair),
}

/// Two traces of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Taken while the link was lightly used.
    pub light: Times,
    /// Taken while it was saturated.
    pub heavy: Times,
}

impl Default for Opportunities {
    fn default() -> Self {
        Opportunities::One(Times(vec![1]))
    }
}

// By hand, as what serde says of an untagged choice does not tell what is wrong in the file.
impl<'de> Deserialize<'de> for Opportunities {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        if value.is_object() {
            return Pair::deserialize(value).map(Opportunities::Pair).map_err(D::Error::custom);
        }
        Times::deserialize(value).map(Opportunities::One).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Delays {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Each {
            uplink: delay::Config,
            downlink: delay::Config,
        }
        let value = Value::deserialize(from)?;
        if value.is_object() {
            let Each { uplink, downlink } = Each::deserialize(value).map_err(D::Error::custom)?;
            return Ok(Delays::Each { uplink, downlink });
        }
        delay::Config::deserialize(value).map(Delays::Both).map_err(D::Error::custom)
    }
}

/// Milliseconds of opportunities, not decreasing; the last one, above zero, is the period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Form", into = "Form")]
pub struct Times(pub(super) Vec<u64>);

/// How a trace stands in a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Form {
    /// The name of a trace file.
    File(String),
    /// Its numbers.
    Numbers(Vec<u64>),
}

impl From<Times> for Form {
    // A run can be repeated without the file: what is kept is what was in it.
    fn from(times: Times) -> Form {
        Form::Numbers(times.0)
    }
}

impl TryFrom<Form> for Times {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, String> {
        match form {
            Form::Numbers(numbers) => checked(numbers),
            Form::File(name) => Times::parse(&name, &read(&name)?),
        }
    }
}

impl Times {
    /// The numbers in the text of the file `name`, one in each line that is neither empty nor a remark (`#`).
    ///
    /// # Errors
    /// What is wrong with it, in one line with the file's name.
    pub fn parse(name: &str, text: &str) -> Result<Times, String> {
        let mut numbers = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong =
                |_| format!("{name}:{}: expected a number of milliseconds, found {:?}", n + 1, short(line));
            numbers.push(line.parse().map_err(wrong)?);
        }
        checked(numbers).map_err(|error| format!("{name}: {error}"))
    }
}

fn checked(numbers: Vec<u64>) -> Result<Times, String> {
    if let Some(at) = numbers.windows(2).position(|w| w[1] < w[0]) {
        return Err(format!("opportunity {} comes before the one above it", at + 2));
    }
    match numbers.last() {
        None => Err("a trace has at least one line".to_owned()),
        Some(0) => Err("the last number of a trace is its period; it is above zero".to_owned()),
        Some(last) if *last > 1 << 40 => Err("a trace is not longer than thirty years".to_owned()),
        Some(_) => Ok(Times(numbers)),
    }
}
