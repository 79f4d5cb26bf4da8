//! Chunks that were sent and are not acknowledged, and what an acknowledgement says of them (RFC 9260, 6.2.1, 6.3, 7.2.4).

use std::collections::VecDeque;

use airloom_base::{Cx, Instant};

use super::chunk::forward::Skipped;
use super::chunk::{Data, ForwardTsn, Sack};
use super::config::Config;
use super::octets::padded;
use super::outbound::{Fragment, Outbound, Reliability};
use super::path::PathState;
use super::serial::{first, unwrap};

/// Where a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// In flight.
    Sent,
    /// Reported in a gap block.
    Reported,
    /// To be sent again.
    Marked,
    /// Given up.
    Abandoned,
}

struct Sent {
    data: Data,
    reliability: Reliability,
    order: u64,
    at: Instant,
    path: u8,
    standing: Standing,
    times: u32,
    misses: u8,
    /// Was sent again by fast retransmit: not a second time.
    fast: bool,
}

impl Sent {
    fn octets(&self) -> u64 {
        padded(self.data.front_len() + self.data.body.len()) as u64
    }
}

/// What an acknowledgement changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acked {
    /// Octets of user data that need no more room in the send buffer.
    pub released: u64,
    pub advanced: bool,
    pub is_old: bool,
    /// It acknowledges what was never sent.
    pub is_absurd: bool,
    pub lost: bool,
}

/// Packets with what was sent before of which a report of duplicates is understood.
const MOST_RESENT: usize = 256;

/// No window is so large.
const FAR: u64 = 1 << 30;

/// All chunks sent and not acknowledged cumulatively.
#[derive(Default)]
pub(super) struct Flight {
    /// TSN of the first one, or the next if there is none.
    base: u64,
    chunks: VecDeque<Sent>,
    /// How many are reported, marked, abandoned.
    reported: usize,
    pub marked: usize,
    abandoned: usize,
    /// Something was sent that may be given up, since there was nothing in flight.
    is_mortal: bool,
    /// Octets of user data in flight.
    pub outstanding: u64,
    /// The peer's window less what is in flight.
    pub peer_window: u64,
    /// The chunk that was sent into a closed window, until the window opens or the peer takes it.
    probe: Option<u64>,
    /// The peer has answered since the probe left.
    is_answered: bool,
    /// Advanced.Peer.Ack.Point (RFC 3758, 3.5).
    advanced: u64,
    pub forward_due: bool,
    /// Packets with something in them that was sent before.
    pub resent: u64,
    /// Packets of these that arrived although the first copy had.
    pub spurious: u64,
    /// The first TSN sent again in each of the last of these, until its duplicate is reported.
    resent_lately: VecDeque<u32>,
    pub gave_up: u64,
}

impl Flight {
    pub fn new(initial: u32, peer_window: u32) -> Self {
        Flight {
            base: first(initial),
            peer_window: u64::from(peer_window),
            advanced: first(initial) - 1,
            ..Default::default()
        }
    }

    /// The peer is there and tells its window. What went out with an earlier cookie is to be sent again: the peer that found
    /// the cookie too old, or had one of its own, kept nothing of it.
    pub fn begin(&mut self, peer_window: u32, paths: &mut [PathState]) {
        for number in 0..paths.len() {
            self.timed_out(number as u8, paths);
        }
        self.peer_window = u64::from(peer_window);
    }

    /// The next chunk has this TSN; nothing may be in flight (RFC 6525, 5.2.4).
    pub fn restart(&mut self, next: u32) {
        self.base = first(next);
        self.advanced = self.base - 1;
        self.forward_due = false;
        self.probe = None;
    }

