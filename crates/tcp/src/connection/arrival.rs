//! What a segment does, in the order of RFC 9293 3.10.7.

use airloom_base::{Body, CloseReason, Duration, Instant, Packet};

use super::{Connection, pending};
use crate::ack_policy::Decision;
use crate::config::AckPolicy;
use crate::recv::Arrival;
use crate::sender::{Agreed, Mode, widen};
use crate::state::{State, Step};
use crate::timers::Alarm;
use crate::wire::{Flags, Header, Plain};

/// After so long a silence a timestamp says nothing about age (RFC 7323 5.5).
const PAWS_IDLE: Duration = Duration::from_secs(24 * 86_400);

impl Connection {
    /// The two segments that nearly all are, on an open connection without losses: the next data, or an
    /// acknowledgement of new data. Does what [`Connection::segment_arrives`] would do; says no to any other segment.
    #[inline]
    pub fn expected_arrives(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let Some((h, len)) = Plain::parse(packet.head()) else { return false };
        let seq = widen(self.rcv.nxt(), h.seq);
        let ack = widen(self.tx.snd.una(), h.ack);
        if self.state != State::Established
            || seq != self.rcv.nxt()
            || packet.head().len() != len
            || h.timestamps.is_some() != self.tx.agreed().timestamps
            || self.tx.mode() != Mode::Open
            || self.tx.dupacks() != 0
        {
            return false;
        }
        let mut echo = None;
        if let Some((value, reply)) = h.timestamps {
            if value.wrapping_sub(self.rcv.ts_recent()).cast_signed() < 0 {
                return false;
            }
            echo = Some(reply);
        }
        let octets = packet.body().len() as u64;
        let wnd = self.tx.snd.scaled(h.window);
        if octets == 0 {
            if ack <= self.tx.snd.una() || ack > self.tx.snd.nxt() || self.tx.timers.is_armed(Alarm::Persist)
            {
                return false;
            }
        } else if ack != self.tx.snd.una() || wnd != self.tx.snd.wnd() || octets > self.rcv.wnd() {
            return false;
        }
        if let Some((value, _)) = h.timestamps {
            self.rcv.take_timestamp(now, value, seq);
        }
        self.tx.facts.wire_received += len as u64 + octets;
        self.tx.liveness.received(now);
        if self.tx.config().keepalive {
            self.tx.arm_keepalive(now);
        }
        if octets == 0 {
            self.tx.snd.set_window(seq, ack, wnd);
            self.new_ack(now, echo, ack);
        } else {
            self.tx.snd.note_newer(seq);
            if self.right_size.is_some() {
                self.measure_arrival(now, echo, octets);
            }
            self.take_data(now, h.flags, seq, packet.take_body());
            if self.rcv.fin_is_next() {
                self.take_fin(now);
            }
        }
        true
    }

    /// SEGMENT ARRIVES.
    pub fn segment_arrives(&mut self, now: Instant, h: &Header, ecn: u8, body: Body) {
        self.tx.ecn.arrives(ecn);
        match self.state {
            State::Closed => {}
            State::Listen => self.arrives_in_listen(now, h, body),
            State::SynSent => self.arrives_in_syn_sent(now, h, body),
            _ => self.arrives(now, h, body),
        }
        self.tx.liveness.received(now);
    }

    fn arrives_in_listen(&mut self, now: Instant, h: &Header, body: Body) {
        //= RFC 9293 (3.10.7.2): RST and ACK were sorted out by the protocol; a SYN is answered.
        if h.flags.has(Flags::SYN) && h.flags.0 & (Flags::RST.0 | Flags::ACK.0) == 0 {
            self.take_syn(now, h);
            self.tx.liveness.begin(now);
            if !body.is_empty() {
                //= RFC 9293 (3.10.7.2): text on the SYN is kept. The application hears of it when the handshake is over;
                //= a FIN comes again.
                self.rcv.announce(0);
                self.rcv.data(self.rcv.nxt(), body);
            }
            self.step(now, Step::Syn);
            self.tx.want(pending::SYN);
        }
    }

