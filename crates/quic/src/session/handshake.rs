//! Who says what when: one round trip, as TLS 1.3 with certificates and without a client's.
//!
//! ```text
//!   client                               server
//!   ClientHello                   ->
//!                                 <-     ServerHello | EncryptedExtensions, Certificate, CertificateVerify, Finished
//!   Finished                      ->
//!                                 <-     | tickets
//! ```
//!
//! With a ticket of an earlier connection the session goes on: no certificates, and where both ends are set to it the client's data
//! comes right behind its hello (0-RTT).

use std::any::Any;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Buf;

use airloom_base::random::Stream;

use super::messages::{
    self, CLIENT_HELLO, ENCRYPTED_EXTENSIONS, FINISHED, HEADER, NEW_SESSION_TICKET, Resumed, SERVER_HELLO,
    Sizes, Ticket,
};
use super::tickets::{Office, Wallet};
use super::{Epoch, Protection, Reader};
use crate::library::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use crate::library::transport_parameters::TransportParameters;
use crate::library::{self, ConnectError, Id, Side, This, TransportError, TransportErrorCode};

/// Octets of one message at most; what a stranger says beyond is a violation.
const LARGEST: usize = 1 << 16;

/// Alerts of TLS (RFC 8446, 6.2; RFC 7301, 3.2).
const UNEXPECTED_MESSAGE: u8 = 10;
const DECODE_ERROR: u8 = 50;
const MISSING_EXTENSION: u8 = 109;
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// What all sessions of a host share.
pub(crate) struct Common {
    pub(crate) sizes: Sizes,
    pub(crate) protection: Box<dyn Protection>,
    pub(crate) randoms: Mutex<Stream>,
    pub(crate) office: Mutex<Office>,
    pub(crate) wallet: Mutex<Wallet>,
    /// What its server shows, once it has shown it.
    pub(crate) certificate: OnceLock<Vec<u8>>,
    /// Somebody wants to know of all that arrives.
    pub(crate) is_told: AtomicBool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Common {
    fn reader(&self, side: Side) -> Reader {
        Reader { side, reads_padding: self.is_told.load(Relaxed) }
    }

    fn random(&self) -> [u8; 32] {
        let mut stream = lock(&self.randoms);
        let mut random = [0; 32];
        random.chunks_mut(8).for_each(|part| part.copy_from_slice(&stream.bits().to_be_bytes()));
        random
    }
}

/// What starts sessions in which this protocol is spoken.
pub(crate) struct Starter {
    pub(crate) common: Arc<Common>,
    pub(crate) spoken: &'static str,
    /// A client's server.
    pub(crate) server: Option<SocketAddr>,
}

impl Starter {
    fn session(
        &self,
        side: Side,
        server: &str,
        parameters: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let mut own = Vec::new();
        parameters.write(&mut own);
        let random = self.common.random();
        let known = self.server.filter(|_| self.common.sizes.resumes);
        let known = known.and_then(|server| lock(&self.common.wallet).take((server, self.spoken)));
        let (offered, remembered) = known.unzip();
        Box::new(Handshake {
            address: self.server,
            //= RFC 8446 (4.2.10): data comes early only with a ticket that allows it.
            is_early: self.common.sizes.zero_rtt && offered.is_some_and(|ticket| ticket.allows_early),
            offered,
            remembered,
            resumes: false,
            common: self.common.clone(),
            spoken: self.spoken,
            server: server.to_owned(),
            side,
            own,
            random,
            client_random: random,
            peer: None,
            inbox: Vec::new(),
            expected: if side.is_client() { SERVER_HELLO } else { CLIENT_HELLO },
            next: Saying::Hello,
            updates: 0,
            told: false,
        })
    }
}

impl crypto::ClientConfig for Starter {
    fn start_session(
        self: This<'_, Self>,
        _: u32,
        server: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        Ok(self.session(Side::Client, server, parameters))
    }
}

impl crypto::ServerConfig for Starter {
    fn initial_keys(&self, _: u32, id: Id<'_>) -> Result<Keys, UnsupportedVersion> {
        // Of the packet that opens a connection the library counts what is behind the protection as what the client has sent.
        let reader = Reader { side: Side::Server, reads_padding: true };
        Ok(self.common.protection.initial(library::id(&id), reader))
    }
    fn retry_tag(&self, _: u32, id: Id<'_>, packet: &[u8]) -> [u8; 16] {
        self.common.protection.retry_tag(library::id(&id), packet)
    }
    fn start_session(
        self: This<'_, Self>,
        _: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        self.session(Side::Server, "", parameters)
    }
}

/// What this end says next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saying {
    Hello,
    /// The client: nothing, but its keys change.
    Keys,
    /// The client's Finished, the server's flight under handshake keys.
    Rest,
    Tickets,
    Nothing,
}

