//! Data that leaves with COOKIE ECHO (RFC 9260, 5.1, C), and what becomes of it when the opening does not go straight.

use super::*;

/// Loses what the client sends from its packet 1, the COOKIE ECHO, to this one.
fn cookies_lost_up_to(last: u64) -> Pair {
    let mut pair = plain();
    pair.watch = true;
    pair.set_fate(lose(End::Client, &(1..=last).collect::<Vec<_>>()));
    pair.open(End::Client);
    pair
}

/// Times between the client's packets, in whole seconds.
fn pauses(pair: &Pair) -> Vec<u64> {
    let at: Vec<Instant> = pair.seen.iter().filter(|s| s.from == End::Client).map(|s| s.at).collect();
    at.windows(2).map(|two| (two[1] - two[0]).as_nanos() / 1_000_000_000).collect()
}

#[test]
fn data_goes_again_with_the_cookie_and_the_timeout_doubles_once() {
    let mut pair = cookies_lost_up_to(4);
    let data = Body::filler(1, 500);
    pair.write(End::Client, data.clone());
    pair.drive_until(Instant::ZERO + Duration::from_secs(20));
    assert_eq!(pauses(&pair)[1..5], [1, 2, 4, 8]);
    assert_eq!(pair.server().hash(), hash_of(&[data]));
    let sizes: Vec<usize> =
        pair.seen.iter().filter(|s| s.from == End::Client).map(|s| s.head.len() + s.body).skip(1).collect();
    assert!(sizes.iter().take(5).all(|size| *size > 500), "data in each of them: {sizes:?}");
}

#[test]
fn data_that_went_with_a_cookie_that_became_too_old_goes_with_the_next() {
    // The cookie arrives for the first time 63 s after it was made.
    let mut pair = cookies_lost_up_to(6);
    let data = Body::filler(1, 500);
    pair.write(End::Client, data.clone());
    pair.drive_until(Instant::ZERO + Duration::from_secs(120));
    let opened = pair.client().when(TransportEvent::Opened).unwrap();
    assert!(opened > Instant::ZERO + Duration::from_secs(60), "{opened:?}");
    // INIT, seven cookies, INIT again and the new cookie.
    assert!(pair.seen.iter().filter(|s| s.from == End::Client).count() >= 10);
    assert_eq!(pair.server().hash(), hash_of(&[data]));
    pair.finish(End::Client);
    pair.drive();
    pair.assert_idle();
    assert_eq!(pair.client().closed(), Some(CloseReason::Finished));
}

#[test]
fn data_that_went_with_a_cookie_survives_an_opening_from_both_ends() {
    let mut protocols = [Sctp::new(Config::default(), (1, 2)), Sctp::new(Config::default(), (3, 4))];
    let mut outbox = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
    let who = Identity::default();
    let mut a = protocols[0].associate(&paths(1, false), (7, 7), who);
    let mut b = protocols[1].associate(&paths(1, true), (7, 7), who);
    a.connect(&mut cx);
    assert!(a.send(&mut cx, 0, Outgoing::new(message(0, 0, 100))));
    let init = a.poll_transmit(&mut cx).unwrap().packet;
    let ack = protocols[1].answer(&mut cx, &paths(1, true)[0], &init, true).unwrap();
    a.handle_packet(&mut cx, PathId(0), 0, ack);
    // The cookie leaves with the data, and is lost. Meanwhile the peer opens.
    let echo = a.poll_transmit(&mut cx).unwrap().packet;
    assert!(echo.wire_len() > 150, "cookie and data");
    b.connect(&mut cx);
    for step in 0..100 {
        cx.now = Instant::ZERO + Duration::from_millis(100 * step);
        let from_a: Vec<_> = std::iter::from_fn(|| a.poll_transmit(&mut cx)).collect();
        let from_b: Vec<_> = std::iter::from_fn(|| b.poll_transmit(&mut cx)).collect();
        for unit in from_a {
            b.handle_packet(&mut cx, PathId(0), 0, unit.packet);
        }
        for unit in from_b {
            a.handle_packet(&mut cx, PathId(0), 0, unit.packet);
        }
        for end in [&mut a, &mut b] {
            if end.poll_timeout().is_some_and(|at| at <= cx.now) {
                end.handle_timeout(&mut cx);
            }
        }
    }
    assert_eq!([a.state(), b.state()], [State::Established; 2]);
    assert_eq!(b.receive(&mut cx, 0).map(|m| m.len()), Some(100));
    assert_eq!(a.unacknowledged(0), 0);
}

#[test]
fn a_cookie_that_goes_again_with_its_data_is_one_packet_sent_again() {
    let mut pair = cookies_lost_up_to(1);
    pair.write(End::Client, Body::filler(1, 500));
    pair.drive_until(Instant::ZERO + Duration::from_secs(20));
    let facts = pair.client().transport.as_ref().unwrap().facts();
    assert_eq!((facts.resent, facts.rto_count), (1, 1));
}

#[test]
fn a_cookie_that_is_too_old_is_no_timeout() {
    let mut pair = cookies_lost_up_to(6);
    pair.write(End::Client, Body::filler(1, 500));
    pair.drive_until(Instant::ZERO + Duration::from_secs(120));
    let facts = pair.client().transport.as_ref().unwrap().facts();
    // Six cookies with the data, INIT, and the data with the new cookie.
    assert_eq!((facts.resent, facts.rto_count), (8, 6));
    // The seventh cookie leaves at 63.1 s; ERROR, INIT ACK and COOKIE ACK are three round trips.
    let opened = pair.client().when(TransportEvent::Opened).unwrap();
    assert_eq!(opened.since(Instant::ZERO).as_nanos() / 100_000_000, 634);
}

#[test]
fn who_finds_each_cookie_too_old_is_given_up() {
    let short = Config { cookie_life: Duration::from_millis(1), ..Config::default() };
    let mut pair = pair(Config::default(), short, LinkConfig::default());
    pair.watch = true;
    pair.open(End::Client);
    pair.drive_until(Instant::ZERO + Duration::from_secs(60));
    assert_eq!(pair.client().closed(), Some(CloseReason::TimedOut));
    // Max.Init.Retransmits and the first one: INIT and a cookie each.
    assert_eq!(pair.seen.iter().filter(|s| s.from == End::Client).count(), 18);
}

#[test]
fn init_without_a_tag_is_discarded_silently() {
    let mut sctp = Sctp::new(Config::default(), (3, 4));
    let mut outbox = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
    let init = Init { window: 9000, outbound_streams: 1, inbound_streams: 1, ..Init::default() };
    let unit = Header { source: 5, destination: 80, tag: 0 }.packet(&[Chunk::Init(init.clone())]);
    for listens in [true, false] {
        assert!(sctp.answer(&mut cx, &paths(1, true)[0], &unit, listens).is_none(), "listens: {listens}");
    }
    // Where there is an association, too.
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    let unit = Header { source: 1, destination: 2, tag: 0 }.packet(&[Chunk::Init(init)]);
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    duo.ends[1].handle_packet(&mut cx, PathId(0), 0, unit);
    assert!(duo.ends[1].poll_transmit(&mut cx).is_none());
}
