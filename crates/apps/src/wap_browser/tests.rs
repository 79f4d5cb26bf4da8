use std::collections::BTreeMap;

use airloom_base::random::Stream;
use airloom_base::record::{FlowRecord, Record};
use airloom_base::service::Datagram;
use airloom_base::{Body, CloseReason, Cx, Instant, SocketEvent, SocketId, Sockets};
use airloom_transports::wsp::connectionless;
use airloom_transports::wsp::headers::{Pages, Version, decode, decode_content_type, encoding_version};
use airloom_transports::wsp::server::{self, Server};
use airloom_transports::wsp::status::Reason;
use airloom_transports::wsp::wire::{Address, Pdu};
use airloom_transports::wtp::wire::{Kind, split};
use bytes::Bytes;

use super::*;
use crate::testing::{CLIENT, Pair, SERVER, numbers, pages, paths, stream};

/// A gateway that knows what `/<size>` holds, and nothing else.
struct Gateway {
    wsp: Server,
    /// Addresses that were asked for.
    asked: Vec<String>,
    headers: Vec<Bytes>,
    /// What was sent here.
    posted: Vec<Bytes>,
    /// The headers that grant a session.
    greeting: Bytes,
    /// Sessions that are refused before one is granted.
    refuses: u32,
    /// Ends the session after so many requests.
    ends_after: Option<usize>,
    /// Units without a session that are not answered.
    deaf: u32,
}

impl Gateway {
    fn new() -> Gateway {
        let wsp = Server::new(server::Config::default(), (1, 2));
        let (asked, headers, posted) = (Vec::new(), Vec::new(), Vec::new());
        Gateway { wsp, asked, headers, posted, greeting: Bytes::new(), refuses: 0, ends_after: None, deaf: 0 }
    }

    fn content(&mut self, uri: &Bytes) -> (u8, Bytes) {
        let uri = String::from_utf8_lossy(uri).into_owned();
        let size = uri.rsplit('/').next().and_then(|n| n.parse::<usize>().ok());
        self.asked.push(uri);
        size.map_or((0x44, Bytes::new()), |n| (0x20, vec![b'x'; n].into()))
    }

    fn advance(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(event) = self.wsp.poll_event() {
            match event {
                server::Event::Connect { session, .. } if self.refuses > 0 => {
                    self.refuses -= 1;
                    self.wsp.refuse(cx.now, session, Reason::Congestion);
                }
                server::Event::Connect { session, headers, .. } => {
                    self.headers.push(headers);
                    self.wsp.accept(cx.now, session, self.greeting.clone());
                }
                server::Event::Request { session, request, uri, headers, data, .. } => {
                    self.headers.push(headers);
                    self.posted.extend(Some(data).filter(|data| !data.is_empty()));
                    let (status, body) = self.content(&uri);
                    if self.ends_after == Some(self.asked.len()) {
                        self.wsp.disconnect(cx.now, session);
                    } else {
                        self.wsp.reply(cx.now, request, status, Bytes::from_static(&[0x83]), body);
                    }
                }
                _ => {}
            }
        }
        while let Some((remote, datagram)) = self.wsp.poll_transmit() {
            net.send_datagram(cx, Datagram::Udp { local_port: 9201, remote, body: Body::Real(datagram) });
        }
    }
}

