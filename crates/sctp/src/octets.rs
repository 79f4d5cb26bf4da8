//! Lengths and numbers in chunks, parameters and causes.

use airloom_wire::Error;
use bytes::Bytes;

/// Octets of type, flags and length, with which each chunk begins.
pub(super) const CHUNK_HEADER: usize = 4;
/// Octets of type and length, with which each parameter and cause begins.
pub(super) const HEADER: usize = 4;

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

/// Takes the first parameter or cause off a list: its type and its value. `what` is said of a length that cannot be.
pub(super) fn split(octets: &mut Bytes, what: &'static str) -> Result<Option<(u16, Bytes)>, Error> {
    if octets.is_empty() {
        return Ok(None);
    }
    let (kind, len) = (get16(octets, 0)?, usize::from(get16(octets, 2)?));
    if len < HEADER {
        return Err(Error::Malformed(what));
    }
    if len > octets.len() {
        return Err(Error::Truncated);
    }
    let value = octets.slice(HEADER..len);
    drop(octets.split_to(padded(len).min(octets.len())));
    Ok(Some((kind, value)))
}