    /// TSN of the next new chunk.
    pub fn next(&self) -> u64 {
        self.base + self.chunks.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub fn lowest(&self) -> u64 {
        self.base
    }

    fn sent(&self, tsn: u64) -> Option<&Sent> {
        self.chunks.get(tsn.checked_sub(self.base)? as usize)
    }

    pub fn data(&self, tsn: u64) -> Option<&Data> {
        self.sent(tsn).map(|s| &s.data)
    }

    /// What left last probes the peer's window (6.1, A).
    pub fn note_probe(&mut self) {
        self.probe = Some(self.next() - 1);
        self.is_answered = false;
    }

    /// Does a chunk in flight on path `number` probe the peer's window? Then has it been answered?
    pub fn probe_on(&self, number: u8) -> Option<bool> {
        let sent = self.sent(self.probe?)?;
        (sent.standing == Standing::Sent && sent.path == number).then_some(self.is_answered)
    }

    /// Is the peer's window closed, as far as a probe has told?
    pub fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    /// A SACK tells the peer's window. What probes it and is not acknowledged was refused, if the SACK can be the answer to it:
    /// into a window that is open now it goes at once.
    fn probe_meets(&mut self, now: Instant, window: u64, paths: &mut [PathState]) {
        let Some(probe) = self.probe else { return };
        let Some(sent) = self.sent(probe) else {
            self.probe = None;
            return;
        };
        let has_room = window >= sent.data.body.len() as u64;
        let min_rtt = paths.get(usize::from(sent.path)).and_then(|path| path.min_rtt);
        match sent.standing {
            Standing::Sent => {
                self.is_answered |= min_rtt.is_none_or(|rtt| now.since(sent.at) >= rtt);
                if has_room {
                    self.probe = None;
                    if self.is_answered {
                        self.mark((probe - self.base) as usize, paths);
                    }
                }
            }
            Standing::Marked => self.probe = self.probe.filter(|_| !has_room),
            Standing::Reported | Standing::Abandoned => self.probe = None,
        }
    }

    /// A new chunk leaves on a path; returns its TSN.
    pub fn send(&mut self, now: Instant, fragment: Fragment, number: u8, path: &mut PathState) -> u64 {
        let tsn = self.next();
        let Fragment { mut data, reliability, order } = fragment;
        data.tsn = tsn as u32;
        let len = data.body.len() as u64;
        let may_be_given_up = !matches!(reliability, Reliability::Full | Reliability::Priority(_));
        self.is_mortal = may_be_given_up || (self.is_mortal && !self.chunks.is_empty());
        let sent = Sent {
            data,
            reliability,
            order,
            at: now,
            path: number,
            standing: Standing::Sent,
            times: 1,
            misses: 0,
            fast: false,
        };
        path.flight += sent.octets();
        self.outstanding += len;
        self.peer_window = self.peer_window.saturating_sub(len);
        //= RFC 9260 (6.3.1, C4): one measurement per round trip.
        if path.timed.is_none() {
            path.timed = Some((tsn, now));
        }
        self.chunks.push_back(sent);
        tsn
    }

    /// The first marked chunk from `from` on that goes over this path: its TSN and padded octets.
    pub fn next_marked(&self, from: u64, on: impl Fn(u8) -> bool) -> Option<(u64, usize)> {
        if self.marked == 0 {
            return None;
        }
        let skip = from.saturating_sub(self.base) as usize;
        let found = self.chunks.iter().enumerate().skip(skip);
        let mut found = found.filter(|(_, s)| s.standing == Standing::Marked && on(s.path));
        found.next().map(|(n, s)| (self.base + n as u64, s.octets() as usize))
    }

    /// The path a chunk was last sent on.
    pub fn path_of(&self, tsn: u64) -> Option<u8> {
        self.sent(tsn).map(|s| s.path)
    }

    /// A marked chunk leaves again. True: over the path that it was sent on before, and it is the earliest one in flight there.
    pub fn resend(&mut self, now: Instant, tsn: u64, number: u8, path: &mut PathState) -> bool {
        let n = tsn.wrapping_sub(self.base) as usize;
        let Some(sent) = self.chunks.get_mut(n) else { return false };
        let stays = sent.path == number;
        sent.standing = Standing::Sent;
        sent.times += 1;
        sent.misses = 0;
        sent.path = number;
        sent.at = now;
        self.is_answered &= self.probe != Some(tsn);
        let len = sent.data.body.len() as u64;
        path.flight += sent.octets();
        self.marked -= 1;
        self.outstanding += len;
        self.peer_window = self.peer_window.saturating_sub(len);
        let is_in_flight = |s: &Sent| s.standing == Standing::Sent && s.path == number;
        stays && self.chunks.iter().position(is_in_flight) == Some(n)
    }

    /// A packet with chunks that were sent before leaves; `tsn` is the first of them.
    pub fn packet_resent(&mut self, tsn: u64) {
        self.resent += 1;
        if self.resent_lately.len() == MOST_RESENT {
            self.resent_lately.pop_front();
        }
        self.resent_lately.push_back(tsn as u32);
    }

    //= RFC 3708 (3): a duplicate of what was not sent again comes from the network; it says nothing.
    fn duplicates_arrive(&mut self, duplicates: &[u32]) {
        for tsn in duplicates {
            if let Some(place) = self.resent_lately.iter().position(|resent| resent == tsn) {
                self.resent_lately.remove(place);
                self.spurious += 1;
            }
        }
    }

    /// Chunk `n` is no longer in flight.
    fn leaves(sent: &Sent, outstanding: &mut u64, paths: &mut [PathState]) {
        *outstanding -= sent.data.body.len() as u64;
        if let Some(path) = paths.get_mut(usize::from(sent.path)) {
            path.flight -= sent.octets();
        }
    }

    /// Marks a chunk in flight for retransmission.
    fn mark(&mut self, n: usize, paths: &mut [PathState]) {
        let sent = &mut self.chunks[n];
        sent.standing = Standing::Marked;
        self.marked += 1;
        //= RFC 9260 (6.2.1, C): what is marked gives its room in the window back.
        self.peer_window += sent.data.body.len() as u64;
        //= RFC 9260 (6.3.1, C5): nothing is measured on what follows a retransmitted chunk.
        let tsn = self.base + n as u64;
        if let Some(path) = paths.get_mut(usize::from(sent.path)) {
            path.timed = path.timed.filter(|(timed, _)| *timed < tsn);
        }
        Self::leaves(&self.chunks[n], &mut self.outstanding, paths);
    }

    /// T3-rtx of path `number` expired: what is in flight there is marked (6.3.3, E3).
    pub fn timed_out(&mut self, number: u8, paths: &mut [PathState]) {
        for n in 0..self.chunks.len() {
            if self.chunks[n].standing == Standing::Sent && self.chunks[n].path == number {
                self.mark(n, paths);
                self.chunks[n].fast = false;
            }
        }
    }

    fn acknowledged(
        now: Instant,
        tsn: u64,
        sent: &Sent,
        outstanding: &mut u64,
        config: &Config,
        paths: &mut [PathState],
        earliest: &mut u32,
    ) {
        if sent.standing == Standing::Sent {
            Self::leaves(sent, outstanding, paths);
        }
        let Some(path) = paths.get_mut(usize::from(sent.path)) else { return };
        path.acked += sent.octets();
        // The first one seen of a path is its earliest in flight.
        if *earliest & 1 << sent.path == 0 {
            path.earliest_acked = true;
        }
        if let Some((timed, at)) = path.timed
            && timed == tsn
        {
            path.timed = None;
            if sent.times == 1 {
                path.measured(now.since(at), config);
            }
        }
    }

    /// Takes a SACK, or what acknowledges as one and `reports` nothing of what has arrived beyond the cumulative TSN. `paths` get
    /// their octets and round trips; windows are changed by the caller.
    pub fn sack(
        &mut self,
        cx: &Cx,
        sack: &Sack,
        reports: bool,
        config: &Config,
        paths: &mut [PathState],
    ) -> Acked {
        let now = cx.now;
        let mut result = Acked::default();
        let cumulative = unwrap(self.base.saturating_sub(1), sack.cumulative);
        if cumulative >= self.next() {
            // Half the numbers away, it is one from before TSNs began anew (RFC 6525, 5.2.4).
            let is_absurd = cumulative - self.next() < FAR;
            return Acked { is_absurd, is_old: !is_absurd, ..result };
        }
        if cumulative + 1 < self.base {
            //= RFC 9260 (6.2.1, D i): out of date.
            return Acked { is_old: true, ..result };
        }
        // Bits of paths whose earliest chunk in flight is still unacknowledged.
        let mut earliest = 0u32;
        let mut newest = None;
        while self.base <= cumulative {
            let Some(sent) = self.chunks.pop_front() else { break };
            match sent.standing {
                Standing::Reported => self.reported -= 1,
                Standing::Abandoned => {
                    self.abandoned -= 1;
                    // The peer answers, if only to FORWARD-TSN.
                    if let Some(path) = paths.get_mut(usize::from(sent.path)) {
                        path.errors = 0;
                    }
                }
                Standing::Marked | Standing::Sent => {
                    if sent.standing == Standing::Marked {
                        self.marked -= 1;
                        self.peer_window = self.peer_window.saturating_sub(sent.data.body.len() as u64);
                    }
                    newest = Some(self.base);
                    Self::acknowledged(
                        now,
                        self.base,
                        &sent,
                        &mut self.outstanding,
                        config,
                        paths,
                        &mut earliest,
                    );
                }
            }
            if sent.standing != Standing::Abandoned {
                result.released += sent.data.body.len() as u64;
            }
            self.base += 1;
            result.advanced = true;
        }
        if reports && (!sack.gaps.is_empty() || self.reported > 0) {
            let highest = self.gaps(now, cumulative, sack, config, paths, &mut earliest, &mut newest);
            self.misses(&mut result, highest, newest, config, paths);
        }
        self.duplicates_arrive(&sack.duplicates);
        if reports {
            self.probe_meets(now, u64::from(sack.window), paths);
        }
        self.peer_window = u64::from(sack.window).saturating_sub(self.outstanding);
        self.advance_point(cumulative);
        //= RFC 3758 (3.5, C3): after each SACK that leaves the point ahead.
        self.forward_due = self.advanced > cumulative;
        result
    }

    /// Goes through the gap blocks; returns the highest TSN reported.
    fn gaps(
        &mut self,
        now: Instant,
        cumulative: u64,
        sack: &Sack,
        config: &Config,
        paths: &mut [PathState],
        earliest: &mut u32,
        newest: &mut Option<u64>,
    ) -> u64 {
        let mut highest = cumulative;
        let mut blocks = sack.gaps.iter().peekable();
        let last = sack.gaps.iter().map(|g| u64::from(g.1)).max().unwrap_or(0) + cumulative;
        for n in 0..self.chunks.len() {
            let tsn = self.base + n as u64;
            if tsn > last && self.reported == 0 {
                break;
            }
            let offset = tsn - cumulative;
            while blocks.next_if(|b| u64::from(b.1) < offset).is_some() {}
            let is_reported = blocks.peek().is_some_and(|b| u64::from(b.0) <= offset);
            let sent = &mut self.chunks[n];
            match (sent.standing, is_reported) {
                (Standing::Sent | Standing::Marked, true) => {
                    if sent.standing == Standing::Marked {
                        self.marked -= 1;
                        self.peer_window = self.peer_window.saturating_sub(sent.data.body.len() as u64);
                    }
                    Self::acknowledged(now, tsn, sent, &mut self.outstanding, config, paths, earliest);
                    sent.standing = Standing::Reported;
                    self.reported += 1;
                    *newest = Some(newest.map_or(tsn, |h| h.max(tsn)));
                    highest = tsn;
                }
                (Standing::Reported, true) => highest = tsn,
                (Standing::Reported, false) => {
                    //= RFC 9260 (6.2.1, D iii): the receiver has dropped it again.
                    sent.standing = Standing::Sent;
                    self.reported -= 1;
                    self.outstanding += sent.data.body.len() as u64;
                    if let Some(path) = paths.get_mut(usize::from(sent.path)) {
                        path.flight += sent.octets();
                    }
                }
                (Standing::Sent, false) => *earliest |= 1 << sent.path,
                _ => {}
            }
        }
        highest
    }

    /// Counts reports of what is missing (7.2.4) and marks what was missing often enough.
    fn misses(
        &mut self,
        result: &mut Acked,
        highest: u64,
        newest: Option<u64>,
        config: &Config,
        paths: &mut [PathState],
    ) {
        let is_recovering = paths.iter().any(|p| p.recovery.is_some());
        //= RFC 9260 (7.2.4): only chunks below the highest newly acknowledged TSN, or all that are reported missing if the
        //= cumulative TSN moves in fast recovery.
        let below = if !config.miss_htna || (is_recovering && result.advanced) {
            highest
        } else {
            newest.unwrap_or(0)
        };
        let exit = self.next() - 1;
        let mut reduced = 0u32;
        for n in 0..self.chunks.len() {
            if self.base + n as u64 >= below {
                break;
            }
            let sent = &mut self.chunks[n];
            if sent.standing != Standing::Sent {
                continue;
            }
            sent.misses = sent.misses.saturating_add(1);
            if sent.misses < config.miss_threshold || sent.fast {
                continue;
            }
            sent.fast = true;
            let number = usize::from(sent.path);
            self.mark(n, paths);
            result.lost = true;
            if let Some(path) = paths.get_mut(number)
                && path.recovery.is_none()
                && reduced & 1 << number == 0
            {
                path.lost(config);
                // Without fast recovery only the chunks of one report are one loss.
                reduced |= 1 << number;
                path.recovery = config.fast_recovery.then_some(exit);
                path.burst_beyond_window = true;
            }
        }
    }

    /// Gives up messages whose time is over or that were sent often enough (RFC 3758, 3.5; RFC 7496, 4).
    pub fn abandon(&mut self, now: Instant, queue: &mut Outbound, paths: &mut [PathState]) -> u64 {
        if !self.is_mortal {
            return 0;
        }
        let mut given_up: Vec<(u16, u64)> = Vec::new();
        for sent in &self.chunks {
            let is_over = match sent.reliability {
                Reliability::Full | Reliability::Priority(_) => false,
                Reliability::Until(at) => at <= now && sent.standing != Standing::Reported,
                Reliability::Retransmissions(most) => sent.standing == Standing::Marked && sent.times > most,
            };
            if is_over && sent.standing != Standing::Abandoned {
                let message = (sent.data.stream, sent.order);
                if given_up.last() != Some(&message) {
                    given_up.push(message);
                }
            }
        }
        let mut released = 0;
        for (stream, order) in given_up {
            let mut last = None;
            for n in 0..self.chunks.len() {
                if (self.chunks[n].data.stream, self.chunks[n].order) != (stream, order) {
                    continue;
                }
                match self.chunks[n].standing {
                    Standing::Sent => Self::leaves(&self.chunks[n], &mut self.outstanding, paths),
                    Standing::Marked => self.marked -= 1,
                    Standing::Reported => self.reported -= 1,
                    Standing::Abandoned => continue,
                }
                let tsn = self.base + n as u64;
                let sent = &mut self.chunks[n];
                sent.standing = Standing::Abandoned;
                // Nothing is measured on what will not be acknowledged by itself.
                if let Some(path) = paths.get_mut(usize::from(sent.path)) {
                    path.timed = path.timed.filter(|(timed, _)| *timed != tsn);
                }
                self.abandoned += 1;
                released += sent.data.body.len() as u64;
                last = Some(n);
            }
            if let Some(last) = last.map(|n| &self.chunks[n]).filter(|last| !last.data.end) {
                //= RFC 3758 (3.5, A3): the rest of the message is not sent.
                let rest = queue.abandon(stream, order);
                released += rest;
                if rest > 0 {
                    // Its end takes a TSN that is given up too, so that FORWARD-TSN names the message even if all that was
                    // sent of it arrived, and so that the peer sees no message begin inside another.
                    let data = Data {
                        tsn: self.next() as u32,
                        begin: false,
                        end: true,
                        body: airloom_base::Body::EMPTY,
                        ..last.data
                    };
                    let end =
                        Sent { data, standing: Standing::Abandoned, reliability: Reliability::Full, ..*last };
                    self.chunks.push_back(end);
                    self.abandoned += 1;
                }
            }
            self.gave_up += 1;
        }
        self.advance_point(self.base - 1);
        released
    }

    /// Moves the point up to which the peer need not wait.
    fn advance_point(&mut self, cumulative: u64) {
        let before = self.advanced;
        self.advanced = self.advanced.max(cumulative);
        while self.abandoned > 0
            && let Some(sent) = self.chunks.get((self.advanced + 1).saturating_sub(self.base) as usize)
            && sent.standing == Standing::Abandoned
        {
            self.advanced += 1;
        }
        self.forward_due |= self.advanced > cumulative && self.advanced > before;
    }

    /// Does the peer have to be told to go on, and was not (or its acknowledgement did not come)?
    pub fn waits_for_forward(&self) -> bool {
        self.advanced >= self.base
    }

    /// FORWARD-TSN up to the advanced point, of at most so many octets.
    pub fn forward(&self, interleaved: bool, room: usize) -> ForwardTsn {
        let mut skipped: Vec<Skipped> = Vec::new();
        let mut cumulative = self.base - 1;
        let most = room.saturating_sub(8) / ForwardTsn::entry(interleaved);
        for sent in self.chunks.iter().take((self.advanced + 1 - self.base) as usize) {
            let data = &sent.data;
            if interleaved || !data.unordered {
                let of = |s: &&mut Skipped| s.stream == data.stream && s.unordered == data.unordered;
                let is_full = skipped.len() >= most;
                match skipped.iter_mut().find(of) {
                    Some(entry) => entry.sequence = data.sequence,
                    None if is_full => break,
                    None => skipped.push(Skipped {
                        stream: data.stream,
                        unordered: data.unordered,
                        sequence: data.sequence,
                    }),
                }
            }
            cumulative += 1;
        }
        ForwardTsn { cumulative: cumulative as u32, interleaved, skipped }
    }
}
