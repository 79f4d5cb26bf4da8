//! Loss recovery: what is in flight, what is lost, what leaves next.
//!
//! A connection has one of two. [`Octets`] keeps its books by the octet, as the RFCs are written; [`Segments`] by the segment,
//! as Linux does. Nobody else asks which one it is: both are lent the rest of the sender with each call, and choose; the
//! connection sends what they chose and says so.

use airloom_base::Instant;

use super::config::{Config, LossDetection};
use super::congestion::{About, FastRecovery, Hears, Suspicion};
use super::octets::{DUP_THRESH, Octets};
use super::segments::Segments;
use super::sender::{Arrived, Choice, Counts, Limit, Sender};

/// The recovery of one connection.
pub(super) enum Recovery {
    /// RFC 5681, 6582, 6675.
    Octets(Octets),
    /// RFC 8985, as Linux has it.
    Segments(Segments),
}

impl Recovery {
    /// The one that these settings and the controller want.
    pub fn new(config: &Config, about: &About, iss: u64, now: Instant) -> Self {
        // Only there rates are sampled.
        let everything = about.hears == Hears::Everything;
        // Tahoe and the Reno of 1990 have a recovery of their own.
        let fits = about.recovery == FastRecovery::NewReno && !about.probes;
        if everything || config.loss_detection == LossDetection::Rack && fits {
            let grouped = config.segmentation_offload && !everything;
            return Recovery::Segments(Segments::new(iss, now, grouped));
        }
        Recovery::Octets(Octets::default())
    }

    /// Octets in flight as the window counts them.
    #[inline(always)]
    pub fn in_flight(&self, tx: &Sender) -> u64 {
        match self {
            Recovery::Segments(s) => s.octets_in_flight(tx),
            Recovery::Octets(o) => o.pipe(tx),
        }
    }

    /// The handshake is over.
    pub fn begin(&mut self, tx: &mut Sender) {
        if let Recovery::Segments(s) = self {
            s.begin(tx);
        }
    }

    /// Does what is in flight fill the congestion window?
    pub fn fills_window(&self, tx: &Sender) -> bool {
        match self {
            Recovery::Segments(s) => s.fills_window(tx),
            Recovery::Octets(o) => o.pipe(tx) >= tx.window.cwnd(),
        }
    }

    /// An acknowledgement in a synchronized state.
    #[inline]
    pub fn on_ack(&mut self, tx: &mut Sender, now: Instant, a: Arrived<'_>) {
        match self {
            Recovery::Segments(s) => s.on_ack(tx, now, a),
            Recovery::Octets(o) => o.on_ack(tx, now, a),
        }
    }

    /// SND.UNA moves to `ack` in the open state, and nothing else is told; `echo` is the echoed timestamp.
    #[inline(always)]
    pub fn on_new_ack(&mut self, tx: &mut Sender, now: Instant, echo: Option<u32>, ack: u64) {
        match self {
            Recovery::Segments(s) => s.on_new_ack(tx, now, echo, ack),
            Recovery::Octets(o) => o.on_new_ack(tx, now, echo, ack, 0, false),
        }
    }

    /// The retransmission timer has expired, with something outstanding, and is set again.
    pub fn on_timeout(&mut self, tx: &mut Sender, now: Instant) {
        match self {
            Recovery::Segments(s) => s.time_out(tx, now),
            Recovery::Octets(o) => {
                if !tx.suspends(now, Suspicion::Timeout) {
                    o.time_out(tx, now);
                }
            }
        }
    }

    /// The timer of the tail loss probe has expired.
    pub fn on_probe_timeout(&mut self, tx: &mut Sender, now: Instant) {
        if let Recovery::Segments(s) = self {
            s.probe_timeout(tx, now);
        }
    }

    /// The reordering timer of RACK has expired.
    pub fn on_reorder_timeout(&mut self, tx: &mut Sender, now: Instant) {
        if let Recovery::Segments(s) = self {
            s.reorder_timeout(tx, now);
        }
    }

    /// A controller that probed the path lets the loss be repaired now.
    pub fn repair(&mut self, tx: &mut Sender, now: Instant, suspicion: Suspicion) {
        match (self, suspicion) {
            (Recovery::Octets(o), Suspicion::Duplicates) => {
                o.begin_recovery(tx, now);
                o.prr_begins(tx, tx.dupacks(), 0);
            }
            (Recovery::Octets(o), Suspicion::Timeout) => o.time_out(tx, now),
            // Only octets are suspended.
            (Recovery::Segments(_), _) => {}
        }
    }

