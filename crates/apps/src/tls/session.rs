//! One end of one connection: the handshake, and records both ways.
//!
//! ```text
//!            TLS 1.3                      1.3 resumed (0-RTT: data at once)   1.2                            1.2 resumed
//! client ->  ClientHello                  ClientHello [CCS, data]             ClientHello                    ClientHello
//! server ->  ServerHello, CCS,            ServerHello, CCS,                   ServerHello, Certificate,      ServerHello,
//!            EncryptedExtensions,         EncryptedExtensions,                [ServerKeyExchange],           CCS, Finished
//!            Certificate, CertificateVerify, Finished                         ServerHelloDone
//!            Finished                     [EndOfEarlyData],
//! client ->  CCS, Finished, data          Finished, data                      ClientKeyExchange, CCS,        CCS, Finished,
//!                                                                             Finished                       data
//! server ->  NewSessionTicket, data       NewSessionTicket, data              [NewSessionTicket], CCS,
//!                                                                             Finished
//! client ->                                                                   data
//! ```

use std::collections::VecDeque;

use airloom_base::service::WriteError;
use airloom_base::{Body, Cx, Instant, SocketId, Sockets};
use bytes::Bytes;

use super::messages::{self, ClientHello, ServerHello, kind};
use super::record::{MOST, Malformed, Protection, Record, RecordReader, content, join, seal, take};
use super::sizes::Sizes;
use super::{Config, Version};

/// Octets of content that wait to be sent.
pub(super) const WAITING: usize = 2 * MOST;

/// The longest message of a handshake.
const MESSAGE: usize = 1 << 17;

/// Why a connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// What came is not TLS, or not what has to come.
    Malformed,
    /// Both speak nothing over TLS that the other speaks.
    NoProtocol,
    /// The peer says that it failed.
    Told,
}

impl From<Malformed> for Failure {
    fn from(_: Malformed) -> Failure {
        Failure::Malformed
    }
}

/// What a client begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begin {
    pub(super) resumes: bool,
    pub(super) early_data: bool,
}

/// One end of one connection.
#[derive(Default)]
pub(super) struct Session {
    is_server: bool,
    sizes: Sizes,
    /// What is spoken over it, or would be.
    alpn: Vec<Vec<u8>>,
    record: usize,
    pub(super) version: Version,
    pub(super) resumes: bool,
    /// Data goes, or may come, before the handshake has ended.
    early_data: bool,
    /// Data came (or went) early that a server does not take.
    skips_early: bool,
    /// What went early, in case it has to go again.
    early: VecDeque<Body>,
    /// Does a server go on with sessions that it knows?
    remembers: bool,
    reader: RecordReader,
    /// The peer's records are protected (TLS 1.2).
    peer_protects: bool,
    /// Are ours?
    protects: bool,
    hello_said: bool,
    pub(super) is_established: bool,
    /// May content go out?
    pub(super) can_write: bool,
    /// Messages of a handshake that are not complete.
    handshake: VecDeque<Body>,
    handshake_octets: usize,
    /// Records on their way.
    wire: VecDeque<Body>,
    wire_octets: usize,
    /// Content on its way.
    plain: VecDeque<Body>,
    pub(super) plain_octets: usize,
    /// Content that came.
    pub(super) arrived: VecDeque<Body>,
    pub(super) arrived_octets: usize,
    /// The client may go on with this session another time.
    pub(super) has_ticket: bool,
    /// The peer says that it sends no more.
    pub(super) peer_closed: bool,
    is_closing: bool,
    has_finished: bool,
    pub(super) began: Option<Instant>,
    /// Octets that TLS adds, of handshakes and around content.
    pub(super) added: u64,
}

impl Session {
    pub(super) fn new(is_server: bool, config: &Config, alpn: &[&str]) -> Self {
        Session {
            is_server,
            sizes: Sizes::of(config),
            alpn: alpn.iter().map(|name| name.as_bytes().to_vec()).collect(),
            record: (config.record.0 as usize).clamp(1, MOST),
            version: config.version,
            remembers: config.remembers,
            ..Session::default()
        }
    }

