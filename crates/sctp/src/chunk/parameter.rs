//! Parameters of INIT, INIT ACK, HEARTBEAT and RE-CONFIG (RFC 9260, 3.3.2.1 and 3.3.3.1; RFC 6525, 4).

use std::net::{Ipv4Addr, Ipv6Addr};

use airloom_wire::Error;
use bytes::Bytes;

use crate::octets::{HEADER, get16, get32, padded, split};

/// Outgoing SSN Reset Request (RFC 6525, 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Number of this request.
    pub request: u32,
    /// Number of the request it answers, or the last one seen.
    pub response: u32,
    /// The last TSN that was given away before.
    pub last_tsn: u32,
    /// The streams; none means all.
    pub streams: Vec<u16>,
}

/// The TSNs that count from now on (RFC 6525, 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TsnReset {
    /// Of who sends the response.
    pub sender: u32,
    /// Of who receives it.
    pub receiver: u32,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Comes back in HEARTBEAT ACK as it is.
    HeartbeatInfo(Bytes),
    /// An address of the sender.
    Ipv4(Ipv4Addr),
    /// An address of the sender.
    Ipv6(Ipv6Addr),
    /// Comes back in COOKIE ECHO as it is.
    StateCookie(Bytes),
    /// A parameter of INIT that was not understood, whole.
    Unrecognized(Bytes),
    /// Milliseconds that the cookie should live longer.
    CookiePreservative(u32),
    /// Obsolete: answered with ABORT.
    HostName(Bytes),
    /// Families of addresses that the sender can use.
    SupportedAddressTypes(Vec<u16>),
    /// The sender understands ECN.
    EcnCapable,
    /// The sender understands FORWARD-TSN (RFC 3758).
    ForwardTsnSupported,
    /// Chunk types of extensions that the sender understands (RFC 5061).
    SupportedExtensions(Vec<u8>),
    /// What is carried (RFC 5061).
    AdaptationIndication(u32),
    /// The sender begins its streams anew.
    OutgoingReset(Reset),
    /// The receiver shall begin its streams anew: number of the request, and streams.
    IncomingReset(u32, Vec<u16>),
    /// Both shall, and TSNs too: number of the request.
    SsnTsnReset(u32),
    /// The answer to a request.
    ReconfigResponse {
        /// Number of the request.
        response: u32,
        /// What came of it.
        result: u32,
        /// After an SSN/TSN reset.
        next: Option<TsnReset>,
    },
    /// The sender wants to send on so many more streams: number of the request, streams.
    AddOutgoing(u32, u16),
    /// The receiver shall send on so many more streams: number of the request, streams.
    AddIncoming(u32, u16),
    /// A type that is not known here, and its value.
    Unknown(u16, Bytes),
}

mod kind {
    pub const HEARTBEAT_INFO: u16 = 1;
    pub const IPV4: u16 = 5;
    pub const IPV6: u16 = 6;
    pub const STATE_COOKIE: u16 = 7;
    pub const UNRECOGNIZED: u16 = 8;
    pub const COOKIE_PRESERVATIVE: u16 = 9;
    pub const HOST_NAME: u16 = 11;
    pub const SUPPORTED_ADDRESS_TYPES: u16 = 12;
    pub const OUTGOING_RESET: u16 = 13;
    pub const INCOMING_RESET: u16 = 14;
    pub const SSN_TSN_RESET: u16 = 15;
    pub const RECONFIG_RESPONSE: u16 = 16;
    pub const ADD_OUTGOING: u16 = 17;
    pub const ADD_INCOMING: u16 = 18;
    pub const ECN_CAPABLE: u16 = 0x8000;
    pub const SUPPORTED_EXTENSIONS: u16 = 0x8008;
    pub const FORWARD_TSN_SUPPORTED: u16 = 0xC000;
    pub const ADAPTATION_INDICATION: u16 = 0xC006;
}

/// What the result of a reconfiguration says (RFC 6525, 4.4).
pub mod result {
    #![allow(missing_docs, reason = "the names are the standard's own")]
    pub const NOTHING_TO_DO: u32 = 0;
    pub const PERFORMED: u32 = 1;
    pub const DENIED: u32 = 2;
    pub const WRONG_SSN: u32 = 3;
    pub const ALREADY_IN_PROGRESS: u32 = 4;
    pub const BAD_SEQUENCE: u32 = 5;
    pub const IN_PROGRESS: u32 = 6;
}

