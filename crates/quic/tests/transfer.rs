//! Octets over a connection, from its opening to its end, over links that lose and delay.

use airloom_base::units::Octets;
use airloom_base::{Body, CloseReason, Duration, Instant, TransportEvent};
use airloom_quic::{Config, Controller, Pacing, Profile, Quic, Session};
use airloom_testkit::{End, Fate, LinkConfig, Pair, hash_of, lose};

fn quic(config: &Config, end: &str) -> Box<Quic> {
    Box::new(Quic::new(config.clone(), 1, end))
}

/// A client and a server with these settings, 20 ms apart.
fn pair(config: &Config) -> Pair {
    let link = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::default() };
    let mut pair = Pair::new(quic(config, "client"), quic(config, "server"), link);
    pair.endless = 300_000;
    pair.watch = true;
    pair
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

/// Probe timeouts of the client.
fn timeouts(pair: &mut Pair) -> u32 {
    pair.client().transport.as_ref().expect("it is there").facts().rto_count
}

fn opened(pair: &mut Pair) -> Instant {
    pair.client().when(TransportEvent::Opened).expect("it opens")
}

/// Both write so many octets and finish; all of it arrives, and nothing is left.
fn exchange(pair: &mut Pair, up: u32, down: u32) {
    pair.open(End::Client);
    let (up, down) = (Body::filler(1, up), Body::filler(2, down));
    for (end, body) in [(End::Client, &up), (End::Server, &down)] {
        pair.write(end, body.clone());
        pair.finish(end);
    }
    pair.drive();
    for end in [End::Client, End::Server] {
        assert_eq!(pair.host(end).closed(), Some(CloseReason::Finished));
    }
    assert_eq!(pair.server().hash(), hash_of(&[up]));
    assert_eq!(pair.client().hash(), hash_of(&[down]));
    pair.assert_idle();
}

#[test]
fn what_both_write_arrives_and_the_connection_ends_when_both_have_finished() {
    exchange(&mut pair(&Config::default()), 300_000, 100_000);
}

#[test]
fn one_end_may_say_nothing() {
    exchange(&mut pair(&Config::default()), 0, 100_000);
    exchange(&mut pair(&Config::default()), 100_000, 0);
}

#[test]
fn whatever_is_lost_is_sent_again_with_each_controller() {
    for controller in [Controller::NewReno, Controller::Cubic, Controller::Bbr] {
        let mut pair = pair(&Config { controller, ..Config::default() });
        pair.set_fate(Box::new(|sent| if sent.index % 11 == 7 { Fate::Lose } else { Fate::Deliver }));
        exchange(&mut pair, 200_000, 200_000);
        assert!(pair.link.losses > 20);
    }
}

/// When each datagram leaves and what it looks like, of an upload that takes BBR through cycles of its own.
#[cfg(not(feature = "quinn"))]
fn by_bbr(seed: u64) -> Vec<(Instant, Vec<u8>, usize)> {
    let config = Config { controller: Controller::Bbr, ..Config::default() };
    let link = LinkConfig {
        rate: [Some(airloom_base::units::Rate::kbit(2000)); 2],
        queue: 20,
        ..LinkConfig::default()
    };
    let [client, server] = ["client", "server"].map(|end| Box::new(Quic::new(config.clone(), seed, end)));
    let mut pair = Pair::new(client, server, link);
    (pair.endless, pair.watch) = (300_000, true);
    exchange(&mut pair, 3_000_000, 1);
    pair.seen.into_iter().map(|seen| (seen.at, seen.head, seen.body)).collect()
}

#[test]
#[cfg(not(feature = "quinn"))]
fn the_chances_of_bbr_are_those_of_the_run() {
    let [one, again, other] = [1, 1, 2].map(by_bbr);
    assert!(one == again);
    let times = |seen: &[(Instant, Vec<u8>, usize)]| seen.iter().map(|(at, ..)| *at).collect::<Vec<_>>();
    assert_ne!(times(&one), times(&other));
}

#[test]
fn a_handshake_takes_one_round_trip_unless_the_library_paces_it_by_a_guess() {
    let mut usual = pair(&Config::default());
    exchange(&mut usual, 1, 1);
    // The server's flight leaves within microseconds.
    assert!((ms(40)..ms(41)).contains(&opened(&mut usual)), "{}", opened(&mut usual));
    for profile in ["chromium", "quic-go"] {
        let config: Config = serde_json::from_value(serde_json::json!({ "profile": profile })).unwrap();
        let mut pair = pair(&config);
        exchange(&mut pair, 1, 1);
        assert!((ms(40)..ms(42)).contains(&opened(&mut pair)), "{profile}: {}", opened(&mut pair));
    }
    let mut always = pair(&Config { pacing: Pacing::Always, ..Config::default() });
    exchange(&mut always, 1, 1);
    // A burst of quinn-proto's may have ten packets at any pace.
    let waits = opened(&mut always) > ms(60);
    assert_eq!(waits, !cfg!(feature = "quinn"), "{}", opened(&mut always));
}

