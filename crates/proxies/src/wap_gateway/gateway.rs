//! The machine and its face.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use airloom_base::Instant;
use airloom_transports::shares::{Amounts, Shares};
use airloom_transports::wsp::server::{Server, SessionId};
use airloom_transports::wtp::Transaction;
use bytes::Bytes;

use super::cache::Cache;
use super::config::Config;
use super::counters::{self, Counters};
use super::decks::Decks;
use super::exchange::{Asker, Exchange, Stage};
use super::fetch::{FetchId, FetchOrder};
use super::pap::{Notices, Submissions};
use super::push::{Book, PushId};
use super::session::Session;

/// Which port of the gateway a datagram is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// WSP over WTP.
    Session,
    /// WSP without a session.
    Connectionless,
}

impl Service {
    /// Its registered port (WAP-259).
    pub const fn port(self) -> u16 {
        match self {
            Service::Connectionless => 9_200,
            Service::Session => 9_201,
        }
    }

    /// Its registered port over WTLS (WAP-259).
    pub const fn secure_port(self) -> u16 {
        self.port() + 2
    }

    /// The service of a registered port.
    pub const fn of_port(port: u16) -> Option<Service> {
        match port {
            9_200 => Some(Service::Connectionless),
            9_201 => Some(Service::Session),
            _ => None,
        }
    }
}

/// What has a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Exchange(FetchId),
    Idle(SessionId),
    Push(PushId),
    Notice(FetchId),
}

/// Headers of sessions may be one part in so many of the memory there is: while they rest, there is room for what is asked.
const HEADERS_SHARE: u64 = 4;

/// Octets that a datagram of UDP carries at most over IPv4.
const LARGEST_DATAGRAM: usize = 65_535 - 28;

/// Lines of the log that are kept for whoever takes them; without anybody the oldest go.
const MOST_REPORTS: usize = 4_096;

/// A gateway without sockets and clock.
///
/// After each call that feeds it (`handle_*`), take all of [`Gateway::poll_transmit`] and [`Gateway::poll_fetch`], then
/// look at [`Gateway::poll_timeout`].
pub struct Gateway {
    pub(super) config: Config,
    pub(super) server: Server,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) exchanges: BTreeMap<FetchId, Exchange>,
    pub(super) askers: BTreeMap<Asker, FetchId>,
    /// Replies that have not arrived, and their octets.
    pub(super) replying: BTreeMap<Transaction, usize>,
    pub(super) agenda: BTreeSet<(Instant, Due)>,
    pub(super) orders: VecDeque<FetchOrder>,
    /// Replies without a session.
    pub(super) out: VecDeque<(SocketAddr, Bytes)>,
    /// Pushes without a session, which nobody's datagram caused.
    pub(super) pushed: VecDeque<(SocketAddr, Bytes)>,
    pub(super) pushes: Book,
    pub(super) submissions: Submissions,
    pub(super) notices: Notices,
    /// Where clients are asked to come to.
    pub(super) contact: Option<SocketAddr>,
    /// Seconds since 1970 when the time was zero.
    pub(super) calendar: u64,
    pub(super) reports: VecDeque<counters::Exchange>,
    pub(super) decks: Decks,
    pub(super) cache: Option<Cache>,
    /// Of whom requests are.
    pub(super) shares: Shares<FetchId>,
    pub(super) next: u64,
    /// Octets of bodies, replies and pushes under way.
    pub(super) held: usize,
    /// Of these, those of each client's address.
    pub(super) held_of: Amounts,
    /// Octets of headers of sessions, and those of each client's address.
    headers: usize,
    headers_of: Amounts,
    /// Octets of a datagram to the client that is being heard, at most.
    pub(super) datagram: usize,
    /// Until when replies are being made.
    pub(super) busy: Instant,
    pub(super) counters: Counters,
}

