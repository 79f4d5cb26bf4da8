//! What leaves: in which order, and the segment itself (RFC 9293 3.7.4, 3.8.6.2.1). Which data is next the recovery decides.

use airloom_base::{Body, Instant, Outgoing, Packet, PathId};

use super::{Connection, pending};
use crate::config::{AckPolicy, WindowProbe};
use crate::congestion::Hears;
use crate::send::corked;
use crate::sender::{Choice, Limit};
use crate::state::State;
use crate::timers::Alarm;
use crate::wire::{Flags, Header, Options, Plain, ProbeOption, ProbeStep, SackBlocks};

impl Connection {
    /// The next segment, if something is pending.
    #[inline(never)]
    pub fn transmit(&mut self, now: Instant) -> Option<Outgoing> {
        if self.tx.wants(pending::MADE | pending::REFUSE | pending::RESET | pending::SYN)
            && let Some(segment) = self.transmit_control(now)
        {
            return Some(segment);
        }
        if self.tx.wants(pending::HEAD | pending::DATA) {
            if self.state.can_send() {
                if let Some(segment) = self.transmit_data(now) {
                    return Some(segment);
                }
            } else if self.state.is_synchronized() || self.state == State::Closed {
                self.tx.clear(pending::HEAD | pending::DATA);
            }
        }
        match self.tx.pending() & (pending::PROBES | pending::ACK) {
            0 => {}
            pending::ACK => {
                if self.state >= State::SynReceived {
                    return Some(self.segment(now, self.acceptable_seq(), Flags::ACK, Body::EMPTY));
                }
            }
            _ => return self.transmit_probe(now),
        }
        // What waits for the handshake waits there.
        if self.state < State::Established {
            self.tx.keep(pending::SYN | pending::REFUSE);
        }
        None
    }

    /// Makes the acknowledgement that is due, so that a segment at hand has one of its own.
    #[inline(never)]
    pub(super) fn make_ack(&mut self, now: Instant) {
        let made = self.segment(now, self.acceptable_seq(), Flags::ACK, Body::EMPTY);
        self.made_acks.push_back(made);
        self.tx.want(pending::MADE);
    }

    #[cold]
    fn transmit_made(&mut self) -> Option<Outgoing> {
        let made = self.made_acks.pop_front();
        if self.made_acks.is_empty() {
            self.tx.clear(pending::MADE);
        }
        made.map(|out| Outgoing { last: self.tx.pending() == 0, ..out })
    }

    /// The sequence number of a segment without data: SND.NXT, unless the peer took its window back below that.
    #[inline]
    fn acceptable_seq(&self) -> u64 {
        if self.tx.snd.nxt() <= self.tx.snd.window_edge() {
            self.tx.snd.nxt()
        } else {
            self.seq_beyond_window()
        }
    }

    /// [`Connection::acceptable_seq`] where SND.NXT lies beyond the window's edge.
    #[cold]
    fn seq_beyond_window(&self) -> u64 {
        //= RFC 9293 (3.10.7.4): the peer drops a segment that starts beyond its window, the acknowledgement too. If each of
        //= two ends has sent beyond the other's window, neither hears the other any more.
        // Linux (`tcp_acceptable_seq`): from the edge, but for what a scaled field cannot say.
        let edge = self.tx.snd.window_edge();
        let handshake = self.tx.facts.established.is_none();
        if handshake || self.tx.snd.nxt() - edge < 1 << self.tx.snd.shift() {
            self.tx.snd.nxt()
        } else {
            edge
        }
    }

    #[inline(never)]
    fn transmit_control(&mut self, now: Instant) -> Option<Outgoing> {
        if self.tx.wants(pending::MADE) {
            return self.transmit_made();
        }
        if self.tx.wants(pending::REFUSE) {
            self.tx.clear(pending::REFUSE);
            let (seq, ack) = self.refusal;
            return Some(self.bare_reset(seq, ack, None));
        }
        if self.tx.wants(pending::RESET) {
            self.tx.keep(0);
            //= RFC 7323 (3.2): once agreed on, timestamps are in every segment; a RST should carry them.
            let timestamps =
                self.tx.agreed().timestamps.then(|| (self.tx.timestamp(now), self.rcv.ts_recent()));
            let (seq, ack) = (self.acceptable_seq() as u32, self.rcv.nxt() as u32);
            return Some(self.bare_reset(seq, Some(ack), timestamps));
        }
        self.tx.clear(pending::SYN);
        match self.state {
            State::SynSent => Some(self.syn(now, Flags::SYN)),
            State::SynReceived => {
                self.tx.clear(pending::ACK);
                Some(self.syn(now, Flags::SYN.with(Flags::ACK)))
            }
            _ => None,
        }
    }

