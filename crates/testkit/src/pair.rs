//! Two hosts with one transport each, and a link between them.
//!
//! The pair keeps its own clock and holds the machines to their contract: feed, drain until `None`, then read
//! `poll_timeout`; a deadline that was handled moves on; after both sides have closed everything becomes idle.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use airloom_base::record::Record;
use airloom_base::service::{Identity, Path};
use airloom_base::{
    Body, CloseReason, Cx, Instant, Outbox, Packet, PathId, Protocol, Transport, TransportEvent,
};

use crate::link::{End, Fate, Link, LinkConfig, LossPattern};

/// See [`Pair::endless`].
const ENDLESS: u64 = 20_000_000;

/// A packet as it was offered to the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// When.
    pub at: Instant,
    /// By whom.
    pub from: End,
    /// Header octets of the transport.
    pub head: Vec<u8>,
    /// Octets of the body.
    pub body: usize,
    /// What became of it; `None`: dropped by the full queue.
    pub fate: Option<Fate>,
}

/// One host: its protocol, its one connection, and an application that writes what it was given and reads all.
#[derive(getset::CopyGetters)]
pub struct Host {
    protocol: Box<dyn Protocol>,
    /// The connection, from the first packet until it is gone.
    pub transport: Option<Box<dyn Transport>>,
    path: Path,
    ports: (u16, u16),
    listens: bool,
    lingering: bool,
    outgoing: VecDeque<Body>,
    finish_after: bool,
    finished: bool,
    /// While set, nothing is read.
    pub paused: bool,
    /// Events in the order in which they were reported.
    pub events: Vec<(Instant, TransportEvent)>,
    /// Octets read.
    pub received: u64,
    /// A hash of everything read, to compare with [`hash_of`].
    #[getset(get_copy = "pub")]
    hash: u64,
    /// Keep what is read (to look at the octets themselves).
    pub keep: bool,
    /// What was read, if it was kept.
    pub data: Vec<u8>,
}

impl Host {
    fn new(protocol: Box<dyn Protocol>, end: End, mtu: u16) -> Self {
        let address = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
        let (local, remote, ports) = match end {
            End::Client => (address(1), address(2), (40_000, 80)),
            End::Server => (address(2), address(1), (80, 40_000)),
        };
        Host {
            protocol,
            transport: None,
            path: Path { local, remote, mtu },
            ports,
            listens: end == End::Server,
            lingering: false,
            outgoing: VecDeque::new(),
            finish_after: false,
            finished: false,
            paused: false,
            events: Vec::new(),
            received: 0,
            hash: HASH_START,
            keep: false,
            data: Vec::new(),
        }
    }

    /// How the connection ended, if it did.
    pub fn closed(&self) -> Option<CloseReason> {
        self.events.iter().find_map(|(_, e)| match e {
            TransportEvent::Closed(reason) => Some(*reason),
            _ => None,
        })
    }

    /// Was this event reported?
    pub fn saw(&self, event: TransportEvent) -> bool {
        self.events.iter().any(|(_, e)| *e == event)
    }

    /// When it was reported.
    pub fn when(&self, event: TransportEvent) -> Option<Instant> {
        self.events.iter().find(|(_, e)| *e == event).map(|(at, _)| *at)
    }

    /// Accepts no further connection (what arrives for none is refused).
    pub fn stop_listening(&mut self) {
        self.listens = false;
    }

    /// Accepts connections.
    pub fn listen(&mut self) {
        self.listens = true;
    }
}

const HASH_START: u64 = 0xCBF2_9CE4_8422_2325;

fn hash_on(hash: u64, octets: &[u8]) -> u64 {
    octets.iter().fold(hash, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01B3))
}

/// The hash that [`Host::hash`] has after reading these bodies.
pub fn hash_of(bodies: &[Body]) -> u64 {
    bodies.iter().fold(HASH_START, |h, b| hash_on(h, &b.to_bytes()))
}

/// Two hosts and a link.
pub struct Pair {
    /// The time.
    pub now: Instant,
    /// The link between them.
    pub link: Link,
    /// Records of the run.
    pub outbox: Outbox,
    hosts: [Host; 2],
    /// Every packet offered to the link, if `watch` is set.
    pub seen: Vec<Offered>,
    /// Keep [`Pair::seen`].
    pub watch: bool,
    /// Feed [`Host::data`]'s hash; off in measurements.
    pub hashing: bool,
    /// Units that were refused.
    pub refused: u64,
    /// So many steps without becoming idle mean that something never ends.
    pub endless: u64,
    steps: u64,
}

