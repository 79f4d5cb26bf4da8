//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, as far as hosts and routers of the model need them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airloom_base::Packet;

use crate::{Error, get16, put16};

/// Protocol numbers of the IP header.
pub mod protocol {
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
}

/// Octets of an IPv4 header without options.
pub const V4_HEADER: usize = 20;
/// Octets of the IPv6 header.
pub const V6_HEADER: usize = 40;
/// Hop limit of packets that start here, as Linux sets it.
pub const HOP_LIMIT: u8 = 64;

/// What the model reads of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// Protocol of the payload (IPv6: next header; extension headers are not walked).
    pub protocol: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// The two ECN bits.
    pub ecn: u8,
    /// Octets of this header, with IPv4 options.
    pub header_len: usize,
    /// Octets of the whole datagram as the header states it.
    pub total_len: usize,
    /// Is it a fragment of a larger datagram?
    pub is_fragment: bool,
}

impl Ip {
    /// Reads the header at the beginning of `octets`.
    pub fn parse(octets: &[u8]) -> Result<Ip, Error> {
        match octets.first().ok_or(Error::Truncated)? >> 4 {
            4 => Self::parse_v4(octets),
            6 => Self::parse_v6(octets),
            _ => Err(Error::Malformed("IP version")),
        }
    }

    fn parse_v4(o: &[u8]) -> Result<Ip, Error> {
        let fixed: &[u8; V4_HEADER] = o.first_chunk().ok_or(Error::Truncated)?;
        let header_len = usize::from(fixed[0] & 15) * 4;
        let total_len = usize::from(get16(fixed, 2));
        if header_len < V4_HEADER || total_len < header_len {
            return Err(Error::Malformed("IPv4 length"));
        }
        if o.len() < header_len {
            return Err(Error::Truncated);
        }
        Ok(Ip {
            source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]).into(),
            destination: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]).into(),
            protocol: fixed[9],
            hop_limit: fixed[8],
            ecn: fixed[1] & 3,
            header_len,
            total_len,
            // More-fragments bit or an offset.
            is_fragment: get16(fixed, 6) & 0x3FFF != 0,
        })
    }

    fn parse_v6(o: &[u8]) -> Result<Ip, Error> {
        let fixed: &[u8; V6_HEADER] = o.first_chunk().ok_or(Error::Truncated)?;
        let address = |at: usize| -> IpAddr {
            let mut a = [0; 16];
            a.copy_from_slice(&fixed[at..at + 16]);
            Ipv6Addr::from(a).into()
        };
        Ok(Ip {
            source: address(8),
            destination: address(24),
            protocol: fixed[6],
            hop_limit: fixed[7],
            ecn: fixed[1] >> 4 & 3,
            header_len: V6_HEADER,
            total_len: V6_HEADER + usize::from(get16(fixed, 4)),
            is_fragment: fixed[6] == 44,
        })
    }
}

/// Octets of the header that [`emit`] writes between two such addresses.
#[inline]
pub const fn header_len(destination: IpAddr) -> usize {
    if destination.is_ipv6() { V6_HEADER } else { V4_HEADER }
}

/// Writes a header for `payload` octets into `out`, which is [`header_len`] long. IPv4: don't-fragment set,
/// identification 0 (RFC 6864 allows any for atomic datagrams), checksum open.
#[inline]
pub fn emit(out: &mut [u8], source: IpAddr, destination: IpAddr, protocol: u8, ecn: u8, payload: usize) {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            out[0] = 0x45;
            out[1] = ecn & 3;
            put16(out, 2, (V4_HEADER + payload) as u16);
            put16(out, 4, 0);
            put16(out, 6, 0x4000);
            out[8] = HOP_LIMIT;
            out[9] = protocol;
            put16(out, 10, 0);
            out[12..16].copy_from_slice(&source.octets());
            out[16..20].copy_from_slice(&destination.octets());
        }
        (source, destination) => {
            out[..4].copy_from_slice(&(0x6000_0000 | u32::from(ecn & 3) << 20).to_be_bytes());
            put16(out, 4, payload as u16);
            out[6] = protocol;
            out[7] = HOP_LIMIT;
            out[8..24].copy_from_slice(&v6(source).octets());
            out[24..40].copy_from_slice(&v6(destination).octets());
        }
    }
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V6(a) => a,
        IpAddr::V4(a) => a.to_ipv6_mapped(),
    }
}

/// The header of all datagrams of one flow, made once; only length and ECN differ from one to the next.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    octets: [u8; V6_HEADER],
    is_v6: bool,
}

