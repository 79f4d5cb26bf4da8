//! Which runs there are.

/// Runs in order, each an index into the points and a seed. Seeds of a point that follow each other are kept as a range, so that a point's
/// take no more memory for being many.
#[derive(Debug, Default)]
pub struct Runs {
    /// Without gaps, and none is empty.
    ranges: Vec<Seeds>,
    len: usize,
}

/// Seeds of a point that follow each other.
#[derive(Debug)]
struct Seeds {
    /// How many runs there are before them.
    before: usize,
    point: usize,
    first: u64,
}

impl Runs {
    /// The run with this number, from 0.
    pub fn get(&self, number: usize) -> Option<(usize, u64)> {
        if number >= self.len {
            return None;
        }
        let behind = self.ranges.partition_point(|seeds| seeds.before <= number);
        let Seeds { before, point, first } = self.ranges[behind - 1];
        Some((point, first + (number - before) as u64))
    }

    fn push(&mut self, (point, seed): (usize, u64)) {
        let follows = |last: &Seeds| {
            last.point == point && seed.checked_sub(last.first) == Some((self.len - last.before) as u64)
        };
        if !self.ranges.last().is_some_and(follows) {
            self.ranges.push(Seeds { before: self.len, point, first: seed });
        }
        self.len += 1;
    }
}

impl FromIterator<(usize, u64)> for Runs {
    fn from_iter<I: IntoIterator<Item = (usize, u64)>>(all: I) -> Runs {
        let mut runs = Runs::default();
        all.into_iter().for_each(|run| runs.push(run));
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_as_they_were_given_and_seeds_in_a_row_are_one_range() {
        let row = |point, seeds: std::ops::Range<u64>| seeds.map(move |seed| (point, seed));
        let odd = [(1, 7), (1, 7), (1, 5), (0, 6), (2, u64::MAX), (2, 0)];
        let all: Vec<_> = row(0, 1..1001).chain(row(1, 1001..1003)).chain(odd).collect();
        let runs: Runs = all.iter().copied().collect();
        assert_eq!(runs.ranges.len(), 2 + odd.len());
        assert_eq!((0..all.len()).map_while(|n| runs.get(n)).collect::<Vec<_>>(), all);
        assert_eq!(runs.get(all.len()), None);
        assert_eq!(Runs::default().get(0), None);
    }
}