    #[inline(never)]
    fn syn(&mut self, now: Instant, flags: Flags) -> Outgoing {
        let answer = flags.has(Flags::ACK);
        let config = self.tx.config().clone();
        let shift = config.window_shift();
        //= RFC 7323 (2.2, 3.2): a SYN-ACK carries what the SYN carried.
        let scaled = if answer { self.tx.agreed().scaling } else { config.window_scaling };
        let timestamps = if answer { self.tx.agreed().timestamps } else { config.timestamps };
        let ecn = if answer {
            self.tx.ecn.syn_ack_flags()
        } else {
            self.tx.ecn.syn_flags(config.ecn, self.tx.liveness.syns_lost() > 0)
        };
        let flags = flags.with(ecn);
        let offers_probing = if answer { self.tx.probing.is_agreed() } else { self.tx.about().probes };
        let header = Header {
            source: self.ports.0,
            destination: self.ports.1,
            seq: self.tx.snd.una() as u32,
            ack: if answer { self.rcv.nxt() as u32 } else { 0 },
            flags,
            window: self.rcv.announce(0),
            urgent: 0,
            options: Options {
                mss: Some(self.local_mss()),
                window_scale: scaled.then_some(shift),
                sack_permitted: if answer { self.tx.agreed().sack } else { config.sack },
                timestamps: timestamps
                    .then(|| (self.tx.timestamp(now), if answer { self.rcv.ts_recent() } else { 0 })),
                sack: SackBlocks::default(),
                probe: offers_probing.then_some(ProbeOption { step: ProbeStep::Permitted, cycle: 0 }),
            },
        };
        if self.tx.snd.nxt() > self.tx.snd.una() {
            self.tx.facts.resent += 1;
        }
        self.tx.snd.sent_syn();
        self.rcv.acknowledged();
        self.tx.liveness.sent(now);
        if !self.tx.timers.is_armed(Alarm::Retransmission) {
            self.tx.arm_retransmission(now);
        }
        self.emit(&header, Body::EMPTY)
    }

    #[inline(never)]
    fn bare_reset(&mut self, seq: u32, ack: Option<u32>, timestamps: Option<(u32, u32)>) -> Outgoing {
        let flags = if ack.is_some() { Flags::RST.with(Flags::ACK) } else { Flags::RST };
        let header = Header {
            source: self.ports.0,
            destination: self.ports.1,
            seq,
            ack: ack.unwrap_or(0),
            flags,
            options: Options { timestamps, ..Options::default() },
            ..Header::default()
        };
        self.emit(&header, Body::EMPTY)
    }

    /// The next segment with data or FIN, first or again.
    #[inline(always)]
    fn transmit_data(&mut self, now: Instant) -> Option<Outgoing> {
        if let Some(at) = self.tx.pace.waits_until(now) {
            self.tx.timers.arm(Alarm::Pacing, at);
            return None;
        }
        let room = self.room();
        match self.recovery.choose(&mut self.tx, now, room) {
            Choice::New(len) => Some(self.send_new(now, len, room)),
            Choice::Again(start, end) => Some(self.resend(now, start, end)),
            Choice::Nothing(held) => {
                self.nothing_more(now, held);
                None
            }
        }
    }

    /// Payload that fits beside the options of a segment sent now.
    #[inline]
    fn room(&self) -> u64 {
        if self.rcv.wants_sack() && self.tx.agreed().sack {
            //= RFC 9293 (3.7.1): the sender takes the octets of its options off, also those that come and go.
            self.tx.snd.mss().saturating_sub(if self.tx.agreed().timestamps { 28 } else { 36 }).max(8)
        } else {
            self.tx.snd.mss()
        }
    }

    /// Sends `len` octets that were not sent before, of the `room` that a segment has; none: a bare FIN.
    #[inline(always)]
    fn send_new(&mut self, now: Instant, len: u64, room: u64) -> Outgoing {
        let tx = &mut self.tx;
        let seq = tx.snd.nxt();
        if tx.about().hears != Hears::Growth {
            tx.tell_controller_of_departure(now, len);
        }
        let fin = tx.snd.leaves(len, room);
        tx.facts.app_sent += len;
        tx.note_sent();
        self.acks.on_data_sent(now);
        self.recovery.sent_new(tx, now, len);
        if tx.pace.is_on() {
            tx.paced_out(now, len);
            let nxt = tx.snd.nxt();
            if let Some(rate) = tx.rate() {
                rate.sent(now, seq, nxt);
            }
        }
        if len > 0 {
            tx.ecn.on_new_data();
        }
        let mut out = self.data_segment(now, seq, len, fin);
        //= RFC 3168 (6.1.4, 6.1.5): new data may be marked; acknowledgements and retransmissions may not.
        out.ecn = self.tx.ecn.codepoint();
        out
    }

