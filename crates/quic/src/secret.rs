//! A key of a host: for connection ids, resets, tokens and tickets.

use std::hash::Hasher;

use airloom_base::random::Stream;
use siphasher::sip::SipHasher24;

use crate::library::crypto::{CryptoError, HandshakeTokenKey, HmacKey};

/// A keyed function with as much to say as is asked for (SipHash-2-4).
#[derive(Clone, Copy)]
pub(crate) struct Secret(u64, u64);

impl Secret {
    pub(crate) fn of(stream: &mut Stream) -> Secret {
        Secret(stream.bits(), stream.bits())
    }

    pub(crate) fn say(self, parts: &[&[u8]], out: &mut [u8]) {
        for (n, piece) in out.chunks_mut(8).enumerate() {
            let mut hasher = SipHasher24::new_with_keys(self.0, self.1);
            hasher.write_u64(n as u64);
            parts.iter().for_each(|part| {
                hasher.write_usize(part.len());
                hasher.write(part);
            });
            piece.copy_from_slice(&hasher.finish().to_be_bytes()[..piece.len()]);
        }
    }
}

impl HmacKey for Secret {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        self.say(&[data], out);
    }
    fn signature_len(&self) -> usize {
        32
    }
    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = [0; 32];
        self.say(&[data], &mut own);
        if own[..] == *signature { Ok(()) } else { Err(CryptoError) }
    }
}

/// Octets of the tag behind a token.
const TAG: usize = 16;

/// Tokens are hidden by a series that the nonce begins, and cannot be made by others.
impl HandshakeTokenKey for Secret {
    fn seal(&self, nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        let nonce = nonce.to_be_bytes();
        let mut series = vec![0; data.len()];
        self.say(&[b"series", &nonce], &mut series);
        data.iter_mut().zip(series).for_each(|(octet, with)| *octet ^= with);
        let mut tag = [0; TAG];
        self.say(&[b"tag", &nonce, data], &mut tag);
        data.extend_from_slice(&tag);
        Ok(())
    }
    fn open<'a>(&self, nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let nonce = nonce.to_be_bytes();
        let (sealed, tag) = data.split_last_chunk_mut::<TAG>().ok_or(CryptoError)?;
        let mut own = [0; TAG];
        self.say(&[b"tag", &nonce, sealed], &mut own);
        if own != *tag {
            return Err(CryptoError);
        }
        let mut series = vec![0; sealed.len()];
        self.say(&[b"series", &nonce], &mut series);
        sealed.iter_mut().zip(series).for_each(|(octet, with)| *octet ^= with);
        Ok(sealed)
    }
}
