//! One connection of the server, or one stream of an association: which part of which exchange it is in.

use airloom_base::{Body, Cx, Duration, Instant, SocketId, Sockets};
use airloom_content::http::message::RequestHead;
use airloom_content::http::v1::{BodyLength, Framing, Item, Limits, Receiver, RequestReader, persists};

use bytes::Bytes;

use super::response::{After, Response};
use super::{Config, Http};
use crate::net::Alarm;

/// How long the server reads on after it finished its side, before it resets the connection.
//= RFC 9112 (9.6): a server half-closes, reads on until the client closes or for a while, then closes fully.
// Servers close after a few seconds, but that is no reset: Linux then keeps the connection in FIN-WAIT-2 for 60 s. A proxy that
// has taken a response off the server and passes it on over a slow link finishes its side that much later.
pub(super) const LINGER: Duration = Duration::from_secs(60);

/// What the server counts.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) malformed: u64,
    pub(super) sent_bytes: u64,
    pub(super) timeouts: u64,
    /// Connections that spoke HTTP/2, or HTTP/3.
    pub(super) multiplexed: u64,
}

enum State {
    /// No complete head has arrived.
    Reading,
    /// The body of a request, which nobody needs, is read and dropped before the answer.
    Discarding(Response),
    /// The answer is thought about.
    Thinking(Response),
    /// The answer is on its way.
    Answering(Response),
    /// Our side is finished (a stream of an association: out of use); what still arrives is dropped.
    Lingering,
}

/// One connection.
pub(super) struct Connection {
    reader: RequestReader,
    state: State,
    pub(super) served: u32,
    /// A stream of an association: it is never finished by itself.
    lasts: bool,
    peer_finished: bool,
    /// Octets of responses that the peer had not acknowledged when the deadline came last.
    under_way: u64,
    /// When something has to be done if nothing happens; the server keeps the queue.
    pub(super) alarm: Alarm,
    /// The time the alarm should ring.
    pub(super) deadline: Instant,
}

/// What the connection wants of the server after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing; the deadline is up to date.
    Wait,
    /// It was reset: forget it.
    Forget,
}

impl Connection {
    /// A connection that was just accepted.
    pub(super) fn new(config: &Config, now: Instant) -> Self {
        Connection {
            reader: RequestReader::new(Limits::default()),
            state: State::Reading,
            served: 0,
            lasts: false,
            peer_finished: false,
            under_way: 0,
            alarm: Alarm::default(),
            deadline: now + config.idle_timeout,
        }
    }

    /// One on which this has arrived already.
    pub(super) fn begun(config: &Config, now: Instant, octets: Bytes) -> Self {
        let mut connection = Connection::new(config, now);
        connection.reader.feed(Body::Real(octets));
        connection
    }

    /// A stream of an association on which something arrived.
    pub(super) fn stream(config: &Config, now: Instant) -> Self {
        Connection { lasts: true, ..Connection::new(config, now) }
    }

    /// Is nothing asked for, and nothing being answered?
    pub(super) fn is_idle(&self) -> bool {
        match self.state {
            State::Reading => self.reader.is_between_messages(),
            State::Lingering => true,
            State::Discarding(_) | State::Thinking(_) | State::Answering(_) => false,
        }
    }

    /// Does it wait for room to write?
    pub(super) fn is_writing(&self) -> bool {
        matches!(self.state, State::Answering(_))
    }

