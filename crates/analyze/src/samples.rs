//! Times of which there may be millions: every one at first, then every second one, every fourth one.

use smart_default::SmartDefault;

/// How many are kept at most.
const MOST: usize = 1 << 16;

/// Some of the values that were given, evenly spread over all of them.
#[derive(Clone, Debug, SmartDefault, getset::CopyGetters)]
pub(crate) struct Samples {
    kept: Vec<u64>,
    /// One of so many is kept.
    #[default(1)]
    of: u64,
    #[getset(get_copy = "pub(crate)")]
    count: u64,
    #[default(u64::MAX)]
    least: u64,
    most: u64,
    /// The last ones weigh most (RFC 6298 2).
    smoothed: u64,
}

impl Samples {
    pub(crate) fn push(&mut self, value: u64) {
        if self.count.is_multiple_of(self.of) {
            if self.kept.len() == MOST {
                let mut number = 0;
                self.kept.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                self.of *= 2;
            }
            if self.count.is_multiple_of(self.of) {
                self.kept.push(value);
            }
        }
        self.smoothed = if self.count == 0 { value } else { self.smoothed - self.smoothed / 8 + value / 8 };
        self.count += 1;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    pub(crate) fn least(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }

    pub(crate) fn most(&self) -> Option<u64> {
        (self.count > 0).then_some(self.most)
    }

    pub(crate) fn smoothed(&self) -> Option<u64> {
        (self.count > 0).then_some(self.smoothed)
    }

    /// The value below which this share of all lies, by the nearest rank.
    pub(crate) fn quantile(&self, share: f64) -> Option<u64> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_there_are_few_are_kept_and_the_quantiles_stay() {
        let mut samples = Samples::default();
        (0..1_000_000).for_each(|value| samples.push(value));
        assert!(samples.kept.len() <= MOST);
        assert_eq!((samples.count(), samples.least(), samples.most()), (1_000_000, Some(0), Some(999_999)));
        let median = samples.quantile(0.5).unwrap();
        assert!(median.abs_diff(500_000) < 100, "{median}");
        assert_eq!(Samples::default().quantile(0.5), None);
    }
}
