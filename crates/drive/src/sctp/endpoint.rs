//! A UDP socket with associations on it.
#![expect(
    clippy::disallowed_types,
    reason = "this is where the machine meets the system's clock and sockets"
)]

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use airloom_base::record::Outbox;
use airloom_base::service::{Identity, Path};
use airloom_base::{Cx, Instant, Packet, PathId, Protocol, Transport, TransportEvent};
use airloom_transports::sctp::wire::{HEADER, Header};
use airloom_transports::sctp::{Association, Config, Message, Outgoing, Reconfigured, Request, Sctp};
use bytes::Bytes;

use super::encapsulation::{self, OVERHEAD};
use crate::secret;

/// Associations at a time: what comes beyond is not taken.
const MOST: usize = 4096;
/// The largest datagram there is.
const LARGEST: usize = 65_535;
/// Largest IP datagram unless told otherwise.
const MTU: u16 = 1500;
/// First of the ports that are chosen for associations of ours (RFC 6335: the dynamic ports), beginning at any of them: other
/// endpoints of this host choose from them too.
const FIRST_EPHEMERAL: u16 = 49_152;
/// The type of the chunk that answers an opening.
const INIT_ACK: u8 = 2;
/// Datagrams that are read before what they led to is sent.
const BURST: usize = 32;
/// The shortest time the system can be asked to wait for.
const SHORTEST: Duration = Duration::from_micros(1);

/// Names an association of an endpoint; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(u64);

/// What happened to an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which one.
    pub id: Id,
    /// A peer opened it ([`TransportEvent::Opened`] comes with it).
    pub is_accepted: bool,
    /// What.
    pub what: What,
}

/// What can happen to an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// What happens to every connection.
    Transport(TransportEvent),
    /// Its streams have changed, or will not.
    Streams(Reconfigured),
    /// The peer lost all it knew and opened it again (RFC 9260, 5.2.4): what was sent and not read is lost, streams begin anew.
    Restarted,
}

/// What tells associations apart: the peer's address and port, and our port.
type Key = (IpAddr, u16, u16);

struct Peer {
    association: Association,
    key: Key,
    /// Where the peer's datagrams came from last.
    at: SocketAddr,
    /// Where openings came from that were not answered yet: not necessarily from there.
    asked_from: VecDeque<SocketAddr>,
    is_accepted: bool,
}

/// Associations over one UDP socket, in the time of the system.
pub struct Endpoint {
    socket: UdpSocket,
    local: IpAddr,
    began: std::time::Instant,
    records: Outbox,
    protocol: Sctp,
    /// The port on which associations are taken.
    listens: Option<u16>,
    ephemeral: u16,
    peers: BTreeMap<Id, Peer>,
    places: BTreeMap<Key, Id>,
    next: u64,
    events: VecDeque<Event>,
    buffer: Vec<u8>,
    /// Datagrams that were not SCTP, or damaged.
    pub malformed: u64,
}

