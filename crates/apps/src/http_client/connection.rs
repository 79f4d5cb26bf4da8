//! One connection of the client: its streams, and when it is given up.

use airloom_base::{Cx, Duration, Instant, SocketEvent, SocketId, Sockets};
use bytes::Bytes;

use super::alternatives::HANDSHAKE;
use super::lane::{Exchange, Lane, Progress, Request};
use super::multiplexed::Multiplexed;
use super::{Config, Http};
use crate::pages::Job;

/// One connection, or one association with the streams that objects are dealt over.
#[derive(getset::CopyGetters)]
pub(super) struct Connection {
    pub(super) socket: SocketId,
    /// The pool it belongs to.
    pub(super) pool: usize,
    /// What is spoken on it.
    pub(super) http: Http,
    /// When it was begun.
    pub(super) begun: Instant,
    /// It takes no requests before it is up: another one may be up first.
    pub(super) is_racing: bool,
    /// The alternative of the server that it leads to, as Alt-Used names that.
    pub(super) alternative: Option<Bytes>,
    /// It leads there and is not up.
    #[getset(get_copy = "pub(super)")]
    is_tried: bool,
    /// Its number in the records.
    pub(super) flow: u32,
    /// Requests that it was given.
    asked: u32,
    /// Is it open, as far as its own machine knows?
    #[getset(get_copy = "pub(super)")]
    is_open: bool,
    lanes: Vec<Lane>,
    /// It speaks HTTP/2 or 3: there are no lanes then.
    multiplexed: Option<Box<Multiplexed>>,
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
    /// It is not HTTP/3: that goes first where there is both.
    is_second: bool,
    /// Requests that it had, so that those of an association are used in turn.
    turn: u64,
    /// Its connection and its place there.
    pub(super) connection: usize,
    pub(super) lane: usize,
}

impl Connection {
    /// A connection that is being opened and will speak HTTP/2 or 3.
    pub(super) fn multiplexed(
        socket: SocketId,
        id: (usize, u32),
        http: Http,
        config: &Config,
        now: Instant,
    ) -> Self {
        Connection {
            http,
            lanes: Vec::new(),
            multiplexed: Some(Box::new(Multiplexed::new(http, config))),
            persists: true,
            ..Connection::new(socket, id, None, config, now)
        }
    }

    /// A connection that is being opened and will speak HTTP/1. `streams` are those of an association.
    pub(super) fn new(
        socket: SocketId,
        (pool, flow): (usize, u32),
        streams: Option<u32>,
        config: &Config,
        now: Instant,
    ) -> Self {
        let is_association = streams.is_some();
        let count = streams.map_or(1, |there| there.min(config.streams.into()).max(1));
        Connection {
            socket,
            pool,
            flow,
            http: config.http,
            begun: now,
            is_racing: false,
            alternative: None,
            is_tried: false,
            asked: 0,
            // Data may leave with the cookie, before the association is there (RFC 9260, 5.1).
            is_open: is_association,
            lanes: (0..count).map(|n| Lane::new(socket.with_stream(n), is_association)).collect(),
            multiplexed: None,
            is_association,
            completed: 0,
            persists: config.persists() || is_association,
            deadline: now + config.timeout,
        }
    }

    /// It leads to this alternative of the server, or to the server: requests wait until either is up.
    pub(super) fn race(&mut self, alternative: Option<Bytes>) {
        self.is_racing = true;
        if alternative.is_some() {
            self.is_tried = true;
            self.deadline = self.begun + HANDSHAKE;
        }
        self.alternative = alternative;
    }

    /// The alternative does not answer for the server: nothing more is asked there.
    pub(super) fn retire(&mut self) {
        self.persists &= self.alternative.is_none();
    }

    /// The alternative is up. False: there was none, or it was up.
    pub(super) fn has_come_up(&mut self) -> bool {
        std::mem::take(&mut self.is_tried)
    }

    /// Something was done on it: it is given up later. An alternative has its time to come up and no more.
    pub(super) fn is_alive(&mut self, now: Instant, timeout: Duration) {
        if !self.is_tried {
            self.deadline = now + timeout;
        }
    }

    /// Does it lead to an alternative that is of use, or may be?
    pub(super) fn is_alternative(&self) -> bool {
        self.alternative.is_some() && self.persists
    }

    /// Does this event's socket stand for one of its streams?
    pub(super) fn is(&self, socket: SocketId) -> bool {
        self.socket == socket.with_stream(self.socket.stream)
    }

    /// How many requests wait for their response.
    pub(super) fn load(&self) -> usize {
        let multiplexed = self.multiplexed.as_ref().map_or(0, |m| m.load());
        self.lanes.iter().map(Lane::load).sum::<usize>() + multiplexed
    }

    /// How many streams it uses.
    pub(super) fn streams(&self) -> usize {
        self.lanes.len()
    }

