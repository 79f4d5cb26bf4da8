//! Integers that begin in the low bits of an octet, and strings behind them (RFC 7541, 5.1 and 5.2; RFC 9204, 4.1).

use super::huffman;

/// Writes `value` into the low `prefix` bits of an octet whose others are `flags`, and as many more octets as it takes.
pub fn emit(value: u64, prefix: u8, flags: u8, out: &mut Vec<u8>) {
    let most = (1_u64 << prefix) - 1;
    if value < most {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Writes a string whose length has `prefix` bits of an octet, with the bit that says whether it is coded in front of those.
pub fn emit_string(text: &[u8], prefix: u8, flags: u8, out: &mut Vec<u8>) {
    if let Some(octets) = huffman::shortens(text) {
        emit(octets as u64, prefix, flags | 1 << prefix, out);
        huffman::encode(text, out);
    } else {
        emit(text.len() as u64, prefix, flags, out);
        out.extend_from_slice(text);
    }
}

/// Octets that are no instruction, no section or no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Why something could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// More octets may make it whole.
    Short,
    /// Nothing will.
    Malformed,
}

impl From<Fault> for Malformed {
    fn from(_: Fault) -> Malformed {
        Malformed
    }
}

/// Reads from the front of octets.
pub struct Reader<'a> {
    /// What is left.
    pub rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The next octet, which stays.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// An integer that begins in the low `prefix` bits of the next octet.
    pub fn integer(&mut self, prefix: u8) -> Result<u64, Fault> {
        let (first, mut rest) = self.rest.split_first().ok_or(Fault::Short)?;
        let most = (1_u64 << prefix) - 1;
        let mut value = u64::from(*first) & most;
        if value == most {
            //= RFC 9204 (4.1.1): integers of 62 bits have to be read; longer ones need not.
            for shift in (0..63).step_by(7) {
                let (next, after) = rest.split_first().ok_or(Fault::Short)?;
                rest = after;
                value += u64::from(next & 0x7f) << shift;
                if next & 0x80 == 0 {
                    break;
                }
                if shift == 56 {
                    return Err(Fault::Malformed);
                }
            }
            if value >= 1 << 62 {
                return Err(Fault::Malformed);
            }
        }
        self.rest = rest;
        Ok(value)
    }

    /// A string whose length has `prefix` bits, of at most `most` octets as it is written.
    pub fn string(&mut self, prefix: u8, most: usize) -> Result<Vec<u8>, Fault> {
        let is_coded = self.peek().ok_or(Fault::Short)? & (1 << prefix) != 0;
        let length = self.integer(prefix)?;
        if length > most as u64 {
            return Err(Fault::Malformed);
        }
        let (octets, rest) = self.rest.split_at_checked(length as usize).ok_or(Fault::Short)?;
        self.rest = rest;
        if is_coded { huffman::decode(octets).ok_or(Fault::Malformed) } else { Ok(octets.to_vec()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn read(octets: &[u8], prefix: u8) -> Result<u64, Fault> {
        Reader { rest: octets }.integer(prefix)
    }

    // RFC 7541, C.1.
    #[test]
    fn integers_of_the_standard() {
        for (value, prefix, octets) in [(10, 5, &b"\x0a"[..]), (1337, 5, b"\x1f\x9a\x0a"), (42, 8, b"\x2a")] {
            let mut out = Vec::new();
            emit(value, prefix, 0, &mut out);
            assert_eq!((&out[..], read(octets, prefix)), (octets, Ok(value)));
        }
    }

    #[test]
    fn integers_beyond_62_bits_are_refused_and_short_ones_waited_for() {
        let mut out = Vec::new();
        emit((1 << 62) - 1, 3, 0, &mut out);
        assert_eq!(read(&out, 3), Ok((1 << 62) - 1));
        for length in 0..out.len() {
            assert_eq!(read(&out[..length], 3), Err(Fault::Short));
        }
        out.clear();
        emit(1 << 62, 3, 0, &mut out);
        assert_eq!(read(&out, 3), Err(Fault::Malformed));
        assert_eq!(read(&[0xff; 40], 7), Err(Fault::Malformed));
        // Octets that add nothing are an integer all the same, up to a bound.
        assert_eq!(read(b"\x07\x80\x80\x00", 3), Ok(7));
        assert_eq!(read(b"\x07\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 3), Err(Fault::Malformed));
        assert_eq!(Reader { rest: b"\x7f\xff\x7f" }.string(7, 100), Err(Fault::Malformed));
    }

    proptest! {
        #[test]
        fn any_integer_and_any_string_there_and_back(
            value in prop_oneof![0_u64..400, 0..1_u64 << 62],
            prefix in 3_u8..8,
            text in vec(any::<u8>(), 0..300),
        ) {
            let mut out = Vec::new();
            emit(value, prefix, 0, &mut out);
            emit_string(&text, prefix, 0, &mut out);
            let mut reader = Reader { rest: &out };
            prop_assert_eq!(reader.integer(prefix), Ok(value));
            prop_assert_eq!(reader.string(prefix, 1 << 12), Ok(text));
            prop_assert!(reader.rest.is_empty());
        }
    }
}