    /// Takes the sequence number, the window and the options of the peer's SYN.
    fn take_syn(&mut self, now: Instant, h: &Header) {
        self.rcv.synchronise((1 << 32) + u64::from(h.seq));
        let (config, options) = (self.tx.config(), &h.options);
        let shift = options.window_scale.filter(|_| config.window_scaling);
        //= RFC 7323 (2.2, 3.2), RFC 2018 (2): an option counts if both SYNs carry it.
        let agreed = Agreed {
            timestamps: config.timestamps && options.timestamps.is_some(),
            sack: config.sack && options.sack_permitted,
            scaling: shift.is_some(),
        };
        match shift {
            Some(shift) => {
                self.rcv.set_shift(config.window_shift());
                self.tx.snd.set_shift(shift);
            }
            None => _ = self.rcv.set_shift(0),
        }
        self.tx.agree(agreed);
        if let Some((value, _)) = options.timestamps {
            self.rcv.take_timestamp(now, value, self.rcv.irs());
        }
        self.tx.ecn.negotiate(self.tx.config().ecn, h.flags);
        self.tx.probing.negotiate(h.flags, options.probe, self.tx.about().probes);
        let mss = self.effective_mss(options.mss);
        self.tx.snd.set_mss(mss);
        self.tx.window.set_mss(mss);
        //= RFC 7323 (2.2): the window of a segment with SYN is not scaled.
        self.tx.snd.set_window(self.rcv.irs(), self.tx.snd.una(), u64::from(h.window));
    }

    fn arrives_in_syn_sent(&mut self, now: Instant, h: &Header, body: Body) {
        let ack = h.flags.has(Flags::ACK).then(|| widen(self.tx.snd.una(), h.ack));
        //= RFC 9293 (3.10.7.3): first the ACK bit, then RST, then SYN.
        if ack.is_some_and(|ack| ack <= self.tx.snd.una() || ack > self.tx.snd.max()) {
            if !h.flags.has(Flags::RST) {
                self.refuse(h.ack);
            }
            return;
        }
        if h.flags.has(Flags::RST) {
            if ack.is_some() {
                self.fail(CloseReason::Refused);
            }
            return;
        }
        if !h.flags.has(Flags::SYN) {
            return;
        }
        self.take_syn(now, h);
        match ack {
            Some(ack) => {
                self.syn_acknowledged(now, h, ack);
                self.tx.snd.set_window(self.rcv.irs(), ack, u64::from(h.window));
                self.tx.want(pending::ACK);
                if self.tx.config().delayed_ack == AckPolicy::Linux {
                    // It has left before the application hears that the connection is open.
                    self.make_ack(now);
                }
                self.take_text(now, h, self.rcv.nxt(), body);
            }
            None => {
                //= RFC 9293 (3.5, figure 8): simultaneous open.
                self.step(now, Step::Syn);
                self.tx.want(pending::SYN);
            }
        }
    }

    /// Our SYN was acknowledged.
    fn syn_acknowledged(&mut self, now: Instant, h: &Header, ack: u64) {
        self.tx.snd.acknowledge(ack);
        let tx = &mut self.tx;
        tx.liveness.progressed(now);
        if tx.facts.resent == 0 {
            let rtt = now.since(tx.liveness.syn_sent_at());
            tx.sample_rtt(rtt, 1);
        } else {
            //= RFC 6298 (3): with timestamps the sample is good although the SYN was sent twice.
            tx.sample_echo(now, h.options.timestamps.map(|(_, echo)| echo));
        }
        self.step(now, Step::SynAcked);
    }

    /// Answers with RST, whose sequence number is the acknowledgement number of the segment.
    fn refuse(&mut self, seq: u32) {
        self.refusal = (seq, None);
        self.tx.want(pending::REFUSE);
    }

