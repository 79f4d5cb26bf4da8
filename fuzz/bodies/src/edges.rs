//! What stands at the edges of a laboratory and is told things by programs: its name server, and a translator of addresses.

use std::net::{IpAddr, SocketAddr};

use airloom_base::service::{Datagram, WriteError};
use airloom_base::{
    App, AppParts, Bearer, Body, Cx, Direction, Duration, Fault, Instant, Outbox, Packet, Parts, SocketId,
    Sockets, Station,
};
use airloom_bearers::faults::{Faults, Faulty};
use airloom_wire::checksum;
use airloom_wire::edge::{self, Received};
use airloom_wire::ip::{self, Brief, protocol};
use serde_json::json;

use crate::octets::{Octets, said};

/// Where answers of a name server go.
#[derive(Default)]
struct Answers(Vec<Vec<u8>>);

impl Sockets for Answers {
    fn connect(&mut self, _: &mut Cx, _: SocketAddr) -> SocketId {
        unreachable!("a name server opens no connection")
    }
    fn write(&mut self, _: &mut Cx, _: SocketId, _: Body) -> Result<usize, WriteError> {
        Err(WriteError::Closed)
    }
    fn read(&mut self, _: &mut Cx, _: SocketId, _: usize) -> Option<Body> {
        None
    }
    fn unacknowledged(&self, _: SocketId) -> u64 {
        0
    }
    fn finish(&mut self, _: &mut Cx, _: SocketId) {}
    fn reset(&mut self, _: &mut Cx, _: SocketId) {}
    fn send_datagram(&mut self, _: &mut Cx, datagram: Datagram) {
        if let Datagram::Udp { body, .. } = datagram {
            self.0.push(body.to_bytes().to_vec());
        }
    }
    fn flow(&self, _: SocketId) -> u32 {
        0
    }
}

