//! A connection to a server: requests out, their answers in, in order.
//! A circle, of which `app.rs` says why.

use std::collections::VecDeque;

use airloom_apps::net::Alarm;
use airloom_base::{Body, CloseReason, Cx, Instant, SocketEvent, SocketId, Sockets};
use airloom_content::http::v1::{Item, Limits, ResponseReader};

use super::app::{HttpCache, Work};
use super::exchange::{ExchangeId, Phase};
use super::origins::Key;
use super::requests::next_upload;

/// See the module.
pub(super) struct Server {
    pub(super) key: Key,
    begun: Instant,
    is_open: bool,
    pub(super) in_flight: VecDeque<ExchangeId>,
    pub(super) reader: ResponseReader,
    /// Heads and pieces of bodies that are not written yet.
    out: VecDeque<Body>,
    /// Whose body is being sent.
    uploading: Option<ExchangeId>,
    /// Answers that were complete.
    answers: u64,
    /// Something of the answer to the first in flight has come.
    pub(super) is_answering: bool,
    /// It carries further requests.
    pub(super) persists: bool,
    /// The server sends no more, and everything was read.
    has_ended: bool,
    pub(super) moved: Instant,
    pub(super) alarm: Alarm,
}

impl Server {
    pub(super) fn new(key: Key, now: Instant) -> Server {
        Server {
            key,
            begun: now,
            is_open: false,
            in_flight: VecDeque::new(),
            reader: ResponseReader::new(Limits::default()),
            out: VecDeque::new(),
            uploading: None,
            answers: 0,
            is_answering: false,
            persists: true,
            has_ended: false,
            moved: now,
            alarm: Alarm::default(),
        }
    }

    /// Is it free for a request that was sent again then? Others that were kept may have closed like the one it was on.
    pub(super) fn is_free(&self, retried: Option<Instant>) -> bool {
        self.load() == Some(0) && retried.is_none_or(|at| self.begun >= at)
    }

    /// How many requests are on it, if it takes another one: it has shown that it stays, and no body is on its way.
    pub(super) fn load(&self) -> Option<usize> {
        let stays = self.persists && !self.has_ended;
        let takes = self.is_open && stays && self.answers > 0 && self.uploading.is_none();
        takes.then_some(self.in_flight.len())
    }
}

/// What a server's reader led to.
enum Step {
    Going,
    /// An answer is complete; does the connection carry another one?
    Complete(ExchangeId, bool),
    Wrong,
    Nothing,
}

impl HttpCache {
    /// Sends a request on a connection.
    pub(super) fn assign(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: ExchangeId, socket: SocketId) {
        let closes = !self.config.server_keep_alive;
        let Some(exchange) = self.clients.get_mut(id.0).and_then(|c| c.exchange(id.1)) else { return };
        exchange.server = Some(socket);
        exchange.sent = cx.now;
        let method = exchange.head.method.clone();
        let may_repeat = exchange.may_repeat();
        let head = super::requests::forwarded(exchange, closes, self.config.name());
        let Some(server) = self.servers.get_mut(socket) else { return };
        server.reader.expect(method);
        server.out.push_back(Body::Real(head.into()));
        server.in_flight.push_back(id);
        server.moved = cx.now;
        server.persists &= !closes;
        if !may_repeat {
            // Nothing goes behind it until its answer is there.
            server.uploading = Some(id);
        }
        self.watch_server(socket);
        self.write_server(cx, net, socket);
    }

    /// A connection is open.
    pub(super) fn server_opened(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        server.is_open = true;
        server.moved = cx.now;
        self.counters.server_connections += 1;
        self.write_server(cx, net, socket);
    }

    /// Writes what a server takes.
    pub(super) fn write_server(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let HttpCache { servers, clients, .. } = self;
        let Some(server) = servers.get_mut(socket).filter(|s| s.is_open) else { return };
        let mut freed = None;
        loop {
            if server.out.is_empty() {
                let Some(id) = server.uploading else { break };
                let client = clients.get_mut(id.0);
                let Some(piece) = client.and_then(|c| c.exchange(id.1)).and_then(next_upload) else {
                    break;
                };
                freed = Some(id.0);
                server.out.push_back(piece);
            }
            let Some(first) = server.out.front_mut() else { break };
            let taken = net.write(cx, socket, first.clone()).unwrap_or(0).min(first.len());
            server.moved = if taken > 0 { cx.now } else { server.moved };
            if taken < first.len() {
                drop(first.split_to(taken));
                break;
            }
            server.out.pop_front();
        }
        if let Some(client) = freed {
            self.work.push_back(Work::Client(client));
        }
        self.watch_server(socket);
    }

