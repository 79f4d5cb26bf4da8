//! Unsigned integers of variable length, as WAP writes them: seven bits an octet, the most significant group first, bit
//! seven set on all but the last. WSP calls them uintvar, WBXML mb_u_int32.
//!
//! Source: WAP-230 (8.1.2), WAP-192 (5.1).

use crate::Error;

/// Octets that the longest number takes.
pub const LONGEST: usize = 5;

/// Octets that `n` takes.
#[inline]
pub const fn len(n: u32) -> usize {
    match n {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// Appends `n`.
#[inline]
pub fn emit(n: u32, out: &mut Vec<u8>) {
    if n < 0x80 {
        out.push(n as u8);
        return;
    }
    for group in (0..len(n) as u32).rev() {
        let more = if group == 0 { 0 } else { 0x80 };
        out.push((n >> (7 * group)) as u8 & 0x7F | more);
    }
}

/// The number at the start of `octets`, and how many octets it takes. Leading zero groups are allowed, more than five
/// octets or more than 32 bits are not.
///
/// # Errors
/// [`Error::Truncated`] if the last octet is missing, [`Error::Malformed`] if it does not fit 32 bits.
#[inline]
pub fn parse(octets: &[u8]) -> Result<(u32, usize), Error> {
    let mut n = 0u64;
    for (i, &octet) in octets.iter().take(LONGEST).enumerate() {
        n = n << 7 | u64::from(octet & 0x7F);
        if octet & 0x80 == 0 {
            let n = u32::try_from(n).map_err(|_| Error::Malformed("integer of variable length"))?;
            return Ok((n, i + 1));
        }
    }
    Err(if octets.len() < LONGEST {
        Error::Truncated
    } else {
        Error::Malformed("integer of variable length")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standards_own_example_is_three_octets() {
        let mut out = Vec::new();
        emit(0x87A5, &mut out);
        assert_eq!(out, [0x82, 0x8F, 0x25]);
        assert_eq!(parse(&out), Ok((0x87A5, 3)));
    }

    #[test]
    fn edges_of_every_length_come_back() {
        for n in [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, 0x1F_FFFF, 0x20_0000, 0xFFF_FFFF, 0x1000_0000, u32::MAX] {
            let mut out = Vec::new();
            emit(n, &mut out);
            assert_eq!(out.len(), len(n));
            assert_eq!(parse(&out), Ok((n, out.len())));
            assert_eq!(parse(&out[..out.len() - 1]), Err(Error::Truncated));
        }
    }

    #[test]
    fn more_than_thirty_two_bits_are_refused() {
        assert!(matches!(parse(&[0x90, 0x80, 0x80, 0x80, 0x00]), Err(Error::Malformed(_))));
        assert!(matches!(parse(&[0x80; 9]), Err(Error::Malformed(_))));
        assert_eq!(parse(&[0x80, 0x01]), Ok((1, 2)), "leading zeros are allowed");
    }
}