    /// As [`Connection::send_new`], off the common path.
    #[inline(never)]
    fn send_more(&mut self, now: Instant, len: u64) -> Outgoing {
        self.send_new(now, len, self.room())
    }

    /// Sends `start..end` again; the last number may be the FIN's.
    #[inline(never)]
    fn resend(&mut self, now: Instant, start: u64, end: u64) -> Outgoing {
        let tx = &mut self.tx;
        let data_end = end.min(tx.snd.end());
        let fin = end > tx.snd.end();
        tx.snd.leaves_again(end);
        tx.facts.resent += 1;
        tx.liveness.resent(now);
        tx.note_sent();
        self.recovery.sent_again(tx, now, start, end);
        if tx.pace.is_on() {
            tx.paced_out(now, end - start);
            if let Some(rate) = tx.rate() {
                rate.resent(now, start);
            }
        }
        self.data_segment(now, start, data_end.saturating_sub(start), fin)
    }

    #[inline(always)]
    fn data_segment(&mut self, now: Instant, seq: u64, len: u64, fin: bool) -> Outgoing {
        let mut flags = Flags::ACK;
        if (seq + len == self.tx.snd.end() && len > 0 && !self.tx.snd.is_unpushed())
            || self.tx.push()
            || (self.tx.snd.has_records() && self.tx.snd.ends_record(seq + len))
        {
            self.tx.set_push(false);
            flags = flags.with(Flags::PSH);
        }
        if fin {
            flags = flags.with(Flags::FIN);
        }
        if self.tx.ecn.take_cwr() {
            flags = flags.with(Flags::CWR);
        }
        self.tx.liveness.sent_data(now);
        self.tx.timers.stop(Alarm::Persist);
        if !self.tx.timers.is_armed(Alarm::Retransmission) {
            //= RFC 6298 (5.1): data is sent and the timer is off: on.
            self.tx.arm_retransmission(now);
        }
        let body = self.tx.snd.body(seq, len as usize);
        self.segment(now, seq, flags, body)
    }

    /// Nothing more is sent now.
    fn nothing_more(&mut self, now: Instant, held: Limit) {
        let tx = &mut self.tx;
        tx.clear(pending::DATA);
        tx.snd.cork(corked::PUSH, false);
        // Linux: what is corked leaves when that timer expires.
        let held_for_long = held == Limit::Window || held == Limit::Short && tx.snd.holds_short();
        if held_for_long && tx.snd.una() == tx.snd.nxt() && !tx.timers.is_armed(Alarm::Persist) {
            tx.timers.arm(Alarm::Persist, now + tx.probe_interval());
        }
        if tx.samples_rate() && matches!(held, Limit::Nothing | Limit::Short) {
            self.note_application_limit();
        }
        self.recovery.on_pause(&mut self.tx, now, held);
    }

    /// It is the application that sends no more: the sampler of delivery rates is told.
    #[inline(never)]
    fn note_application_limit(&mut self) {
        if let Some(in_flight) = self.recovery.in_flight_at_rest(&self.tx)
            && in_flight < self.tx.window.cwnd()
            && let Some(rate) = self.tx.rate()
        {
            rate.limited_by_application(in_flight);
        }
    }

    #[inline(never)]
    fn transmit_probe(&mut self, now: Instant) -> Option<Outgoing> {
        if self.tx.wants(pending::PROBING) {
            return self.transmit_probing(now);
        }
        if self.tx.wants(pending::KEEPALIVE) {
            self.tx.clear(pending::KEEPALIVE);
            //= RFC 9293 (3.8.4): below the window, so that the peer must answer.
            return Some(self.bare(now, self.tx.snd.nxt() - 1));
        }
        self.tx.clear(pending::PROBE);
        if !self.state.can_send() || !self.tx.snd.has_unsent() || self.tx.snd.una() != self.tx.snd.nxt() {
            return None;
        }
        let usable = self.tx.snd.window_edge().saturating_sub(self.tx.snd.nxt());
        if usable > 0 {
            //= RFC 9293 (3.8.6.2.1): the override timer lets out what fits.
            let len = self.tx.snd.unsent().min(usable).min(self.tx.snd.mss());
            if self.tx.snd.holds_short() {
                self.tx.set_push(true);
            }
            return Some(self.send_more(now, len));
        }
        let at = now + self.tx.probe_interval();
        self.tx.timers.arm(Alarm::Persist, at);
        self.tx.liveness.sent(now);
        if self.tx.config().window_probe == WindowProbe::Empty {
            return Some(self.bare(now, self.tx.snd.una() - 1));
        }
        //= RFC 9293 (3.8.6.1): one octet of new data (or the FIN); it is not counted as sent before it is taken.
        let seq = self.tx.snd.nxt();
        let len = self.tx.snd.unsent().min(1);
        let flags = if len == 0 { Flags::ACK.with(Flags::FIN) } else { Flags::ACK };
        self.tx.snd.probed(seq + 1);
        let body = self.tx.snd.body(seq, len as usize);
        Some(self.segment(now, seq, flags, body))
    }

