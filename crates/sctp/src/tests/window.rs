//! The congestion window of a path that is idle or has timed out, and its timer (RFC 9260, 6.1, 7.2).

use super::super::path::PathState;
use super::*;

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_nanos((seconds * 1e9) as u64)
}

#[test]
fn idle_time_halves_the_window_and_ssthresh_is_what_it_was_before() {
    let config = Config::default();
    let mut path = PathState::new(paths(1, false)[0], &config);
    let floor = 4 * path.pmdcs();
    (path.cwnd, path.last_sent) = (100_000, at(10.0));
    path.decay(at(12.5), &config);
    assert_eq!((path.cwnd, path.ssthresh), (25_000, 100_000));
    path.decay(at(19.0), &config);
    assert_eq!((path.cwnd, path.ssthresh), (floor, 100_000));
    // What is sent at the very moment of a step begins another idle time. In congestion avoidance it is the same.
    (path.cwnd, path.ssthresh, path.last_sent) = (40_000, 20_000, path.decayed);
    path.decay(path.last_sent + Duration::from_secs(1), &config);
    assert_eq!((path.cwnd, path.ssthresh), (20_000, 40_000));
}
