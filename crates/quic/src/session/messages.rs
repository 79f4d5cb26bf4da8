//! Messages of a handshake in the form of TLS 1.3 (RFC 8446, 4): what a dissector reads, with contents that mean nothing where only
//! the size counts.

use std::sync::OnceLock;

pub(super) const CLIENT_HELLO: u8 = 1;
pub(super) const SERVER_HELLO: u8 = 2;
pub(super) const NEW_SESSION_TICKET: u8 = 4;
pub(super) const ENCRYPTED_EXTENSIONS: u8 = 8;
const CERTIFICATE: u8 = 11;
const CERTIFICATE_VERIFY: u8 = 15;
pub(super) const FINISHED: u8 = 20;

const AES_128_GCM_SHA256: u16 = 0x1301;
const TLS_1_3: u16 = 0x0304;
const RSA_PSS_RSAE_SHA256: u16 = 0x0804;
const X25519: u16 = 0x001d;
const X25519_ML_KEM_768: u16 = 0x11ec;

const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const SIGNATURE_ALGORITHMS: u16 = 13;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;
const KEY_SHARE: u16 = 51;
const TRANSPORT_PARAMETERS: u16 = 57;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const PSK_KEY_EXCHANGE_MODES: u16 = 45;
/// One of those that mean nothing (RFC 8701, 2).
const GREASE: u16 = 0x0a0a;

/// Octets of a ticket itself.
pub(super) const TICKET: usize = 174;

/// A ticket, and whether data may come early with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) octets: [u8; TICKET],
    pub(super) allows_early: bool,
}

/// Octets of a handshake message's own header.
pub(super) const HEADER: usize = 4;

/// How large what is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) certificates: usize,
    pub(crate) post_quantum: bool,
    pub(crate) tickets: u8,
    /// Sessions go on; and with early data.
    pub(crate) resumes: bool,
    pub(crate) zero_rtt: bool,
}

fn put16(out: &mut Vec<u8>, n: usize) {
    out.extend_from_slice(&(n as u16).to_be_bytes());
}

/// Puts what `write` writes behind its length, in so many octets.
fn counted(out: &mut Vec<u8>, octets: usize, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.resize(at + octets, 0);
    write(out);
    let len = (out.len() - at - octets) as u32;
    out[at..at + octets].copy_from_slice(&len.to_be_bytes()[4 - octets..]);
}

fn message(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    counted(out, 3, write);
}

fn extension(out: &mut Vec<u8>, kind: u16, write: impl FnOnce(&mut Vec<u8>)) {
    put16(out, usize::from(kind));
    counted(out, 2, write);
}

/// What a hello says of a group: octets that stand for a key.
fn share(out: &mut Vec<u8>, sizes: &Sizes, of_client: bool, random: &[u8; 32]) {
    let (group, octets) = match (sizes.post_quantum, of_client) {
        (false, _) => (X25519, 32),
        // A key of ML-KEM-768 or what it encapsulates, and one of X25519.
        (true, true) => (X25519_ML_KEM_768, 1216),
        (true, false) => (X25519_ML_KEM_768, 1120),
    };
    put16(out, usize::from(group));
    counted(out, 2, |out| out.extend(random.iter().rev().cycle().take(octets)));
}

fn protocol(out: &mut Vec<u8>, name: &str) {
    extension(out, ALPN, |out| {
        counted(out, 2, |out| counted(out, 1, |out| out.extend(name.bytes().take(255))))
    });
}

/// A session that a client goes on with.
pub(super) struct Resumed<'a> {
    pub(super) ticket: &'a [u8; TICKET],
    /// Data follows at once.
    pub(super) is_early: bool,
}

pub(super) fn client_hello(
    out: &mut Vec<u8>,
    sizes: &Sizes,
    random: &[u8; 32],
    server: &str,
    spoken: &str,
    parameters: &[u8],
    resumed: Option<Resumed>,
) {
    message(out, CLIENT_HELLO, |out| {
        out.extend_from_slice(&[3, 3]);
        out.extend_from_slice(random);
        out.push(0);
        counted(out, 2, |out| put16(out, usize::from(AES_128_GCM_SHA256)));
        out.extend_from_slice(&[1, 0]);
        counted(out, 2, |out| {
            extension(out, SERVER_NAME, |out| {
                counted(out, 2, |out| {
                    out.push(0);
                    counted(out, 2, |out| out.extend(server.bytes().take(255)));
                });
            });
            let group = if sizes.post_quantum { X25519_ML_KEM_768 } else { X25519 };
            extension(out, SUPPORTED_GROUPS, |out| counted(out, 2, |out| put16(out, usize::from(group))));
            extension(out, SIGNATURE_ALGORITHMS, |out| {
                counted(out, 2, |out| put16(out, usize::from(RSA_PSS_RSAE_SHA256)));
            });
            protocol(out, spoken);
            extension(out, SUPPORTED_VERSIONS, |out| counted(out, 1, |out| put16(out, usize::from(TLS_1_3))));
            extension(out, KEY_SHARE, |out| counted(out, 2, |out| share(out, sizes, true, random)));
            extension(out, TRANSPORT_PARAMETERS, |out| out.extend_from_slice(parameters));
            let Some(Resumed { ticket, is_early }) = resumed else { return };
            if is_early {
                extension(out, EARLY_DATA, |_| {});
            }
            // With a key exchange of its own (psk_dhe_ke).
            extension(out, PSK_KEY_EXCHANGE_MODES, |out| out.extend_from_slice(&[1, 1]));
            //= RFC 8446 (4.2.11): the last extension; a ticket with its age, and a binder of 32 octets.
            extension(out, PRE_SHARED_KEY, |out| {
                counted(out, 2, |out| {
                    counted(out, 2, |out| out.extend_from_slice(ticket));
                    out.extend_from_slice(&random[..4]);
                });
                counted(out, 2, |out| counted(out, 1, |out| out.extend_from_slice(random)));
            });
        });
    });
}