impl Parameter {
    /// Its number.
    pub fn kind(&self) -> u16 {
        match self {
            Parameter::HeartbeatInfo(_) => kind::HEARTBEAT_INFO,
            Parameter::Ipv4(_) => kind::IPV4,
            Parameter::Ipv6(_) => kind::IPV6,
            Parameter::StateCookie(_) => kind::STATE_COOKIE,
            Parameter::Unrecognized(_) => kind::UNRECOGNIZED,
            Parameter::CookiePreservative(_) => kind::COOKIE_PRESERVATIVE,
            Parameter::HostName(_) => kind::HOST_NAME,
            Parameter::SupportedAddressTypes(_) => kind::SUPPORTED_ADDRESS_TYPES,
            Parameter::EcnCapable => kind::ECN_CAPABLE,
            Parameter::ForwardTsnSupported => kind::FORWARD_TSN_SUPPORTED,
            Parameter::SupportedExtensions(_) => kind::SUPPORTED_EXTENSIONS,
            Parameter::AdaptationIndication(_) => kind::ADAPTATION_INDICATION,
            Parameter::OutgoingReset(_) => kind::OUTGOING_RESET,
            Parameter::IncomingReset(..) => kind::INCOMING_RESET,
            Parameter::SsnTsnReset(_) => kind::SSN_TSN_RESET,
            Parameter::ReconfigResponse { .. } => kind::RECONFIG_RESPONSE,
            Parameter::AddOutgoing(..) => kind::ADD_OUTGOING,
            Parameter::AddIncoming(..) => kind::ADD_INCOMING,
            Parameter::Unknown(kind, _) => *kind,
        }
    }

    /// Octets without padding.
    pub(super) fn wire_len(&self) -> usize {
        HEADER
            + match self {
                Parameter::HeartbeatInfo(b)
                | Parameter::StateCookie(b)
                | Parameter::Unrecognized(b)
                | Parameter::HostName(b)
                | Parameter::Unknown(_, b) => b.len(),
                Parameter::Ipv4(_)
                | Parameter::CookiePreservative(_)
                | Parameter::AdaptationIndication(_)
                | Parameter::SsnTsnReset(_) => 4,
                Parameter::Ipv6(_) => 16,
                Parameter::SupportedAddressTypes(types) => 2 * types.len(),
                Parameter::EcnCapable | Parameter::ForwardTsnSupported => 0,
                Parameter::SupportedExtensions(types) => types.len(),
                Parameter::OutgoingReset(r) => 12 + 2 * r.streams.len(),
                Parameter::IncomingReset(_, streams) => 4 + 2 * streams.len(),
                Parameter::ReconfigResponse { next, .. } => 8 + if next.is_some() { 8 } else { 0 },
                Parameter::AddOutgoing(..) | Parameter::AddIncoming(..) => 8,
            }
    }

    /// Writes it without padding, and returns its octets.
    pub(super) fn emit(&self, out: &mut [u8]) -> usize {
        let len = self.wire_len();
        out[..2].copy_from_slice(&self.kind().to_be_bytes());
        out[2..4].copy_from_slice(&(len.min(usize::from(u16::MAX)) as u16).to_be_bytes());
        let value = &mut out[HEADER..len];
        let words = |value: &mut [u8], words: &[u32]| {
            for (place, word) in value.chunks_exact_mut(4).zip(words) {
                place.copy_from_slice(&word.to_be_bytes());
            }
        };
        let shorts = |value: &mut [u8], shorts: &[u16]| {
            for (place, short) in value.chunks_exact_mut(2).zip(shorts) {
                place.copy_from_slice(&short.to_be_bytes());
            }
        };
        match self {
            Parameter::HeartbeatInfo(b)
            | Parameter::StateCookie(b)
            | Parameter::Unrecognized(b)
            | Parameter::HostName(b)
            | Parameter::Unknown(_, b) => value.copy_from_slice(b),
            Parameter::Ipv4(a) => value.copy_from_slice(&a.octets()),
            Parameter::Ipv6(a) => value.copy_from_slice(&a.octets()),
            Parameter::CookiePreservative(n)
            | Parameter::AdaptationIndication(n)
            | Parameter::SsnTsnReset(n) => words(value, &[*n]),
            Parameter::SupportedAddressTypes(types) => shorts(value, types),
            Parameter::EcnCapable | Parameter::ForwardTsnSupported => {}
            Parameter::SupportedExtensions(types) => value.copy_from_slice(types),
            Parameter::OutgoingReset(r) => {
                words(&mut value[..12], &[r.request, r.response, r.last_tsn]);
                shorts(&mut value[12..], &r.streams);
            }
            Parameter::IncomingReset(request, streams) => {
                words(&mut value[..4], &[*request]);
                shorts(&mut value[4..], streams);
            }
            Parameter::ReconfigResponse { response, result, next } => {
                words(&mut value[..8], &[*response, *result]);
                if let Some(next) = next {
                    words(&mut value[8..], &[next.sender, next.receiver]);
                }
            }
            Parameter::AddOutgoing(request, streams) | Parameter::AddIncoming(request, streams) => {
                words(&mut value[..4], &[*request]);
                shorts(&mut value[4..], &[*streams, 0]);
            }
        }
        len
    }

