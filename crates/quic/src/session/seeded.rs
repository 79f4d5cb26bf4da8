//! The protection of RFC 9001: AES-128-GCM and header protection, with secrets that follow from the run's seed and from what the
//! client said at first. Whoever knows the seed knows them; nothing else is less than the real thing.

use bytes::BytesMut;
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey, quic};
use ring::hkdf;

use super::{Epoch, Protection, Reader};
use crate::keylog::KeyLog;
use crate::library::crypto::{CryptoError, HeaderKey, KeyPair, Keys};
use crate::library::{Cipher, ConnectionId, TAG};

//= RFC 9001 (5.2): the salt of Initial secrets, version 1.
const SALT: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc,
    0xbb, 0x7f, 0x0a,
];

//= RFC 9001 (5.8): the key and the nonce of Retry packets, version 1.
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// Octets that HKDF is to give.
struct Wanted(usize);

impl hkdf::KeyType for Wanted {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive<const N: usize>(prk: &hkdf::Prk, info: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    prk.expand(info, Wanted(N)).and_then(|okm| okm.fill(&mut out)).expect("HKDF gives up to 8160 octets");
    out
}

/// HKDF-Expand-Label of TLS 1.3 (RFC 8446, 7.1) without a context.
fn expand<const N: usize>(secret: &[u8; 32], label: &str) -> [u8; N] {
    let prk = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret);
    let label_len = [6 + label.len() as u8];
    derive(&prk, &[&(N as u16).to_be_bytes(), &label_len, b"tls13 ", label.as_bytes(), &[0]])
}

fn aes(key: &[u8; 16]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&aead::AES_128_GCM, key).expect("AES-128 takes 16 octets"))
}

/// The keys of packets in one direction.
struct Packets {
    key: LessSafeKey,
    iv: [u8; 12],
}

impl Packets {
    fn of(secret: &[u8; 32]) -> Packets {
        Packets { key: aes(&expand(secret, "quic key")), iv: expand(secret, "quic iv") }
    }

    /// RFC 9001, 5.3: the packet number in the last octets; in front of it that of the path (draft-ietf-quic-multipath, 2.4).
    fn nonce(&self, path: u32, number: u64) -> Nonce {
        let mut nonce = self.iv;
        nonce.iter_mut().zip(path.to_be_bytes()).for_each(|(octet, with)| *octet ^= with);
        nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(octet, with)| *octet ^= with);
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Cipher for Packets {
    fn seal(&self, path: u32, number: u64, packet: &mut [u8], header: usize) {
        let (header, rest) = packet.split_at_mut(header);
        let (payload, room) = rest.split_at_mut(rest.len() - TAG);
        let nonce = self.nonce(path, number);
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(&*header), payload);
        room.copy_from_slice(tag.expect("a packet is far below the limits of GCM").as_ref());
    }
    fn open(&self, path: u32, number: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let nonce = self.nonce(path, number);
        let plain = self.key.open_in_place(nonce, Aad::from(header), payload).map_err(|_| CryptoError)?.len();
        payload.truncate(plain);
        Ok(())
    }
    //= RFC 9001 (6.6): 2^23 packets of AES-128-GCM, 2^52 forged ones.
    fn limits(&self) -> [u64; 2] {
        [1 << 23, 1 << 52]
    }
}

/// The key of headers in one direction (RFC 9001, 5.4).
struct Headers(quic::HeaderProtectionKey);

impl Headers {
    fn of(secret: &[u8; 32]) -> Headers {
        let key: [u8; 16] = expand(secret, "quic hp");
        Headers(quic::HeaderProtectionKey::new(&quic::AES_128, &key).expect("AES-128 takes 16 octets"))
    }

    fn mask(&self, at: usize, packet: &[u8]) -> Option<[u8; 5]> {
        self.0.new_mask(packet.get(at + 4..at + 4 + TAG)?).ok()
    }

