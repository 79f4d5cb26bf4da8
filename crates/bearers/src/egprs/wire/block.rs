//! A radio block: header, and one or two RLC data blocks.

use airloom_base::Direction;

use super::Error;
use super::bits::{LsbReader, LsbWriter};
use super::header::{Header, Split};
use crate::egprs::coding_scheme::Mcs;

/// Length indicator: the rest of the block is filler (TS 44.060 10.4.14a).
pub const FILLER: u8 = 127;
/// Value of filler octets.
pub const FILLER_OCTET: u8 = 0x2B;

/// An RLC data block unit: the octets between the headers, and the two bits in front of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Are there length indicators (the E bit is 0)?
    pub has_li: bool,
    /// Final block indicator (downlink) or TLLI indicator (uplink).
    pub flag: bool,
    /// Length indicators, data, filler.
    pub octets: Vec<u8>,
}

/// A radio block with RLC data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioBlock {
    /// Header.
    pub header: Header,
    /// One RLC data block, or two.
    pub units: Vec<Unit>,
}

impl RadioBlock {
    /// Reads a block; its length says the scheme.
    pub fn parse(direction: Direction, octets: &[u8]) -> Result<RadioBlock, Error> {
        let by_length = Mcs::of_radio_block(direction, octets.len()).ok_or(Error::Length)?;
        let mut r = LsbReader::new(octets);
        let header = Header::read(direction, by_length.header(), &mut r)?;
        let mcs = header.cps().mcs;
        if mcs != by_length {
            return Err(Error::Reserved("CPS"));
        }
        if header.split() != Split::Whole && mcs.number() > 3 {
            return Err(Error::Reserved("SPB"));
        }
        let mut units = Vec::with_capacity(mcs.blocks());
        for _ in 0..mcs.blocks() {
            //= TS 44.060 (10.3a.1, 10.3a.2): E is bit 1, FBI or TI bit 2 in front of the data; E = 1: no indicators.
            let (no_li, flag) = (r.flag()?, r.flag()?);
            let mut octets = Vec::with_capacity(mcs.octets());
            for _ in 0..mcs.octets() {
                octets.push(r.read(8)? as u8);
            }
            units.push(Unit { has_li: !no_li, flag, octets });
        }
        Ok(RadioBlock { header, units })
    }

    /// Appends the block as a capture holds it.
    pub fn append(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let mcs = self.header.cps().mcs;
        if self.units.len() != mcs.blocks() || self.units.iter().any(|u| u.octets.len() != mcs.octets()) {
            return Err(Error::Length);
        }
        let mut w = LsbWriter::new(out);
        self.header.write(&mut w)?;
        for unit in &self.units {
            w.write(1, (!unit.has_li).into());
            w.write(1, unit.flag.into());
            unit.octets.iter().for_each(|octet| w.write(8, (*octet).into()));
        }
        Ok(())
    }
}

/// A length indicator octet: value, and is another one to follow?
pub const fn li_octet(value: u8, more: bool) -> u8 {
    // E = 0: another extension octet follows.
    value << 1 | !more as u8
}

/// A piece of an upper PDU in an RLC data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins in the unit's octets.
    pub from: usize,
    /// Its octets; 0 if only the end of the PDU before is told.
    pub len: usize,
    /// Does the PDU end with it?
    pub ends: bool,
}

/// The pieces that a whole block's indicators tell of, in order; `unit` is not a half.
pub fn pieces(unit: &Unit) -> Result<Vec<Piece>, Error> {
    let mut lis = Vec::new();
    let mut at = 0;
    if unit.has_li {
        loop {
            let octet = *unit.octets.get(at).ok_or(Error::LengthIndicator)?;
            at += 1;
            lis.push(octet >> 1);
            if octet & 1 == 1 {
                break;
            }
        }
    }
    let end = unit.octets.len();
    let mut pieces = Vec::with_capacity(lis.len() + 1);
    let mut is_filled = false;
    for (n, li) in lis.iter().enumerate() {
        match *li {
            FILLER if n + 1 == lis.len() => is_filled = true,
            //= TS 44.060 (10.4.14a): 0 only as the first indicator: the PDU before ended exactly with its block.
            0 if n == 0 => pieces.push(Piece { from: at, len: 0, ends: true }),
            0 | FILLER => return Err(Error::LengthIndicator),
            len => {
                let len = usize::from(len);
                if at + len > end {
                    return Err(Error::LengthIndicator);
                }
                pieces.push(Piece { from: at, len, ends: true });
                at += len;
            }
        }
    }
    if !is_filled && at < end {
        pieces.push(Piece { from: at, len: end - at, ends: false });
    }
    Ok(pieces)
}
