//! What the fuzz targets do with arbitrary octets: nothing may panic, and nothing may go on for ever.

use std::net::IpAddr;

use airloom_base::{Body, Duration, Packet};
use airloom_record::capture::Reader;
use airloom_wire::edge::{self, Received};
use airloom_wire::icmp::Icmp;
use airloom_wire::ip::{self, Ip};
use airloom_wire::udp::Udp;
use airloom_wire::{checksum, segment};
use airloom_world::scenario::Scenario;
use airloom_world::{PortId, World};
use bytes::Bytes;

mod ftp;

pub use ftp::ftp;

/// A target: octets in, no answer but not to panic.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("wire", wire),
    ("rlc", rlc),
    ("ppp", ppp),
    ("tcp", tcp),
    ("sctp", sctp),
    ("wwp", wwp),
    ("scenario", scenario),
    ("world", world),
    ("world_umts", world_umts),
    ("world_hsdpa", world_hsdpa),
    ("wap", wap),
    ("wap_gateway", wap_gateway),
    ("capture", capture),
    ("http2", http2),
    ("ftp", ftp),
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

/// A serial line of PPP, an end that negotiates, and the receiving end of a bundle of four, each fed the same octets.
pub fn ppp(octets: &[u8]) {
    use airloom_base::{Instant, random::Stream};
    use airloom_bearers::mlppp::header::{Format, Header};
    use airloom_bearers::mlppp::reassembly::{Limits, Reassembler};
    use airloom_bearers::ppp::automaton::Automaton;
    use airloom_bearers::ppp::hdlc::Deframer;
    use airloom_bearers::ppp::lcp::{Lcp, LinkOptions};
    use airloom_bearers::ppp::{frame, ipcp::Ipcp};
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let mut deframer = Deframer::new(u32::from(how));
    rest.iter().for_each(|octet| deframer.push(*octet, |content| assert!(content.len() <= rest.len())));
    let _ = frame::parse(rest);

    let wants = LinkOptions { mrru: Some(1500), short_sequence: how & 1 != 0, ..LinkOptions::default() };
    let mut now = Instant::ZERO;
    let mut lcp = Automaton::new(Lcp::new(wants.clone(), Stream::new(1, "lcp"), Some(wants)), now);
    let mut ipcp = Automaton::new(Ipcp::default(), now);
    for octets in rest.chunks(4 + usize::from(how >> 4)) {
        lcp.handle(now, octets);
        ipcp.handle(now, octets);
        assert!(std::iter::from_fn(|| lcp.poll_transmit()).count() <= 3, "an answer and a request");
        assert!(std::iter::from_fn(|| ipcp.poll_transmit()).count() <= 3, "an answer and a request");
        now += Duration::from_secs(1);
        lcp.handle_timeout(now);
        ipcp.handle_timeout(now);
    }

    let format = if how & 1 == 0 { Format::Long } else { Format::Short };
    let limits = Limits { octets: 4000, fragments: 40, packet: 1502, patience: Duration::from_secs(1) };
    let mut bundle = Reassembler::new(format, limits);
    (0..4).for_each(|member| bundle.join(member));
    for octets in rest.chunks(5) {
        let Some(header) = Header::parse(octets, format) else { break };
        let member = u16::from(octets[octets.len() - 1] % 5);
        bundle.receive(now, member, header, u64::from(octets[octets.len() - 1]) * 4, ());
        while bundle.poll().is_some() {}
        assert!(bundle.waiting().0 <= 40 && bundle.waiting().1 <= 4000);
        now += Duration::from_millis(100);
        bundle.handle_timeout(now);
    }
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

/// SCTP's chunks, and an open association that is fed what parses of them under the right tag. Octets are cut into packets by
/// their first one; every fourth packet goes to whom nobody knows.
pub fn sctp(octets: &[u8]) {
    use airloom_base::service::{Identity, Path};
    use airloom_base::{Cx, Instant, Outbox, PathId, Protocol, Transport};
    use airloom_transports::sctp::wire::{self, Header};
    use airloom_transports::sctp::{Config, Sctp};
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let config = Config { interleaving: how & 1 != 0, ecn: how & 2 != 0, ..Config::default() };
    let (mut one, mut other) = (Sctp::new(config.clone(), (1, 2)), Sctp::new(config, (3, 4)));
    let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
    let (near, far) = (Path { local: a, remote: b, mtu: 1500 }, Path { local: b, remote: a, mtu: 1500 });
    let mut records = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut records };
    let mut client = one.associate(&[near], (1, 2), Identity::default());
    client.connect(&mut cx);
    let init = client.poll_transmit(&mut cx).expect("INIT").packet;
    let ack = other.answer(&mut cx, &far, &init, true).expect("INIT ACK");
    client.handle_packet(&mut cx, PathId(0), 0, ack);
    let echo = client.poll_transmit(&mut cx).expect("COOKIE ECHO").packet;
    let mut server = other.admit(&mut cx, far, (2, 1), Identity::default(), &echo).expect("a good cookie");
    server.handle_packet(&mut cx, PathId(0), 0, echo);
    server.write(&mut cx, 0, Body::filler(1, 50_000));
    for (n, octets) in rest.chunks(8 + usize::from(how >> 2)).enumerate() {
        let tag = if n % 4 == 3 { 0 } else { server.local_tag() };
        let header = Header { source: 1, destination: 2, tag };
        let mut packet = header.packet_of(Bytes::copy_from_slice(octets));
        if let Ok((_, chunks)) = wire::parse(&mut packet.duplicate()) {
            let (_, again) = wire::parse(&mut header.packet(&chunks)).expect("it is ours");
            assert_eq!(again.len(), chunks.len());
        }
        if n % 4 == 3 {
            let _ = other.accept(&mut cx, far, (2, 1), Identity::default(), &packet);
            let _ = other.answer(&mut cx, &far, &packet, true);
            packet = header.packet_of(Bytes::copy_from_slice(octets));
        }
        server.handle_packet(&mut cx, PathId(0), 0, packet);
        while server.poll_event().is_some() {}
        while let Some(unit) = server.poll_transmit(&mut cx) {
            assert!(unit.packet.wire_len() <= 1480, "larger than the path takes");
        }
        if let Some(at) = server.poll_timeout().filter(|_| n % 8 == 7) {
            cx.now = cx.now.max(at);
            server.handle_timeout(&mut cx);
        }
    }
}

