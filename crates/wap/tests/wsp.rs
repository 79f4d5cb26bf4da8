//! A client and a server of sessions with a link between them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airloom_base::{Duration, Instant};
use airloom_wap::wsp::capabilities::{Agreed, Capability, option};
use airloom_wap::wsp::client::{self, Client};
use airloom_wap::wsp::server::{self, Server};
use airloom_wap::wsp::status::Reason;
use airloom_wap::wsp::wire::{Method, Pdu};
use airloom_wap::wtp::wire::{Class, Kind, Trailer, split};
use airloom_wap::wtp::{self, Transaction};
use bytes::Bytes;
use proptest::prelude::*;

const LATENCY: Duration = Duration::from_millis(50);
const ACCEPT_ALL: Bytes = Bytes::from_static(&[0x80, 0x80]);
const URI: Bytes = Bytes::from_static(b"http://origin/deck");
const TEXT: Bytes = Bytes::from_static(&[0x83]);

fn at_server() -> SocketAddr {
    "10.0.0.2:9201".parse().unwrap()
}

fn body(len: usize) -> Bytes {
    (0..len).map(|n| (n % 253) as u8).collect::<Vec<u8>>().into()
}

struct Pair {
    now: Instant,
    client: Client,
    /// Where the client is.
    at: SocketAddr,
    server: Server,
    wire: BTreeMap<(Instant, u64), (bool, SocketAddr, Bytes)>,
    sent: u64,
    to_client: Vec<client::Event>,
    to_server: Vec<server::Event>,
    lost: Box<dyn Fn(u64) -> bool>,
    /// The server's user accepts sessions.
    accepts: bool,
    /// It answers requests with so many octets.
    answers: Option<usize>,
}

impl Pair {
    fn new() -> Pair {
        Pair::with(server::Config::default())
    }

    fn with(config: server::Config) -> Pair {
        Pair {
            now: Instant::ZERO,
            client: Client::new(wtp::Config::default(), at_server(), 1),
            at: "10.0.0.1:49200".parse().unwrap(),
            server: Server::new(config, (1, 2)),
            wire: BTreeMap::new(),
            sent: 0,
            to_client: Vec::new(),
            to_server: Vec::new(),
            lost: Box::new(|_| false),
            accepts: true,
            answers: Some(100),
        }
    }

    /// With an open session on all that the server offers.
    fn open() -> Pair {
        let mut pair = Pair::new();
        pair.connect();
        pair
    }

    fn connect(&mut self) {
        self.client.connect(self.now, wishes(), ACCEPT_ALL);
        self.run(1);
        assert_eq!(self.to_client, [client::Event::Connected(Bytes::new())]);
        self.to_client.clear();
        self.to_server.clear();
    }

    fn settle(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match &event {
                server::Event::Connect { session, .. } if self.accepts => {
                    self.server.accept(self.now, *session, Bytes::new());
                }
                server::Event::Request { request, .. } => {
                    if let Some(len) = self.answers {
                        self.server.reply(self.now, *request, 0x20, TEXT, body(len));
                    }
                }
                _ => {}
            }
            self.to_server.push(event);
        }
        while let Some(event) = self.client.poll_event() {
            self.to_client.push(event);
        }
        while let Some((_, datagram)) = self.client.poll_transmit() {
            self.send(true, self.at, datagram);
        }
        while let Some((to, datagram)) = self.server.poll_transmit() {
            self.send(false, to, datagram);
        }
    }

    fn send(&mut self, to_server: bool, address: SocketAddr, datagram: Bytes) {
        if !(self.lost)(self.sent) {
            self.wire.insert((self.now + LATENCY, self.sent), (to_server, address, datagram));
        }
        self.sent += 1;
    }

    /// Lets everything happen that happens within `seconds`.
    fn run(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        self.settle();
        loop {
            let arrival = self.wire.first_key_value().map(|(k, _)| k.0);
            let next = [arrival, self.client.poll_timeout(), self.server.poll_timeout()];
            let Some(next) = next.into_iter().flatten().min().filter(|at| *at <= end) else { break };
            self.now = next;
            if arrival == Some(next) {
                let Some((_, (to_server, address, datagram))) = self.wire.pop_first() else { break };
                if to_server {
                    self.server.handle_datagram(next, address, &datagram);
                } else if address == self.at {
                    self.client.handle_datagram(next, at_server(), &datagram);
                }
            } else {
                self.client.handle_timeout(next);
                self.server.handle_timeout(next);
            }
            self.settle();
        }
        self.now = end;
    }

    /// The session of the client, where it was opened.
    fn session(&self) -> server::SessionId {
        self.server.session_of(self.at).unwrap()
    }

    fn get(&mut self) -> Option<Transaction> {
        self.client.request(self.now, Method::Get, URI, ACCEPT_ALL, Bytes::new())
    }
}

