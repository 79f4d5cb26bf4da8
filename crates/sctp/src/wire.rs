//! The common header and the walk over the chunks of a packet (RFC 9260, section 3).

use airloom_base::{Body, Packet};
use airloom_wire::Error;
use bytes::{Bytes, BytesMut};

use super::chunk::{self, Chunk};
use super::octets::{CHUNK_HEADER, padded};

/// Octets of the common header.
pub const HEADER: usize = 12;
/// The common header, but for the checksum, which is filled in at the edges of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Sender's port.
    pub source: u16,
    /// Receiver's port.
    pub destination: u16,
    /// The receiver's tag.
    pub tag: u32,
}

impl Header {
    /// Reads it.
    pub fn parse(octets: &[u8]) -> Result<Header, Error> {
        let h = octets.first_chunk::<HEADER>().ok_or(Error::Truncated)?;
        Ok(Header {
            source: u16::from_be_bytes([h[0], h[1]]),
            destination: u16::from_be_bytes([h[2], h[3]]),
            tag: u32::from_be_bytes([h[4], h[5], h[6], h[7]]),
        })
    }

    /// Writes it, the checksum zero, and returns its length.
    pub fn emit(&self, out: &mut [u8]) -> usize {
        out[..2].copy_from_slice(&self.source.to_be_bytes());
        out[2..4].copy_from_slice(&self.destination.to_be_bytes());
        out[4..8].copy_from_slice(&self.tag.to_be_bytes());
        out[8..HEADER].fill(0);
        HEADER
    }

    /// A packet with this header and these chunks, as real octets behind the header.
    pub fn packet(&self, chunks: &[Chunk]) -> Packet {
        let mut octets = Vec::with_capacity(chunks.iter().map(Chunk::padded_len).sum());
        for chunk in chunks {
            chunk.append_to(&mut octets);
        }
        self.packet_of(octets.into())
    }

    /// A packet with this header and chunks that are octets already.
    pub fn packet_of(&self, chunks: Bytes) -> Packet {
        Packet::build(|out| self.emit(out), Body::Real(chunks))
    }
}

/// The chunks of a packet one after another. Behind the first error nothing follows.
///
/// What we send to ourselves has its chunks among the header octets, up to what stands in front of the user data of the first
/// DATA chunk, which begins the body: that is read without copying. Everything else is octets.
pub struct Chunks<'a> {
    head: &'a [u8],
    body: Body,
    failed: bool,
}

impl<'a> Chunks<'a> {
    /// Of a packet, its body taken out.
    pub fn new(head: &'a [u8], body: Body) -> Self {
        Chunks { head: head.get(HEADER..).unwrap_or(&[]), body, failed: head.len() < HEADER }
    }

    fn fail(&mut self, error: Error) -> Option<Result<Chunk, Error>> {
        self.failed = true;
        Some(Err(error))
    }

    /// Everything that is left as octets in the body.
    fn flatten(&mut self) {
        let mut octets = BytesMut::zeroed(self.head.len() + self.body.len());
        octets[..self.head.len()].copy_from_slice(self.head);
        self.body.write(0, &mut octets[self.head.len()..]);
        self.head = &[];
        self.body = Body::Real(octets.freeze());
    }

    fn next_in_body(&mut self) -> Option<Result<Chunk, Error>> {
        if self.body.is_empty() {
            return None;
        }
        if let Body::Filler(_) = self.body {
            self.flatten();
        }
        let Body::Real(octets) = &mut self.body else { return None };
        let Some(&[kind, flags, a, b]) = octets.first_chunk() else { return self.fail(Error::Truncated) };
        let len = usize::from(u16::from_be_bytes([a, b]));
        if len < CHUNK_HEADER {
            return self.fail(Error::Malformed("chunk length"));
        }
        if len > octets.len() {
            return self.fail(Error::Truncated);
        }
        let whole = octets.split_to(len);
        let padding = (padded(len) - len).min(octets.len());
        drop(octets.split_to(padding));
        match chunk::parse(kind, flags, &whole.slice(CHUNK_HEADER..)) {
            Ok(chunk) => Some(Ok(chunk)),
            Err(error) => self.fail(error),
        }
    }
}

impl Iterator for Chunks<'_> {
    type Item = Result<Chunk, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if self.head.is_empty() {
            return self.next_in_body();
        }
        let Some(&[kind, flags, a, b]) = self.head.first_chunk() else {
            self.flatten();
            return self.next_in_body();
        };
        let len = usize::from(u16::from_be_bytes([a, b]));
        if len < CHUNK_HEADER {
            return self.fail(Error::Malformed("chunk length"));
        }
        let (front, behind) = self.head.split_at(len.min(self.head.len()));
        if front.len() < len {
            // User data that is the body, as we send it?
            let parsed = chunk::data::Data::parse_front(kind, flags, &self.head[CHUNK_HEADER..]);
            let data_len = len - self.head.len();
            if let Some((mut data, header)) = parsed
                && CHUNK_HEADER + header == self.head.len()
                && data_len <= self.body.len()
            {
                self.head = &[];
                data.body = self.body.split_to(data_len);
                drop(self.body.split_to(padded(data_len) - data_len));
                return Some(Ok(Chunk::Data(data)));
            }
            self.flatten();
            return self.next_in_body();
        }
        let chunk = match chunk::parse_fixed(kind, flags, &front[CHUNK_HEADER..]) {
            Some(chunk) => chunk,
            None => chunk::parse(kind, flags, &Bytes::copy_from_slice(&front[CHUNK_HEADER..])),
        };
        let padding = padded(len) - len;
        if padding <= behind.len() {
            self.head = &behind[padding..];
        } else {
            self.head = &[];
            drop(self.body.split_to(padding - behind.len()));
        }
        match chunk {
            Ok(chunk) => Some(Ok(chunk)),
            Err(error) => self.fail(error),
        }
    }
}

