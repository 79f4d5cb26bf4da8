//! An end of HTTP/2 or 3 and what is below it: a socket, or the streams of a connection.

use std::collections::{BTreeSet, VecDeque};

use airloom_base::service::WriteError;
use airloom_base::units::Octets;
use airloom_base::{Body, ConfigError, Cx, SocketEvent, SocketId, Sockets, StreamEvent, StreamKind};
use airloom_content::http::Priority;
use airloom_content::http::message::{Method, RequestHead, ResponseHead};
use airloom_content::http::v3::{ErrorCode, Read, Streams};
use airloom_content::http::{v2, v3};
use bytes::Bytes;
use serde_json::json;

/// What HTTP/3 is called below (RFC 9114, 3.1).
pub(crate) const H3: &str = "h3";

/// What happened, whatever the version.
pub(crate) enum Happened {
    /// A client asks.
    Request(u32, RequestHead),
    /// Something came in front of an answer.
    Interim(u32),
    /// The server answers.
    Response(u32, ResponseHead),
    /// A piece of a body.
    Data(u32, Body),
    /// The peer's message is complete.
    End(u32),
    /// A stream is over before its time; true: nothing was done about it, it may be asked for again.
    Reset(u32, bool),
    /// The connection is of no more use.
    Failed,
}

/// One end of a connection whose requests go side by side.
pub(crate) enum End {
    /// HTTP/2.
    Two(Two),
    /// HTTP/3.
    Three(Three),
}

/// What a socket has taken.
#[derive(Clone, Copy, Default)]
pub(crate) struct Taken {
    /// All octets.
    pub(crate) octets: u64,
    /// Those of bodies among them.
    pub(crate) bodies: u64,
}

/// HTTP/2 and the octets that the socket did not take yet, and whether they are a body's.
pub(crate) struct Two {
    end: Box<v2::Connection>,
    unwritten: Option<(Body, bool)>,
}

/// HTTP/3, and what waits for streams.
pub(crate) struct Three {
    end: Box<v3::Connection>,
    /// Requests for which no stream was to be had yet.
    queued: VecDeque<Queued>,
    /// The number of the next request's stream.
    next: u32,
    /// Streams that have something to read while they wait for entries of the table.
    unread: BTreeSet<u64>,
    /// Streams of requests that were written to, and of which the peer may not have everything. Others never end.
    under_way: BTreeSet<u32>,
    /// Why the connection is to be closed.
    code: ErrorCode,
    /// The handshake is not over: only what may be repeated is asked for.
    is_early: bool,
    /// What was asked for so far, in case it has to be asked for again.
    early: Vec<Queued>,
    /// What another end is made from then.
    options: Option<v3::Options>,
}

#[derive(Clone)]
struct Queued {
    stream: u32,
    head: RequestHead,
    priority: Priority,
    form: Bytes,
}

impl Queued {
    /// Does it change nothing, however often it is asked for (RFC 9110, 9.2.1)?
    fn is_safe(&self) -> bool {
        matches!(self.head.method, Method::Get | Method::Head)
    }
}

/// The streams of a connection, as a host lends them.
struct Lent<'a, 'b> {
    cx: &'a mut Cx<'b>,
    net: &'a mut dyn Sockets,
    socket: SocketId,
    written: &'a mut BTreeSet<u32>,
    octets: u64,
}

impl Lent<'_, '_> {
    fn of(&self, stream: u64) -> SocketId {
        self.socket.with_stream(stream as u32)
    }
}

