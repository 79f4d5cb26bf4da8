//! ICMP (RFC 792) and ICMPv6 (RFC 4443): echo, and the errors that transports act on.

use std::net::IpAddr;

use crate::{Error, get16, ip, put16};

/// Octets of the header: type, code, checksum and four octets whose meaning depends on the type.
pub const HEADER: usize = 8;

/// A message, without the address family: the numbers differ, the meanings do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmp {
    /// Echo request.
    EchoRequest {
        /// Identifier.
        ident: u16,
        /// Sequence number.
        seq: u16,
    },
    /// Echo reply.
    EchoReply {
        /// Identifier.
        ident: u16,
        /// Sequence number.
        seq: u16,
    },
    /// The datagram was larger than the next link takes (RFC 1191, RFC 4443 3.2); 0 if the router did not say.
    TooBig {
        /// What it takes.
        mtu: u16,
    },
    /// It cannot be delivered.
    Unreachable(Unreachable),
    /// Its hops were used up.
    HopLimitExceeded,
    /// Anything else; ignored.
    Other,
}

/// Why a datagram cannot be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No route to the network or host.
    Host,
    /// Nobody listens on the port.
    Port,
    /// Any other reason.
    Other,
}

impl Icmp {
    /// Reads a message of the family of `source`.
    pub fn parse(source: IpAddr, octets: &[u8]) -> Result<Icmp, Error> {
        if octets.len() < HEADER {
            return Err(Error::Truncated);
        }
        let (ident, seq) = (get16(octets, 4), get16(octets, 6));
        Ok(match (source.is_ipv6(), octets[0], octets[1]) {
            (false, 8, 0) | (true, 128, 0) => Icmp::EchoRequest { ident, seq },
            (false, 0, 0) | (true, 129, 0) => Icmp::EchoReply { ident, seq },
            (false, 3, 4) => Icmp::TooBig { mtu: seq },
            // 32 bits in ICMPv6; what does not fit is no limit to us.
            (true, 2, _) => Icmp::TooBig { mtu: if ident == 0 { seq } else { u16::MAX } },
            (false, 3, 0 | 1) | (true, 1, 0 | 3) => Icmp::Unreachable(Unreachable::Host),
            (false, 3, 3) | (true, 1, 4) => Icmp::Unreachable(Unreachable::Port),
            (false, 3, _) | (true, 1, _) => Icmp::Unreachable(Unreachable::Other),
            (false, 11, _) | (true, 3, _) => Icmp::HopLimitExceeded,
            _ => Icmp::Other,
        })
    }

    /// Writes the header for the family of `destination`, checksum open, and returns its length.
    pub fn emit(&self, destination: IpAddr, out: &mut [u8]) -> usize {
        let six = destination.is_ipv6();
        let (kind, code, high, low) = match *self {
            Icmp::EchoRequest { ident, seq } => (if six { 128 } else { 8 }, 0, ident, seq),
            Icmp::EchoReply { ident, seq } => (if six { 129 } else { 0 }, 0, ident, seq),
            Icmp::TooBig { mtu } => (if six { 2 } else { 3 }, if six { 0 } else { 4 }, 0, mtu),
            Icmp::Unreachable(why) => {
                let code = match why {
                    Unreachable::Host => {
                        if six {
                            0
                        } else {
                            1
                        }
                    }
                    Unreachable::Port => {
                        if six {
                            4
                        } else {
                            3
                        }
                    }
                    Unreachable::Other => {
                        if six {
                            1
                        } else {
                            13
                        }
                    }
                };
                (if six { 1 } else { 3 }, code, 0, 0)
            }
            Icmp::HopLimitExceeded => (if six { 3 } else { 11 }, 0, 0, 0),
            Icmp::Other => (if six { 200 } else { 41 }, 0, 0, 0),
        };
        out[0] = kind;
        out[1] = code;
        put16(out, 2, 0);
        put16(out, 4, high);
        put16(out, 6, low);
        HEADER
    }

    /// The protocol number that carries ICMP to `destination`.
    pub const fn protocol(destination: IpAddr) -> u8 {
        if destination.is_ipv6() { ip::protocol::ICMPV6 } else { ip::protocol::ICMP }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_read_back_in_both_families() {
        let messages = [
            Icmp::EchoRequest { ident: 3, seq: 4 },
            Icmp::EchoReply { ident: 3, seq: 4 },
            Icmp::TooBig { mtu: 1280 },
            Icmp::Unreachable(Unreachable::Host),
            Icmp::Unreachable(Unreachable::Port),
            Icmp::Unreachable(Unreachable::Other),
            Icmp::HopLimitExceeded,
            Icmp::Other,
        ];
        for address in ["10.0.0.1", "fd00::1"].map(|a| a.parse().unwrap()) {
            for message in messages {
                let mut octets = [0; HEADER];
                message.emit(address, &mut octets);
                assert_eq!(Icmp::parse(address, &octets), Ok(message));
                assert_eq!(Icmp::parse(address, &octets[..7]), Err(Error::Truncated));
            }
        }
    }
}
