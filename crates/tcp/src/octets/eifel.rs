//! Eifel: was a retransmission spurious (RFC 3522), and how to go on after a spurious timeout (RFC 4015)?
//!
//! In use where recovery does not count segments; where it does, `segments/undo.rs` tells by the same sign and answers as
//! Linux does.

use airloom_base::{Duration, Instant};

use super::super::congestion::Event;
use super::super::connection::{Connection, Mode, pending};
use super::frto::Frto;

/// State of one connection. Names are the standards'.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Eifel {
    /// The retransmission that opens a recovery is about to leave.
    waiting: bool,
    /// RetransmitTS: the timestamp of that retransmission, until the first acceptable acknowledgement.
    retransmit_ts: Option<u32>,
    /// pipe_prev; none: fast retransmit opened the recovery, to which there is no response.
    pipe_prev: Option<u64>,
    /// SRTT_prev and RTTVAR_prev.
    rtt_prev: (Duration, Duration),
    /// Until a round-trip time of what lies above is known, the estimator is not what it should be.
    adapt_above: Option<u64>,
    /// The acknowledgement at hand reports a duplicate; one of this connection did.
    pub dsack: bool,
    dsack_seen: bool,
}

impl Eifel {
    /// An acknowledgement reports a duplicate.
    pub fn note_dsack(&mut self) {
        self.dsack = true;
        self.dsack_seen = true;
    }
}

impl Connection {
    /// A recovery begins, before window and threshold change. Says nothing while another one goes on.
    pub fn eifel_begins(&mut self, by_timeout: bool) {
        if !self.config.eifel || self.mode != Mode::Open {
            return;
        }
        self.octets.eifel.waiting = self.agreed.timestamps;
        self.octets.eifel.retransmit_ts = None;
        //= RFC 4015 (3.1, step 0): what was in flight, or the threshold if that is more.
        let pipe = self.snd.outstanding().max(self.window.ssthresh);
        self.octets.eifel.pipe_prev = by_timeout.then_some(pipe);
        if by_timeout {
            //= RFC 4015 (3.1, step 0): SRTT_prev = SRTT + 2 * G.
            let (srtt, rttvar) = self.rtt.estimate();
            self.octets.eifel.rtt_prev = (srtt + self.rtt.granularity(&self.config) * 2, rttvar);
        }
    }

    /// Something is sent again.
    #[inline]
    pub fn eifel_resends(&mut self, now: Instant) {
        if self.octets.eifel.waiting {
            self.octets.eifel.waiting = false;
            //= RFC 3522 (3.2, step 2): the timestamp of the retransmission.
            self.octets.eifel.retransmit_ts = Some(self.timestamp(now));
        }
    }

    /// The first acceptable acknowledgement since, echoing `echo`; all is settled but the window. Says whether it was a
    /// timeout and spurious, and the window is set.
    pub fn eifel_ends(&mut self, now: Instant, echo: Option<u32>, octets: u64, ece: bool) -> bool {
        let dsack = std::mem::take(&mut self.octets.eifel.dsack);
        let Some(sent) = self.octets.eifel.retransmit_ts.take() else { return false };
        //= RFC 3522 (3.2, step 4): an echo from before the retransmission: the original was acknowledged.
        if echo.is_none_or(|e| e.wrapping_sub(sent).cast_signed() >= 0) {
            return false;
        }
        //= RFC 3522 (3.2, step 5): a duplicate reported at once was real; and if everything is acknowledged all
        //= acknowledgements may have been lost, unless the peer is known to report duplicates.
        if dsack || (!self.octets.eifel.dsack_seen && self.snd.una == self.snd.nxt) {
            return false;
        }
        self.facts.spurious += 1;
        if self.octets.eifel.pipe_prev.is_none() {
            return false;
        }
        self.resume_after_spurious(now);
        self.eifel_responds(octets, ece);
        true
    }

    /// What was declared lost is on its way: nothing is repaired any more, new data goes on.
    pub fn resume_after_spurious(&mut self, now: Instant) {
        //= RFC 4015 (3.1, step 5): new data goes on from SND.MAX.
        self.octets.board.forgive(self.snd.una, self.snd.mss);
        self.mode = Mode::Open;
        self.octets.frto = Frto::Off;
        self.octets.dupacks = 0;
        self.octets.limited = 0;
        self.pending = (self.pending & !pending::HEAD) | pending::DATA;
        //= RFC 4015 (4), RFC 5682 (2.1, step 3b), RFC 6582 (3.2): fast retransmit is possible again.
        self.recover = self.snd.una.saturating_sub(1);
        self.controller.on_event(&mut self.window, now, Event::Open);
    }

    /// The response to a spurious timeout (RFC 4015), if there is one to answer to; `octets` were acknowledged just now.
    pub fn eifel_responds(&mut self, octets: u64, ece: bool) {
        let Some(pipe_prev) = self.octets.eifel.pipe_prev.take() else { return };
        self.octets.eifel.retransmit_ts = None;
        self.octets.eifel.adapt_above = Some(self.snd.nxt);
        if !ece {
            //= RFC 4015 (3.1, step 6): the flight and what was acknowledged, at most an initial window of it.
            let initial = self.config.initial_window.octets(self.snd.mss);
            let cwnd = self.snd.outstanding() + octets.min(initial);
            self.window.cut(cwnd.max(self.snd.mss), pipe_prev);
        }
    }

    /// A round-trip time of an acknowledgement of `ack`.
    #[inline]
    pub fn eifel_adapts(&mut self, ack: u64, rtt: Option<Duration>) {
        if let (Some(above), Some(r)) = (self.octets.eifel.adapt_above, rtt)
            && ack > above
        {
            self.octets.eifel.adapt_above = None;
            //= RFC 4015 (3.1, step 8): SRTT = max(SRTT_prev, R), RTTVAR = max(RTTVAR_prev, R/2).
            let (srtt, rttvar) = self.octets.eifel.rtt_prev;
            self.rtt.adopt(&self.config, srtt.max(r), rttvar.max(r / 2));
        }
    }
}
