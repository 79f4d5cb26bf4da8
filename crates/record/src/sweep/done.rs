//! Which runs of a sweep are there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{AnyTable, Error, Key, Source};

/// Runs, as ranges of seeds: it grows with the gaps between them, not with the runs.
#[derive(Default)]
pub struct Done {
    /// First run of a range, and the seed of its last one, which is of the same point.
    ranges: BTreeMap<Key, u64>,
    runs: usize,
    failed: usize,
}

impl Done {
    /// The runs in these folders but for those that were lost: they need not be made again.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn read(folders: &[PathBuf]) -> Result<Done, Error> {
        let mut done = Done::default();
        for folder in folders {
            let Some(table) = AnyTable::open(&Source::Folder(folder), "runs")? else { continue };
            for group in 0..table.groups() {
                for (run, status) in table.keys(group)?.into_iter().zip(table.statuses(group)?) {
                    if status.data() != b"lost" && done.insert(run) {
                        done.failed += usize::from(status.data() == b"failed");
                    }
                }
            }
        }
        Ok(done)
    }

    /// Is this run there?
    pub fn contains(&self, point: i64, seed: u64) -> bool {
        let before = self.ranges.range(..=(point, seed)).next_back();
        before.is_some_and(|(first, last)| first.0 == point && seed <= *last)
    }

    /// How many there are.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// How many of them did not come to their end.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// Says whether it is a new one.
    fn insert(&mut self, (point, seed): Key) -> bool {
        if self.contains(point, seed) {
            return false;
        }
        let behind = seed.checked_add(1).and_then(|next| self.ranges.remove(&(point, next)));
        let last = behind.unwrap_or(seed);
        match self.ranges.range_mut(..(point, seed)).next_back() {
            Some((first, end)) if first.0 == point && end.checked_add(1) == Some(seed) => *end = last,
            _ => drop(self.ranges.insert((point, seed), last)),
        }
        self.runs += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_any_order_are_as_few_ranges_as_they_can_be() {
        let mut done = Done::default();
        // By threads and sessions that each left gaps, some of them twice.
        for (begin, step) in [(1, 3), (3, 3), (2, 3), (1, 2)] {
            for seed in (begin..=30_000).step_by(step) {
                let (is_new, was_new) = (!done.contains(1, seed), done.insert((1, seed)));
                assert_eq!(is_new, was_new);
            }
        }
        assert_eq!(done.ranges, BTreeMap::from([((1, 1), 30_000)]));
        assert_eq!(done.runs(), 30_000);
        // Neither do points run into each other, nor the last seed there is into the first one.
        for run in [(0, u64::MAX), (1, 0), (2, 0), (2, 2), (1, u64::MAX), (i64::MIN, 7)] {
            assert!(done.insert(run) && !done.insert(run), "{run:?}");
        }
        let ranges =
            [((i64::MIN, 7), 7), ((0, u64::MAX), u64::MAX), ((1, 0), 30_000), ((1, u64::MAX), u64::MAX)];
        assert_eq!(done.ranges, BTreeMap::from_iter(ranges.into_iter().chain([((2, 0), 0), ((2, 2), 2)])));
        assert!(!done.contains(2, 1) && !done.contains(1, 30_001) && !done.contains(3, 0));
    }
}
