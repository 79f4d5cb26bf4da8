//! An association: its parts, and how its user and its host call it.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use airloom_base::record::{CongestionRecord, Record};
use airloom_base::service::{FlowFacts, Identity, Path, WriteError};
use airloom_base::timer::{Timer, earliest};
use airloom_base::{
    Body, CloseReason, Cx, Instant, Outgoing as Unit, Packet, PathId, Transport, TransportEvent,
};

use super::chunk::{Cause, Chunk};
use super::config::Config;
use super::cookie::{Abilities, Cookie, Secret};
use super::flight::Flight;
use super::inbound::{Inbound, Message};
use super::outbound::{Outbound, Outgoing};
use super::path::{MOST_PATHS, PathState};
use super::requests::Reconfiguration;
use super::state::State;

/// What all associations of a host share.
pub(super) struct Shared {
    pub config: Config,
    pub secret: Secret,
    /// The host's addresses that peers are told; none: that of each association is the only one.
    pub addresses: Vec<IpAddr>,
}

/// When the peer is told what arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SackDue {
    #[default]
    No,
    /// When the timer expires, or with data.
    Later,
    Now,
}

/// One association.
#[derive(getset::CopyGetters)]
pub struct Association {
    pub(super) shared: Arc<Shared>,
    pub(super) who: Identity,
    /// The state it is in.
    #[getset(get_copy = "pub")]
    pub(super) state: State,
    /// Our port and the peer's.
    #[getset(get_copy = "pub")]
    pub(super) ports: (u16, u16),
    pub(super) paths: Vec<PathState>,
    pub(super) primary: u8,
    /// What the peer told, if several paths are wanted.
    pub(super) peer_addresses: Vec<IpAddr>,
    /// The tag that the peer's packets carry.
    #[getset(get_copy = "pub")]
    pub(super) local_tag: u32,
    pub(super) peer_tag: u32,
    pub(super) local_tsn: u32,
    /// What both ends can do.
    pub(super) abilities: Abilities,
    pub(super) out: Outbound,
    pub(super) flight: Flight,
    pub(super) inbound: Inbound,
    pub(super) reconfiguration: Reconfiguration,
    /// Chunks to be sent on a path: nothing but user data may share their packet.
    pub(super) control: VecDeque<(u8, Chunk)>,
    /// Chunks that go out alone under another tag: path, tag, chunk.
    pub(super) strays: VecDeque<(u8, u32, Chunk)>,
    /// The cookie to give back.
    pub(super) cookie: Option<bytes::Bytes>,
    pub(super) t1: Timer,
    pub(super) t2: Timer,
    pub(super) t5: Timer,
    /// Until the peer's window, found closed, may be probed.
    pub(super) probe_timer: Timer,
    pub(super) may_probe: bool,
    pub(super) sack_timer: Timer,
    pub(super) sack_due: SackDue,
    pub(super) packets_unacknowledged: u8,
    /// Where the last data came from: acknowledgements go back there.
    pub(super) last_from: u8,
    /// Where SHUTDOWN or SHUTDOWN ACK goes.
    pub(super) shutdown_path: u8,
    pub(super) window_told: u64,
    pub(super) init_errors: u32,
    /// Cookies of ours that the peer found too old.
    pub(super) stale_cookies: u32,
    pub(super) errors: u32,
    pub(super) wants_shutdown: bool,
    /// The peer may still wait for our COOKIE ACK: nothing has come that tells otherwise.
    pub(super) is_unsure: bool,
    /// A peer that begins anew does not end it.
    pub(super) survives: bool,
    /// It has begun anew, which the user does not know yet.
    pub(super) restarted: bool,
    pub(super) burst: u16,
    /// The TSN that was marked by the network, until the peer has reduced its window.
    pub(super) ecne: Option<u32>,
    pub(super) cwr: Option<u32>,
    pub(super) ecn_reduced_to: u64,
    pub(super) nonces: u64,
    events: VecDeque<TransportEvent>,
    pub(super) told_finished: bool,
    pub(super) closing: Option<CloseReason>,
    pub(super) told_closed: bool,
    gone: bool,
    pub(super) blocked: bool,
    /// Octets written and not acknowledged.
    pub(super) unacknowledged: u64,
    pub(super) facts: FlowFacts,
    pub(super) batch: Vec<u64>,
}

