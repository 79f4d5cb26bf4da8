//! Applications over streams, against peers that say anything: octets say what happens on which socket.

use std::net::{IpAddr, SocketAddr};

use airloom_apps::Build;
use airloom_base::service::{Datagram, WriteError};
use airloom_base::{
    App, AppParts, Body, CloseReason, Cx, Duration, Entry, Instant, Outbox, SocketEvent, SocketId, Sockets,
};
use bytes::BytesMut;
use serde_json::{Value, json};

use crate::octets::{Octets, said};

/// Connections that peers open at most.
const MOST_ACCEPTED: usize = 8;
/// Rounds of timers after the peers have said everything.
const ROUNDS: u32 = 20_000;

const HERE: &str = "10.0.0.1:80";
const THERE: &str = "10.0.0.2:50000";

/// What octets from 0xD0 on stand for: chance alone never says a request.
const HTTP: [&[u8]; 44] = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://a/",
    b"GET http://a/x HTTP/1.1\r\nHost: a\r\n",
    b"HEAD http://a/x HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST http://a/x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n",
    b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    b" HTTP/1.1\r\nHost: a\r\n",
    b" HTTP/1.0\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 304 Not Modified\r\n",
    b"HTTP/1.1 206 Partial Content\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.0 200\r\n\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: 100000\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"Expect: 100-continue\r\n",
    b"Cache-Control: max-age=60\r\n",
    b"Cache-Control: no-store, must-revalidate\r\n",
    b"Cache-Control: stale-while-revalidate=9\r\n",
    b"Vary: Accept\r\n",
    b"Vary: *\r\n",
    b"ETag: \"a\"\r\n",
    b"If-None-Match: \"a\"\r\n",
    b"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    b"Expires: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    b"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    b"Age: 5\r\n",
    b"Range: bytes=1-2\r\n",
    b"Content-Range: bytes 1-2/3\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Accept: x\r\n",
    b"\r\n",
    b"5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"abc",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    b"\0\0\0\x04\0\0\0\0\0",
    b"\0\0\x03\x01\x05\0\0\0\x01\x82\x86\x84",
    b"\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x03\0\x01\0\0\0\x01abc",
    b"\x16\x03\x03\0\x2d\x01\0\0\x29\x03\x0300000000000000000000000000000000\0\0\x02\xc0\x2f\x01\0",
];

const BULK: [&[u8]; 8] = [
    b"BULK\x03\x00\x00\x10\0\0\0\0\0\0\0\x05",
    b"BULK\x00\x00\x01\x2c\0\0\0\0\0\0\x28\0",
    b"BULK",
    b"STRP\0\0\0\x07\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x20\0",
    b"STRP",
    b"\0\0\0\0\0\0\0\0\0\0\0\x05hello",
    b"\0\0\0\0\0\0\x05\x78\0\0\0\0\0\0\0\0",
    b"\0\0\0\0\0\0\0\0",
];

struct Socket {
    inbox: BytesMut,
    is_open: bool,
    is_finished: bool,
}

/// The sockets of the one application.
struct Net {
    sockets: Vec<Socket>,
    /// Connections that were asked for, and not told of yet.
    wanted: Vec<SocketId>,
    /// A write takes so many octets at most.
    room: usize,
}

impl Net {
    fn socket(&mut self) -> SocketId {
        self.sockets.push(Socket { inbox: BytesMut::new(), is_open: true, is_finished: false });
        SocketId { slot: self.sockets.len() as u32 - 1, generation: 1, stream: 0 }
    }

    fn get(&mut self, socket: SocketId) -> Option<&mut Socket> {
        self.sockets.get_mut(socket.slot as usize).filter(|socket| socket.is_open)
    }
}

impl Sockets for Net {
    fn connect(&mut self, _: &mut Cx, _: SocketAddr) -> SocketId {
        let socket = self.socket();
        self.wanted.push(socket);
        socket
    }
    fn write(&mut self, _: &mut Cx, socket: SocketId, body: Body) -> Result<usize, WriteError> {
        if self.wanted.contains(&socket) || self.get(socket).is_none() {
            return Err(WriteError::Closed);
        }
        let taken = body.len().min(self.room);
        self.room -= taken;
        WriteError::or_taken(taken, body.len())
    }
    fn read(&mut self, _: &mut Cx, socket: SocketId, max: usize) -> Option<Body> {
        let inbox = &mut self.get(socket)?.inbox;
        let piece = inbox.split_to(inbox.len().min(max));
        (!piece.is_empty()).then(|| Body::Real(piece.freeze()))
    }
    fn unacknowledged(&self, _: SocketId) -> u64 {
        0
    }
    fn local(&self, _: SocketId) -> Option<SocketAddr> {
        HERE.parse().ok()
    }
    fn finish(&mut self, _: &mut Cx, socket: SocketId) {
        if let Some(socket) = self.get(socket) {
            socket.is_finished = true;
        }
    }
    fn reset(&mut self, _: &mut Cx, socket: SocketId) {
        if let Some(socket) = self.get(socket) {
            socket.is_open = false;
        }
    }
    fn send_datagram(&mut self, _: &mut Cx, _: Datagram) {}
    fn flow(&self, socket: SocketId) -> u32 {
        socket.slot
    }
}