struct Handshake {
    common: Arc<Common>,
    /// Where a client's server is, the ticket that it goes on with, and what the server said when it gave that.
    address: Option<SocketAddr>,
    offered: Option<Ticket>,
    remembered: Option<TransportParameters>,
    /// Both ends go on with that session.
    resumes: bool,
    /// A client sends data early, a server takes it.
    is_early: bool,
    spoken: &'static str,
    /// The name that a client asks for.
    server: String,
    side: Side,
    own: Vec<u8>,
    random: [u8; 32],
    /// That of the client, which names the connection in key logs.
    client_random: [u8; 32],
    peer: Option<TransportParameters>,
    inbox: Vec<u8>,
    /// The kind of message that comes next; 0: any.
    expected: u8,
    next: Saying,
    updates: u32,
    told: bool,
}

fn alert(code: u8, why: &str) -> TransportError {
    library::error(TransportErrorCode::crypto(code), why)
}

impl Handshake {
    /// A whole message of the peer.
    fn hear(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let [kind, ..] = *message else { return Ok(()) };
        let body = message.get(HEADER..).unwrap_or_default();
        if self.expected == 0 {
            self.keep(kind, body);
            return Ok(());
        }
        // Between the extensions and Finished a server shows its certificates.
        let is_shown = self.side.is_client() && self.expected == FINISHED && matches!(kind, 11 | 15);
        if kind != self.expected && !is_shown {
            return Err(alert(UNEXPECTED_MESSAGE, "unexpected message"));
        }
        match kind {
            CLIENT_HELLO | ENCRYPTED_EXTENSIONS => {
                let said = messages::read(kind, body).ok_or_else(|| alert(DECODE_ERROR, "cut short"))?;
                if said.spoken != Some(self.spoken.as_bytes()) {
                    return Err(alert(NO_APPLICATION_PROTOCOL, "another protocol"));
                }
                let mut parameters =
                    said.parameters.ok_or_else(|| alert(MISSING_EXTENSION, "no transport parameters"))?;
                let read = TransportParameters::read(self.side, &mut parameters)
                    .map_err(|_| alert(DECODE_ERROR, "transport parameters"))?;
                self.peer = Some(read);
                self.client_random = said.random.unwrap_or(self.client_random);
                self.expected = FINISHED;
                if self.side.is_client() {
                    self.is_early &= self.resumes && said.is_early;
                } else if self.common.sizes.resumes
                    && let Some(ticket) = said.session
                {
                    let mut office = lock(&self.common.office);
                    let number = office.number(ticket);
                    self.resumes = number.is_some();
                    let wants = said.is_early && self.common.sizes.zero_rtt;
                    self.is_early = wants && number.is_some_and(|number| office.take_early(number));
                }
            }
            SERVER_HELLO => {
                let said = messages::read(kind, body).ok_or_else(|| alert(DECODE_ERROR, "cut short"))?;
                self.resumes = self.offered.is_some() && said.session.is_some();
                self.expected = ENCRYPTED_EXTENSIONS;
            }
            FINISHED => self.expected = 0,
            _ => {}
        }
        Ok(())
    }

    /// A client keeps the tickets of its server.
    fn keep(&self, kind: u8, body: &[u8]) {
        if kind == NEW_SESSION_TICKET
            && self.common.sizes.resumes
            && let (Some(server), Some(parameters), Some(ticket)) =
                (self.address, self.peer, messages::read_ticket(body))
        {
            lock(&self.common.wallet).keep((server, self.spoken), parameters, ticket);
        }
    }

