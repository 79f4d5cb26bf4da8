//! One connection: the library's, between its host and its application.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use airloom_base::record::QlogRecord;
use airloom_base::service::{FlowFacts, Identity, Moves, Path, WriteError};
use airloom_base::{
    Body, CloseReason, Cx, Duration, Instant, Outgoing, Packet, PathId, StreamEvent, StreamKind, Transport,
    TransportEvent,
};

use crate::clock::{from_library, to_library};
use crate::config::{BASE_DATAGRAM, Migration};
use crate::datagram::{datagram, in_room, payload};
use crate::guard::Guard;
use crate::host::{PLAIN, Shared, overhead};
use crate::library::{self, ConnectionError, ConnectionHandle, DatagramEvent, Event};
use crate::pace::Meter;
use crate::qlog::Trace;
use crate::streams::{self, Plain, Streams};
use crate::ways::{Way, Ways};

/// Datagrams that wait to be sent at most: answers of the endpoint (stateless resets), and what asks a client that may be elsewhere.
const MOST_WAITING: usize = 4;

/// Datagrams that say that a connection is over, each time that something comes or is due.
const MOST_FAREWELLS: usize = 2;

/// What an application closes with that knows no codes: all is said, or it gave up.
const ALL_SAID: u64 = 0;
const GIVEN_UP: u64 = 1;

/// One end of a connection.
pub struct Connection {
    host: Shared,
    who: Identity,
    is_opener: bool,
    spoken: &'static str,
    /// Its state machine, and the number that the endpoint knows it by.
    quic: Option<(ConnectionHandle, library::Connection)>,
    meter: Arc<Meter>,
    /// Where its events are kept, if they are wanted.
    trace: Option<Trace>,
    ways: Ways,
    streams: Streams,
    /// The unit that opened it was read before it was there.
    skips: bool,
    /// Datagrams that leave first: their ways, marks for ECN, and they themselves.
    waiting: Vec<(usize, u8, Packet)>,
    guard: Guard,
    /// Datagrams that have said that it is over, since something came or was due.
    farewells: usize,
    is_established: bool,
    /// A client may go on by another path.
    is_confirmed: bool,
    /// Data can flow, as its application knows it.
    is_open: bool,
    /// A client has sent before the handshake was over, or could have.
    is_early: bool,
    /// Why it is over, until its application was told.
    closing: Option<CloseReason>,
    is_over: bool,
    is_gone: bool,
    told_unreliable: bool,
    unreliable_limit: Option<usize>,
    facts: FlowFacts,
    /// A deadline has passed that may have been a probe timeout: what leaves at this moment shows it.
    may_probe: bool,
    initial_rtt: Duration,
    /// When the library wants to be called again, as of the last time that it was drained.
    alarm: Option<Instant>,
}

impl Connection {
    fn new(host: Shared, path: Path, ports: (u16, u16), spoken: &'static str, meter: Arc<Meter>) -> Self {
        let (initial_rtt, recent) = {
            let host = host.lock();
            (host.config.initial_rtt, host.recent.clone())
        };
        let streams = Streams::new(spoken == PLAIN, recent);
        Connection {
            host,
            who: Identity::default(),
            is_opener: false,
            spoken,
            quic: None,
            meter,
            trace: None,
            ways: Ways::new(path, ports),
            streams,
            skips: false,
            waiting: Vec::new(),
            guard: Guard::default(),
            farewells: 0,
            is_established: false,
            is_confirmed: false,
            is_open: false,
            is_early: false,
            closing: None,
            is_over: false,
            is_gone: false,
            told_unreliable: false,
            unreliable_limit: None,
            facts: FlowFacts::default(),
            may_probe: false,
            initial_rtt,
            alarm: None,
        }
    }

    /// The round trip, as far as it is known.
    fn round_trip(&self) -> Duration {
        self.meter.smoothed().unwrap_or(self.initial_rtt)
    }

    /// The smoothed round trip, once there is one.
    fn smoothed(&self) -> Option<Duration> {
        let measured = self.meter.smoothed()?;
        let now = self.quic.as_ref().map(|(_, quic)| library::round_trip(quic)).filter(|now| !now.is_zero());
        let nanos = now.and_then(|now| u64::try_from(now.as_nanos()).ok());
        Some(nanos.map_or(measured, Duration::from_nanos))
    }

    /// Is a packet without acknowledgement for longer than any would take?
    fn is_overdue(&self, now: Instant) -> bool {
        self.meter.unanswered_since().is_some_and(|sent| now - sent >= self.round_trip())
    }

