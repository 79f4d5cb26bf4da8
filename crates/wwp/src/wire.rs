//! The header of a segment.
//!
//! ```text
//!   octet  0        1       2  3  (4)      5        6 ..
//!        +----+----+------+-------------+--------+-----------+
//!        |kind|lvl | wave | number      | check  | zeros     |
//!        +----+----+------+-------------+--------+-----------+
//! ```
//!
//! ASSUMPTION(wave-and-wait): the paper says six octets and that the level is among them; the layout is ours. The length is a
//! setting, since the paper's table of octets does not fit six: four octets have a number of 16 bits and no check, five one of
//! 24 bits, six a check as well, longer ones are filled up.

use smart_default::SmartDefault;

/// The shortest header.
pub const SHORTEST: usize = 4;
/// The longest.
pub const LONGEST: usize = 16;
/// Octets of the ports in front, where a host wants them.
pub const PORTS: usize = 4;
/// The highest level that a header can name.
pub const MAX_LEVEL: u8 = 15;

/// Why octets are not a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There are fewer octets than a header, or than what must follow it.
    #[error("the segment is shorter than its header and content")]
    TooShort,
    /// No such kind.
    #[error("there is no segment of kind {0}")]
    UnknownKind(u8),
    /// The header was damaged.
    #[error("the header was damaged")]
    Check,
    /// What follows the header makes no sense.
    #[error("what follows the header makes no sense")]
    Content,
}

