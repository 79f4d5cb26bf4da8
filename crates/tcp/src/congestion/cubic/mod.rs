//! CUBIC: after a reduction the window grows along a cubic curve back to where it was, and beyond it.
//! A circle, of which `config.rs` says why.
//!
//! Two stacks' worth of it: [`linux`] computes in whole segments and ticks of a kernel clock, [`rfc`] in octets and real
//! time as RFC 9438 (or RFC 8312 before it) writes it down. They share the settings.

mod linux;
mod rfc;

use airloom_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::super::config::Config;
use super::Controller;

//= RFC 8511 (3): an experiment with 0.85 is reported for CUBIC; nothing is specified.
/// Beta after a report of congestion (ABE).
const ABE_BETA: f64 = 0.85;

/// Which CUBIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// That of Linux: whole segments, a clock with ticks, the window computed at most once a tick.
    #[default]
    Linux,
    /// RFC 9438.
    Rfc9438,
    /// RFC 8312, its predecessor.
    Rfc8312,
}

/// CUBIC (RFC 9438).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "TcpCubic")]
pub struct CubicConfig {
    /// Which CUBIC: `linux`, `rfc9438` or `rfc8312`.
    pub variant: Variant,
    /// C: how steep the curve is, in segments per cubic second.
    //= RFC 9438 (5): C = 0.4, beta = 0.7.
    #[default(0.4)]
    pub c: f64,
    /// What is left of the window after a loss. Linux has 717/1024.
    #[default(0.7)]
    pub beta: f64,
    /// Does a loss below the last maximum lower that maximum, to make room for a flow that starts?
    #[default(true)]
    pub fast_convergence: bool,
    /// Is the window never smaller than Reno's would be?
    #[default(true)]
    pub friendliness: bool,
    /// Tick of the clock of the `linux` variant (its jiffy: 4 ms at 250 Hz).
    #[default(Duration::from_millis(4))]
    pub tick: Duration,
}

impl CubicConfig {
    /// Which value makes no sense.
    pub fn check(&self) -> Result<(), String> {
        if !(self.c > 0.0 && self.c <= 100.0) {
            return Err("cubic.c: above 0, up to 100".into());
        }
        if !(0.1..=0.95).contains(&self.beta) {
            return Err("cubic.beta: between 0.1 and 0.95".into());
        }
        if self.tick < Duration::from_micros(100) || self.tick > Duration::from_millis(100) {
            return Err("cubic.tick: between 100us and 100ms".into());
        }
        Ok(())
    }
}

/// Builds the variant that is configured.
pub(super) fn build(config: &Config) -> Box<dyn Controller> {
    match config.cubic.variant {
        Variant::Linux => Box::new(linux::Cubic::new(config)),
        Variant::Rfc9438 | Variant::Rfc8312 => Box::new(rfc::Cubic::new(config)),
    }
}
