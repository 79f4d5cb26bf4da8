//! The handshake of QUIC with a peer that makes up one of its messages.

use std::sync::OnceLock;

use airloom_base::service::{Identity, Path};
use airloom_base::{Cx, Duration, Instant, Outbox, PathId, Protocol, Transport, TransportEvent};
use airloom_transports::quic::{Config, Quic};

use super::quic::{self, Server, paths, unit};
use super::quic_places::HOME;

/// Octets of a packet's tag.
const TAG: usize = 16;
/// Octets of a made-up message in a packet.
const PIECE: usize = 1000;

/// What both ends say, a round of each after the other, and when.
struct Round {
    at: Instant,
    client: Vec<Vec<u8>>,
    server: Vec<Vec<u8>>,
}

fn config() -> Config {
    Config { tickets: 1, ..quic::config(false) }
}

fn client(cx: &mut Cx) -> Box<dyn Transport> {
    let [near, _] = paths();
    let mut client = Quic::new(config(), 1, "client").open(cx, near, (40_000, 443), Identity::default());
    client.connect(cx);
    client
}

fn sent(cx: &mut Cx, end: &mut dyn Transport) -> Vec<Vec<u8>> {
    while end.poll_event().is_some() {}
    std::iter::from_fn(|| end.poll_transmit(cx)).map(|out| out.packet.body().to_bytes().to_vec()).collect()
}

/// All that is said until a ticket was given: always the same octets.
fn dialogue() -> &'static [Round] {
    static KNOWN: OnceLock<Vec<Round>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut records = Outbox::default();
        let mut cx = Cx { now: Instant::ZERO, records: &mut records };
        let mut server = Server::with(config()).trust();
        let mut client = client(&mut cx);
        let mut rounds = Vec::new();
        for _ in 0..6 {
            let own = sent(&mut cx, client.as_mut());
            let answers = server.take(&mut cx, own.iter().map(|octets| unit(octets)));
            let answers: Vec<_> = answers.iter().map(|answer| answer.body().to_bytes().to_vec()).collect();
            for octets in &answers {
                client.handle_packet(&mut cx, PathId(0), 0, unit(octets));
            }
            rounds.push(Round { at: cx.now, client: own, server: answers });
            cx.now += Duration::from_millis(30);
            client.handle_timeout(&mut cx);
        }
        rounds
    })
}

/// Where the length of a packet with a long header is: behind two connection ids of eight octets, and no token.
fn length_at(packet: &[u8]) -> usize {
    1 + 4 + 9 + 9 + usize::from(packet[0] & 0x30 == 0)
}

/// The packets of a datagram (RFC 9000, 12.2).
fn packets(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some(first) = rest.first() {
        let at = length_at(rest);
        let len = match first & 0x80 {
            0 => rest.len(),
            _ => at + 2 + usize::from(u16::from_be_bytes([rest[at] & 0x3F, rest[at + 1]])),
        };
        let (packet, behind) = rest.split_at(len);
        found.push(packet);
        rest = behind;
    }
    found
}

/// A packet like that one, with this number and these frames. Its tag is the key of that one, and the number.
fn forged(like: &[u8], number: u8, frames: &[u8]) -> Vec<u8> {
    let key = &like[like.len() - TAG..like.len() - TAG / 2];
    let rest = [&[number], frames, key, &u64::from(number).to_be_bytes()].concat();
    if like[0] & 0x80 == 0 {
        return [&[0x40], &like[1..9], &rest].concat();
    }
    let length = (rest.len() as u16 | 0x4000).to_be_bytes();
    [&[like[0] & 0xF0], &like[1..length_at(like)], &length, &rest].concat()
}

/// Messages that one end reads of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    ClientHello,
    ServerHello,
    EncryptedExtensions,
    Ticket,
}

impl Message {
    fn of(octet: u8) -> Message {
        [Message::ClientHello, Message::ServerHello, Message::EncryptedExtensions, Message::Ticket]
            [usize::from(octet & 3)]
    }

    fn kind(self) -> u8 {
        match self {
            Message::ClientHello => 1,
            Message::ServerHello => 2,
            Message::EncryptedExtensions => 8,
            Message::Ticket => 4,
        }
    }

    /// Does it stand here? Nothing is hidden.
    fn begins(self, octets: &[u8]) -> bool {
        match (self, octets) {
            (Message::ClientHello, [1, 0, _, _, 3, 3, ..]) => true,
            (Message::ServerHello, [2, 0, 0, _, 3, 3, ..]) => true,
            // A list of extensions is all that it has.
            (Message::EncryptedExtensions, [8, 0, 0, all, 0, list, ..]) => *all == list.wrapping_add(2),
            // It is good for a day.
            (Message::Ticket, [4, 0, 0, _, 0, 1, 0x51, 0x80, ..]) => true,
            _ => false,
        }
    }

    /// As it is, and the packet that it comes in.
    fn genuine(self) -> (Vec<u8>, &'static [u8]) {
        let said = dialogue().iter().flat_map(|round| match self {
            Message::ClientHello => &round.client,
            _ => &round.server,
        });
        let mut places = said
            .flat_map(|datagram| packets(datagram))
            .flat_map(|packet| (0..packet.len()).map(move |at| (&packet[at..], packet)));
        let (octets, packet) = places.find(|(octets, _)| self.begins(octets)).expect("it is said");
        let len = 4 + usize::from(u16::from_be_bytes([octets[2], octets[3]]));
        (octets[..len].to_vec(), packet)
    }
}

