//! The side of the clients: sessions come and go, requests come in.

use std::net::SocketAddr;

use airloom_base::Instant;
use airloom_transports::shares::Room;
use airloom_transports::wsp::server::{Event, SessionId};
use airloom_transports::wsp::status::Reason;
use airloom_transports::wsp::wire::{Method, Pdu};
use airloom_transports::wsp::{connectionless, headers::Version};
use airloom_transports::wtp::{Role, Transaction};
use bytes::Bytes;

use super::accept::Weights;
use super::config::Config;
use super::content::{Treatment, WMLC};
use super::decks::{self, Owner};
use super::exchange::{Asker, Exchange, Stage};
use super::gateway::{Due, Gateway};
use super::push::PushOutcome;
use super::reply::Reply;
use super::request::{self, Manner};
use super::session::Session;

/// A request as WSP has it.
pub(super) struct Invoked {
    pub(super) method: Method,
    pub(super) uri: Bytes,
    pub(super) headers: Bytes,
    pub(super) data: Bytes,
}

impl Gateway {
    /// Does what the sessions tell.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Connect { session, peer, headers } => self.connect(now, session, peer, &headers),
                Event::Request { session, request, method, uri, headers, data } => {
                    let invoked = Invoked { method, uri, headers, data };
                    self.begin(now, Asker::Session(request), Some(session), invoked);
                }
                Event::Replied(request) => self.replied(request),
                Event::RequestAborted(request, _) => self.request_aborted(request),
                Event::Disconnected(session, _) => self.forget_session(now, session),
                Event::Resumed(session, peer) => self.moved(session, peer),
                Event::Opened(session) => self.opened(now, session),
                Event::PushConfirmed(push) => self.push_over(now, push, PushOutcome::Confirmed),
                Event::PushAborted(push, why) => self.push_over(now, push, PushOutcome::Aborted(why)),
                Event::Suspended(_) => {}
            }
        }
    }

    fn connect(&mut self, now: Instant, id: SessionId, peer: SocketAddr, octets: &[u8]) {
        let Some(session) = Session::new(now, peer, octets) else {
            return self.server.refuse(now, id, Reason::ConnectError);
        };
        if !self.make_room_for_headers(now, id, peer, session.held()) {
            return self.server.refuse(now, id, Reason::Congestion);
        }
        self.hold_headers(peer, session.held());
        self.counters.sessions += 1;
        self.agenda.insert((now + self.config.idle, Due::Idle(id)));
        let greeting = session.greeting();
        self.sessions.insert(id, session);
        self.server.accept(now, id, greeting);
    }

    /// Ends sessions of others, of the same address first, until a new one's headers have room. False if they have none even so.
    fn make_room_for_headers(
        &mut self,
        now: Instant,
        id: SessionId,
        peer: SocketAddr,
        octets: usize,
    ) -> bool {
        loop {
            let crowds_its_own = self.headers_are_full_for(peer, octets);
            if !crowds_its_own && !self.headers_are_full(octets) {
                return true;
            }
            let Some(other) = self.server.first_besides(id, crowds_its_own.then_some(peer.ip())) else {
                return false;
            };
            self.server.displace(now, other);
            self.forget_session(now, other);
        }
    }

    fn opened(&mut self, now: Instant, id: SessionId) {
        if let Some(peer) = self.sessions.get(&id).map(|session| session.peer) {
            self.retry_pushes(now, peer.ip());
        }
    }

    /// Is the client of a session known to be the one that opened it? One at another address may be anybody, and gets none of its
    /// secrets before it has shown that it is there.
    pub(super) fn is_trusted(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| !session.has_moved) || self.server.is_proven(id)
    }

    fn moved(&mut self, id: SessionId, peer: SocketAddr) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.peer.ip() != peer.ip() {
            session.has_moved = true;
            self.decks.forget(Owner::Session(id));
        }
        let (before, octets) = (std::mem::replace(&mut session.peer, peer), session.held());
        self.release_headers(before, octets);
        self.hold_headers(peer, octets);
    }

    pub(super) fn forget_session(&mut self, now: Instant, id: SessionId) {
        let Some(session) = self.sessions.remove(&id) else { return };
        self.release_headers(session.peer, session.held());
        self.agenda.remove(&(session.used + self.config.idle, Due::Idle(id)));
        self.decks.forget(Owner::Session(id));
        let of_peer = |tid| Transaction { role: Role::Responder, peer: session.peer, tid };
        let late: Vec<Transaction> =
            self.replying.range(of_peer(0)..=of_peer(u16::MAX)).map(|(request, _)| *request).collect();
        late.into_iter().for_each(|request| self.replied(request));
        for push in self.pushes.transactions_with(session.peer) {
            self.push_over(now, push, PushOutcome::Aborted(Reason::Disconnect));
        }
        self.retry_pushes(now, session.peer.ip());
        let its: Vec<_> =
            self.exchanges.iter().filter(|(_, e)| e.session == Some(id)).map(|(name, _)| *name).collect();
        its.into_iter().for_each(|name| self.abandon(name));
    }

    /// Something was asked in a session: it is not idle.
    fn touch(&mut self, now: Instant, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        self.agenda.remove(&(session.used + self.config.idle, Due::Idle(id)));
        session.used = now;
        self.agenda.insert((now + self.config.idle, Due::Idle(id)));
    }

    pub(super) fn idle_due(&mut self, now: Instant, id: SessionId) {
        self.server.disconnect(now, id);
        self.forget_session(now, id);
    }

    fn replied(&mut self, request: Transaction) {
        if let Some(octets) = self.replying.remove(&request) {
            self.release(request.peer, octets);
        }
    }

    fn request_aborted(&mut self, request: Transaction) {
        self.replied(request);
        if let Some(id) = self.askers.get(&Asker::Session(request)).copied() {
            self.abandon(id);
        }
    }

    /// A datagram without a session.
    pub(super) fn unit(&mut self, now: Instant, peer: SocketAddr, datagram: &Bytes) {
        let parsed = connectionless::parse(datagram).ok().filter(|_| self.config.connectionless);
        let (tid, invoked) = match parsed {
            Some((tid, Pdu::Get { method, uri, headers })) => {
                (tid, Invoked { method, uri, headers, data: Bytes::new() })
            }
            Some((tid, Pdu::Post { method, uri, headers, data })) => {
                (tid, Invoked { method, uri, headers, data })
            }
            _ => {
                self.counters.malformed += 1;
                return;
            }
        };
        let asker = Asker::Datagram { peer, tid };
        // A client that asks again before it has an answer will get that.
        if !self.askers.contains_key(&asker) {
            self.begin(now, asker, None, invoked);
        }
    }

    /// A request is complete.
    fn begin(&mut self, now: Instant, asker: Asker, session: Option<SessionId>, invoked: Invoked) {
        self.counters.requests += 1;
        if let Some(session) = session {
            self.touch(now, session);
        }
        let Invoked { method, uri, headers, data } = invoked;
        let is_trusted = session.is_some_and(|id| self.is_trusted(id));
        let known = session.and_then(|id| self.sessions.get(&id));
        let manner = Manner { name: self.config.name(), converts_html: self.config.convert_html };
        let of_session = known.map(|s| s.headers(is_trusted)).unwrap_or_default();
        let asked = request::map(method, &uri, &of_session, &headers, data, manner);
        let version = known.map_or_else(Version::default, |s| s.version);
        let (asked, status) = match asked {
            Ok(asked) => (Some(asked), 0),
            Err(status) => (None, status),
        };
        let mut exchange = Exchange {
            asker,
            session,
            method: method.name().unwrap_or(""),
            uri,
            asked: now,
            stage: Stage::Waiting,
            request: None,
            accept: Weights::default(),
            charsets: Weights::default(),
            afresh: false,
            is_private: false,
            version,
            datagram: self.datagram,
            fetching: false,
            redirects: 0,
            due: None,
            held: 0,
            fetched: None,
            origin_octets: 0,
            treatment: Treatment::None,
            why: None,
        };
        let mapped = asked.is_some();
        if let Some(asked) = asked {
            exchange.version = asked.version.unwrap_or(version);
            (exchange.accept, exchange.charsets, exchange.afresh) =
                (asked.accept, asked.charsets, asked.afresh);
            exchange.request = Some(asked.request);
        }
        let has_place = self.make_room(now, asker.peer());
        let id = self.name();
        self.enter(id, exchange);
        self.set_held(id, 0);
        let is_busy = !has_place || self.is_full_for(asker.peer());
        if status == 200 {
            return self.ready(now, id, Reply::bare(200));
        }
        if !mapped {
            return self.refuse(now, id, status, "The gateway does not understand the request");
        }
        if self.answer_from_decks(now, id) {
            return;
        }
        if is_busy {
            return self.refuse(now, id, 503, "The gateway is busy");
        }
        self.ask_origin(now, id);
    }

    /// Is there room for another request of a client? One that may not be there makes room for one that is, so that no flood drives more
    /// requests to origins than there are places.
    fn make_room(&mut self, now: Instant, peer: SocketAddr) -> bool {
        let Config { max_fetches, max_fetches_of_address, .. } = self.config;
        match self.shares.room(peer.ip(), max_fetches_of_address, max_fetches) {
            Room::Free => true,
            Room::Without(oldest) if self.server.validation().is_known(peer) => {
                self.cancel(oldest);
                self.refuse(now, oldest, 503, "The gateway is busy with requests of others");
                true
            }
            Room::Without(_) | Room::None => false,
        }
    }

    /// Answers a request for a part of a page that was split.
    fn answer_from_decks(&mut self, now: Instant, id: super::FetchId) -> bool {
        let Some(exchange) = self.exchanges.get(&id) else { return false };
        let request = exchange.request.as_ref().filter(|r| r.method.name() == "GET");
        let Some(name) = request.and_then(|request| decks::name(&request.url)) else { return false };
        match self.decks.find(exchange.owner(), name) {
            Some(body) => {
                self.counters.kept_decks += 1;
                self.ready(now, id, Reply { content_type: WMLC.to_owned(), body, ..Reply::bare(200) });
            }
            None => self.refuse(now, id, 410, "This part of the page is not kept any more"),
        }
        true
    }
}
