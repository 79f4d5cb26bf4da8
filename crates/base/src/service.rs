//! The services between hosts, transports and applications.
//!
//! A [`Transport`] is one connection (or association). It hands down [`Outgoing`] units, its own header and
//! payload without IP, and offers *streams* upwards. An [`App`] is a machine over [`Sockets`]; the same app runs
//! in the simulated network and, behind an adapter, on real sockets.

use std::net::{IpAddr, SocketAddr};

pub use crate::flow::{CloseReason, FlowFacts, Moves};
use crate::machine::Cx;
use crate::packet::{Body, Packet};
pub use crate::streams::{StreamEvent, StreamKind};
use crate::summary::Summary;
use crate::time::Instant;

/// Index into the list of (local, remote) address pairs of a connection. TCP has one; SCTP and QUIC many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u8);

/// An address pair a connection can use, and the largest datagram on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Our address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
    /// Largest IP datagram in octets.
    pub mtu: u16,
}

impl Path {
    /// Octets of the IP header on this path.
    pub const fn ip_header(&self) -> u16 {
        if self.remote.is_ipv6() { 40 } else { 20 }
    }
}

/// What a transport wants sent: the packet's header octets begin with the transport's own header.
#[derive(Debug)]
pub struct Outgoing {
    /// On which path.
    pub path: PathId,
    /// The two ECN bits of the IP header (RFC 3168): 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// Transport header and payload.
    pub packet: Packet,
    /// Nothing follows at this moment: there is no need to ask. False where the transport would have to look.
    pub last: bool,
}

/// Source and destination port where they are the first four octets.
#[inline]
pub fn leading_ports(head: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *head.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Who a connection is in the records: the host it lives on and its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Index of the host.
    pub host: u16,
    /// Number of the flow, the same at both ends.
    pub flow: u32,
}

/// What a connection reports to its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportEvent {
    /// The peer wants to open it, and the host waits for its application's word (no protocol's machine says this).
    Asked,
    /// Data can flow both ways.
    Opened,
    /// `read` of that stream gives so many octets, where it gave none before. More may arrive while they wait, and no
    /// other event tells of it: the next one comes when everything was read and something is there again.
    Readable(u32, u32),
    /// `write` of that stream takes something again, after it took less than offered.
    Writable(u32),
    /// The peer finished that stream and everything was read.
    Finished(u32),
    /// What else happened on that stream, where streams open and end one by one.
    Stream(u32, StreamEvent),
    /// It is over for the application. The connection may live on for the peer's sake (TIME-WAIT).
    Closed(CloseReason),
    /// The connection needs no more than a few words of state now: `into_lingering` may be called.
    Lingering,
    /// Nothing is left to do: it may be dropped.
    Gone,
}

/// Why a stream takes nothing of what is written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The buffer is full, and [`TransportEvent::Writable`] follows; or it is not open yet, and [`TransportEvent::Opened`] does.
    Blocked,
    /// It is over, or our side has finished it: it will take nothing any more.
    Closed,
    /// The peer reads no more of it, for this reason of its application ([`StreamEvent::Stopped`]).
    Stopped(u64),
}

impl WriteError {
    /// What a write gives that took so many octets of those offered, where no room is the only reason to take less.
    pub const fn or_taken(taken: usize, offered: usize) -> Result<usize, WriteError> {
        if taken == 0 && offered > 0 { Err(WriteError::Blocked) } else { Ok(taken) }
    }
}

