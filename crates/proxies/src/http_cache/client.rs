//! A client's connection, and what is done with the exchanges on it in their order.
//! A circle, of which `app.rs` says why.

use std::collections::VecDeque;
use std::net::SocketAddr;

use airloom_apps::net::Alarm;
use airloom_base::{Cx, Duration, Instant, SocketId, Sockets};
use airloom_content::http::message::{Method, RequestHead};
use airloom_content::http::v1::{Framing, Item, Limits, RequestReader};

use super::app::{HttpCache, Work};
use super::exchange::{Exchange, ExchangeId, Phase};
use super::tunnel::Tunnel;

/// How long what still comes is thrown away on a connection that was idle and is ended (RFC 9112, 9.6).
const LINGER: Duration = Duration::from_secs(2);

/// What is expected of a client next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// The head of a request.
    Head,
    /// The body of the last request.
    Body,
    /// No more requests: what comes is thrown away, answers may still go out.
    Ignored,
    /// Our side is finished, and what comes is thrown away for so long. Behind an answer, which may be on its way over a slow
    /// link long after it was written, as long as the client may take nothing of one.
    HungUp { linger: Duration },
}

/// See the module.
pub(super) struct Client {
    pub(super) from: SocketAddr,
    /// Where it connected to.
    pub(super) at: SocketAddr,
    pub(super) reader: RequestReader,
    /// The head of a request that waits for those before it to be over.
    held: Option<(RequestHead, Framing)>,
    /// There was no room when it was read last.
    is_full: bool,
    pub(super) exchanges: VecDeque<Exchange>,
    pub(super) next: u64,
    pub(super) input: Input,
    head_since: Option<Instant>,
    /// The client sends no more, and everything was read.
    pub(super) has_ended: bool,
    pub(super) moved: Instant,
    /// Octets of answers that were not acknowledged when that had passed last.
    under_way: u64,
    pub(super) alarm: Alarm,
    pub(super) tunnel: Option<Box<Tunnel>>,
}

impl Client {
    pub(super) fn new(from: SocketAddr, at: SocketAddr, now: Instant) -> Client {
        Client {
            from,
            at,
            reader: RequestReader::new(Limits::default()),
            held: None,
            is_full: false,
            exchanges: VecDeque::new(),
            next: 0,
            input: Input::Head,
            head_since: None,
            has_ended: false,
            moved: now,
            under_way: 0,
            alarm: Alarm::default(),
            tunnel: None,
        }
    }

    /// The exchange with this number, if it is not over.
    pub(super) fn exchange(&mut self, number: u64) -> Option<&mut Exchange> {
        let first = self.exchanges.front()?.number;
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        self.exchanges.get_mut(place)
    }

    /// Is there room for what comes next?
    fn has_room(&self, pipeline: usize, buffer: usize) -> bool {
        if self.input == Input::Body {
            // Behind the end no more than `buffer` waits in the reader, and whether that is all of the body is to be known.
            let has_room = |x: &Exchange| x.upload.octets < buffer || x.phase == Phase::Done;
            self.has_ended || self.exchanges.back().is_none_or(has_room)
        } else {
            //= RFC 9112 (9.3.2): requests are worked on side by side only where all of them have safe methods.
            let may_begin = match self.held {
                Some(_) => self.exchanges.iter().all(Exchange::is_over),
                None => self.exchanges.back().is_none_or(|x| x.is_over() || x.head.method.is_safe()),
            };
            may_begin && self.exchanges.len() < pipeline
        }
    }

    /// Does a request with this method wait for those before it? A tunnel does not: it is refused behind others.
    fn holds(&self, method: &Method) -> bool {
        let may_wait = !method.is_safe() && *method != Method::Connect;
        may_wait && !self.exchanges.iter().all(Exchange::is_over)
    }

    /// The first exchange, if it waits for a connection to its server.
    fn waiting(&self) -> Option<&Exchange> {
        let waits = |x: &&Exchange| x.phase == Phase::Asked && x.server.is_none() && x.out.is_empty();
        self.exchanges.front().filter(|_| self.tunnel.is_none()).filter(waits)
    }

    fn is_idle(&self) -> bool {
        self.exchanges.is_empty() && self.held.is_none() && self.reader.is_between_messages()
    }

    /// Is nothing under way on it? An answer may be, of which we know no more than that it was written.
    pub(super) fn is_quiet(&self) -> bool {
        let may_go_out = matches!(self.input, Input::HungUp { linger } if linger > LINGER);
        self.is_idle() && self.tunnel.is_none() && !may_go_out
    }

    fn has_hung_up(&self) -> bool {
        matches!(self.input, Input::HungUp { .. })
    }

    /// Finishes our side.
    fn hang_up(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, linger: Duration) {
        self.input = Input::HungUp { linger };
        self.held = None;
        net.finish(cx, socket);
    }

