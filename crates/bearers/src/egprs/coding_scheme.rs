//! Modulation and coding schemes MCS-1 to MCS-9: sizes, families, header types and the CPS field.

use std::fmt;

use airloom_base::Direction;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A modulation and coding scheme, 1 to 9. In scenarios: its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mcs(u8);

/// Blocks of a family can be sent again with another scheme of the same family (TS 44.060 8.1.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// MCS-3, MCS-6, MCS-8 and MCS-9.
    A,
    /// MCS-2, MCS-5 and MCS-7.
    B,
    /// MCS-1 and MCS-4.
    C,
}

/// Form of the RLC/MAC header (TS 44.060 10.3a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderType {
    /// Two RLC data blocks (MCS-7 to MCS-9).
    One,
    /// One block in 8-PSK (MCS-5 and MCS-6).
    Two,
    /// One block in GMSK (MCS-1 to MCS-4).
    Three,
}

impl HeaderType {
    /// Bits of the header.
    pub const fn bits(self, direction: Direction) -> usize {
        match (self, direction) {
            (HeaderType::One, Direction::Downlink) => 40,
            (HeaderType::One, Direction::Uplink) => 46,
            (HeaderType::Two, Direction::Downlink) => 28,
            (HeaderType::Two, Direction::Uplink) => 37,
            (HeaderType::Three, _) => 31,
        }
    }
    /// Bits of the CPS field.
    pub const fn cps_bits(self) -> u32 {
        match self {
            HeaderType::One => 5,
            HeaderType::Two => 3,
            HeaderType::Three => 4,
        }
    }
    /// Spare bits that fill the header of an uplink block up.
    pub const fn spare_bits(self) -> u32 {
        match self {
            HeaderType::One => 7,
            HeaderType::Two => 10,
            HeaderType::Three => 1,
        }
    }
}

/// What the coding and puncturing scheme field (CPS) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cps {
    /// Scheme of the radio block.
    pub mcs: Mcs,
    /// Puncturing scheme of each block in it, from 0 (P1). The second means nothing if there is one block.
    pub puncturing: [u8; 2],
    /// The block was first sent with MCS-8 and is filled up to the unit of MCS-6 or MCS-3.
    pub is_padded: bool,
}

/// Octets that fill a block of MCS-8 up to the unit of MCS-6.
pub const PADDING: usize = 6;

impl Mcs {
    /// All of them.
    pub const ALL: [Mcs; 9] = [Mcs(1), Mcs(2), Mcs(3), Mcs(4), Mcs(5), Mcs(6), Mcs(7), Mcs(8), Mcs(9)];

    /// MCS-`number`, 1 to 9.
    pub const fn new(number: u8) -> Option<Mcs> {
        if number >= 1 && number <= 9 { Some(Mcs(number)) } else { None }
    }
    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }
    /// RLC data octets of one block (TS 44.060 table 10.2.1).
    pub const fn octets(self) -> usize {
        [22, 28, 37, 44, 56, 74, 56, 68, 74][self.0 as usize - 1]
    }
    /// RLC data blocks in a radio block.
    pub const fn blocks(self) -> usize {
        if self.0 >= 7 { 2 } else { 1 }
    }
    /// Family.
    pub const fn family(self) -> Family {
        match self.0 {
            3 | 6 | 8 | 9 => Family::A,
            2 | 5 | 7 => Family::B,
            _ => Family::C,
        }
    }
    /// Header type.
    pub const fn header(self) -> HeaderType {
        match self.0 {
            1..=4 => HeaderType::Three,
            5 | 6 => HeaderType::Two,
            _ => HeaderType::One,
        }
    }
    /// Puncturing schemes that repetitions take in turn.
    pub const fn puncturing_schemes(self) -> u8 {
        match self.0 {
            1 | 2 | 5 | 6 => 2,
            _ => 3,
        }
    }
    /// Octets of a radio block in a capture: header, then each block with its two bits in front.
    pub const fn radio_block_octets(self, direction: Direction) -> usize {
        let bits = self.header().bits(direction) + self.blocks() * (2 + 8 * self.octets());
        bits.div_ceil(8)
    }
    /// The scheme of a radio block of so many octets.
    pub fn of_radio_block(direction: Direction, octets: usize) -> Option<Mcs> {
        Mcs::ALL.into_iter().find(|mcs| mcs.radio_block_octets(direction) == octets)
    }
    /// The scheme for one block where this one carries two.
    pub const fn alone(self) -> Mcs {
        match self.0 {
            7 => Mcs(5),
            8 | 9 => Mcs(6),
            _ => self,
        }
    }

    /// How a block of `octets` (as first sent) goes out when this scheme is asked for, if it can.
    pub const fn carries(self, octets: usize) -> Option<Carry> {
        //= TS 44.060 (8.1.1.1): a block is repeated with its own scheme or another of its family.
        match (self.0, octets) {
            (1, 44) | (2, 56) | (3, 74 | 68) => Some(Carry::Halves),
            (6, 68) => Some(Carry::Padded),
            (9, 68) => None,
            _ if self.octets() == octets => Some(Carry::Whole),
            _ => None,
        }
    }
}

