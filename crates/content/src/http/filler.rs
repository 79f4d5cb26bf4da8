//! A body of any length that nobody has written down.

use airloom_base::{Body, Filler};

/// Most octets of a filler that wait as one piece.
const PIECE: u64 = 1 << 30;

/// What follows of a filler that may be longer than a body can say.
#[derive(Clone, Copy, Debug, Default)]
pub struct LongFiller {
    source: u32,
    offset: u64,
    left: u64,
}

impl LongFiller {
    /// The first `size` octets of a source.
    pub const fn new(source: u32, size: u64) -> Self {
        LongFiller { source, offset: 0, left: size }
    }

    /// Takes the next piece.
    pub fn next(&mut self) -> Option<Body> {
        let len = self.left.min(PIECE) as u32;
        let piece = Filler { source: self.source, offset: self.offset, len };
        self.offset += u64::from(len);
        self.left -= u64::from(len);
        Some(Body::Filler(piece)).filter(|piece| !piece.is_empty())
    }
}
