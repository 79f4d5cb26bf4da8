//! Hosts marked real, seen from inside: what a port puts in and gets out, without devices or a clock.

use std::collections::BTreeSet;

use airloom_base::random::Stream;
use airloom_base::record::{FlowRecord, Record};
use airloom_base::{Body, Direction, Duration, Packet};
use airloom_wire::icmp::{Icmp, Unreachable};
use airloom_wire::ip::{self, Ip};
use airloom_wire::{edge, edge::Received, udp};
use airloom_world::{Builder, HostId, PortId, World};
use serde_json::json;

/// Octets of a datagram from `from` to `to` with this unit behind its header.
fn datagram(from: &str, to: &str, protocol: u8, hops: u8, unit: &Packet) -> Vec<u8> {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    let mut packet = unit.duplicate();
    ip::emit(packet.prepend(ip::header_len(to)), from, to, protocol, 0, unit.wire_len());
    packet.head_mut()[8] = hops;
    let mut octets = Vec::new();
    edge::egress(&packet, &mut octets);
    octets
}

fn echo(octets: u32) -> Packet {
    Packet::build(
        |out| Icmp::EchoRequest { ident: 5, seq: 1 }.emit([10, 0, 0, 2].into(), out),
        Body::filler(1, octets),
    )
}

/// real(10.0.0.2) - router - server(10.0.1.1), the second link narrow.
fn behind_a_router() -> (Builder, HostId) {
    let mut b = Builder::new(1);
    let (real, router, server) = (b.host("real"), b.host("router"), b.host("server"));
    b.link("one", "wireline", &json!({}), &[real], router).unwrap();
    b.mtu(600);
    b.link("two", "wireline", &json!({}), &[router], server).unwrap();
    b.transport(server, "tcp", &json!({})).unwrap();
    b.app(server, "http-server", &json!({}), None).unwrap();
    b.real(real, None);
    (b, server)
}

/// Lets one second pass and gives what left the ports meanwhile.
fn second(world: &mut World) -> Vec<Packet> {
    let end = world.now() + Duration::from_secs(1);
    while let Some(at) = world.poll_timeout().filter(|at| *at <= end) {
        world.handle_timeout(at);
    }
    world.handle_timeout(end);
    std::iter::from_fn(|| world.egress()).map(|(_, packet)| packet).collect()
}

/// Its transport checksum is vouched for.
fn handed_over(octets: Vec<u8>) -> Received {
    Received { transport_done: true, ..Received::whole(octets) }
}

fn answers(world: &mut World, octets: Vec<u8>) -> Vec<(Ip, Icmp)> {
    world.ingress(world.now(), PortId(0), Received::whole(octets)).unwrap();
    let read = |p: Packet| {
        let ip = Ip::parse(p.head()).unwrap();
        (ip, Icmp::parse(ip.source, &p.head()[ip.header_len..]).unwrap())
    };
    second(world).into_iter().map(read).collect()
}

#[test]
fn echo_is_answered_and_errors_about_it_too_but_never_errors_about_errors() {
    let mut world = behind_a_router().0.build().unwrap();
    let only = |world: &mut World, octets| match answers(world, octets).as_slice() {
        [(ip, message)] => (ip.source.to_string(), *message),
        other => panic!("{other:?}"),
    };
    let send = |hops, len| datagram("10.0.0.2", "10.0.1.1", 1, hops, &echo(len));
    let reply = Icmp::EchoReply { ident: 5, seq: 1 };
    assert_eq!(only(&mut world, send(64, 56)), ("10.0.1.1".to_owned(), reply));
    assert_eq!(only(&mut world, send(1, 56)), ("10.0.0.1".to_owned(), Icmp::HopLimitExceeded));
    assert_eq!(only(&mut world, send(64, 1000)), ("10.0.0.1".to_owned(), Icmp::TooBig { mtu: 600 }));
    let error = Packet::build(
        |out| Icmp::Unreachable(Unreachable::Host).emit([10, 0, 0, 2].into(), out),
        Body::filler(1, 28),
    );
    assert_eq!(answers(&mut world, datagram("10.0.0.2", "10.0.1.1", 1, 1, &error)), []);
    let values = world.summary().values;
    assert_eq!((values["hop_limit_exceeded"], values["too_big"]), (2.0, 1.0));
}

