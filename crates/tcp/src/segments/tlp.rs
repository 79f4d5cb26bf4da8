//! The tail loss probe (RFC 8985 7): when acknowledgements fail to come, one segment asks for them before the timeout does.

use airloom_base::{Duration, Instant};

use super::super::congestion::Event;
use super::super::connection::{Connection, Mode, hold, pending};
use super::TimerKind;
use super::acked::News;
use super::rack::TIMEOUT_MIN;
use crate::timers::Alarm;

/// A probe that was not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// TLP.end_seq: SND.NXT when it left.
    pub end: u64,
    /// TLP.is_retrans: it repeated the last segment.
    pub resent: bool,
}

impl Connection {
    /// Sets the timer after new data or an acknowledgement: for a probe if one makes sense, else the timeout.
    #[inline]
    pub(super) fn set_transmit_timer(&mut self, now: Instant) {
        if !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
    }

    /// Would a probe make sense, if something is outstanding?
    #[inline]
    pub(super) fn wants_probe(&self) -> bool {
        //= RFC 8985 (7.2): with SACK, not while losses are repaired nor while anything is SACKed.
        self.config.tlp
            && self.agreed.sack
            && matches!(self.mode, Mode::Open | Mode::Cwr)
            && self.hold & hold::ECN == 0
    }

    /// Sets the probe timer, if a probe makes sense. `restart`: the retransmission timer would start again now.
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: Instant, restart: bool) -> bool {
        let Some(head) = self.snd.sent.front().filter(|_| self.wants_probe()) else { return false };
        let mut wait = match self.rtt.srtt() {
            //= RFC 8985 (7.2): PTO = 2 SRTT; a lone segment may wait for a delayed acknowledgement.
            Some(srtt) => srtt * 2 + if self.snd.sent.len() == 1 { self.config.rto_min } else { TIMEOUT_MIN },
            None => Duration::from_secs(1),
        };
        //= RFC 8985 (7.2): not later than the timeout would be.
        let rto = self.rtt.rto(&self.config);
        let until = if restart { rto } else { (head.at + rto).since(now) };
        if !until.is_zero() {
            wait = wait.min(until);
        }
        self.segments.timer = TimerKind::Probe;
        let at = self.on_tick_after(now, wait);
        self.timers.arm(Alarm::Retransmission, at);
        true
    }

    /// Starts the retransmission timeout. After a probe or a reordering timer it counts from when the head was sent.
    pub fn rearm_rto(&mut self, now: Instant) {
        let Some(head) = self.snd.sent.front() else {
            if self.hold & hold::ECN != 0 {
                self.segments.timer = TimerKind::Rto;
                let at = self.on_tick_after(now, self.rtt.rto(&self.config));
                return self.timers.arm(Alarm::Retransmission, at);
            }
            self.timers.stop(Alarm::Retransmission);
            self.timers.settle();
            return;
        };
        let rto = self.rtt.rto(&self.config);
        let wait = match self.segments.timer {
            TimerKind::Rto => rto,
            TimerKind::Probe | TimerKind::Reorder => (head.at + rto).since(now).max(Duration::from_millis(1)),
        };
        self.segments.timer = TimerKind::Rto;
        let at = self.on_tick_after(now, wait);
        self.timers.arm(Alarm::Retransmission, at);
    }

    /// The probe timer expired (RFC 8985 7.3).
    pub fn probe_timeout(&mut self, now: Instant) {
        //= RFC 8985 (7.3): one probe at a time.
        if self.segments.probe.is_some() || self.snd.sent.is_empty() {
            self.rearm_rto(now);
            return;
        }
        self.segments.probe_due = true;
        self.pending |= pending::DATA;
        // Should nothing leave, the timeout is still there.
        self.rearm_rto(now);
    }

    /// The probe left, with new data or (`resent`) with the last segment.
    pub(super) fn probe_sent(&mut self, now: Instant, resent: bool) {
        self.segments.fresh_sent = false;
        self.segments.probe = Some(Probe { end: self.snd.nxt, resent });
        //= RFC 8985 (7.3): the timeout starts again from the probe.
        self.segments.timer = TimerKind::Rto;
        self.rearm_rto(now);
    }

    /// Was the probe answered, and was anything lost (RFC 8985 7.4.2)?
    pub(super) fn probe_answered_by(&mut self, now: Instant, ack: u64, news: &News) {
        let Some(probe) = self.segments.probe.filter(|p| ack >= p.end) else { return };
        if !probe.resent || news.dsack_of_probe {
            // New data, or both copies arrived: nothing was lost.
            self.segments.probe = None;
        } else if ack > probe.end {
            //= RFC 8985 (7.4.2): the probe has repaired a loss: that is congestion.
            self.segments.undo.cwnd = self.window.cwnd;
            self.begin_reduction(now, Event::Recovery);
            self.mode = Mode::Cwr;
            self.end_reduction();
            self.keep_open();
        } else if !news.advanced && !news.not_duplicate && !news.sacked {
            // A duplicate without a report: the peer had it already.
            self.segments.probe = None;
        }
    }
}
