//! Packets: true header octets and a body, in an 8-byte handle to a recycled block.
//!
//! A packet is encoded once by its sender and parsed once by the receiving stack; on the way it is handed on
//! by its handle. Bodies that nobody looks at are [`Filler`]: their octets are a fixed function of the filler's
//! source and offset and are made only where somebody looks (a capture, a real device, a gzip).

use std::cell::RefCell;
use std::fmt;

use bytes::Bytes;

/// Octets reserved in front of a transport header for IPv6 (40) and UDP (8).
pub const HEADROOM: usize = 48;
/// Room for all header octets of a packet: headroom, TCP with all options (60), and some to spare.
pub const HEAD: usize = 128;
/// How many blocks a thread keeps for reuse; more are given back to the allocator.
const POOL_LIMIT: usize = 65_536;

/// A stretch of octets that nobody has written down: octet `i` is a fixed function of `(source, offset + i)`.
///
/// Cut and re-joined pieces of one source keep their octets, so a retransmission, a hash, a stuffing count
/// and a capture all agree about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filler {
    /// Which infinite sequence of octets it is a piece of.
    pub source: u32,
    /// Position of its first octet in that sequence.
    pub offset: u64,
    /// Number of octets.
    pub len: u32,
}

impl Filler {
    /// From this offset on the octets of each source are text, `?` to `~`: no line ends in it, and it has no colon. Programs that
    /// see the middle of a body alone, as in a chunk of SCTP, look for these to tell whether it is a header.
    pub const TEXT: u64 = 1 << 63;

    /// `len` octets from the beginning of `source`.
    pub const fn new(source: u32, len: u32) -> Self {
        Filler { source, offset: 0, len }
    }

    /// How far apart neighbouring words are before they are mixed.
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    fn word(source: u32, index: u64) -> [u8; 8] {
        let z = Self::mixed(source, index.wrapping_mul(Self::STEP));
        if index < Self::TEXT / 8 { z.to_le_bytes() } else { Self::text(z) }
    }

    fn mixed(source: u32, place: u64) -> u64 {
        let mut z = (u64::from(source) << 40) ^ place;
        z ^= z >> 30;
        z = z.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z ^ z >> 27
    }

    fn text(z: u64) -> [u8; 8] {
        ((z & 0x3F3F_3F3F_3F3F_3F3F) + 0x3F3F_3F3F_3F3F_3F3F).to_le_bytes()
    }

    /// Writes whole words, the first of which has this number: most of what connections carry, so with one multiplication each.
    fn fill(words: &mut [[u8; 8]], source: u32, index: u64, octets: impl Fn(u64) -> [u8; 8]) {
        let mut place = index.wrapping_mul(Self::STEP);
        for word in words {
            *word = octets(Self::mixed(source, place));
            place = place.wrapping_add(Self::STEP);
        }
    }

    /// Writes the octets from `skip` on into `out`, as many as both have.
    pub fn write(&self, skip: u32, out: &mut [u8]) -> usize {
        let len = out.len().min(self.len.saturating_sub(skip) as usize);
        let out = &mut out[..len];
        let at = self.offset + u64::from(skip);
        let (mut index, within) = (at / 8, (at % 8) as usize);
        let first = if within == 0 { 0 } else { len.min(8 - within) };
        let (head, rest) = out.split_at_mut(first);
        if !head.is_empty() {
            head.copy_from_slice(&Self::word(self.source, index)[within..][..first]);
            index += 1;
        }
        let (words, tail) = rest.as_chunks_mut::<8>();
        let end = index + words.len() as u64;
        let (plain, text) =
            words.split_at_mut((Self::TEXT / 8).saturating_sub(index).min(words.len() as u64) as usize);
        let behind = index + plain.len() as u64;
        Self::fill(plain, self.source, index, u64::to_le_bytes);
        Self::fill(text, self.source, behind, Self::text);
        tail.copy_from_slice(&Self::word(self.source, end)[..tail.len()]);
        len
    }
}

/// What follows the header octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Octets made only when looked at.
    Filler(Filler),
    /// Octets that are there.
    Real(Bytes),
}

impl Default for Body {
    fn default() -> Self {
        Body::EMPTY
    }
}

impl Body {
    /// No octets.
    pub const EMPTY: Body = Body::Filler(Filler::new(0, 0));

    /// A filler of `len` octets from the beginning of `source`.
    pub const fn filler(source: u32, len: u32) -> Body {
        Body::Filler(Filler::new(source, len))
    }

