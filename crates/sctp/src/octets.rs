//! Lengths and numbers in chunks, parameters and causes.

use airloom_wire::Error;

/// Octets of type, flags and length, with which each chunk begins.
pub(super) const CHUNK_HEADER: usize = 4;

/// A length rounded up to the four octets that chunks, parameters and causes are padded to.
pub(super) const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// Big-endian 16 bits at `at`.
pub(super) fn get16(octets: &[u8], at: usize) -> Result<u16, Error> {
    let o = octets.get(at..).and_then(|o| o.first_chunk()).ok_or(Error::Truncated)?;
    Ok(u16::from_be_bytes(*o))
}

/// Big-endian 32 bits at `at`.
pub(super) fn get32(octets: &[u8], at: usize) -> Result<u32, Error> {
    let o = octets.get(at..).and_then(|o| o.first_chunk()).ok_or(Error::Truncated)?;
    Ok(u32::from_be_bytes(*o))
}
