//! Sockets over our TCP, as the calls of an operating system see them, with a clock that is told to go on.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::IntoRawFd;

use airloom_base::service::Path;
use airloom_base::{
    CloseReason, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, Transport, TransportEvent,
};
use airloom_transports::tcp::socket;
use airloom_transports::tcp::state::State;
use airloom_transports::tcp::{Config, Tcp};
use airloom_wire::ip::{self, Ip, protocol};
use airloom_wire::{checksum, edge};
use serde_json::{Value, json};

mod write;

pub use write::Chronograph;

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
    pub(crate) options: Options,
    local: Option<SocketAddr>,
    kind: Kind,
}

/// What can be set of a socket. One that is accepted has what the listening one had.
#[derive(Clone, Default)]
pub(crate) struct Options {
    /// Calls do not wait.
    pub nonblocking: bool,
    /// Closing resets (SO_LINGER with no time).
    pub abortive: bool,
    /// Type of service of what it sends, without ECN (IP_TOS).
    pub tos: u8,
    /// recvmsg tells how much more there is to read (TCP_INQ).
    pub inq: bool,
    /// So much that was not sent is enough (TCP_NOTSENT_LOWAT); zero: as the host has it.
    pub notsent_lowat: u32,
    /// TCP_MAXSEG as it was set.
    pub maxseg: Option<u16>,
    /// SO_SNDBUF and SO_RCVBUF as they were set.
    pub sndbuf: Option<u32>,
    pub rcvbuf: Option<u32>,
    /// Settings of the connections it makes.
    pub config: Config,
}

enum Kind {
    Fresh,
    /// Connections that were accepted and not taken yet.
    Listening(VecDeque<u64>),
    Stream(u64),
}

/// What is behind a connection.
enum Behind {
    Open(socket::Socket),
    /// TIME-WAIT.
    Lingering(Box<dyn Transport>),
    Gone,
}

impl Behind {
    fn transport(&self) -> Option<&dyn Transport> {
        match self {
            Behind::Open(s) => Some(s.transport()),
            Behind::Lingering(t) => Some(&**t),
            Behind::Gone => None,
        }
    }

    fn transport_mut(&mut self) -> Option<&mut dyn Transport> {
        match self {
            Behind::Open(s) => Some(s.transport_mut()),
            Behind::Lingering(t) => Some(&mut **t),
            Behind::Gone => None,
        }
    }
}

struct Connection {
    behind: Behind,
    local: SocketAddr,
    remote: SocketAddr,
    /// The listening socket that it came in by, until it is opened.
    listener: Option<i32>,
    tos: u8,
    opened: bool,
    /// The peer has finished.
    finished: bool,
    /// Our side of either direction was shut down.
    read_shut: bool,
    write_shut: bool,
    ended: Option<CloseReason>,
    /// The error was told.
    told: bool,
    /// Nobody holds it any more: what comes is read and dropped.
    orphan: bool,
    /// A write found no room.
    full: bool,
    /// The last write ended a record.
    record_ended: bool,
    /// Octets written, and up to the last of them that ends with PSH.
    written: u64,
    pushed: u64,
    last: Option<socket::Info>,
    chronograph: Chronograph,
}

/// Linux: TCP_MAXSEG bounds what is sent, too.
fn bounded(mtu: u16, remote: IpAddr, maxseg: Option<u16>) -> u16 {
    maxseg.map_or(mtu, |mss| mtu.min(mss.saturating_add(ip::header_len(remote) as u16 + 20)))
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
    ports: u16,
    notsent_lowat: u32,
    out: VecDeque<(Instant, Vec<u8>)>,
}

