//! No protection: tags that say nothing but which packet they are of, so that everything has the size it would have, and is refused
//! where its number, of which packets carry the last octets, is taken for another one.

use airloom_base::lookup::FixedHasher;
use bytes::BytesMut;
use std::hash::Hasher;

use super::{Epoch, Protection};
use crate::library::crypto::{CryptoError, HeaderKey, KeyPair, Keys, PacketKey};
use crate::library::{ConnectionId, PathId, Side, path_number};

/// Octets of a tag of AES-GCM, and of the sample that header protection takes.
const TAG: usize = 16;

/// Protects nothing.
pub(crate) struct Model;

/// The tag of a packet: the numbers of its path and its own.
fn tag(path: PathId, number: u64) -> [u8; TAG] {
    (u128::from(path_number(path)) << 64 | u128::from(number)).to_be_bytes()
}

impl HeaderKey for Model {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        TAG
    }
}

impl PacketKey for Model {
    fn encrypt(&self, path: PathId, number: u64, packet: &mut [u8], _: usize) {
        // The room was there before; what was in it is nobody's business.
        if let Some(room) = packet.last_chunk_mut::<TAG>() {
            *room = tag(path, number);
        }
    }
    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        _: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        match payload.last_chunk::<TAG>() {
            // Whatever else a stranger sends is refused, as it would be.
            Some(there) if *there == tag(path, number) => payload.truncate(payload.len() - TAG),
            _ => return Err(CryptoError),
        }
        Ok(())
    }
    fn tag_len(&self) -> usize {
        TAG
    }
    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }
    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

fn packets() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(Model), remote: Box::new(Model) }
}

fn keys() -> Keys {
    Keys { header: KeyPair { local: Box::new(Model), remote: Box::new(Model) }, packet: packets() }
}

impl Protection for Model {
    fn initial(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }
    fn keys(&self, _: &[u8; 32], _: Epoch, _: Side) -> Keys {
        keys()
    }
    fn updated(&self, _: &[u8; 32], _: u32, _: Side) -> KeyPair<Box<dyn PacketKey>> {
        packets()
    }
    fn retry_tag(&self, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        let mut hasher = FixedHasher::default();
        hasher.write(id);
        hasher.write(packet);
        u128::from(hasher.finish()).to_be_bytes()
    }
}
