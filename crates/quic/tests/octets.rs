//! What is on the wire, octet by octet: the same from the same seed; and what comes from there that is no good.

mod ends;

use airloom_base::random::Stream;
use airloom_base::service::Path;
use airloom_base::{
    Body, CloseReason, Cx, Packet, PathId, Protocol, StreamEvent, StreamKind, TransportEvent,
};
use airloom_quic::{Config, Migration, Quic, Session};

use ends::{Ends, WHO, at, elsewhere, path, ports, read_all};

#[test]
fn the_same_seed_gives_the_same_octets_and_another_one_others() {
    for session in [Session::Model, Session::Seeded] {
        let wire = |seed| {
            let mut ends = Ends::new(&Config { session, ..Config::default() }, seed, None);
            ends.run(at(100));
            assert_eq!(ends.with(0, |client, cx| client.write(cx, 0, Body::filler(1, 20_000))), Ok(20_000));
            ends.run(at(1000));
            ends.wire()
        };
        let first = wire(1);
        assert!(first.len() > 24_000);
        assert_eq!(first, wire(1));
        assert_ne!(first, wire(2));
    }
}

#[test]
fn only_protected_packets_hide_what_they_carry() {
    let text = b"anybody can read this, or nobody";
    let finds = |session| {
        let mut ends = Ends::new(&Config { session, ..Config::default() }, 1, None);
        ends.run(at(100));
        let body = Body::Real(text.to_vec().into());
        ends.with(0, |client, cx| client.write(cx, 0, body)).unwrap();
        ends.run(at(1000));
        assert_eq!(read_all(&mut ends, 1, 0), text);
        ends.wire().windows(text.len()).any(|octets| octets == text)
    };
    assert!(finds(Session::Model));
    assert!(!finds(Session::Seeded));
}

#[test]
fn secrets_of_a_connection_are_noted() {
    let mut ends = Ends::new(&Config { session: Session::Seeded, ..Config::default() }, 1, None);
    ends.run(at(100));
    let lines = ends.protocols[0].key_log().lines();
    let words: Vec<&str> = lines.lines().filter_map(|line| line.split(' ').next()).collect();
    let expected = [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    ];
    assert_eq!(words, expected);
    assert!(lines.lines().all(|line| line.split(' ').nth(1).is_some_and(|random| random.len() == 64)));
    assert_eq!(ends.protocols[1].key_log().lines(), "");
}

#[test]
fn streams_open_and_end_one_by_one() {
    let mut ends = Ends::new(&Config::default(), 1, Some("h3"));
    ends.run(at(100));
    assert!(ends.told(0, TransportEvent::Opened) && ends.told(1, TransportEvent::Opened));
    let opened = |ends: &mut Ends, kind| ends.with(0, |client, cx| client.open_stream(cx, kind));
    let kinds = [StreamKind::Bi, StreamKind::Bi, StreamKind::Uni];
    assert_eq!(kinds.map(|kind| opened(&mut ends, kind)), [Some(0), Some(4), Some(2)]);
    for stream in [0, 4, 2] {
        let body = Body::Real(vec![stream as u8; 10].into());
        assert_eq!(ends.with(0, |client, cx| client.write(cx, stream, body)), Ok(10));
    }
    ends.with(0, |client, cx| client.finish(cx, 0));
    ends.with(0, |client, cx| client.reset_stream(cx, 2, 77));
    ends.run(at(200));
    for stream in [0, 4] {
        assert!(ends.told(1, TransportEvent::Stream(stream, StreamEvent::Opened)));
        assert!(ends.told(1, TransportEvent::Readable(stream, 10)));
        assert_eq!(read_all(&mut ends, 1, stream), [stream as u8; 10]);
    }
    assert!(ends.told(1, TransportEvent::Stream(2, StreamEvent::Reset(77))));
    ends.with(1, |server, cx| server.stop(cx, 4, 88));
    let back = Body::Real(b"an answer".to_vec().into());
    ends.with(1, |server, cx| server.write(cx, 0, back)).unwrap();
    ends.with(1, |server, cx| server.finish(cx, 0));
    ends.run(at(300));
    assert!(ends.told(1, TransportEvent::Finished(0)) && !ends.told(1, TransportEvent::Finished(4)));
    assert!(ends.told(0, TransportEvent::Stream(4, StreamEvent::Stopped(88))));
    assert_eq!(read_all(&mut ends, 0, 0), b"an answer");
    assert!(ends.with(0, |client, cx| client.write(cx, 4, Body::filler(1, 1))).is_err());
    ends.with(0, |client, cx| client.close(cx, 99));
    ends.run(at(400));
    assert!(ends.told(1, TransportEvent::Closed(CloseReason::Application(99))));
    ends.run(at(60_000));
    assert!(ends.told(0, TransportEvent::Gone) && ends.told(1, TransportEvent::Gone));
}

