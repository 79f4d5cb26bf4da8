//! What goes over the air: radio blocks with RLC data, and control messages, bit for bit.
//!
//! | file | concern |
//! |---|---|
//! | `bits.rs` | fields least significant bit first, as EGPRS headers have them |
//! | `header.rs` | RLC/MAC headers of types 1, 2 and 3, both directions |
//! | `block.rs` | a radio block: header, E and FBI or TI bits, length indicators, data |
//! | `control.rs` | EGPRS PACKET DOWNLINK ACK/NACK and PACKET UPLINK ACK/NACK |
//! | `ack_nack.rs` | the EGPRS Ack/Nack Description in them: window, bitmaps |
//! | `quality.rs` | the channel quality report: bit error probabilities |
//! | `compression.rs` | run lengths of the compressed bitmap |

pub mod ack_nack;
mod bits;
pub mod block;
mod compression;
pub mod control;
pub mod header;
pub mod quality;
#[cfg(test)]
mod tests;

pub use ack_nack::AckNack;
pub use block::{RadioBlock, Unit};
pub use control::{DownlinkAckNack, UplinkAckNack};
pub use header::{DownlinkHeader, Header, Poll, UplinkHeader};
pub use quality::ChannelQuality;

/// Block sequence numbers count modulo this (TS 44.060 9.1.4: SNS of EGPRS).
pub const SNS: u16 = 2048;

/// Octets of a control block in CS-1.
pub const CONTROL_OCTETS: usize = 23;

/// Octets that cannot be what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No radio block has this many octets.
    #[error("no radio block has this many octets")]
    Length,
    /// A field has a value that means nothing.
    #[error("the field {0} has a reserved value")]
    Reserved(&'static str),
    /// A field reaches beyond the end.
    #[error("a field reaches beyond the end of the block")]
    Truncated,
    /// Length indicators reach beyond the block.
    #[error("length indicators reach beyond the block")]
    LengthIndicator,
}

impl From<airloom_wire::bits::OutOfBits> for Error {
    fn from(_: airloom_wire::bits::OutOfBits) -> Error {
        Error::Truncated
    }
}
