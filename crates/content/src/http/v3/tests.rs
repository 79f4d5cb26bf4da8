use std::collections::{BTreeMap, BTreeSet};

use airloom_base::Body;
use airloom_testkit::cases;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::frame::kind;
use super::*;
use crate::http::error::Code;
use crate::http::message::{Fields, Method, RequestHead, ResponseHead, Version};

const CLIENT: [u64; 3] = [2, 6, 10];
const SERVER: [u64; 3] = [3, 7, 11];

fn get(path: &str) -> RequestHead {
    let mut fields = Fields::default();
    fields.push("Host", "origin");
    RequestHead { method: Method::Get, target: path.to_owned().into(), version: Version::Http3, fields }
}

fn ok(length: Option<u64>) -> ResponseHead {
    let mut fields = Fields::default();
    if let Some(length) = length {
        fields.push("Content-Length", length.to_string());
    }
    ResponseHead { version: Version::Http3, status: 200, reason: Bytes::new(), fields }
}

fn with_table(table: u32, blocked: u64) -> Options {
    let settings = Settings {
        qpack_max_table_capacity: table.into(),
        qpack_blocked_streams: blocked,
        ..Options::default().settings
    };
    Options { settings, table, ..Options::default() }
}

/// A client and a server with streams between them, of which each takes `room` octets at a time. What arrives is cut to `cut`.
struct Two {
    ends: [Connection; 2],
    room: usize,
    cut: usize,
    /// Encoder streams are held up while this is set, so that sections overtake their entries.
    holds: bool,
    held: Vec<(usize, u64, Body)>,
    /// What each end heard.
    said: [Vec<Event>; 2],
    /// Streams that each end was told of.
    known: [BTreeSet<u64>; 2],
    /// The order in which DATA came to the client.
    order: Vec<(u64, usize)>,
}

impl Two {
    fn new(client: Options, server: Options) -> Two {
        Two {
            ends: [begun(Connection::client(client), CLIENT), begun(Connection::server(server), SERVER)],
            room: usize::MAX,
            cut: usize::MAX,
            holds: false,
            held: Vec::new(),
            said: [Vec::new(), Vec::new()],
            known: [BTreeSet::new(), BTreeSet::new()],
            order: Vec::new(),
        }
    }

    fn client(&mut self) -> &mut Connection {
        &mut self.ends[0]
    }

    fn server(&mut self) -> &mut Connection {
        &mut self.ends[1]
    }

    fn arrives(&mut self, to: usize, stream: u64, mut octets: Body) {
        while !octets.is_empty() {
            self.ends[to].feed(stream, octets.split_to(self.cut));
            self.listen(to);
        }
    }

    fn listen(&mut self, side: usize) {
        while let Some(event) = self.ends[side].poll_event() {
            if let (0, Event::Data(stream, body)) = (side, &event) {
                self.order.push((*stream, body.len()));
            }
            self.said[side].push(event);
        }
    }

    fn act(&mut self, from: usize, action: Transmit) {
        let to = 1 - from;
        let (Transmit::Write { stream, .. } | Transmit::Reset(stream, _) | Transmit::Stop(stream, _)) =
            action;
        if stream & 1 == from as u64 && self.known[to].insert(stream) {
            self.ends[to].opened(stream);
        }
        match action {
            Transmit::Write { stream, mut body, ends } => {
                let offered = body.len();
                let taken = body.split_to(self.room);
                self.ends[from].written(stream, taken.len());
                if taken.len() < offered {
                    self.ends[from].writable(stream);
                }
                if self.holds && [CLIENT[1], SERVER[1]].contains(&stream) {
                    self.held.push((to, stream, taken));
                    return;
                }
                let is_all = taken.len() == offered;
                self.arrives(to, stream, taken);
                if ends && is_all {
                    self.ends[to].ended(stream);
                }
            }
            Transmit::Reset(stream, code) => self.ends[to].was_reset(stream, code),
            Transmit::Stop(stream, code) => self.ends[to].was_stopped(stream, code),
        }
        self.listen(to);
    }

    /// Moves everything that can be moved.
    fn run(&mut self) {
        loop {
            let mut moved = false;
            for from in [0, 1] {
                while let Some(action) = self.ends[from].poll_transmit() {
                    moved = true;
                    self.act(from, action);
                }
                self.listen(from);
            }
            if !moved {
                return;
            }
        }
    }

    fn release(&mut self) {
        self.holds = false;
        for (to, stream, octets) in std::mem::take(&mut self.held) {
            self.arrives(to, stream, octets);
        }
        self.run();
    }

    fn bodies(&self, side: usize) -> BTreeMap<u64, usize> {
        let mut bodies = BTreeMap::new();
        for event in &self.said[side] {
            if let Event::Data(stream, body) = event {
                *bodies.entry(*stream).or_default() += body.len();
            }
        }
        bodies
    }

    fn ended(&self, side: usize) -> Vec<u64> {
        let end = |event: &Event| if let Event::End(stream, _) = event { Some(*stream) } else { None };
        self.said[side].iter().filter_map(end).collect()
    }
}

fn begun(mut end: Connection, own: [u64; 3]) -> Connection {
    end.begin(own);
    end
}