impl Streams for Lent<'_, '_> {
    fn write(&mut self, stream: u64, body: Body) -> Result<usize, ErrorCode> {
        let socket = self.of(stream);
        match self.net.write(self.cx, socket, body) {
            Ok(taken) => {
                self.octets += taken as u64;
                //= RFC 9000 (2.1): the second bit of a stream that goes one way is set.
                if socket.stream & 2 == 0 {
                    self.written.insert(socket.stream);
                }
                Ok(taken)
            }
            Err(WriteError::Stopped(code)) => Err(ErrorCode(code)),
            // Room, and the end of the connection, are told by events.
            Err(WriteError::Blocked | WriteError::Closed) => Ok(0),
        }
    }
    fn finish(&mut self, stream: u64) {
        let socket = self.of(stream);
        self.net.finish(self.cx, socket);
    }
    fn reset(&mut self, stream: u64, code: ErrorCode) {
        let socket = self.of(stream);
        self.written.remove(&socket.stream);
        self.net.reset_stream(self.cx, socket, code.0);
    }
    fn stop(&mut self, stream: u64, code: ErrorCode) {
        let socket = self.of(stream);
        self.net.stop(self.cx, socket, code.0);
    }
    fn read(&mut self, stream: u64) -> Read {
        let socket = self.of(stream);
        self.net.read(self.cx, socket, usize::MAX).map_or(Read::Nothing, Read::Octets)
    }
}

impl End {
    /// HTTP/2.
    pub(crate) fn two(end: v2::Connection) -> Self {
        End::Two(Two { end: Box::new(end), unwritten: None })
    }

    /// HTTP/3.
    pub(crate) fn three(end: v3::Connection) -> Self {
        End::Three(Three::new(end, None))
    }

    /// HTTP/3 of a client, which may ask before its handshake is over.
    pub(crate) fn asking(options: v3::Options) -> Self {
        End::Three(Three::new(v3::Connection::client(options), Some(options)))
    }

    /// Writes until nothing more is taken or nothing is left, and says what was. What is sent next is decided when there is room
    /// for it.
    pub(crate) fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> Taken {
        match self {
            End::Two(two) => two.write(cx, net, socket),
            End::Three(three) => three.write(cx, net, socket),
        }
    }

    /// What an event of the connection or of one of its streams does.
    pub(crate) fn on(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if let End::Three(three) = self {
            three.on(cx, net, socket, event);
        }
    }

    /// The next thing that happened, by what can be read. Nothing is read while too much waits to be written.
    pub(crate) fn poll(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> Option<Happened> {
        match self {
            End::Two(two) => two.poll(cx, net, socket),
            End::Three(three) => three.poll(cx, net, socket),
        }
    }

    /// Asks, and sends what is posted. `None`: the peer takes no (or for the moment no more) requests.
    pub(crate) fn request(&mut self, head: RequestHead, priority: Priority, form: Bytes) -> Option<u32> {
        match self {
            End::Two(Two { end, .. }) => {
                let stream = end.request(&head, priority, form.is_empty())?;
                if !form.is_empty() {
                    end.send(stream, [Body::Real(form)], true);
                }
                Some(stream)
            }
            End::Three(three) => {
                let stream = three.next;
                three.next = stream.checked_add(4).filter(|_| three.has_room())?;
                three.queued.push_back(Queued { stream, head, priority, form });
                Some(stream)
            }
        }
    }

    /// Does the peer take another request now, as far as is known?
    pub(crate) fn has_room(&self) -> bool {
        match self {
            End::Two(Two { end, .. }) => !end.is_closing() && end.room() > 0,
            End::Three(three) => three.has_room(),
        }
    }

    /// Answers. A body follows by `send` or `send_filler` unless `ends`. False: there is no such stream (any more).
    pub(crate) fn respond(&mut self, stream: u32, head: &ResponseHead, ends: bool) -> bool {
        match self {
            End::Two(Two { end, .. }) => end.respond(stream, head, ends),
            End::Three(Three { end, .. }) => end.respond(stream.into(), head, ends),
        }
    }

    /// Sends a body, and nothing behind it.
    pub(crate) fn send(&mut self, stream: u32, body: Body) -> bool {
        match self {
            End::Two(Two { end, .. }) => end.send(stream, [body], true),
            End::Three(Three { end, .. }) => end.send(stream.into(), [body], true),
        }
    }

    /// Sends the first `size` octets of a filler, and nothing behind them.
    pub(crate) fn send_filler(&mut self, stream: u32, source: u32, size: u64) -> bool {
        match self {
            End::Two(Two { end, .. }) => end.send_filler(stream, source, size),
            End::Three(Three { end, .. }) => end.send_filler(stream.into(), source, size),
        }
    }

    /// Gives a stream up of which everything that was needed has come.
    pub(crate) fn cancel(&mut self, stream: u32) {
        match self {
            End::Two(Two { end, .. }) => end.reset(stream, v2::ErrorCode::NO_ERROR),
            End::Three(Three { end, .. }) => end.reset(stream.into(), ErrorCode::NO_ERROR),
        }
    }

    /// Takes no new requests, and tells the peer.
    pub(crate) fn go_away(&mut self) {
        match self {
            End::Two(Two { end, .. }) => end.go_away(),
            End::Three(Three { end, .. }) => end.go_away(),
        }
    }

    /// Does it take no new requests, or nothing at all any more?
    pub(crate) fn is_closing(&self) -> bool {
        match self {
            End::Two(Two { end, .. }) => end.is_closing(),
            End::Three(Three { end, .. }) => end.is_closing(),
        }
    }

    /// Does so much wait to be written that nothing more is taken in?
    pub(crate) fn is_held_back(&self) -> bool {
        matches!(self, End::Two(Two { end, .. }) if end.is_held_back())
    }

    /// Is something being answered, or an answer not written yet?
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            End::Two(Two { end, unwritten }) => end.open_streams() > 0 || unwritten.is_some(),
            End::Three(Three { end, .. }) => end.open_streams() > 0,
        }
    }

    /// Octets that the peer has not acknowledged.
    pub(crate) fn unacknowledged(&mut self, net: &dyn Sockets, socket: SocketId) -> u64 {
        match self {
            End::Two(_) => net.unacknowledged(socket),
            End::Three(three) => {
                let left = |stream: &u32| net.unacknowledged(socket.with_stream(*stream));
                three.under_way.retain(|stream| left(stream) > 0);
                three.under_way.iter().map(left).sum()
            }
        }
    }

    /// Ends the connection when it has done its work. True: the peer is to end its side, too, before it is over.
    pub(crate) fn finish(&self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> bool {
        match self {
            End::Two(_) => net.finish(cx, socket),
            End::Three(three) => net.close(cx, socket, three.code.0),
        }
        matches!(self, End::Two(_))
    }

    /// Ends it at once.
    pub(crate) fn abort(&self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        match self {
            End::Two(_) => net.reset(cx, socket),
            End::Three(three) => net.close(cx, socket, three.code.0),
        }
    }
}

