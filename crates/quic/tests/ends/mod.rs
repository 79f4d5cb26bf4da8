//! Two ends without hosts around them, whose datagrams are seen octet by octet.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::VecDeque;

use airloom_base::service::{Identity, Path};
use airloom_base::{
    Body, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, StreamEvent, Transport, TransportEvent,
};
use airloom_quic::{Config, Quic};

/// Two ends without a link between them: what one sends the other has after a millisecond.
pub struct Ends {
    pub now: Instant,
    pub records: Outbox,
    pub protocols: [Quic; 2],
    ends: [Option<Box<dyn Transport>>; 2],
    events: [Vec<TransportEvent>; 2],
    flying: VecDeque<(usize, Flight)>,
    /// The client's datagram with this number is copied, and the copy comes first, from elsewhere.
    pub copied: Option<usize>,
    /// The client has that address as well, by its second path.
    pub is_elsewhere: bool,
    /// What the server sends there is lost.
    pub is_deaf: bool,
    /// Octets of each datagram between there and the server, by who sent it: 0 what came from there, 1 what the server sent.
    pub strangers: Vec<(usize, usize)>,
    /// What the server calls that path.
    second: Option<PathId>,
    /// Datagrams that are lost: by whom, and which of theirs.
    pub lost: Vec<(usize, usize)>,
    /// All that was sent, by whom: UDP headers with what is behind them.
    pub sent: Vec<(usize, Vec<u8>)>,
}

/// What is under way.
enum Flight {
    Own(Packet),
    /// From or to the client's second address.
    Elsewhere(Packet),
}

const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];
const PORTS: [u16; 2] = [50_000, 443];

pub fn path(end: usize) -> Path {
    Path { local: ADDRESSES[end].into(), remote: ADDRESSES[1 - end].into(), mtu: 1500 }
}

/// Where nobody is as a rule, to the server.
pub fn elsewhere() -> Path {
    Path { remote: [10, 0, 0, 99].into(), ..path(1) }
}

pub fn ports(end: usize) -> (u16, u16) {
    (PORTS[end], PORTS[1 - end])
}

pub const WHO: Identity = Identity { host: 0, flow: 1 };

