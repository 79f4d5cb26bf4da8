//! Sockets over our TCP, as the calls of an operating system see them, with a clock that is told to go on.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use airloom_base::record::{CongestionRecord, Record};
use airloom_base::service::{FlowFacts, Identity, Path};
use airloom_base::{
    Body, CloseReason, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, Transport, TransportEvent,
};
use airloom_transports::tcp::{Config, Tcp};
use airloom_wire::edge;
use airloom_wire::ip::{self, Ip, protocol};
use serde_json::{Value, json};

/// An error number of the operating system.
pub type Errno = i32;
/// What a call gives: a value, an error, or `None` where a blocking call has to wait.
pub type Outcome<T> = Result<Option<T>, Errno>;

/// What a listening socket keeps at most.
const BACKLOG: usize = 4096;
/// Where automatic ports begin.
const EPHEMERAL: u16 = 32_768;

/// A socket as the application holds it.
pub struct Socket {
    /// Calls do not wait.
    pub nonblocking: bool,
    /// Closing resets (SO_LINGER with no time).
    pub abortive: bool,
    /// Settings of the connections it makes.
    pub config: Config,
    local: Option<SocketAddr>,
    kind: Kind,
}

enum Kind {
    Fresh,
    /// Connections that were accepted and not taken yet.
    Listening(VecDeque<u64>),
    Stream(u64),
}

struct Connection {
    transport: Option<Box<dyn Transport>>,
    lingering: bool,
    local: SocketAddr,
    remote: SocketAddr,
    /// The listening socket that it came in by, until it is opened.
    listener: Option<i32>,
    config: Config,
    opened: bool,
    finished: bool,
    ended: Option<CloseReason>,
    /// The error was told.
    told: bool,
    /// Nobody holds it any more: what comes is read and dropped.
    orphan: bool,
    facts: FlowFacts,
    congestion: Option<CongestionRecord>,
}

/// One host.
pub struct Stack {
    now: Instant,
    local: IpAddr,
    mtu: u16,
    config: Config,
    outbox: Outbox,
    sockets: BTreeMap<i32, Socket>,
    connections: BTreeMap<u64, Connection>,
    next: u64,
    out: VecDeque<(Instant, Vec<u8>)>,
}

