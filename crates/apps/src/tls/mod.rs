//! TLS as a model: records and handshakes with the sizes and the round trips of the real thing, and no cryptography.
//!
//! ```text
//! http-client ──┐                             ┌── http-server
//!               │  writes, reads, events      │
//!          layer.rs: Sockets of its own   layer.rs
//!               │  session.rs: handshake      │
//!               │  record.rs: records         │
//!            sockets of the host ──────────── sockets of the host
//! ```
//!
//! [`Secured`] is an application around another one. It opens and accepts connections as that one wants, shakes hands, puts what
//! is written into records and gives out what comes in whole records. The application inside knows nothing of it: it is told that a
//! connection is open when it may write. Connections of QUIC, which has its own TLS, are the application's as they are. A client may have to pass a proxy first: then CONNECT comes before the handshake.
//!
//! What goes over the wire can be read by others: messages of the handshake that are sent in clear are well-formed and have the
//! sizes of a table ([`Profile`]). Later records hold what they are to hold, with as many octets around it as protection adds:
//! nothing is encrypted, and nobody may look. Sizes are of real octets, so everything below (segments, loss, windows) is as with
//! real TLS. Time for cryptography is not modelled; neither are certificates that are refused, renegotiation, client
//! certificates, HelloRetryRequest, and what a real ticket protects against: every session that is offered is known.
//!
//! Standards: RFC 8446 (1.3), RFC 5246 (1.2), RFC 5077 (tickets), RFC 7301 (ALPN), RFC 5288, RFC 7905.

mod layer;
mod messages;
mod record;
mod session;
mod sizes;
#[cfg(test)]
mod tests;

use airloom_base::ConfigError;
use airloom_base::units::Octets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

pub use layer::{Secured, Tunnels};
pub use sizes::{Cipher, Profile};

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Version {
    /// TLS 1.2; what came before takes the same round trips.
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[default]
    #[serde(rename = "1.3")]
    Tls13,
}

/// Which connections of a client go on with a session that both sides remember.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resumes {
    /// None.
    Never,
    /// Those that begin when another one to the same server has got what it takes.
    #[default]
    Later,
    /// All: the server was visited before the run.
    Always,
}

/// TLS below an application: sizes and round trips, no cryptography. Each end says its own; the lower version is spoken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Highest version: `"1.2"` or `"1.3"`.
    pub version: Version,
    /// Table of sizes that the keys below replace single numbers of: `"today"`, `"post-quantum"` or `"2004"`.
    pub sizes: Profile,
    /// How records are protected, `"gcm"`, `"chacha20"` or `"cbc-sha1"`, which says what each costs; of the table if not given. The
    /// server's counts.
    pub cipher: Option<Cipher>,
    /// Octets of the ClientHello, or as many as it takes at least. A session that is resumed comes on top.
    pub client_hello: Option<Octets>,
    /// Octets of the server's certificates.
    pub certificates: Option<Octets>,
    /// Octets of the server's key exchange in TLS 1.2; with 0 there is none: the client encrypts to the certificate.
    pub server_key_exchange: Option<Octets>,
    /// Octets of the client's key exchange in TLS 1.2.
    pub client_key_exchange: Option<Octets>,
    /// Octets of CertificateVerify in TLS 1.3.
    pub certificate_verify: Option<Octets>,
    /// Octets of a session ticket.
    pub ticket: Option<Octets>,
    /// How many tickets a server gives; in TLS 1.2 at most one.
    pub tickets: Option<u8>,
    /// Most octets of content of a record. Its receiver can use none of them before it has all.
    #[default(Octets(record::MOST as u64))]
    pub record: Octets,
    /// Clients: which connections go on with a session.
    pub resumes: Resumes,
    /// Clients: on those, send at once (0-RTT, TLS 1.3 only)? HTTP clients do so with what can be repeated.
    pub early_data: bool,
    /// Servers: go on with sessions that clients remember?
    #[default(true)]
    pub remembers: bool,
}

impl Config {
    /// Refuses what cannot be.
    ///
    /// # Errors
    /// [`ConfigError`] with the key, below `tls`.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |is_wrong: bool, key: &str, message: &str| {
            ConfigError::when(is_wrong, key, message).map_err(|error| error.below("tls"))
        };
        refuse(!(1..=record::MOST as u64).contains(&self.record.0), "record", "must be 1B to 16384B")?;
        let sizes = [
            ("client_hello", self.client_hello, 16_000),
            ("certificates", self.certificates, 60_000),
            ("server_key_exchange", self.server_key_exchange, 60_000),
            ("client_key_exchange", self.client_key_exchange, 60_000),
            ("certificate_verify", self.certificate_verify, 60_000),
            ("ticket", self.ticket, 16_000),
        ];
        for (key, size, most) in sizes {
            refuse(size.is_some_and(|size| size.0 > most), key, &format!("must be at most {most}B"))?;
        }
        // RFC 7905 has no suite for that, in TLS 1.2, which the other end may speak.
        let encrypts = sizes::Sizes::of(self).server_key_exchange == 0;
        let has_no_suite = self.cipher == Some(Cipher::Chacha20) && encrypts;
        refuse(has_no_suite, "cipher", "\"chacha20\" needs a server_key_exchange")?;
        let is_old = self.version == Version::Tls12;
        refuse(self.early_data && is_old, "early_data", "needs version = \"1.3\"")
    }
}