/// One end of a connection (or association), with its streams.
///
/// Same order as every machine: feed, drain `poll_event` and then `poll_transmit` until `None`, read `poll_timeout`.
/// Sending raises no event, but for [`TransportEvent::Gone`] of a connection that had only a farewell left to send.
pub trait Transport: Send {
    /// Opens actively.
    fn connect(&mut self, cx: &mut Cx);
    /// A unit of this connection arrived; its header octets begin with the transport's own header.
    fn handle_packet(&mut self, cx: &mut Cx, path: PathId, ecn: u8, packet: Packet);
    /// The next unit to send now.
    fn poll_transmit(&mut self, cx: &mut Cx) -> Option<Outgoing>;
    /// The next thing to tell the application.
    fn poll_event(&mut self) -> Option<TransportEvent>;
    /// When to call `handle_timeout`.
    fn poll_timeout(&self) -> Option<Instant>;
    /// That moment has come.
    fn handle_timeout(&mut self, cx: &mut Cx);
    /// Takes as much of `body` as there is buffer for and returns how many octets that was.
    ///
    /// # Errors
    /// Why it is none.
    fn write(&mut self, cx: &mut Cx, stream: u32, body: Body) -> Result<usize, WriteError>;
    /// Gives at most `max` octets that have arrived in order; `None` if there are none.
    fn read(&mut self, cx: &mut Cx, stream: u32, max: usize) -> Option<Body>;
    /// No more data from our side on this stream (half close).
    fn finish(&mut self, cx: &mut Cx, stream: u32);
    /// Ends it at once and tells the peer.
    fn reset(&mut self, cx: &mut Cx);
    /// As `reset`, with a code for the peer's application where the protocol carries one.
    fn close(&mut self, cx: &mut Cx, _code: u64) {
        self.reset(cx);
    }
    /// The application speaks this protocol (a name of TLS's ALPN, RFC 7301) and knows of streams. Comes before `connect`, or never:
    /// then it reads and writes stream 0, as with TCP.
    fn speak(&mut self, _protocol: &'static str) {}
    /// Opens a stream. `None`: the peer allows no more of them now ([`StreamEvent::More`] follows), or streams do not open
    /// one by one.
    fn open_stream(&mut self, _cx: &mut Cx, _kind: StreamKind) -> Option<u32> {
        None
    }
    /// Ends our side of a stream at once: what has not arrived is given up, and the peer's application is told the code.
    fn reset_stream(&mut self, _cx: &mut Cx, _stream: u32, _code: u64) {}
    /// Reads no more of a stream, and tells the peer's application why.
    fn stop(&mut self, _cx: &mut Cx, _stream: u32, _code: u64) {}
    /// Streams with a larger number are served first, equals in turn; 0 until said.
    fn set_priority(&mut self, _stream: u32, _priority: i32) {}
    /// Sends octets that are not sent again if they are lost (RFC 9221). False: it takes none, or not so many.
    fn send_unreliable(&mut self, _cx: &mut Cx, _body: Body) -> bool {
        false
    }
    /// The next of those that the peer sent.
    fn read_unreliable(&mut self, _cx: &mut Cx) -> Option<Body> {
        None
    }
    /// How many octets `send_unreliable` takes at a time at the moment; `None`: the peer takes none.
    fn unreliable_limit(&self) -> Option<usize> {
        None
    }
    /// The path can carry datagrams of at most `mtu` octets (ICMP fragmentation needed, packet too big).
    fn path_mtu(&mut self, cx: &mut Cx, path: PathId, mtu: u16);
    /// Octets written to `stream` that the peer has not acknowledged yet, sent or not.
    fn unacknowledged(&self, _stream: u32) -> u64 {
        0
    }
    /// How many streams both ends can write and read, where the streams of a connection have no end of their own (SCTP); what
    /// it asks for until that is agreed on. `None`: one stream, which each side finishes.
    fn streams(&self) -> Option<u32> {
        None
    }
    /// All addresses that the peer has told, known once the connection is open; `None`: one path is all it takes.
    fn peer_addresses(&self) -> Option<&[IpAddr]> {
        None
    }
    /// Another path, between two addresses of the ends; its [`PathId`] is the next one. False: it is not taken.
    fn add_path(&mut self, _cx: &mut Cx, _path: Path) -> bool {
        false
    }
    /// The link that datagrams of this path leave by came into service for this host, or left it. What is sent meanwhile is
    /// lost; a transport without a use for the news finds that out by itself.
    fn handle_path(&mut self, _cx: &mut Cx, _path: PathId, _is_up: bool) {}
    /// A unit of this connection is about to be fed that comes over addresses and ports which are none of its paths': its peer has
    /// moved, or somebody between has given it another address. The path it is from now on: the next one, or one that is given
    /// up for it; `None`: there is no such thing, the unit is dropped. `ports` are ours and the peer's.
    fn handle_move(&mut self, _cx: &mut Cx, _path: Path, _ports: (u16, u16)) -> Option<PathId> {
        None
    }
    /// Events of its application for the log of this connection (qlog), as records of a JSON text sequence.
    fn log(&mut self, _events: &[u8]) {}
    /// What it did so far.
    fn facts(&self) -> FlowFacts;
    /// What became of its paths, where it has several.
    fn moves(&self) -> Moves {
        Moves::default()
    }
    /// The same connection in a few words, after it reported [`TransportEvent::Lingering`].
    fn into_lingering(self: Box<Self>) -> Box<dyn Transport>;
    /// Only lingering: does this unit of the same addresses and ports open a new connection in its place (RFC 9293
    /// 3.6.1)? Then the host drops this one and treats the unit as one of no connection.
    fn yields_to(&self, _unit: &Packet) -> bool {
        false
    }
}

/// What a record says of a transport header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// Sequence number, where there is one.
    pub seq: Option<u64>,
    /// Acknowledgement number, where there is one.
    pub ack: Option<u64>,
}

