//! Long lists of small pieces are joined, so that octets which come one at a time do not cost a block of memory each.

use airloom_base::Body;
use bytes::BytesMut;

/// Pieces below this are joined.
const SMALL: usize = 256;
/// They are joined to pieces of at most this.
const JOINED: usize = 4096;
/// Shorter lists are left as they are: joining copies.
const FEW: usize = 64;

/// Joins `next` on to `last`, the last but `before` of a list: fillers that follow each other always, small real pieces
/// where the list is long. Gives it back otherwise.
#[inline]
pub(super) fn join(last: &mut Body, before: usize, next: Body) -> Result<(), Body> {
    match last.try_join(next) {
        Err(next) if before >= FEW => join_small(last, next),
        done => done,
    }
}

#[cold]
fn join_small(last: &mut Body, next: Body) -> Result<(), Body> {
    match (&mut *last, &next) {
        (Body::Real(whole), Body::Real(piece))
            if piece.len() < SMALL && whole.len() + piece.len() <= JOINED =>
        {
            let mut joined = std::mem::take(whole).try_into_mut().unwrap_or_else(|shared| {
                let mut own = BytesMut::with_capacity(JOINED);
                own.extend_from_slice(&shared);
                own
            });
            joined.extend_from_slice(piece);
            *whole = joined.freeze();
            Ok(())
        }
        _ => Err(next),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn octets_that_come_one_at_a_time_fill_pieces_of_four_kilobytes() {
        let whole = Body::filler(9, 100_000).to_bytes();
        let mut list: Vec<Body> = Vec::new();
        for at in 0..whole.len() {
            let octet = Body::Real(Bytes::copy_from_slice(&whole[at..=at]));
            let before = list.len();
            match list.last_mut().map_or(Err(octet.clone()), |last| join(last, before, octet)) {
                Ok(()) => {}
                Err(octet) => list.push(octet),
            }
        }
        assert_eq!(list.len(), FEW - 1 + (100_000 - FEW + 1).div_ceil(JOINED));
        let read: Vec<u8> = list.iter().flat_map(|b| b.to_bytes().to_vec()).collect();
        assert_eq!(read, whole);
    }

    #[test]
    fn a_piece_that_is_shared_keeps_its_octets() {
        let shared = Bytes::from_static(b"abc");
        let mut last = Body::Real(shared.clone());
        assert!(join(&mut last, FEW, Body::Real(Bytes::from_static(b"d"))).is_ok());
        assert_eq!((&last.to_bytes()[..], &shared[..]), (&b"abcd"[..], &b"abc"[..]));
    }
}
