//! Records: what goes around a piece of content, and what comes off again.
//!
//! Nothing is encrypted: content stands between the octets that protection adds, so a filler stays a filler. Sizes are those of
//! the real thing.

use std::collections::VecDeque;

use airloom_base::Body;
use bytes::Bytes;

use super::Version;
use super::sizes::Cipher;

/// The most octets of content.
pub(super) const MOST: usize = 16_384;
/// The most octets of a protected record beyond that.
const EXPANSION: usize = 2_048;
const HEADER: usize = 5;
const TAG: usize = 16;
const SHA1: usize = 20;
const BLOCK: usize = 16;

/// Types of content.
pub(super) mod content {
    pub(in crate::tls) const CHANGE_CIPHER_SPEC: u8 = 20;
    pub(in crate::tls) const ALERT: u8 = 21;
    pub(in crate::tls) const HANDSHAKE: u8 = 22;
    pub(in crate::tls) const DATA: u8 = 23;
}

/// What is not as it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// How records of one direction are protected, once they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Protection {
    pub(super) version: Version,
    pub(super) cipher: Cipher,
}

impl Protection {
    /// Octets before the content, behind it (its type in TLS 1.3 and padding included).
    fn around(self, content: usize) -> (usize, usize) {
        match (self.version, self.cipher) {
            //= RFC 8446 (5.2): the type of the content, and a tag; nothing else is sent.
            (Version::Tls13, _) => (0, 1 + TAG),
            // RFC 5288 (3): eight octets of the nonce are sent.
            (Version::Tls12, Cipher::Gcm) => (8, TAG),
            // RFC 7905 (2): none are.
            (Version::Tls12, Cipher::Chacha20) => (0, TAG),
            //= RFC 5246 (6.2.3.2): a block in front, a hash behind, and padding to whole blocks with its length in it.
            (Version::Tls12, Cipher::CbcSha1) => (BLOCK, SHA1 + BLOCK - (content + SHA1) % BLOCK),
        }
    }
}

/// Appends a record around `pieces`, which are at most [`MOST`] octets. Without protection the content is as it is.
pub(super) fn seal(kind: u8, pieces: Vec<Body>, how: Option<Protection>, out: &mut VecDeque<Body>) {
    let content: usize = pieces.iter().map(Body::len).sum();
    let (front, back) = how.map_or((0, 0), |how| how.around(content));
    //= RFC 8446 (5.1, 5.2): protected records look like application data of TLS 1.2.
    let is_13 = how.is_some_and(|how| how.version == Version::Tls13);
    let outer = if is_13 { content::DATA } else { kind };
    let [high, low] = ((front + content + back) as u16).to_be_bytes();
    let mut head = vec![outer, 3, 3, high, low];
    head.resize(HEADER + front, 0);
    out.push_back(Body::Real(head.into()));
    out.extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
    if back > 0 {
        // In TLS 1.3 the type comes first. In CBC mode the length of the padding stands in all of it, itself not counted.
        let mut tail = vec![if is_13 { kind } else { 0 }; 1];
        tail.resize(back, 0);
        if how.is_some_and(|how| how.cipher == Cipher::CbcSha1 && !is_13) {
            let padding = (back - SHA1 - 1) as u8;
            tail[SHA1..].fill(padding);
        }
        out.push_back(Body::Real(tail.into()));
    }
}

/// A record that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: u8,
    pub(super) content: VecDeque<Body>,
}

/// Takes records out of what a connection gives. The content of a record is there when all of it is: a hole in front of its
/// last octet holds back the first one too.
#[derive(Default)]
pub(super) struct RecordReader {
    pending: VecDeque<Body>,
    octets: usize,
    header: Option<(u8, usize)>,
}

impl RecordReader {
    pub(super) fn feed(&mut self, body: Body) {
        self.octets += body.len();
        if !body.is_empty() {
            self.pending.push_back(body);
        }
    }

    /// The next record. `how` are records protected that are; in TLS 1.3 these are all of the type of data.
    pub(super) fn poll(&mut self, how: Option<Protection>) -> Result<Option<Record>, Malformed> {
        let (outer, length) = match self.header {
            Some(header) => header,
            None if self.octets < HEADER => return Ok(None),
            None => {
                let head = take(&mut self.pending, HEADER);
                self.octets -= HEADER;
                let [kind @ 20..=23, 3, _, high, low] = join(&head)[..] else { return Err(Malformed) };
                let length = usize::from(u16::from_be_bytes([high, low]));
                if length > MOST + EXPANSION {
                    return Err(Malformed);
                }
                *self.header.insert((kind, length))
            }
        };
        if self.octets < length {
            return Ok(None);
        }
        self.octets -= length;
        self.header = None;
        let mut content = take(&mut self.pending, length);
        let is_13 = how.is_some_and(|how| how.version == Version::Tls13);
        let Some(how) = how.filter(|_| !is_13 || outer == content::DATA) else {
            return Ok(Some(Record { kind: outer, content }));
        };
        let (front, back) = match (how.version, how.cipher) {
            (Version::Tls12, Cipher::CbcSha1) => {
                let mut copy = content.clone();
                drop(take(&mut copy, length.saturating_sub(1)));
                let padding = join(&copy).first().copied().map_or(0, usize::from);
                (BLOCK, SHA1 + padding + 1)
            }
            _ => how.around(0),
        };
        let inside = length.checked_sub(front + back).ok_or(Malformed)?;
        drop(take(&mut content, front));
        let inner = take(&mut content, inside);
        let kind = if is_13 { join(&content).first().copied().ok_or(Malformed)? } else { outer };
        Ok(Some(Record { kind, content: inner }))
    }
}

