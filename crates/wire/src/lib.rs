//! Formats that no protocol owns: IPv4, IPv6, UDP, ICMP, checksums, bit fields, integers of variable length, and the
//! numbers of character sets.
//!
//! Not here: headers that a protocol owns, which stand with it, and documents and messages (`content`).
//!
//! Every `parse` checks lengths once and returns a plain value; every `emit` writes it back. Invalid input is an
//! error value, never a panic. Checksums are left open inside the network and filled in or verified at its edges
//! ([`checksum`]), the way a network card's offload does it.

pub mod charset;
pub mod checksum;
pub mod edge;
pub mod icmp;
pub mod ip;
pub mod segment;
pub mod udp;
pub mod uintvar;

/// Why octets are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Error {
    /// Fewer octets than the format needs.
    #[error("cut short")]
    Truncated,
    /// A field has a value that it must not have.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A checksum does not match.
    #[error("wrong {0} checksum")]
    Checksum(&'static str),
}

/// Big-endian 16 bits at `at`; the caller has checked the length.
#[inline]
pub(crate) fn get16(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

/// Writes big-endian 16 bits at `at`.
#[inline]
pub(crate) fn put16(octets: &mut [u8], at: usize, value: u16) {
    octets[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub mod bits;
