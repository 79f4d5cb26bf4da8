//! How late segments may arrive without being lost (RFC 8985 6.2, steps 3 and 4; Linux counts it in segments).

use super::super::sender::Sender;
use super::Segments;
use super::acked::News;

/// The largest that is believed (Linux).
const MAX_REORDERING: u64 = 300;

impl Segments {
    /// A segment from `from` on that was sent once arrived after later ones.
    pub(super) fn note_reordering(&mut self, tx: &Sender, from: u64) {
        let fack = self.fack(tx);
        if from >= fack {
            return;
        }
        let segments = (fack - from).div_ceil(tx.snd.mss());
        if segments > self.reordering {
            self.reordering = segments.min(MAX_REORDERING);
        }
        self.reordered = self.reordered.saturating_add(1);
    }

    /// Without SACK: more duplicates than segments that could have arrived mean reordering.
    pub(super) fn note_reordering_without_sack(&mut self, segments: u64) {
        self.reordering = self.reordering.max(segments.min(MAX_REORDERING));
        self.reordered = self.reordered.saturating_add(1);
    }

    /// A hole below what was reported was filled by a first transmission. `fack`: what had been reported before.
    pub(super) fn check_late_cumulative(&mut self, tx: &Sender, fack: u64, news: &News) {
        if let Some(from) = news.late_from.filter(|from| tx.agreed().sack && *from < fack) {
            // The reports that prove it may be acknowledged by now.
            let segments = (fack - from).div_ceil(tx.snd.mss());
            self.reordering = self.reordering.max(segments.min(MAX_REORDERING));
            self.reordered = self.reordered.saturating_add(1);
        }
    }
}
