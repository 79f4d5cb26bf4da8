//! The body of an origin's answer on its way in: its content coding taken off, its size bounded, its length compared with
//! what was announced.

use std::io::{self, Write};

use airloom_content::http::message::Fields;
use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Why a body cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// Larger than is taken, after the coding was taken off.
    TooLarge,
    /// Not as long as announced, not coded as announced, or in a coding that was not asked for.
    NotAsAnnounced,
}

/// What was decoded, up to so many octets.
#[derive(Debug)]
struct Bounded {
    octets: Vec<u8>,
    most: usize,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if octets.len() > self.most - self.octets.len() {
            self.is_full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.octets.extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
enum Decoder {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
    /// `deflate`, whose first octets say whether it is in zlib's format or bare.
    Undecided(Bounded, Vec<u8>),
    Zlib(Box<ZlibDecoder<Bounded>>),
    Deflate(Box<DeflateDecoder<Bounded>>),
}

/// A body that is coming in.
#[derive(Debug)]
pub(super) struct Incoming {
    announced: Option<u64>,
    got: u64,
    decoder: Decoder,
}

impl Incoming {
    /// The body that belongs to `fields`, which may have at most `most` octets.
    pub(super) fn new(fields: &Fields, most: usize) -> Result<Incoming, BodyError> {
        let announced = announced(fields)?;
        let sink = Bounded { octets: Vec::new(), most, is_full: false };
        let mut codings = fields.list("content-encoding").filter(|c| !c.eq_ignore_ascii_case(b"identity"));
        let decoder = match (codings.next().map(<[u8]>::to_ascii_lowercase).as_deref(), codings.next()) {
            (None, _) => {
                if announced.is_some_and(|octets| octets > most as u64) {
                    return Err(BodyError::TooLarge);
                }
                Decoder::Plain(sink)
            }
            (Some(b"gzip" | b"x-gzip"), None) => Decoder::Gzip(Box::new(MultiGzDecoder::new(sink))),
            (Some(b"deflate"), None) => Decoder::Undecided(sink, Vec::new()),
            // Several codings one over the other were not asked for, nor was any other.
            _ => return Err(BodyError::NotAsAnnounced),
        };
        Ok(Incoming { announced, got: 0, decoder })
    }

    /// A piece came.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), BodyError> {
        self.got += chunk.len() as u64;
        if self.announced.is_some_and(|announced| self.got > announced) {
            return Err(BodyError::NotAsAnnounced);
        }
        if let Decoder::Undecided(sink, first) = &mut self.decoder {
            first.extend_from_slice(chunk);
            let Some(head) = first.first_chunk::<2>() else { return Ok(()) };
            //= RFC 1950 (2.2): method 8 in the low bits, and the two octets as a number are a multiple of 31.
            let is_zlib = head[0] & 0x0F == 8 && u16::from_be_bytes(*head).is_multiple_of(31);
            let first = std::mem::take(first);
            let sink = std::mem::replace(sink, Bounded { octets: Vec::new(), most: 0, is_full: false });
            //= RFC 9110 (8.4.1.2): some senders leave the zlib format out.
            self.decoder = match is_zlib {
                true => Decoder::Zlib(Box::new(ZlibDecoder::new(sink))),
                false => Decoder::Deflate(Box::new(DeflateDecoder::new(sink))),
            };
            return self.write(&first);
        }
        self.write(chunk)
    }

    fn write(&mut self, octets: &[u8]) -> Result<(), BodyError> {
        let done = match &mut self.decoder {
            Decoder::Plain(sink) => sink.write_all(octets),
            Decoder::Gzip(decoder) => decoder.write_all(octets).and_then(|()| decoder.flush()),
            Decoder::Zlib(decoder) => decoder.write_all(octets).and_then(|()| decoder.flush()),
            Decoder::Deflate(decoder) => decoder.write_all(octets).and_then(|()| decoder.flush()),
            Decoder::Undecided(..) => Ok(()),
        };
        done.map_err(|_| match self.sink().is_full {
            true => BodyError::TooLarge,
            false => BodyError::NotAsAnnounced,
        })
    }

    fn sink(&self) -> &Bounded {
        match &self.decoder {
            Decoder::Plain(sink) | Decoder::Undecided(sink, _) => sink,
            Decoder::Gzip(decoder) => decoder.get_ref(),
            Decoder::Zlib(decoder) => decoder.get_ref(),
            Decoder::Deflate(decoder) => decoder.get_ref(),
        }
    }

    /// Octets that are held.
    pub(super) fn held(&self) -> usize {
        self.sink().octets.len()
    }

    /// It has ended.
    pub(super) fn finish(self) -> Result<Bytes, BodyError> {
        if self.announced.is_some_and(|announced| self.got != announced) {
            return Err(BodyError::NotAsAnnounced);
        }
        if self.got == 0 {
            return Ok(Bytes::new());
        }
        let sink = match self.decoder {
            Decoder::Plain(sink) => Ok(sink),
            Decoder::Undecided(..) => return Err(BodyError::NotAsAnnounced),
            Decoder::Gzip(decoder) => decoder.finish(),
            Decoder::Zlib(decoder) => decoder.finish(),
            Decoder::Deflate(decoder) => decoder.finish(),
        };
        sink.map(|sink| sink.octets.into()).map_err(|_| BodyError::NotAsAnnounced)
    }
}

/// `Content-Length`; two that differ, or one that is no number, is a lie.
fn announced(fields: &Fields) -> Result<Option<u64>, BodyError> {
    // A transfer coding says the length by itself (RFC 9112, 6.3).
    if fields.first("transfer-encoding").is_some() {
        return Ok(None);
    }
    let mut found = None;
    for value in fields.list("content-length") {
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(value).ok().filter(|_| is_number).and_then(|text| text.parse().ok());
        match (length, found) {
            (None, _) => return Err(BodyError::NotAsAnnounced),
            (Some(length), Some(before)) if length != before => return Err(BodyError::NotAsAnnounced),
            (length, _) => found = length,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn through(fields: &Fields, octets: &[u8], most: usize) -> Result<Bytes, BodyError> {
        let mut body = Incoming::new(fields, most)?;
        // In pieces of three, so that every state meets a border.
        octets.chunks(3).try_for_each(|piece| body.push(piece))?;
        body.finish()
    }

    #[test]
    fn codings_are_taken_off() {
        let text = b"a deck, a deck, a deck, a deck".as_slice();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(text).unwrap();
        zlib.write_all(text).unwrap();
        bare.write_all(text).unwrap();
        let coded = |name| Fields::from_iter([("Content-Encoding", name)]);
        for (name, octets) in [
            ("gzip", gzip.finish().unwrap()),
            ("deflate", zlib.finish().unwrap()),
            ("Deflate", bare.finish().unwrap()),
            ("identity", text.to_vec()),
        ] {
            assert_eq!(through(&coded(name), &octets, 100).as_deref(), Ok(text), "{name}");
        }
        assert_eq!(through(&coded("gzip"), b"no gzip at all", 100), Err(BodyError::NotAsAnnounced));
        assert_eq!(through(&coded("br"), b"", 100), Err(BodyError::NotAsAnnounced));
    }

    #[test]
    fn a_bomb_is_defused_at_the_limit() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&vec![0; 10_000_000]).unwrap();
        let bomb = bomb.finish().unwrap();
        let mut body = Incoming::new(&Fields::from_iter([("content-encoding", "gzip")]), 100_000).unwrap();
        let end = bomb.chunks(100).find_map(|piece| body.push(piece).err());
        assert_eq!(end, Some(BodyError::TooLarge));
        assert!(body.held() <= 100_000);
    }

    #[test]
    fn a_length_that_is_not_true_is_found_out() {
        for (announced, octets, result) in [
            ("4", "abcd", Ok(Bytes::from_static(b"abcd"))),
            ("5", "abcd", Err(BodyError::NotAsAnnounced)),
            ("3", "abcd", Err(BodyError::NotAsAnnounced)),
            ("x", "", Err(BodyError::NotAsAnnounced)),
            ("4, 4", "abcd", Ok(Bytes::from_static(b"abcd"))),
            ("4, 5", "abcd", Err(BodyError::NotAsAnnounced)),
            ("101", "", Err(BodyError::TooLarge)),
        ] {
            let fields = Fields::from_iter([("Content-Length", announced)]);
            assert_eq!(through(&fields, octets.as_bytes(), 100), result, "{announced}");
        }
    }
}
