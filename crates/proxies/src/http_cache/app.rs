//! The proxy as an application of a host: who is called when something happens.
//!
//! A circle of 6 files: what one partner does moves another (a server's answer its client, a client's end its server, a free connection
//! whoever waits for the origin), so that what is done for each of them is a method of the machine that holds them all.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use airloom_apps::fetch::FetchError;
use airloom_apps::net::{Alarm, Connections, Deadlines};
use airloom_base::service::Passing;
use airloom_base::{
    App, AppParts, CloseReason, ConfigError, Cx, Instant, SocketEvent, SocketId, Sockets, Summary,
};
use serde_json::Value;

use super::client::Client;
use super::config::{Config, Mode};
use super::counters::Counters;
use super::exchange::Exchange;
use super::origins::{Key, Origin};
use super::server::Server;
use super::store::Store;
use crate::lookup::{Found, Lookup};

/// What is to be gone on with once the present call is over: no two parts call each other in circles.
pub(super) enum Work {
    Client(SocketId),
    Server(SocketId),
}

/// Who asked for addresses.
pub(super) enum Asker {
    Origin(Key),
    Tunnel(SocketId),
}

/// The forwarding proxy with its store.
#[derive(getset::Getters)]
pub struct HttpCache {
    pub(super) config: Config,
    pub(super) buffer: usize,
    /// Names of the network it is in; `None`: somebody else is asked ([`HttpCache::poll_lookup`]).
    names: Option<BTreeMap<String, IpAddr>>,
    /// Seconds since 1970 when it began.
    calendar: Option<u64>,
    pub(super) clients: Connections<Client>,
    pub(super) servers: Connections<Server>,
    /// Connections to servers of which our side is finished.
    pub(super) leaving: Connections<Alarm>,
    pub(super) tunnels: Connections<SocketId>,
    pub(super) origins: BTreeMap<Key, Origin>,
    lookups: VecDeque<Lookup>,
    asked: BTreeMap<u64, Asker>,
    next: u64,
    pub(super) store: Store,
    pub(super) deadlines: Deadlines,
    pub(super) work: VecDeque<Work>,
    /// What it counted.
    #[getset(get = "pub")]
    pub(super) counters: Counters,
    pub(super) wants_log: bool,
    pub(super) log: VecDeque<String>,
    pub(super) is_stopping: bool,
}

/// Builds the proxy from its table.
///
/// # Errors
/// [`ConfigError`] with the key.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let mut config: Config = airloom_base::config::read(value)?;
    //= RFC 9110 (7.6.3): a name for each: what two of one path share looks like a circle.
    config.name.get_or_insert_with(|| parts.host.to_owned());
    let names = (parts.hosts)().into_iter().map(|(name, address)| (name.to_ascii_lowercase(), address));
    Ok(Box::new(HttpCache::new(config, Some(names.collect()))?))
}

impl HttpCache {
    /// A proxy that finds servers by `names`, which are in lower case; `None`: it asks ([`HttpCache::poll_lookup`]).
    ///
    /// # Errors
    /// [`ConfigError`] for settings that no proxy can work with.
    pub fn new(config: Config, names: Option<BTreeMap<String, IpAddr>>) -> Result<HttpCache, ConfigError> {
        config.check()?;
        Ok(HttpCache {
            buffer: usize::try_from(config.buffer.0).unwrap_or(usize::MAX),
            store: Store::new(config.capacity.0),
            config,
            names,
            calendar: None,
            clients: Connections::default(),
            servers: Connections::default(),
            leaving: Connections::default(),
            tunnels: Connections::default(),
            origins: BTreeMap::new(),
            lookups: VecDeque::new(),
            asked: BTreeMap::new(),
            next: 0,
            deadlines: Deadlines::default(),
            work: VecDeque::new(),
            counters: Counters::default(),
            wants_log: false,
            log: VecDeque::new(),
            is_stopping: false,
        })
    }

    /// Says how many seconds after 1970 the time of the machine began; without that no date is compared with ours.
    pub fn set_calendar(&mut self, seconds: u64) {
        self.calendar = Some(seconds);
    }

    /// Asks for a line of JSON for each exchange ([`HttpCache::poll_log`]).
    pub fn set_log(&mut self, wants: bool) {
        self.wants_log = wants;
    }