/// A server whose peer has sent its settings.
fn server() -> Connection {
    let mut server = begun(Connection::server(Options::default()), SERVER);
    server.opened(2);
    feed(&mut server, 2, &[&[0][..], &frame::emit(kind::SETTINGS, &[])].concat());
    server
}

fn client() -> Connection {
    let mut client = begun(Connection::client(Options::default()), CLIENT);
    client.opened(3);
    feed(&mut client, 3, &[&[0][..], &frame::emit(kind::SETTINGS, &[])].concat());
    client
}

fn feed(end: &mut Connection, stream: u64, octets: &[u8]) {
    end.feed(stream, Body::Real(Bytes::copy_from_slice(octets)));
}

fn events(end: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| end.poll_event()).collect()
}

fn actions(end: &mut Connection) -> Vec<Transmit> {
    let mut actions = Vec::new();
    while let Some(action) = end.poll_transmit() {
        if let Transmit::Write { stream, body, .. } = &action {
            end.written(*stream, body.len());
        }
        actions.push(action);
    }
    actions
}

/// What is wrong, octets of a stream in which it is, and the code that it has.
type Case = (&'static str, (u64, Vec<u8>), &'static str);

/// HEADERS of `GET https://a/`.
fn asks() -> Vec<u8> {
    frame::emit(kind::HEADERS, &[0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'])
}

fn failure(events: &[Event]) -> &'static str {
    let found = events.iter().find_map(|event| match event {
        Event::Failed(Error::Connection(code, _)) => Some(code.name()),
        _ => None,
    });
    found.unwrap_or_default()
}

fn resets(events: &[Event]) -> Vec<(u64, ErrorCode)> {
    let reset =
        |event: &Event| if let Event::Reset(stream, code) = event { Some((*stream, *code)) } else { None };
    events.iter().filter_map(reset).collect()
}

#[test]
fn requests_and_answers_go_side_by_side_and_octets_may_come_one_by_one() {
    for (cut, room) in [(1, 1), (7, 100), (usize::MAX, usize::MAX)] {
        let mut two = Two::new(Options::default(), Options::default());
        (two.cut, two.room) = (cut, room);
        for (n, stream) in [0, 4, 8].into_iter().enumerate() {
            assert!(two.client().request(stream, &get(&format!("/{n}")), Priority::default(), true));
        }
        two.run();
        assert_eq!(two.ended(1), [0, 4, 8]);
        for (n, stream) in [0_u64, 4, 8].into_iter().enumerate() {
            assert!(two.server().respond(stream, &ok(Some(1000 * n as u64)), n == 0));
            if n > 0 {
                assert!(two.server().send(stream, [Body::filler(7, 1000 * n as u32)], true));
            }
        }
        two.run();
        assert_eq!(two.ended(0), [0, 4, 8], "{cut}");
        assert_eq!(two.bodies(0), BTreeMap::from([(4, 1000), (8, 2000)]));
        assert_eq!((two.client().open_streams(), two.server().open_streams()), (0, 0));
        assert!(resets(&two.said[0]).is_empty() && failure(&two.said[0]).is_empty());
    }
}

#[test]
fn urgent_responses_go_first_and_incremental_ones_share() {
    let mut two = Two::new(Options::default(), Options::default());
    let of = |urgency, incremental| Priority { urgency, incremental };
    let wanted = [of(5, false), of(3, false), of(1, true), of(1, true), of(3, false)];
    for (n, priority) in wanted.into_iter().enumerate() {
        two.client().request(4 * n as u64, &get("/"), priority, true);
    }
    two.run();
    // The first one becomes the most urgent.
    feed(two.server(), 2, &frame::emit(kind::PRIORITY_UPDATE, b"\0u=0"));
    assert_eq!(two.server().priority(0), Some(of(0, false)));
    assert_eq!(two.server().priority(8), Some(of(1, true)));
    for stream in [0, 4, 8, 12, 16] {
        two.server().respond(stream, &ok(None), false);
        two.server().send(stream, [Body::filler(1, 32_768)], true);
    }
    two.run();
    let order: Vec<u64> = two.order.iter().map(|(stream, _)| *stream).collect();
    // Incremental ones take turns; a turn may be the header of a frame alone.
    assert_eq!(order, [0, 0, 8, 12, 8, 12, 4, 4, 16, 16]);
}

#[test]
fn another_priority_is_told_of_answers_that_are_written_too() {
    let mut server = server();
    server.opened(0);
    feed(&mut server, 0, &asks());
    server.ended(0);
    assert!(matches!(&events(&mut server)[..], [Event::Request(0, _), Event::End(0, _)]));
    let urgent = Priority { urgency: 1, ..Priority::default() };
    for is_written in [false, true] {
        feed(&mut server, 2, &frame::emit(kind::PRIORITY_UPDATE, b"\0u=1"));
        assert_eq!(events(&mut server), [Event::Priority(0, urgent)]);
        assert_eq!(server.priority(0), (!is_written).then_some(urgent));
        server.respond(0, &ok(Some(0)), true);
        actions(&mut server);
    }
}

#[test]
fn a_priority_that_came_before_its_stream_may_still_change() {
    let mut server = server();
    let mut update = |stream: u64, value: &[u8]| {
        let mut payload = Vec::new();
        varint::emit(stream, &mut payload);
        payload.extend_from_slice(value);
        feed(&mut server, 2, &frame::emit(kind::PRIORITY_UPDATE, &payload));
    };
    for n in 0..100 {
        update(4 * n, b"u=0");
    }
    update(0, b"u=7");
    assert_eq!(server.early.len(), 64);
    server.opened(0);
    assert_eq!(server.priority(0), Some(Priority { urgency: 7, ..Priority::default() }));
}

#[test]
fn bodies_of_requests_and_heads_that_are_too_large() {
    let mut two = Two::new(Options::default(), Options::default());
    let mut head = get("/form");
    head.method = Method::Post;
    head.fields.push("Content-Length", "100000");
    head.fields.push("X", "~".repeat(14_000));
    two.client().request(0, &head, Priority::default(), false);
    two.client().send(0, [Body::filler(1, 100_000)], true);
    two.run();
    assert_eq!(two.bodies(1), BTreeMap::from([(0, 100_000)]));
    head.fields.push("Y", "~".repeat(10_000));
    two.client().request(4, &head, Priority::default(), true);
    two.run();
    let status = |event: &Event| matches!(event, Event::Response(4, head) if head.status == 431);
    assert!(two.said[0].iter().any(status), "{:?}", two.said[0]);
    assert_eq!((two.ended(0), failure(&two.said[0])), (vec![4], ""));
    assert_eq!(two.server().open_streams(), 1, "the form waits for its answer");
}

/// HEADERS with a line `a`, whose value has 20,000 octets.
fn large() -> Vec<u8> {
    let block = [0, 0, 0xd1, 0xd7, 0xc1, 0x21, b'a', 0x7f, 0xa1, 0x9b, 0x01];
    frame::emit(kind::HEADERS, &[&block[..], &[b'b'; 20_000]].concat())
}

#[test]
fn what_follows_a_head_that_is_too_large_means_nothing() {
    let large = large();
    for rest in [frame::emit(kind::DATA, b"abc"), asks()] {
        let mut server = server();
        actions(&mut server);
        server.opened(0);
        feed(&mut server, 0, &[&large[..], &rest].concat());
        server.ended(0);
        assert_eq!(events(&mut server), []);
        let said = actions(&mut server);
        assert!(
            matches!(&said[..], [Transmit::Stop(0, ErrorCode::NO_ERROR), Transmit::Write { ends: true, .. }]),
            "{said:?}"
        );
        assert_eq!(server.open_streams(), 0);
    }
}

#[test]
fn a_stream_whose_head_is_too_large_is_cancelled() {
    let mut server = begun(Connection::server(with_table(4096, 16)), SERVER);
    server.opened(0);
    // Trailers follow that mean an entry.
    feed(&mut server, 0, &[large(), frame::emit(kind::HEADERS, b"\x02\0\x80")].concat());
    let on_decoder = |action: Transmit| match action {
        Transmit::Write { stream: 11, body, .. } => body.to_bytes().to_vec(),
        _ => Vec::new(),
    };
    let said: Vec<u8> = actions(&mut server).into_iter().flat_map(on_decoder).collect();
    //= RFC 9204 (4.4.2): two bits of the instruction and the number of the stream, behind the type of the stream.
    assert_eq!(said, [3, 0x40]);
}

#[test]
fn interim_answers_trailers_and_head() {
    let mut two = Two::new(Options::default(), Options::default());
    let mut head = get("/");
    head.method = Method::Head;
    two.client().request(0, &head, Priority::default(), true);
    two.run();
    two.server().respond(0, &ResponseHead { status: 103, ..ok(None) }, false);
    two.server().respond(0, &ok(Some(999)), true);
    two.run();
    assert!(matches!(&two.said[0][..], [Event::Interim(0, _), Event::Response(0, _), Event::End(0, _)]));
    let mut server = server();
    server.opened(0);
    let trailers = frame::emit(kind::HEADERS, b"\0\0\x21a\x01b");
    feed(&mut server, 0, &[asks(), frame::emit(kind::DATA, b"abc"), trailers].concat());
    server.ended(0);
    let said = events(&mut server);
    let Some(Event::End(0, trailers)) = said.last() else { panic!("{said:?}") };
    assert_eq!(trailers.first("a"), Some(&b"b"[..]));
}

#[test]
fn what_a_server_that_goes_away_did_not_do_can_be_asked_again() {
    let mut two = Two::new(Options::default(), Options::default());
    two.client().request(0, &get("/"), Priority::default(), true);
    two.run();
    two.server().go_away();
    // These cross the news.
    for stream in [4, 8] {
        assert!(two.client().request(stream, &get("/"), Priority::default(), true));
    }
    two.run();
    let rejected = ErrorCode::REQUEST_REJECTED;
    assert_eq!(resets(&two.said[0]), [(4, rejected), (8, rejected)]);
    assert!(two.said[0].contains(&Event::GoAway(4)));
    assert!(!two.client().request(12, &get("/"), Priority::default(), true));
    assert!(two.client().is_closing());
    two.server().respond(0, &ok(None), true);
    two.run();
    assert_eq!((two.ended(0), two.client().open_streams(), two.server().open_streams()), (vec![0], 0, 0));
    // The number may become smaller, and no request below it is touched.
    let mut client = client();
    for stream in [0, 4, 8] {
        client.request(stream, &get("/"), Priority::default(), true);
    }
    feed(&mut client, 3, &[frame::emit(kind::GOAWAY, &[8]), frame::emit(kind::GOAWAY, &[4])].concat());
    let expected = [Event::Reset(8, rejected), Event::GoAway(8), Event::Reset(4, rejected), Event::GoAway(4)];
    assert_eq!((events(&mut client), client.open_streams()), (expected.to_vec(), 1));
}

#[test]
fn a_table_is_used_where_the_peer_has_one_and_streams_wait_for_its_entries() {
    let mut two = Two::new(with_table(4096, 16), with_table(4096, 16));
    two.run();
    two.holds = true;
    for stream in [0, 4] {
        two.client().request(stream, &get("/"), Priority::default(), true);
    }
    two.run();
    assert_eq!(two.ended(1), [] as [u64; 0]);
    assert!(two.server().waits(0) && two.server().waits(4));
    two.release();
    assert_eq!(two.ended(1), [0, 4]);
    assert!(two.said[1].contains(&Event::Unblocked(4)));
    // Entries that are there cost an octet a line: the answer's fields are in the table the second time.
    for stream in [0, 4] {
        let mut head = ok(None);
        head.fields.push("x-something-rather-long", "with a value that is rather long as well");
        two.server().respond(stream, &head, true);
        let mut octets = 0;
        while let Some(action) = two.server().poll_transmit() {
            if let Transmit::Write { stream: 0 | 4, body, .. } = &action {
                octets += body.len();
            }
            two.act(1, action);
        }
        two.run();
        assert!(octets < 10, "{octets}");
    }
    assert_eq!((two.ended(0), failure(&two.said[0]), failure(&two.said[1])), (vec![0, 4], "", ""));
}

#[test]
fn a_stream_that_waits_and_is_given_up_is_cancelled() {
    let mut two = Two::new(with_table(4096, 16), with_table(4096, 16));
    two.run();
    two.holds = true;
    two.client().request(0, &get("/"), Priority::default(), true);
    two.run();
    two.client().reset(0, ErrorCode::REQUEST_CANCELLED);
    two.run();
    assert_eq!(resets(&two.said[1]), [(0, ErrorCode::REQUEST_CANCELLED)]);
    two.release();
    assert_eq!((two.server().open_streams(), failure(&two.said[0]), failure(&two.said[1])), (0, "", ""));
}

#[test]
fn streams_that_are_reset_and_stopped() {
    let mut server = server();
    server.opened(0);
    feed(&mut server, 0, &asks());
    server.was_reset(0, ErrorCode::REQUEST_CANCELLED);
    let said = events(&mut server);
    assert_eq!(resets(&said), [(0, ErrorCode::REQUEST_CANCELLED)]);
    assert!(actions(&mut server).contains(&Transmit::Reset(0, ErrorCode::REQUEST_CANCELLED)));
    // The answer is not wanted.
    server.opened(4);
    feed(&mut server, 4, &asks());
    server.ended(4);
    server.respond(4, &ok(None), false);
    server.was_stopped(4, ErrorCode::REQUEST_CANCELLED);
    assert_eq!(actions(&mut server), [Transmit::Reset(4, ErrorCode::REQUEST_CANCELLED)]);
    assert!(!server.send(4, [Body::filler(1, 9)], true));
    // A client whose form is not wanted gets its answer.
    let mut client = client();
    client.request(0, &get("/"), Priority::default(), false);
    client.send(0, [Body::filler(1, 1_000_000)], true);
    client.was_stopped(0, ErrorCode::NO_ERROR);
    assert!(actions(&mut client).contains(&Transmit::Reset(0, ErrorCode::NO_ERROR)));
    feed(&mut client, 0, &frame::emit(kind::HEADERS, &[0, 0, 0xd9]));
    client.ended(0);
    assert!(matches!(&events(&mut client)[..], [Event::Response(0, _), Event::End(0, _)]));
    assert_eq!(client.open_streams(), 0);
}

#[test]
fn what_breaks_rules_of_the_connection_has_the_code_of_the_standard() {
    let on_control = |kind: u64, payload: &[u8]| (2, frame::emit(kind, payload));
    let on_request = |kind: u64, payload: &[u8]| (0, frame::emit(kind, payload));
    let behind = |more: Vec<u8>| (0, [asks(), more].concat());
    let trailers = frame::emit(kind::HEADERS, b"\0\0\x21a\x01b");
    let cases: Vec<Case> = vec![
        ("SETTINGS again", on_control(kind::SETTINGS, &[]), "H3_FRAME_UNEXPECTED"),
        ("DATA on control", on_control(kind::DATA, b"x"), "H3_FRAME_UNEXPECTED"),
        ("HEADERS on control", on_control(kind::HEADERS, b"\0\0"), "H3_FRAME_UNEXPECTED"),
        ("PUSH_PROMISE on control", on_control(kind::PUSH_PROMISE, b"\0\0\0"), "H3_FRAME_UNEXPECTED"),
        ("PING of HTTP/2", on_control(0x6, &[0; 8]), "H3_FRAME_UNEXPECTED"),
        ("a long GOAWAY", on_control(kind::GOAWAY, &[0, 0]), "H3_FRAME_ERROR"),
        ("an empty MAX_PUSH_ID", on_control(kind::MAX_PUSH_ID, &[]), "H3_FRAME_ERROR"),
        ("CANCEL_PUSH", on_control(kind::CANCEL_PUSH, &[0]), "H3_ID_ERROR"),
        ("a giant frame", (2, frame::header(kind::GOAWAY, varint::MOST)), "H3_EXCESSIVE_LOAD"),
        ("an empty PRIORITY_UPDATE", on_control(kind::PRIORITY_UPDATE, &[]), "H3_FRAME_ERROR"),
        ("PRIORITY_UPDATE of a way", on_control(kind::PRIORITY_UPDATE, &[2, b'i']), "H3_ID_ERROR"),
        ("PRIORITY_UPDATE of a push", on_control(kind::PRIORITY_UPDATE_PUSH, &[0]), "H3_ID_ERROR"),
        ("DATA first", on_request(kind::DATA, b"x"), "H3_FRAME_UNEXPECTED"),
        ("empty DATA first", on_request(kind::DATA, b""), "H3_FRAME_UNEXPECTED"),
        ("DATA behind trailers", behind([&trailers[..], b"\0\x01x"].concat()), "H3_FRAME_UNEXPECTED"),
        ("HEADERS behind trailers", behind([&trailers[..], &trailers].concat()), "H3_FRAME_UNEXPECTED"),
        ("SETTINGS on a request", on_request(kind::SETTINGS, &[]), "H3_FRAME_UNEXPECTED"),
        ("GOAWAY on a request", behind(frame::emit(kind::GOAWAY, &[0])), "H3_FRAME_UNEXPECTED"),
        (
            "PUSH_PROMISE of a client",
            behind(frame::emit(kind::PUSH_PROMISE, b"\0\0\0")),
            "H3_FRAME_UNEXPECTED",
        ),
        ("WINDOW_UPDATE of HTTP/2", behind(frame::emit(0x8, &[0; 4])), "H3_FRAME_UNEXPECTED"),
        ("a giant head", (0, frame::header(kind::HEADERS, varint::MOST)), "H3_EXCESSIVE_LOAD"),
        (
            "a section that cannot be read",
            on_request(kind::HEADERS, b"\0\0\xff\x80"),
            "QPACK_DECOMPRESSION_FAILED",
        ),
        (
            "an entry that nobody may have",
            on_request(kind::HEADERS, b"\x02\0\x80"),
            "QPACK_DECOMPRESSION_FAILED",
        ),
        ("a push of a client", (6, vec![1]), "H3_STREAM_CREATION_ERROR"),
        ("a second control stream", (6, vec![0]), "H3_STREAM_CREATION_ERROR"),
        ("an entry where there is no table", (6, b"\x02\x41a\x01b".to_vec()), "QPACK_ENCODER_STREAM_ERROR"),
        ("an acknowledgement of nothing", (6, b"\x03\x80".to_vec()), "QPACK_DECODER_STREAM_ERROR"),
        ("a second encoder stream", (6, b"\x02".to_vec()), ""),
        ("a giant type", (6, vec![0xff; 8]), ""),
    ];
    for (what, (stream, octets), code) in cases {
        let mut server = server();
        for stream in [0, 6] {
            server.opened(stream);
        }
        feed(&mut server, stream, &octets);
        let said = events(&mut server);
        assert_eq!(failure(&said), code, "{what}: {said:?}");
        if !code.is_empty() {
            feed(&mut server, 0, &asks());
            assert_eq!((events(&mut server), actions(&mut server)), (vec![], vec![]), "{what}");
        }
    }
}

#[test]
fn streams_that_the_connection_needs_stay_open() {
    for stream in [2, 6, 10] {
        for how in 0..2 {
            let mut server = server();
            for (stream, role) in [(6, 2), (10, 3)] {
                server.opened(stream);
                feed(&mut server, stream, &[role]);
            }
            if how == 0 {
                server.ended(stream)
            } else {
                server.was_reset(stream, ErrorCode::NO_ERROR)
            }
            assert_eq!(failure(&events(&mut server)), "H3_CLOSED_CRITICAL_STREAM", "{stream}");
        }
    }
    let mut one = server();
    one.was_stopped(SERVER[0], ErrorCode::NO_ERROR);
    assert_eq!(failure(&events(&mut one)), "H3_CLOSED_CRITICAL_STREAM");
    // One that has not said what it is for may end.
    let mut one = server();
    one.opened(6);
    one.ended(6);
    assert_eq!(failure(&events(&mut one)), "");
    // The first frame is SETTINGS; a frame of any other type is an error, an unknown one, too.
    for kind in [kind::GOAWAY, 0x21, kind::DATA] {
        let mut one = begun(Connection::server(Options::default()), SERVER);
        one.opened(2);
        feed(&mut one, 2, &[&[0][..], &frame::emit(kind, &[0])].concat());
        assert_eq!(failure(&events(&mut one)), "H3_MISSING_SETTINGS");
    }
}

#[test]
fn what_servers_may_not_send() {
    let cases: Vec<Case> = vec![
        ("MAX_PUSH_ID", (3, frame::emit(kind::MAX_PUSH_ID, &[1])), "H3_FRAME_UNEXPECTED"),
        ("PRIORITY_UPDATE", (3, frame::emit(kind::PRIORITY_UPDATE, &[0])), "H3_FRAME_UNEXPECTED"),
        ("GOAWAY of no request", (3, frame::emit(kind::GOAWAY, &[3])), "H3_ID_ERROR"),
        (
            "GOAWAY that grows",
            (3, [frame::emit(kind::GOAWAY, &[0]), frame::emit(kind::GOAWAY, &[4])].concat()),
            "H3_ID_ERROR",
        ),
        ("a promise", (0, frame::emit(kind::PUSH_PROMISE, b"\0\0\0")), "H3_ID_ERROR"),
        ("a push", (7, vec![1]), "H3_ID_ERROR"),
    ];
    for (what, (stream, octets), code) in cases {
        let mut client = client();
        client.request(0, &get("/"), Priority::default(), true);
        client.opened(7);
        feed(&mut client, stream, &octets);
        assert_eq!(failure(&events(&mut client)), code, "{what}");
    }
    let mut client = client();
    client.opened(1);
    assert_eq!(failure(&events(&mut client)), "H3_STREAM_CREATION_ERROR");
    let mut server = server();
    let max = |most: u8| frame::emit(kind::MAX_PUSH_ID, &[most]);
    feed(&mut server, 2, &[max(7), max(7), max(6)].concat());
    assert_eq!(failure(&events(&mut server)), "H3_ID_ERROR");
}

#[test]
fn what_breaks_a_stream_leaves_the_others_alone() {
    let bad_head = frame::emit(kind::HEADERS, &[0, 0, 0xd1, 0xd7, 0x50, 1, b'a']);
    let nobodys = frame::emit(kind::HEADERS, &[0, 0, 0xd1, 0xd7, 0xc1]);
    let short = [asks(), frame::emit(kind::HEADERS, b"\0\0\xd9")].concat();
    let length =
        |digit: u8| frame::emit(kind::HEADERS, &[0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 0x54, 1, digit]);
    let cases: Vec<(&str, Vec<u8>, bool, ErrorCode)> = vec![
        ("no path", bad_head, false, ErrorCode::MESSAGE_ERROR),
        ("no authority", nobodys, false, ErrorCode::MESSAGE_ERROR),
        ("a status in trailers", short, false, ErrorCode::MESSAGE_ERROR),
        ("no head", vec![], true, ErrorCode::REQUEST_INCOMPLETE),
        ("more than was said", [&length(b'2')[..], b"\0\x03abc"].concat(), false, ErrorCode::MESSAGE_ERROR),
        ("less than was said", [&length(b'4')[..], b"\0\x03abc"].concat(), true, ErrorCode::MESSAGE_ERROR),
        ("a length that is none", length(b'x'), false, ErrorCode::MESSAGE_ERROR),
    ];
    for (what, octets, ends, code) in cases {
        let mut server = server();
        actions(&mut server);
        server.opened(0);
        feed(&mut server, 0, &octets);
        if ends {
            server.ended(0);
        }
        assert_eq!(resets(&events(&mut server)), [(0, code)], "{what}");
        let stop = if ends { vec![] } else { vec![Transmit::Stop(0, code)] };
        assert_eq!(actions(&mut server), [vec![Transmit::Reset(0, code)], stop].concat(), "{what}");
        server.opened(4);
        feed(&mut server, 4, &asks());
        server.ended(4);
        assert!(matches!(&events(&mut server)[..], [Event::Request(4, _), Event::End(4, _)]), "{what}");
    }
    let mut server = server();
    server.opened(0);
    feed(&mut server, 0, &asks()[..4]);
    server.ended(0);
    assert_eq!(failure(&events(&mut server)), "H3_FRAME_ERROR", "it ends within a frame");
}

#[test]
fn unknown_frames_streams_and_settings_are_read_over() {
    let mut server = begun(Connection::server(Options::default()), SERVER);
    server.opened(2);
    let settings = frame::emit(kind::SETTINGS, b"\x33\x01\x40\x40\x00");
    feed(&mut server, 2, &[&[0][..], &settings, &frame::emit(0x21, &[7; 300])].concat());
    server.opened(6);
    feed(&mut server, 6, b"\x40\x40some words");
    feed(&mut server, 6, b"and more");
    server.opened(0);
    feed(
        &mut server,
        0,
        &[frame::emit(0x21, b"abc"), asks(), frame::emit(0x40, &[]), vec![0, 1, b'x']].concat(),
    );
    server.ended(0);
    let said = events(&mut server);
    assert!(matches!(&said[..], [Event::Request(0, _), Event::Data(0, _), Event::End(0, _)]), "{said:?}");
    let stop = Transmit::Stop(6, ErrorCode::STREAM_CREATION_ERROR);
    assert_eq!(actions(&mut server).iter().filter(|action| **action == stop).count(), 1);
}

#[test]
fn floods_end_the_connection_with_bounded_memory() {
    let update = frame::emit(kind::PRIORITY_UPDATE, b"\x04u=1");
    for (what, stream, octets) in [
        ("priorities", 2, update.repeat(20_000)),
        ("unknown frames", 2, frame::emit(0x21, &[0; 100]).repeat(1_000)),
        ("empty unknown frames", 2, frame::emit(0x21, &[]).repeat(40_000)),
        ("an unknown frame", 0, [frame::header(0x21, varint::MOST), vec![0; 100_000]].concat()),
        ("empty DATA", 0, [asks(), vec![0; 80_000]].concat()),
        ("a stream that nobody wants", 6, vec![0x21; 100_000]),
    ] {
        let mut server = server();
        server.opened(0);
        server.opened(6);
        for piece in octets.chunks(1000) {
            feed(&mut server, stream, piece);
        }
        assert_eq!(failure(&events(&mut server)), "H3_EXCESSIVE_LOAD", "{what}");
        assert!(server.early.len() <= 64);
    }
    // Requests that are taken back, and such as break off by themselves.
    for how in 0..2 {
        let mut server = server();
        for n in 0..300 {
            server.opened(4 * n);
            if how == 0 {
                feed(&mut server, 4 * n, &asks());
                server.was_reset(4 * n, ErrorCode::REQUEST_CANCELLED);
            } else {
                server.ended(4 * n);
            }
        }
        assert_eq!(failure(&events(&mut server)), "H3_EXCESSIVE_LOAD", "{how}");
    }
}

/// A server with a table, of which the first entry is the authority `a`, and whose decoder stream takes nothing.
fn unread() -> Connection {
    let mut server = begun(Connection::server(with_table(4096, 16)), SERVER);
    server.opened(2);
    feed(&mut server, 2, &[&[0][..], &frame::emit(kind::SETTINGS, &[])].concat());
    server.opened(6);
    feed(&mut server, 6, b"\x02\x3f\xe1\x1f\xc0\x01a");
    write_others(&mut server);
    server
}

/// Writes all that goes to other streams than the decoder's.
fn write_others(server: &mut Connection) {
    while let Some(action) = server.poll_transmit() {
        if let Transmit::Write { stream, body, .. } = action {
            server.written(stream, if stream == SERVER[2] { 0 } else { body.len() });
        }
    }
}

#[test]
fn entries_that_nobody_hears_of_are_told_as_one_number() {
    let mut server = unread();
    for _ in 0..100_000 {
        feed(&mut server, 6, b"\0");
    }
    assert_eq!(events(&mut server), []);
    server.writable(SERVER[2]);
    let mut number = Vec::new();
    crate::http::integer::emit(100_000, 6, 0, &mut number);
    let said: Vec<Vec<u8>> = actions(&mut server)
        .into_iter()
        .map(|action| match action {
            Transmit::Write { stream: 11, body, ends: false } => body.to_bytes().to_vec(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(said.concat(), [&b"\x03\x01"[..], &number].concat(), "{} pieces", said.len());
}

#[test]
fn who_reads_no_acknowledgements_is_not_answered_for_ever() {
    let mut server = unread();
    for n in 0..10_000 {
        server.opened(4 * n);
        feed(&mut server, 4 * n, &frame::emit(kind::HEADERS, b"\x02\0\xd1\xd7\xc1\x80"));
        server.ended(4 * n);
        let said = events(&mut server);
        if failure(&said) == "H3_EXCESSIVE_LOAD" {
            assert!(n > 1000, "{n}");
            return;
        }
        assert!(matches!(&said[..], [Event::Request(..), Event::End(..)]), "{said:?}");
        server.respond(4 * n, &ok(Some(0)), true);
        write_others(&mut server);
    }
    panic!("ten thousand are answered");
}

#[test]
fn a_long_life_of_ordinary_use_is_no_flood() {
    let mut two = Two::new(with_table(4096, 16), with_table(4096, 16));
    for n in 0..500 {
        let stream = 4 * n;
        two.client().request(stream, &get("/"), Priority::default(), true);
        two.run();
        two.server().respond(stream, &ok(None), false);
        two.server().send(stream, [Body::filler(1, 50_000)], n % 3 != 0);
        two.run();
        // Every third one is given up half-way.
        if n % 3 == 0 {
            two.client().reset(stream, ErrorCode::REQUEST_CANCELLED);
        }
        two.run();
    }
    assert_eq!((failure(&two.said[0]), failure(&two.said[1])), ("", ""));
    assert_eq!((two.client().open_streams(), two.server().open_streams()), (0, 0));
}

#[test]
fn a_filler_of_any_length_waits_as_one_piece() {
    let mut two = Two::new(Options::default(), Options::default());
    two.client().request(0, &get("/"), Priority::default(), true);
    two.client().request(4, &get("/none"), Priority::default(), true);
    two.run();
    two.server().respond(0, &ok(Some(u64::MAX)), false);
    assert!(two.server().send_filler(0, 1, u64::MAX));
    assert!(!two.server().send_filler(0, 1, 1) && !two.server().send(0, [Body::filler(1, 1)], true));
    two.server().respond(4, &ok(Some(0)), false);
    assert!(two.server().send_filler(4, 1, 0));
    for _ in 0..100 {
        let action = two.server().poll_transmit().expect("it is not at its end");
        two.act(1, action);
    }
    assert_eq!(two.server().streams[&0].sending.bodies.len(), 1);
    assert_eq!(two.ended(0), [4]);
}

proptest! {
    #![proptest_config(cases(128))]

    /// Whatever is asked, in whatever order and however octets are cut: every body arrives whole, once.
    #[test]
    fn every_body_arrives_whole(
        sizes in vec((0_u32..200_000, 0_u8..8, any::<bool>()), 1..20),
        cut in 1_usize..3000,
        room in prop_oneof![1000_usize..20_000, Just(usize::MAX)],
        table in prop_oneof![Just(0_u32), 64_u32..5000],
        blocked in 0_u64..10,
        holds in any::<bool>(),
    ) {
        let mut two = Two::new(with_table(table, blocked), with_table(table, blocked));
        (two.cut, two.room) = (cut, room);
        two.run();
        two.holds = holds;
        let mut wanted = BTreeMap::new();
        for (n, (size, urgency, incremental)) in sizes.iter().enumerate() {
            let priority = Priority { urgency: *urgency, incremental: *incremental };
            prop_assert!(two.client().request(4 * n as u64, &get("/"), priority, true));
            wanted.insert(4 * n as u64, *size as usize);
        }
        two.run();
        two.release();
        two.holds = holds;
        for (stream, size) in &wanted {
            prop_assert!(two.server().respond(*stream, &ok(Some(*size as u64)), *size == 0));
            if *size > 0 {
                two.server().send(*stream, [Body::filler(*stream as u32, *size as u32)], true);
            }
        }
        two.run();
        two.release();
        let bodies = two.bodies(0);
        for (stream, size) in &wanted {
            prop_assert_eq!(bodies.get(stream).copied().unwrap_or(0), *size);
        }
        prop_assert_eq!(two.ended(0).len(), wanted.len());
        prop_assert_eq!((failure(&two.said[0]), failure(&two.said[1])), ("", ""));
        prop_assert_eq!(two.client().open_streams() + two.server().open_streams(), 0);
    }
}

#[test]
fn what_one_end_makes_the_other_reads_and_both_write_it_down() {
    let mut two = Two::new(with_table(4096, 16), with_table(4096, 16));
    // The streams of the helper are there already: these ends begin once more, with a log.
    for (end, options) in [(0, with_table(4096, 16)), (1, with_table(4096, 16))] {
        let mut fresh = if end == 0 { Connection::client(options) } else { Connection::server(options) };
        fresh.keep_log();
        two.ends[end] = begun(fresh, if end == 0 { CLIENT } else { SERVER });
    }
    two.run();
    assert!(two.client().request(0, &get("/a"), Priority::default(), true));
    two.run();
    assert!(two.server().respond(0, &ok(Some(5)), false));
    assert!(two.server().send(0, [Body::Real(Bytes::from_static(b"hello"))], true));
    two.server().go_away();
    two.run();
    let logs = [two.ends[0].logged(), two.ends[1].logged()];
    let turned = |logged: &Logged| {
        let mut other = logged.clone();
        match &mut other {
            Logged::Stream { is_ours, .. }
            | Logged::Settings { is_ours, .. }
            | Logged::Frame { is_ours, .. } => {
                *is_ours = !*is_ours;
            }
        }
        other
    };
    let ours = |logged: &&Logged| {
        matches!(
            logged,
            Logged::Stream { is_ours: true, .. }
                | Logged::Settings { is_ours: true, .. }
                | Logged::Frame { is_ours: true, .. }
        )
    };
    for (log, other) in [(&logs[0], &logs[1]), (&logs[1], &logs[0])] {
        for made in log.iter().filter(ours) {
            assert!(other.contains(&turned(made)), "{made:?} in {other:?}");
        }
        assert_eq!(log.iter().filter(ours).count(), other.iter().filter(|logged| !ours(logged)).count());
    }
    let frames = |log: &[Logged]| -> Vec<String> {
        let made = log.iter().filter(ours).map(|logged| logged.event());
        made.map(|(name, data)| format!("{name} {}", data["frame"]["frame_type"].as_str().unwrap_or("-")))
            .collect()
    };
    assert_eq!(
        frames(&logs[0])[..3],
        ["http3:stream_type_set -", "http3:parameters_set -", "http3:frame_created settings"]
    );
    let asked = "http3:frame_created headers".to_owned();
    assert!(frames(&logs[0]).contains(&asked), "{:?}", frames(&logs[0]));
    for wanted in ["http3:frame_created headers", "http3:frame_created data", "http3:frame_created goaway"] {
        assert!(frames(&logs[1]).iter().any(|made| made == wanted), "{:?}", frames(&logs[1]));
    }
    let head = logs[1].iter().find_map(|logged| {
        Some(logged.event().1).filter(|d| {
            d["frame"]["frame_type"] == "headers" && !matches!(logged, Logged::Frame { is_ours: false, .. })
        })
    });
    assert_eq!(head.unwrap()["frame"]["headers"][0].to_string(), r#"{"name":":status","value":"200"}"#);
    // A client that changes its mind.
    feed(two.server(), 2, &frame::emit(kind::PRIORITY_UPDATE, b"\0u=1"));
    let (name, data) = two.server().logged()[0].event();
    assert_eq!((name, &data["frame"]["frame_type"]), ("http3:frame_parsed", &"priority_update".into()));
    // Who does not ask gets nothing.
    let mut silent = begun(Connection::client(Options::default()), CLIENT);
    assert!(silent.request(0, &get("/a"), Priority::default(), true));
    assert!(silent.logged().is_empty());
}