    fn apply(first: &mut u8, mask: u8) {
        *first ^= mask & if *first & 0x80 == 0 { 0x1F } else { 0x0F };
    }
}

impl HeaderKey for Headers {
    fn decrypt(&self, at: usize, packet: &mut [u8]) {
        let Some([first, rest @ ..]) = self.mask(at, packet) else { return };
        Headers::apply(&mut packet[0], first);
        let len = usize::from(packet[0] & 3) + 1;
        packet[at..at + len].iter_mut().zip(rest).for_each(|(octet, with)| *octet ^= with);
    }
    fn encrypt(&self, at: usize, packet: &mut [u8]) {
        let Some([first, rest @ ..]) = self.mask(at, packet) else { return };
        let len = usize::from(packet[0] & 3) + 1;
        packet[at..at + len].iter_mut().zip(rest).for_each(|(octet, with)| *octet ^= with);
        Headers::apply(&mut packet[0], first);
    }
    fn sample_size(&self) -> usize {
        TAG
    }
}

fn all_keys(secrets: &[[u8; 32]; 2], reader: Reader) -> Keys {
    let header = |secret| Box::new(Headers::of(secret)) as Box<dyn HeaderKey>;
    let [local, remote] = reader.own_first(secrets.each_ref().map(header));
    let packet = reader.pair(reader.own_first(secrets.each_ref().map(Packets::of)));
    Keys { header: KeyPair { local, remote }, packet }
}

/// Protection with secrets that follow from a number both ends know.
pub(crate) struct Seeded {
    master: hkdf::Prk,
    log: KeyLog,
}

impl Seeded {
    /// With the secrets of this run; they are noted in `log`.
    pub(crate) fn new(secret: u64, log: KeyLog) -> Seeded {
        let master = hkdf::Salt::new(hkdf::HKDF_SHA256, b"airloom").extract(&secret.to_be_bytes());
        Seeded { master, log }
    }

    /// Those of the client and of the server, with the words that a key log has for them.
    fn secrets(&self, random: &[u8; 32], epoch: Epoch) -> [[u8; 32]; 2] {
        let labels = match epoch {
            Epoch::Early => ["CLIENT_EARLY_TRAFFIC_SECRET"; 2],
            Epoch::Handshake => ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET"],
            Epoch::Data(_) => ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"],
        };
        let mut secrets = labels.map(|label| derive(&self.master, &[label.as_bytes(), random]));
        if let Epoch::Data(updates) = epoch {
            for _ in 0..updates {
                //= RFC 9001 (6.1): the next secret is expanded from the last one.
                secrets = secrets.map(|secret| expand(&secret, "quic ku"));
            }
        }
        secrets
    }
}

impl Protection for Seeded {
    fn initial(&self, id: &ConnectionId, reader: Reader) -> Keys {
        //= RFC 9001 (5.2): extracted from the client's first destination connection id.
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, &SALT).extract(id);
        let secrets = [&b"tls13 client in"[..], b"tls13 server in"]
            .map(|label| derive::<32>(&prk, &[&32u16.to_be_bytes(), &[label.len() as u8], label, &[0]]));
        all_keys(&secrets, reader)
    }
    fn keys(&self, random: &[u8; 32], epoch: Epoch, reader: Reader) -> Keys {
        let secrets = self.secrets(random, epoch);
        // Those after an update follow from the first.
        if !matches!(epoch, Epoch::Data(1..)) {
            self.log.note(reader.side, random, epoch, &secrets);
        }
        all_keys(&secrets, reader)
    }
    fn retry_tag(&self, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        //= RFC 9001 (5.8): the pseudo-packet begins with the original destination connection id.
        let pseudo = [&[id.len() as u8][..], id, packet].concat();
        let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
        let tag = aes(&RETRY_KEY).seal_in_place_separate_tag(nonce, Aad::from(pseudo), &mut []);
        let mut out = [0; 16];
        out.copy_from_slice(tag.expect("a Retry packet is far below the limits of GCM").as_ref());
        out
    }
}