impl Ends {
    pub fn new(config: &Config, seed: u64, spoken: Option<&'static str>) -> Ends {
        let mut protocols = ["client", "server"].map(|name| Quic::new(config.clone(), seed, name));
        let mut client: Box<dyn Transport> = Box::new(protocols[0].connection(path(0), ports(0), WHO));
        let mut records = Outbox::default();
        if let Some(spoken) = spoken {
            protocols[1].serve(PORTS[1], spoken);
            client.speak(spoken);
        }
        client.connect(&mut Cx { now: Instant::ZERO, records: &mut records });
        Ends {
            now: Instant::ZERO,
            records,
            protocols,
            ends: [Some(client), None],
            events: Default::default(),
            flying: VecDeque::new(),
            copied: None,
            is_elsewhere: false,
            is_deaf: false,
            strangers: Vec::new(),
            second: None,
            lost: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Another connection between the same ends, at this moment; what was sent and told before is forgotten.
    pub fn again(&mut self, spoken: &'static str) {
        let mut client: Box<dyn Transport> = Box::new(self.protocols[0].connection(path(0), ports(0), WHO));
        client.speak(spoken);
        client.connect(&mut Cx { now: self.now, records: &mut self.records });
        self.ends = [Some(client), None];
        self.events = Default::default();
        self.flying.clear();
        self.sent.clear();
    }

    /// Tells what there is to tell, and sends nothing.
    pub fn listen(&mut self, end: usize) {
        while let Some(event) = self.ends[end].as_mut().and_then(|transport| transport.poll_event()) {
            self.events[end].push(event);
        }
    }

    pub fn with<T>(&mut self, end: usize, act: impl FnOnce(&mut dyn Transport, &mut Cx) -> T) -> T {
        let cx = &mut Cx { now: self.now, records: &mut self.records };
        act(self.ends[end].as_mut().expect("it is there").as_mut(), cx)
    }

    pub fn arrive(&mut self, end: usize, unit: Packet) {
        let cx = &mut Cx { now: self.now, records: &mut self.records };
        if self.ends[end].is_none() && end == 1 {
            let whose = self.protocols[1].whose(cx, &path(1), ports(1), 0, &unit);
            assert_eq!(whose, None);
            self.ends[1] = self.protocols[1].accept(cx, path(1), ports(1), WHO, &unit);
            if self.ends[1].is_none() {
                let answer = self.protocols[1].answer(cx, &path(1), &unit, true);
                self.flying.extend(answer.map(|answer| (0, Flight::Own(answer))));
            }
        }
        if let Some(transport) = &mut self.ends[end] {
            transport.handle_packet(cx, PathId(0), 0, unit);
        }
    }

    pub fn arrive_elsewhere(&mut self, end: usize, unit: Packet) {
        let known = [Some(PathId(1)), self.second][end];
        let path = known.unwrap_or_else(|| {
            let moved = self.with(1, |server, cx| server.handle_move(cx, elsewhere(), ports(1)));
            moved.expect("it may move")
        });
        self.second = self.second.or(known.is_none().then_some(path));
        if end == 1 {
            self.strangers.push((0, unit.wire_len() - 8));
        }
        self.with(end, |transport, cx| transport.handle_packet(cx, path, 0, unit));
    }

    /// What this end was told of paths, in order.
    pub fn paths(&self, end: usize) -> Vec<(PathId, bool)> {
        let of = |event: &TransportEvent| match event {
            TransportEvent::Stream(0, StreamEvent::Path(path, is_used)) => Some((*path, *is_used)),
            _ => None,
        };
        self.events[end].iter().filter_map(of).collect()
    }

    /// Goes on until nothing happens before `until`.
    pub fn run(&mut self, until: Instant) {
        loop {
            for end in 0..2 {
                let Some(transport) = &mut self.ends[end] else { continue };
                let cx = &mut Cx { now: self.now, records: &mut self.records };
                while let Some(event) = transport.poll_event() {
                    self.events[end].push(event);
                }
                while let Some(out) = transport.poll_transmit(cx) {
                    let mut octets = vec![0; out.packet.wire_len()];
                    out.packet.write(0, &mut octets);
                    let is_copied = end == 0 && self.copied == Some(sent_by(&self.sent, 0));
                    if is_copied {
                        self.flying.push_back((1, Flight::Elsewhere(out.packet.duplicate())));
                    }
                    let is_lost = self.lost.contains(&(end, sent_by(&self.sent, end)));
                    if end == 1 && out.path != PathId(0) {
                        self.strangers.push((1, octets.len() - 8));
                    }
                    self.sent.push((end, octets));
                    match out.path {
                        _ if is_lost || (self.is_deaf && end == 1 && out.path != PathId(0)) => {}
                        PathId(0) => self.flying.push_back((1 - end, Flight::Own(out.packet))),
                        _ if self.is_elsewhere => {
                            self.flying.push_back((1 - end, Flight::Elsewhere(out.packet)));
                        }
                        _ => {}
                    }
                }
                while let Some(event) = transport.poll_event() {
                    self.events[end].push(event);
                }
            }
            if self.flying.is_empty() {
                let next = self.ends.iter().flatten().filter_map(|end| end.poll_timeout()).min();
                let Some(at) = next.filter(|at| *at <= until) else { return };
                self.now = self.now.max(at);
                for transport in self.ends.iter_mut().flatten() {
                    if transport.poll_timeout().is_some_and(|at| at <= self.now) {
                        transport.handle_timeout(&mut Cx { now: self.now, records: &mut self.records });
                    }
                }
                continue;
            }
            self.now += Duration::from_millis(1);
            for (end, flight) in std::mem::take(&mut self.flying) {
                match flight {
                    Flight::Own(unit) => self.arrive(end, unit),
                    Flight::Elsewhere(unit) => self.arrive_elsewhere(end, unit),
                }
            }
        }
    }

    /// All octets that were sent, one after the other.
    pub fn wire(&self) -> Vec<u8> {
        self.sent.iter().flat_map(|(_, octets)| octets.clone()).collect()
    }

    /// Datagrams of this end so far.
    pub fn sent_by(&self, end: usize) -> usize {
        sent_by(&self.sent, end)
    }

    pub fn told(&self, end: usize, event: TransportEvent) -> bool {
        self.events[end].contains(&event)
    }
}

fn sent_by(sent: &[(usize, Vec<u8>)], end: usize) -> usize {
    sent.iter().filter(|(sender, _)| *sender == end).count()
}

/// A datagram with these octets, by the receiver's and the sender's port.
pub fn unit((destination, source): (u16, u16), octets: &[u8]) -> Packet {
    let udp = airloom_wire::udp::Udp { source, destination, len: (8 + octets.len()) as u16 };
    Packet::build(|out| udp.emit(out), Body::Real(octets.to_vec().into()))
}

pub fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

pub fn read_all(ends: &mut Ends, end: usize, stream: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    while let Some(body) = ends.with(end, |transport, cx| transport.read(cx, stream, 1000)) {
        octets.extend_from_slice(&body.to_bytes());
    }
    octets
}