    fn arrives(&mut self, now: Instant, h: &Header, body: Body) {
        let mut seq = widen(self.rcv.nxt(), h.seq);
        let mut syn = h.flags.has(Flags::SYN);
        let reset = h.flags.has(Flags::RST);
        if self.state == State::SynReceived && syn && seq == self.rcv.irs() {
            if !h.flags.has(Flags::ACK) {
                // The peer's SYN again: our SYN-ACK was lost.
                self.tx.ecn.asked_again(h.flags);
                self.tx.want(pending::SYN);
                return;
            }
            //= RFC 9293 (3.5, figure 8): in a simultaneous open the SYN-ACK repeats a SYN that is here already.
            syn = false;
            seq += 1;
        }
        if self.tx.agreed().timestamps && !reset {
            //= RFC 7323 (3.2): a segment without the agreed option should be dropped.
            if h.options.timestamps.is_none() && self.tx.config().timestamps_required {
                return;
            }
            //= RFC 7323 (5.3, R1): an old timestamp means an old segment: acknowledge and drop.
            if let Some((value, _)) = h.options.timestamps
                && value.wrapping_sub(self.rcv.ts_recent()).cast_signed() < 0
                && now.since(self.rcv.ts_recent_at()) < PAWS_IDLE
            {
                self.acknowledge_unacceptable(now, h, seq, &body);
                return;
            }
        }
        let len = body.len() as u64 + u64::from(syn) + u64::from(h.flags.has(Flags::FIN));
        let mut text = true;
        if !self.rcv.accepts(seq, len) {
            //= RFC 9293 (3.10.7.4): at window zero valid ACK and RST are still taken.
            text = false;
            if !(self.rcv.wnd() == 0 && seq == self.rcv.nxt()) {
                if !reset {
                    self.acknowledge_unacceptable(now, h, seq, &body);
                }
                return;
            }
            self.tx.want(pending::ACK);
        }
        if reset {
            self.reset_arrives(now, seq);
            return;
        }
        if self.state == State::FinWait2 {
            self.wait_for_fin(now);
        }
        if syn {
            //= RFC 5961 (4): a SYN in a synchronized state is answered by a challenge.
            if self.state == State::SynReceived && !self.opener {
                self.fail(CloseReason::Reset);
            } else {
                self.challenge(now);
            }
            return;
        }
        if !h.flags.has(Flags::ACK) {
            return;
        }
        let ack = widen(self.tx.snd.una(), h.ack);
        if self.state == State::SynReceived {
            if ack <= self.tx.snd.una() || ack > self.tx.snd.max() {
                self.refuse(h.ack);
                return;
            }
            self.take_timestamp(now, h, seq);
            self.syn_acknowledged(now, h, ack);
            //= RFC 7323 (2.2): nor is that of the SYN-ACK that ends a simultaneous open.
            let scaled = !h.flags.has(Flags::SYN);
            let wnd = if scaled { self.tx.snd.scaled(h.window) } else { u64::from(h.window) };
            self.tx.snd.set_window(seq, ack, wnd);
        } else {
            //= RFC 5961 (5): an acknowledgement far in the past or of data never sent is not believed.
            if ack > self.tx.snd.max() || ack + self.tx.snd.max_wnd() < self.tx.snd.una() {
                self.challenge(now);
                return;
            }
            self.take_timestamp(now, h, seq);
            self.ack_arrives(now, h, seq, ack, len);
            if let Some(option) = h.options.probe
                && let Some(suspicion) = self.tx.probe_arrives(now, option)
            {
                self.recovery.repair(&mut self.tx, now, suspicion);
            }
            if self.state == State::Closed {
                return;
            }
        }
        if text && len > 0 {
            self.take_text(now, h, seq, body);
        }
    }

    /// Remembers the timestamp of a segment that is acceptable in every way.
    fn take_timestamp(&mut self, now: Instant, h: &Header, seq: u64) {
        if let Some((value, _)) = h.options.timestamps.filter(|_| self.tx.agreed().timestamps) {
            self.rcv.take_timestamp(now, value, seq);
        }
    }

    /// A segment outside the window, or too old.
    fn acknowledge_unacceptable(&mut self, now: Instant, h: &Header, seq: u64, body: &Body) {
        if h.flags.has(Flags::SYN) || body.is_empty() && !h.flags.has(Flags::FIN) {
            //= RFC 5961 (4.2, 7): a SYN, whatever its number, gets no more than a challenge.
            // Two ends that disagree could answer each other's empty segments for ever.
            self.challenge(now);
            return;
        }
        self.rcv.note_duplicate(seq, seq + body.len() as u64);
        self.acks.hurry();
        self.tx.want(pending::ACK);
        if self.state == State::TimeWait && h.flags.has(Flags::FIN) {
            //= RFC 9293 (3.10.7.4): the peer's FIN again: acknowledge it and wait twice the MSL from now.
            self.tx.timers.arm(Alarm::TimeWait, now + self.tx.config().time_wait);
        }
    }

    fn reset_arrives(&mut self, now: Instant, seq: u64) {
        //= RFC 5961 (3): only a RST at exactly RCV.NXT resets; another one inside the window is questioned.
        if seq != self.rcv.nxt() {
            self.challenge(now);
            return;
        }
        match self.state {
            State::SynReceived if self.opener => self.fail(CloseReason::Refused),
            State::Closing | State::LastAck | State::TimeWait => self.closed(),
            _ => self.fail(CloseReason::Reset),
        }
    }