/// How a scheme carries a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// As it is.
    Whole,
    /// With [`PADDING`] octets in front.
    Padded,
    /// In two radio blocks, half in each (resegmentation).
    Halves,
}

impl Cps {
    /// The code, if there is one for this.
    pub const fn code(self) -> Option<u8> {
        let [p, q] = self.puncturing;
        if p >= self.mcs.puncturing_schemes() || q >= self.mcs.puncturing_schemes() {
            return None;
        }
        //= TS 44.060 (10.4.8a): tables of the CPS field for header types 1, 2 and 3.
        Some(match (self.mcs.0, self.is_padded) {
            (9, false) => p * 4 + q,
            (8, false) => 11 + p * 3 + q,
            (7, false) => 20 + p * 3 + q,
            (6, false) => p,
            (6, true) => 2 + p,
            (5, false) => 4 + p,
            (4, false) => p,
            (3, false) => 3 + p,
            (3, true) => 6 + p,
            (2, false) => 9 + p,
            (1, false) => 11 + p,
            _ => return None,
        })
    }
    /// What `code` means in a header of type `header`.
    pub fn from_code(header: HeaderType, code: u8) -> Option<Cps> {
        let schemes = Mcs::ALL.into_iter().filter(|mcs| mcs.header() == header);
        let of = |mcs: Mcs| {
            let two = mcs.blocks() == 2;
            let n = mcs.puncturing_schemes();
            [false, true].into_iter().flat_map(move |is_padded| {
                (0..n).flat_map(move |p| {
                    (0..if two { n } else { 1 }).map(move |q| Cps { mcs, puncturing: [p, q], is_padded })
                })
            })
        };
        schemes.flat_map(of).find(|cps| cps.code() == Some(code))
    }
}

impl fmt::Display for Mcs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCS-{}", self.0)
    }
}

impl Serialize for Mcs {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u8(self.0)
    }
}

impl<'de> Deserialize<'de> for Mcs {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let number = u8::deserialize(d)?;
        Mcs::new(number).ok_or_else(|| de::Error::custom(format!("there is no MCS-{number}; valid: 1 to 9")))
    }
}

impl JsonSchema for Mcs {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Mcs".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": 9 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radio_blocks_have_the_lengths_that_networks_send() {
        let all = |direction| Mcs::ALL.map(|mcs| mcs.radio_block_octets(direction));
        assert_eq!(all(Direction::Downlink), [27, 33, 42, 49, 60, 78, 118, 142, 154]);
        assert_eq!(all(Direction::Uplink), [27, 33, 42, 49, 61, 79, 119, 143, 155]);
        for direction in Direction::BOTH {
            for mcs in Mcs::ALL {
                assert_eq!(Mcs::of_radio_block(direction, mcs.radio_block_octets(direction)), Some(mcs));
            }
        }
    }

    #[test]
    fn rates_are_those_of_the_standard() {
        // kbit/s of a timeslot with a block every 20 ms.
        let rates = Mcs::ALL.map(|m| m.octets() * m.blocks() * 8 * 50 / 100);
        assert_eq!(rates, [88, 112, 148, 176, 224, 296, 448, 544, 592]);
    }

    #[test]
    fn every_cps_code_means_one_thing_and_is_written_again() {
        let codes = |header: HeaderType| -> Vec<(u8, Cps)> {
            let all = 0..1u8 << header.cps_bits();
            all.filter_map(|code| Cps::from_code(header, code).map(|cps| (code, cps))).collect()
        };
        for (header, count) in [(HeaderType::One, 27), (HeaderType::Two, 6), (HeaderType::Three, 13)] {
            let known = codes(header);
            assert_eq!(known.len(), count, "{header:?}");
            for (code, cps) in known {
                assert_eq!(cps.code(), Some(code), "{cps:?}");
            }
        }
        // Reserved in header type 1.
        let ones: Vec<u8> = codes(HeaderType::One).into_iter().map(|(code, _)| code).collect();
        assert!([3, 7, 29, 30, 31].iter().all(|reserved| !ones.contains(reserved)), "{ones:?}");
    }

    #[test]
    fn a_block_changes_its_scheme_only_within_its_family() {
        for first in Mcs::ALL {
            for again in Mcs::ALL {
                if again.carries(first.octets()).is_some() {
                    assert_eq!(first.family(), again.family(), "{first} {again}");
                }
            }
        }
        let carry = |again, octets| Mcs(again).carries(octets);
        assert_eq!(carry(1, 44), Some(Carry::Halves));
        assert_eq!(carry(6, 68), Some(Carry::Padded));
        assert_eq!(carry(6, 74), Some(Carry::Whole));
        assert_eq!(carry(9, 74), Some(Carry::Whole));
        assert_eq!((carry(9, 68), carry(4, 22)), (None, None));
    }
}
