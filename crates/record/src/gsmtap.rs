//! GSMTAP messages inside UDP, which Wireshark reads without being told; and the UDP of all PDUs that go so.

use std::net::Ipv4Addr;

use airloom_base::{Direction, Station};
use airloom_wire::udp::{self, Udp};
use airloom_wire::{checksum, ip};

/// The port of GSMTAP.
const PORT: u16 = 4729;

/// The address that stands for the network, and one for each mobile.
const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 127, 0, 1);

fn mobile(station: Station) -> Ipv4Addr {
    let [high, low] = station.0.wrapping_add(2).to_be_bytes();
    Ipv4Addr::new(10, 127, high, low)
}

/// Appends IPv4 and UDP, then `message` (GSMTAP header and block); both checksums are right.
pub(crate) fn append(out: &mut Vec<u8>, direction: Direction, station: Station, message: &[u8]) {
    let message = &message[..message.len().min(usize::from(u16::MAX) - ip::V4_HEADER - udp::HEADER)];
    datagram(out, direction, station, [PORT; 2], &[message]);
}

/// Appends IPv4, UDP and these parts; the first port is the mobile's, the other that of the network.
pub(crate) fn datagram(
    out: &mut Vec<u8>,
    direction: Direction,
    station: Station,
    [port, network_port]: [u16; 2],
    parts: &[&[u8]],
) {
    let from = out.len();
    let (mobile, network) = ((mobile(station), port), (NETWORK, network_port));
    let (source, destination) = match direction {
        Direction::Uplink => (mobile, network),
        Direction::Downlink => (network, mobile),
    };
    let len = udp::HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut headers = [0; ip::V4_HEADER + udp::HEADER];
    ip::emit(&mut headers[..ip::V4_HEADER], source.0.into(), destination.0.into(), ip::protocol::UDP, 0, len);
    Udp { source: source.1, destination: destination.1, len: len as u16 }.emit(&mut headers[ip::V4_HEADER..]);
    out.extend_from_slice(&headers);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    checksum::finish(&mut out[from..]).expect("the headers above are well formed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_port_and_right_checksums() {
        let mut out = Vec::new();
        append(&mut out, Direction::Downlink, Station(3), &[2, 4, 1, 0, 0xAA]);
        assert!(checksum::verify(&out, false).is_ok());
        assert_eq!(&out[12..20], &[10, 127, 0, 1, 10, 127, 0, 5]);
        assert_eq!((&out[22..24], &out[28..]), (&4729u16.to_be_bytes()[..], &[2, 4, 1, 0, 0xAA][..]));
    }
}
