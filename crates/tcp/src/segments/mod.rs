//! Loss recovery with books kept by the segment: PRR, RACK-TLP, F-RTO and undo, as Linux puts them together.
//!
//! ```text
//!   acknowledgement ─► acked.rs ─► blocks.rs (SACK)     ─► tlp.rs (was a probe answered?)
//!                         │        queue.rs (cumulative)
//!                         └─► episode.rs: Open, Disorder, Cwr, Recovery, Loss
//!                                │   rack.rs or dupacks.rs: what is lost?
//!                                │   undo.rs, frto.rs: was it?
//!                                └─► prr.rs: how much may leave ─► resend.rs: what leaves
//! ```
//!
//! | part | file | standard |
//! |---|---|---|
//! | what is known of each segment | `queue.rs`, `blocks.rs` | RFC 2018, 2883, 8985 (5) |
//! | loss by time | `rack.rs`, `reordering.rs` | RFC 8985 (6) |
//! | loss by counting, without SACK | `dupacks.rs` | RFC 5681, 6582; Linux |
//! | tail loss probe | `tlp.rs` | RFC 8985 (7) |
//! | spurious timeouts | `frto.rs` | RFC 5682 |
//! | spurious retransmissions | `undo.rs` | RFC 3522, 3708; Linux |
//! | window during recovery | `prr.rs` | RFC 6937, 9937 |
//! | order of it all | `acked.rs`, `episode.rs`, `timeout.rs`, `resend.rs` | Linux |
//!
//! It is in use with `loss_detection = "rack"`; with `"dup-acks"` it is `octets/`,
//! which follows RFC 5681, 6582 and 6675 by the octet. It counts segments, as Linux does: window, flight and losses.
//! Without SACK every duplicate acknowledgement counts as a segment that has arrived, so that one set of rules serves
//! both. Where Linux departs from a standard the place says so.
//!
//! A circle of 7 files: each part has its state and what recovery does with it, as the RFCs are parted.

mod acked;
mod blocks;
mod dupacks;
mod episode;
mod frto;
mod prr;
mod queue;
mod rack;
mod reordering;
mod resend;
mod timeout;
mod tlp;
mod undo;

use airloom_base::Instant;

use super::octets::DUP_THRESH;
use super::offload::Offload;
use super::ranges::Ranges;
use super::sender::{Counts, Sender};
pub(super) use prr::{Delivery, Prr};
use rack::Rack;
use tlp::Probe;
use undo::Undo;

/// What leaves first after an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Next {
    /// New data as the window allows.
    #[default]
    Any,
    /// What is lost, then new data.
    Lost,
    /// F-RTO: new data, and only if there is none what is lost.
    New,
}

/// The books of one connection.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// What the peer reported beyond the cumulative acknowledgement, by the octet.
    sacked: Ranges,
    /// Segments reported, or (without SACK) duplicates counted.
    sacked_out: u64,
    /// Segments marked lost.
    lost_out: u64,
    /// Segments sent again and still under way.
    resent_out: u64,
    /// Segments delivered in all.
    delivered: u64,
    /// Segments marked lost in all.
    marked: u64,
    /// Below this nothing waits to be sent again.
    resend_from: u64,
    next: Next,
    /// So many segments arrive late at most: DupThresh, adapted to what was seen.
    reordering: u64,
    /// How often reordering was seen.
    reordered: u32,
    prr: Prr,
    rack: Rack,
    probe: Option<Probe>,
    /// A probe timeout has expired; the probe leaves next.
    probe_due: bool,
    /// A first transmission has left since nothing more could.
    fresh_sent: bool,
    /// The retransmission timer starts again when it is known what leaves in answer to the acknowledgement at hand.
    restart: bool,
    /// Timeouts since something was acknowledged.
    timeouts: u32,
    /// Fast recovery or the loss state has begun, and the controller has not heard that it is over.
    repairs: bool,
    /// F-RTO looks at the acknowledgements after a timeout.
    frto: bool,
    undo: Undo,
    /// The last segment that the receiver took back is still missing (RFC 2018 8).
    reneged: bool,
    /// Segments whose delivery the controller has heard of; never more than `delivered`.
    told_delivered: u64,
    offload: Offload,
}

impl Segments {
    /// Nothing was sent; `grouped`: segments leave in groups.
    pub fn new(iss: u64, now: Instant, grouped: bool) -> Self {
        Segments {
            resend_from: iss,
            reordering: u64::from(DUP_THRESH),
            rack: Rack::new(iss, now),
            offload: Offload::new(grouped),
            ..Default::default()
        }
    }

    /// Is nothing reported, lost, sent again or asked for?
    #[inline]
    fn is_quiet(&self) -> bool {
        self.sacked_out | self.lost_out | self.resent_out | self.sacked.total() == 0 && self.probe.is_none()
    }

    /// Segments that have left the network, as far as is known.
    #[inline]
    fn left(&self) -> u64 {
        self.sacked_out + self.lost_out
    }

    /// Segments in flight.
    #[inline]
    fn in_flight(&self, tx: &Sender) -> u64 {
        (tx.snd.segments_out() + self.resent_out).saturating_sub(self.left())
    }

    /// Octets in flight, as if all segments were full ones.
    #[inline(always)]
    pub fn octets_in_flight(&self, tx: &Sender) -> u64 {
        (self.in_flight(tx) * tx.snd.mss()).min(tx.snd.outstanding())
    }

    /// Does what is in flight fill the congestion window?
    pub fn fills_window(&self, tx: &Sender) -> bool {
        self.in_flight(tx) >= tx.cwnd_segments()
    }

    /// Octets in flight where the application sends no more; nothing if something that is lost still waits.
    pub fn in_flight_at_rest(&self, tx: &Sender) -> Option<u64> {
        (self.lost_out <= self.resent_out).then(|| self.in_flight(tx) * tx.snd.mss())
    }

    /// One past the highest octet reported; SND.UNA if there is none.
    #[inline]
    fn fack(&self, tx: &Sender) -> u64 {
        self.sacked.end().unwrap_or(tx.snd.una())
    }

    /// The application has written. Returns the octets of a group at most, if segments leave in groups.
    #[inline]
    pub fn written(&mut self, tx: &Sender) -> Option<u64> {
        self.offload.is_on().then(|| self.offload.written(&tx.snd))
    }

    /// What is known of the segments outstanding.
    pub fn counts(&self) -> Counts {
        Counts {
            sacked: self.sacked_out,
            lost: self.lost_out,
            resent: self.resent_out,
            reordering: self.reordering,
            reordered: self.reordered,
            delivered: self.delivered,
            duplicates: self.undo.duplicates,
        }
    }

    /// The handshake is over.
    pub fn begin(&mut self, tx: &Sender) {
        self.resend_from = tx.snd.una();
    }

    /// How many ranges the peer has reported.
    #[cfg(test)]
    pub fn ranges(&self) -> usize {
        self.sacked.count()
    }
}