/// One message of a handshake is made up; those before it are as they should be. The first octet says which one, and how: from nothing,
/// or from a genuine one in which the octets from the place on that the second one says are others; with a length that is right or not;
/// as frames of its packet; from one place, or from another one behind the first of its packets, and to a client that is elsewhere.
pub fn quic_handshake(octets: &[u8]) {
    play(octets);
}

/// Says whether the end that reads it has ended the connection for it, or begun none.
fn play(octets: &[u8]) -> bool {
    let [how, place, made_up @ ..] = octets else { return false };
    let (how, place) = (*how, usize::from(*place));
    let message = Message::of(how);
    let (genuine, packet) = message.genuine();
    let mut said = if how & 4 == 0 {
        let mut said = genuine.clone();
        let place = place.min(said.len());
        let end = (place + made_up.len()).min(said.len());
        said.splice(place..end, made_up.iter().copied());
        if how & 8 == 8 {
            said.truncate(place + made_up.len());
        }
        said
    } else {
        [&[message.kind(), 0, 0, 0], made_up].concat()
    };
    if how & (4 | 16) != 0 && said.len() >= 4 {
        let len = ((said.len() - 4).min(usize::from(u16::MAX)) as u16).to_be_bytes();
        said[1..4].copy_from_slice(&[0, len[0], len[1]]);
    }
    // The ticket is the second one.
    let before = if message == Message::Ticket { genuine.len() } else { 0 };
    let number = if message == Message::Ticket { 32 } else { 0 };
    let mut frames: Vec<Vec<u8>> = if how & 32 == 32 {
        vec![made_up.to_vec()]
    } else {
        let piece = |(n, octets): (usize, &[u8])| {
            let at = (before + n * PIECE) as u32 | 0x8000_0000;
            let len = octets.len() as u16 | 0x4000;
            [&[0x06][..], &at.to_be_bytes(), &len.to_be_bytes(), octets].concat()
        };
        said.chunks(PIECE).enumerate().map(piece).collect()
    };
    if message == Message::ClientHello {
        //= RFC 9000 (14.1): a smaller one is dropped.
        frames.iter_mut().for_each(|frames| frames.resize(frames.len().max(1200), 0));
    }
    let forged =
        frames.iter().take(8).zip(number..).map(|(frames, number)| unit(&forged(packet, number, frames)));
    let mut records = Outbox::default();
    records.ask_qlog(how & 64 == 64);
    let mut cx = Cx { now: Instant::ZERO, records: &mut records };
    let moves = how & 128 == 128;
    if message == Message::ClientHello {
        let mut server = Server::with(config());
        let mut answers = 0;
        for (n, unit) in forged.enumerate() {
            //= RFC 9000 (9): nobody moves during a handshake.
            let place = if moves && n > 0 { HOME + 2 } else { HOME };
            answers += usize::from(server.arrive(&mut cx, place, 0, unit).is_some());
        }
        for _ in 0..3 {
            answers += std::iter::from_fn(|| server.send(&mut cx)).count();
            server.wait(&mut cx);
        }
        assert!(answers < 20, "a hello is answered by {answers}");
        return server.connection.is_none() || server.told.iter().any(is_end);
    }
    let mut client = client(&mut cx);
    let _ = sent(&mut cx, client.as_mut());
    for round in dialogue() {
        cx.now = round.at;
        match message {
            Message::Ticket => {
                // It says all that it said then: what acknowledges something else is refused.
                if round.at > Instant::ZERO {
                    client.handle_timeout(&mut cx);
                }
                let _ = sent(&mut cx, client.as_mut());
                for octets in &round.server {
                    client.handle_packet(&mut cx, PathId(0), 0, unit(octets));
                }
            }
            // The hello stands in the first packet.
            Message::EncryptedExtensions => {
                let hello = round.server.first().and_then(|datagram| packets(datagram).first().copied());
                client.handle_packet(&mut cx, PathId(0), 0, unit(hello.unwrap_or_default()));
                break;
            }
            _ => break,
        }
    }
    if moves {
        let [near, _] = paths();
        let other = Path { local: [10, 0, 0, 3].into(), ..near };
        assert!(client.add_path(&mut cx, other), "it has one");
        client.handle_path(&mut cx, PathId(0), false);
    }
    let mut told = Vec::new();
    for unit in forged {
        client.handle_packet(&mut cx, PathId(u8::from(moves)), 0, unit);
        told.extend(std::iter::from_fn(|| client.poll_event()));
        let answers = sent(&mut cx, client.as_mut()).len();
        assert!(answers < 20, "a message is answered by {answers}");
    }
    for _ in 0..2 {
        if let Some(at) = client.poll_timeout() {
            cx.now = cx.now.max(at);
            client.handle_timeout(&mut cx);
            let _ = sent(&mut cx, client.as_mut());
        }
    }
    told.iter().any(is_end)
}

fn is_end(event: &TransportEvent) -> bool {
    matches!(event, TransportEvent::Closed(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_up_is_read() {
        for what in 0..4 {
            let (genuine, _) = Message::of(what).genuine();
            // As it is, but for an octet that is put in the place of itself.
            assert!(!play(&[what, 0, genuine[0]]), "{:?}", Message::of(what));
            // A ticket that is none is left alone (RFC 8446, 4.6.1).
            let of_nothing = [what | 4, 0, 7, 7, 7];
            assert_eq!(play(&of_nothing), what != 3, "{:?}", Message::of(what));
            //= RFC 9000 (19.19): CONNECTION_CLOSE.
            assert!(play(&[what | 32, 0, 0x1C, 0, 0, 0]), "{:?}", Message::of(what));
        }
    }
}
