//! Queries and answers of DNS (RFC 1035, 4), as far as a server of a few addresses needs them.

use std::net::IpAddr;

/// Octets of the header.
const HEADER: usize = 12;
/// The class of the Internet.
const IN: u16 = 1;
/// Octets of a name, and of a label in it (RFC 1035, 2.3.4).
const LONGEST_NAME: usize = 255;

/// Octets of a message over UDP (RFC 1035, 2.3.4).
const LONGEST: usize = 512;

/// Types of records.
pub(super) const A: u16 = 1;
/// Of IPv6 addresses (RFC 3596, 2.1).
pub(super) const AAAA: u16 = 28;

/// Response codes (RFC 1035, 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// There is an answer, which may be that there is none of this type.
    NoError = 0,
    /// The query makes no sense.
    FormErr = 1,
    /// The server has a problem.
    ServFail = 2,
    /// There is no such name.
    NxDomain = 3,
    /// The server does not do that.
    NotImp = 4,
    /// The server does not want to.
    Refused = 5,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Query {
    id: u16,
    /// The first octet of its flags.
    flags: u8,
    /// In lower case, without the dot at the end.
    pub(super) name: String,
    pub(super) kind: u16,
    is_internet: bool,
    /// The question as it came.
    question: Vec<u8>,
}

/// What a datagram asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// This.
    Query(Query),
    /// Something that is answered with a code alone: its id, and the first octet of its flags.
    Wrong(u16, u8, Code),
    /// Nothing: it is no query.
    Nothing,
}

fn get16(octets: &[u8], at: usize) -> u16 {
    match octets.get(at..).and_then(<[u8]>::first_chunk) {
        Some(two) => u16::from_be_bytes(*two),
        None => 0,
    }
}

/// Reads a query.
pub(super) fn read(octets: &[u8]) -> Asked {
    // One that is itself an answer would be answered for ever.
    if octets.len() < HEADER || octets[2] & 0x80 != 0 {
        return Asked::Nothing;
    }
    let (id, flags) = (get16(octets, 0), octets[2]);
    if flags >> 3 & 15 != 0 {
        return Asked::Wrong(id, flags, Code::NotImp);
    }
    let questions = get16(octets, 4);
    match question(octets).filter(|_| questions == 1) {
        Some((name, end)) => Asked::Query(Query {
            id,
            flags,
            name,
            kind: get16(octets, end - 4),
            is_internet: get16(octets, end - 2) == IN,
            question: octets[HEADER..end].to_vec(),
        }),
        None => Asked::Wrong(id, flags, Code::FormErr),
    }
}

/// The name of the first question, and where the question ends.
fn question(octets: &[u8]) -> Option<(String, usize)> {
    let (mut name, mut at) = (String::new(), HEADER);
    loop {
        let len = usize::from(*octets.get(at)?);
        at += 1;
        if len == 0 {
            break;
        }
        // Names in questions are not compressed: there is nothing before them to point at.
        if len > 63 || at + len - HEADER > LONGEST_NAME {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.extend(octets.get(at..at + len)?.iter().map(|octet| char::from(octet.to_ascii_lowercase())));
        at += len;
    }
    octets.get(at..at + 4)?;
    Some((name, at + 4))
}

/// An answer to a datagram that could not be read; `flags` is the first octet of the flags there.
pub(super) fn refusal(id: u16, flags: u8, code: Code) -> Vec<u8> {
    let mut out = vec![0; HEADER];
    out[..2].copy_from_slice(&id.to_be_bytes());
    // RFC 1035 (4.1.1): an answer has the query's kind, and says whether that desired recursion.
    (out[2], out[3]) = (0x80 | (flags & 0x79), code as u8);
    out
}

impl Query {
    /// Is it about addresses of the Internet?
    pub(super) fn is_for_addresses(&self) -> bool {
        self.is_internet && matches!(self.kind, A | AAAA)
    }

    /// The answer with those of `addresses` that were asked for.
    pub(super) fn answer(&self, code: Code, addresses: &[IpAddr], ttl_s: u32) -> Vec<u8> {
        let of_kind = |a: &&IpAddr| self.is_internet && self.kind == if a.is_ipv4() { A } else { AAAA };
        let mut wanted: Vec<&IpAddr> = addresses.iter().filter(of_kind).collect();
        let mut out = refusal(self.id, self.flags, code);
        // Authoritative, and recursion is there for who desires it.
        out[2] |= 0x04;
        out[3] |= 0x80;
        // RFC 1035 (4.2.1): what is longer than a message over UDP is cut, and says so.
        let record = 12 + if self.kind == A { 4 } else { 16 };
        let room = (LONGEST - HEADER - self.question.len()) / record;
        if wanted.len() > room {
            wanted.truncate(room);
            out[2] |= 0x02;
        }
        out[5] = 1;
        out[6..8].copy_from_slice(&(wanted.len() as u16).to_be_bytes());
        out.extend_from_slice(&self.question);
        for address in wanted {
            // RFC 1035 (4.1.4): the name stands where the question's does.
            out.extend_from_slice(&[0xC0, HEADER as u8]);
            out.extend_from_slice(&self.kind.to_be_bytes());
            out.extend_from_slice(&IN.to_be_bytes());
            out.extend_from_slice(&ttl_s.to_be_bytes());
            match address {
                IpAddr::V4(a) => {
                    out.extend_from_slice(&4_u16.to_be_bytes());
                    out.extend_from_slice(&a.octets());
                }
                IpAddr::V6(a) => {
                    out.extend_from_slice(&16_u16.to_be_bytes());
                    out.extend_from_slice(&a.octets());
                }
            }
        }
        out
    }
}
