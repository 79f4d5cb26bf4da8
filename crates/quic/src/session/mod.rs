//! What stands where TLS does: a handshake whose messages have the form and the sizes of TLS 1.3's, and keys that protect packets or
//! only take their room.
//!
//! `messages` has the octets, `handshake` who says what when. How packets are protected is one of two things behind [`Protection`]:
//! `model` (nothing is hidden) or `seeded` (RFC 9001, with secrets that follow from the run's seed).

mod certificate;
pub(crate) mod handshake;
mod messages;
pub(crate) mod model;
pub(crate) mod seeded;
pub(crate) mod tickets;

use crate::library::crypto::{KeyPair, Keys, PacketKey};
use crate::library::{ConnectionId, Side};

/// What keys are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Epoch {
    /// 0-RTT packets, which the client alone sends.
    Early,
    Handshake,
    /// 1-RTT packets, after so many updates of the keys.
    Data(u32),
}

/// How packets are protected.
pub(crate) trait Protection: Send + Sync + 'static {
    /// Keys of Initial packets, which follow from the client's first destination connection id.
    fn initial(&self, id: &ConnectionId, side: Side) -> Keys;
    /// Keys of the connection whose client has said this random number.
    fn keys(&self, random: &[u8; 32], epoch: Epoch, side: Side) -> Keys;
    /// Keys after so many updates; those of the header stay as they are.
    fn updated(&self, random: &[u8; 32], updates: u32, side: Side) -> KeyPair<Box<dyn PacketKey>>;
    /// The integrity tag of a Retry packet.
    fn retry_tag(&self, id: &ConnectionId, packet: &[u8]) -> [u8; 16];
}