impl Two {
    fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> Taken {
        let mut written = Taken::default();
        while let Some((mut piece, is_body)) = self.unwritten.take().or_else(|| self.next()) {
            let taken = net.write(cx, socket, piece.clone()).unwrap_or(0).min(piece.len());
            written.octets += taken as u64;
            written.bodies += if is_body { taken as u64 } else { 0 };
            if taken < piece.len() {
                drop(piece.split_to(taken));
                self.unwritten = Some((piece, is_body));
                break;
            }
        }
        written
    }

    fn next(&mut self) -> Option<(Body, bool)> {
        let is_body = self.end.is_in_body();
        Some((self.end.poll_transmit()?, is_body))
    }

    fn poll(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> Option<Happened> {
        loop {
            while let Some(event) = self.end.poll_event() {
                return Some(match event {
                    v2::Event::Request(stream, head) => Happened::Request(stream, head),
                    v2::Event::Interim(stream, _) => Happened::Interim(stream),
                    v2::Event::Response(stream, head) => Happened::Response(stream, head),
                    v2::Event::Data(stream, body) => Happened::Data(stream, body),
                    v2::Event::End(stream, _) => Happened::End(stream),
                    //= RFC 9113 (8.7): what was refused was not worked on and may be asked for again, a POST too.
                    v2::Event::Reset(stream, code) => {
                        Happened::Reset(stream, code == v2::ErrorCode::REFUSED_STREAM)
                    }
                    v2::Event::Failed(_) => Happened::Failed,
                    v2::Event::GoAway(_) => continue,
                });
            }
            if self.end.is_held_back() {
                return None;
            }
            self.end.feed(net.read(cx, socket, usize::MAX)?);
        }
    }
}

impl Three {
    fn new(end: v3::Connection, options: Option<v3::Options>) -> Three {
        Three {
            end: Box::new(end),
            queued: VecDeque::new(),
            next: 0,
            unread: BTreeSet::new(),
            under_way: BTreeSet::new(),
            code: ErrorCode::NO_ERROR,
            is_early: false,
            early: Vec::new(),
            options,
        }
    }