    /// The probe of a suspended sender, or the answer to one, that is due.
    fn transmit_probing(&mut self, now: Instant) -> Option<Outgoing> {
        self.tx.clear(pending::PROBING | pending::ACK);
        let due = self.tx.probing.take_due()?;
        if !self.state.is_synchronized() {
            return None;
        }
        self.tx.timers.stop(Alarm::Ack);
        self.rcv.acknowledged();
        // Beyond the right edge (a FIN, a window that shrank) it would not be taken, and an answer never come.
        let seq = self.tx.snd.nxt().min(self.tx.snd.window_edge()).max(self.tx.snd.una());
        let header = Header {
            source: self.ports.0,
            destination: self.ports.1,
            seq: seq as u32,
            ack: self.rcv.nxt() as u32,
            flags: Flags::ACK.with(self.tx.ecn.echo_flags()),
            window: self.rcv.announce_scaled(),
            urgent: 0,
            options: Options {
                timestamps: self
                    .tx
                    .agreed()
                    .timestamps
                    .then(|| (self.tx.timestamp(now), self.rcv.ts_recent())),
                probe: Some(due),
                ..Options::default()
            },
        };
        Some(self.emit(&header, Body::EMPTY))
    }

    /// An acknowledgement that looks like a segment at `seq`, which is below the peer's window.
    #[inline(never)]
    fn bare(&mut self, now: Instant, seq: u64) -> Outgoing {
        //= RFC 9293 (3.10.7.4): the peer drops a segment that is not acceptable, its acknowledgement too: one that waits goes
        //= on waiting.
        let flags = Flags::ACK.with(self.tx.ecn.echo_flags());
        self.dress(now, seq, flags, Body::EMPTY)
    }

    /// A segment of a synchronized connection: acknowledgement, window and options are those of this moment.
    #[inline(always)]
    fn segment(&mut self, now: Instant, seq: u64, flags: Flags, body: Body) -> Outgoing {
        let flags = flags.with(self.tx.ecn.echo_flags());
        self.tx.clear(pending::ACK);
        if self.tx.timers.is_armed(Alarm::Ack) {
            self.tx.timers.stop_ack(self.tx.config().delayed_ack == AckPolicy::Linux);
        }
        if self.rcv.acknowledged() {
            self.acks.on_ack_sent();
        }
        self.dress(now, seq, flags, body)
    }

    /// Header and options around `body`.
    #[inline(always)]
    fn dress(&mut self, now: Instant, seq: u64, flags: Flags, body: Body) -> Outgoing {
        let timestamps = self.tx.agreed().timestamps.then(|| (self.tx.timestamp(now), self.rcv.ts_recent()));
        let window = self.rcv.announce_scaled();
        let ack = self.rcv.nxt();
        let plain = Plain { seq: seq as u32, ack: ack as u32, flags, window, timestamps };
        if self.rcv.wants_sack() && self.tx.agreed().sack {
            return self.segment_with_sack(&plain, body);
        }
        let mut packet = Packet::build(|_| 0, body);
        plain.emit(self.ports, packet.room(plain.header_len()));
        self.count(packet)
    }

    #[inline(never)]
    fn segment_with_sack(&mut self, plain: &Plain, body: Body) -> Outgoing {
        let sack = self.rcv.sack_blocks(self.tx.config().dsack);
        let header = Header {
            source: self.ports.0,
            destination: self.ports.1,
            seq: plain.seq,
            ack: plain.ack,
            flags: plain.flags,
            window: plain.window,
            urgent: 0,
            options: Options { timestamps: plain.timestamps, sack, ..Options::default() },
        };
        self.emit(&header, body)
    }

    #[inline(never)]
    fn emit(&mut self, header: &Header, body: Body) -> Outgoing {
        self.count(Packet::build(|out| header.emit(out), body))
    }

    #[inline]
    fn count(&mut self, packet: Packet) -> Outgoing {
        self.tx.facts.segments += 1;
        self.tx.facts.wire_sent += packet.wire_len() as u64;
        Outgoing { path: PathId(0), ecn: 0, packet, last: self.tx.pending() == 0 }
    }
}
