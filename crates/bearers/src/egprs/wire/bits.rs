//! Bit fields least significant bit first.
//!
//! In EGPRS headers the lowest bit of a field stands in the lowest bit of the lowest octet it reaches (TS 44.060
//! 10.0b.3.1), so a header is one sequence of bits that fills each octet from its bit 1 up. The data octets behind it
//! follow in the same sequence, whether or not the header ended with an octet.

use super::Error;

/// Appends fields to octets.
pub struct LsbWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits used in the last octet, 0 if it is full (or none was begun).
    used: u32,
}

impl<'a> LsbWriter<'a> {
    /// Appends to `out`, beginning with a new octet.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        LsbWriter { out, used: 0 }
    }
    /// The lowest `width` bits (at most 16) of `value`.
    pub fn write(&mut self, width: u32, value: u16) {
        let mut value = u32::from(value) & ((1 << width) - 1);
        let mut left = width;
        while left > 0 {
            if self.used == 0 {
                self.out.push(0);
            }
            let n = left.min(8 - self.used);
            if let Some(last) = self.out.last_mut() {
                *last |= ((value & ((1 << n) - 1)) << self.used) as u8;
            }
            value >>= n;
            left -= n;
            self.used = (self.used + n) % 8;
        }
    }
}

/// Reads fields.
pub struct LsbReader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> LsbReader<'a> {
    /// At the first bit.
    pub const fn new(octets: &'a [u8]) -> Self {
        LsbReader { octets, at: 0 }
    }
    /// The next `width` bits (at most 16).
    pub fn read(&mut self, width: u32) -> Result<u16, Error> {
        if self.octets.len() * 8 - self.at < width as usize {
            return Err(Error::Truncated);
        }
        let (mut value, mut got) = (0u32, 0);
        while got < width {
            let in_octet = (self.at % 8) as u32;
            let n = (width - got).min(8 - in_octet);
            let piece = u32::from(self.octets[self.at / 8]) >> in_octet & ((1 << n) - 1);
            value |= piece << got;
            got += n;
            self.at += n as usize;
        }
        Ok(value as u16)
    }
    /// A single bit.
    pub fn flag(&mut self) -> Result<bool, Error> {
        Ok(self.read(1)? == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_fill_octets_from_the_lowest_bit() {
        let mut out = vec![0xEE];
        let mut w = LsbWriter::new(&mut out);
        for (width, value) in [(3, 0b101), (2, 0), (2, 0b11), (5, 0b10010), (11, 0x5A5)] {
            w.write(width, value);
        }
        // 1 + 2 + 4 bits leave bit 8 of the octet for the lowest bit of the fourth field.
        assert_eq!(out[..2], [0xEE, 0b0110_0101]);
        let mut r = LsbReader::new(&out[1..]);
        let fields = [3, 2, 2, 5, 11].map(|width| r.read(width).unwrap());
        assert_eq!(fields, [0b101, 0, 0b11, 0b10010, 0x5A5]);
        assert_eq!(r.read(2), Err(Error::Truncated));
    }
}