    /// `len` octets arrived, echoing `echo`: receive buffer autotuning measures.
    #[inline(never)]
    fn measure_arrival(&mut self, now: Instant, echo: Option<u32>, len: u64) {
        let Some(right_size) = &mut self.right_size else { return };
        if !self.tx.agreed().timestamps {
            right_size.data_arrived(now, &self.rcv);
        } else if right_size.is_new_echo(echo, len, self.rcv.mss()) {
            right_size.echo_arrived(self.tx.age_of_echo(now, echo), self.tx.config().timestamp_tick);
        }
    }

    /// Text and FIN of an acceptable segment.
    #[inline(never)]
    fn take_text(&mut self, now: Instant, h: &Header, seq: u64, body: Body) {
        let len = body.len() as u64;
        if self.right_size.is_some() && len > 0 {
            self.measure_arrival(now, h.options.timestamps.map(|(_, echo)| echo), len);
        }
        if !self.state.can_receive() {
            // The peer sent its FIN already: a repetition, or data after it.
            if len > 0 || h.flags.has(Flags::FIN) {
                self.tx.want(pending::ACK);
            }
            return;
        }
        let fin = h.flags.has(Flags::FIN);
        if fin && self.rcv.note_fin(seq + len) && seq <= self.rcv.nxt() && self.state == State::Established {
            self.acks.on_fin();
        }
        if len > 0 {
            self.tx.ecn.take_mark(h.flags);
            self.take_data(now, h.flags, seq, body);
        }
        if self.rcv.fin_is_next() {
            self.take_fin(now);
        } else if fin {
            self.rcv.hold_fin(seq + len);
            self.tx.want(pending::ACK);
        }
    }

    /// The peer's FIN is next.
    fn take_fin(&mut self, now: Instant) {
        self.rcv.take_fin();
        let unacked = self.rcv.unacked();
        match self.acks.answer_to_fin(self.tx.config(), now, unacked) {
            Decision::Wait(at) if self.state == State::Established => {
                if !self.tx.timers.is_armed(Alarm::Ack) {
                    self.tx.timers.arm(Alarm::Ack, at);
                }
            }
            _ => self.tx.want(pending::ACK),
        }
        self.step(now, Step::Fin);
        self.tell_finished_if_read();
    }

    #[inline(always)]
    fn take_data(&mut self, now: Instant, flags: Flags, seq: u64, mut body: Body) {
        if let Some(fin) = self.rcv.fin()
            && seq + body.len() as u64 > fin
        {
            // Nothing comes after a FIN.
            body = body.slice(0, fin.saturating_sub(seq) as usize);
        }
        let len = body.len() as u64;
        if seq > self.rcv.nxt() {
            let parts =
                self.acks.parts_from_the_one_before(self.tx.config(), self.rcv.nxt(), self.tx.agreed().sack);
            if parts && self.tx.wants(pending::ACK) {
                self.make_ack(now);
            }
        }
        let had = self.rcv.readable();
        let arrival = self.rcv.data(seq, body);
        if had == 0 && self.rcv.readable() > 0 {
            self.tx.facts.first_byte.get_or_insert(now);
            self.tell_readable();
        }
        if arrival == Arrival::InOrder {
            let grew = self.rcv.grow(len);
            self.acks.note_push(flags.has(Flags::PSH));
            let unacked = self.rcv.unacked();
            match self.acks.on_data(
                self.tx.config(),
                now,
                len,
                unacked,
                self.tx.rtt(),
                self.right_size.is_some().then_some(grew),
            ) {
                Decision::Now => self.tx.want(pending::ACK),
                Decision::Wait(at) => {
                    if !self.tx.timers.is_armed(Alarm::Ack) {
                        self.tx.timers.arm(Alarm::Ack, at);
                    }
                }
            }
            return;
        }
        //= RFC 5681 (4.2): at once, when a segment is out of order, a duplicate, or fills a part of a hole.
        self.tx.want(pending::ACK);
        match arrival {
            Arrival::Duplicate => self.acks.hurry(),
            //= RFC 5681 (2): without SACK an acknowledgement is a duplicate only if its window is the same.
            Arrival::OutOfOrder if !self.tx.agreed().sack => {}
            // The sender goes on while it repairs the loss, so the window goes on growing.
            _ => {
                self.rcv.grow(len);
            }
        }
    }
}
