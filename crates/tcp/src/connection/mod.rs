//! One connection: what its host calls, and its states.
//!
//! ```text
//!   Connection ── state, events, what the application asked for
//!    ├─ tx: Sender          sequence variables, window, timers; lent with each call to
//!    ├─ recovery: Recovery  what is lost and what leaves next: octets/ or segments/
//!    └─ rcv, acks, ..       what arrived, and when it is acknowledged
//! ```
//!
//! No part knows the connection: each keeps its fields to itself and is given what else it needs. What moves between the
//! parts, or ends the connection, is here: what arrives in `arrival.rs` and `acks.rs`, what leaves in `output.rs`, what a timer
//! does in `timeouts.rs`, and what the sockets of an operating system ask in `socket.rs`.

mod acks;
mod arrival;
mod output;
pub mod socket;
#[cfg(test)]
mod tests;
mod timeouts;

use std::collections::VecDeque;
use std::sync::Arc;

use airloom_base::record::{CongestionRecord, Record};
use airloom_base::service::{FlowFacts, Identity, Path, WriteError};
use airloom_base::{
    Body, CloseReason, Cx, Duration, Instant, Outgoing, Packet, PathId, Transport, TransportEvent,
};

use super::ack_policy::AckState;
use super::autotuning::RightSize;
use super::config::Config;
use super::events::{Events, event};
use super::liveness::Challenges;
use super::recovery::Recovery;
use super::recv::Receive;
use super::sender::{Mode, Sender, pending};
use super::state::{State, Step};
use super::time_wait::TimeWait;
use super::timers::{Alarm, Timers};
use super::wire::{Flags, Header, Plain, TIMESTAMPS_LEN};
use super::{congestion, ecn};

/// Sequence numbers are 64 bits wide inside; they start high enough for nothing to become negative.
const ORIGIN: u64 = 1 << 32;

/// One TCP connection.
pub(super) struct Connection {
    state: State,
    /// What the application has not heard yet.
    events: Events,
    /// We have sent the first SYN.
    opener: bool,
    /// The application has called `finish`; the FIN waits for the handshake.
    finish_wanted: bool,
    /// The sending half, timers, and what was agreed on: lent to `recovery` with each call.
    tx: Sender,
    /// What is lost, and what leaves next.
    recovery: Recovery,
    /// The receiving half.
    rcv: Receive,
    /// When it acknowledges.
    acks: AckState,
    /// Acknowledgements that later ones did not take the place of; none, unless `pending` says so.
    made_acks: VecDeque<Outgoing>,
    /// With receive buffer autotuning.
    right_size: Option<RightSize>,
    challenges: Challenges,
    /// Sequence number, and acknowledgement number if there is one, of the RST that answers.
    refusal: (u32, Option<u32>),
    /// Ours and the peer's.
    ports: (u16, u16),
    path: Path,
    who: Identity,
    /// Window, threshold, smoothed round-trip time, timeout and how many have expired as they were recorded last.
    recorded: (u64, u64, u64, u64, u32),
}

impl Connection {
    /// A connection in LISTEN, with `ports` ours and the peer's; its initial sequence number, and how far its timestamp clock is
    /// ahead.
    pub fn new(
        config: Arc<Config>,
        controllers: &congestion::Make,
        now: Instant,
        path: Path,
        ports: (u16, u16),
        who: Identity,
        (iss, timestamp_offset): (u32, u32),
    ) -> Self {
        let mss = u64::from(local_mss(&config, &path));
        let largest = if config.window_scaling { u64::MAX } else { 65_535 };
        let rcv = Receive::new(
            config.initial_receive_window.0.min(largest),
            config.receive_buffer.0.min(largest),
            mss,
        );
        let iss = ORIGIN + u64::from(iss);
        let tx = Sender::new(config.clone(), now, controllers(&config, iss), iss, mss, timestamp_offset);
        Connection {
            state: State::Listen,
            events: Events::default(),
            opener: false,
            finish_wanted: false,
            recovery: Recovery::new(&config, &tx.about(), iss, now),
            tx,
            rcv,
            acks: AckState::default(),
            made_acks: VecDeque::new(),
            right_size: config.receive_autotuning.then(|| RightSize::new(&config)),
            challenges: Challenges::new(now),
            refusal: (0, None),
            ports,
            path,
            who,
            recorded: (0, 0, 0, 0, 0),
        }
    }

    /// The MSS we announce.
    pub fn local_mss(&self) -> u16 {
        local_mss(self.tx.config(), &self.path)
    }

