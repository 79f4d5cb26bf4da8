//! Peers and strangers that mean no good: the standard's answer, bounded memory, and connections that go on.

mod ends;

use airloom_base::random::Stream;
use airloom_base::service::Path;
use airloom_base::units::Octets;
use airloom_base::{Body, CloseReason, Cx, Duration, Instant, PathId, Protocol, StreamKind, TransportEvent};
use airloom_quic::{Config, Migration, Quic, Session};
use airloom_testkit::{End, Fate, LinkConfig, Pair};

use ends::{Ends, WHO, at, elsewhere, path, ports, read_all, unit};

/// Where the token of an Initial packet is: behind two connection ids of eight octets and its own length (RFC 9000, 17.2.2).
fn token(datagram: &[u8]) -> std::ops::Range<usize> {
    let at = 1 + 4 + 1 + 8 + 1 + 8;
    let len_of_len = 1 << (datagram[at] >> 6);
    let first = usize::from(datagram[at] & 0x3F);
    let len =
        datagram[at + 1..at + len_of_len].iter().fold(first, |len, octet| len << 8 | usize::from(*octet));
    at + len_of_len..at + len_of_len + len
}

#[test]
fn a_token_counts_as_it_was_given_and_for_whom_it_was_given() {
    let config = Config { retry: true, ..Config::default() };
    let mut ends = Ends::new(&config, 1, None);
    ends.run(at(100));
    assert!(ends.told(0, TransportEvent::Opened));
    let mut sent = ends.sent.iter().filter(|(end, _)| *end == 0).map(|(_, octets)| octets[8..].to_vec());
    let (without, with) = (sent.next().expect("it begins"), sent.next().expect("and again"));
    assert!(token(&without).is_empty() && token(&with).len() > 16);
    // The same server, before it has heard of anybody.
    let mut server = Quic::new(config, 1, "server");
    let mut opens = |datagram: &[u8], ports: (u16, u16)| {
        let cx = &mut Cx { now: ends.now, records: &mut ends.records };
        let unit = unit(ports, datagram);
        assert_eq!(server.whose(cx, &path(1), ports, 0, &unit), None);
        let opened = server.accept(cx, path(1), ports, WHO, &unit).is_some();
        let answer = server.answer(cx, &path(1), &unit, true).map_or(0, |answer| answer.wire_len());
        (opened, answer)
    };
    for octet in token(&with) {
        let mut forged = with.clone();
        forged[octet] ^= 0x10;
        let (opened, answer) = opens(&forged, ports(1));
        //= RFC 9000 (8.1.3): a token that is not valid shows nothing; whoever sends it is asked for one, or refused.
        assert!(!opened && (1..200).contains(&answer), "{octet} {answer}");
    }
    assert!(!opens(&with, (443, 50_001)).0, "it was given to another port");
    assert!(opens(&with, ports(1)).0);
}

#[test]
fn a_client_that_is_told_nonsense_in_the_handshake_says_so_and_not_for_ever() {
    let mut ends = Ends::new(&Config { session: Session::Model, ..Config::default() }, 1, None);
    let hello = ends.with(0, |client, cx| client.poll_transmit(cx)).expect("it begins");
    ends.arrive(1, hello.packet);
    let flight = ends.with(1, |server, cx| server.poll_transmit(cx)).expect("it answers").packet;
    let mut octets = flight.body().to_bytes().to_vec();
    // Behind the hello in an Initial packet a Handshake packet says what is spoken: something else.
    let name = octets.windows(7).position(|octets| octets == b"airloom").expect("it is there");
    octets[name] = b'b';
    ends.arrive(0, unit(ports(0), &octets));
    ends.listen(0);
    assert!(ends.told(0, TransportEvent::Closed(CloseReason::Aborted)));
    let said = (0..20).map_while(|_| ends.with(0, |client, cx| client.poll_transmit(cx))).count();
    assert!((1..=2).contains(&said), "{said}");
}

#[test]
fn no_forged_reset_ends_a_connection() {
    let mut ends = Ends::new(&Config::default(), 1, None);
    ends.run(at(100));
    let mut random = Stream::new(1, "resets");
    for _ in 0..2000 {
        let len = 21 + random.below(100) as usize;
        let mut octets: Vec<u8> = (0..len).map(|_| random.bits() as u8).collect();
        octets[0] = octets[0] & 0x3F | 0x40;
        ends.arrive(0, unit(ports(0), &octets));
    }
    ends.with(0, |client, cx| client.write(cx, 0, Body::filler(1, 500))).unwrap();
    ends.run(ends.now + Duration::from_millis(100));
    assert_eq!(read_all(&mut ends, 1, 0).len(), 500);
    //= RFC 9000 (10.3.1): a reset is one whose last 16 octets are a token of this server's.
    assert!(!ends.told(0, TransportEvent::Closed(CloseReason::Reset)));
}

