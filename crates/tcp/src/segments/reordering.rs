//! How late segments may arrive without being lost (RFC 8985 6.2, steps 3 and 4; Linux counts it in segments).

use super::super::connection::Connection;
use super::acked::News;

/// The largest that is believed (Linux).
const MAX_REORDERING: u64 = 300;

impl Connection {
    /// A segment from `from` on that was sent once arrived after later ones.
    pub(super) fn note_reordering(&mut self, from: u64) {
        let fack = self.fack();
        if from >= fack {
            return;
        }
        let segments = (fack - from).div_ceil(self.snd.mss);
        if segments > self.segments.reordering {
            self.segments.reordering = segments.min(MAX_REORDERING);
        }
        self.segments.reordered = self.segments.reordered.saturating_add(1);
    }

    /// Without SACK: more duplicates than segments that could have arrived mean reordering.
    pub(super) fn note_reordering_without_sack(&mut self, segments: u64) {
        self.segments.reordering = self.segments.reordering.max(segments.min(MAX_REORDERING));
        self.segments.reordered = self.segments.reordered.saturating_add(1);
    }

    /// A hole below what was reported was filled by a first transmission. `fack`: what had been reported before.
    pub(super) fn check_late_cumulative(&mut self, fack: u64, news: &News) {
        if let Some(from) = news.late_from.filter(|from| self.agreed.sack && *from < fack) {
            // The reports that prove it may be acknowledged by now.
            let segments = (fack - from).div_ceil(self.snd.mss);
            self.segments.reordering = self.segments.reordering.max(segments.min(MAX_REORDERING));
            self.segments.reordered = self.segments.reordered.saturating_add(1);
        }
    }
}