    /// Reads what has come and there is room for.
    pub(super) fn read_server(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        loop {
            let Some(server) = self.servers.get_mut(socket) else { return };
            let (front, has_ended) = (server.in_flight.front().copied(), server.has_ended);
            //= RFC 9112 (6.3, 8): what came whole before the end is complete, however slowly its client takes it.
            // No more than `buffer` waits in the reader then.
            if let Some(id) = front
                && !has_ended
                && self
                    .clients
                    .get_mut(id.0)
                    .and_then(|c| c.exchange(id.1))
                    .is_some_and(|x| x.held >= self.buffer)
            {
                break;
            }
            match self.step_server(cx, net, socket, front) {
                Step::Going => {}
                Step::Complete(id, stays) => {
                    self.pump_client(cx, net, id.0);
                    if !stays {
                        self.finish_server(cx, net, socket);
                        return self.forget_server(cx, net, socket, 502);
                    }
                    let Some(server) = self.servers.get_mut(socket) else { return };
                    let key = server.key.clone();
                    self.dispatch(cx, net, &key);
                }
                Step::Wrong => {
                    net.reset(cx, socket);
                    return self.forget_server(cx, net, socket, 502);
                }
                Step::Nothing => {
                    let Some(body) = net.read(cx, socket, self.buffer) else { break };
                    let Some(server) = self.servers.get_mut(socket) else { return };
                    server.moved = cx.now;
                    server.reader.feed(body);
                }
            }
        }
        if let Some(server) = self.servers.get_mut(socket)
            && let Some(id) = server.in_flight.front().copied()
        {
            self.pump_client(cx, net, id.0);
        }
        self.watch_server(socket);
    }

    fn step_server(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        front: Option<ExchangeId>,
    ) -> Step {
        let Some(server) = self.servers.get_mut(socket) else { return Step::Nothing };
        let item = match server.reader.poll() {
            Ok(Some(item)) => item,
            Ok(None) => return Step::Nothing,
            // Also what answers no request.
            Err(_) => return Step::Wrong,
        };
        let Some(id) = front else { return Step::Wrong };
        server.is_answering = true;
        let may_come = match item {
            Item::Interim(head) => self.interim(id, &head),
            Item::Head(head, framing) => self.response(cx, net, socket, id, head, framing),
            Item::Data(body) => {
                self.counters.server_octets += body.len() as u64;
                self.response_body(id, body);
                true
            }
            Item::End(_) => {
                server.in_flight.pop_front();
                server.is_answering = false;
                server.answers += 1;
                // What was not sent of its request is not sent any more.
                let was_sent = server.out.is_empty() || server.uploading != Some(id);
                if server.uploading == Some(id) {
                    server.uploading = None;
                }
                let persists = server.persists;
                let was_whole = self.response_end(id);
                return Step::Complete(id, persists && was_sent && was_whole);
            }
        };
        if may_come { Step::Going } else { Step::Wrong }
    }

    /// The server sends no more.
    pub(super) fn server_ended(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        server.has_ended = true;
        self.read_server(cx, net, socket);
        let Some(server) = self.servers.get_mut(socket) else { return };
        let front = server.in_flight.front().copied();
        if let Ok(Some(_)) = server.reader.finish()
            && let Some(id) = front
        {
            server.in_flight.pop_front();
            self.response_end(id);
            self.pump_client(cx, net, id.0);
        }
        net.finish(cx, socket);
        self.forget_server(cx, net, socket, 502);
    }

