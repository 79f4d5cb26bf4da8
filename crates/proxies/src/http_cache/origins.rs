//! Servers: a queue of requests for each, its addresses, and its connections.
//! A circle, of which `app.rs` says why.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use airloom_base::{Cx, Instant, SocketId, Sockets};
use airloom_content::http::message::Version;
use airloom_content::http::v1::BodyLength;

use super::answers;
use super::app::HttpCache;
use super::exchange::{Exchange, ExchangeId, Phase};
use super::server::Server;
use crate::lookup::Found;

/// A server's host, in lower case, and port.
pub(super) type Key = (String, u16);

/// Addresses of one server that are tried for one request.
pub(super) const TRIES: usize = 3;

/// What is known of a server.
#[derive(Default)]
pub(super) struct Origin {
    addresses: Vec<SocketAddr>,
    is_asked: bool,
    pub(super) waiting: VecDeque<ExchangeId>,
    pub(super) servers: Vec<SocketId>,
    /// When a request was given to a connection last.
    moved: Instant,
    /// What it answered with last.
    pub(super) version: Option<Version>,
}

impl HttpCache {
    /// A request waits for its server.
    pub(super) fn queue(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: ExchangeId, key: Key) {
        self.counters.misses += 1;
        let most = self.config.server_queue as usize;
        let length = self.exchange(id).map(|x| x.upload.length);
        let origin = self.origins.entry(key.clone()).or_default();
        let is_full = origin.waiting.len() >= most;
        // Chunks are not for HTTP/1.0, and the whole is not collected here.
        let is_old = origin.version == Some(Version::Http10);
        if is_full || (is_old && length == Some(BodyLength::Chunked)) {
            return self.fail(cx, net, id, if is_full { 503 } else { 411 });
        }
        origin.waiting.push_back(id);
        self.dispatch(cx, net, &key);
    }

    /// Gives waiting requests to connections.
    pub(super) fn dispatch(&mut self, cx: &mut Cx, net: &mut dyn Sockets, key: &Key) {
        loop {
            let Some(origin) = self.origins.get(key) else { return };
            let Some(&id) = origin.waiting.front() else { break };
            let (may_repeat, retried, tried) = match self.exchange(id) {
                Some(x) if x.phase == Phase::Asked => (x.may_repeat(), x.retried, x.tried),
                // Its client is gone, or has its answer.
                _ => {
                    self.origins.entry(key.clone()).or_default().waiting.pop_front();
                    continue;
                }
            };
            let Some(origin) = self.origins.get_mut(key) else { return };
            if origin.addresses.is_empty() {
                if !origin.is_asked {
                    origin.is_asked = true;
                    self.look_up(cx, net, super::app::Asker::Origin(key.clone()), &key.0);
                }
                return;
            }
            let servers = origin.servers.clone();
            let is_free = |s: &SocketId| self.servers.get_mut(*s).is_some_and(|s| s.is_free(retried));
            let free = servers.iter().copied().find(is_free);
            let socket = match free {
                Some(socket) => socket,
                None if servers.len() < self.config.server_connections as usize => {
                    let Some(origin) = self.origins.get_mut(key) else { return };
                    let to = origin.addresses[tried % origin.addresses.len()];
                    let socket = net.connect(cx, to);
                    origin.servers.push(socket);
                    self.servers.insert(socket, Server::new(key.clone(), cx.now));
                    socket
                }
                None => {
                    //= RFC 9112 (9.3.2): behind others only what may be repeated, and not right after a failure.
                    let most = self.config.server_pipeline as usize;
                    let mut load = |s: SocketId| self.servers.get_mut(s)?.load().filter(|n| *n < most);
                    let least = servers.iter().filter_map(|s| Some((load(*s)?, *s))).min();
                    let Some((_, socket)) = least.filter(|_| may_repeat && retried.is_none()) else { return };
                    socket
                }
            };
            if let Some(origin) = self.origins.get_mut(key) {
                origin.waiting.pop_front();
                origin.moved = cx.now;
            }
            self.assign(cx, net, id, socket);
        }
        if self.origins.get(key).is_some_and(|o| o.waiting.is_empty() && o.servers.is_empty()) {
            self.origins.remove(key);
        }
    }

