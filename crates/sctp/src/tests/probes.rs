//! A peer whose window is closed is asked for it (RFC 9260, 6.1, A).

use airloom_base::units::Octets;

use super::*;

/// An association whose server has room for 20 kB and does not read, one second after 100 kB were written.
fn closed() -> (Pair, Body) {
    let small = Config { receive_buffer: Octets(20_000), ..Config::default() };
    let mut pair = pair(Config::default(), small, LinkConfig::default());
    pair.server().paused = true;
    pair.open(End::Client);
    pair.drive_until(Instant::ZERO + Duration::from_millis(500));
    let data = Body::filler(1, 100_000);
    pair.write(End::Client, data.clone());
    pair.drive_until(Instant::ZERO + Duration::from_secs(1));
    pair.watch = true;
    (pair, data)
}

/// When the client has sent a packet with user data since then, in tenths of a second.
fn probes(pair: &Pair) -> Vec<u64> {
    let data = pair.seen.iter().filter(|s| s.from == End::Client && s.head.len() + s.body > 1000);
    data.map(|s| s.at.since(Instant::ZERO).as_nanos() / 100_000_000).collect()
}

fn facts(pair: &mut Pair) -> (u64, u32) {
    let facts = pair.client().transport.as_ref().unwrap().facts();
    (facts.resent, facts.rto_count)
}

#[test]
fn a_closed_window_is_probed_after_a_timeout_and_ever_more_seldom() {
    let (mut pair, _) = closed();
    pair.drive_until(Instant::ZERO + Duration::from_secs(20));
    let at = probes(&pair);
    // The last data was acknowledged at 0.8 s.
    assert_eq!(at.len(), 5, "{at:?}");
    assert!((17..=19).contains(&at[0]), "{at:?}");
    let between: Vec<u64> = at.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(between, [10, 20, 40, 80]);
    // Not a timeout; what is repeated was sent before.
    assert_eq!(facts(&mut pair), (4, 0));
}

#[test]
fn a_window_that_opens_is_used_at_once_and_as_large_as_it_was() {
    let (mut pair, data) = closed();
    // The next probe would leave at 8.8 s.
    pair.drive_until(Instant::ZERO + Duration::from_secs(5));
    let (resent, _) = facts(&mut pair);
    pair.resume(End::Server);
    // 80 kB through a buffer of 20 kB, each of which takes less than two round trips if the window was not reduced.
    pair.drive_until(pair.now + Duration::from_millis(1200));
    assert_eq!(pair.server().hash(), hash_of(&[data]), "{}", pair.server().received);
    assert_eq!(facts(&mut pair), (resent + 1, 0), "the probe that was refused, once more");
}

#[test]
fn a_window_that_opens_before_the_first_probe_needs_none() {
    let (mut pair, data) = closed();
    pair.drive_until(Instant::ZERO + Duration::from_millis(1500));
    pair.resume(End::Server);
    pair.drive_until(pair.now + Duration::from_millis(1200));
    assert_eq!(pair.server().hash(), hash_of(&[data]), "{}", pair.server().received);
    assert_eq!(facts(&mut pair), (0, 0));
}

#[test]
fn a_peer_that_answers_no_probe_is_found_out() {
    let (mut pair, _) = closed();
    pair.drive_until(Instant::ZERO + Duration::from_secs(20));
    pair.set_fate(Box::new(|_| Fate::Lose));
    pair.drive();
    assert_eq!(pair.client().closed(), Some(CloseReason::TimedOut));
}

#[test]
fn a_message_larger_than_the_buffer_is_not_held_up_by_timeouts() {
    for interleaving in [false, true] {
        let small = Config { receive_buffer: Octets(30_000), interleaving, ..Config::default() };
        let mut duo = Duo::new(Config { interleaving, max_burst: 0, ..Config::default() }, small, 1);
        assert!(duo.send(0, 1, Outgoing::new(message(1, 0, 200_000))));
        // Seven buffers, each of which takes two round trips once the window is large enough.
        duo.run(Duration::from_millis(3000));
        let got: usize = duo.got[1].iter().map(Message::len).sum();
        assert_eq!(got, 200_000, "interleaving {interleaving}");
    }
}
