//! The layer between an application and the sockets of its host.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use airloom_base::service::{Datagram, Passing, Path, WriteError};
use airloom_base::{
    App, Body, CloseReason, Cx, Instant, SocketEvent, SocketId, Sockets, StreamKind, Summary,
};
use airloom_content::http::message::Method;
use airloom_content::http::v1::{Item, Limits, ResponseReader};
use bytes::Bytes;
use delegate::delegate;

use super::session::{Begin, Failure, Session};
use super::{Config, Resumes, Version};
use crate::net::Connections;
use crate::times::Times;

/// Content that came and was not read, beyond which a connection is not read on.
const UNREAD: usize = 65_536;

/// The transport that has its own TLS, by its name in the registry.
const QUIC: &str = "quic";

const NO_APPLICATION_PROTOCOL: u8 = 120;
const UNEXPECTED_MESSAGE: u8 = 10;

/// The way of a client through a proxy: where the proxy is, and what servers are called there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tunnels {
    /// The proxy.
    pub proxy: Option<SocketAddr>,
    /// `host:port` of servers, as CONNECT has it; others go by their address.
    pub names: BTreeMap<SocketAddr, String>,
}

/// A connection: its session, and what the application knows of it.
#[derive(Default)]
struct Line {
    session: Session,
    /// Where a client's connection leads to.
    to: Option<SocketAddr>,
    /// The answer to CONNECT is waited for.
    tunnel: Option<Box<ResponseReader>>,
    /// Octets of CONNECT that are not written yet.
    asking: Bytes,
    /// More may be read from the socket.
    has_more: bool,
    /// The application was told that it can read.
    told: bool,
    /// The application was told that it can write.
    opened: bool,
    /// The application offered more than was taken.
    blocked: bool,
    /// The peer has ended its side of the connection below.
    ended: bool,
    told_end: bool,
    is_dirty: bool,
}

/// What is common to all connections.
#[derive(Default)]
struct Layer {
    config: Config,
    alpn: Vec<&'static str>,
    tunnels: Tunnels,
    lines: Connections<Line>,
    /// Connections of a transport that has its own TLS: nothing is done to them.
    direct: Connections<()>,
    /// What the application is to be told.
    due: VecDeque<(SocketId, SocketEvent)>,
    /// Connections with something to write.
    dirty: Vec<SocketId>,
    /// Servers with which a session could go on, and what it spoke.
    known: BTreeMap<SocketAddr, Version>,
    /// It has opened connections: times of handshakes are its own.
    is_client: bool,
    handshake: Times,
    resumed: u64,
    failed: u64,
    added: u64,
}

/// An application whose connections are protected.
pub struct Secured {
    app: Box<dyn App>,
    layer: Layer,
}

impl Secured {
    /// `app` over TLS. `alpn` are the names of what it speaks, the best first; through a proxy if `tunnels` has one.
    pub fn new(app: Box<dyn App>, config: Config, alpn: Vec<&'static str>, tunnels: Tunnels) -> Self {
        let layer = Layer { config, alpn, tunnels, ..Layer::default() };
        Secured { app, layer }
    }

    /// Writes what the application left, and tells it what it is to be told, until there is neither.
    fn settle(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        loop {
            while let Some(socket) = self.layer.dirty.pop() {
                self.layer.flush(cx, net, socket);
            }
            let Some((socket, event)) = self.layer.due.pop_front() else { return };
            let is_over = matches!(event, SocketEvent::Closed(_));
            if is_over || self.layer.lines.get_mut(socket).is_some() || self.layer.is_direct(socket) {
                let mut inside = Inside { layer: &mut self.layer, net };
                self.app.handle_event(cx, &mut inside, socket, event);
            }
        }
    }
}

impl Layer {
    fn is_direct(&self, socket: SocketId) -> bool {
        self.direct.get(socket).is_some()
    }

    fn touch(&mut self, socket: SocketId) {
        if let Some(line) = self.lines.get_mut(socket)
            && !std::mem::replace(&mut line.is_dirty, true)
        {
            self.dirty.push(socket);
        }
    }

    fn add(&mut self, socket: SocketId, is_server: bool, to: Option<SocketAddr>) {
        let session = Session::new(is_server, &self.config, &self.alpn);
        let line = Line { session, to, opened: is_server, ..Line::default() };
        self.lines.insert(socket, line);
    }

    fn forget(&mut self, socket: SocketId) {
        if let Some(line) = self.lines.remove(socket) {
            self.added += line.session.added;
        }
    }

