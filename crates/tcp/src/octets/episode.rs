//! Fast recovery and the loss state, where the sender keeps its books by the octet (RFC 5681, 6582, 6675).

use airloom_base::Instant;

use super::super::config::{PartialAck, SackAfterRto};
use super::super::congestion::{Event, FastRecovery, Suspicion};
use super::super::sender::{Mode, Sender, hold, pending};
use super::frto::Frto;
use super::prr::reduces_in_proportion;
use super::{DUP_THRESH, Octets};

impl Octets {
    /// New data acknowledged in fast recovery; says whether the retransmission timer starts again.
    pub(super) fn ack_in_recovery(&mut self, tx: &mut Sender, now: Instant, ack: u64, octets: u64) -> bool {
        let mss = tx.snd.mss();
        if tx.recovers_by_sack() {
            if ack >= tx.recover() {
                //= RFC 6675 (5): the recovery point is acknowledged: recovery is over, the scoreboard stays.
                self.leave_recovery(tx, now, u64::MAX);
            }
            return true;
        }
        if tx.about().recovery == FastRecovery::Reno {
            //= RFC 2581 (3.2, step 5): the first new acknowledgement deflates the window.
            self.leave_recovery(tx, now, u64::MAX);
            return true;
        }
        if ack >= tx.recover() {
            //= RFC 6582 (3.2, step 3): full acknowledgement: at most a segment more than is in flight.
            let flight = tx.snd.outstanding().max(mss) + mss;
            self.leave_recovery(tx, now, flight);
            return true;
        }
        //= RFC 6582 (3.2, step 3): partial acknowledgement: resend, deflate, add a segment back.
        tx.want(pending::HEAD);
        if !reduces_in_proportion(tx) {
            tx.window.deflate(octets);
        }
        self.partial_acks += 1;
        self.partial_acks == 1 || tx.config().partial_ack == PartialAck::SlowButSteady
    }

    /// Recovery is over; the window is the threshold, or `at_most`.
    fn leave_recovery(&mut self, tx: &mut Sender, now: Instant, at_most: u64) {
        tx.enter(Mode::Open);
        tx.window.settle(at_most);
        tx.forget_dupacks();
        self.limited = 0;
        tx.tell_controller(now, Event::Open);
    }

    pub(super) fn duplicate_ack(&mut self, tx: &mut Sender, now: Instant, news: u64) {
        tx.want(pending::DATA);
        match tx.mode() {
            Mode::Open | Mode::Disorder | Mode::Cwr => {}
            //= RFC 5681 (3.2, step 4): a segment has left the network for each duplicate.
            Mode::Recovery if !tx.recovers_by_sack() && !reduces_in_proportion(tx) => {
                tx.window.inflate();
                return;
            }
            Mode::Recovery => {
                self.prr_duplicate(tx, news);
                return;
            }
            Mode::Loss => return,
        }
        tx.count_dupack();
        let by_sack = tx.recovers_by_sack();
        let enough = if tx.agreed().sack { DUP_THRESH } else { u32::from(tx.config().dup_acks) };
        if tx.dupacks() >= enough || (by_sack && self.board.head_is_lost(tx.snd.una())) {
            //= RFC 6582 (3.2, step 2): not for duplicates of what was outstanding when the last recovery began.
            let fresh = by_sack || tx.about().recovery == FastRecovery::Reno || tx.snd.una() > tx.recover();
            if fresh && (by_sack || tx.dupacks() == enough) {
                if !tx.suspends(now, Suspicion::Duplicates) {
                    self.begin_recovery(tx, now);
                }
                if reduces_in_proportion(tx) {
                    // The last of the duplicates is news.
                    self.prr_begins(tx, tx.dupacks() - 1, news);
                    self.prr_duplicate(tx, news);
                }
            }
        }
    }