impl Association {
    /// One that will open when `connect` is called.
    pub(super) fn new(
        shared: Arc<Shared>,
        paths: &[Path],
        ports: (u16, u16),
        who: Identity,
        drawn: (u32, u32),
    ) -> Self {
        let config = &shared.config;
        let (tag, tsn) = drawn;
        Association {
            who,
            state: State::Closed,
            ports,
            paths: paths.iter().take(MOST_PATHS).map(|p| PathState::new(*p, config)).collect(),
            primary: 0,
            peer_addresses: Vec::new(),
            local_tag: tag,
            peer_tag: 0,
            local_tsn: tsn,
            abilities: Abilities::default(),
            out: Outbound::new(config.outbound_streams, config.scheduler),
            flight: Flight::new(tsn, 0),
            inbound: Inbound::new(0, config.inbound_streams, config.receive_buffer.0),
            reconfiguration: Reconfiguration::default(),
            control: VecDeque::new(),
            strays: VecDeque::new(),
            cookie: None,
            t1: Timer::default(),
            t2: Timer::default(),
            t5: Timer::default(),
            probe_timer: Timer::default(),
            may_probe: false,
            sack_timer: Timer::default(),
            sack_due: SackDue::No,
            packets_unacknowledged: 0,
            last_from: 0,
            shutdown_path: 0,
            window_told: config.receive_buffer.0,
            init_errors: 0,
            stale_cookies: 0,
            errors: 0,
            wants_shutdown: false,
            is_unsure: false,
            survives: false,
            restarted: false,
            burst: 0,
            ecne: None,
            cwr: None,
            ecn_reduced_to: 0,
            nonces: 0,
            events: VecDeque::new(),
            told_finished: false,
            closing: None,
            told_closed: false,
            gone: false,
            blocked: false,
            unacknowledged: 0,
            facts: FlowFacts::default(),
            batch: Vec::new(),
            shared,
        }
    }

    /// One that a good cookie makes.
    pub(super) fn from_cookie(
        shared: Arc<Shared>,
        path: Path,
        ports: (u16, u16),
        who: Identity,
        c: &Cookie,
    ) -> Self {
        let mut a = Association::new(shared, &[path], ports, who, (c.local_tag, c.local_tsn));
        a.peer_tag = c.peer_tag;
        a.flight = Flight::new(c.local_tsn, c.peer_window);
        a.inbound = Inbound::new(c.peer_tsn, c.inbound_streams, a.shared.config.receive_buffer.0);
        a.out.limit(c.outbound_streams);
        a.abilities = c.abilities;
        a.peer_addresses = c.addresses.clone();
        a
    }

    /// Adds another pair of addresses, over which data goes if the first one fails; the peer is known to be there.
    pub fn trust_path(&mut self, path: Path) {
        if self.paths.len() < MOST_PATHS {
            self.paths.push(PathState::new(path, &self.shared.config));
        }
    }

    /// Streams that messages can be sent on.
    pub fn has_stream(&self, stream: u16) -> bool {
        self.out.has(stream)
    }

    /// How a stream is served by the schedulers that go by priority (smaller first) or weight.
    pub fn set_stream(&mut self, stream: u16, priority: u16, weight: u16) {
        if self.out.has(stream) {
            let standing = self.out.standing(stream);
            (standing.priority, standing.weight) = (priority, weight.max(1));
        }
    }

    /// Sends a whole message. False: there is no room, no such stream, or nothing in it; a `Writable` event follows when
    /// there is room.
    pub fn send(&mut self, _cx: &mut Cx, stream: u16, message: Outgoing) -> bool {
        let len = message.body.len() as u64;
        if len == 0 || !self.out.has(stream) || !self.state.takes_data() || self.wants_shutdown {
            return false;
        }
        let limit = self.shared.config.send_buffer.0;
        let mut missing = (self.unacknowledged + len).saturating_sub(limit);
        if missing > 0 && self.abilities.forward_tsn {
            //= RFC 7496 (3.2): messages of lower priority may be given up for it.
            let displaced = self.out.displace(message.reliability, missing);
            self.flight.gave_up += displaced.len() as u64;
            self.release(displaced.into_iter().sum());
            missing = (self.unacknowledged + len).saturating_sub(limit);
        }
        if self.unacknowledged > 0 && missing > 0 {
            self.blocked = true;
            return false;
        }
        self.refill_burst();
        self.unacknowledged += len;
        self.out.push(stream, message);
        true
    }

    /// The next whole message of a stream.
    pub fn receive(&mut self, _cx: &mut Cx, stream: u16) -> Option<Message> {
        let message = self.inbound.receive(stream)?;
        self.after_read();
        Some(message)
    }

    /// Messages given up before they arrived.
    pub fn given_up(&self) -> u64 {
        self.flight.gave_up
    }

    /// The congestion window of a path in octets.
    pub fn cwnd(&self, path: usize) -> u64 {
        self.paths.get(path).map_or(0, |p| p.cwnd)
    }

    /// Is this path in use or a spare (and not taken for broken)?
    pub fn is_active(&self, path: usize) -> bool {
        self.paths.get(path).is_some_and(|p| p.active)
    }