#[test]
fn no_more_streams_open_than_the_peer_allows_until_some_have_ended() {
    let mut ends = Ends::new(&Config { bidi_streams: 2, ..Config::default() }, 1, Some("h3"));
    ends.run(at(100));
    let open = |ends: &mut Ends| ends.with(0, |client, cx| client.open_stream(cx, StreamKind::Bi));
    //= RFC 9000 (4.6): an endpoint does not exceed the limit set by its peer.
    assert_eq!([open(&mut ends), open(&mut ends), open(&mut ends)], [Some(0), Some(4), None]);
    ends.with(0, |client, cx| client.finish(cx, 0));
    ends.run(at(200));
    assert!(read_all(&mut ends, 1, 0).is_empty());
    ends.with(1, |server, cx| server.finish(cx, 0));
    ends.run(at(300));
    assert!(ends.told(0, TransportEvent::Stream(0, StreamEvent::More(StreamKind::Bi))));
    assert_eq!(open(&mut ends), Some(8));
}

#[test]
fn unreliable_datagrams_arrive_whole_or_not_at_all() {
    let mut ends = Ends::new(&Config::default(), 1, Some("voice"));
    ends.run(at(100));
    let limit = ends.with(0, |client, _| client.unreliable_limit()).expect("the peer takes them");
    assert!((1100..1500).contains(&limit), "{limit}");
    assert!(ends.with(0, |client, cx| client.send_unreliable(cx, Body::filler(1, 1000))));
    assert!(!ends.with(0, |client, cx| client.send_unreliable(cx, Body::filler(1, 5000))));
    ends.run(at(200));
    assert!(ends.told(1, TransportEvent::Stream(0, StreamEvent::Unreliable)));
    let read = ends.with(1, |server, cx| server.read_unreliable(cx)).expect("it arrived");
    assert_eq!(read.to_bytes(), Body::filler(1, 1000).to_bytes());
    assert!(ends.with(1, |server, cx| server.read_unreliable(cx)).is_none());
}

#[test]
#[cfg(not(feature = "quinn"))]
fn the_largest_flight_may_come_with_its_beginning_last() {
    let config = Config {
        certificates: airloom_base::units::Octets(16_000),
        initial_window: airloom_quic::InitialWindow::Packets(40),
        pacing: airloom_quic::Pacing::Off,
        ..Config::default()
    };
    let mut ends = Ends::new(&config, 1, None);
    let hello = ends.with(0, |client, cx| client.poll_transmit(cx)).expect("it begins");
    ends.arrive(1, hello.packet);
    let answer = ends.with(1, |server, cx| server.poll_transmit(cx)).expect("it answers");
    let octets = answer.packet.body().to_bytes();
    // Behind the hello in an Initial packet is the first Handshake packet. It is lost, and all others come before it is sent again.
    let len = usize::from(u16::from_be_bytes([octets[24] & 0x3F, octets[25]]));
    ends.arrive(0, ends::unit(ports(0), &octets[..26 + len]));
    ends.run(at(1000));
    assert!(ends.told(0, TransportEvent::Opened) && ends.told(1, TransportEvent::Opened));
}