    /// The next line of the log.
    pub fn poll_log(&mut self) -> Option<String> {
        self.log.pop_front()
    }

    /// A name whose addresses it wants.
    pub fn poll_lookup(&mut self) -> Option<Lookup> {
        self.lookups.pop_front()
    }

    /// What came of a question.
    pub fn handle_lookup(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: u64, found: Found) {
        match self.asked.remove(&id) {
            Some(Asker::Origin(key)) => self.found_origin(cx, net, &key, found),
            Some(Asker::Tunnel(socket)) => self.found_tunnel(cx, net, socket, found),
            None => {}
        }
        self.read_pending(cx, net);
    }

    /// No more clients come: connections without a request end, the others after their next answer.
    pub fn handle_stop(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.end_idle_clients(cx, net);
        self.read_pending(cx, net);
    }

    /// Is nothing under way? Connections that wait for a request, of clients or to servers, are not.
    pub fn is_quiet(&self) -> bool {
        self.clients.values().all(Client::is_quiet)
    }

    /// Clients, connections to servers, answers that are kept and their octets, at the moment.
    pub fn sizes(&self) -> [u64; 4] {
        [
            self.clients.len() as u64,
            (self.servers.len() + self.tunnels.len()) as u64,
            self.store.len() as u64,
            self.store.octets(),
        ]
    }

    /// Seconds since 1970, where a calendar was given.
    pub(super) fn today(&self, now: Instant) -> Option<u64> {
        Some(self.calendar? + now.as_nanos() / 1_000_000_000)
    }

    /// Asks for addresses, of the network it is in or of somebody else.
    pub(super) fn look_up(&mut self, cx: &mut Cx, net: &mut dyn Sockets, asker: Asker, host: &str) {
        let Some(names) = &self.names else {
            self.next += 1;
            self.lookups.push_back(Lookup { id: self.next, host: host.to_owned() });
            self.asked.insert(self.next, asker);
            return;
        };
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
        let found = literal.or_else(|| names.get(host).copied());
        let found: Found = found.map(|ip| vec![ip]).ok_or(FetchError::Unresolved);
        match asker {
            Asker::Origin(key) => self.found_origin(cx, net, &key, found),
            Asker::Tunnel(socket) => self.found_tunnel(cx, net, socket, found),
        }
    }

    fn accept(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        at: SocketAddr,
        from: SocketAddr,
    ) {
        if self.clients.len() >= self.config.max_connections as usize {
            self.counters.refused += 1;
            net.reset(cx, socket);
            return;
        }
        self.counters.connections += 1;
        self.clients.insert(socket, Client::new(from, at, cx.now));
        self.counters.connections_peak = self.counters.connections_peak.max(self.clients.len() as u64);
        self.watch_client(socket);
    }

    /// A client is gone: what it asked for is of no interest any more.
    pub(super) fn forget_client(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(client) = self.clients.remove(socket) else { return };
        self.deadlines.forget(socket, &client.alarm);
        if let Some(server) = client.tunnel.as_ref().and_then(|tunnel| tunnel.server()) {
            self.tunnels.remove(server);
            net.reset(cx, server);
        }
        if self.wants_log && client.tunnel.is_some() {
            self.log.extend(client.exchanges.iter().map(|x| super::answers::line(cx.now, client.from, x)));
        }
        self.abandon(cx, net, socket, client.exchanges);
    }

    /// Leaves the servers of exchanges that nobody waits for.
    pub(super) fn abandon(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        exchanges: VecDeque<Exchange>,
    ) {
        for exchange in exchanges {
            self.counters.abandoned += u64::from(!exchange.is_over());
            self.store.release(exchange.keeping.as_ref());
            let name = (socket, exchange.number);
            if let Some(server) = exchange.server
                && self.servers.get_mut(server).is_some_and(|s| s.in_flight.contains(&name))
            {
                self.leave_server(cx, net, server);
            }
        }
    }

    fn read_pending(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(work) = self.work.pop_front() {
            match work {
                Work::Client(socket) => self.read_client(cx, net, socket),
                Work::Server(socket) => self.read_server(cx, net, socket),
            }
        }
    }

