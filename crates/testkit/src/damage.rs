//! What a bad link does to the octets of a datagram, and what a receiver thinks of them.

use std::net::{IpAddr, Ipv4Addr};

use airloom_base::Packet;
use airloom_wire::ip::{self, protocol};
use airloom_wire::{checksum, edge};

/// The unit of a TCP segment after its datagram was cut or a burst of bits was flipped; `None` if the receiver notices.
///
/// The segment becomes the octets of an IPv4 datagram with both checksums. A burst spans fewer bits than a checksum
/// has, so that the sums find it wherever they cover; what passes was damaged where nothing depends on it.
pub fn damaged(packet: &Packet, how: u64) -> Option<Packet> {
    let address = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
    let mut whole = packet.duplicate();
    let unit = whole.wire_len();
    ip::emit(whole.prepend(ip::header_len(address(2))), address(1), address(2), protocol::TCP, 0, unit);
    let mut octets = Vec::with_capacity(unit + 20);
    edge::egress(&whole, &mut octets);
    debug_assert!(checksum::verify(&octets, false).is_ok());
    let (kind, place, pattern) = (how & 3, (how >> 2) as u32 as usize, (how >> 40) as u16);
    if kind == 0 {
        octets.truncate(place % octets.len());
    } else {
        // At least one bit, at most fifteen in a row.
        let bits = (pattern & 0x7FFF).max(1);
        let first = place % (octets.len() * 8);
        for bit in (0..15).filter(|bit| bits >> bit & 1 != 0) {
            if let Some(octet) = octets.get_mut((first + bit) / 8) {
                *octet ^= 0x80 >> ((first + bit) % 8);
            }
        }
    }
    let mut arrived = edge::ingress(edge::Received::whole(octets)).ok()?;
    let header = ip::Ip::parse(arrived.head()).ok()?;
    // A datagram for somebody else, or of another protocol, is not ours.
    let ours = header.protocol == protocol::TCP
        && !header.is_fragment
        && (header.source, header.destination) == (address(1), address(2));
    arrived.strip(header.header_len);
    ours.then_some(arrived)
}

#[cfg(test)]
mod tests {
    use airloom_base::Body;
    use airloom_base::random::splitmix64;

    use super::*;

    #[test]
    fn damage_is_noticed_or_changes_nothing_of_the_segment() {
        let mut head = [0; 20];
        head[12] = 5 << 4;
        let packet = Packet::build(
            |out| {
                out[..20].copy_from_slice(&head);
                20
            },
            Body::filler(1, 100),
        );
        let mut sum = None;
        let mut passed = 0;
        for n in 0..5000 {
            let Some(arrived) = damaged(&packet, splitmix64(1, n)) else { continue };
            passed += 1;
            let mut octets = Vec::new();
            arrived.append_to(&mut octets);
            // The checksum was filled in; it is the same each time.
            let found = *sum.get_or_insert([octets[16], octets[17]]);
            assert_eq!([octets[16], octets[17]], found);
            octets[16..18].fill(0);
            let mut whole = Vec::new();
            packet.append_to(&mut whole);
            assert_eq!(octets, whole);
        }
        assert!(passed < 1000, "{passed}");
    }
}