#[test]
fn whoever_speaks_another_protocol_is_refused() {
    let mut ends = Ends::new(&Config::default(), 1, Some("h3"));
    ends.protocols[1] = Quic::new(Config::default(), 1, "server");
    ends.run(at(1000));
    assert!(ends.told(0, TransportEvent::Closed(CloseReason::Refused)));
}

/// A download with a pause: datagrams of each end by then, what the server was told of paths, and octets that have come. One datagram of
/// the client's may be copied, and one of the server's be lost.
fn download(
    config: &Config,
    copied: Option<usize>,
    lost: Option<usize>,
) -> ([usize; 2], Vec<(PathId, bool)>, usize) {
    let mut ends = Ends::new(config, 1, None);
    ends.copied = copied;
    ends.lost.extend(lost.map(|n| (1, n)));
    ends.run(at(200));
    ends.with(1, |server, cx| server.write(cx, 0, Body::filler(1, 5_000))).unwrap();
    ends.run(at(1000));
    let said = [0, 1].map(|end| ends.sent_by(end));
    // What the client says from here on are acknowledgements of what comes.
    ends.with(1, |server, cx| server.write(cx, 0, Body::filler(1, 50_000))).unwrap();
    ends.run(at(10_000));
    (said, ends.paths(1), read_all(&mut ends, 0, 0).len())
}

#[test]
fn a_copied_packet_that_is_faster_takes_no_download_with_it() {
    for session in [Session::Model, Session::Seeded] {
        for migration in [Migration::AtOnce, Migration::Probe] {
            if cfg!(feature = "quinn") && migration == Migration::Probe {
                continue;
            }
            let config = Config { session, migration, ..Config::default() };
            let ([said, _], moves, whole) = download(&config, None, None);
            assert_eq!((moves, whole), (vec![], 55_000));
            //= RFC 9000 (9.3.2, 9.3.3): the last word before the pause comes first from where nobody is: nothing else would make the
            //= client show that it is where it was.
            let (_, moves, whole) = download(&config, Some(said - 1), None);
            // Of several paths one is told of once it is validated.
            let there_and_back = match migration {
                Migration::AtOnce => vec![(PathId(1), true), (PathId(0), true)],
                _ => vec![],
            };
            assert_eq!((moves, whole), (there_and_back, 55_000), "{session:?} {migration:?}");
        }
    }
}

#[test]
fn noq_proto_1_4_0_does_not_return_to_a_path_that_was_validated() {
    let ([said, answered], ..) = download(&Config::default(), None, None);
    let (_, _, whole) = download(&Config::default(), Some(said - 1), Some(answered));
    //= RFC 9000 (9.3.2): it should, when nobody shows itself at the new address, whatever became of what asked at the old one.
    assert_eq!(whole, if cfg!(feature = "quinn") { 55_000 } else { 5_000 });
}

#[test]
fn an_application_is_told_which_path_was_given_up_and_which_is_used() {
    for migration in [Migration::AtOnce, Migration::Probe] {
        if cfg!(feature = "quinn") && migration == Migration::Probe {
            continue;
        }
        let mut ends = Ends::new(&Config { migration, ..Config::default() }, 1, None);
        ends.is_elsewhere = true;
        let second = Path { local: elsewhere().remote, ..path(0) };
        assert!(ends.with(0, |client, cx| client.add_path(cx, second)));
        ends.run(at(200));
        let (first, second) = (PathId(0), PathId(1));
        ends.with(0, |client, cx| client.handle_path(cx, first, false));
        ends.run(at(1000));
        assert_eq!(ends.paths(0), [(first, false), (second, true)], "{migration:?}");
        assert_eq!(ends.paths(1), [(second, true)], "{migration:?}");
        ends.with(0, |client, cx| client.handle_path(cx, first, true));
        ends.run(at(2000));
        assert_eq!(ends.paths(0)[2..], [(second, false), (first, true)], "{migration:?}");
        assert_eq!(ends.paths(1)[1..], [(first, true)], "{migration:?}");
    }
}

