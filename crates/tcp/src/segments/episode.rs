//! The states of a sender that repairs, and what moves it between them.
//!
//! Open: nothing is odd. Disorder: duplicates or reports, too few to say. Cwr: the window shrinks without a loss.
//! Recovery: fast recovery. Loss: after a timeout.

use airloom_base::{Duration, Instant};

use super::super::config::ProportionalReduction;
use super::super::congestion::{Event, Phase};
use super::super::sender::{Mode, Sender, hold, pending};
use super::Segments;
use super::acked::News;
use super::prr::ssthresh_after_report;
use super::timeout::{on_tick_after, rearm_rto};
use crate::timers::Alarm;

impl Segments {
    /// An acknowledgement that is a duplicate, reports something, or comes while something is repaired.
    #[inline(never)]
    pub(super) fn on_news(
        &mut self,
        tx: &mut Sender,
        now: Instant,
        news: &mut News,
        prior_una: u64,
        duplicate: bool,
    ) {
        self.take_news(tx, now, news, prior_una, duplicate);
        self.tell_if_repaired(tx, now);
    }

    /// Is nothing being repaired any more? Then the controller hears of it, once.
    pub(super) fn tell_if_repaired(&mut self, tx: &mut Sender, now: Instant) {
        if self.repairs && tx.mode().phase() == Phase::Open {
            self.repairs = false;
            tx.tell_controller(now, Event::Open);
        }
    }

    fn take_news(&mut self, tx: &mut Sender, now: Instant, news: &mut News, prior_una: u64, duplicate: bool) {
        if news.ece {
            // A reduction that the path asked for is not undone.
            self.undo.ssthresh = None;
        }
        if tx.snd.sent().is_empty() && !tx.agreed().sack {
            self.sacked_out = 0;
        }
        if news.reneging && news.advanced {
            self.suspect_reneging(tx, now, news);
            return;
        }
        if tx.mode() == Mode::Open {
            self.undo.resent_at = None;
        } else if tx.snd.una() >= tx.recover() && self.leave_at_end(tx) {
            return;
        }
        match tx.mode() {
            Mode::Recovery => {
                if !news.advanced {
                    if !tx.agreed().sack && duplicate {
                        self.count_duplicate(tx);
                    }
                } else if self.undo_partially(tx, prior_una) {
                    return;
                }
                if self.undo_by_dsack(tx) {
                    self.try_to_open(tx, now, news);
                }
                self.find_losses(tx, now, news);
                if tx.mode() != Mode::Recovery {
                    if self.lost_out == 0 {
                        return;
                    }
                    self.enter_recovery(tx, now);
                }
                self.resend_lost();
            }
            Mode::Loss => {
                self.on_news_after_timeout(tx, news, duplicate);
                self.find_losses(tx, now, news);
                if tx.mode() != Mode::Open && !news.resent_lost {
                    return;
                }
                self.on_news_in_order(tx, now, news, duplicate);
            }
            _ => self.on_news_in_order(tx, now, news, duplicate),
        }
    }

    fn on_news_in_order(&mut self, tx: &mut Sender, now: Instant, news: &mut News, duplicate: bool) {
        if !tx.agreed().sack {
            if news.advanced {
                self.sacked_out = 0;
            }
            if duplicate {
                self.count_duplicate(tx);
            }
        }
        if matches!(tx.mode(), Mode::Open | Mode::Disorder) {
            self.undo_by_dsack(tx);
        }
        self.find_losses(tx, now, news);
        if self.lost_out == 0 {
            self.try_to_open(tx, now, news);
            return;
        }
        self.enter_recovery(tx, now);
        self.resend_lost();
    }

    /// Everything that was outstanding when the state began is acknowledged. Says whether that is all there is to do.
    fn leave_at_end(&mut self, tx: &mut Sender) -> bool {
        match tx.mode() {
            // Something above must be acknowledged, or a window without data would end it.
            Mode::Cwr if tx.snd.una() != tx.recover() => {
                self.end_reduction(tx);
                tx.enter(Mode::Open);
            }
            Mode::Recovery => {
                self.forget_duplicates(tx);
                if self.undo_at_end(tx) {
                    return true;
                }
                self.end_reduction(tx);
            }
            _ => {}
        }
        false
    }