pub(super) fn server_hello(out: &mut Vec<u8>, sizes: &Sizes, random: &[u8; 32], resumes: bool) {
    message(out, SERVER_HELLO, |out| {
        out.extend_from_slice(&[3, 3]);
        out.extend_from_slice(random);
        out.push(0);
        put16(out, usize::from(AES_128_GCM_SHA256));
        out.push(0);
        counted(out, 2, |out| {
            extension(out, SUPPORTED_VERSIONS, |out| put16(out, usize::from(TLS_1_3)));
            extension(out, KEY_SHARE, |out| share(out, sizes, false, random));
            if resumes {
                // The first of those that were offered.
                extension(out, PRE_SHARED_KEY, |out| put16(out, 0));
            }
        });
    });
}

/// All that a server says under handshake keys. Where a session goes on nothing has to be proved by a certificate.
pub(super) fn server_flight(
    out: &mut Vec<u8>,
    sizes: &Sizes,
    certificate: &OnceLock<Vec<u8>>,
    random: &[u8; 32],
    spoken: &str,
    parameters: &[u8],
    (resumes, takes_early): (bool, bool),
) {
    message(out, ENCRYPTED_EXTENSIONS, |out| {
        counted(out, 2, |out| {
            protocol(out, spoken);
            extension(out, TRANSPORT_PARAMETERS, |out| out.extend_from_slice(parameters));
            if takes_early {
                extension(out, EARLY_DATA, |_| {});
            }
        });
    });
    if resumes {
        return finished(out, random);
    }
    // A list with one certificate, without extensions.
    let octets = sizes.certificates.saturating_sub(HEADER + 1 + 3 + 3 + 2);
    message(out, CERTIFICATE, |out| {
        out.push(0);
        counted(out, 3, |out| {
            counted(out, 3, |out| {
                out.extend_from_slice(certificate.get_or_init(|| super::certificate::of(octets)))
            });
            put16(out, 0);
        });
    });
    message(out, CERTIFICATE_VERIFY, |out| {
        put16(out, usize::from(RSA_PSS_RSAE_SHA256));
        counted(out, 2, |out| out.extend(random.iter().cycle().take(256)));
    });
    finished(out, random);
}

pub(super) fn finished(out: &mut Vec<u8>, random: &[u8; 32]) {
    message(out, FINISHED, |out| out.extend_from_slice(random));
}

/// A ticket of 200 octets with its header, good for a day.
pub(super) fn ticket(out: &mut Vec<u8>, number: u8, random: &[u8; 32], ticket: &Ticket) {
    message(out, NEW_SESSION_TICKET, |out| {
        out.extend_from_slice(&86_400u32.to_be_bytes());
        out.extend_from_slice(&random[..4]);
        counted(out, 1, |out| out.push(number));
        counted(out, 2, |out| out.extend_from_slice(&ticket.octets));
        //= RFC 8446 (4.6.1): the extension says that data may come early. RFC 8701 (4.1): another one may mean nothing, so that all
        //= tickets have one size.
        let kind = if ticket.allows_early { EARLY_DATA } else { GREASE };
        counted(out, 2, |out| extension(out, kind, |out| out.extend_from_slice(&[0xFF; 4])));
    });
}

/// The ticket in the body of a NewSessionTicket.
pub(super) fn read_ticket(body: &[u8]) -> Option<Ticket> {
    // Behind its lifetime and what is added to its age.
    let mut rest = body.get(8..)?;
    take(&mut rest, 1)?;
    let octets = take(&mut rest, 2)?.try_into().ok()?;
    let mut extensions = take(&mut rest, 2)?;
    let mut allows_early = false;
    while !extensions.is_empty() {
        allows_early |= u16::from_be_bytes(*extensions.first_chunk()?) == EARLY_DATA;
        extensions = &extensions[2..];
        take(&mut extensions, 2)?;
    }
    Some(Ticket { octets, allows_early })
}

