//! The proxy on a simulated host.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use airloom_apps::net::Connections;
use airloom_base::lookup::Table;
use airloom_base::service::Passing;
use airloom_base::{
    App, AppParts, CloseReason, ConfigError, Cx, Instant, SocketEvent, SocketId, Sockets, Summary,
};
use serde_json::Value;

use super::config::{Config, Connects, Mode};
use super::pair::{Onward, Pair, Side};
use crate::relay::Work;

/// The port of an addressed proxy that names none.
const HTTP: u16 = 80;

/// What it did since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Clients that came.
    pub accepted: u64,
    /// Clients for which there was no room.
    pub refused: u64,
    /// Connections onward that opened.
    pub opened: u64,
    /// Connections onward that did not.
    pub failed: u64,
    /// Pairs that were reset.
    pub reset: u64,
    /// Pairs on which nothing moved for too long.
    pub idle: u64,
    /// Octets from clients to servers.
    pub up: u64,
    /// Octets from servers to clients.
    pub down: u64,
    /// The most that was held of one direction.
    pub peak: usize,
    /// The most pairs at a time.
    pub most: usize,
    /// What opening connections onward took, all together.
    pub opening_s: f64,
}

/// The proxy as an application of a host.
#[derive(Default, getset::Getters)]
pub struct SplitTcp {
    config: Config,
    /// Addressed: whom it connects to.
    server: Option<IpAddr>,
    pairs: Table<u64, Pair>,
    /// The pair and side of each socket.
    sides: Connections<(u64, Side)>,
    next: u64,
    work: Work,
    /// When which way of which pair can go on: only where reads cost time.
    ready: BTreeSet<(Instant, u64, bool)>,
    /// When to look whether something has moved on a pair.
    quiet: BTreeSet<(Instant, u64)>,
    /// What it did so far.
    #[getset(get = "pub")]
    counters: Counters,
}

/// Builds the proxy from its table.
///
/// # Errors
/// [`ConfigError`] with the key.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    let server = match config.mode {
        Mode::Transparent => None,
        Mode::Addressed => {
            let server = parts.server("server", config.server.as_deref())?;
            if (parts.resolve)(parts.host) == Some(server) {
                return Err(ConfigError::at("server", "is the host of the proxy itself"));
            }
            Some(server)
        }
    };
    Ok(Box::new(SplitTcp::new(config, server)?))
}

impl SplitTcp {
    /// A proxy; an addressed one needs its `server`.
    ///
    /// # Errors
    /// [`ConfigError`] for settings that no proxy can work with.
    pub fn new(config: Config, server: Option<IpAddr>) -> Result<SplitTcp, ConfigError> {
        config.check()?;
        if config.mode == Mode::Addressed && server.is_none() {
            return Err(ConfigError::at("server", "no host to connect to; name one"));
        }
        let size = |octets: u64| usize::try_from(octets).unwrap_or(usize::MAX);
        let work = Work {
            read_size: size(config.read_size.0),
            buffer: size(config.buffer.0),
            cost: config.cost_per_read,
            busy: Instant::ZERO,
        };
        Ok(SplitTcp { config, server, work, ..SplitTcp::default() })
    }

    /// Pairs that are open.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// A client has come, or wants to: its pair, if there is room for it.
    fn arrive(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        at: SocketAddr,
    ) -> Option<u64> {
        if self.pairs.len() >= self.config.max_connections as usize {
            self.counters.refused += 1;
            net.reset(cx, socket);
            return None;
        }
        self.counters.accepted += 1;
        let to =
            SocketAddr::new(self.server.unwrap_or(at.ip()), self.config.server_port.unwrap_or(at.port()));
        let id = self.next;
        self.next += 1;
        self.pairs.insert(id, Pair::new(socket, to, cx.now));
        if let Some(idle) = self.config.idle {
            self.quiet.insert((cx.now + idle, id));
        }
        self.sides.insert(socket, (id, Side::Client));
        self.counters.most = self.counters.most.max(self.pairs.len());
        Some(id)
    }

