//! Eifel: was a retransmission spurious (RFC 3522), and how to go on after a spurious timeout (RFC 4015)?
//! A circle, of which `mod.rs` says why.
//!
//! In use where recovery does not count segments; where it does, `segments/undo.rs` tells by the same sign and answers as
//! Linux does.

use airloom_base::{Duration, Instant};

use super::super::congestion::Event;
use super::super::sender::{Mode, Sender, pending};
use super::Octets;
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
    /// The acceptable acknowledgement at hand reports a duplicate; one of this connection did.
    pub dsack: bool,
    dsack_seen: bool,
}

impl Eifel {
    /// An acknowledgement reports a duplicate; `acceptable`: it acknowledges something, too.
    pub fn note_dsack(&mut self, acceptable: bool) {
        self.dsack = acceptable;
        self.dsack_seen = true;
    }
}

impl Octets {
    /// A recovery begins, before window and threshold change. Says nothing while another one goes on.
    pub fn eifel_begins(&mut self, tx: &mut Sender, by_timeout: bool) {
        if !tx.config().eifel || tx.mode() != Mode::Open {
            return;
        }
        self.eifel.waiting = tx.agreed().timestamps;
        self.eifel.retransmit_ts = None;
        //= RFC 4015 (3.1, step 0): what was in flight, or the threshold if that is more.
        let pipe = tx.snd.outstanding().max(tx.window.ssthresh());
        self.eifel.pipe_prev = by_timeout.then_some(pipe);
        if by_timeout {
            //= RFC 4015 (3.1, step 0): SRTT_prev = SRTT + 2 * G.
            let (srtt, rttvar) = tx.rtt().estimate();
            self.eifel.rtt_prev = (srtt + tx.rtt().granularity(tx.config()) * 2, rttvar);
        }
    }

    /// Something is sent again.
    #[inline]
    pub fn eifel_resends(&mut self, tx: &mut Sender, now: Instant) {
        if self.eifel.waiting {
            self.eifel.waiting = false;
            //= RFC 3522 (3.2, step 2): the timestamp of the retransmission.
            self.eifel.retransmit_ts = Some(tx.timestamp(now));
        }
    }

    /// The first acceptable acknowledgement since, echoing `echo`; all is settled but the window. Says whether it was a
    /// timeout and spurious, and the window is set.
    pub fn eifel_ends(
        &mut self,
        tx: &mut Sender,
        now: Instant,
        echo: Option<u32>,
        octets: u64,
        ece: bool,
    ) -> bool {
        let dsack = std::mem::take(&mut self.eifel.dsack);
        let Some(sent) = self.eifel.retransmit_ts.take() else { return false };
        //= RFC 3522 (3.2, step 4): an echo from before the retransmission: the original was acknowledged.
        if echo.is_none_or(|e| e.wrapping_sub(sent).cast_signed() >= 0) {
            return false;
        }
        //= RFC 3522 (3.2, step 5): a duplicate reported at once was real; and if everything is acknowledged all
        //= acknowledgements may have been lost, unless the peer is known to report duplicates.
        if dsack || (!self.eifel.dsack_seen && tx.snd.una() == tx.snd.nxt()) {
            return false;
        }
        tx.facts.spurious += self.needless.proves();
        if self.eifel.pipe_prev.is_none() {
            return false;
        }
        self.resume_after_spurious(tx, now);
        self.eifel_responds(tx, octets, ece);
        true
    }

    /// What was declared lost is on its way: nothing is repaired any more, new data goes on.
    pub fn resume_after_spurious(&mut self, tx: &mut Sender, now: Instant) {
        //= RFC 4015 (3.1, step 5): new data goes on from SND.MAX.
        self.board.forgive(tx.snd.una(), tx.snd.mss());
        tx.enter(Mode::Open);
        self.frto = Frto::Off;
        tx.forget_dupacks();
        self.limited = 0;
        tx.clear(pending::HEAD);
        tx.want(pending::DATA);
        //= RFC 4015 (4), RFC 5682 (2.1, step 3b), RFC 6582 (3.2): fast retransmit is possible again.
        tx.forget_episode();
        tx.tell_controller(now, Event::Open);
    }

    /// The response to a spurious timeout (RFC 4015), if there is one to answer to; `octets` were acknowledged just now.
    pub fn eifel_responds(&mut self, tx: &mut Sender, octets: u64, ece: bool) {
        let Some(pipe_prev) = self.eifel.pipe_prev.take() else { return };
        self.eifel.retransmit_ts = None;
        self.eifel.adapt_above = Some(tx.snd.nxt());
        if !ece {
            //= RFC 4015 (3.1, step 6): the flight and what was acknowledged, at most an initial window of it.
            let initial = tx.config().initial_window.octets(tx.snd.mss());
            let cwnd = tx.snd.outstanding() + octets.min(initial);
            tx.window.cut(cwnd.max(tx.snd.mss()), pipe_prev);
        }
    }

    /// A round-trip time of an acknowledgement of `ack`.
    #[inline]
    pub fn eifel_adapts(&mut self, tx: &mut Sender, ack: u64, rtt: Option<Duration>) {
        if let (Some(above), Some(r)) = (self.eifel.adapt_above, rtt)
            && ack > above
        {
            self.eifel.adapt_above = None;
            //= RFC 4015 (3.1, step 8): SRTT = max(SRTT_prev, R), RTTVAR = max(RTTVAR_prev, R/2).
            let (srtt, rttvar) = self.eifel.rtt_prev;
            tx.adopt_rtt(srtt.max(r), rttvar.max(r / 2));
        }
    }
}
