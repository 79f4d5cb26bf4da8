//! Fast recovery and the loss state, where the sender keeps its books by the octet (RFC 5681, 6582, 6675).

use airloom_base::Instant;

use super::super::config::{LossWindow, PartialAck, SackAfterRto};
use super::super::congestion::{Event, Recovery, Suspicion};
use super::super::connection::{Connection, Mode, pending};
use super::super::timers::Alarm;
use super::DUP_THRESH;
use super::frto::Frto;

impl Connection {
    /// New data acknowledged in fast recovery; says whether the retransmission timer starts again.
    pub(crate) fn ack_in_recovery(&mut self, now: Instant, ack: u64, octets: u64) -> bool {
        let mss = self.snd.mss;
        if self.recovers_by_sack() {
            if ack >= self.recover {
                //= RFC 6675 (5): the recovery point is acknowledged: recovery is over, the scoreboard stays.
                self.leave_recovery(now, self.window.ssthresh);
            }
            return true;
        }
        if self.recovery() == Recovery::Reno {
            //= RFC 2581 (3.2, step 5): the first new acknowledgement deflates the window.
            self.leave_recovery(now, self.window.ssthresh);
            return true;
        }
        if ack >= self.recover {
            //= RFC 6582 (3.2, step 3): full acknowledgement: at most a segment more than is in flight.
            let flight = self.snd.outstanding().max(mss) + mss;
            self.leave_recovery(now, self.window.ssthresh.min(flight));
            return true;
        }
        //= RFC 6582 (3.2, step 3): partial acknowledgement: resend, deflate, add a segment back.
        self.pending |= pending::HEAD;
        if !self.reduces_in_proportion() {
            self.window.cwnd = self.window.cwnd.saturating_sub(octets);
            if octets >= mss {
                self.window.cwnd += mss;
            }
            self.window.cwnd = self.window.cwnd.max(mss);
        }
        self.octets.partial_acks += 1;
        self.octets.partial_acks == 1 || self.config.partial_ack == PartialAck::SlowButSteady
    }

    fn leave_recovery(&mut self, now: Instant, cwnd: u64) {
        self.mode = Mode::Open;
        self.window.cwnd = cwnd;
        self.octets.dupacks = 0;
        self.octets.limited = 0;
        self.controller.on_event(&mut self.window, now, Event::Open);
    }

    pub(crate) fn duplicate_ack(&mut self, now: Instant, news: u64) {
        self.pending |= pending::DATA;
        match self.mode {
            Mode::Open | Mode::Disorder | Mode::Cwr => {}
            //= RFC 5681 (3.2, step 4): a segment has left the network for each duplicate.
            Mode::Recovery if !self.recovers_by_sack() && !self.reduces_in_proportion() => {
                self.window.cwnd += self.snd.mss;
                return;
            }
            Mode::Recovery => {
                self.prr_duplicate(news);
                return;
            }
            Mode::Loss => return,
        }
        self.octets.dupacks += 1;
        let by_sack = self.recovers_by_sack();
        let enough = if self.agreed.sack { DUP_THRESH } else { u32::from(self.config.dup_acks) };
        if self.octets.dupacks >= enough || (by_sack && self.octets.board.head_is_lost(self.snd.una)) {
            //= RFC 6582 (3.2, step 2): not for duplicates of what was outstanding when the last recovery began.
            let fresh = by_sack || self.recovery() == Recovery::Reno || self.snd.una > self.recover;
            if fresh && (by_sack || self.octets.dupacks == enough) {
                self.enter_recovery(now);
                if self.reduces_in_proportion() {
                    self.prr_begins(news);
                    self.prr_duplicate(news);
                }
            }
        }
    }

    /// The window that a loss halves.
    pub(crate) fn loss_base(&self) -> u64 {
        match self.config.loss_window {
            //= RFC 5681 (3.2, step 2): what limited transmit let out does not count.
            LossWindow::FlightSize => {
                self.snd.outstanding() - self.octets.limited.min(self.snd.outstanding())
            }
            LossWindow::Cwnd => self.window.cwnd,
        }
    }

    fn enter_recovery(&mut self, now: Instant) {
        if !self.suspends(now, Suspicion::Duplicates) {
            self.begin_recovery(now);
        }
    }

    /// Fast retransmit: the window shrinks, and the first segment that is missing is sent again.
    pub(crate) fn begin_recovery(&mut self, now: Instant) {
        let (una, nxt, mss) = (self.snd.una, self.snd.nxt, self.snd.mss);
        self.eifel_begins(false);
        //= RFC 3168 (6.1.2): a loss in the window that was reduced for a report reduces it no further.
        let ssthresh = if una < self.ecn.recover {
            self.window.ssthresh
        } else {
            self.controller.ssthresh(&self.window, self.loss_base())
        };
        self.dsack_undo_begins();
        self.octets.frto = Frto::Off;
        self.ecn.cwr_due = true;
        self.recover = nxt;
        self.octets.partial_acks = 0;
        if self.recovery() == Recovery::None {
            //= Tahoe: as after a timeout.
            self.window.cut(mss, ssthresh);
            self.controller.on_event(&mut self.window, now, Event::Timeout);
            self.octets.board.time_out(una, nxt, mss, true);
            self.mode = Mode::Loss;
            self.octets.dupacks = 0;
            return;
        }
        self.mode = Mode::Recovery;
        self.pending |= pending::HEAD;
        if self.recovers_by_sack() {
            //= RFC 6675 (5, steps 4.1 to 4.4): halve, resend the first hole, count the pipe.
            self.window.cut(ssthresh, ssthresh);
            self.octets.board.begin_recovery(una);
        } else {
            //= RFC 5681 (3.2, step 3): three segments have left the network.
            let left = u64::from(if self.agreed.sack { DUP_THRESH } else { u32::from(self.config.dup_acks) });
            self.window.cut(ssthresh + left * mss, ssthresh);
        }
        self.controller.on_event(&mut self.window, now, Event::Recovery);
        let at = self.rtt.deadline(&self.config, now);
        self.timers.arm(Alarm::Retransmission, at);
    }

    /// All that is outstanding is marked lost.
    pub(crate) fn time_out(&mut self, now: Instant) {
        let (una, nxt, mss) = (self.snd.una, self.snd.nxt, self.snd.mss);
        self.eifel_begins(true);
        self.frto_begins();
        if matches!(self.mode, Mode::Open) {
            self.dsack_undo_begins();
        }
        //= RFC 5681 (3.1): the threshold falls once for a segment, however often its timer expires.
        let ssthresh = if self.octets.timed_out_at == una {
            self.window.ssthresh
        } else {
            self.controller.ssthresh(&self.window, self.loss_base())
        };
        self.octets.timed_out_at = una;
        self.window.cut(mss, ssthresh);
        self.ecn.cwr_due = true;
        self.controller.on_event(&mut self.window, now, Event::Timeout);
        //= RFC 2018 (8): what was SACKed may be gone; RFC 6675 (5.1) leaves it to the sender.
        let forget = self.config.sack_after_rto == SackAfterRto::Forget || self.octets.board.is_sacked(una);
        self.octets.board.time_out(una, nxt, mss, forget);
        self.mode = Mode::Loss;
        //= RFC 6582 (3.2, step 4): no fast retransmit for what was outstanding.
        self.recover = nxt;
        self.octets.dupacks = 0;
        self.octets.limited = 0;
        self.pending = (self.pending & !pending::HEAD) | pending::DATA;
    }
}