macro_rules! kinds {
    ($( $(#[$doc:meta])* $name:ident = $value:literal, )*) => {
        /// What a segment is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind { $( $(#[$doc])* $name = $value, )* }

        impl Kind {
            /// All, in the order of their numbers.
            pub const ALL: &[Kind] = &[ $( Kind::$name, )* ];

            fn parse(value: u8) -> Result<Kind, Error> {
                match value {
                    $( $value => Ok(Kind::$name), )*
                    other => Err(Error::UnknownKind(other)),
                }
            }
        }
    };
}

kinds! {
    /// Asks to open.
    Syn = 0,
    /// Agrees.
    SynAck = 1,
    /// A segment of a wave.
    Data = 2,
    /// Negative selective acknowledgement: what is missing, and the level of the next wave.
    Nsack = 3,
    /// The first probe of a cycle; its number names the cycle, as with all that follow.
    Probe1 = 4,
    /// Its answer.
    Pr1Ack = 5,
    /// The second probe, which gives the receiver its first round-trip time.
    Probe2 = 6,
    /// Its answer.
    Pr2Ack = 7,
    /// The third, which gives the second. An N-S_ACK answers it.
    Probe3 = 8,
    /// Nothing follows in this direction; the number is that of the segment that would come next.
    Fin = 9,
    /// Its answer.
    FinAck = 10,
    /// The third of the opening.
    Ack = 11,
    /// There is no such connection, or there is none any more.
    Rst = 12,
    /// A segment of a wave that ends here although it has fewer segments than its level.
    DataLast = 13,
    /// A piece of a segment that the path does not take whole.
    Piece = 14,
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Of the wave it belongs to; of the next one in an N-S_ACK.
    pub level: u8,
    /// The wave it belongs to or is about.
    pub wave: u8,
    /// Number of the segment, or of the probe cycle, as many bits as [`Layout::number_bits`].
    pub number: u32,
}

/// How headers look: the same at both ends.
#[derive(Clone, Copy, Debug, SmartDefault, PartialEq, Eq)]
pub struct Layout {
    /// Octets of the header, [`SHORTEST`] to [`LONGEST`].
    #[default(SHORTEST)]
    pub header: usize,
    /// Two ports stand in front of it.
    pub ports: bool,
}

impl Layout {
    /// Octets of ports and header.
    pub const fn len(self) -> usize {
        self.header + if self.ports { PORTS } else { 0 }
    }

    /// Never: for the sake of its sister.
    pub const fn is_empty(self) -> bool {
        false
    }

    /// Bits of a number.
    pub const fn number_bits(self) -> u32 {
        if self.header == SHORTEST { 16 } else { 24 }
    }

    /// The whole number of which these are the lowest bits: the one that is nearest to `near`.
    pub fn unwrap(self, number: u32, near: u64) -> u64 {
        unwrap(number, near, self.number_bits())
    }

    /// Reads a header behind its ports.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(self, head: &[u8]) -> Result<Header, Error> {
        let octets = head.get(self.len() - self.header..self.len()).ok_or(Error::TooShort)?;
        let &[first, wave, high, low, ..] = octets else { return Err(Error::TooShort) };
        let mut number = u32::from(u16::from_be_bytes([high, low]));
        if let Some(octet) = octets.get(4) {
            number = number << 8 | u32::from(*octet);
        }
        if octets.len() > 5 && sum(octets) != 0xFF {
            return Err(Error::Check);
        }
        Ok(Header { kind: Kind::parse(first >> 4)?, level: first & 15, wave, number })
    }

    /// Writes ports and header and returns how many octets that were. `out` is large enough: it is ours.
    pub fn emit(self, header: &Header, ports: (u16, u16), out: &mut [u8]) -> usize {
        let mut at = 0;
        if self.ports {
            out[..2].copy_from_slice(&ports.0.to_be_bytes());
            out[2..PORTS].copy_from_slice(&ports.1.to_be_bytes());
            at = PORTS;
        }
        let octets = &mut out[at..at + self.header];
        octets.fill(0);
        octets[0] = (header.kind as u8) << 4 | header.level & 15;
        octets[1] = header.wave;
        let number = header.number.to_be_bytes();
        if self.header == SHORTEST {
            octets[2..4].copy_from_slice(&number[2..]);
        } else {
            octets[2..5].copy_from_slice(&number[1..]);
        }
        if self.header > 5 {
            octets[5] = !sum(octets);
        }
        self.len()
    }
}

/// The ones' complement sum in eight bits.
fn sum(octets: &[u8]) -> u8 {
    let sum: u32 = octets.iter().map(|o| u32::from(*o)).sum();
    let once = (sum & 0xFF) + (sum >> 8);
    ((once & 0xFF) + (once >> 8)) as u8
}

/// The whole number nearest to `near` whose lowest `bits` are `number`'s.
pub(super) fn unwrap(number: u32, near: u64, bits: u32) -> u64 {
    let span = 1u64 << bits;
    let number = u64::from(number) & (span - 1);
    let below = near.saturating_sub(span / 2);
    // The first candidate at or above `below`.
    let candidate = (below & !(span - 1)) | number;
    if candidate < below { candidate.saturating_add(span) } else { candidate }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX: Layout = Layout { header: 6, ports: false };

    #[test]
    fn a_data_segment_of_level_3_has_its_six_octets() {
        // Layout of this module: kind 2 and level 3, wave 7, number 0x010203, and a check of !(23 + 07 + 01 + 02 + 03).
        const BYTES: [u8; 6] = [0x23, 7, 1, 2, 3, 0xCF];
        let header = Header { kind: Kind::Data, level: 3, wave: 7, number: 0x01_0203 };
        let mut out = [0xAA; 16];
        assert_eq!(SIX.emit(&header, (1, 2), &mut out), 6);
        assert_eq!(out[..6], BYTES);
        assert_eq!(SIX.parse(&BYTES), Ok(header));
    }

    #[test]
    fn headers_of_every_length_are_read_as_they_were_written() {
        for header in SHORTEST..=LONGEST {
            for ports in [false, true] {
                let layout = Layout { header, ports };
                for &kind in Kind::ALL {
                    let h = Header {
                        kind,
                        level: 9,
                        wave: 200,
                        number: 0x9A_BCDE & ((1 << layout.number_bits()) - 1),
                    };
                    let mut out = [0; 32];
                    let len = layout.emit(&h, (0x1234, 0x5678), &mut out);
                    assert_eq!(len, layout.len());
                    assert_eq!(layout.parse(&out[..len]), Ok(h));
                    assert_eq!(layout.parse(&out[..len - 1]), Err(Error::TooShort));
                }
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed_and_a_kind_that_is_none_refused() {
        let mut out = [0; 6];
        SIX.emit(&Header { kind: Kind::Nsack, level: 1, wave: 2, number: 3 }, (0, 0), &mut out);
        for bit in 0..48 {
            let mut damaged = out;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(SIX.parse(&damaged).is_err(), "bit {bit}");
        }
        let four = Layout { header: 4, ports: false };
        assert_eq!(four.parse(&[0xF0, 0, 0, 0]), Err(Error::UnknownKind(15)));
    }

    #[test]
    fn numbers_are_unwrapped_to_the_nearest() {
        assert_eq!(unwrap(0xFFFF, 0x1_0000, 16), 0xFFFF);
        assert_eq!(unwrap(0x0001, 0xFFFF, 16), 0x1_0001);
        assert_eq!(unwrap(5, 0, 24), 5);
        assert_eq!(unwrap(0, 0x1FF_FFFF, 24), 0x200_0000);
        for near in (0..1u64 << 20).step_by(977) {
            for off in [0u64, 1, 100, 30_000] {
                assert_eq!(unwrap((near + off) as u32 & 0xFFFF, near, 16), near + off);
                if near >= off {
                    assert_eq!(unwrap((near - off) as u32 & 0xFFFF, near, 16), near - off);
                }
            }
        }
    }
}
