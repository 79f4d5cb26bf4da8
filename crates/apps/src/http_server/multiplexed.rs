//! A connection of the server that speaks HTTP/2 or 3: many requests side by side.

use std::collections::{BTreeMap, BTreeSet};

use airloom_base::{Body, Cx, Instant, SocketEvent, SocketId, Sockets};
use airloom_content::http::message::{Fields, Method, RequestHead, ResponseHead, Version};
use airloom_content::http::v2::PREFACE;
use airloom_content::http::{v2, v3};
use bytes::Bytes;

use super::Config;
use super::connection::{Counters, LINGER, Then};
use super::response::content;
use super::site::Object;
use crate::net::{Alarm, End, Happened};

/// A connection of which too little has come to know what it speaks.
pub(super) struct Undecided {
    octets: Vec<u8>,
    pub(super) alarm: Alarm,
    pub(super) deadline: Instant,
}

/// What it speaks, and what has come of it.
pub(super) enum Begun {
    /// HTTP/1.
    Old(Bytes),
    /// HTTP/2.
    New(Bytes),
}

impl Undecided {
    pub(super) fn new(config: &Config, now: Instant) -> Self {
        Undecided { octets: Vec::new(), alarm: Alarm::default(), deadline: now + config.idle_timeout }
    }

    /// Reads no more than it takes to know.
    pub(super) fn decide(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        has_ended: bool,
    ) -> Option<Begun> {
        loop {
            let octets = || Bytes::copy_from_slice(&self.octets);
            if !PREFACE.starts_with(&self.octets) || has_ended {
                return Some(Begun::Old(octets()));
            }
            if self.octets.len() == PREFACE.len() {
                return Some(Begun::New(octets()));
            }
            let body = net.read(cx, socket, PREFACE.len() - self.octets.len())?;
            self.octets.extend_from_slice(&body.to_bytes());
        }
    }
}