impl Stack {
    /// A host with these flags; the error says which is wrong.
    pub fn new(flags: &str) -> Result<Stack, String> {
        let mut local = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1));
        let mut mtu = 1500;
        let mut table = json!({});
        for flag in flags.split(',').filter(|f| !f.is_empty()) {
            let (key, value) = flag.split_once('=').ok_or(format!("`{flag}` has no value"))?;
            match key {
                "local" => local = value.parse().map_err(|_| format!("`{value}` is no address"))?,
                "mtu" => mtu = value.parse().map_err(|_| format!("`{value}` is no MTU"))?,
                _ => {
                    table[key] =
                        serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()))
                }
            }
        }
        let config = serde_json::from_value(table).map_err(|e| e.to_string())?;
        let mut outbox = Outbox::default();
        outbox.ask_facts(true, true);
        Ok(Stack {
            now: Instant::ZERO,
            local,
            mtu,
            config,
            outbox,
            sockets: BTreeMap::new(),
            connections: BTreeMap::new(),
            next: 0,
            out: VecDeque::new(),
        })
    }

    /// Microseconds since the beginning.
    pub fn micros(&self) -> u64 {
        self.now.as_nanos() / 1000
    }

    /// A socket, to look at or change its options.
    pub fn socket(&mut self, fd: i32) -> Result<&mut Socket, Errno> {
        self.sockets.get_mut(&fd).ok_or(libc::EBADF)
    }

    fn stream(&mut self, fd: i32) -> Result<(u64, bool), Errno> {
        let socket = self.socket(fd)?;
        match socket.kind {
            Kind::Stream(id) => Ok((id, socket.nonblocking)),
            _ => Err(libc::ENOTCONN),
        }
    }

    fn add(&mut self, nonblocking: bool, config: Config, kind: Kind, local: Option<SocketAddr>) -> i32 {
        // Numbers that no file of the process has.
        let fd = (100_000..).find(|fd| !self.sockets.contains_key(fd)).unwrap_or(i32::MAX);
        self.sockets.insert(fd, Socket { nonblocking, abortive: false, config, local, kind });
        fd
    }

    /// `socket`: a stream socket.
    pub fn open(&mut self, nonblocking: bool) -> i32 {
        self.add(nonblocking, self.config.clone(), Kind::Fresh, None)
    }

    /// `bind`.
    pub fn bind(&mut self, fd: i32, address: SocketAddr) -> Result<(), Errno> {
        let taken = |s: &Socket| {
            matches!(s.kind, Kind::Listening(_)) && s.local.is_some_and(|l| l.port() == address.port())
        };
        if self.sockets.values().any(taken) {
            return Err(libc::EADDRINUSE);
        }
        self.socket(fd)?.local = Some(address);
        Ok(())
    }

    /// `listen`.
    pub fn listen(&mut self, fd: i32) -> Result<(), Errno> {
        let socket = self.socket(fd)?;
        if socket.local.is_none() || matches!(socket.kind, Kind::Stream(_)) {
            return Err(libc::EINVAL);
        }
        if matches!(socket.kind, Kind::Fresh) {
            socket.kind = Kind::Listening(VecDeque::new());
        }
        Ok(())
    }

    /// `accept`: the new descriptor and the peer.
    pub fn accept(&mut self, fd: i32) -> Outcome<(i32, SocketAddr)> {
        let socket = self.socket(fd)?;
        let (nonblocking, config, local) = (socket.nonblocking, socket.config.clone(), socket.local);
        let Kind::Listening(queue) = &mut socket.kind else { return Err(libc::EINVAL) };
        match queue.pop_front() {
            Some(id) => {
                let remote = self.connections[&id].remote;
                Ok(Some((self.add(false, config, Kind::Stream(id), local), remote)))
            }
            None if nonblocking => Err(libc::EAGAIN),
            None => Ok(None),
        }
    }

    /// `connect`: begins, or says how far it is.
    pub fn connect(&mut self, fd: i32, remote: SocketAddr) -> Outcome<()> {
        let (local, mtu, now) = (self.local, self.mtu, self.now);
        let socket = self.socket(fd)?;
        match socket.kind {
            Kind::Listening(_) => return Err(libc::EINVAL),
            Kind::Stream(id) => {
                let nonblocking = socket.nonblocking;
                return match &self.connections[&id] {
                    c if c.opened => Err(libc::EISCONN),
                    c if c.ended.is_some() => Err(self.error(id)),
                    _ if nonblocking => Err(libc::EALREADY),
                    _ => Ok(None),
                };
            }
            Kind::Fresh => {}
        }
        let (nonblocking, config) = (socket.nonblocking, socket.config.clone());
        let port = socket.local.map_or(0, |l| l.port());
        let port = if port == 0 { EPHEMERAL + (fd - 100_000) as u16 } else { port };
        let from = SocketAddr::new(local, port);
        let path = Path { local, remote: remote.ip(), mtu };
        let mut tcp = Tcp::new(config.clone(), 1);
        let mut cx = Cx { now, records: &mut self.outbox };
        let mut transport = tcp.open(&mut cx, path, (port, remote.port()), Identity::default());
        transport.connect(&mut cx);
        let id = self.keep(transport, from, remote, None, config);
        self.socket(fd)?.kind = Kind::Stream(id);
        self.drain(id);
        if nonblocking { Err(libc::EINPROGRESS) } else { Ok(None) }
    }

    /// After a blocking `connect` began: is it open?
    pub fn connected(&mut self, fd: i32) -> Outcome<()> {
        let (id, _) = self.stream(fd)?;
        match &self.connections[&id] {
            c if c.opened => Ok(Some(())),
            c if c.ended.is_some() => Err(self.error(id)),
            _ => Ok(None),
        }
    }

    fn keep(
        &mut self,
        transport: Box<dyn Transport>,
        local: SocketAddr,
        remote: SocketAddr,
        listener: Option<i32>,
        config: Config,
    ) -> u64 {
        self.next += 1;
        let connection = Connection {
            transport: Some(transport),
            lingering: false,
            local,
            remote,
            listener,
            config,
            opened: false,
            finished: false,
            ended: None,
            told: false,
            orphan: false,
            facts: FlowFacts::default(),
            congestion: None,
        };
        self.connections.insert(self.next, connection);
        self.next
    }

    /// The error that ended a connection, told once.
    fn error(&mut self, id: u64) -> Errno {
        let Some(connection) = self.connections.get_mut(&id) else { return libc::EBADF };
        if std::mem::replace(&mut connection.told, true) {
            return libc::ENOTCONN;
        }
        match connection.ended {
            Some(CloseReason::Refused) => libc::ECONNREFUSED,
            Some(CloseReason::Reset) => libc::ECONNRESET,
            Some(CloseReason::TimedOut) => libc::ETIMEDOUT,
            Some(CloseReason::Unreachable) => libc::EHOSTUNREACH,
            Some(CloseReason::Aborted) => libc::ECONNABORTED,
            Some(CloseReason::Finished) | None => libc::ENOTCONN,
        }
    }

    /// SO_ERROR.
    pub fn pending_error(&mut self, fd: i32) -> Result<Errno, Errno> {
        let Ok((id, _)) = self.stream(fd) else { return self.socket(fd).map(|_| 0) };
        let wrong = self.connections[&id].ended.is_some_and(|r| r != CloseReason::Finished);
        Ok(if wrong && !self.connections[&id].told { self.error(id) } else { 0 })
    }

    /// `read` and its relatives: an empty answer is the end.
    pub fn read(&mut self, fd: i32, max: usize) -> Outcome<Vec<u8>> {
        let (id, nonblocking) = self.stream(fd)?;
        let body = self.with(id, |t, cx| t.read(cx, 0, max)).flatten();
        if let Some(body) = body {
            return Ok(Some(body.to_bytes().to_vec()));
        }
        let connection = &self.connections[&id];
        match connection.ended {
            _ if connection.finished || max == 0 => Ok(Some(Vec::new())),
            Some(CloseReason::Finished) => Ok(Some(Vec::new())),
            Some(_) if connection.told => Ok(Some(Vec::new())),
            Some(_) => Err(self.error(id)),
            None if nonblocking => Err(libc::EAGAIN),
            None => Ok(None),
        }
    }

    /// `write` and its relatives: how many octets were taken.
    pub fn write(&mut self, fd: i32, octets: &[u8]) -> Outcome<usize> {
        let (id, nonblocking) = self.stream(fd)?;
        if self.connections[&id].ended.is_some() {
            let error = self.error(id);
            return Err(if error == libc::ENOTCONN { libc::EPIPE } else { error });
        }
        let body = Body::Real(octets.to_vec().into());
        match self.with(id, |t, cx| t.write(cx, 0, body)) {
            Some(0) if !octets.is_empty() && nonblocking => Err(libc::EAGAIN),
            Some(0) if !octets.is_empty() => Ok(None),
            Some(taken) => Ok(Some(taken)),
            None => Err(libc::EPIPE),
        }
    }

    /// `shutdown` of the sending direction.
    pub fn finish(&mut self, fd: i32) -> Result<(), Errno> {
        let (id, _) = self.stream(fd)?;
        self.with(id, |t, cx| t.finish(cx, 0)).ok_or(libc::ENOTCONN)
    }

    /// `close`.
    pub fn close(&mut self, fd: i32) -> Result<(), Errno> {
        let socket = self.sockets.remove(&fd).ok_or(libc::EBADF)?;
        match socket.kind {
            Kind::Fresh => {}
            Kind::Listening(queue) => queue.into_iter().for_each(|id| self.leave(id, true)),
            Kind::Stream(id) => self.leave(id, socket.abortive),
        }
        Ok(())
    }

    /// The application goes: in order, or at once, as it must where something was not read.
    fn leave(&mut self, id: u64, abortive: bool) {
        let unread = self.with(id, |t, cx| t.read(cx, 0, 1)).flatten().is_some();
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.orphan = true;
        }
        //= RFC 1122 (4.2.2.13): closing with data unread, or received later, is told to the peer by RST.
        if abortive || unread {
            self.with(id, |t, cx| t.reset(cx));
        } else {
            self.with(id, |t, cx| t.finish(cx, 0));
        }
    }

    /// What `poll` says of a descriptor: POLLIN, POLLOUT, POLLERR, POLLHUP.
    pub fn readiness(&mut self, fd: i32) -> Result<i16, Errno> {
        let socket = self.socket(fd)?;
        let id = match &socket.kind {
            Kind::Fresh => return Ok(libc::POLLOUT | libc::POLLHUP),
            Kind::Listening(queue) => return Ok(if queue.is_empty() { 0 } else { libc::POLLIN }),
            Kind::Stream(id) => *id,
        };
        let readable = self.with(id, |t, cx| t.read(cx, 0, 0)).flatten().is_some();
        let c = &self.connections[&id];
        let mut events = 0;
        if readable || c.finished || c.ended.is_some() {
            events |= libc::POLLIN;
        }
        if c.opened && c.ended.is_none() {
            events |= libc::POLLOUT;
        }
        if c.ended.is_some() {
            events |= libc::POLLHUP;
        }
        if c.ended.is_some_and(|r| r != CloseReason::Finished) && !c.told {
            events |= libc::POLLERR;
        }
        Ok(events)
    }

    /// What a connection did, and its congestion state.
    pub fn facts(&mut self, fd: i32) -> Result<(FlowFacts, Option<CongestionRecord>), Errno> {
        let (id, _) = self.stream(fd)?;
        let c = &self.connections[&id];
        Ok((c.facts, c.congestion.clone()))
    }

    /// A datagram arrives from the wire. What is none is dropped.
    pub fn arrives(&mut self, octets: &[u8]) -> Result<(), Errno> {
        let mut packet = edge::ingress(edge::Received::whole(octets.to_vec())).map_err(|_| libc::EINVAL)?;
        let header = Ip::parse(packet.head()).map_err(|_| libc::EINVAL)?;
        packet.strip(header.header_len);
        if header.protocol != protocol::TCP || header.is_fragment {
            return Ok(());
        }
        let mut tcp = Tcp::new(self.config.clone(), 1);
        let Some((theirs, ours)) = tcp.ports(packet.head()) else { return Ok(()) };
        let (local, remote) =
            (SocketAddr::new(header.destination, ours), SocketAddr::new(header.source, theirs));
        let same = |c: &Connection| c.transport.is_some() && c.local == local && c.remote == remote;
        let mut found = self.connections.iter().find(|(_, c)| same(c)).map(|(id, _)| *id);
        if let Some(id) = found
            && let Some(c) = self.connections.get_mut(&id)
            && c.lingering
            && c.transport.as_ref().is_some_and(|t| t.yields_to(&packet))
        {
            c.transport = None;
            found = None;
        }
        let id = match found {
            Some(id) => Some(id),
            None => self.opens(local, remote, &packet),
        };
        match id {
            Some(id) => {
                let ecn = header.ecn;
                self.with(id, |t, cx| t.handle_packet(cx, PathId(0), ecn, packet));
            }
            None => {
                if let Some(answer) = tcp.refuse(&packet) {
                    self.leaves(local, remote, answer, 0);
                }
            }
        }
        Ok(())
    }

    /// A segment that belongs to no connection opens one, if somebody listens.
    fn opens(&mut self, local: SocketAddr, remote: SocketAddr, packet: &Packet) -> Option<u64> {
        let listens = |(fd, s): (&i32, &Socket)| match &s.kind {
            Kind::Listening(queue) if s.local.is_some_and(|l| l.port() == local.port()) => {
                (queue.len() < BACKLOG).then(|| (*fd, s.config.clone()))
            }
            _ => None,
        };
        let (listener, config) = self.sockets.iter().find_map(listens)?;
        let path = Path { local: local.ip(), remote: remote.ip(), mtu: self.mtu };
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        let ports = (local.port(), remote.port());
        let transport =
            Tcp::new(config.clone(), 1).accept(&mut cx, path, ports, Identity::default(), packet)?;
        Some(self.keep(transport, local, remote, Some(listener), config))
    }

    /// The next datagram that leaves and when, waiting for it in virtual time; `None` if none ever will.
    pub fn receive(&mut self) -> Option<(u64, Vec<u8>)> {
        while self.out.is_empty() {
            let due = self.deadline()?;
            self.advance(due);
        }
        self.out.pop_front().map(|(at, octets)| (at.as_nanos() / 1000, octets))
    }

    fn deadline(&self) -> Option<Instant> {
        self.connections.values().filter_map(|c| c.transport.as_ref()?.poll_timeout()).min()
    }

    /// Time passes.
    pub fn sleep(&mut self, micros: u64) {
        let end = self.now + Duration::from_nanos(micros * 1000);
        while let Some(due) = self.deadline().filter(|due| *due <= end) {
            self.advance(due);
        }
        self.now = self.now.max(end);
    }

    fn advance(&mut self, due: Instant) {
        self.now = self.now.max(due);
        let ids: Vec<u64> = self.connections.keys().copied().collect();
        for id in ids {
            let transport = self.connections[&id].transport.as_ref();
            if transport.and_then(|t| t.poll_timeout()).is_some_and(|at| at <= self.now) {
                self.with(id, |t, cx| t.handle_timeout(cx));
            }
        }
    }

    fn with<R>(&mut self, id: u64, f: impl FnOnce(&mut dyn Transport, &mut Cx) -> R) -> Option<R> {
        let connection = self.connections.get_mut(&id)?;
        let transport = connection.transport.as_mut()?;
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        let result = f(transport.as_mut(), &mut cx);
        self.drain(id);
        Some(result)
    }

    /// Takes everything that a connection has to tell and to send.
    fn drain(&mut self, id: u64) {
        while let Some(c) = self.connections.get_mut(&id)
            && let Some(transport) = &mut c.transport
        {
            let mut cx = Cx { now: self.now, records: &mut self.outbox };
            if !c.lingering {
                c.facts = transport.facts();
            }
            let Some(event) = transport.poll_event() else {
                let Some(out) = transport.poll_transmit(&mut cx) else { break };
                let (local, remote) = (c.local, c.remote);
                self.leaves(local, remote, out.packet, out.ecn);
                continue;
            };
            match event {
                TransportEvent::Opened => {
                    c.opened = true;
                    let listener = c.listener.take();
                    if let Some(socket) = listener.and_then(|fd| self.sockets.get_mut(&fd))
                        && let Kind::Listening(queue) = &mut socket.kind
                    {
                        queue.push_back(id);
                    }
                }
                TransportEvent::Readable(..) if c.orphan => transport.reset(&mut cx),
                TransportEvent::Readable(..) | TransportEvent::Writable(_) => {}
                TransportEvent::Finished(_) => c.finished = true,
                TransportEvent::Closed(reason) => c.ended = Some(reason),
                TransportEvent::Lingering => {
                    c.transport = c.transport.take().map(|t| t.into_lingering());
                    c.lingering = true;
                }
                TransportEvent::Gone => c.transport = None,
                TransportEvent::Asked => {}
            }
        }
        for record in self.outbox.facts.drain(..) {
            if let (Record::Congestion(record), Some(c)) = (record, self.connections.get_mut(&id)) {
                c.congestion = Some(record);
            }
        }
        if self.connections.get(&id).is_some_and(|c| c.orphan && c.transport.is_none()) {
            self.connections.remove(&id);
        }
    }

    fn leaves(&mut self, local: SocketAddr, remote: SocketAddr, mut packet: Packet, ecn: u8) {
        let len = packet.wire_len();
        let head = packet.prepend(ip::header_len(remote.ip()));
        ip::emit(head, local.ip(), remote.ip(), protocol::TCP, ecn, len);
        let mut octets = Vec::new();
        edge::egress(&packet, &mut octets);
        self.out.push_back((self.now, octets));
    }

    /// The settings that a connection has.
    pub fn settings(&mut self, fd: i32) -> Result<&Config, Errno> {
        match self.stream(fd) {
            Ok((id, _)) => Ok(&self.connections[&id].config),
            Err(_) => self.socket(fd).map(|s| &s.config),
        }
    }

    /// Changes the settings of connections that this socket will make.
    pub fn change(&mut self, fd: i32, f: impl FnOnce(&mut Config)) -> Result<(), Errno> {
        let socket = self.socket(fd)?;
        if matches!(socket.kind, Kind::Stream(_)) {
            return Err(libc::EISCONN);
        }
        f(&mut socket.config);
        Ok(())
    }
}
