//! What leaves: the decision to send (RFC 9293 3.7.4, 3.8.6.2.1; RFC 5681; RFC 6675 NextSeg) and the segment itself.

use airloom_base::{Body, Instant, Outgoing, Packet, PathId};

use super::{Books, Connection, pending};
use crate::config::{AckPolicy, IdleRestart, Nagle, WindowProbe};
use crate::congestion::validation::remembered;
use crate::congestion::{Departure, Hears};
use crate::send::{Sent, corked};
use crate::state::State;
use crate::timers::Alarm;
use crate::wire::{Flags, Header, Options, Plain, ProbeOption, ProbeStep, SackBlocks};

/// Why nothing more is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Nothing is left.
    Nothing,
    /// The congestion window.
    Congestion,
    /// The peer's window.
    Window,
    /// It is short and waits for more.
    Short,
}

impl Connection {
    /// The next segment, if something is pending.
    #[inline(never)]
    pub fn transmit(&mut self, now: Instant) -> Option<Outgoing> {
        if self.pending & pending::MADE != 0 {
            return self.transmit_made();
        }
        if self.pending & (pending::REFUSE | pending::RESET | pending::SYN) != 0
            && let Some(segment) = self.transmit_control(now)
        {
            return Some(segment);
        }
        if self.pending & (pending::HEAD | pending::DATA) != 0 {
            if self.state.can_send() {
                if let Some(segment) = self.transmit_data(now) {
                    return Some(segment);
                }
            } else if self.state.is_synchronized() || self.state == State::Closed {
                self.pending &= !(pending::HEAD | pending::DATA);
            }
        }
        match self.pending & (pending::PROBES | pending::ACK) {
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
            self.pending &= pending::SYN | pending::REFUSE;
        }
        None
    }

    /// Makes the acknowledgement that is due, so that a segment at hand has one of its own.
    #[inline(never)]
    pub(crate) fn make_ack(&mut self, now: Instant) {
        let made = self.segment(now, self.acceptable_seq(), Flags::ACK, Body::EMPTY);
        self.made_acks.push_back(made);
        self.pending |= pending::MADE;
    }

    #[cold]
    fn transmit_made(&mut self) -> Option<Outgoing> {
        let made = self.made_acks.pop_front();
        if self.made_acks.is_empty() {
            self.pending &= !pending::MADE;
        }
        made.map(|out| Outgoing { last: self.pending == 0, ..out })
    }

    /// The sequence number of a segment without data: SND.NXT, unless the peer took its window back below that.
    #[inline]
    fn acceptable_seq(&self) -> u64 {
        if self.snd.nxt <= self.snd.window_edge() { self.snd.nxt } else { self.seq_beyond_window() }
    }

    /// [`Connection::acceptable_seq`] where SND.NXT lies beyond the window's edge.
    #[cold]
    fn seq_beyond_window(&self) -> u64 {
        //= RFC 9293 (3.10.7.4): the peer drops a segment that starts beyond its window, the acknowledgement too. If each of
        //= two ends has sent beyond the other's window, neither hears the other any more.
        // Linux (`tcp_acceptable_seq`): from the edge, but for what a scaled field cannot say.
        let edge = self.snd.window_edge();
        let handshake = self.facts.established.is_none();
        if handshake || self.snd.nxt - edge < 1 << self.snd.shift { self.snd.nxt } else { edge }
    }

    #[inline(never)]
    fn transmit_control(&mut self, now: Instant) -> Option<Outgoing> {
        if self.pending & pending::REFUSE != 0 {
            self.pending &= !pending::REFUSE;
            let (seq, ack) = self.refusal;
            return Some(self.bare_reset(seq, ack, None));
        }
        if self.pending & pending::RESET != 0 {
            self.pending = 0;
            //= RFC 7323 (3.2): once agreed on, timestamps are in every segment; a RST should carry them.
            let timestamps = self.agreed.timestamps.then(|| (self.timestamp(now), self.rcv.ts_recent));
            let (seq, ack) = (self.acceptable_seq() as u32, self.rcv.nxt as u32);
            return Some(self.bare_reset(seq, Some(ack), timestamps));
        }
        self.pending &= !pending::SYN;
        match self.state {
            State::SynSent => Some(self.syn(now, Flags::SYN)),
            State::SynReceived => {
                self.pending &= !pending::ACK;
                Some(self.syn(now, Flags::SYN.with(Flags::ACK)))
            }
            _ => None,
        }
    }

