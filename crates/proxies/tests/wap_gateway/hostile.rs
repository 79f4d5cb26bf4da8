//! Datagrams that nobody should send.

use std::net::SocketAddr;

use airloom_base::units::Octets;
use airloom_base::{Duration, Instant};
use airloom_proxies::wap_gateway::{Config, FetchOrder, Fetched, Gateway, Service};
use airloom_transports::wsp::capabilities::Capability;
use airloom_transports::wsp::status::Reason;
use airloom_transports::wsp::wire::{Method, Pdu, VERSION};
use airloom_transports::wtp::wire::{self, Abort, Class, Kind, Trailer};
use airloom_transports::wtp::{self, Indication, Provider};
use bytes::Bytes;
use proptest::prelude::*;

use crate::pair::{DECK, KEY, Pair, WML, answer, fields, gateway_address};

/// Octets of the headers of IPv4 and UDP.
pub const HEADERS: usize = 28;

/// Settings of a daemon.
pub fn on_the_open_network() -> Config {
    Config { amplification: 3, ..Config::default() }
}

pub fn at(n: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 49_200))
}

/// A peer that puts what it likes into transactions.
pub struct Raw {
    pub now: Instant,
    pub provider: Provider,
    pub at: SocketAddr,
    sent: Vec<Bytes>,
}

impl Raw {
    pub fn new(n: u16) -> Raw {
        Raw {
            now: Instant::ZERO,
            provider: Provider::new(wtp::Config::default(), 1),
            at: at(n),
            sent: Vec::new(),
        }
    }

    /// Begins a transaction, and what comes of it without any time passing.
    pub fn say(&mut self, gateway: &mut Gateway, class: Class, message: Bytes) -> Vec<Indication> {
        self.provider.invoke(self.now, gateway_address(), class, false, message).unwrap();
        self.exchange(gateway)
    }

    pub fn exchange(&mut self, gateway: &mut Gateway) -> Vec<Indication> {
        let mut told = Vec::new();
        loop {
            let mut quiet = true;
            while let Some((_, octets)) = self.provider.poll_transmit() {
                self.sent.push(octets.clone());
                gateway.handle_datagram(self.now, Service::Session, self.at, &octets);
                quiet = false;
            }
            while let Some((_, to, octets)) = gateway.poll_transmit() {
                if to == self.at {
                    self.provider.handle_datagram(self.now, gateway_address(), &octets);
                }
                quiet = false;
            }
            while let Some(event) = self.provider.poll_event() {
                if matches!(event.what, Indication::Result(_)) {
                    self.provider.acknowledge(self.now, event.transaction);
                }
                told.push(event.what);
                quiet = false;
            }
            if quiet {
                return told;
            }
        }
    }

    pub fn connect(&mut self, gateway: &mut Gateway) -> Vec<Indication> {
        let capabilities = vec![Capability::MethodMor(2)];
        let connect =
            Pdu::Connect { version: VERSION, capabilities, headers: Bytes::from_static(&[0x80, 0x80]) };
        self.say(gateway, Class::WithResult, connect.to_bytes())
    }
}

pub fn get(uri: &[u8]) -> Bytes {
    Pdu::Get { method: Method::Get, uri: Bytes::copy_from_slice(uri), headers: Bytes::new() }.to_bytes()
}

pub fn aborted(reason: Reason) -> Vec<Indication> {
    vec![Indication::Aborted(Abort::User(reason.code()))]
}

