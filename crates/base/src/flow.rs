//! What became of one end of a connection.

use crate::time::{Duration, Instant};

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum CloseReason {
    /// Both sides finished.
    Finished,
    /// The peer reset it.
    Reset,
    /// The peer refused to open it.
    Refused,
    /// It got no answer for too long.
    #[strum(serialize = "timeout")]
    TimedOut,
    /// Our side reset it.
    Aborted,
    /// No route to the peer.
    Unreachable,
    /// The peer's application closed it, with this code.
    Application(u64),
}

impl CloseReason {
    /// As in the `end` column of the flows table.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What one end of a connection did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowFacts {
    /// When data could first flow.
    pub established: Option<Instant>,
    /// When the first octet of application data arrived here.
    pub first_byte: Option<Instant>,
    /// Application octets sent (first transmissions, acknowledged or not).
    pub app_sent: u64,
    /// Application octets delivered in order to the application.
    pub app_received: u64,
    /// Octets sent, with transport headers and retransmissions.
    pub wire_sent: u64,
    /// Octets received, with transport headers and duplicates.
    pub wire_received: u64,
    /// Units sent.
    pub segments: u64,
    /// Units sent again.
    pub resent: u64,
    /// Units sent again although the first copy had arrived, as far as the protocol could tell.
    pub spurious: u64,
    /// Expiries of the retransmission timer.
    pub rto_count: u32,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time measured.
    pub min_rtt: Option<Duration>,
    /// How it ended, if it did.
    pub end: Option<CloseReason>,
}

/// What became of the paths of one end of a connection (RFC 9000, 9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Times that it went on by another path: its own choice, or its peer's.
    pub changes: u32,
    /// When it did so for the first time.
    pub first: Option<Instant>,
    /// The longest time without an arrival, from the last one before a change to the first one over the new path.
    pub silence: Duration,
    /// The longest time that a new path took to be validated.
    pub validation: Duration,
    /// Octets of packets that had left over a path before it was given up, and were taken for lost then.
    pub lost_bytes: u64,
}
