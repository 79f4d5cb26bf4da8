//! Segments that the path does not take whole: each leaves in pieces, and is whole again at the receiver.
//!
//! ASSUMPTION(wave-and-wait): ours. A segment that has its number keeps its octets, so one that turns out to be too long for the
//! path cannot be cut anew; its pieces carry its number, where they begin in it, and its length.

use std::collections::BTreeMap;

use airloom_base::Body;
use bytes::Bytes;

use super::queue::Queue;
use super::wire::Error;

/// Octets that say which piece it is.
pub(super) const PIECE: usize = 4;
/// The longest segment that there is.
pub(super) const LONGEST: u16 = 16_384;
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

/// The pieces of one segment that have arrived, none of which has octets of another one.
#[derive(Debug, Default)]
pub(super) struct Pieces(BTreeMap<u16, Body>);

impl Pieces {
    /// Adds a piece; the segment, if that makes it whole. Pieces may overlap: the path may have become narrower between them.
    pub fn add(&mut self, piece: Piece, body: Body) -> Option<Body> {
        let (from, of) = (usize::from(piece.from), usize::from(piece.of));
        if from + body.len() > of || body.is_empty() || self.0.len() >= MOST {
            return None;
        }
        self.keep(from, &body)?;
        let mut whole = Queue::default();
        for (from, body) in &self.0 {
            if usize::from(*from) != whole.len() {
                return None;
            }
            whole.push(body.clone());
        }
        (whole.len() == of).then(|| whole.take(of))
    }

    /// Keeps what of a piece the others lack, and none of those that it covers; `None` if all of it is there.
    fn keep(&mut self, from: usize, body: &Body) -> Option<()> {
        let ends = |(at, body): (&u16, &Body)| usize::from(*at) + body.len();
        let before = self.0.range(..=from as u16).next_back().map_or(0, ends);
        let (begin, mut end) = (from.max(before), from + body.len());
        while let Some((at, ends)) = self.0.range(begin as u16..).next().map(|next| (*next.0, ends(next))) {
            if ends > end {
                end = end.min(usize::from(at));
                break;
            }
            self.0.remove(&at);
        }
        let part = body.slice(begin - from, end.checked_sub(begin).filter(|len| *len > 0)?);
        let part = match part {
            // A part of octets that are there holds all of them.
            Body::Real(octets) if octets.len() < body.len() => Body::Real(Bytes::copy_from_slice(&octets)),
            part => part,
        };
        self.0.insert(begin as u16, part);
        Some(())
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
    fn pieces_have_no_more_octets_than_their_segment_however_they_overlap() {
        let whole = Body::Real(Body::filler(7, 1000).to_bytes());
        let mut pieces = Pieces::default();
        // All up to the last octet but one, from everywhere; then what is there already.
        for (from, len) in (0..999).rev().map(|k| (k, 999 - k)).chain([(300, 50), (700, 1), (0, 999)]) {
            assert_eq!(pieces.add(piece(from as u16), whole.slice(from, len)), None);
        }
        let octets = |pieces: &Pieces| pieces.0.values().map(Body::len).sum::<usize>();
        assert_eq!((pieces.0.len(), octets(&pieces)), (1, 999));
        let mut pieces = Pieces::default();
        for from in (1..900).step_by(9).rev() {
            assert_eq!(pieces.add(piece(from), whole.slice(usize::from(from), 99)), None);
            assert!(octets(&pieces) <= 1000, "{from}");
        }
        assert_eq!(pieces.add(piece(0), whole.slice(0, 2)), None);
        assert_eq!(
            pieces.add(piece(950), whole.slice(950, 50)).map(|b| b.to_bytes()),
            Some(whole.to_bytes())
        );
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