/// An open connection of WWP in the middle of its waves that is fed whatever is cut from the octets: headers of every kind with
/// a good check, and what follows them.
pub fn wwp(octets: &[u8]) {
    use airloom_base::service::{Identity, Path};
    use airloom_base::{Cx, Instant, Outbox, PathId, Protocol};
    use airloom_transports::wwp::wire::{Kind, Layout};
    use airloom_transports::wwp::{Config, Wwp};
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let layout = Layout { header: 4 + usize::from(how % 5), ports: how & 64 != 0 };
    let config = Config { header: layout.header as u8, ports: layout.ports, ..Config::default() };
    let make = |tags| Wwp::new(config.clone(), tags).expect("a good configuration");
    let (mut one, mut other) = (make(1), make(2));
    let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
    let (near, far) = (Path { local: a, remote: b, mtu: 1500 }, Path { local: b, remote: a, mtu: 1500 });
    let mut records = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut records };
    let mut client = one.open(&mut cx, near, (1, 2), Identity::default());
    client.connect(&mut cx);
    let syn = client.poll_transmit(&mut cx).expect("SYN").packet;
    let mut server = other.accept(&mut cx, far, (2, 1), Identity::default(), &syn).expect("a good SYN");
    server.handle_packet(&mut cx, PathId(0), 0, syn.duplicate());
    let answer = server.poll_transmit(&mut cx).expect("SYN-ACK").packet;
    client.handle_packet(&mut cx, PathId(0), 0, answer);
    let answer = client.poll_transmit(&mut cx).expect("ACK").packet;
    server.handle_packet(&mut cx, PathId(0), 0, answer);
    server.write(&mut cx, 0, Body::filler(1, 50_000));
    for (n, octets) in rest.chunks(5 + usize::from(how >> 3)).enumerate() {
        let mut head = [0; 32];
        if let (Ok(header), false) = (layout.parse(octets), n % 3 == 0) {
            let len = layout.emit(&header, (0, 0), &mut head);
            assert_eq!(layout.parse(&head[..len]), Ok(header), "it is ours");
        }
        let &[kind, level, wave, number, ref content @ ..] = octets else { return };
        let kind = Kind::ALL[usize::from(kind) % Kind::ALL.len()];
        let header =
            airloom_transports::wwp::wire::Header { kind, level: level % 5, wave, number: number.into() };
        let body = Body::Real(Bytes::copy_from_slice(content));
        let packet = Packet::build(|out| layout.emit(&header, (1, 2), out), body);
        let _ = other.accept(&mut cx, far, (9, 9), Identity::default(), &packet);
        let answer = other.refuse(&packet);
        assert!(
            answer.is_none_or(|a| a.wire_len() <= packet.wire_len()),
            "an answer larger than the question"
        );
        server.handle_packet(&mut cx, PathId(0), 0, packet);
        while server.poll_event().is_some() {}
        while server.read(&mut cx, 0, 1000).is_some() {}
        while let Some(unit) = server.poll_transmit(&mut cx) {
            assert!(unit.packet.wire_len() <= 1480, "larger than the path takes");
        }
        if let Some(at) = server.poll_timeout().filter(|_| n % 4 == 3) {
            cx.now = cx.now.max(at);
            server.handle_timeout(&mut cx);
        }
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

/// The same through a cell whose blocks fade.
pub fn world_hsdpa(octets: &[u8]) {
    let settings = [("fading".to_owned(), "{ doppler = 30 }".to_owned()), ("snr".to_owned(), "2".to_owned())];
    hostile_peer("umts-hsdpa", &settings, octets);
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

/// A WAP gateway with a session: datagrams, answers of origins, messages of initiators and time, as the octets say.
pub fn wap_gateway(octets: &[u8]) {
    use std::net::SocketAddr;

    use airloom_base::Instant;
    use airloom_content::http::message::Fields;
    use airloom_proxies::wap_gateway::{Config, FetchError, FetchId, FetchOrder, Fetched, Gateway, Service};
    use airloom_transports::wsp::capabilities::{Capability, option};
    use airloom_transports::wsp::client::Client;
    use airloom_transports::wsp::wire::Method;
    use airloom_transports::wtp;

    const MEMORY: u64 = 100_000;
    let server: SocketAddr = "10.0.0.2:9201".parse().expect("an address");
    let peers: [SocketAddr; 2] = ["10.0.0.1:49200", "10.0.0.3:1"].map(|at| at.parse().expect("an address"));
    let config = Config {
        memory: airloom_base::units::Octets(MEMORY),
        max_body: airloom_base::units::Octets(20_000),
        kept_decks: airloom_base::units::Octets(MEMORY),
        max_sessions: 4,
        max_pushes: 8,
        ..Config::default()
    };
    let mut gateway = Gateway::new(config);
    let mut client = Client::new(wtp::Config::default(), server, 1);
    let mut now = Instant::ZERO;
    let options = option::PUSH | option::CONFIRMED_PUSH;
    client.connect(
        now,
        vec![Capability::ClientSduSize(0), Capability::ProtocolOptions(options)],
        Bytes::new(),
    );
    let (mut asked, mut rest): (Vec<FetchId>, &[u8]) = (Vec::new(), octets);
    while let Some((&what, behind)) = rest.split_first() {
        let len = behind.first().map_or(0, |len| usize::from(*len)).min(behind.len().saturating_sub(1));
        let (piece, others) = behind.get(1..).unwrap_or_default().split_at(len);
        rest = others;
        let text = || String::from_utf8_lossy(piece).into_owned();
        match what % 8 {
            0 => {
                let service = if what & 8 == 0 { Service::Session } else { Service::Connectionless };
                let from = peers[usize::from(what >> 4 & 1)];
                gateway.handle_datagram(now, service, from, &Bytes::copy_from_slice(piece));
            }
            1 => {
                let uri = Bytes::from(format!("http://o/{}", piece.len()));
                let body = Bytes::copy_from_slice(if what & 8 == 0 { b"" } else { piece });
                let method = if body.is_empty() { Method::Get } else { Method::Post };
                client.request(
                    now,
                    method,
                    uri,
                    if body.is_empty() { body.clone() } else { Bytes::from_static(&[0x83]) },
                    body,
                );
            }
            2 | 3 => {
                let mut fields = Fields::default();
                for line in piece.split(|octet| *octet == b'\n') {
                    let at = line.iter().position(|octet| *octet == b':').unwrap_or(0);
                    fields.push(line[..at].to_vec(), line[at..].to_vec());
                }
                let kinds = ["text/html", "text/vnd.wap.wml", "text/plain", "application/vnd.wap.wmlc"];
                fields.push("Content-Type", kinds[usize::from(what >> 3 & 3)]);
                if what & 32 != 0 {
                    fields.push("Content-Encoding", "gzip");
                }
                let status = [200, 301, 404, 99][usize::from(what >> 6)];
                if let Some(id) = asked.last() {
                    gateway.handle_fetch(now, *id, Fetched::Head { status, fields });
                }
            }
            4 | 5 => {
                if let Some(id) = asked.last() {
                    let chunk = piece.repeat(1 + usize::from(what));
                    gateway.handle_fetch(now, *id, Fetched::Chunk(chunk.into()));
                    if what & 8 != 0 {
                        gateway.handle_fetch(now, *id, Fetched::End);
                    }
                }
            }
            6 => {
                let document = format!(
                    "--x\r\n\r\n<pap><push-message push-id=\"{what}\"><address address-value=\"WAPPUSH=10.0.0.1/TYPE=IPv4@x\"/>\
                     <quality-of-service delivery-method=\"confirmed\"/></push-message></pap>\r\n--x\r\nContent-Type: text/vnd.wap.si\r\n\r\n{}\r\n--x--",
                    text()
                );
                let whole = what & 8 == 0;
                let (kind, body) =
                    if whole { ("multipart/x; boundary=x", document) } else { ("application/xml", text()) };
                let answer = gateway.handle_pap(now, kind, &Bytes::from(body));
                assert!(matches!(answer.status, 202 | 400));
            }
            _ => {
                now += Duration::from_millis(u64::from(what) * 200);
                client.handle_timeout(now);
                gateway.handle_timeout(now);
                if what & 64 != 0
                    && let Some(id) = asked.pop()
                {
                    gateway.handle_fetch(now, id, Fetched::Failed(FetchError::Broken));
                }
            }
        }
        let mut datagrams = 0_u32;
        loop {
            let before = datagrams;
            while let Some((_, datagram)) = client.poll_transmit() {
                gateway.handle_datagram(now, Service::Session, peers[0], &datagram);
                datagrams += 1;
            }
            while let Some(order) = gateway.poll_fetch() {
                match order {
                    FetchOrder::Start { id, .. } => asked.push(id),
                    FetchOrder::Cancel(id) => asked.retain(|known| *known != id),
                }
            }
            while let Some((_, to, datagram)) = gateway.poll_transmit() {
                if to == peers[0] {
                    client.handle_datagram(now, server, &datagram);
                }
                datagrams += 1;
            }
            while client.poll_event().is_some() {}
            if datagrams == before {
                break;
            }
            assert!(datagrams < 10_000, "endless datagrams");
        }
        while gateway.poll_report().is_some() || gateway.poll_push().is_some() {}
        // Bodies and replies, kept decks, and one piece that came before it was found to be too much.
        assert!(gateway.held() as u64 <= 3 * MEMORY, "{} octets held", gateway.held());
    }
    let mut calls = 0_u32;
    while let Some(at) = gateway.poll_timeout() {
        now = now.max(at);
        gateway.handle_timeout(now);
        while gateway.poll_transmit().is_some() || gateway.poll_fetch().is_some() {}
        calls += 1;
        assert!(calls < 100_000, "endless timers");
    }
}

/// A capture of raw datagrams, as it is and behind the head of each of both forms.
pub fn capture(octets: &[u8]) {
    let pcap = [0xA1B2_C3D4_u32, 0x0002_0004, 0, 0, 65_535, 101];
    let section = [0x0A0D_0D0A, 28, 0x1A2B_3C4D, 0x0001_0000, u32::MAX, u32::MAX, 28];
    let interface = [1, 20, 101 << 16, 0, 20];
    for head in [vec![], pcap.to_vec(), [&section[..], &interface].concat()] {
        let file: Vec<u8> = head.iter().flat_map(|n| n.to_be_bytes()).chain(octets.iter().copied()).collect();
        if let Ok(reader) = Reader::new(file.as_slice()) {
            let report = airloom_analyze::analyze(reader, &airloom_analyze::Options::default()).report;
            assert!(report.segments <= report.frames);
        }
    }
}

/// Either end of an HTTP/2 connection. The first octet says which, whether what an end needs first comes before the rest, and
/// how octets are cut.
pub fn http2(octets: &[u8]) {
    use airloom_content::http::message::{Fields, Method, RequestHead, ResponseHead, Version};
    use airloom_content::http::v2::{Connection, Event, Options, PREFACE, Priority};
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let is_server = how & 1 == 1;
    let mut end = if is_server {
        Connection::server(Options::default())
    } else {
        Connection::client(Options::default())
    };
    let mut input = Vec::new();
    if how & 2 == 2 {
        if is_server {
            input.extend_from_slice(PREFACE);
        }
        input.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    }
    input.extend_from_slice(rest);
    for _ in 0..u8::from(!is_server) * 3 {
        let head = RequestHead {
            method: Method::Get,
            target: "/".into(),
            version: Version::Http2,
            fields: Fields::default(),
        };
        end.request(&head, Priority::default(), true);
    }
    let (mut received, mut sent) = (0, 0);
    for piece in input.chunks(1 + usize::from(how >> 2)) {
        end.feed(Body::Real(Bytes::copy_from_slice(piece)));
        while let Some(event) = end.poll_event() {
            match event {
                Event::Data(_, body) => received += body.len(),
                Event::Request(stream, _) => {
                    let (status, reason) = (200, Bytes::new());
                    let head =
                        ResponseHead { version: Version::Http2, status, reason, fields: Fields::default() };
                    end.respond(stream, &head, false);
                    end.send(stream, [Body::filler(1, 100_000)], true);
                }
                _ => {}
            }
        }
        while let Some(octets) = end.poll_transmit() {
            sent += octets.len();
        }
        assert!(end.open_streams() <= 100, "more streams than were allowed");
    }
    assert!(received <= rest.len(), "more came out than went in");
    assert!(sent < 300_000 + 101_000 * rest.len(), "answers without an end");
    if is_server {
        http2_unread(&input);
    }
}

/// The server's end where nothing is written: what waits is bounded, and what was held back is taken in after all.
fn http2_unread(input: &[u8]) {
    use airloom_content::http::message::{Fields, ResponseHead, Version};
    use airloom_content::http::v2::{Connection, Event, Options};
    let mut end = Connection::server(Options::default());
    end.feed(Body::Real(Bytes::copy_from_slice(input)));
    loop {
        while let Some(event) = end.poll_event() {
            if let Event::Request(stream, _) = event {
                let (status, reason, fields) = (200, Bytes::new(), Fields::default());
                end.respond(stream, &ResponseHead { version: Version::Http2, status, reason, fields }, true);
            }
        }
        let is_held_back = end.is_held_back();
        let waited: usize = std::iter::from_fn(|| end.poll_transmit()).map(|octets| octets.len()).sum();
        assert!(waited < 80_000, "more waits than may");
        if !is_held_back {
            return;
        }
    }
}
