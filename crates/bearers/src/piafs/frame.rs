//! The frame: 640 bits, with 73 octets for the user.

use super::number::Number;

/// Octets of a frame on the air.
pub const OCTETS: usize = 80;
/// Octets of the user in a whole frame: 584 bits.
pub const USER: usize = 73;
/// Octets in front of the user's.
const HEADER: usize = 3;

/// A stretch of the octet stream that a sender numbers frames by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Place of the first octet in the stream.
    pub from: u64,
    /// Number of octets, at most [`USER`].
    pub len: u8,
}

impl Span {
    /// Place after the last octet.
    pub const fn end(self) -> u64 {
        self.from + self.len as u64
    }
}

/// What a frame says, besides the octets themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its own number, or none: a frame without user data, sent because something has to be.
    pub number: Number,
    /// The user's octets.
    pub span: Span,
    /// REQ: the lowest number that its sender has not received.
    pub request: Number,
    /// ACK: the last frame that its sender received intact.
    pub acknowledged: Acknowledged,
    /// Which transmission of these octets, from 1.
    pub attempt: u32,
}

/// The frame that was received last, as the other side is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Its number.
    pub number: Number,
    /// 1 for numbers of the first round from 1 to 127, 0 for those of the second, and so on.
    pub flag: bool,
}

/// Kinds of data frames, the lowest two bits of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// 73 octets of user data.
    Whole = 1,
    /// The first octet says how many of the 72 behind it are the user's.
    Partial = 2,
}

impl Frame {
    /// Writes the octets of the frame: header, data field, CRC-32; `user` copies the user's octets to where they stand.
    ///
    /// Which bits of the header mean what is in no public text: NUM, REQ and ACK of 7 bits each, the flag and the kind
    /// of frame fill its 24 bits in the order of the monitor's columns (Kojima and others 2000, Fig. 2).
    pub fn append(&self, out: &mut Vec<u8>, user: impl FnOnce(&mut [u8])) {
        let len = usize::from(self.span.len);
        let kind = if len == USER { Kind::Whole } else { Kind::Partial };
        let header = u32::from(self.number.get()) << 17
            | u32::from(self.request.get()) << 10
            | u32::from(self.acknowledged.number.get()) << 3
            | u32::from(self.acknowledged.flag) << 2
            | kind as u32;
        let start = out.len();
        out.extend_from_slice(&header.to_be_bytes()[1..]);
        out.resize(start + HEADER + USER, 0);
        let field = &mut out[start + HEADER..];
        match kind {
            Kind::Whole => user(field),
            Kind::Partial => {
                field[0] = len as u8;
                user(&mut field[1..=len]);
            }
        }
        let crc = crc32(&out[start..]);
        out.extend_from_slice(&crc.to_be_bytes());
    }
}

/// CRC-32 of IEEE 802.3, bit by bit: only frames that somebody looks at have one.
fn crc32(octets: &[u8]) -> u32 {
    !octets.iter().fold(!0, |crc, octet| {
        (0..8).fold(crc ^ u32::from(*octet), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(len: u8) -> Frame {
        Frame {
            number: Number::new(118),
            span: Span { from: 0, len },
            request: Number::new(82),
            acknowledged: Acknowledged { number: Number::new(80), flag: true },
            attempt: 1,
        }
    }

    #[test]
    fn a_frame_has_640_bits_of_which_584_are_the_users() {
        let mut out = Vec::new();
        frame(73).append(&mut out, |user| user.fill(0xAA));
        assert_eq!(out.len() * 8, 640);
        assert_eq!(out[3..76], [0xAA; 73]);
        assert_eq!(out[0] >> 1, 118);
        assert_eq!(out[2] & 3, 1);
    }

    #[test]
    fn a_frame_that_is_not_full_says_how_much_is_in_it() {
        let mut out = vec![7];
        frame(2).append(&mut out, |user| user.copy_from_slice(b"ab"));
        assert_eq!(out.len(), 81);
        assert_eq!(out[4..8], [2, b'a', b'b', 0]);
        assert_eq!(out[3] & 3, 2);
    }

    #[test]
    fn the_check_sequence_is_that_of_every_reference() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }
}
