//! What control segments carry behind the header.
//!
//! ASSUMPTION(wave-and-wait): all of it is ours; the paper refers to another one for it.

use bytes::{BufMut, Bytes, BytesMut};

use super::wire::{Error, MAX_LEVEL};

/// The version of what is said here.
const VERSION: u8 = 1;
/// The most segments that a wave can have.
pub(super) const LARGEST_WAVE: u16 = 1024;

/// What a SYN says: the opener's waves are the waves of both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Syn {
    /// Names the connection in whatever opens or ends it.
    pub tag: u32,
    /// The opener's port and the other.
    pub ports: (u16, u16),
    /// W(1), W(2), ...: segments of a wave of each level.
    pub waves: Vec<u16>,
}

impl Syn {
    pub fn emit(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(10 + 2 * self.waves.len());
        out.put_u32(self.tag);
        out.put_u16(self.ports.0);
        out.put_u16(self.ports.1);
        out.put_u8(VERSION);
        out.put_u8(self.waves.len() as u8);
        self.waves.iter().for_each(|w| out.put_u16(*w));
        out.freeze()
    }

    pub fn parse(octets: &[u8]) -> Result<Syn, Error> {
        let tag = tag(octets)?;
        let ports = ports(octets)?;
        let (&[version, levels], rest) =
            octets.get(8..).and_then(|o| o.split_first_chunk()).ok_or(Error::TooShort)?;
        let waves: Vec<u16> = rest.chunks_exact(2).map(|o| u16::from_be_bytes([o[0], o[1]])).collect();
        if version != VERSION || waves.len() != usize::from(levels) || rest.len() % 2 != 0 {
            return Err(Error::Content);
        }
        are_waves(&waves).then_some(Syn { tag, ports, waves }).ok_or(Error::Content)
    }
}

/// Can these be the waves of levels 1, 2, ...?
pub(super) fn are_waves(waves: &[u16]) -> bool {
    (1..=usize::from(MAX_LEVEL)).contains(&waves.len())
        && waves.first().is_some_and(|w| *w > 0)
        && waves.last().is_some_and(|w| *w <= LARGEST_WAVE)
        && waves.is_sorted_by(|a, b| a < b)
}

/// The tag that whatever opens or ends a connection begins with.
pub(super) fn tag(octets: &[u8]) -> Result<u32, Error> {
    octets.first_chunk().map(|t| u32::from_be_bytes(*t)).ok_or(Error::TooShort)
}

/// The ports in a SYN.
pub(super) fn ports(octets: &[u8]) -> Result<(u16, u16), Error> {
    match octets.get(4..8) {
        Some(&[a, b, c, d]) => Ok((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))),
        _ => Err(Error::TooShort),
    }
}

/// A run of segments that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first.
    pub from: u64,
    /// How many; `None`: nothing from there on has arrived.
    pub count: Option<u8>,
}

/// What an N-S_ACK says beside its header: which segments are missing.
///
/// Two octets with the number of runs, then four for each: 24 bits of its first number and eight of its count, where 0 leaves
/// the end open. An N-S_ACK may be filled up with zeros.
pub(super) fn emit_runs(runs: &[Run], at_least: usize) -> Bytes {
    let mut out = BytesMut::with_capacity((2 + 4 * runs.len()).max(at_least));
    out.put_u16(runs.len() as u16);
    for run in runs {
        out.put_u32((run.from as u32) << 8 | u32::from(run.count.unwrap_or(0)));
    }
    if out.len() < at_least {
        out.put_bytes(0, at_least - out.len());
    }
    out.freeze()
}

/// Reads them; numbers are near `near`.
pub(super) fn parse_runs(octets: &[u8], near: u64) -> Result<Vec<Run>, Error> {
    let (count, rest) = octets.split_first_chunk().ok_or(Error::TooShort)?;
    let len = 4 * usize::from(u16::from_be_bytes(*count));
    let runs = rest.get(..len).ok_or(Error::TooShort)?.chunks_exact(4).map(|o| Run {
        from: super::wire::unwrap(u32::from_be_bytes([0, o[0], o[1], o[2]]), near, 24),
        count: (o[3] != 0).then_some(o[3]),
    });
    Ok(runs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syn_is_read_as_it_was_written_and_impossible_waves_are_refused() {
        let syn = |waves: &[u16]| Syn { tag: 0xABCD_EF01, ports: (49_152, 80), waves: waves.to_vec() };
        let good = syn(&[12, 24, 36]);
        assert_eq!(Syn::parse(&good.emit()), Ok(good.clone()));
        for len in 0..good.emit().len() {
            assert!(Syn::parse(&good.emit()[..len]).is_err(), "{len} octets");
        }
        for waves in [&[][..], &[0], &[2, 2], &[3, 1], &[1, 2000], &[1; 16]] {
            assert_eq!(Syn::parse(&syn(waves).emit()), Err(Error::Content), "{waves:?}");
        }
        let mut other = good.emit().to_vec();
        other[8] = 2;
        assert_eq!(Syn::parse(&other), Err(Error::Content));
    }

    #[test]
    fn runs_are_read_as_they_were_written_padded_or_not() {
        let near = 0x300_0005;
        let runs = [Run { from: near, count: Some(3) }, Run { from: near + 10, count: None }];
        for at_least in [0, 30] {
            let octets = emit_runs(&runs, at_least);
            assert_eq!(octets.len(), at_least.max(10));
            assert_eq!(parse_runs(&octets, near).as_deref(), Ok(&runs[..]));
        }
        assert_eq!(parse_runs(&[0, 2, 0, 0, 0, 0], 0), Err(Error::TooShort));
    }
}