impl Template {
    /// The header between these addresses.
    pub fn new(source: IpAddr, destination: IpAddr, protocol: u8) -> Self {
        let mut octets = [0; V6_HEADER];
        emit(&mut octets, source, destination, protocol, 0, 0);
        Template { octets, is_v6: destination.is_ipv6() }
    }

    /// Puts the header in front of `packet`, as [`emit`] would write it.
    #[inline]
    pub fn prepend(&self, packet: &mut Packet, ecn: u8) {
        let payload = packet.wire_len();
        if self.is_v6 {
            let out = packet.prepend(V6_HEADER);
            out.copy_from_slice(&self.octets);
            out[1] |= (ecn & 3) << 4;
            put16(out, 4, payload as u16);
        } else {
            let out: &mut [u8; V4_HEADER] =
                packet.prepend(V4_HEADER).first_chunk_mut().expect("as long as was asked for");
            out.copy_from_slice(&self.octets[..V4_HEADER]);
            out[1] = ecn & 3;
            put16(out, 2, (V4_HEADER + payload) as u16);
        }
    }
}

/// What a stack reads of the header of each datagram: addresses as numbers (see [`key`]), checked lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief {
    /// Where it comes from.
    pub source: u128,
    /// Where it goes.
    pub destination: u128,
    /// Octets of this header.
    pub header_len: usize,
    /// Octets of the whole datagram as the header states it.
    pub total_len: usize,
    /// Protocol of the payload.
    pub protocol: u8,
    /// The two ECN bits.
    pub ecn: u8,
    /// Is it a fragment of a larger datagram?
    pub is_fragment: bool,
}

impl Brief {
    /// Reads the header at the beginning of `octets`; `None` where [`Ip::parse`] gives an error.
    #[inline]
    pub fn parse(octets: &[u8]) -> Option<Brief> {
        let first = *octets.first()?;
        if first == 0x45 {
            // IPv4 without options, nearly all of it.
            let o: &[u8; V4_HEADER] = octets.first_chunk()?;
            let total_len = usize::from(u16::from_be_bytes([o[2], o[3]]));
            let address = |a, b, c, d| MAPPED | u128::from(u32::from_be_bytes([a, b, c, d]));
            return (total_len >= V4_HEADER).then(|| Brief {
                source: address(o[12], o[13], o[14], o[15]),
                destination: address(o[16], o[17], o[18], o[19]),
                header_len: V4_HEADER,
                total_len,
                protocol: o[9],
                ecn: o[1] & 3,
                is_fragment: u16::from_be_bytes([o[6], o[7]]) & 0x3FFF != 0,
            });
        }
        Self::parse_slowly(octets)
    }

    #[cold]
    fn parse_slowly(octets: &[u8]) -> Option<Brief> {
        let Ip { source, destination, protocol, ecn, header_len, total_len, is_fragment, .. } =
            Ip::parse(octets).ok()?;
        let (source, destination) = (key(source), key(destination));
        Some(Brief { source, destination, header_len, total_len, protocol, ecn, is_fragment })
    }
}

/// Congestion Experienced, the ECN codepoint that routers set (RFC 3168 5).
pub const CE: u8 = 3;

/// Marks the datagram whose header `head` begins with as one that met congestion. Says no, and leaves it alone, if its
/// sender does not know of ECN (or it is no IP datagram). The checksum of an IPv4 header is left open, as always here.
pub fn mark_ce(head: &mut [u8]) -> bool {
    let (at, shift) = match head.first().map(|first| first >> 4) {
        Some(4) => (1, 0),
        Some(6) => (1, 4),
        _ => return false,
    };
    match head.get_mut(at) {
        //= RFC 3168 (5): only ECT(0) and ECT(1) become CE.
        Some(octet) if *octet >> shift & 3 != 0 => {
            *octet |= CE << shift;
            true
        }
        _ => false,
    }
}

/// The prefix of IPv4 addresses mapped into IPv6 (RFC 4291 2.5.5.2).
const MAPPED: u128 = 0xFFFF_0000_0000;

/// The destination as one number (IPv4 as a mapped address), read without parsing the rest: what a router needs.
#[inline]
pub fn destination_key(head: &[u8]) -> Option<u128> {
    match head.first()? >> 4 {
        4 => Some(MAPPED | u128::from(u32::from_be_bytes(*head.get(16..20)?.first_chunk()?))),
        6 => Some(u128::from_be_bytes(*head.get(24..40)?.first_chunk()?)),
        _ => None,
    }
}

