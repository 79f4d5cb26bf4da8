//! The EGPRS Channel Quality Report (TS 44.060 12.5.2): what a mobile has measured.

use airloom_wire::bits::{BitReader, BitWriter};

use super::Error;

/// Bit error probability of one modulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bep {
    /// MEAN_BEP: 0 to 31, the higher the better.
    pub mean: u8,
    /// CV_BEP, its coefficient of variation: 0 to 7, the higher the steadier.
    pub variation: u8,
}

/// The report: of the modulations that blocks have come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelQuality {
    /// MCS-1 to MCS-4.
    pub gmsk: Option<Bep>,
    /// MCS-5 to MCS-9.
    pub psk8: Option<Bep>,
}

impl ChannelQuality {
    /// Bits it takes.
    pub(super) fn bits(&self) -> usize {
        let bep = |bep: Option<Bep>| if bep.is_some() { 1 + 5 + 3 } else { 1 };
        bep(self.gmsk) + bep(self.psk8) + 6 + 2
    }

    pub(super) fn write(&self, w: &mut BitWriter) -> Result<(), Error> {
        for bep in [self.gmsk, self.psk8] {
            w.write(1, bep.is_some().into())?;
            if let Some(Bep { mean, variation }) = bep {
                w.write(5, mean.into())?;
                w.write(3, variation.into())?;
            }
        }
        w.write(6, 0)?; // C_VALUE: the level of the carrier, which nothing here models
        w.write(2, 0)?; // no measurements by timeslot, none of interference
        Ok(())
    }

    pub(super) fn read(r: &mut BitReader) -> Result<ChannelQuality, Error> {
        let bep = |r: &mut BitReader| -> Result<Option<Bep>, Error> {
            Ok(match r.read(1)? {
                0 => None,
                _ => Some(Bep { mean: r.read(5)? as u8, variation: r.read(3)? as u8 }),
            })
        };
        let quality = ChannelQuality { gmsk: bep(r)?, psk8: bep(r)? };
        r.read(6)?;
        if r.read(1)? == 1 {
            // By timeslot, if there: which modulation, and four bits.
            for _ in 0..8 {
                if r.read(1)? == 1 {
                    r.read(5)?;
                }
            }
        }
        if r.read(1)? == 1 {
            for _ in 0..8 {
                if r.read(1)? == 1 {
                    r.read(4)?;
                }
            }
        }
        Ok(quality)
    }
}
