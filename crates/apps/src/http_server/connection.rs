//! One connection of the server, or one stream of an association: which part of which exchange it is in.

use airloom_base::{Body, Duration, Instant, SocketEvent};
use airloom_content::http::message::{RequestHead, Version};
use airloom_content::http::v1::{BodyLength, Framing, Item, Limits, Receiver, RequestReader, persists};

use bytes::Bytes;

use super::response::{After, Response};
use super::served::{Call, LINGER, Served, Then};
use super::{Config, Http};
use crate::net::UnderWay;

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
    under_way: UnderWay,
    /// When something has to be done if nothing happens.
    pub(super) deadline: Instant,
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
            under_way: UnderWay::default(),
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

    /// Reads requests and writes responses as far as possible.
    fn serve(&mut self, call: &mut Call) {
        loop {
            match &mut self.state {
                // A head comes while one is read, all else while the body is dropped.
                State::Reading | State::Discarding(_) => match self.reader.poll() {
                    Ok(Some(Item::Head(head, framing))) => {
                        call.counters.requests += 1;
                        self.state = self.accept(call.config, &head, framing);
                    }
                    Ok(Some(Item::End(_))) => self.respond(call),
                    Ok(Some(_)) => self.deadline = call.now() + call.config.idle_timeout,
                    Ok(None) if self.take(call) => {}
                    Ok(None) if self.peer_finished => self.hang_up(call),
                    Ok(None) => return,
                    Err(error) => {
                        call.counters.malformed += 1;
                        self.state = State::Answering(Response::error(call.config, error.status()));
                    }
                },
                State::Thinking(_) => return,
                State::Answering(response) => {
                    if response.pump_apart(call.cx, call.net, call.socket) {
                        if let State::Answering(response) =
                            std::mem::replace(&mut self.state, State::Lingering)
                        {
                            // When the head has left, which it has not before this call ends.
                            self.deadline = call.now() + Duration::from_nanos(1);
                            self.state = State::Thinking(response);
                        }
                        return;
                    }
                    self.deadline = call.now() + call.config.stall_timeout;
                    let (is_written, octets) = response.pump(call.cx, call.net, call.socket);
                    call.counters.sent_bytes += octets;
                    if !is_written {
                        self.under_way.note(call.net.unacknowledged(call.socket));
                        return;
                    }
                    call.counters.errors += u64::from(response.status >= 400);
                    self.served += 1;
                    self.deadline = call.now() + call.config.idle_timeout;
                    if response.close {
                        self.hang_up(call);
                    } else {
                        self.state = State::Reading;
                    }
                }
                State::Lingering => return call.drain(),
            }
        }
    }

    /// Is a response still on its way through the transport, and getting on? Then the peer is neither idle nor done, nor stalled.
    fn is_under_way(&mut self, call: &Call) -> bool {
        let patience = match self.state {
            State::Reading if self.reader.is_between_messages() => call.config.idle_timeout,
            // A transport tells of room when there is much of it, which on a slow link takes longer than that.
            State::Answering(_) => call.config.stall_timeout,
            State::Lingering => LINGER.max(call.config.idle_timeout),
            _ => return false,
        };
        let gets_on = self.under_way.gets_on(call.net.unacknowledged(call.socket));
        if gets_on {
            self.deadline = call.now() + patience;
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
        //= RFC 9110 (10.1.1): in a request of HTTP/1.0 it means nothing.
        let waits = head.version >= Version::Http11 && head.fields.list_has("expect", "100-continue");
        if has_body && waits {
            //= RFC 9110 (10.1.1): instead of asking for a body it will not use, a server answers and closes.
            return State::Answering(Response::to(config, head, After::Close));
        }
        State::Discarding(Response::to(config, head, after))
    }

    fn respond(&mut self, call: &Call) {
        if let State::Discarding(response) = std::mem::replace(&mut self.state, State::Lingering) {
            self.state = if call.config.delay.is_zero() {
                State::Answering(response)
            } else {
                self.deadline = call.now() + call.config.delay;
                State::Thinking(response)
            };
        }
    }

    /// Feeds the reader with one piece from the socket; `false` if there is none.
    fn take(&mut self, call: &mut Call) -> bool {
        let body = call.net.read(call.cx, call.socket, usize::MAX);
        body.map(|body| self.reader.feed(body)).is_some()
    }

    fn hang_up(&mut self, call: &mut Call) {
        if !self.lasts {
            call.finish();
            self.deadline = call.now() + LINGER;
        }
        self.state = State::Lingering;
    }
}

impl Served for Connection {
    fn handle(&mut self, call: &mut Call, event: SocketEvent) -> Then {
        self.peer_finished |= event == SocketEvent::Finished;
        self.serve(call);
        Then::Wait
    }

    fn timeout(&mut self, call: &mut Call) -> Then {
        if self.is_under_way(call) {
            return Then::Wait;
        }
        match std::mem::replace(&mut self.state, State::Lingering) {
            State::Thinking(response) => self.state = State::Answering(response),
            State::Reading if self.reader.is_between_messages() => self.hang_up(call),
            State::Reading | State::Discarding(_) => {
                call.counters.timeouts += 1;
                self.state = State::Answering(Response::error(call.config, 408));
            }
            State::Answering(_) => {
                call.counters.timeouts += 1;
                return call.reset();
            }
            State::Lingering => return call.reset(),
        }
        self.serve(call);
        Then::Wait
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }
}