    /// Goes on as far as possible: reads requests, writes responses.
    pub(super) fn serve(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        config: &Config,
        counters: &mut Counters,
    ) {
        loop {
            match &mut self.state {
                State::Reading => match self.reader.poll() {
                    Ok(Some(Item::Head(head, framing))) => {
                        counters.requests += 1;
                        self.state = self.accept(config, &head, framing);
                    }
                    // Anything else cannot come before a head.
                    Ok(Some(_)) => {}
                    Ok(None) if self.take(cx, net, socket) => {}
                    Ok(None) if self.peer_finished => self.hang_up(cx, net, socket),
                    Ok(None) => return,
                    Err(error) => {
                        counters.malformed += 1;
                        self.state =
                            State::Answering(Response::error(config, error.status(), After::Close, None));
                    }
                },
                State::Discarding(_) => match self.reader.poll() {
                    Ok(Some(Item::End(_))) => self.think(cx, config),
                    Ok(Some(_)) => self.deadline = cx.now + config.idle_timeout,
                    Ok(None) if self.take(cx, net, socket) => {}
                    Ok(None) if self.peer_finished => self.hang_up(cx, net, socket),
                    Ok(None) => return,
                    Err(error) => {
                        counters.malformed += 1;
                        self.state =
                            State::Answering(Response::error(config, error.status(), After::Close, None));
                    }
                },
                State::Thinking(_) => return,
                State::Answering(response) => {
                    if response.pump_apart(cx, net, socket) {
                        if let State::Answering(response) =
                            std::mem::replace(&mut self.state, State::Lingering)
                        {
                            // When the head has left, which it has not before this call ends.
                            self.deadline = cx.now + Duration::from_nanos(1);
                            self.state = State::Thinking(response);
                        }
                        return;
                    }
                    self.deadline = cx.now + config.stall_timeout;
                    if !response.pump(cx, net, socket) {
                        return;
                    }
                    counters.sent_bytes = counters.sent_bytes.saturating_add(response.size);
                    counters.errors += u64::from(response.status >= 400);
                    self.served += 1;
                    self.deadline = cx.now + config.idle_timeout;
                    if response.close {
                        self.hang_up(cx, net, socket);
                    } else {
                        self.state = State::Reading;
                    }
                }
                State::Lingering => {
                    while net.read(cx, socket, usize::MAX).is_some() {}
                    return;
                }
            }
        }
    }

    /// The peer sends no more.
    pub(super) fn peer_finished(&mut self) {
        self.peer_finished = true;
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
        if self.is_under_way(cx, net, socket, config) {
            return Then::Wait;
        }
        match std::mem::replace(&mut self.state, State::Lingering) {
            State::Thinking(response) => self.state = State::Answering(response),
            State::Reading if self.reader.is_between_messages() => self.hang_up(cx, net, socket),
            State::Reading | State::Discarding(_) => {
                counters.timeouts += 1;
                self.state = State::Answering(Response::error(config, 408, After::Close, None));
            }
            State::Answering(_) => {
                counters.timeouts += 1;
                net.reset(cx, socket);
                return Then::Forget;
            }
            State::Lingering => {
                net.reset(cx, socket);
                return Then::Forget;
            }
        }
        self.serve(cx, net, socket, config, counters);
        Then::Wait
    }

    /// Is the last response still on its way through the transport, and getting on? Then the peer is neither idle nor
    /// done: on a slow link the send buffer holds what takes minutes.
    fn is_under_way(&mut self, cx: &Cx, net: &dyn Sockets, socket: SocketId, config: &Config) -> bool {
        let patience = match self.state {
            State::Reading if self.reader.is_between_messages() => config.idle_timeout,
            State::Lingering => LINGER.max(config.idle_timeout),
            _ => return false,
        };
        let before = std::mem::replace(&mut self.under_way, net.unacknowledged(socket));
        let gets_on = self.under_way > 0 && self.under_way != before;
        if gets_on {
            self.deadline = cx.now + patience;
        }
        gets_on
    }

    /// A head has arrived: decides the answer. It is given when the body has been read away.
    fn accept(&mut self, config: &Config, head: &RequestHead, framing: Framing) -> State {
        let last = config.max_requests.is_some_and(|max| self.served + 1 >= max);
        // A 1.0 server keeps a connection only where the client asks for it by name.
        let asked = config.http != Http::Http10 || head.fields.list_has("connection", "keep-alive");
        let keep = asked && !last && persists(head.version, &head.fields, Receiver::Server);
        let after = match (framing.must_close, self.lasts, keep) {
            (false, true, _) => After::Lasts,
            (false, false, true) => After::Keep,
            _ => After::Close,
        };
        let has_body = framing.length != BodyLength::None;
        if has_body && head.fields.list_has("expect", "100-continue") {
            //= RFC 9110 (10.1.1): instead of asking for a body it will not use, a server answers and closes.
            return State::Answering(Response::to(config, head, After::Close));
        }
        State::Discarding(Response::to(config, head, after))
    }

    fn think(&mut self, cx: &Cx, config: &Config) {
        if let State::Discarding(response) = std::mem::replace(&mut self.state, State::Lingering) {
            self.state = if config.delay.is_zero() {
                State::Answering(response)
            } else {
                self.deadline = cx.now + config.delay;
                State::Thinking(response)
            };
        }
    }

    /// Feeds the reader with one piece from the socket; `false` if there is none.
    fn take(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> bool {
        match net.read(cx, socket, usize::MAX) {
            Some(body) => {
                self.reader.feed(body);
                true
            }
            None => false,
        }
    }

    fn hang_up(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        if !self.lasts {
            net.finish(cx, socket);
            self.deadline = cx.now + LINGER;
        }
        self.state = State::Lingering;
    }
}