    /// Number of octets.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Body::Filler(f) => f.len as usize,
            Body::Real(b) => b.len(),
        }
    }

    /// No octets?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The octets `from..from + len` as a body of their own, without copying. Both are cut to what is there.
    pub fn slice(&self, from: usize, len: usize) -> Body {
        let from = from.min(self.len());
        let len = len.min(self.len() - from);
        match self {
            Body::Filler(f) => Body::Filler(Filler { offset: f.offset + from as u64, len: len as u32, ..*f }),
            Body::Real(b) => Body::Real(b.slice(from..from + len)),
        }
    }

    /// Takes the first `n` octets off and returns them.
    pub fn split_to(&mut self, n: usize) -> Body {
        let n = n.min(self.len());
        match self {
            Body::Filler(f) => {
                let first = Filler { len: n as u32, ..*f };
                f.offset += n as u64;
                f.len -= n as u32;
                Body::Filler(first)
            }
            Body::Real(b) => Body::Real(b.split_to(n)),
        }
    }

    /// Joins `next` on if both are pieces of one filler that follow each other; otherwise gives it back.
    pub fn try_join(&mut self, next: Body) -> Result<(), Body> {
        match (&mut *self, &next) {
            (_, n) if n.is_empty() => Ok(()),
            (Body::Filler(a), Body::Filler(b))
                if a.source == b.source
                    && a.offset + u64::from(a.len) == b.offset
                    && a.len.checked_add(b.len).is_some() =>
            {
                a.len += b.len;
                Ok(())
            }
            (s, _) if s.is_empty() => {
                *self = next;
                Ok(())
            }
            _ => Err(next),
        }
    }

    /// Writes the octets from `skip` on into `out`, as many as both have, and returns how many.
    pub fn write(&self, skip: usize, out: &mut [u8]) -> usize {
        match self {
            Body::Filler(f) => f.write(skip.min(u32::MAX as usize) as u32, out),
            Body::Real(b) => {
                let from = skip.min(b.len());
                let n = out.len().min(b.len() - from);
                out[..n].copy_from_slice(&b[from..from + n]);
                n
            }
        }
    }

    /// All octets, made if they were filler.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Body::Real(b) => b.clone(),
            Body::Filler(f) => {
                let mut octets = vec![0; f.len as usize];
                f.write(0, &mut octets);
                octets.into()
            }
        }
    }
}

/// What a packet is made of. A packet that waited in a queue has left the nearest cache, so it lies in as few lines of that
/// as possible: all but the octets in the first, and behind the headroom IP and TCP headers in the second.
#[repr(C, align(64))]
struct Block {
    start: u8,
    end: u8,
    segment: u16,
    flow: u32,
    id: u64,
    body: Body,
    head: [u8; HEAD],
}

thread_local! {
    // A plain list of boxes: safe, and as fast as anything cleverer (docs/explanation/packet-path.md).
    #[expect(clippy::vec_box, reason = "the box is what is recycled")]
    static POOL: RefCell<Vec<Box<Block>>> = const { RefCell::new(Vec::new()) };
}

/// A packet on its way: a handle of 8 bytes to a pooled block. Dropping it gives the block back.
pub struct Packet(Option<Box<Block>>);

const PRESENT: &str = "a packet holds its block until it is dropped";

impl Packet {
    /// A packet whose header octets `write` puts into the given space (behind the headroom) and returns their number of.
    #[inline(always)]
    pub fn build(write: impl FnOnce(&mut [u8]) -> usize, body: Body) -> Packet {
        let mut block = POOL.with_borrow_mut(Vec::pop).unwrap_or_else(|| {
            Box::new(Block {
                head: [0; HEAD],
                start: 0,
                end: 0,
                segment: 0,
                flow: 0,
                id: 0,
                body: Body::EMPTY,
            })
        });
        let written = write(&mut block.head[HEADROOM..]).min(HEAD - HEADROOM);
        block.start = HEADROOM as u8;
        block.end = (HEADROOM + written) as u8;
        block.segment = 0;
        block.flow = 0;
        block.id = 0;
        block.body = body;
        Packet(Some(block))
    }

    /// Gives a packet that was built without a header one of `len` octets, to be written to the beginning of the
    /// result: what [`Packet::build`] does, without a closure that may not be inlined.
    #[inline(always)]
    pub fn room(&mut self, len: usize) -> &mut [u8] {
        let block = self.block_mut();
        block.end = (HEADROOM + len).min(HEAD) as u8;
        &mut block.head[HEADROOM..]
    }

