//! One connection: its parts, and what its host calls.
//!
//! What arrives is handled in `arrival.rs` and `acks.rs`, what leaves is decided in `output.rs`.
//!
//! A circle of 19 files: each part (`octets/`, `segments/`, `pace.rs`, ..) has its state and what the connection does with it,
//! as the RFCs are parted: it names the connection, and the connection holds its state.

mod acks;
mod arrival;
mod output;

use std::collections::VecDeque;
use std::sync::Arc;

use airloom_base::record::{CongestionRecord, Record};
use airloom_base::service::{FlowFacts, Identity, Path, WriteError};
use airloom_base::{
    Body, CloseReason, Cx, Duration, Instant, Outgoing, Packet, PathId, Transport, TransportEvent,
};

use super::ack_policy::AckState;
use super::autotuning::RightSize;
use super::config::{Config, LossDetection};
use super::congestion::delivery_rate::Sampler;
use super::congestion::validation::Usage;
use super::congestion::{self, About, Controller, Hears, Phase, Recovery, Window};
use super::ecn::{self, Ecn};
use super::events::{Events, event};
use super::liveness::{Challenges, Liveness};
use super::octets::Octets;
use super::offload::Offload;
use super::pace::Pace;
use super::probing::Probing;
use super::recv::Receive;
use super::rtt::Rtt;
use super::segments::{Segments, TimerKind};
use super::send::Send;
use super::state::{State, Step};
use super::time_wait::TimeWait;
use super::timers::{Alarm, Timers};
use super::wire::{Header, TIMESTAMPS_LEN};
pub(super) use output::Limit;

/// Sequence numbers are 64 bits wide inside; they start high enough for nothing to become negative.
const ORIGIN: u64 = 1 << 32;

/// The 64-bit sequence number nearest to `near` whose low half is `wire`.
#[inline]
pub(super) fn widen(near: u64, wire: u32) -> u64 {
    near.wrapping_add_signed(i64::from(wire.wrapping_sub(near as u32).cast_signed()))
}

/// What waits to be sent: bits of [`Connection::pending`].
pub(super) mod pending {
    /// An acknowledgement, now.
    pub const ACK: u16 = 1;
    /// Data may be allowed out: try.
    pub const DATA: u16 = 2;
    /// The first segment not acknowledged, whatever the window says.
    pub const HEAD: u16 = 4;
    /// SYN or SYN-ACK.
    pub const SYN: u16 = 8;
    /// A probe of a closed window.
    pub const PROBE: u16 = 16;
    /// A keep-alive.
    pub const KEEPALIVE: u16 = 32;
    /// RST of a connection that we end.
    pub const RESET: u16 = 64;
    /// RST in answer to a segment that cannot be meant for us.
    pub const REFUSE: u16 = 128;
    /// A probe of a suspended sender, or the answer to one.
    pub const PROBING: u16 = 256;
    /// Acknowledgements that were made already.
    pub const MADE: u16 = 512;
    /// Any of the segments that ask the peer for an answer.
    pub const PROBES: u16 = PROBE | KEEPALIVE | PROBING;
}

/// Why data waits, beside the windows: bits of [`Connection::hold`].
pub(super) mod hold {
    /// The path takes smaller datagrams: one segment only until it is acknowledged.
    pub const MTU: u8 = 1;
    /// Congestion was reported for a window of one segment: nothing new until the retransmission timer expires.
    pub const ECN: u8 = 2;
    /// A controller probes the path before it lets anything be repaired.
    pub const PROBING: u8 = 4;
}

/// What both sides have agreed on in the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Window scaling (RFC 7323 2).
    pub scaling: bool,
    /// Timestamps (RFC 7323 3).
    pub timestamps: bool,
}

/// How the sender is repairing losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing is known to be lost.
    Open,
    /// Duplicates or reports that prove nothing yet.
    Disorder,
    /// The window is being reduced, and nothing is known to be lost.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout (or Tahoe's fast retransmit): all is sent again.
    Loss,
}

impl Mode {
    /// As a controller hears of it.
    #[inline]
    pub const fn phase(self) -> Phase {
        match self {
            Mode::Open | Mode::Disorder | Mode::Cwr => Phase::Open,
            Mode::Recovery => Phase::Recovery,
            Mode::Loss => Phase::Loss,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Mode::Open => "open",
            Mode::Disorder => "disorder",
            Mode::Cwr => "cwr",
            Mode::Recovery => "recovery",
            Mode::Loss => "loss",
        }
    }
}

