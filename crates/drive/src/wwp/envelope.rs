//! The octets in front of each datagram, and the two datagrams before a session.
//!
//! ```text
//!   opener                                   listener
//!   0, HELLO, nonce, zeros (64 octets) ──►                  nothing is kept
//!             ◄── 0, WELCOME (or BUSY), nonce, name         name = SipHash(secret, address and port of the opener)
//!   seal, SYN ──►                                           the session begins; seal = SipHash(name, SYN)
//! ```
//!
//! The answer is not longer than the question. A seal proves that its bearer receives at the address it sends from, and that the
//! datagram is as it was sent: a damaged one is lost and sent again. Who sees the datagrams sees the name too, and can forge them.

use std::hash::Hasher;
use std::net::SocketAddr;

use siphasher::sip::SipHasher24;

/// Octets of a seal.
pub const SEAL: usize = 8;
/// Octets of the datagrams before a session.
pub const GREETING: usize = 64;
const MAGIC: &[u8; 4] = b"WWP2";

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
    out[SEAL..12].copy_from_slice(MAGIC);
    out[12] = kind;
    out[16..24].copy_from_slice(&nonce.to_be_bytes());
    out[24..32].copy_from_slice(&name.to_be_bytes());
    out
}

/// Reads a greeting and its nonce.
pub fn greeted(datagram: &[u8]) -> Option<(Greeting, u64)> {
    let octets: &[u8; GREETING] = datagram.try_into().ok()?;
    let word = |at: usize| octets[at..].first_chunk().map_or(0, |w| u64::from_be_bytes(*w));
    if word(0) != 0 || &octets[SEAL..12] != MAGIC {
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

/// What stands in front of a unit of the session with this name; never 0, with which greetings begin.
pub fn seal(name: u64, unit: &[u8]) -> [u8; SEAL] {
    let mut hasher = SipHasher24::new_with_keys(name, u64::from_be_bytes(*b"airloom\0"));
    hasher.write(unit);
    (hasher.finish() | 1).to_be_bytes()
}

/// The unit in a datagram of the session with this name.
pub fn open(name: u64, datagram: &[u8]) -> Option<&[u8]> {
    let (sealed, unit) = datagram.split_first_chunk::<SEAL>()?;
    (*sealed == seal(name, unit)).then_some(unit)
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
    fn a_datagram_opens_as_it_was_sealed_and_neither_damaged_nor_under_another_name() {
        let unit = [0x23, 7, 1, 2, 3, 0xCF, b'd', b'a', b't', b'a'];
        let datagram = [&seal(77, &unit)[..], &unit].concat();
        assert_eq!(open(77, &datagram), Some(&unit[..]));
        assert_eq!(open(78, &datagram), None);
        for bit in 0..8 * datagram.len() {
            let mut damaged = datagram.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(77, &damaged), None, "bit {bit}");
        }
        for len in 0..datagram.len() {
            assert_eq!(open(77, &datagram[..len]), None, "{len} octets");
        }
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