    /// A packet with a copy of these header octets and no headroom in front of them; `None` if there are more than
    /// [`HEAD`].
    pub fn with_head(head: &[u8], body: Body) -> Option<Packet> {
        if head.len() > HEAD {
            return None;
        }
        let mut packet = Packet::build(|_| 0, body);
        let block = packet.block_mut();
        block.head[..head.len()].copy_from_slice(head);
        block.start = 0;
        block.end = head.len() as u8;
        Some(packet)
    }

    /// A packet from a device: the first `head` octets of `datagram` are copied as header octets, the rest is
    /// shared. `None` if there are fewer, or more than [`HEAD`]. There is no headroom in front of them.
    pub fn ingress(datagram: Bytes, head: usize) -> Option<Packet> {
        let octets = datagram.get(..head)?;
        Packet::with_head(octets, Body::Real(datagram.slice(head..)))
    }

    #[inline]
    fn block(&self) -> &Block {
        self.0.as_ref().expect(PRESENT)
    }

    #[inline]
    fn block_mut(&mut self) -> &mut Block {
        self.0.as_mut().expect(PRESENT)
    }

    /// The header octets.
    #[inline]
    pub fn head(&self) -> &[u8] {
        let b = self.block();
        &b.head[usize::from(b.start)..usize::from(b.end)]
    }

    /// The header octets, to change in place (a router's hop limit).
    #[inline]
    pub fn head_mut(&mut self) -> &mut [u8] {
        let b = self.block_mut();
        &mut b.head[usize::from(b.start)..usize::from(b.end)]
    }

    /// Room for `n` more header octets in front, to be written by the caller. Panics if the headroom is used up:
    /// encapsulations are chosen by us, never by a peer.
    #[inline]
    pub fn prepend(&mut self, n: usize) -> &mut [u8] {
        let b = self.block_mut();
        let start = usize::from(b.start).checked_sub(n).expect("headroom covers IPv6 and UDP");
        b.start = start as u8;
        &mut b.head[start..start + n]
    }

    /// Takes the first `n` header octets off (all, if there are fewer): what a stack does before it hands up.
    #[inline]
    pub fn strip(&mut self, n: usize) {
        let b = self.block_mut();
        b.start = (usize::from(b.start) + n).min(usize::from(b.end)) as u8;
    }

    /// What follows the header octets.
    #[inline]
    pub fn body(&self) -> &Body {
        &self.block().body
    }

    /// Takes the body out. Parse the header first: the length of the packet changes.
    #[inline]
    pub fn take_body(&mut self) -> Body {
        std::mem::take(&mut self.block_mut().body)
    }

    /// Octets of header and body together.
    #[inline]
    pub fn wire_len(&self) -> usize {
        let b = self.block();
        usize::from(b.end - b.start) + b.body.len()
    }

    /// The number that names this packet in records; 0 until somebody gave one.
    #[inline]
    pub fn id(&self) -> u64 {
        self.block().id
    }

    /// Gives the packet its number, which survives every hop.
    #[inline]
    pub fn set_id(&mut self, id: u64) {
        self.block_mut().id = id;
    }

    /// The flow it belongs to, 0 if not known.
    #[inline]
    pub fn flow(&self) -> u32 {
        self.block().flow
    }

    /// Says which flow it belongs to.
    #[inline]
    pub fn set_flow(&mut self, flow: u32) {
        self.block_mut().flow = flow;
    }

    /// Gives the packet its number and says which flow it belongs to.
    #[inline]
    pub fn label(&mut self, id: u64, flow: u32) {
        let block = self.block_mut();
        (block.id, block.flow) = (id, flow);
    }

    /// Octets of payload in each of the datagrams that this super-packet stands for; 0: it is one datagram.
    ///
    /// A real host's kernel hands over several segments of one flow as one packet with one header (segmentation
    /// offload). `airloom_wire::segment` cuts it.
    #[inline]
    pub fn segment_size(&self) -> u16 {
        self.block().segment
    }

    /// Says that it stands for several datagrams with so many octets of payload each (the last may have fewer).
    #[inline]
    pub fn set_segment_size(&mut self, octets: u16) {
        self.block_mut().segment = octets;
    }

    /// Writes octets `skip..` of header and body into `out` and returns how many. Checksums are as they stand
    /// in the header: `wire::checksum::finish` fills them in at the edges.
    pub fn write(&self, skip: usize, out: &mut [u8]) -> usize {
        let head = self.head();
        let from = skip.min(head.len());
        let n = out.len().min(head.len() - from);
        out[..n].copy_from_slice(&head[from..from + n]);
        n + self.body().write(skip.saturating_sub(head.len()), &mut out[n..])
    }