/// What the sender keeps its books of losses by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Books {
    /// The octet, as the RFCs do: `octets/`.
    Octets,
    /// The segment, as Linux does: `segments/`.
    Segments,
}

/// One TCP connection.
pub(super) struct Connection {
    pub config: Arc<Config>,
    pub state: State,
    pub pending: u16,
    events: Events,
    pub mode: Mode,
    pub agreed: Agreed,
    pub opener: bool,
    /// The application has called `finish`; the FIN waits for the handshake.
    finish_wanted: bool,
    /// One past the highest number sent when the last recovery or loss state began.
    pub recover: u64,
    /// Something was sent since nothing more could be.
    pub sent_something: bool,
    /// Why data waits, beside the windows.
    pub hold: u8,
    pub snd: Send,
    pub rcv: Receive,
    pub books: Books,
    pub octets: Octets,
    pub segments: Segments,
    pub window: Window,
    pub controller: Box<dyn Controller>,
    /// What the controller is.
    pub about: About,
    /// Does the controller decide everything itself? Then it gets samples of the delivery rate.
    pub rate: Option<Box<Sampler>>,
    /// Segments whose delivery the controller has heard of.
    pub told_delivered: u64,
    pub pace: Pace,
    pub offload: Offload,
    pub ecn: Ecn,
    pub probing: Probing,
    pub usage: Usage,
    pub rtt: Rtt,
    pub acks: AckState,
    /// Acknowledgements that later ones did not take the place of.
    pub made_acks: VecDeque<Outgoing>,
    /// With receive buffer autotuning.
    pub right_size: Option<RightSize>,
    /// When it looks at what was read next; never without it.
    pub right_size_due: Instant,
    pub timers: Timers,
    pub liveness: Liveness,
    challenges: Challenges,
    /// Sequence number, and acknowledgement number if there is one, of the RST that answers.
    pub refusal: (u32, Option<u32>),
    pub ports: (u16, u16),
    pub path: Path,
    pub timestamp_offset: u32,
    who: Identity,
    pub facts: FlowFacts,
    recorded: (u64, u64, u64),
}

impl Connection {
    /// A connection in LISTEN, with `ports` ours and the peer's.
    pub fn new(
        config: Arc<Config>,
        now: Instant,
        path: Path,
        ports: (u16, u16),
        who: Identity,
        iss: u32,
        timestamp_offset: u32,
    ) -> Self {
        let local_mss = local_mss(&config, &path);
        let mut rcv =
            Receive::new(config.initial_receive_window.0, config.receive_buffer.0, u64::from(local_mss));
        if !config.window_scaling {
            rcv = Receive::new(
                config.initial_receive_window.0.min(65_535),
                config.receive_buffer.0.min(65_535),
                u64::from(local_mss),
            );
        }
        let right_size = config.receive_autotuning.then(|| RightSize::new(&config));
        let iss = ORIGIN + u64::from(iss);
        let default_mss = u64::from(local_mss);
        let controller = congestion::build(&config, iss);
        let about = controller.about();
        let controls = about.hears == Hears::Everything;
        // Tahoe and the Reno of 1990 have a recovery of their own.
        let books = match config.loss_detection {
            LossDetection::Rack if about.recovery == Recovery::NewReno && !about.probes => Books::Segments,
            _ => Books::Octets,
        };
        Connection {
            state: State::Listen,
            pending: 0,
            events: Events::default(),
            mode: Mode::Open,
            agreed: Agreed::default(),
            opener: false,
            finish_wanted: false,
            recover: iss,
            sent_something: false,
            hold: 0,
            snd: Send::new(iss, default_mss, config.send_buffer.0),
            rcv,
            books,
            octets: Octets::default(),
            segments: Segments::new(iss, now),
            window: Window::new(&config, default_mss),
            about,
            rate: controls.then(|| Box::new(Sampler::new(now))),
            told_delivered: 0,
            offload: Offload::new(config.segmentation_offload && books == Books::Segments && !controls),
            pace: Pace::new(config.pacing, controls),
            ecn: Ecn::default(),
            probing: Probing::default(),
            controller,
            usage: Usage::new(now),
            rtt: Rtt::new(&config),
            acks: AckState::new(),
            made_acks: VecDeque::new(),
            right_size,
            right_size_due: Instant::FAR_FUTURE,
            timers: Timers::default(),
            liveness: Liveness::new(now),
            challenges: Challenges::new(now),
            refusal: (0, None),
            ports,
            path,
            timestamp_offset,
            who,
            facts: FlowFacts::default(),
            recorded: (0, 0, 0),
            config,
        }
    }

    /// The MSS we announce.
    pub fn local_mss(&self) -> u16 {
        local_mss(&self.config, &self.path)
    }

