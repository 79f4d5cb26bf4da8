//! The Internet checksum (RFC 1071) and SCTP's CRC32c (RFC 9260, appendix A), filled in and verified at the edges of the
//! network only.

use std::net::IpAddr;

use crate::ip::{Ip, protocol};
use crate::{Error, get16, put16};

/// Sum of 16-bit words, not folded yet.
fn sum(octets: &[u8]) -> u64 {
    let words = octets.chunks_exact(4);
    let tail = words.remainder();
    let mut total: u64 = words.map(|w| u64::from(u32::from_be_bytes([w[0], w[1], w[2], w[3]]))).sum();
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    total += u64::from(u32::from_be_bytes(last));
    total
}

fn fold(mut total: u64) -> u16 {
    while total > 0xFFFF {
        total = (total & 0xFFFF) + (total >> 16);
    }
    total as u16
}

/// The checksum over `octets`: what stands in the field so that the sum over everything is zero.
pub fn internet(octets: &[u8]) -> u16 {
    !fold(sum(octets))
}

fn pseudo_header(ip: &Ip, len: usize) -> u64 {
    let addresses = match (ip.source, ip.destination) {
        (IpAddr::V4(s), IpAddr::V4(d)) => sum(&s.octets()) + sum(&d.octets()),
        (IpAddr::V6(s), IpAddr::V6(d)) => sum(&s.octets()) + sum(&d.octets()),
        _ => 0,
    };
    addresses + u64::from(ip.protocol) + len as u64
}

/// Offset of the checksum field in the transport header, and whether a pseudo-header counts.
fn field(ip: &Ip) -> Option<(usize, bool)> {
    match ip.protocol {
        protocol::TCP => Some((16, true)),
        protocol::UDP => Some((6, true)),
        protocol::ICMPV6 => Some((2, true)),
        protocol::ICMP => Some((2, false)),
        _ => None,
    }
}

/// Offset of the checksum in SCTP's common header.
const SCTP_FIELD: usize = 8;

/// The CRC32c of an SCTP packet whose field is taken for zero, as the number whose little-endian octets stand in it.
/// `None` if there is no whole common header.
pub fn sctp(packet: &[u8]) -> Option<u32> {
    let (front, behind) = (packet.get(..SCTP_FIELD)?, packet.get(SCTP_FIELD + 4..)?);
    //= RFC 9260 (6.8): computed with the field zero.
    let crc = crc32c::crc32c_append(crc32c::crc32c(front), &[0; 4]);
    Some(crc32c::crc32c_append(crc, behind))
}

/// Does the CRC32c of an SCTP packet match?
pub fn is_good_sctp(packet: &[u8]) -> bool {
    let field = packet.get(SCTP_FIELD..SCTP_FIELD + 4).and_then(|f| f.first_chunk());
    sctp(packet).is_some_and(|crc| field == Some(&crc.to_le_bytes()))
}

/// Fills in the CRC32c of an SCTP packet.
pub fn finish_sctp(packet: &mut [u8]) -> Result<(), Error> {
    let crc = sctp(packet).ok_or(Error::Truncated)?;
    //= RFC 9260 (appendix A): the octet with the lowest powers comes first.
    packet[SCTP_FIELD..SCTP_FIELD + 4].copy_from_slice(&crc.to_le_bytes());
    Ok(())
}

/// Fills in the IPv4 header checksum and the one of TCP, UDP, SCTP, ICMP and ICMPv6 of a whole datagram. Other
/// protocols, and fragments, keep theirs.
pub fn finish(datagram: &mut [u8]) -> Result<(), Error> {
    let ip = Ip::parse(datagram)?;
    if ip.destination.is_ipv4() {
        put16(datagram, 10, 0);
        let value = internet(&datagram[..ip.header_len]);
        put16(datagram, 10, value);
    }
    let payload = datagram.get_mut(ip.header_len..ip.total_len).ok_or(Error::Truncated)?;
    if ip.protocol == protocol::SCTP && !ip.is_fragment {
        return finish_sctp(payload);
    }
    if let (Some((at, pseudo)), false) = (field(&ip), ip.is_fragment) {
        if payload.len() < at + 2 {
            return Err(Error::Truncated);
        }
        put16(payload, at, 0);
        let extra = if pseudo { pseudo_header(&ip, payload.len()) } else { 0 };
        let mut value = !fold(sum(payload) + extra);
        if ip.protocol == protocol::UDP && value == 0 {
            //= RFC 768: a computed checksum of zero is sent as all ones, zero means "none".
            value = 0xFFFF;
        }
        put16(payload, at, value);
    }
    Ok(())
}

/// Where a device is to fill in the checksum of the transport: it sums from `start` to the end, and puts what it
/// found `offset` behind `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Offset of the transport header.
    pub start: usize,
    /// Offset of the field within it.
    pub offset: usize,
}

