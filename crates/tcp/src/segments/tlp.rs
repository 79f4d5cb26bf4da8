//! The tail loss probe (RFC 8985 7): when acknowledgements fail to come, one segment asks for them before the timeout does.
//! A circle, of which `mod.rs` says why.

use airloom_base::{Duration, Instant};

use super::super::congestion::Event;
use super::super::sender::{Mode, Sender, hold, pending};
use super::Segments;
use super::acked::News;
use super::rack::TIMEOUT_MIN;
use super::timeout::{on_tick_after, rearm_rto, restart_rto};
use crate::timers::Alarm;

/// A probe that was not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// TLP.end_seq: SND.NXT when it left.
    pub end: u64,
    /// TLP.is_retrans: it repeated the last segment.
    pub resent: bool,
}

impl Segments {
    /// Sets the timer after new data or an acknowledgement: for a probe if one makes sense, else the timeout.
    #[inline]
    pub(super) fn set_transmit_timer(&mut self, tx: &mut Sender, now: Instant) {
        if !self.schedule_probe(tx, now, true) {
            rearm_rto(tx, now);
        }
    }

    /// Sets the probe timer, if a probe makes sense. `restart`: the retransmission timer would start again now.
    #[inline]
    pub(super) fn schedule_probe(&mut self, tx: &mut Sender, now: Instant, restart: bool) -> bool {
        let Some(head) = tx.snd.sent().front().filter(|_| wants_probe(tx)) else { return false };
        let mut wait = match tx.rtt().srtt() {
            //= RFC 8985 (7.2): PTO = 2 SRTT; a lone segment may wait for a delayed acknowledgement.
            Some(srtt) => srtt * 2 + if tx.snd.sent().len() == 1 { tx.config().rto_min } else { TIMEOUT_MIN },
            None => Duration::from_secs(1),
        };
        //= RFC 8985 (7.2): not later than the timeout would be.
        let rto = tx.rto();
        let until = if restart { rto } else { (head.at + rto).since(now) };
        if !until.is_zero() {
            wait = wait.min(until);
        }
        let at = on_tick_after(tx.config(), now, wait);
        tx.timers.arm(Alarm::LossProbe, at);
        true
    }

    /// The probe timer expired (RFC 8985 7.3).
    pub fn probe_timeout(&mut self, tx: &mut Sender, now: Instant) {
        //= RFC 8985 (7.3): one probe at a time.
        if self.probe.is_some() || tx.snd.sent().is_empty() {
            rearm_rto(tx, now);
            return;
        }
        self.probe_due = true;
        tx.want(pending::DATA);
        // Should nothing leave, the timeout is still there.
        rearm_rto(tx, now);
    }

    /// The probe left, with new data or (`resent`) with the last segment.
    pub(super) fn probe_sent(&mut self, tx: &mut Sender, now: Instant, resent: bool) {
        self.fresh_sent = false;
        self.probe = Some(Probe { end: tx.snd.nxt(), resent });
        //= RFC 8985 (7.3): the timeout starts again from the probe.
        restart_rto(tx, now);
    }

    /// Was the probe answered, and was anything lost (RFC 8985 7.4.2)?
    pub(super) fn probe_answered_by(&mut self, tx: &mut Sender, now: Instant, ack: u64, news: &News) {
        let Some(probe) = self.probe.filter(|p| ack >= p.end) else { return };
        if !probe.resent || news.dsack_of_probe {
            // New data, or both copies arrived: nothing was lost.
            self.probe = None;
        } else if ack > probe.end {
            //= RFC 8985 (7.4.2): the probe has repaired a loss: that is congestion.
            self.undo.cwnd = tx.window.cwnd();
            self.begin_reduction(tx, now, Event::Recovery);
            tx.enter(Mode::Cwr);
            self.end_reduction(tx);
            self.keep_open(tx);
            self.repairs = true;
            self.tell_if_repaired(tx, now);
        } else if !news.advanced && !news.not_duplicate && !news.sacked {
            // A duplicate without a report: the peer had it already.
            self.probe = None;
        }
    }
}

/// Would a probe make sense, if something is outstanding?
#[inline]
pub(super) fn wants_probe(tx: &Sender) -> bool {
    //= RFC 8985 (7.2): with SACK, not while losses are repaired nor while anything is SACKed.
    tx.config().tlp
        && tx.agreed().sack
        && matches!(tx.mode(), Mode::Open | Mode::Cwr)
        && !tx.is_held(hold::ECN)
}
