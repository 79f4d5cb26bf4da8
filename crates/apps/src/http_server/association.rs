//! An association of the server: an exchange at a time on each of its streams, and one end for all of them.
//!
//! Standard: draft-natarajan-http-over-sctp (a response goes out on the stream of its request).

use std::collections::BTreeMap;

use airloom_base::{Cx, Instant, SocketId, Sockets};

use super::Config;
use super::connection::{Connection, Counters, Then};
use crate::net::Alarm;

/// An association, with the streams that something arrived on.
pub(super) struct Association {
    streams: BTreeMap<u32, Box<Connection>>,
    /// The stream that was the first to use new room: next time it is the last.
    wrote: u32,
    /// One of both sides is finished; what still arrives is dropped.
    is_finished: bool,
    /// Octets that the peer had not acknowledged when the deadline came last.
    under_way: u64,
    /// When something has to be done if nothing happens; the server keeps the queue.
    pub(super) alarm: Alarm,
    /// The time the alarm should ring.
    pub(super) deadline: Instant,
}

impl Association {
    /// One that was just accepted.
    pub(super) fn new(config: &Config, now: Instant) -> Self {
        Association {
            streams: BTreeMap::new(),
            wrote: 0,
            is_finished: false,
            under_way: 0,
            alarm: Alarm::default(),
            deadline: now + config.idle_timeout,
        }
    }

    /// Something arrived on the stream of `socket`.
    pub(super) fn read(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        config: &Config,
        counters: &mut Counters,
    ) {
        let can_answer = net.streams(socket).is_some_and(|streams| socket.stream < streams);
        counters.malformed += u64::from(!can_answer);
        if self.is_finished || !can_answer {
            while net.read(cx, socket, usize::MAX).is_some() {}
            return;
        }
        let stream = self.streams.entry(socket.stream);
        let stream = stream.or_insert_with(|| Box::new(Connection::stream(config, cx.now)));
        if stream.is_idle() {
            stream.deadline = cx.now + config.idle_timeout;
        }
        stream.serve(cx, net, socket, config, counters);
        self.look(cx, net, socket, config);
    }

    /// There is room again: each stream in turn is the first to use it.
    pub(super) fn write(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        config: &Config,
        counters: &mut Counters,
    ) {
        let writing = self.streams.iter().filter(|(_, stream)| stream.is_writing());
        let mut numbers: Vec<u32> = writing.map(|(number, _)| *number).collect();
        let behind = numbers.partition_point(|number| *number <= self.wrote);
        let turn = behind % numbers.len().max(1);
        numbers.rotate_left(turn);
        self.wrote = numbers.first().copied().unwrap_or(self.wrote);
        for number in numbers {
            if let Some(stream) = self.streams.get_mut(&number) {
                stream.serve(cx, net, socket.with_stream(number), config, counters);
            }
        }
        self.look(cx, net, socket, config);
    }

    /// The peer sends no more, and takes nothing either: SCTP has no half close.
    pub(super) fn peer_finished(&mut self) {
        self.is_finished = true;
        self.streams.clear();
        self.deadline = Instant::FAR_FUTURE;
    }

    /// The deadline has come, of a stream or of all of them.
    pub(super) fn timeout(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        config: &Config,
        counters: &mut Counters,
    ) -> Then {
        let mut is_idle = true;
        for (number, stream) in self.streams.iter_mut().filter(|(_, stream)| !stream.is_idle()) {
            is_idle = false;
            if stream.deadline <= cx.now
                && stream.timeout(cx, net, socket.with_stream(*number), config, counters) == Then::Forget
            {
                return Then::Forget;
            }
        }
        if is_idle {
            // On a slow link the send buffer holds what takes minutes.
            let before = std::mem::replace(&mut self.under_way, net.unacknowledged(socket));
            if self.under_way == 0 || self.under_way == before {
                self.finish(cx, net, socket);
            }
        }
        self.look(cx, net, socket, config);
        Then::Wait
    }

    /// Works out what is waited for.
    fn look(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, config: &Config) {
        let served: u32 = self.streams.values().map(|stream| stream.served).sum();
        let busy =
            self.streams.values().filter(|stream| !stream.is_idle()).map(|stream| stream.deadline).min();
        if busy.is_none() && config.max_requests.is_some_and(|most| served >= most) {
            self.finish(cx, net, socket);
        }
        if !self.is_finished {
            self.deadline = busy.unwrap_or(cx.now + config.idle_timeout);
        }
    }

    /// Shuts the association down, which has timers of its own for that.
    fn finish(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        self.peer_finished();
        net.finish(cx, socket);
    }
}