    /// Finishes our side if there is nothing to answer; says whether it did.
    fn hang_up_if_idle(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> bool {
        let is_idle = self.is_idle() && self.tunnel.is_none() && !self.has_hung_up();
        if is_idle {
            self.moved = cx.now;
            self.hang_up(cx, net, socket, LINGER);
        }
        is_idle
    }

    /// An answer to something that was no request, behind those to what came before it. It is the last one.
    fn refuse(&mut self, now: Instant, status: u16) {
        self.input = Input::Ignored;
        let mut exchange = Exchange::of_no_request(self.next, now);
        self.next += 1;
        exchange.upload.is_complete = true;
        super::answers::own(&mut exchange, status);
        self.exchanges.push_back(exchange);
    }
}

/// What a client's reader gave.
enum Step {
    Head(RequestHead, Framing),
    /// The head of one that waits.
    Held,
    Body(ExchangeId),
    End(ExchangeId),
    Wrong(u16),
    Nothing,
}

impl HttpCache {
    /// Reads what there is and there is room for.
    pub(super) fn read_client(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let (pipeline, buffer) = (self.config.client_pipeline as usize, self.buffer);
        loop {
            let Some(client) = self.clients.get_mut(socket) else { return };
            client.is_full = false;
            if client.tunnel.is_some() {
                return self.pump_tunnel(cx, net, socket);
            }
            if matches!(client.input, Input::Ignored | Input::HungUp { .. }) {
                airloom_apps::net::drain(cx, net, socket);
                break;
            }
            client.is_full = !client.has_room(pipeline, buffer);
            if client.is_full {
                break;
            }
            match step(client, socket) {
                Step::Head(head, framing) => self.request_arrived(cx, net, socket, head, framing),
                Step::Held => {}
                Step::Body((_, number)) => {
                    let most = self.config.max_upload.map_or(u64::MAX, |most| most.0);
                    if client.exchange(number).is_some_and(|x| x.upload.taken > most) {
                        self.fail(cx, net, (socket, number), 413);
                    }
                    self.upload(cx, net, (socket, number));
                }
                Step::End(id) => self.upload(cx, net, id),
                Step::Wrong(status) => {
                    if client.input == Input::Body {
                        client.input = Input::Ignored;
                        let number = client.next - 1;
                        self.fail(cx, net, (socket, number), status);
                    } else {
                        self.counters.errors += 1;
                        client.refuse(cx.now, status);
                    }
                }
                Step::Nothing => {
                    let Some(body) = net.read(cx, socket, buffer) else { break };
                    client.moved = cx.now;
                    client.reader.feed(body);
                    if client.input == Input::Head && client.head_since.is_none() {
                        client.head_since = Some(cx.now);
                    }
                }
            }
        }
        if let Some(client) = self.clients.get_mut(socket).filter(|c| c.has_ended && c.input == Input::Body)
            && client.exchanges.back().is_some_and(|x| !x.upload.is_complete)
        {
            // A body that broke off: nobody must take the part for the whole.
            net.reset(cx, socket);
            return self.forget_client(cx, net, socket);
        }
        self.pump_client(cx, net, socket);
    }

    /// Writes what the client takes.
    pub(super) fn pump_client(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(client) = self.clients.get_mut(socket) else { return };
        while let Some(exchange) = client.exchanges.front_mut() {
            let before = exchange.held;
            while let Some(piece) = exchange.out.front_mut() {
                let taken = net.write(cx, socket, piece.clone()).unwrap_or(0).min(piece.len());
                exchange.held -= taken;
                if taken < piece.len() {
                    drop(piece.split_to(taken));
                    break;
                }
                exchange.out.pop_front();
            }
            // What is held may be a head or lines around chunks: then it counts once they have gone.
            let passed = exchange.octets.saturating_sub(exchange.held as u64).max(exchange.passed);
            self.counters.client_octets += passed - std::mem::replace(&mut exchange.passed, passed);
            if exchange.held < before {
                client.moved = cx.now;
                if let Some(server) = exchange.server.filter(|_| before >= self.buffer) {
                    self.work.push_back(Work::Server(server));
                }
            }
            if !exchange.out.is_empty() || matches!(exchange.phase, Phase::Asked | Phase::Answering) {
                break;
            }
            let is_broken = exchange.phase == Phase::Broken;
            let (closes, until_close) = (exchange.closes, exchange.until_close);
            if self.wants_log {
                self.log.push_back(super::answers::line(cx.now, client.from, exchange));
            }
            client.exchanges.pop_front();
            if is_broken && until_close {
                // An end would look like the answer's.
                net.reset(cx, socket);
                return self.forget_client(cx, net, socket);
            }
            if closes || is_broken || (self.is_stopping && client.exchanges.is_empty()) {
                let rest = std::mem::take(&mut client.exchanges);
                client.hang_up(cx, net, socket, LINGER.max(self.config.stall_timeout));
                self.abandon(cx, net, socket, rest);
                self.work.push_back(Work::Client(socket));
                return self.watch_client(socket);
            }
        }
        if client.is_full && client.has_room(self.config.client_pipeline as usize, self.buffer) {
            // What was not read for want of room is read now.
            self.work.push_back(Work::Client(socket));
        } else if client.has_ended && client.exchanges.is_empty() && !client.has_hung_up() {
            client.hang_up(cx, net, socket, LINGER.max(self.config.stall_timeout));
        }
        self.watch_client(socket);
    }