    #[inline(never)]
    fn syn(&mut self, now: Instant, flags: Flags) -> Outgoing {
        let answer = flags.has(Flags::ACK);
        let config = self.config.clone();
        let shift = config.window_shift();
        //= RFC 7323 (2.2, 3.2): a SYN-ACK carries what the SYN carried.
        let scaled = if answer { self.agreed.scaling } else { config.window_scaling };
        let timestamps = if answer { self.agreed.timestamps } else { config.timestamps };
        let flags = flags.with(self.ecn_syn_flags(answer));
        let header = Header {
            source: self.ports.0,
            destination: self.ports.1,
            seq: self.snd.una as u32,
            ack: if answer { self.rcv.nxt as u32 } else { 0 },
            flags,
            window: self.rcv.announce(0),
            urgent: 0,
            options: Options {
                mss: Some(self.local_mss()),
                window_scale: scaled.then_some(shift),
                sack_permitted: if answer { self.agreed.sack } else { config.sack },
                timestamps: timestamps
                    .then(|| (self.timestamp(now), if answer { self.rcv.ts_recent } else { 0 })),
                sack: SackBlocks::default(),
                probe: self
                    .offers_probing(answer)
                    .then_some(ProbeOption { step: ProbeStep::Permitted, cycle: 0 }),
            },
        };
        if self.snd.nxt > self.snd.una {
            self.facts.resent += 1;
        }
        self.snd.nxt = self.snd.una + 1;
        self.snd.max = self.snd.max.max(self.snd.nxt);
        self.rcv.last_ack = self.rcv.nxt;
        self.liveness.last_sent = now;
        if !self.timers.is_armed(Alarm::Retransmission) {
            let at = self.rtt.deadline(&self.config, now);
            self.timers.arm(Alarm::Retransmission, at);
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
        if self.must_wait(now) {
            return None;
        }
        match self.books {
            Books::Segments => self.transmit_by_segments(now),
            Books::Octets => self.transmit_by_octets(now),
        }
    }

    /// Payload that fits beside the options of a segment sent now.
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        if self.rcv.wants_sack() && self.agreed.sack {
            //= RFC 9293 (3.7.1): the sender takes the octets of its options off, also those that come and go.
            self.snd.mss.saturating_sub(if self.agreed.timestamps { 28 } else { 36 }).max(8)
        } else {
            self.snd.mss
        }
    }

    /// How many octets of new data (zero: a bare FIN) may be sent now.
    #[inline(always)]
    pub(crate) fn next_new(&mut self, now: Instant) -> Result<u64, Limit> {
        let snd = &self.snd;
        if !snd.has_unsent() {
            return Err(Limit::Nothing);
        }
        if self.hold != 0 {
            return Err(Limit::Congestion);
        }
        if snd.una == snd.nxt && self.facts.app_sent > 0 {
            self.restart_if_idle(now);
        }
        let snd = &self.snd;
        let mss = self.room();
        let mut unsent = snd.unsent();
        if snd.has_records() {
            unsent = unsent.min(snd.record_end(snd.nxt) - snd.nxt);
        }
        let usable = snd.window_edge().saturating_sub(snd.nxt);
        let len = unsent.min(usable).min(mss);
        let idle = snd.una == snd.nxt;
        if len < mss {
            if usable == 0 {
                return Err(Limit::Window);
            }
            if unsent > usable {
                //= RFC 9293 (3.8.6.2.1): a part of a segment only if it is half of the largest window.
                if !(idle && usable >= snd.max_wnd / 2) {
                    return Err(Limit::Window);
                }
            } else if len > 0 && (!idle || snd.corked != 0) && !snd.finished && unsent == snd.unsent() {
                let waits = match self.config.nagle {
                    _ if snd.is_corked() => true,
                    _ if idle => false,
                    Nagle::Off => false,
                    //= RFC 9293 (3.7.4): while anything is outstanding a short segment waits.
                    Nagle::Nagle => true,
                    //= RFC 9293 (A.3): while a short segment is outstanding another one waits.
                    Nagle::Minshall => snd.short_end > snd.una,
                };
                if waits {
                    return Err(Limit::Short);
                }
            }
        }
        if self.books == Books::Segments {
            let (in_flight, cwnd) = (self.segments_in_flight(), self.cwnd_segments());
            if len > 0 && in_flight >= cwnd {
                return Err(Limit::Congestion);
            }
            if self.offload.on && len > 0 && !self.offload.in_group() {
                self.begin_group(now, cwnd - in_flight)?;
            }
            return Ok(len);
        }
        if len > 0 && !self.window_lets_out(len) { Err(Limit::Congestion) } else { Ok(len) }
    }