#[test]
fn each_misdeed_gets_the_standards_abort() {
    let mut gateway = Gateway::new(Config::default(), KEY);
    let mut raw = Raw::new(1);
    // Not understood; cut short; a session that is none.
    assert_eq!(
        raw.say(&mut gateway, Class::WithResult, Bytes::from_static(&[0x0A])),
        aborted(Reason::ProtocolError)
    );
    assert_eq!(
        raw.say(&mut gateway, Class::WithResult, Bytes::from_static(&[1, 0x10, 9])),
        aborted(Reason::ProtocolError)
    );
    assert_eq!(raw.say(&mut gateway, Class::WithResult, Bytes::new()), aborted(Reason::ProtocolError));
    assert_eq!(raw.say(&mut gateway, Class::WithResult, get(b"http://o/")), aborted(Reason::Disconnect));
    let version = Pdu::Connect { version: 0x20, capabilities: Vec::new(), headers: Bytes::new() };
    assert_eq!(raw.say(&mut gateway, Class::WithResult, version.to_bytes()), aborted(Reason::ConnectError));
    let headers =
        Pdu::Connect { version: VERSION, capabilities: Vec::new(), headers: Bytes::from_static(&[0x00]) };
    assert_eq!(raw.say(&mut gateway, Class::WithResult, headers.to_bytes()), aborted(Reason::ConnectError));
    assert!(matches!(raw.connect(&mut gateway).last(), Some(Indication::Result(_))));
    // More than the server takes, and more at a time.
    let large = get(&[b'x'; 1_401]);
    let end = raw.say(&mut gateway, Class::WithResult, large);
    assert_eq!(end.last(), aborted(Reason::MruExceeded).first());
    for _ in 0..2 {
        assert_eq!(raw.say(&mut gateway, Class::WithResult, get(b"http://o/")), []);
    }
    assert_eq!(raw.say(&mut gateway, Class::WithResult, get(b"http://o/")), aborted(Reason::MorExceeded));
    // What contradicts itself, on the level of transactions: an unknown version, a segment that is cut short.
    gateway.handle_datagram(
        raw.now,
        Service::Session,
        raw.at,
        &Bytes::from_static(&[0x0E, 0x40, 0x00, 0x42]),
    );
    let (.., octets) = gateway.poll_transmit().unwrap();
    let abort = wire::Pdu::parse(&octets).unwrap();
    assert!(matches!(abort.kind, Kind::Abort(Abort::Provider(wire::Reason::VersionZero))), "{abort:?}");
}

#[test]
fn what_is_replayed_asks_no_origin_again() {
    let mut gateway = Gateway::new(Config::default(), KEY);
    let mut raw = Raw::new(1);
    raw.connect(&mut gateway);
    raw.say(&mut gateway, Class::WithResult, get(b"http://o/"));
    let Some(FetchOrder::Start { id, .. }) = gateway.poll_fetch() else { panic!("nothing was asked") };
    let head = Fetched::Head { status: 200, fields: fields(&[("Content-Type", WML)]) };
    for fetched in [head, Fetched::Chunk(Bytes::from_static(DECK.as_bytes())), Fetched::End] {
        gateway.handle_fetch(raw.now, id, fetched);
    }
    assert!(matches!(raw.exchange(&mut gateway).last(), Some(Indication::Result(_))));
    let sent = raw.sent.clone();
    for _ in 0..3 {
        for octets in &sent {
            gateway.handle_datagram(raw.now, Service::Session, raw.at, octets);
            while gateway.poll_transmit().is_some() {}
        }
    }
    assert_eq!((gateway.poll_fetch(), gateway.sessions(), gateway.outstanding()), (None, 1, 0));
}

#[test]
fn sessions_and_incomplete_messages_are_bounded() {
    let wtp =
        wtp::Config { reassembly_limit: Octets(20_000), max_transactions: 50, ..wtp::Config::default() };
    let mut gateway = Gateway::new(Config { max_sessions: 10, wtp, ..Config::default() }, KEY);
    for n in 0..20 {
        let told = Raw::new(n).connect(&mut gateway);
        assert!(matches!(told.last(), Some(Indication::Result(_))));
    }
    // The older ones have gone.
    assert_eq!((gateway.sessions(), gateway.counters().sessions), (10, 20));
    // First packets of messages that never end.
    let mut displaced = 0;
    for n in 100..200 {
        let trailer = Trailer::None;
        let data = Bytes::from(vec![0; 1_400]);
        let invoke = Kind::Invoke {
            version: 0,
            tid_new: false,
            user_ack: false,
            class: Class::WithResult,
            trailer,
            data,
        };
        let pdu = wire::Pdu::new(1, false, invoke).to_bytes();
        gateway.handle_datagram(Instant::ZERO, Service::Session, at(n), &pdu);
        while let Some((.., octets)) = gateway.poll_transmit() {
            displaced += u32::from(matches!(wire::Pdu::parse(&octets).unwrap().kind, Kind::Abort(_)));
        }
    }
    // Fourteen fit, and the oldest go.
    assert_eq!(displaced, 86);
}

