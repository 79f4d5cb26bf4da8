//! Integers of one, two, four or eight octets (RFC 9000, 16).

/// The largest there is.
pub const MOST: u64 = (1 << 62) - 1;

/// Octets of the integer that begins with this one.
pub const fn length(first: u8) -> usize {
    1 << (first >> 6)
}

/// Writes it in as few octets as it takes. What is above [`MOST`] becomes that.
pub fn emit(value: u64, out: &mut Vec<u8>) {
    let value = value.min(MOST);
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// The integer in front of these octets, and what follows it; `None` if it is not whole.
pub fn parse(octets: &[u8]) -> Option<(u64, &[u8])> {
    let (integer, rest) = octets.split_at_checked(length(*octets.first()?))?;
    let (first, more) = integer.split_first()?;
    let value = more.iter().fold(u64::from(first & 0x3f), |value, octet| value << 8 | u64::from(*octet));
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // RFC 9000, A.1.
    #[test]
    fn integers_of_the_standard() {
        for (octets, value) in [
            (&b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c"[..], 151_288_809_941_952_652),
            (b"\x9d\x7f\x3e\x7d", 494_878_333),
            (b"\x7b\xbd", 15_293),
            (b"\x25", 37),
        ] {
            assert_eq!(parse(octets), Some((value, &[][..])));
            let mut out = Vec::new();
            emit(value, &mut out);
            assert_eq!(out, octets);
            assert_eq!(parse(&octets[..octets.len() - 1]), None);
        }
        // In more octets than it takes it is the same.
        assert_eq!(parse(b"\x40\x25x"), Some((37, &b"x"[..])));
    }

    proptest! {
        #[test]
        fn any_integer_there_and_back(value in prop_oneof![0_u64..20_000, 0..=MOST]) {
            let mut out = Vec::new();
            emit(value, &mut out);
            prop_assert_eq!(parse(&out), Some((value, &[][..])));
        }
    }
}