/// Prepares `head`, the header octets of a datagram of TCP or UDP, for a device that fills in checksums: states the
/// length of a `body` behind it, fills in the IPv4 header checksum and puts the sum of the pseudo-header into the
/// transport's field. `None`, and nothing is changed, for everything else, fragments among it.
pub fn leave_open(head: &mut [u8], body: usize) -> Option<Open> {
    let ip = Ip::parse(head).ok()?;
    let start = ip.header_len;
    let offset = match ip.protocol {
        protocol::TCP if head.len() >= start + 20 => 16,
        protocol::UDP if head.len() >= start + 8 => 6,
        _ => return None,
    };
    if ip.is_fragment {
        return None;
    }
    let len = head.len() - start + body;
    if ip.destination.is_ipv4() {
        put16(head, 2, (start + len) as u16);
        put16(head, 10, 0);
        let value = internet(&head[..start]);
        put16(head, 10, value);
    } else {
        put16(head, 4, len as u16);
    }
    put16(head, start + offset, fold(pseudo_header(&ip, len)));
    Some(Open { start, offset })
}

/// Checks what [`finish`] fills in. `transport_done`: the transport checksum was verified (or is still to be
/// filled in) by the sending kernel, as its offload flags say.
pub fn verify(datagram: &[u8], transport_done: bool) -> Result<Ip, Error> {
    let ip = Ip::parse(datagram)?;
    if ip.destination.is_ipv4() && fold(sum(&datagram[..ip.header_len])) != 0xFFFF {
        return Err(Error::Checksum("IPv4"));
    }
    let payload = datagram.get(ip.header_len..ip.total_len).ok_or(Error::Truncated)?;
    if ip.protocol == protocol::SCTP && !transport_done && !ip.is_fragment && !is_good_sctp(payload) {
        return Err(Error::Checksum("SCTP"));
    }
    let Some((at, pseudo)) = field(&ip) else { return Ok(ip) };
    if transport_done || ip.is_fragment {
        return Ok(ip);
    }
    if payload.len() < at + 2 {
        return Err(Error::Truncated);
    }
    if ip.protocol == protocol::UDP && ip.destination.is_ipv4() && get16(payload, at) == 0 {
        return Ok(ip);
    }
    let extra = if pseudo { pseudo_header(&ip, payload.len()) } else { 0 };
    if fold(sum(payload) + extra) != 0xFFFF {
        return Err(Error::Checksum("transport"));
    }
    Ok(ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip;

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        let octets = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
        assert_eq!(fold(sum(&octets)), 0xDDF2);
        assert_eq!(internet(&octets), 0x220D);
    }

    #[test]
    fn a_device_that_sums_what_was_left_open_finds_what_finish_fills_in() {
        for [a, b] in [["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2"]] {
            let [a, b]: [IpAddr; 2] = [a, b].map(|a| a.parse().unwrap());
            for (proto, transport) in [(protocol::UDP, 8), (protocol::TCP, 32)] {
                let header = ip::header_len(a);
                let mut d: Vec<u8> = (0..header + transport + 101).map(|n| n as u8).collect();
                ip::emit(&mut d, a, b, proto, 0, transport + 101);
                d[header + 12] = 8 << 4;
                let mut finished = d.clone();
                finish(&mut finished).unwrap();
                let (head, body) = d.split_at_mut(header + transport);
                let open = leave_open(head, body.len()).unwrap();
                assert_eq!(open.start, header);
                let value = internet(&d[open.start..]);
                put16(&mut d, open.start + open.offset, value);
                assert_eq!(d, finished);
                let (head, _) = d.split_at_mut(header + 7);
                assert_eq!(leave_open(head, 0), None, "cut short");
            }
            let mut d = vec![0; 60];
            ip::emit(&mut d, a, b, protocol::ICMP, 0, 20);
            assert_eq!(leave_open(&mut d, 0), None);
        }
    }

    #[test]
    fn the_check_value_of_crc32c_stands_in_the_field_lowest_octet_first() {
        // RFC 3720, appendix B.4: 32 octets of zeros have the CRC aa 36 91 8a.
        let mut packet = [0; 32];
        finish_sctp(&mut packet).unwrap();
        assert_eq!(packet[8..12], [0xAA, 0x36, 0x91, 0x8A]);
        assert!(is_good_sctp(&packet));
        assert_eq!(finish_sctp(&mut [0; 11]), Err(Error::Truncated));
    }

    #[test]
    fn a_finished_datagram_verifies_and_any_flipped_bit_does_not() {
        let (a, b) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let protocols = [(protocol::UDP, 13), (protocol::TCP, 24), (protocol::ICMP, 9), (protocol::SCTP, 28)];
        for (proto, len) in protocols {
            let mut d = vec![0x5A; 20 + len];
            ip::emit(&mut d[..20], a, b, proto, 0, len);
            finish(&mut d).unwrap();
            assert!(verify(&d, false).is_ok());
            // The version nibble is left out: a frame's type field names the family (IPv6 has no header checksum).
            for bit in (0..4).chain(8..d.len() * 8) {
                let mut bad = d.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(verify(&bad, false).is_err(), "{proto} bit {bit}");
            }
            for cut in 0..d.len() {
                assert!(verify(&d[..cut], false).is_err());
            }
        }
    }
}