#[test]
fn nothing_a_real_program_sends_stops_the_world() {
    let mut random = Stream::new(1, "flips");
    let syn = {
        let mut head = [0; 40];
        head[..4].copy_from_slice(&[0xC0, 0, 0, 80]);
        head[12] = 10 << 4;
        head[13] = 2;
        head[14] = 0xFF;
        head[20..].copy_from_slice(&[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7]);
        Packet::build(
            |out| {
                out[..40].copy_from_slice(&head);
                40
            },
            Body::EMPTY,
        )
    };
    let udp =
        Packet::build(|out| udp::Udp { source: 9, destination: 9, len: 58 }.emit(out), Body::filler(1, 50));
    let mut world = behind_a_router().0.build().unwrap();
    let (mut taken, mut refused) = (0, 0);
    for (protocol, unit) in [(6, &syn), (17, &udp), (1, &echo(40))] {
        let whole = datagram("10.0.0.2", "10.0.1.1", protocol, 64, unit);
        for cut in 0..whole.len() {
            let part = whole[..cut].to_vec();
            assert!(world.ingress(world.now(), PortId(0), handed_over(part)).is_err(), "{protocol} {cut}");
        }
        for round in 0..4000 {
            let mut bad = whole.clone();
            for _ in 0..=random.below(3) {
                let bit = random.below(bad.len() as u64 * 8) as usize;
                bad[bit / 8] ^= 1 << (bit % 8);
            }
            // As if the sender had summed what it wrote: parsers get to see it.
            let header = usize::from(bad[0] & 15) * 4;
            if bad[0] >> 4 == 4 && (20..=bad.len()).contains(&header) {
                bad[10..12].fill(0);
                let sum = airloom_wire::checksum::internet(&bad[..header]);
                bad[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            match world.ingress(world.now(), PortId(0), handed_over(bad)) {
                Ok(_) => taken += 1,
                Err(_) => refused += 1,
            }
            if round % 100 == 0 {
                second(&mut world);
            }
        }
    }
    assert!(taken > 5000 && refused > 100, "{taken} {refused}");
    second(&mut world);
    assert_eq!(answers(&mut world, datagram("10.0.0.2", "10.0.1.1", 1, 64, &echo(56))).len(), 1);
}

#[test]
fn the_answers_of_a_real_server_belong_to_the_flow_of_the_simulated_client() {
    let mut b = Builder::new(1);
    let (client, server) = (b.host("client"), b.host("server"));
    b.link("wire", "wireline", &json!({}), &[client], server).unwrap();
    b.transport(client, "tcp", &json!({})).unwrap();
    b.app(client, "bulk", &json!({ "size": "1kB" }), Some("server")).unwrap();
    b.real(server, None);
    b.records().ask(|_| (true, false));
    b.records().ask_facts(true, false);
    let mut world = b.build().unwrap();
    let syn = second(&mut world).remove(0);
    let ours = syn.flow();
    assert_ne!(ours, 0);
    // The server refuses.
    let mut rst = [0; 20];
    rst[..2].copy_from_slice(&syn.head()[22..24]);
    rst[2..4].copy_from_slice(&syn.head()[20..22]);
    let seq = u32::from_be_bytes(syn.head()[24..28].try_into().unwrap());
    rst[8..12].copy_from_slice(&(seq + 1).to_be_bytes());
    (rst[12], rst[13]) = (5 << 4, 0x14);
    let unit = Packet::build(
        |out| {
            out[..20].copy_from_slice(&rst);
            20
        },
        Body::EMPTY,
    );
    world
        .ingress(world.now(), PortId(0), Received::whole(datagram("10.0.0.1", "10.0.0.2", 6, 64, &unit)))
        .unwrap();
    second(&mut world);
    assert!(world.records().packets.iter().all(|row| row.facts.flow == ours));
    assert!(world.records().packets.iter().any(|row| row.facts.direction == Direction::Downlink));
    let ends = |r: &Record| matches!(r, Record::Flow(FlowRecord { flow, .. }) if *flow == ours);
    assert!(world.records().facts.iter().any(ends));
}

#[test]
fn a_udp_length_beyond_the_datagram_is_malformed() {
    let mut world = behind_a_router().0.build().unwrap();
    let mut send = |len| {
        let head = udp::Udp { source: 9, destination: 9, len };
        let unit = Packet::build(|out| head.emit(out), Body::filler(1, 50));
        let octets = datagram("10.0.0.2", "10.0.1.1", 17, 64, &unit);
        (answers(&mut world, octets).len(), world.summary().values["malformed"])
    };
    assert_eq!(send(58), (1, 0.0), "nobody listens there, says the host");
    assert_eq!(send(59), (0, 1.0));
}

#[test]
fn a_flood_of_openings_costs_bounded_memory_and_others_still_get_through_later() {
    use airloom_transports::tcp::wire::{Flags, Header};
    let mut world = behind_a_router().0.build().unwrap();
    let syn = |port: u16| {
        let header =
            Header { source: port, destination: 80, flags: Flags(2), window: 1000, ..Header::default() };
        datagram("10.0.0.2", "10.0.1.1", 6, 64, &Packet::build(|out| header.emit(out), Body::EMPTY))
    };
    for port in 1..=20_000 {
        world.ingress(world.now(), PortId(0), Received::whole(syn(port))).unwrap();
    }
    // Answers are sent again after a second: openers are counted, not answers.
    let answered: BTreeSet<[u8; 2]> =
        second(&mut world).iter().map(|p| [p.head()[22], p.head()[23]]).collect();
    assert_eq!(answered.len(), 4096, "of 20,000 openings");
    // Openers that never confirm are given up; then there is room again.
    for _ in 0..300 {
        second(&mut world);
    }
    world.ingress(world.now(), PortId(0), Received::whole(syn(30_000))).unwrap();
    assert!(!second(&mut world).is_empty());
}
