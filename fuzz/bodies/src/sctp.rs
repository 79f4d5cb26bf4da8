//! SCTP against a peer that sends anything.

use airloom_base::Body;
use bytes::Bytes;

/// SCTP's chunks, and an open association that is fed what parses of them under the right tag. Octets are cut into packets by
/// their first one; every fourth packet goes to whom nobody knows.
pub fn sctp(octets: &[u8]) {
    use airloom_base::service::Identity;
    use airloom_base::{Cx, Instant, Outbox, PathId, Protocol, Transport};
    use airloom_transports::sctp::wire::{self, Header};
    use airloom_transports::sctp::{Config, Sctp};
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let config = Config { interleaving: how & 1 != 0, ecn: how & 2 != 0, ..Config::default() };
    let (mut one, mut other) = (Sctp::new(config.clone(), (1, 2)), Sctp::new(config, (3, 4)));
    let [near, far] = crate::quic::paths();
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
    let _ = server.write(&mut cx, 0, Body::filler(1, 50_000));
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

/// Two ends that talk over a bad link, with a forger on it who knows the tags.
pub fn sctp_link(octets: &[u8]) {
    use airloom_base::Protocol;
    use airloom_transports::sctp::{Config, Profile, Sctp};

    use crate::octets::Octets;
    let mut octets = Octets::new(octets);
    let ends = [1, 2].map(|secret| {
        let profile = octets.one_of(&[Profile::Rfc9260, Profile::Rfc4960, Profile::Sctp2000]);
        let how = octets.octet();
        let config = Config {
            interleaving: how & 1 != 0,
            ecn: how & 2 != 0,
            partial_reliability: how & 4 != 0,
            stream_reset: how & 8 != 0,
            ..profile.settings()
        };
        Box::new(Sctp::new(config, (secret, secret))) as Box<dyn Protocol>
    });
    crate::link::play(ends, octets, forge);
}

/// Chunks of anything behind the header of a packet that was seen, or those of its own with another octet.
fn forge(
    octets: &mut crate::octets::Octets<'_>,
    seen: &airloom_testkit::Offered,
) -> Option<airloom_base::Packet> {
    use airloom_transports::sctp::wire::{HEADER, Header};
    let header = Header::parse(&seen.head).ok()?;
    let chunks = if octets.is_set() {
        let mut chunks = seen.head[HEADER..].to_vec();
        let at = usize::from(octets.number()) % chunks.len().max(1);
        *chunks.get_mut(at)? = octets.octet();
        chunks.into()
    } else {
        Bytes::copy_from_slice(octets.piece())
    };
    Some(header.packet_of(chunks))
}
