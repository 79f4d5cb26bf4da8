//! Either end of FTP, against a peer that says anything.

use std::net::SocketAddr;

use airloom_apps::ftp::{Client, Config, Server, ServerConfig};
use airloom_base::service::{Datagram, WriteError};
use airloom_base::{App, Body, CloseReason, Cx, Duration, Instant, Outbox, SocketEvent, SocketId, Sockets};
use bytes::Bytes;

use crate::octets::said;

/// Rounds of timers after the peer has said everything.
const ROUNDS: u32 = 10_000;

/// What octets from 0xE0 on stand for: chance alone never says a command.
const WORDS: [&[u8]; 32] = [
    b"USER a\r\n",
    b"PASS b\r\n",
    b"TYPE I\r\n",
    b"TYPE A\r\n",
    b"PASV\r\n",
    b"EPSV\r\n",
    b"EPSV ALL\r\n",
    b"PORT 10,0,0,1,195,80\r\n",
    b"PORT 10,0,0,9,0,21\r\n",
    b"EPRT |2|fd00::1|50000|\r\n",
    b"EPRT |1|",
    b"RETR 1kB\r\n",
    b"RETR ",
    b"STOR x\r\n",
    b"ABOR\r\n",
    b"SIZE 1MB\r\n",
    b"NOOP\r\n",
    b"QUIT\r\n",
    b"220 a\r\n",
    b"230 b\r\n",
    b"331 c\r\n",
    b"200 d\r\n",
    b"227 (10,0,0,1,195,80)\r\n",
    b"227 (10,0,0,1,",
    b"229 (|||50000|)\r\n",
    b"150 e\r\n",
    b"226 f\r\n",
    b"221 g\r\n",
    b"421 h\r\n",
    b"550-i\r\n550 j\r\n",
    b"999999999999,",
    b"\xff\xf4\xff\xf2",
];

/// What the peer says on the control connection; data connections open, carry a little, and end.
struct Peer {
    input: Bytes,
    /// Octets that come at a time.
    chop: usize,
    /// What may be read of them now.
    ready: usize,
    /// Sockets by number: the first is the control connection.
    open: Vec<bool>,
    /// Data connections that were asked for, and not told of yet.
    wanted: Vec<SocketId>,
    here: SocketAddr,
    /// A write takes so many octets at most.
    room: usize,
}

impl Peer {
    fn socket(&mut self) -> SocketId {
        self.open.push(true);
        SocketId { slot: self.open.len() as u32 - 1, generation: 1, stream: 0 }
    }

    fn is_open(&self, socket: SocketId) -> bool {
        self.open.get(socket.slot as usize).copied().unwrap_or(false)
    }

    fn close(&mut self, socket: SocketId) {
        if let Some(open) = self.open.get_mut(socket.slot as usize) {
            *open = false;
        }
    }
}

impl Sockets for Peer {
    fn connect(&mut self, _: &mut Cx, _: SocketAddr) -> SocketId {
        let socket = self.socket();
        self.wanted.push(socket);
        socket
    }
    fn write(&mut self, _: &mut Cx, socket: SocketId, body: Body) -> Result<usize, WriteError> {
        if !self.is_open(socket) {
            return Err(WriteError::Closed);
        }
        let taken = body.len().min(self.room);
        WriteError::or_taken(taken, body.len())
    }
    fn read(&mut self, _: &mut Cx, socket: SocketId, max: usize) -> Option<Body> {
        if socket.slot != 0 || !self.is_open(socket) {
            return None;
        }
        let len = self.ready.min(max).min(self.input.len());
        self.ready -= len;
        (len > 0).then(|| Body::Real(self.input.split_to(len)))
    }
    fn unacknowledged(&self, _: SocketId) -> u64 {
        0
    }
    fn local(&self, socket: SocketId) -> Option<SocketAddr> {
        self.is_open(socket).then_some(self.here)
    }
    fn finish(&mut self, _: &mut Cx, _: SocketId) {}
    fn reset(&mut self, _: &mut Cx, socket: SocketId) {
        self.close(socket);
    }
    fn send_datagram(&mut self, _: &mut Cx, _: Datagram) {}
    fn flow(&self, _: SocketId) -> u32 {
        1
    }
}

