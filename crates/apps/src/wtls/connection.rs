//! A connection: its flights, and who is to be heard when.

use airloom_base::Instant;
use bytes::Bytes;

use super::record::{self, Record, kind};
use super::{Class, Config};

/// Types of messages: the numbers of TLS.
mod message {
    pub(super) const CLIENT_HELLO: u8 = 1;
    pub(super) const SERVER_HELLO: u8 = 2;
    pub(super) const CERTIFICATE: u8 = 11;
    pub(super) const SERVER_KEY_EXCHANGE: u8 = 12;
    pub(super) const SERVER_HELLO_DONE: u8 = 14;
    pub(super) const CLIENT_KEY_EXCHANGE: u8 = 16;
    pub(super) const FINISHED: u8 = 20;
}

/// Octets of the verification data of Finished.
const VERIFY: usize = 12;
/// Octets of a session's name.
const SESSION: usize = 8;
/// RSA with certificates, and anonymous RSA.
const SUITES: [u8; 2] = [8, 5];

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Client: ClientHello is out.
    Hello,
    /// Client: keys and Finished are out. Server: its hello is out.
    Keys,
    /// Finished of the other end has come.
    Open,
}

/// What came in a datagram.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Heard {
    /// Data for the application.
    pub(super) data: Vec<Bytes>,
    /// The last flight goes out, now or again.
    pub(super) answers: bool,
    /// It cannot go on; the other end is told, unless it was the one who said so.
    pub(super) failed: Option<Tell>,
}

/// Is the other end told that it is over?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tell {
    Them,
    Nobody,
}

/// What a server says of records that belong to no connection (WAP-261, alert messages): fatal, no connection, no checksum of the
/// message; in clear, as there are no keys. An alert is not answered, or two ends would tell each other for ever.
pub(super) fn no_connection(records: &[Record]) -> Option<Bytes> {
    let mut out = Vec::new();
    record::clear(&mut out, kind::ALERT, 0, &[3, 5, 0, 0, 0, 0]);
    records.iter().all(|record| record.kind != kind::ALERT).then(|| out.into())
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    is_server: bool,
    pub(super) state: State,
    /// What the client's random octets begin with: a hello with others begins anew.
    pub(super) random: u32,
    /// An abbreviated handshake.
    pub(super) resumes: bool,
    /// The flight that is sent until it is answered.
    pub(super) flight: Bytes,
    /// Client: something protected has come, so the server has our Finished.
    pub(super) is_known: bool,
    number: u16,
}

fn push(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(body.len() as u16).to_be_bytes());
    out.extend_from_slice(body);
}

fn random(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_be_bytes());
    out.resize(out.len() + 12, 0);
}

/// A number of a key, with its length.
fn number(out: &mut Vec<u8>, octets: usize) {
    out.extend_from_slice(&(octets as u16).to_be_bytes());
    out.resize(out.len() + octets, 1);
}

/// A certificate in WTLS's own form, of `size` octets or as few as it takes.
fn certificate(size: usize, key: usize) -> Vec<u8> {
    // Form: WTLS; version 1; signed with RSA and SHA-1; issuer: a text in UTF-8.
    let mut body = vec![1, 1, 2, 1, 0, 106, 2, b'c', b'a'];
    body.extend_from_slice(&[0; 8]);
    // Subject: likewise; a key of RSA without parameters: exponent and modulus.
    body.extend_from_slice(&[1, 0, 106, 2, b'g', b'w', 2, 0]);
    body.extend_from_slice(&[0, 3, 1, 0, 1]);
    number(&mut body, key);
    let signature = size.saturating_sub(body.len() + 2);
    number(&mut body, signature);
    body
}