fn wishes() -> Vec<Capability> {
    vec![
        Capability::ClientSduSize(0),
        Capability::ServerSduSize(0),
        Capability::ProtocolOptions(0xE0),
        Capability::MethodMor(2),
        Capability::PushMor(1),
    ]
}

#[test]
fn a_session_is_opened_used_and_closed() {
    let mut pair = Pair::open();
    assert_eq!((pair.client.agreed().method_mor, pair.client.agreed().options), (2, 0xE0));
    assert_eq!(pair.server.state(pair.session()), Some(server::State::Connected));
    let request = pair.get().unwrap();
    pair.run(1);
    let reply = client::Event::Reply { request, status: 0x20, headers: TEXT, data: body(100) };
    assert_eq!(pair.to_client, [reply]);
    let [server::Event::Request { method, uri, headers, .. }, server::Event::Replied(_)] =
        &pair.to_server[..]
    else {
        panic!("{:?}", pair.to_server)
    };
    assert_eq!((*method, uri, headers), (Method::Get, &URI, &ACCEPT_ALL));
    let session = pair.session();
    pair.client.disconnect(pair.now);
    pair.run(1);
    assert_eq!(pair.to_server[2..], [server::Event::Disconnected(session, Reason::Disconnect)]);
    assert_eq!((pair.server.sessions(), pair.client.state()), (0, client::State::Null));
}

#[test]
fn posts_carry_their_body_both_ways_in_segments() {
    let mut pair = Pair::open();
    pair.answers = Some(30_000);
    let sent = pair.client.request(pair.now, Method::Post, URI, TEXT, body(20_000));
    assert!(sent.is_some());
    pair.run(5);
    let Some(server::Event::Request { method, data, .. }) = pair.to_server.first() else {
        panic!("a request")
    };
    assert_eq!((*method, data), (Method::Post, &body(20_000)));
    let Some(client::Event::Reply { data, .. }) = pair.to_client.first() else { panic!("a reply") };
    assert_eq!(*data, body(30_000));
}

#[test]
fn no_more_requests_than_agreed_are_outstanding() {
    let mut pair = Pair::open();
    pair.answers = None;
    assert!(pair.get().is_some() && pair.get().is_some());
    assert_eq!(pair.get(), None);
    pair.run(1);
    assert_eq!(pair.to_server.len(), 2);
}

#[test]
fn a_lost_acknowledgement_does_not_refuse_the_next_request() {
    let mut pair = Pair::new();
    let connect = Pdu::Connect { version: 0x10, capabilities: Vec::new(), headers: Bytes::new() };
    assert_eq!(raw(&mut pair, 1, &connect), []);
    pair.server.accept(pair.now, 1, Bytes::new());
    let get = Pdu::Get { method: Method::Get, uri: URI, headers: Bytes::new() };
    // One request at a time was agreed on, and no reply is ever acknowledged.
    for tid in 2..11 {
        assert!(!raw(&mut pair, tid, &get).contains(&aborted(Reason::MorExceeded)[0]), "{tid}");
        let request = std::iter::from_fn(|| pair.server.poll_event()).find_map(|event| match event {
            server::Event::Request { request, .. } => Some(request),
            _ => None,
        });
        assert!(pair.server.reply(
            pair.now,
            request.unwrap(),
            0x20,
            Bytes::from_static(&[0x83]),
            Bytes::new()
        ));
        assert!(!pair.server.reply(pair.now, request.unwrap(), 0x20, Bytes::new(), Bytes::new()));
    }
    assert!(raw(&mut pair, 11, &get).contains(&aborted(Reason::MorExceeded)[0]));
}

#[test]
fn the_end_of_a_session_does_not_end_the_next_one() {
    let mut pair = Pair::open();
    pair.client.connect(pair.now, Vec::new(), Bytes::new());
    // It was under way when the client asked for another session.
    let late = invoke(77, Class::Unreliable, &Pdu::Disconnect { session: pair.session() });
    pair.client.handle_datagram(pair.now, at_server(), &late);
    assert_eq!(pair.client.state(), client::State::Connecting);
}

/// A client that keeps to nothing: PDUs as they are.
fn raw(pair: &mut Pair, tid: u16, pdu: &Pdu) -> Vec<Kind> {
    let from = "10.0.0.9:1000".parse().unwrap();
    pair.server.handle_datagram(pair.now, from, &invoke(tid, Class::WithResult, pdu));
    let mut answers = Vec::new();
    while let Some((_, datagram)) = pair.server.poll_transmit() {
        answers.extend(split(&datagram).into_iter().map(|p| p.unwrap().kind));
    }
    answers
}

