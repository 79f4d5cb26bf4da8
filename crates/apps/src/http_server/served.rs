//! What connections of every kind have in common: what they are lent, and what they want of the server.

use airloom_base::{Cx, Duration, Instant, SocketEvent, SocketId, Sockets};

use super::Config;
use crate::net;

/// How long the server reads on after it finished its side, before it resets the connection.
//= RFC 9112 (9.6): a server half-closes, reads on until the client closes or for a while, then closes fully.
// Servers close after a few seconds, but that is no reset: Linux then keeps the connection in FIN-WAIT-2 for 60 s. A proxy that
// has taken a response off the server and passes it on over a slow link finishes its side that much later.
pub(super) const LINGER: Duration = Duration::from_secs(60);

/// What the server counts.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) malformed: u64,
    pub(super) sent_bytes: u64,
    pub(super) timeouts: u64,
    /// Connections that spoke HTTP/2.
    pub(super) multiplexed: u64,
    /// Connections that spoke HTTP/3.
    pub(super) third: u64,
    /// Requests that say they came by way of an alternative, which this server is.
    pub(super) as_alternative: u64,
}

/// A connection: one exchange at a time, an association of such streams, or many requests side by side.
pub(super) trait Served: Send {
    /// Something happened on it or on one of its streams.
    fn handle(&mut self, call: &mut Call, event: SocketEvent) -> Then;
    /// Its deadline has come.
    fn timeout(&mut self, call: &mut Call) -> Then;
    /// When something has to be done if nothing happens.
    fn deadline(&self) -> Instant;
}

/// What a connection wants of the server after a call.
pub(super) enum Then {
    /// Nothing.
    Wait,
    /// It was reset: forget it.
    Forget,
    /// To be this from now on, which is told the same.
    Become(Box<dyn Served>),
}

/// What a connection is lent for the time of a call.
pub(super) struct Call<'a, 'b> {
    pub(super) cx: &'a mut Cx<'b>,
    pub(super) net: &'a mut dyn Sockets,
    pub(super) socket: SocketId,
    pub(super) config: &'a Config,
    pub(super) counters: &'a mut Counters,
}

impl<'b> Call<'_, 'b> {
    /// The same for one stream of the connection.
    pub(super) fn stream(&mut self, number: u32) -> Call<'_, 'b> {
        Call {
            cx: self.cx,
            net: self.net,
            socket: self.socket.with_stream(number),
            config: self.config,
            counters: self.counters,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.cx.now
    }

    /// Drops what has arrived.
    pub(super) fn drain(&mut self) {
        net::drain(self.cx, self.net, self.socket);
    }

    pub(super) fn finish(&mut self) {
        self.net.finish(self.cx, self.socket);
    }

    pub(super) fn reset(&mut self) -> Then {
        self.net.reset(self.cx, self.socket);
        Then::Forget
    }
}