    /// Data can flow between the client and the proxy.
    fn accept(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, at: SocketAddr) {
        let known = self.sides.get_mut(socket).map(|(id, _)| *id);
        let Some(id) = known.or_else(|| self.arrive(cx, net, socket, at)) else { return };
        if let Some(pair) = self.pairs.get_mut(&id) {
            pair.client_open = true;
        }
        if self.config.connects == Connects::OnAccept {
            self.connect(cx, net, id);
        }
        self.pump(cx, net, id, Side::Server);
    }

    fn connect(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: u64) {
        let Some(pair) = self.pairs.get_mut(&id).filter(|p| p.server == Onward::Not) else { return };
        let socket = net.connect(cx, pair.to);
        pair.server = Onward::Asked(socket, cx.now);
        self.sides.insert(socket, (id, Side::Server));
    }

    /// Moves what can be moved in the direction that begins at `side`.
    fn pump(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: u64, side: Side) {
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        let before = pair.from(side).passed;
        pair.pump(cx, net, side, &mut self.work);
        let way = pair.from(side);
        let passed = way.passed - before;
        if let Some(at) = way.ready().filter(|at| *at > cx.now) {
            self.ready.insert((at, id, side == Side::Client));
        }
        self.counters.peak = self.counters.peak.max(way.peak);
        match side {
            Side::Client => self.counters.up += passed,
            Side::Server => self.counters.down += passed,
        }
    }

    fn opened(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: u64) {
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        if let Onward::Asked(socket, since) = pair.server {
            pair.server = Onward::Open(socket);
            self.counters.opened += 1;
            self.counters.opening_s += cx.now.since(since).as_secs_f64();
            if let Some(client) = pair.client {
                net.admit(cx, client);
            }
        }
        self.pump(cx, net, id, Side::Client);
    }

    /// A side is over: the other hears of it in the way it heard of it itself.
    fn closed(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: u64, side: Side, why: CloseReason) {
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        let was_open = !matches!(pair.server, Onward::Asked(..));
        match side {
            Side::Client => pair.client = None,
            Side::Server => pair.server = Onward::Closed,
        }
        if why == CloseReason::Finished {
            // All it sent was read, or waits for room here; what it was to get it has got.
            pair.from(side).end();
            if side == Side::Client && pair.server == Onward::Not {
                pair.server = Onward::Closed;
            }
            self.pump(cx, net, id, side);
        } else {
            self.counters.reset += u64::from(was_open);
            self.counters.failed += u64::from(!was_open && side == Side::Server);
            self.abandon(cx, net, id, side.other());
        }
        self.settle(id);
    }

    /// Resets what is left of a pair.
    fn abandon(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: u64, side: Side) {
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        if let Some(socket) = pair.socket(side) {
            net.reset(cx, socket);
            self.sides.remove(socket);
        }
        (pair.client, pair.server) = (None, Onward::Closed);
    }

    /// Resets both sides of a pair.
    fn end(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: u64) {
        let Some(pair) = self.pairs.get(&id) else { return };
        for socket in [Side::Client, Side::Server].into_iter().filter_map(|side| pair.socket(side)) {
            net.reset(cx, socket);
            self.sides.remove(socket);
        }
        self.pairs.remove(&id);
    }

    /// Forgets a pair that is over.
    fn settle(&mut self, id: u64) {
        if self.pairs.get(&id).is_some_and(Pair::is_over) {
            self.pairs.remove(&id);
        }
    }
}

impl App for SplitTcp {
    fn stream_ports(&self) -> Vec<u16> {
        match self.config.mode {
            Mode::Transparent => Vec::new(),
            Mode::Addressed => self.config.ports.clone().unwrap_or_else(|| vec![HTTP]),
        }
    }

