//! A connection of the server that speaks HTTP/2 or 3: many requests side by side.

use std::collections::BTreeMap;

use airloom_base::{Body, Instant, SocketEvent, StreamEvent};
use airloom_content::http::message::{Fields, Method, RequestHead, ResponseHead, Version};
use airloom_content::http::v2::PREFACE;
use airloom_content::http::{v2, v3};
use bytes::Bytes;

use super::Config;
use super::connection::Connection;
use super::response::{content, pad};
use super::served::{Call, LINGER, Served, Then};
use super::site::Object;
use crate::net::{End, Happened, UnderWay};

/// A connection of which too little has come to know what it speaks.
pub(super) struct Undecided {
    octets: Vec<u8>,
    deadline: Instant,
}

impl Undecided {
    pub(super) fn new(config: &Config, now: Instant) -> Self {
        Undecided { octets: Vec::new(), deadline: now + config.idle_timeout }
    }

    fn speaks_1(&self, call: &Call) -> Then {
        let octets = Bytes::copy_from_slice(&self.octets);
        Then::Become(Box::new(Connection::begun(call.config, call.now(), octets)))
    }
}

impl Served for Undecided {
    /// Reads no more than it takes to know.
    fn handle(&mut self, call: &mut Call, event: SocketEvent) -> Then {
        loop {
            if !PREFACE.starts_with(&self.octets) || event == SocketEvent::Finished {
                return self.speaks_1(call);
            }
            if self.octets.len() == PREFACE.len() {
                call.counters.multiplexed += 1;
                let octets = Bytes::copy_from_slice(&self.octets);
                return Then::Become(Box::new(Multiplexed::new(call.config, call.now(), octets)));
            }
            let Some(body) = call.net.read(call.cx, call.socket, PREFACE.len() - self.octets.len()) else {
                return Then::Wait;
            };
            self.octets.extend_from_slice(&body.to_bytes());
        }
    }

    /// Whoever says nothing is told nothing but that it is over.
    fn timeout(&mut self, call: &mut Call) -> Then {
        self.speaks_1(call)
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }
}

/// One connection.
pub(super) struct Multiplexed {
    end: End,
    version: Version,
    /// Requests whose bodies are still coming.
    asked: BTreeMap<u32, RequestHead>,
    /// Requests that are thought about, by the time their answers are ready.
    thinking: BTreeMap<(Instant, u32), RequestHead>,
    /// Requests that have begun.
    begun: u32,
    peer_finished: bool,
    /// A rule of the connection was broken.
    has_failed: bool,
    /// Our side is finished; what still arrives is dropped.
    is_lingering: bool,
    under_way: UnderWay,
    /// When it is given up, thinking apart.
    patience: Instant,
}

impl Multiplexed {
    /// One over QUIC, which is open.
    pub(super) fn three(config: &Config, now: Instant) -> Self {
        let options = v3::Options::with_table(config.qpack_table.0 as u32, config.qpack_blocked);
        Multiplexed::of(End::three(v3::Connection::server(options)), Version::Http3, config, now)
    }

    /// One that began with these octets.
    pub(super) fn new(config: &Config, now: Instant, octets: Bytes) -> Self {
        let usual = v2::Options::default();
        let settings = v2::Settings {
            max_concurrent_streams: Some(config.h2_streams),
            initial_window_size: config.h2_stream_window.0 as u32,
            ..usual.settings
        };
        let connection_window = config.h2_conn_window.0 as u32;
        let mut end = v2::Connection::server(v2::Options { settings, connection_window, ..usual });
        end.feed(Body::Real(octets));
        Multiplexed::of(End::two(end), Version::Http2, config, now)
    }

    fn of(end: End, version: Version, config: &Config, now: Instant) -> Self {
        Multiplexed {
            end,
            version,
            asked: BTreeMap::new(),
            thinking: BTreeMap::new(),
            begun: 0,
            peer_finished: false,
            has_failed: false,
            is_lingering: false,
            under_way: UnderWay::default(),
            patience: now + config.idle_timeout,
        }
    }

    /// Reads what there is and writes what can be written.
    fn serve(&mut self, call: &mut Call) {
        if self.is_lingering {
            return call.drain();
        }
        let mut moved = false;
        loop {
            while let Some(happened) = self.end.poll(call.cx, call.net, call.socket) {
                moved = true;
                self.happened(call, happened);
            }
            let was_held_back = self.end.is_held_back();
            let taken = self.end.write(call.cx, call.net, call.socket);
            call.counters.sent_bytes += taken.bodies;
            moved |= taken.octets > 0;
            // What it held back can be taken in now: the socket does not tell of it again.
            if !was_held_back || self.end.is_held_back() {
                break;
            }
        }
        if moved {
            let is_idle = !self.end.is_busy();
            let config = call.config;
            self.patience = call.now() + if is_idle { config.idle_timeout } else { config.stall_timeout };
        }
        // Nothing more can be asked: what was asked for is answered, and then it ends.
        let closing = self.end.is_closing() || self.peer_finished;
        // What is under way on streams is lost when a connection of them is closed.
        //= RFC 9114 (8): one of which a rule was broken is closed all the same.
        let is_done = !self.end.is_busy()
            && (self.version == Version::Http2
                || self.has_failed
                || self.end.unacknowledged(call.net, call.socket) == 0);
        if closing && is_done {
            self.hang_up(call);
        }
    }