/// The application, what it is told through, and its clock.
struct Play {
    app: Box<dyn App>,
    net: Net,
    records: Outbox,
    now: Instant,
    words: &'static [&'static [u8]],
}

impl Play {
    fn tell(&mut self, socket: SocketId, event: SocketEvent) {
        let Some(state) = self.net.get(socket) else { return };
        if matches!(event, SocketEvent::Closed(_)) {
            state.is_open = false;
        }
        self.net.wanted.retain(|wanted| *wanted != socket);
        let mut cx = Cx { now: self.now, records: &mut self.records };
        self.app.handle_event(&mut cx, &mut self.net, socket, event);
        self.records.clear();
    }

    fn wait_until(&mut self, at: Instant) {
        let mut calls = 0;
        while let Some(due) = self.app.poll_timeout().filter(|due| *due <= at) {
            calls = if due > self.now { 0 } else { calls + 1 };
            assert!(calls < ROUNDS, "a deadline that was handled moves on");
            self.now = self.now.max(due);
            self.app.handle_timeout(&mut Cx { now: self.now, records: &mut self.records }, &mut self.net);
            self.records.clear();
        }
        self.now = self.now.max(at);
    }

    /// A socket that was not waited for.
    fn one(&self, number: u8) -> Option<SocketId> {
        let open = |slot: &u32| self.net.sockets[*slot as usize].is_open;
        let slots: Vec<u32> = (0..self.net.sockets.len() as u32).filter(open).collect();
        let slot = *slots.get(usize::from(number) % slots.len().max(1))?;
        let socket = SocketId { slot, generation: 1, stream: 0 };
        (!self.net.wanted.contains(&socket)).then_some(socket)
    }

    fn play(&mut self, octets: &mut Octets<'_>, is_server: bool) {
        let address = |text: &str| text.parse().expect("an address");
        let mut accepted = 0;
        self.app.start(&mut Cx { now: self.now, records: &mut self.records }, &mut self.net);
        while let Some(what) = octets.next() {
            let number = what >> 3;
            match what & 7 {
                0 if is_server && accepted < MOST_ACCEPTED => {
                    accepted += 1;
                    let socket = self.net.socket();
                    let event = SocketEvent::Accepted { at: address(HERE), from: address(THERE) };
                    self.tell(socket, event);
                }
                1 | 2 => {
                    let piece = octets.piece();
                    let Some(socket) = self.one(number) else { continue };
                    let said: Vec<u8> =
                        piece.iter().flat_map(|octet| said(octet, self.words)).copied().collect();
                    let inbox = &mut self.net.sockets[socket.slot as usize].inbox;
                    inbox.extend_from_slice(&said);
                    let len = inbox.len() as u32;
                    if len > 0 {
                        self.tell(socket, SocketEvent::Readable(len));
                    }
                }
                3 => {
                    for socket in std::mem::take(&mut self.net.wanted) {
                        let refused = SocketEvent::Closed(CloseReason::Refused);
                        self.tell(socket, if number == 31 { refused } else { SocketEvent::Opened });
                    }
                }
                4 => {
                    let Some(socket) = self.one(number) else { continue };
                    self.tell(socket, SocketEvent::Finished);
                    if self.net.get(socket).is_some_and(|socket| socket.is_finished) {
                        self.tell(socket, SocketEvent::Closed(CloseReason::Finished));
                    }
                }
                5 if number > 15 => {
                    let Some(socket) = self.one(number) else { continue };
                    self.tell(socket, SocketEvent::Closed(CloseReason::Reset));
                }
                6 => self.wait_until(
                    self.now + Duration::from_millis(u64::from(number) * u64::from(number) * 100),
                ),
                _ => {
                    self.net.room = usize::from(octets.octet()) * 64;
                    let Some(socket) = self.one(number) else { continue };
                    self.tell(socket, SocketEvent::Writable);
                }
            }
        }
    }

