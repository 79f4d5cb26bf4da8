//! The request of a bulk transfer: 16 octets, padded with filler to any length.
//!
//! | octets | meaning |
//! |---|---|
//! | 0..4 | `BULK` |
//! | 4 | bit 0: keep the connection open; bit 1: put (otherwise get); other bits zero |
//! | 5..8 | length of the whole request with its padding, 24 bits |
//! | 8..16 | octets to transfer |
//!
//! Numbers are big-endian.

/// Octets of a request without padding.
pub const LEN: usize = 16;
/// The longest request with padding.
pub const MAX_PADDED: u32 = 0x00FF_FFFF;

const MAGIC: &[u8; 4] = b"BULK";
const KEEP: u8 = 1;
const PUT: u8 = 2;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Does the data flow from client to server?
    pub put: bool,
    /// Does the server keep the connection open for another request?
    pub keep: bool,
    /// Length of the request with its padding, 16 or more.
    pub padded: u32,
    /// Octets to transfer.
    pub size: u64,
}

impl Request {
    /// The request in octets, without padding.
    pub fn emit(&self) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[4..8].copy_from_slice(&self.padded.to_be_bytes());
        out[..4].copy_from_slice(MAGIC);
        out[4] = u8::from(self.keep) * KEEP + u8::from(self.put) * PUT;
        out[8..].copy_from_slice(&self.size.to_be_bytes());
        out
    }

    /// Reads a request; `None` if the octets are none.
    pub fn parse(octets: &[u8; LEN]) -> Option<Request> {
        let [m0, m1, m2, m3, flags, p0, p1, p2, size @ ..] = *octets;
        let padded = u32::from_be_bytes([0, p0, p1, p2]);
        let valid = [m0, m1, m2, m3] == *MAGIC && flags <= KEEP + PUT && padded as usize >= LEN;
        valid.then(|| Request {
            put: flags & PUT != 0,
            keep: flags & KEEP != 0,
            padded,
            size: u64::from_be_bytes(size),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_were_written() {
        for (put, keep) in [(false, false), (false, true), (true, false), (true, true)] {
            let request = Request { put, keep, padded: 300, size: 10_240 };
            assert_eq!(Request::parse(&request.emit()), Some(request));
        }
        let get = Request { put: false, keep: false, padded: 300, size: 10_240 };
        assert_eq!(&get.emit(), b"BULK\x00\x00\x01\x2c\x00\x00\x00\x00\x00\x00\x28\x00");
    }

    #[test]
    fn other_octets_are_not_requests() {
        let good = Request { put: true, keep: true, padded: 16, size: 1 }.emit();
        for (place, octet) in [(0, b'G'), (4, 4), (7, 15)] {
            let mut bad = good;
            bad[place] = octet;
            assert_eq!(Request::parse(&bad), None, "octet {place} = {octet}");
        }
    }
}