    /// One that will open.
    pub(crate) fn opener(host: Shared, path: Path, ports: (u16, u16), who: Identity) -> Self {
        let mut new = Connection::new(host, path, ports, PLAIN, Arc::default());
        (new.who, new.is_opener) = (who, true);
        new
    }

    /// One that a client's first packet made.
    pub(crate) fn acceptor(
        host: Shared,
        path: Path,
        ports: (u16, u16),
        spoken: &'static str,
        meter: Arc<Meter>,
        quic: (ConnectionHandle, library::Connection),
        trace: Option<Trace>,
        guard: Guard,
    ) -> Self {
        let mut new = Connection::new(host, path, ports, spoken, meter);
        (new.quic, new.skips, new.trace, new.guard) = (Some(quic), true, trace, guard);
        new
    }

    /// Takes what the library has to tell.
    fn settle(&mut self, now: Instant) {
        let Some((handle, quic)) = &mut self.quic else { return };
        self.host.settle(*handle, quic);
        let mut has_changed = false;
        while let Some(event) = quic.poll() {
            has_changed = true;
            if let Some((id, remote, local)) = library::validated(quic, &event) {
                let others = library::other_paths(quic, id);
                let way = if self.is_opener {
                    let left = PathId(self.ways.active() as u8);
                    let Some(way) = self.ways.probed(id, now) else { continue };
                    library::keep_path(quic, now, id);
                    let event = StreamEvent::Path(left, false);
                    self.streams.events.push_back(TransportEvent::Stream(0, event));
                    way
                } else {
                    self.ways.answered(now, u64::MAX);
                    let way = self.ways.between(remote, local);
                    self.ways.changed(now);
                    way
                };
                self.ways.leave(others);
                self.ways.tell(way);
                let event = StreamEvent::Path(PathId(way as u8), true);
                self.streams.events.push_back(TransportEvent::Stream(0, event));
                continue;
            }
            if let Some((path, lost)) = library::dropped(&event) {
                self.ways.dropped(path, lost);
                continue;
            }
            match event {
                Event::Connected => {
                    self.is_established = true;
                    if self.is_early && !quic.accepted_0rtt() {
                        self.streams.forget_early();
                        self.facts.established = None;
                    }
                    self.facts.established.get_or_insert(now);
                    self.unreliable_limit = quic.datagrams().max_size();
                    if !std::mem::replace(&mut self.is_open, true) {
                        self.streams.begin(quic);
                        self.streams.events.push_back(TransportEvent::Opened);
                    }
                }
                Event::Stream(event) => {
                    // What a client sends early is read before the handshake is over.
                    if !self.is_opener && !std::mem::replace(&mut self.is_open, true) {
                        self.facts.established.get_or_insert(now);
                        self.streams.begin(quic);
                        self.streams.events.push_back(TransportEvent::Opened);
                    }
                    self.streams.handle(quic, event);
                }
                Event::DatagramReceived if !self.told_unreliable => {
                    self.told_unreliable = true;
                    self.streams.events.push_back(TransportEvent::Stream(0, StreamEvent::Unreliable));
                }
                Event::ConnectionLost { reason } => {
                    let why = reason_of(&reason, self.is_established, self.streams.plain.is_some());
                    self.facts.end.get_or_insert(why);
                    self.closing.get_or_insert(why);
                }
                _ => {}
            }
        }
        self.ways.count_lost(quic);
        if has_changed {
            self.host.settle(*handle, quic);
        }
        if let Some(Plain { is_sent: true, is_read: true, .. }) = self.streams.plain
            && !self.is_over
            && self.closing.is_none()
        {
            quic.close(to_library(now), streams::code(ALL_SAID), bytes::Bytes::new());
            self.facts.end.get_or_insert(CloseReason::Finished);
            self.closing = Some(CloseReason::Finished);
        }
        if let Some(trace) = &self.trace {
            trace.follow(quic);
            if let Some(why) = self.facts.end {
                trace.end(now, why);
            }
        }
    }

    /// The moment is this one, for whoever writes down what happens.
    fn mark(&self, now: Instant) {
        if let Some(trace) = &self.trace {
            trace.at(now);
        }
    }

