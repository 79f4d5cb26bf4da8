//! Messages of the handshake, as large as wanted and well-formed, so that others can read them in a capture. What nobody reads
//! (secrets, signatures, random numbers) is zeros.

use super::Version;
use super::sizes::{Cipher, Sizes};

/// Types of messages.
pub(super) mod kind {
    pub(in crate::tls) const CLIENT_HELLO: u8 = 1;
    pub(in crate::tls) const SERVER_HELLO: u8 = 2;
    pub(in crate::tls) const NEW_SESSION_TICKET: u8 = 4;
    pub(in crate::tls) const END_OF_EARLY_DATA: u8 = 5;
    pub(in crate::tls) const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub(in crate::tls) const CERTIFICATE: u8 = 11;
    pub(in crate::tls) const SERVER_KEY_EXCHANGE: u8 = 12;
    pub(in crate::tls) const SERVER_HELLO_DONE: u8 = 14;
    pub(in crate::tls) const CERTIFICATE_VERIFY: u8 = 15;
    pub(in crate::tls) const CLIENT_KEY_EXCHANGE: u8 = 16;
    pub(in crate::tls) const FINISHED: u8 = 20;
}

/// Octets of the header of a message.
pub(super) const HEADER: usize = 4;

const ALPN: u16 = 16;
const PADDING: u16 = 21;
const SESSION_TICKET: u16 = 35;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const SUPPORTED_VERSIONS: u16 = 43;
const PSK_MODES: u16 = 45;
const KEY_SHARE: u16 = 51;

/// A message: its header and its body.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (body.len() as u32).to_be_bytes();
    [&[kind, a, b, c], body].concat()
}

/// A message of `size` octets whose body nobody reads.
pub(super) fn opaque(kind: u8, size: usize) -> Vec<u8> {
    message(kind, &vec![0; size.saturating_sub(HEADER)])
}

fn extension(out: &mut Vec<u8>, kind: u16, body: &[u8]) {
    out.extend_from_slice(&kind.to_be_bytes());
    vector(out, body);
}

/// Octets behind their length in two.
fn vector(out: &mut Vec<u8>, octets: &[u8]) {
    out.extend_from_slice(&(octets.len() as u16).to_be_bytes());
    out.extend_from_slice(octets);
}

/// What a client says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientHello {
    /// The highest version it speaks.
    pub(super) version: Version,
    /// It remembers a session.
    pub(super) resumes: bool,
    /// Data follows at once.
    pub(super) early_data: bool,
    /// Protocols it would speak over TLS; none are named if it is empty.
    pub(super) alpn: Vec<Vec<u8>>,
}

impl ClientHello {
    /// Its octets, `sizes.client_hello` of them if what it says has room in that; a session that is resumed comes on top.
    pub(super) fn emit(&self, sizes: &Sizes) -> Vec<u8> {
        let is_13 = self.version == Version::Tls13;
        let mut extensions = Vec::new();
        if !self.alpn.is_empty() {
            let names: Vec<u8> =
                self.alpn.iter().flat_map(|name| [&[name.len() as u8][..], name].concat()).collect();
            let mut body = Vec::new();
            vector(&mut body, &names);
            extension(&mut extensions, ALPN, &body);
        }
        if is_13 {
            extension(&mut extensions, SUPPORTED_VERSIONS, &[4, 3, 4, 3, 3]);
            let mut share = vec![0, 36, 0, 29, 0, 32];
            share.resize(share.len() + 32, 0);
            extension(&mut extensions, KEY_SHARE, &share);
            extension(&mut extensions, PSK_MODES, &[1, 1]);
        }
        // In TLS 1.3 a session number is there for the sake of old boxes (RFC 8446, D.4).
        let session = if is_13 || self.resumes { 32 } else { 0 };
        let mut body = vec![3, 3];
        body.resize(34, 0);
        body.push(session);
        body.resize(body.len() + usize::from(session), 0);
        vector(&mut body, &suites(self.version, sizes));
        body.extend_from_slice(&[1, 0]);
        // The length of the extensions and the header of the padding have to fit, too.
        let usual = if is_13 || session == 0 { 0 } else { 32 };
        let fixed = HEADER + body.len() + 2 + extensions.len() + 4 - usual;
        if let Some(padding) = sizes.client_hello.checked_sub(fixed) {
            extension(&mut extensions, PADDING, &vec![0; padding]);
        }
        if self.early_data {
            extension(&mut extensions, EARLY_DATA, &[]);
        }
        if !is_13 && self.resumes && sizes.tickets > 0 {
            //= RFC 5077 (3.2): the ticket of the session that is to go on.
            extension(&mut extensions, SESSION_TICKET, &vec![0; sizes.ticket]);
        }
        if is_13 && self.resumes {
            //= RFC 8446 (4.2.11): identities with their age, and a hash for each; the last of all extensions.
            let mut identity = Vec::new();
            vector(&mut identity, &vec![0; sizes.ticket]);
            identity.extend_from_slice(&[0; 4]);
            let mut offered = Vec::new();
            vector(&mut offered, &identity);
            let mut binder = vec![32];
            binder.resize(33, 0);
            vector(&mut offered, &binder);
            extension(&mut extensions, PRE_SHARED_KEY, &offered);
        }
        vector(&mut body, &extensions);
        message(kind::CLIENT_HELLO, &body)
    }

