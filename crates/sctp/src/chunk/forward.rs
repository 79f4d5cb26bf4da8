//! FORWARD-TSN (RFC 3758, 3.2) and I-FORWARD-TSN (RFC 8260, 2.3.1).

use airloom_wire::Error;

use crate::octets::{get16, get32};

/// A message that will not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its stream.
    pub stream: u16,
    /// It was unordered (I-FORWARD-TSN only).
    pub unordered: bool,
    /// Its SSN or MID; all before it in the stream are skipped too.
    pub sequence: u32,
}

/// The sender gives up everything up to a TSN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardTsn {
    /// The new cumulative TSN.
    pub cumulative: u32,
    /// I-FORWARD-TSN.
    pub interleaved: bool,
    /// The last message skipped of each stream.
    pub skipped: Vec<Skipped>,
}

impl ForwardTsn {
    /// Octets of one entry.
    pub const fn entry(interleaved: bool) -> usize {
        if interleaved { 8 } else { 4 }
    }

    pub(super) fn wire_len(&self) -> usize {
        4 + self.skipped.len() * Self::entry(self.interleaved)
    }

    pub(super) fn parse(value: &[u8], interleaved: bool) -> Result<ForwardTsn, Error> {
        let cumulative = get32(value, 0)?;
        let entries = value[4..].chunks_exact(Self::entry(interleaved));
        if !entries.remainder().is_empty() {
            return Err(Error::Truncated);
        }
        let skip = |e: &[u8]| {
            Ok(Skipped {
                stream: get16(e, 0)?,
                unordered: interleaved && e[3] & 1 != 0,
                sequence: if interleaved { get32(e, 4)? } else { u32::from(get16(e, 2)?) },
            })
        };
        Ok(ForwardTsn { cumulative, interleaved, skipped: entries.map(skip).collect::<Result<_, Error>>()? })
    }

    pub(super) fn emit(&self, value: &mut [u8]) {
        value[..4].copy_from_slice(&self.cumulative.to_be_bytes());
        let places = value[4..].chunks_exact_mut(Self::entry(self.interleaved));
        for (place, skipped) in places.zip(&self.skipped) {
            place[..2].copy_from_slice(&skipped.stream.to_be_bytes());
            if self.interleaved {
                place[2..4].copy_from_slice(&u16::from(skipped.unordered).to_be_bytes());
                place[4..].copy_from_slice(&skipped.sequence.to_be_bytes());
            } else {
                place[2..].copy_from_slice(&(skipped.sequence as u16).to_be_bytes());
            }
        }
    }
}
