//! QUIC against a peer, and strangers, that send anything.

use std::sync::OnceLock;

use airloom_base::service::{Identity, Path};
use airloom_base::units::Octets;
use airloom_base::{
    Body, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, Transport, TransportEvent,
};
use airloom_transports::quic::{Config, InitialWindow, Quic};
use airloom_wire::udp::Udp;

/// Datagrams of a dialogue at most.
const DATAGRAMS: usize = 48;

pub(crate) fn unit(octets: &[u8]) -> Packet {
    let udp = Udp { source: 40_000, destination: 443, len: 8 + octets.len() as u16 };
    Packet::build(|out| udp.emit(out), Body::Real(octets.to_vec().into()))
}

/// The client's path and the server's.
pub(crate) fn paths() -> [Path; 2] {
    let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(std::net::IpAddr::from);
    [Path { local: a, remote: b, mtu: 1500 }, Path { local: b, remote: a, mtu: 1500 }]
}

/// A server, and its connection once it is there.
pub(crate) struct Server {
    protocol: Quic,
    pub(crate) connection: Option<Box<dyn Transport>>,
    /// What its connection has told.
    pub(crate) told: Vec<TransportEvent>,
}

impl Server {
    /// With as little as leads behind the handshake: small certificates, no tickets, no search for a larger packet size, and a window
    /// that a few packets fill.
    fn new(retry: bool) -> Server {
        Server::with(config(retry))
    }

    pub(crate) fn with(config: Config) -> Server {
        Server { protocol: Quic::new(config, 1, "server"), connection: None, told: Vec::new() }
    }

    /// Datagrams of the client arrive; what is sent then. Before there is a connection a stranger may get an answer.
    pub(crate) fn take(&mut self, cx: &mut Cx, datagrams: impl IntoIterator<Item = Packet>) -> Vec<Packet> {
        let mut sent = Vec::new();
        for datagram in datagrams {
            let [_, far] = paths();
            if self.connection.is_none() {
                self.connection =
                    self.protocol.accept(cx, far, (443, 40_000), Identity::default(), &datagram);
                if self.connection.is_none() {
                    sent.extend(self.protocol.answer(cx, &far, &datagram, true));
                }
            }
            if let Some(connection) = &mut self.connection {
                connection.handle_packet(cx, PathId(0), 0, datagram);
            }
        }
        if let Some(connection) = &mut self.connection {
            self.told.extend(std::iter::from_fn(|| connection.poll_event()));
            sent.extend(std::iter::from_fn(|| connection.poll_transmit(cx)).map(|out| out.packet));
        }
        sent
    }
}

pub(crate) fn config(retry: bool) -> Config {
    Config {
        retry,
        certificates: Octets(1000),
        tickets: 0,
        mtu_discovery: false,
        initial_window: InitialWindow::Packets(4),
        ..Config::default()
    }
}

/// Datagrams that leave at a moment, one round of them after the other.
type Rounds = Vec<(Instant, Vec<Vec<u8>>)>;

/// What a client sends until its connection is open, and when: always the same octets, since its server's are.
fn opening(retry: bool) -> &'static [(Instant, Vec<Vec<u8>>)] {
    static KNOWN: [OnceLock<Rounds>; 2] = [OnceLock::new(), OnceLock::new()];
    KNOWN[usize::from(retry)].get_or_init(|| {
        let mut records = Outbox::default();
        let mut cx = Cx { now: Instant::ZERO, records: &mut records };
        let [near, _] = paths();
        let mut server = Server::new(retry);
        let mut client =
            Quic::new(config(retry), 1, "client").open(&mut cx, near, (40_000, 443), Identity::default());
        client.connect(&mut cx);
        let mut rounds = Vec::new();
        for n in 0..12 {
            if n == 10 {
                // So that its last packet is one with a short header.
                let _ = client.write(&mut cx, 0, Body::filler(2, 10));
            }
            while client.poll_event().is_some() {}
            let sent: Vec<Vec<u8>> = std::iter::from_fn(|| client.poll_transmit(&mut cx))
                .map(|out| out.packet.body().to_bytes().to_vec())
                .collect();
            let answers = server.take(&mut cx, sent.iter().map(|octets| unit(octets)));
            rounds.push((cx.now, sent));
            for answer in answers {
                client.handle_packet(&mut cx, PathId(0), 0, answer);
            }
            cx.now += Duration::from_millis(30);
            client.handle_timeout(&mut cx);
        }
        rounds
    })
}

/// An open connection without protection, so that every octet reaches the frames. What comes is cut into datagrams by the first octet:
/// some as they are, some behind the header that the peer's last packet had; every fourth is of nobody. With an odd first octet the
/// client has to show where it is first (Retry), and with every second pair of them what happens is told (qlog).
pub fn quic(octets: &[u8]) {
    play(octets);
}

/// Says whether the connection is over in the end.
fn play(octets: &[u8]) -> bool {
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return false };
    let mut is_closed = false;
    let mut records = Outbox::default();
    records.ask_qlog(how & 2 == 2);
    let mut cx = Cx { now: Instant::ZERO, records: &mut records };
    let mut server = Server::new(how & 1 == 1);
    // The peer's last packet.
    let mut last: &[u8] = &[];
    for (now, round) in opening(how & 1 == 1) {
        cx.now = *now;
        last = round.last().map_or(last, Vec::as_slice);
        server.take(&mut cx, round.iter().map(|octets| unit(octets)));
    }
    let Server { protocol: mut other, connection, .. } = server;
    let mut server = connection.expect("it opens");
    let [_, far] = paths();
    // More than the window of the beginning.
    let _ = server.write(&mut cx, 0, Body::filler(1, 10_000));
    for (n, octets) in rest.chunks(8 + usize::from(how >> 1)).take(DATAGRAMS).enumerate() {
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
            // A short header with one octet of number, and the tag: what the peer's key is, and the number again.
            _ => {
                let number = (n as u8).wrapping_add(16);
                let (id, key) = (&last[1..9], &last[last.len() - 16..last.len() - 8]);
                unit(&[&[0x40], id, &[number], octets, key, &u64::from(number).to_be_bytes()].concat())
            }
        };
        server.handle_packet(&mut cx, PathId(0), octets[0] & 3, datagram);
        while let Some(event) = server.poll_event() {
            is_closed |= matches!(event, TransportEvent::Closed(_));
        }
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
    is_closed
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_made_up_reaches_the_frames() {
        for how in [0, 1] {
            // Nonsense, then PING or CONNECTION_CLOSE (RFC 9000, 19.2, 19.19) with padding behind it.
            let made_up = |kind: u8| [how, 7, 7, 7, 7, 7, 7, 7, 7, kind, 0, 0, 0, 0, 0, 0, 0];
            assert!(!super::play(&made_up(0x01)));
            assert!(super::play(&made_up(0x1C)));
        }
    }
}