    /// The connection below is open.
    fn opened(&mut self, cx: &Cx, socket: SocketId) {
        let proxy = self.tunnels.proxy;
        let Some(line) = self.lines.get_mut(socket) else { return };
        let Some(to) = line.to.filter(|_| proxy.is_some()) else { return self.begin(cx.now, socket) };
        let name = self.tunnels.names.get(&to).cloned().unwrap_or_else(|| to.to_string());
        line.asking =
            format!("CONNECT {name} HTTP/1.1\r\nHost: {name}\r\nUser-Agent: airloom\r\n\r\n").into();
        let mut reader = ResponseReader::new(Limits::default());
        reader.expect(Method::Connect);
        line.tunnel = Some(Box::new(reader));
        self.touch(socket);
    }

    /// The handshake begins.
    fn begin(&mut self, now: Instant, socket: SocketId) {
        let Some(line) = self.lines.get_mut(socket) else { return };
        let known = line.to.and_then(|to| self.known.get(&to)).copied();
        let resumes = match self.config.resumes {
            Resumes::Never => false,
            Resumes::Later => known.is_some(),
            Resumes::Always => true,
        };
        //= RFC 8446 (4.2.10): a session of TLS 1.2 says nothing of early data.
        let early_data = self.config.early_data && known != Some(Version::Tls12);
        line.session.begin(now, Begin { resumes, early_data });
        if line.session.can_write && !std::mem::replace(&mut line.opened, true) {
            self.due.push_back((socket, SocketEvent::Opened));
        }
        self.touch(socket);
    }

    /// Reads what there is, up to a bound, and works out what the application is to be told.
    fn pull(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(line) = self.lines.get_mut(socket) else { return };
        let was_established = line.session.is_established;
        let mut result = Ok(());
        while result.is_ok() {
            line.has_more = line.session.arrived_octets >= UNREAD;
            if line.has_more {
                break;
            }
            let Some(body) = net.read(cx, socket, usize::MAX) else { break };
            result = match &mut line.tunnel {
                None => line.session.feed(body),
                Some(reader) => {
                    reader.feed(body);
                    match through(reader, &mut line.session) {
                        Ok(false) => Ok(()),
                        Ok(true) => {
                            line.tunnel = None;
                            self.begin(cx.now, socket);
                            let Some(again) = self.lines.get_mut(socket) else { return };
                            // Whoever speaks TLS says nothing before it is spoken to.
                            let _ = std::mem::replace(&mut again.told, false);
                            return self.pull(cx, net, socket);
                        }
                        Err(failure) => Err(failure),
                    }
                }
            };
        }
        if let Err(failure) = result {
            return self.fail(cx, net, socket, failure);
        }
        let session = &mut line.session;
        if (session.peer_closed || line.ended) && !session.can_write && !line.opened {
            // The handshake was broken off: for the application it was never open.
            return self.fail(cx, net, socket, Failure::Told);
        }
        if session.is_established && !was_established {
            if let Some(began) = session.began {
                self.handshake.add(cx.now - began);
            }
            self.resumed += u64::from(session.resumes);
        }
        if session.can_write && !std::mem::replace(&mut line.opened, true) {
            self.due.push_back((socket, SocketEvent::Opened));
        }
        if session.has_ticket
            && let Some(to) = line.to
        {
            self.known.insert(to, session.version);
        }
        self.tell(socket);
        self.touch(socket);
    }

    /// Tells the application of what came, or that nothing more will.
    fn tell(&mut self, socket: SocketId) {
        let Some(line) = self.lines.get_mut(socket) else { return };
        let octets = line.session.arrived_octets;
        let is_over = (line.ended && !line.has_more) || line.session.peer_closed;
        if octets > 0 {
            if !std::mem::replace(&mut line.told, true) {
                self.due.push_back((socket, SocketEvent::Readable(octets as u32)));
            }
        } else if is_over && line.opened && !std::mem::replace(&mut line.told_end, true) {
            self.due.push_back((socket, SocketEvent::Finished));
        }
    }

    /// The peer has broken the handshake off, perhaps for data that went early: none goes there the next time.
    fn forgo_early_data(&mut self, socket: SocketId) {
        if let Some(line) = self.lines.get(socket)
            && let Some(to) = line.to.filter(|_| line.session.is_early())
        {
            //= RFC 8446 (D.3): it can be tried again without.
            self.known.insert(to, Version::Tls12);
        }
    }

    /// The connection cannot go on.
    fn fail(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, failure: Failure) {
        self.failed += 1;
        if let Some(line) = self.lines.get_mut(socket) {
            let description = match failure {
                Failure::NoProtocol => Some(NO_APPLICATION_PROTOCOL),
                Failure::Malformed => Some(UNEXPECTED_MESSAGE),
                Failure::Told => None,
            };
            if let Some(description) = description {
                line.session.alert(description);
                line.session.flush(cx, net, socket);
            }
        }
        net.reset(cx, socket);
        self.forgo_early_data(socket);
        self.forget(socket);
        self.due.push_back((socket, SocketEvent::Closed(CloseReason::Reset)));
    }