    /// Looks for losses: by time with SACK, by counting without.
    fn find_losses(&mut self, tx: &mut Sender, now: Instant, news: &mut News) {
        if tx.snd.sent().is_empty() {
            return;
        }
        if !tx.agreed().sack {
            self.mark_head_lost(tx, news.advanced);
            return;
        }
        let resent = self.resent_out;
        if self.rack_mark_lost(tx, now) {
            news.restart_timer = false;
        }
        news.resent_lost |= self.resent_out < resent;
    }

    fn try_to_open(&mut self, tx: &mut Sender, now: Instant, news: &News) {
        if !self.any_resent(tx) {
            self.undo.resent_at = None;
        }
        if news.ece {
            self.enter_reduction(tx, now, Event::CongestionReported);
        }
        if tx.mode() != Mode::Cwr {
            self.keep_open(tx);
        }
    }

    /// Open, or Disorder as long as something is odd.
    pub(super) fn keep_open(&mut self, tx: &mut Sender) {
        let odd = self.left() > 0 || self.any_resent(tx);
        let mode = if odd { Mode::Disorder } else { Mode::Open };
        if tx.mode() != mode {
            tx.enter(mode);
            tx.begin_episode();
        }
    }

    /// Fast recovery begins.
    pub(super) fn enter_recovery(&mut self, tx: &mut Sender, now: Instant) {
        self.tell_if_repaired(tx, now);
        self.repairs = true;
        self.undo.ssthresh = None;
        self.prepare_undo(tx);
        if !tx.mode().reduces() {
            self.undo.ssthresh = Some(self.current_ssthresh(tx));
            self.begin_reduction(tx, now, Event::Recovery);
        }
        if tx.config().prr == ProportionalReduction::Off {
            //= RFC 6675 (5, step 4.3): the first segment is sent again whatever the window says.
            tx.want(pending::HEAD);
        }
        self.undo.needless.begins(tx.snd.una());
        tx.enter(Mode::Recovery);
    }

    /// The window shrinks for another reason than a loss.
    pub(super) fn enter_reduction(&mut self, tx: &mut Sender, now: Instant, event: Event) {
        self.undo.ssthresh = None;
        if matches!(tx.mode(), Mode::Open | Mode::Disorder) {
            if event == Event::CongestionReported && tx.must_wait_for_timer() {
                self.wait_for_timer(tx, now);
                return;
            }
            self.undo.marker = None;
            self.undo.cwnd = tx.window.cwnd();
            self.begin_reduction(tx, now, event);
            tx.enter(Mode::Cwr);
        }
    }

    /// Congestion was reported for a window of one segment: it stays, and the timer lets out the next one.
    fn wait_for_timer(&mut self, tx: &mut Sender, now: Instant) {
        tx.hold(hold::ECN);
        tx.ecn.reduced();
        self.probe = None;
        let ssthresh = ssthresh_after_report(tx);
        tx.window.cut(tx.window.cwnd(), ssthresh);
        tx.tell_controller(now, Event::CongestionReported);
        rearm_rto(tx, now);
    }

    /// An acknowledgement in the loss state.
    fn on_news_after_timeout(&mut self, tx: &mut Sender, news: &News, duplicate: bool) {
        let recovered = tx.snd.una() >= tx.recover();
        if news.advanced && self.undo_loss(tx, false) {
            return;
        }
        if self.detect_spurious_timeout(tx, news, duplicate, recovered) {
            return;
        }
        if recovered {
            self.undo_at_end(tx);
            return;
        }
        if !tx.agreed().sack {
            if tx.snd.nxt() > tx.recover() && duplicate {
                self.count_duplicate(tx);
            } else if news.advanced {
                self.sacked_out = 0;
            }
        }
        self.resend_lost();
    }

    //= RFC 2018 (8): the receiver has dropped what it had reported. Linux: soon a timeout will mark all of it lost;
    //= not at once, because the acknowledgement that fills the gap may be on its way.
    fn suspect_reneging(&mut self, tx: &mut Sender, now: Instant, news: &mut News) {
        let wait = tx.rtt().srtt().unwrap_or(Duration::ZERO) / 2;
        let at = on_tick_after(tx.config(), now, wait.max(Duration::from_millis(10)));
        tx.timers.arm(Alarm::Retransmission, at);
        news.restart_timer = false;
    }
}