    /// Reads the body of one; `None` if it is malformed.
    pub(super) fn parse(body: &[u8]) -> Option<ClientHello> {
        let mut input = Input(body);
        input.take(34)?;
        let session = input.short()?;
        let session = input.take(session)?;
        let suites = input.length()?;
        input.take(suites)?;
        let methods = input.short()?;
        input.take(methods)?;
        let mut hello = ClientHello {
            version: Version::Tls12,
            resumes: !session.is_empty(),
            early_data: false,
            alpn: Vec::new(),
        };
        let (mut is_13, mut has_key) = (false, false);
        for (kind, value) in input.extensions()? {
            match kind {
                ALPN => {
                    let mut names = Input(value.get(2..)?);
                    while !names.0.is_empty() {
                        let name = names.short()?;
                        hello.alpn.push(names.take(name)?.to_vec());
                    }
                }
                SUPPORTED_VERSIONS => is_13 = value.get(1..)?.as_chunks::<2>().0.contains(&[3, 4]),
                PRE_SHARED_KEY => has_key = true,
                EARLY_DATA => hello.early_data = true,
                _ => {}
            }
        }
        if is_13 {
            hello.version = Version::Tls13;
            hello.resumes = has_key;
        }
        Some(hello)
    }
}

/// The cipher suites of an end.
fn suites(version: Version, sizes: &Sizes) -> [u8; 2] {
    let encrypts = sizes.server_key_exchange == 0;
    match (version, sizes.cipher, encrypts) {
        (Version::Tls13, Cipher::Chacha20, _) => [0x13, 0x03],
        (Version::Tls13, ..) => [0x13, 0x01],
        (_, Cipher::CbcSha1, true) => [0x00, 0x2f],
        (_, _, true) => [0x00, 0x9c],
        (_, Cipher::CbcSha1, false) => [0xc0, 0x13],
        (_, Cipher::Chacha20, false) => [0xcc, 0xa8],
        (_, Cipher::Gcm, false) => [0xc0, 0x2f],
    }
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerHello {
    pub(super) version: Version,
    /// The session goes on.
    pub(super) resumes: bool,
    /// The protocol over TLS; in TLS 1.3 it is said elsewhere.
    pub(super) alpn: Option<Vec<u8>>,
    /// How records are protected.
    pub(super) cipher: Cipher,
}

impl ServerHello {
    pub(super) fn emit(&self, sizes: &Sizes) -> Vec<u8> {
        let is_13 = self.version == Version::Tls13;
        let mut body = vec![3, 3];
        body.resize(34, 0);
        // A number of the session, which in TLS 1.3 is the client's: 32 octets of zeros in either case, but for a new one.
        body.push(32);
        body.resize(67, 0);
        if !is_13 && !self.resumes {
            body[35] = 1;
        }
        body.extend_from_slice(&suites(self.version, sizes));
        body.push(0);
        let mut extensions = Vec::new();
        if is_13 {
            extension(&mut extensions, SUPPORTED_VERSIONS, &[3, 4]);
            let mut share = vec![0, 29];
            vector(&mut share, &[0; 32]);
            if sizes.more_share > 0 {
                share = vec![0x11, 0xec];
                vector(&mut share, &vec![0; 32 + sizes.more_share]);
            }
            extension(&mut extensions, KEY_SHARE, &share);
            if self.resumes {
                extension(&mut extensions, PRE_SHARED_KEY, &[0, 0]);
            }
        } else if let Some(name) = &self.alpn {
            extension(&mut extensions, ALPN, &chosen(name));
        }
        if !extensions.is_empty() {
            vector(&mut body, &extensions);
        }
        message(kind::SERVER_HELLO, &body)
    }

    /// Reads the body of one; `None` if it is malformed.
    pub(super) fn parse(body: &[u8]) -> Option<ServerHello> {
        let mut input = Input(body);
        input.take(34)?;
        let session = input.short()?;
        let session = input.take(session)?;
        let suite = input.take(2)?;
        input.take(1)?;
        let cipher = match suite {
            [0x13, 0x03] | [0xcc, 0xa8] => Cipher::Chacha20,
            [0x00, 0x2f] | [0xc0, 0x13] => Cipher::CbcSha1,
            _ => Cipher::Gcm,
        };
        // A number that is the client's own: the session goes on.
        let resumes = !session.is_empty() && session.iter().all(|octet| *octet == 0);
        let mut hello = ServerHello { version: Version::Tls12, resumes, alpn: None, cipher };
        let mut has_key = false;
        for (kind, value) in input.extensions()? {
            match kind {
                SUPPORTED_VERSIONS if value == [3, 4] => hello.version = Version::Tls13,
                PRE_SHARED_KEY => has_key = true,
                ALPN => hello.alpn = Some(value.get(3..)?.to_vec()),
                _ => {}
            }
        }
        if hello.version == Version::Tls13 {
            hello.resumes = has_key;
        }
        Some(hello)
    }
}

/// The body of the extension that says what is spoken.
fn chosen(name: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    vector(&mut body, &[&[name.len() as u8][..], name].concat());
    body
}

/// EncryptedExtensions (TLS 1.3).
pub(super) fn encrypted_extensions(alpn: Option<&[u8]>) -> Vec<u8> {
    let mut extensions = Vec::new();
    if let Some(name) = alpn {
        extension(&mut extensions, ALPN, &chosen(name));
    }
    let mut body = Vec::new();
    vector(&mut body, &extensions);
    message(kind::ENCRYPTED_EXTENSIONS, &body)
}

/// The server's certificates: `size` octets of them.
pub(super) fn certificates(version: Version, size: usize) -> Vec<u8> {
    let three = |n: usize| (n as u32).to_be_bytes()[1..].to_vec();
    // One certificate of that size, whose signature takes what is left.
    let certificate = certificate(size);
    let mut list = three(certificate.len());
    list.extend_from_slice(&certificate);
    if version == Version::Tls13 {
        // Extensions of the certificate: none.
        list.extend_from_slice(&[0, 0]);
    }
    let mut body = if version == Version::Tls13 { vec![0] } else { Vec::new() };
    body.extend_from_slice(&three(list.len()));
    body.extend_from_slice(&list);
    message(kind::CERTIFICATE, &body)
}

/// A certificate (X.509) of `size` octets, or as small as one can be.
fn certificate(size: usize) -> Vec<u8> {
    fn sequence(content: &[u8]) -> Vec<u8> {
        let [high, low] = (content.len() as u16).to_be_bytes();
        [&[0x30, 0x82, high, low], content].concat()
    }
    // ecdsa-with-SHA256; a name of one letter; a hundred years; a point on P-256.
    const ALGORITHM: &[u8] = b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02";
    const NAME: &[u8] = b"\x30\x0c\x31\x0a\x30\x08\x06\x03\x55\x04\x03\x0c\x01a";
    const TIMES: &[u8] = b"\x30\x1e\x17\x0d000101000000Z\x17\x0d491231235959Z";
    const KEY: &[u8] =
        b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\0\x04";
    let key = [KEY, &[0; 64]].concat();
    let inner = [b"\xa0\x03\x02\x01\x02\x02\x01\x01", ALGORITHM, NAME, TIMES, NAME, &key].concat();
    let inner = sequence(&inner);
    // Around it: a sequence, the algorithm again, and the signature with its header of five octets.
    let fixed = 4 + inner.len() + ALGORITHM.len() + 5;
    let signature = size.saturating_sub(fixed).clamp(8, 60_000);
    let [high, low] = ((signature + 1) as u16).to_be_bytes();
    let signature = [&[0x03, 0x82, high, low, 0][..], &vec![0; signature]].concat();
    sequence(&[&inner, ALGORITHM, &signature].concat())
}

/// ServerKeyExchange (TLS 1.2): X25519 and a signature that takes what is left.
pub(super) fn server_key_exchange(size: usize) -> Vec<u8> {
    let mut body = vec![3, 0, 29, 32];
    body.resize(36, 0);
    // rsa_pss_rsae_sha256
    body.extend_from_slice(&[8, 4]);
    let signature = size.saturating_sub(HEADER + body.len() + 2);
    vector(&mut body, &vec![0; signature]);
    message(kind::SERVER_KEY_EXCHANGE, &body)
}

/// ClientKeyExchange (TLS 1.2): a share, or a secret under the key of the certificate.
pub(super) fn client_key_exchange(size: usize, encrypts: bool) -> Vec<u8> {
    let mut body = Vec::new();
    if encrypts {
        vector(&mut body, &vec![0; size.saturating_sub(HEADER + 2)]);
    } else {
        let share = size.saturating_sub(HEADER + 1).min(255);
        body.push(share as u8);
        body.resize(1 + share, 0);
    }
    message(kind::CLIENT_KEY_EXCHANGE, &body)
}

/// NewSessionTicket with `size` octets of ticket.
pub(super) fn ticket(version: Version, size: usize) -> Vec<u8> {
    // Seconds that it lasts; in TLS 1.3 also a number to add to its age, a nonce, and (behind it) extensions.
    let mut body = vec![0, 0, 0x1c, 0x20];
    if version == Version::Tls13 {
        body.extend_from_slice(&[0, 0, 0, 0, 8]);
        body.resize(17, 0);
    }
    vector(&mut body, &vec![0; size]);
    if version == Version::Tls13 {
        vector(&mut body, &[]);
    }
    message(kind::NEW_SESSION_TICKET, &body)
}

/// Finished: 12 octets in TLS 1.2, a hash of 32 in TLS 1.3.
pub(super) fn finished(version: Version) -> Vec<u8> {
    opaque(kind::FINISHED, HEADER + if version == Version::Tls13 { 32 } else { 12 })
}

/// Octets that are read from the front.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }
    fn short(&mut self) -> Option<usize> {
        self.take(1).map(|octet| usize::from(octet[0]))
    }
    fn length(&mut self) -> Option<usize> {
        let [high, low] = *self.take(2)?.first_chunk()?;
        Some(usize::from(u16::from_be_bytes([high, low])))
    }
    /// The extensions that end a hello; there may be none.
    fn extensions(&mut self) -> Option<Vec<(u16, &'a [u8])>> {
        let mut all = Vec::new();
        if self.0.is_empty() {
            return Some(all);
        }
        let length = self.length()?;
        let mut list = Input(self.take(length)?);
        while !list.0.is_empty() {
            let (kind, length) = (list.length()? as u16, list.length()?);
            all.push((kind, list.take(length)?));
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Config;

    fn hello(version: Version, resumes: bool, early_data: bool, alpn: &[&str]) -> ClientHello {
        let alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        ClientHello { version, resumes, early_data, alpn }
    }

    #[test]
    fn a_client_hello_has_its_size_and_says_what_it_says() {
        for (version, size) in [(Version::Tls12, 100), (Version::Tls12, 512), (Version::Tls13, 512)] {
            let sizes = Sizes { client_hello: size, ..Sizes::of(&Config { version, ..Config::default() }) };
            for (resumes, early, alpn) in
                [(false, false, &["h2"][..]), (true, false, &[]), (true, true, &["h2", "http/1.1"])]
            {
                let early = early && version == Version::Tls13;
                let hello = hello(version, resumes, early, alpn);
                let octets = hello.emit(&sizes);
                assert_eq!(ClientHello::parse(&octets[4..]), Some(hello), "{version:?} {size}");
                if !resumes {
                    assert_eq!(octets.len(), size);
                }
                for cut in 4..octets.len() {
                    let _ = ClientHello::parse(&octets[4..cut]);
                }
            }
            // A session costs its number, or the ticket and what is around it.
            let more = hello(version, true, false, &[]).emit(&sizes).len() - size;
            assert_eq!(
                more,
                if version == Version::Tls13 { 4 + 2 + 2 + 200 + 4 + 2 + 33 } else { 32 + 4 + 200 }
            );
        }
    }

    #[test]
    fn a_server_hello_says_what_it_says() {
        for version in [Version::Tls12, Version::Tls13] {
            let sizes = Sizes::of(&Config { version, ..Config::default() });
            for (resumes, alpn) in [(false, None), (true, Some(b"h2".to_vec()))] {
                let alpn = alpn.filter(|_| version == Version::Tls12);
                let hello = ServerHello { version, resumes, alpn, cipher: Cipher::Gcm };
                let octets = hello.emit(&sizes);
                assert_eq!(ServerHello::parse(&octets[4..]), Some(hello));
                for cut in 4..octets.len() {
                    let _ = ServerHello::parse(&octets[4..cut]);
                }
            }
        }
        let sizes = Sizes::of(&Config::default());
        let plain = ServerHello { version: Version::Tls13, resumes: false, alpn: None, cipher: Cipher::Gcm };
        // As OpenSSL's.
        assert_eq!(plain.emit(&sizes).len(), 122);
    }

    #[test]
    fn other_messages_have_their_sizes() {
        for size in [300, 1_400, 3_000, 20_000] {
            assert_eq!(certificate(size).len(), size);
        }
        assert!(certificate(0).len() < 260);
        assert_eq!(certificates(Version::Tls12, 3_000).len(), 4 + 3 + 3 + 3_000);
        assert_eq!(certificates(Version::Tls13, 3_000).len(), 4 + 1 + 3 + 3 + 3_000 + 2);
        assert_eq!(server_key_exchange(300).len(), 300);
        assert_eq!(client_key_exchange(37, false).len(), 37);
        assert_eq!(client_key_exchange(134, true).len(), 134);
        assert_eq!(finished(Version::Tls12).len(), 16);
        assert_eq!(finished(Version::Tls13).len(), 36);
    }
}
