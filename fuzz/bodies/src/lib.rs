//! What the fuzz targets do with arbitrary octets: nothing may panic, and nothing may go on for ever.

use std::net::IpAddr;

use airloom_base::{Body, Duration, Packet};
use airloom_wire::edge::{self, Received};
use airloom_wire::icmp::Icmp;
use airloom_wire::ip::{self, Ip};
use airloom_wire::udp::Udp;
use airloom_wire::{checksum, segment};
use airloom_world::scenario::Scenario;
use airloom_world::{PortId, World};
use bytes::Bytes;

/// A target: octets in, no answer but not to panic.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("wire", wire),
    ("rlc", rlc),
    ("tcp", tcp),
    ("scenario", scenario),
    ("world", world),
    ("world_umts", world_umts),
    ("wap", wap),
];

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

/// Every parser of RLC acknowledged mode. The first octet chooses the width of length indicators and the PDU size.
pub fn rlc(octets: &[u8]) {
    use airloom_bearers::umts::rlc::am::{AmdHeader, Control, Layout, LiWidth, Sufis};
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let _ = AmdHeader::parse(rest);
    let width = if how & 1 == 0 { LiWidth::Seven } else { LiWidth::Fifteen };
    if let Ok(layout) = Layout::parse(rest, 8 + usize::from(how), width) {
        assert!(layout.head_len <= rest.len());
    }
    let _ = Control::parse(rest);
    // Each super-field takes at least four bits, so the list ends.
    assert!(Sufis::of(rest).count() <= rest.len() * 2 + 1);
}

/// The TCP header with its options; what is parsed is written and parsed again to the same.
pub fn tcp(octets: &[u8]) {
    use airloom_transports::tcp::wire::Header;
    if let Ok((header, len)) = Header::parse(octets) {
        assert!(len <= octets.len());
        let mut out = [0; 60];
        let written = header.emit(&mut out);
        let (again, _) = Header::parse(&out[..written]).expect("it is ours");
        assert_eq!(again, header);
    }
}

/// A scenario file is understood or refused in one line.
pub fn scenario(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    match Scenario::parse("fuzzed.toml", &text) {
        Ok(scenario) => {
            let _ = scenario.to_json();
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

/// Datagrams from a real host into a world with an HTTP server. The first octet says how the rest is cut and whether
/// checksums and addresses are put right, so that datagrams get past the first check.
pub fn world(octets: &[u8]) {
    let settings = [("rate".to_owned(), "1Mbit/s".to_owned()), ("delay".to_owned(), "5ms".to_owned())];
    hostile_peer("wireline", &settings, octets);
}

/// The same over a radio link that loses a fifth of its blocks.
pub fn world_umts(octets: &[u8]) {
    hostile_peer("umts-dch", &[("loss".to_owned(), "0.2".to_owned())], octets);
}

fn hostile_peer(bearer: &str, settings: &[(String, String)], octets: &[u8]) {
    let scenario = Scenario::for_bearer(bearer, settings).expect("it is ours");
    let mut world = scenario.build(true).expect("it is ours");
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let size = 20 + usize::from(how >> 2);
    for datagram in rest.chunks(size) {
        let mut datagram = datagram.to_vec();
        if how & 1 != 0 {
            mend(&mut datagram, &world);
        }
        let now = world.now();
        let _ = {
            let segment = if how & 4 != 0 { 100 } else { 0 };
            world.ingress(
                now,
                PortId(0),
                Received { datagram: datagram.into(), transport_done: how & 2 != 0, segment },
            )
        };
        run(&mut world, Duration::from_millis(20));
    }
    // Whatever was begun ends by itself: a peer that has vanished is given up.
    run(&mut world, Duration::from_secs(7200));
    assert_eq!(world.poll_timeout(), None, "the world falls silent");
}

/// Makes octets a datagram from the real host to the server, with right lengths and checksums.
fn mend(datagram: &mut Vec<u8>, world: &World) {
    let port = &world.ports()[0];
    let server = port.names.iter().find(|(_, name)| *name != port.host_name);
    let (source, destination) = (port.addresses[0], server.expect("there is a server").0);
    let payload = datagram.split_off(datagram.len().min(20));
    let protocol = [6, 17, 1, 132][usize::from(payload.first().copied().unwrap_or(0) & 3)];
    let mut packet = Packet::build(|_| 0, Body::Real(payload.into()));
    let len = packet.wire_len();
    ip::emit(packet.prepend(ip::header_len(destination)), source, destination, protocol, 0, len);
    datagram.clear();
    edge::egress(&packet, datagram);
}

fn run(world: &mut World, time: Duration) {
    let end = world.now() + time;
    let mut calls = 0u32;
    while let Some(at) = world.poll_timeout().filter(|at| *at <= end) {
        world.handle_timeout(at);
        while world.egress().is_some() {}
        world.records().clear();
        calls += 1;
        assert!(calls < 1_000_000, "endless timers");
    }
    world.handle_timeout(end);
}

/// Documents and headers of WAP, in all their forms; what was read can be written and is read again as the same.
pub fn wap(octets: &[u8]) {
    use airloom_content::markup;
    use airloom_content::wbxml::{Limits, Options};
    use airloom_content::wml::html;
    use airloom_transports::wsp::headers::{Encoder, Pages, decode, decode_content_type};

    let limits = Limits { size: 1 << 20, depth: 64 };
    let with_header = [&[0x03, 0x04, 0x6A, 0x03, b'a', b'b', 0][..], octets].concat();
    for octets in [octets, &with_header] {
        if let Ok(document) = markup::decode(octets, limits) {
            let _ = markup::parse(markup::write(&document).as_bytes(), None);
            if let Ok(again) = markup::encode(&document, Options::default()) {
                assert_eq!(
                    markup::decode(&again, Limits::default()).as_ref(),
                    Ok(&document),
                    "what was read is written"
                );
            }
        }
    }
    if let Ok(compiled) = markup::compile(octets, None, None) {
        assert!(markup::decode(&compiled.octets, Limits::default()).is_ok(), "our own output is readable");
    }
    let deck = markup::write(&html::convert(octets, None));
    assert!(markup::parse(deck.as_bytes(), None).is_ok(), "every page becomes a deck");

    let mut pages = Pages::new();
    pages.add(0x10, "x-up-1");
    if let Ok(headers) = decode(octets, &pages) {
        let mut out = Vec::new();
        for header in headers.iter().filter_map(|h| Some((&h.name, h.value.text()?))) {
            let _ = Encoder::default().header(header.0, header.1, &mut out);
        }
        assert!(decode(&out, &pages).is_ok(), "our own output is well framed");
    }
    let _ = decode_content_type(octets);
}
