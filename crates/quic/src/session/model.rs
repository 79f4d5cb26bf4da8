//! No protection: tags that say nothing but which packet they are of, and by which key, so that everything has the size it would
//! have, and is refused where its number, of which packets carry the last octets, or its key is taken for another one.

use airloom_base::lookup::FixedHasher;
use bytes::BytesMut;
use std::hash::{Hash, Hasher};

use super::{Epoch, Protection, Reader};
use crate::library::crypto::{CryptoError, HeaderKey, KeyPair, Keys};
use crate::library::{Cipher, ConnectionId, TAG};

/// Protects nothing.
pub(crate) struct Model;

/// A key that hides nothing: a number that both ends have for what it is for.
struct Mark(u64);

impl Mark {
    /// The tag of a packet: by key and path, and by its number.
    fn tag(&self, path: u32, number: u64) -> [u8; TAG] {
        (u128::from(self.0 ^ u64::from(path)) << 64 | u128::from(number)).to_be_bytes()
    }
}

impl HeaderKey for Model {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        // As long as a tag.
        TAG
    }
}

impl Cipher for Mark {
    fn seal(&self, path: u32, number: u64, packet: &mut [u8], _: usize) {
        // The room was there before; what was in it is nobody's business.
        if let Some(room) = packet.last_chunk_mut::<TAG>() {
            *room = self.tag(path, number);
        }
    }
    fn open(&self, path: u32, number: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        match payload.last_chunk::<TAG>() {
            // Whatever else a stranger sends is refused, as it would be.
            Some(there) if *there == self.tag(path, number) => payload.truncate(payload.len() - TAG),
            _ => return Err(CryptoError),
        }
        Ok(())
    }
    fn limits(&self) -> [u64; 2] {
        [u64::MAX; 2]
    }
}

/// Keys by what both ends know and what these are for.
fn keys(of: impl Hash, reader: Reader) -> Keys {
    let mark = |sender: u8| {
        let mut hasher = FixedHasher::default();
        (&of, sender).hash(&mut hasher);
        Mark(hasher.finish())
    };
    let header = KeyPair { local: Box::new(Model) as Box<_>, remote: Box::new(Model) as Box<_> };
    Keys { header, packet: reader.pair(reader.own_first([mark(0), mark(1)])) }
}

impl Protection for Model {
    fn initial(&self, id: &ConnectionId, reader: Reader) -> Keys {
        keys(&id[..], reader)
    }
    fn keys(&self, random: &[u8; 32], epoch: Epoch, reader: Reader) -> Keys {
        keys((random, epoch), reader)
    }
    fn retry_tag(&self, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        let mut hasher = FixedHasher::default();
        hasher.write(id);
        hasher.write(packet);
        u128::from(hasher.finish()).to_be_bytes()
    }
}