/// A message in one packet.
fn invoke(tid: u16, class: Class, pdu: &Pdu) -> Bytes {
    let (trailer, user_ack, data) = (Trailer::Message, class == Class::WithResult, pdu.to_bytes());
    let kind = Kind::Invoke { trailer, version: 0, tid_new: false, user_ack, class, data };
    wtp::wire::Pdu::new(tid, false, kind).to_bytes()
}

fn aborted(reason: Reason) -> Vec<Kind> {
    vec![Kind::Abort(wtp::wire::Abort::User(reason.code()))]
}

#[test]
fn a_server_enforces_what_was_agreed_on_and_needs_a_session() {
    let mut pair = Pair::new();
    let get = Pdu::Get { method: Method::Get, uri: URI, headers: Bytes::new() };
    assert_eq!(raw(&mut pair, 1, &get), aborted(Reason::Disconnect));
    let resume = Pdu::Resume { session: 77, capabilities: Vec::new(), headers: Bytes::new() };
    // As Kannel answers.
    assert_eq!(raw(&mut pair, 2, &resume), aborted(Reason::Disconnect));
    let connect = |version| Pdu::Connect { version, capabilities: Vec::new(), headers: Bytes::new() };
    assert_eq!(raw(&mut pair, 3, &connect(0x20)), aborted(Reason::ConnectError));
    assert_eq!(raw(&mut pair, 4, &connect(0x10)), []);
    let session = pair.server.session_of("10.0.0.9:1000".parse().unwrap()).unwrap();
    pair.server.accept(pair.now, session, Bytes::new());
    while pair.server.poll_transmit().is_some() {}
    // One request at a time is the default, and 1,400 octets.
    let long = Pdu::Get { method: Method::Get, uri: body(1_500), headers: Bytes::new() };
    assert_eq!(raw(&mut pair, 5, &long), aborted(Reason::MruExceeded));
    assert_eq!(raw(&mut pair, 6, &get), []);
    assert_eq!(raw(&mut pair, 7, &get), aborted(Reason::MorExceeded));
    assert_eq!(raw(&mut pair, 8, &Pdu::Disconnect { session }), aborted(Reason::ProtocolError));
}

#[test]
fn a_reply_larger_than_the_client_takes_is_an_abort() {
    let mut pair = Pair::new();
    pair.client.connect(pair.now, Vec::new(), ACCEPT_ALL);
    pair.run(1);
    pair.answers = Some(2_000);
    let request = pair.get().unwrap();
    pair.run(1);
    assert_eq!(pair.to_client[1..], [client::Event::RequestAborted(request, Reason::MruExceeded)]);
}

#[test]
fn a_session_that_is_refused_never_was() {
    let mut pair = Pair::new();
    pair.accepts = false;
    pair.client.connect(pair.now, Vec::new(), Bytes::new());
    pair.run(1);
    pair.server.refuse(pair.now, pair.session(), Reason::UserRefused);
    pair.run(1);
    assert_eq!(pair.to_client, [client::Event::Disconnected(Reason::UserRefused)]);
    assert_eq!(pair.server.sessions(), 0);
}

#[test]
fn there_is_room_for_so_many_sessions_and_a_client_has_one() {
    let mut pair = Pair::with(server::Config { max_sessions: 1, ..server::Config::default() });
    let [first, _] = [0; 2].map(|_| {
        pair.client.connect(pair.now, Vec::new(), Bytes::new());
        pair.run(1);
        pair.session()
    });
    assert_eq!(pair.server.sessions(), 1);
    assert!(pair.to_server.contains(&server::Event::Disconnected(first, Reason::Disconnect)));
    // Nobody has shown that it is there: the older one goes, and is told so.
    let second = pair.session();
    let connect = Pdu::Connect { version: 0x10, capabilities: Vec::new(), headers: Bytes::new() };
    let disconnect = Pdu::Disconnect { session: second }.to_bytes();
    let [Kind::Invoke { data, .. }] = &raw(&mut pair, 1, &connect)[..] else {
        panic!("the older one is told")
    };
    assert_eq!((data, pair.server.sessions()), (&disconnect, 1));
    assert_eq!(pair.server.state(second), None);
}

#[test]
fn a_session_rests_and_goes_on_from_another_port_or_where_allowed_another_address() {
    for (resume_from_anywhere, at) in [(false, "10.0.0.1:50000"), (true, "10.0.3.7:50000")] {
        rests_and_goes_on(server::Config { resume_from_anywhere, ..server::Config::default() }, at);
    }
}