    /// Payload of a full segment, for a peer that announced `peer` (or nothing).
    pub fn effective_mss(&self, peer: Option<u16>) -> u64 {
        //= RFC 9293 (3.7.1): without the option the peer takes 536 octets, 1220 with IPv6.
        let default = if self.path.remote.is_ipv6() { 1220 } else { 536 };
        let room = self.path.mtu.saturating_sub(self.path.ip_header() + 20);
        let mss = usize::from(peer.unwrap_or(default).min(room));
        //= RFC 6691 (2): the sender takes the octets of its options off.
        mss.saturating_sub(if self.agreed.timestamps { TIMESTAMPS_LEN } else { 0 }).max(8) as u64
    }

    /// The recovery that is in use.
    #[inline]
    pub fn recovery(&self) -> Recovery {
        self.about.recovery
    }

    /// Does recovery follow RFC 6675?
    #[inline]
    pub fn recovers_by_sack(&self) -> bool {
        self.agreed.sack && self.recovery() != Recovery::None
    }

    /// The timestamp clock.
    #[inline]
    pub fn timestamp(&self, now: Instant) -> u32 {
        let ticks = now.as_nanos() / self.config.timestamp_tick.as_nanos().max(1);
        (ticks as u32).wrapping_add(self.timestamp_offset)
    }

    /// Takes `step` and does what every change of state means.
    pub fn step(&mut self, now: Instant, step: Step) {
        let before = self.state;
        self.state = before.after(step);
        if self.state == before {
            return;
        }
        match self.state {
            State::Established => self.established(now),
            State::FinWait2 => self.wait_for_fin(now),
            State::TimeWait => {
                self.facts.end = Some(CloseReason::Finished);
                self.timers.stop_all();
                self.timers.arm(Alarm::TimeWait, now + self.config.time_wait);
                self.events.raise(event::CLOSED | event::LINGERING);
            }
            State::Closed => self.closed(),
            _ => {}
        }
    }

    /// In FIN-WAIT-2 something happened: the wait begins anew, if it has an end.
    pub fn wait_for_fin(&mut self, now: Instant) {
        if self.config.fin_wait_2 > Duration::ZERO {
            self.timers.arm(Alarm::TimeWait, now + self.config.fin_wait_2);
        }
    }

    /// Both sides have finished and nothing is left to send. What was received can still be read.
    pub fn closed(&mut self) {
        self.state = State::Closed;
        self.facts.end.get_or_insert(CloseReason::Finished);
        self.pending = 0;
        self.timers.stop_all();
        self.events.close();
    }

    fn established(&mut self, now: Instant) {
        self.facts.established = Some(now);
        self.events.raise(event::OPENED);
        self.window.mss = self.snd.mss;
        //= RFC 5681 (3.1): one segment after a lost SYN; RFC 6928 (2) forgives one.
        let initial = if self.liveness.syns_lost > self.config.lost_syns_forgiven {
            self.snd.mss
        } else {
            self.config.initial_window.octets(self.snd.mss)
        };
        self.window.cwnd = initial;
        self.expand_send_buffer();
        self.right_size_begins(now);
        if self.liveness.syns_lost > 0 {
            //= RFC 6298 (5.7): after a lost SYN the timeout is at least 3 seconds when data transfer begins.
            self.rtt.restart_at_least(&self.config, self.config.rto_after_lost_syn);
        }
        self.timers.stop(Alarm::Retransmission);
        self.snd.resent_below = self.snd.una;
        self.snd.sample_above = self.snd.una;
        self.segments.resend_from = self.snd.una;
        self.segments.timer = TimerKind::Rto;
        self.arm_keepalive(now);
        self.pending |= pending::DATA;
        if self.rcv.readable() > 0 {
            self.facts.first_byte.get_or_insert(now);
            self.tell_readable();
        }
        if self.finish_wanted {
            self.snd.finished = true;
            self.step(now, Step::Finish);
        }
    }

