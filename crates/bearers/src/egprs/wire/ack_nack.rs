//! The EGPRS Ack/Nack Description (TS 44.060 12.3.1): which blocks have come.

use airloom_wire::bits::{BitReader, BitWriter};

use super::compression::{compress, expand};
use super::{Error, SNS};

/// What a receiver reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AckNack {
    /// Everything has come and the flow ends.
    pub is_final: bool,
    /// The report begins at V(Q): what lies before is acknowledged, and V(Q) itself, one before `ssn`, is missing.
    pub beginning_of_window: bool,
    /// It reaches to the last block received.
    pub end_of_window: bool,
    /// Sequence number of the bitmap's first bit.
    pub ssn: u16,
    /// From `ssn` on: has the block come?
    pub bitmap: Vec<bool>,
}

/// Bits of a description besides bitmaps, with its length field.
const FIXED: usize = 1 + 8 + BODY;
/// Those that the length field counts.
const BODY: usize = 1 + 1 + 1 + 11 + 1;
/// Bits in front of a compressed bitmap: its length and the colour of its first run.
const COMPRESSED: usize = 7 + 1;

/// A description ready to be written, with as much of the bitmap as there is room for.
#[derive(Clone, Debug, PartialEq, Eq, getset::Getters)]
pub struct Fitted {
    /// What the other end will read.
    #[getset(get = "pub")]
    report: AckNack,
    /// Colour of the first run and bits, if compression pays.
    compressed: Option<(bool, Vec<bool>)>,
    /// How much of the bitmap stands in the compressed part; the rest follows uncompressed.
    covered: usize,
}

impl AckNack {
    /// Cuts the bitmap to what fits into `room` bits (at least [`FIXED`]), compressed if that carries more.
    pub fn fit(mut self, room: usize, may_compress: bool) -> Fitted {
        let plain = room.saturating_sub(FIXED);
        let mut fitted = None;
        if may_compress && self.bitmap.len() > plain {
            let space = plain.saturating_sub(COMPRESSED).min(127);
            let (colour, bits, covered) = compress(&self.bitmap, space);
            let total = covered + (plain.saturating_sub(COMPRESSED) - bits.len());
            if total > plain {
                fitted = Some((colour, bits, covered, total));
            }
        }
        let carried = fitted.as_ref().map_or(plain, |(.., total)| *total);
        if self.bitmap.len() > carried {
            self.bitmap.truncate(carried);
            self.end_of_window = false;
        }
        match fitted {
            Some((colour, bits, covered, _)) => Fitted {
                covered: covered.min(self.bitmap.len()),
                compressed: Some((colour, bits)),
                report: self,
            },
            None => Fitted { report: self, compressed: None, covered: 0 },
        }
    }

    pub(super) fn read(r: &mut BitReader) -> Result<AckNack, Error> {
        let has_length = r.read(1)? == 1;
        let end = match has_length {
            true => {
                let length = r.read(8)? as usize;
                if length < BODY || length > r.remaining() {
                    return Err(Error::Truncated);
                }
                r.position() + length
            }
            // Without a length the bitmap takes the rest of the message.
            false => r.position() + r.remaining(),
        };
        let is_final = r.read(1)? == 1;
        let beginning_of_window = r.read(1)? == 1;
        let end_of_window = r.read(1)? == 1;
        let ssn = r.read(11)? as u16;
        let mut bitmap = Vec::new();
        if r.read(1)? == 1 {
            let length = r.read(7)? as usize;
            let colour = r.read(1)? == 1;
            if r.position() + length > end {
                return Err(Error::Truncated);
            }
            let bits = flags(r, length)?;
            bitmap = expand(colour, &bits, usize::from(SNS / 2)).ok_or(Error::Reserved("CRBB"))?;
        }
        let rest = end.saturating_sub(r.position());
        bitmap.extend(flags(r, rest)?);
        Ok(AckNack { is_final, beginning_of_window, end_of_window, ssn, bitmap })
    }
}

fn flags(r: &mut BitReader, count: usize) -> Result<Vec<bool>, Error> {
    (0..count).map(|_| Ok(r.read(1)? == 1)).collect()
}

impl Fitted {
    pub(super) fn write(&self, w: &mut BitWriter) -> Result<(), Error> {
        let AckNack { is_final, beginning_of_window, end_of_window, ssn, bitmap } = &self.report;
        let plain = &bitmap[self.covered.min(bitmap.len())..];
        let packed = self.compressed.as_ref().map_or(0, |(_, bits)| COMPRESSED + bits.len());
        w.write(1, 1)?;
        w.write(8, (BODY + packed + plain.len()) as u32)?;
        w.write(1, (*is_final).into())?;
        w.write(1, (*beginning_of_window).into())?;
        w.write(1, (*end_of_window).into())?;
        w.write(11, u32::from(*ssn))?;
        w.write(1, self.compressed.is_some().into())?;
        if let Some((colour, bits)) = &self.compressed {
            w.write(7, bits.len() as u32)?;
            w.write(1, (*colour).into())?;
            bits.iter().try_for_each(|bit| w.write(1, (*bit).into()))?;
        }
        plain.iter().try_for_each(|bit| w.write(1, (*bit).into()))?;
        Ok(())
    }
}
