//! A peer that lost all it knew and opens the association again.

use super::*;

/// A new client in the place of the one of `duo`: what it sends opens the association again.
fn begin_anew(duo: &mut Duo, config: Config) {
    let mut again = Sctp::new(config, (5, 6));
    let mut client = again.associate(&paths(1, false), (1, 2), Identity::default());
    client.connect(&mut Cx { now: duo.now, records: &mut duo.outbox });
    duo.ends[0] = client;
    duo.events = [Vec::new(), Vec::new()];
}

#[test]
fn who_takes_messages_goes_on_with_a_peer_that_began_anew() {
    let config = Config { receive_buffer: airloom_base::units::Octets(100_000), ..Config::default() };
    let mut duo = Duo::new(config.clone(), config.clone(), 1);
    duo.ends[1].survive_restarts();
    for n in 0..20 {
        assert!(duo.send(0, 1, Outgoing::new(message(1, n, 20_000))));
        assert!(duo.send(1, 2, Outgoing::new(message(2, n, 20_000))));
    }
    // In the middle of it, with chunks in flight and fragments waiting at both ends.
    duo.run(Duration::from_millis(330));
    assert!(!duo.got[1].is_empty() && duo.got[1].len() < 20 && duo.got[0].len() < 20);
    let grown = duo.ends[1].cwnd(0);
    duo.got = [Vec::new(), Vec::new()];
    duo.flying.clear();
    let tag = duo.ends[1].local_tag();
    begin_anew(&mut duo, config);
    assert!(!duo.ends[1].poll_restarted());
    duo.run(Duration::from_secs(1));
    assert_eq!([0, 1].map(|n| duo.ends[n].state()), [State::Established; 2]);
    assert!(duo.ends[1].poll_restarted() && !duo.ends[1].poll_restarted());
    assert!(duo.ends[1].local_tag() != tag && duo.ends[1].cwnd(0) < grown, "all begins anew");
    assert_eq!(duo.ends[1].unacknowledged(0), 0);
    assert!(duo.got.iter().all(Vec::is_empty), "nothing of the old life comes");
    for n in 0..20 {
        assert!(duo.send(0, 3, Outgoing::new(message(3, n, 9_000))));
        assert!(duo.send(1, 2, Outgoing::new(message(2, n, 9_000))));
    }
    duo.run(Duration::from_secs(60));
    for (end, stream) in [(1, 3), (0, 2)] {
        let got: Vec<Vec<u8>> = duo.got[end].iter().map(octets).collect();
        let sent: Vec<Vec<u8>> = (0..20).map(|n| message(stream, n, 9_000).to_bytes().to_vec()).collect();
        assert!(got == sent, "{end}: {} messages", got.len());
    }
    assert!(duo.events[1].iter().all(|e| matches!(e, TransportEvent::Writable(_))), "{:?}", duo.events[1]);
}

#[test]
fn streams_of_octets_end_when_the_peer_begins_anew() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    begin_anew(&mut duo, Config::default());
    duo.run(Duration::from_millis(400));
    assert!(duo.events[1].contains(&TransportEvent::Closed(CloseReason::Reset)));
    assert!(!duo.ends[1].poll_restarted());
}

#[test]
fn a_restart_with_new_addresses_is_refused_and_changes_nothing() {
    let config = Config { multihoming: true, ..Config::default() };
    let mut duo = Duo::new(config.clone(), config, 1);
    duo.ends[1].survive_restarts();
    let known = Init {
        tag: 77,
        window: 9000,
        outbound_streams: 1,
        inbound_streams: 1,
        parameters: vec![Parameter::Ipv4([10, 0, 0, 1].into())],
        ..Init::default()
    };
    let mut stranger = known.clone();
    stranger.parameters.push(Parameter::Ipv4([10, 9, 9, 9].into()));
    let mut ask = |init: Init| {
        let unit = Header { source: 1, destination: 2, tag: 0 }.packet(&[Chunk::Init(init)]);
        let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
        duo.ends[1].handle_packet(&mut cx, PathId(0), 0, unit);
        let mut answer = duo.ends[1].poll_transmit(&mut cx).expect("an answer").packet;
        let (header, mut chunks) = parse(&mut answer).unwrap();
        assert_eq!(header.tag, 77);
        chunks.remove(0)
    };
    assert!(matches!(ask(known), Chunk::InitAck(_)));
    let refused = ask(stranger);
    let Chunk::Abort { reflected: false, causes } = refused else { panic!("{refused:?}") };
    let new = Parameter::Ipv4([10, 9, 9, 9].into()).to_bytes();
    assert_eq!(causes, [Cause::RestartWithNewAddresses(new)]);
    assert_eq!(duo.ends[1].state(), State::Established);
}

#[test]
fn who_opens_again_ends_what_the_peer_still_has_of_before() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    // SHUTDOWN COMPLETE is lost.
    let mut packets = 0;
    duo.loses = Box::new(move |from, _, _| {
        packets += u32::from(from == 0);
        from == 0 && packets == 2
    });
    duo.ends[0].finish(&mut Cx { now: duo.now, records: &mut duo.outbox }, 0);
    duo.run(Duration::from_millis(300));
    assert_eq!([0, 1].map(|n| duo.ends[n].state()), [State::Closed, State::ShutdownAckSent]);
    begin_anew(&mut duo, Config::default());
    duo.run(Duration::from_millis(300));
    assert_eq!([0, 1].map(|n| duo.ends[n].state()), [State::CookieWait, State::Closed]);
    assert!(duo.events[1].contains(&TransportEvent::Closed(CloseReason::Finished)), "{:?}", duo.events[1]);
}

#[test]
fn a_peer_that_began_anew_and_whose_cookie_came_too_late_hears_of_it_under_its_new_tag() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    duo.ends[1].survive_restarts();
    begin_anew(&mut duo, Config::default());
    // The cookie arrives for the first time 63 s after it was made.
    let mut packets = 0;
    duo.loses = Box::new(move |from, _, _| {
        packets += u32::from(from == 0);
        from == 0 && (2..=7).contains(&packets)
    });
    duo.run(Duration::from_secs(75));
    assert_eq!([0, 1].map(|n| duo.ends[n].state()), [State::Established; 2]);
    assert!(duo.ends[1].poll_restarted());
}