#[test]
fn a_server_that_has_forgotten_its_connections_ends_them() {
    let config = Config::default();
    let mut ends = Ends::new(&config, 1, None);
    ends.run(at(100));
    ends.with(0, |client, cx| client.write(cx, 0, Body::filler(1, 1000))).unwrap();
    let sent = ends.with(0, |client, cx| client.poll_transmit(cx)).expect("it sends");
    // The same server, begun anew.
    let mut server = Quic::new(config, 1, "server");
    let cx = &mut Cx { now: ends.now, records: &mut ends.records };
    assert_eq!(server.whose(cx, &path(1), ports(1), 0, &sent.packet), None);
    let reset = server.answer(cx, &path(1), &sent.packet, true).expect("it answers");
    //= RFC 9000 (10.3): shorter than what it answers, and longer than 21 octets.
    assert!((8 + 21..sent.packet.wire_len()).contains(&reset.wire_len()));
    ends.arrive(0, reset);
    ends.listen(0);
    assert!(ends.told(0, TransportEvent::Closed(CloseReason::Reset)));
}

#[test]
fn ten_thousand_streams_are_open_at_a_time_and_one_more_is_not() {
    const MANY: u32 = 10_000;
    let mut ends = Ends::new(&Config { bidi_streams: MANY, ..Config::default() }, 1, Some("h3"));
    ends.run(at(100));
    for n in 0..MANY {
        let stream = ends.with(0, |client, cx| client.open_stream(cx, StreamKind::Bi));
        assert_eq!(stream, Some(4 * n));
        ends.with(0, |client, cx| client.write(cx, 4 * n, Body::filler(1, 1))).unwrap();
        ends.with(0, |client, cx| client.finish(cx, 4 * n));
    }
    assert_eq!(ends.with(0, |client, cx| client.open_stream(cx, StreamKind::Bi)), None);
    ends.run(ends.now + Duration::from_secs(5));
    for n in 0..MANY {
        assert_eq!(read_all(&mut ends, 1, 4 * n).len(), 1);
        ends.with(1, |server, cx| server.finish(cx, 4 * n));
    }
    ends.run(ends.now + Duration::from_secs(5));
    // As many again, once those are over.
    assert_eq!(ends.with(0, |client, cx| client.open_stream(cx, StreamKind::Bi)), Some(4 * MANY));
}

/// What a server closes a connection with on which the client sends a packet with these frames: the code of the transport, if it does.
fn closed_by(frames: &[u8]) -> Option<u8> {
    let config = Config { session: Session::Model, ..Config::default() };
    let mut ends = Ends::new(&config, 1, Some("h3"));
    ends.run(at(200));
    let last = ends.sent.iter().rfind(|(end, _)| *end == 0).map(|(_, octets)| octets[8..].to_vec());
    let last = last.expect("it has spoken");
    // Without protection a packet is a header, frames, and a tag that says by which key it is, and its number.
    let (id, key, number) = (&last[1..9], &last[last.len() - 16..last.len() - 8], 100_u8);
    // PADDING in front: what is shorter than a sample for header protection is dropped (RFC 9001, 5.4.2).
    let octets = [&[0x40], id, &[number, 0, 0, 0], frames, key, &u64::from(number).to_be_bytes()].concat();
    let before = ends.sent.len();
    ends.arrive(1, unit(ports(1), &octets));
    ends.run(ends.now + Duration::from_millis(1));
    // What it says at once: an acknowledgement of what it did not send makes the client end the connection.
    ends.sent[before..].iter().take_while(|(end, _)| *end == 1).find_map(|(_, octets)| {
        let packet = &octets[8..];
        // Without the tag.
        let frames = behind_ack(&packet[1 + 8 + usize::from(packet[0] & 3) + 1..packet.len() - 16]);
        // CONNECTION_CLOSE of the transport (RFC 9000, 19.19), with a code of one octet.
        (frames.first() == Some(&0x1C)).then(|| frames[1])
    })
}

/// The frames behind the acknowledgement that they begin with, if they do.
fn behind_ack(mut frames: &[u8]) -> &[u8] {
    if frames[0] & 0xFE == 0x02 {
        // ACK (RFC 9000, 19.3): the largest number, the delay, how many ranges there are besides the first, and these; with kind 3
        // three counts of ECN.
        let counts = 3 * u8::from(frames[0] == 3);
        frames = &frames[1..];
        let [_, _, ranges, _] = [(); 4].map(|()| skip(&mut frames));
        (0..2 * ranges + counts).for_each(|_| _ = skip(&mut frames));
    }
    frames
}

