//! One end of a connection: a sender, a receiver, and what opens and ends it.

use std::collections::VecDeque;
use std::sync::Arc;

use airloom_base::record::{CongestionRecord, Record};
use airloom_base::service::{FlowFacts, Identity, Outgoing, Path, WriteError};
use airloom_base::timer::{Timer, earliest};
use airloom_base::{Body, CloseReason, Cx, Instant, Packet, PathId, Transport, TransportEvent};
use bytes::Bytes;

use super::config::Config;
use super::content::{parse_runs, tag};
use super::pieces::{PIECE, Piece};
use super::receive::Receiver;
use super::round_trip::RoundTrip;
use super::send::{Phase, Sender};
use super::wire::{Header, Kind, Layout};

/// Content up to this stands among the header octets: the longest SYN with the longest header.
const IN_HEAD: usize = 60;
/// Octets of a control segment's content that are looked at.
const LONGEST_CONTENT: usize = 2048;

/// So many times [`Config::give_up`] may pass without an answer from a peer that is heard.
const PATIENCE: u64 = 10;

/// How far opening and ending have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing was sent.
    #[default]
    Idle,
    /// SYN was sent.
    SynSent,
    /// SYN-ACK was sent.
    SynReceived,
    /// Data can flow.
    Open,
    /// It is over.
    Over,
}

/// One end of a connection.
#[derive(Default)]
pub struct Connection {
    pub(super) config: Arc<Config>,
    pub(super) layout: Layout,
    ip_header: u16,
    pub(super) who: Identity,
    pub(super) ports: (u16, u16),
    pub(super) state: State,
    /// Names the connection in what opens and ends it.
    pub(super) tag: u32,
    pub(super) tx: Sender,
    pub(super) rx: Receiver,
    pub(super) trip: RoundTrip,
    /// Control segments to send.
    pub(super) out: VecDeque<(Header, Bytes)>,
    /// SYN, SYN-ACK or FIN is sent again.
    pub(super) again: Timer,
    /// When it was sent first, and how often since.
    pub(super) asked: Instant,
    pub(super) tries: u32,
    /// The application writes no more; that was said; the peer knows.
    pub(super) finished: bool,
    pub(super) fin_sent: bool,
    pub(super) fin_acknowledged: bool,
    /// The peer sends no more.
    pub(super) peer_finished: bool,
    pub(super) told_finished: bool,
    pub(super) told_closed: bool,
    pub(super) gone: bool,
    pub(super) end: Option<CloseReason>,
    /// When the peer was heard last, or was first asked something.
    heard: Instant,
    /// The same of what answers to what was asked: for what opens and ends, and for waves.
    answered: Instant,
    blocked: bool,
    had_readable: usize,
    events: VecDeque<TransportEvent>,
    /// The host's only connection lives.
    pub(super) place: Option<Arc<()>>,
    pub(super) facts: FlowFacts,
}

impl Connection {
    pub(super) fn new(
        config: Arc<Config>,
        path: &Path,
        ports: (u16, u16),
        who: Identity,
        tag: u32,
        place: Option<Arc<()>>,
    ) -> Self {
        let layout = config.layout();
        let room = usize::from(path.mtu.saturating_sub(path.ip_header())).saturating_sub(layout.len());
        let payload = room.min(config.segment.0 as usize);
        Connection {
            tx: Sender::new(config.clone(), payload),
            rx: Receiver::new(config.clone()),
            config,
            layout,
            ip_header: path.ip_header(),
            who,
            ports,
            tag,
            place,
            ..Default::default()
        }
    }

    pub(super) fn event(&mut self, event: TransportEvent) {
        self.events.push_back(event);
    }

    /// Is an answer waited for?
    fn is_waiting(&self) -> bool {
        let asks = matches!(self.state, State::SynSent | State::SynReceived);
        asks || self.tx.phase != Phase::Idle || (self.fin_sent && !self.fin_acknowledged)
    }

