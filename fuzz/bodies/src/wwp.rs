//! WWP against a peer that sends anything.

use airloom_base::{Body, Packet};
use bytes::Bytes;

/// An open connection of WWP in the middle of its waves that is fed whatever is cut from the octets: headers of every kind with
/// a good check, and what follows them.
pub fn wwp(octets: &[u8]) {
    use airloom_base::service::Identity;
    use airloom_base::{Cx, Instant, Outbox, PathId, Protocol};
    use airloom_transports::wwp::wire::{Kind, Layout};
    use airloom_transports::wwp::{Config, Wwp};
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let layout = Layout { header: 4 + usize::from(how % 5), ports: how & 64 != 0 };
    let config = Config { header: layout.header as u8, ports: layout.ports, ..Config::default() };
    let make = |tags| Wwp::new(config.clone(), tags).expect("a good configuration");
    let (mut one, mut other) = (make(1), make(2));
    let [near, far] = crate::quic::paths();
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
    let _ = server.write(&mut cx, 0, Body::filler(1, 50_000));
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

/// Two ends that talk over a bad link, with a forger on it who changes headers.
pub fn wwp_link(octets: &[u8]) {
    use airloom_base::Protocol;
    use airloom_transports::wwp::{Config, Wwp};

    use crate::octets::Octets;
    let mut octets = Octets::new(octets);
    let (header, ports) = (4 + octets.octet() % 5, octets.is_set());
    let config = Config { header, ports, ..Config::default() };
    let ends = [1, 2].map(|tags| {
        Box::new(Wwp::new(config.clone(), tags).expect("a good configuration")) as Box<dyn Protocol>
    });
    let forge = if ports { forge::<true> } else { forge::<false> };
    crate::link::play(ends, octets, forge);
}

/// A packet that was seen with another header and other content.
fn forge<const PORTS: bool>(
    octets: &mut crate::octets::Octets<'_>,
    seen: &airloom_testkit::Offered,
) -> Option<Packet> {
    use airloom_transports::wwp::wire::{Kind, Layout};
    let how = octets.octet();
    let own = seen.head.get(if PORTS { 4 } else { 0 }..)?;
    let layout = Layout { header: own.len(), ports: PORTS };
    let mut header = layout.parse(own).ok()?;
    if how & 1 != 0 {
        header.kind = octets.one_of(Kind::ALL);
    }
    if how & 2 != 0 {
        header.level = octets.octet() % 5;
    }
    if how & 4 != 0 {
        header.wave = octets.octet();
    }
    if how & 8 != 0 {
        header.number = octets.octet().into();
    }
    let body = Body::Real(Bytes::copy_from_slice(octets.piece()));
    Some(Packet::build(|out| layout.emit(&header, (40_000, 80), out), body))
}
