use std::collections::BTreeMap;

use airloom_base::{Body, Filler};
use airloom_testkit::cases;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::http::filler::LongFiller;
use crate::http::message::{Fields, Method, RequestHead, ResponseHead, Version};

fn get(path: &str) -> RequestHead {
    let mut fields = Fields::default();
    fields.push("Host", "origin");
    RequestHead { method: Method::Get, target: path.to_owned().into(), version: Version::Http2, fields }
}

fn ok(length: Option<u64>) -> ResponseHead {
    let mut fields = Fields::default();
    if let Some(length) = length {
        fields.push("Content-Length", length.to_string());
    }
    ResponseHead { version: Version::Http2, status: 200, reason: Bytes::new(), fields }
}

/// A client and a server whose octets arrive at once, in pieces of `cut`.
struct Two {
    client: Connection,
    server: Connection,
    cut: usize,
    /// What each end heard.
    said: [Vec<Event>; 2],
    /// The order in which octets of DATA came to the client: streams and lengths.
    order: Vec<(u32, usize)>,
}

impl Two {
    fn new(client: Options, server: Options) -> Two {
        let (client, server) = (Connection::client(client), Connection::server(server));
        Two { client, server, cut: usize::MAX, said: [Vec::new(), Vec::new()], order: Vec::new() }
    }