    fn keys(&self, epoch: Epoch) -> Keys {
        self.common.protection.keys(&self.client_random, epoch, self.common.reader(self.side))
    }
}

impl crypto::Session for Handshake {
    fn initial_keys(&self, id: Id<'_>, side: Side) -> Keys {
        self.common.protection.initial(library::id(&id), self.common.reader(side))
    }
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.peer.as_ref().map(|_| Box::new(self.spoken) as Box<dyn Any>)
    }
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.is_early.then(|| self.keys(Epoch::Early))?;
        Some(match self.side {
            Side::Client => (keys.header.local, keys.packet.local),
            Side::Server => (keys.header.remote, keys.packet.remote),
        })
    }
    fn early_data_accepted(&self) -> Option<bool> {
        self.side.is_client().then_some(self.is_early)
    }
    fn is_handshaking(&self) -> bool {
        match self.side {
            Side::Client => !matches!(self.next, Saying::Nothing),
            Side::Server => self.expected != 0,
        }
    }
    fn read_handshake(&mut self, octets: &[u8]) -> Result<bool, TransportError> {
        self.inbox.extend_from_slice(octets);
        let mut inbox = std::mem::take(&mut self.inbox);
        let mut rest = &inbox[..];
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let len = HEADER + (u32::from_be_bytes(*header) & 0xFF_FFFF) as usize;
            if len > LARGEST {
                return Err(alert(DECODE_ERROR, "a message too large"));
            }
            let Some(message) = rest.get(..len) else { break };
            self.hear(message)?;
            rest.advance(len);
        }
        let kept = rest.len();
        inbox.drain(..inbox.len() - kept);
        self.inbox = inbox;
        Ok(self.peer.is_some() && !std::mem::replace(&mut self.told, self.peer.is_some()))
    }
    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        // Until the server has said what it wants what it wanted before counts.
        Ok(self.peer.or(self.remembered))
    }
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let sizes = &self.common.sizes;
        match (self.side, self.next) {
            (Side::Client, Saying::Hello) => {
                let (random, own) = (&self.random, &self.own);
                let is_early = self.is_early;
                let offered = self.offered.as_ref();
                let resumed = offered.map(|ticket| Resumed { ticket: &ticket.octets, is_early });
                messages::client_hello(out, sizes, random, &self.server, self.spoken, own, resumed);
                self.next = Saying::Keys;
                None
            }
            (Side::Client, Saying::Keys) if self.expected != SERVER_HELLO => {
                self.next = Saying::Rest;
                Some(self.keys(Epoch::Handshake))
            }
            (Side::Client, Saying::Rest) if self.expected == 0 => {
                messages::finished(out, &self.random);
                self.next = Saying::Nothing;
                Some(self.keys(Epoch::Data(0)))
            }
            (Side::Server, Saying::Hello) if self.expected != CLIENT_HELLO => {
                messages::server_hello(out, sizes, &self.random, self.resumes);
                self.next = Saying::Rest;
                Some(self.keys(Epoch::Handshake))
            }
            (Side::Server, Saying::Rest) => {
                let goes_on = (self.resumes, self.is_early);
                let (certificate, own) = (&self.common.certificate, &self.own);
                messages::server_flight(out, sizes, certificate, &self.random, self.spoken, own, goes_on);
                self.next = Saying::Tickets;
                Some(self.keys(Epoch::Data(0)))
            }
            (Side::Server, Saying::Tickets) if self.expected == 0 => {
                for number in 0..sizes.tickets {
                    let octets = lock(&self.common.office).give();
                    let ticket = Ticket { octets, allows_early: sizes.zero_rtt };
                    messages::ticket(out, number, &self.random, &ticket);
                }
                self.next = Saying::Nothing;
                None
            }
            _ => None,
        }
    }
    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.updates += 1;
        Some(self.keys(Epoch::Data(self.updates)).packet)
    }
    fn is_valid_retry(&self, id: Id<'_>, header: &[u8], payload: &[u8]) -> bool {
        let packet = [header, payload].concat();
        let Some((said, tag)) = packet.split_last_chunk::<16>() else { return false };
        *tag == self.common.protection.retry_tag(library::id(&id), said)
    }
    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
