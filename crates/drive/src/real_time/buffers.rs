//! Memory for frames: lent to the model, taken back when nothing of it is on its way any more.
//!
//! A large frame (a super-packet) stays in the buffer it was read into, and the datagrams cut from it are ranges of
//! that. A small one is copied behind others into a chunk, so that it does not hold 64 KB. Nothing is allocated in
//! steady state: a buffer whose last range is gone serves again.
//!
//! The total is bounded. A model that holds more than that (a flood into a slow link without a queue limit) costs
//! frames, which are counted, and never the machine's memory.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Octets of a buffer: the largest IP datagram with its Ethernet and offload headers. A little more, so that
/// neighbours do not begin at the same place of the processor's caches.
pub(super) const SIZE: usize = 66_000;
/// What is no larger than this is copied into a chunk.
const SMALL: usize = 4096;
/// How many small frames share a chunk: each also occupies a packet's own memory, a few hundred octets.
const PER_CHUNK: u32 = 128;
/// How many lent buffers are looked at for one that came back.
const LOOKS: usize = 4;
/// Buffers that came back are kept up to this number.
const KEPT: usize = 64;

/// A bounded number of buffers.
#[derive(Default)]
pub(super) struct Buffers {
    /// Buffers handed out whole, oldest first.
    lent: VecDeque<Bytes>,
    /// Chunks that are full, oldest first.
    full: VecDeque<BytesMut>,
    chunk: BytesMut,
    in_chunk: u32,
    limit: usize,
}

impl Buffers {
    /// At most so many octets, rounded to whole buffers.
    pub(super) fn new(octets: usize) -> Buffers {
        Buffers { limit: octets / SIZE, ..Default::default() }
    }

    fn has_room(&self) -> bool {
        self.lent.len() + self.full.len() < self.limit
    }

    /// A buffer of [`SIZE`] octets to read into.
    pub(super) fn fresh(&mut self) -> Option<BytesMut> {
        for _ in 0..LOOKS {
            let Some(oldest) = self.lent.pop_front() else { break };
            match oldest.try_into_mut() {
                Ok(back) => {
                    if self.lent.len() > KEPT {
                        self.forget_one();
                    }
                    return Some(back);
                }
                Err(busy) => self.lent.push_back(busy),
            }
        }
        self.has_room().then(|| BytesMut::zeroed(SIZE))
    }

    /// Gives memory of quieter times back to the system.
    fn forget_one(&mut self) {
        if self.lent.front().is_some_and(Bytes::is_unique) {
            self.lent.pop_front();
        }
    }

    /// The first `len` octets of `buffer`, to be shared; `buffer` becomes another one. `None` if there is no more
    /// memory: what was read is lost.
    pub(super) fn share(&mut self, buffer: &mut BytesMut, len: usize) -> Option<Bytes> {
        if len <= SMALL {
            return self.copy(&buffer[..len]);
        }
        let next = self.fresh()?;
        let whole = std::mem::replace(buffer, next).freeze();
        self.lent.push_back(whole.clone());
        Some(whole.slice(..len))
    }

    /// A copy of a few octets.
    fn copy(&mut self, octets: &[u8]) -> Option<Bytes> {
        self.write(octets.len(), |room| room.extend_from_slice(octets))
    }

    /// `len` octets, at most [`SIZE`], that `fill` appends.
    pub(super) fn write(&mut self, len: usize, fill: impl FnOnce(&mut BytesMut)) -> Option<Bytes> {
        if self.chunk.capacity() < len || self.in_chunk >= PER_CHUNK {
            self.next_chunk()?;
        }
        self.in_chunk += 1;
        fill(&mut self.chunk);
        Some(self.chunk.split().freeze())
    }

    fn next_chunk(&mut self) -> Option<()> {
        let mut next = None;
        for _ in 0..LOOKS {
            let Some(mut oldest) = self.full.pop_front() else { break };
            if oldest.try_reclaim(SIZE) {
                next = Some(oldest);
                break;
            }
            self.full.push_back(oldest);
        }
        let next = match next {
            Some(chunk) => chunk,
            None if self.has_room() => BytesMut::with_capacity(SIZE),
            None => return None,
        };
        let full = std::mem::replace(&mut self.chunk, next);
        if full.capacity() > 0 || self.in_chunk > 0 {
            self.full.push_back(full);
        }
        self.in_chunk = 0;
        Some(())
    }

    /// Octets that are lent or kept.
    #[cfg(test)]
    fn held(&self) -> usize {
        (self.lent.len() + self.full.len()) * SIZE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_frames_stay_where_they_were_read_and_small_ones_move_together() {
        let mut buffers = Buffers::new(SIZE * 10);
        let mut buffer = buffers.fresh().unwrap();
        buffer[..3].copy_from_slice(b"abc");
        let at = buffer.as_ptr();
        let small = buffers.share(&mut buffer, 3).unwrap();
        let other = buffers.share(&mut buffer, 3).unwrap();
        assert_eq!(buffer.as_ptr(), at, "still ours");
        assert_eq!(small.as_ptr() as usize + 3, other.as_ptr() as usize);
        let large = buffers.share(&mut buffer, SMALL + 1).unwrap();
        assert_eq!(large.as_ptr(), at);
        assert_eq!((&large[..3], &small[..]), (&b"abc"[..], &b"abc"[..]));
    }

    #[test]
    fn buffers_serve_again_when_their_last_range_is_gone() {
        let mut buffers = Buffers::new(SIZE * 10);
        let mut buffer = buffers.fresh().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let large = buffers.share(&mut buffer, SIZE).unwrap();
            seen.insert(large.as_ptr() as usize);
            let range = large.slice(100..200);
            drop(large);
            assert_eq!(range.len(), 100);
            for _ in 0..200 {
                assert!(buffers.share(&mut buffer, 300).is_some());
            }
        }
        assert!(seen.len() <= 3, "{}", seen.len());
        assert!(buffers.held() <= 5 * SIZE);
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut buffers = Buffers::new(SIZE * 10);
        let mut buffer = buffers.fresh().unwrap();
        let mut kept: Vec<Bytes> =
            std::iter::from_fn(|| buffers.share(&mut buffer, SIZE)).take(1000).collect();
        assert_eq!(kept.len(), 10);
        assert!(buffers.share(&mut buffer, 10).is_none());
        kept.pop();
        kept.pop();
        kept.extend(std::iter::from_fn(|| buffers.share(&mut buffer, 10)).take(100_000));
        // Nine in use, one full chunk and the one that is being filled.
        assert!(kept.len() <= 10 + 2 * PER_CHUNK as usize, "{}", kept.len());
        assert!(buffers.held() <= 10 * SIZE);
        kept.clear();
        assert!(buffers.share(&mut buffer, SIZE).is_some());
    }
}
