//! What the two round-trip times of a probe cycle say about the next level (section 2.3).
//!
//! The paper names what goes in, the two times, their difference and the level before, and that the rules were calibrated, but
//! not the rules.
//!
//! ASSUMPTION(wave-and-wait): the tables are ours. The rows of one are tried from the top; a row holds if the longer of the
//! two times is at most so many smallest round-trip times, and their difference too. Where none holds the level is 0, and the
//! sender probes again.
//!
//! Probes do not see a queue that is shorter than a wave: when they come it has drained, and both times are as ever. What the
//! wave left behind shows it. A queue takes the first segments and drops what comes on top of them; an error takes a segment
//! here and there, so that a share of `missing` behind the first loss, after a whole smallest wave, is hardly ever one. The
//! next wave is then the largest that came before the loss (`fits`), and `ceiling.rs` remembers it.

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
    /// From the first missing segment of the wave on at least this share is missing, and the smallest wave came before it: as
    /// where a queue was full. Any if not given.
    #[serde(default)]
    pub missing: Option<f64>,
    /// So many levels are taken off.
    #[serde(default)]
    pub down: u8,
    /// But this one stays.
    #[serde(default)]
    pub least: u8,
    /// A level of 0 becomes the highest.
    #[serde(default)]
    pub up: bool,
    /// The level is at most that of the largest wave that came before the first missing segment.
    #[serde(default)]
    pub fits: bool,
}

const fn row(time: f64, jitter: Option<f64>, down: u8, least: u8, up: bool) -> Row {
    Row { time, jitter, missing: None, down, least, up, fits: false }
}

/// A queue was shorter than the wave. Two thirds behind the first loss are missing where segments come three times as fast as
/// the queue gives them on, or faster; of errors by chance every other segment would have to be one.
const fn full(time: f64) -> Row {
    Row { missing: Some(0.65), fits: true, ..row(time, None, 0, 1, false) }
}

/// Fewer missing segments than this show no queue, unless the wave before ended so too: one may be the last by chance.
const FEW: u16 = 3;

/// The default: an error that passed leaves the level as it was, a queue takes off one level or two.
///
/// The limits are 0.75 times those that one would write down first (1.5 for an error that passed, 2 and 3 for the queue): so
/// calibrated against the paper's first table.
pub const BALANCED: &[Row] = &[
    full(2.25),
    row(1.125, Some(0.375), 0, 0, true),
    row(1.5, None, 1, 1, false),
    row(2.25, None, 2, 0, false),
];

/// Whatever answers twice within four round-trip times is taken for an error that passed: no opportunity is missed, and some
/// data is sent in vain.
pub const THROUGHPUT: &[Row] = &[full(4.0), row(4.0, None, 0, 1, true)];

/// The highest level comes back step by step, and any queue means waiting: little is sent in vain, and good times are missed.
pub const ENERGY: &[Row] = &[
    full(1.5),
    row(1.1, Some(0.1), 0, 1, false),
    row(1.3, Some(0.3), 1, 1, false),
    row(1.5, None, 2, 0, false),
];

/// What is known when a probe cycle ends.
#[derive(Clone, Copy, Debug)]
pub struct Probed {
    /// The two round-trip times.
    pub times: (Duration, Duration),
    /// The smallest there was.
    pub smallest: Duration,
    /// Differences up to this are none.
    pub granularity: Duration,
    /// What has become of the wave.
    pub left: Left,
}

/// What a wave has left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Segments that came, of those before the first missing one.
    pub before: u16,
    /// Segments from the first missing one on.
    pub behind: u16,
    /// How many of these are missing.
    pub missing: u16,
    /// Of the wave before the end was missing too.
    pub again: bool,
}

impl Left {
    /// Is what is missing the end of the wave, and was the rest no less than the smallest wave?
    pub fn is_end(&self, waves: &[u16]) -> bool {
        self.missing > 0 && self.missing == self.behind && waves.first().is_some_and(|w| self.before >= *w)
    }
}

/// What a table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The next level.
    pub level: u8,
    /// A queue was shorter than the wave: it takes this level.
    pub takes: Option<u8>,
}