    /// Nothing was taken of what was sent early: all of it is asked for again, on streams of the same numbers.
    fn begin_again(&mut self) {
        if let Some(options) = &self.options {
            *self.end = v3::Connection::client(*options);
            self.under_way.clear();
            self.queued = self.early.drain(..).chain(self.queued.drain(..)).collect();
        }
    }

    fn has_room(&self) -> bool {
        // Before there are streams it is not known how many there may be: a few are asked for.
        const UNTOLD: usize = 100;
        let most = if self.end.is_begun() { 0 } else { UNTOLD };
        !self.end.is_closing() && self.queued.len() <= most
    }

    fn on(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        let stream = u64::from(socket.stream);
        if cx.records.wants_qlog() {
            self.end.keep_log();
        }
        match event {
            SocketEvent::Opened if self.end.is_begun() => {
                self.is_early = false;
                self.early.clear();
            }
            SocketEvent::Stream(StreamEvent::EarlyRefused) => self.begin_again(),
            SocketEvent::Opened | SocketEvent::Accepted { .. } | SocketEvent::Stream(StreamEvent::Early) => {
                self.is_early = matches!(event, SocketEvent::Stream(_));
                let mut open =
                    || net.open_stream(cx, socket, StreamKind::Uni).map(|own| u64::from(own.stream));
                //= RFC 9114 (6.2): each side lets the other open three streams of one way at least.
                if let (Some(control), Some(encoder), Some(decoder)) = (open(), open(), open()) {
                    self.end.begin([control, encoder, decoder]);
                }
            }
            SocketEvent::Readable(_) => self.read(cx, net, socket, stream),
            SocketEvent::Writable => self.end.writable(stream),
            SocketEvent::Finished => self.end.ended(stream),
            SocketEvent::Stream(StreamEvent::Opened) => self.end.opened(stream),
            SocketEvent::Stream(StreamEvent::Reset(code)) => self.end.was_reset(stream, ErrorCode(code)),
            SocketEvent::Stream(StreamEvent::Stopped(code)) => self.end.was_stopped(stream, ErrorCode(code)),
            SocketEvent::Stream(_) | SocketEvent::Asked { .. } | SocketEvent::Closed(_) => {}
        }
        self.log(cx, net, socket);
    }

    /// Passes on what is to be logged.
    fn log(&mut self, cx: &Cx, net: &mut dyn Sockets, socket: SocketId) {
        if !cx.records.wants_qlog() {
            return;
        }
        for logged in self.end.logged() {
            let (name, data) = logged.event();
            // Milliseconds since the run began, to a microsecond, as in the events of QUIC.
            let time = (cx.now.as_nanos() / 1_000) as f64 / 1e3;
            let event = json!({ "time": time, "name": name, "data": data });
            net.log(socket, format!("\u{1e}{event}\n").as_bytes());
        }
    }

    fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, stream: u64) {
        let mut lent = Lent { cx, net, socket, written: &mut self.under_way, octets: 0 };
        if !self.end.read_from(&mut lent, stream) {
            self.unread.insert(stream);
        }
    }

    fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> Taken {
        while self.end.is_begun() && !self.end.is_closing() && !self.queued.is_empty() {
            //= RFC 8470 (4): what is not safe waits for the handshake, and what is behind it.
            if self.is_early && self.queued.front().is_some_and(|first| !first.is_safe()) {
                break;
            }
            let Some(opened) = net.open_stream(cx, socket, StreamKind::Bi) else { break };
            let Some(first) = self.queued.pop_front() else { break };
            if self.is_early {
                self.early.push(first.clone());
            }
            let Queued { stream, head, priority, form } = first;
            debug_assert_eq!(opened.stream, stream, "requests have streams one after another");
            net.set_priority(opened, priority.rank(stream.into()));
            if self.end.request(stream.into(), &head, priority, form.is_empty()) && !form.is_empty() {
                self.end.send(stream.into(), [Body::Real(form)], true);
            }
        }
        let before = self.end.body_octets();
        let mut lent = Lent { cx, net, socket, written: &mut self.under_way, octets: 0 };
        self.end.write_to(&mut lent);
        let octets = lent.octets;
        self.log(cx, net, socket);
        Taken { octets, bodies: self.end.body_octets() - before }
    }

