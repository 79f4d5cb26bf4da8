//! Is it the congestion window that limits the sender? Only then may it grow (RFC 2861, RFC 7661; the judgement is
//! that of Linux).

use airloom_base::{Duration, Instant};

use super::Window;

/// What the sender used of its window lately.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Did the window hold something back during the flight that ends at `until`?
    limited: bool,
    /// Most octets in flight during it.
    peak: u64,
    until: u64,
    /// Most in flight since the window last limited the sender, and when that was.
    used: u64,
    full_at: Instant,
}

impl Usage {
    /// A sender that has sent nothing yet.
    pub fn new(now: Instant) -> Self {
        Usage { limited: false, peak: 0, until: 0, used: 0, full_at: now }
    }

    /// Something was sent and nothing more goes out now: because of the window (`limited`), or for another reason.
    /// Returns how long the flow has left part of its window unused. `flight`: SND.UNA and SND.NXT.
    #[inline]
    pub fn sent(
        &mut self,
        now: Instant,
        window: &Window,
        limited: bool,
        in_flight: u64,
        (una, nxt): (u64, u64),
    ) -> Option<Duration> {
        if limited || una >= self.until || (!self.limited && in_flight > self.peak) {
            self.limited = limited;
            self.peak = in_flight;
            self.until = nxt;
        }
        if self.is_limited(window) {
            self.used = 0;
            self.full_at = now;
            return None;
        }
        self.used = self.used.max(in_flight);
        Some(now.since(self.full_at))
    }

    /// Has the window limited the sender, so that an acknowledgement may enlarge it?
    #[inline]
    pub fn is_limited(&self, window: &Window) -> bool {
        // In slow start half of the window is enough: the flow could double.
        self.limited || (window.in_slow_start() && window.cwnd() < 2 * self.peak)
    }

    /// RFC 2861 (3.2): the window moves half of the way to what was used; the threshold remembers it.
    pub fn shrink(&mut self, now: Instant, window: &mut Window, initial: u64) {
        window.approach(self.used.max(initial));
        self.full_at = now;
        self.used = 0;
    }

    /// The flow starts again after an idle time.
    pub fn restart(&mut self, now: Instant) {
        self.full_at = now;
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::config::Config;
    use super::*;

    #[test]
    fn a_window_that_is_half_used_counts_as_limiting_in_slow_start_only() {
        let mut window = Window::new(&Config::default(), 1000);
        window.set_cwnd(10_000);
        let mut usage = Usage::new(Instant::ZERO);
        usage.sent(Instant::ZERO, &window, false, 6000, (0, 6000));
        assert!(usage.is_limited(&window));
        window.set_ssthresh(5000);
        assert!(!usage.is_limited(&window));
        usage.sent(Instant::ZERO, &window, true, 10_000, (0, 10_000));
        assert!(usage.is_limited(&window));
    }

    #[test]
    fn rfc_2861_3_2_an_unused_window_shrinks_half_of_the_way_and_is_remembered() {
        let mut window = Window::new(&Config::default(), 1000);
        window.cut(40_000, 8000);
        let mut usage = Usage::new(Instant::ZERO);
        let later = Instant::ZERO + Duration::from_secs(2);
        assert_eq!(usage.sent(later, &window, false, 12_000, (0, 12_000)), Some(Duration::from_secs(2)));
        usage.shrink(later, &mut window, 10_000);
        assert_eq!((window.cwnd(), window.ssthresh()), (26_000, 30_000));
    }
}
