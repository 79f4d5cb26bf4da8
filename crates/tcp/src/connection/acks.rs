//! What an acknowledgement does, and what the timers that wait for one do: the part that is the same whatever the sender keeps
//! its books by. What is lost, and what follows from that, is in `octets/` and `segments/`.

use airloom_base::{CloseReason, Duration, Instant};

use super::{Books, Connection, hold, pending};
use crate::congestion::{Ack, Suspicion};
use crate::segments::{Arrived, TimerKind};
use crate::state::State;
use crate::timers::Alarm;
use crate::wire::{Flags, Header};

impl Connection {
    /// Octets in flight as the window counts them.
    #[inline(always)]
    pub fn in_flight(&self) -> u64 {
        if self.books == Books::Segments {
            return (self.segments_in_flight() * self.snd.mss).min(self.snd.outstanding());
        }
        self.octets.pipe(self.snd.una, self.snd.nxt)
    }

    /// Takes the window of a segment.
    #[inline]
    pub fn set_window(&mut self, seq: u64, ack: u64, wnd: u64) {
        self.snd.wnd = wnd;
        self.snd.wl1 = seq;
        self.snd.wl2 = ack;
        self.snd.max_wnd = self.snd.max_wnd.max(wnd);
    }

    /// The acknowledgement of a segment in a synchronized state; `len` is SEG.LEN.
    #[inline]
    pub fn ack_arrives(&mut self, now: Instant, h: &Header, seq: u64, ack: u64, len: u64) {
        let old_window = self.snd.wnd;
        let is_newer = self.snd.wl1 < seq || (self.snd.wl1 == seq && self.snd.wl2 <= ack);
        if ack > self.snd.una || (ack == self.snd.una && is_newer) {
            //= RFC 9293 (3.10.7.4): only a newer segment moves the window. One that acknowledges more than any before it is
            //= newer, whatever its number: data sent again, or what the peer says after a forged segment with a number ahead.
            self.set_window(seq, ack, u64::from(h.window) << self.snd.shift);
        }
        let not_duplicate = len > 0 || self.snd.wnd > old_window || h.flags.has(Flags::SYN);
        match self.books {
            Books::Segments => {
                let arrived = Arrived {
                    ack,
                    echo: h.options.timestamps.map(|(_, echo)| echo),
                    blocks: h.options.sack.as_slice(),
                    not_duplicate,
                    ece: self.reports_congestion(h),
                };
                self.ack_by_segments(now, arrived);
            }
            Books::Octets => self.ack_by_octets(now, h, ack, len == 0 && self.snd.wnd == old_window),
        }
        self.after_ack(now, ack, old_window);
    }

    /// What an acknowledgement does to the window's probes and to keep-alive.
    #[inline]
    fn after_ack(&mut self, now: Instant, ack: u64, old_window: u64) {
        if self.snd.wnd > old_window {
            self.pending |= pending::DATA;
        }
        if self.timers.is_armed(Alarm::Persist) && ack >= self.snd.una {
            self.probe_answered(old_window);
        }
        if self.config.send_autotuning && self.snd.wants_room() {
            // A sender in recovery has nothing left to send: its buffer grows, although nothing was acknowledged.
            self.room_for_more();
        }
        if self.config.keepalive {
            self.arm_keepalive(now);
        }
    }

    /// SND.UNA moves to `ack`, and nothing else is told; `echo` is the echoed timestamp.
    #[inline(always)]
    pub fn new_ack(&mut self, now: Instant, echo: Option<u32>, ack: u64) {
        match self.books {
            Books::Segments => self.new_ack_by_segments(now, echo, ack),
            Books::Octets => self.new_ack_by_octets(now, echo, ack, 0, false),
        }
    }

    /// What an acknowledgement that brings nothing would bring the controller.
    #[inline]
    pub(crate) fn brought(&self, now: Instant) -> Ack {
        Ack {
            now,
            una: self.snd.una,
            nxt: self.snd.nxt,
            in_flight: self.in_flight(),
            srtt: self.rtt.srtt(),
            phase: self.mode.phase(),
            ..Ack::default()
        }
    }

