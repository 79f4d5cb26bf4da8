//! Delays that a trace gives.
//!
//! A file has a time and a one-way delay in each line, divided by a comma or spaces; both in milliseconds, unless a first
//! line names columns: `t_s` or `t_ms`, `owd_ms` or `delay_ms` (others are passed over). A delay holds until the next
//! line. After the last line, which lasts as long as the one before it, the trace begins again.

use airloom_base::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::{read, short};

/// A fixed delay or a trace of delays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Form", into = "Form")]
pub struct Config(pub(super) Delay);

impl Default for Config {
    fn default() -> Self {
        Config(Delay::Fixed(Duration::ZERO))
    }
}

/// How a delay stands in a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Form {
    /// A duration such as `"40ms"`, or the name of a file.
    Text(String),
    /// Time and delay in milliseconds.
    Pairs(Vec<[f64; 2]>),
}

/// The delay of one direction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Delay {
    Fixed(Duration),
    Trace(Steps),
}

/// Delays with the time from which they hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Steps {
    steps: Vec<(Duration, Duration)>,
    period: Duration,
}

impl Delay {
    /// For a packet that was sent at `at`.
    #[inline]
    pub(crate) fn at(&self, at: Instant) -> Duration {
        match self {
            Delay::Fixed(delay) => *delay,
            Delay::Trace(trace) => trace.at(at),
        }
    }
}

impl Steps {
    /// Apart, so that a wire has no registers of it to save.
    #[inline(never)]
    fn at(&self, at: Instant) -> Duration {
        let into = Duration::from_nanos(at.as_nanos() % self.period.as_nanos().max(1));
        let next = self.steps.partition_point(|(from, _)| *from <= into);
        self.steps.get(next.saturating_sub(1)).map_or(Duration::ZERO, |(_, delay)| *delay)
    }
}

const NANOS_PER_MS: f64 = 1e6;
/// Nothing is later than this, a year in milliseconds.
const LONGEST_MS: f64 = 366.0 * 86_400e3;

fn milliseconds(value: f64) -> Option<Duration> {
    (0.0..=LONGEST_MS).contains(&value).then(|| Duration::from_nanos((value * NANOS_PER_MS).round() as u64))
}

impl TryFrom<Form> for Config {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, String> {
        let text = match form {
            Form::Pairs(pairs) => return steps(&pairs).map(|s| Config(Delay::Trace(s))),
            Form::Text(text) => text,
        };
        match text.parse() {
            Ok(delay) => Ok(Config(Delay::Fixed(delay))),
            // What begins like a number was meant as a duration.
            Err(error) if text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains('.') => {
                Err(error.to_string())
            }
            Err(_) => Config::parse(&text, &read(&text)?),
        }
    }
}

impl Config {
    /// The trace in the text of the file `name`.
    ///
    /// # Errors
    /// What is wrong with it, in one line with the file's name.
    pub fn parse(name: &str, text: &str) -> Result<Config, String> {
        let pairs = columns(text).map_err(|error| format!("{name}:{error}"))?;
        steps(&pairs).map(|steps| Config(Delay::Trace(steps))).map_err(|error| format!("{name}: {error}"))
    }
}

impl From<Config> for Form {
    fn from(config: Config) -> Form {
        match config.0 {
            Delay::Fixed(delay) => Form::Text(delay.to_string()),
            Delay::Trace(trace) => {
                let ms = |d: Duration| d.as_nanos() as f64 / NANOS_PER_MS;
                Form::Pairs(trace.steps.iter().map(|(from, delay)| [ms(*from), ms(*delay)]).collect())
            }
        }
    }
}

fn steps(pairs: &[[f64; 2]]) -> Result<Steps, String> {
    let mut steps = Vec::with_capacity(pairs.len());
    for [at, delay] in pairs {
        let step = milliseconds(*at).zip(milliseconds(*delay));
        let (at, delay) = step.ok_or_else(|| format!("{at} and {delay} are no time and delay"))?;
        if steps.last().is_some_and(|(before, _)| at <= *before) {
            return Err(format!("the time {at} does not come after the one above it"));
        }
        steps.push((at, delay));
    }
    let period = match steps.as_slice() {
        [] => return Err("a trace of delays has at least one line".to_owned()),
        [(only, _)] => *only + Duration::from_secs(1),
        [.., (before, _), (last, _)] => *last + (*last - *before),
    };
    Ok(Steps { steps, period })
}

/// Times and delays in milliseconds; an error begins with the number of its line.
fn columns(text: &str) -> Result<Vec<[f64; 2]>, String> {
    let (mut time, mut delay, mut factor) = (0, 1, 1.0);
    let mut pairs = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let cells: Vec<&str> = line.split([',', ' ', '\t']).filter(|c| !c.is_empty()).collect();
        let header = pairs.is_empty() && cells.iter().any(|c| *c == "t_s" || *c == "t_ms");
        if header {
            let place = |names: [&str; 2]| cells.iter().position(|c| names.contains(c));
            time = place(["t_s", "t_ms"]).unwrap_or(0);
            delay = place(["owd_ms", "delay_ms"])
                .ok_or_else(|| format!("{}: no column owd_ms or delay_ms", n + 1))?;
            factor = if cells[time] == "t_s" { 1000.0 } else { 1.0 };
            continue;
        }
        let number = |at: usize| cells.get(at).and_then(|c| c.parse::<f64>().ok());
        let pair = number(time).zip(number(delay));
        let (at, held) =
            pair.ok_or_else(|| format!("{}: expected a time and a delay, found {:?}", n + 1, short(line)))?;
        pairs.push([at * factor, held]);
    }
    Ok(pairs)
}