    /// A client begins the handshake.
    pub(super) fn begin(&mut self, now: Instant, begin: Begin) {
        self.began = Some(now);
        self.resumes = begin.resumes;
        self.early_data = begin.early_data && begin.resumes && self.version == Version::Tls13;
        let hello = ClientHello {
            version: self.version,
            resumes: self.resumes,
            early_data: self.early_data,
            alpn: self.alpn.clone(),
        };
        self.say(&hello.emit(&self.sizes));
        if self.early_data {
            self.change_cipher_spec();
            self.protects = true;
            self.can_write = true;
        }
    }

    /// Was data sent early that the server has neither refused nor answered with the end of its handshake?
    pub(super) fn is_early(&self) -> bool {
        self.early_data && !self.is_established
    }

    fn protection(&self) -> Protection {
        Protection { version: self.version, cipher: self.sizes.cipher }
    }

    fn push(&mut self, kind: u8, pieces: Vec<Body>) {
        let before = self.wire.len();
        let content: usize = pieces.iter().map(Body::len).sum();
        let how = self.protects.then(|| self.protection());
        seal(kind, pieces, how, &mut self.wire);
        let sealed: usize = self.wire.range(before..).map(Body::len).sum();
        self.wire_octets += sealed;
        self.added += (if kind == content::DATA { sealed - content } else { sealed }) as u64;
    }

    /// A message of the handshake: in a record of its own, or several if it is long, as OpenSSL does it.
    fn say(&mut self, message: &[u8]) {
        for piece in message.chunks(MOST) {
            self.push(content::HANDSHAKE, vec![Body::Real(Bytes::copy_from_slice(piece))]);
        }
    }

    fn change_cipher_spec(&mut self) {
        let before = std::mem::replace(&mut self.protects, false);
        self.push(content::CHANGE_CIPHER_SPEC, vec![Body::Real(Bytes::from_static(&[1]))]);
        self.protects = before;
    }

    /// Takes octets of the connection.
    pub(super) fn feed(&mut self, body: Body) -> Result<(), Failure> {
        self.reader.feed(body);
        loop {
            let is_13 = self.version == Version::Tls13;
            let how = (self.peer_protects || (is_13 && self.hello_said)).then(|| self.protection());
            match self.reader.poll(how)? {
                Some(record) => self.record(record)?,
                None => return Ok(()),
            }
        }
    }

    fn record(&mut self, record: Record) -> Result<(), Failure> {
        let octets: usize = record.content.iter().map(Body::len).sum();
        match record.kind {
            content::CHANGE_CIPHER_SPEC => {
                self.peer_protects |= self.version == Version::Tls12;
                Ok(())
            }
            content::ALERT => {
                //= RFC 8446 (6.1): close_notify, warning or not, says that nothing follows.
                match join(&record.content)[..] {
                    [_, 0] => self.peer_closed = true,
                    _ => return Err(Failure::Told),
                }
                Ok(())
            }
            content::HANDSHAKE => {
                self.handshake_octets += octets;
                self.handshake.extend(record.content);
                self.messages()
            }
            //= RFC 8446 (4.2.10): early data that is not taken is skipped.
            _ if self.skips_early && !self.is_established => Ok(()),
            _ if self.is_established || (self.is_server && self.early_data) => {
                if !self.peer_closed {
                    self.arrived_octets += octets;
                    self.arrived.extend(record.content);
                }
                Ok(())
            }
            _ => Err(Failure::Malformed),
        }
    }

    /// Works on the messages that are complete.
    fn messages(&mut self) -> Result<(), Failure> {
        while self.handshake_octets >= messages::HEADER {
            let mut peek = self.handshake.clone();
            let head = join(&take(&mut peek, messages::HEADER));
            let [kind, a, b, c] = head[..] else { return Err(Failure::Malformed) };
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > MESSAGE {
                return Err(Failure::Malformed);
            }
            if self.handshake_octets < messages::HEADER + length {
                return Ok(());
            }
            self.handshake_octets -= messages::HEADER + length;
            drop(take(&mut self.handshake, messages::HEADER));
            let body = take(&mut self.handshake, length);
            self.heard(kind, &body)?;
        }
        Ok(())
    }