/// Where the length of an Initial packet is: behind its token.
fn length_at(packet: &[u8]) -> usize {
    token(packet).end
}

/// Is this an Initial packet (RFC 9000, 17.2)?
fn is_initial(packet: &[u8]) -> bool {
    packet[0] & 0xB0 == 0x80
}

#[test]
fn an_initial_packet_in_a_smaller_datagram_opens_nothing_and_is_not_answered() {
    let mut ends = Ends::new(&Config { session: Session::Model, ..Config::default() }, 1, None);
    let first = ends.with(0, |client, cx| client.poll_transmit(cx)).expect("it begins");
    let first = first.packet.body().to_bytes();
    assert!(is_initial(&first) && first.len() == 1200);
    let (length, tag) = (length_at(&first), first.len() - 16);
    //= RFC 9000 (14.1): a server discards an Initial packet in a datagram of less than 1200 octets. It is right in all else: what lacks
    //= is padding.
    for size in [1200, 1199, 1000, 600] {
        let mut octets = [&first[..size - 16], &first[tag..]].concat();
        let behind = (size - length - 2) as u16 | 0x4000;
        octets[length..length + 2].copy_from_slice(&behind.to_be_bytes());
        let mut server = Quic::new(Config::default(), 1, "server");
        let cx = &mut Cx { now: ends.now, records: &mut ends.records };
        let unit = unit(ports(1), &octets);
        let opened = server.accept(cx, path(1), ports(1), WHO, &unit).is_some();
        let answered = server.answer(cx, &path(1), &unit, true).is_some();
        assert_eq!((opened, answered), (size == 1200, false), "{size}");
        assert_eq!(server.connections(), 0, "{size}");
    }
}

#[test]
fn every_datagram_with_an_initial_packet_that_asks_for_an_answer_has_1200_octets() {
    let losses = [
        vec![],
        vec![(0, 0), (0, 1)],
        vec![(1, 0)],
        vec![(1, 0), (1, 1), (1, 2), (0, 1)],
        vec![(0, 1), (0, 2)],
    ];
    let mut seen = [0; 2];
    for lost in losses {
        for retry in [false, true] {
            let config = Config { session: Session::Model, retry, ..Config::default() };
            let mut ends = Ends::new(&config, 1, None);
            ends.lost.clone_from(&lost);
            ends.run(at(20_000));
            assert!(ends.told(0, TransportEvent::Opened), "{lost:?}");
            for (end, octets) in &ends.sent {
                let packet = &octets[8..];
                if !is_initial(packet) {
                    continue;
                }
                let behind = length_at(packet) + 2;
                let frames = behind_ack(&packet[behind + usize::from(packet[0] & 3) + 1..]);
                //= RFC 9000 (14.1): a client expands all of them, a server those that are to be acknowledged. A CRYPTO frame is.
                if *end == 0 || frames[0] == 0x06 {
                    assert!(packet.len() >= 1200, "{lost:?} {retry} {end} {}", packet.len());
                    seen[*end] += 1;
                }
            }
        }
    }
    // The hello and what acknowledges the server's, and more where something was lost.
    assert!(seen[0] > 25 && seen[1] > 12, "{seen:?}");
}

/// Reads over a number of variable length (RFC 9000, 16); its lowest six bits if it has one octet.
fn skip(rest: &mut &[u8]) -> u8 {
    let first = rest[0];
    *rest = &rest[1 << (first >> 6)..];
    first & 0x3F
}

