//! When radio blocks begin.

use airloom_base::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time grid of radio blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grid {
    /// A block of 20 ms every 20 ms.
    #[default]
    Uniform,
    /// The 52-multiframe of TS 45.002: after every third block of four TDMA frames (18.46 ms) one frame without.
    Multiframe,
}

/// Blocks in a 52-multiframe, and its duration.
const BLOCKS: u64 = 12;
const MULTIFRAME: u64 = 240_000_000;

impl Grid {
    /// From one block to the next, on average and on either grid.
    pub const MEAN_PERIOD: Duration = Duration::from_nanos(MULTIFRAME / BLOCKS);

    /// The TDMA frame, counted from the beginning of the run, in which block `n` begins.
    pub const fn frame(n: u64) -> u64 {
        let in_multiframe = n % BLOCKS;
        n / BLOCKS * 52 + in_multiframe * 4 + in_multiframe / 3
    }
    /// When block `n` begins.
    #[inline]
    pub const fn start(self, n: u64) -> Instant {
        let nanos = match self {
            Grid::Uniform => n.saturating_mul(Self::MEAN_PERIOD.as_nanos()),
            Grid::Multiframe => {
                let frame = Self::frame(n % BLOCKS);
                (n / BLOCKS).saturating_mul(MULTIFRAME).saturating_add(frame * MULTIFRAME / 52)
            }
        };
        Instant::from_nanos(nanos)
    }
    /// How long a block lasts.
    pub const fn duration(self) -> Duration {
        match self {
            Grid::Uniform => Self::MEAN_PERIOD,
            Grid::Multiframe => Duration::from_nanos(MULTIFRAME * 4 / 52),
        }
    }
    /// The first block that begins at `at` or later.
    pub fn from(self, at: Instant) -> u64 {
        let about = at.as_nanos() / Self::MEAN_PERIOD.as_nanos();
        let first = about.saturating_sub(1);
        (first..).find(|n| self.start(*n) >= at).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_grids_have_fifty_blocks_a_second_on_average() {
        for grid in [Grid::Uniform, Grid::Multiframe] {
            assert_eq!(grid.start(1200), Instant::ZERO + Duration::from_secs(24));
            for n in 0..60 {
                assert!(grid.start(n + 1).since(grid.start(n)) >= grid.duration());
                assert_eq!(grid.from(grid.start(n)), n);
                assert_eq!(grid.from(grid.start(n) + Duration::from_nanos(1)), n + 1);
            }
        }
    }

    #[test]
    fn a_frame_lies_between_every_third_block_and_the_next() {
        assert_eq!([0, 1, 2, 3, 6, 9, 11, 12].map(Grid::frame), [0, 4, 8, 13, 26, 39, 47, 52]);
    }
}