    /// Writes what can be written.
    fn flush(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(line) = self.lines.get_mut(socket) else { return };
        line.is_dirty = false;
        while !line.asking.is_empty() {
            let taken = net.write(cx, socket, Body::Real(line.asking.clone())).unwrap_or(0);
            let taken = taken.min(line.asking.len());
            drop(line.asking.split_to(taken));
            if !line.asking.is_empty() {
                return;
            }
        }
        if line.tunnel.is_some() {
            return;
        }
        line.session.flush(cx, net, socket);
        if line.blocked && line.session.can_write && line.session.plain_octets < super::session::WAITING {
            line.blocked = false;
            self.due.push_back((socket, SocketEvent::Writable));
        }
    }
}

/// Reads the proxy's answer. Is the way free?
fn through(reader: &mut ResponseReader, session: &mut Session) -> Result<bool, Failure> {
    loop {
        match reader.poll() {
            Ok(None) => return Ok(false),
            Ok(Some(Item::Interim(_))) => {}
            Ok(Some(Item::Head(head, _))) if (200..300).contains(&head.status) => {
                // What follows belongs to the tunnel already.
                while let Ok(Some(Item::Data(body))) = reader.poll() {
                    session.feed(body)?;
                }
                return Ok(true);
            }
            _ => return Err(Failure::Told),
        }
    }
}

/// What the application inside takes for the sockets of its host.
struct Inside<'a> {
    layer: &'a mut Layer,
    net: &'a mut dyn Sockets,
}

impl Sockets for Inside<'_> {
    fn connect(&mut self, cx: &mut Cx, to: SocketAddr) -> SocketId {
        let socket = self.net.connect(cx, self.layer.tunnels.proxy.unwrap_or(to));
        self.layer.add(socket, false, Some(to));
        self.layer.is_client = true;
        socket
    }
    fn connect_for(&mut self, cx: &mut Cx, to: SocketAddr, protocol: &'static str) -> SocketId {
        let socket = self.net.connect_for(cx, to, protocol);
        self.layer.direct.insert(socket, ());
        socket
    }
    fn write(&mut self, cx: &mut Cx, socket: SocketId, mut body: Body) -> Result<usize, WriteError> {
        if self.layer.is_direct(socket) {
            return self.net.write(cx, socket, body);
        }
        let whole = body.len();
        let mut outcome = Err(WriteError::Closed);
        while let Some(line) = self.layer.lines.get_mut(socket) {
            let taken = line.session.write(body.clone());
            drop(body.split_to(taken.unwrap_or(0)));
            // Whole records leave at once, the rest when the application has had its say.
            if line.session.has_a_record() && line.tunnel.is_none() {
                line.session.flush(cx, self.net, socket);
            }
            if let Err(why) = taken {
                line.blocked |= why == WriteError::Blocked;
                outcome = outcome.or(Err(why));
                break;
            }
            outcome = Ok(whole - body.len());
            if body.is_empty() {
                break;
            }
        }
        self.layer.touch(socket);
        outcome
    }
    fn read(&mut self, cx: &mut Cx, socket: SocketId, max: usize) -> Option<Body> {
        if self.layer.is_direct(socket) {
            return self.net.read(cx, socket, max);
        }
        loop {
            let line = self.layer.lines.get_mut(socket)?;
            if max == 0 {
                return None;
            }
            if let Some(first) = line.session.arrived.front_mut() {
                let piece = first.split_to(max);
                if first.is_empty() {
                    line.session.arrived.pop_front();
                }
                line.session.arrived_octets -= piece.len();
                if piece.is_empty() {
                    continue;
                }
                if line.session.arrived_octets == 0 {
                    line.told = false;
                    if !line.has_more {
                        self.layer.tell(socket);
                    }
                }
                return Some(piece);
            }
            line.told = false;
            if !std::mem::replace(&mut line.has_more, false) {
                return None;
            }
            self.layer.pull(cx, self.net, socket);
        }
    }
    fn unacknowledged(&self, socket: SocketId) -> u64 {
        let waiting = self.layer.lines.get(socket).map_or(0, |line| line.session.waiting());
        self.net.unacknowledged(socket) + waiting as u64
    }
    delegate! {
        to self.net {
            fn local(&self, socket: SocketId) -> Option<SocketAddr>;
            fn admit(&mut self, cx: &mut Cx, socket: SocketId);
            fn open_stream(&mut self, cx: &mut Cx, socket: SocketId, kind: StreamKind) -> Option<SocketId>;
            fn reset_stream(&mut self, cx: &mut Cx, socket: SocketId, code: u64);
            fn stop(&mut self, cx: &mut Cx, socket: SocketId, code: u64);
            fn set_priority(&mut self, socket: SocketId, priority: i32);
            fn log(&mut self, socket: SocketId, events: &[u8]);
            fn transport(&self, socket: SocketId) -> Option<&'static str>;
            fn send_datagram(&mut self, cx: &mut Cx, datagram: Datagram);
            fn flow(&self, socket: SocketId) -> u32;
        }
    }
    fn finish(&mut self, cx: &mut Cx, socket: SocketId) {
        if self.layer.is_direct(socket) {
            return self.net.finish(cx, socket);
        }
        let Some(line) = self.layer.lines.get_mut(socket) else { return };
        if !line.opened {
            // Nothing was said yet, and nothing will be.
            self.layer.forget(socket);
            return self.net.reset(cx, socket);
        }
        line.session.finish();
        self.layer.touch(socket);
    }
    fn reset(&mut self, cx: &mut Cx, socket: SocketId) {
        self.layer.forget(socket);
        self.layer.direct.remove(socket);
        self.net.reset(cx, socket);
    }
    fn close(&mut self, cx: &mut Cx, socket: SocketId, code: u64) {
        self.layer.forget(socket);
        self.layer.direct.remove(socket);
        self.net.close(cx, socket, code);
    }
}

