//! One connection of the client: its streams, and when it is given up.

use airloom_base::{Cx, Instant, SocketId, Sockets};

use super::lane::{Asked, Exchange, Lane, Progress};
use crate::pages::Job;

/// One connection, or one association with the streams that objects are dealt over.
pub(super) struct Connection {
    pub(super) socket: SocketId,
    /// The pool it belongs to.
    pub(super) pool: usize,
    /// Its number in the records.
    pub(super) flow: u32,
    /// Requests that it was given.
    asked: u32,
    /// May it be written to?
    is_open: bool,
    lanes: Vec<Lane>,
    /// Its streams do not end by themselves.
    is_association: bool,
    /// Responses that were complete.
    completed: u32,
    /// Will it carry another exchange, as far as is known?
    persists: bool,
    /// When to give it up.
    pub(super) deadline: Instant,
}

/// A stream that takes another request; the smallest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Offer {
    /// Requests that wait on it.
    pub(super) load: usize,
    /// Requests that it had, so that those of an association are used in turn.
    turn: u64,
    /// Its connection and its place there.
    pub(super) connection: usize,
    pub(super) lane: usize,
}

impl Connection {
    /// A connection that is being opened; `persists` if it is to carry more than one exchange. `streams` are those of an
    /// association, of which at most `most` are used.
    pub(super) fn new(
        socket: SocketId,
        (pool, flow): (usize, u32),
        streams: Option<u16>,
        most: u16,
        persists: bool,
        deadline: Instant,
    ) -> Self {
        let is_association = streams.is_some();
        let count = streams.map_or(1, |there| there.min(most).max(1));
        Connection {
            socket,
            pool,
            flow,
            asked: 0,
            // Data may leave with the cookie, before the association is there (RFC 9260, 5.1).
            is_open: is_association,
            lanes: (0..count).map(|n| Lane::new(socket.with_stream(n), is_association)).collect(),
            is_association,
            completed: 0,
            persists: persists || is_association,
            deadline,
        }
    }

    /// Does this event's socket stand for one of its streams?
    pub(super) fn is(&self, socket: SocketId) -> bool {
        self.socket == socket.with_stream(self.socket.stream)
    }

    /// How many requests wait for their response.
    pub(super) fn load(&self) -> usize {
        self.lanes.iter().map(Lane::load).sum()
    }

    /// How many streams it uses.
    pub(super) fn streams(&self) -> usize {
        self.lanes.len()
    }

    /// The best of its streams for another request behind those that wait, which it has as number `connection`. `depth` is
    /// the most that may wait on a stream at a time.
    pub(super) fn offer(&self, connection: usize, depth: usize) -> Option<Offer> {
        //= RFC 2616 (8.1.2.2): a client pipelines only once it knows that the connection persists, and not right
        //= after a failure: here, after the first response of the connection. An association is known to.
        let allowed = if self.completed > 0 || self.is_association { depth } else { 1 };
        //= RFC 9112 (9.3.2): nothing is pipelined behind a method that is not idempotent.
        let takes_more = |lane: &&Lane| self.persists && lane.load() < allowed && !lane.posts();
        let offer = |(place, lane): (usize, &Lane)| Offer {
            load: lane.load(),
            turn: if self.is_association { lane.asked } else { 0 },
            connection,
            lane: place,
        };
        self.lanes.iter().enumerate().filter(|(_, lane)| takes_more(lane)).map(offer).min()
    }

    /// Asks for something on one of its streams.
    pub(super) fn ask(&mut self, cx: &mut Cx, net: &mut dyn Sockets, lane: usize, job: Job, asked: Asked) {
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        self.asked = self.asked.saturating_add(1);
        lane.ask(cx.now, self.asked, job, asked);
        if self.is_open {
            lane.write(cx, net);
        }
    }

    /// It is open now, or has room again. What was asked for on streams that the peer does not have is given back.
    pub(super) fn go_on(&mut self, cx: &mut Cx, net: &mut dyn Sockets) -> Vec<Job> {
        self.is_open = true;
        let there = net.streams(self.socket).map_or(1, usize::from).max(1);
        let missing = self.lanes.split_off(there.min(self.lanes.len()));
        self.lanes.iter_mut().for_each(|lane| lane.write(cx, net));
        missing.into_iter().flat_map(Lane::unanswered).map(|exchange| exchange.job).collect()
    }

    /// Reads up to the end of the next response on a stream.
    pub(super) fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, stream: u16) -> Progress {
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.stream() == stream) else {
            // Nothing was asked for there.
            return Progress::Broken;
        };
        let progress = lane.read(cx, net);
        self.persists &= !lane.is_last;
        self.completed += u32::from(matches!(progress, Progress::Complete(_)));
        progress
    }

    /// The server sends no more: was that the end of a response, or did it break one off?
    pub(super) fn peer_finished(&mut self, cx: &mut Cx) -> Progress {
        self.persists = false;
        let mut progress = self.lanes.iter_mut().map(|lane| lane.peer_finished(cx));
        let complete = progress.find(|p| matches!(p, Progress::Complete(_)));
        self.completed += u32::from(complete.is_some());
        complete.unwrap_or(Progress::None)
    }

    /// Will it carry another exchange, as far as is known?
    pub(super) fn persists(&self) -> bool {
        self.persists
    }

    /// The requests that were not answered, in the order in which they were made, and which of them are to blame for the
    /// failure: those that were being answered, or the first one if nothing ever was.
    pub(super) fn unanswered(self) -> Vec<(Exchange, bool)> {
        let mut all = Vec::new();
        for lane in self.lanes {
            let exchanges = lane.unanswered().into_iter().enumerate();
            all.extend(exchanges.map(|(n, exchange)| (n == 0 && exchange.first_byte.is_some(), exchange)));
        }
        if self.is_association {
            all.sort_by_key(|(_, exchange)| (exchange.asked, exchange.job.object));
        }
        if let Some((blame, _)) = all.first_mut() {
            *blame |= self.completed == 0;
        }
        all.into_iter().map(|(blame, exchange)| (exchange, blame)).collect()
    }
}
