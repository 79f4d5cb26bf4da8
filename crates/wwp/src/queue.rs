//! What the application wrote and no segment carries yet.

use std::collections::VecDeque;

use airloom_base::Body;
use bytes::BytesMut;

/// Octets in order, from which segments are cut.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pieces: VecDeque<Body>,
    octets: usize,
}

impl Queue {
    /// Octets in it.
    pub fn len(&self) -> usize {
        self.octets
    }

    /// Nothing in it?
    pub fn is_empty(&self) -> bool {
        self.octets == 0
    }

    /// Adds octets behind the others.
    pub fn push(&mut self, body: Body) {
        if body.is_empty() {
            return;
        }
        self.octets += body.len();
        let left = match self.pieces.back_mut() {
            Some(last) => last.try_join(body).err(),
            None => Some(body),
        };
        self.pieces.extend(left);
    }

    /// The first octets, at most `max`, as one body.
    pub fn take(&mut self, max: usize) -> Body {
        let mut body = self.piece(max);
        while body.len() < max && !self.pieces.is_empty() {
            let next = self.piece(max - body.len());
            if let Err(next) = body.try_join(next) {
                // Pieces of different origin: their octets have to be made.
                let mut octets = BytesMut::with_capacity(max.min(body.len() + next.len() + self.octets));
                octets.extend_from_slice(&body.to_bytes());
                octets.extend_from_slice(&next.to_bytes());
                while octets.len() < max && !self.pieces.is_empty() {
                    let next = self.piece(max - octets.len());
                    octets.extend_from_slice(&next.to_bytes());
                }
                return Body::Real(octets.freeze());
            }
        }
        body
    }

    /// The first octets of the first piece.
    pub fn piece(&mut self, max: usize) -> Body {
        let Some(first) = self.pieces.front_mut() else { return Body::EMPTY };
        let body = first.split_to(max);
        if first.is_empty() {
            self.pieces.pop_front();
        }
        self.octets -= body.len();
        body
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn segments_are_cut_over_the_ends_of_pieces() {
        let mut queue = Queue::default();
        let pieces = [
            Body::filler(1, 10),
            Body::Real(Bytes::from_static(b"abc")),
            Body::filler(2, 4),
            Body::filler(3, 9),
        ];
        let whole: Vec<u8> = pieces.iter().flat_map(|p| p.to_bytes().to_vec()).collect();
        pieces.iter().for_each(|p| queue.push(p.clone()));
        assert_eq!(queue.len(), whole.len());
        let mut read = Vec::new();
        for max in [4, 8, 7, 100] {
            let body = queue.take(max);
            assert_eq!(body.len(), max.min(whole.len() - read.len()));
            read.extend_from_slice(&body.to_bytes());
        }
        assert_eq!(read, whole);
        assert!(queue.is_empty());
        assert!(queue.take(5).is_empty());
    }

    #[test]
    fn fillers_that_follow_each_other_stay_fillers() {
        let mut queue = Queue::default();
        let mut whole = Body::filler(7, 3000);
        queue.push(whole.split_to(1000));
        queue.push(whole);
        assert_eq!(queue.take(2000), Body::filler(7, 2000));
    }
}