#[test]
fn a_client_stays_where_it_is_until_the_handshake_is_confirmed() {
    let mut ends = Ends::new(&Config::default(), 1, None);
    ends.is_elsewhere = true;
    let second = Path { local: elsewhere().remote, ..path(0) };
    assert!(ends.with(0, |client, cx| client.add_path(cx, second)));
    // What answers the server's flight, and ends the handshake, is lost.
    ends.lost = vec![(0, 1), (0, 2)];
    ends.run(at(3));
    assert!(ends.told(0, TransportEvent::Opened) && !ends.told(1, TransportEvent::Opened));
    let (first, second) = (PathId(0), PathId(1));
    ends.with(0, |client, cx| client.handle_path(cx, first, false));
    ends.listen(0);
    assert_eq!(ends.paths(0), []);
    // A server takes nothing of a handshake from elsewhere.
    ends.run(at(3000));
    assert!(ends.told(1, TransportEvent::Opened));
    assert_eq!(ends.paths(0), [(first, false), (second, true)]);
    assert_eq!(ends.paths(1), [(second, true)]);
}

/// A datagram to this end with these octets.
fn unit(end: usize, octets: &[u8]) -> Packet {
    ends::unit(ports(end), octets)
}

#[test]
fn damaged_and_invented_datagrams_change_nothing_where_packets_are_protected() {
    let mut random = Stream::new(1, "garbage");
    for session in [Session::Model, Session::Seeded] {
        let mut ends = Ends::new(&Config { session, ..Config::default() }, 1, None);
        ends.run(at(100));
        let sample = ends.wire();
        ends.with(0, |client, cx| client.write(cx, 0, Body::filler(1, 5000))).unwrap();
        for n in 0..3000u64 {
            let len = random.below(1300) as usize;
            let mut octets: Vec<u8> = if n % 2 == 0 {
                (0..len).map(|_| random.bits() as u8).collect()
            } else {
                let from = random.below((sample.len() - len) as u64) as usize;
                sample[from..from + len].to_vec()
            };
            if let Some(first) = octets.first_mut() {
                // Half of them look like packets of version 1.
                *first |= 0x40;
            }
            ends.arrive((n % 3 == 0).into(), unit((n % 3 == 0).into(), &octets));
        }
        ends.run(at(2000));
        if session == Session::Seeded {
            assert_eq!(read_all(&mut ends, 1, 0), Body::filler(1, 5000).to_bytes());
        }
        // Without protection anybody can end a connection; nobody can make it talk.
        assert!(ends.sent.len() < 200, "{}", ends.sent.len());
    }
}

#[test]
fn a_flood_of_openings_that_are_not_taken_leaves_nothing() {
    // More than the library would keep of those that nothing was said to.
    const MANY: u32 = 70_000;
    let mut ends = Ends::new(&Config { retry: true, ..Config::default() }, 1, None);
    let open = ends.with(0, |client, cx| client.poll_transmit(cx)).expect("it begins");
    let first = open.packet.body().to_bytes();
    let cx = &mut Cx { now: ends.now, records: &mut ends.records };
    let server = &mut ends.protocols[1];
    // Each asks for a connection of its own, from a port of its own.
    for n in 1..=MANY {
        let mut octets = first.to_vec();
        // The destination connection id is the first thing behind the version.
        octets[6..10].copy_from_slice(&n.to_be_bytes());
        let (unit, from) = (unit(1, &octets), (443, n as u16));
        assert_eq!(server.whose(cx, &path(1), from, 0, &unit), None);
        assert!(server.accept(cx, path(1), from, WHO, &unit).is_none());
        //= RFC 9000 (8.1.2): a Retry is answered, and nothing is kept for it.
        let answer = server.answer(cx, &path(1), &unit, true).expect("a Retry packet");
        assert!(answer.wire_len() < 200);
    }
    assert_eq!(server.connections(), 0);
    ends.arrive(1, open.packet);
    ends.run(at(100));
    assert!(ends.told(0, TransportEvent::Opened));
    assert_eq!(ends.protocols[1].connections(), 1);
}
