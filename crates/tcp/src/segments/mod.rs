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
//! This half of the sender is in use with `loss_detection = "rack"`; with `"dup-acks"` it is `octets/`,
//! which follows RFC 5681, 6582 and 6675 by the octet. It counts segments, as Linux does: window, flight and losses.
//! Without SACK every duplicate acknowledgement counts as a segment that has arrived, so that one set of rules serves
//! both. Where Linux departs from a standard the place says so.

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

use super::connection::Connection;
use super::octets::DUP_THRESH;
use super::ranges::Ranges;
pub(super) use acked::Arrived;
pub(super) use prr::{Delivery, Prr};
use rack::Rack;
use tlp::Probe;
use undo::Undo;

/// What the retransmission timer stands for (RFC 8985 8: one timer, one kind at a time).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerKind {
    /// Retransmission timeout.
    Rto,
    /// Probe timeout.
    Probe,
    /// Reordering window of RACK.
    Reorder,
}

/// What leaves first after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// New data as the window allows.
    Any,
    /// What is lost, then new data.
    Lost,
    /// F-RTO: new data, and only if there is none what is lost.
    New,
}

/// The books of one connection.
#[derive(Debug)]
pub(super) struct Segments {
    /// What the peer reported beyond the cumulative acknowledgement, by the octet.
    pub sacked: Ranges,
    /// Segments reported, or (without SACK) duplicates counted.
    pub sacked_out: u64,
    /// Segments marked lost.
    pub lost_out: u64,
    /// Segments sent again and still under way.
    pub resent_out: u64,
    /// Segments delivered in all.
    pub delivered: u64,
    /// Segments marked lost in all.
    pub marked: u64,
    /// Below this nothing waits to be sent again.
    pub resend_from: u64,
    pub next: Next,
    pub timer: TimerKind,
    /// So many segments arrive late at most: DupThresh, adapted to what was seen.
    pub reordering: u64,
    /// How often reordering was seen.
    pub reordered: u32,
    pub prr: Prr,
    pub rack: Rack,
    pub probe: Option<Probe>,
    /// A probe timeout has expired; the probe leaves next.
    pub probe_due: bool,
    /// A first transmission has left since nothing more could.
    pub fresh_sent: bool,
    /// The retransmission timer starts again when it is known what leaves in answer to the acknowledgement at hand.
    pub restart: bool,
    /// Timeouts since something was acknowledged.
    pub timeouts: u32,
    /// F-RTO looks at the acknowledgements after a timeout.
    pub frto: bool,
    pub undo: Undo,
    /// The last segment that the receiver took back is still missing (RFC 2018 8).
    pub reneged: bool,
}

impl Segments {
    pub fn new(iss: u64, now: Instant) -> Self {
        Segments {
            sacked: Ranges::default(),
            sacked_out: 0,
            lost_out: 0,
            resent_out: 0,
            delivered: 0,
            marked: 0,
            resend_from: iss,
            next: Next::Any,
            timer: TimerKind::Rto,
            reordering: u64::from(DUP_THRESH),
            reordered: 0,
            prr: Prr::default(),
            rack: Rack::new(iss, now),
            probe: None,
            probe_due: false,
            fresh_sent: false,
            restart: false,
            timeouts: 0,
            frto: false,
            undo: Undo::default(),
            reneged: false,
        }
    }

    /// Is nothing reported, lost, sent again or asked for?
    #[inline]
    fn is_quiet(&self) -> bool {
        self.sacked_out | self.lost_out | self.resent_out | self.sacked.total() == 0 && self.probe.is_none()
    }

    /// Segments that have left the network, as far as is known.
    #[inline]
    pub fn left(&self) -> u64 {
        self.sacked_out + self.lost_out
    }
}

impl Connection {
    /// Segments sent and not acknowledged cumulatively.
    #[inline]
    pub fn segments_out(&self) -> u64 {
        self.snd.sent.len() as u64
    }

    /// Segments in flight.
    #[inline]
    pub fn segments_in_flight(&self) -> u64 {
        (self.segments_out() + self.segments.resent_out).saturating_sub(self.segments.left())
    }

    /// The congestion window in segments.
    #[inline]
    pub fn cwnd_segments(&self) -> u64 {
        self.window.cwnd / self.snd.mss
    }

    pub(super) fn set_cwnd_segments(&mut self, n: u64) {
        self.window.cwnd = n * self.snd.mss;
    }

    pub(super) fn ssthresh_segments(&self) -> u64 {
        self.window.ssthresh / self.snd.mss
    }

    /// One past the highest octet reported; SND.UNA if there is none.
    #[inline]
    pub(super) fn fack(&self) -> u64 {
        self.segments.sacked.end().unwrap_or(self.snd.una)
    }
}