fn rests_and_goes_on(config: server::Config, at: &str) {
    let mut pair = Pair::with(config);
    pair.connect();
    let session = pair.session();
    pair.answers = None;
    let outstanding = pair.get().unwrap();
    pair.run(1);
    pair.client.suspend(pair.now);
    pair.run(1);
    assert_eq!(pair.to_client, [client::Event::RequestAborted(outstanding, Reason::Suspend)]);
    assert_eq!(pair.server.state(session), Some(server::State::Suspended));
    assert_eq!(pair.get(), None);
    pair.at = at.parse().unwrap();
    pair.client.resume(pair.now);
    pair.run(1);
    assert_eq!(pair.to_client[1..], [client::Event::Resumed]);
    assert_eq!(pair.server.state(session), Some(server::State::Connected));
    pair.answers = Some(50);
    let request = pair.get().unwrap();
    pair.run(1);
    assert!(matches!(&pair.to_client[2..], [client::Event::Reply { request: r, .. }] if *r == request));
    assert_eq!(pair.server.agreed(session).map(|a| a.method_mor), Some(2));
}

#[test]
fn nobody_elsewhere_takes_over_a_session_even_by_its_name() {
    let mut pair = Pair::open();
    pair.answers = None;
    let request = pair.get().unwrap();
    pair.run(1);
    let session = pair.session();
    let resume = |session| Pdu::Resume { session, capabilities: Vec::new(), headers: Bytes::new() };
    // Told the same as of a session that there is not.
    assert_eq!(raw(&mut pair, 1, &resume(session)), aborted(Reason::Disconnect));
    assert_eq!(raw(&mut pair, 2, &resume(!session)), aborted(Reason::Disconnect));
    // The request that was outstanding still is.
    assert_eq!((pair.session(), pair.server.state(session)), (session, Some(server::State::Connected)));
    pair.server.reply(
        pair.now,
        Transaction { role: wtp::Role::Responder, peer: pair.at, ..request },
        0x20,
        TEXT,
        body(9),
    );
    pair.run(1);
    assert!(matches!(&pair.to_client[..], [client::Event::Reply { request: r, .. }] if *r == request));
}

#[test]
fn names_of_sessions_tell_nothing_of_each_other() {
    let names = |key| {
        let mut server = Server::new(server::Config::default(), key);
        let connect = Pdu::Connect { version: 0x10, capabilities: Vec::new(), headers: Bytes::new() };
        let peers: Vec<SocketAddr> = (1..=500).map(|port| ([10, 0, 0, 9], port).into()).collect();
        for peer in &peers {
            server.handle_datagram(Instant::ZERO, *peer, &invoke(1, Class::WithResult, &connect));
        }
        peers.iter().map(|peer| server.session_of(*peer).unwrap()).collect::<Vec<_>>()
    };
    let all = names((1, 2));
    assert_eq!(all, names((1, 2)), "the same key, the same names");
    assert_ne!(all[0], names((1, 3))[0]);
    // 28 bits and more, each bit set about as often as not, none near the one before.
    assert!(all.iter().all(|name| name.leading_zeros() < 4));
    for bit in 0..28 {
        let set = all.iter().filter(|name| *name >> bit & 1 == 1).count();
        assert!((190..310).contains(&set), "bit {bit}: {set}");
    }
    assert!(all.windows(2).all(|two| two[0].abs_diff(two[1]) > 1_000));
}

#[test]
fn without_the_option_a_suspension_is_the_end() {
    let mut pair = Pair::new();
    pair.client.connect(pair.now, Vec::new(), ACCEPT_ALL);
    pair.run(1);
    pair.client.suspend(pair.now);
    assert_eq!(pair.client.state(), client::State::Connected);
    // One that suspends all the same.
    let suspend = invoke(50, Class::Unreliable, &Pdu::Suspend { session: pair.session() });
    pair.server.handle_datagram(pair.now, pair.at, &suspend);
    pair.run(1);
    assert_eq!(pair.server.sessions(), 0);
}

