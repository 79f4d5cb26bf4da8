//! Formats that no protocol owns: IPv4, IPv6, UDP, ICMP, checksums, bit fields, integers of variable length, and the
//! numbers of character sets.
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

use std::fmt;

/// Why octets are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Error {
    /// Fewer octets than the format needs.
    Truncated,
    /// A field has a value that it must not have.
    Malformed(&'static str),
    /// A checksum does not match.
    Checksum(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Truncated => f.write_str("cut short"),
            Error::Malformed(what) => write!(f, "malformed {what}"),
            Error::Checksum(what) => write!(f, "wrong {what} checksum"),
        }
    }
}

impl std::error::Error for Error {}

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
