//! The server's half of connection-oriented WSP (WAP-230 section 7.1, server tables): sessions, methods, pushes.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use airloom_base::Instant;
use bytes::Bytes;
use delegate::delegate;
use smart_default::SmartDefault;

use super::capabilities::{Agreed, Capability, option};
use super::status::Reason;
use super::wire::{Method, Pdu};
use crate::shares::{Room, Shares};
use crate::unpredictable::Unpredictable;
use crate::wtp::validation::Validation;
use crate::wtp::wire::{Abort, Class};
use crate::wtp::{self, Indication, Provider, Role, Transaction};

/// Settings of a server.
#[derive(Clone, Debug, PartialEq, SmartDefault)]
pub struct Config {
    /// Under it.
    pub wtp: wtp::Config,
    /// The most that a session is granted.
    #[default(offer())]
    pub offer: Agreed,
    /// Sessions at a time. Where there is no room for another one, one goes: first of those whose client has not shown that it is where
    /// it says, then of those that rest, the one that was not used for longest.
    #[default(10_000)]
    pub max_sessions: u32,
    /// Of these, sessions of one address (of IPv6: of one network of 64 bits).
    #[default(2_500)]
    pub max_sessions_of_address: u32,
    /// An address that has not shown that it is there is sent so many times what came from it; 0: no limit.
    pub amplification: u16,
    /// A session is resumed from whatever address; otherwise from the one where it was, at any port.
    pub resume_from_anywhere: bool,
}

fn offer() -> Agreed {
    let options = option::CONFIRMED_PUSH | option::PUSH | option::SESSION_RESUME;
    Agreed { client_sdu: 0, server_sdu: 0, options, method_mor: 8, push_mor: 4, methods: Vec::new() }
}

/// The name of a session, as it goes over the air. Whoever knows it can resume the session, so that nobody can guess it.
pub type SessionId = u32;

/// Who goes first when there is no room: a session whose client may not be there, then one in which nothing is outstanding.
const UNPROVEN: u8 = 0;
const RESTING: u8 = 1;
/// Octets of the headers of IP, UDP and WTP, at most.
const HEADERS: usize = 64;

/// Names have 32 bits and all take the same five octets, so that no run is shorter by luck.
const SHORTEST: SessionId = 1 << 28;

/// Something for the server's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// S-Connect.ind: a client asks for a session. Answer with `accept` or `refuse`.
    Connect {
        /// The session to be.
        session: SessionId,
        /// The client.
        peer: SocketAddr,
        /// Headers of all its requests.
        headers: Bytes,
    },
    /// The client has acknowledged the beginning of its session, or that it goes on.
    Opened(SessionId),
    /// S-MethodInvoke.ind: a request. Answer with `reply` or `abort`.
    Request {
        /// Its session.
        session: SessionId,
        /// Its name.
        request: Transaction,
        /// Method.
        method: Method,
        /// Absolute address.
        uri: Bytes,
        /// Headers, behind the content type if there is a body.
        headers: Bytes,
        /// Body.
        data: Bytes,
    },
    /// S-MethodResult.cnf: the reply has arrived.
    Replied(Transaction),
    /// S-MethodAbort.ind: nobody waits for a reply any more.
    RequestAborted(Transaction, Reason),
    /// S-ConfirmedPush.cnf.
    PushConfirmed(Transaction),
    /// S-PushAbort.ind.
    PushAborted(Transaction, Reason),
    /// S-Suspend.ind.
    Suspended(SessionId),
    /// S-Resume.ind: it goes on, from this address.
    Resumed(SessionId, SocketAddr),
    /// S-Disconnect.ind.
    Disconnected(SessionId, Reason),
}

/// States of a session, with the standard's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The user decides.
    Connecting,
    /// The answer is under way.
    Connecting2,
    /// It is open.
    Connected,
    /// It rests.
    Suspended,
    /// The answer to a resumption is under way.
    Resuming2,
}