/// A protocol of a host: makes connections and answers what belongs to none.
pub trait Protocol: Send {
    /// Its name, as in the registry and in records.
    fn name(&self) -> &'static str;
    /// Its number in the IP header.
    fn ip_protocol(&self) -> u8;
    /// Source and destination port of a unit; `None` if it is too short.
    fn ports(&self, head: &[u8]) -> Option<(u16, u16)> {
        leading_ports(head)
    }
    /// The same of a unit that this host has sent, as an ICMP error quotes it: ours comes first.
    fn quoted_ports(&self, head: &[u8]) -> Option<(u16, u16)> {
        self.ports(head)
    }
    /// The host has these addresses, and one of its links takes IP datagrams of `mtu` octets, none larger ones: for protocols that tell
    /// their peers.
    fn own(&mut self, _addresses: &[IpAddr], _mtu: u16) {}
    /// The application that accepts connections on this port speaks this protocol (a name of TLS's ALPN) and knows of streams.
    fn serve(&mut self, _port: u16, _protocol: &'static str) {}
    /// Do its connections have streams that open one by one, for applications that speak a protocol with streams
    /// ([`Sockets::connect_for`])?
    fn has_streams(&self) -> bool {
        false
    }
    /// Are the ports the first four octets, the source first, as in TCP, UDP, DCCP and SCTP?
    fn has_leading_ports(&self) -> bool {
        true
    }
    /// A connection that will open actively when `connect` is called.
    fn open(&mut self, cx: &mut Cx, path: Path, ports: (u16, u16), who: Identity) -> Box<dyn Transport>;
    /// The flow of a connection that this unit belongs to although none has its addresses and ports, as the unit itself says (QUIC:
    /// its connection id). Asked of protocols over UDP, before anything else is made of such a unit.
    fn whose(
        &mut self,
        _cx: &mut Cx,
        _path: &Path,
        _ports: (u16, u16),
        _ecn: u8,
        _unit: &Packet,
    ) -> Option<u32> {
        None
    }
    /// A connection for a unit that may open one (TCP: SYN); the unit is fed to it afterwards. `None` if it does
    /// not. `ports` are ours and the peer's.
    fn accept(
        &mut self,
        cx: &mut Cx,
        path: Path,
        ports: (u16, u16),
        who: Identity,
        unit: &Packet,
    ) -> Option<Box<dyn Transport>>;
    /// The answer to a unit that belongs to no connection and opens none (TCP: RST), if there is one.
    fn refuse(&mut self, unit: &Packet) -> Option<Packet>;
    /// As [`Protocol::refuse`], for protocols whose answer depends on the time or on the path, or that open without keeping
    /// anything: a host asks this after `accept` has made nothing. `listens`: an application waits on the port.
    fn answer(&mut self, _cx: &mut Cx, _path: &Path, unit: &Packet, _listens: bool) -> Option<Packet> {
        self.refuse(unit)
    }
    /// What a record says of a header.
    fn describe(&self, head: &[u8]) -> Described;
}

/// One stream of one connection of one app. Plain data; stale handles are recognised and ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId {
    /// Place in the host's table.
    pub slot: u32,
    /// How often that place was used before.
    pub generation: u32,
    /// Stream of the connection; TCP has stream 0 only.
    pub stream: u32,
}

impl SocketId {
    /// Another stream of the same connection.
    pub const fn with_stream(self, stream: u32) -> SocketId {
        SocketId { stream, ..self }
    }
}