    /// A connection to a server is over.
    pub(super) fn server_closed(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        why: CloseReason,
    ) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        if server.is_open {
            return self.forget_server(cx, net, socket, 502);
        }
        self.counters.server_failed += 1;
        let status = if why == CloseReason::TimedOut { 504 } else { 502 };
        let (key, names) = (server.key.clone(), std::mem::take(&mut server.in_flight));
        self.drop_server(socket);
        for id in names {
            self.not_opened(cx, net, &key, id, status);
        }
        self.dispatch(cx, net, &key);
    }

    /// A connection is of no use any more, for whatever reason: what was asked on it is asked again or has failed.
    pub(super) fn forget_server(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        status: u16,
    ) {
        let Some(server) = self.drop_server(socket) else { return };
        // From the last to the first: they are to wait in their order, in front of the others.
        for (place, id) in server.in_flight.iter().enumerate().rev() {
            let Some(exchange) = self.exchange(*id).filter(|x| x.server == Some(socket)) else { continue };
            exchange.server = None;
            let has_begun = place == 0 && server.is_answering;
            //= RFC 9112 (9.3.1): what changes nothing is sent again, once, if the connection had carried an answer before.
            let again = exchange.phase == Phase::Asked
                && !has_begun
                && exchange.retried.is_none()
                && exchange.may_repeat()
                && server.answers > 0;
            if again {
                exchange.retried = Some(cx.now);
                self.counters.retries += 1;
                self.requeue(&server.key, *id);
            } else if exchange.phase == Phase::Asked {
                self.fail_or_stale(cx, net, *id, status);
            } else {
                self.fail(cx, net, *id, status);
            }
            self.work.push_back(Work::Client(id.0));
        }
        self.dispatch(cx, net, &server.key);
    }

    fn drop_server(&mut self, socket: SocketId) -> Option<Server> {
        let server = self.servers.remove(socket)?;
        self.deadlines.forget(socket, &server.alarm);
        if let Some(origin) = self.origins.get_mut(&server.key) {
            origin.servers.retain(|other| *other != socket);
        }
        Some(server)
    }

    /// Finishes our side of a connection that carries no more requests. What still comes is thrown away, until the server has ended
    /// as well, or takes too long.
    fn finish_server(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        let mut alarm = std::mem::take(&mut server.alarm);
        net.finish(cx, socket);
        airloom_apps::net::drain(cx, net, socket);
        self.deadlines.set(socket, &mut alarm, cx.now + self.config.server_timeout);
        self.leaving.insert(socket, alarm);
    }

    /// Something happens on such a connection.
    pub(super) fn leaving_event(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        event: SocketEvent,
    ) {
        if !matches!(event, SocketEvent::Closed(_)) {
            airloom_apps::net::drain(cx, net, socket);
        } else if let Some(alarm) = self.leaving.remove(socket) {
            self.deadlines.forget(socket, &alarm);
        }
    }

    /// Nobody waits for what comes on it: it is not read to its end.
    pub(super) fn leave_server(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        net.reset(cx, socket);
        self.forget_server(cx, net, socket, 502);
    }

    fn watch_server(&mut self, socket: SocketId) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        let at = self.config.server_deadline(server);
        self.deadlines.set(socket, &mut server.alarm, at);
    }

    /// The server's deadline has come.
    pub(super) fn server_is_late(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        let mut at = self.config.server_deadline(server);
        // Where the client does not take what has come, the server is not to blame.
        if let Some(id) = server.in_flight.front().copied()
            && self.clients.get_mut(id.0).and_then(|c| c.exchange(id.1)).is_some_and(|x| x.held > 0)
        {
            at = at.max(cx.now + self.config.server_timeout);
        }
        if at > cx.now {
            if let Some(server) = self.servers.get_mut(socket) {
                self.deadlines.set(socket, &mut server.alarm, at);
            }
            return;
        }
        if self.servers.get_mut(socket).is_some_and(|server| server.in_flight.is_empty()) {
            //= RFC 9112 (9.5): who closes for want of requests does so gracefully.
            self.finish_server(cx, net, socket);
        } else {
            net.reset(cx, socket);
        }
        self.forget_server(cx, net, socket, 504);
    }
}

impl super::config::Config {
    fn server_deadline(&self, server: &Server) -> Instant {
        let patience =
            if server.in_flight.is_empty() { self.server_idle_timeout } else { self.server_timeout };
        server.moved + patience
    }
}
