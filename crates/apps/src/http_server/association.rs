//! An association of the server: an exchange at a time on each of its streams, and one end for all of them.
//!
//! Standard: draft-natarajan-http-over-sctp (a response goes out on the stream of its request).

use std::collections::BTreeMap;

use airloom_base::{Instant, SocketEvent};

use super::Config;
use super::connection::Connection;
use super::served::{Call, Served, Then};
use crate::net::UnderWay;

/// An association, with the streams that something arrived on.
#[derive(Default)]
pub(super) struct Association {
    streams: BTreeMap<u32, Box<Connection>>,
    /// The stream that was the first to use new room: next time it is the last.
    wrote: u32,
    /// One of both sides is finished; what still arrives is dropped.
    is_finished: bool,
    under_way: UnderWay,
    deadline: Instant,
}

impl Association {
    /// One that was just accepted.
    pub(super) fn new(config: &Config, now: Instant) -> Self {
        Association { deadline: now + config.idle_timeout, ..Default::default() }
    }

    /// Something arrived on a stream.
    fn read(&mut self, call: &mut Call, event: SocketEvent) {
        let number = call.socket.stream;
        let can_answer = call.net.streams(call.socket).is_some_and(|streams| number < streams);
        call.counters.malformed += u64::from(!can_answer);
        if self.is_finished || !can_answer {
            return call.drain();
        }
        let stream = self.streams.entry(number);
        let stream = stream.or_insert_with(|| Box::new(Connection::stream(call.config, call.now())));
        if stream.is_idle() {
            stream.deadline = call.now() + call.config.idle_timeout;
        }
        stream.handle(call, event);
        self.arm(call);
    }

    /// There is room again: each stream in turn is the first to use it.
    fn write(&mut self, call: &mut Call, event: SocketEvent) {
        let writing = self.streams.iter().filter(|(_, stream)| stream.is_writing());
        let mut numbers: Vec<u32> = writing.map(|(number, _)| *number).collect();
        let behind = numbers.partition_point(|number| *number <= self.wrote);
        let turn = behind % numbers.len().max(1);
        numbers.rotate_left(turn);
        self.wrote = numbers.first().copied().unwrap_or(self.wrote);
        for number in numbers {
            if let Some(stream) = self.streams.get_mut(&number) {
                stream.handle(&mut call.stream(number), event);
            }
        }
        self.arm(call);
    }

    /// The peer sends no more, and takes nothing either: SCTP has no half close.
    fn peer_finished(&mut self) {
        self.is_finished = true;
        self.streams.clear();
        self.deadline = Instant::FAR_FUTURE;
    }

    /// Works out what is waited for.
    fn arm(&mut self, call: &mut Call) {
        let served: u32 = self.streams.values().map(|stream| stream.served).sum();
        let busy =
            self.streams.values().filter(|stream| !stream.is_idle()).map(|stream| stream.deadline).min();
        if busy.is_none() && call.config.max_requests.is_some_and(|most| served >= most) {
            self.finish(call);
        }
        if !self.is_finished {
            self.deadline = busy.unwrap_or(call.now() + call.config.idle_timeout);
        }
    }

    /// Shuts the association down, which has timers of its own for that.
    fn finish(&mut self, call: &mut Call) {
        self.peer_finished();
        call.finish();
    }
}

impl Served for Association {
    fn handle(&mut self, call: &mut Call, event: SocketEvent) -> Then {
        match event {
            SocketEvent::Readable(_) => self.read(call, event),
            SocketEvent::Writable => self.write(call, event),
            SocketEvent::Finished => self.peer_finished(),
            _ => {}
        }
        Then::Wait
    }

    fn timeout(&mut self, call: &mut Call) -> Then {
        let mut is_idle = true;
        for (number, stream) in self.streams.iter_mut().filter(|(_, stream)| !stream.is_idle()) {
            is_idle = false;
            if stream.deadline <= call.now()
                && let Then::Forget = stream.timeout(&mut call.stream(*number))
            {
                return Then::Forget;
            }
        }
        if is_idle && !self.under_way.gets_on(call.net.unacknowledged(call.socket)) {
            self.finish(call);
        }
        self.arm(call);
        Then::Wait
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }
}