    /// The way by which a datagram for this address goes.
    fn way_to(&self, to: SocketAddr, from: Option<IpAddr>) -> usize {
        match &self.quic {
            _ if !self.ways.are_several() => 0,
            // Where it has one path the library may believe in the old address for some time yet.
            Some((_, quic)) if self.is_opener && !library::has_several_paths(quic) => self.ways.active(),
            _ if self.is_opener => self.ways.from(from),
            _ => self.ways.between(to, from),
        }
    }

    /// The next datagram of the library: its way and its mark for ECN.
    fn next_datagram(&mut self, now: Instant) -> Option<(usize, u8, Packet)> {
        let (_, quic) = self.quic.as_mut()?;
        if quic.is_closed() {
            //= RFC 9000 (10.2.1): what is said at the end is limited. noq-proto 1.4.0 says it in an Initial packet that fills its datagram, and
            //= again, because it has not said it in a Handshake packet.
            if self.farewells >= MOST_FAREWELLS {
                return None;
            }
            self.farewells += 1;
        }
        let (sent, octets) = in_room(|room| {
            let sent = self.guard.transmit(quic, to_library(now), room)?;
            // Most datagrams of a page are far shorter than the room for one.
            let octets = room[..sent.size].to_vec();
            Some((sent, octets))
        })?;
        if let (Some(trace), Some((_, quic))) = (&self.trace, &self.quic) {
            trace.follow(quic);
        }
        let way = self.way_to(sent.destination, sent.src_ip);
        let ports = self.ways.get(way).map_or(self.ways.first().ports, |way| way.ports);
        Some((way, sent.ecn.map_or(0, |ecn| ecn as u8), datagram(ports, octets)))
    }

    /// Something came over this way, from there: what that says of paths.
    fn follow(&mut self, now: Instant, way: usize, remote: SocketAddr) {
        let silent_since = self.ways.last_arrival();
        self.ways.arrived(way, now);
        let Some((_, quic)) = self.quic.as_mut().filter(|_| self.ways.are_several()) else { return };
        if self.ways.is_asking() {
            self.ways.answered(now, library::path_responses(quic));
        }
        let is_it = if self.is_opener {
            way == self.ways.active()
        } else {
            library::remote(quic) == Some(remote) && !library::has_several_paths(quic)
        };
        if is_it && self.ways.tell(way) {
            if !self.is_opener {
                self.ways.peer_changed(silent_since, now);
                self.meter.leave(now, library::lost_untold(quic));
                self.ways.ask(now, library::path_responses(quic));
            }
            let event = StreamEvent::Path(PathId(way as u8), true);
            self.streams.events.push_back(TransportEvent::Stream(0, event));
        }
    }

    /// A client goes on by the first of its links that are in service. One may have come or gone; or only now may it leave the one it
    /// began with.
    fn choose(&mut self, now: Instant) {
        let is_alone = !self.ways.are_several();
        let Some((_, quic)) = self.quic.as_mut().filter(|(_, quic)| !is_alone && !quic.is_closed()) else {
            return;
        };
        //= RFC 9000 (9): a client does not migrate before the handshake is confirmed.
        self.is_confirmed = self.is_confirmed || library::is_confirmed(quic);
        if !self.is_confirmed {
            return;
        }
        let best = self.ways.best(&self.host.lock().addresses);
        let Some(way) = best.filter(|way| *way != self.ways.active() && !self.ways.is_probing(*way)) else {
            return;
        };
        let (Some((_, quic)), Some(to)) = (&mut self.quic, self.ways.get(way)) else { return };
        let remote = (to.path.remote, to.ports.1).into();
        let has_several = library::has_several_paths(quic);
        let opened = if has_several { library::open_path(quic, now, remote, to.path.local) } else { None };
        let is_in_service = self.ways.get(self.ways.active()).is_some_and(|way| way.is_up);
        if let Some(id) = opened {
            self.ways.probe(way, id, now);
        } else if has_several && is_in_service {
            // The server has sent no names of another path yet, or not as many as it takes: with the next packet it is asked for again.
            return;
        } else {
            let left = PathId(self.ways.active() as u8);
            self.streams.events.push_back(TransportEvent::Stream(0, StreamEvent::Path(left, false)));
            self.ways.change_to(way, now);
            self.meter.leave(now, library::lost_untold(quic));
            library::address_changed(quic, now);
        }
        self.settle(now);
    }

    /// Ends it for the application, and with that for us, if there is no library's connection.
    fn fail(&mut self, why: CloseReason) {
        self.facts.end.get_or_insert(why);
        self.closing.get_or_insert(why);
    }