    pub(super) fn event(&mut self, event: TransportEvent) {
        self.events.push_back(event);
    }

    /// Something was read: the peer may have to know of the room, and the end may have been waited for.
    fn after_read(&mut self) {
        let window = self.inbound.window();
        //= RFC 9260 (6.2): an update when the window has grown by a good part.
        if window >= self.window_told + self.shared.config.receive_buffer.0 / 4 && self.state.takes_sacks() {
            self.sack_due = SackDue::Now;
        }
        self.tell_end();
    }

    /// Tells the user of the end once everything that arrived was read.
    pub(super) fn tell_end(&mut self) {
        if !self.inbound.is_read() {
            return;
        }
        let finished = self.state.peer_has_finished() || self.closing == Some(CloseReason::Finished);
        if finished && !self.told_finished {
            self.told_finished = true;
            self.event(TransportEvent::Finished(0));
            let others: Vec<u16> = self.inbound.used().filter(|id| *id != 0).collect();
            self.events.extend(others.into_iter().map(|stream| TransportEvent::Finished(stream.into())));
        }
        if let Some(reason) = self.closing
            && !self.told_closed
        {
            self.told_closed = true;
            self.event(TransportEvent::Closed(reason));
        }
    }

    /// It is over.
    pub(super) fn close(&mut self, reason: CloseReason) {
        if self.closing.is_some() {
            return;
        }
        self.state = State::Closed;
        self.closing = Some(reason);
        self.facts.end = Some(reason);
        let Association { t1, t2, t5, probe_timer, sack_timer, .. } = self;
        for timer in [t1, t2, t5, probe_timer, sack_timer] {
            timer.stop();
        }
        for path in &mut self.paths {
            path.t3.stop();
            path.heartbeat.stop();
        }
        self.sack_due = SackDue::No;
        self.stop_reconfiguring();
        if reason == CloseReason::Finished {
            self.tell_end();
        } else {
            self.told_closed = true;
            self.event(TransportEvent::Closed(reason));
        }
    }

    /// Ends it at once, telling the peer why.
    pub(super) fn abort(&mut self, reason: CloseReason, cause: Option<Cause>) {
        self.control.clear();
        self.control.push_back((
            self.data_path(),
            Chunk::Abort { reflected: false, causes: cause.into_iter().collect() },
        ));
        self.close(reason);
    }

    /// So many octets of user data need no more room.
    pub(super) fn release(&mut self, octets: u64) {
        self.unacknowledged = self.unacknowledged.saturating_sub(octets);
        // Half the buffer, so that what is written next is not a crumb.
        if self.blocked && self.unacknowledged <= self.shared.config.send_buffer.0 / 2 {
            self.blocked = false;
            self.event(TransportEvent::Writable(0));
        }
    }

    pub(super) fn record(&self, cx: &mut Cx, path: usize) {
        if !cx.records.wants_congestion() {
            return;
        }
        let Some(p) = self.paths.get(path) else { return };
        cx.records.push(Record::Congestion(CongestionRecord {
            at: cx.now,
            host: self.who.host,
            flow: self.who.flow,
            cwnd: p.cwnd,
            ssthresh: p.ssthresh,
            in_flight: p.flight,
            srtt: p.srtt,
            rto: p.rto,
            state: match p.recovery {
                Some(_) => "recovery",
                None if p.cwnd <= p.ssthresh => "slow-start",
                None => "avoidance",
            },
        }));
    }

    /// Octets of user data in a chunk at most.
    pub(super) fn payload(&self) -> usize {
        //= RFC 9260 (7.3, 2): by the smallest path, so that what is sent again fits into any (AMDCS).
        self.paths.iter().map(|p| p.payload(self.abilities.interleaving)).min().unwrap_or(1)
    }

    pub(super) fn refill_burst(&mut self) {
        self.burst = match self.shared.config.max_burst {
            0 => u16::MAX,
            packets => packets,
        };
    }
}

impl Transport for Association {
    fn connect(&mut self, cx: &mut Cx) {
        self.open(cx);
    }

    fn handle_packet(&mut self, cx: &mut Cx, path: PathId, ecn: u8, packet: Packet) {
        self.refill_burst();
        self.arrives(cx, path.0, ecn, packet);
        self.follow_up(cx);
    }

    fn poll_transmit(&mut self, cx: &mut Cx) -> Option<Unit> {
        let unit = self.output(cx)?;
        self.facts.segments += 1;
        self.facts.wire_sent += unit.packet.wire_len() as u64;
        Some(unit)
    }