impl Pair {
    /// A client and a server that listens, with an MTU of 1500.
    pub fn new(client: Box<dyn Protocol>, server: Box<dyn Protocol>, link: LinkConfig) -> Self {
        Pair {
            now: Instant::ZERO,
            link: Link::new(link),
            outbox: Outbox::default(),
            hosts: [Host::new(client, End::Client, 1500), Host::new(server, End::Server, 1500)],
            seen: Vec::new(),
            watch: false,
            hashing: true,
            refused: 0,
            endless: ENDLESS,
            steps: 0,
        }
    }

    /// From now on packets meet this fate.
    pub fn set_fate(&mut self, fate: LossPattern) {
        self.link.set_fate(fate);
    }

    /// One of the hosts.
    pub fn host(&mut self, end: End) -> &mut Host {
        &mut self.hosts[end as usize]
    }

    /// The client.
    pub fn client(&mut self) -> &mut Host {
        self.host(End::Client)
    }

    /// The server.
    pub fn server(&mut self) -> &mut Host {
        self.host(End::Server)
    }

    /// That end opens.
    pub fn open(&mut self, end: End) {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        let host = &mut self.hosts[end as usize];
        let who = Identity { host: end as u16, flow: 1 };
        let mut transport = host.protocol.open(&mut cx, host.path, host.ports, who);
        transport.connect(&mut cx);
        host.transport = Some(transport);
        host.lingering = false;
        self.drain(end);
    }

    /// That end writes `body`, now or as soon as there is room.
    pub fn write(&mut self, end: End, body: Body) {
        self.hosts[end as usize].outgoing.push_back(body);
        self.push(end);
        self.drain(end);
    }

    /// That end finishes its direction once everything is written.
    pub fn finish(&mut self, end: End) {
        self.hosts[end as usize].finish_after = true;
        self.push(end);
        self.drain(end);
    }

    /// That end resets the connection.
    pub fn reset(&mut self, end: End) {
        self.with_transport(end, |t, cx| t.reset(cx));
    }

    /// Calls `f` with the connection of that end, then drains it.
    pub fn with_transport(&mut self, end: End, f: impl FnOnce(&mut dyn Transport, &mut Cx)) {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        if let Some(transport) = &mut self.hosts[end as usize].transport {
            f(transport.as_mut(), &mut cx);
        }
        self.drain(end);
    }

    /// That end reads again.
    pub fn resume(&mut self, end: End) {
        self.hosts[end as usize].paused = false;
        self.read(end);
        self.drain(end);
    }

    /// A packet that the other side did not send arrives at `end` now.
    pub fn inject(&mut self, end: End, packet: Packet) {
        self.deliver(end, 0, packet);
    }

    /// Lets the other end's packets arrive that are on their way, and all that follows, until nothing happens any
    /// more. Panics if that never comes.
    pub fn drive(&mut self) {
        self.drive_until(Instant::FAR_FUTURE);
    }

    /// As [`Pair::drive`], up to `end`; then it is `end`.
    pub fn drive_until(&mut self, end: Instant) {
        while let Some(at) = self.next_step().filter(|at| *at <= end) {
            self.step(at);
        }
        if end != Instant::FAR_FUTURE {
            self.now = self.now.max(end);
        }
    }

    /// When something happens next.
    pub fn next_step(&self) -> Option<Instant> {
        let deadline = |h: &Host| h.transport.as_ref().and_then(|t| t.poll_timeout());
        [self.link.next_arrival(), deadline(&self.hosts[0]), deadline(&self.hosts[1])]
            .into_iter()
            .flatten()
            .min()
            .map(|at| at.max(self.now))
    }

    fn step(&mut self, at: Instant) {
        self.steps += 1;
        assert!(self.steps < self.endless, "the pair never becomes idle");
        self.now = at;
        if let Some((end, ecn, packet)) = self.link.arrival(at) {
            self.deliver(end, ecn, packet);
            return;
        }
        for end in [End::Client, End::Server] {
            let host = &mut self.hosts[end as usize];
            let Some(transport) = &mut host.transport else { continue };
            if transport.poll_timeout().is_some_and(|t| t <= at) {
                transport.handle_timeout(&mut Cx { now: at, records: &mut self.outbox });
                self.drain(end);
                let next = self.hosts[end as usize].transport.as_ref().and_then(|t| t.poll_timeout());
                assert!(next.is_none_or(|t| t > at), "a deadline that was handled must move on");
            }
        }
    }