    fn heard(&mut self, kind: u8, body: &VecDeque<Body>) -> Result<(), Failure> {
        match (self.is_server, kind) {
            (true, kind::CLIENT_HELLO) if !self.hello_said => {
                let hello = ClientHello::parse(&join(body)).ok_or(Failure::Malformed)?;
                self.answer(&hello)
            }
            (true, kind::FINISHED) if self.hello_said && !self.is_established => {
                self.client_finished();
                Ok(())
            }
            (true, kind::CLIENT_KEY_EXCHANGE | kind::END_OF_EARLY_DATA) if self.hello_said => Ok(()),
            (false, kind::SERVER_HELLO) if !self.hello_said => {
                let hello = ServerHello::parse(&join(body)).ok_or(Failure::Malformed)?;
                self.hello_said = true;
                self.version = hello.version;
                if self.early_data && self.version == Version::Tls12 {
                    //= RFC 8446 (D.3): who has sent early data cannot go on with TLS 1.2.
                    return Err(Failure::Malformed);
                }
                self.resumes &= hello.resumes;
                self.sizes.cipher = hello.cipher;
                let was_early = self.early_data;
                self.early_data &= self.resumes;
                if was_early && !self.early_data {
                    // It goes again when the handshake has ended.
                    self.can_write = false;
                    let mut again = std::mem::take(&mut self.early);
                    self.plain_octets += again.iter().map(Body::len).sum::<usize>();
                    again.append(&mut self.plain);
                    self.plain = again;
                }
                self.early.clear();
                Ok(())
            }
            (false, kind::SERVER_HELLO_DONE) if self.hello_said && self.version == Version::Tls12 => {
                let encrypts = self.sizes.server_key_exchange == 0;
                self.say(&messages::client_key_exchange(self.sizes.client_key_exchange, encrypts));
                self.change_cipher_spec();
                self.protects = true;
                self.say(&messages::finished(self.version));
                Ok(())
            }
            (false, kind::FINISHED) if self.hello_said && !self.is_established => {
                self.server_finished();
                Ok(())
            }
            (false, kind::NEW_SESSION_TICKET) if self.hello_said => {
                self.has_ticket = true;
                Ok(())
            }
            (
                false,
                kind::ENCRYPTED_EXTENSIONS
                | kind::CERTIFICATE
                | kind::CERTIFICATE_VERIFY
                | kind::SERVER_KEY_EXCHANGE,
            ) if self.hello_said => Ok(()),
            _ => Err(Failure::Malformed),
        }
    }

    /// A server's flight.
    fn answer(&mut self, hello: &ClientHello) -> Result<(), Failure> {
        self.hello_said = true;
        self.version = self.version.min(hello.version);
        self.resumes = hello.resumes && self.remembers;
        // In TLS 1.2 there is no early data: nobody expects it.
        let is_early = hello.early_data && self.version == Version::Tls13;
        self.early_data = is_early && self.resumes;
        self.skips_early = is_early && !self.resumes;
        //= RFC 7301 (3.2): a server that speaks nothing of what is offered ends the handshake; where nothing is offered it
        //= says nothing.
        let alpn = if hello.alpn.is_empty() {
            None
        } else {
            let known = self.alpn.iter().find(|name| hello.alpn.contains(name));
            Some(known.ok_or(Failure::NoProtocol)?.clone())
        };
        let (sizes, version, resumes) = (self.sizes, self.version, self.resumes);
        let said = ServerHello { version, resumes, alpn: alpn.clone(), cipher: sizes.cipher };
        self.say(&said.emit(&sizes));
        if version == Version::Tls13 {
            self.change_cipher_spec();
            self.protects = true;
            self.say(&messages::encrypted_extensions(alpn.as_deref()));
            if !resumes {
                self.say(&messages::certificates(version, sizes.certificates));
                self.say(&messages::opaque(kind::CERTIFICATE_VERIFY, sizes.certificate_verify));
            }
            self.say(&messages::finished(version));
            //= RFC 8446 (2): a server may send behind its Finished.
            self.can_write = true;
        } else if resumes {
            self.change_cipher_spec();
            self.protects = true;
            self.say(&messages::finished(version));
        } else {
            self.say(&messages::certificates(version, sizes.certificates));
            if sizes.server_key_exchange > 0 {
                self.say(&messages::server_key_exchange(sizes.server_key_exchange));
            }
            self.say(&messages::opaque(kind::SERVER_HELLO_DONE, messages::HEADER));
        }
        Ok(())
    }

