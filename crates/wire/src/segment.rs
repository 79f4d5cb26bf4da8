//! Super-packets: several segments of one flow under one header, as segmentation offload makes them.
//!
//! A kernel hands a network card up to 64 KB of a TCP stream, or of equal UDP datagrams, in one piece and lets the card
//! cut it. [`cut`] is that card: headers are copied and corrected, payload is shared by range and never copied.
//! Checksums stay open, as everywhere inside the network.

use airloom_base::Packet;

use crate::ip::{Ip, V4_HEADER, protocol};
use crate::udp;
use crate::{Error, get16, put16};

/// Flags of the TCP header, at offset 13 of it.
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Into how many datagrams [`cut`] will cut `packet`.
pub fn count(packet: &Packet) -> usize {
    match usize::from(packet.segment_size()) {
        0 => 1,
        size => packet.body().len().div_ceil(size).max(1),
    }
}

/// Octets of the largest of these datagrams.
#[inline]
pub fn largest(packet: &Packet) -> usize {
    match usize::from(packet.segment_size()) {
        0 => packet.wire_len(),
        size => packet.head().len() + size.min(packet.body().len()),
    }
}

/// Cuts a super-packet into the datagrams that a network card would send; any other packet is given on as it is.
///
/// Fails, with nothing given on, if its header is not one of TCP or UDP as a whole: nobody could number the pieces.
pub fn cut(mut packet: Packet, mut each: impl FnMut(Packet)) -> Result<(), Error> {
    let size = usize::from(packet.segment_size());
    packet.set_segment_size(0);
    if size == 0 || packet.body().len() <= size {
        each(packet);
        return Ok(());
    }
    let ip = Ip::parse(packet.head())?;
    let at = ip.header_len;
    let transport = packet.head().len() - at;
    let fits = match ip.protocol {
        protocol::TCP => transport >= 20,
        protocol::UDP => transport == udp::HEADER,
        _ => false,
    };
    if !fits || ip.is_fragment {
        return Err(Error::Malformed("super-packet: neither TCP nor UDP"));
    }
    let mut rest = packet.take_body();
    let is_tcp = ip.protocol == protocol::TCP;
    let mut index: u16 = 0;
    let mut done: u32 = 0;
    while !rest.is_empty() {
        let body = rest.split_to(size);
        let (len, is_last) = (body.len(), rest.is_empty());
        let mut piece =
            Packet::with_head(packet.head(), body).ok_or(Error::Malformed("super-packet: header length"))?;
        piece.set_flow(packet.flow());
        let head = piece.head_mut();
        if ip.destination.is_ipv4() {
            put16(head, 2, (at + transport + len) as u16);
            let identification = get16(head, 4).wrapping_add(index);
            put16(head, 4, identification);
            put16(head, 10, 0);
            let sum = crate::checksum::internet(&head[..at.max(V4_HEADER)]);
            put16(head, 10, sum);
        } else {
            put16(head, 4, (transport + len) as u16);
        }
        let unit = &mut head[at..];
        if is_tcp {
            let number = u32::from_be_bytes([unit[4], unit[5], unit[6], unit[7]]).wrapping_add(done);
            unit[4..8].copy_from_slice(&number.to_be_bytes());
            if !is_last {
                unit[13] &= !(FIN | PSH);
            }
            //= RFC 3168 (6.1.2): the reduction of the window is told once, by the first segment.
            if index > 0 {
                unit[13] &= !CWR;
            }
        } else {
            put16(unit, 4, (udp::HEADER + len) as u16);
        }
        done = done.wrapping_add(len as u32);
        index = index.wrapping_add(1);
        each(piece);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use bytes::Bytes;

    use super::*;
    use crate::edge::{self, Received};
    use crate::{checksum, ip};

    const V4: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
    const V6: [&str; 2] = ["fd00::1", "fd00::2"];

    fn payload(len: usize) -> Vec<u8> {
        (0..len).map(|n| (n * 7 + n / 251) as u8).collect()
    }

    /// A super-packet as a device would hand it over: checksums of the transport open.
    fn offered(addresses: [&str; 2], protocol: u8, unit: &[u8], len: usize, segment: u16) -> Received {
        let [source, destination]: [IpAddr; 2] = addresses.map(|a| a.parse().unwrap());
        let header = ip::header_len(destination);
        let mut datagram = vec![0; header];
        ip::emit(&mut datagram, source, destination, protocol, 0, unit.len() + len);
        if destination.is_ipv4() {
            put16(&mut datagram, 4, 0xFFFE);
            let sum = checksum::internet(&datagram);
            put16(&mut datagram, 10, sum);
        }
        datagram.extend_from_slice(unit);
        datagram.extend_from_slice(&payload(len));
        Received { datagram: datagram.into(), transport_done: true, segment }
    }

    fn tcp() -> [u8; 32] {
        let mut unit = [0; 32];
        unit[..4].copy_from_slice(&[0x10, 0x00, 0x00, 0x50]);
        unit[4..8].copy_from_slice(&0xFFFF_FF00u32.to_be_bytes());
        unit[8..12].copy_from_slice(&77u32.to_be_bytes());
        unit[12] = 8 << 4;
        unit[13] = 0x10 | FIN | PSH | CWR;
        unit[20..].copy_from_slice(&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        unit
    }

    /// The pieces as they would stand on a wire, each verified on its own.
    fn pieces(received: Received) -> Vec<Vec<u8>> {
        let packet = edge::ingress(received).unwrap();
        let expected = count(&packet);
        let largest = largest(&packet);
        let mut out = Vec::new();
        cut(packet, |piece| {
            assert_eq!(piece.segment_size(), 0);
            let mut octets = Vec::new();
            edge::egress(&piece, &mut octets);
            checksum::verify(&octets, false).unwrap();
            assert!(octets.len() <= largest);
            out.push(octets);
        })
        .unwrap();
        assert_eq!(out.len(), expected);
        assert_eq!(out[0].len(), largest);
        out
    }

    #[test]
    fn tcp_segments_are_numbered_on_and_only_the_last_ends_something() {
        for (addresses, header) in [(V4, 20), (V6, 40)] {
            let out = pieces(offered(addresses, protocol::TCP, &tcp(), 3500, 1448));
            assert_eq!(
                out.iter().map(Vec::len).collect::<Vec<_>>(),
                [1448, 1448, 604].map(|n| n + header + 32)
            );
            let mut joined = Vec::new();
            for (n, piece) in out.iter().enumerate() {
                let unit = &piece[header..];
                let number = u32::from_be_bytes(unit[4..8].try_into().unwrap());
                assert_eq!(number, 0xFFFF_FF00u32.wrapping_add(1448 * n as u32));
                assert_eq!(unit[13] & (FIN | PSH) != 0, n == 2);
                assert_eq!(unit[13] & CWR != 0, n == 0);
                assert_eq!((&unit[8..12], &unit[20..32]), (&tcp()[8..12], &tcp()[20..]));
                joined.extend_from_slice(&unit[32..]);
                if header == 20 {
                    assert_eq!(get16(piece, 4), 0xFFFEu16.wrapping_add(n as u16));
                }
            }
            assert_eq!(joined, payload(3500));
        }
    }

    #[test]
    fn udp_datagrams_get_their_own_length_and_a_shorter_last_one() {
        for (addresses, header) in [(V4, 20), (V6, 40)] {
            let unit = [0x10, 0, 0, 0x50, 0x0F, 0xA8, 0, 0];
            let out = pieces(offered(addresses, protocol::UDP, &unit, 2500, 1000));
            let lengths: Vec<_> = out.iter().map(|p| get16(p, header + 4)).collect();
            assert_eq!(lengths, [1008, 1008, 508]);
            let joined: Vec<u8> = out.iter().flat_map(|p| p[header + 8..].to_vec()).collect();
            assert_eq!(joined, payload(2500));
        }
    }

    #[test]
    fn the_payload_is_not_copied() {
        let received = offered(V4, protocol::TCP, &tcp(), 4000, 1000);
        let whole = received.datagram.clone();
        let mut at = 20 + 32;
        cut(edge::ingress(received).unwrap(), |piece| {
            let airloom_base::Body::Real(body) = piece.body() else { panic!("real octets") };
            assert_eq!(body.as_ptr(), whole[at..].as_ptr());
            at += body.len();
        })
        .unwrap();
        assert_eq!(at, whole.len());
    }

    #[test]
    fn what_is_one_datagram_stays_one() {
        for (len, segment) in [(100, 0), (100, 100), (100, 1448), (0, 100)] {
            let out = pieces(offered(V4, protocol::TCP, &tcp(), len, segment));
            assert_eq!(out.len(), 1);
            assert_eq!(out[0][20 + 13], tcp()[13]);
        }
    }

    #[test]
    fn what_has_no_numbers_to_count_on_is_refused() {
        let icmp = [8, 0, 0, 0, 0, 1, 0, 1];
        let packet = edge::ingress(offered(V4, protocol::ICMP, &icmp, 3000, 1000)).unwrap();
        assert!(cut(packet, |_| panic!("nothing is given on")).is_err());
        let unknown = edge::ingress(offered(V6, 43, &[], 3000, 1000)).unwrap();
        assert!(cut(unknown, |_| panic!("nothing is given on")).is_err());
        let packet = Packet::build(|_| 0, airloom_base::Body::Real(Bytes::from_static(&[0; 100])));
        let mut packet = packet;
        packet.set_segment_size(10);
        assert!(cut(packet, |_| panic!("nothing is given on")).is_err());
    }
}