/// Takes the first `n` octets off a row of bodies.
pub(super) fn take(from: &mut VecDeque<Body>, mut n: usize) -> VecDeque<Body> {
    let mut taken = VecDeque::new();
    while n > 0 {
        let Some(first) = from.front_mut() else { break };
        let piece = first.split_to(n);
        if first.is_empty() {
            from.pop_front();
        }
        n -= piece.len();
        taken.push_back(piece);
    }
    taken
}

/// All octets of a row of bodies.
pub(super) fn join(bodies: &VecDeque<Body>) -> Bytes {
    match bodies.len() {
        0 => Bytes::new(),
        1 => bodies[0].to_bytes(),
        _ => bodies.iter().flat_map(Body::to_bytes).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(Version, Cipher); 6] = [
        (Version::Tls12, Cipher::Gcm),
        (Version::Tls12, Cipher::Chacha20),
        (Version::Tls12, Cipher::CbcSha1),
        (Version::Tls13, Cipher::Gcm),
        (Version::Tls13, Cipher::Chacha20),
        (Version::Tls13, Cipher::CbcSha1),
    ];

    fn octets(bodies: &VecDeque<Body>) -> usize {
        bodies.iter().map(Body::len).sum()
    }

    #[test]
    fn a_record_costs_what_the_standards_say() {
        let cost = |how: Option<Protection>, content: u32| {
            let mut out = VecDeque::new();
            seal(content::DATA, vec![Body::filler(1, content)], how, &mut out);
            octets(&out) - content as usize
        };
        let of = |version, cipher| Some(Protection { version, cipher });
        assert_eq!(cost(None, 100), 5);
        assert_eq!(cost(of(Version::Tls12, Cipher::Gcm), 100), 29);
        assert_eq!(cost(of(Version::Tls12, Cipher::Chacha20), 100), 21);
        assert_eq!(cost(of(Version::Tls13, Cipher::Gcm), 16_384), 22);
        // 5 + 16 + 20 and 1 to 16 of padding.
        for content in 0..40 {
            let padding = cost(of(Version::Tls12, Cipher::CbcSha1), content) - 41;
            assert!((1..=16).contains(&padding) && (content as usize + 20 + padding).is_multiple_of(16));
        }
    }

    #[test]
    fn what_is_sealed_is_opened_whatever_the_cuts() {
        for (version, cipher) in ALL {
            let how = Some(Protection { version, cipher });
            let mut out = VecDeque::new();
            for (kind, len) in [(content::HANDSHAKE, 52), (content::DATA, 16_384), (content::ALERT, 2)] {
                seal(kind, vec![Body::filler(9, len), Body::EMPTY], how, &mut out);
            }
            let mut reader = RecordReader::default();
            let mut read = Vec::new();
            for cut in [1, 3, 5, 16_000, 100_000] {
                for piece in take(&mut out, cut) {
                    reader.feed(piece);
                }
                while let Some(record) = reader.poll(how).unwrap() {
                    assert_eq!(
                        join(&record.content),
                        Body::filler(9, octets(&record.content) as u32).to_bytes()
                    );
                    read.push((record.kind, octets(&record.content)));
                }
            }
            assert_eq!(read, [(22, 52), (23, 16_384), (21, 2)], "{how:?}");
        }
    }

    #[test]
    fn nonsense_is_malformed_and_a_part_is_waited_for() {
        let read = |octets: &[u8], how| {
            let mut reader = RecordReader::default();
            reader.feed(Body::Real(Bytes::copy_from_slice(octets)));
            reader.poll(how)
        };
        assert_eq!(read(b"GET / HTTP/1.1", None), Err(Malformed));
        assert_eq!(read(&[23, 3, 3, 0xff, 0xff], None), Err(Malformed));
        assert_eq!(read(&[23, 3, 3, 0, 9, 1], None), Ok(None));
        for (version, cipher) in ALL {
            // Too short for its protection.
            assert_eq!(read(&[23, 3, 3, 0, 1, 1], Some(Protection { version, cipher })), Err(Malformed));
        }
    }
}
