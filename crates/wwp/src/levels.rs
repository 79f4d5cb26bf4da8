//! The receiver's rule: how fast a whole wave came decides how large the next one is (section 2.2).

use airloom_base::Duration;
use airloom_base::units::Rate;

/// A measured best rate counts for so much of itself, in hundredths: with all of it, a wave that came as fast as ever would be
/// found slow half of the time.
const OF_THE_BEST: u64 = 95;

/// The throughput of an uncongested network, BT: as it is set, or the best that a wave has had.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baseline {
    set: Option<Rate>,
    best: u64,
    granularity: Duration,
}

impl Baseline {
    /// With the rate that the settings name, if they do; times are known to `granularity`.
    pub fn new(set: Option<Rate>, granularity: Duration) -> Self {
        Baseline { set, best: 0, granularity }
    }

    /// B(i): how long so many octets take where there is no congestion. `None` before anything was measured.
    pub fn time(&self, octets: u64) -> Option<Duration> {
        let bits = self.set.map_or(self.best / 100 * OF_THE_BEST, Rate::bits_per_second);
        Some(Rate::from_bits_per_second(bits)?.time_for(octets) + self.granularity)
    }

    /// The level of the next wave after one whose segments behind the first, `octets` in all, took `time`.
    ///
    /// `top` is the highest level. The paper: a time within (j-1, j] baselines leads to level 4-j, where 3 is the highest;
    /// more than three baselines lead to level 0.
    pub fn next_level(&mut self, octets: u64, time: Duration, top: u8) -> u8 {
        // Shorter than what can be told apart: nothing is learnt from it. A small wave of which two segments were read at once
        // would be found faster than the link is, and each one after it slow: so what cannot be told apart counts as taken.
        if time > self.granularity {
            let taken = time + self.granularity;
            self.best = self.best.max((octets as f64 * 8.0 / taken.as_secs_f64()) as u64);
        }
        let Some(baseline) = self.time(octets) else { return top };
        level(time, baseline, top)
    }
}

/// The level that a wave of this time leads to.
pub fn level(time: Duration, baseline: Duration, top: u8) -> u8 {
    let thirds = (1..=u64::from(top)).find(|j| time <= baseline * *j);
    thirds.map_or(0, |j| top + 1 - j as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_time_in_baselines_gives_the_level_as_in_section_2_2() {
        let table = [(0, 3), (1, 3), (100, 3), (101, 2), (200, 2), (201, 1), (300, 1), (301, 0), (9999, 0)];
        for (time, next) in table {
            assert_eq!(level(MS * time, MS * 100, 3), next, "{time} ms");
        }
        assert_eq!([level(MS * 450, MS * 100, 5), level(MS * 501, MS * 100, 5)], [1, 0]);
    }

    #[test]
    fn a_rate_that_is_set_is_the_baseline_and_one_that_is_not_is_learnt() {
        let mut set = Baseline::new(Some(Rate::kbit(80)), Duration::ZERO);
        assert_eq!(set.time(10_000), Some(MS * 1000));
        assert_eq!(set.next_level(10_000, MS * 1001, 3), 2);
        let mut learnt = Baseline::new(None, Duration::ZERO);
        assert_eq!(learnt.time(10_000), None);
        assert_eq!(learnt.next_level(10_000, MS * 1000, 3), 3);
        assert_eq!(learnt.next_level(10_000, MS * 1040, 3), 3, "within the margin");
        assert_eq!(learnt.next_level(10_000, MS * 1100, 3), 2);
        assert_eq!(learnt.next_level(10_000, MS * 500, 3), 3);
        assert_eq!(learnt.next_level(10_000, MS * 1100, 3), 1, "half as long is known to be possible");
    }

    #[test]
    fn what_is_shorter_than_the_granularity_is_never_congestion() {
        let mut fast = Baseline::new(None, MS * 2);
        fast.next_level(40_000, MS, 3);
        assert_eq!(fast.time(40_000), None);
        fast.next_level(40_000, MS * 3, 3);
        assert_eq!(fast.next_level(40_000, MS * 5, 3), 3);
    }

    #[test]
    fn a_small_wave_that_was_read_at_once_does_not_make_larger_ones_slow() {
        // 40 octets a millisecond. Of 4 ms the last two were read with what came before.
        let mut bursts = Baseline::new(None, MS * 2);
        assert_eq!(bursts.next_level(160, MS * 21 / 10, 3), 3);
        assert_eq!(bursts.next_level(40 * 60, MS * 60, 3), 3);
    }
}