/// Tells an application of something, unless the socket is gone.
fn tell(app: &mut dyn App, cx: &mut Cx, peer: &mut Peer, socket: SocketId, event: SocketEvent) {
    if !peer.is_open(socket) {
        return;
    }
    if matches!(event, SocketEvent::Closed(_)) {
        peer.close(socket);
    }
    app.handle_event(cx, peer, socket, event);
}

/// Data connections open, and end again.
fn serve(app: &mut dyn App, cx: &mut Cx, peer: &mut Peer) {
    for socket in std::mem::take(&mut peer.wanted) {
        for event in [
            SocketEvent::Opened,
            SocketEvent::Writable,
            SocketEvent::Finished,
            SocketEvent::Closed(CloseReason::Finished),
        ] {
            tell(app, cx, peer, socket, event);
        }
    }
}

/// The first octet says which end, the second how its peer's octets are cut and how much it takes.
pub fn ftp(octets: &[u8]) {
    let [how, cut, rest @ ..] = octets else { return };
    let here: SocketAddr =
        if how & 4 == 0 { "10.0.0.1:21" } else { "[fd00::1]:21" }.parse().expect("an address");
    let there = SocketAddr::new(here.ip(), 50_000);
    let mut peer = Peer {
        input: rest.iter().flat_map(|octet| said(octet, &WORDS)).copied().collect::<Vec<u8>>().into(),
        chop: 1 + usize::from(*cut),
        ready: 0,
        open: Vec::new(),
        wanted: Vec::new(),
        here,
        room: 1 + 100 * usize::from(*cut),
    };
    let mut records = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut records };
    let is_server = how & 1 == 1;
    let mut app: Box<dyn App> = if is_server {
        Box::new(Server::new(ServerConfig::default()).expect("the defaults are valid"))
    } else {
        let config = Config { active: how & 2 == 2, repeat: 3, ..Config::default() };
        Box::new(Client::new(config, here, Duration::ZERO).expect("the defaults are valid"))
    };
    app.start(&mut cx, &mut peer);
    let first = SocketId { slot: 0, generation: 1, stream: 0 };
    if is_server {
        peer.socket();
        tell(app.as_mut(), &mut cx, &mut peer, first, SocketEvent::Accepted { at: here, from: there });
    } else {
        peer.wanted.clear();
        tell(app.as_mut(), &mut cx, &mut peer, first, SocketEvent::Opened);
    }
    while !peer.input.is_empty() && peer.is_open(first) {
        cx.now += Duration::from_millis(1);
        let before = peer.input.len();
        peer.ready = peer.chop.min(before);
        let octets = peer.ready as u32;
        tell(app.as_mut(), &mut cx, &mut peer, first, SocketEvent::Readable(octets));
        serve(app.as_mut(), &mut cx, &mut peer);
        tell(app.as_mut(), &mut cx, &mut peer, first, SocketEvent::Writable);
        if peer.input.len() == before {
            break; // It reads no more.
        }
    }
    tell(app.as_mut(), &mut cx, &mut peer, first, SocketEvent::Finished);
    tell(app.as_mut(), &mut cx, &mut peer, first, SocketEvent::Closed(CloseReason::Reset));
    let mut rounds = 0;
    while let Some(at) = app.poll_timeout() {
        rounds += 1;
        assert!(rounds < ROUNDS, "timers without an end");
        cx.now = cx.now.max(at);
        app.handle_timeout(&mut cx, &mut peer);
        for socket in std::mem::take(&mut peer.wanted) {
            tell(app.as_mut(), &mut cx, &mut peer, socket, SocketEvent::Closed(CloseReason::Refused));
        }
    }
    assert!(peer.open.len() < 20_000 + rest.len(), "connections without an end");
    assert!(is_server || app.is_done(), "a client that never ends");
}