    fn end(&mut self, now: Instant, why: CloseReason, code: u64) {
        self.facts.end.get_or_insert(why);
        (self.is_over, self.closing) = (true, None);
        self.streams.events.clear();
        if let Some((_, quic)) = &mut self.quic {
            quic.close(to_library(now), streams::code(code), bytes::Bytes::new());
            self.settle(now);
            self.streams.events.clear();
        }
    }
}

/// What the end of a connection means for its application.
fn reason_of(reason: &ConnectionError, is_established: bool, is_plain: bool) -> CloseReason {
    match reason {
        ConnectionError::ApplicationClosed(close) => match (is_plain, close.error_code.into_inner()) {
            (true, ALL_SAID) => CloseReason::Finished,
            (true, _) => CloseReason::Reset,
            (false, code) => CloseReason::Application(code),
        },
        ConnectionError::TimedOut => CloseReason::TimedOut,
        ConnectionError::Reset => CloseReason::Reset,
        ConnectionError::ConnectionClosed(_) if is_established => CloseReason::Reset,
        ConnectionError::ConnectionClosed(_)
        | ConnectionError::VersionMismatch
        | ConnectionError::CidsExhausted => CloseReason::Refused,
        ConnectionError::TransportError(_) | ConnectionError::LocallyClosed => CloseReason::Aborted,
    }
}

impl Transport for Connection {
    fn speak(&mut self, protocol: &'static str) {
        self.spoken = protocol;
        self.streams = Streams::new(protocol == PLAIN, self.host.lock().recent.clone());
    }

    fn connect(&mut self, cx: &mut Cx) {
        let Way { path, ports, .. } = *self.ways.first();
        //= RFC 9000 (14): a path that does not carry 1200 octets of UDP is no path for QUIC.
        if path.mtu < BASE_DATAGRAM + overhead(&path) {
            return self.fail(CloseReason::Unreachable);
        }
        let mut host = self.host.lock();
        let is_told = cx.records.wants_qlog();
        host.tell(is_told);
        self.trace = is_told.then(|| host.trace(cx.now, self.who.flow, true, &path, ports, None));
        let remote = (path.remote, ports.1).into();
        let config = host.client(self.spoken, &path, remote, self.meter.clone(), self.trace.as_ref());
        let name = host.name_of(path.remote);
        match host.endpoint.connect(to_library(cx.now), config, remote, &name) {
            Ok((handle, quic)) => {
                host.enter(handle, self.who.flow);
                drop(host);
                // An application that knows of no streams does not say what may be repeated.
                self.is_early = quic.has_0rtt() && self.streams.plain.is_none();
                if self.is_early {
                    self.facts.established = Some(cx.now);
                    self.streams.events.push_back(TransportEvent::Stream(0, StreamEvent::Early));
                }
                self.quic = Some((handle, quic));
            }
            Err(_) => {
                drop(host);
                self.fail(CloseReason::Refused);
            }
        }
    }

