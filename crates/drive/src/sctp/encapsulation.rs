//! SCTP packets as the payload of UDP (RFC 6951).

use airloom_base::Packet;
use airloom_transports::sctp::wire::HEADER;
use airloom_wire::checksum;
use bytes::Bytes;

/// The port that is assigned to it (RFC 6951, 6).
pub const PORT: u16 = 9899;
/// Octets that the header of UDP takes from the path's (RFC 6951, 5.6).
pub(super) const OVERHEAD: u16 = 8;

/// The packet in a datagram; `None` if its CRC32c is wrong or there is no common header.
pub(super) fn open(payload: Bytes) -> Option<Packet> {
    //= RFC 6951 (4.1): the checksum of SCTP is there all the same.
    if !checksum::is_good_sctp(&payload) {
        return None;
    }
    Packet::ingress(payload, HEADER)
}

/// The payload of the datagram that carries `packet`, in `out`.
pub(super) fn seal(packet: &Packet, out: &mut Vec<u8>) {
    out.clear();
    packet.append_to(out);
    // A packet of ours has a common header.
    let _ = checksum::finish_sctp(out);
}

#[cfg(test)]
mod tests {
    use airloom_transports::sctp::chunk::Chunk;
    use airloom_transports::sctp::wire::{self, Header};

    use super::*;

    #[test]
    fn a_packet_comes_out_as_it_went_in_and_a_damaged_one_not_at_all() {
        let header = Header { source: 1, destination: 2, tag: 3 };
        let mut octets = Vec::new();
        seal(&header.packet(&[Chunk::CookieAck]), &mut octets);
        let mut packet = open(Bytes::copy_from_slice(&octets)).unwrap();
        assert_eq!(wire::parse(&mut packet).unwrap(), (header, vec![Chunk::CookieAck]));
        for bit in 0..octets.len() * 8 {
            let mut damaged = octets.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(open(damaged.into()).is_none(), "{bit}");
        }
        for len in 0..octets.len() {
            assert!(open(Bytes::copy_from_slice(&octets[..len])).is_none(), "{len}");
        }
    }
}