    /// How long ago the timestamp was sent that the acknowledgement at hand echoes.
    pub(crate) fn age_of_echo(&self, now: Instant) -> Option<Duration> {
        let ticks =
            self.timestamp(now).wrapping_sub(self.segments.undo.echo.filter(|_| self.agreed.timestamps)?);
        (ticks.cast_signed() >= 0).then(|| self.config.timestamp_tick * u64::from(ticks))
    }

    /// A round-trip time from an echoed timestamp.
    pub fn sample_timestamp(&mut self, now: Instant, echo: u32) {
        let ticks = self.timestamp(now).wrapping_sub(echo);
        // More than half of the number space is not an age.
        if ticks.cast_signed() >= 0 {
            let sample = self.config.timestamp_tick * u64::from(ticks);
            let per_round_trip = self.snd.outstanding().div_ceil(2 * self.snd.mss);
            self.rtt.sample_at(&self.config, sample, per_round_trip, (self.snd.una, self.snd.nxt));
        }
    }

    /// The retransmission timer expired.
    pub fn retransmission_timeout(&mut self, now: Instant) {
        let handshake = matches!(self.state, State::SynSent | State::SynReceived);
        if self.hold & hold::PROBING != 0 {
            // Probes have a timer of their own; this one starts again when sending goes on.
            return;
        }
        if self.hold & hold::ECN != 0 {
            //= RFC 3168 (6.1.2): with a window of one segment a report of congestion costs a timeout.
            self.hold &= !hold::ECN;
            self.pending |= pending::DATA;
        }
        if !handshake && self.snd.una == self.snd.nxt {
            return;
        }
        let limit = if handshake { self.config.syn_give_up } else { self.config.give_up };
        if self.rtt.backoff() == 0 && !handshake {
            self.liveness.stalled_since = self.liveness.last_sent.min(now);
        }
        //= RFC 9293 (3.8.3): after R2 the connection is given up.
        let often = self.config.max_retransmissions;
        let too_often = !handshake && often > 0 && self.rtt.backoff() >= often;
        if too_often || now.since(self.silent_since()) >= limit {
            if handshake {
                self.fail(CloseReason::TimedOut);
            } else {
                self.abort(CloseReason::TimedOut);
            }
            return;
        }
        self.facts.rto_count += 1;
        //= RFC 6298 (5.5, 5.6): back off and start again.
        self.rtt.back_off();
        let at = self.rtt.deadline(&self.config, now);
        self.timers.arm(Alarm::Retransmission, at);
        if handshake {
            self.liveness.syns_lost = self.liveness.syns_lost.saturating_add(1);
            self.pending |= pending::SYN;
            return;
        }
        match self.books {
            Books::Segments => {
                self.segments.timer = TimerKind::Rto;
                self.enter_loss(now);
            }
            Books::Octets => {
                if !self.suspends(now, Suspicion::Timeout) {
                    self.time_out(now);
                }
            }
        }
    }

    /// The path takes smaller datagrams only.
    pub fn smaller_segments(&mut self, _now: Instant) {
        let old = self.snd.mss;
        let mss = self.effective_mss(Some(self.path.mtu.saturating_sub(self.path.ip_header() + 20))).min(old);
        if mss == old {
            return;
        }
        self.snd.mss = mss;
        self.window.mss = mss;
        //= RFC 5681 (3.1): the window keeps its number of segments, so that no burst of smaller ones leaves.
        self.window.cwnd = (self.window.cwnd * mss / old).max(mss);
        if self.facts.established.is_some() && self.snd.una < self.snd.nxt {
            match self.books {
                Books::Segments => self.resend_in_smaller_segments(mss),
                Books::Octets => self.resend_octets_in_smaller_segments(mss),
            }
            self.hold |= hold::MTU;
        }
    }
}
