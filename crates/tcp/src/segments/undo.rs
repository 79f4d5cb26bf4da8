//! Undo: what was sent again had not been lost, so the window was reduced for nothing.
//!
//! Two signs, each a setting: the echo of a timestamp from before the first retransmission (Eifel detection, RFC 3522),
//! and D-SACKs for everything that was sent again (RFC 3708). The response is that of Linux: window and threshold are
//! what they were (RFC 4015 would restart from the flight).

use super::super::congestion::Prior;
use super::super::connection::{Connection, Mode};

/// What undoing needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// SND.UNA when the window was reduced; nothing: there is nothing to undo.
    pub marker: Option<u64>,
    /// Retransmissions that no D-SACK has answered; nothing: none was sent yet.
    pub unanswered: Option<u64>,
    /// The threshold before; nothing: it must not come back.
    pub ssthresh: Option<u64>,
    /// The window before, in octets.
    pub cwnd: u64,
    /// Timestamp of the first retransmission.
    pub resent_at: Option<u32>,
    /// Duplicates reported on this connection.
    pub duplicates: u64,
    /// The timestamp that the acknowledgement at hand echoes.
    pub echo: Option<u32>,
}

impl Undo {
    /// Duplicates were reported for so many retransmissions.
    pub fn answered(&mut self, segments: u64) {
        if let Some(n) = &mut self.unanswered
            && *n > 0
        {
            *n = n.saturating_sub(segments);
        }
    }
}

impl Connection {
    /// Before the window is reduced: remember.
    pub(super) fn prepare_undo(&mut self) {
        let under_way = self.segments.resent_out + u64::from(self.segments.probe.is_some_and(|p| p.resent));
        self.segments.undo.marker = Some(self.snd.una);
        self.segments.undo.unanswered = (under_way > 0).then_some(under_way);
        self.segments.undo.cwnd = self.window.cwnd;
    }

    /// The threshold as it is, or three quarters of the window if that is more (RFC 2861).
    pub(super) fn current_ssthresh(&self) -> u64 {
        if self.reduces() {
            return self.window.ssthresh;
        }
        let mss = self.snd.mss;
        let cwnd = self.cwnd_segments();
        self.window.ssthresh.max((cwnd / 2 + cwnd / 4) * mss)
    }

    /// Does the acknowledgement at hand echo a timestamp from before `when`?
    pub(super) fn echoes_before(&self, when: u32) -> bool {
        self.agreed.timestamps
            && self.segments.undo.echo.is_some_and(|e| e.wrapping_sub(when).cast_signed() < 0)
    }

    //= RFC 3522 (3.2): the echo is older than the first retransmission: the original was acknowledged.
    pub(super) fn original_arrived(&self) -> bool {
        match self.segments.undo.resent_at {
            Some(at) => self.config.undo_by_timestamps && self.echoes_before(at),
            // Nothing was sent again, so nothing else can have been answered; unless that was forgotten (`must_stay`).
            None => self.agreed.sack || self.snd.una < self.recover,
        }
    }

    fn may_undo(&self) -> bool {
        let undo = &self.segments.undo;
        undo.marker.is_some()
            && ((self.config.undo_by_dsack && undo.unanswered == Some(0)) || self.original_arrived())
    }

    /// Window and threshold as they were.
    pub(super) fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            self.unmark_losses();
        }
        if let Some(ssthresh) = self.segments.undo.ssthresh {
            let prior = Prior { cwnd: self.segments.undo.cwnd, ssthresh };
            self.controller.undo(&mut self.window, prior);
        }
        self.segments.undo.marker = None;
        self.segments.rack.advanced = true;
    }

    //= RFC 3708 (3): everything that was sent again has been reported as a duplicate.
    pub(super) fn undo_by_dsack(&mut self) -> bool {
        let undo = &self.segments.undo;
        if !self.config.undo_by_dsack || undo.marker.is_none() || undo.unanswered != Some(0) {
            return false;
        }
        self.segments.rack.reo_wnd_persist = self.segments.rack.reo_wnd_persist.saturating_add(1).min(16);
        self.undo_reduction(false);
        true
    }

    /// All that was outstanding when the reduction began is acknowledged. Says whether the state stays as it is.
    pub(super) fn undo_at_end(&mut self) -> bool {
        if self.may_undo() {
            self.undo_reduction(false);
        } else {
            let persist = &mut self.segments.rack.reo_wnd_persist;
            *persist = persist.saturating_sub(1);
        }
        if self.must_stay() {
            return true;
        }
        self.mode = Mode::Open;
        self.segments.reneged = false;
        false
    }

    //= RFC 6582 (3.2, step 2): without SACK duplicates of the old window would look like a new loss: stay until
    //= something above it is acknowledged.
    fn must_stay(&mut self) -> bool {
        let stay = self.snd.una == self.recover && !self.agreed.sack;
        if stay && !self.any_resent() {
            self.segments.undo.resent_at = None;
        }
        stay
    }

    /// A part of the window was acknowledged in recovery by the original. Says whether that is all there is to do.
    pub(super) fn undo_partially(&mut self, prior_una: u64) -> bool {
        if self.segments.undo.marker.is_none() || !self.original_arrived() {
            return false;
        }
        self.note_reordering(prior_una);
        //= Linux: while a retransmission is under way nothing more is marked or sent again.
        if self.segments.resent_out > 0 {
            return true;
        }
        if !self.any_resent() {
            self.segments.undo.resent_at = None;
        }
        self.undo_reduction(true);
        self.keep_open();
        false
    }

    /// In the loss state: was the timeout spurious? `proved`: F-RTO says so.
    pub(super) fn undo_loss(&mut self, proved: bool) -> bool {
        if !proved && !self.may_undo() {
            return false;
        }
        self.undo_reduction(true);
        self.facts.spurious += u64::from(proved);
        if self.must_stay() {
            return true;
        }
        if proved || self.agreed.sack {
            self.mode = Mode::Open;
            self.segments.reneged = false;
        }
        true
    }
}
