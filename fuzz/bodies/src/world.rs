//! A whole network with a host in it that is not ours.

use airloom_base::{Body, Duration, Packet};
use airloom_wire::edge::Received;
use airloom_wire::{edge, ip};
use airloom_world::scenario::Scenario;
use airloom_world::{PortId, World};

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