    /// It is over, with an error for the application.
    pub fn fail(&mut self, reason: CloseReason) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.facts.end.get_or_insert(reason);
        self.timers.stop_all();
        self.pending &= pending::RESET | pending::REFUSE;
        self.events.fail();
        self.snd.clear();
        self.rcv.clear();
    }

    /// We end it: the peer is told.
    pub fn abort(&mut self, reason: CloseReason) {
        //= RFC 9293 (3.10.5): RST in the synchronized states; nothing was promised to a peer before that.
        if self.state.is_synchronized() && self.state != State::TimeWait || self.state == State::SynReceived {
            self.pending |= pending::RESET;
        }
        self.fail(reason);
    }

    /// New data can be read, where there was none.
    #[inline]
    pub fn tell_readable(&mut self) {
        // Text on a SYN waits for the handshake.
        if self.state != State::Listen && self.state != State::SynReceived {
            self.events.raise(event::READABLE);
        }
    }

    /// What can be read now; less than all of it if that is beyond 4 GB.
    #[inline]
    fn readable_now(&self) -> TransportEvent {
        TransportEvent::Readable(0, u32::try_from(self.rcv.readable()).unwrap_or(u32::MAX))
    }

    /// The peer has finished: told when all was read.
    #[inline]
    pub fn tell_finished_if_read(&mut self) {
        if self.rcv.is_complete() && self.rcv.readable() == 0 && !self.events.was_told(event::FINISHED) {
            self.events.raise(event::FINISHED);
        }
    }

    /// There is room for what the application could not write.
    #[inline]
    pub fn tell_writable(&mut self) {
        self.events.raise(event::WRITABLE);
    }

    /// An acknowledgement that an attacker could ask for again and again.
    pub fn challenge(&mut self, now: Instant) {
        if self.challenges.allow(now, &self.config) {
            self.pending |= pending::ACK;
        }
    }

    /// The next event, in the order in which an application wants to hear of them.
    fn next_event(&mut self) -> Option<TransportEvent> {
        // The application reads to the end before it hears that all is over, and a last segment (RST) leaves before the host
        // may drop us.
        let read = self.events.was_told(event::FINISHED) || !self.rcv.is_complete();
        Some(match self.events.take(read, self.pending == 0)? {
            event::OPENED => TransportEvent::Opened,
            event::READABLE => self.readable_now(),
            event::WRITABLE => TransportEvent::Writable(0),
            event::FINISHED => TransportEvent::Finished(0),
            event::CLOSED => TransportEvent::Closed(self.facts.end.unwrap_or(CloseReason::Finished)),
            event::LINGERING => TransportEvent::Lingering,
            _ => TransportEvent::Gone,
        })
    }

    /// Any packet arrives.
    #[inline(never)]
    fn any_arrives(&mut self, now: Instant, ecn: u8, mut packet: Packet) {
        let Ok((header, len)) = Header::parse(packet.head()) else { return };
        self.facts.wire_received += packet.wire_len() as u64;
        packet.strip(len);
        let body = if packet.head().is_empty() {
            packet.take_body()
        } else {
            // A device's packet whose first payload octets were taken for header octets.
            let mut octets = Vec::new();
            packet.append_to(&mut octets);
            Body::Real(octets.into())
        };
        self.segment_arrives(now, &header, ecn, body);
        self.settle_if_idle();
    }

    /// The moment of `alarm` has come.
    fn expires(&mut self, now: Instant, alarm: Alarm) {
        match alarm {
            Alarm::Ack => {
                self.pending |= pending::ACK;
                self.acks.on_timer(self.rtt.rto(&self.config));
            }
            Alarm::Retransmission => match self.segments.timer {
                TimerKind::Rto => self.retransmission_timeout(now),
                TimerKind::Probe => self.probe_timeout(now),
                TimerKind::Reorder => self.reorder_timeout(now),
            },
            Alarm::Pacing => self.pending |= pending::DATA,
            Alarm::Probe => self.probe_expires(now),
            Alarm::Persist => self.persist_timeout(now),
            Alarm::Keepalive => self.keepalive_timeout(now),
            Alarm::TimeWait if self.state == State::FinWait2 => self.fail(CloseReason::TimedOut),
            Alarm::TimeWait => self.step(now, Step::Expired),
        }
    }

    /// Pushes a record if the congestion state changed.
    #[inline]
    fn record(&mut self, cx: &mut Cx) {
        if cx.records.wants_congestion() && self.facts.established.is_some() {
            self.record_slowly(cx);
        }
    }

    #[cold]
    fn record_slowly(&mut self, cx: &mut Cx) {
        let srtt = self.rtt.srtt();
        let now = (self.window.cwnd, self.window.ssthresh, srtt.map_or(0, |d| d.as_nanos()));
        if now == self.recorded {
            return;
        }
        self.recorded = now;
        cx.records.push(Record::Congestion(CongestionRecord {
            at: cx.now,
            host: self.who.host,
            flow: self.who.flow,
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            in_flight: self.in_flight(),
            srtt,
            rto: self.rtt.rto(&self.config),
            state: match self.mode {
                Mode::Open if self.window.in_slow_start() => "slow-start",
                Mode::Open => "avoidance",
                mode => mode.name(),
            },
        }));
    }

    /// Makes the deadline exact when everything sent was acknowledged, so that an idle connection has none.
    #[inline]
    fn settle_if_idle(&mut self) {
        if self.snd.una == self.snd.nxt {
            self.timers.settle();
        }
    }
}

