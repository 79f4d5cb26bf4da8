//! RLC/MAC headers of EGPRS data blocks (TS 44.060 10.3a).

use airloom_base::Direction;

use super::bits::{LsbReader, LsbWriter};
use super::{Error, SNS};
use crate::egprs::coding_scheme::{Cps, HeaderType};

/// What the ES/P field asks for (TS 44.060 10.4.4b).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::FromRepr)]
#[repr(u16)]
pub enum Poll {
    /// Nothing.
    #[default]
    None = 0,
    /// A report from the beginning of the window: first partial bitmap.
    First = 1,
    /// A report that goes on where the last one ended: next partial bitmap.
    Next = 2,
    /// As [`Next`](Poll::Next), with the measurement report.
    NextWithMeasurement = 3,
}

/// Which part of a block that was cut in two (SPB field).
//= TS 44.060 (10.4.8b): 0 0 no split, 1 0 first part, 1 1 second part; 0 1 is not used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::FromRepr)]
#[repr(u16)]
pub enum Split {
    /// A whole block.
    #[default]
    Whole = 0,
    /// Its first half.
    First = 2,
    /// Its second half.
    Second = 3,
}

/// Header of a downlink block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownlinkHeader {
    /// Who may use the next uplink block of the timeslot.
    pub usf: u8,
    /// Report asked for.
    pub poll: Poll,
    /// When to answer: 0 to 3 for 3 to 6 block periods later.
    pub rrbp: u8,
    /// Flow.
    pub tfi: u8,
    /// Power reduction.
    pub pr: u8,
    /// Sequence number of the first block, and of the second (the same if there is one).
    pub bsn: [u16; 2],
    /// Coding and puncturing.
    pub cps: Cps,
    /// Part of the block (header type 3).
    pub split: Split,
}

/// Header of an uplink block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkHeader {
    /// Was the access request sent more than once?
    pub retry: bool,
    /// Is the window stalled (SI)?
    pub is_stalled: bool,
    /// Countdown value: 15 unless the end is near.
    pub cv: u8,
    /// Flow.
    pub tfi: u8,
    /// Sequence number of the first block, and of the second (the same if there is one).
    pub bsn: [u16; 2],
    /// Coding and puncturing.
    pub cps: Cps,
    /// Part of the block (header type 3).
    pub split: Split,
    /// Is the block sent again (RSB)?
    pub is_resent: bool,
    /// Is a PFI included (PI)? Never by us.
    pub has_pfi: bool,
}

/// Header of either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Towards the mobile.
    Downlink(DownlinkHeader),
    /// Towards the network.
    Uplink(UplinkHeader),
}

impl Header {
    /// Direction of travel.
    pub const fn direction(&self) -> Direction {
        match self {
            Header::Downlink(_) => Direction::Downlink,
            Header::Uplink(_) => Direction::Uplink,
        }
    }
    /// Coding and puncturing.
    pub const fn cps(&self) -> Cps {
        match self {
            Header::Downlink(h) => h.cps,
            Header::Uplink(h) => h.cps,
        }
    }
    /// Sequence numbers.
    pub const fn bsn(&self) -> [u16; 2] {
        match self {
            Header::Downlink(h) => h.bsn,
            Header::Uplink(h) => h.bsn,
        }
    }
    /// Part of the block.
    pub const fn split(&self) -> Split {
        match self {
            Header::Downlink(h) => h.split,
            Header::Uplink(h) => h.split,
        }
    }

    pub(super) fn write(&self, w: &mut LsbWriter) -> Result<(), Error> {
        let cps = self.cps();
        let kind = cps.mcs.header();
        let code = cps.code().ok_or(Error::Reserved("CPS"))?;
        let two = kind == HeaderType::One;
        let [bsn, second] = self.bsn();
        // The second number is a distance from the first (10.4.12a), in ten bits.
        let distance = second.wrapping_sub(bsn) % SNS;
        if two && distance >= SNS / 2 {
            return Err(Error::Reserved("BSN2"));
        }
        let block = |w: &mut LsbWriter| {
            w.write(11, bsn);
            if two {
                w.write(10, distance);
            }
            w.write(kind.cps_bits(), code.into());
            if kind == HeaderType::Three {
                w.write(2, self.split() as u16);
            }
        };
        match self {
            Header::Downlink(h) => {
                w.write(3, h.usf.into());
                w.write(2, h.poll as u16);
                w.write(2, h.rrbp.into());
                w.write(5, h.tfi.into());
                w.write(2, h.pr.into());
                block(w);
            }
            Header::Uplink(h) => {
                w.write(1, h.retry.into());
                w.write(1, h.is_stalled.into());
                w.write(4, h.cv.into());
                w.write(5, h.tfi.into());
                block(w);
                w.write(1, h.is_resent.into());
                w.write(1, h.has_pfi.into());
                w.write(kind.spare_bits(), 0);
            }
        }
        Ok(())
    }

    pub(super) fn read(direction: Direction, kind: HeaderType, r: &mut LsbReader) -> Result<Header, Error> {
        let two = kind == HeaderType::One;
        let numbers = |r: &mut LsbReader| -> Result<[u16; 2], Error> {
            let bsn = r.read(11)?;
            let distance = if two { r.read(10)? } else { 0 };
            Ok([bsn, (bsn + distance) % SNS])
        };
        let cps = |r: &mut LsbReader| -> Result<Cps, Error> {
            let code = r.read(kind.cps_bits())?;
            Cps::from_code(kind, code as u8).ok_or(Error::Reserved("CPS"))
        };
        let split = |r: &mut LsbReader| match kind {
            HeaderType::Three => Split::from_repr(r.read(2)?).ok_or(Error::Reserved("SPB")),
            _ => Ok(Split::Whole),
        };
        Ok(match direction {
            Direction::Downlink => Header::Downlink(DownlinkHeader {
                usf: r.read(3)? as u8,
                poll: Poll::from_repr(r.read(2)?).unwrap_or_default(),
                rrbp: r.read(2)? as u8,
                tfi: r.read(5)? as u8,
                pr: r.read(2)? as u8,
                bsn: numbers(r)?,
                cps: cps(r)?,
                split: split(r)?,
            }),
            Direction::Uplink => {
                let header = UplinkHeader {
                    retry: r.flag()?,
                    is_stalled: r.flag()?,
                    cv: r.read(4)? as u8,
                    tfi: r.read(5)? as u8,
                    bsn: numbers(r)?,
                    cps: cps(r)?,
                    split: split(r)?,
                    is_resent: r.flag()?,
                    has_pfi: r.flag()?,
                };
                r.read(kind.spare_bits())?;
                Header::Uplink(header)
            }
        })
    }
}