    /// An acknowledgement of `ack` reports congestion.
    pub(super) fn reduce_for_ecn(&mut self, tx: &mut Sender, now: Instant, ack: u64) {
        //= RFC 3168 (6.1.2): at most once per window of data, and not beside a reduction for a loss in it.
        if tx.mode() != Mode::Open || ack <= tx.ecn.recover() || ack <= tx.recover() {
            return;
        }
        if tx.must_wait_for_timer() {
            tx.hold(hold::ECN);
            tx.arm_retransmission(now);
        }
        let ssthresh = tx.threshold_after_report(self.limited);
        tx.window.cut(ssthresh.min(tx.window.cwnd()), ssthresh);
        tx.tell_controller(now, Event::CongestionReported);
        tx.ecn.reduced_for_report(tx.snd.nxt());
    }

    /// Fast retransmit: the window shrinks, and the first segment that is missing is sent again.
    pub fn begin_recovery(&mut self, tx: &mut Sender, now: Instant) {
        let (una, nxt, mss) = (tx.snd.una(), tx.snd.nxt(), tx.snd.mss());
        self.eifel_begins(tx, false);
        self.needless.begins(una);
        //= RFC 3168 (6.1.2): a loss in the window that was reduced for a report reduces it no further.
        let ssthresh =
            if una < tx.ecn.recover() { tx.window.ssthresh() } else { tx.threshold_after_loss(self.limited) };
        self.dsack_undo_begins(tx);
        self.frto = Frto::Off;
        tx.ecn.reduced();
        tx.begin_episode();
        self.partial_acks = 0;
        if tx.about().recovery == FastRecovery::None {
            //= Tahoe: as after a timeout.
            tx.window.cut(mss, ssthresh);
            tx.tell_controller(now, Event::Timeout);
            self.board.time_out(una, nxt, mss, true);
            tx.enter(Mode::Loss);
            tx.forget_dupacks();
            return;
        }
        tx.enter(Mode::Recovery);
        tx.want(pending::HEAD);
        if tx.recovers_by_sack() {
            //= RFC 6675 (5, steps 4.1 to 4.4): halve, resend the first hole, count the pipe.
            tx.window.cut(ssthresh, ssthresh);
            self.board.begin_recovery(una);
        } else {
            //= RFC 5681 (3.2, step 3): three segments have left the network.
            let left = u64::from(if tx.agreed().sack { DUP_THRESH } else { u32::from(tx.config().dup_acks) });
            tx.window.cut(ssthresh + left * mss, ssthresh);
        }
        tx.tell_controller(now, Event::Recovery);
        tx.arm_retransmission(now);
    }

    /// All that is outstanding is marked lost.
    pub fn time_out(&mut self, tx: &mut Sender, now: Instant) {
        let (una, nxt, mss) = (tx.snd.una(), tx.snd.nxt(), tx.snd.mss());
        self.eifel_begins(tx, true);
        self.frto_begins(tx);
        self.needless.begins(una);
        if matches!(tx.mode(), Mode::Open) {
            self.dsack_undo_begins(tx);
        }
        //= RFC 5681 (3.1): the threshold falls once for a segment, however often its timer expires.
        let ssthresh = if self.timed_out_at == una {
            tx.window.ssthresh()
        } else {
            tx.threshold_after_loss(self.limited)
        };
        self.timed_out_at = una;
        tx.window.cut(mss, ssthresh);
        tx.ecn.reduced();
        tx.tell_controller(now, Event::Timeout);
        //= RFC 2018 (8): what was SACKed may be gone; RFC 6675 (5.1) leaves it to the sender.
        let forget = tx.config().sack_after_rto == SackAfterRto::Forget || self.board.is_sacked(una);
        self.board.time_out(una, nxt, mss, forget);
        tx.enter(Mode::Loss);
        //= RFC 6582 (3.2, step 4): no fast retransmit for what was outstanding.
        tx.begin_episode();
        tx.forget_dupacks();
        self.limited = 0;
        tx.clear(pending::HEAD);
        tx.want(pending::DATA);
    }
}