/// The next level, by the first row that holds. `waves`: W(1), W(2), ...
pub fn decide(rows: &[Row], probed: &Probed, level: u8, waves: &[u16]) -> Decision {
    let (a, b) = probed.times;
    let (longer, shorter) = (a.max(b), a.min(b));
    let within = |time: Duration, limit: f64| {
        time.as_secs_f64() <= limit * probed.smallest.as_secs_f64() + probed.granularity.as_secs_f64()
    };
    let left = probed.left;
    let is_cut = |share: f64| {
        (left.missing >= FEW || (left.again && left.is_end(waves)))
            && waves.first().is_some_and(|w| left.before >= *w)
            && f64::from(left.missing) >= share * f64::from(left.behind)
    };
    let holds = |row: &&Row| {
        within(longer, row.time)
            && row.jitter.is_none_or(|j| within(longer - shorter, j))
            && row.missing.is_none_or(is_cut)
    };
    let Some(row) = rows.iter().find(holds) else { return Decision { level: 0, takes: None } };
    let top = waves.len() as u8;
    let takes = row.fits.then(|| waves.partition_point(|w| *w <= left.before).max(1) as u8);
    let next =
        if level == 0 && row.up { top } else { level.saturating_sub(row.down).max(row.least).min(top) };
    Decision { level: takes.map_or(next, |t| next.min(t)), takes }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAVES: &[u16] = &[12, 24, 36];

    fn decided(rows: &[Row], times: (u64, u64), left: Left, level: u8) -> Decision {
        let ms = Duration::from_millis;
        let granularity = Duration::ZERO;
        let probed = Probed { times: (ms(times.0), ms(times.1)), smallest: ms(1000), granularity, left };
        decide(rows, &probed, level, WAVES)
    }

    fn next(rows: &[Row], times: (u64, u64), level: u8) -> u8 {
        decided(rows, times, Left::default(), level).level
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
    fn a_wave_whose_end_is_missing_is_followed_by_one_that_fits_before_the_loss() {
        for rows in [BALANCED, THROUGHPUT, ENERGY] {
            for (before, takes) in [(12, 1), (23, 1), (24, 2), (32, 2)] {
                let left = Left { before, behind: 36 - before, missing: 36 - before, again: false };
                let now = decided(rows, (1000, 1000), left, 3);
                assert_eq!((now.level, now.takes), (takes, Some(takes)), "{left:?}");
                // What is told already may be less.
                assert_eq!(decided(rows, (1000, 1000), left, 1).level, 1);
            }
        }
    }

    #[test]
    fn losses_here_and_there_or_of_a_few_are_errors() {
        let errors = [
            // Every second, third, tenth; all but the first few; the last two.
            Left { before: 1, behind: 35, missing: 18, again: false },
            Left { before: 14, behind: 22, missing: 11, again: false },
            Left { before: 12, behind: 24, missing: 12, again: false },
            Left { before: 9, behind: 27, missing: 3, again: false },
            Left { before: 11, behind: 25, missing: 25, again: false },
            Left { before: 34, behind: 2, missing: 2, again: false },
            // A wave of which nothing has arrived: a queue takes the first.
            Left { before: 0, behind: 36, missing: 36, again: false },
        ];
        for left in errors {
            assert!(!left.is_end(WAVES) || left.missing < FEW);
            assert_eq!(
                decided(BALANCED, (1000, 1000), left, 3),
                Decision { level: 3, takes: None },
                "{left:?}"
            );
        }
    }

    #[test]
    fn the_last_segment_twice_in_a_row_is_a_queue_and_once_is_an_error() {
        let last = Left { before: 35, behind: 1, missing: 1, again: false };
        assert_eq!(decided(BALANCED, (1000, 1000), last, 3), Decision { level: 3, takes: None });
        let again = Left { again: true, ..last };
        assert_eq!(decided(BALANCED, (1000, 1000), again, 3), Decision { level: 2, takes: Some(2) });
        // One somewhere in the wave is none the second time either.
        let amid = Left { before: 20, behind: 16, missing: 1, again: true };
        assert_eq!(decided(BALANCED, (1000, 1000), amid, 3), Decision { level: 3, takes: None });
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
