//! The receiving end: opens a connection for each path, puts chunks into their order, acknowledges them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airloom_base::units::Octets;
use airloom_base::{
    App, AppParts, Body, ConfigError, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary,
};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use super::wire::{Acknowledgement, Chunk, Field, Hello};
use super::{LEAST_CHUNK, MOST_SUBFLOWS, MOST_WINDOW, PORT};
use crate::net::Connections;

/// Pieces that lie apart in the receive buffer: no more than there are chunks in it.
const MOST_PIECES: usize = (MOST_WINDOW / LEAST_CHUNK) as usize;
/// Octets of acknowledgements that a server leaves unread.
const MOST_UNREAD: usize = 1 << 20;

/// Gets a file over several connections at once, one for each path, as Multipath TCP does above its subflows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the server is: one address (or host) for each path; `striped-server` runs there. The far end if none is given.
    pub servers: Vec<String>,
    /// Its port.
    #[default(PORT)]
    pub port: u16,
    /// Octets of the file.
    #[default(Octets(1_000_000))]
    pub size: Octets,
    /// Octets that are held ahead of what is missing, of all connections together: at most 16 MiB.
    #[default(Octets(65_536))]
    pub window: Octets,
    /// When to begin.
    pub start: Duration,
    /// Begin later than `start` by a random time, uniform in 0 to this.
    pub spread: Duration,
}

/// A connection.
#[derive(Default)]
struct Subflow {
    header: Field<{ Chunk::LEN }>,
    /// The chunk that is coming, and octets of it still to come.
    coming: Option<(Chunk, u32)>,
    /// Octets that the socket had no room for.
    unsent: Vec<u8>,
}

/// The client.
#[derive(Default)]
pub struct Client {
    to: Vec<SocketAddr>,
    hello: Hello,
    begin: Option<Instant>,
    subflows: Connections<Subflow>,
    /// Everything below has come.
    below: u64,
    /// Pieces above: where each begins and ends.
    pieces: BTreeMap<u64, u64>,
    most_held: u64,
    held: u64,
    duplicates: u64,
    broken: u64,
    began: Instant,
    moved: Instant,
    longest_pause: Duration,
    end: Option<Instant>,
    failed: bool,
}

/// Builds the client from its table.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    let names: Vec<Option<&str>> = match config.servers.as_slice() {
        [] => vec![None],
        servers => servers.iter().map(|name| Some(name.as_str())).collect(),
    };
    let to = names
        .into_iter()
        .map(|name| Ok(SocketAddr::new(parts.server("servers", name)?, config.port)))
        .collect::<Result<_, ConfigError>>()?;
    let delay = Duration::from_nanos(parts.stream("start").below(config.spread.as_nanos()));
    let transfer = parts.stream("transfer").bits() as u32;
    Ok(Box::new(Client::new(&config, to, delay, transfer)?))
}

impl Client {
    /// A client that begins `delay` after the start its configuration says.
    ///
    /// # Errors
    /// The key that makes no sense.
    pub fn new(
        config: &Config,
        to: Vec<SocketAddr>,
        delay: Duration,
        transfer: u32,
    ) -> Result<Self, ConfigError> {
        ConfigError::when(to.len() > MOST_SUBFLOWS, "servers", format!("at most {MOST_SUBFLOWS} paths"))?;
        for (key, octets) in [("size", config.size.0), ("window", config.window.0)] {
            ConfigError::when(octets == 0, key, "must be at least 1B")?;
        }
        ConfigError::when(config.window.0 > MOST_WINDOW, "window", "at most 16MiB")?;
        Ok(Client {
            to,
            hello: Hello { transfer, size: config.size.0, window: config.window.0 },
            begin: Some(Instant::ZERO + config.start + delay),
            ..Client::default()
        })
    }

    fn begin(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if self.begin.is_none_or(|at| at > cx.now) {
            return;
        }
        self.begin = None;
        (self.began, self.moved) = (cx.now, cx.now);
        for to in self.to.clone() {
            let subflow = Subflow { unsent: self.hello.emit().to_vec(), ..Subflow::default() };
            let socket = net.connect(cx, to);
            self.subflows.insert(socket, subflow);
        }
    }

    fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(subflow) = self.subflows.get_mut(socket) else { return };
        while !subflow.unsent.is_empty() {
            let unsent = Body::Real(Bytes::copy_from_slice(&subflow.unsent));
            let Ok(taken) = net.write(cx, socket, unsent) else { return };
            subflow.unsent.drain(..taken.min(subflow.unsent.len()));
        }
    }

    fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        while let Some(subflow) = self.subflows.get_mut(socket) {
            let Some((chunk, left)) = &mut subflow.coming else {
                let Some(header) = subflow.header.read(|most| net.read(cx, socket, most)) else { break };
                let chunk = Chunk::parse(&header);
                subflow.coming = Some((chunk, chunk.len));
                if !self.may_come(chunk) {
                    return self.break_off(cx, net, socket);
                }
                continue;
            };
            while *left > 0 {
                let Some(body) = net.read(cx, socket, *left as usize) else { return };
                *left -= (body.len() as u32).min(*left);
            }
            let chunk = *chunk;
            subflow.coming = None;
            self.take(cx.now, chunk);
            self.acknowledge(cx, net, socket, chunk);
            if self.below == self.hello.size && self.end.is_none() {
                self.end = Some(cx.now);
                for socket in self.subflows.sockets() {
                    net.finish(cx, socket);
                }
            }
        }
    }

    /// Is it of the file, and in the window?
    fn may_come(&self, chunk: Chunk) -> bool {
        let window = self.below.saturating_add(self.hello.window);
        chunk.len > 0 && chunk.end() <= self.hello.size.min(window) && self.pieces.len() < MOST_PIECES
    }

    /// A chunk is whole.
    fn take(&mut self, now: Instant, chunk: Chunk) {
        let (mut from, mut to) = (chunk.offset, chunk.end());
        let is_known =
            to <= self.below || self.pieces.range(..=from).next_back().is_some_and(|(_, known)| to <= *known);
        if is_known {
            self.duplicates += 1;
            return;
        }
        // Joined with what it touches.
        while let Some((begin, end)) = self.pieces.range(..=to).next_back().map(|(b, e)| (*b, *e)) {
            if end < from {
                break;
            }
            self.pieces.remove(&begin);
            self.held -= end - begin;
            (from, to) = (from.min(begin), to.max(end));
        }
        if from <= self.below {
            self.below = to;
            self.longest_pause = self.longest_pause.max(now.since(self.moved));
            self.moved = now;
        } else {
            self.pieces.insert(from, to);
            self.held += to - from;
            self.most_held = self.most_held.max(self.held);
        }
    }

    fn acknowledge(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, chunk: Chunk) {
        let said = Acknowledgement { below: self.below, offset: chunk.offset }.emit();
        let Some(subflow) = self.subflows.get_mut(socket) else { return };
        subflow.unsent.extend_from_slice(&said);
        if subflow.unsent.len() > MOST_UNREAD {
            return self.break_off(cx, net, socket);
        }
        // After the end everything was said.
        if self.end.is_none() {
            self.write(cx, net, socket);
        }
    }

    fn break_off(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        self.broken += 1;
        net.reset(cx, socket);
        self.gone(cx.now, socket);
    }

    fn gone(&mut self, now: Instant, socket: SocketId) {
        let was_there = self.subflows.remove(socket).is_some();
        if was_there && self.subflows.is_empty() && self.end.is_none() {
            self.failed = true;
            self.longest_pause = self.longest_pause.max(now.since(self.moved));
        }
    }
}

impl App for Client {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.begin(cx, net);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Opened | SocketEvent::Writable if self.end.is_none() => self.write(cx, net, socket),
            SocketEvent::Readable(_) => self.read(cx, net, socket),
            SocketEvent::Finished => {
                self.read(cx, net, socket);
                if self.end.is_none() && self.subflows.get_mut(socket).is_some() {
                    self.break_off(cx, net, socket);
                }
            }
            SocketEvent::Closed(_) => {
                self.broken += u64::from(self.end.is_none());
                self.gone(cx.now, socket);
            }
            _ => {}
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.begin
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.begin(cx, net);
    }
    fn is_done(&self) -> bool {
        self.end.is_some() || self.failed
    }
    fn summarise(&self, out: &mut Summary) {
        let took = self.end.map(|end| (end - self.began).as_secs_f64());
        out.set("transfers", f64::from(u8::from(took.is_some())));
        out.set("transfers_failed", f64::from(u8::from(self.failed)));
        out.set("bytes", self.below as f64);
        out.set_some("transfer_mean_s", took);
        out.set_some("goodput_bit_s", took.filter(|s| *s > 0.0).map(|s| 8.0 * self.below as f64 / s));
        out.set("longest_pause_s", self.longest_pause.as_secs_f64());
        out.set("chunks_again", self.duplicates as f64);
        out.set("held_max_bytes", self.most_held as f64);
        out.set("subflows_broken", self.broken as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_window_full_of_every_other_least_chunk_breaks_nothing() {
        let config = Config { size: Octets(MOST_WINDOW), window: Octets(MOST_WINDOW), ..Config::default() };
        let mut client = Client::new(&config, Vec::new(), Duration::ZERO, 7).expect("valid");
        let chunks = MOST_WINDOW / LEAST_CHUNK;
        for first in [1, 0] {
            for n in (first..chunks).step_by(2) {
                let chunk = Chunk { offset: n * LEAST_CHUNK, len: LEAST_CHUNK as u32 };
                assert!(client.may_come(chunk), "{n} of {chunks}");
                client.take(Instant::ZERO, chunk);
            }
        }
        assert_eq!((client.below, client.held, client.most_held), (MOST_WINDOW, 0, MOST_WINDOW / 2));
    }
}