#[test]
fn many_small_requests_in_one_datagram_are_no_lever() {
    let mut gateway = Gateway::new(on_the_open_network(), KEY);
    let junk: Vec<Bytes> = (0..200u16)
        .map(|n| {
            let data = get(b"http://o/");
            let invoke = Kind::Invoke {
                version: 0,
                tid_new: false,
                user_ack: false,
                class: Class::WithResult,
                trailer: Trailer::Message,
                data,
            };
            wire::Pdu::new(n, false, invoke).to_bytes()
        })
        .collect();
    let datagram = wire::concatenate(&junk);
    gateway.handle_datagram(Instant::ZERO, Service::Session, at(1), &datagram);
    let sent: usize =
        std::iter::from_fn(|| gateway.poll_transmit()).map(|(.., octets)| HEADERS + octets.len()).sum();
    assert!(sent <= 3 * (HEADERS + datagram.len()), "{sent}");
}

#[test]
fn a_large_reply_waits_for_the_proof_of_the_address() {
    // The client's acknowledgements are lost: somebody else may have spoken in its name.
    let mut pair = Pair::new(on_the_open_network(), |_| {
        answer(200, &[("Content-Type", "text/plain")], vec![b'x'; 50_000])
    });
    let mut raw = Raw::new(7);
    raw.provider
        .invoke(
            raw.now,
            gateway_address(),
            Class::WithResult,
            false,
            Pdu::Connect {
                version: VERSION,
                capabilities: vec![Capability::ClientSduSize(0)],
                headers: Bytes::new(),
            }
            .to_bytes(),
        )
        .unwrap();
    let (_, connect) = raw.provider.poll_transmit().unwrap();
    raw.provider
        .invoke(raw.now, gateway_address(), Class::WithResult, false, get(b"http://origin/"))
        .unwrap();
    let (_, request) = raw.provider.poll_transmit().unwrap();
    pair.datagram(Service::Session, raw.at, connect);
    pair.run(Duration::from_secs(1), |_| false);
    pair.datagram(Service::Session, raw.at, request);
    pair.run(Duration::from_secs(200), |_| false);
    assert_eq!(pair.asked.len(), 1);
    let with_headers = |(octets, datagrams): (u64, u64)| octets + HEADERS as u64 * datagrams;
    assert!(with_headers(pair.to_client) <= 3 * with_headers(pair.from_client));
}

proptest! {
    #[test]
    fn no_datagram_takes_the_gateway_down_or_is_worth_more_than_three(
        datagrams in prop::collection::vec((any::<bool>(), 0..3_u16, prop::collection::vec(any::<u8>(), 0..80)), 1..40)
    ) {
        let mut gateway = Gateway::new(on_the_open_network(), KEY);
        let (mut now, mut received, mut sent) = (Instant::ZERO, 0, 0);
        for (with_session, n, octets) in datagrams {
            let service = if with_session { Service::Session } else { Service::Connectionless };
            received += HEADERS + octets.len();
            gateway.handle_datagram(now, service, at(n), &octets.into());
            now = gateway.poll_timeout().unwrap_or(now).min(now + Duration::from_secs(1));
            gateway.handle_timeout(now);
            while let Some((.., octets)) = gateway.poll_transmit() {
                sent += HEADERS + octets.len();
            }
            while gateway.poll_fetch().is_some() {}
        }
        prop_assert!(sent <= 3 * received);
    }
}