    #[inline(always)]
    pub(crate) fn send_new(&mut self, now: Instant, len: u64) -> Outgoing {
        let seq = self.snd.nxt;
        if self.about.hears != Hears::Growth {
            self.tell_controller_of_departure(now, len);
        }
        let end = seq + len;
        //= RFC 9293 (3.4): the FIN takes a sequence number, and leaves only if the peer's window has room for that.
        let fin = self.snd.finished && end == self.snd.end() && end < self.snd.window_edge();
        let next = end + u64::from(fin);
        if len < self.room() && len > 0 {
            self.snd.short_end = end;
        }
        let marks = self.offload.leaves();
        self.snd.sent.push_back(Sent { end: next, at: now, marks });
        self.snd.nxt = next;
        self.snd.max = self.snd.max.max(next);
        self.facts.app_sent += len;
        self.sent_something = true;
        self.acks.on_data_sent(now);
        match self.books {
            Books::Segments => self.sent_new_by_segments(now),
            Books::Octets => self.sent_new_by_octets(len),
        }
        if self.pace.on {
            self.paced_out(now, len);
            if let Some(rate) = &mut self.rate {
                rate.sent(now, seq, next);
            }
        }
        if self.ecn.cwr_due && self.ecn.is_on() && len > 0 {
            //= RFC 3168 (6.1.2): CWR on the first new data after any reduction.
            self.ecn.cwr_due = false;
            self.ecn.cwr_now = true;
        }
        let mut out = self.data_segment(now, seq, len, fin);
        //= RFC 3168 (6.1.4, 6.1.5): new data may be marked; acknowledgements and retransmissions may not.
        out.ecn = self.ecn.codepoint;
        out
    }

    #[inline]
    fn tell_controller_of_departure(&mut self, now: Instant, octets: u64) {
        let nothing_outstanding = self.snd.nxt == self.snd.una && self.facts.app_sent > 0;
        if nothing_outstanding || self.about.hears == Hears::Everything {
            let idle = nothing_outstanding.then(|| now.since(self.liveness.last_sent));
            self.controller.on_sent(&mut self.window, &Departure { now, octets, idle });
        }
    }

    /// As [`Connection::send_new`], off the common path.
    #[inline(never)]
    pub(crate) fn send_more(&mut self, now: Instant, len: u64) -> Outgoing {
        self.send_new(now, len)
    }

    /// Sends `start..end` again; the last number may be the FIN's.
    #[inline(never)]
    pub(crate) fn resend(&mut self, now: Instant, start: u64, end: u64) -> Outgoing {
        let data_end = end.min(self.snd.end());
        let fin = end > self.snd.end();
        self.snd.resent_below = self.snd.resent_below.max(end);
        self.facts.resent += 1;
        self.liveness.last_resent = now;
        self.sent_something = true;
        if self.books == Books::Octets {
            self.resent_by_octets(now, start, end);
        }
        if self.pace.on {
            self.paced_out(now, end - start);
            if let Some(rate) = &mut self.rate {
                rate.resent(now, start);
            }
        }
        self.data_segment(now, start, data_end.saturating_sub(start), fin)
    }

