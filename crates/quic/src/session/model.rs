//! No protection: tags that say nothing but which packet they are of, so that everything has the size it would have, and is refused
//! where its number, of which packets carry the last octets, is taken for another one.

use airloom_base::lookup::FixedHasher;
use bytes::BytesMut;
use std::hash::Hasher;

use super::{Epoch, Protection, Reader};
use crate::library::crypto::{CryptoError, HeaderKey, KeyPair, Keys, PacketKey};
use crate::library::{Cipher, ConnectionId, TAG};

/// Protects nothing.
pub(crate) struct Model;

/// The tag of a packet: the numbers of its path and its own.
fn tag(path: u32, number: u64) -> [u8; TAG] {
    (u128::from(path) << 64 | u128::from(number)).to_be_bytes()
}

impl HeaderKey for Model {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        // As long as a tag.
        TAG
    }
}

impl Cipher for Model {
    fn seal(&self, path: u32, number: u64, packet: &mut [u8], _: usize) {
        // The room was there before; what was in it is nobody's business.
        if let Some(room) = packet.last_chunk_mut::<TAG>() {
            *room = tag(path, number);
        }
    }
    fn open(&self, path: u32, number: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        match payload.last_chunk::<TAG>() {
            // Whatever else a stranger sends is refused, as it would be.
            Some(there) if *there == tag(path, number) => payload.truncate(payload.len() - TAG),
            _ => return Err(CryptoError),
        }
        Ok(())
    }
    fn limits(&self) -> [u64; 2] {
        [u64::MAX; 2]
    }
}

fn keys(reader: Reader) -> Keys {
    let header = KeyPair { local: Box::new(Model) as Box<_>, remote: Box::new(Model) as Box<_> };
    Keys { header, packet: reader.pair([Model, Model]) }
}

impl Protection for Model {
    fn initial(&self, _: &ConnectionId, reader: Reader) -> Keys {
        keys(reader)
    }
    fn keys(&self, _: &[u8; 32], _: Epoch, reader: Reader) -> Keys {
        keys(reader)
    }
    fn updated(&self, _: &[u8; 32], _: u32, reader: Reader) -> KeyPair<Box<dyn PacketKey>> {
        reader.pair([Model, Model])
    }
    fn retry_tag(&self, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        let mut hasher = FixedHasher::default();
        hasher.write(id);
        hasher.write(packet);
        u128::from(hasher.finish()).to_be_bytes()
    }
}