    fn poll(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> Option<Happened> {
        while let Some(event) = self.end.poll_event() {
            return Some(match event {
                v3::Event::Request(stream, head) => {
                    let priority = self.end.priority(stream).unwrap_or_default();
                    net.set_priority(socket.with_stream(stream as u32), priority.rank(stream));
                    Happened::Request(stream as u32, head)
                }
                v3::Event::Interim(stream, _) => Happened::Interim(stream as u32),
                v3::Event::Response(stream, head) => Happened::Response(stream as u32, head),
                v3::Event::Data(stream, body) => Happened::Data(stream as u32, body),
                v3::Event::End(stream, _) => Happened::End(stream as u32),
                //= RFC 9114 (4.1.1): what was rejected was not worked on and may be asked for again, a POST too.
                v3::Event::Reset(stream, code) => {
                    Happened::Reset(stream as u32, code == ErrorCode::REQUEST_REJECTED)
                }
                v3::Event::Failed(error) => {
                    if let v3::Error::Connection(code, _) = error {
                        self.code = code;
                    }
                    Happened::Failed
                }
                v3::Event::Unblocked(stream) => {
                    if self.unread.remove(&stream) {
                        self.read(cx, net, socket, stream);
                    }
                    continue;
                }
                v3::Event::Priority(stream, priority) => {
                    net.set_priority(socket.with_stream(stream as u32), priority.rank(stream));
                    continue;
                }
                v3::Event::GoAway(_) => continue,
            });
        }
        // What was not asked for before the server went away will not be.
        let left = if self.end.is_closing() { self.queued.pop_front() } else { None };
        left.map(|queued| Happened::Reset(queued.stream, true))
    }
}

/// Refuses windows that HTTP/2 cannot have.
///
/// # Errors
/// [`ConfigError`] with the key.
pub(crate) fn check_windows(stream: Octets, connection: Octets) -> Result<(), ConfigError> {
    const MOST: u64 = 0x7fff_ffff;
    // With less, window updates are so large a part of what is sent that a server takes them for a flood.
    const LEAST: u64 = 1_000;
    let is_wrong = !(LEAST..=MOST).contains(&stream.0);
    ConfigError::when(is_wrong, "h2_stream_window", "must be 1000B to 2147483647B")?;
    //= RFC 9113 (6.9.2): the window of a connection begins with 65,535 octets and can only grow.
    let is_wrong = !(65_535..=MOST).contains(&connection.0);
    ConfigError::when(is_wrong, "h2_conn_window", "must be 65535B to 2147483647B")
}

/// Refuses a table that HTTP/3 cannot have here.
///
/// # Errors
/// [`ConfigError`] with the key.
pub(crate) fn check_table(octets: Octets) -> Result<(), ConfigError> {
    let is_wrong = octets.0 > u64::from(u32::MAX);
    ConfigError::when(is_wrong, "qpack_table", "must be at most 4294967295B")
}

#[cfg(test)]
mod tests {
    use airloom_base::{Instant, Outbox};
    use airloom_testkit::Memory;

    use super::*;

    #[test]
    fn a_stream_that_the_peer_stopped_is_given_up_when_it_is_written_to() {
        let written = |why| {
            let cx = &mut Cx { now: Instant::ZERO, records: &mut Outbox::default() };
            let (net, under_way) = (&mut Memory::default(), &mut BTreeSet::new());
            let socket = net.socket();
            net.wire(socket).refuses = Some(why);
            let mut lent = Lent { cx, net, socket, written: under_way, octets: 0 };
            let taken = lent.write(4, Body::filler(1, 100));
            assert_eq!((lent.octets, under_way.len()), (0, 0), "{why:?}");
            taken
        };
        assert_eq!(written(WriteError::Stopped(9)), Err(ErrorCode(9)));
        assert_eq!(written(WriteError::Blocked), Ok(0));
        assert_eq!(written(WriteError::Closed), Ok(0));
    }
}