struct Session {
    state: State,
    peer: SocketAddr,
    agreed: Agreed,
    /// What the client is answered.
    answer: Vec<Capability>,
    /// Connect or Resume.
    opening: Option<Transaction>,
    /// Requests that are not answered.
    requests: u32,
    /// Requests whose replies are under way.
    replying: u32,
    pushes: u32,
}

/// Replies of a session that may be unacknowledged besides the requests agreed on. By the letter a request is outstanding until
/// the acknowledgement of its reply has arrived, but when that is lost the client cannot know: its next request must not be
/// refused for it.
const UNACKNOWLEDGED: u32 = 8;

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Opening(SessionId),
    Request(SessionId),
    Reply(SessionId),
    Push(SessionId),
}

impl Purpose {
    fn session(self) -> SessionId {
        match self {
            Purpose::Opening(s) | Purpose::Request(s) | Purpose::Reply(s) | Purpose::Push(s) => s,
        }
    }
}

impl Session {
    /// Is another request one too many?
    fn exceeds_mor(&self) -> bool {
        let agreed = u32::from(self.agreed.method_mor);
        self.requests >= agreed || self.requests + self.replying >= agreed + UNACKNOWLEDGED
    }
}

/// All sessions of a server. Feed it, then take all of `poll_event` and `poll_transmit`, then look at `poll_timeout`.
pub struct Server {
    config: Config,
    wtp: Provider,
    sessions: BTreeMap<SessionId, Session>,
    peers: BTreeMap<SocketAddr, SessionId>,
    purposes: BTreeMap<Transaction, Purpose>,
    shares: Shares<SessionId>,
    names: Unpredictable,
    events: VecDeque<Event>,
}

impl Server {
    /// Without any session; the names of sessions follow from `key`.
    pub fn new(config: Config, key: (u64, u64)) -> Server {
        let mut names = Unpredictable::new(key);
        let validation = Validation::new(config.amplification, (names.bits(), names.bits()));
        Server {
            wtp: Provider::new(config.wtp.clone(), 1).with_validation(validation),
            config,
            sessions: BTreeMap::new(),
            peers: BTreeMap::new(),
            purposes: BTreeMap::new(),
            shares: Shares::default(),
            names,
            events: VecDeque::new(),
        }
    }