    #[inline(always)]
    fn data_segment(&mut self, now: Instant, seq: u64, len: u64, fin: bool) -> Outgoing {
        let mut flags = Flags::ACK;
        if (seq + len == self.snd.end() && len > 0 && self.snd.corked & corked::UNPUSHED == 0)
            || self.offload.push
            || (self.snd.has_records() && self.snd.ends_record(seq + len))
        {
            self.offload.push = false;
            flags = flags.with(Flags::PSH);
        }
        if fin {
            flags = flags.with(Flags::FIN);
        }
        if self.ecn.cwr_now {
            flags = flags.with(Flags::CWR);
            self.ecn.cwr_now = false;
        }
        self.liveness.last_sent = now;
        self.timers.stop(Alarm::Persist);
        self.liveness.probes = 0;
        if !self.timers.is_armed(Alarm::Retransmission) {
            //= RFC 6298 (5.1): data is sent and the timer is off: on.
            let at = self.rtt.deadline(&self.config, now);
            self.timers.arm(Alarm::Retransmission, at);
        }
        let body = self.snd.body(seq, len as usize);
        self.segment(now, seq, flags, body)
    }

    /// Nothing more is sent now.
    pub(crate) fn nothing_more(&mut self, now: Instant, held: Limit) -> Option<Outgoing> {
        self.pending &= !pending::DATA;
        if self.offload.on {
            self.offload_pauses();
        }
        self.snd.corked &= !corked::PUSH;
        // Linux: what is corked leaves when that timer expires.
        let held_for_long = held == Limit::Window || held == Limit::Short && self.snd.corked != 0;
        if held_for_long && self.snd.una == self.snd.nxt && !self.timers.is_armed(Alarm::Persist) {
            let at = now + self.probe_interval();
            self.timers.arm(Alarm::Persist, at);
        }
        if self.rate.is_some() {
            self.note_application_limit(held);
        }
        let news = self.sent_something || (self.books == Books::Segments && held == Limit::Congestion);
        if !news {
            return None;
        }
        self.sent_something = false;
        if self.config.cwnd_validation {
            // Linux compares what is in flight with the window, and remembers what was outstanding.
            let in_flight = self.in_flight();
            let limited = held == Limit::Congestion || in_flight >= self.window.cwnd;
            let in_flight =
                if self.books == Books::Segments { self.segments_out() * self.snd.mss } else { in_flight };
            let flight = (self.snd.una, self.snd.nxt);
            let unused = self
                .usage
                .sent(now, &self.window, limited, in_flight, flight)
                .is_some_and(|idle| idle >= self.rtt.rto(&self.config));
            // A full send buffer or a closed window is not the application's doing.
            if unused && held == Limit::Nothing && self.config.idle_restart == IdleRestart::Halve {
                let initial = self.config.initial_window.octets(self.snd.mss);
                self.usage.shrink(now, &mut self.window, initial);
            }
        }
        None
    }

    /// Tells the sampler of delivery rates if it was the application that sent no more.
    #[inline(never)]
    fn note_application_limit(&mut self, held: Limit) {
        if let Some(rate) = &mut self.rate
            && matches!(held, Limit::Nothing | Limit::Short)
            && self.segments.lost_out <= self.segments.resent_out
        {
            let in_flight = (self.snd.sent.len() as u64 + self.segments.resent_out)
                .saturating_sub(self.segments.left())
                * self.snd.mss;
            if in_flight < self.window.cwnd {
                rate.limited_by_application(in_flight);
            }
        }
    }

    /// The congestion window after an idle time.
    #[inline(never)]
    fn restart_if_idle(&mut self, now: Instant) {
        let rto = self.rtt.rto(&self.config);
        let idle = now.since(self.liveness.last_sent);
        if idle <= rto || self.sent_something {
            return;
        }
        let initial = self.config.initial_window.octets(self.snd.mss);
        match self.config.idle_restart {
            IdleRestart::Off => return,
            //= RFC 5681 (4.1): nothing sent for a timeout: not more than the initial window.
            IdleRestart::InitialWindow => self.window.cwnd = self.window.cwnd.min(initial),
            //= RFC 2861 (3.2): half for each timeout that passed; the threshold remembers the window.
            IdleRestart::Halve => {
                let floor = initial.min(self.window.cwnd);
                self.window.ssthresh = remembered(&self.window);
                let mut left = idle;
                while left > rto && self.window.cwnd > floor {
                    self.window.cwnd /= 2;
                    left -= rto;
                }
                self.window.cwnd = self.window.cwnd.max(floor);
            }
        }
        self.liveness.last_sent = now;
        self.usage.restart(now);
    }