    fn handle_packet(&mut self, cx: &mut Cx, path: PathId, ecn: u8, packet: Packet) {
        self.facts.wire_received += packet.wire_len() as u64;
        if std::mem::take(&mut self.skips) {
            // What came early with it is told at once.
            return self.settle(cx.now);
        }
        self.farewells = 0;
        self.mark(cx.now);
        let (Some(octets), Some(way)) = (payload(packet), self.ways.get(usize::from(path.0))) else { return };
        let (local, ports) = (way.path.local, way.ports);
        let remote = (way.path.remote, ports.1).into();
        let Some((_, quic)) = &mut self.quic else { return };
        let used = self.ways.get(self.ways.active()).map(|way| way.path.local);
        if self.is_opener && self.ways.are_several() && library::is_astray(quic, local, used) {
            return;
        }
        if self.guard.received(quic, to_library(cx.now), remote, octets.len())
            && self.waiting.len() < MOST_WAITING
        {
            let ping = self.next_datagram(cx.now);
            self.waiting.extend(ping);
        }
        let Some((own, quic)) = &mut self.quic else { return };
        let mut answer = Vec::new();
        let mut host = self.host.lock();
        match library::datagram(&mut host.endpoint, cx.now, remote, local, ecn, octets, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) if handle == *own => quic.handle_event(event),
            Some(DatagramEvent::NewConnection(incoming)) => host.endpoint.ignore(incoming),
            // A stateless reset counts as everything else does that goes there.
            Some(DatagramEvent::Response(sent))
                if self.waiting.len() < MOST_WAITING
                    && (self.is_opener || self.guard.leaves(remote, sent.size as u64)) =>
            {
                answer.truncate(sent.size);
                self.waiting.push((path.0.into(), 0, datagram(ports, answer)));
            }
            _ => {}
        }
        drop(host);
        self.follow(cx.now, usize::from(path.0), remote);
        self.settle(cx.now);
        if self.is_opener {
            self.choose(cx.now);
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx) -> Option<Outgoing> {
        if (!self.is_opener || self.is_early) && cx.records.wants_packets() {
            self.host.tell_secrets(&mut cx.records.secrets);
        }
        let (path, ecn, packet) = if let Some(waiting) = self.waiting.pop() {
            waiting
        } else {
            self.mark(cx.now);
            let Some(next) = self.next_datagram(cx.now) else {
                (self.may_probe, self.streams.has_unsent) = (false, false);
                self.settle(cx.now);
                self.alarm = self.quic.as_mut()?.1.poll_timeout().map(from_library);
                if let Some((of, lines)) = self.trace.as_ref().and_then(Trace::take) {
                    cx.records.qlog.push(QlogRecord { of, lines });
                }
                return None;
            };
            // With nothing acknowledged for so long, what asks for an acknowledgement at a deadline is a probe.
            if std::mem::take(&mut self.may_probe) && self.meter.unanswered_since() == Some(cx.now) {
                self.facts.rto_count += 1;
            }
            next
        };
        self.facts.segments += 1;
        self.facts.wire_sent += packet.wire_len() as u64;
        Some(Outgoing { path: PathId(path as u8), ecn, packet, last: false })
    }

