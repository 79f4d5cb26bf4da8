//! A client's connection and the one onward, with a way in each direction between them.

use airloom_base::{Cx, Instant, SocketId, Sockets};

use crate::relay::{Relay, Work};

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
    pub(super) up: Relay,
    pub(super) down: Relay,
    /// When something was read or written last.
    pub(super) moved: Instant,
}

impl Pair {
    pub(super) fn new(client: SocketId, to: std::net::SocketAddr, now: Instant) -> Pair {
        Pair {
            client: Some(client),
            client_open: false,
            server: Onward::Not,
            to,
            up: Relay::default(),
            down: Relay::default(),
            moved: now,
        }
    }

    /// The direction that begins at `side`.
    pub(super) fn from(&mut self, side: Side) -> &mut Relay {
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
        let now = cx.now;
        if self.from(side).pump(cx, net, from, to, work) {
            self.moved = now;
        }
    }

    /// Both sides are over.
    pub(super) fn is_over(&self) -> bool {
        self.client.is_none() && self.server == Onward::Closed
    }
}
