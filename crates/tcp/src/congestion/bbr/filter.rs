//! The largest value of the last rounds, kept as three candidates (Nichols' windowed filter).

/// A maximum over a window of rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMax {
    /// (round, value): best, second best after it, third best after that.
    best: [(u64, u64); 3],
}

impl WindowedMax {
    /// The maximum.
    #[inline]
    pub fn get(&self) -> u64 {
        self.best[0].1
    }

    /// A value of `round`; the window is `rounds` long.
    pub fn update(&mut self, rounds: u64, round: u64, value: u64) {
        let new = (round, value);
        if value >= self.best[0].1 || round - self.best[2].0 > rounds {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].1 {
            self.best[1] = new;
            self.best[2] = new;
        } else if value >= self.best[2].1 {
            self.best[2] = new;
        }
        self.age(rounds, new);
    }

    /// Candidates that left the window make place; a quarter and a half of it without a better one choose anew.
    fn age(&mut self, rounds: u64, new: (u64, u64)) {
        let age = new.0 - self.best[0].0;
        if age > rounds {
            self.best = [self.best[1], self.best[2], new];
            if new.0 - self.best[0].0 > rounds {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].0 == self.best[0].0 && age > rounds / 4 {
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].0 == self.best[1].0 && age > rounds / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_leaves_when_the_window_has_passed() {
        let mut max = WindowedMax::default();
        max.update(10, 1, 100);
        for round in 2..=11 {
            max.update(10, round, 50 + round);
            assert_eq!(max.get(), 100, "round {round}");
        }
        max.update(10, 12, 40);
        assert!((51..=61).contains(&max.get()), "{}", max.get());
    }

    #[test]
    fn a_larger_value_counts_at_once() {
        let mut max = WindowedMax::default();
        max.update(10, 1, 100);
        max.update(10, 2, 200);
        assert_eq!(max.get(), 200);
    }

    #[test]
    fn after_a_long_silence_only_the_new_value_counts() {
        let mut max = WindowedMax::default();
        max.update(10, 1, 100);
        max.update(10, 50, 5);
        assert_eq!(max.get(), 5);
    }
}
