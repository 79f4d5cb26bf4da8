//! PDUs of WSP (WAP-230 section 8.2). Headers stay in their compact form here: their codec is `headers`.
//!
//! Over WTP a PDU is a type octet and its contents; without connection an octet comes first, which an answer repeats.

use airloom_wire::{Error, uintvar};
use bytes::{BufMut, Bytes};

pub use super::address::Address;
use super::address::{Reader, addresses};
use super::capabilities::{self, Capability};

/// The version spoken here: 1.0.
pub const VERSION: u8 = 0x10;

/// Type numbers.
mod kind {
    pub const CONNECT: u8 = 0x01;
    pub const CONNECT_REPLY: u8 = 0x02;
    pub const REDIRECT: u8 = 0x03;
    pub const REPLY: u8 = 0x04;
    pub const DISCONNECT: u8 = 0x05;
    pub const PUSH: u8 = 0x06;
    pub const CONFIRMED_PUSH: u8 = 0x07;
    pub const SUSPEND: u8 = 0x08;
    pub const RESUME: u8 = 0x09;
}

/// A method: HTTP's, or one of those that a session agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// OPTIONS.
    Options,
    /// HEAD.
    Head,
    /// DELETE.
    Delete,
    /// TRACE.
    Trace,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// An extended method, in the form of Get (0x50..0x5F) or of Post (0x70..0x7F).
    Extended(u8),
}

impl Method {
    const NAMED: [(u8, Method, &'static str); 7] = [
        (0x40, Method::Get, "GET"),
        (0x41, Method::Options, "OPTIONS"),
        (0x42, Method::Head, "HEAD"),
        (0x43, Method::Delete, "DELETE"),
        (0x44, Method::Trace, "TRACE"),
        (0x60, Method::Post, "POST"),
        (0x61, Method::Put, "PUT"),
    ];

    /// Its PDU type.
    pub fn code(self) -> u8 {
        match self {
            Method::Extended(code) => code,
            named => Self::NAMED.iter().find(|(_, m, _)| *m == named).map_or(0x40, |(code, ..)| *code),
        }
    }

    /// The method of a PDU type.
    pub fn of(code: u8) -> Option<Method> {
        match Self::NAMED.iter().find(|(c, ..)| *c == code) {
            Some((_, method, _)) => Some(*method),
            None => matches!(code, 0x50..=0x5F | 0x70..=0x7F).then_some(Method::Extended(code)),
        }
    }

    /// Its name in HTTP; none for an extended one, whose name its session knows.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMED.iter().find(|(_, m, _)| *m == self).map(|(.., name)| *name)
    }

    /// The method with this name.
    pub fn named(name: &str) -> Option<Method> {
        Self::NAMED.iter().find(|(.., n)| *n == name).map(|(_, m, _)| *m)
    }

    /// Does its PDU carry a body?
    pub fn has_body(self) -> bool {
        self.code() & 0x20 != 0
    }
}

/// One PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu {
    /// Asks for a session.
    Connect {
        /// Version, major in the upper four bits.
        version: u8,
        /// What the client wishes.
        capabilities: Vec<Capability>,
        /// Headers of all requests of the session.
        headers: Bytes,
    },
    /// Grants one.
    ConnectReply {
        /// Its name, for Disconnect, Suspend and Resume.
        session: u32,
        /// What the server grants.
        capabilities: Vec<Capability>,
        /// Headers of the server.
        headers: Bytes,
    },
    /// Names other servers.
    Redirect {
        /// For good?
        permanent: bool,
        /// May a secure session be used again?
        reuse_security: bool,
        /// Where to.
        addresses: Vec<Address>,
    },
    /// A request without a body.
    Get {
        /// Which method.
        method: Method,
        /// Absolute address.
        uri: Bytes,
        /// Headers.
        headers: Bytes,
    },
    /// A request with a body.
    Post {
        /// Which method.
        method: Method,
        /// Absolute address.
        uri: Bytes,
        /// Content type, then headers.
        headers: Bytes,
        /// Body.
        data: Bytes,
    },
    /// The answer to a request.
    Reply {
        /// Status in its octet: see `status`.
        status: u8,
        /// Content type, then headers.
        headers: Bytes,
        /// Body.
        data: Bytes,
    },
    /// Ends a session.
    Disconnect {
        /// Which one.
        session: u32,
    },
    /// Content that nobody asked for.
    Push {
        /// Is a confirmation asked for?
        confirmed: bool,
        /// Content type, then headers.
        headers: Bytes,
        /// Body.
        data: Bytes,
    },
    /// Puts a session to rest.
    Suspend {
        /// Which one.
        session: u32,
    },
    /// Wakes a session.
    Resume {
        /// Which one.
        session: u32,
        /// Capabilities, of which only aliases mean something.
        capabilities: Vec<Capability>,
        /// Headers.
        headers: Bytes,
    },
}

