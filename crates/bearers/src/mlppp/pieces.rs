//! Packets are cut into frames, and frames put together to packets, octet for octet.

use airloom_base::packet::HEAD;
use airloom_base::{Body, Packet};
use bytes::Bytes;

/// A packet behind its protocol field, as it is cut.
pub struct Cutter {
    /// Protocol field and header octets.
    head: Vec<u8>,
    body: Body,
    /// Octets that were cut off so far.
    at: usize,
    id: u64,
    flow: u32,
}

impl Cutter {
    /// A packet with this in front of it.
    pub fn new(front: &[u8], packet: &mut Packet) -> Cutter {
        let head = [front, packet.head()].concat();
        let (id, flow) = (packet.id(), packet.flow());
        Cutter { head, body: packet.take_body(), at: 0, id, flow }
    }

    /// Octets in all.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// The next so many octets as a packet of their own behind this header, which is shorter than [`HEAD`].
    pub fn cut(&mut self, header: &[u8], octets: usize) -> Packet {
        let (from, to) = (self.at, (self.at + octets).min(self.len()));
        self.at = to;
        let in_head = |place: usize| place.min(self.head.len());
        let in_body = |place: usize| place.saturating_sub(self.head.len());
        let mut head = [header, &self.head[in_head(from)..in_head(to)]].concat();
        let body = self.body.slice(in_body(from), in_body(to) - in_body(from));
        let mut frame = build(&mut head, body);
        frame.label(self.id, self.flow);
        frame
    }
}

/// A packet of these octets: what is too long for header octets belongs to the body.
fn build(head: &mut Vec<u8>, mut body: Body) -> Packet {
    if head.len() > HEAD {
        let mut octets = head.split_off(HEAD);
        octets.extend_from_slice(&body.to_bytes());
        body = Body::Real(Bytes::from(octets));
    }
    Packet::with_head(head, body).expect("no more than that is left of it")
}

/// A frame of its own octets, which belongs to no packet.
pub fn frame_of(header: &[u8], octets: Vec<u8>) -> Packet {
    build(&mut header.to_vec(), Body::Real(Bytes::from(octets)))
}

/// Puts pieces together: header octets are those that came first.
pub fn join(pieces: Vec<Packet>) -> Packet {
    let mut pieces = pieces.into_iter();
    let Some(first) = pieces.next() else { return Packet::build(|_| 0, Body::EMPTY) };
    let (id, flow) = (first.id(), first.flow());
    let (mut head, mut body, mut rest) = (Vec::with_capacity(HEAD), Body::EMPTY, Vec::new());
    for mut piece in std::iter::once(first).chain(pieces) {
        let is_head = body.is_empty() && rest.is_empty();
        if is_head {
            head.extend_from_slice(piece.head());
        } else if !piece.head().is_empty() {
            append(&mut rest, &mut body, piece.head());
        }
        let octets = piece.take_body();
        if rest.is_empty() {
            if let Err(octets) = body.try_join(octets) {
                append(&mut rest, &mut body, &octets.to_bytes());
            }
        } else {
            rest.extend_from_slice(&octets.to_bytes());
        }
    }
    if !rest.is_empty() {
        body = Body::Real(Bytes::from(rest));
    }
    let mut packet = build(&mut head, body);
    packet.label(id, flow);
    packet
}

/// Octets that are no continuation of the body: it is written out, and they behind it.
fn append(rest: &mut Vec<u8>, body: &mut Body, octets: &[u8]) {
    if rest.is_empty() {
        rest.extend_from_slice(&std::mem::take(body).to_bytes());
    }
    rest.extend_from_slice(octets);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_cut_is_put_together(
            head in prop::collection::vec(any::<u8>(), 0..=HEAD),
            octets in prop::option::of(prop::collection::vec(any::<u8>(), 0..1500)),
            cuts in prop::collection::vec(1usize..400, 1..12),
        ) {
            let body = octets.map_or(Body::filler(7, 900), |octets| Body::Real(octets.into()));
            let mut packet = Packet::with_head(&head, body).unwrap();
            packet.label(5, 6);
            let mut expected = vec![0x00, 0x21];
            packet.append_to(&mut expected);
            let head_len = packet.head().len();

            let mut cutter = Cutter::new(&[0x00, 0x21], &mut packet);
            prop_assert_eq!(cutter.len(), expected.len());
            let (mut pieces, mut at) = (Vec::new(), 0);
            for octets in cuts.into_iter().chain([3000]) {
                let mut piece = cutter.cut(&[0xFF, 0x03, 0x00, 0x3D, 0x80, 0, 0, 1], octets);
                let mut written = Vec::new();
                piece.append_to(&mut written);
                let to = expected.len().min(at + octets);
                prop_assert_eq!(&written[8..], &expected[at..to]);
                prop_assert_eq!((piece.id(), piece.flow()), (5, 6));
                at = to;
                piece.strip(8);
                pieces.push(piece);
            }
            let mut joined = join(pieces);
            let mut written = Vec::new();
            joined.append_to(&mut written);
            prop_assert_eq!(written, expected);
            prop_assert_eq!((joined.id(), joined.flow()), (5, 6));
            // Header octets stay header octets, unless there are too many for one frame.
            if head_len < 60 {
                joined.strip(2);
                prop_assert_eq!(joined.head(), &head[..]);
            }
        }
    }

    #[test]
    fn filler_stays_filler() {
        let mut packet = Packet::build(|_| 20, Body::filler(3, 1460));
        let mut cutter = Cutter::new(&[0, 0x21], &mut packet);
        let pieces = (0..6).map(|_| cutter.cut(&[], 300)).collect();
        assert_eq!(join(pieces).body(), &Body::filler(3, 1460));
    }
}
