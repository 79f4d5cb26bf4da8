//! The sending end: which chunk goes over which connection, and what goes again over another one.
//!
//! It shares with the server of `bulk` what moves octets (`Outgoing`). There the state is a connection's, which is all of a transfer; here it is
//! a transfer's, and what a connection held may leave by any other one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use airloom_base::units::Octets;
use airloom_base::{App, ConfigError, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::{Acknowledgement, Chunk, Field, Hello};
use super::{LEAST_CHUNK, MOST_SUBFLOWS, MOST_WINDOW, PORT, SOURCE};
use crate::net::Outgoing;

/// Transfers at a time.
const MOST_TRANSFERS: usize = 256;
/// A subflow is silent after so many of its round trips, at least and at most after these times.
const ROUND_TRIPS: u64 = 2;
const LEAST_PATIENCE: Duration = Duration::from_millis(500);
const MOST_PATIENCE: Duration = Duration::from_secs(60);

/// Sends files over several connections at once: to `striped` clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Port to listen on.
    pub port: u16,
    /// Octets that go over one connection as a piece, with a header of 12: less than a segment takes. 256 to 1 MiB.
    pub chunk: Octets,
    /// Octets that a connection carries at most without an answer.
    pub ahead: Octets,
    /// Is what a silent connection holds sent again over others?
    pub again: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig { port: PORT, chunk: Octets(1400), ahead: Octets(4200), again: true }
    }
}

/// A chunk on its way.
struct Sent {
    chunk: Chunk,
    at: Instant,
}

/// A connection.
struct Subflow {
    socket: SocketId,
    hello: Field<{ Hello::LEN }>,
    /// Of which transfer, once it has said so.
    transfer: Option<u32>,
    acknowledgement: Field<{ Acknowledgement::LEN }>,
    /// What is being written.
    outgoing: Outgoing,
    is_writing: bool,
    sent: VecDeque<Sent>,
    /// Smoothed, from the first octet of a chunk to its acknowledgement.
    round_trip: Option<Duration>,
    /// Since when nothing was acknowledged, though something is on its way.
    since: Instant,
    is_silent: bool,
}

impl Subflow {
    fn new(socket: SocketId) -> Subflow {
        Subflow {
            socket,
            hello: Field::default(),
            transfer: None,
            acknowledgement: Field::default(),
            outgoing: Outgoing::new(Bytes::new(), SOURCE, 0),
            is_writing: false,
            sent: VecDeque::new(),
            round_trip: None,
            since: Instant::ZERO,
            is_silent: false,
        }
    }

    fn has_room(&self, ahead: u64, len: u64) -> bool {
        let waiting: u64 = self.sent.iter().map(|sent| u64::from(sent.chunk.len)).sum();
        !self.is_writing && !self.is_silent && (waiting == 0 || waiting + len <= ahead)
    }

    fn patience(&self) -> Duration {
        let trips = self.round_trip.map_or(MOST_PATIENCE, |trip| trip * ROUND_TRIPS);
        trips.clamp(LEAST_PATIENCE, MOST_PATIENCE)
    }

    /// When it will have been silent for too long.
    fn deadline(&self) -> Option<Instant> {
        (!self.is_silent && !self.sent.is_empty()).then(|| self.since + self.patience())
    }

    fn measure(&mut self, trip: Duration) {
        self.round_trip = Some(match self.round_trip {
            None => trip,
            Some(before) => (before * 7 + trip) / 8,
        });
    }
}

/// A file on its way.
#[derive(Default)]
struct Transfer {
    hello: Hello,
    /// What was given to a subflow once.
    next: u64,
    /// Everything below was acknowledged, and chunks above that begin there.
    below: u64,
    arrived: BTreeSet<u64>,
    /// Chunks whose subflow went silent, by where they begin.
    again: BTreeMap<u64, u32>,
}

impl Transfer {
    fn needs(&self, chunk: Chunk) -> bool {
        chunk.end() > self.below && !self.arrived.contains(&chunk.offset)
    }