#[test]
#[cfg(not(feature = "quinn"))]
fn without_pacing_a_window_of_any_size_leaves_at_one_moment() {
    for (pacing, is_all) in [(Pacing::Off, true), (Pacing::Measured, false)] {
        let initial_window = airloom_quic::InitialWindow::Octets(Octets(1_000_000));
        let mut pair = pair(&Config { pacing, initial_window, ..Config::default() });
        pair.open(End::Client);
        pair.drive_until(ms(1000));
        let before = pair.seen.len();
        pair.write(End::Client, Body::filler(1, 900_000));
        let sent: usize = pair.seen[before..].iter().map(|seen| seen.body).sum();
        assert_eq!(sent >= 900_000, is_all, "{pacing:?} {sent}");
    }
}

#[test]
fn what_a_library_has_not_is_refused() {
    for (key, value) in [("migration", "probe"), ("controller", "bbr"), ("pacing", "off")] {
        let read = serde_json::from_value::<Config>(serde_json::json!({ key: value }));
        assert_eq!(read.is_ok(), !cfg!(feature = "quinn"), "{key}");
    }
}

#[test]
fn a_delay_of_acknowledgements_is_refused_where_nobody_is_asked_for_it() {
    let read = |every: u32, delay: &str| {
        let table = serde_json::json!({ "ack_every": every, "max_ack_delay": delay });
        serde_json::from_value::<Config>(table).map_err(|error| error.to_string())
    };
    assert!(read(0, "40ms").is_err_and(|said| said.contains("max_ack_delay: needs ack_every")));
    assert!(read(0, "0s").is_ok() && read(10, "40ms").is_ok());
}

#[test]
fn retry_costs_a_round_trip() {
    let mut pair = pair(&Config { retry: true, ..Config::default() });
    exchange(&mut pair, 1000, 1000);
    assert!((ms(80)..ms(81)).contains(&opened(&mut pair)), "{}", opened(&mut pair));
}

#[test]
fn a_client_that_hears_nothing_asks_again_after_a_probe_timeout_that_doubles() {
    let mut pair = pair(&Config::default());
    pair.set_fate(Box::new(|sent| if sent.from == End::Client { Fate::Lose } else { Fate::Deliver }));
    pair.open(End::Client);
    pair.drive_until(ms(5000));
    let mut times: Vec<Instant> = pair.seen.iter().map(|seen| seen.at).collect();
    times.dedup();
    //= RFC 9002 (6.2.1, 6.2.2): smoothed_rtt + 4 rttvar with the initial round trip of 333 ms and half of it, 999 ms; then twice.
    assert_eq!(times, [ms(0), ms(999), ms(2997)]);
    assert_eq!(timeouts(&mut pair), 2);
}

#[test]
fn a_tail_that_is_lost_is_probed_for_after_a_timeout_that_is_counted_and_doubles() {
    let mut pair = pair(&Config::default());
    pair.open(End::Client);
    pair.drive_until(ms(1000));
    assert_eq!(timeouts(&mut pair), 0);
    pair.set_fate(Box::new(|sent| if sent.from == End::Client { Fate::Lose } else { Fate::Deliver }));
    let before = pair.seen.len();
    pair.write(End::Client, Body::filler(1, 100));
    pair.drive_until(ms(2500));
    let mut times: Vec<Instant> = pair.seen[before..].iter().map(|seen| seen.at).collect();
    times.dedup();
    let waits: Vec<u64> = times.windows(2).map(|two| (two[1] - two[0]).as_millis()).collect();
    //= RFC 9002 (6.2.1): smoothed_rtt + max(4 rttvar, 1 ms) + max_ack_delay, and twice as long each time.
    assert!((60..200).contains(&waits[0]), "{waits:?}");
    assert!(waits.windows(2).all(|two| two[1].abs_diff(2 * two[0]) <= 2), "{waits:?}");
    assert_eq!(timeouts(&mut pair) as usize, waits.len());
}

#[test]
fn losses_over_three_timeouts_are_persistent_congestion_and_leave_a_window_of_two_packets() {
    let none = Profile::QuicGo.settings().persistent_congestion_threshold;
    for (threshold, collapses) in [(3, true), (1000, false), (none, false)] {
        let config = Config { persistent_congestion_threshold: threshold, ..Config::default() };
        let mut pair = pair(&config);
        pair.open(End::Client);
        pair.write(End::Client, Body::filler(1, 3_000_000));
        pair.drive_until(ms(300));
        pair.set_fate(Box::new(|sent| if sent.from == End::Client { Fate::Lose } else { Fate::Deliver }));
        pair.drive_until(ms(2300));
        pair.set_fate(Box::new(|_| Fate::Deliver));
        let answered = |pair: &Pair| {
            pair.seen.iter().find(|seen| seen.from == End::Server && seen.at > ms(2300)).map(|seen| seen.at)
        };
        let mut until = ms(2300);
        while answered(&pair).is_none() {
            until += Duration::from_millis(10);
            pair.drive_until(until);
        }
        // The answer takes 20 ms to the client; what leaves in the round trip after that is one window.
        let known = answered(&pair).unwrap_or(until) + Duration::from_millis(20);
        pair.drive_until(known + Duration::from_millis(39));
        let is_in = |seen: &&airloom_testkit::Offered| seen.from == End::Client && seen.at >= known;
        let flight = pair.seen.iter().filter(is_in).count();
        //= RFC 9002 (7.6.2): the congestion window is the minimum one, two packets.
        assert_eq!(flight <= 6, collapses, "{threshold} {flight}");
    }
}