/// All chunks of a packet, or the first error.
pub fn parse(packet: &mut Packet) -> Result<(Header, Vec<Chunk>), Error> {
    let body = packet.take_body();
    let header = Header::parse(packet.head())?;
    Ok((header, Chunks::new(packet.head(), body).collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::chunk::tests::chunk;
    use super::*;
    use proptest::prelude::*;

    fn octets(packet: &Packet) -> Vec<u8> {
        let mut out = Vec::new();
        packet.append_to(&mut out);
        out
    }

    #[test]
    fn user_data_in_the_body_is_taken_as_it_is() {
        let header = Header { source: 1, destination: 2, tag: 3 };
        let sack = chunk::Sack { cumulative: 7, window: 9, gaps: vec![(2, 3)], duplicates: vec![5] };
        let data = chunk::data::Data { tsn: 1, begin: true, end: true, ..Default::default() };
        for len in [1, 2, 3, 4, 1400] {
            let packet = |body: Body| {
                Packet::build(
                    |out| {
                        let mut at = header.emit(out);
                        at += Chunk::Sack(sack.clone()).emit(&mut out[at..]);
                        at + data.emit_front(len, &mut out[at..])
                    },
                    body,
                )
            };
            // With and without the padding behind it.
            for extra in [0, (padded(len) - len) as u32] {
                let mut p = packet(Body::filler(5, len as u32 + extra));
                let (h, chunks) = parse(&mut p).unwrap();
                assert_eq!(h, header);
                let expected = chunk::data::Data { body: Body::filler(5, len as u32), ..data.clone() };
                assert_eq!(chunks, [Chunk::Sack(sack.clone()), Chunk::Data(expected)]);
            }
        }
    }

    #[test]
    fn user_data_that_begins_the_body_is_not_copied_if_chunks_follow_it() {
        let bodies = [vec![1; 101], vec![2; 40]].map(Bytes::from);
        let data = bodies.map(|octets| {
            let body = Body::Real(octets);
            Chunk::Data(chunk::data::Data { begin: true, end: true, body, ..Default::default() })
        });
        let whole = octets(&Header::default().packet(&data));
        let split = HEADER + chunk::data::DATA_FRONT;
        let body = Bytes::copy_from_slice(&whole[split..]);
        let mut packet = Packet::with_head(&whole[..split], Body::Real(body.clone())).unwrap();
        let (_, chunks) = parse(&mut packet).unwrap();
        assert_eq!(chunks, data);
        let places = chunks.iter().map(|chunk| match chunk {
            Chunk::Data(chunk::data::Data { body: Body::Real(octets), .. }) => octets.as_ptr(),
            _ => panic!("{chunk:?}"),
        });
        let second = body[104 + chunk::data::DATA_FRONT..].as_ptr();
        assert!(places.eq([body.as_ptr(), second]));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_wherever_head_and_body_meet(
            chunks in proptest::collection::vec(chunk(), 0..6),
            split in 12usize..80,
        ) {
            let header = Header { source: 4, destination: 5, tag: 6 };
            let whole = octets(&header.packet(&chunks));
            let split = split.min(whole.len());
            let body = Body::Real(Bytes::copy_from_slice(&whole[split..]));
            let mut packet = Packet::with_head(&whole[..split], body).unwrap();
            let (h, back) = parse(&mut packet).unwrap();
            prop_assert_eq!(h, header);
            prop_assert_eq!(back, chunks);
        }

        #[test]
        fn no_octets_make_it_panic_or_go_on_for_ever(
            octets in proptest::collection::vec(any::<u8>(), 0..300),
            kind in any::<u8>(), len in 0u16..200,
            split in 0usize..80,
        ) {
            for plausible in [false, true] {
                let mut octets = octets.clone();
                if plausible && octets.len() > 16 {
                    octets[12] = kind;
                    octets[14..16].copy_from_slice(&len.to_be_bytes());
                }
                let split = split.min(octets.len());
                let body = Body::Real(Bytes::copy_from_slice(&octets[split..]));
                let packet = Packet::with_head(&octets[..split], Body::EMPTY).unwrap();
                for filler in [false, true] {
                    let body = if filler { Body::filler(3, octets.len() as u32) } else { body.clone() };
                    prop_assert!(Chunks::new(packet.head(), body).count() <= 2 + octets.len() / 2);
                }
            }
        }

        #[test]
        fn a_packet_cut_short_or_with_flipped_bits_gives_an_error_or_other_chunks(
            chunks in proptest::collection::vec(chunk(), 1..4),
            cut in any::<u16>(), bit in any::<u16>(),
        ) {
            let whole = octets(&Header::default().packet(&chunks));
            let cut = usize::from(cut) % whole.len();
            let mut short = Packet::build(|_| 0, Body::EMPTY);
            drop(std::mem::replace(&mut short, Header::default().packet_of(Bytes::copy_from_slice(
                whole.get(HEADER..cut).unwrap_or(&[])))));
            let _ = parse(&mut short);
            let mut flipped = whole;
            let bit = usize::from(bit) % (flipped.len() * 8);
            flipped[bit / 8] ^= 1 << (bit % 8);
            let _ = parse(&mut Header::default().packet_of(Bytes::copy_from_slice(&flipped[HEADER..])));
        }
    }
}