    /// Something is waited for from now on: the peer has [`Config::give_up`] to say a word, and [`PATIENCE`] times that to say
    /// the one that is waited for. Probes that are answered do not alone keep a connection: where a header was forged, the two
    /// ends may mean different waves for ever.
    pub(super) fn expects(&mut self, now: Instant) {
        if !self.is_waiting() {
            self.is_answered(now);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let give_up = self.config.give_up;
        let deadline = || (self.heard + give_up).min(self.answered + give_up * PATIENCE);
        (self.is_waiting() && self.state != State::Over).then(deadline)
    }

    fn is_answered(&mut self, now: Instant) {
        (self.heard, self.answered) = (now, now);
    }

    /// A segment of this connection.
    fn arrives(&mut self, now: Instant, mut packet: Packet) {
        let Ok(h) = self.layout.parse(packet.head()) else { return };
        if matches!(h.kind, Kind::Data | Kind::DataLast) {
            // A head with more than the header was not made by a sender of ours.
            if packet.head().len() == self.layout.len() && self.has_peer(now) {
                self.heard = now;
                self.rx.data(now, &h, packet.take_body());
            }
            return;
        }
        if h.kind == Kind::Piece {
            self.piece_arrives(now, &h, packet);
            return;
        }
        let mut content = packet.head()[self.layout.len()..].to_vec();
        let body = packet.take_body();
        content.extend_from_slice(&body.slice(0, LONGEST_CONTENT).to_bytes());
        match h.kind {
            Kind::Syn | Kind::SynAck | Kind::Ack | Kind::Fin | Kind::FinAck => {
                let Ok(tag) = tag(&content) else { return };
                if tag == self.tag {
                    self.is_answered(now);
                    self.set_up(now, &h, &content);
                }
            }
            Kind::Rst => self.reset_arrives(&h, tag(&content).unwrap_or(0)),
            _ if !self.has_peer(now) => {}
            Kind::Nsack => {
                let cumulative = self.layout.unwrap(h.number, self.tx.next());
                let runs = parse_runs(&content, cumulative).ok();
                // One that cannot be is no sign of life.
                if runs
                    .is_some_and(|runs| self.tx.answered(now, h.wave, h.level, cumulative, &runs, &self.trip))
                {
                    self.is_answered(now);
                }
            }
            Kind::Pr1Ack | Kind::Pr2Ack => {
                self.heard = now;
                let cycle = self.layout.unwrap(h.number, self.tx.cycle());
                self.tx.probe_answered(now, h.kind, cycle, &mut self.trip);
            }
            _ => {
                self.heard = now;
                self.rx.probe(now, &h, &mut self.trip);
            }
        }
    }

    /// A piece of a segment: what it is stands behind the header, in a simulated packet among its octets.
    fn piece_arrives(&mut self, now: Instant, h: &Header, mut packet: Packet) {
        let mut said = packet.head()[self.layout.len()..].to_vec();
        let mut body = packet.take_body();
        if said.is_empty() {
            said = body.split_to(PIECE).to_bytes().to_vec();
        }
        if let Ok(piece) = Piece::parse(&said)
            && said.len() == PIECE
            && self.has_peer(now)
        {
            self.heard = now;
            self.rx.piece(now, h, piece, body);
        }
    }

    /// After every input: what can begin begins, what changed is told.
    fn follow_up(&mut self, cx: &mut Cx) {
        let now = cx.now;
        if self.state == State::Open {
            let before = self.tx.phase;
            self.expects(now);
            self.tx.proceed(now, self.finished, &self.trip);
            if self.tx.phase != before {
                self.record(cx);
            }
            if self.finished && !self.fin_sent && self.tx.is_drained() {
                self.finish_now(now);
            }
        }
        self.out.extend(self.rx.out.drain(..));
        let readable = self.rx.readable();
        if readable > 0 && self.had_readable == 0 {
            self.facts.first_byte.get_or_insert(now);
            self.event(TransportEvent::Readable(0, readable.min(u32::MAX as usize) as u32));
        }
        self.had_readable = readable;
        // Half the buffer, so that what is written next is not a crumb.
        if self.blocked && (self.tx.unacknowledged() as u64) <= self.config.send_buffer.0 / 2 {
            self.blocked = false;
            self.event(TransportEvent::Writable(0));
        }
        self.tell_end();
    }

    /// Tells the user of the end once everything that arrived was read.
    fn tell_end(&mut self) {
        if self.rx.readable() > 0 {
            return;
        }
        if self.peer_finished && !self.told_finished {
            self.told_finished = true;
            self.event(TransportEvent::Finished(0));
        }
        if self.peer_finished && self.fin_acknowledged && self.end.is_none() {
            self.close(CloseReason::Finished);
        }
        if let Some(reason) = self.end
            && !std::mem::replace(&mut self.told_closed, true)
        {
            self.event(TransportEvent::Closed(reason));
        }
    }

    /// It is over.
    pub(super) fn close(&mut self, reason: CloseReason) {
        if self.end.is_some() {
            return;
        }
        (self.state, self.end, self.place) = (State::Over, Some(reason), None);
        self.facts.end = Some(reason);
        self.again.stop();
        self.tx.stop();
        if reason != CloseReason::Finished {
            self.told_closed = true;
            self.event(TransportEvent::Closed(reason));
        }
    }

    fn record(&self, cx: &mut Cx) {
        if !cx.records.wants_congestion() {
            return;
        }
        let told = usize::from(self.tx.told());
        let wave = told.checked_sub(1).and_then(|l| self.tx.waves.get(l)).copied().unwrap_or(0);
        cx.records.push(Record::Congestion(CongestionRecord {
            at: cx.now,
            host: self.who.host,
            flow: self.who.flow,
            cwnd: u64::from(wave) * self.tx.payload as u64,
            ssthresh: u64::MAX,
            in_flight: self.tx.in_flight() as u64,
            srtt: self.trip.smoothed(),
            rto: self.tx.send_time(&self.trip),
            state: match self.tx.phase {
                Phase::Probe(_) => "probe",
                Phase::Idle => "idle",
                Phase::Wave | Phase::Wait => "wave",
            },
        }));
    }
}

/// A control segment. Where its content is short it stands among the header octets, where a host looks for the ports of a SYN.
pub(super) fn control(layout: Layout, header: &Header, ports: (u16, u16), content: Bytes) -> Packet {
    if content.len() > IN_HEAD {
        return Packet::build(|out| layout.emit(header, ports, out), Body::Real(content));
    }
    let write = |out: &mut [u8]| {
        let at = layout.emit(header, ports, out);
        out[at..at + content.len()].copy_from_slice(&content);
        at + content.len()
    };
    Packet::build(write, Body::EMPTY)
}

impl Transport for Connection {
    fn connect(&mut self, cx: &mut Cx) {
        self.open(cx.now);
        self.follow_up(cx);
    }