    #[inline(never)]
    fn transmit_probe(&mut self, now: Instant) -> Option<Outgoing> {
        if self.pending & pending::PROBING != 0 {
            return self.transmit_probing(now);
        }
        if self.pending & pending::KEEPALIVE != 0 {
            self.pending &= !pending::KEEPALIVE;
            //= RFC 9293 (3.8.4): below the window, so that the peer must answer.
            return Some(self.bare(now, self.snd.nxt - 1));
        }
        self.pending &= !pending::PROBE;
        if !self.state.can_send() || !self.snd.has_unsent() || self.snd.una != self.snd.nxt {
            return None;
        }
        let usable = self.snd.window_edge().saturating_sub(self.snd.nxt);
        if usable > 0 {
            //= RFC 9293 (3.8.6.2.1): the override timer lets out what fits.
            let len = self.snd.unsent().min(usable).min(self.snd.mss);
            self.offload.push |= self.snd.corked != 0;
            return Some(self.send_more(now, len));
        }
        let at = now + self.probe_interval();
        self.timers.arm(Alarm::Persist, at);
        self.liveness.last_sent = now;
        if self.config.window_probe == WindowProbe::Empty {
            return Some(self.bare(now, self.snd.una - 1));
        }
        //= RFC 9293 (3.8.6.1): one octet of new data (or the FIN); it is not counted as sent before it is taken.
        let seq = self.snd.nxt;
        let len = self.snd.unsent().min(1);
        let flags = if len == 0 { Flags::ACK.with(Flags::FIN) } else { Flags::ACK };
        self.snd.max = self.snd.max.max(seq + 1);
        let body = self.snd.body(seq, len as usize);
        Some(self.segment(now, seq, flags, body))
    }

    /// An acknowledgement that looks like a segment at `seq`, which is below the peer's window.
    #[inline(never)]
    fn bare(&mut self, now: Instant, seq: u64) -> Outgoing {
        //= RFC 9293 (3.10.7.4): the peer drops a segment that is not acceptable, its acknowledgement too: one that waits goes
        //= on waiting.
        let flags = Flags::ACK.with(self.ecn.echo_flags());
        self.dress(now, seq, flags, Body::EMPTY)
    }

    /// A segment of a synchronized connection: acknowledgement, window and options are those of this moment.
    #[inline(always)]
    fn segment(&mut self, now: Instant, seq: u64, flags: Flags, body: Body) -> Outgoing {
        let flags = flags.with(self.ecn.echo_flags());
        self.pending &= !pending::ACK;
        if self.timers.is_armed(Alarm::Ack) {
            self.timers.stop_ack(self.config.delayed_ack == AckPolicy::Linux);
        }
        if self.rcv.last_ack != self.rcv.nxt {
            self.rcv.last_ack = self.rcv.nxt;
            self.acks.on_ack_sent();
        }
        self.dress(now, seq, flags, body)
    }

    /// Header and options around `body`.
    #[inline(always)]
    fn dress(&mut self, now: Instant, seq: u64, flags: Flags, body: Body) -> Outgoing {
        let timestamps = self.agreed.timestamps.then(|| (self.timestamp(now), self.rcv.ts_recent));
        let window = self.rcv.announce(self.rcv.shift);
        let ack = self.rcv.nxt;
        let plain = Plain { seq: seq as u32, ack: ack as u32, flags, window, timestamps };
        if self.rcv.wants_sack() && self.agreed.sack {
            return self.segment_with_sack(&plain, body);
        }
        let mut packet = Packet::build(|_| 0, body);
        plain.emit(self.ports, packet.room(plain.header_len()));
        self.count(packet)
    }

    #[inline(never)]
    fn segment_with_sack(&mut self, plain: &Plain, body: Body) -> Outgoing {
        let sack = self.rcv.sack_blocks(self.config.dsack);
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
    pub(crate) fn emit(&mut self, header: &Header, body: Body) -> Outgoing {
        self.count(Packet::build(|out| header.emit(out), body))
    }

    #[inline]
    fn count(&mut self, packet: Packet) -> Outgoing {
        self.facts.segments += 1;
        self.facts.wire_sent += packet.wire_len() as u64;
        Outgoing { path: PathId(0), ecn: 0, packet, last: self.pending == 0 }
    }
}
