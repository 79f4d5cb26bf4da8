//! A histogram of durations or sizes with a relative error below 3.2 %, in fixed memory.

/// Counts of values in bins whose width grows with the value (32 bins per power of two), as in HdrHistogram.
#[derive(Clone, getset::CopyGetters)]
pub struct Histogram {
    bins: Box<[u32]>,
    /// How many values were counted.
    #[getset(get_copy = "pub")]
    count: u64,
    sum: u128,
    max: u64,
}

const SUB: u32 = 5;
const BINS: usize = ((64 - SUB as usize) + 1) << SUB;

impl Default for Histogram {
    fn default() -> Self {
        Histogram { bins: vec![0; BINS].into(), count: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    fn bin(value: u64) -> usize {
        if value < 1 << SUB {
            return value as usize;
        }
        let shift = 63 - value.leading_zeros() - SUB;
        (((shift + 1) as usize) << SUB) + ((value >> shift) as usize - (1 << SUB))
    }

    fn middle(bin: usize) -> u64 {
        if bin < 1 << SUB {
            return bin as u64;
        }
        let shift = (bin >> SUB) - 1;
        let low = (((bin & ((1 << SUB) - 1)) + (1 << SUB)) as u64) << shift;
        low + ((1u64 << shift) >> 1)
    }

    /// Counts one value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let bin = &mut self.bins[Self::bin(value)];
        *bin = bin.saturating_add(1);
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }
    /// Their exact mean, `None` if there were none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
    /// The exact maximum, `None` if there were none.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }
    /// The value that a share `q` (0..1) of all values does not exceed, `None` if there were none.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if q >= 1.0 {
            return self.max();
        }
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        (self.count > 0).then(|| {
            let bin = self.bins.iter().position(|n| {
                seen += u64::from(*n);
                seen >= rank
            });
            bin.map_or(self.max, Self::middle).min(self.max)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_the_stated_error() {
        let mut h = Histogram::default();
        (1..=100_000u64).for_each(|v| h.add(v * 1000));
        for q in [0.01, 0.5, 0.95, 0.99] {
            let exact = q * 1e8;
            let got = h.quantile(q).unwrap() as f64;
            assert!((got / exact - 1.0).abs() < 0.032, "{q}: {got}");
        }
        assert_eq!(h.mean(), Some(50_000_500.0));
        assert_eq!(h.quantile(1.0), h.max());
    }

    #[test]
    fn small_large_and_no_values_are_fine() {
        let mut h = Histogram::default();
        assert_eq!(h.quantile(0.5), None);
        h.add(0);
        h.add(u64::MAX);
        assert_eq!(h.quantile(0.5), Some(0));
        assert!(h.quantile(1.0).unwrap() > u64::MAX / 2);
    }
}