impl App for Gateway {
    fn datagram_ports(&self) -> Vec<u16> {
        vec![9200, 9201]
    }
    fn handle_event(&mut self, _: &mut Cx, _: &mut dyn Sockets, _: SocketId, _: SocketEvent) {}
    fn handle_datagram(&mut self, cx: &mut Cx, net: &mut dyn Sockets, datagram: Datagram) {
        let Datagram::Udp { local_port, remote, body } = datagram else { return };
        if local_port == 9201 {
            self.wsp.handle_datagram(cx.now, remote, &body.to_bytes());
            return self.advance(cx, net);
        }
        let (tid, uri, headers) = match connectionless::parse(&body.to_bytes()) {
            Ok((tid, Pdu::Get { uri, headers, .. })) => (tid, uri, headers),
            Ok((tid, Pdu::Post { uri, headers, data, .. })) => {
                self.posted.push(data);
                (tid, uri, headers)
            }
            _ => return,
        };
        self.headers.push(headers);
        let (status, data) = self.content(&uri);
        if self.deaf > 0 {
            self.deaf -= 1;
            return;
        }
        let reply = Pdu::Reply { status, headers: Bytes::from_static(&[0x83]), data };
        let body = Body::Real(connectionless::emit(tid, &reply));
        net.send_datagram(cx, Datagram::Udp { local_port, remote, body });
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.wsp.poll_timeout()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.wsp.handle_timeout(cx.now);
        self.advance(cx, net);
    }
}

fn browser(config: Config) -> Browser {
    let places = Whereabouts { gateway: SERVER, origin: "origin", host: "mobile", local: Some(CLIENT) };
    Browser::new(config, &places, stream).expect("a valid configuration")
}

fn pair(config: Config) -> Pair<Browser, Gateway> {
    Pair::new(browser(config), Gateway::new())
}

fn flows(pair: &Pair<Browser, Gateway>) -> Vec<FlowRecord> {
    let flow = |record: &Record| if let Record::Flow(flow) = record { Some(flow.clone()) } else { None };
    pair.records().facts.iter().filter_map(flow).collect()
}