    /// Appends all octets to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.resize(at + self.wire_len(), 0);
        self.write(0, &mut out[at..]);
    }

    /// A second packet with the same octets, id and flow (a duplicating link).
    pub fn duplicate(&self) -> Packet {
        let (head, from) = (self.head(), self.block());
        let mut copy = Packet::build(|_| 0, from.body.clone());
        let b = copy.block_mut();
        b.start = from.start;
        b.end = from.end;
        b.head[usize::from(from.start)..usize::from(from.end)].copy_from_slice(head);
        b.segment = from.segment;
        b.id = from.id;
        b.flow = from.flow;
        copy
    }
}

impl Drop for Packet {
    #[inline]
    fn drop(&mut self) {
        if let Some(mut block) = self.0.take() {
            // Filler may stay; octets are given back at once.
            if let Body::Real(_) = block.body {
                block.body = Body::EMPTY;
            }
            // While a thread ends its pool may be gone: the block is then simply freed.
            let _ = POOL.try_with(|pool| {
                let mut pool = pool.borrow_mut();
                if pool.len() < POOL_LIMIT {
                    pool.push(block);
                }
            });
        }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packet {{ id: {}, head: {:02x?}, body: {:?} }}", self.id(), self.head(), self.body())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_half_of_a_filler_is_text_without_line_ends_and_colons() {
        let octets = |offset| Body::Filler(Filler { source: 7, offset, len: 4000 }).to_bytes();
        let text = octets(Filler::TEXT + 3);
        assert!((b'?'..=b'~').all(|octet| text.contains(&octet)));
        assert!(text.iter().all(|octet| (b'?'..=b'~').contains(octet)));
        assert!(octets(Filler::TEXT - 4000).contains(&b':'));
        assert_eq!(octets(Filler::TEXT)[3..], text[..3997]);
        assert_eq!(octets(Filler::TEXT - 13)[16..], text[..3984]);
    }

    #[test]
    fn pieces_of_a_filler_have_the_octets_of_the_whole() {
        let whole = Body::filler(7, 100).to_bytes();
        for cut in 0..=100 {
            let mut rest = Body::filler(7, 100);
            let first = rest.split_to(cut);
            let joined = [first.to_bytes(), rest.to_bytes()].concat();
            assert_eq!(joined, whole);
        }
        assert_ne!(Body::filler(8, 100).to_bytes(), whole);
    }

    #[test]
    fn only_neighbouring_pieces_of_one_source_join() {
        let mut a = Body::filler(1, 10);
        assert!(a.try_join(Body::Filler(Filler { source: 1, offset: 10, len: 5 })).is_ok());
        assert_eq!(a, Body::filler(1, 15));
        assert!(a.try_join(Body::Filler(Filler { source: 1, offset: 16, len: 5 })).is_err());
        assert!(a.try_join(Body::Filler(Filler { source: 2, offset: 15, len: 5 })).is_err());
    }

    #[test]
    fn headers_are_put_in_front_and_taken_off() {
        let mut p = Packet::build(
            |out| {
                out[..2].copy_from_slice(&[3, 4]);
                2
            },
            Body::Real(Bytes::from_static(&[5, 6])),
        );
        p.prepend(2).copy_from_slice(&[1, 2]);
        let mut octets = Vec::new();
        p.append_to(&mut octets);
        assert_eq!(octets, [1, 2, 3, 4, 5, 6]);
        let mut tail = [0; 3];
        assert_eq!(p.write(3, &mut tail), 3);
        assert_eq!(tail, [4, 5, 6]);
        p.strip(2);
        assert_eq!(p.head(), [3, 4]);
        p.set_id(9);
        assert_eq!(p.duplicate().head(), [3, 4]);
        assert_eq!(p.duplicate().id(), 9);
    }

    #[test]
    fn a_recycled_block_forgets_its_past() {
        let mut p = Packet::build(|_| 4, Body::filler(1, 1));
        p.set_id(1);
        p.set_flow(2);
        drop(p);
        let q = Packet::build(|_| 0, Body::EMPTY);
        assert_eq!((q.id(), q.flow(), q.wire_len()), (0, 0, 0));
    }

    #[test]
    fn a_datagram_shorter_than_its_headers_is_refused() {
        assert!(Packet::ingress(Bytes::from_static(&[1, 2, 3]), 4).is_none());
        assert_eq!(Packet::ingress(Bytes::from_static(&[1, 2, 3]), 2).unwrap().head(), [1, 2]);
    }
}
