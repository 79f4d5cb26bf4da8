//! Settings of WWP.

use airloom_base::units::{Octets, Rate};
use airloom_base::{ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::content::{LARGEST_WAVE, are_waves};
use super::decision::{self, Row};
use super::wire::{LONGEST, Layout, MAX_LEVEL, SHORTEST};

/// What is worth more ("adjusted in accordance with the application's needs").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Favour {
    /// An error that passed leaves the level, a queue takes some off.
    #[default]
    Balanced,
    /// Sends wherever anything is answered.
    Throughput,
    /// Sends only where the network is calm, and probes less and less often where it is not.
    Energy,
}

/// WWP, the Wave and Wait Protocol (2000): data in waves, whose size the receiver sets, and probes where they get lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Wwp")]
pub struct Config {
    /// Payload octets of a segment; fewer where the path takes no more.
    #[default(Octets(1024))]
    pub segment: Octets,
    /// Octets of a header, 4 to 16: the same at both ends.
    #[default(6)]
    pub header: u8,
    /// Two ports in front of every header. Without them, as in the paper, a host has one connection at a time.
    #[default(true)]
    pub ports: bool,
    /// Octets that the content of an N-S_ACK has at least; it is filled up with zeros.
    pub report: u16,
    /// Segments of a wave of level 1, 2, ..., each more than the one before. The opener's hold for both directions.
    #[default(vec![12, 24, 36])]
    pub waves: Vec<u16>,
    /// The level of the first wave. If not given: the highest where `baseline` is, else 1, since nothing is known of the network.
    pub first_level: Option<u8>,
    /// BT, the throughput of an uncongested network; the best that was seen if not given.
    pub baseline: Option<Rate>,
    /// Differences of times up to this are none.
    #[default(Duration::from_millis(2))]
    pub granularity: Duration,
    /// What is worth more: `"balanced"`, `"throughput"` or `"energy"`. Sets the decision table and how often to probe.
    pub favour: Favour,
    /// The decision table after a probe cycle, instead of that of `favour`.
    pub table: Option<Vec<Row>>,
    /// SEND_T in times of the round trip and the wave: how long an N-S_ACK is waited for.
    #[default(1.5)]
    pub send_factor: f64,
    /// PROBE_T in round-trip times: how long an answer to a probe is waited for.
    #[default(2.0)]
    pub probe_factor: f64,
    /// PROBE_T grows so many times with every probe that was lost, up to 10 s; 1, and 1.5 where energy is worth more, if not given.
    pub probe_backoff: Option<f64>,
    /// How long less than a wave waits for more to be written.
    #[default(Duration::from_millis(20))]
    pub hold: Duration,
    /// Octets written and not acknowledged at most.
    #[default(Octets(256 << 10))]
    pub send_buffer: Octets,
    /// Octets that wait to be read at most, but for a wave.
    #[default(Octets(256 << 10))]
    pub receive_buffer: Octets,
    /// A peer from which nothing comes for so long, although it was asked, is given up; one that answers probes and no wave, after
    /// ten times as long.
    #[default(Duration::from_secs(120))]
    pub give_up: Duration,
}

impl Config {
    /// Itself, if a connection can live with it.
    ///
    /// # Errors
    /// The key and what is wrong with its value.
    pub fn checked(self) -> Result<Config, ConfigError> {
        let header = SHORTEST as u8..=LONGEST as u8;
        let message = format!("{} is not between {SHORTEST} and {LONGEST}", self.header);
        ConfigError::when(!header.contains(&self.header), "header", message)?;
        let message = format!("{} is not between 64B and 16384B", self.segment);
        ConfigError::when(!(64..=16_384).contains(&self.segment.0), "segment", message)?;
        let message =
            format!("1 to {MAX_LEVEL} numbers, each larger than the one before, from 1 to {LARGEST_WAVE}");
        ConfigError::when(!are_waves(&self.waves), "waves", message)?;
        let top = self.waves.len() as u8;
        let is_none = self.first_level.is_some_and(|level| !(1..=top).contains(&level));
        let message = format!("is not between 1 and {top}, the highest level of `waves`");
        ConfigError::when(is_none, "first_level", message)?;
        ConfigError::when(self.report > 1000, "report", "must be at most 1000")?;
        for (key, factor) in [
            ("send_factor", self.send_factor),
            ("probe_factor", self.probe_factor),
            ("probe_backoff", self.probe_backoff()),
        ] {
            ConfigError::when(!(1.0..=100.0).contains(&factor), key, "must be between 1 and 100")?;
        }
        let rows = self.table();
        let is_finite =
            |r: &Row| [Some(r.time), r.jitter, r.missing].into_iter().flatten().all(f64::is_finite);
        ConfigError::when(!rows.iter().all(is_finite), "table", "its limits must be finite")?;
        let leads_nowhere = rows.iter().all(|r| r.missing.is_some() || (r.least == 0 && !r.up));
        let message = "has no row that leads away from level 0: one needs `up` or `least`";
        ConfigError::when(leads_nowhere, "table", message)?;
        ConfigError::when(self.give_up.is_zero(), "give_up", "is too little")?;
        ConfigError::when(self.send_buffer.0 < self.segment.0, "send_buffer", "is too little")?;
        let message = "is too little: no wave would ever be asked for";
        ConfigError::when(self.receive_buffer.0 == 0, "receive_buffer", message)?;
        Ok(self)
    }

    /// The decision table in force.
    pub fn table(&self) -> &[Row] {
        match (&self.table, self.favour) {
            (Some(rows), _) => rows,
            (None, Favour::Balanced) => decision::BALANCED,
            (None, Favour::Throughput) => decision::THROUGHPUT,
            (None, Favour::Energy) => decision::ENERGY,
        }
    }

    /// The level of the first of waves like these.
    pub(super) fn first_level(&self, waves: &[u16]) -> u8 {
        let usual = if self.baseline.is_some() { u8::MAX } else { 1 };
        self.first_level.unwrap_or(usual).min(waves.len() as u8)
    }

    /// The growth of PROBE_T in force.
    pub fn probe_backoff(&self) -> f64 {
        self.probe_backoff.unwrap_or(if self.favour == Favour::Energy { 1.5 } else { 1.0 })
    }

    /// How headers look.
    pub fn layout(&self) -> Layout {
        Layout { header: usize::from(self.header), ports: self.ports }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_paper_and_can_be_used() {
        let config = Config::default().checked().expect("they are ours");
        assert_eq!((config.segment, config.header, &config.waves[..]), (Octets(1024), 6, &[12, 24, 36][..]));
    }

    #[test]
    fn what_cannot_work_is_refused_by_its_name() {
        let d = Config::default;
        let wrong = [
            ("header", Config { header: 3, ..d() }),
            ("segment", Config { segment: Octets(20_000), ..d() }),
            ("waves", Config { waves: vec![], ..d() }),
            ("waves", Config { waves: vec![4, 4], ..d() }),
            ("first_level", Config { first_level: Some(4), ..d() }),
            ("report", Config { report: 2000, ..d() }),
            ("send_factor", Config { send_factor: f64::NAN, ..d() }),
            ("probe_backoff", Config { probe_backoff: Some(0.5), ..d() }),
            ("table", Config { table: Some(vec![]), ..d() }),
            ("send_buffer", Config { send_buffer: Octets(10), ..d() }),
            ("receive_buffer", Config { receive_buffer: Octets(0), ..d() }),
            ("give_up", Config { give_up: Duration::ZERO, ..d() }),
        ];
        for (key, config) in wrong {
            assert_eq!(config.clone().checked().expect_err("it cannot").path, [key], "{config:?}");
        }
    }
}
