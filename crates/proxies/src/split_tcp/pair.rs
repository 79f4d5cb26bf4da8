//! A client's connection and the one onward, with a way in each direction between them.

use std::collections::VecDeque;

use airloom_base::{Body, Cx, Instant, SocketId, Sockets};

/// A side of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Towards the client.
    Client,
    /// Towards the server.
    Server,
}

impl Side {
    pub(super) const fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// The proxy's one processor, and what its reads cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) read_size: usize,
    pub(super) buffer: usize,
    pub(super) cost: airloom_base::Duration,
    /// Until when it is busy with what was read before.
    pub(super) busy: Instant,
}

/// What is on its way through the proxy in one direction.
#[derive(Default)]
pub(super) struct Way {
    /// In order, with the moment from which it can be written.
    held: VecDeque<(Instant, Body)>,
    octets: usize,
    /// The source sends no more.
    ended: bool,
    /// That was passed on.
    finished: bool,
    /// Everything that was ever passed on.
    pub(super) passed: u64,
    /// The most that was held.
    pub(super) peak: usize,
}

impl Way {
    /// The source sends no more.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Reads what there is room for. True if something was read.
    fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, from: SocketId, work: &mut Work) -> bool {
        let before = self.octets;
        while self.octets < work.buffer {
            let most = work.read_size.min(work.buffer - self.octets);
            let Some(body) = net.read(cx, from, most) else { break };
            work.busy = work.busy.max(cx.now) + work.cost;
            self.octets += body.len();
            self.held.push_back((work.busy, body));
        }
        self.peak = self.peak.max(self.octets);
        self.octets > before
    }

    /// Writes what is ready and taken. True if something was written.
    fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets, to: SocketId) -> bool {
        let before = self.octets;
        while let Some((ready, body)) = self.held.front_mut() {
            if *ready > cx.now {
                break;
            }
            let taken = net.write(cx, to, body.clone()).min(body.len());
            self.octets -= taken;
            if taken < body.len() {
                drop(body.split_to(taken));
                break;
            }
            self.held.pop_front();
        }
        if self.ended && self.held.is_empty() && !self.finished {
            self.finished = true;
            net.finish(cx, to);
        }
        self.passed += (before - self.octets) as u64;
        self.octets < before
    }

    /// When something that is held can be written which cannot yet.
    pub(super) fn ready(&self) -> Option<Instant> {
        self.held.front().map(|(ready, _)| *ready)
    }
}

/// How far the connection onward is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onward {
    /// Not asked for.
    Not,
    /// Asked for.
    Asked(SocketId, Instant),
    Open(SocketId),
    /// Over.
    Closed,
}

/// See the module.
pub(super) struct Pair {
    /// The client's socket while it is there.
    pub(super) client: Option<SocketId>,
    /// Can data flow between it and the client?
    pub(super) client_open: bool,
    pub(super) server: Onward,
    /// Where the client meant to go.
    pub(super) to: std::net::SocketAddr,
    pub(super) up: Way,
    pub(super) down: Way,
}

impl Pair {
    pub(super) fn new(client: SocketId, to: std::net::SocketAddr) -> Pair {
        Pair {
            client: Some(client),
            client_open: false,
            server: Onward::Not,
            to,
            up: Way::default(),
            down: Way::default(),
        }
    }

    /// The direction that begins at `side`.
    pub(super) fn from(&mut self, side: Side) -> &mut Way {
        match side {
            Side::Client => &mut self.up,
            Side::Server => &mut self.down,
        }
    }

    /// The socket of a side, if it is there.
    pub(super) fn socket(&self, side: Side) -> Option<SocketId> {
        match (side, self.server) {
            (Side::Client, _) => self.client,
            (Side::Server, Onward::Asked(socket, _) | Onward::Open(socket)) => Some(socket),
            (Side::Server, Onward::Not | Onward::Closed) => None,
        }
    }

    /// Moves what can be moved in the direction that begins at `side`.
    pub(super) fn pump(&mut self, cx: &mut Cx, net: &mut dyn Sockets, side: Side, work: &mut Work) {
        let from = self.socket(side);
        let to = match side {
            Side::Client => {
                if let Onward::Open(socket) = self.server {
                    Some(socket)
                } else {
                    None
                }
            }
            Side::Server => self.client.filter(|_| self.client_open),
        };
        let way = self.from(side);
        loop {
            let has_read = from.is_some_and(|from| way.read(cx, net, from, work));
            let has_written = to.is_some_and(|to| way.write(cx, net, to));
            if !has_read && !has_written {
                break;
            }
        }
    }

    /// Both sides are over.
    pub(super) fn is_over(&self) -> bool {
        self.client.is_none() && self.server == Onward::Closed
    }
}