impl Gateway {
    /// Without any session. What nobody must guess follows from `key`: random octets of the machine, or a run's seed.
    pub fn new(config: Config, key: (u64, u64)) -> Gateway {
        let octets = |size: airloom_base::units::Octets| usize::try_from(size.0).unwrap_or(usize::MAX);
        Gateway {
            server: Server::new(config.server(), key),
            sessions: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            askers: BTreeMap::new(),
            replying: BTreeMap::new(),
            agenda: BTreeSet::new(),
            orders: VecDeque::new(),
            out: VecDeque::new(),
            pushed: VecDeque::new(),
            pushes: Book::default(),
            submissions: Submissions::default(),
            notices: Notices::new(),
            contact: None,
            calendar: 0,
            reports: VecDeque::new(),
            decks: Decks::new(octets(config.kept_decks)),
            cache: config.cache.map(|most| Cache::new(octets(most))),
            shares: Shares::default(),
            next: 0,
            held: 0,
            held_of: Amounts::default(),
            headers: 0,
            headers_of: Amounts::default(),
            datagram: LARGEST_DATAGRAM,
            busy: Instant::ZERO,
            counters: Counters::default(),
            config,
        }
    }

    /// A datagram of a client arrived at the port of `service`.
    pub fn handle_datagram(&mut self, now: Instant, service: Service, from: SocketAddr, datagram: &Bytes) {
        match service {
            Service::Session => self.server.handle_datagram(now, from, datagram),
            Service::Connectionless => {
                self.server.validation_mut().received(from, datagram.len());
                self.unit(now, from, datagram);
            }
        }
        self.settle(now);
    }

    /// Clients whose datagrams come from now on are sent datagrams of so many octets at most, if they put no segments together.
    pub fn set_datagram_limit(&mut self, octets: usize) {
        self.datagram = octets.min(LARGEST_DATAGRAM);
    }

    /// The next datagram to a client, of which service, and where to.
    pub fn poll_transmit(&mut self) -> Option<(Service, SocketAddr, Bytes)> {
        if let Some((to, datagram)) = self.pushed.pop_front() {
            return Some((Service::Connectionless, to, datagram));
        }
        while let Some((to, datagram)) = self.out.pop_front() {
            if self.server.validation_mut().take_of_host(to, datagram.len()) {
                return Some((Service::Connectionless, to, datagram));
            }
            self.counters.unproven += 1;
        }
        self.server.poll_transmit().map(|(to, datagram)| (Service::Session, to, datagram))
    }

    /// What an origin shall be asked next, or no longer.
    pub fn poll_fetch(&mut self) -> Option<FetchOrder> {
        self.orders.pop_front()
    }

