//! Undo: what was sent again had not been lost, so the window was reduced for nothing.
//! A circle, of which `mod.rs` says why.
//!
//! Two signs, each a setting: the echo of a timestamp from before the first retransmission (Eifel detection, RFC 3522),
//! and D-SACKs for everything that was sent again (RFC 3708). The response is that of Linux: window and threshold are
//! what they were (RFC 4015 would restart from the flight).

use super::super::congestion::Prior;
use super::super::needless::Needless;
use super::super::sender::{Mode, Sender};
use super::Segments;

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
    /// What was sent again for nothing.
    pub needless: Needless,
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

impl Segments {
    /// Before the window is reduced: remember.
    pub(super) fn prepare_undo(&mut self, tx: &Sender) {
        let under_way = self.resent_out + u64::from(self.probe.is_some_and(|p| p.resent));
        self.undo.marker = Some(tx.snd.una());
        self.undo.unanswered = (under_way > 0).then_some(under_way);
        self.undo.cwnd = tx.window.cwnd();
    }

    /// The threshold as it is, or three quarters of the window if that is more (RFC 2861).
    pub(super) fn current_ssthresh(&self, tx: &Sender) -> u64 {
        if tx.mode().reduces() {
            return tx.window.ssthresh();
        }
        let mss = tx.snd.mss();
        let cwnd = tx.cwnd_segments();
        tx.window.ssthresh().max((cwnd / 2 + cwnd / 4) * mss)
    }

    /// Does the acknowledgement at hand echo a timestamp from before `when`?
    pub(super) fn echoes_before(&self, tx: &Sender, when: u32) -> bool {
        tx.agreed().timestamps && self.undo.echo.is_some_and(|e| e.wrapping_sub(when).cast_signed() < 0)
    }

    //= RFC 3522 (3.2): the echo is older than the first retransmission: the original was acknowledged.
    pub(super) fn original_arrived(&self, tx: &Sender) -> bool {
        match self.undo.resent_at {
            Some(at) => tx.config().undo_by_timestamps && self.echoes_before(tx, at),
            // Nothing was sent again, so nothing else can have been answered; unless that was forgotten (`must_stay`).
            None => tx.agreed().sack || tx.snd.una() < tx.recover(),
        }
    }

    /// Counts what was sent again first, if a timestamp has proved that its original arrived.
    fn count_if_proved(&mut self, tx: &mut Sender) {
        if self.undo.resent_at.is_some() && self.original_arrived(tx) {
            tx.facts.spurious += self.undo.needless.proves();
        }
    }

    fn may_undo(&self, tx: &Sender) -> bool {
        let undo = &self.undo;
        undo.marker.is_some()
            && ((tx.config().undo_by_dsack && undo.unanswered == Some(0)) || self.original_arrived(tx))
    }

    /// Window and threshold as they were.
    pub(super) fn undo_reduction(&mut self, tx: &mut Sender, unmark: bool) {
        if unmark {
            self.unmark_losses(tx);
        }
        if let Some(ssthresh) = self.undo.ssthresh {
            tx.undo_reduction(Prior { cwnd: self.undo.cwnd, ssthresh });
        }
        self.undo.marker = None;
        self.rack.advanced = true;
    }

    //= RFC 3708 (3): everything that was sent again has been reported as a duplicate.
    pub(super) fn undo_by_dsack(&mut self, tx: &mut Sender) -> bool {
        let undo = &self.undo;
        if !tx.config().undo_by_dsack || undo.marker.is_none() || undo.unanswered != Some(0) {
            return false;
        }
        self.rack.reo_wnd_persist = self.rack.reo_wnd_persist.saturating_add(1).min(16);
        self.undo_reduction(tx, false);
        true
    }

    /// All that was outstanding when the reduction began is acknowledged. Says whether the state stays as it is.
    pub(super) fn undo_at_end(&mut self, tx: &mut Sender) -> bool {
        if self.may_undo(tx) {
            self.count_if_proved(tx);
            self.undo_reduction(tx, false);
        } else {
            let persist = &mut self.rack.reo_wnd_persist;
            *persist = persist.saturating_sub(1);
        }
        if self.must_stay(tx) {
            return true;
        }
        tx.enter(Mode::Open);
        self.reneged = false;
        false
    }

    //= RFC 6582 (3.2, step 2): without SACK duplicates of the old window would look like a new loss: stay until
    //= something above it is acknowledged.
    fn must_stay(&mut self, tx: &Sender) -> bool {
        let stay = tx.snd.una() == tx.recover() && !tx.agreed().sack;
        if stay && !self.any_resent(tx) {
            self.undo.resent_at = None;
        }
        stay
    }

    /// A part of the window was acknowledged in recovery by the original. Says whether that is all there is to do.
    pub(super) fn undo_partially(&mut self, tx: &mut Sender, prior_una: u64) -> bool {
        if self.undo.marker.is_none() || !self.original_arrived(tx) {
            return false;
        }
        self.note_reordering(tx, prior_una);
        //= Linux: while a retransmission is under way nothing more is marked or sent again.
        if self.resent_out > 0 {
            return true;
        }
        self.count_if_proved(tx);
        if !self.any_resent(tx) {
            self.undo.resent_at = None;
        }
        self.undo_reduction(tx, true);
        self.keep_open(tx);
        false
    }

    /// In the loss state: was the timeout spurious? `proved`: F-RTO says so.
    pub(super) fn undo_loss(&mut self, tx: &mut Sender, proved: bool) -> bool {
        if !proved && !self.may_undo(tx) {
            return false;
        }
        if proved {
            tx.facts.spurious += self.undo.needless.proves();
        } else {
            self.count_if_proved(tx);
        }
        self.undo_reduction(tx, true);
        if self.must_stay(tx) {
            return true;
        }
        if proved || tx.agreed().sack {
            tx.enter(Mode::Open);
            self.reneged = false;
        }
        true
    }
}