/// What happens on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A peer connected to this port of ours, or of the host it believes to be talking to; data can flow.
    Accepted {
        /// The address and port it connected to: ours, or those of a host beyond ([`App::passing`]).
        at: SocketAddr,
        /// The peer.
        from: SocketAddr,
    },
    /// A peer wants to connect, and waits without an answer: [`Sockets::admit`] lets it in, [`Sockets::reset`] turns it away.
    /// Only for applications that decide ([`App::decides`]); `Accepted` follows when data can flow.
    Asked {
        /// As of [`SocketEvent::Accepted`].
        at: SocketAddr,
        /// The peer.
        from: SocketAddr,
    },
    /// The connection we asked for is open.
    Opened,
    /// `read` gives so many octets now, which is all there is. Read them all, or until `None`: only then another such
    /// event follows (or stop, and the peer is held back).
    Readable(u32),
    /// `write` takes something again.
    Writable,
    /// The peer sends no more; everything it sent was read.
    Finished,
    /// What else happened, where streams open and end one by one.
    Stream(StreamEvent),
    /// It is over. The socket is gone after this call.
    Closed(CloseReason),
}

/// A datagram as applications see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// UDP.
    Udp {
        /// Our port.
        local_port: u16,
        /// The peer.
        remote: SocketAddr,
        /// The payload.
        body: Body,
    },
    /// ICMP or ICMPv6 echo; requests are answered by the host itself, replies go to the app that asked.
    Echo {
        /// The peer.
        remote: IpAddr,
        /// Identifier; assigned by the host when sending.
        ident: u16,
        /// Sequence number.
        seq: u16,
        /// The payload.
        body: Body,
    },
}

/// What a host offers an app during a call.
pub trait Sockets {
    /// Opens a connection, by the first of the host's transports. Failure is reported as [`SocketEvent::Closed`], never here.
    fn connect(&mut self, cx: &mut Cx, to: SocketAddr) -> SocketId;
    /// As `connect`, for an application that speaks this protocol (a name of TLS's ALPN) and knows of streams: by the first of the
    /// host's transports that has some. Its socket is that of stream 0, on which the connection's own events come; nothing is opened
    /// until [`Sockets::open_stream`].
    fn connect_for(&mut self, cx: &mut Cx, to: SocketAddr, _protocol: &'static str) -> SocketId {
        self.connect(cx, to)
    }
    /// Writes as much of `body` as there is room for and returns how many octets that was; where it is less than all,
    /// [`SocketEvent::Writable`] follows when there is room again.
    ///
    /// # Errors
    /// Why it is none. That a socket takes nothing any more is told by an event, too ([`SocketEvent::Closed`],
    /// [`StreamEvent::Stopped`]): who waits for the next event whatever the reason takes each of them for no octets.
    fn write(&mut self, cx: &mut Cx, socket: SocketId, body: Body) -> Result<usize, WriteError>;
    /// Reads at most `max` octets.
    fn read(&mut self, cx: &mut Cx, socket: SocketId, max: usize) -> Option<Body>;
    /// Octets written that the peer has not acknowledged yet, sent or not (as `SIOCOUTQ`).
    fn unacknowledged(&self, socket: SocketId) -> u64;
    /// Our address and port of this connection, where that is known: for protocols that tell their peers (FTP).
    fn local(&self, _socket: SocketId) -> Option<SocketAddr> {
        None
    }
    /// How many streams the association of this socket has ([`SocketId::with_stream`] names them); `None` if it is a connection
    /// of one stream. Until `Opened` it is what is asked for. An association takes data before that, and `finish` ends all of
    /// it.
    fn streams(&self, _socket: SocketId) -> Option<u32> {
        None
    }
    /// Lets a peer in that has [`Asked`](SocketEvent::Asked).
    fn admit(&mut self, _cx: &mut Cx, _socket: SocketId) {}
    /// Half close: no more data from us.
    fn finish(&mut self, cx: &mut Cx, socket: SocketId);
    /// Ends it at once; no further event comes.
    fn reset(&mut self, cx: &mut Cx, socket: SocketId);
    /// As `reset`, with a code for the peer's application.
    fn close(&mut self, cx: &mut Cx, socket: SocketId, _code: u64) {
        self.reset(cx, socket);
    }
    /// Opens a stream of the connection of this socket. `None`: not now ([`StreamEvent::More`] follows), or its streams do not
    /// open one by one.
    fn open_stream(&mut self, _cx: &mut Cx, _socket: SocketId, _kind: StreamKind) -> Option<SocketId> {
        None
    }
    /// Ends our side of this stream at once, with a code for the peer's application.
    fn reset_stream(&mut self, _cx: &mut Cx, _socket: SocketId, _code: u64) {}
    /// Reads no more of this stream, and tells the peer's application why.
    fn stop(&mut self, _cx: &mut Cx, _socket: SocketId, _code: u64) {}
    /// Streams with a larger number are served first, equals in turn; 0 until said.
    fn set_priority(&mut self, _socket: SocketId, _priority: i32) {}
    /// Sends octets of the connection that are not sent again if they are lost. False: it takes none, or not so many.
    fn send_unreliable(&mut self, _cx: &mut Cx, _socket: SocketId, _body: Body) -> bool {
        false
    }
    /// The next of those that the peer sent.
    fn read_unreliable(&mut self, _cx: &mut Cx, _socket: SocketId) -> Option<Body> {
        None
    }
    /// How many octets `send_unreliable` takes at a time at the moment; `None`: the peer takes none.
    fn unreliable_limit(&self, _socket: SocketId) -> Option<usize> {
        None
    }
    /// Sends a datagram.
    fn send_datagram(&mut self, cx: &mut Cx, datagram: Datagram);
    /// The octets that a datagram of UDP to this address may carry, where that is known: larger ones are lost.
    fn datagram_limit(&mut self, _to: IpAddr) -> Option<usize> {
        None
    }
    /// The flow number of a socket, for records.
    fn flow(&self, socket: SocketId) -> u32;
    /// Puts events of the application into the log of its connection (qlog), as records of a JSON text sequence.
    fn log(&mut self, _socket: SocketId, _events: &[u8]) {}
    /// Which transport this connection has, by its name in the registry, where that is known.
    fn transport(&self, _socket: SocketId) -> Option<&'static str> {
        None
    }
}