    fn handle_packet(&mut self, cx: &mut Cx, _path: PathId, _ecn: u8, packet: Packet) {
        self.facts.wire_received += packet.wire_len() as u64;
        if self.state != State::Over {
            self.arrives(cx.now, packet);
            self.follow_up(cx);
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx) -> Option<Outgoing> {
        let packet = match self.out.pop_front() {
            Some((header, content)) => control(self.layout, &header, self.ports, content),
            None => {
                let (header, piece, body) = self.tx.poll(cx.now, self.layout, &self.trip)?;
                let write = |out: &mut [u8]| {
                    let at = self.layout.emit(&header, self.ports, out);
                    let said = piece.map(Piece::emit);
                    said.map_or(at, |said| {
                        out[at..at + PIECE].copy_from_slice(&said);
                        at + PIECE
                    })
                };
                Packet::build(write, body)
            }
        };
        self.facts.segments += 1;
        self.facts.wire_sent += packet.wire_len() as u64;
        let last = self.out.is_empty() && self.tx.is_quiet();
        Some(Outgoing { path: PathId(0), ecn: 0, packet, last })
    }

    fn poll_event(&mut self) -> Option<TransportEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let is_over = self.end.is_some() && self.told_closed && self.out.is_empty();
        (is_over && !std::mem::replace(&mut self.gone, true)).then_some(TransportEvent::Gone)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [earliest(&[self.again]), self.tx.poll_timeout(), self.deadline()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        if self.deadline().is_some_and(|at| at <= cx.now) {
            self.close(CloseReason::TimedOut);
        } else {
            self.expire(cx.now);
            let before = self.tx.phase;
            self.tx.expire(cx.now, &self.trip);
            if self.tx.phase != before {
                self.record(cx);
            }
        }
        self.follow_up(cx);
    }

    fn write(&mut self, cx: &mut Cx, _stream: u32, mut body: Body) -> Result<usize, WriteError> {
        if self.finished || self.state == State::Over {
            return Err(WriteError::Closed);
        }
        let whole = body.len();
        let free = self.config.send_buffer.0.saturating_sub(self.tx.unacknowledged() as u64);
        let taken = body.split_to(usize::try_from(free).unwrap_or(usize::MAX));
        let len = taken.len();
        self.blocked |= len < whole;
        self.tx.write(taken);
        self.follow_up(cx);
        WriteError::or_taken(len, whole)
    }

    fn read(&mut self, _cx: &mut Cx, _stream: u32, max: usize) -> Option<Body> {
        let body = self.rx.read(max);
        self.had_readable = self.rx.readable();
        if body.is_some() {
            self.tell_end();
        }
        body
    }

    fn finish(&mut self, cx: &mut Cx, _stream: u32) {
        self.finished = true;
        self.follow_up(cx);
    }

    fn reset(&mut self, _cx: &mut Cx) {
        if self.end.is_some() {
            // It waited for its user to read.
            self.told_closed = true;
            return;
        }
        self.out.clear();
        if !matches!(self.state, State::Idle | State::Over) {
            self.say_reset();
        }
        self.close(CloseReason::Aborted);
    }

    fn path_mtu(&mut self, _cx: &mut Cx, _path: PathId, mtu: u16) {
        //= RFC 1191 (6.3): a router from before it does not say what fits; never below 68 octets.
        //= RFC 8201 (4): nor below 1280 octets for IPv6.
        if mtu == 0 {
            return;
        }
        let mtu = mtu.max(if self.ip_header == 40 { 1280 } else { 68 });
        let room = usize::from(mtu.saturating_sub(self.ip_header)).saturating_sub(self.layout.len());
        self.tx.payload = self.tx.payload.min(room.max(1));
    }

    fn unacknowledged(&self, _stream: u32) -> u64 {
        self.tx.unacknowledged() as u64
    }

    fn facts(&self) -> FlowFacts {
        FlowFacts {
            app_sent: self.tx.app_sent,
            app_received: self.rx.delivered,
            resent: self.tx.resent,
            rto_count: self.tx.timeouts,
            srtt: self.trip.smoothed(),
            min_rtt: self.trip.smallest(),
            ..self.facts
        }
    }

    fn into_lingering(self: Box<Self>) -> Box<dyn Transport> {
        self
    }
}
