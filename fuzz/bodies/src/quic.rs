//! QUIC against a peer, and strangers, that send anything.

use airloom_base::service::{Identity, Path};
use airloom_base::{Body, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, Transport};
use airloom_transports::quic::{Config, Quic};
use airloom_wire::udp::Udp;

fn unit(octets: &[u8]) -> Packet {
    let udp = Udp { source: 40_000, destination: 443, len: 8 + octets.len() as u16 };
    Packet::build(|out| udp.emit(out), Body::Real(octets.to_vec().into()))
}

/// An open connection without protection, so that every octet reaches the frames. What comes is cut into datagrams by the first octet:
/// some as they are, some behind the header that the peer's last packet had; every fourth is of nobody. With an odd first octet the
/// client has to show where it is first (Retry).
pub fn quic(octets: &[u8]) {
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let config = Config { retry: how & 1 == 1, ..Config::default() };
    let [mut one, mut other] = ["client", "server"].map(|name| Quic::new(config.clone(), 1, name));
    let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(std::net::IpAddr::from);
    let (near, far) = (Path { local: a, remote: b, mtu: 1500 }, Path { local: b, remote: a, mtu: 1500 });
    let mut records = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut records };
    let mut client: Box<dyn Transport> = one.open(&mut cx, near, (40_000, 443), Identity::default());
    client.connect(&mut cx);
    let mut server: Option<Box<dyn Transport>> = None;
    // The header of the peer's last packet: how it begins, and which number came last.
    let mut header = Vec::new();
    for _ in 0..6 {
        while client.poll_event().is_some() {}
        while let Some(sent) = client.poll_transmit(&mut cx) {
            header = sent.packet.body().to_bytes()[..11].to_vec();
            if server.is_none() {
                server = other.accept(&mut cx, far, (443, 40_000), Identity::default(), &sent.packet);
                if server.is_none()
                    && let Some(answer) = other.answer(&mut cx, &far, &sent.packet, true)
                {
                    client.handle_packet(&mut cx, PathId(0), 0, answer);
                }
            }
            if let Some(server) = &mut server {
                server.handle_packet(&mut cx, PathId(0), 0, sent.packet);
            }
        }
        if let Some(server) = &mut server {
            while server.poll_event().is_some() {}
            while let Some(sent) = server.poll_transmit(&mut cx) {
                client.handle_packet(&mut cx, PathId(0), 0, sent.packet);
            }
        }
        cx.now += Duration::from_millis(30);
        client.handle_timeout(&mut cx);
    }
    let mut server = server.expect("it opens");
    let _ = server.write(&mut cx, 0, Body::filler(1, 50_000));
    for (n, octets) in rest.chunks(8 + usize::from(how >> 1)).enumerate() {
        let datagram = match n % 4 {
            0 => unit(octets),
            3 => {
                let stranger = unit(octets);
                let _ = other.whose(&mut cx, &far, (443, 40_001), 0, &stranger);
                let _ = other.accept(
                    &mut cx,
                    far,
                    (443, 40_001),
                    Identity { host: 0, flow: n as u32 },
                    &stranger,
                );
                let _ = other.answer(&mut cx, &far, &stranger, true);
                continue;
            }
            // A short header with one octet of number, and the tag that says the number again.
            _ => {
                let number = (n as u8).wrapping_add(16);
                let tag = u128::from(number).to_be_bytes();
                unit(&[&[0x40], &header[1..9], &[number], octets, &tag].concat())
            }
        };
        server.handle_packet(&mut cx, PathId(0), octets[0] & 3, datagram);
        while server.poll_event().is_some() {}
        let mut sent = 0;
        while let Some(out) = server.poll_transmit(&mut cx) {
            assert!(out.packet.wire_len() <= 1480, "larger than the path takes");
            sent += 1;
            assert!(sent < 1000, "a datagram is answered by a thousand");
        }
        while server.read(&mut cx, 0, 1 << 16).is_some() {}
        if let Some(at) = server.poll_timeout().filter(|_| n % 8 == 7) {
            cx.now = cx.now.max(at);
            server.handle_timeout(&mut cx);
        }
    }
}
