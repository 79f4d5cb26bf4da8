//! UMTS RLC PDUs inside UDP, in the marked form that Wireshark's `rlc_udp` heuristic takes.
//!
//! Payload: the eight characters `umts-rlc`, tags with what the dissector cannot know, then 0x01 and the PDU.
//! The reader says `tshark --enable-heuristic rlc_udp`.

use std::net::Ipv4Addr;

use airloom_base::{Direction, Station};

/// What a reader has to switch on to see RLC.
pub(crate) const HINT: &str = "RLC PDUs: tshark --enable-heuristic rlc_udp";

/// The radio bearer number of a first user plane bearer; 0 to 4 are signalling.
pub(crate) const RADIO_BEARER: u8 = 5;

const CHANNEL_TYPE: [u8; 2] = [0x02, 4]; // a packet switched DTCH: SDUs are put together and shown as IP
const MODE: [u8; 2] = [0x03, 2]; // acknowledged
const DIRECTION: u8 = 0x04;
const UE_ID: u8 = 0x05;
const BEARER_ID: u8 = 0x06;
const LI_SIZE: u8 = 0x07;
const PDU: u8 = 0x01;

/// Ports that no dissector claims.
const UE_PORT: u16 = 45_000;
const NETWORK_PORT: u16 = 45_001;

const MARKER: &[u8; 8] = b"umts-rlc";
const TAGS: usize = 2 + 2 + 2 + 5 + 2 + 2 + 1;
/// Octets in front of the PDU.
pub(crate) const OVERHEAD: usize = 20 + 8 + MARKER.len() + TAGS;

/// The address that stands for the radio network controller.
const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 127, 0, 1);

/// The address that stands for the mobile's end of the radio link.
fn mobile(station: Station) -> Ipv4Addr {
    let [high, low] = station.0.wrapping_add(2).to_be_bytes();
    Ipv4Addr::new(10, 127, high, low)
}

/// Appends IPv4, UDP and the marker with its tags, then `pdu`; both checksums are right.
pub(crate) fn append(out: &mut Vec<u8>, direction: Direction, station: Station, li_octets: u8, pdu: &[u8]) {
    let from = out.len();
    let total = u16::try_from(OVERHEAD + pdu.len()).unwrap_or(u16::MAX);
    let pdu = &pdu[..usize::from(total) - OVERHEAD];
    let (source, destination, ports) = match direction {
        Direction::Uplink => (mobile(station), NETWORK, (UE_PORT, NETWORK_PORT)),
        Direction::Downlink => (NETWORK, mobile(station), (NETWORK_PORT, UE_PORT)),
    };
    out.extend_from_slice(&[0x45, 0]);
    out.extend_from_slice(&total.to_be_bytes());
    out.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]); // no fragments, 64 hops, UDP
    out.extend_from_slice(&source.octets());
    out.extend_from_slice(&destination.octets());
    let sum = checksum(0, &out[from..]);
    out[from + 10..from + 12].copy_from_slice(&sum.to_be_bytes());

    let udp = out.len();
    out.extend_from_slice(&ports.0.to_be_bytes());
    out.extend_from_slice(&ports.1.to_be_bytes());
    out.extend_from_slice(&(total - 20).to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(MARKER);
    out.extend_from_slice(&CHANNEL_TYPE);
    out.extend_from_slice(&MODE);
    out.extend_from_slice(&[DIRECTION, direction as u8]);
    out.push(UE_ID);
    out.extend_from_slice(&(u32::from(station.0) + 1).to_be_bytes());
    out.extend_from_slice(&[BEARER_ID, RADIO_BEARER]);
    out.extend_from_slice(&[LI_SIZE, if li_octets == 1 { 1 } else { 2 }]);
    out.push(PDU);
    out.extend_from_slice(pdu);
    let pseudo_header = out[from + 12..from + 20]
        .chunks_exact(2)
        .map(|c| u32::from(u16::from_be_bytes([c[0], c[1]])))
        .sum::<u32>()
        + 17
        + u32::from(total - 20);
    //= RFC 768: a computed checksum of zero is sent as all ones.
    let sum = match checksum(pseudo_header, &out[udp..]) {
        0 => 0xffff,
        sum => sum,
    };
    out[udp + 6..udp + 8].copy_from_slice(&sum.to_be_bytes());
}

/// The Internet checksum of `octets`, continued from `sum`.
//= RFC 1071 (1): the one's complement of the one's complement sum of 16-bit words, the last padded with zero.
fn checksum(sum: u32, octets: &[u8]) -> u16 {
    let words = octets.chunks_exact(2);
    let last = words.remainder().first().map_or(0, |b| u64::from(*b) << 8);
    let mut sum: u64 =
        words.map(|c| u64::from(u16::from_be_bytes([c[0], c[1]]))).sum::<u64>() + last + u64::from(sum);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uplink_pdu_carries_its_tags_and_right_checksums() {
        let mut out = Vec::new();
        append(&mut out, Direction::Uplink, Station(2), 1, &[0x80, 0x04, 0xaa]);
        assert_eq!(out.len(), OVERHEAD + 3);
        // A sum over octets that include their own checksum is all ones, so its complement is zero.
        assert_eq!(checksum(0, &out[..20]), 0);
        assert_eq!(&out[12..20], &[10, 127, 0, 4, 10, 127, 0, 1]);
        let tags = [2, 4, 3, 2, 4, 0, 5, 0, 0, 0, 3, 6, 5, 7, 1, 1, 0x80, 0x04, 0xaa];
        assert_eq!(&out[28..36], b"umts-rlc");
        assert_eq!(&out[36..], &tags);
        let pseudo = [10, 127, 0, 4, 10, 127, 0, 1, 0, 17, out[24], out[25]];
        assert_eq!(checksum(0, &[&pseudo, &out[20..]].concat()), 0);
    }

    #[test]
    fn a_pdu_that_no_datagram_can_carry_is_cut() {
        let mut out = Vec::new();
        append(&mut out, Direction::Downlink, Station(0), 2, &vec![0; 70_000]);
        assert_eq!(out.len(), 65_535);
    }
}