#[test]
fn a_server_sends_three_times_what_an_address_has_sent_that_has_not_shown_itself() {
    let config = Config { certificates: Octets(12_000), ..Config::default() };
    let mut pair = pair(&config);
    pair.set_fate(Box::new(|sent| {
        if sent.from == End::Client && sent.index > 0 { Fate::Lose } else { Fate::Deliver }
    }));
    pair.open(End::Client);
    pair.drive_until(ms(20_000));
    let octets = |end| pair.seen.iter().filter(|seen| seen.from == end).map(|seen| seen.body).sum::<usize>();
    //= RFC 9000 (8.1): no more than three times the octets received before the address is validated.
    assert!((2400..=3600).contains(&octets(End::Server)), "{}", octets(End::Server));
    //= RFC 9002 (6.2.2.1): the client goes on sending, so that the server may.
    assert!(pair.seen.iter().filter(|seen| seen.from == End::Client).count() > 3);
}

#[test]
fn every_second_packet_is_acknowledged_and_fewer_where_that_is_asked_for() {
    let acks = |config: &Config| {
        let mut pair = pair(config);
        exchange(&mut pair, 500_000, 0);
        let of = |end| pair.seen.iter().filter(|seen| seen.from == end).count();
        of(End::Server) as f64 / of(End::Client) as f64
    };
    //= RFC 9000 (13.2.2): after at least two ack-eliciting packets.
    let usual = acks(&Config::default());
    assert!((0.45..0.65).contains(&usual), "{usual}");
    let delay = Duration::from_millis(25);
    let seldom = acks(&Config { ack_every: 10, max_ack_delay: delay, ..Config::default() });
    assert!(seldom < 0.3, "{seldom}");
}

#[test]
fn a_peer_that_is_gone_is_noticed_after_the_idle_timeout_without_a_word() {
    let mut pair = pair(&Config { idle_timeout: Duration::from_secs(10), ..Config::default() });
    pair.open(End::Client);
    pair.drive_until(ms(1000));
    pair.set_fate(Box::new(|_| Fate::Lose));
    let before = pair.seen.len();
    pair.drive();
    //= RFC 9000 (10.1): closed silently when it stays idle for longer than the minimum of both ends' timeouts.
    for end in [End::Client, End::Server] {
        let host = pair.host(end);
        assert_eq!(host.closed(), Some(CloseReason::TimedOut));
        let at = host.when(TransportEvent::Closed(CloseReason::TimedOut)).unwrap();
        assert!((ms(10_000)..ms(10_300)).contains(&at), "{at}");
    }
    assert_eq!(pair.seen.len(), before);
    pair.assert_idle();
}

#[test]
fn a_reset_is_told_and_nothing_is_left() {
    let mut pair = pair(&Config::default());
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, 1_000_000));
    pair.drive_until(ms(100));
    pair.reset(End::Server);
    pair.drive();
    assert_eq!(pair.client().closed(), Some(CloseReason::Reset));
    pair.assert_idle();
}

#[test]
fn whoever_does_not_read_holds_the_sender_back() {
    let window = Octets(50_000);
    let mut pair = pair(&Config { stream_window: window, ..Config::default() });
    pair.server().paused = true;
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, 1_000_000));
    pair.finish(End::Client);
    pair.drive_until(ms(5000));
    let sent: usize = pair.seen.iter().filter(|seen| seen.from == End::Client).map(|seen| seen.body).sum();
    //= RFC 9000 (4.1): a sender sends no more than the receiver's limit.
    assert!((50_000..70_000).contains(&sent), "{sent}");
    pair.resume(End::Server);
    pair.finish(End::Server);
    pair.drive();
    assert_eq!(pair.server().received, 1_000_000);
}

#[test]
fn sizes_and_times_are_the_same_whether_packets_are_protected_or_not() {
    let seen = |session| {
        let mut pair = pair(&Config { session, ..Config::default() });
        pair.set_fate(lose(End::Client, &[5, 9, 30]));
        exchange(&mut pair, 200_000, 50_000);
        pair.seen.iter().map(|seen| (seen.at, seen.from, seen.body)).collect::<Vec<_>>()
    };
    let model = seen(Session::Model);
    assert!(model.len() > 200);
    assert_eq!(model, seen(Session::Seeded));
    assert_eq!(model, seen(Session::Model));
}