#[test]
fn frames_beyond_every_limit_end_the_connection_by_the_code_of_the_standard() {
    const MOST: [u8; 8] = [0xFF; 8];
    let with = |kind: u8, rest: &[&[u8]]| [&[kind], rest.concat().as_slice()].concat();
    let cases = [
        //= RFC 9000 (4.6): STREAM_LIMIT_ERROR, a stream beyond those that are allowed: the hundred and first.
        (with(0x0A, &[&[0x41, 0x90, 1, 0]]), 0x04),
        (with(0x0A, &[&[0xC0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFC], &[1, 0]]), 0x04),
        //= RFC 9000 (4.1): FLOW_CONTROL_ERROR, data beyond what is allowed.
        (with(0x0E, &[&[0], &[0xC0, 0, 0, 0xFF, 0, 0, 0, 0], &[1, 0]]), 0x03),
        //= RFC 9000 (19.6): CRYPTO_BUFFER_EXCEEDED, more of a handshake than is kept.
        (with(0x06, &[&[0xC0, 0, 0, 0xFF, 0, 0, 0, 0], &[1, 0]]), 0x0D),
        //= RFC 9000 (19.11): FRAME_ENCODING_ERROR, more streams than numbers of them.
        (with(0x12, &[&MOST]), 0x07),
        //= RFC 9000 (19.8): FRAME_ENCODING_ERROR or FLOW_CONTROL_ERROR, an end beyond the largest number.
        (with(0x0E, &[&[0], &MOST, &[1, 0]]), 0x03),
        //= RFC 9000 (13.1): PROTOCOL_VIOLATION, an acknowledgement of what was not sent.
        (with(0x02, &[&MOST, &[0, 0, 0]]), 0x0A),
        //= RFC 9000 (19.3.1): FRAME_ENCODING_ERROR, a range of numbers below nothing.
        (with(0x02, &[&[3, 0, 0], &MOST]), 0x07),
        //= RFC 9000 (19.15): FRAME_ENCODING_ERROR, more to be retired than there is.
        (with(0x18, &[&[1, 2, 8], &[7; 8], &[9; 16]]), 0x07),
        //= RFC 9000 (19.16): PROTOCOL_VIOLATION, a connection id given back that was never given.
        (with(0x19, &[&[0x3F]]), 0x0A),
        //= RFC 9000 (19.7, 19.20): PROTOCOL_VIOLATION, what only servers send.
        (vec![0x1E], 0x0A),
        //= RFC 9000 (12.4): FRAME_ENCODING_ERROR, an unknown frame; and one that is cut short.
        (with(0x60, &[&[0]]), 0x07),
        (with(0x0A, &[&[0, 63, 1]]), 0x07),
    ];
    for (frames, code) in cases {
        assert_eq!(closed_by(&frames), Some(code), "{frames:x?}");
    }
    assert_eq!(closed_by(&[0x01]), None, "a PING");
}

#[test]
fn a_peer_that_never_acknowledges_gets_a_window_and_a_few_probes() {
    let idle_timeout = Duration::from_secs(20);
    let config = Config { idle_timeout, send_buffer: Octets(100_000), ..Config::default() };
    let quic = |name: &str| Box::new(Quic::new(config.clone(), 1, name));
    let link = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::default() };
    let mut pair = Pair::new(quic("client"), quic("server"), link);
    pair.endless = 300_000;
    pair.watch = true;
    pair.open(End::Client);
    pair.drive_until(Instant::ZERO + Duration::from_secs(1));
    let before = pair.seen.len();
    pair.set_fate(Box::new(|sent| if sent.from == End::Server { Fate::Lose } else { Fate::Deliver }));
    pair.write(End::Client, Body::filler(1, 10_000_000));
    pair.drive();
    let sent = || pair.seen[before..].iter().filter(|seen| seen.from == End::Client);
    let (packets, octets) = (sent().count(), sent().map(|seen| seen.body).sum::<usize>());
    //= RFC 9002 (7, 6.2.4): no more in flight than the congestion window, but for two probes at each timeout.
    assert!((10..60).contains(&packets) && octets < 60_000, "{packets} {octets}");
    assert_eq!(pair.client().closed(), Some(CloseReason::TimedOut));
}

#[test]
fn a_client_is_not_led_to_another_of_its_links_by_a_copy_of_a_packet() {
    if cfg!(feature = "quinn") {
        // It has a path at a time, and sends by the link that it is told to.
        return;
    }
    // Each of the client's first packets behind the handshake comes from its second address as well, before it comes from its first.
    for copied in 5..20 {
        let mut ends = Ends::new(&Config { migration: Migration::Probe, ..Config::default() }, 1, None);
        ends.is_elsewhere = true;
        let second = Path { local: elsewhere().remote, ..path(0) };
        assert!(ends.with(0, |client, cx| client.add_path(cx, second)));
        ends.copied = Some(copied);
        ends.run(at(200));
        ends.with(0, |end, cx| end.write(cx, 0, Body::filler(1, 20_000))).unwrap();
        ends.run(at(1000));
        // Of the second link it says nothing, and loses nothing with it.
        assert_eq!(ends.strangers.iter().filter(|(sender, _)| *sender == 0).count(), 1, "{copied}");
        assert_eq!(ends.paths(0), [], "{copied}");
        ends.with(0, |client, cx| client.handle_path(cx, PathId(1), false));
        ends.with(0, |end, cx| end.write(cx, 0, Body::filler(1, 20_000))).unwrap();
        ends.run(at(3000));
        assert_eq!(read_all(&mut ends, 1, 0).len(), 40_000, "{copied}");
    }
}