/// One connection.
pub(super) struct Multiplexed {
    end: End,
    version: Version,
    /// Requests whose bodies are still coming.
    asked: BTreeMap<u32, RequestHead>,
    /// Answers that are thought about, by the time they are ready.
    thinking: BTreeSet<(Instant, u32)>,
    answers: BTreeMap<u32, RequestHead>,
    served: u32,
    peer_finished: bool,
    /// Our side is finished; what still arrives is dropped.
    is_lingering: bool,
    /// Octets that the peer had not acknowledged when the deadline came last.
    under_way: u64,
    /// When it is given up, thinking apart.
    patience: Instant,
    pub(super) alarm: Alarm,
    pub(super) deadline: Instant,
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
            thinking: BTreeSet::new(),
            answers: BTreeMap::new(),
            served: 0,
            peer_finished: false,
            is_lingering: false,
            under_way: 0,
            patience: now + config.idle_timeout,
            alarm: Alarm::default(),
            deadline: now + config.idle_timeout,
        }
    }

    /// What an event of the connection or of one of its streams does.
    pub(super) fn on(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        self.end.on(cx, net, socket, event);
    }

    /// The peer sends no more.
    pub(super) fn peer_finished(&mut self) {
        self.peer_finished = true;
    }

    /// Reads what there is and writes what can be written.
    pub(super) fn serve(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        config: &Config,
        counters: &mut Counters,
    ) {
        if self.is_lingering {
            while net.read(cx, socket, usize::MAX).is_some() {}
            return;
        }
        let mut moved = false;
        loop {
            while let Some(happened) = self.end.poll(cx, net, socket) {
                moved = true;
                self.happened(cx, happened, config, counters);
            }
            let was_held_back = self.end.is_held_back();
            moved |= self.end.write(cx, net, socket) > 0;
            // What it held back can be taken in now: the socket does not tell of it again.
            if !was_held_back || self.end.is_held_back() {
                break;
            }
        }
        if moved {
            let is_idle = !self.end.is_busy();
            self.patience = cx.now + if is_idle { config.idle_timeout } else { config.stall_timeout };
        }
        // Nothing more can be asked: what was asked for is answered, and then it ends.
        let closing = self.end.is_closing() || self.peer_finished;
        // What is under way on streams is lost when a connection of them is closed.
        let may_end = self.version == Version::Http2 || self.end.unacknowledged(net, socket) == 0;
        if closing && !self.end.is_busy() && may_end {
            self.hang_up(cx, net, socket);
        }
        self.watch();
    }

    fn watch(&mut self) {
        let ready = self.thinking.first().map(|(at, _)| *at);
        self.deadline = ready.map_or(self.patience, |at| at.min(self.patience));
    }

    fn happened(&mut self, cx: &Cx, happened: Happened, config: &Config, counters: &mut Counters) {
        match happened {
            Happened::Request(stream, head) => {
                counters.requests += 1;
                self.asked.insert(stream, head);
            }
            // The body of a request, which nobody needs, is dropped before the answer.
            Happened::End(stream) => {
                let Some(head) = self.asked.remove(&stream) else { return };
                self.served += 1;
                if config.max_requests.is_some_and(|most| self.served >= most) || !config.keep_alive {
                    self.end.go_away();
                }
                if config.delay.is_zero() {
                    self.answer(stream, &head, config, counters);
                } else {
                    self.thinking.insert((cx.now + config.delay, stream));
                    self.answers.insert(stream, head);
                }
            }
            Happened::Reset(stream, _) => {
                self.asked.remove(&stream);
                if self.answers.remove(&stream).is_some() {
                    self.thinking.retain(|(_, thought)| *thought != stream);
                }
            }
            Happened::Failed => {
                counters.malformed += 1;
                self.asked.clear();
                self.answers.clear();
                self.thinking.clear();
            }
            Happened::Data(..) | Happened::Interim(_) | Happened::Response(..) => {}
        }
    }

    fn answer(&mut self, stream: u32, request: &RequestHead, config: &Config, counters: &mut Counters) {
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
        pad(&mut fields, status, config);
        let head = ResponseHead { version: self.version, status, reason: Bytes::new(), fields };
        let is_bodiless = request.method == Method::Head || size == 0;
        if self.end.respond(stream, &head, is_bodiless) && !is_bodiless {
            match object {
                Object::Text(text) => self.end.send(stream, Body::Real(text)),
                Object::Filler { source, .. } => self.end.send_filler(stream, source, size),
            };
            counters.sent_bytes = counters.sent_bytes.saturating_add(size);
        }
        counters.errors += u64::from(status >= 400);
    }

    /// The deadline has come.
    pub(super) fn timeout(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        config: &Config,
        counters: &mut Counters,
    ) -> Then {
        let mut is_answering = false;
        while self.thinking.first().is_some_and(|(at, _)| *at <= cx.now) {
            let Some((_, stream)) = self.thinking.pop_first() else { break };
            if let Some(head) = self.answers.remove(&stream) {
                self.answer(stream, &head, config, counters);
                is_answering = true;
            }
        }
        if is_answering {
            self.patience = cx.now + config.stall_timeout;
        } else if self.patience <= cx.now {
            let now = self.end.unacknowledged(net, socket);
            let before = std::mem::replace(&mut self.under_way, now);
            let gets_on = self.under_way > 0 && self.under_way != before;
            if gets_on {
                self.patience = cx.now + config.idle_timeout;
            } else if self.is_lingering || self.end.is_busy() || (self.version == Version::Http3 && now > 0) {
                counters.timeouts += u64::from(!self.is_lingering);
                self.end.abort(cx, net, socket);
                return Then::Forget;
            } else {
                self.end.go_away();
                self.patience = cx.now + config.stall_timeout;
            }
        }
        self.serve(cx, net, socket, config, counters);
        self.watch();
        Then::Wait
    }

    fn hang_up(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let lingers = self.end.finish(cx, net, socket);
        self.is_lingering = true;
        self.patience = if lingers { cx.now + LINGER } else { cx.now };
    }
}

/// Makes the head as long as asked for, by what it would be in HTTP/1.1.
fn pad(fields: &mut Fields, status: u16, config: &Config) {
    let Some(wanted) = config.response else { return };
    let reason = airloom_content::http::message::reason(status).into();
    let head = ResponseHead { version: Version::Http11, status, reason, fields: fields.clone() };
    let mut octets = Vec::new();
    head.emit(&mut octets);
    if let Some(short) = (wanted.0 as usize).checked_sub(octets.len()).filter(|short| *short > 0) {
        // "X-Padding: " and its line end are 13 octets.
        fields.push("X-Padding", "p".repeat(short.saturating_sub(13).max(1)));
    }
}