    /// Moves everything that can be moved.
    fn run(&mut self) {
        loop {
            let mut moved = false;
            for side in [1, 0] {
                let (from, to) = match side {
                    1 => (&mut self.client, &mut self.server),
                    _ => (&mut self.server, &mut self.client),
                };
                while let Some(mut octets) = from.poll_transmit() {
                    moved = true;
                    while !octets.is_empty() {
                        to.feed(octets.split_to(self.cut));
                        while let Some(event) = to.poll_event() {
                            if let (0, Event::Data(stream, body)) = (side, &event) {
                                self.order.push((*stream, body.len()));
                            }
                            self.said[side].push(event);
                        }
                    }
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn bodies(&self, side: usize) -> BTreeMap<u32, usize> {
        let mut bodies = BTreeMap::new();
        for event in &self.said[side] {
            if let Event::Data(stream, body) = event {
                *bodies.entry(*stream).or_default() += body.len();
            }
        }
        bodies
    }

    fn ended(&self, side: usize) -> Vec<u32> {
        let end = |event: &Event| if let Event::End(stream, _) = event { Some(*stream) } else { None };
        self.said[side].iter().filter_map(end).collect()
    }
}

/// What a raw peer hears from a server that it sends these octets to, and what the server noticed.
fn server_hears(octets: &[u8]) -> (Vec<Event>, Vec<u8>) {
    let mut server = Connection::server(Options::default());
    let mut all = PREFACE.to_vec();
    all.extend_from_slice(b"\0\0\0\x04\0\0\0\0\0");
    all.extend_from_slice(octets);
    hear(&mut server, all)
}

fn hear(end: &mut Connection, octets: Vec<u8>) -> (Vec<Event>, Vec<u8>) {
    end.feed(Body::Real(octets.into()));
    let (mut events, mut answer) = (Vec::new(), Vec::new());
    loop {
        let event = end.poll_event();
        while let Some(octets) = end.poll_transmit() {
            answer.extend_from_slice(&octets.to_bytes());
        }
        match event {
            Some(event) => events.push(event),
            None => return (events, answer),
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header = frame::Header { length: payload.len() as u32, kind, flags, stream };
    [&header.emit()[..], payload].concat()
}

/// HEADERS of `GET / http` on a stream.
fn asks(stream: u32, flags: u8) -> Vec<u8> {
    frame(1, flags, stream, &[0x82, 0x86, 0x84])
}

fn failure(events: &[Event]) -> Option<ErrorCode> {
    events.iter().find_map(|event| match event {
        Event::Failed(Error::Connection(code, _)) => Some(*code),
        _ => None,
    })
}

fn resets(events: &[Event]) -> Vec<(u32, ErrorCode)> {
    let reset =
        |event: &Event| if let Event::Reset(stream, code) = event { Some((*stream, *code)) } else { None };
    events.iter().filter_map(reset).collect()
}

#[test]
fn requests_and_answers_go_side_by_side_and_octets_may_come_one_by_one() {
    for cut in [1, 7, usize::MAX] {
        let mut two = Two::new(Options::default(), Options::default());
        two.cut = cut;
        let streams: Vec<u32> = (0..3)
            .map(|n| two.client.request(&get(&format!("/{n}")), Priority::default(), true).unwrap())
            .collect();
        assert_eq!(streams, [1, 3, 5]);
        two.run();
        assert_eq!(two.ended(1), streams);
        for (n, stream) in streams.iter().enumerate() {
            assert!(two.server.respond(*stream, &ok(Some(1000 * n as u64)), n == 0));
            if n > 0 {
                assert!(two.server.send(*stream, [Body::filler(7, 1000 * n as u32)], true));
            }
        }
        two.run();
        assert_eq!(two.ended(0), streams, "{cut}");
        assert_eq!(two.bodies(0), BTreeMap::from([(3, 1000), (5, 2000)]));
        assert_eq!((two.client.open_streams(), two.server.open_streams()), (0, 0));
        assert!(resets(&two.said[0]).is_empty() && failure(&two.said[0]).is_none());
    }
}

#[test]
fn windows_hold_back_and_open_again() {
    // The client takes 10 octets of a stream at first.
    let settings = Settings { initial_window_size: 10, ..Options::default().settings };
    let mut client = Connection::client(Options { settings, ..Options::default() });
    let mut server = Connection::server(Options::default());
    let stream = client.request(&get("/"), Priority::default(), true).unwrap();
    while let Some(octets) = client.poll_transmit() {
        server.feed(octets);
    }
    while server.poll_event().is_some() {}
    server.respond(stream, &ok(None), false);
    server.send(stream, [Body::filler(1, 25)], true);
    let mut data = Vec::new();
    let mut rounds = 0;
    while server.streams.get(&stream).is_some_and(|entry| entry.ends) {
        rounds += 1;
        while let Some(octets) = server.poll_transmit() {
            client.feed(octets);
        }
        while let Some(event) = client.poll_event() {
            if let Event::Data(_, body) = event {
                data.push(body.len());
            }
        }
        while let Some(octets) = client.poll_transmit() {
            server.feed(octets);
        }
        while server.poll_event().is_some() {}
    }
    while let Some(octets) = server.poll_transmit() {
        client.feed(octets);
    }
    while let Some(Event::Data(..)) = client.poll_event() {}
    assert_eq!((data, rounds), (vec![10, 10, 5], 3));
}

#[test]
fn a_connection_window_is_shared_by_bodies_that_are_larger() {
    for window in [65_535, 1 << 20] {
        let options = Options { connection_window: window, ..Options::default() };
        let mut two = Two::new(options, Options::default());
        for _ in 0..2 {
            two.client.request(&get("/"), Priority::default(), true).unwrap();
        }
        two.run();
        for (stream, length) in [(1, 600_000), (3, 700_000)] {
            two.server.respond(stream, &ok(Some(length)), false);
            two.server.send(stream, [Body::filler(1, 300_000), Body::filler(2, 300_000)], true);
        }
        two.run();
        assert_eq!(two.bodies(0), BTreeMap::from([(1, 600_000), (3, 600_000)]));
        // The second length was a lie: that stream has failed, and the other one is complete.
        assert_eq!((two.ended(0), resets(&two.said[0])), (vec![1], vec![(3, ErrorCode::PROTOCOL_ERROR)]));
    }
}

#[test]
fn urgent_responses_go_first_and_incremental_ones_share() {
    let mut two = Two::new(Options { connection_window: 1 << 24, ..Options::default() }, Options::default());
    let of = |urgency, incremental| Priority { urgency, incremental };
    let wanted = [of(5, false), of(3, false), of(1, true), of(1, true), of(3, false)];
    for priority in wanted {
        two.client.request(&get("/"), priority, true).unwrap();
    }
    two.run();
    // The first one becomes the most urgent.
    let update = frame(frame::kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=0");
    assert_eq!(hear(&mut two.server, update), (vec![], vec![]));
    for stream in [1, 3, 5, 7, 9] {
        two.server.respond(stream, &ok(None), false);
        two.server.send(stream, [Body::filler(1, 32_768)], true);
    }
    two.run();
    let order: Vec<u32> = two.order.iter().map(|(stream, _)| *stream).collect();
    assert_eq!(order, [1, 1, 5, 7, 5, 7, 3, 3, 9, 9]);
}

#[test]
fn bodies_of_requests_and_heads_larger_than_a_frame() {
    let mut two = Two::new(Options::default(), Options::default());
    two.run();
    let mut head = get("/form");
    head.method = Method::Post;
    head.fields.push("Content-Length", "100000");
    head.fields.push("X", "~".repeat(14_000));
    let stream = two.client.request(&head, Priority::default(), false).unwrap();
    two.client.send(stream, [Body::filler(1, 100_000)], true);
    two.run();
    assert_eq!(two.bodies(1), BTreeMap::from([(stream, 100_000)]));
    let Event::Request(_, came) = &two.said[1][0] else { panic!("{:?}", two.said[1]) };
    assert_eq!(came.fields.first("x").unwrap().len(), 14_000);
    // 100 CONTINUATION frames would not do: the list is too large, and the connection lives on.
    head.fields.push("Y", "~".repeat(10_000));
    let stream = two.client.request(&head, Priority::default(), true).unwrap();
    two.run();
    let status = |event: &Event| matches!(event, Event::Response(s, h) if *s == stream && h.status == 431);
    assert!(two.said[0].iter().any(status), "{:?}", two.said[0]);
    assert!(failure(&two.said[0]).is_none());
}

#[test]
fn interim_answers_trailers_and_head() {
    let mut two = Two::new(Options::default(), Options::default());
    let mut head = get("/");
    head.method = Method::Head;
    two.client.request(&head, Priority::default(), true).unwrap();
    two.run();
    two.server.respond(1, &ResponseHead { status: 103, ..ok(None) }, false);
    two.server.respond(1, &ok(Some(999)), true);
    two.run();
    assert!(matches!(&two.said[0][..], [Event::Interim(1, _), Event::Response(1, _), Event::End(1, _)]));
    let block = [0x40, 1, b'a', 1, b'b'];
    let octets = [asks(1, 4), frame(0, 0, 1, b"abc"), frame(1, 5, 1, &block)].concat();
    let (events, _) = server_hears(&octets);
    let Some(Event::End(1, trailers)) = events.last() else { panic!("{events:?}") };
    assert_eq!(trailers.first("a"), Some(&b"b"[..]));
}

#[test]
fn streams_beyond_the_limit_wait_or_are_refused() {
    let settings = Settings { max_concurrent_streams: Some(2), ..Options::default().settings };
    let mut two = Two::new(Options::default(), Options { settings, ..Options::default() });
    two.run();
    assert!(two.client.request(&get("/"), Priority::default(), true).is_some());
    assert!(two.client.request(&get("/"), Priority::default(), true).is_some());
    assert_eq!(two.client.request(&get("/"), Priority::default(), true), None);
    two.run();
    two.server.respond(1, &ok(None), true);
    two.run();
    assert!(two.client.request(&get("/"), Priority::default(), true).is_some());
    let mut server = Connection::server(Options { settings, ..Options::default() });
    let octets = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0", &asks(1, 5), &asks(3, 5), &asks(5, 5)].concat();
    let (_, answer) = hear(&mut server, octets);
    assert!(answer.ends_with(&frame(3, 0, 5, &7_u32.to_be_bytes())), "{answer:x?}");
}

#[test]
fn what_a_server_that_goes_away_did_not_do_can_be_asked_again() {
    let mut client = Connection::client(Options::default());
    for _ in 0..3 {
        client.request(&get("/"), Priority::default(), true).unwrap();
    }
    let octets = [frame(4, 0, 0, &[]), frame(7, 0, 0, b"\0\0\0\x01\0\0\0\0bye")].concat();
    let (events, _) = hear(&mut client, octets);
    let refused = ErrorCode::REFUSED_STREAM;
    let gone = Event::GoAway(ErrorCode::NO_ERROR);
    assert_eq!(events, [Event::Reset(3, refused), Event::Reset(5, refused), gone]);
    assert_eq!((client.open_streams(), client.is_closing()), (1, true));
    assert_eq!(client.request(&get("/"), Priority::default(), true), None);
}

#[test]
fn what_comes_behind_our_own_going_away_is_ignored() {
    let mut server = Connection::server(Options::default());
    hear(&mut server, [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0", &asks(1, 5)].concat());
    server.go_away();
    let late =
        [asks(3, 4), frame(0, 0, 3, b"abc"), frame(8, 0, 3, &[0, 0, 0, 9]), frame(0, 1, 3, b"d")].concat();
    let (events, _) = hear(&mut server, late);
    assert_eq!(events, []);
    assert!(server.respond(1, &ok(None), true));
    let (events, answer) = hear(&mut server, frame(6, 0, 0, &[7; 8]));
    assert_eq!((events, server.open_streams()), (vec![], 0));
    assert!(answer.ends_with(&frame(6, 1, 0, &[7; 8])), "it lives on");
}

#[test]
fn a_table_that_was_to_be_empty_for_a_moment_is_told_to_be() {
    let mut server = Connection::server(Options::default());
    hear(&mut server, [&PREFACE[..], &frame(4, 0, 0, &[]), &asks(1, 5)].concat());
    assert!(server.respond(1, &ok(None), true));
    let twice = frame(4, 0, 0, &[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0x10, 0]);
    hear(&mut server, [twice, asks(3, 5)].concat());
    assert!(server.respond(3, &ok(None), true));
    let (_, answer) = hear(&mut server, Vec::new());
    assert_eq!(answer[9..], [0x20, 0x3f, 0xe1, 0x1f, 0x88], "down to 0 and up to 4096, then 200");
}

#[test]
fn frames_that_break_rules_of_the_connection() {
    let settings =
        |id: u16, value: u32| frame(4, 0, 0, &[&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
    let cases: [(&str, Vec<u8>, ErrorCode); 14] = [
        ("data on an idle stream", frame(0, 0, 1, b"x"), ErrorCode::PROTOCOL_ERROR),
        ("an even stream", asks(2, 5), ErrorCode::PROTOCOL_ERROR),
        ("a lower stream", [asks(5, 5), asks(3, 5)].concat(), ErrorCode::STREAM_CLOSED),
        ("a frame inside a block", [asks(1, 1), frame(6, 0, 0, &[0; 8])].concat(), ErrorCode::PROTOCOL_ERROR),
        ("a block of another stream", [asks(1, 1), frame(9, 4, 3, &[])].concat(), ErrorCode::PROTOCOL_ERROR),
        ("a block that cannot be read", frame(1, 5, 1, &[0x80]), ErrorCode::COMPRESSION_ERROR),
        ("a frame that is too large", frame(0, 0, 1, &[0; 16_385]), ErrorCode::FRAME_SIZE_ERROR),
        ("a window that overflows", frame(8, 0, 0, b"\x7f\xff\xff\xff"), ErrorCode::FLOW_CONTROL_ERROR),
        ("an update of nothing", frame(8, 0, 0, &[0; 4]), ErrorCode::PROTOCOL_ERROR),
        ("an initial window above all", settings(4, 1 << 31), ErrorCode::FLOW_CONTROL_ERROR),
        (
            "initial windows that overflow",
            [asks(1, 4), frame(8, 0, 1, b"\x7f\xff\0\0"), settings(4, 0x7fff_ffff)].concat(),
            ErrorCode::FLOW_CONTROL_ERROR,
        ),
        ("a reset of an idle stream", frame(3, 0, 1, &[0; 4]), ErrorCode::PROTOCOL_ERROR),
        (
            "padding beyond the payload",
            [asks(1, 4), frame(0, 8, 1, &[2, 0])].concat(),
            ErrorCode::PROTOCOL_ERROR,
        ),
        ("a push", frame(5, 4, 1, &[0; 8]), ErrorCode::PROTOCOL_ERROR),
    ];
    for (what, octets, code) in cases {
        let (events, answer) = server_hears(&octets);
        assert_eq!(failure(&events), Some(code), "{what}: {events:?}");
        // The last frame is GOAWAY with that code.
        let goaway = answer.windows(9).rposition(|w| w[3] == 7 && w[5..] == [0; 4]).expect(what);
        assert_eq!(answer[goaway + 13..goaway + 17], code.0.to_be_bytes(), "{what}");
    }
    let mut server = Connection::server(Options::default());
    let (events, _) = hear(&mut server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec());
    assert_eq!(failure(&events), Some(ErrorCode::PROTOCOL_ERROR));
    let mut client = Connection::client(Options::default());
    let (events, _) = hear(&mut client, frame(6, 0, 0, &[0; 8]));
    assert_eq!(failure(&events), Some(ErrorCode::PROTOCOL_ERROR), "the first frame is not SETTINGS");
    for (value, wrong) in [(0, None), (1, Some(ErrorCode::PROTOCOL_ERROR))] {
        let (events, _) = hear(&mut Connection::client(Options::default()), settings(2, value));
        assert_eq!(failure(&events), wrong, "ENABLE_PUSH={value} of a server");
    }
}

#[test]
fn what_breaks_a_stream_leaves_the_others_alone() {
    let too_long = [asks(1, 4), frame(1, 5, 3, &[0x82, 0x86, 0x84, 0x0f, 0x0d, 1, b'5'])].concat();
    let cases: [(Vec<u8>, u32, ErrorCode); 6] = [
        (too_long, 3, ErrorCode::PROTOCOL_ERROR),
        ([asks(1, 5), frame(0, 0, 1, b"x")].concat(), 1, ErrorCode::STREAM_CLOSED),
        ([asks(1, 4), frame(8, 0, 1, &[0; 4])].concat(), 1, ErrorCode::PROTOCOL_ERROR),
        ([asks(1, 4), frame(8, 0, 1, b"\x7f\xff\xff\xff")].concat(), 1, ErrorCode::FLOW_CONTROL_ERROR),
        ([asks(1, 4), asks(1, 4)].concat(), 1, ErrorCode::PROTOCOL_ERROR),
        (frame(1, 5, 1, &[0x82, 0x86]), 1, ErrorCode::PROTOCOL_ERROR),
    ];
    for (octets, stream, code) in cases {
        let (events, answer) = server_hears(&[octets, asks(7, 5)].concat());
        assert_eq!(failure(&events), None, "{events:?}");
        let reset = frame(3, 0, stream, &code.0.to_be_bytes());
        assert!(answer.windows(reset.len()).any(|w| w == reset), "{answer:x?}");
        assert!(matches!(events.last(), Some(Event::End(7, _))), "{events:?}");
    }
}

#[test]
fn a_peer_that_sends_more_than_windows_allow_is_stopped() {
    let mut server = Connection::server(Options::default());
    let begin = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0", &asks(1, 4)].concat();
    server.feed(Body::Real(begin.into()));
    // Updates that are never written: the windows do not open.
    for _ in 0..5 {
        server.feed(Body::Real(frame(0, 0, 1, &[0; 16_384]).into()));
    }
    let events: Vec<Event> = std::iter::from_fn(|| server.poll_event()).collect();
    // Windows open as octets are handed out, so this peer is within them.
    assert_eq!(failure(&events), None);
    let settings = Settings { initial_window_size: 100, ..Options::default().settings };
    let mut server = Connection::server(Options { settings, ..Options::default() });
    let begin = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0", &asks(1, 4)].concat();
    let (events, answer) = hear(&mut server, [begin, frame(0, 0, 1, &[0; 101])].concat());
    assert_eq!(resets(&events), [(1, ErrorCode::FLOW_CONTROL_ERROR)]);
    assert!(answer.ends_with(&frame(3, 0, 1, &3_u32.to_be_bytes())));
}

#[test]
fn floods_end_the_connection_with_bounded_memory() {
    let calm = Some(ErrorCode::ENHANCE_YOUR_CALM);
    let many = |piece: Vec<u8>, times: usize| piece.repeat(times);
    let rapid: Vec<u8> =
        (0..300).flat_map(|n| [asks(2 * n + 1, 5), frame(3, 0, 2 * n + 1, &[0; 4])].concat()).collect();
    let made: Vec<u8> =
        (0..300).flat_map(|n| [asks(2 * n + 1, 5), frame(8, 0, 2 * n + 1, &[0; 4])].concat()).collect();
    for (what, octets) in [
        ("pings", many(frame(6, 0, 0, &[0; 8]), 10_000)),
        ("settings", many(frame(4, 0, 0, &[]), 10_000)),
        ("empty DATA", [asks(1, 4), many(frame(0, 0, 1, &[]), 10_000)].concat()),
        ("priorities", many(frame(2, 0, 1, &[0; 5]), 10_000)),
        ("unknown frames", many(frame(0x77, 0, 0, &[0; 100]), 1_000)),
        ("updates", [asks(1, 4), many(frame(8, 0, 1, &[0, 0, 0, 1]), 10_000)].concat()),
        ("CONTINUATION", [asks(1, 0), many(frame(9, 0, 1, &[0; 1000]), 100)].concat()),
        ("empty CONTINUATION", [asks(1, 0), many(frame(9, 0, 1, &[]), 100)].concat()),
        ("rapid reset", rapid),
        ("made to reset", made),
    ] {
        let (events, _) = server_hears(&octets);
        assert_eq!(failure(&events), calm, "{what}");
    }
    // A peer that asks and never reads: what it is owed stays small.
    let mut server = Connection::server(Options::default());
    let octets = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0", &many(frame(6, 0, 0, &[0; 8]), 1_000)].concat();
    server.feed(Body::Real(octets.into()));
    let failed = std::iter::from_fn(|| server.poll_event()).find_map(|event| failure(&[event]));
    assert_eq!(failed, calm);
    assert!(server.owed() < 10_000, "{}", server.owed());
}

#[test]
fn a_peer_that_asks_and_never_reads_is_held_back() {
    let mut server = Connection::server(Options::default());
    server.feed(Body::Real([&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0"].concat().into()));
    let (all, mut answered, mut asked) = (20_000, 0, 0);
    let mut answer_what_comes = |server: &mut Connection| {
        while let Some(event) = server.poll_event() {
            assert_eq!(failure(std::slice::from_ref(&event)), None);
            if let Event::Request(stream, _) = event {
                // Ends with its head, and the stream with it.
                assert!(server.respond(stream, &ok(Some(5)), true));
                answered += 1;
            }
        }
        answered
    };
    // Two requests at a time: the second one waits where the first fills what may wait.
    while asked < all && !server.is_held_back() {
        let two = [asks(2 * asked + 1, 5), asks(2 * asked + 3, 5)].concat();
        server.feed(Body::Real(two.into()));
        asked += 2;
        answer_what_comes(&mut server);
    }
    let before = answer_what_comes(&mut server);
    assert!(server.is_held_back() && before < all, "{before} answers wait");
    server.feed(Body::Real(asks(2 * asked + 1, 5).into()));
    assert_eq!(answer_what_comes(&mut server), before, "it takes in nothing more");
    let waited: usize = std::iter::from_fn(|| server.poll_transmit()).map(|octets| octets.len()).sum();
    assert!((65_000..66_000).contains(&waited), "{waited}");
    assert!(!server.is_held_back());
    assert_eq!(answer_what_comes(&mut server), asked + 1, "what was held back is answered");
}

#[test]
fn a_filler_of_any_length_waits_as_one_piece() {
    let mut two = Two::new(Options::default(), Options::default());
    let stream = two.client.request(&get("/"), Priority::default(), true).unwrap();
    let none = two.client.request(&get("/none"), Priority::default(), true).unwrap();
    two.run();
    two.server.respond(stream, &ok(Some(u64::MAX)), false);
    assert!(two.server.send_filler(stream, 1, u64::MAX));
    assert!(!two.server.send_filler(stream, 1, 1) && !two.server.send(stream, [Body::filler(1, 1)], true));
    assert_eq!(two.server.streams[&stream].outgoing.len(), 1);
    two.server.respond(none, &ok(Some(0)), false);
    assert!(two.server.send_filler(none, 1, 0));
    while let Some(octets) = two.server.poll_transmit() {
        two.client.feed(octets);
    }
    let mut got = 0;
    while let Some(event) = two.client.poll_event() {
        got += if let Event::Data(_, body) = &event { body.len() } else { 0 };
        two.said[0].push(event);
    }
    assert_eq!((got, two.ended(0)), (65_535, vec![none]));

    // Across the edge of a piece nothing is lost, and the end is the end.
    let mut entry = stream::Stream::new(0, 0);
    entry.filler = LongFiller::new(7, (1 << 30) + 5);
    entry.refill();
    entry.refill();
    assert_eq!((entry.outgoing.len(), entry.outgoing.pop_front().map(|body| body.len())), (1, Some(1 << 30)));
    entry.refill();
    assert_eq!(entry.outgoing.pop_front(), Some(Body::Filler(Filler { source: 7, offset: 1 << 30, len: 5 })));
    entry.refill();
    assert!(entry.outgoing.is_empty());
}

#[test]
fn priorities_of_streams_that_never_open_are_forgotten() {
    let mut server = Connection::server(Options::default());
    let update = |stream: u32| frame(16, 0, 0, &[&stream.to_be_bytes()[..], b"u=0"].concat());
    let begin = [&PREFACE[..], b"\0\0\0\x04\0\0\0\0\0"].concat();
    let many: Vec<u8> = (0..100).flat_map(|n| update(2 * n + 1)).collect();
    hear(&mut server, [begin, many].concat());
    assert_eq!(server.early.len(), 64);
    // One that is kept may still change.
    hear(&mut server, frame(16, 0, 0, b"\0\0\0\x01u=7"));
    assert_eq!(server.early[&1].urgency, 7);
    hear(&mut server, [asks(101, 5), update(203)].concat());
    assert_eq!(
        server.early.keys().copied().collect::<Vec<_>>(),
        (103..128).step_by(2).chain([203]).collect::<Vec<_>>()
    );
    hear(&mut server, asks(203, 5));
    assert_eq!((server.early.len(), server.streams[&203].priority.urgency), (0, 0));
}

#[test]
fn a_long_life_of_ordinary_use_is_no_flood() {
    let mut two = Two::new(Options::default(), Options::default());
    for n in 0..500 {
        let stream = two.client.request(&get("/"), Priority::default(), true).unwrap();
        two.run();
        // Every third one is given up half-way.
        two.server.respond(stream, &ok(None), false);
        two.server.send(stream, [Body::filler(1, 50_000)], true);
        if n % 3 == 0 {
            two.run();
            two.client.reset(stream, ErrorCode::CANCEL);
        }
        two.run();
    }
    assert_eq!((failure(&two.said[0]), failure(&two.said[1])), (None, None));
    assert_eq!((two.client.open_streams(), two.server.open_streams()), (0, 0));
}

proptest! {
    #![proptest_config(cases(128))]

    /// Whatever is asked, in whatever order and however octets are cut: every body arrives whole, once.
    #[test]
    fn every_body_arrives_whole(
        sizes in vec((0_u32..200_000, 0_u8..8, any::<bool>()), 1..20),
        cut in 1_usize..3000,
        window in prop_oneof![Just(65_535_u32), 65_535..2_000_000_u32],
        stream_window in prop_oneof![1_u32..100, 1_000..100_000_u32],
    ) {
        let settings = Settings { initial_window_size: stream_window.max(100), ..Options::default().settings };
        let mut two = Two::new(
            Options { settings, connection_window: window, ..Options::default() },
            Options::default(),
        );
        two.cut = cut;
        let mut wanted = BTreeMap::new();
        for (size, urgency, incremental) in &sizes {
            let priority = Priority { urgency: *urgency, incremental: *incremental };
            let size = (*size).min(stream_window * 200);
            wanted.insert(two.client.request(&get("/"), priority, true).unwrap(), size as usize);
        }
        two.run();
        for (stream, size) in &wanted {
            prop_assert!(two.server.respond(*stream, &ok(Some(*size as u64)), *size == 0));
            if *size > 0 {
                two.server.send(*stream, [Body::filler(*stream, *size as u32)], true);
            }
        }
        two.run();
        let bodies = two.bodies(0);
        for (stream, size) in &wanted {
            prop_assert_eq!(bodies.get(stream).copied().unwrap_or(0), *size);
        }
        prop_assert_eq!(two.ended(0).len(), wanted.len());
        prop_assert_eq!((failure(&two.said[0]), failure(&two.said[1])), (None, None));
        prop_assert_eq!(two.client.open_streams() + two.server.open_streams(), 0);
    }
}
