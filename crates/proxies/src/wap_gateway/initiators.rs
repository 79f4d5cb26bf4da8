//! Initiators of pushes on a simulated network: PAP over HTTP/1.1, over the streams of the gateway's host.

use std::collections::BTreeMap;

use airloom_base::{Body, Cx, Duration, Instant, SocketEvent, SocketId, Sockets};
use airloom_content::http::message::{Fields, Method, RequestHead, ResponseHead, Version, reason};
use airloom_content::http::v1::{Item, Limits, Receiver, RequestReader, persists};
use bytes::{Buf, Bytes};

use super::gateway::Gateway;
use super::pap;

/// Connections at a time; further ones are turned away.
const MOST: usize = 64;
/// A connection on which nothing happens for so long is closed.
const PATIENCE: Duration = Duration::from_secs(30);

/// All connections.
#[derive(Default)]
pub(super) struct Initiators(BTreeMap<SocketId, Connection>);

struct Connection {
    reader: RequestReader,
    asked: Option<PapRequest>,
    unsent: Bytes,
    /// After what is on its way nothing more is read.
    last: bool,
    deadline: Instant,
}

/// A request whose body comes.
struct PapRequest {
    method: Method,
    content_type: String,
    body: Vec<u8>,
    too_large: bool,
    persists: bool,
}

impl Initiators {
    /// Something happened on a socket; false if it is none of an initiator.
    pub(super) fn handle_event(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        gateway: &mut Gateway,
        socket: SocketId,
        event: SocketEvent,
    ) -> bool {
        if let SocketEvent::Accepted { .. } = event {
            if self.0.len() >= MOST {
                net.reset(cx, socket);
            } else {
                self.0.insert(socket, Connection::new(cx.now));
            }
            return true;
        }
        let Some(connection) = self.0.get_mut(&socket) else { return false };
        connection.deadline = cx.now + PATIENCE;
        match event {
            SocketEvent::Readable(_) | SocketEvent::Writable => {
                connection.answer_requests(cx, net, gateway, socket)
            }
            SocketEvent::Finished => {
                connection.last = true;
                connection.answer_requests(cx, net, gateway, socket);
            }
            SocketEvent::Closed(_) => drop(self.0.remove(&socket)),
            SocketEvent::Asked { .. }
            | SocketEvent::Accepted { .. }
            | SocketEvent::Opened
            | SocketEvent::Stream(_) => {}
        }
        true
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.0.values().map(|connection| connection.deadline).min()
    }

    pub(super) fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let over = self.0.iter().filter(|(_, connection)| connection.deadline <= cx.now);
        for socket in over.map(|(socket, _)| *socket).collect::<Vec<_>>() {
            self.0.remove(&socket);
            net.reset(cx, socket);
        }
    }
}

impl Connection {
    fn new(now: Instant) -> Connection {
        let reader = RequestReader::new(Limits::default());
        Connection { reader, asked: None, unsent: Bytes::new(), last: false, deadline: now + PATIENCE }
    }

    /// Reads requests and answers them, one after the other.
    fn answer_requests(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        gateway: &mut Gateway,
        socket: SocketId,
    ) {
        loop {
            if !self.write(cx, net, socket) {
                return;
            }
            match self.reader.poll() {
                Ok(Some(item)) => self.item(cx.now, gateway, item),
                Ok(None) => match net.read(cx, socket, usize::MAX) {
                    // What comes behind the last request is of no interest.
                    Some(_) if self.last => {}
                    Some(body) => self.reader.feed(body),
                    None => break,
                },
                Err(error) if !self.last => {
                    self.last = true;
                    self.answer(error.status(), "text/plain", Bytes::new());
                }
                Err(_) => break,
            }
        }
        if self.last {
            net.finish(cx, socket);
        }
    }

    /// Is everything written?
    fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> bool {
        if !self.unsent.is_empty() {
            let taken = net.write(cx, socket, Body::Real(self.unsent.clone())).unwrap_or(0);
            self.unsent.advance(taken.min(self.unsent.len()));
        }
        self.unsent.is_empty()
    }

    fn item(&mut self, now: Instant, gateway: &mut Gateway, item: Item<RequestHead>) {
        match item {
            Item::Head(head, framing) => {
                let content_type = head.fields.first("content-type").unwrap_or_default();
                self.asked = Some(PapRequest {
                    persists: !framing.must_close && persists(head.version, &head.fields, Receiver::Server),
                    content_type: String::from_utf8_lossy(content_type).into_owned(),
                    method: head.method,
                    body: Vec::new(),
                    too_large: false,
                });
            }
            Item::Data(body) => {
                let Some(asked) = &mut self.asked else { return };
                asked.too_large |= asked.body.len() + body.len() > pap::MOST;
                if !asked.too_large {
                    asked.body.extend_from_slice(&body.to_bytes());
                }
            }
            Item::End(_) => {
                let Some(asked) = self.asked.take() else { return };
                self.last |= !asked.persists;
                if asked.method != Method::Post {
                    self.answer(405, "text/plain", Bytes::new());
                } else if asked.too_large {
                    self.answer(413, "text/plain", Bytes::new());
                } else {
                    let answer = gateway.handle_pap(now, &asked.content_type, &asked.body.into());
                    self.answer(answer.status, pap::TYPE, answer.body.into());
                }
            }
            Item::Interim(_) => {}
        }
    }

    fn answer(&mut self, status: u16, content_type: &'static str, body: Bytes) {
        let mut fields = Fields::default();
        fields.push("Content-Type", content_type);
        fields.push("Content-Length", body.len().to_string());
        if self.last {
            fields.push("Connection", "close");
        }
        let reason = Bytes::from_static(reason(status).as_bytes());
        let mut octets = Vec::with_capacity(256 + body.len());
        ResponseHead { version: Version::Http11, status, reason, fields }.emit(&mut octets);
        octets.extend_from_slice(&body);
        self.unsent = octets.into();
    }
}