    fn happened(&mut self, call: &mut Call, happened: Happened) {
        let config = call.config;
        match happened {
            Happened::Request(stream, head) => {
                call.counters.requests += 1;
                call.counters.as_alternative += u64::from(config.is_alternative_of(&head));
                self.asked.insert(stream, head);
                if self.version == Version::Http2 {
                    self.begins(config);
                }
            }
            // The body of a request, which nobody needs, is dropped before the answer.
            Happened::End(stream) => {
                let Some(head) = self.asked.remove(&stream) else { return };
                if config.delay.is_zero() {
                    self.answer(call, stream, &head);
                } else {
                    self.thinking.insert((call.now() + config.delay, stream), head);
                }
            }
            Happened::Reset(stream, _) => {
                self.asked.remove(&stream);
                self.thinking.retain(|(_, thought), _| *thought != stream);
            }
            Happened::Failed => {
                call.counters.malformed += 1;
                self.has_failed = true;
                self.asked.clear();
                self.thinking.clear();
            }
            Happened::Data(..) | Happened::Interim(_) | Happened::Response(..) => {}
        }
    }

    /// A request begins, which may be the last that is taken. In HTTP/3 that is when its stream opens: one that is open when the
    /// client is told is not refused.
    fn begins(&mut self, config: &Config) {
        self.begun = self.begun.saturating_add(1);
        if config.max_requests.is_some_and(|most| self.begun >= most) || !config.keep_alive {
            self.end.go_away();
        }
    }

    fn answer(&mut self, call: &mut Call, stream: u32, request: &RequestHead) {
        let (config, counters) = (call.config, &mut *call.counters);
        let (status, media, object) = content(config, request);
        let size = match &object {
            Object::Text(text) => text.len() as u64,
            Object::Filler { size, .. } => *size,
        };
        let mut fields = Fields::default();
        if status == 405 {
            fields.push("Allow", "GET, HEAD, POST");
        }
        fields.push("Content-Type", media);
        fields.push("Content-Length", size.to_string());
        fields.push("Server", "airloom");
        if let Some(alternatives) = config.alternatives() {
            fields.push("Alt-Svc", alternatives);
        }
        pad(&mut fields, status, config);
        let head = ResponseHead { version: self.version, status, reason: Bytes::new(), fields };
        let is_bodiless = request.method == Method::Head || size == 0;
        if self.end.respond(stream, &head, is_bodiless) && !is_bodiless {
            match object {
                Object::Text(text) => self.end.send(stream, Body::Real(text)),
                Object::Filler { source, .. } => self.end.send_filler(stream, source, size),
            };
        }
        counters.errors += u64::from(status >= 400);
    }

    fn hang_up(&mut self, call: &mut Call) {
        let lingers = self.end.finish(call.cx, call.net, call.socket);
        self.is_lingering = true;
        self.patience = if lingers { call.now() + LINGER } else { call.now() };
    }
}

impl Served for Multiplexed {
    fn handle(&mut self, call: &mut Call, event: SocketEvent) -> Then {
        self.end.on(call.cx, call.net, call.socket, event);
        //= RFC 9000 (2.1): the two low bits of a client's stream that goes both ways are 0. RFC 9114 (6.1): each is a request.
        if event == SocketEvent::Stream(StreamEvent::Opened) && call.socket.stream & 3 == 0 {
            self.begins(call.config);
        }
        // The end of a stream is no end of the connection.
        self.peer_finished |= self.version == Version::Http2 && event == SocketEvent::Finished;
        self.serve(&mut call.stream(0));
        Then::Wait
    }

    fn timeout(&mut self, call: &mut Call) -> Then {
        let (now, config) = (call.now(), call.config);
        let mut is_answering = false;
        while let Some(first) = self.thinking.first_entry().filter(|first| first.key().0 <= now) {
            let ((_, stream), head) = first.remove_entry();
            self.answer(call, stream, &head);
            is_answering = true;
        }
        if is_answering {
            self.patience = now + config.stall_timeout;
        } else if self.patience <= now {
            let octets = self.end.unacknowledged(call.net, call.socket);
            if self.under_way.gets_on(octets) {
                self.patience = now + config.idle_timeout;
            } else if octets == 0 && !self.thinking.is_empty() {
                // It is this server that takes so long.
                self.patience = now + config.stall_timeout;
            } else if self.is_lingering
                || self.end.is_busy()
                || (self.version == Version::Http3 && octets > 0)
            {
                call.counters.timeouts += u64::from(!self.is_lingering);
                self.end.abort(call.cx, call.net, call.socket);
                return Then::Forget;
            } else {
                self.end.go_away();
                self.patience = now + config.stall_timeout;
            }
        }
        self.serve(call);
        Then::Wait
    }

    fn deadline(&self) -> Instant {
        self.thinking.first_key_value().map_or(self.patience, |((at, _), _)| self.patience.min(*at))
    }
}
