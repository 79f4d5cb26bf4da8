//! Where the network meets real devices: octets become packets, packets become octets.

use bytes::Bytes;

use airloom_base::Packet;

use crate::ip::{Ip, protocol};
use crate::{Error, checksum, icmp, udp};

/// A datagram as a device hands it over.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its octets, possibly with padding of the link layer at the end.
    pub datagram: Bytes,
    /// Its transport checksum needs no check: the sending kernel left it open or vouches for it.
    pub transport_done: bool,
    /// Octets of payload in each of the datagrams it stands for; 0: it is one datagram. See [`crate::segment`].
    pub segment: u16,
}

impl Received {
    /// One datagram as it would stand on a wire.
    pub fn whole(datagram: impl Into<Bytes>) -> Received {
        Received { datagram: datagram.into(), transport_done: false, segment: 0 }
    }
}

/// Octets of the transport header that the model wants as header octets.
fn transport_header(ip: &Ip, payload: &[u8]) -> Result<usize, Error> {
    if ip.is_fragment {
        return Ok(0);
    }
    let (needed, len) = match ip.protocol {
        protocol::TCP => (20, usize::from(payload.get(12).ok_or(Error::Truncated)? >> 4) * 4),
        protocol::UDP => (udp::HEADER, udp::HEADER),
        protocol::ICMP | protocol::ICMPV6 => (icmp::HEADER, icmp::HEADER),
        protocol::SCTP => (12, 12),
        _ => (0, 0),
    };
    if len < needed {
        return Err(Error::Malformed("header length"));
    }
    if payload.len() < len {
        return Err(Error::Truncated);
    }
    Ok(len)
}

/// A datagram from a device becomes a packet: its checksums are verified (the transport's unless
/// `transport_done`), link-layer padding is cut off, header octets are copied and the rest is shared.
pub fn ingress(received: Received) -> Result<Packet, Error> {
    let Received { mut datagram, transport_done, segment } = received;
    let ip = checksum::verify(&datagram, transport_done)?;
    datagram.truncate(ip.total_len);
    let head = ip.header_len + transport_header(&ip, &datagram[ip.header_len..])?;
    let mut packet = Packet::ingress(datagram, head).ok_or(Error::Malformed("header length"))?;
    packet.set_segment_size(segment);
    Ok(packet)
}

/// Appends the octets of `packet` as they would stand on a wire: fillers written out, checksums filled in.
pub fn egress(packet: &Packet, out: &mut Vec<u8>) {
    let from = out.len();
    packet.append_to(out);
    // A packet that its own header does not describe (fuzzed, or not IP) goes out as it is.
    let _ = checksum::finish(&mut out[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use airloom_base::Body;

    #[test]
    fn what_goes_out_comes_in_again() {
        let (a, b) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let mut packet = Packet::build(
            |out| udp::Udp { source: 1, destination: 2, len: 108 }.emit(out),
            Body::filler(3, 100),
        );
        crate::ip::emit(packet.prepend(20), a, b, protocol::UDP, 0, 108);
        let mut octets = Vec::new();
        egress(&packet, &mut octets);
        octets.extend_from_slice(&[0; 7]); // Ethernet padding
        let back = ingress(Received::whole(octets.clone())).unwrap();
        assert_eq!(back.body().to_bytes(), Body::filler(3, 100).to_bytes());
        assert_eq!(back.head()[20..28], octets[20..28]);
        for cut in 0..128 {
            assert!(ingress(Received::whole(octets[..cut].to_vec())).is_err(), "{cut}");
        }
    }
}