    /// When to call [`Gateway::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = self.agenda.first().map(|(at, _)| *at);
        [own, self.server.poll_timeout()].into_iter().flatten().min()
    }

    /// That moment has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now);
        self.settle(now);
        while let Some((at, due)) = self.agenda.first().copied().filter(|(at, _)| *at <= now) {
            self.agenda.remove(&(at, due));
            match due {
                Due::Exchange(id) => self.exchange_due(now, id),
                Due::Idle(session) => self.idle_due(now, session),
                Due::Push(id) => self.push_due(now, id),
                Due::Notice(id) => self.notice_due(now, id),
            }
            self.settle(now);
        }
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        let (wtp, own) = (self.server.counters(), self.counters);
        Counters { wtp, unproven: own.unproven + wtp.withheld, ..own }
    }

    /// The next request that is over. At most 4096 wait here; if nobody takes them, the oldest go.
    pub fn poll_report(&mut self) -> Option<counters::Exchange> {
        self.reports.pop_front()
    }

    /// Sessions, open or at rest.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Requests that wait for an origin or for their reply to be made.
    pub fn outstanding(&self) -> usize {
        self.exchanges.len()
    }

    /// Octets that are held for clients: bodies, replies under way, kept decks.
    pub fn held(&self) -> usize {
        self.held + self.decks.octets()
    }

    /// Ends all sessions and tells their clients; requests without a session are forgotten.
    pub fn shut_down(&mut self, now: Instant) {
        let sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
        for session in sessions {
            self.server.disconnect(now, session);
            self.forget_session(now, session);
        }
        let left: Vec<FetchId> = self.exchanges.keys().copied().collect();
        left.into_iter().for_each(|id| self.abandon(id));
        self.settle(now);
    }

    pub(super) fn report(&mut self, report: counters::Exchange) {
        if self.reports.len() >= MOST_REPORTS {
            self.reports.pop_front();
        }
        self.reports.push_back(report);
    }

    /// A new name.
    pub(super) fn name(&mut self) -> FetchId {
        self.next += 1;
        FetchId(self.next)
    }

    /// Puts an exchange into the agenda, or takes it out.
    pub(super) fn set_due(&mut self, id: FetchId, at: Option<Instant>) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut exchange.due, at) {
            self.agenda.remove(&(before, Due::Exchange(id)));
        }
        if let Some(at) = at {
            self.agenda.insert((at, Due::Exchange(id)));
        }
    }

    /// Counts what an exchange holds now: the body of its request, and so much of an answer.
    pub(super) fn set_held(&mut self, id: FetchId, answer: usize) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            let octets = answer + exchange.request.as_ref().map_or(0, |request| request.body.len());
            let (before, peer) = (std::mem::replace(&mut exchange.held, octets), exchange.asker.peer());
            self.hold(peer, octets);
            self.release(peer, before);
        }
    }

    /// Octets are held for a client.
    pub(super) fn hold(&mut self, peer: SocketAddr, octets: usize) {
        self.held += octets;
        self.held_of.add(peer.ip(), octets);
    }

    /// They are no longer.
    pub(super) fn release(&mut self, peer: SocketAddr, octets: usize) {
        self.held -= octets;
        self.held_of.subtract(peer.ip(), octets);
    }

    /// Headers of a session are held.
    pub(super) fn hold_headers(&mut self, peer: SocketAddr, octets: usize) {
        self.headers += octets;
        self.headers_of.add(peer.ip(), octets);
    }

    /// They are no longer.
    pub(super) fn release_headers(&mut self, peer: SocketAddr, octets: usize) {
        self.headers -= octets;
        self.headers_of.subtract(peer.ip(), octets);
    }

    /// Would the headers of another session be too many octets?
    pub(super) fn headers_are_full(&self, more: usize) -> bool {
        (self.headers + more) as u64 > self.config.memory.0 / HEADERS_SHARE
    }

    /// Would they be for this client's address?
    pub(super) fn headers_are_full_for(&self, peer: SocketAddr, more: usize) -> bool {
        (self.headers_of.of(peer.ip()) + more) as u64 > self.config.memory_of_address.0 / HEADERS_SHARE
    }

    /// Would so many octets more be too many?
    pub(super) fn is_full(&self, more: usize) -> bool {
        (self.held + self.headers + more) as u64 > self.config.memory.0
    }

    /// Is too much held for this client, or for others? Those that may not be there have half of what there is.
    pub(super) fn is_full_for(&self, peer: SocketAddr) -> bool {
        let others = if self.server.validation().is_known(peer) { 0 } else { self.config.memory.0 / 2 };
        self.is_full(usize::try_from(others).unwrap_or(usize::MAX))
            || (self.held_of.of(peer.ip()) + self.headers_of.of(peer.ip())) as u64
                > self.config.memory_of_address.0
    }

    /// An exchange, taken out of all books.
    pub(super) fn take(&mut self, id: FetchId) -> Option<Exchange> {
        self.set_due(id, None);
        let mut exchange = self.exchanges.remove(&id)?;
        self.release(exchange.asker.peer(), std::mem::take(&mut exchange.held));
        self.shares.remove(id);
        self.askers.remove(&exchange.asker);
        Some(exchange)
    }

    /// Enters an exchange into all books.
    pub(super) fn enter(&mut self, id: FetchId, exchange: Exchange) {
        let peer = exchange.asker.peer();
        let is_known = self.server.validation().is_known(peer);
        self.shares.insert(id, peer.ip(), (!is_known).then_some(0));
        self.askers.insert(exchange.asker, id);
        self.exchanges.insert(id, exchange);
    }

    /// Nobody waits for a reply any more.
    pub(super) fn abandon(&mut self, id: FetchId) {
        self.cancel(id);
        if self.take(id).is_some() {
            self.counters.abandoned += 1;
        }
    }

    /// Takes back an order that is out.
    pub(super) fn cancel(&mut self, id: FetchId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if std::mem::take(&mut exchange.fetching) {
            self.orders.push_back(FetchOrder::Cancel(id));
        }
    }

    fn exchange_due(&mut self, now: Instant, id: FetchId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.due = None;
        if matches!(exchange.stage, Stage::Ready(_)) {
            self.deliver(now, id);
        } else {
            self.cancel(id);
            self.refuse(now, id, 504, "The origin takes too long");
        }
    }
}