    fn poll_event(&mut self) -> Option<TransportEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if let Some(stream) = self.inbound.fresh.pop_front() {
            let octets = self.inbound.readable(stream).min(u64::from(u32::MAX)) as u32;
            if octets > 0 || self.inbound.has_message(stream) {
                return Some(TransportEvent::Readable(stream.into(), octets));
            }
            return self.poll_event();
        }
        let is_over =
            self.closing.is_some() && self.told_closed && self.control.is_empty() && self.strays.is_empty();
        (is_over && !std::mem::replace(&mut self.gone, true)).then_some(TransportEvent::Gone)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let Association { t1, t2, t5, probe_timer, sack_timer, .. } = self;
        let own = earliest(&[*t1, *t2, *t5, *probe_timer, *sack_timer, self.reconfiguration.timer]);
        let paths = self.paths.iter().filter_map(|p| earliest(&[p.t3, p.heartbeat])).min();
        match (own, paths) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.refill_burst();
        self.expire(cx);
        self.follow_up(cx);
    }

    fn write(&mut self, cx: &mut Cx, stream: u32, mut body: Body) -> Result<usize, WriteError> {
        let stream = u16::try_from(stream).map_err(|_| WriteError::Closed)?;
        self.refill_burst();
        let config = &self.shared.config;
        let message = match config.message.0 {
            0 => self.payload(),
            octets => octets.min(1 << 30) as usize,
        };
        let free = config.send_buffer.0.saturating_sub(self.unacknowledged);
        let whole = body.len();
        let mut left = whole.min(usize::try_from(free).unwrap_or(usize::MAX));
        if left < whole {
            // What is left over comes with the next write: no crumbs in between.
            left -= left % message;
            // A buffer smaller than a message takes one when it is empty.
            if left == 0 && self.unacknowledged == 0 {
                left = message.min(whole);
            }
        }
        let mut taken = 0;
        while left > 0 {
            let part = body.split_to(message.min(left));
            let len = part.len();
            if !self.send(cx, stream, Outgoing::new(part)) {
                return if taken > 0 { Ok(taken) } else { Err(WriteError::Closed) };
            }
            taken += len;
            left -= len;
        }
        if taken < whole {
            self.blocked = true;
        }
        WriteError::or_taken(taken, whole)
    }

    fn read(&mut self, _cx: &mut Cx, stream: u32, max: usize) -> Option<Body> {
        let body = self.inbound.read(u16::try_from(stream).ok()?, max);
        if body.is_some() {
            self.after_read();
        }
        body
    }

    fn finish(&mut self, cx: &mut Cx, _stream: u32) {
        self.shut_down(cx);
    }

    fn reset(&mut self, _cx: &mut Cx) {
        if self.closing.is_some() {
            // It waited for its user to read.
            self.told_closed = true;
            return;
        }
        if self.state.has_peer() {
            self.abort(CloseReason::Aborted, Some(Cause::UserInitiated(bytes::Bytes::new())));
        } else {
            self.control.clear();
            self.close(CloseReason::Aborted);
        }
    }

    fn path_mtu(&mut self, _cx: &mut Cx, path: PathId, mtu: u16) {
        //= RFC 1191 (6.3): a router from before it does not say what fits; never below 68 octets.
        if let Some(path) = self.paths.get_mut(usize::from(path.0))
            && mtu > 0
        {
            //= RFC 8201 (4): nor below 1280 octets for IPv6.
            let least = if path.address.remote.is_ipv6() { 1280 } else { 68 };
            path.address.mtu = path.address.mtu.min(mtu.max(least));
        }
    }

    fn unacknowledged(&self, _stream: u32) -> u64 {
        self.unacknowledged
    }

    fn streams(&self) -> Option<u32> {
        Some(u32::from(self.out.streams().min(self.inbound.streams())))
    }

    fn peer_addresses(&self) -> Option<&[IpAddr]> {
        self.shared.config.multihoming.then_some(&self.peer_addresses[..])
    }

    fn add_path(&mut self, cx: &mut Cx, path: Path) -> bool {
        let is_known = |p: &PathState| (p.address.local, p.address.remote) == (path.local, path.remote);
        if self.paths.len() >= MOST_PATHS || self.paths.iter().any(is_known) {
            return false;
        }
        self.paths.push(PathState::unconfirmed(path, &self.shared.config));
        //= RFC 9260 (5.4): a heartbeat has to come back before data is sent there.
        if !self.is_unsure {
            self.probe(cx, self.paths.len() - 1);
        }
        true
    }

    fn facts(&self) -> FlowFacts {
        let primary = self.paths.first();
        FlowFacts {
            app_received: self.inbound.delivered,
            resent: self.flight.resent,
            spurious: self.flight.spurious,
            srtt: primary.and_then(|p| p.srtt),
            min_rtt: primary.and_then(|p| p.min_rtt),
            ..self.facts
        }
    }

    fn into_lingering(self: Box<Self>) -> Box<dyn Transport> {
        self
    }
}
