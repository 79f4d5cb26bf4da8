//! Packet flows of different priorities: which one a packet belongs to.
//!
//! ASSUMPTION: the network tells the streams of an association apart by looking into packets. In a real one a packet flow
//! context is chosen by a traffic flow template, which would need a mark that the sender puts on each stream's packets.

use airloom_base::Packet;
use airloom_wire::ip::Brief;

/// IP protocol number of SCTP, and octets of its common header.
const SCTP: u8 = 132;
const COMMON_HEADER: usize = 12;
/// Octets of a packet that are looked at.
const LOOKED_AT: usize = 256;
/// Chunk types with user data: DATA and I-DATA (RFC 9260, 3.3.1; RFC 8260, 2.1). The stream stands behind the TSN in both.
const USER_DATA: [u8; 2] = [0, 64];
const STREAM: usize = 8;

/// Priority of a packet, 0 first: `priorities` are those of streams 0, 1, ..., the last also that of all streams beyond. What
/// carries no user data of SCTP goes first.
pub fn priority(packet: &Packet, priorities: &[u8]) -> u8 {
    let Some(last) = priorities.last() else { return 0 };
    stream(packet).map_or(0, |stream| *priorities.get(usize::from(stream)).unwrap_or(last))
}

/// The stream of the first user data in a datagram with SCTP.
fn stream(packet: &Packet) -> Option<u16> {
    let mut octets = [0; LOOKED_AT];
    let len = packet.write(0, &mut octets);
    let octets = &octets[..len];
    let header = Brief::parse(octets).filter(|ip| ip.protocol == SCTP)?.header_len;
    let mut at = header + COMMON_HEADER;
    loop {
        let chunk = octets.get(at..)?;
        let (kind, len) = (*chunk.first()?, u16::from_be_bytes(*chunk.get(2..)?.first_chunk()?));
        if USER_DATA.contains(&kind) {
            return chunk.get(STREAM..)?.first_chunk().map(|octets| u16::from_be_bytes(*octets));
        }
        at += usize::from(len.max(4)).next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Body;
    use airloom_wire::ip;

    use super::*;

    /// A datagram of this protocol: addresses, a common header, and these octets behind it.
    fn datagram(protocol: u8, chunks: &[u8]) -> Packet {
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
        let mut octets = vec![0; 20 + COMMON_HEADER];
        ip::emit(&mut octets, ends[0], ends[1], protocol, 0, COMMON_HEADER + chunks.len());
        octets.extend_from_slice(chunks);
        Packet::build(|_| 0, Body::Real(octets.into()))
    }

    /// A DATA chunk with one octet and its filling.
    fn data(kind: u8, stream: u8) -> Vec<u8> {
        vec![kind, 3, 0, 17, 0, 0, 0, 1, 0, stream, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0]
    }

    #[test]
    fn a_packet_has_the_priority_of_its_first_user_data() {
        let sack = [3, 0, 0, 16, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        let of = |packet: &Packet| priority(packet, &[2, 1, 5]);
        for kind in USER_DATA {
            let found = [0, 1, 2, 9].map(|stream| of(&datagram(SCTP, &data(kind, stream))));
            assert_eq!(found, [2, 1, 5, 5]);
        }
        assert_eq!(of(&datagram(SCTP, &[&sack[..], &data(0, 1), &data(0, 2)].concat())), 1);
        assert_eq!(of(&datagram(SCTP, &sack)), 0);
        assert_eq!(of(&datagram(6, &data(0, 2))), 0);
        assert_eq!(priority(&datagram(SCTP, &data(0, 2)), &[]), 0);
    }

    #[test]
    fn any_octets_have_a_priority() {
        let whole = [&[3, 0, 0, 0][..], &data(0, 2)].concat();
        for cut in 0..whole.len() {
            assert!([0, 5].contains(&priority(&datagram(SCTP, &whole[..cut]), &[2, 1, 5])));
        }
        let endless = [1u8, 0, 0, 0].repeat(400);
        assert_eq!(priority(&datagram(SCTP, &endless), &[2, 1, 5]), 0);
        assert_eq!(priority(&Packet::build(|_| 0, Body::EMPTY), &[2, 1, 5]), 0);
    }
}
