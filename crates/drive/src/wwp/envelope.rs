//! The octets in front of each datagram, and the two datagrams before a session.
//!
//! ```text
//!   opener                                   listener
//!   0, HELLO, nonce, zeros (64 octets) ──►                  nothing is kept
//!             ◄── 0, WELCOME (or BUSY), nonce, name         name = SipHash(secret, address and port of the opener)
//!   name, SYN ──►                                           the session begins
//! ```
//!
//! The answer is not longer than the question, and a name proves that its bearer receives at the address it sends from.

use std::hash::Hasher;
use std::net::SocketAddr;

use siphasher::sip::SipHasher24;

/// Octets of a session's name.
pub const NAME: usize = 8;
/// Octets of the datagrams before a session.
pub const GREETING: usize = 64;
const MAGIC: &[u8; 4] = b"WWP1";

/// A datagram that belongs to no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// Somebody wants to open one.
    Hello,
    /// Its name.
    Welcome(u64),
    /// There is one with somebody else.
    Busy,
}

/// Writes a greeting.
pub fn greet(greeting: Greeting, nonce: u64) -> [u8; GREETING] {
    let (kind, name) = match greeting {
        Greeting::Hello => (1, 0),
        Greeting::Welcome(name) => (2, name),
        Greeting::Busy => (3, 0),
    };
    let mut out = [0; GREETING];
    out[NAME..12].copy_from_slice(MAGIC);
    out[12] = kind;
    out[16..24].copy_from_slice(&nonce.to_be_bytes());
    out[24..32].copy_from_slice(&name.to_be_bytes());
    out
}

/// Reads a greeting and its nonce.
pub fn greeted(datagram: &[u8]) -> Option<(Greeting, u64)> {
    let octets: &[u8; GREETING] = datagram.try_into().ok()?;
    let word = |at: usize| octets[at..].first_chunk().map_or(0, |w| u64::from_be_bytes(*w));
    if word(0) != 0 || &octets[NAME..12] != MAGIC {
        return None;
    }
    let greeting = match (octets[12], word(24)) {
        (1, _) => Greeting::Hello,
        (2, name) if name != 0 => Greeting::Welcome(name),
        (3, _) => Greeting::Busy,
        _ => return None,
    };
    Some((greeting, word(16)))
}

/// The name of a session with this opener; never 0.
pub fn name(secret: (u64, u64), opener: SocketAddr) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(secret.0, secret.1);
    match opener.ip() {
        std::net::IpAddr::V4(ip) => hasher.write(&ip.octets()),
        std::net::IpAddr::V6(ip) => hasher.write(&ip.octets()),
    }
    hasher.write_u16(opener.port());
    hasher.finish() | 1
}

/// The name in front of a datagram, and what follows.
pub fn open(datagram: &[u8]) -> Option<(u64, &[u8])> {
    let (name, unit) = datagram.split_first_chunk::<NAME>()?;
    Some((u64::from_be_bytes(*name), unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_read_as_they_were_written_and_nothing_else_is_one() {
        for greeting in [Greeting::Hello, Greeting::Welcome(77), Greeting::Busy] {
            let octets = greet(greeting, 0xABCD);
            assert_eq!(greeted(&octets), Some((greeting, 0xABCD)));
            assert_eq!(greeted(&octets[1..]), None);
            let mut other = octets;
            other[9] ^= 1;
            assert_eq!(greeted(&other), None);
        }
        assert_eq!(greeted(&greet(Greeting::Welcome(0), 1)), None, "no session is called 0");
    }

    #[test]
    fn names_differ_by_address_port_and_secret() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let first = name((1, 2), at("127.0.0.1:5000"));
        assert_eq!(first, name((1, 2), at("127.0.0.1:5000")));
        for other in [
            name((1, 2), at("127.0.0.1:5001")),
            name((1, 2), at("127.0.0.2:5000")),
            name((1, 3), at("127.0.0.1:5000")),
        ] {
            assert_ne!(first, other);
        }
    }
}