    /// The next chunk to be sent.
    fn next_chunk(&mut self, longest: u64) -> Option<Chunk> {
        while let Some((offset, len)) = self.again.pop_first() {
            let chunk = Chunk { offset, len };
            if self.needs(chunk) {
                return Some(chunk);
            }
        }
        let end = self.hello.size.min(self.below.saturating_add(self.hello.window));
        let len = longest.min(end.saturating_sub(self.next));
        // Not in crumbs: what is left of the window is waited for, but not what is left of the file.
        let is_whole = len == longest || self.next + len == self.hello.size;
        if len == 0 || (!is_whole && self.next > self.below) {
            return None;
        }
        let chunk = Chunk { offset: self.next, len: len as u32 };
        self.next += len;
        Some(chunk)
    }

    fn acknowledged(&mut self, said: Acknowledgement) {
        self.below = self.below.max(said.below.min(self.next));
        if said.offset >= self.below && said.offset < self.next {
            self.arrived.insert(said.offset);
        }
        self.arrived = self.arrived.split_off(&self.below);
    }
}

/// The server.
#[derive(Default)]
pub struct Server {
    config: ServerConfig,
    /// In the order in which they came.
    subflows: Vec<Subflow>,
    transfers: BTreeMap<u32, Transfer>,
    accepted: u64,
    malformed: u64,
    again: u64,
    silences: u64,
}

impl Server {
    /// A server that has not been asked for anything.
    ///
    /// # Errors
    /// The key that makes no sense.
    pub fn new(config: ServerConfig) -> Result<Self, ConfigError> {
        ConfigError::when(!(LEAST_CHUNK..=1 << 20).contains(&config.chunk.0), "chunk", "256B to 1MiB")?;
        Ok(Server { config, ..Server::default() })
    }

    fn subflow_of(&self, socket: SocketId) -> Option<usize> {
        self.subflows.iter().position(|subflow| subflow.socket == socket)
    }

    fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        while let Some(place) = self.subflow_of(socket) {
            let subflow = &mut self.subflows[place];
            let Some(transfer) = subflow.transfer else {
                let Some(octets) = subflow.hello.read(|most| net.read(cx, socket, most)) else { return };
                match Hello::parse(&octets).filter(|hello| self.admits(hello)) {
                    Some(hello) => self.join(place, hello),
                    None => return self.refuse(cx, net, place),
                }
                continue;
            };
            let Some(octets) = subflow.acknowledgement.read(|most| net.read(cx, socket, most)) else {
                return;
            };
            let said = Acknowledgement::parse(&octets);
            // Chunks of a connection arrive in the order in which they were written.
            let sent = subflow.sent.pop_front().filter(|sent| sent.chunk.offset == said.offset);
            let Some(Sent { at, .. }) = sent else { return self.refuse(cx, net, place) };
            subflow.measure(cx.now.since(at));
            subflow.since = cx.now;
            let was_silent = std::mem::replace(&mut subflow.is_silent, false);
            if let Some(transfer) = self.transfers.get_mut(&transfer) {
                transfer.acknowledged(said);
                if was_silent {
                    // The rest of what it holds comes too: what nobody else has taken yet stays with it.
                    for sent in &subflow.sent {
                        transfer.again.remove(&sent.chunk.offset);
                    }
                }
            }
        }
    }

    /// Is there room for one more of this transfer, and for what it has acknowledged out of order?
    fn admits(&self, hello: &Hello) -> bool {
        if hello.window > MOST_WINDOW {
            return false;
        }
        let others = self.subflows.iter().filter(|s| s.transfer == Some(hello.transfer)).count();
        match self.transfers.get(&hello.transfer) {
            Some(known) => known.hello == *hello && others < MOST_SUBFLOWS,
            None => self.transfers.len() < MOST_TRANSFERS,
        }
    }

    fn join(&mut self, place: usize, hello: Hello) {
        self.subflows[place].transfer = Some(hello.transfer);
        self.transfers.entry(hello.transfer).or_insert_with(|| Transfer { hello, ..Default::default() });
    }

    fn refuse(&mut self, cx: &mut Cx, net: &mut dyn Sockets, place: usize) {
        self.malformed += 1;
        net.reset(cx, self.subflows[place].socket);
        self.leave(place);
    }

    /// A connection is gone: what it held is for the others.
    fn leave(&mut self, place: usize) {
        let gone = self.subflows.remove(place);
        let Some(number) = gone.transfer else { return };
        if self.subflows.iter().all(|subflow| subflow.transfer != Some(number)) {
            self.transfers.remove(&number);
        } else if let Some(transfer) = self.transfers.get_mut(&number) {
            let chunks = gone.sent.into_iter().map(|sent| (sent.chunk.offset, sent.chunk.len));
            transfer.again.extend(chunks);
        }
    }

    /// Gives chunks to connections that have room: to the one that answers soonest first.
    fn send(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        for (number, transfer) in &mut self.transfers {
            loop {
                let longest = self.config.chunk.0;
                let ready = self.subflows.iter_mut().filter(|subflow| {
                    subflow.transfer == Some(*number) && subflow.has_room(self.config.ahead.0, longest)
                });
                // One that never answered may be the best: it is tried first.
                let best = ready.min_by_key(|subflow| subflow.round_trip.unwrap_or(Duration::ZERO));
                let Some(subflow) = best else { break };
                let before = transfer.next;
                let Some(chunk) = transfer.next_chunk(longest) else { break };
                self.again += u64::from(chunk.offset < before);
                if subflow.sent.is_empty() {
                    subflow.since = cx.now;
                }
                let head = Bytes::copy_from_slice(&chunk.emit());
                subflow.outgoing = Outgoing::piece(head, SOURCE, chunk.offset, u64::from(chunk.len));
                subflow.sent.push_back(Sent { chunk, at: cx.now });
                subflow.is_writing = !subflow.outgoing.pump(cx, net, subflow.socket);
            }
        }
    }

    /// Connections that were silent for too long.
    fn find_silent(&mut self, now: Instant) {
        for subflow in &mut self.subflows {
            if subflow.deadline().is_none_or(|at| at > now) {
                continue;
            }
            subflow.is_silent = true;
            self.silences += 1;
            let transfer = subflow.transfer.and_then(|number| self.transfers.get_mut(&number));
            if let Some(transfer) = transfer.filter(|_| self.config.again) {
                let lost = subflow.sent.iter().map(|sent| sent.chunk).filter(|chunk| transfer.needs(*chunk));
                let lost: Vec<_> = lost.map(|chunk| (chunk.offset, chunk.len)).collect();
                transfer.again.extend(lost);
            }
        }
    }
}

impl App for Server {
    fn stream_ports(&self) -> Vec<u16> {
        vec![self.config.port]
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { .. } => {
                self.accepted += 1;
                if self.subflows.len() >= MOST_TRANSFERS * MOST_SUBFLOWS {
                    return net.reset(cx, socket);
                }
                self.subflows.push(Subflow::new(socket));
                self.read(cx, net, socket);
            }
            SocketEvent::Readable(_) => self.read(cx, net, socket),
            SocketEvent::Writable => {
                if let Some(place) = self.subflow_of(socket) {
                    let subflow = &mut self.subflows[place];
                    subflow.is_writing = !subflow.outgoing.pump(cx, net, socket);
                }
            }
            SocketEvent::Finished => {
                self.read(cx, net, socket);
                if let Some(place) = self.subflow_of(socket) {
                    net.finish(cx, socket);
                    self.leave(place);
                }
            }
            SocketEvent::Closed(_) => {
                if let Some(place) = self.subflow_of(socket) {
                    self.leave(place);
                }
            }
            SocketEvent::Asked { .. } | SocketEvent::Opened | SocketEvent::Stream(_) => {}
        }
        self.send(cx, net);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.subflows.iter().filter_map(Subflow::deadline).min()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.find_silent(cx.now);
        self.send(cx, net);
    }
    fn summarise(&self, out: &mut Summary) {
        out.set("connections", self.accepted as f64);
        out.set("requests_malformed", self.malformed as f64);
        out.set("chunks_sent_again", self.again as f64);
        out.set("subflows_silent", self.silences as f64);
    }
}