fn local_mss(config: &Config, path: &Path) -> u16 {
    //= RFC 9293 (3.7.1): the MTU less the fixed headers, never less for options.
    config.mss.min(path.mtu.saturating_sub(path.ip_header() + 20)).max(8)
}

impl Transport for Connection {
    fn connect(&mut self, cx: &mut Cx) {
        if self.state == State::Listen {
            self.opener = true;
            self.liveness.syn_sent_at = cx.now;
            self.liveness.stalled_since = cx.now;
            self.step(cx.now, Step::Connect);
            self.pending |= pending::SYN;
        }
    }

    fn handle_packet(&mut self, cx: &mut Cx, _path: PathId, ecn: u8, mut packet: Packet) {
        if ecn != ecn::CE && self.expected_arrives(cx.now, &mut packet) {
            self.record(cx);
            return;
        }
        self.any_arrives(cx.now, ecn, packet);
        self.record(cx);
    }

    fn poll_transmit(&mut self, cx: &mut Cx) -> Option<Outgoing> {
        // A leaf on the common path: what follows saves many registers.
        if self.pending == 0 { None } else { self.transmit(cx.now) }
    }

    fn poll_event(&mut self) -> Option<TransportEvent> {
        if self.events.is_empty() {
            None
        } else if self.events.take_readable_alone() {
            Some(self.readable_now())
        } else {
            self.next_event()
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.deadline()
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        let now = cx.now;
        for alarm in Alarm::ALL {
            if self.timers.take_due(alarm, now) {
                self.expires(now, alarm);
            }
        }
        self.timers.settle();
        self.record(cx);
    }

    fn write(&mut self, _cx: &mut Cx, _stream: u32, body: Body) -> Result<usize, WriteError> {
        let open = self.state <= State::Established || self.state == State::CloseWait;
        if self.snd.finished || self.finish_wanted || !open {
            return Err(WriteError::Closed);
        }
        let offered = body.len();
        let taken = self.snd.write(body);
        if taken > 0 {
            if self.offload.on {
                self.offload_written();
            }
            self.pending |= pending::DATA;
        }
        WriteError::or_taken(taken, offered)
    }

    fn read(&mut self, cx: &mut Cx, _stream: u32, max: usize) -> Option<Body> {
        let body = self.rcv.read(max)?;
        self.facts.app_received += body.len() as u64;
        if cx.now >= self.right_size_due {
            self.right_size_by_reading(cx.now);
        }
        if self.rcv.readable() == 0 && self.acks.on_drained(&self.config) || self.rcv.wants_update() {
            self.pending |= pending::ACK;
        }
        self.tell_finished_if_read();
        Some(body)
    }

    fn finish(&mut self, cx: &mut Cx, _stream: u32) {
        match self.state {
            //= RFC 9293 (3.10.4): CLOSE before the handshake is over waits for it.
            State::Listen | State::SynSent | State::SynReceived => self.finish_wanted = true,
            State::Established | State::CloseWait if !self.snd.finished => {
                self.snd.finished = true;
                self.pending |= pending::DATA;
                self.step(cx.now, Step::Finish);
            }
            _ => {}
        }
    }

    fn reset(&mut self, _cx: &mut Cx) {
        self.abort(CloseReason::Aborted);
    }

    fn path_mtu(&mut self, cx: &mut Cx, _path: PathId, mtu: u16) {
        //= RFC 1191 (6.3): only a message that lowers the MTU counts; never below 68 octets.
        //= RFC 8201 (4): nor below 1280 octets for IPv6.
        if mtu == 0 {
            // A router from before RFC 1191 does not say what fits.
            return;
        }
        let mtu = mtu.max(if self.path.remote.is_ipv6() { 1280 } else { 68 });
        if mtu < self.path.mtu {
            self.path.mtu = mtu;
            self.smaller_segments(cx.now);
        }
    }

    fn unacknowledged(&self, _stream: u32) -> u64 {
        self.snd.unacknowledged()
    }

    fn facts(&self) -> FlowFacts {
        FlowFacts { srtt: self.rtt.srtt(), min_rtt: self.rtt.min(), ..self.facts }
    }

    fn into_lingering(self: Box<Self>) -> Box<dyn Transport> {
        Box::new(TimeWait::of(*self))
    }
}