    fn passing(&self) -> Passing {
        match (self.config.mode, &self.config.ports) {
            (Mode::Addressed, _) => Passing::None,
            (Mode::Transparent, None) => Passing::All,
            (Mode::Transparent, Some(ports)) => Passing::Ports(ports.clone()),
        }
    }

    fn decides(&self) -> bool {
        self.config.connects == Connects::BeforeAnswering
    }

    fn start(&mut self, _cx: &mut Cx, _net: &mut dyn Sockets) {}

    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { at, .. } => return self.accept(cx, net, socket, at),
            SocketEvent::Asked { at, .. } => {
                if let Some(id) = self.arrive(cx, net, socket, at) {
                    self.connect(cx, net, id);
                }
                return;
            }
            _ => {}
        }
        let Some(&mut (id, side)) = self.sides.get_mut(socket) else { return };
        match event {
            SocketEvent::Asked { .. } | SocketEvent::Accepted { .. } | SocketEvent::Stream(_) => {}
            SocketEvent::Opened => self.opened(cx, net, id),
            SocketEvent::Readable(_) => {
                self.connect(cx, net, id);
                self.pump(cx, net, id, side);
            }
            SocketEvent::Writable => self.pump(cx, net, id, side.other()),
            SocketEvent::Finished => {
                self.connect(cx, net, id);
                if let Some(pair) = self.pairs.get_mut(&id) {
                    pair.from(side).end();
                }
                self.pump(cx, net, id, side);
            }
            SocketEvent::Closed(why) => {
                self.sides.remove(socket);
                self.closed(cx, net, id, side, why);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let ready = self.ready.first().map(|(at, ..)| *at);
        let quiet = self.quiet.first().map(|(at, _)| *at);
        [ready, quiet].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(&(at, id, is_up)) = self.ready.first().filter(|(at, ..)| *at <= cx.now) {
            self.ready.remove(&(at, id, is_up));
            self.pump(cx, net, id, if is_up { Side::Client } else { Side::Server });
        }
        while let Some(&(at, id)) = self.quiet.first().filter(|(at, _)| *at <= cx.now) {
            self.quiet.remove(&(at, id));
            let (Some(pair), Some(idle)) = (self.pairs.get_mut(&id), self.config.idle) else { continue };
            let due = pair.moved + idle;
            if due > cx.now {
                self.quiet.insert((due, id));
                continue;
            }
            self.counters.idle += 1;
            self.end(cx, net, id);
        }
    }

    fn summarise(&self, out: &mut Summary) {
        let counted = &self.counters;
        out.set_all([
            ("connections", counted.accepted),
            ("connections_refused", counted.refused),
            ("connections_peak", counted.most as u64),
            ("onward_opened", counted.opened),
            ("onward_failed", counted.failed),
            ("resets", counted.reset),
            ("idle", counted.idle),
            ("uplink_bytes", counted.up),
            ("downlink_bytes", counted.down),
            ("buffered_peak_bytes", counted.peak as u64),
        ]);
        out.set("onward_open_mean_s", counted.opening_s / counted.opened as f64);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_proxy_does_not_connect_to_its_own_host() {
        let address = |name: &str| match name {
            "gateway" => Some([10, 0, 0, 1].into()),
            "origin" => Some([10, 0, 0, 2].into()),
            name => name.parse().ok(),
        };
        let parts = AppParts {
            seed: 1,
            host: "gateway",
            resolve: &address,
            hosts: &Vec::new,
            addresses: &Vec::new,
            far_end: None,
            proxy: &|_| None,
            transports: &[],
        };
        let of = |server: &str| build(&json!({ "mode": "addressed", "server": server }), &parts);
        assert!(of("origin").is_ok());
        for own in ["gateway", "10.0.0.1"] {
            assert_eq!(of(own).err().map(|error| error.path), Some(vec!["server".to_owned()]), "{own}");
        }
    }
}