    /// All peers are gone, and nobody answers any more.
    fn end(&mut self) {
        for slot in 0..self.net.sockets.len() as u32 {
            self.tell(SocketId { slot, generation: 1, stream: 0 }, SocketEvent::Closed(CloseReason::Reset));
        }
        for _ in 0..ROUNDS {
            let wanted = std::mem::take(&mut self.net.wanted);
            let due = self.app.poll_timeout();
            if wanted.is_empty() && due.is_none() {
                return;
            }
            for socket in wanted {
                self.tell(socket, SocketEvent::Closed(CloseReason::Refused));
            }
            if let Some(at) = due {
                self.wait_until(self.now.max(at));
            }
        }
        panic!("timers without an end");
    }
}

fn run(
    entry: Option<&Entry<Build>>,
    table: &Value,
    octets: &mut Octets<'_>,
    words: &'static [&'static [u8]],
    is_server: bool,
) {
    let there: SocketAddr = THERE.parse().expect("an address");
    let resolve = |_: &str| -> Option<IpAddr> { Some(there.ip()) };
    let hosts = || vec![("a".to_owned(), there.ip())];
    let parts = AppParts {
        seed: 1,
        host: "fuzzed",
        resolve: &resolve,
        hosts: &hosts,
        addresses: &hosts,
        far_end: Some("a"),
        proxy: &|_| None,
        transports: &["tcp", "quic"],
    };
    let app = (entry.expect("it is registered").build)(table, &parts).expect("a valid table");
    let net = Net { sockets: Vec::new(), wanted: Vec::new(), room: 10_000 };
    let mut play = Play { app, net, records: Outbox::default(), now: Instant::ZERO, words };
    play.play(octets, is_server);
    play.end();
    assert!(is_server || play.app.is_done(), "a client that never ends");
}

/// The HTTP server: HTTP/1.1, HTTP/2, and each with TLS.
pub fn http_server(octets: &[u8]) {
    let mut octets = Octets::new(octets);
    let tables = [
        json!({}),
        json!({ "http": "2" }),
        json!({ "tls": {} }),
        json!({ "coding": "chunked", "delay": "10ms", "max_requests": 2 }),
        json!({ "http": "2", "http3": true, "tls": {} }),
    ];
    let table = &tables[usize::from(octets.octet()) % tables.len()];
    run(airloom_apps::find("http-server"), table, &mut octets, &HTTP, true);
}

/// The HTTP client with a page of several objects: HTTP/1.1, pipelined, HTTP/2, and with TLS.
pub fn http_client(octets: &[u8]) {
    let mut octets = Octets::new(octets);
    let mut table =
        json!({ "objects": ["/1kB", "/2kB", "/3kB"], "repeat": 2, "timeout": "30s", "retries": 1 });
    let tables = [
        json!({}),
        json!({ "pipeline": 4 }),
        json!({ "http": "2" }),
        json!({ "tls": {} }),
        json!({ "cache": "10kB", "connections": 1 }),
        json!({ "keep_alive": false }),
        json!({ "http": "2", "tls": {}, "alt_svc": "known", "race_delay": "50ms" }),
    ];
    let more = &tables[usize::from(octets.octet()) % tables.len()];
    for (key, value) in more.as_object().expect("a table") {
        table[key] = value.clone();
    }
    run(airloom_apps::find("http-client"), &table, &mut octets, &HTTP, false);
}

/// The cache between clients and servers.
pub fn http_cache(octets: &[u8]) {
    let mut octets = Octets::new(octets);
    let tables = [
        json!({ "capacity": "4kB", "max_object": "2kB", "buffer": "1kB" }),
        json!({ "client_pipeline": 3, "server_pipeline": 3, "server_connections": 1 }),
    ];
    let table = &tables[usize::from(octets.octet()) % tables.len()];
    run(airloom_proxies::find("http-cache"), table, &mut octets, &HTTP, true);
}

/// Bulk transfers and striped files, either end of each.
pub fn bulk(octets: &[u8]) {
    let mut octets = Octets::new(octets);
    let (name, table, is_server) = match octets.octet() % 4 {
        0 => ("bulk-server", json!({}), true),
        1 => ("bulk", json!({ "size": "10kB", "repeat": 2 }), false),
        2 => ("striped-server", json!({}), true),
        _ => ("striped", json!({ "size": "10kB" }), false),
    };
    run(airloom_apps::find(name), &table, &mut octets, &BULK, is_server);
}
