//! The rate at which a window is sent out, if it is not to leave in bursts.

use airloom_base::Duration;

use super::Window;

/// Octets per second that Linux sets for a window: twice the window per round-trip time in slow start (until half of
/// the threshold), 1.2 times in avoidance. Zero while no round-trip time is known.
pub fn linux_rate(window: &Window, srtt: Option<Duration>) -> u64 {
    let Some(srtt) = srtt.filter(|s| !s.is_zero()) else { return 0 };
    let percent = if window.cwnd() < window.ssthresh() / 2 { 200 } else { 120 };
    // Windows end at 1 GiB: this does not reach the limit.
    window.cwnd().saturating_mul(percent * 10_000_000) / srtt.as_nanos()
}