/// Queries that octets from 0xF8 on stand for: a header, names, and how questions end.
const DNS: [&[u8]; 8] = [
    &[0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    &[0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1],
    b"\x06origin",
    b"\x01a\x04test",
    &[0, 0, 1, 0, 1],
    &[0, 0, 28, 0, 1],
    &[0xC0, 12],
    &[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0],
];

/// Datagrams to a name server. What it says is an answer to what it was asked: the same identifier and question, once.
pub fn names(octets: &[u8]) {
    let mut octets = Octets::new(octets);
    let aaaa = octets.one_of(&["answer", "empty", "hang", "refuse"]);
    let (loss, failure) = (octets.one_of(&["0%", "50%"]), octets.one_of(&["0%", "50%"]));
    let table = json!({
        "aaaa": aaaa, "loss": loss, "failure": failure, "delay": "10ms", "names": { "a.test.": ["10.0.0.9"] },
    });
    let addresses =
        || ["10.0.0.1", "fd00::1"].map(|a| ("origin".to_owned(), a.parse().expect("one"))).to_vec();
    let parts = AppParts {
        seed: 1,
        host: "fuzzed",
        resolve: &|_| None,
        hosts: &addresses,
        addresses: &addresses,
        far_end: None,
        proxy: &|_| None,
        transports: &["tcp"],
    };
    let entry = airloom_apps::find("name-server").expect("it is registered");
    let mut server: Box<dyn App> = (entry.build)(&table, &parts).expect("a valid table");
    let (mut records, mut net, mut now) = (Outbox::default(), Answers::default(), Instant::ZERO);
    let remote: SocketAddr = "10.0.0.2:50000".parse().expect("an address");
    while let Some(wait) = octets.next() {
        let asked: Vec<u8> = octets.piece().iter().flat_map(|octet| said(octet, &DNS)).copied().collect();
        let body = Body::Real(asked.clone().into());
        let datagram = Datagram::Udp { local_port: 53, remote, body };
        server.handle_datagram(&mut Cx { now, records: &mut records }, &mut net, datagram);
        now += Duration::from_millis(10 + u64::from(wait));
        server.handle_timeout(&mut Cx { now, records: &mut records }, &mut net);
        assert_eq!(server.poll_timeout(), None, "nothing waits any more");
        let answers = std::mem::take(&mut net.0);
        assert!(answers.len() <= 1, "one answer");
        for answer in answers {
            assert!(answer.len() >= 12 && answer[2] & 0x80 != 0, "an answer");
            assert!(asked[2] & 0x80 == 0, "to no answer");
            assert_eq!(answer[..2], asked[..2], "to this query");
            assert!(answer[5] == 0 || asked[12..].starts_with(&question(&answer)), "to this question");
        }
    }
}

/// The question in an answer.
fn question(answer: &[u8]) -> Vec<u8> {
    let mut end = 12;
    while answer[end] != 0 {
        end += 1 + usize::from(answer[end]);
    }
    answer[12..end + 5].to_vec()
}

const OUTSIDE: [&str; 2] = ["10.9.0.1", "fd09::1"];
const SPARE: [&str; 4] = ["10.0.0.254", "10.0.0.253", "fd00::fffe", "fd00::fffd"];

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A datagram as a device hands it over, with right checksums.
fn datagram(source: IpAddr, destination: IpAddr, number: u8, payload: &[u8]) -> Option<Packet> {
    let mut out = vec![0; ip::header_len(destination)];
    ip::emit(&mut out, source, destination, number, 0, payload.len());
    out.extend_from_slice(payload);
    checksum::finish(&mut out).ok()?;
    edge::ingress(Received::whole(out)).ok()
}

/// A link whose far end translates.
struct Translated {
    link: Faulty,
    records: Outbox,
    now: Instant,
}

impl Translated {
    fn pass(&mut self, direction: Direction, packet: Packet) -> Vec<Packet> {
        self.link.send(&mut Cx { now: self.now, records: &mut self.records }, direction, Station(0), packet);
        let mut arrived = Vec::new();
        while let Some(at) = self.link.poll_timeout() {
            self.now = self.now.max(at);
            self.link.handle_timeout(&mut Cx { now: self.now, records: &mut self.records });
            while let Some((to, _, packet)) = self.link.poll_delivery() {
                assert_eq!(to, direction, "it goes on its way");
                arrived.push(packet);
            }
        }
        self.records.clear();
        arrived
    }

    /// Something goes out, and an answer comes back to who it was; so does an error about it.
    fn exchange(&mut self, octets: &mut Octets<'_>) {
        let (how, port, body) = (octets.octet(), octets.number(), octets.piece());
        let family = usize::from(how & 1);
        let inside =
            address([["10.0.0.2", "fd00::2"], ["10.0.0.3", "fd00::3"]][usize::from(how >> 2 & 1)][family]);
        let outside = address(OUTSIDE[family]);
        let echo = [(protocol::ICMP, 8, 0), (protocol::ICMPV6, 128, 129)][family];
        let (number, out) = match how >> 3 & 3 {
            0 => (protocol::TCP, ports(port, 80, &[0, 0, 0, 1, 0, 0, 0, 0, 5 << 4, 2, 0, 0, 0, 0, 0, 0])),
            1 => (echo.0, [&[echo.1, 0, 0, 0], &port.to_be_bytes()[..], &[0, 1], body].concat()),
            _ => {
                let len = (8 + body.len() as u16).to_be_bytes();
                (protocol::UDP, ports(port, 443, &[&len[..], &[0, 0], body].concat()))
            }
        };
        let Some(sent) = datagram(inside, outside, number, &out) else { return };
        let Some(gone) = self.pass(Direction::Uplink, sent).pop() else { return };
        let mut seen = Vec::new();
        edge::egress(&gone, &mut seen);
        let header = Brief::parse(&seen).expect("it is a datagram still");
        let known = ip::address(header.source);
        let mut answer = seen[header.header_len..].to_vec();
        if number == echo.0 {
            answer[0] = echo.2;
        } else {
            let (own, other) = ([answer[0], answer[1]], [answer[2], answer[3]]);
            answer[..4].copy_from_slice(&[other, own].concat());
        }
        let back = datagram(outside, known, number, &answer).expect("an answer");
        let came = self.pass(Direction::Downlink, back);
        let [came] = &came[..] else { panic!("an answer comes in") };
        let destination = Brief::parse(came.head()).expect("it is a datagram still").destination;
        assert_eq!(destination, ip::key(inside), "to who asked");
        let error = [&[[3, 1][family], 3, 0, 0, 0, 0, 0, 0][..], &seen[..seen.len().min(576)]].concat();
        let error = datagram(outside, known, echo.0, &error).expect("an error");
        let came = self.pass(Direction::Downlink, error);
        let [came] = &came[..] else { panic!("an error about it comes in") };
        let about = came.body().to_bytes();
        let about = Brief::parse(&about).expect("a datagram inside").source;
        assert_eq!(about, ip::key(inside), "about what was sent");
    }
}

fn ports(from: u16, to: u16, rest: &[u8]) -> Vec<u8> {
    [&from.to_be_bytes()[..], &to.to_be_bytes(), rest].concat()
}

/// Datagrams through a translator of addresses in both directions, with rights and wrongs in them. What goes out of it can be
/// answered as long as it does not forget.
pub fn nat(octets: &[u8]) {
    let mut octets = Octets::new(octets);
    let table = json!({ "nat": { "first": "1s", "every": octets.one_of(&["1s", "7s"]), "address": octets.is_set() } });
    let faults: Faults = airloom_base::config::read(&table).expect("a valid table");
    let mut records = Outbox::default();
    let mut parts = Parts::new(1, "link", 1, &mut records);
    let wire = airloom_bearers::find("wireline").expect("it is registered");
    let wire = (wire.build)(&json!({}), &mut parts).expect("a valid table");
    let link = Faulty::new(wire, faults, &SPARE.map(address), &mut parts).expect("valid faults");
    let mut bench = Translated { link, records, now: Instant::ZERO };
    while let Some(what) = octets.next() {
        let direction = if what & 8 == 0 { Direction::Uplink } else { Direction::Downlink };
        match what & 7 {
            0 => bench.now += Duration::from_millis(u64::from(octets.octet()) * 20),
            1 => bench.link.switch(bench.now, Fault::Nat, what & 8 != 0).expect("there is one"),
            2..=4 => {
                let family = usize::from(what >> 4 & 1);
                let known =
                    [["10.0.0.2", "10.0.0.254", OUTSIDE[0]], ["fd00::2", "fd00::fffe", OUTSIDE[1]]][family];
                let (source, destination) = (octets.one_of(&known), octets.one_of(&known));
                let number =
                    octets.one_of(&[protocol::ICMP, protocol::ICMPV6, protocol::UDP, protocol::TCP, 132, 47]);
                if let Some(packet) = datagram(address(source), address(destination), number, octets.piece())
                {
                    bench.pass(direction, packet);
                }
            }
            5 => {
                if let Ok(packet) = edge::ingress(Received {
                    datagram: octets.piece().to_vec().into(),
                    transport_done: true,
                    segment: 0,
                }) {
                    bench.pass(direction, packet);
                }
            }
            _ => bench.exchange(&mut octets),
        }
    }
}