    delegate! {
        to self.wtp {
            /// The next datagram, and where to.
            pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)>;
            /// When to call `handle_timeout`.
            pub fn poll_timeout(&self) -> Option<Instant>;
            /// What was counted below.
            pub fn counters(&self) -> wtp::Counters;
            /// What may be sent to whom.
            pub fn validation(&self) -> &Validation;
            /// The same, to count what goes without a session.
            pub fn validation_mut(&mut self) -> &mut Validation;
        }
    }

    /// The next thing for the user.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// That moment has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.wtp.handle_timeout(now);
        self.settle(now);
    }

    /// A datagram arrived.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &Bytes) {
        self.wtp.handle_datagram(now, from, datagram);
        self.settle(now);
        if let Some(session) = self.peers.get(&from).copied() {
            self.rate(session);
        }
    }

    /// Has the client of a session shown that it is where it says?
    pub fn is_proven(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|s| self.wtp.validation().is_proven(s.peer))
    }

    /// Sessions, open or at rest.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// What a session goes by.
    pub fn agreed(&self, session: SessionId) -> Option<&Agreed> {
        self.sessions.get(&session).map(|s| &s.agreed)
    }

    /// Its state.
    pub fn state(&self, session: SessionId) -> Option<State> {
        self.sessions.get(&session).map(|s| s.state)
    }

    /// The session of the client at this address.
    pub fn session_of(&self, peer: SocketAddr) -> Option<SessionId> {
        self.peers.get(&peer).copied()
    }

    /// The sessions of all clients at this address, whatever their ports.
    pub fn sessions_at(&self, address: IpAddr) -> impl Iterator<Item = SessionId> {
        let ports = SocketAddr::new(address, 0)..=SocketAddr::new(address, u16::MAX);
        self.peers.range(ports).map(|(_, session)| *session)
    }

    /// S-Connect.res: the session is granted, with headers of ours.
    pub fn accept(&mut self, now: Instant, session: SessionId, headers: Bytes) {
        let Some(s) = self.sessions.get_mut(&session).filter(|s| s.state == State::Connecting) else {
            return;
        };
        s.state = State::Connecting2;
        let capabilities = std::mem::take(&mut s.answer);
        if let Some(opening) = s.opening {
            let reply = Pdu::ConnectReply { session, capabilities, headers };
            self.wtp.result(now, opening, reply.to_bytes());
        }
        self.settle(now);
    }

    /// The session is not granted.
    pub fn refuse(&mut self, now: Instant, session: SessionId, reason: Reason) {
        let waits = self.sessions.get(&session).filter(|s| s.state == State::Connecting);
        if let Some(opening) = waits.and_then(|s| s.opening) {
            self.wtp.abort(now, opening, reason.code());
            self.forget(now, session, reason);
        }
        self.settle(now);
    }

    /// S-MethodResult.req. A reply that the client does not take is an abort (MRUEXCEEDED); false then, and if nobody
    /// waits for it.
    pub fn reply(
        &mut self,
        now: Instant,
        request: Transaction,
        status: u8,
        headers: Bytes,
        data: Bytes,
    ) -> bool {
        let Some(Purpose::Request(session)) = self.purposes.get(&request).copied() else { return false };
        let reply = Pdu::Reply { status, headers, data }.to_bytes();
        let fits = self.sessions.get(&session).is_some_and(|s| s.agreed.client_takes(reply.len()));
        if fits {
            self.purposes.insert(request, Purpose::Reply(session));
            if let Some(s) = self.sessions.get_mut(&session) {
                (s.requests, s.replying) = (s.requests - 1, s.replying + 1);
            }
            self.wtp.result(now, request, reply);
        } else {
            self.abort(now, request, Reason::MruExceeded);
        }
        self.settle(now);
        fits
    }

    /// Does a reply to this request go in several packets, if one is too small for it?
    pub fn segments(&self, request: Transaction) -> bool {
        self.wtp.segments(request)
    }

    /// S-MethodAbort.req, S-PushAbort.req.
    pub fn abort(&mut self, now: Instant, transaction: Transaction, reason: Reason) {
        if self.drop_purpose(transaction).is_some() {
            self.wtp.abort(now, transaction, reason.code());
        }
    }

    /// S-Push.req and S-ConfirmedPush.req. `None` if the session does not rest on such pushes, or has as many as agreed.
    pub fn push(
        &mut self,
        now: Instant,
        session: SessionId,
        confirmed: bool,
        headers: Bytes,
        data: Bytes,
    ) -> Option<Transaction> {
        let s = self.sessions.get_mut(&session).filter(|s| s.state == State::Connected)?;
        let wanted = if confirmed { option::CONFIRMED_PUSH } else { option::PUSH };
        let pdu = Pdu::Push { confirmed, headers, data }.to_bytes();
        if !s.agreed.has(wanted)
            || confirmed && s.pushes >= u32::from(s.agreed.push_mor)
            || !s.agreed.client_takes(pdu.len())
        {
            return None;
        }
        let class = if confirmed { Class::Reliable } else { Class::Unreliable };
        // Nobody's datagram caused it.
        let packets = pdu.len() / self.config.wtp.segment.0.max(1) as usize + 1;
        self.wtp.validation_mut().allow(s.peer, (pdu.len() + packets * HEADERS) as u64);
        let push = self.wtp.invoke(now, s.peer, class, confirmed, pdu)?;
        if confirmed {
            s.pushes += 1;
            self.purposes.insert(push, Purpose::Push(session));
        }
        self.settle(now);
        Some(push)
    }

    /// S-Disconnect.req.
    pub fn disconnect(&mut self, now: Instant, session: SessionId) {
        if let Some(s) = self.sessions.get(&session) {
            let peer = s.peer;
            self.end_transactions(now, session, Reason::Disconnect, false);
            self.wtp.invoke(now, peer, Class::Unreliable, false, Pdu::Disconnect { session }.to_bytes());
            self.remove(session);
        }
        self.settle(now);
    }

    fn settle(&mut self, now: Instant) {
        while let Some(wtp::Event { transaction, what }) = self.wtp.poll_event() {
            match what {
                Indication::Invoke { class, message, .. } => self.invoked(now, transaction, class, &message),
                // Of pushes; the result of a transaction that we began is never asked for.
                Indication::InvokeConfirmed => {
                    if let Some(Purpose::Push(_)) = self.drop_purpose(transaction) {
                        self.events.push_back(Event::PushConfirmed(transaction));
                    }
                }
                Indication::ResultConfirmed => self.confirmed(transaction),
                Indication::Aborted(why) => self.aborted(now, transaction, why),
                Indication::Result(_) => {}
            }
        }
    }

    fn invoked(&mut self, now: Instant, transaction: Transaction, class: Class, message: &Bytes) {
        let pdu = match Pdu::parse(message) {
            Ok(pdu) => pdu,
            Err(_) if class == Class::Unreliable => return,
            Err(_) => return self.wtp.abort(now, transaction, Reason::ProtocolError.code()),
        };
        let peer = transaction.peer;
        match (class, pdu) {
            (Class::WithResult, Pdu::Connect { version, capabilities, headers }) => {
                self.connect(now, transaction, version, &capabilities, headers);
            }
            (Class::WithResult, Pdu::Resume { session, .. }) => self.resume(now, transaction, session),
            (Class::WithResult, Pdu::Get { method, uri, headers }) => {
                self.request(now, transaction, message.len(), method, uri, headers, Bytes::new());
            }
            (Class::WithResult, Pdu::Post { method, uri, headers, data }) => {
                self.request(now, transaction, message.len(), method, uri, headers, data);
            }
            (Class::Unreliable, Pdu::Disconnect { session }) if self.is_of(session, peer) => {
                self.forget(now, session, Reason::Disconnect);
            }
            (Class::Unreliable, Pdu::Suspend { session }) if self.is_of(session, peer) => {
                self.suspend(now, session);
            }
            (Class::Unreliable, _) => {}
            _ => self.wtp.abort(now, transaction, Reason::ProtocolError.code()),
        }
    }

    fn is_of(&self, session: SessionId, peer: SocketAddr) -> bool {
        self.peers.get(&peer) == Some(&session)
    }

    fn connect(
        &mut self,
        now: Instant,
        opening: Transaction,
        version: u8,
        capabilities: &[Capability],
        headers: Bytes,
    ) {
        let peer = opening.peer;
        if version >> 4 != super::wire::VERSION >> 4 {
            return self.wtp.abort(now, opening, Reason::ConnectError.code());
        }
        //= WAP-230 7.1.5: a client that connects again has forgotten its session, and so does the server.
        if let Some(old) = self.peers.get(&peer).copied() {
            self.forget(now, old, Reason::Disconnect);
        }
        match self.shares.room(peer.ip(), self.config.max_sessions_of_address, self.config.max_sessions) {
            Room::Free => {}
            Room::Without(other) => self.displace(now, other),
            Room::None => return self.wtp.abort(now, opening, Reason::Congestion.code()),
        }
        let session = self.name();
        let (answer, agreed) = Agreed::answer(capabilities, &self.config.offer);
        let opened = Session {
            state: State::Connecting,
            peer,
            agreed,
            answer,
            opening: Some(opening),
            requests: 0,
            replying: 0,
            pushes: 0,
        };
        self.sessions.insert(session, opened);
        self.shares.insert(session, peer.ip(), Some(UNPROVEN));
        self.peers.insert(peer, session);
        self.purposes.insert(opening, Purpose::Opening(session));
        self.wtp.accept(now, opening);
        self.events.push_back(Event::Connect { session, peer, headers });
    }

    /// The session that goes first where another one needs room, of those of one address or of all.
    pub fn first_besides(&self, stays: SessionId, of: Option<IpAddr>) -> Option<SessionId> {
        self.shares.first_besides(stays, of)
    }

    /// A session makes room for another one.
    pub fn displace(&mut self, now: Instant, session: SessionId) {
        if let Some(peer) = self.sessions.get(&session).map(|s| s.peer) {
            self.wtp.invoke(now, peer, Class::Unreliable, false, Pdu::Disconnect { session }.to_bytes());
        }
        self.forget(now, session, Reason::Congestion);
    }

    /// Says how soon a session goes if room is needed.
    fn rate(&mut self, session: SessionId) {
        let Some(s) = self.sessions.get(&session) else { return };
        let rank = match self.wtp.validation().is_known(s.peer) {
            false => Some(UNPROVEN),
            true => (s.requests + s.replying == 0).then_some(RESTING),
        };
        self.shares.set_rank(session, rank);
    }

    /// A name that no session has.
    fn name(&mut self) -> SessionId {
        loop {
            let name = self.names.bits() as SessionId;
            if name >= SHORTEST && !self.sessions.contains_key(&name) {
                return name;
            }
        }
    }

    fn resume(&mut self, now: Instant, opening: Transaction, session: SessionId) {
        let may_move = self.config.resume_from_anywhere;
        // Whoever asks from elsewhere is told the same as of a session that there is not, and changes nothing.
        let resumable = self.sessions.get(&session).is_some_and(|s| {
            s.agreed.has(option::SESSION_RESUME) && (may_move || s.peer.ip() == opening.peer.ip())
        });
        if !resumable {
            return self.wtp.abort(now, opening, Reason::Disconnect.code());
        }
        self.end_transactions(now, session, Reason::Resume, true);
        // Whatever session another client had from this address is over.
        if let Some(other) = self.peers.get(&opening.peer).copied().filter(|other| *other != session) {
            self.forget(now, other, Reason::Disconnect);
        }
        let Some(s) = self.sessions.get_mut(&session) else { return };
        self.peers.remove(&s.peer);
        s.peer = opening.peer;
        s.state = State::Resuming2;
        s.opening = Some(opening);
        self.peers.insert(opening.peer, session);
        self.purposes.insert(opening, Purpose::Opening(session));
        self.shares.insert(session, opening.peer.ip(), Some(UNPROVEN));
        let reply = Pdu::Reply { status: 0x20, headers: Bytes::new(), data: Bytes::new() };
        self.wtp.result(now, opening, reply.to_bytes());
        self.events.push_back(Event::Resumed(session, opening.peer));
    }

    fn request(
        &mut self,
        now: Instant,
        request: Transaction,
        len: usize,
        method: Method,
        uri: Bytes,
        headers: Bytes,
        data: Bytes,
    ) {
        let session = self.peers.get(&request.peer).copied();
        let found = session.and_then(|id| Some((id, self.sessions.get_mut(&id)?)));
        let refusal = match &found {
            None => Some(Reason::Disconnect),
            Some((_, s)) if s.state == State::Suspended => Some(Reason::Suspend),
            Some((_, s)) if s.exceeds_mor() => Some(Reason::MorExceeded),
            Some((_, s)) if s.agreed.server_sdu != 0 && len > s.agreed.server_sdu as usize => {
                Some(Reason::MruExceeded)
            }
            Some(_) => None,
        };
        match (found, refusal) {
            (Some((session, s)), None) => {
                s.requests += 1;
                self.purposes.insert(request, Purpose::Request(session));
                self.shares.touch(session);
                self.rate(session);
                self.wtp.accept(now, request);
                self.events.push_back(Event::Request { session, request, method, uri, headers, data });
            }
            (_, refusal) => {
                self.wtp.abort(now, request, refusal.unwrap_or(Reason::Disconnect).code());
            }
        }
    }

    fn suspend(&mut self, now: Instant, session: SessionId) {
        let Some(s) = self.sessions.get_mut(&session) else { return };
        if !s.agreed.has(option::SESSION_RESUME) {
            return self.forget(now, session, Reason::Disconnect);
        }
        s.state = State::Suspended;
        self.end_transactions(now, session, Reason::Suspend, true);
        self.events.push_back(Event::Suspended(session));
    }

    fn confirmed(&mut self, transaction: Transaction) {
        match self.drop_purpose(transaction) {
            Some(Purpose::Opening(session)) => {
                if let Some(s) = self.sessions.get_mut(&session) {
                    s.state = State::Connected;
                    s.opening = None;
                    self.events.push_back(Event::Opened(session));
                }
            }
            Some(Purpose::Reply(_)) => self.events.push_back(Event::Replied(transaction)),
            Some(Purpose::Request(_) | Purpose::Push(_)) | None => {}
        }
    }

    fn aborted(&mut self, now: Instant, transaction: Transaction, why: Abort) {
        let reason = match why {
            Abort::User(code) => Reason::of(code),
            Abort::Provider(wtp::wire::Reason::NoResponse) => Reason::NetworkError,
            Abort::Provider(_) => Reason::ProtocolError,
        };
        match self.drop_purpose(transaction) {
            Some(Purpose::Opening(session)) => self.forget(now, session, reason),
            Some(Purpose::Request(_) | Purpose::Reply(_)) => {
                self.events.push_back(Event::RequestAborted(transaction, reason));
            }
            Some(Purpose::Push(_)) => self.events.push_back(Event::PushAborted(transaction, reason)),
            None => {}
        }
    }

    /// A transaction is over, and counts no more.
    fn drop_purpose(&mut self, transaction: Transaction) -> Option<Purpose> {
        let purpose = self.purposes.remove(&transaction)?;
        if let Some(s) = self.sessions.get_mut(&purpose.session()) {
            match purpose {
                Purpose::Opening(_) => {}
                Purpose::Request(_) => s.requests -= 1,
                Purpose::Reply(_) => s.replying -= 1,
                Purpose::Push(_) => s.pushes -= 1,
            }
        }
        self.rate(purpose.session());
        Some(purpose)
    }

    /// Aborts all that is outstanding in a session.
    fn end_transactions(&mut self, now: Instant, session: SessionId, reason: Reason, tell: bool) {
        let Some(peer) = self.sessions.get(&session).map(|s| s.peer) else { return };
        let of_peer = |role| {
            let [first, last] = [0, u16::MAX].map(|tid| Transaction { role, peer, tid });
            self.purposes.range(first..=last).filter(|(_, p)| p.session() == session).map(|(t, p)| (*t, *p))
        };
        let all: Vec<(Transaction, Purpose)> =
            of_peer(Role::Initiator).chain(of_peer(Role::Responder)).collect();
        for (transaction, purpose) in all {
            self.drop_purpose(transaction);
            self.wtp.abort(now, transaction, reason.code());
            match purpose {
                Purpose::Request(_) | Purpose::Reply(_) if tell => {
                    self.events.push_back(Event::RequestAborted(transaction, reason));
                }
                Purpose::Push(_) if tell => self.events.push_back(Event::PushAborted(transaction, reason)),
                _ => {}
            }
        }
    }

    /// A session ends, and the user hears of it and of what was outstanding.
    fn forget(&mut self, now: Instant, session: SessionId, reason: Reason) {
        self.end_transactions(now, session, Reason::Disconnect, true);
        if self.remove(session) {
            self.events.push_back(Event::Disconnected(session, reason));
        }
    }

    fn remove(&mut self, session: SessionId) -> bool {
        let Some(s) = self.sessions.remove(&session) else { return false };
        self.shares.remove(session);
        if self.peers.get(&s.peer) == Some(&session) {
            self.peers.remove(&s.peer);
        }
        true
    }
}
