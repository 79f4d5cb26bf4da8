//! QUIC against a peer, and strangers, that send anything.

use std::sync::OnceLock;

use airloom_base::service::{Identity, Path};
use airloom_base::units::Octets;
use airloom_base::{
    Body, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, StreamEvent, Transport, TransportEvent,
};
use airloom_transports::quic::{Config, InitialWindow, Quic};
use airloom_wire::udp::Udp;

use crate::quic_places::{HOME, Ledger, PATH_RESPONSE, Paths, from_place};

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
    paths: Paths,
    ledger: Ledger,
}

impl Server {
    /// With as little as leads behind the handshake: small certificates, no tickets, no search for a larger packet size, and a window
    /// that a few packets fill.
    fn new(retry: bool) -> Server {
        Server::with(config(retry))
    }

    pub(crate) fn with(config: Config) -> Server {
        Server {
            protocol: Quic::new(config, 1, "server"),
            connection: None,
            told: Vec::new(),
            paths: Paths::begin(HOME),
            ledger: Ledger::default(),
        }
    }

    /// Its client is where its first datagrams come from.
    pub(crate) fn trust(mut self) -> Server {
        self.ledger.show(HOME);
        self
    }

    /// Datagrams of the client arrive; what is sent then.
    pub(crate) fn take(&mut self, cx: &mut Cx, datagrams: impl IntoIterator<Item = Packet>) -> Vec<Packet> {
        let mut sent = Vec::new();
        for datagram in datagrams {
            sent.extend(self.arrive(cx, HOME, 0, datagram));
        }
        sent.extend(std::iter::from_fn(|| self.send(cx)));
        sent
    }

    /// A datagram arrives from a place. Before there is a connection a stranger may get an answer.
    pub(crate) fn arrive(&mut self, cx: &mut Cx, place: usize, ecn: u8, datagram: Packet) -> Option<Packet> {
        self.ledger.received(place, &datagram.body().to_bytes());
        let (far, ports) = from_place(place);
        if self.connection.is_none() {
            self.connection = self.protocol.accept(cx, far, ports, Identity::default(), &datagram);
            if self.connection.is_some() {
                self.paths = Paths::begin(place);
            } else {
                return self.answer(cx, place, &datagram);
            }
        }
        let connection = self.connection.as_deref_mut()?;
        let path = match self.paths.of(place) {
            Some(path) => path,
            None if self.protocol.whose(cx, &far, ports, ecn, &datagram).is_some() => {
                self.paths.meet(place, connection, cx)?
            }
            None => return self.answer(cx, place, &datagram),
        };
        connection.handle_packet(cx, path, ecn, datagram);
        self.told.extend(std::iter::from_fn(|| connection.poll_event()));
        None
    }

    /// A datagram of a stranger arrives from a place, and may open another connection.
    fn refuse(&mut self, cx: &mut Cx, place: usize, who: Identity, datagram: &Packet) {
        self.ledger.received(place, &datagram.body().to_bytes());
        let (far, ports) = from_place(place);
        let _ = self.protocol.whose(cx, &far, ports, 0, datagram);
        let _ = self.protocol.accept(cx, far, ports, who, datagram);
        let _ = self.answer(cx, place, datagram);
    }

    fn answer(&mut self, cx: &mut Cx, place: usize, datagram: &Packet) -> Option<Packet> {
        let answer = self.protocol.answer(cx, &from_place(place).0, datagram, true)?;
        self.ledger.sent(place, &answer.body().to_bytes());
        Some(answer)
    }

    /// The next datagram of its connection.
    pub(crate) fn send(&mut self, cx: &mut Cx) -> Option<Packet> {
        let out = self.connection.as_mut()?.poll_transmit(cx)?;
        self.ledger.sent(self.paths.place(out.path), &out.packet.body().to_bytes());
        Some(out.packet)
    }

