//! Either end of FTP, against a peer that says anything.

use std::net::SocketAddr;

use airloom_apps::bulk::client::Mode;
use airloom_apps::ftp::{Client, Config, Server, ServerConfig};
use airloom_base::service::{Datagram, WriteError};
use airloom_base::units::Octets;
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
    /// The end of a line was read.
    heard: bool,
    /// Sockets by number: the first is the control connection.
    open: Vec<bool>,
    /// What may be read of each of the others.
    left: Vec<usize>,
    /// What that is at first.
    carried: usize,
    /// Data connections that were asked for, and not told of yet.
    wanted: Vec<SocketId>,
    /// Those that are open.
    data: Vec<SocketId>,
    /// Where the application waits for them, if it does.
    listens: Option<SocketAddr>,
    here: SocketAddr,
    there: SocketAddr,
    /// A write takes so many octets at most.
    room: usize,
}

impl Peer {
    fn socket(&mut self) -> SocketId {
        self.open.push(true);
        self.left.push(self.carried);
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
        if !self.is_open(socket) {
            return None;
        }
        if socket.slot != 0 {
            let left = self.left.get_mut(socket.slot as usize)?;
            let len = max.min(*left);
            *left -= len;
            return (len > 0).then(|| Body::filler(1, len as u32));
        }
        let len = self.ready.min(max).min(self.input.len());
        self.ready -= len;
        let said = self.input.split_to(len);
        self.heard |= said.contains(&b'\n');
        (len > 0).then_some(Body::Real(said))
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

/// When the peer has said a line, or more than was read: data connections that were open carry what they do and end, those that
/// were asked for open, and where there was none one comes to where the application may wait.
fn serve(app: &mut dyn App, cx: &mut Cx, peer: &mut Peer) {
    if !std::mem::take(&mut peer.heard) && peer.ready == 0 {
        return;
    }
    let open = std::mem::take(&mut peer.data);
    let had_none = open.is_empty();
    for socket in open {
        tell(app, cx, peer, socket, SocketEvent::Writable);
        let left = peer.left[socket.slot as usize];
        if left > 0 {
            tell(app, cx, peer, socket, SocketEvent::Readable(left as u32));
        }
        tell(app, cx, peer, socket, SocketEvent::Finished);
        tell(app, cx, peer, socket, SocketEvent::Closed(CloseReason::Finished));
    }
    for socket in std::mem::take(&mut peer.wanted) {
        tell(app, cx, peer, socket, SocketEvent::Opened);
        peer.data.push(socket);
    }
    if let Some(at) = peer.listens
        && had_none
        && peer.data.is_empty()
    {
        let (socket, from) = (peer.socket(), peer.there);
        tell(app, cx, peer, socket, SocketEvent::Accepted { at, from });
        peer.data.push(socket);
    }
    peer.data.retain(|socket| peer.open[socket.slot as usize]);
}

/// The first octet says which end, and what data connections carry; the second how its peer's octets are cut and how much it takes.
pub fn ftp(octets: &[u8]) {
    play(octets);
}

fn play(octets: &[u8]) -> Option<Box<dyn App>> {
    let [how, cut, rest @ ..] = octets else { return None };
    let here: SocketAddr =
        if how & 4 == 0 { "10.0.0.1:21" } else { "[fd00::1]:21" }.parse().expect("an address");
    let there = SocketAddr::new(here.ip(), 50_000);
    let mut peer = Peer {
        input: rest.iter().flat_map(|octet| said(octet, &WORDS)).copied().collect::<Vec<u8>>().into(),
        chop: 1 + usize::from(*cut),
        ready: 0,
        heard: false,
        open: Vec::new(),
        left: Vec::new(),
        carried: 10 * usize::from(how >> 4),
        wanted: Vec::new(),
        data: Vec::new(),
        listens: None,
        here,
        there,
        room: 1 + 100 * usize::from(*cut),
    };
    let mut records = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut records };
    let is_server = how & 1 == 1;
    let mut app: Box<dyn App> = if is_server {
        // Of one port it is known where it waits.
        let config = ServerConfig { passive_ports: 1, ..ServerConfig::default() };
        peer.listens = Some(SocketAddr::new(here.ip(), config.passive_port));
        Box::new(Server::new(config).expect("one port is enough"))
    } else {
        let mode = if how & 8 == 0 { Mode::Get } else { Mode::Put };
        let (active, size) = (how & 2 == 2, Octets(100));
        let config = Config { mode, active, size, repeat: 3, ..Config::default() };
        peer.listens = active.then_some(SocketAddr::new(here.ip(), config.data_port));
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
        if peer.input.len() == before && peer.data.is_empty() {
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
    assert!(peer.open.len() < 20_000 + 5 * rest.len(), "connections without an end");
    assert!(is_server || app.is_done(), "a client that never ends");
    Some(app)
}

#[cfg(test)]
mod tests {
    use airloom_base::Summary;

    use super::*;

    #[test]
    fn files_come_and_go_over_data_connections_of_either_mode() {
        for (how, cut, says, counted) in [
            // 220, 331, 230, 200, 227, 150, 226; and in active mode 200 instead of 227.
            (0xA0, 1, &[0xF2, 0xF4, 0xF3, 0xF5, 0xF6, 0xF9, 0xFA][..], "transfers"),
            (0xA2, 1, &[0xF2, 0xF4, 0xF3, 0xF5, 0xF5, 0xF9, 0xFA][..], "transfers"),
            (0xAA, 1, &[0xF2, 0xF4, 0xF3, 0xF5, 0xF5, 0xF9, 0xFA][..], "transfers"),
            // USER, PASS, PASV or PORT, STOR or RETR.
            (0xA1, 1, &[0xE0, 0xE1, 0xE4, 0xED][..], "files_stored"),
            (0x01, 10, &[0xE0, 0xE1, 0xE4, 0xEB][..], "files_sent"),
            (0x01, 10, &[0xE0, 0xE1, 0xE7, 0xEB][..], "files_sent"),
        ] {
            let app = play(&[&[how, cut][..], says].concat()).expect("two octets are enough");
            let mut summary = Summary::default();
            app.summarise(&mut summary);
            assert_eq!(summary.values[counted], 1.0, "{how} {says:?}");
        }
    }
}