impl Connection {
    /// A client's; its hello is ready to go.
    pub(super) fn open(random_number: u32, resumes: bool) -> Connection {
        let mut body = vec![1];
        random(&mut body, random_number);
        body.push(if resumes { SESSION as u8 } else { 0 });
        body.resize(body.len() + if resumes { SESSION } else { 0 }, 7);
        // Two suites of key exchange without parameters or names; no keys that are trusted.
        let suites: Vec<u8> = SUITES.iter().flat_map(|suite| [*suite, 0, 0]).collect();
        body.extend_from_slice(&(suites.len() as u16).to_be_bytes());
        body.extend_from_slice(&suites);
        body.extend_from_slice(&[0, 0]);
        // RC5 and 3DES with SHA-1; no compression; numbers are said; keys are not refreshed.
        body.extend_from_slice(&[4, 3, 2, 6, 2, 1, 0, 2, 0]);
        let mut messages = Vec::new();
        push(&mut messages, message::CLIENT_HELLO, &body);
        let mut connection = Connection::new(false, random_number);
        connection.resumes = resumes;
        let mut flight = Vec::new();
        record::clear(&mut flight, kind::HANDSHAKE, connection.next(), &messages);
        connection.flight = flight.into();
        connection
    }

    /// A server's, if this datagram is a hello.
    pub(super) fn accept(records: &[Record], config: &Config) -> Option<Connection> {
        let (random_number, has_session) = hello(records)?;
        let mut connection = Connection::new(true, random_number);
        connection.resumes = has_session && config.remembers;
        connection.state = State::Keys;
        let mut messages = Vec::new();
        let mut body = vec![1];
        random(&mut body, random_number);
        body.push(SESSION as u8);
        body.resize(body.len() + SESSION, 7);
        // The first suite of keys; RC5 with SHA-1; no compression; numbers are said; no refresh.
        body.extend_from_slice(&[1, 3, 2, 0, 2, 0]);
        push(&mut messages, message::SERVER_HELLO, &body);
        let mut flight = Vec::new();
        if connection.resumes {
            record::clear(&mut flight, kind::HANDSHAKE, connection.next(), &messages);
            connection.finish(&mut flight, config);
        } else {
            match config.class {
                Class::Server => {
                    let certificate = certificate(config.certificate.0 as usize, config.key.0 as usize);
                    let mut list = (certificate.len() as u16).to_be_bytes().to_vec();
                    list.extend_from_slice(&certificate);
                    push(&mut messages, message::CERTIFICATE, &list);
                }
                Class::Anonymous => {
                    // No parameters; exponent and modulus.
                    let mut key = vec![0, 0, 3, 1, 0, 1];
                    number(&mut key, config.key.0 as usize);
                    push(&mut messages, message::SERVER_KEY_EXCHANGE, &key);
                }
            }
            push(&mut messages, message::SERVER_HELLO_DONE, &[]);
            record::clear(&mut flight, kind::HANDSHAKE, connection.next(), &messages);
        }
        connection.flight = flight.into();
        Some(connection)
    }

    fn new(is_server: bool, random: u32) -> Connection {
        Connection {
            is_server,
            state: State::Hello,
            random,
            resumes: false,
            flight: Bytes::new(),
            is_known: is_server,
            number: 0,
        }
    }

    fn next(&mut self) -> u16 {
        self.number = self.number.wrapping_add(1);
        self.number.wrapping_sub(1)
    }

    /// ChangeCipherSpec and Finished.
    fn finish(&mut self, out: &mut Vec<u8>, config: &Config) {
        record::clear(out, kind::CHANGE_CIPHER_SPEC, self.next(), &[1]);
        let mut finished = Vec::new();
        push(&mut finished, message::FINISHED, &[0; VERIFY]);
        record::protected(out, kind::HANDSHAKE, self.next(), &finished, config);
    }

    /// A datagram with this content; a client says Finished along with it until it knows that it has been heard.
    pub(super) fn seal(&mut self, content: &[u8], config: &Config) -> Bytes {
        let mut out = if self.is_known { Vec::new() } else { self.flight.to_vec() };
        record::protected(&mut out, kind::DATA, self.next(), content, config);
        out.into()
    }

    /// A datagram that says that it is over: fatal, unexpected message, no checksum of the message.
    pub(super) fn alert(&mut self) -> Bytes {
        let mut out = Vec::new();
        record::clear(&mut out, kind::ALERT, self.next(), &[3, 10, 0, 0, 0, 0]);
        out.into()
    }

