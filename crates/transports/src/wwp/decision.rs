//! What the two round-trip times of a probe cycle say about the next level (section 2.3).
//!
//! The paper names what goes in, the two times, their difference and the level before, and that the rules were calibrated, but
//! not the rules.
//!
//! ASSUMPTION(wave-and-wait): the tables are ours. The rows of one are tried from the top; a row holds if the longer of the
//! two times is at most so many smallest round-trip times, and their difference too. Where none holds the level is 0, and the
//! sender probes again.

use airloom_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A row of a decision table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The longer round-trip time is at most so many smallest ones.
    pub time: f64,
    /// The difference of the two is at most so many smallest ones; any if not given.
    #[serde(default)]
    pub jitter: Option<f64>,
    /// So many levels are taken off.
    #[serde(default)]
    pub down: u8,
    /// But this one stays.
    #[serde(default)]
    pub least: u8,
    /// A level of 0 becomes the highest.
    #[serde(default)]
    pub up: bool,
}

const fn row(time: f64, jitter: Option<f64>, down: u8, least: u8, up: bool) -> Row {
    Row { time, jitter, down, least, up }
}

/// The default: an error that passed leaves the level as it was, a queue takes off one level or two.
///
/// The limits are 0.75 times those that one would write down first (1.5 for an error that passed, 2 and 3 for the queue): so
/// calibrated against the paper's first table.
pub const BALANCED: &[Row] =
    &[row(1.125, Some(0.375), 0, 0, true), row(1.5, None, 1, 1, false), row(2.25, None, 2, 0, false)];

/// Whatever answers twice within four round-trip times is taken for an error that passed: no opportunity is missed, and some
/// data is sent in vain.
pub const THROUGHPUT: &[Row] = &[row(4.0, None, 0, 1, true)];

/// The highest level comes back step by step, and any queue means waiting: little is sent in vain, and good times are missed.
pub const ENERGY: &[Row] =
    &[row(1.1, Some(0.1), 0, 1, false), row(1.3, Some(0.3), 1, 1, false), row(1.5, None, 2, 0, false)];

/// What is known when a probe cycle ends.
#[derive(Clone, Copy, Debug)]
pub struct Probed {
    /// The two round-trip times.
    pub times: (Duration, Duration),
    /// The smallest there was.
    pub smallest: Duration,
    /// Differences up to this are none.
    pub granularity: Duration,
}

/// The next level, by the first row that holds.
pub fn decide(rows: &[Row], probed: &Probed, level: u8, top: u8) -> u8 {
    let (a, b) = probed.times;
    let (longer, shorter) = (a.max(b), a.min(b));
    let within = |time: Duration, limit: f64| {
        time.as_secs_f64() <= limit * probed.smallest.as_secs_f64() + probed.granularity.as_secs_f64()
    };
    let holds =
        |row: &&Row| within(longer, row.time) && row.jitter.is_none_or(|j| within(longer - shorter, j));
    let Some(row) = rows.iter().find(holds) else { return 0 };
    if level == 0 && row.up {
        return top;
    }
    level.saturating_sub(row.down).max(row.least).min(top)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(rows: &[Row], times: (u64, u64), level: u8) -> u8 {
        let ms = Duration::from_millis;
        let probed =
            Probed { times: (ms(times.0), ms(times.1)), smallest: ms(1000), granularity: Duration::ZERO };
        decide(rows, &probed, level, 3)
    }

    #[test]
    fn times_as_ever_keep_the_level_and_longer_ones_take_off_one_or_two() {
        for (times, levels) in [
            ((1000, 1000), [3, 1, 2, 3]),
            ((1125, 1000), [3, 1, 2, 3]),
            ((1126, 1000), [1, 1, 1, 2]),
            ((1000, 1126), [1, 1, 1, 2]),
            ((1500, 1500), [1, 1, 1, 2]),
            ((1501, 1000), [0, 0, 0, 1]),
            ((2250, 2250), [0, 0, 0, 1]),
            ((2251, 1000), [0, 0, 0, 0]),
        ] {
            assert_eq!([0, 1, 2, 3].map(|l| next(BALANCED, times, l)), levels, "{times:?}");
        }
    }

    #[test]
    fn jitter_alone_takes_off_a_level_where_bursts_share_the_link() {
        let rows = [row(2.0, Some(0.2), 0, 0, false), row(2.0, None, 1, 1, false)];
        assert_eq!([next(&rows, (1500, 1400), 3), next(&rows, (1500, 1200), 3)], [3, 2]);
    }

    #[test]
    fn throughput_keeps_its_level_where_energy_waits() {
        let queue = (1600, 1500);
        assert_eq!([THROUGHPUT, BALANCED, ENERGY].map(|rows| next(rows, queue, 3)), [3, 1, 0]);
        assert_eq!([THROUGHPUT, BALANCED, ENERGY].map(|rows| next(rows, (1000, 1000), 0)), [3, 3, 1]);
    }

    #[test]
    fn every_table_sends_again_when_the_network_is_as_it_was() {
        for rows in [THROUGHPUT, BALANCED, ENERGY] {
            for level in 0..=3 {
                assert!(next(rows, (1000, 1000), level) > 0, "{rows:?} would probe for ever");
            }
        }
    }
}
