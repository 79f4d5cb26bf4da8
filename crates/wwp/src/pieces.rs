//! Segments that the path does not take whole: each leaves in pieces, and is whole again at the receiver.
//!
//! ASSUMPTION(wave-and-wait): ours. A segment that has its number keeps its octets, so one that turns out to be too long for the
//! path cannot be cut anew; its pieces carry its number, where they begin in it, and its length.

use std::collections::BTreeMap;

use airloom_base::Body;

use super::queue::Queue;
use super::wire::Error;

/// Octets that say which piece it is.
pub(super) const PIECE: usize = 4;
/// The longest segment that there is.
const LONGEST: u16 = 16_384;
/// It belongs to the last segment of a short wave.
const ENDS_WAVE: u16 = 1 << 15;
/// The most pieces that are kept of a segment: those of the longest on a path of a few hundred octets.
const MOST: usize = 128;

/// Which piece of a segment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where in the segment it begins.
    pub from: u16,
    /// Octets of the whole segment.
    pub of: u16,
    /// The segment is the last one of a short wave.
    pub ends_wave: bool,
}

impl Piece {
    pub fn emit(self) -> [u8; PIECE] {
        let [a, b] = (self.from | if self.ends_wave { ENDS_WAVE } else { 0 }).to_be_bytes();
        let [c, d] = self.of.to_be_bytes();
        [a, b, c, d]
    }

    pub fn parse(octets: &[u8]) -> Result<Piece, Error> {
        let &[a, b, c, d] = octets.first_chunk::<PIECE>().ok_or(Error::TooShort)?;
        let (from, of) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let piece = Piece { from: from & !ENDS_WAVE, of, ends_wave: from & ENDS_WAVE != 0 };
        (piece.from < of && of <= LONGEST).then_some(piece).ok_or(Error::Content)
    }
}

/// The pieces of one segment that have arrived.
#[derive(Debug, Default)]
pub(super) struct Pieces(BTreeMap<u16, Body>);

impl Pieces {
    /// Adds a piece; the segment, if that makes it whole. Pieces may overlap: the path may have become narrower between them.
    pub fn add(&mut self, piece: Piece, body: Body) -> Option<Body> {
        let fits = usize::from(piece.from) + body.len() <= usize::from(piece.of);
        if !fits || body.is_empty() || self.0.len() >= MOST {
            return None;
        }
        let longer = self.0.get(&piece.from).is_none_or(|b| b.len() < body.len());
        if longer {
            self.0.insert(piece.from, body);
        }
        let mut whole = Queue::default();
        for (from, body) in &self.0 {
            let skip = whole.len().checked_sub(usize::from(*from))?;
            if skip < body.len() {
                whole.push(body.slice(skip, body.len() - skip));
            }
        }
        (whole.len() == usize::from(piece.of)).then(|| whole.take(usize::from(piece.of)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(from: u16) -> Piece {
        Piece { from, of: 1000, ends_wave: false }
    }

    #[test]
    fn a_piece_is_read_as_it_was_written_and_one_beyond_its_segment_is_none() {
        for ends_wave in [false, true] {
            let piece = Piece { from: 999, of: 1000, ends_wave };
            assert_eq!(Piece::parse(&piece.emit()), Ok(piece));
        }
        for wrong in
            [piece(1000), Piece { from: 0, of: 0, ends_wave: true }, Piece { of: 16_385, ..piece(0) }]
        {
            assert_eq!(Piece::parse(&wrong.emit()), Err(Error::Content));
        }
        assert_eq!(Piece::parse(&[0, 0, 1]), Err(Error::TooShort));
    }

    #[test]
    fn pieces_in_any_order_doubled_and_overlapping_make_the_segment() {
        let whole = Body::filler(7, 1000);
        let cuts = [(600u16, 400usize), (0, 300), (0, 300), (500, 200), (200, 320)];
        let mut pieces = Pieces::default();
        for (n, (from, len)) in cuts.into_iter().enumerate() {
            let made = pieces.add(piece(from), whole.slice(usize::from(from), len));
            assert_eq!(made.map(|b| b.to_bytes()), (n == 4).then(|| whole.to_bytes()), "piece {n}");
        }
    }

    #[test]
    fn pieces_that_reach_beyond_their_segment_are_not_kept_and_no_more_than_some() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.add(piece(900), Body::filler(1, 101)), None);
        assert!(pieces.0.is_empty());
        for from in 0..1000 {
            assert_eq!(pieces.add(piece(from), Body::filler(from.into(), 1)), None);
        }
        assert_eq!(pieces.0.len(), MOST);
    }
}
