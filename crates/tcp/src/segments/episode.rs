//! The states of a sender that repairs, and what moves it between them.
//!
//! Open: nothing is odd. Disorder: duplicates or reports, too few to say. Cwr: the window shrinks without a loss.
//! Recovery: fast recovery. Loss: after a timeout.

use airloom_base::{Duration, Instant};

use super::super::config::ProportionalReduction;
use super::super::congestion::Event;
use super::super::connection::{Connection, Mode, hold, pending};
use super::TimerKind;
use super::acked::News;
use crate::timers::Alarm;

impl Connection {
    /// An acknowledgement that is a duplicate, reports something, or comes while something is repaired.
    #[inline(never)]
    pub(super) fn on_news(&mut self, now: Instant, news: &mut News, prior_una: u64, duplicate: bool) {
        if news.ece {
            // A reduction that the path asked for is not undone.
            self.segments.undo.ssthresh = None;
        }
        if self.snd.sent.is_empty() && !self.agreed.sack {
            self.segments.sacked_out = 0;
        }
        if news.reneging && news.advanced {
            self.suspect_reneging(now, news);
            return;
        }
        if self.mode == Mode::Open {
            self.segments.undo.resent_at = None;
        } else if self.snd.una >= self.recover && self.leave_at_end() {
            return;
        }
        match self.mode {
            Mode::Recovery => {
                if !news.advanced {
                    if !self.agreed.sack && duplicate {
                        self.count_duplicate();
                    }
                } else if self.undo_partially(prior_una) {
                    return;
                }
                if self.undo_by_dsack() {
                    self.try_to_open(now, news);
                }
                self.find_losses(now, news);
                if self.mode != Mode::Recovery {
                    if self.segments.lost_out == 0 {
                        return;
                    }
                    self.enter_recovery_by_segments(now);
                }
                self.resend_lost();
            }
            Mode::Loss => {
                self.on_news_after_timeout(news, duplicate);
                self.find_losses(now, news);
                if self.mode != Mode::Open && !news.resent_lost {
                    return;
                }
                self.on_news_in_order(now, news, duplicate);
            }
            _ => self.on_news_in_order(now, news, duplicate),
        }
    }

    fn on_news_in_order(&mut self, now: Instant, news: &mut News, duplicate: bool) {
        if !self.agreed.sack {
            if news.advanced {
                self.segments.sacked_out = 0;
            }
            if duplicate {
                self.count_duplicate();
            }
        }
        if matches!(self.mode, Mode::Open | Mode::Disorder) {
            self.undo_by_dsack();
        }
        self.find_losses(now, news);
        if self.segments.lost_out == 0 {
            self.try_to_open(now, news);
            return;
        }
        self.enter_recovery_by_segments(now);
        self.resend_lost();
    }

    /// Everything that was outstanding when the state began is acknowledged. Says whether that is all there is to do.
    fn leave_at_end(&mut self) -> bool {
        match self.mode {
            // Something above must be acknowledged, or a window without data would end it.
            Mode::Cwr if self.snd.una != self.recover => {
                self.end_reduction();
                self.mode = Mode::Open;
            }
            Mode::Recovery => {
                self.forget_duplicates();
                if self.undo_at_end() {
                    return true;
                }
                self.end_reduction();
            }
            _ => {}
        }
        false
    }

    /// Looks for losses: by time with SACK, by counting without.
    fn find_losses(&mut self, now: Instant, news: &mut News) {
        if self.snd.sent.is_empty() {
            return;
        }
        if !self.agreed.sack {
            self.mark_head_lost(news.advanced);
            return;
        }
        let resent = self.segments.resent_out;
        if self.rack_mark_lost(now) {
            news.restart_timer = false;
        }
        news.resent_lost |= self.segments.resent_out < resent;
    }

    fn try_to_open(&mut self, now: Instant, news: &News) {
        if !self.any_resent() {
            self.segments.undo.resent_at = None;
        }
        if news.ece {
            self.enter_reduction(now, Event::CongestionReported);
        }
        if self.mode != Mode::Cwr {
            self.keep_open();
        }
    }

    /// Open, or Disorder as long as something is odd.
    pub(super) fn keep_open(&mut self) {
        let odd = self.segments.left() > 0 || self.any_resent();
        let mode = if odd { Mode::Disorder } else { Mode::Open };
        if self.mode != mode {
            self.mode = mode;
            self.recover = self.snd.nxt;
        }
    }

    /// Fast recovery begins.
    pub(super) fn enter_recovery_by_segments(&mut self, now: Instant) {
        self.segments.undo.ssthresh = None;
        self.prepare_undo();
        if !self.reduces() {
            self.segments.undo.ssthresh = Some(self.current_ssthresh());
            self.begin_reduction(now, Event::Recovery);
        }
        if self.config.prr == ProportionalReduction::Off {
            //= RFC 6675 (5, step 4.3): the first segment is sent again whatever the window says.
            self.pending |= pending::HEAD;
        }
        self.mode = Mode::Recovery;
    }

    /// The window shrinks for another reason than a loss.
    pub(super) fn enter_reduction(&mut self, now: Instant, event: Event) {
        self.segments.undo.ssthresh = None;
        if matches!(self.mode, Mode::Open | Mode::Disorder) {
            if event == Event::CongestionReported && self.must_wait_for_timer() {
                self.wait_for_timer(now);
                return;
            }
            self.segments.undo.marker = None;
            self.segments.undo.cwnd = self.window.cwnd;
            self.begin_reduction(now, event);
            self.mode = Mode::Cwr;
        }
    }

    /// Congestion was reported for a window of one segment: it stays, and the timer lets out the next one.
    fn wait_for_timer(&mut self, now: Instant) {
        self.hold |= hold::ECN;
        self.ecn.cwr_due = true;
        self.segments.probe = None;
        let ssthresh = self.whole_segments_of(Self::threshold_after_report);
        self.window.cut(self.window.cwnd, ssthresh);
        self.controller.on_event(&mut self.window, now, Event::CongestionReported);
        self.rearm_rto(now);
    }

    /// An acknowledgement in the loss state.
    fn on_news_after_timeout(&mut self, news: &News, duplicate: bool) {
        let recovered = self.snd.una >= self.recover;
        if news.advanced && self.undo_loss(false) {
            return;
        }
        if self.detect_spurious_timeout(news, duplicate, recovered) {
            return;
        }
        if recovered {
            self.undo_at_end();
            return;
        }
        if !self.agreed.sack {
            if self.snd.nxt > self.recover && duplicate {
                self.count_duplicate();
            } else if news.advanced {
                self.segments.sacked_out = 0;
            }
        }
        self.resend_lost();
    }

    //= RFC 2018 (8): the receiver has dropped what it had reported. Linux: soon a timeout will mark all of it lost;
    //= not at once, because the acknowledgement that fills the gap may be on its way.
    fn suspect_reneging(&mut self, now: Instant, news: &mut News) {
        let wait = self.rtt.srtt().unwrap_or(Duration::ZERO) / 2;
        let at = self.on_tick_after(now, wait.max(Duration::from_millis(10)));
        self.segments.timer = TimerKind::Rto;
        self.timers.arm(Alarm::Retransmission, at);
        news.restart_timer = false;
    }
}
