//! How large the messages of a handshake are: named tables, and keys that replace single numbers.

use airloom_base::units::Octets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Config, Version};

/// A table of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Profile {
    /// Browsers and servers of 2004: no extensions to speak of, keys of 1024 bits that encrypt (RSA), AES in CBC mode with SHA-1.
    #[serde(rename = "2004")]
    Y2004,
    /// Browsers and servers of the 2020s: X25519, keys of 2048 bits that sign, AES in Galois mode.
    #[default]
    #[serde(rename = "today")]
    Today,
    /// The same with a post-quantum key share (X25519MLKEM768) in the ClientHello and the ServerHello.
    #[serde(rename = "post-quantum")]
    PostQuantum,
}

/// How records are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cipher {
    /// AES in Galois mode.
    #[default]
    Gcm,
    /// ChaCha20 with Poly1305.
    Chacha20,
    /// AES in CBC mode with HMAC-SHA-1; in TLS 1.2 only.
    CbcSha1,
}

/// The sizes of one end, in octets of handshake messages with their four octets of header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) cipher: Cipher,
    pub(super) client_hello: usize,
    /// Octets of the server's key share beyond X25519's 32.
    pub(super) more_share: usize,
    pub(super) certificates: usize,
    /// 0: the client's key exchange encrypts to the server's certificate (RSA), there is none of the server's.
    pub(super) server_key_exchange: usize,
    pub(super) client_key_exchange: usize,
    pub(super) certificate_verify: usize,
    pub(super) ticket: usize,
    pub(super) tickets: u8,
}

impl Sizes {
    /// Those of a configuration: its table, with what its keys say in place.
    pub(super) fn of(config: &Config) -> Sizes {
        let or = |key: Option<Octets>, usual: usize| key.map_or(usual, |octets| octets.0 as usize);
        let usual = Sizes::named(config.sizes, config.version);
        Sizes {
            cipher: config.cipher.unwrap_or(usual.cipher),
            client_hello: or(config.client_hello, usual.client_hello),
            certificates: or(config.certificates, usual.certificates),
            server_key_exchange: or(config.server_key_exchange, usual.server_key_exchange),
            client_key_exchange: or(config.client_key_exchange, usual.client_key_exchange),
            certificate_verify: or(config.certificate_verify, usual.certificate_verify),
            ticket: or(config.ticket, usual.ticket),
            tickets: config.tickets.unwrap_or(usual.tickets),
            ..usual
        }
    }

    fn named(profile: Profile, version: Version) -> Sizes {
        let today = Sizes {
            cipher: Cipher::Gcm,
            // Chromium pads to this.
            client_hello: 512,
            more_share: 0,
            // A leaf and an intermediate certificate.
            certificates: 3_000,
            // X25519 and a signature of 256 octets: 4 + 4 + 32 + 4 + 256.
            server_key_exchange: 300,
            // X25519: 4 + 1 + 32.
            client_key_exchange: 37,
            // A signature of 256 octets: 4 + 4 + 256.
            certificate_verify: 264,
            ticket: 200,
            // OpenSSL sends two in TLS 1.3; there is never more than one in TLS 1.2.
            tickets: if version == Version::Tls13 { 2 } else { 1 },
        };
        match profile {
            Profile::Today => today,
            // ML-KEM-768: 1184 octets towards the server, 1088 back.
            Profile::PostQuantum => Sizes { client_hello: 1_700, more_share: 1_088, ..today },
            Profile::Y2004 => Sizes {
                cipher: if version == Version::Tls13 { Cipher::Gcm } else { Cipher::CbcSha1 },
                client_hello: 100,
                certificates: 1_400,
                server_key_exchange: 0,
                // The secret under a key of 1024 bits: 4 + 2 + 128.
                client_key_exchange: 134,
                certificate_verify: 136,
                // Sessions are remembered by their number: RFC 5077 is of 2008.
                tickets: 0,
                ..today
            },
        }
    }
}