impl App for Secured {
    delegate! {
        to self.app {
            fn stream_ports(&self) -> Vec<u16>;
            fn accepts_over(&self) -> &'static [&'static str];
            fn speaks(&self) -> Option<&'static str>;
            fn datagram_ports(&self) -> Vec<u16>;
            fn passing(&self) -> Passing;
            fn decides(&self) -> bool;
            fn poll_timeout(&self) -> Option<Instant>;
            fn is_done(&self) -> bool;
            fn close(&mut self, cx: &mut Cx);
        }
    }
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.app.start(cx, &mut Inside { layer: &mut self.layer, net });
        self.settle(cx, net);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        let is_first = matches!(event, SocketEvent::Accepted { .. } | SocketEvent::Asked { .. });
        if is_first && self.app.speaks().is_some() && net.transport(socket) == Some(QUIC) {
            self.layer.direct.insert(socket, ());
        }
        if self.layer.is_direct(socket) {
            if matches!(event, SocketEvent::Closed(_)) {
                self.layer.direct.remove(socket);
            }
            self.layer.due.push_back((socket, event));
            return self.settle(cx, net);
        }
        // A connection has one stream here, whatever the transport has.
        if socket.stream != 0 {
            crate::net::drain(cx, net, socket);
            return;
        }
        match event {
            SocketEvent::Accepted { .. } | SocketEvent::Asked { .. } => {
                self.layer.add(socket, true, None);
                self.layer.due.push_back((socket, event));
            }
            SocketEvent::Opened => self.layer.opened(cx, socket),
            SocketEvent::Stream(_) => {}
            SocketEvent::Readable(_) => self.layer.pull(cx, net, socket),
            SocketEvent::Writable => self.layer.touch(socket),
            SocketEvent::Finished => {
                if let Some(line) = self.layer.lines.get_mut(socket) {
                    line.ended = true;
                }
                self.layer.pull(cx, net, socket);
            }
            SocketEvent::Closed(reason) => {
                if let Some(Line { session, .. }) = self.layer.lines.get(socket) {
                    let was_cut_short = session.began.is_some() && !session.is_established;
                    self.layer.failed += u64::from(was_cut_short);
                    if reason == CloseReason::Reset {
                        self.layer.forgo_early_data(socket);
                    }
                    self.layer.forget(socket);
                    self.layer.due.push_back((socket, SocketEvent::Closed(reason)));
                }
            }
        }
        self.settle(cx, net);
    }
    fn handle_datagram(&mut self, cx: &mut Cx, net: &mut dyn Sockets, datagram: Datagram) {
        self.app.handle_datagram(cx, &mut Inside { layer: &mut self.layer, net }, datagram);
        self.settle(cx, net);
    }
    fn handle_path(&mut self, cx: &mut Cx, net: &mut dyn Sockets, path: Path, is_up: bool) {
        self.app.handle_path(cx, &mut Inside { layer: &mut self.layer, net }, path, is_up);
        self.settle(cx, net);
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.app.handle_timeout(cx, &mut Inside { layer: &mut self.layer, net });
        self.settle(cx, net);
    }
    fn summarise(&self, out: &mut Summary) {
        self.app.summarise(out);
        let layer = &self.layer;
        let open: u64 = layer.lines.values().map(|line| line.session.added).sum();
        if layer.is_client {
            layer.handshake.summarise("tls_handshake", out);
        }
        out.set("tls_resumed", layer.resumed as f64);
        out.set("tls_failed", layer.failed as f64);
        out.set("tls_added_bytes", (layer.added + open) as f64);
    }
}
