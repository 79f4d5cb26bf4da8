//! The library that is the protocol, and what two libraries of one descent do differently.
//!
//! `noq` is the one that is used. With the feature `quinn` it is quinn-proto, from which that one comes: what the crate's tests say of
//! transfers, handshakes and losses holds with both. What only one of them has (several paths, a pace that its controllers obey,
//! numbers of packets that were lost) its neighbour says it has not.

#[cfg(not(feature = "quinn"))]
mod noq;
// Connections on real sockets have the one library in any case.
pub(crate) mod noq_controller;
#[cfg(feature = "quinn")]
mod quinn;

#[cfg(not(feature = "quinn"))]
pub(crate) use noq::*;
#[cfg(feature = "quinn")]
pub(crate) use quinn::*;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::BytesMut;

use crate::clock::Moment;
use crypto::{CryptoError, PacketKey};

/// The next datagram of a connection, in `buffer`.
pub(crate) fn transmit(connection: &mut Connection, now: Moment, buffer: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, MOST, buffer)
}

/// Answers to challenges (PATH_RESPONSE) that have arrived.
pub(crate) fn path_responses(connection: &mut Connection) -> u64 {
    connection.stats().frame_rx.path_response
}

/// A client's: is the handshake confirmed?
pub(crate) fn is_confirmed(connection: &mut Connection) -> bool {
    //= RFC 9001 (4.1.2): that is when HANDSHAKE_DONE comes.
    connection.stats().frame_rx.handshake_done > 0
}

/// Protects packets: by their path's number and their own (RFC 9001, 5.3).
pub(crate) trait Cipher: Send + Sync + 'static {
    /// Protects what stands behind a header of `header` octets, with room for the tag behind it.
    fn seal(&self, path: u32, number: u64, packet: &mut [u8], header: usize);
    /// Takes the protection off, and the tag away.
    fn open(&self, path: u32, number: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError>;
    /// Packets that one key protects at most, and that may be forged (RFC 9001, 6.6).
    fn limits(&self) -> [u64; 2];
}

/// Octets of the tag behind a packet, of all ciphers.
pub(crate) const TAG: usize = 16;

/// The most that a controller's may be. The library rounds waits to nanoseconds, and one of none would come again and again: an octet has
/// to take one at least.
pub(crate) const MOST_RATE: u64 = 1_000_000_000;

/// Octets a second at which nothing waits that matters: a packet takes some two microseconds.
pub(crate) const AT_ONCE: u64 = MOST_RATE / 2;

/// Is shown packets as plain text.
pub(crate) trait Observer: Send + Sync + 'static {
    /// One is protected next: its path's number and its own, all its octets with room for the tag, and those of its header. How many of
    /// them are: all, or fewer, where padding is left out.
    fn sent(&self, path: u32, number: u64, packet: &[u8], header: usize) -> usize;
    /// One was opened: header and payload, and octets as it came.
    fn received(&self, path: u32, number: u64, header: &[u8], payload: &[u8], len: usize);
}

/// A key whose packets an observer is shown.
pub(crate) struct Observed<E> {
    pub(crate) inner: Box<dyn PacketKey>,
    pub(crate) observer: E,
}

/// A path as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathView {
    pub(crate) number: u32,
    pub(crate) local: Option<IpAddr>,
    pub(crate) remote: SocketAddr,
    /// The congestion window and the slow start threshold, in octets; octets a second.
    pub(crate) window: u64,
    pub(crate) ssthresh: Option<u64>,
    pub(crate) pacing_rate: Option<u64>,
    pub(crate) smoothed: Duration,
}

/// What a controller is told of losses.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "each library tells one of them")]
pub(crate) enum Lost {
    /// A packet: its number, and octets that count as under way.
    Packet(u64, u64),
    /// So many octets, of packets up to the one that was sent then.
    Until(Moment, u64),
}

/// What is told of what a congestion controller is told.
pub(crate) trait Watch: Send + Sync + std::fmt::Debug + Clone + 'static {
    /// A packet was sent that asks for an acknowledgement.
    fn sent(&mut self, now: Moment, number: u64);
    /// A packet was acknowledged that was sent then: its octets, its number where the library says it, and the smoothed round trip
    /// before this acknowledgement.
    fn acknowledged(
        &mut self,
        now: Moment,
        sent: Moment,
        octets: u64,
        number: Option<u64>,
        smoothed: Duration,
    );
    /// A packet was taken for lost.
    fn lost(&mut self, lost: Lost);
    /// All losses of an episode were none.
    fn spurious(&mut self);
    /// Octets a second that may leave, whatever the controller says; [`u64::MAX`]: nothing waits.
    fn rate(&self) -> Option<u64>;
}