const TRIP: f64 = 0.02;

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn a_page_is_one_round_trip_and_the_session_another_that_is_not_the_pages() {
    let pages_of = || vec![paths(&["/1000"]), paths(&["/500", "/20"])];
    let open = pair(Config { pages: pages_of(), think: Duration::from_secs(3), ..Config::default() }).ran();
    let summary = open.summary();
    assert_eq!(numbers(&summary, &["pages", "objects", "failed", "bytes"]), [2.0, 3.0, 0.0, 1520.0]);
    assert_eq!(numbers(&summary, &["sessions", "retransmissions", "group_waits"]), [1.0, 0.0, 0.0]);
    assert!(is_near(summary["connect_mean_s"], TRIP));
    assert!(is_near(summary["page_load_min_s"], TRIP) && is_near(summary["page_load_max_s"], 2.0 * TRIP));
    // Session, page, pause, page.
    assert!(is_near(summary["completion_s"], 3.0 * TRIP + 3.0));
    let records = pages(&open);
    assert_eq!(records[0].url, "http://origin/1000");
    assert_eq!(records[0].start, Instant::ZERO + Duration::from_millis(20));
    assert_eq!(
        records.iter().map(|p| (p.objects, p.bytes, p.connections)).collect::<Vec<_>>(),
        [(1, 1000, 0), (2, 520, 0)]
    );
    let flows = flows(&open);
    assert_eq!(flows.len(), 1);
    assert_eq!((flows[0].local.as_str(), flows[0].remote.as_str()), ("10.0.0.1:49200", "10.0.0.2:9201"));
    assert_eq!((flows[0].facts.app_received, flows[0].facts.end), (1520, Some(CloseReason::Finished)));
    // Connect, three requests, their four acknowledgements, Disconnect.
    assert_eq!(flows[0].facts.segments, 9);

    let each = pair(Config { pages: pages_of(), session: SessionUse::EachPage, ..Config::default() }).ran();
    assert_eq!(numbers(&each.summary(), &["pages", "sessions", "failed"]), [2.0, 2.0, 0.0]);
    assert!(is_near(each.summary()["page_load_min_s"], 2.0 * TRIP));
    assert_eq!(pages(&each).iter().map(|p| p.connections).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn as_many_requests_wait_as_the_session_agreed_on() {
    let load = |method_mor| {
        let pair = pair(Config { objects: paths(&["/10"; 6]), method_mor, ..Config::default() }).ran();
        assert_eq!(pair.summary()["objects"], 6.0);
        pair.summary()["page_load_s"]
    };
    assert!(is_near(load(1), 6.0 * TRIP) && is_near(load(2), 3.0 * TRIP) && is_near(load(6), TRIP));
    // The gateway grants eight at most.
    let many = pair(Config { objects: paths(&["/10"; 24]), method_mor: 100, ..Config::default() }).ran();
    assert!(is_near(many.summary()["page_load_s"], 3.0 * TRIP));
}

#[test]
fn large_replies_come_in_groups_and_each_costs_a_round_trip() {
    let three = pair(Config { objects: paths(&["/100000"]), ..Config::default() }).ran();
    let summary = three.summary();
    // 72 packets of 1400 octets in groups of three: 24 groups, of which the last one ends the message.
    assert_eq!(numbers(&summary, &["objects", "bytes", "group_waits"]), [1.0, 1e5, 23.0]);
    assert!(is_near(summary["page_load_s"], 24.0 * TRIP));
    // As many octets as we say we take.
    let wtp = wtp::Config { maximum_group: Some(Octets(32_000)), ..wtp::Config::default() };
    let larger = pair(Config { objects: paths(&["/100000"]), wtp, ..Config::default() }).ran();
    assert!(is_near(larger.summary()["page_load_s"], 4.0 * TRIP), "{}", larger.summary()["page_load_s"]);
}

#[test]
fn everything_arrives_once_through_loss_duplication_and_reordering() {
    for seed in 0..30 {
        let config = Config {
            pages: vec![paths(&["/30000", "/0", "/1400"]), paths(&["/20000"])],
            method_mor: 3,
            acknowledging: [Acknowledging::User, Acknowledging::AtOnce, Acknowledging::Delayed]
                [seed as usize % 3],
            ..Config::default()
        };
        let mut pair = pair(config);
        let mut stream = Stream::new(seed, "datagrams");
        pair.net.fate = Box::new(move |_| {
            let copies = if stream.chance(0.05) { 0 } else { 1 + u32::from(stream.chance(0.05)) };
            (copies, if stream.chance(0.05) { Duration::from_millis(30) } else { Duration::ZERO })
        });
        pair.run();
        let summary = pair.summary();
        assert_eq!(numbers(&summary, &["objects", "failed", "bytes"]), [4.0, 0.0, 51_400.0], "seed {seed}");
        assert!(pair.a.is_done() && pair.a.poll_timeout().is_none());
    }
}

#[test]
fn without_a_session_requests_are_said_again() {
    let config = Config { mode: Mode::Connectionless, objects: paths(&["/900", "/30"]), ..Config::default() };
    let mut pair = pair(config);
    pair.b.deaf = 2;
    pair.run();
    let summary = pair.summary();
    assert_eq!(numbers(&summary, &["objects", "failed", "sessions"]), [2.0, 0.0, 0.0]);
    assert_eq!(
        numbers(&summary, &["datagrams_sent", "datagrams_received", "retransmissions"]),
        [4.0, 2.0, 2.0]
    );
    assert!(is_near(summary["page_load_s"], 10.0 + 2.0 * TRIP));
    // Its headers are those of every request.
    assert!(pair.b.headers.iter().all(|h| h.starts_with(&[0x80])), "Accept comes first");
    assert_eq!(flows(&pair).len(), 1);
}

#[test]
fn headers_are_said_once_in_a_session() {
    let config = Config {
        objects: paths(&["/1", "/2"]),
        headers_size: Some(Octets(185)),
        request_headers: BTreeMap::from([("Accept-Language".to_owned(), "en".to_owned())]),
        ..Config::default()
    };
    let pair = pair(config).ran();
    assert_eq!(pair.b.headers.iter().map(Bytes::len).collect::<Vec<_>>(), [185, 2, 2]);
    assert_eq!(pair.b.headers[1].as_ref(), [0x83, 0x99]);
    assert_eq!(pair.b.asked, ["http://origin/1", "http://origin/2"]);
}

#[test]
fn a_gateway_says_which_numbers_of_headers_it_knows() {
    let config = || Config {
        objects: paths(&["/1"]),
        request_headers: BTreeMap::from([("Cache-Control".to_owned(), "no-cache".to_owned())]),
        ..Config::default()
    };
    let silent = pair(config()).ran();
    assert_eq!(silent.b.headers[1].as_ref(), [0x88, 0x80]);
    let said = encoding_version(&silent.b.headers[0]);
    assert_eq!(said, Some(Version::V1_3), "the browser says what it knows");
    let mut newer = pair(config());
    newer.b.greeting = Bytes::from_static(b"Encoding-Version\x001.4\x00");
    newer.run();
    assert_eq!(newer.b.headers[1].as_ref(), [0xC7, 0x80]);
}

#[test]
fn forms_are_posted_and_never_twice() {
    let form = |octets| {
        Object::Detailed(Detailed { path: "/10".into(), post: Some(Octets(octets)), ..Detailed::default() })
    };
    for mode in [Mode::Session, Mode::Connectionless] {
        let octets = if mode == Mode::Session { 20_000 } else { 700 };
        let pair = pair(Config { mode, objects: vec![form(octets)], ..Config::default() }).ran();
        assert_eq!(numbers(&pair.summary(), &["objects", "failed", "bytes"]), [1.0, 0.0, 10.0]);
        assert_eq!(pair.b.posted.iter().map(Bytes::len).collect::<Vec<_>>(), [octets as usize]);
        let headers = pair.b.headers.last().unwrap();
        let (content_type, len) = decode_content_type(headers).unwrap();
        assert_eq!(content_type, "application/x-www-form-urlencoded");
        let said = decode(&headers[len..], &Pages::new()).unwrap();
        let length = said.iter().find(|header| header.name == "Content-Length").and_then(|h| h.value.text());
        assert_eq!(length, Some(octets.to_string().as_str()));
    }
    let mut ended = pair(Config { objects: vec![form(30), Object::Path("/2".into())], ..Config::default() });
    ended.b.ends_after = Some(1);
    ended.run();
    assert_eq!(numbers(&ended.summary(), &["objects", "failed", "asked_again"]), [1.0, 1.0, 0.0]);
}

#[test]
fn failures_are_tried_again_and_then_told() {
    // Neither 404 nor another size than the one that was said is what was asked for.
    let sized = |size| {
        Object::Detailed(Detailed { path: "/100".into(), size: Some(Octets(size)), ..Detailed::default() })
    };
    let mut wrong = pair(Config {
        objects: vec![paths(&["/none"])[0].clone(), sized(100), sized(101)],
        ..Config::default()
    });
    wrong.run();
    assert_eq!(numbers(&wrong.summary(), &["objects", "failed", "pages_failed"]), [1.0, 2.0, 1.0]);

    let once = || Config { objects: paths(&["/1", "/2", "/3"]), ..Config::default() };
    let mut refused = pair(once());
    refused.b.refuses = 1;
    refused.run();
    assert_eq!(numbers(&refused.summary(), &["sessions", "sessions_failed", "objects"]), [2.0, 1.0, 3.0]);

    let mut never = pair(Config { repeat: 2, ..once() });
    never.b.refuses = u32::MAX;
    never.run();
    let names = ["sessions_failed", "objects", "failed", "pages_failed"];
    assert_eq!(numbers(&never.summary(), &names), [4.0, 0.0, 6.0, 2.0]);
    assert!(never.a.is_done());

    // The session ends under the second request.
    let mut ended = pair(once());
    ended.b.ends_after = Some(2);
    ended.run();
    assert_eq!(
        numbers(&ended.summary(), &["sessions", "objects", "asked_again", "failed"]),
        [2.0, 3.0, 1.0, 0.0]
    );
    assert_eq!(
        flows(&ended).iter().map(|f| f.facts.end).collect::<Vec<_>>(),
        [Some(CloseReason::Reset), Some(CloseReason::Finished)]
    );
}

#[test]
fn nobody_at_the_other_end_is_a_failed_page_and_an_end() {
    for (mode, timeout) in [(Mode::Session, 300), (Mode::Session, 7), (Mode::Connectionless, 7)] {
        let timeout = Duration::from_secs(timeout);
        let mut pair = pair(Config { mode, timeout, objects: paths(&["/1", "/2"]), ..Config::default() });
        pair.net.fate = Box::new(|_| (0, Duration::ZERO));
        pair.run();
        assert_eq!(numbers(&pair.summary(), &["objects", "failed", "pages_failed"]), [0.0, 2.0, 1.0]);
        assert!(pair.a.is_done() && pair.a.poll_timeout().is_none(), "{mode:?}");
    }
}

#[test]
fn another_gateway_is_asked_where_one_says_so() {
    /// Sends everybody to the gateway's other port.
    struct Elsewhere(Gateway);
    impl App for Elsewhere {
        fn datagram_ports(&self) -> Vec<u16> {
            vec![9201, 9301]
        }
        fn handle_event(&mut self, _: &mut Cx, _: &mut dyn Sockets, _: SocketId, _: SocketEvent) {}
        fn handle_datagram(&mut self, cx: &mut Cx, net: &mut dyn Sockets, datagram: Datagram) {
            let Datagram::Udp { local_port: 9301, remote, body } = datagram else {
                return self.0.handle_datagram(cx, net, datagram);
            };
            let Some(Ok(pdu)) = split(&body.to_bytes()).into_iter().next() else { return };
            if matches!(pdu.kind, Kind::Invoke { .. }) {
                let octets = Bytes::from_static(&[10, 0, 0, 2]);
                let addresses = vec![Address { bearer: None, port: Some(9201), octets }];
                let redirect = Pdu::Redirect { permanent: true, reuse_security: false, addresses };
                // A Result in one packet that ends its message.
                let tid = (pdu.tid | 0x8000).to_be_bytes();
                let body = [&[0x12, tid[0], tid[1]], redirect.to_bytes().as_ref()].concat();
                net.send_datagram(
                    cx,
                    Datagram::Udp { local_port: 9301, remote, body: Body::Real(body.into()) },
                );
            }
        }
        fn poll_timeout(&self) -> Option<Instant> {
            self.0.poll_timeout()
        }
        fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
            self.0.handle_timeout(cx, net);
        }
    }
    let config = Config { gateway_port: Some(9301), objects: paths(&["/5"]), ..Config::default() };
    let pair = Pair::new(browser(config), Elsewhere(Gateway::new())).ran();
    assert_eq!(numbers(&pair.summary(), &["objects", "sessions", "failed"]), [1.0, 1.0, 0.0]);
    assert!(is_near(pair.summary()["connect_mean_s"], 2.0 * TRIP));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let path = |config| {
        let places = Whereabouts { gateway: SERVER, origin: "o", host: "m", local: None };
        Browser::new(config, &places, stream).err().map(|error| error.path.join("."))
    };
    let usual = Config::default;
    assert_eq!(path(usual()), None);
    assert_eq!(path(Config { timeout: Duration::ZERO, ..usual() }).as_deref(), Some("timeout"));
    assert_eq!(path(Config { method_mor: 0, ..usual() }).as_deref(), Some("method_mor"));
    assert_eq!(path(Config { repeat: 0, ..usual() }).as_deref(), Some("repeat"));
    let wtp = wtp::Config { group_packets: 0, ..wtp::Config::default() };
    assert_eq!(path(Config { wtp, ..usual() }).as_deref(), Some("wtp.group_packets"));
    let headers = BTreeMap::from([("no name".to_owned(), String::new())]);
    assert_eq!(path(Config { headers, ..usual() }).as_deref(), Some("headers"));
}
