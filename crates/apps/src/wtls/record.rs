//! Records: several in a datagram, each with its header.

use bytes::Bytes;

use super::Config;

/// Content types.
pub(super) mod kind {
    pub(in crate::wtls) const CHANGE_CIPHER_SPEC: u8 = 1;
    pub(in crate::wtls) const ALERT: u8 = 2;
    pub(in crate::wtls) const HANDSHAKE: u8 = 3;
    pub(in crate::wtls) const DATA: u8 = 4;
}

/// Bits of the first octet: a length follows, a number follows, the cipher of the connection is in use.
const LENGTH: u8 = 0x80;
const SEQUENCE: u8 = 0x40;
const CIPHER: u8 = 0x20;

/// Octets of the header of a record that says its number and its length.
pub(super) const HEADER: usize = 5;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: u8,
    pub(super) protected: bool,
    pub(super) content: Bytes,
}

/// Octets of the content of a protected record of `len` octets: with its hash, its padding and the octet that counts it.
pub(super) fn protected_len(len: usize, config: &Config) -> usize {
    let (mac, block) = (usize::from(config.mac), usize::from(config.block));
    match block {
        0 | 1 => len + mac,
        _ => (len + mac + 1).next_multiple_of(block),
    }
}

/// Appends a record that is sent before there are keys: over datagrams it says its number, too.
pub(super) fn clear(out: &mut Vec<u8>, kind: u8, number: u16, content: &[u8]) {
    header(out, LENGTH | SEQUENCE | kind, number, content.len());
    out.extend_from_slice(content);
}

/// Appends a protected record.
pub(super) fn protected(out: &mut Vec<u8>, kind: u8, number: u16, content: &[u8], config: &Config) {
    let len = protected_len(content.len(), config);
    header(out, LENGTH | SEQUENCE | CIPHER | kind, number, len);
    out.extend_from_slice(content);
    let padding = len - content.len();
    out.resize(out.len() + padding, 0);
    if let Some(last) = out.last_mut().filter(|_| config.block > 1) {
        // How many octets of padding stand before it.
        *last = (padding - usize::from(config.mac) - 1) as u8;
    }
}

fn header(out: &mut Vec<u8>, first: u8, number: u16, len: usize) {
    out.push(first);
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&(len.min(usize::from(u16::MAX)) as u16).to_be_bytes());
}

/// The records of a datagram; `None` if it is none of WTLS.
pub(super) fn parse(datagram: &Bytes, config: &Config) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    let mut rest = datagram.clone();
    while !rest.is_empty() {
        let first = rest[0];
        let mut at = 1 + if first & SEQUENCE != 0 { 2 } else { 0 };
        let len = if first & LENGTH != 0 {
            let octets = rest.get(at..at + 2)?;
            at += 2;
            usize::from(u16::from_be_bytes([octets[0], octets[1]]))
        } else {
            // The last record of a datagram needs none.
            rest.len().checked_sub(at)?
        };
        let content = rest.get(at..at + len).map(|_| rest.slice(at..at + len))?;
        rest = rest.slice(at + len..);
        let is_protected = first & CIPHER != 0;
        let content = if is_protected { unprotected(&content, config)? } else { content };
        records.push(Record { kind: first & 0x0F, protected: is_protected, content });
    }
    (!records.is_empty()).then_some(records)
}

/// What a protected record holds.
fn unprotected(content: &Bytes, config: &Config) -> Option<Bytes> {
    let padding = match config.block {
        0 | 1 => 0,
        block if content.len().is_multiple_of(usize::from(block)) => usize::from(*content.last()?) + 1,
        _ => return None,
    };
    let len = content.len().checked_sub(padding + usize::from(config.mac))?;
    Some(content.slice(..len))
}