    /// Sets the client's deadline by what is awaited.
    pub(super) fn watch_client(&mut self, socket: SocketId) {
        let Some(client) = self.clients.get_mut(socket) else { return };
        let at = self.config.client_deadline(client);
        self.deadlines.set(socket, &mut client.alarm, at);
    }

    /// The client's deadline has come.
    pub(super) fn client_is_late(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(client) = self.clients.get_mut(socket) else { return };
        let at = self.config.client_deadline(client);
        if at > cx.now {
            return self.deadlines.set(socket, &mut client.alarm, at);
        }
        if client.hang_up_if_idle(cx, net, socket) {
            return self.watch_client(socket);
        }
        if let Some(number) = client.waiting().map(|first| first.number) {
            let id = (socket, number);
            let moved = self.moved_before(id).filter(|moved| *moved + self.config.server_timeout > cx.now);
            let Some(moved) = moved else { return self.fail_or_stale(cx, net, id, 504) };
            // Others get on: its turn comes.
            if let Some(exchange) = self.exchange(id) {
                exchange.sent = moved;
            }
            return self.watch_client(socket);
        }
        if client.has_hung_up() {
            let before = std::mem::replace(&mut client.under_way, net.unacknowledged(socket));
            if client.under_way > 0 && client.under_way != before {
                client.moved = cx.now;
                return self.watch_client(socket);
            }
        }
        let is_asking = matches!(client.input, Input::Head | Input::Body) && client.tunnel.is_none();
        if client.exchanges.is_empty() && is_asking {
            //= RFC 9110 (15.5.9): half a request, and no more of it in time.
            self.counters.errors += 1;
            client.refuse(cx.now, 408);
            client.moved = cx.now;
            return self.pump_client(cx, net, socket);
        }
        net.reset(cx, socket);
        self.forget_client(cx, net, socket);
    }

    /// The client sends no more.
    pub(super) fn client_ended(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(client) = self.clients.get_mut(socket) else { return };
        client.has_ended = true;
        if let Some(tunnel) = &mut client.tunnel {
            tunnel.up.end();
            return self.pump_tunnel(cx, net, socket);
        }
        self.read_client(cx, net, socket);
    }

    /// Tells every client without a request that there will be no more answers.
    pub(super) fn end_idle_clients(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.is_stopping = true;
        for socket in self.clients.sockets() {
            let Some(client) = self.clients.get_mut(socket) else { continue };
            if client.hang_up_if_idle(cx, net, socket) {
                self.watch_client(socket);
            }
        }
    }
}

/// Reads one thing.
fn step(client: &mut Client, socket: SocketId) -> Step {
    if let Some((head, framing)) = client.held.take() {
        client.input = Input::Body;
        return Step::Head(head, framing);
    }
    match client.reader.poll() {
        Ok(Some(Item::Head(head, framing))) => {
            client.head_since = None;
            if client.holds(&head.method) {
                client.held = Some((head, framing));
                return Step::Held;
            }
            client.input = Input::Body;
            Step::Head(head, framing)
        }
        Ok(Some(Item::Data(body))) => {
            let id = (socket, client.next - 1);
            if let Some(exchange) = client.exchange(id.1) {
                exchange.upload.taken += body.len() as u64;
                if exchange.phase != Phase::Done {
                    exchange.upload.octets += body.len();
                    exchange.upload.held.push_back(body);
                }
            }
            Step::Body(id)
        }
        Ok(Some(Item::End(_))) => {
            client.input = Input::Head;
            let id = (socket, client.next - 1);
            if let Some(exchange) = client.exchange(id.1) {
                exchange.upload.is_complete = true;
                if exchange.closes {
                    // Nothing that follows will be answered.
                    client.input = Input::Ignored;
                }
            }
            Step::End(id)
        }
        // Requests have none.
        Ok(Some(Item::Interim(_))) | Ok(None) => Step::Nothing,
        Err(error) => Step::Wrong(error.status()),
    }
}

impl super::config::Config {
    fn client_deadline(&self, client: &Client) -> Instant {
        if let Some(tunnel) = &client.tunnel {
            return client.moved.max(tunnel.moved) + self.tunnel_timeout;
        }
        if let Input::HungUp { linger } = client.input {
            return client.moved + linger;
        }
        match client.exchanges.front() {
            None if client.is_idle() => client.moved + self.idle_timeout,
            None => client.head_since.unwrap_or(client.moved) + self.head_timeout,
            Some(first) if !first.out.is_empty() => client.moved + self.stall_timeout,
            // Others may keep all connections to the server busy for as long as they like.
            Some(first) if client.waiting().is_some() => first.sent + self.server_timeout,
            // The last request has a body that the client owes us.
            Some(_)
                if client.input == Input::Body
                    && client.exchanges.back().is_some_and(|x| x.upload.held.is_empty()) =>
            {
                client.moved + self.stall_timeout
            }
            // It is the server's turn.
            Some(_) => Instant::FAR_FUTURE,
        }
    }
}