/// An address as one number; equal to [`destination_key`] of a packet sent to it.
#[inline]
pub fn key(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(a) => MAPPED | u128::from(u32::from(a)),
        IpAddr::V6(a) => u128::from(a),
    }
}

/// The address of a [`key`].
pub fn address(key: u128) -> IpAddr {
    if is_v4_key(key) { IpAddr::from((key as u32).to_be_bytes()) } else { IpAddr::from(key.to_be_bytes()) }
}

/// Is this the [`key`] of an IPv4 address?
#[inline]
pub const fn is_v4_key(key: u128) -> bool {
    key >> 32 == MAPPED >> 32
}

/// Counts one hop down. False if the packet has used up its hops and must not go on.
#[inline]
pub fn decrement_hop_limit(head: &mut [u8]) -> bool {
    let at = match head.first().map(|b| b >> 4) {
        Some(4) if head.len() >= V4_HEADER => 8,
        Some(6) if head.len() >= V6_HEADER => 7,
        _ => return false,
    };
    head[at] = head[at].saturating_sub(1);
    head[at] > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn headers_are_read_back_as_written() {
        let six = |n: u16| IpAddr::V6(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, n));
        for (source, destination) in [(A, B), (six(1), six(2))] {
            let mut octets = [0; V6_HEADER];
            let len = header_len(destination);
            emit(&mut octets[..len], source, destination, protocol::TCP, 2, 100);
            let ip = Ip::parse(&octets[..len]).unwrap();
            assert_eq!((ip.source, ip.destination, ip.protocol, ip.ecn), (source, destination, 6, 2));
            assert_eq!((ip.header_len, ip.total_len, ip.is_fragment), (len, len + 100, false));
            assert_eq!(destination_key(&octets[..len]), Some(key(destination)));
            assert_eq!(is_v4_key(key(destination)), destination.is_ipv4());
            let brief = Brief::parse(&octets[..len]).unwrap();
            assert_eq!((brief.source, brief.destination), (key(source), key(destination)));
            assert_eq!((brief.protocol, brief.ecn, brief.is_fragment), (ip.protocol, ip.ecn, false));
            assert_eq!((brief.header_len, brief.total_len), (ip.header_len, ip.total_len));
            assert!(decrement_hop_limit(&mut octets[..len]));
            assert_eq!(Ip::parse(&octets[..len]).unwrap().hop_limit, 63);
            let mut packet = Packet::build(|_| 0, airloom_base::Body::filler(0, 100));
            Template::new(source, destination, protocol::TCP).prepend(&mut packet, 2);
            assert_eq!(packet.head()[..7], octets[..7], "a template writes what emit writes");
            assert_eq!(Ip::parse(packet.head()).unwrap(), Ip { hop_limit: HOP_LIMIT, ..ip });
            for cut in 0..len {
                assert!(Ip::parse(&octets[..cut]).is_err());
                assert_eq!(Brief::parse(&octets[..cut]), None);
            }
        }
    }

    #[test]
    fn impossible_lengths_are_refused() {
        let mut octets = [0; V4_HEADER];
        emit(&mut octets, A, B, 17, 0, 8);
        octets[0] = 0x44;
        assert_eq!(Ip::parse(&octets), Err(Error::Malformed("IPv4 length")));
        octets[0] = 0x46;
        assert_eq!(Ip::parse(&octets), Err(Error::Truncated));
        octets[0] = 0x15;
        assert_eq!(Ip::parse(&octets), Err(Error::Malformed("IP version")));
    }

    #[test]
    fn the_last_hop_is_not_taken() {
        let mut octets = [0; V4_HEADER];
        emit(&mut octets, A, B, 17, 0, 8);
        octets[8] = 1;
        assert!(!decrement_hop_limit(&mut octets));
        assert!(!decrement_hop_limit(&mut []));
    }

    #[test]
    fn rfc_3168_5_only_datagrams_of_senders_that_know_ecn_are_marked() {
        for (source, destination) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            for (before, marked) in [(0, false), (1, true), (2, true), (3, true)] {
                let mut octets = vec![0; header_len(destination)];
                emit(&mut octets, source, destination, 6, before, 0);
                assert_eq!(mark_ce(&mut octets), marked);
                assert_eq!(Ip::parse(&octets).unwrap().ecn, if marked { CE } else { 0 });
            }
        }
        assert!(!mark_ce(&mut []));
        assert!(!mark_ce(&mut [0x40]));
        assert!(!mark_ce(&mut [0x10, 2]));
    }
}