    fn client_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Readable(_) => self.read_client(cx, net, socket),
            SocketEvent::Writable => {
                self.pump_client(cx, net, socket);
                self.pump_tunnel(cx, net, socket);
            }
            SocketEvent::Finished => self.client_ended(cx, net, socket),
            SocketEvent::Closed(CloseReason::Finished) if self.leave_tunnel(cx, net, socket) => {}
            SocketEvent::Closed(_) => self.forget_client(cx, net, socket),
            SocketEvent::Accepted { .. }
            | SocketEvent::Asked { .. }
            | SocketEvent::Opened
            | SocketEvent::Stream(_) => {}
        }
    }

    fn server_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Opened => self.server_opened(cx, net, socket),
            SocketEvent::Readable(_) => self.read_server(cx, net, socket),
            SocketEvent::Writable => self.write_server(cx, net, socket),
            SocketEvent::Finished => self.server_ended(cx, net, socket),
            SocketEvent::Closed(why) => self.server_closed(cx, net, socket, why),
            SocketEvent::Accepted { .. } | SocketEvent::Asked { .. } | SocketEvent::Stream(_) => {}
        }
    }

    fn tunnel_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, server: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Opened => self.tunnel_opened(cx, net, server),
            SocketEvent::Readable(_) | SocketEvent::Writable => {
                if let Some(&mut client) = self.tunnels.get_mut(server) {
                    self.pump_tunnel(cx, net, client);
                }
            }
            SocketEvent::Finished => self.tunnel_ended(cx, net, server),
            SocketEvent::Closed(why) => self.tunnel_closed(cx, net, server, why),
            SocketEvent::Accepted { .. } | SocketEvent::Asked { .. } | SocketEvent::Stream(_) => {}
        }
    }
}

impl App for HttpCache {
    fn stream_ports(&self) -> Vec<u16> {
        if self.config.mode == Mode::Addressed { self.config.ports() } else { Vec::new() }
    }

    fn passing(&self) -> Passing {
        match self.config.mode {
            Mode::Addressed => Passing::None,
            Mode::Transparent => Passing::Ports(self.config.ports()),
        }
    }

    fn start(&mut self, _cx: &mut Cx, _net: &mut dyn Sockets) {}

    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if let SocketEvent::Accepted { at, from } = event {
            self.accept(cx, net, socket, at, from);
        } else if self.clients.get_mut(socket).is_some() {
            self.client_event(cx, net, socket, event);
        } else if self.servers.get_mut(socket).is_some() {
            self.server_event(cx, net, socket, event);
        } else if self.leaving.get_mut(socket).is_some() {
            self.leaving_event(cx, net, socket, event);
        } else {
            self.tunnel_event(cx, net, socket, event);
        }
        self.read_pending(cx, net);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(socket) = self.deadlines.pop_due(cx.now) {
            if let Some(client) = self.clients.get_mut(socket) {
                if self.deadlines.rings(cx.now, socket, &mut client.alarm) {
                    self.client_is_late(cx, net, socket);
                }
            } else if let Some(server) = self.servers.get_mut(socket) {
                if self.deadlines.rings(cx.now, socket, &mut server.alarm) {
                    self.server_is_late(cx, net, socket);
                }
            } else if let Some(alarm) = self.leaving.get_mut(socket)
                && self.deadlines.rings(cx.now, socket, alarm)
            {
                net.reset(cx, socket);
                self.leaving.remove(socket);
            }
        }
        self.read_pending(cx, net);
    }

    fn summarise(&self, out: &mut Summary) {
        let c = &self.counters;
        out.set_all([
            ("connections", c.connections),
            ("connections_refused", c.refused),
            ("connections_peak", c.connections_peak),
            ("requests", c.requests),
            ("hits", c.hits),
            ("validated", c.validated),
            ("stale", c.stale),
            ("misses", c.misses),
            ("stored", c.stored),
            ("errors", c.errors),
            ("retries", c.retries),
            ("abandoned", c.abandoned),
            ("broken", c.broken),
            ("tunnels", c.tunnels),
            ("server_connections", c.server_connections),
            ("server_failed", c.server_failed),
            ("server_bytes", c.server_octets),
            ("client_bytes", c.client_octets),
            ("kept_bytes", self.store.octets()),
        ]);
    }
}