    fn poll_event(&mut self) -> Option<TransportEvent> {
        if let Some(event) = self.streams.events.pop_front() {
            return Some(event);
        }
        // Whatever the peer said before it closed is read first, where it cannot know that it was.
        let waits = self.streams.plain.is_some()
            && self.streams.has_unread()
            && self.closing == Some(CloseReason::Finished);
        if !self.is_over
            && !waits
            && let Some(why) = self.closing.take()
        {
            self.is_over = true;
            return Some(TransportEvent::Closed(why));
        }
        let is_left = self.quic.as_ref().is_some_and(|(_, quic)| !quic.is_drained());
        if self.is_over && !is_left && self.waiting.is_empty() && !std::mem::replace(&mut self.is_gone, true)
        {
            return Some(TransportEvent::Gone);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.alarm
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.farewells = 0;
        let is_overdue = self.is_overdue(cx.now);
        if let Some(trace) = &self.trace {
            trace.due(cx.now);
        }
        if let Some((_, quic)) = &mut self.quic {
            let lost = self.meter.lost.load(Relaxed);
            quic.handle_timeout(to_library(cx.now));
            // Of its timers the library tells nothing. One that finds packets lost is no probe timeout.
            self.may_probe = is_overdue && lost == self.meter.lost.load(Relaxed);
            self.settle(cx.now);
        }
    }

    fn write(&mut self, _cx: &mut Cx, stream: u32, body: Body) -> Result<usize, WriteError> {
        match &mut self.quic {
            Some((_, quic)) if self.closing.is_none() => self.streams.write(quic, stream, body),
            _ => Err(WriteError::Closed),
        }
    }

    fn read(&mut self, cx: &mut Cx, stream: u32, max: usize) -> Option<Body> {
        let (_, quic) = self.quic.as_mut()?;
        let body = self.streams.read(quic, stream, max)?;
        self.facts.first_byte.get_or_insert(cx.now);
        if self.streams.plain.as_ref().is_some_and(|plain| plain.is_read) {
            self.settle(cx.now);
        }
        Some(body)
    }

    fn finish(&mut self, _cx: &mut Cx, stream: u32) {
        if let Some((_, quic)) = &mut self.quic {
            self.streams.finish(quic, stream);
        }
    }

    fn reset(&mut self, cx: &mut Cx) {
        let code = if self.streams.plain.is_some() { GIVEN_UP } else { ALL_SAID };
        self.end(cx.now, CloseReason::Aborted, code);
    }

    fn close(&mut self, cx: &mut Cx, code: u64) {
        self.end(cx.now, CloseReason::Finished, code);
    }

    fn log(&mut self, events: &[u8]) {
        if let Some(trace) = &self.trace {
            trace.add(events);
        }
    }

    fn open_stream(&mut self, _cx: &mut Cx, kind: StreamKind) -> Option<u32> {
        let (_, quic) = self.quic.as_mut()?;
        self.streams.open(quic, kind)
    }

    fn reset_stream(&mut self, _cx: &mut Cx, stream: u32, code: u64) {
        if let Some((_, quic)) = &mut self.quic {
            self.streams.reset(quic, stream, code);
        }
    }

    fn stop(&mut self, _cx: &mut Cx, stream: u32, code: u64) {
        if let Some((_, quic)) = &mut self.quic {
            self.streams.stop(quic, stream, code);
        }
    }

    fn set_priority(&mut self, stream: u32, priority: i32) {
        if let Some((_, quic)) = &mut self.quic {
            self.streams.set_priority(quic, stream, priority);
        }
    }

    fn send_unreliable(&mut self, _cx: &mut Cx, body: Body) -> bool {
        let Some((_, quic)) = &mut self.quic else { return false };
        let taken = quic.datagrams().send(body.to_bytes(), true).is_ok();
        self.unreliable_limit = quic.datagrams().max_size();
        taken
    }

    fn read_unreliable(&mut self, _cx: &mut Cx) -> Option<Body> {
        let read = self.quic.as_mut()?.1.datagrams().recv();
        self.told_unreliable &= read.is_some();
        read.map(Body::Real)
    }

    fn unreliable_limit(&self) -> Option<usize> {
        self.unreliable_limit
    }

    fn path_mtu(&mut self, _cx: &mut Cx, _path: PathId, _mtu: u16) {
        //= RFC 9000 (14.2.1): what ICMP says may be ignored; probes tell the same, and cannot be forged.
    }

    fn unacknowledged(&self, stream: u32) -> u64 {
        // The library tells of a stream only that all of it has arrived, and a controller octets of packets, their headers and the
        // handshake's among them: as many as may be left at most, so that they become fewer as long as something arrives.
        const BESIDE: u64 = 1 << 16;
        let is_all_answered = !self.streams.has_unsent && self.meter.unanswered_since().is_none();
        match self.streams.is_ended(stream) {
            None => 0,
            // One that goes on is never told to have arrived.
            Some(false) if is_all_answered => 0,
            Some(_) => {
                let most = 2 * self.streams.sent + BESIDE;
                most.saturating_sub(self.meter.acknowledged.load(Relaxed)).max(1)
            }
        }
    }

    fn peer_addresses(&self) -> Option<&[IpAddr]> {
        // A peer has one address, and may be reached from each of ours.
        (self.is_opener && self.host.lock().config.migration != Migration::Off).then_some(&[])
    }

    fn add_path(&mut self, _cx: &mut Cx, path: Path) -> bool {
        self.ways.add(path)
    }

    fn handle_path(&mut self, cx: &mut Cx, path: PathId, is_up: bool) {
        let Some(way) = self.ways.get_mut(usize::from(path.0)) else { return };
        way.is_up = is_up;
        if self.is_opener {
            self.choose(cx.now);
        }
    }

    fn handle_move(&mut self, cx: &mut Cx, path: Path, ports: (u16, u16)) -> Option<PathId> {
        if self.is_opener || self.host.lock().config.migration == Migration::Off {
            return None;
        }
        let way = self.ways.peer_moved(path, ports);
        if self.quic.as_ref().is_some_and(|(_, quic)| library::has_several_paths(quic)) {
            // Validated when the library says so, not by answers that are counted.
            self.ways.ask(cx.now, u64::MAX - 1);
        }
        Some(PathId(way as u8))
    }

    fn moves(&self) -> Moves {
        let mut moves = self.ways.moves();
        let lost = self.quic.as_ref().and_then(|(_, quic)| library::lost_untold(quic));
        moves.lost_bytes += self.meter.left(lost);
        moves
    }

    fn facts(&self) -> FlowFacts {
        let time = |nanos: u64| Some(Duration::from_nanos(nanos)).filter(|time| !time.is_zero());
        FlowFacts {
            app_sent: self.streams.sent,
            app_received: self.streams.received,
            resent: self.meter.lost.load(Relaxed),
            spurious: self.meter.spurious.load(Relaxed),
            srtt: self.smoothed(),
            min_rtt: time(self.meter.min_rtt.load(Relaxed)),
            ..self.facts
        }
    }

    fn into_lingering(self: Box<Self>) -> Box<dyn Transport> {
        self
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some((handle, _)) = &self.quic {
            self.host.lock().forget(*handle);
        }
    }
}