impl Endpoint {
    /// An endpoint whose datagrams leave from `at`.
    ///
    /// # Errors
    /// As the system says: the address is taken, or is not ours.
    pub fn bind(at: SocketAddr, config: Config) -> io::Result<Endpoint> {
        let socket = UdpSocket::bind(at)?;
        Ok(Endpoint {
            local: socket.local_addr()?.ip(),
            socket,
            began: std::time::Instant::now(),
            records: Outbox::default(),
            protocol: Sctp::new(config, secret::key()?),
            listens: None,
            ephemeral: FIRST_EPHEMERAL | secret::key()?.0 as u16,
            peers: BTreeMap::new(),
            places: BTreeMap::new(),
            next: 0,
            events: VecDeque::new(),
            buffer: vec![0; LARGEST],
            malformed: 0,
        })
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// As the system says.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Takes associations on `port` from now on.
    pub fn listen(&mut self, port: u16) {
        self.listens = Some(port);
    }

    /// Opens an association with the SCTP port `port` of the peer whose datagrams are taken at `to`; `None` if there are
    /// too many.
    pub fn connect(&mut self, to: SocketAddr, port: u16) -> Option<Id> {
        let own = self.free_port(to.ip(), port).filter(|_| self.peers.len() < MOST)?;
        let path = self.path(to.ip());
        let mut association = self.protocol.associate(&[path], (own, port), Identity::default());
        let mut cx = Cx { now: self.now(), records: &mut self.records };
        association.connect(&mut cx);
        let id = self.insert(association, (to.ip(), port, own), to, false);
        self.drain(id);
        Some(id)
    }

    /// Sends a whole message; false if there is no room, no such stream or association, or nothing in it.
    pub fn send(&mut self, id: Id, stream: u16, message: Outgoing) -> bool {
        self.with(id, |association, cx| association.send(cx, stream, message)).unwrap_or(false)
    }

    /// The next whole message of a stream.
    pub fn receive(&mut self, id: Id, stream: u32) -> Option<Message> {
        let stream = u16::try_from(stream).ok()?;
        self.with(id, |association, cx| association.receive(cx, stream)).flatten()
    }

    /// Asks the peer for a change of the streams, as [`Association::reconfigure`].
    pub fn reconfigure(&mut self, id: Id, request: Request) -> bool {
        self.with(id, |association, cx| association.reconfigure(cx, request)).unwrap_or(false)
    }

    /// Shuts an association down once all that was sent has arrived.
    pub fn shut_down(&mut self, id: Id) {
        self.with(id, |association, cx| association.finish(cx, 0));
    }

    /// Ends an association at once.
    pub fn abort(&mut self, id: Id) {
        self.with(id, |association, cx| association.reset(cx));
    }

    /// An association, to look at.
    pub fn association(&self, id: Id) -> Option<&Association> {
        self.peers.get(&id).map(|peer| &peer.association)
    }

    /// Waits for the next thing that happens, at most for `time`.
    ///
    /// # Errors
    /// As the system says of the socket.
    pub fn wait(&mut self, time: Duration) -> io::Result<Option<Event>> {
        let end = self.began.elapsed() + time;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            let now = self.began.elapsed();
            self.expire();
            if !self.events.is_empty() {
                continue;
            }
            if now >= end {
                return Ok(None);
            }
            let due = self.peers.values().filter_map(|peer| peer.association.poll_timeout()).min();
            let due = due.map_or(end, |at| Duration::from_nanos(at.as_nanos()).min(end));
            self.socket.set_read_timeout(Some(due.saturating_sub(now).max(SHORTEST)))?;
            self.take_datagrams()?;
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn path(&self, remote: IpAddr) -> Path {
        //= RFC 6951 (5.6): the path carries so much less.
        Path { local: self.local, remote, mtu: MTU - OVERHEAD }
    }

    fn free_port(&mut self, remote: IpAddr, port: u16) -> Option<u16> {
        (FIRST_EPHEMERAL..=u16::MAX).find_map(|_| {
            let own = self.ephemeral;
            self.ephemeral = own.checked_add(1).unwrap_or(FIRST_EPHEMERAL);
            let is_free = !self.places.contains_key(&(remote, port, own)) && self.listens != Some(own);
            is_free.then_some(own)
        })
    }

    fn insert(&mut self, mut association: Association, key: Key, at: SocketAddr, is_accepted: bool) -> Id {
        association.survive_restarts();
        let id = Id(self.next);
        self.next += 1;
        self.places.insert(key, id);
        self.peers.insert(id, Peer { association, key, at, asked_from: VecDeque::new(), is_accepted });
        id
    }

    fn with<T>(&mut self, id: Id, work: impl FnOnce(&mut Association, &mut Cx) -> T) -> Option<T> {
        let now = self.now();
        let peer = self.peers.get_mut(&id)?;
        let done = work(&mut peer.association, &mut Cx { now, records: &mut self.records });
        self.drain(id);
        Some(done)
    }

    /// Wakes the associations whose time has come.
    fn expire(&mut self) {
        let now = self.now();
        let is_due = |peer: &Peer| peer.association.poll_timeout().is_some_and(|at| at <= now);
        let due: Vec<Id> = self.peers.iter().filter(|(_, peer)| is_due(peer)).map(|(id, _)| *id).collect();
        for id in due {
            self.with(id, |association, cx| association.handle_timeout(cx));
        }
    }

    /// Waits for a datagram and takes it with those behind it. All of them reach their associations before any answers.
    fn take_datagrams(&mut self) -> io::Result<()> {
        let mut fed = Vec::new();
        for n in 0..BURST {
            if n == 1 {
                self.socket.set_nonblocking(true)?;
            }
            let (len, from) = match self.socket.recv_from(&mut self.buffer) {
                Ok(came) => came,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => break,
                    // An ICMP error about a datagram of ours: the association's timers judge it.
                    ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => continue,
                    _ => return Err(error),
                },
            };
            let datagram = Bytes::copy_from_slice(&self.buffer[..len]);
            match encapsulation::open(datagram) {
                Some(packet) => fed.extend(self.arrives(from, packet)),
                None => self.malformed += 1,
            }
        }
        self.socket.set_nonblocking(false)?;
        fed.dedup();
        fed.into_iter().for_each(|id| self.drain(id));
        Ok(())
    }

    /// A packet has arrived: the association that was fed with it.
    fn arrives(&mut self, from: SocketAddr, packet: Packet) -> Option<Id> {
        let header = Header::parse(packet.head()).ok()?;
        let (remote, ours) = (from.ip(), header.destination);
        let key = (remote, header.source, ours);
        let now = self.now();
        let id = match self.places.get(&key) {
            Some(id) => *id,
            None => self.admit(from, key, &packet)?,
        };
        let peer = self.peers.get_mut(&id)?;
        if header.tag == 0 {
            peer.asked_from.push_back(from);
        }
        let mut cx = Cx { now, records: &mut self.records };
        peer.association.handle_packet(&mut cx, PathId(0), 0, packet);
        //= RFC 6951 (5.4): the peer's port is learnt from what has the right tag, which may have just become a new one.
        if header.tag == peer.association.local_tag() {
            peer.at = from;
        }
        Some(id)
    }

    /// A packet of no association: a new one for a good cookie, an answer for anything else that deserves one.
    fn admit(&mut self, from: SocketAddr, key: Key, packet: &Packet) -> Option<Id> {
        let (remote, theirs, ours) = key;
        let listens = self.listens == Some(ours);
        let path = self.path(remote);
        let mut cx = Cx { now: self.now(), records: &mut self.records };
        if listens && self.peers.len() < MOST {
            let made = self.protocol.admit(&mut cx, path, (ours, theirs), Identity::default(), packet);
            if let Some(association) = made {
                return Some(self.insert(association, key, from, true));
            }
        }
        let answer = self.protocol.answer(&mut cx, &path, packet, listens)?;
        let mut octets = Vec::new();
        encapsulation::seal(&answer, &mut octets);
        self.transmit(from, &octets);
        None
    }

    /// Takes what an association has to tell and to send.
    fn drain(&mut self, id: Id) {
        let now = self.now();
        let mut octets = Vec::new();
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let mut is_gone = false;
        let mut out = Vec::new();
        // The farewell is sent before the end is told.
        loop {
            if peer.association.poll_restarted() {
                let what = What::Restarted;
                self.events.push_back(Event { id, is_accepted: peer.is_accepted, what });
            }
            while let Some(what) = peer.association.poll_event() {
                is_gone |= what == TransportEvent::Gone;
                if !matches!(what, TransportEvent::Gone | TransportEvent::Lingering) {
                    let what = What::Transport(what);
                    self.events.push_back(Event { id, is_accepted: peer.is_accepted, what });
                }
            }
            while let Some(what) = peer.association.poll_reconfigured() {
                let what = What::Streams(what);
                self.events.push_back(Event { id, is_accepted: peer.is_accepted, what });
            }
            let mut cx = Cx { now, records: &mut self.records };
            let Some(unit) = peer.association.poll_transmit(&mut cx) else { break };
            out.push(unit.packet);
        }
        let (at, key, mut asked_from) = (peer.at, peer.key, std::mem::take(&mut peer.asked_from));
        for packet in out {
            encapsulation::seal(&packet, &mut octets);
            // It may have been another client, behind the same address and with the same port of SCTP.
            let is_answer = octets.get(HEADER) == Some(&INIT_ACK);
            let to = is_answer.then(|| asked_from.pop_front()).flatten().unwrap_or(at);
            self.transmit(to, &octets);
        }
        if is_gone {
            self.peers.remove(&id);
            self.places.remove(&key);
        }
    }

    /// Sends a datagram. One that the system has no room or way for is lost as others are, and repeated.
    fn transmit(&self, to: SocketAddr, octets: &[u8]) {
        let _ = self.socket.send_to(octets, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Endpoint {
        Endpoint::bind("127.0.0.1:0".parse().unwrap(), Config::default()).expect("loopback")
    }

    #[test]
    fn two_clients_of_one_host_seldom_choose_the_same_port() {
        let first = endpoint().ephemeral;
        assert!(first >= FIRST_EPHEMERAL && (0..4).any(|_| endpoint().ephemeral != first));
    }

    #[test]
    fn an_opening_is_answered_to_where_it_came_from() {
        let (mut server, mut clients) = (endpoint(), [endpoint(), endpoint()]);
        server.listen(7);
        let at = server.local().unwrap();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    server.wait(Duration::from_millis(1)).expect("a socket");
                }
            });
            let opened = clients.each_mut().map(|client| {
                client.ephemeral = FIRST_EPHEMERAL;
                client.connect(at, 7);
                client.wait(Duration::from_secs(20)).expect("a socket")
            });
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            for event in opened {
                assert_eq!(event.map(|event| event.what), Some(What::Transport(TransportEvent::Opened)));
            }
        });
    }
}