    /// When a request was last given to a connection of the server that this one waits for.
    pub(super) fn moved_before(&self, id: ExchangeId) -> Option<Instant> {
        self.origins.values().find(|origin| origin.waiting.contains(&id)).map(|origin| origin.moved)
    }

    /// What came of a question for addresses.
    pub(super) fn found_origin(&mut self, cx: &mut Cx, net: &mut dyn Sockets, key: &Key, found: Found) {
        let Some(origin) = self.origins.get_mut(key) else { return };
        origin.is_asked = false;
        match found {
            Ok(addresses) if !addresses.is_empty() => {
                let whole = |ip: IpAddr| SocketAddr::new(ip, key.1);
                origin.addresses = addresses.into_iter().map(whole).collect();
                self.dispatch(cx, net, key);
            }
            Ok(_) => {}
            Err(why) => {
                for id in std::mem::take(&mut origin.waiting) {
                    self.fail_or_stale(cx, net, id, why.status());
                }
                self.dispatch(cx, net, key);
            }
        }
    }

    /// A connection could not be opened: another address, or that is the answer.
    pub(super) fn not_opened(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        key: &Key,
        id: ExchangeId,
        status: u16,
    ) {
        let all = self.origins.get(key).map_or(0, |origin| origin.addresses.len());
        let Some(exchange) = self.exchange(id) else { return };
        exchange.server = None;
        exchange.tried += 1;
        if exchange.tried < all.min(TRIES) {
            self.requeue(key, id);
        } else {
            self.fail_or_stale(cx, net, id, status);
        }
    }

    /// A request waits again, in front of the others.
    pub(super) fn requeue(&mut self, key: &Key, id: ExchangeId) {
        self.origins.entry(key.clone()).or_default().waiting.push_front(id);
    }

    /// A server cannot be asked: what is kept is used if that is allowed, else the client is told.
    pub(super) fn fail_or_stale(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: ExchangeId, status: u16) {
        let Some(exchange) = self.exchange(id).filter(|x| x.phase == Phase::Asked) else { return };
        match exchange.checking.take() {
            //= RFC 9111 (4.2.4): disconnected from its server, a cache may use what is stale.
            Some(kept) if !kept.forbids_stale() => {
                answers::stored(exchange, &kept, cx.now, "stale");
                self.counters.stale += 1;
                self.pump_client(cx, net, id.0);
            }
            //= RFC 9111 (5.2.2.2): not what must be validated: 504.
            Some(_) => self.fail(cx, net, id, 504),
            None => self.fail(cx, net, id, status),
        }
    }

    /// Nothing will come of a request: its client gets an answer, or hears that the one it is getting has broken off.
    pub(super) fn fail(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: ExchangeId, status: u16) {
        let Some(exchange) = self.exchange(id) else { return };
        let server = exchange.server.take();
        match exchange.phase {
            Phase::Asked => {
                answers::own(exchange, status);
                self.counters.errors += 1;
            }
            Phase::Answering => {
                exchange.phase = Phase::Broken;
                let keeping = exchange.keeping.take();
                self.store.release(keeping.as_ref());
                self.counters.broken += 1;
            }
            Phase::Done | Phase::Broken => {}
        }
        if let Some(server) = server {
            self.leave_server(cx, net, server);
        }
        self.work.push_back(super::app::Work::Client(id.0));
    }

    /// This exchange, if its client is there.
    pub(super) fn exchange(&mut self, (socket, number): ExchangeId) -> Option<&mut Exchange> {
        self.clients.get_mut(socket)?.exchange(number)
    }
}
