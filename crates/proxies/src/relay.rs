//! One direction of a connection through a proxy: read, held in bounded length, written.

use std::collections::VecDeque;

use airloom_base::{Body, Cx, Duration, Instant, SocketId, Sockets};

/// The proxy's one processor, and what its reads cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub(crate) read_size: usize,
    pub(crate) buffer: usize,
    pub(crate) cost: Duration,
    /// Until when it is busy with what was read before.
    pub(crate) busy: Instant,
}

/// What is on its way through the proxy in one direction.
#[derive(Default)]
pub(crate) struct Relay {
    /// In order, with the moment from which it can be written.
    held: VecDeque<(Instant, Body)>,
    octets: usize,
    /// The source sends no more.
    ended: bool,
    /// That was passed on.
    finished: bool,
    /// Everything that was ever passed on.
    pub(crate) passed: u64,
    /// The most that was held.
    pub(crate) peak: usize,
}

impl Relay {
    /// The source sends no more.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Something that goes first although it was not read here.
    pub(crate) fn push(&mut self, now: Instant, body: Body) {
        self.octets += body.len();
        self.held.push_back((now, body));
    }

    /// Moves what can be moved. True if something was.
    pub(crate) fn pump(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        from: Option<SocketId>,
        to: Option<SocketId>,
        work: &mut Work,
    ) -> bool {
        let mut has_moved = false;
        loop {
            let has_read = from.is_some_and(|from| self.read(cx, net, from, work));
            let has_written = to.is_some_and(|to| self.write(cx, net, to));
            if !has_read && !has_written {
                return has_moved;
            }
            has_moved = true;
        }
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
            let taken = net.write(cx, to, body.clone()).unwrap_or(0).min(body.len());
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
    pub(crate) fn ready(&self) -> Option<Instant> {
        self.held.front().map(|(ready, _)| *ready)
    }
}
