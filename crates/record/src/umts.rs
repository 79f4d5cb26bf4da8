//! UMTS RLC PDUs inside UDP, in the marked form that Wireshark's `rlc_udp` heuristic takes.
//!
//! Payload: the eight characters `umts-rlc`, tags with what the dissector cannot know, then 0x01 and the PDU.
//! The reader says `tshark --enable-heuristic rlc_udp`, in one pass: in the second of two passes that dissector
//! complains of SDUs whose missing PDU came late.
//!
//! The tag for the channel type is left out on purpose. With it the dissector shows SDUs as IP, but puts them
//! together wrongly where sequence numbers wrap, and gives every TCP segment to the TCP analysis once more. The
//! datagrams stand at the IP points, with the same packet numbers.

use airloom_base::{Direction, Station};

use crate::gsmtap;

/// What a reader has to switch on to see RLC.
pub(crate) const HINT: &str = "tshark --enable-heuristic rlc_udp";

/// The radio bearer number of a first user plane bearer; 0 to 4 are signalling.
pub(crate) const RADIO_BEARER: u8 = 5;

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
const TAGS: usize = 2 + 2 + 5 + 2 + 2 + 1;
/// Octets in front of the PDU.
pub(crate) const OVERHEAD: usize = 20 + 8 + MARKER.len() + TAGS;

/// Through whose eyes a PDU is seen. The dissector puts PDUs of one UE id together and calls a second sighting of
/// a sequence number a duplicate, so each view has UE ids of its own.
#[derive(Clone, Copy)]
pub(crate) enum View {
    /// As sent.
    Sent = 0,
    /// As received.
    Received = 1,
    /// Lost on the way: nobody put it together with anything.
    Lost = 2,
}

impl View {
    /// Stations from 1; the view above them.
    fn ue_id(self, station: Station) -> u32 {
        ((self as u32) << 20) + u32::from(station.0) + 1
    }
}

/// Appends IPv4, UDP and the marker with its tags, then `pdu`; both checksums are right.
pub(crate) fn append(
    out: &mut Vec<u8>,
    direction: Direction,
    station: Station,
    li_octets: u8,
    view: View,
    pdu: &[u8],
) {
    let pdu = &pdu[..pdu.len().min(usize::from(u16::MAX) - OVERHEAD)];
    let parts: [&[u8]; 9] = [
        MARKER,
        &MODE,
        &[DIRECTION, direction as u8],
        &[UE_ID],
        &view.ue_id(station).to_be_bytes(),
        &[BEARER_ID, RADIO_BEARER],
        &[LI_SIZE, if li_octets == 1 { 1 } else { 2 }],
        &[PDU],
        pdu,
    ];
    gsmtap::datagram(out, direction, station, [UE_PORT, NETWORK_PORT], &parts);
}

#[cfg(test)]
mod tests {
    use airloom_wire::checksum;

    use super::*;

    #[test]
    fn an_uplink_pdu_carries_its_tags_and_right_checksums() {
        let mut out = Vec::new();
        append(&mut out, Direction::Uplink, Station(2), 1, View::Received, &[0x80, 0x04, 0xaa]);
        assert_eq!(out.len(), OVERHEAD + 3);
        assert!(checksum::verify(&out, false).is_ok());
        assert_eq!(&out[12..20], &[10, 127, 0, 4, 10, 127, 0, 1]);
        let tags = [3, 2, 4, 0, 5, 0, 0x10, 0, 3, 6, 5, 7, 1, 1, 0x80, 0x04, 0xaa];
        assert_eq!(&out[28..36], b"umts-rlc");
        assert_eq!(&out[36..], &tags);
    }

    #[test]
    fn a_pdu_that_no_datagram_can_carry_is_cut() {
        let mut out = Vec::new();
        append(&mut out, Direction::Downlink, Station(0), 2, View::Sent, &vec![0; 70_000]);
        assert_eq!(out.len(), 65_535);
    }
}
