//! SACK (RFC 9260, 3.3.4).

use airloom_wire::Error;

use crate::octets::{get16, get32};

/// What a receiver has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    /// Everything up to this TSN.
    pub cumulative: u32,
    /// Octets of its buffer that are free.
    pub window: u32,
    /// Runs of TSNs that it has besides: first and last, counted from `cumulative`.
    pub gaps: Vec<(u16, u16)>,
    /// TSNs that came more than once.
    pub duplicates: Vec<u32>,
}

impl Sack {
    /// Octets behind the chunk header without gaps and duplicates.
    pub const FIXED: usize = 12;

    pub(super) fn wire_len(&self) -> usize {
        Self::FIXED + 4 * (self.gaps.len() + self.duplicates.len())
    }

    pub(super) fn parse(value: &[u8]) -> Result<Sack, Error> {
        let (gaps, duplicates) = (usize::from(get16(value, 8)?), usize::from(get16(value, 10)?));
        let lists = value.get(Self::FIXED..).ok_or(Error::Truncated)?;
        if lists.len() < 4 * (gaps + duplicates) {
            return Err(Error::Truncated);
        }
        let word = |n: usize| get32(lists, 4 * n);
        Ok(Sack {
            cumulative: get32(value, 0)?,
            window: get32(value, 4)?,
            gaps: (0..gaps)
                .map(|n| word(n).map(|w| ((w >> 16) as u16, w as u16)))
                .collect::<Result<_, _>>()?,
            duplicates: (gaps..gaps + duplicates).map(word).collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn emit(&self, value: &mut [u8]) {
        value[..4].copy_from_slice(&self.cumulative.to_be_bytes());
        value[4..8].copy_from_slice(&self.window.to_be_bytes());
        value[8..10].copy_from_slice(&(self.gaps.len() as u16).to_be_bytes());
        value[10..12].copy_from_slice(&(self.duplicates.len() as u16).to_be_bytes());
        let words = self.gaps.iter().map(|(first, last)| u32::from(*first) << 16 | u32::from(*last));
        for (place, word) in
            value[Self::FIXED..].chunks_exact_mut(4).zip(words.chain(self.duplicates.iter().copied()))
        {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }
}
