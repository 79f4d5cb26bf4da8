//! Formats that no protocol owns.

use std::net::IpAddr;

use airloom_wire::edge::{self, Received};
use airloom_wire::icmp::Icmp;
use airloom_wire::ip::{self, Ip};
use airloom_wire::udp::Udp;
use airloom_wire::{checksum, segment};
use bytes::Bytes;

/// Every parser of the wire crate; what is parsed can be written again.
pub fn wire(octets: &[u8]) {
    let _ = Ip::parse(octets);
    let _ = Udp::parse(octets);
    for source in ["10.0.0.1", "fd00::1"].map(|a| a.parse::<IpAddr>().expect("an address")) {
        let _ = Icmp::parse(source, octets);
    }
    let _ = ip::destination_key(octets);
    let mut copy = octets.to_vec();
    let _ = ip::decrement_hop_limit(&mut copy);
    if checksum::finish(&mut copy).is_ok() && !Ip::parse(&copy).is_ok_and(|ip| ip.is_fragment) {
        assert!(checksum::verify(&copy, false).is_ok(), "what was finished verifies");
    }
    for (transport_done, segment) in [(false, 0), (true, 0), (true, 1), (true, 1448)] {
        let datagram = Bytes::copy_from_slice(octets);
        if let Ok(packet) = edge::ingress(Received { datagram, transport_done, segment }) {
            let (whole, mut joined) = (packet.body().len(), 0);
            let cut = segment::cut(packet.duplicate(), |piece| joined += piece.body().len());
            assert!(cut.is_err() || joined == whole, "nothing is lost in cutting");
            let mut out = Vec::new();
            edge::egress(&packet, &mut out);
            assert!(out.len() <= octets.len());
        }
    }
}