#[test]
fn pushes_come_with_and_without_confirmation() {
    let mut pair = Pair::open();
    let session = pair.session();
    assert!(pair.server.push(pair.now, session, false, TEXT, body(10)).is_some());
    let confirmed = pair.server.push(pair.now, session, true, TEXT, body(20)).unwrap();
    // One at a time was agreed on.
    assert_eq!(pair.server.push(pair.now, session, true, TEXT, body(30)), None);
    pair.run(1);
    let [client::Event::Push { push: None, .. }, client::Event::Push { push: Some(push), data, .. }] =
        &pair.to_client[..]
    else {
        panic!("{:?}", pair.to_client)
    };
    assert_eq!(*data, body(20));
    let push = *push;
    assert_eq!(pair.to_server, []);
    pair.client.confirm(pair.now, push);
    pair.run(1);
    assert_eq!(pair.to_server, [server::Event::PushConfirmed(confirmed)]);
    let refused = pair.server.push(pair.now, session, true, TEXT, body(30)).unwrap();
    pair.run(1);
    let Some(client::Event::Push { push: Some(push), .. }) = pair.to_client.last().cloned() else {
        panic!("a push")
    };
    pair.client.refuse(pair.now, push, Reason::UserUnknownContent);
    pair.run(1);
    assert_eq!(pair.to_server[1..], [server::Event::PushAborted(refused, Reason::UserUnknownContent)]);
}

#[test]
fn without_the_options_nothing_is_pushed() {
    let mut pair = Pair::new();
    pair.client.connect(pair.now, Vec::new(), ACCEPT_ALL);
    pair.run(1);
    assert_eq!(pair.server.push(pair.now, pair.session(), false, TEXT, body(10)), None);
    assert!(!Agreed::default().has(option::PUSH));
}

#[test]
fn either_side_may_end_a_request_or_the_session() {
    let mut pair = Pair::open();
    pair.answers = None;
    let request = pair.get().unwrap();
    pair.run(1);
    pair.client.abort(pair.now, request);
    pair.run(1);
    assert!(matches!(pair.to_server.last(), Some(server::Event::RequestAborted(_, Reason::PeerRequest))));
    let request = pair.get().unwrap();
    pair.run(1);
    pair.server.disconnect(pair.now, pair.session());
    pair.run(1);
    assert_eq!(
        pair.to_client,
        [
            client::Event::RequestAborted(request, Reason::Disconnect),
            client::Event::Disconnected(Reason::Disconnect)
        ]
    );
}

#[test]
fn a_server_that_is_not_there_is_an_error_after_a_while() {
    let mut pair = Pair::new();
    pair.lost = Box::new(|_| true);
    pair.client.connect(pair.now, Vec::new(), Bytes::new());
    pair.run(60);
    assert_eq!(pair.to_client, [client::Event::Disconnected(Reason::NetworkError)]);
}

proptest! {
    #[test]
    fn whatever_is_lost_a_request_is_answered_or_aborted_once(
        lost in prop::collection::vec(prop::bool::weighted(0.3), 0..40),
        request in 1..4_000usize,
        reply in 0..9_000usize,
    ) {
        let mut pair = Pair::open();
        pair.answers = Some(reply);
        let first = pair.sent;
        pair.lost = Box::new(move |n| lost.get((n - first) as usize).copied().unwrap_or(false));
        let request = pair.client.request(pair.now, Method::Post, URI, TEXT, body(request)).unwrap();
        pair.run(400);
        let ends: Vec<_> = pair.to_client.iter().filter(|e| match e {
            client::Event::Reply { request: r, .. } | client::Event::RequestAborted(r, _) => *r == request,
            _ => false,
        }).collect();
        prop_assert_eq!(ends.len(), 1, "{:?}", pair.to_client);
        if let client::Event::Reply { data, .. } = ends[0] {
            prop_assert_eq!(data, &body(reply));
        }
    }

    #[test]
    fn any_octets_leave_a_server_alive(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..50)
    ) {
        let mut pair = Pair::open();
        let at = pair.at;
        for datagram in datagrams {
            pair.server.handle_datagram(pair.now, at, &datagram.into());
            pair.settle();
        }
        pair.run(200);
        prop_assert!(pair.server.sessions() <= 1);
    }
}

#[test]
fn every_pdu_of_another_gateway_is_read_and_written_as_it_was() {
    let captures = include_str!("data/wtp_kannel.txt");
    let mut count = 0;
    for line in captures.lines().filter(|l| !l.starts_with('#')) {
        let [name, _, hex] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let octets = (0..hex.len() / 2).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap());
        for pdu in split(&octets.collect::<Vec<u8>>().into()).into_iter().flatten() {
            let (Kind::Invoke { trailer, data, .. } | Kind::Result { trailer, data }) = pdu.kind else {
                continue;
            };
            if trailer.ends_message() {
                let read = Pdu::parse(&data).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(read.to_bytes(), data, "{name}: {read:?}");
                count += 1;
            }
        }
    }
    assert!(count > 30, "{count}");
}
