//! Explicit congestion notification (RFC 3168): routers mark instead of dropping, the receiver echoes the mark, the sender
//! slows down as after a loss and says so.

use super::config::EcnUse;
use super::wire::Flags;

/// ECT(0): the codepoint of packets that may be marked.
const ECT0: u8 = 2;
/// CE: the codepoint of packets that were.
pub(super) const CE: u8 = 3;

/// State of one connection.
#[derive(Clone, Copy, Debug, Default, getset::CopyGetters)]
pub(super) struct Ecn {
    /// Codepoint of our data: ECT(0) once both sides have agreed, else zero.
    #[getset(get_copy = "pub")]
    codepoint: u8,
    /// A SYN of ours asked.
    asked: bool,
    /// A SYN of ours did not: our data cannot be marked.
    kept_silent: bool,
    /// As a receiver: the peer's data may be marked.
    takes_marks: bool,
    /// As a receiver: a mark was seen that the sender has not answered yet.
    echo: bool,
    /// As a sender: the window was reduced; the next new data says so.
    cwr_due: bool,
    /// The segment at hand says so.
    cwr_now: bool,
    /// No reaction to another report before this is acknowledged: SND.NXT at the last one.
    #[getset(get_copy = "pub")]
    recover: u64,
    /// Codepoint of the packet at hand.
    arrived: u8,
}

impl Ecn {
    /// Was it agreed on?
    #[inline]
    pub fn is_on(&self) -> bool {
        self.codepoint != 0
    }

    /// Flags of our SYN, the first or another (`again`), beside the usual ones.
    pub fn syn_flags(&mut self, used: EcnUse, again: bool) -> Flags {
        //= RFC 3168 (6.1.1.1): a SYN that is not answered is sent again without.
        let asks = used == EcnUse::On && !again;
        self.asked |= asks;
        self.kept_silent |= !asks;
        if asks { Flags::ECE.with(Flags::CWR) } else { Flags(0) }
    }

    /// Flags of our SYN-ACK beside the usual ones.
    pub fn syn_ack_flags(&self) -> Flags {
        //= RFC 3168 (6.1.1): the SYN-ACK of a host that takes part has ECE and not CWR.
        if self.is_on() { Flags::ECE } else { Flags(0) }
    }

    /// What the peer's SYN (or SYN-ACK) says of ECN.
    pub fn negotiate(&mut self, used: EcnUse, flags: Flags) {
        let (ece, cwr) = (flags.has(Flags::ECE), flags.has(Flags::CWR));
        let agreed =
            if flags.has(Flags::ACK) { self.asked && ece && !cwr } else { used != EcnUse::Off && ece && cwr };
        //= RFC 3168 (6.1.1): no data with ECT from who has sent a SYN that did not ask (MUST NOT); but if another one did, the
        //= peer may think that we agree, and its marks are answered (MUST).
        self.takes_marks = agreed;
        self.codepoint = if agreed && !self.kept_silent { ECT0 } else { 0 };
    }

    /// The peer's SYN came again, with these flags.
    pub fn asked_again(&mut self, flags: Flags) {
        //= RFC 3168 (6.1.1): no data with ECT to who has sent a SYN that did not ask (SHOULD NOT).
        if !(flags.has(Flags::ECE) && flags.has(Flags::CWR)) {
            self.codepoint = 0;
        }
    }

    /// Flags that a segment carries beside its own.
    #[inline]
    pub fn echo_flags(&self) -> Flags {
        //= RFC 3168 (6.1.3): ECN-Echo in every acknowledgement until CWR arrives.
        if self.echo { Flags::ECE } else { Flags(0) }
    }

    /// A packet with this codepoint arrives.
    pub fn arrives(&mut self, codepoint: u8) {
        self.arrived = codepoint;
    }

    /// The packet at hand brings acceptable data.
    #[inline]
    pub fn take_mark(&mut self, flags: Flags) {
        if !self.takes_marks {
            return;
        }
        //= RFC 3168 (6.1.3): CWR ends the echo, unless the same packet is marked.
        if flags.has(Flags::CWR) {
            self.echo = false;
        }
        if self.arrived == CE {
            self.echo = true;
        }
    }

    /// Does a segment with these flags report congestion to us?
    #[inline]
    pub fn is_reported_by(&self, flags: Flags) -> bool {
        self.is_on() && flags.has(Flags::ECE) && !flags.has(Flags::SYN)
    }

    /// The window was reduced, for whatever reason.
    pub fn reduced(&mut self) {
        self.cwr_due = true;
    }

    /// The window was reduced for a report of congestion, with `nxt` to be sent next.
    pub fn reduced_for_report(&mut self, nxt: u64) {
        self.cwr_due = true;
        self.recover = nxt;
    }

    /// New data is about to leave.
    #[inline]
    pub fn on_new_data(&mut self) {
        if self.cwr_due && self.is_on() {
            //= RFC 3168 (6.1.2): CWR on the first new data after any reduction.
            self.cwr_due = false;
            self.cwr_now = true;
        }
    }

    /// Does the segment at hand carry CWR? Asked once.
    #[inline]
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr_now)
    }
}
