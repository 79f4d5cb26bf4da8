//! A key of a host: for connection ids, resets, tokens and tickets.

use std::hash::Hasher;

use airloom_base::random::Stream;
use siphasher::sip::SipHasher24;

use crate::library::crypto::{CryptoError, HmacKey};

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

/// Tokens are hidden by a series that what is used once begins, and cannot be made by others.
impl Secret {
    /// Hides octets, and puts a tag behind them.
    pub(crate) fn hide(self, once: &[u8], data: &mut Vec<u8>) {
        let mut series = vec![0; data.len()];
        self.say(&[b"series", once], &mut series);
        data.iter_mut().zip(series).for_each(|(octet, with)| *octet ^= with);
        let mut tag = [0; TAG];
        self.say(&[b"tag", once, data], &mut tag);
        data.extend_from_slice(&tag);
    }

    /// Octets that were hidden so, without their tag. `None`: by somebody else.
    pub(crate) fn show<'a>(self, once: &[u8], data: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (sealed, tag) = data.split_last_chunk_mut::<TAG>()?;
        let mut own = [0; TAG];
        self.say(&[b"tag", once, sealed], &mut own);
        if own != *tag {
            return None;
        }
        let mut series = vec![0; sealed.len()];
        self.say(&[b"series", once], &mut series);
        sealed.iter_mut().zip(series).for_each(|(octet, with)| *octet ^= with);
        Some(sealed)
    }
}
