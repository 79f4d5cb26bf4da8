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

#[test]
fn the_timer_starts_again_with_the_earliest_chunk_that_is_sent_again() {
    let mut duo = Duo::new(Config { max_burst: 0, ..Config::default() }, Config::default(), 1);
    duo.ends[0].paths[0].cwnd = 30_000;
    let mut n = 0;
    duo.loses = Box::new(move |from, _, _| {
        n += u64::from(from == 0);
        from == 0 && (n == 1 || n == 3)
    });
    for n in 0..20 {
        assert!(duo.send(0, 0, Outgoing::new(message(0, n, 1452))));
    }
    let start = duo.now;
    duo.run(Duration::from_millis(110));
    let path = &duo.ends[0].paths[0];
    assert_eq!(duo.ends[0].facts().resent, 2);
    // Both were sent again at 100 ms, the second one while the first was under way.
    assert_eq!(path.t3.deadline(), Some(start + Duration::from_millis(100) + path.rto));
}

/// Sends `count` messages of `len` octets of which nothing arrives before the first timeout; packets that leave with the timeout.
fn packets_of_a_timeout(duo: &mut Duo, count: u64, len: u32) -> u64 {
    duo.run(Duration::from_secs(10));
    for n in 0..count {
        assert!(duo.send(0, 0, Outgoing::new(message(0, n, len))));
    }
    duo.loses = Box::new(|from, _, _| from == 0);
    duo.run(Duration::from_millis(900));
    let sent = duo.sent;
    duo.run(Duration::from_millis(200));
    duo.loses = Box::new(|_, _, _| false);
    duo.sent - sent
}

#[test]
fn one_packet_is_in_flight_after_a_timeout_however_small_its_chunks_are() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    assert_eq!(packets_of_a_timeout(&mut duo, 20, 500), 1);
    let full = duo.ends[0].paths[0].pmdcs();
    assert_eq!(duo.ends[0].cwnd(0), full);
    // The next one is lost, too; then the window grows, since it held chunks back.
    duo.run(Duration::from_secs(4));
    assert_eq!(duo.got[1].len(), 20);
    assert!(duo.ends[0].cwnd(0) > 3 * full, "{}", duo.ends[0].cwnd(0));
}

#[test]
fn a_window_of_one_packet_grows_only_if_it_holds_something_back() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    assert_eq!(packets_of_a_timeout(&mut duo, 1, 500), 1);
    duo.run(Duration::from_secs(4));
    assert_eq!(duo.got[1].len(), 1);
    assert_eq!(duo.ends[0].cwnd(0), duo.ends[0].paths[0].pmdcs());
}