    /// These records came.
    pub(super) fn hear(&mut self, records: &[Record], config: &Config) -> Heard {
        let mut heard = Heard::default();
        for record in records {
            match record.kind {
                kind::ALERT if record.content.first() == Some(&3) => heard.failed = Some(Tell::Nobody),
                kind::ALERT | kind::CHANGE_CIPHER_SPEC => {}
                // What comes before Finished nobody can read; it is said again.
                kind::DATA if record.protected && self.state == State::Open => {
                    self.is_known = true;
                    heard.data.push(record.content.clone());
                }
                kind::DATA if record.protected => {}
                kind::HANDSHAKE => {
                    let right = messages(&record.content)
                        .is_some_and(|kinds| kinds.iter().all(|k| self.message(*k, &mut heard, config)));
                    if !right {
                        heard.failed = Some(Tell::Them);
                    }
                }
                _ => heard.failed = Some(Tell::Them),
            }
            if heard.failed.is_some() {
                break;
            }
        }
        heard
    }

    /// Takes a message of the handshake. Is it one that this end can hear?
    fn message(&mut self, kind: u8, heard: &mut Heard, config: &Config) -> bool {
        match (self.is_server, kind, self.state) {
            // Said again: the answer was lost.
            (true, message::CLIENT_HELLO, _) => heard.answers = true,
            (true, message::CLIENT_KEY_EXCHANGE, State::Keys) if !self.resumes => {}
            (true, message::CLIENT_KEY_EXCHANGE, State::Open) => heard.answers = true,
            (true, message::FINISHED, State::Keys) => {
                self.state = State::Open;
                if !self.resumes {
                    let mut flight = Vec::new();
                    self.finish(&mut flight, config);
                    self.flight = flight.into();
                    heard.answers = true;
                }
            }
            (true, message::FINISHED, State::Open) => {}
            (false, message::SERVER_HELLO, State::Hello) => {}
            (false, message::CERTIFICATE | message::SERVER_KEY_EXCHANGE, State::Hello) => {
                self.resumes = false
            }
            (false, message::SERVER_HELLO_DONE, State::Hello) => {
                // The secret under the server's key.
                let (mut messages, mut secret) = (Vec::new(), Vec::new());
                number(&mut secret, config.key.0 as usize);
                push(&mut messages, message::CLIENT_KEY_EXCHANGE, &secret);
                let mut flight = Vec::new();
                record::clear(&mut flight, kind::HANDSHAKE, self.next(), &messages);
                self.finish(&mut flight, config);
                self.flight = flight.into();
                self.state = State::Keys;
                heard.answers = true;
            }
            (false, message::FINISHED, State::Hello) if self.resumes => {
                let mut flight = Vec::new();
                self.finish(&mut flight, config);
                self.flight = flight.into();
                self.state = State::Open;
            }
            (false, message::FINISHED, State::Keys) => (self.state, self.is_known) = (State::Open, true),
            // Flights that were said again and came twice.
            (false, 2 | 11 | 12 | 14 | 20, State::Keys | State::Open) => {}
            _ => return false,
        }
        true
    }
}

/// The random octets of a client's hello, and does it remember a session?
pub(super) fn hello(records: &[Record]) -> Option<(u32, bool)> {
    let first = records.first().filter(|r| r.kind == kind::HANDSHAKE && !r.protected)?;
    let body = first.content.get(3..).filter(|_| first.content[0] == message::CLIENT_HELLO)?;
    let random = body.get(1..5)?;
    let session = *body.get(17)?;
    Some((u32::from_be_bytes([random[0], random[1], random[2], random[3]]), session > 0))
}

/// The types of the messages of a record, if it holds whole ones.
fn messages(content: &Bytes) -> Option<Vec<u8>> {
    let mut kinds = Vec::new();
    let mut rest = content.as_ref();
    while let [kind, high, low, behind @ ..] = rest {
        kinds.push(*kind);
        rest = behind.get(usize::from(u16::from_be_bytes([*high, *low]))..)?;
    }
    rest.is_empty().then_some(kinds)
}

/// When a client's flight goes out again, and how often it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    pub(super) at: Instant,
    pub(super) times: u16,
}