    /// The path takes segments of `mss` octets only.
    pub fn in_smaller_segments(&mut self, tx: &mut Sender, mss: u64) {
        match self {
            Recovery::Segments(s) => s.in_smaller_segments(tx, mss),
            Recovery::Octets(o) => o.in_smaller_segments(tx, mss),
        }
    }

    /// What leaves next; `room`: payload that fits beside the options.
    #[inline(always)]
    pub fn choose(&mut self, tx: &mut Sender, now: Instant, room: u64) -> Choice {
        match self {
            Recovery::Segments(s) => s.choose(tx, now, room),
            Recovery::Octets(o) => o.choose(tx, now, room),
        }
    }

    /// `len` octets have left for the first time (and a FIN, perhaps): SND.NXT has moved.
    #[inline(always)]
    pub fn sent_new(&mut self, tx: &mut Sender, now: Instant, len: u64) {
        match self {
            Recovery::Segments(s) => s.sent_new(tx, now),
            Recovery::Octets(o) => o.sent_new(tx, now, len),
        }
    }

    /// `start..end` leaves again.
    pub fn sent_again(&mut self, tx: &mut Sender, now: Instant, start: u64, end: u64) {
        if let Recovery::Octets(o) = self {
            o.sent_again(tx, now, start, end);
        }
    }

    /// Segments sent and not acknowledged; by the octet: so many as full ones would be.
    pub fn segments_out(&self, tx: &Sender) -> u64 {
        match self {
            Recovery::Segments(_) => tx.snd.segments_out(),
            Recovery::Octets(_) => tx.snd.outstanding().div_ceil(tx.snd.mss()),
        }
    }

    /// Nothing more leaves now, because of `held`: if something has left since the last time, what is used of the window is
    /// looked at.
    #[inline]
    pub fn on_pause(&self, tx: &mut Sender, now: Instant, held: Limit) {
        let by_window = held == Limit::Congestion;
        let looks = match self {
            // Linux looks whenever it is the window that holds data back.
            Recovery::Segments(_) => tx.has_sent() || by_window,
            Recovery::Octets(_) => tx.has_sent(),
        };
        if !looks {
            return;
        }
        tx.note_pause();
        if tx.config().cwnd_validation {
            let in_flight = self.in_flight(tx);
            let limited = by_window || in_flight >= tx.window.cwnd();
            let used = match self {
                // Linux compares what is in flight with the window, and remembers what was outstanding.
                Recovery::Segments(_) => tx.snd.segments_out() * tx.snd.mss(),
                Recovery::Octets(_) => in_flight,
            };
            tx.validate_window(now, held, limited, used);
        }
    }

    /// Octets in flight where the application sends no more; nothing if something that is lost still waits.
    pub fn in_flight_at_rest(&self, tx: &Sender) -> Option<u64> {
        match self {
            Recovery::Segments(s) => s.in_flight_at_rest(tx),
            Recovery::Octets(_) => Some(tx.snd.segments_out() * tx.snd.mss()),
        }
    }

    /// The application has written.
    #[inline]
    pub fn written(&mut self, tx: &Sender) {
        if let Recovery::Segments(s) = self {
            s.written(tx);
        }
    }

    /// Octets that leave as one group at most, or a segment.
    pub fn block(&mut self, tx: &Sender) -> u64 {
        match self {
            Recovery::Segments(s) => s.written(tx),
            Recovery::Octets(_) => None,
        }
        .unwrap_or(tx.snd.mss())
    }

    /// So many segments may arrive late.
    pub fn reordering(&self) -> u64 {
        self.counts().reordering
    }

    /// What is known of the segments outstanding.
    pub fn counts(&self) -> Counts {
        match self {
            Recovery::Segments(s) => s.counts(),
            Recovery::Octets(_) => Counts { reordering: u64::from(DUP_THRESH), ..Counts::default() },
        }
    }

    /// How many ranges the peer has reported.
    #[cfg(test)]
    pub fn ranges(&self) -> usize {
        match self {
            Recovery::Segments(s) => s.ranges(),
            Recovery::Octets(o) => o.ranges(),
        }
    }
}