/// Takes a field behind its length, in so many octets.
fn take<'a>(octets: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let count = octets.get(..len)?.iter().fold(0, |n, octet| n << 8 | usize::from(*octet));
    let field = octets.get(len..len + count)?;
    *octets = &octets[len + count..];
    Some(field)
}

/// What a peer's message says that matters here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said<'a> {
    pub(super) random: Option<[u8; 32]>,
    pub(super) spoken: Option<&'a [u8]>,
    pub(super) parameters: Option<&'a [u8]>,
    /// The session that a client offers, or that a server takes (nothing is said of it then).
    pub(super) session: Option<&'a [u8]>,
    /// Data comes early; or is taken.
    pub(super) is_early: bool,
}

/// Reads a hello or EncryptedExtensions behind its header. `None`: it is cut short.
pub(super) fn read(kind: u8, mut body: &[u8]) -> Option<Said<'_>> {
    let mut said = Said::default();
    if kind != ENCRYPTED_EXTENSIONS {
        said.random = Some(*body.get(2..)?.first_chunk()?);
        body = body.get(34..)?;
        take(&mut body, 1)?;
        if kind == CLIENT_HELLO {
            take(&mut body, 2)?;
            take(&mut body, 1)?;
        } else {
            body = body.get(3..)?;
        }
    }
    let mut extensions = take(&mut body, 2)?;
    let hello = kind;
    while !extensions.is_empty() {
        let kind = u16::from_be_bytes(*extensions.first_chunk()?);
        extensions = &extensions[2..];
        let mut content = take(&mut extensions, 2)?;
        match kind {
            ALPN => {
                let mut names = take(&mut content, 2)?;
                said.spoken = Some(take(&mut names, 1)?);
            }
            TRANSPORT_PARAMETERS => said.parameters = Some(content),
            EARLY_DATA => said.is_early = true,
            PRE_SHARED_KEY if said.session.is_none() && CLIENT_HELLO == hello => {
                let mut identities = take(&mut content, 2)?;
                said.session = Some(take(&mut identities, 2)?);
            }
            PRE_SHARED_KEY => said.session = Some(content),
            _ => {}
        }
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes =
        Sizes { certificates: 3000, post_quantum: false, tickets: 2, resumes: true, zero_rtt: false };

    const TICKET_OF_SEVENS: [u8; TICKET] = [7; TICKET];

    #[test]
    fn what_a_client_says_is_read_back_and_a_cut_hello_refused() {
        for session in [None, Some(false), Some(true)] {
            let resumed = session.map(|is_early| Resumed { ticket: &TICKET_OF_SEVENS, is_early });
            let mut out = Vec::new();
            client_hello(&mut out, &SIZES, &[7; 32], "server", "h3", b"parameters", resumed);
            let said = read(CLIENT_HELLO, &out[HEADER..]).unwrap();
            let expected = Said {
                random: Some([7; 32]),
                spoken: Some(b"h3"),
                parameters: Some(b"parameters"),
                session: session.map(|_| &TICKET_OF_SEVENS[..]),
                is_early: session == Some(true),
            };
            assert_eq!(said, expected);
            for cut in 0..out.len() - HEADER {
                assert_eq!(read(CLIENT_HELLO, &out[HEADER..HEADER + cut]), None);
            }
        }
    }

    #[test]
    fn a_flight_has_the_sizes_that_were_asked_for() {
        let mut out = Vec::new();
        server_flight(&mut out, &SIZES, &OnceLock::new(), &[7; 32], "h3", &[], (false, false));
        // Extensions: 4 + 2 + 4 + 5 + 4; certificates; 4 + 2 + 2 + 256; 4 + 32.
        assert_eq!(out.len(), 19 + 3000 + 264 + 36);
        let mut out = Vec::new();
        server_flight(&mut out, &SIZES, &OnceLock::new(), &[7; 32], "h3", &[], (true, true));
        // No certificates; four octets say that early data is taken.
        assert_eq!(out.len(), 19 + 4 + 36);
    }

    #[test]
    fn a_ticket_is_read_back_and_says_whether_data_may_come_early_with_it() {
        for allows_early in [false, true] {
            let given = Ticket { octets: TICKET_OF_SEVENS, allows_early };
            let mut out = Vec::new();
            ticket(&mut out, 0, &[7; 32], &given);
            assert_eq!((out.len(), read_ticket(&out[HEADER..])), (200, Some(given)));
            for cut in 0..out.len() - HEADER {
                assert_eq!(read_ticket(&out[HEADER..HEADER + cut]), None);
            }
        }
    }

    #[test]
    fn a_server_says_that_a_session_goes_on() {
        for resumes in [false, true] {
            let mut out = Vec::new();
            server_hello(&mut out, &SIZES, &[7; 32], resumes);
            let said = read(SERVER_HELLO, &out[HEADER..]).unwrap();
            assert_eq!(said.session.is_some(), resumes);
        }
    }
}
