//! Explicit congestion notification (RFC 3168): routers mark instead of dropping, the receiver echoes the mark, the sender
//! slows down as after a loss and says so.

use airloom_base::Instant;

use super::config::EcnUse;
use super::congestion::Event;
use super::connection::{Connection, Mode, hold};
use super::timers::Alarm;
use super::wire::{Flags, Header};

/// ECT(0): the codepoint of packets that may be marked.
const ECT0: u8 = 2;
/// CE: the codepoint of packets that were.
pub(super) const CE: u8 = 3;

/// State of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ecn {
    /// Codepoint of our data: ECT(0) once both sides have agreed, else zero.
    pub codepoint: u8,
    /// Our SYN asked.
    pub asked: bool,
    /// As a receiver: a mark was seen that the sender has not answered yet.
    echo: bool,
    /// As a sender: the window was reduced; the next new data says so.
    pub cwr_due: bool,
    /// The segment at hand says so.
    pub cwr_now: bool,
    /// No reaction to another report before this is acknowledged.
    pub recover: u64,
    /// Codepoint of the packet at hand.
    pub arrived: u8,
}

impl Ecn {
    /// Was it agreed on?
    #[inline]
    pub fn is_on(&self) -> bool {
        self.codepoint != 0
    }

    /// Flags that a segment carries beside its own.
    #[inline]
    pub fn echo_flags(&self) -> Flags {
        //= RFC 3168 (6.1.3): ECN-Echo in every acknowledgement until CWR arrives.
        if self.echo { Flags::ECE } else { Flags(0) }
    }
}

impl Connection {
    /// Flags of our SYN or SYN-ACK beside the usual ones.
    pub fn ecn_syn_flags(&mut self, answer: bool) -> Flags {
        if answer {
            //= RFC 3168 (6.1.1): the SYN-ACK of a host that takes part has ECE and not CWR.
            return if self.ecn.is_on() { Flags::ECE } else { Flags(0) };
        }
        //= RFC 3168 (6.1.1.1): a SYN that is not answered is sent again without.
        self.ecn.asked = self.config.ecn == EcnUse::On && self.liveness.syns_lost == 0;
        if self.ecn.asked { Flags::ECE.with(Flags::CWR) } else { Flags(0) }
    }

    /// What the peer's SYN (or SYN-ACK) says of ECN.
    pub fn negotiate_ecn(&mut self, h: &Header) {
        let (ece, cwr) = (h.flags.has(Flags::ECE), h.flags.has(Flags::CWR));
        let agreed = if h.flags.has(Flags::ACK) {
            self.ecn.asked && ece && !cwr
        } else {
            self.config.ecn != EcnUse::Off && ece && cwr
        };
        self.ecn.codepoint = if agreed { ECT0 } else { 0 };
    }

    /// Acceptable data arrived, in a packet with the codepoint noted.
    #[inline]
    pub fn take_mark(&mut self, flags: Flags) {
        if !self.ecn.is_on() {
            return;
        }
        //= RFC 3168 (6.1.3): CWR ends the echo, unless the same packet is marked.
        if flags.has(Flags::CWR) {
            self.ecn.echo = false;
        }
        if self.ecn.arrived == CE {
            self.ecn.echo = true;
        }
    }

    /// Does this segment report congestion to us?
    #[inline]
    pub fn reports_congestion(&self, h: &Header) -> bool {
        self.ecn.is_on() && h.flags.has(Flags::ECE) && !h.flags.has(Flags::SYN)
    }

    /// An acknowledgement of `ack` reports congestion, where recovery does not count segments. Says whether the window was
    /// reduced for it, or had been in this round trip.
    pub fn reduce_for_ecn(&mut self, now: Instant, ack: u64) {
        //= RFC 3168 (6.1.2): at most once per window of data, and not beside a reduction for a loss in it.
        if self.mode != Mode::Open || ack <= self.ecn.recover || ack <= self.recover {
            return;
        }
        if self.must_wait_for_timer() {
            self.hold |= hold::ECN;
            let at = self.rtt.deadline(&self.config, now);
            self.timers.arm(Alarm::Retransmission, at);
        }
        let ssthresh = self.threshold_after_report();
        self.window.cut(ssthresh.min(self.window.cwnd), ssthresh);
        self.controller.on_event(&mut self.window, now, Event::CongestionReported);
        self.ecn.recover = self.snd.nxt;
        self.ecn.cwr_due = true;
    }

    //= RFC 3168 (6.1.2): a window of one segment cannot shrink: the retransmission timer starts again, and nothing new is
    //= sent before it expires (MUST).
    /// Is this what a report of congestion means now?
    pub fn must_wait_for_timer(&self) -> bool {
        self.config.ecn_wait && self.window.cwnd <= self.snd.mss
    }

    /// The slow start threshold after a report of congestion.
    pub fn threshold_after_report(&mut self) -> u64 {
        let base = self.loss_base();
        self.controller.ssthresh_on_ecn(&self.window, base, self.config.abe)
    }
}