/// Which stream connections an application takes over that pass its host on their way to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Passing {
    /// None: what is not for the host itself is passed on.
    #[default]
    None,
    /// Those to these ports.
    Ports(Vec<u16>),
    /// Those to any port.
    All,
}

impl Passing {
    /// Does it take over connections to this port?
    pub fn takes(&self, port: u16) -> bool {
        match self {
            Passing::None => false,
            Passing::Ports(ports) => ports.contains(&port),
            Passing::All => true,
        }
    }
}

/// An application: a machine over sockets. Everything it does it does inside these calls.
pub trait App: Send {
    /// Stream ports it accepts connections on.
    fn stream_ports(&self) -> Vec<u16> {
        Vec::new()
    }
    /// The transports (names of the registry) whose connections it accepts; if it names none, those of all that its host has. At one
    /// port those that it names come before those of an application that names none.
    fn accepts_over(&self) -> &'static [&'static str] {
        &[]
    }
    /// What it speaks on connections that it accepts (a name of TLS's ALPN), if it knows of streams that open one by one.
    fn speaks(&self) -> Option<&'static str> {
        None
    }
    /// Datagram ports it receives on.
    fn datagram_ports(&self) -> Vec<u16> {
        Vec::new()
    }
    /// Connections between others that it takes over, as a transparent proxy does: it answers in the name of the host that
    /// is meant.
    fn passing(&self) -> Passing {
        Passing::None
    }
    /// Is it asked before a peer's opening is answered ([`SocketEvent::Asked`])?
    fn decides(&self) -> bool {
        false
    }
    /// The run begins.
    fn start(&mut self, _cx: &mut Cx, _net: &mut dyn Sockets) {}
    /// Something happened on a socket of this app.
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent);
    /// A datagram arrived for this app.
    fn handle_datagram(&mut self, _cx: &mut Cx, _net: &mut dyn Sockets, _datagram: Datagram) {}
    /// A link of this host came into service, or left it: `path` is between the host's address on it and that of the
    /// neighbour there. Comes before `start` where a link is out of service from the beginning.
    fn handle_path(&mut self, _cx: &mut Cx, _net: &mut dyn Sockets, _path: Path, _is_up: bool) {}
    /// When to call `handle_timeout`.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// That moment has come.
    fn handle_timeout(&mut self, _cx: &mut Cx, _net: &mut dyn Sockets) {}
    /// Has it done what it was started for? Servers are always done. A run `until = "done"` ends when all are.
    fn is_done(&self) -> bool {
        true
    }
    /// The run ends: it reports what is under way and its host does not know of. Nothing is sent any more.
    fn close(&mut self, _cx: &mut Cx) {}
    /// Adds its results to the summary of the run; names carry their unit.
    fn summarise(&self, _out: &mut Summary) {}
}
