//! What nobody can guess: the machine's own random octets.

use std::io;

/// A key of 128 bits.
///
/// # Errors
/// As the system says, where it has none.
pub(crate) fn key() -> io::Result<(u64, u64)> {
    let mut octets = [0; 16];
    getrandom::fill(&mut octets).map_err(|why| io::Error::other(why.to_string()))?;
    let all = u128::from_ne_bytes(octets);
    Ok((all as u64, (all >> 64) as u64))
}
