//! The asking end of bulk transfers.

use std::net::SocketAddr;

use airloom_base::units::Octets;
use airloom_base::{
    App, AppParts, ConfigError, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary,
};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use super::request::{LEN, MAX_PADDED, Request};
use super::{PORT, Reaction, SOURCE, clamp};
use crate::net::{Connections, Outgoing};
use crate::times::Times;

/// Which way the data flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// From the server to the client.
    #[default]
    Get,
    /// From the client to the server.
    Put,
}

/// Moves a number of octets over one or several connections, one after another or side by side, with no
/// application protocol in the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host to talk to, which runs `bulk-server`; the far end if not given.
    pub server: Option<String>,
    /// Its port.
    #[default(PORT)]
    pub port: u16,
    /// Which way the data flows.
    pub mode: Mode,
    /// Octets of one transfer.
    #[default(Octets(1_000_000))]
    pub size: Octets,
    /// Octets of one request, at least 16.
    #[default(Octets(LEN as u64))]
    pub request: Octets,
    /// Number of transfers in all.
    #[default(1)]
    pub repeat: u32,
    /// How many of them run side by side.
    #[default(1)]
    pub parallel: u32,
    /// One connection carries all the transfers of its lane; otherwise each transfer has a connection of its own,
    /// which the server closes.
    pub keep: bool,
    /// When to begin.
    pub start: Duration,
    /// Begin later than `start` by a random time, uniform in 0 to this.
    pub spread: Duration,
    /// How long after octets have arrived the client reads them, as a program that has to be woken does.
    pub reaction: Duration,
}

/// One transfer under way.
struct Transfer {
    outgoing: Outgoing,
    /// Octets of the answer still to come.
    left: u64,
    began: Instant,
}

/// The client.
pub struct Client {
    to: SocketAddr,
    request: Request,
    octets: Bytes,
    repeat: u32,
    parallel: u32,
    begin: Option<Instant>,
    reaction: Reaction,
    connections: Connections<Transfer>,
    started: u32,
    failed: u32,
    times: Times,
    first_start: Option<Instant>,
    last_end: Instant,
}

/// Builds the client from its table.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    let server = parts.server("server", config.server.as_deref())?;
    let delay = Duration::from_nanos(parts.stream("start").below(config.spread.as_nanos()));
    Ok(Box::new(Client::new(&config, SocketAddr::new(server, config.port), delay)?))
}

impl Client {
    /// A client that begins `delay` after the start its configuration says.
    pub fn new(config: &Config, to: SocketAddr, delay: Duration) -> Result<Self, ConfigError> {
        let padded = u32::try_from(config.request.0)
            .ok()
            .filter(|n| (LEN as u32..=MAX_PADDED).contains(n))
            .ok_or_else(|| {
            ConfigError::at(
                "request",
                format!("{} is not between {} and {}", config.request, LEN, MAX_PADDED),
            )
        })?;
        for (key, number) in [("repeat", config.repeat), ("parallel", config.parallel)] {
            ConfigError::when(number == 0, key, "must be at least 1")?;
        }
        ConfigError::when(config.size.0 == 0, "size", "must be at least 1B")?;
        let request =
            Request { put: config.mode == Mode::Put, keep: config.keep, padded, size: config.size.0 };
        Ok(Client {
            to,
            request,
            octets: Bytes::copy_from_slice(&request.emit()),
            repeat: config.repeat,
            parallel: config.parallel,
            begin: Some(Instant::ZERO + config.start + delay),
            reaction: Reaction::new(config.reaction),
            connections: Connections::default(),
            started: 0,
            failed: 0,
            times: Times::default(),
            first_start: None,
            last_end: Instant::ZERO,
        })
    }

    fn begin(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if self.begin.is_some_and(|at| at <= cx.now) {
            self.begin = None;
            self.first_start = Some(cx.now);
            for _ in 0..self.parallel.min(self.repeat) {
                self.next(cx, net, None);
            }
        }
    }

    /// Starts the next transfer, if one is left: on `kept`, or on a new connection.
    fn next(&mut self, cx: &mut Cx, net: &mut dyn Sockets, kept: Option<SocketId>) {
        if self.started == self.repeat {
            if let Some(socket) = kept {
                net.finish(cx, socket);
            }
            return;
        }
        self.started += 1;
        let padding = u64::from(self.request.padded) - LEN as u64;
        let (data, left) = if self.request.put { (self.request.size, 1) } else { (0, self.request.size) };
        let transfer = Transfer {
            outgoing: Outgoing::new(self.octets.clone(), SOURCE, padding.saturating_add(data)),
            left,
            began: cx.now,
        };
        let socket = kept.unwrap_or_else(|| net.connect(cx, self.to));
        self.connections.insert(socket, transfer);
        if kept.is_some() {
            self.write(cx, net, socket);
        }
    }

    fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        if let Some(transfer) = self.connections.get_mut(socket) {
            transfer.outgoing.pump(cx, net, socket);
        }
    }

    /// Reads all of the `octets` that are there, over the ends of transfers: only then is there another `Readable`.
    fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, mut octets: u32) {
        while let Some(transfer) = self.connections.get_mut(socket) {
            while transfer.left > 0 {
                if octets == 0 {
                    return;
                }
                let Some(body) = net.read(cx, socket, clamp(transfer.left)) else { return };
                transfer.left -= body.len() as u64;
                octets = octets.saturating_sub(body.len() as u32);
            }
            self.complete(cx, net, socket);
        }
    }

    fn complete(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(transfer) = self.connections.remove(socket) else { return };
        self.times.add(cx.now - transfer.began);
        self.last_end = cx.now;
        if self.request.keep {
            self.next(cx, net, Some(socket));
        } else {
            net.finish(cx, socket);
            self.next(cx, net, None);
        }
    }

    /// The connection ended; a transfer that was not complete has failed.
    fn ended(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, open: bool) {
        if self.connections.remove(socket).is_none() {
            return;
        }
        self.failed += 1;
        if open {
            net.reset(cx, socket);
        }
        self.next(cx, net, None);
    }
}

impl App for Client {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.begin(cx, net);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Opened | SocketEvent::Writable => self.write(cx, net, socket),
            SocketEvent::Readable(_) if self.reaction.waits(cx.now, socket) => {}
            SocketEvent::Readable(octets) => self.read(cx, net, socket, octets),
            SocketEvent::Finished => self.ended(cx, net, socket, true),
            SocketEvent::Closed(_) => self.ended(cx, net, socket, false),
            SocketEvent::Asked { .. } | SocketEvent::Accepted { .. } | SocketEvent::Stream(_) => {}
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        // Nothing is there to be read before it begins.
        self.begin.or_else(|| self.reaction.next())
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.begin(cx, net);
        while let Some(socket) = self.reaction.take(cx.now) {
            self.read(cx, net, socket, u32::MAX);
        }
    }
    fn is_done(&self) -> bool {
        self.times.count() + u64::from(self.failed) == u64::from(self.repeat)
    }
    fn summarise(&self, out: &mut Summary) {
        let transfers = self.times.count();
        let bytes = transfers * self.request.size;
        out.set("transfers", transfers as f64);
        out.set("transfers_failed", f64::from(self.failed));
        out.set("bytes", bytes as f64);
        self.times.summarise("transfer", out);
        let first = self.first_start.filter(|_| transfers > 0);
        let span = first.map(|first| (self.last_end - first).as_secs_f64());
        out.set_some("completion_s", span);
        out.set_some("goodput_bit_s", span.map(|span| 8.0 * bytes as f64 / span));
    }
}