impl Pdu {
    /// The octets of one PDU over WTP.
    pub fn parse(octets: &Bytes) -> Result<Pdu, Error> {
        let mut at = Reader { rest: octets.clone() };
        let number = at.octet()?;
        Ok(match number {
            kind::CONNECT => {
                let version = at.octet()?;
                let (capabilities, headers) = (at.uintvar()?, at.uintvar()?);
                let capabilities = capabilities::parse(at.take(capabilities)?)?;
                Pdu::Connect { version, capabilities, headers: at.take(headers)? }
            }
            kind::CONNECT_REPLY => {
                let session = at.uintvar()?;
                let (capabilities, headers) = (at.uintvar()?, at.uintvar()?);
                let capabilities = capabilities::parse(at.take(capabilities)?)?;
                Pdu::ConnectReply { session, capabilities, headers: at.take(headers)? }
            }
            kind::REDIRECT => {
                let flags = at.octet()?;
                let (permanent, reuse_security) = (flags & 0x80 != 0, flags & 0x40 != 0);
                Pdu::Redirect { permanent, reuse_security, addresses: addresses(at.rest)? }
            }
            kind::REPLY => {
                let status = at.octet()?;
                let headers = at.uintvar()?;
                Pdu::Reply { status, headers: at.take(headers)?, data: at.rest }
            }
            kind::DISCONNECT => Pdu::Disconnect { session: at.uintvar()? },
            kind::PUSH | kind::CONFIRMED_PUSH => {
                let headers = at.uintvar()?;
                let confirmed = number == kind::CONFIRMED_PUSH;
                Pdu::Push { confirmed, headers: at.take(headers)?, data: at.rest }
            }
            kind::SUSPEND => Pdu::Suspend { session: at.uintvar()? },
            kind::RESUME => {
                let session = at.uintvar()?;
                let capabilities = at.uintvar()?;
                Pdu::Resume {
                    session,
                    capabilities: capabilities::parse(at.take(capabilities)?)?,
                    headers: at.rest,
                }
            }
            other => {
                let method = Method::of(other).ok_or(Error::Malformed("PDU type"))?;
                let uri = at.uintvar()?;
                if method.has_body() {
                    let headers = at.uintvar()?;
                    let uri = at.take(uri)?;
                    Pdu::Post { method, uri, headers: at.take(headers)?, data: at.rest }
                } else {
                    Pdu::Get { method, uri: at.take(uri)?, headers: at.rest }
                }
            }
        })
    }

    /// Its octets over WTP.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(64);
        self.emit(&mut out);
        out.into()
    }

    /// Appends its octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Pdu::Connect { version, capabilities, headers } => {
                let capabilities = capabilities::to_bytes(capabilities);
                out.put_u8(kind::CONNECT);
                out.put_u8(*version);
                put(out, capabilities.len());
                put(out, headers.len());
                out.put_slice(&capabilities);
                out.put_slice(headers);
            }
            Pdu::ConnectReply { session, capabilities, headers } => {
                let capabilities = capabilities::to_bytes(capabilities);
                out.put_u8(kind::CONNECT_REPLY);
                put(out, *session as usize);
                put(out, capabilities.len());
                put(out, headers.len());
                out.put_slice(&capabilities);
                out.put_slice(headers);
            }
            Pdu::Redirect { permanent, reuse_security, addresses } => {
                out.put_u8(kind::REDIRECT);
                out.put_u8(u8::from(*permanent) << 7 | u8::from(*reuse_security) << 6);
                addresses.iter().for_each(|a| a.emit(out));
            }
            Pdu::Get { method, uri, headers } => {
                out.put_u8(method.code());
                put(out, uri.len());
                out.put_slice(uri);
                out.put_slice(headers);
            }
            Pdu::Post { method, uri, headers, data } => {
                out.put_u8(method.code());
                put(out, uri.len());
                put(out, headers.len());
                out.put_slice(uri);
                out.put_slice(headers);
                out.put_slice(data);
            }
            Pdu::Reply { status, headers, data } => {
                out.put_u8(kind::REPLY);
                out.put_u8(*status);
                put(out, headers.len());
                out.put_slice(headers);
                out.put_slice(data);
            }
            Pdu::Push { confirmed, headers, data } => {
                out.put_u8(if *confirmed { kind::CONFIRMED_PUSH } else { kind::PUSH });
                put(out, headers.len());
                out.put_slice(headers);
                out.put_slice(data);
            }
            Pdu::Disconnect { session } => {
                out.put_u8(kind::DISCONNECT);
                put(out, *session as usize);
            }
            Pdu::Suspend { session } => {
                out.put_u8(kind::SUSPEND);
                put(out, *session as usize);
            }
            Pdu::Resume { session, capabilities, headers } => {
                let capabilities = capabilities::to_bytes(capabilities);
                out.put_u8(kind::RESUME);
                put(out, *session as usize);
                put(out, capabilities.len());
                out.put_slice(&capabilities);
                out.put_slice(headers);
            }
        }
    }
}