    fn parse(kind: u16, value: &Bytes) -> Result<Parameter, Error> {
        let word = |at: usize| get32(value, at);
        let shorts = |from: usize| -> Result<Vec<u16>, Error> {
            let pairs = value.get(from..).ok_or(Error::Truncated)?.chunks_exact(2);
            if !pairs.remainder().is_empty() {
                return Err(Error::Malformed("parameter length"));
            }
            Ok(pairs.map(|p| u16::from_be_bytes([p[0], p[1]])).collect())
        };
        let exactly = |len: usize, parameter: Parameter| {
            if value.len() == len { Ok(parameter) } else { Err(Error::Malformed("parameter length")) }
        };
        match kind {
            kind::HEARTBEAT_INFO => Ok(Parameter::HeartbeatInfo(value.clone())),
            kind::IPV4 => exactly(4, Parameter::Ipv4(word(0)?.into())),
            kind::IPV6 => {
                let octets = value.first_chunk::<16>().ok_or(Error::Truncated)?;
                exactly(16, Parameter::Ipv6((*octets).into()))
            }
            kind::STATE_COOKIE => Ok(Parameter::StateCookie(value.clone())),
            kind::UNRECOGNIZED => Ok(Parameter::Unrecognized(value.clone())),
            kind::COOKIE_PRESERVATIVE => exactly(4, Parameter::CookiePreservative(word(0)?)),
            kind::HOST_NAME => Ok(Parameter::HostName(value.clone())),
            kind::SUPPORTED_ADDRESS_TYPES => Ok(Parameter::SupportedAddressTypes(shorts(0)?)),
            kind::ECN_CAPABLE => exactly(0, Parameter::EcnCapable),
            kind::FORWARD_TSN_SUPPORTED => exactly(0, Parameter::ForwardTsnSupported),
            kind::SUPPORTED_EXTENSIONS => Ok(Parameter::SupportedExtensions(value.to_vec())),
            kind::ADAPTATION_INDICATION => exactly(4, Parameter::AdaptationIndication(word(0)?)),
            kind::OUTGOING_RESET => Ok(Parameter::OutgoingReset(Reset {
                request: word(0)?,
                response: word(4)?,
                last_tsn: word(8)?,
                streams: shorts(12)?,
            })),
            kind::INCOMING_RESET => Ok(Parameter::IncomingReset(word(0)?, shorts(4)?)),
            kind::SSN_TSN_RESET => exactly(4, Parameter::SsnTsnReset(word(0)?)),
            kind::RECONFIG_RESPONSE => {
                let (response, result) = (word(0)?, word(4)?);
                let next = match value.len() {
                    8 => None,
                    16 => Some(TsnReset { sender: word(8)?, receiver: word(12)? }),
                    _ => return Err(Error::Malformed("parameter length")),
                };
                Ok(Parameter::ReconfigResponse { response, result, next })
            }
            kind::ADD_OUTGOING => exactly(8, Parameter::AddOutgoing(word(0)?, get16(value, 4)?)),
            kind::ADD_INCOMING => exactly(8, Parameter::AddIncoming(word(0)?, get16(value, 4)?)),
            _ => Ok(Parameter::Unknown(kind, value.clone())),
        }
    }

    /// A parameter that is not known here: what its two highest bits ask for (RFC 9260, 3.2.1).
    pub fn unknown(&self) -> Option<Unknown> {
        let Parameter::Unknown(kind, _) = self else { return None };
        Some(Unknown { stop: kind & 0x8000 == 0, report: kind & 0x4000 != 0 })
    }

    /// The whole parameter as octets, as it is reported to its sender.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = vec![0; self.wire_len()];
        self.emit(&mut out);
        out.into()
    }
}

/// What is to be done with something unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Nothing behind it is processed.
    pub stop: bool,
    /// Its sender is told.
    pub report: bool,
}

pub(super) fn list(value: &Bytes) -> Result<Vec<Parameter>, Error> {
    let mut rest = value.clone();
    let mut all = Vec::new();
    while let Some((kind, value)) = split(&mut rest, "parameter length")? {
        all.push(Parameter::parse(kind, &value)?);
    }
    Ok(all)
}

pub(super) fn first(value: &Bytes) -> Result<Parameter, Error> {
    let (kind, value) = split(&mut value.clone(), "parameter length")?.ok_or(Error::Truncated)?;
    Parameter::parse(kind, &value)
}

/// Octets of a list: all are padded but the last one.
pub(super) fn list_len(parameters: &[Parameter]) -> usize {
    parameters.iter().fold(0, |at, p| padded(at) + p.wire_len())
}

pub(super) fn emit_list(parameters: &[Parameter], out: &mut [u8]) {
    let mut at = 0;
    for parameter in parameters {
        at = padded(at);
        at += parameter.emit(&mut out[at..]);
    }
}
