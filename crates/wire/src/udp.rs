//! UDP (RFC 768).

use crate::{Error, get16, put16};

/// Octets of the header.
pub const HEADER: usize = 8;

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Octets of header and payload.
    pub len: u16,
}

impl Udp {
    /// Reads the header at the beginning of `octets`.
    pub fn parse(octets: &[u8]) -> Result<Udp, Error> {
        if octets.len() < HEADER {
            return Err(Error::Truncated);
        }
        let len = get16(octets, 4);
        if usize::from(len) < HEADER {
            return Err(Error::Malformed("UDP length"));
        }
        Ok(Udp { source: get16(octets, 0), destination: get16(octets, 2), len })
    }

    /// Writes the header, checksum open, and returns its length.
    pub fn emit(&self, out: &mut [u8]) -> usize {
        put16(out, 0, self.source);
        put16(out, 2, self.destination);
        put16(out, 4, self.len);
        put16(out, 6, 0);
        HEADER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_and_a_cut_one_refused() {
        let udp = Udp { source: 7, destination: 9201, len: 20 };
        let mut octets = [0xFF; HEADER];
        assert_eq!(udp.emit(&mut octets), HEADER);
        assert_eq!(Udp::parse(&octets), Ok(udp));
        for cut in 0..HEADER {
            assert_eq!(Udp::parse(&octets[..cut]), Err(Error::Truncated));
        }
        octets[5] = 7;
        assert_eq!(Udp::parse(&octets), Err(Error::Malformed("UDP length")));
    }
}