    /// Payload of a full segment, for a peer that announced `peer` (or nothing).
    pub fn effective_mss(&self, peer: Option<u16>) -> u64 {
        //= RFC 9293 (3.7.1): without the option the peer takes 536 octets, 1220 with IPv6.
        let default = if self.path.remote.is_ipv6() { 1220 } else { 536 };
        let room = self.path.mtu.saturating_sub(self.path.ip_header() + 20);
        let mss = usize::from(peer.unwrap_or(default).min(room));
        //= RFC 6691 (2): the sender takes the octets of its options off.
        mss.saturating_sub(if self.tx.agreed().timestamps { TIMESTAMPS_LEN } else { 0 }).max(8) as u64
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
                self.tx.facts.end = Some(CloseReason::Finished);
                self.tx.timers.stop_all();
                self.tx.timers.arm(Alarm::TimeWait, now + self.tx.config().time_wait);
                self.events.raise(event::CLOSED | event::LINGERING);
            }
            State::Closed => self.closed(),
            _ => {}
        }
    }

    /// In FIN-WAIT-2 something happened: the wait begins anew, if it has an end.
    pub fn wait_for_fin(&mut self, now: Instant) {
        if self.tx.config().fin_wait_2 > Duration::ZERO {
            self.tx.timers.arm(Alarm::TimeWait, now + self.tx.config().fin_wait_2);
        }
    }

    /// Both sides have finished and nothing is left to send. What was received can still be read.
    pub fn closed(&mut self) {
        self.state = State::Closed;
        self.tx.facts.end.get_or_insert(CloseReason::Finished);
        self.tx.keep(0);
        self.tx.timers.stop_all();
        self.events.close();
    }

    fn established(&mut self, now: Instant) {
        self.tx.facts.established = Some(now);
        self.events.raise(event::OPENED);
        //= RFC 5681 (3.1): one segment after a lost SYN; RFC 6928 (2) forgives one.
        let initial = if self.tx.liveness.syns_lost() > self.tx.config().lost_syns_forgiven {
            self.tx.snd.mss()
        } else {
            self.tx.config().initial_window.octets(self.tx.snd.mss())
        };
        self.tx.window.set_cwnd(initial);
        self.expand_send_buffer();
        if let Some(right_size) = &mut self.right_size {
            right_size.begin(now, &self.rcv);
        }
        if self.tx.liveness.syns_lost() > 0 {
            self.tx.restart_rto_after_lost_syn();
        }
        self.tx.timers.stop(Alarm::Retransmission);
        self.tx.snd.begin();
        self.recovery.begin(&mut self.tx);
        self.tx.arm_keepalive(now);
        self.tx.want(pending::DATA);
        if self.rcv.readable() > 0 {
            self.tx.facts.first_byte.get_or_insert(now);
            self.tell_readable();
        }
        if self.finish_wanted {
            self.tx.snd.finish();
            self.step(now, Step::Finish);
        }
    }

    /// It is over, with an error for the application.
    pub fn fail(&mut self, reason: CloseReason) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.tx.facts.end.get_or_insert(reason);
        self.tx.timers.stop_all();
        self.tx.keep(pending::RESET | pending::REFUSE);
        self.events.fail();
        self.tx.snd.clear();
        self.rcv.clear();
    }

    /// We end it: the peer is told.
    pub fn abort(&mut self, reason: CloseReason) {
        //= RFC 9293 (3.10.5): RST in the synchronized states; nothing was promised to a peer before that.
        if self.state.is_synchronized() && self.state != State::TimeWait || self.state == State::SynReceived {
            self.tx.want(pending::RESET);
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
        if self.challenges.allow(now, self.tx.config()) {
            self.tx.want(pending::ACK);
        }
    }

    /// The next event, in the order in which an application wants to hear of them.
    fn next_event(&mut self) -> Option<TransportEvent> {
        // The application reads to the end before it hears that all is over, and a last segment (RST) leaves before the host
        // may drop us.
        let read = self.events.was_told(event::FINISHED) || !self.rcv.is_complete();
        Some(match self.events.take(read, self.tx.pending() == 0)? {
            event::OPENED => TransportEvent::Opened,
            event::READABLE => self.readable_now(),
            event::WRITABLE => TransportEvent::Writable(0),
            event::FINISHED => TransportEvent::Finished(0),
            event::CLOSED => TransportEvent::Closed(self.tx.facts.end.unwrap_or(CloseReason::Finished)),
            event::LINGERING => TransportEvent::Lingering,
            _ => TransportEvent::Gone,
        })
    }

    /// Any packet arrives.
    #[inline(never)]
    fn any_arrives(&mut self, now: Instant, ecn: u8, mut packet: Packet) {
        let Ok((header, len)) = Header::parse(packet.head()) else { return };
        self.tx.facts.wire_received += packet.wire_len() as u64;
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

    /// Pushes a record if the congestion state changed.
    #[inline]
    fn record(&mut self, cx: &mut Cx) {
        if cx.records.wants_congestion() && self.tx.facts.established.is_some() {
            self.record_slowly(cx);
        }
    }

    #[cold]
    fn record_slowly(&mut self, cx: &mut Cx) {
        let srtt = self.tx.rtt().srtt();
        let (window, rto) = (&self.tx.window, self.tx.rto());
        let timeouts = self.tx.facts.rto_count;
        let srtt_nanos = srtt.map_or(0, |d| d.as_nanos());
        let now = (window.cwnd(), window.ssthresh(), srtt_nanos, rto.as_nanos(), timeouts);
        if now == self.recorded {
            return;
        }
        self.recorded = now;
        cx.records.push(Record::Congestion(CongestionRecord {
            at: cx.now,
            host: self.who.host,
            flow: self.who.flow,
            cwnd: self.tx.window.cwnd(),
            ssthresh: self.tx.window.ssthresh(),
            in_flight: self.recovery.in_flight(&self.tx),
            srtt,
            rto,
            state: match self.tx.mode() {
                Mode::Open if self.tx.window.in_slow_start() => "slow-start",
                Mode::Open => "avoidance",
                mode => mode.name(),
            },
        }));
    }

    /// Makes the deadline exact when everything sent was acknowledged, so that an idle connection has none.
    #[inline]
    fn settle_if_idle(&mut self) {
        if self.tx.snd.una() == self.tx.snd.nxt() {
            self.tx.timers.settle();
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
            self.tx.liveness.begin(cx.now);
            self.step(cx.now, Step::Connect);
            self.tx.want(pending::SYN);
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
        if self.tx.pending() == 0 { None } else { self.transmit(cx.now) }
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
        self.tx.timers.deadline()
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        let now = cx.now;
        for place in 0..Timers::PLACES {
            if let Some(alarm) = self.tx.timers.take_due(place, now) {
                self.expires(now, alarm);
            }
        }
        self.tx.timers.settle();
        self.record(cx);
    }

    fn write(&mut self, _cx: &mut Cx, _stream: u32, body: Body) -> Result<usize, WriteError> {
        let open = self.state <= State::Established || self.state == State::CloseWait;
        if self.tx.snd.is_finished() || self.finish_wanted || !open {
            return Err(WriteError::Closed);
        }
        let offered = body.len();
        let taken = self.tx.snd.write(body);
        if taken > 0 {
            self.recovery.written(&self.tx);
            self.tx.want(pending::DATA);
        }
        WriteError::or_taken(taken, offered)
    }

    fn read(&mut self, cx: &mut Cx, _stream: u32, max: usize) -> Option<Body> {
        let there = self.rcv.readable();
        let body = self.rcv.read(max);
        body.as_ref()?;
        self.tx.facts.app_received += there - self.rcv.readable();
        if let Some(right_size) = &mut self.right_size
            && right_size.is_due(cx.now)
        {
            right_size.data_read(cx.now, &mut self.rcv);
        }
        if self.rcv.readable() == 0 && self.acks.on_drained(self.tx.config()) || self.rcv.wants_update() {
            self.tx.want(pending::ACK);
        }
        self.tell_finished_if_read();
        body
    }

    fn finish(&mut self, cx: &mut Cx, _stream: u32) {
        match self.state {
            //= RFC 9293 (3.10.4): CLOSE before the handshake is over waits for it.
            State::Listen | State::SynSent | State::SynReceived => self.finish_wanted = true,
            State::Established | State::CloseWait if !self.tx.snd.is_finished() => {
                self.tx.snd.finish();
                self.tx.want(pending::DATA);
                self.step(cx.now, Step::Finish);
            }
            _ => {}
        }
    }

    fn reset(&mut self, _cx: &mut Cx) {
        self.abort(CloseReason::Aborted);
    }

    fn path_mtu(&mut self, _cx: &mut Cx, _path: PathId, mtu: u16) {
        //= RFC 1191 (6.3): only a message that lowers the MTU counts; never below 68 octets.
        //= RFC 8201 (4): nor below 1280 octets for IPv6.
        if mtu == 0 {
            // A router from before RFC 1191 does not say what fits.
            return;
        }
        let mtu = mtu.max(if self.path.remote.is_ipv6() { 1280 } else { 68 });
        if mtu < self.path.mtu {
            self.path.mtu = mtu;
            self.smaller_segments();
        }
    }

    fn unacknowledged(&self, _stream: u32) -> u64 {
        self.tx.snd.unacknowledged()
    }

    fn facts(&self) -> FlowFacts {
        let mut facts =
            FlowFacts { srtt: self.tx.rtt().srtt(), min_rtt: self.tx.rtt().min(), ..self.tx.facts };
        // Counted when they are made, for what they say then.
        for made in &self.made_acks {
            facts.segments -= 1;
            facts.wire_sent -= made.packet.wire_len() as u64;
        }
        // What is left of this connection acknowledges the peer's FIN when it has been asked for the last time.
        if self.state == State::TimeWait && self.tx.wants(pending::ACK) {
            facts.segments += 1;
            facts.wire_sent += Plain::length(self.tx.agreed().timestamps) as u64;
        }
        facts
    }

    fn into_lingering(mut self: Box<Self>) -> Box<dyn Transport> {
        let last = Plain {
            seq: self.tx.snd.nxt() as u32,
            ack: self.rcv.nxt() as u32,
            flags: Flags::ACK,
            window: self.rcv.announce_scaled(),
            timestamps: self
                .tx
                .agreed()
                .timestamps
                .then_some((self.tx.timestamp_offset(), self.rcv.ts_recent())),
        };
        let expiry = self.tx.timers.get(Alarm::TimeWait);
        Box::new(TimeWait::new(
            self.tx.config().clone(),
            self.ports,
            last,
            expiry,
            self.tx.wants(pending::ACK),
        ))
    }
}