    fn client_finished(&mut self) {
        let (version, sizes) = (self.version, self.sizes);
        self.is_established = true;
        if version == Version::Tls13 {
            for _ in 0..sizes.tickets {
                self.say(&messages::ticket(version, sizes.ticket));
            }
        } else if !self.resumes {
            if self.remembers && sizes.tickets > 0 {
                self.say(&messages::ticket(version, sizes.ticket));
            }
            self.change_cipher_spec();
            self.protects = true;
            self.say(&messages::finished(version));
        }
        self.can_write = true;
    }

    fn server_finished(&mut self) {
        let version = self.version;
        if version == Version::Tls13 {
            if self.early_data {
                self.say(&messages::message(kind::END_OF_EARLY_DATA, &[]));
            } else if !self.protects {
                self.change_cipher_spec();
            }
            self.protects = true;
            self.say(&messages::finished(version));
        } else if self.resumes {
            self.change_cipher_spec();
            self.protects = true;
            self.say(&messages::finished(version));
        }
        // A session of TLS 1.2 can go on by its number alone.
        self.has_ticket |= version == Version::Tls12;
        self.is_established = true;
        self.can_write = true;
    }

    /// Takes content to be sent; how many octets of it.
    pub(super) fn write(&mut self, mut body: Body) -> Result<usize, WriteError> {
        if self.is_closing {
            return Err(WriteError::Closed);
        }
        let offered = body.len();
        let taken = body.split_to(WAITING.saturating_sub(self.plain_octets));
        let octets = taken.len();
        if octets > 0 {
            self.plain_octets += octets;
            self.plain.push_back(taken);
        }
        WriteError::or_taken(octets, offered)
    }

    /// Is there enough content for a whole record?
    pub(super) fn has_a_record(&self) -> bool {
        self.can_write && self.plain_octets >= self.record
    }

    /// Nothing more is to be sent.
    pub(super) fn finish(&mut self) {
        self.is_closing = true;
    }

    /// Says why it ends.
    pub(super) fn alert(&mut self, description: u8) {
        self.push(content::ALERT, vec![Body::Real(Bytes::copy_from_slice(&[2, description]))]);
    }

    /// Octets that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.wire_octets + self.plain_octets
    }

    /// Writes until the socket takes no more.
    pub(super) fn flush(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        loop {
            while let Some(first) = self.wire.front_mut() {
                let taken = net.write(cx, socket, first.clone()).unwrap_or(0).min(first.len());
                self.wire_octets -= taken;
                drop(first.split_to(taken));
                if !first.is_empty() {
                    return;
                }
                self.wire.pop_front();
            }
            if self.can_write && self.plain_octets > 0 {
                let piece = take(&mut self.plain, self.record);
                self.plain_octets -= piece.iter().map(Body::len).sum::<usize>();
                if self.early_data && !self.is_established && !self.is_server {
                    self.early.extend(piece.iter().cloned());
                }
                self.push(content::DATA, piece.into());
            } else if self.is_closing && !self.has_finished && (self.can_write || self.plain_octets == 0) {
                self.has_finished = true;
                //= RFC 8446 (6.1): each side sends close_notify before it closes its side.
                self.push(content::ALERT, vec![Body::Real(Bytes::from_static(&[1, 0]))]);
            } else {
                break;
            }
        }
        if self.has_finished {
            net.finish(cx, socket);
        }
    }
}