impl Stack {
    /// A host with these flags; the error says which is wrong.
    pub fn new(flags: &str) -> Result<Stack, String> {
        let mut local = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1));
        let (mut mtu, mut notsent_lowat) = (1500, u32::MAX);
        let mut table = json!({});
        for flag in flags.split(',').filter(|f| !f.is_empty()) {
            let (key, value) = flag.split_once('=').ok_or(format!("`{flag}` has no value"))?;
            match key {
                "local" => local = value.parse().map_err(|_| format!("`{value}` is no address"))?,
                "notsent_lowat" => {
                    notsent_lowat = value.parse().map_err(|_| format!("`{value}` is no number of octets"))?;
                }
                "mtu" => mtu = value.parse().map_err(|_| format!("`{value}` is no MTU"))?,
                _ => {
                    table[key] =
                        serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()))
                }
            }
        }
        let config = serde_json::from_value(table).map_err(|e| e.to_string())?;
        Ok(Stack {
            now: Instant::ZERO,
            local,
            mtu,
            config,
            outbox: Outbox::default(),
            sockets: BTreeMap::new(),
            connections: BTreeMap::new(),
            next: 0,
            ports: EPHEMERAL,
            notsent_lowat,
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
            Kind::Stream(id) => Ok((id, socket.options.nonblocking)),
            _ => Err(libc::ENOTCONN),
        }
    }

    /// The connection of a socket while it is more than a memory.
    pub(crate) fn live(&mut self, fd: i32) -> Option<&mut socket::Socket> {
        let (id, _) = self.stream(fd).ok()?;
        match self.connections.get_mut(&id).map(|c| &mut c.behind) {
            Some(Behind::Open(socket)) => Some(socket),
            _ => None,
        }
    }

    /// Does to the open connection of a socket what an option asks for, and sends what follows from it.
    pub(crate) fn touch(&mut self, fd: i32, f: impl FnOnce(&mut socket::Socket)) {
        let Some(socket) = self.live(fd) else { return };
        f(socket);
        if let Ok((id, _)) = self.stream(fd) {
            self.drain(id);
        }
    }

    /// Descriptors are the process's own, because packetdrill closes what a script leaves open.
    fn add(&mut self, options: Options, kind: Kind, local: Option<SocketAddr>) -> Result<i32, Errno> {
        let file = std::fs::File::open("/dev/null").map_err(|_| libc::EMFILE)?;
        let fd = file.into_raw_fd();
        self.sockets.insert(fd, Socket { options, local, kind });
        Ok(fd)
    }

    /// `socket`: a stream socket.
    pub fn open(&mut self, nonblocking: bool) -> Result<i32, Errno> {
        let options = Options { nonblocking, config: self.config.clone(), ..Options::default() };
        self.add(options, Kind::Fresh, None)
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
        let (options, local) = (socket.options.clone(), socket.local);
        let Kind::Listening(queue) = &mut socket.kind else { return Err(libc::EINVAL) };
        match queue.pop_front() {
            Some(id) => {
                let remote = self.connections[&id].remote;
                let fd = self.add(Options { nonblocking: false, ..options }, Kind::Stream(id), local)?;
                Ok(Some((fd, remote)))
            }
            None if options.nonblocking => Err(libc::EAGAIN),
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
                let nonblocking = socket.options.nonblocking;
                return match &self.connections[&id] {
                    c if c.opened => Err(libc::EISCONN),
                    c if c.ended.is_some() => Err(self.error(id)),
                    _ if nonblocking => Err(libc::EALREADY),
                    _ => Ok(None),
                };
            }
            Kind::Fresh => {}
        }
        let (nonblocking, config, tos) =
            (socket.options.nonblocking, socket.options.config.clone(), socket.options.tos);
        let mtu = bounded(mtu, remote.ip(), socket.options.maxseg);
        let mut port = socket.local.map_or(0, |l| l.port());
        if port == 0 {
            port = self.ports;
            self.ports = self.ports.checked_add(1).unwrap_or(EPHEMERAL);
        }
        let from = SocketAddr::new(local, port);
        let path = Path { local, remote: remote.ip(), mtu };
        let mut connection = socket::Socket::open(&Tcp::new(config, 1), now, path, (port, remote.port()));
        connection.transport_mut().connect(&mut Cx { now, records: &mut self.outbox });
        let id = self.keep(connection, from, remote, None, tos);
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
        connection: socket::Socket,
        local: SocketAddr,
        remote: SocketAddr,
        listener: Option<i32>,
        tos: u8,
    ) -> u64 {
        self.next += 1;
        let connection = Connection {
            behind: Behind::Open(connection),
            local,
            remote,
            listener,
            tos,
            opened: false,
            finished: false,
            read_shut: false,
            write_shut: false,
            ended: None,
            told: false,
            orphan: false,
            full: false,
            record_ended: false,
            written: 0,
            pushed: 0,
            last: None,
            chronograph: Chronograph::default(),
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
            Some(CloseReason::Reset | CloseReason::Application(_)) => libc::ECONNRESET,
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

    /// `read` and its relatives: an empty answer is the end. `wait`: the call may.
    pub fn read(&mut self, fd: i32, max: usize, wait: bool) -> Outcome<Vec<u8>> {
        let (id, nonblocking) = self.stream(fd)?;
        let mut octets = Vec::new();
        while octets.len() < max
            && let Some(body) = self.with(id, |t, cx| t.read(cx, 0, max - octets.len())).flatten()
        {
            octets.extend_from_slice(&body.to_bytes());
        }
        if !octets.is_empty() {
            return Ok(Some(octets));
        }
        let connection = &self.connections[&id];
        match connection.ended {
            _ if connection.finished || connection.read_shut || max == 0 => Ok(Some(Vec::new())),
            Some(CloseReason::Finished) => Ok(Some(Vec::new())),
            Some(_) if connection.told => Ok(Some(Vec::new())),
            Some(_) => Err(self.error(id)),
            None if nonblocking || !wait => Err(libc::EAGAIN),
            None => Ok(None),
        }
    }

    /// What can be read; one more if the peer has finished behind that (TCP_CM_INQ), where `end` counts.
    pub fn readable(&mut self, fd: i32, end: bool) -> Result<u32, Errno> {
        let (id, _) = self.stream(fd)?;
        let info = self.info_of(id);
        let c = &self.connections[&id];
        let fin = end && matches!(info.map(|i| i.state), Some(s) if s >= State::CloseWait) || c.finished;
        Ok(info.map_or(0, |i| i.readable as u32) + u32::from(end && fin))
    }

    /// `shutdown`.
    pub fn shut(&mut self, fd: i32, read: bool, write: bool) -> Result<(), Errno> {
        let (id, _) = self.stream(fd)?;
        let Some(c) = self.connections.get_mut(&id) else { return Err(libc::ENOTCONN) };
        c.read_shut |= read;
        if write {
            c.write_shut = true;
            self.with(id, |t, cx| t.finish(cx, 0)).ok_or(libc::ENOTCONN)?;
        }
        Ok(())
    }

    /// `close`.
    pub fn close(&mut self, fd: i32) -> Result<(), Errno> {
        let socket = self.sockets.remove(&fd).ok_or(libc::EBADF)?;
        match socket.kind {
            Kind::Fresh => {}
            Kind::Listening(queue) => queue.into_iter().for_each(|id| self.leave(id, true)),
            Kind::Stream(id) => self.leave(id, socket.options.abortive),
        }
        Ok(())
    }

    /// The application goes: in order, or at once, as it must where something was not read.
    fn leave(&mut self, id: u64, abortive: bool) {
        let unread = self.with(id, |t, cx| t.read(cx, 0, 1)).flatten().is_some();
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.orphan = true;
        }
        //= RFC 9293 (3.10.4): CLOSE in SYN-SENT deletes the connection; what the peer answers is refused.
        let opening = self.info_of(id).is_some_and(|i| i.state == State::SynSent);
        //= RFC 1122 (4.2.2.13): closing with data unread, or received later, is told to the peer by RST.
        if abortive || unread || opening {
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
        let options = socket.options.clone();
        let info = self.info_of(id);
        let c = &self.connections[&id];
        let mut events = 0;
        if info.is_some_and(|i| i.readable > 0) || c.finished || c.read_shut || c.ended.is_some() {
            events |= libc::POLLIN;
        }
        if c.finished || c.read_shut || c.ended.is_some() {
            events |= libc::POLLRDHUP;
        }
        let room = info.is_some_and(|i| self.is_writable(&options, &i));
        if c.opened && (c.ended.is_some() || c.write_shut || room) {
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

    fn info_of(&self, id: u64) -> Option<socket::Info> {
        match &self.connections.get(&id)?.behind {
            Behind::Open(socket) => Some(socket.info(self.now)),
            _ => self.connections[&id].last,
        }
    }

    /// What a connection says of itself, and what its sender was busy with; of a socket without one, nothing.
    pub fn info(&mut self, fd: i32) -> Result<(Option<socket::Info>, Chronograph), Errno> {
        let Ok((id, _)) = self.stream(fd) else {
            return self.socket(fd).map(|_| (None, Chronograph::default()));
        };
        self.note_doing(id);
        Ok((self.info_of(id), self.connections[&id].chronograph))
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
        let same = |c: &Connection| c.behind.transport().is_some() && c.local == local && c.remote == remote;
        let mut found = self.connections.iter().find(|(_, c)| same(c)).map(|(id, _)| *id);
        if let Some(id) = found
            && let Some(c) = self.connections.get_mut(&id)
            && let Behind::Lingering(transport) = &c.behind
            && transport.yields_to(&packet)
        {
            c.behind = Behind::Gone;
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
                    self.leaves(local, remote, answer, 0, 0);
                }
            }
        }
        Ok(())
    }

    /// A segment that belongs to no connection opens one, if somebody listens.
    fn opens(&mut self, local: SocketAddr, remote: SocketAddr, packet: &Packet) -> Option<u64> {
        let listens = |(fd, s): (&i32, &Socket)| match &s.kind {
            Kind::Listening(queue) if s.local.is_some_and(|l| l.port() == local.port()) => {
                (queue.len() < BACKLOG).then(|| (*fd, s.options.clone()))
            }
            _ => None,
        };
        let (listener, Options { config, tos, maxseg, .. }) = self.sockets.iter().find_map(listens)?;
        let mtu = bounded(self.mtu, remote.ip(), maxseg);
        let path = Path { local: local.ip(), remote: remote.ip(), mtu };
        let ports = (local.port(), remote.port());
        let connection = socket::Socket::accept(&Tcp::new(config, 1), self.now, path, ports, packet)?;
        Some(self.keep(connection, local, remote, Some(listener), tos))
    }

    /// The next datagram that has left, and when.
    pub fn receive(&mut self) -> Option<(u64, Vec<u8>)> {
        self.out.pop_front().map(|(at, octets)| (at.as_nanos() / 1000, octets))
    }

    fn deadline(&self) -> Option<Instant> {
        self.connections.values().filter_map(|c| c.behind.transport()?.poll_timeout()).min()
    }

    /// Time passes up to the next timer, or to `stop` if that is earlier. Says no if there is neither.
    pub fn advance_to_next(&mut self, stop: Option<Duration>) -> bool {
        let stop = stop.map(|after| Instant::ZERO + after);
        let Some(at) = [self.deadline(), stop].into_iter().flatten().min() else { return false };
        self.now = self.now.max(at);
        let ids: Vec<u64> = self.connections.keys().copied().collect();
        for id in ids {
            let transport = self.connections[&id].behind.transport();
            if transport.and_then(|t| t.poll_timeout()).is_some_and(|at| at <= self.now) {
                self.with(id, |t, cx| t.handle_timeout(cx));
            }
        }
        true
    }

    fn with<R>(&mut self, id: u64, f: impl FnOnce(&mut dyn Transport, &mut Cx) -> R) -> Option<R> {
        let result = self.with_undrained(id, f)?;
        self.drain(id);
        Some(result)
    }

    fn with_undrained<R>(&mut self, id: u64, f: impl FnOnce(&mut dyn Transport, &mut Cx) -> R) -> Option<R> {
        let transport = self.connections.get_mut(&id)?.behind.transport_mut()?;
        Some(f(transport, &mut Cx { now: self.now, records: &mut self.outbox }))
    }

    /// Takes everything that a connection has to tell and to send.
    fn drain(&mut self, id: u64) {
        while let Some(c) = self.connections.get_mut(&id)
            && let Some(transport) = c.behind.transport_mut()
        {
            let mut cx = Cx { now: self.now, records: &mut self.outbox };
            let Some(event) = transport.poll_event() else {
                let Some(out) = transport.poll_transmit(&mut cx) else { break };
                let (local, remote, tos) = (c.local, c.remote, c.tos);
                self.leaves(local, remote, out.packet, out.ecn, tos);
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
                TransportEvent::Readable(..) if c.orphan => {
                    if let Behind::Open(socket) = &mut c.behind {
                        socket.refuse_text();
                    }
                }
                TransportEvent::Readable(..) | TransportEvent::Writable(_) => {}
                TransportEvent::Finished(_) => c.finished = true,
                TransportEvent::Closed(reason) => c.ended = Some(reason),
                TransportEvent::Lingering | TransportEvent::Gone => {
                    let behind = std::mem::replace(&mut c.behind, Behind::Gone);
                    if let Behind::Open(socket) = behind {
                        c.last = Some(socket.info(self.now));
                        if event == TransportEvent::Lingering {
                            c.behind = Behind::Lingering(socket.into_lingering());
                        }
                    }
                }
                TransportEvent::Asked | TransportEvent::Stream(..) => {}
            }
        }
        self.note_doing(id);
        if self.connections.get(&id).is_some_and(|c| c.orphan && matches!(c.behind, Behind::Gone)) {
            self.connections.remove(&id);
        }
    }

    fn leaves(&mut self, local: SocketAddr, remote: SocketAddr, mut packet: Packet, ecn: u8, tos: u8) {
        let len = packet.wire_len();
        let head = packet.prepend(ip::header_len(remote.ip()));
        ip::emit(head, local.ip(), remote.ip(), protocol::TCP, ecn, len);
        let mut octets = Vec::new();
        edge::egress(&packet, &mut octets);
        if tos != 0 && remote.is_ipv4() {
            octets[1] |= tos & !3;
            octets[10..12].fill(0);
            let sum = checksum::internet(&octets[..20]);
            octets[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        self.out.push_back((self.now, octets));
    }

    /// The settings that a connection has.
    pub fn settings(&mut self, fd: i32) -> Result<&Config, Errno> {
        if self.live(fd).is_some() {
            return self.live(fd).map(|s| s.config()).ok_or(libc::EBADF);
        }
        self.socket(fd).map(|s| &s.options.config)
    }

    /// Those of a socket that nobody has changed.
    pub fn host_settings(&self) -> &Config {
        &self.config
    }

    /// Changes the settings of connections that this socket will make, and of the one that it has.
    pub fn change(&mut self, fd: i32, f: impl Fn(&mut Config)) -> Result<(), Errno> {
        f(&mut self.socket(fd)?.options.config);
        let now = self.now;
        self.touch(fd, |s| s.change(now, &f));
        Ok(())
    }

    /// IP_TOS, for what is sent from now on.
    pub fn set_tos(&mut self, fd: i32, tos: u8) -> Result<(), Errno> {
        self.socket(fd)?.options.tos = tos;
        if let Ok((id, _)) = self.stream(fd)
            && let Some(c) = self.connections.get_mut(&id)
        {
            c.tos = tos;
        }
        Ok(())
    }
}
