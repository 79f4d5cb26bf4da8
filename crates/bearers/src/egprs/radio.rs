//! Which blocks survive: the loss process, a trace of the carrier-to-interference ratio, soft combining.

use airloom_base::{ConfigError, Duration, Instant, Unsupported};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coding_scheme::Mcs;
use crate::channel::{BlockLoss, Per};

/// Block errors from the ratio of carrier to interference.
///
/// ASSUMPTION: the odds of a block error fall by a factor of ten every `slope` dB; at its threshold a scheme loses one
/// block in ten. The default thresholds have the spacing of the reference performance of a slow mobile in a town
/// (TS 45.005), from memory and rounded: give your own for numbers that matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CiConfig {
    /// Points of time in seconds and ratio in dB, in order of time. A ratio holds until the next point; after the last
    /// point the trace begins anew, as long after it as the last point came after the one before.
    pub trace: Vec<(f64, f64)>,
    /// Ratio in dB at which MCS-1 to MCS-9 lose one block in ten. Control blocks are as robust as MCS-1.
    #[serde(default = "thresholds")]
    pub thresholds: [f64; 9],
    /// Decibels for a factor of ten in the odds of an error.
    #[serde(default = "slope")]
    pub slope: f64,
}

const fn thresholds() -> [f64; 9] {
    [10.0, 12.0, 16.5, 21.5, 15.5, 18.0, 24.0, 28.5, 30.0]
}

const fn slope() -> f64 {
    5.0
}

impl CiConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let at = |key: &str, message: &str| {
            Err(ConfigError { path: vec!["ci".to_owned(), key.to_owned()], message: message.to_owned() })
        };
        let rises = self.trace.windows(2).all(|w| w[0].0 < w[1].0);
        let is_sane = self.trace.iter().all(|(s, db)| s.is_finite() && *s >= 0.0 && db.is_finite());
        if self.trace.is_empty() || !rises || !is_sane || self.trace[0].0 != 0.0 {
            return at(
                "trace",
                "points [seconds, dB] from 0 on, in order of time, such as [[0, 20], [1.5, 12]]",
            );
        }
        if !(self.slope.is_finite() && self.slope > 0.0) {
            return at("slope", "a number of dB above 0");
        }
        Ok(())
    }

    /// The ratio at `at`.
    fn ratio(&self, at: Instant) -> f64 {
        let Some(&(end, last)) = self.trace.last() else { return f64::INFINITY };
        let before = self.trace.len().checked_sub(2).map_or(0.0, |i| self.trace[i].0);
        let period = Duration::from_secs_f64(end + (end - before)).as_nanos();
        let s = Duration::from_nanos(at.as_nanos().checked_rem(period).unwrap_or(0)).as_secs_f64();
        let index = self.trace.partition_point(|(from, _)| *from <= s);
        index.checked_sub(1).map_or(last, |i| self.trace[i].1)
    }

    fn block_error(&self, mcs: Mcs, at: Instant) -> f64 {
        self.block_error_at(mcs, self.ratio(at))
    }

    /// Probability that a block is lost at this ratio.
    pub(super) fn block_error_at(&self, mcs: Mcs, ratio_db: f64) -> f64 {
        let threshold = self.thresholds[usize::from(mcs.number()) - 1];
        let odds = 10f64.powf((threshold - ratio_db) / self.slope) / 9.0;
        // At very low ratios the odds are beyond what a float holds: a sure error.
        if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 }
    }
}

/// The radio of one mobile in one direction.
pub struct Radio {
    loss: BlockLoss,
    per: Per,
    ci: Option<CiConfig>,
    gain: f64,
}

impl Radio {
    pub fn new(loss: BlockLoss, per: Per, ci: Option<CiConfig>, gain: f64) -> Self {
        Radio { loss, per, ci, gain }
    }
    pub fn set_loss(&mut self, loss: f64) -> Result<(), Unsupported> {
        self.loss.set_loss(loss)
    }
    /// The ratio in dB at `at`, if a trace tells.
    pub fn ratio_db(&self, at: Instant) -> Option<f64> {
        self.ci.as_ref().map(|ci| ci.ratio(at))
    }
    /// Is the block at `place` of block period `n`, which begins at `at`, lost in its `attempt`-th transmission?
    pub fn loses(&mut self, n: u64, at: Instant, place: u32, mcs: Mcs, attempt: u8) -> bool {
        let mut p = self.loss.probability(n, at);
        if let Some(ci) = &self.ci {
            p = 1.0 - (1.0 - p) * (1.0 - ci.block_error(mcs, at));
        }
        if self.gain < 1.0 {
            p *= self.gain.powi(i32::from(attempt.saturating_sub(1)));
        }
        self.loss.loses(p, n, if self.per == Per::FecFrame { 0 } else { place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(s)
    }

    #[test]
    fn at_its_threshold_a_scheme_loses_one_block_in_ten_and_more_robust_ones_fewer() {
        let ci = CiConfig { trace: vec![(0.0, 21.5)], thresholds: thresholds(), slope: 5.0 };
        let p = |n| ci.block_error(Mcs::new(n).unwrap(), at(3.0));
        assert!((p(4) - 0.1).abs() < 1e-12);
        assert!(p(1) < p(2) && p(2) < p(3) && p(3) < p(4) && p(7) > 0.1 && p(8) > p(7) && p(9) > p(8));
        let none = CiConfig { trace: vec![(0.0, -5000.0)], ..ci };
        assert_eq!(none.block_error(Mcs::ALL[0], at(0.0)), 1.0);
    }

    #[test]
    fn a_trace_is_repeated() {
        let ci = CiConfig { trace: vec![(0.0, 20.0), (1.0, 10.0)], thresholds: thresholds(), slope: 5.0 };
        let ratios = [0.0, 0.99, 1.0, 1.99, 2.0, 3.5].map(|s| ci.ratio(at(s)));
        assert_eq!(ratios, [20.0, 20.0, 10.0, 10.0, 20.0, 10.0]);
    }
}