    fn deliver(&mut self, end: End, ecn: u8, packet: Packet) {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        let host = &mut self.hosts[end as usize];
        if host.lingering && host.transport.as_ref().is_some_and(|t| t.yields_to(&packet)) {
            host.transport = None;
            host.lingering = false;
        }
        if host.transport.is_none() && host.listens {
            let who = Identity { host: end as u16, flow: 1 };
            // As a host does: what is known of a datagram besides its octets is told here.
            let whose = host.protocol.whose(&mut cx, &host.path, host.ports, ecn, &packet);
            assert_eq!(whose, None, "there is no connection");
            host.transport = host.protocol.accept(&mut cx, host.path, host.ports, who, &packet);
            host.lingering = false;
        }
        match &mut host.transport {
            Some(transport) => transport.handle_packet(&mut cx, PathId(0), ecn, packet),
            None => {
                if let Some(answer) = host.protocol.answer(&mut cx, &host.path, &packet, host.listens) {
                    self.refused += 1;
                    self.transmit(end, 0, answer);
                }
                return;
            }
        }
        self.drain(end);
    }

    fn transmit(&mut self, from: End, ecn: u8, packet: Packet) {
        if !self.watch {
            self.link.send(self.now, from, ecn, packet);
            return;
        }
        let (head, body) = (packet.head().to_vec(), packet.body().len());
        let fate = self.link.send(self.now, from, ecn, packet);
        self.seen.push(Offered { at: self.now, from, head, body, fate });
    }

    /// Drains both outputs of a connection until neither gives anything.
    fn drain(&mut self, end: End) {
        loop {
            let mut quiet = true;
            let host = &mut self.hosts[end as usize];
            let Some(transport) = &mut host.transport else { return };
            let mut cx = Cx { now: self.now, records: &mut self.outbox };
            if let Some(out) = transport.poll_transmit(&mut cx) {
                self.transmit(end, out.ecn, out.packet);
                continue;
            }
            while let Some(event) = self.hosts[end as usize].transport.as_mut().and_then(|t| t.poll_event()) {
                quiet = false;
                self.handle(end, event);
            }
            if quiet {
                return;
            }
        }
    }

    fn handle(&mut self, end: End, event: TransportEvent) {
        let host = &mut self.hosts[end as usize];
        host.events.push((self.now, event));
        match event {
            TransportEvent::Opened | TransportEvent::Writable(_) => self.push(end),
            TransportEvent::Readable(..) => self.read(end),
            TransportEvent::Lingering => {
                host.transport = host.transport.take().map(|t| t.into_lingering());
                host.lingering = true;
            }
            TransportEvent::Gone => host.transport = None,
            TransportEvent::Asked | TransportEvent::Stream(..) => {}
            TransportEvent::Finished(_) | TransportEvent::Closed(_) => {}
        }
    }

    fn push(&mut self, end: End) {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        let host = &mut self.hosts[end as usize];
        let Some(transport) = &mut host.transport else { return };
        while let Some(body) = host.outgoing.front_mut() {
            let taken = transport.write(&mut cx, 0, body.clone()).unwrap_or(0);
            let _ = body.split_to(taken);
            if !body.is_empty() {
                return;
            }
            host.outgoing.pop_front();
        }
        if host.finish_after && !host.finished {
            host.finished = true;
            transport.finish(&mut cx, 0);
        }
    }

    fn read(&mut self, end: End) {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        let host = &mut self.hosts[end as usize];
        let Some(transport) = &mut host.transport else { return };
        while !host.paused {
            let Some(body) = transport.read(&mut cx, 0, 1 << 20) else { break };
            host.received += body.len() as u64;
            if self.hashing {
                let octets = body.to_bytes();
                host.hash = hash_on(host.hash, &octets);
                if host.keep {
                    host.data.extend_from_slice(&octets);
                }
            }
        }
    }

    /// The congestion records so far.
    pub fn congestion(&self) -> Vec<airloom_base::record::CongestionRecord> {
        let of = |r: &Record| match r {
            Record::Congestion(c) => Some(c.clone()),
            _ => None,
        };
        self.outbox.facts.iter().filter_map(of).collect()
    }

    /// Panics unless both connections are gone and nothing is on its way.
    pub fn assert_idle(&self) {
        assert_eq!(self.next_step(), None, "something is still to happen");
        for host in &self.hosts {
            assert!(host.transport.is_none(), "a connection is not gone; events: {:?}", host.events);
        }
    }
}
