//! Durations an application reports: how many, their mean and extremes, in five words.

use airloom_base::{Duration, Summary};

/// Number, sum and extremes of durations.
#[derive(Clone, Copy, Debug, Default, getset::CopyGetters)]
pub(crate) struct Times {
    /// How many there were.
    #[getset(get_copy = "pub(crate)")]
    count: u64,
    sum: Duration,
    min: Duration,
    max: Duration,
}

impl Times {
    /// One more.
    pub(crate) fn add(&mut self, time: Duration) {
        self.min = if self.count == 0 { time } else { self.min.min(time) };
        self.max = self.max.max(time);
        self.sum += time;
        self.count += 1;
    }
    /// Their mean in seconds, if there were any.
    pub(crate) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.as_secs_f64() / self.count as f64)
    }
    /// Sets `<name>_mean_s`, `<name>_min_s` and `<name>_max_s`, if there were any.
    pub(crate) fn summarise(&self, name: &str, out: &mut Summary) {
        let seconds = |time: Duration| (self.count > 0).then(|| time.as_secs_f64());
        out.set_some(&format!("{name}_mean_s"), self.mean_s());
        out.set_some(&format!("{name}_min_s"), seconds(self.min));
        out.set_some(&format!("{name}_max_s"), seconds(self.max));
    }
}
