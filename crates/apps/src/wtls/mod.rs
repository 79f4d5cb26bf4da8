//! WTLS as a model of cost: records and handshakes with the sizes and the round trips of the real thing, and no cryptography.
//!
//! ```text
//! wap-browser ──┐                              ┌── wap-gateway (9200, 9201)
//!               │ datagrams                    │ datagrams
//!          layer.rs: Sockets of its own    layer.rs (9202, 9203)
//!               │ connection.rs: flights       │
//!               │ record.rs: records           │
//!            sockets of the host ──────────── sockets of the host
//! ```
//!
//! [`Secured`] is an application around another one, as in [`tls`](crate::tls), but of datagrams. The first datagram for the secure
//! port of a gateway begins a handshake and waits for its end; each datagram is a record then.
//!
//! ```text
//! full:         ClientHello >                                      one datagram a flight
//!               < ServerHello, Certificate or ServerKeyExchange, ServerHelloDone
//!               ClientKeyExchange, ChangeCipherSpec, Finished >
//!               < ChangeCipherSpec, Finished                       two round trips, then data
//! abbreviated:  ClientHello (session) >
//!               < ServerHello, ChangeCipherSpec, Finished
//!               ChangeCipherSpec, Finished, data >                 one round trip, then data
//! ```
//!
//! A client repeats its flight after `repeat_after`, and a server answers a flight that it knows with the same flight again. The
//! client's last flight of an abbreviated handshake goes along with each datagram until a protected one has come back.
//!
//! A server that does not know the connection of a record, since a NAT gave its client another port or too many others came, says so
//! in clear (the fatal alert `no_connection`). That datagram is lost; the client's next one begins a handshake. Clients take fatal
//! alerts in clear at any time: checksums that would tell forged ones are not modelled.
//!
//! Records of an open connection say their number and their length (five octets of header), and hold what they are to hold in clear,
//! with as many octets behind it as a hash and the padding to whole blocks take. Not modelled: time for cryptography, certificates
//! that are refused, class 3 (certificates of clients), the optimised full handshake (the gateway knows the client's certificate),
//! refreshed keys, and any protection: whoever looks can read. It is for simulated hosts; no daemon speaks it.
//!
//! Standard: WAP-261 (WTLS); ports: WAP-259.

mod connection;
mod layer;
mod record;
#[cfg(test)]
mod tests;

use airloom_base::units::Octets;
use airloom_base::{ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

pub use layer::Secured;

use crate::tls::Resumes;

/// Who shows a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Nobody: class 1. The server sends a key without a certificate.
    Anonymous,
    /// The server: class 2.
    #[default]
    Server,
}

/// WTLS below an application: sizes and round trips, no cryptography. Each end says its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Servers: `"server"` shows a certificate (class 2), `"anonymous"` a key alone (class 1).
    pub class: Class,
    /// Servers: octets of a certificate in WTLS's own short form, for a key of 1024 bits.
    #[default(Octets(400))]
    pub certificate: Octets,
    /// Octets of the numbers that keys consist of (RSA, Diffie-Hellman): 128 for 1024 bits.
    #[default(Octets(128))]
    pub key: Octets,
    /// Octets of the hash behind each record: 5, 10 or 20 for SHA-1, 5, 10 or 16 for MD5. The same at both ends.
    #[default(10)]
    pub mac: u8,
    /// Octets of a block of the cipher, to which records are padded: 8 in all ciphers of WTLS; 1: none. The same at both ends.
    #[default(8)]
    pub block: u8,
    /// Clients: which connections go on with a session.
    pub resumes: Resumes,
    /// Servers: go on with sessions that clients remember?
    #[default(true)]
    pub remembers: bool,
    /// Clients: a connection that was not used for so long is begun anew.
    #[default(Duration::from_secs(600))]
    pub idle: Duration,
    /// Clients: a flight that was not answered for so long is sent again.
    // ASSUMPTION(wap-vs-http-wcdma): the standard leaves it open; about twice a round trip of GSM data.
    #[default(Duration::from_secs(3))]
    pub repeat_after: Duration,
    /// Clients: how often it is; then what waits is thrown away.
    #[default(4)]
    pub repeats: u16,
}

impl Config {
    /// Refuses what cannot be.
    ///
    /// # Errors
    /// [`ConfigError`] with the key, below `wtls`.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |is_wrong: bool, key: &str, message: &str| {
            ConfigError::when(is_wrong, key, message).map_err(|error| error.below("wtls"))
        };
        // A flight is one datagram.
        refuse(self.certificate.0 > 1_200, "certificate", "must be at most 1200B")?;
        refuse(self.certificate.0 < 64, "certificate", "must be at least 64B")?;
        refuse(!(16..=512).contains(&self.key.0), "key", "must be 16B to 512B")?;
        refuse(self.mac > 20, "mac", "must be 0 to 20")?;
        refuse(!(1..=16).contains(&self.block), "block", "must be 1 to 16")?;
        for (key, time) in [("idle", self.idle), ("repeat_after", self.repeat_after)] {
            refuse(time.is_zero(), key, "must be above 0s")?;
        }
        Ok(())
    }
}