    /// The best of its streams for another request behind those that wait, which it has as number `connection`. `depth` is
    /// the most that may wait on a stream at a time.
    pub(super) fn offer(&self, connection: usize, depth: usize) -> Option<Offer> {
        if self.is_racing {
            return None;
        }
        let is_second = self.http != Http::Http3;
        if let Some(multiplexed) = &self.multiplexed {
            // Requests do not wait for each other: none counts as waiting while there is room.
            let offer = Offer { load: 0, is_second, turn: 0, connection, lane: 0 };
            return Some(offer).filter(|_| self.persists && multiplexed.has_room());
        }
        //= RFC 2616 (8.1.2.2): a client pipelines only once it knows that the connection persists, and not right
        //= after a failure: here, after the first response of the connection. An association is known to.
        let allowed = if self.completed > 0 || self.is_association { depth } else { 1 };
        //= RFC 9112 (9.3.2): nothing is pipelined behind a method that is not idempotent.
        let takes_more = |lane: &&Lane| self.persists && lane.load() < allowed && !lane.posts();
        let offer = |(place, lane): (usize, &Lane)| Offer {
            load: lane.load(),
            is_second,
            turn: if self.is_association { lane.asked } else { 0 },
            connection,
            lane: place,
        };
        self.lanes.iter().enumerate().filter(|(_, lane)| takes_more(lane)).map(offer).min()
    }

    /// Asks for something on one of its streams. What comes back found no room.
    pub(super) fn ask(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        lane: usize,
        job: Job,
        asked: Request,
    ) -> Option<Job> {
        self.asked = self.asked.saturating_add(1);
        if let Some(multiplexed) = &mut self.multiplexed {
            let back = multiplexed.ask(cx.now, self.asked, job, asked);
            if self.is_open {
                multiplexed.write(cx, net, self.socket);
            }
            return back;
        }
        let Some(lane) = self.lanes.get_mut(lane) else { return Some(job) };
        lane.ask(cx.now, self.asked, job, asked);
        if self.is_open {
            lane.write(cx, net);
        }
        None
    }

    /// It is open now, or has room again. What was asked for on streams that the peer does not have is given back.
    pub(super) fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets) -> Vec<Job> {
        self.is_open = true;
        if let Some(multiplexed) = &mut self.multiplexed {
            multiplexed.write(cx, net, self.socket);
            return Vec::new();
        }
        let there = net.streams(self.socket).map_or(1, |there| there as usize).max(1);
        let missing = self.lanes.split_off(there.min(self.lanes.len()));
        self.lanes.iter_mut().for_each(|lane| lane.write(cx, net));
        missing.into_iter().flat_map(Lane::unanswered).map(|exchange| exchange.job).collect()
    }

    /// Reads up to the end of the next response on a stream.
    pub(super) fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, stream: u32) -> Progress {
        if let Some(multiplexed) = &mut self.multiplexed {
            let progress = multiplexed.read(cx, net, self.socket);
            self.persists &= multiplexed.persists();
            self.completed += u32::from(matches!(progress, Progress::Complete(_)));
            return progress;
        }
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

    /// What an event of its streams does, where those open one by one.
    pub(super) fn on(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if let Some(multiplexed) = &mut self.multiplexed {
            multiplexed.on(cx, net, socket, event);
        }
    }

    /// Does it carry several exchanges at a time?
    pub(super) fn is_multiplexed(&self) -> bool {
        self.multiplexed.is_some()
    }

    /// Ends it.
    pub(super) fn finish(&self, cx: &mut Cx, net: &mut dyn Sockets) {
        match &self.multiplexed {
            Some(multiplexed) => multiplexed.finish(cx, net, self.socket),
            None => net.finish(cx, self.socket),
        }
    }

    /// Ends it at once.
    pub(super) fn abort(&self, cx: &mut Cx, net: &mut dyn Sockets) {
        match &self.multiplexed {
            Some(multiplexed) => multiplexed.abort(cx, net, self.socket),
            None => net.reset(cx, self.socket),
        }
    }

    /// Is there nothing more to come on it? In HTTP/2 and 3 what was asked for is still answered.
    pub(super) fn has_ended(&self) -> bool {
        !self.persists && (self.multiplexed.is_none() || self.load() == 0)
    }

    /// The requests that were not answered, in the order in which they were made, and which of them are to blame for the
    /// failure: those that were being answered, or the first one if nothing ever was.
    pub(super) fn unanswered(self) -> Vec<(Exchange, bool)> {
        let mut all = Vec::new();
        for lane in self.lanes {
            let exchanges = lane.unanswered().into_iter().enumerate();
            all.extend(exchanges.map(|(n, exchange)| (n == 0 && exchange.first_byte.is_some(), exchange)));
        }
        let multiplexed = self.multiplexed.into_iter().flat_map(|multiplexed| multiplexed.unanswered());
        all.extend(multiplexed.map(|exchange| (exchange.first_byte.is_some(), exchange)));
        if self.is_association {
            all.sort_by_key(|(_, exchange)| (exchange.asked, exchange.job.object));
        }
        if let Some((blame, _)) = all.first_mut() {
            *blame |= self.completed == 0;
        }
        all.into_iter().map(|(blame, exchange)| (exchange, blame)).collect()
    }
}