/// Appends a length or a number of a session.
fn put(out: &mut Vec<u8>, n: usize) {
    uintvar::emit(u32::try_from(n).unwrap_or(u32::MAX), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Bytes {
        hex.split_whitespace().map(|o| u8::from_str_radix(o, 16).unwrap()).collect::<Vec<u8>>().into()
    }

    #[test]
    fn every_pdu_comes_back() {
        let (headers, data) = (bytes("80 80"), Bytes::from_static(b"body"));
        let uri = Bytes::from_static(b"http://origin/");
        let capabilities = vec![Capability::MethodMor(4), Capability::ClientSduSize(30_000)];
        let address = Address { bearer: Some(0x0F), port: Some(9201), octets: bytes("0A 00 00 01") };
        let bare = Address { bearer: None, port: None, octets: Bytes::new() };
        for pdu in [
            Pdu::Connect { version: VERSION, capabilities: capabilities.clone(), headers: headers.clone() },
            Pdu::ConnectReply { session: 300, capabilities: Vec::new(), headers: headers.clone() },
            Pdu::Redirect { permanent: true, reuse_security: false, addresses: vec![address, bare] },
            Pdu::Get { method: Method::Delete, uri: uri.clone(), headers: headers.clone() },
            Pdu::Get { method: Method::Extended(0x51), uri: uri.clone(), headers: Bytes::new() },
            Pdu::Post { method: Method::Put, uri, headers: headers.clone(), data: data.clone() },
            Pdu::Reply { status: 0x20, headers: headers.clone(), data: data.clone() },
            Pdu::Push { confirmed: true, headers: headers.clone(), data },
            Pdu::Disconnect { session: 1 },
            Pdu::Suspend { session: 70_000 },
            Pdu::Resume { session: u32::MAX, capabilities, headers },
        ] {
            assert_eq!(Pdu::parse(&pdu.to_bytes()), Ok(pdu));
        }
    }

    #[test]
    fn a_connection_request_looks_as_real_ones_do() {
        // A client's: no capabilities, Accept: */*.
        let octets = bytes("01 10 00 02 80 80");
        let connect = Pdu::Connect { version: VERSION, capabilities: Vec::new(), headers: bytes("80 80") };
        assert_eq!(Pdu::parse(&octets), Ok(connect.clone()));
        assert_eq!(connect.to_bytes(), octets);
    }

    #[test]
    fn what_is_cut_short_or_unknown_is_an_error() {
        for (hex, error) in [
            ("", Error::Truncated),
            ("01 10 00", Error::Truncated),
            ("01 10 00 02 80", Error::Truncated),
            ("40 05 61", Error::Truncated),
            ("04", Error::Truncated),
            ("0A", Error::Malformed("PDU type")),
            ("80", Error::Malformed("PDU type")),
            ("05 FF FF FF FF FF", Error::Malformed("integer of variable length")),
            ("03 00 C4 01", Error::Truncated),
        ] {
            assert_eq!(Pdu::parse(&bytes(hex)), Err(error), "{hex}");
        }
    }

    #[test]
    fn methods_have_codes_and_names() {
        assert_eq!(
            (Method::Post.code(), Method::of(0x60), Method::named("POST")),
            (0x60, Some(Method::Post), Some(Method::Post))
        );
        assert_eq!((Method::of(0x45), Method::of(0x7F)), (None, Some(Method::Extended(0x7F))));
        assert!(Method::Put.has_body() && !Method::Trace.has_body() && Method::Extended(0x70).has_body());
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_read_without_a_panic_and_what_is_read_means_the_same_written(
            octets in proptest::collection::vec(proptest::num::u8::ANY, 0..60)
        ) {
            if let Ok(pdu) = Pdu::parse(&Bytes::from(octets)) {
                proptest::prop_assert_eq!(Pdu::parse(&pdu.to_bytes()), Ok(pdu));
            }
        }
    }
}
