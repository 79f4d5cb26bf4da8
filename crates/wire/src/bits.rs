//! Bit fields, most significant bit first: what radio link headers are made of.

/// A field reached beyond the last octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a bit field reaches beyond the last octet")]
pub struct OutOfBits;

/// Reads fields of up to 32 bits from octets.
#[derive(Clone, Copy, Debug)]
pub struct BitReader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    /// A reader at the first bit.
    pub const fn new(octets: &'a [u8]) -> Self {
        BitReader { octets, at: 0 }
    }
    /// Position in bits.
    pub const fn position(&self) -> usize {
        self.at
    }
    /// Bits not yet read.
    pub const fn remaining(&self) -> usize {
        self.octets.len() * 8 - self.at
    }
    /// The next `width` bits (at most 32) as a number.
    pub fn read(&mut self, width: u32) -> Result<u32, OutOfBits> {
        debug_assert!(width <= 32, "fields have at most 32 bits");
        if self.remaining() < width as usize {
            return Err(OutOfBits);
        }
        let mut value = 0u64;
        let mut left = width as usize;
        while left > 0 {
            let in_octet = 8 - self.at % 8;
            let n = left.min(in_octet);
            let octet = u64::from(self.octets[self.at / 8]);
            value = value << n | (octet >> (in_octet - n)) & ((1 << n) - 1);
            self.at += n;
            left -= n;
        }
        Ok(value as u32)
    }
}

/// Writes fields of up to 32 bits into octets. Bits never written keep their value.
#[derive(Debug)]
pub struct BitWriter<'a> {
    octets: &'a mut [u8],
    at: usize,
}

impl<'a> BitWriter<'a> {
    /// A writer at the first bit.
    pub const fn new(octets: &'a mut [u8]) -> Self {
        BitWriter { octets, at: 0 }
    }
    /// Position in bits.
    pub const fn position(&self) -> usize {
        self.at
    }
    /// Bits left.
    pub const fn remaining(&self) -> usize {
        self.octets.len() * 8 - self.at
    }
    /// Octets begun so far.
    pub const fn octets_used(&self) -> usize {
        self.at.div_ceil(8)
    }
    /// The lowest `width` bits (at most 32) of `value`.
    pub fn write(&mut self, width: u32, value: u32) -> Result<(), OutOfBits> {
        debug_assert!(width <= 32, "fields have at most 32 bits");
        if self.remaining() < width as usize {
            return Err(OutOfBits);
        }
        let mut left = width as usize;
        while left > 0 {
            let in_octet = 8 - self.at % 8;
            let n = left.min(in_octet);
            let mask = (1u64 << n) - 1;
            let piece = u64::from(value) >> (left - n) & mask;
            let shift = in_octet - n;
            let octet = &mut self.octets[self.at / 8];
            *octet = *octet & !((mask << shift) as u8) | (piece << shift) as u8;
            self.at += n;
            left -= n;
        }
        Ok(())
    }
    /// Zero bits up to the next octet boundary.
    pub fn pad_to_octet(&mut self) {
        let gap = (8 - self.at % 8) % 8;
        // The gap lies inside an octet that was begun: there is room.
        let _ = self.write(gap as u32, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_most_significant_bit_first() {
        let mut r = BitReader::new(&[0b1010_0101, 0xFF, 0x00, 0x12, 0x34]);
        assert_eq!(r.read(1), Ok(1));
        assert_eq!(r.read(3), Ok(0b010));
        assert_eq!(r.read(12), Ok(0x5FF));
        assert_eq!(r.read(0), Ok(0));
        assert_eq!(r.read(24), Ok(0x00_1234));
        assert_eq!(r.read(1), Err(OutOfBits));
        assert_eq!(r.position(), 40);
    }

    #[test]
    fn what_was_written_is_read_again() {
        let fields = [(3, 5), (12, 0xABC), (1, 1), (32, 0xDEAD_BEEF), (7, 0x55), (20, 0xF_00F1)];
        let mut octets = [0xFF; 10];
        let mut w = BitWriter::new(&mut octets);
        for (width, value) in fields {
            w.write(width, value).unwrap();
        }
        w.pad_to_octet();
        assert_eq!((w.octets_used(), w.remaining()), (10, 0));
        assert_eq!(w.write(1, 0), Err(OutOfBits));
        let mut r = BitReader::new(&octets);
        for (width, value) in fields {
            assert_eq!(r.read(width), Ok(value & ((1u64 << width) - 1) as u32));
        }
        assert_eq!(r.read(5), Ok(0));
    }
}
