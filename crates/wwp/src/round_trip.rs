//! Round-trip times of a connection.

use airloom_base::Duration;

/// Round-trip times of a connection.
#[derive(Clone, Copy, Debug, Default, getset::CopyGetters)]
pub(super) struct RoundTrip {
    /// The smallest so far: what a network without congestion needs.
    #[getset(get_copy = "pub")]
    smallest: Option<Duration>,
    /// About what it is now: what timers go by.
    #[getset(get_copy = "pub")]
    smoothed: Option<Duration>,
}

impl RoundTrip {
    /// A new one; nothing shorter than a microsecond is believed.
    pub fn measured(&mut self, time: Duration) {
        let time = time.max(Duration::from_micros(1));
        self.smallest = Some(self.smallest.map_or(time, |s| s.min(time)));
        self.smoothed = Some(self.smoothed.map_or(time, |s| (s * 7 + time) / 8));
    }

    /// What was the smallest so far is no more.
    pub fn begin_anew(&mut self, time: Duration) {
        self.smallest = Some(time.max(Duration::from_micros(1)));
    }
}