    /// Its deadline passes.
    pub(crate) fn wait(&mut self, cx: &mut Cx) {
        if let Some(connection) = &mut self.connection
            && let Some(at) = connection.poll_timeout()
        {
            cx.now = cx.now.max(at);
            connection.handle_timeout(cx);
        }
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
        let mut server = Server::new(retry).trust();
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
/// client has to show where it is first (Retry), and with every second pair of them what happens is told (qlog). Frames whose first octet
/// begins no kind that there is come from another place, behind an answer to the last challenge or not.
pub fn quic(octets: &[u8]) {
    play(octets);
}

/// What became of the connection.
#[derive(Default)]
struct Played {
    is_closed: bool,
    /// The server has believed that its client has moved.
    has_moved: bool,
    /// Which of the first places have shown themselves.
    is_shown: [bool; 8],
}

fn play(octets: &[u8]) -> Played {
    let mut played = Played::default();
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return played };
    let mut records = Outbox::default();
    records.ask_qlog(how & 2 == 2);
    let mut cx = Cx { now: Instant::ZERO, records: &mut records };
    let mut server = Server::new(how & 1 == 1).trust();
    // The peer's last packet.
    let mut last: &[u8] = &[];
    for (now, round) in opening(how & 1 == 1) {
        cx.now = *now;
        last = round.last().map_or(last, Vec::as_slice);
        server.take(&mut cx, round.iter().map(|octets| unit(octets)));
    }
    // More than the window of the beginning.
    let body = Body::filler(1, 10_000);
    let _ = server.connection.as_mut().expect("it opens").write(&mut cx, 0, body);
    for (n, octets) in rest.chunks(8 + usize::from(how >> 1)).take(DATAGRAMS).enumerate() {
        let (place, frames) = match octets {
            //= RFC 9000 (16, 12.4): what follows would be a kind with eight octets, and there is none.
            [first @ 0xC0..=0xFF, frames @ ..] => {
                let challenge = server.ledger.latest().filter(|_| first & 0x20 != 0);
                let answer = challenge.map(|challenge| [&[PATH_RESPONSE][..], &challenge].concat());
                (usize::from(first >> 2 & 7), [answer.as_deref().unwrap_or_default(), frames].concat())
            }
            _ => (HOME, octets.to_vec()),
        };
        let (place, datagram) = match n % 4 {
            0 => (HOME, unit(octets)),
            3 => {
                server.refuse(&mut cx, HOME + 1, Identity { host: 0, flow: n as u32 }, &unit(octets));
                continue;
            }
            // A short header with one octet of number, and the tag: what the peer's key is, and the number again.
            _ => {
                let number = (n as u8).wrapping_add(16);
                let (id, key) = (&last[1..9], &last[last.len() - 16..last.len() - 8]);
                let rest = [id, &[number], &frames, key, &u64::from(number).to_be_bytes()].concat();
                (place, unit(&[&[0x40][..], &rest].concat()))
            }
        };
        server.arrive(&mut cx, place, octets[0] & 3, datagram);
        let mut sent = 0;
        while let Some(packet) = server.send(&mut cx) {
            assert!(packet.wire_len() <= 1480, "larger than the path takes");
            sent += 1;
            assert!(sent < 1000, "a datagram is answered by a thousand");
        }
        if let Some(connection) = &mut server.connection {
            while connection.read(&mut cx, 0, 1 << 16).is_some() {}
        }
        if n % 8 == 7 {
            server.wait(&mut cx);
        }
    }
    played.is_shown = std::array::from_fn(|place| server.ledger.is_shown(place));
    let is_move = |told: &TransportEvent| matches!(told, TransportEvent::Stream(0, StreamEvent::Path(..)));
    played.has_moved = server.told.iter().any(is_move);
    played.is_closed = server.told.iter().any(|told| matches!(told, TransportEvent::Closed(_)));
    played
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_made_up_reaches_the_frames() {
        for how in [0, 1] {
            // Nonsense, then PING or CONNECTION_CLOSE (RFC 9000, 19.2, 19.19) with padding behind it.
            let made_up = |kind: u8| [how, 7, 7, 7, 7, 7, 7, 7, 7, kind, 0, 0, 0, 0, 0, 0, 0];
            assert!(!super::play(&made_up(0x01)).is_closed);
            assert!(super::play(&made_up(0x1C)).is_closed);
        }
    }

    #[test]
    fn what_is_made_up_comes_from_elsewhere() {
        for how in [0, 1] {
            // A PING from the third place, and the answer to the challenge.
            let input = [how, 7, 7, 7, 7, 7, 7, 7, 7, 0xC8, 1, 0, 0, 0, 0, 0, 0, 0xE8, 0, 0, 0, 0, 0, 0, 0];
            let asked = super::play(&input[..17]);
            assert!(asked.has_moved && !asked.is_shown[2]);
            assert!(super::play(&input).is_shown[2]);
        }
    }
}
