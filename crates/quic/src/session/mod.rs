//! What stands where TLS does: a handshake whose messages have the form and the sizes of TLS 1.3's, and keys that protect packets or
//! only take their room.
//!
//! `messages` has the octets, `handshake` who says what when. How packets are protected is one of two things behind [`Protection`]:
//! `model` (nothing is hidden) or `seeded` (RFC 9001, with secrets that follow from the run's seed). Real peers are spoken to by
//! TLS itself (`real.rs`) instead.

mod certificate;
pub(crate) mod handshake;
pub(crate) mod layer;
mod messages;
pub(crate) mod model;
pub(crate) mod padding;
pub(crate) mod seeded;
pub(crate) mod tickets;

use bytes::BytesMut;
pub(crate) use messages::Sizes;

use crate::library::crypto::{CryptoError, KeyPair, Keys, PacketKey};
use crate::library::{Cipher, ConnectionId, Key, Side};

/// What keys are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Epoch {
    /// 0-RTT packets, which the client alone sends.
    Early,
    Handshake,
    /// 1-RTT packets, after so many updates of the keys.
    Data(u32),
}

/// Who keys are for: which end, and whether it reads padding, too, since somebody wants to know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) side: Side,
    pub(crate) reads_padding: bool,
}

impl Reader {
    /// What is the client's and what is the server's, with that of this end first.
    fn own_first<T>(self, [client, server]: [T; 2]) -> [T; 2] {
        if self.side.is_client() { [client, server] } else { [server, client] }
    }

    /// A cipher in the two directions, our own first.
    fn pair<C: Cipher>(self, ciphers: [C; 2]) -> KeyPair<Box<dyn PacketKey>> {
        let [local, remote] =
            ciphers.map(|cipher| Box::new(Key(Reading { cipher, trims: !self.reads_padding })) as Box<_>);
        KeyPair { local, remote }
    }
}

/// A cipher behind which padding is cut.
struct Reading<C> {
    cipher: C,
    trims: bool,
}

impl<C: Cipher> Cipher for Reading<C> {
    fn seal(&self, path: u32, number: u64, packet: &mut [u8], header: usize) {
        self.cipher.seal(path, number, packet, header);
    }
    fn open(&self, path: u32, number: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.cipher.open(path, number, header, payload)?;
        if self.trims {
            padding::trim(payload);
        }
        Ok(())
    }
    fn limits(&self) -> [u64; 2] {
        self.cipher.limits()
    }
}

/// How packets are protected.
pub(crate) trait Protection: Send + Sync + 'static {
    /// Keys of Initial packets, which follow from the client's first destination connection id.
    fn initial(&self, id: &ConnectionId, reader: Reader) -> Keys;
    /// Keys of the connection whose client has said this random number. After an update those of the header stay as they were.
    fn keys(&self, random: &[u8; 32], epoch: Epoch, reader: Reader) -> Keys;
    /// The integrity tag of a Retry packet.
    fn retry_tag(&self, id: &ConnectionId, packet: &[u8]) -> [u8; 16];
}
