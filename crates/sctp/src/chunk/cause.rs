//! Causes of ABORT and ERROR (RFC 9260, 3.3.10).

use airloom_wire::Error;
use bytes::Bytes;

use crate::octets::{HEADER, get16, get32, padded, split};

/// What was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// DATA on a stream that there is not.
    InvalidStream(u16),
    /// INIT or INIT ACK without these.
    MissingParameter(Vec<u16>),
    /// The cookie was too old, by so many microseconds.
    StaleCookie(u32),
    /// No room for another association.
    OutOfResource,
    /// An address parameter that cannot be used, whole.
    UnresolvableAddress(Bytes),
    /// A chunk, whole.
    UnrecognizedChunk(Bytes),
    /// A value that must not be.
    InvalidParameter,
    /// Parameters of INIT ACK, whole.
    UnrecognizedParameters(Bytes),
    /// DATA without data: its TSN.
    NoUserData(u32),
    /// COOKIE ECHO while the association ends.
    CookieWhileShuttingDown,
    /// INIT of a restart came with these new addresses.
    RestartWithNewAddresses(Bytes),
    /// The user wished it; its reason.
    UserInitiated(Bytes),
    /// What has no cause of its own.
    ProtocolViolation(Bytes),
    /// Another one.
    Unknown(u16, Bytes),
}

impl Cause {
    fn kind(&self) -> u16 {
        match self {
            Cause::InvalidStream(_) => 1,
            Cause::MissingParameter(_) => 2,
            Cause::StaleCookie(_) => 3,
            Cause::OutOfResource => 4,
            Cause::UnresolvableAddress(_) => 5,
            Cause::UnrecognizedChunk(_) => 6,
            Cause::InvalidParameter => 7,
            Cause::UnrecognizedParameters(_) => 8,
            Cause::NoUserData(_) => 9,
            Cause::CookieWhileShuttingDown => 10,
            Cause::RestartWithNewAddresses(_) => 11,
            Cause::UserInitiated(_) => 12,
            Cause::ProtocolViolation(_) => 13,
            Cause::Unknown(kind, _) => *kind,
        }
    }

    fn wire_len(&self) -> usize {
        HEADER
            + match self {
                Cause::InvalidStream(_) | Cause::StaleCookie(_) | Cause::NoUserData(_) => 4,
                Cause::MissingParameter(kinds) => 4 + 2 * kinds.len(),
                Cause::OutOfResource | Cause::InvalidParameter | Cause::CookieWhileShuttingDown => 0,
                Cause::UnresolvableAddress(b)
                | Cause::UnrecognizedChunk(b)
                | Cause::UnrecognizedParameters(b)
                | Cause::RestartWithNewAddresses(b)
                | Cause::UserInitiated(b)
                | Cause::ProtocolViolation(b)
                | Cause::Unknown(_, b) => b.len(),
            }
    }

    fn emit(&self, out: &mut [u8]) -> usize {
        let len = self.wire_len();
        out[..2].copy_from_slice(&self.kind().to_be_bytes());
        out[2..4].copy_from_slice(&(len.min(usize::from(u16::MAX)) as u16).to_be_bytes());
        let value = &mut out[HEADER..len];
        match self {
            Cause::InvalidStream(stream) => value[..2].copy_from_slice(&stream.to_be_bytes()),
            Cause::MissingParameter(kinds) => {
                value[..4].copy_from_slice(&(kinds.len() as u32).to_be_bytes());
                for (place, kind) in value[4..].chunks_exact_mut(2).zip(kinds) {
                    place.copy_from_slice(&kind.to_be_bytes());
                }
            }
            Cause::StaleCookie(n) | Cause::NoUserData(n) => value.copy_from_slice(&n.to_be_bytes()),
            Cause::OutOfResource | Cause::InvalidParameter | Cause::CookieWhileShuttingDown => {}
            Cause::UnresolvableAddress(b)
            | Cause::UnrecognizedChunk(b)
            | Cause::UnrecognizedParameters(b)
            | Cause::RestartWithNewAddresses(b)
            | Cause::UserInitiated(b)
            | Cause::ProtocolViolation(b)
            | Cause::Unknown(_, b) => value.copy_from_slice(b),
        }
        len
    }

    fn parse(kind: u16, value: &Bytes) -> Result<Cause, Error> {
        Ok(match kind {
            1 => {
                get32(value, 0)?;
                Cause::InvalidStream(get16(value, 0)?)
            }
            2 => {
                let count = get32(value, 0)? as usize;
                let pairs = value[4..].chunks_exact(2).map(|p| u16::from_be_bytes([p[0], p[1]]));
                if pairs.len() != count || !value.len().is_multiple_of(2) {
                    return Err(Error::Malformed("missing parameter"));
                }
                Cause::MissingParameter(pairs.collect())
            }
            3 => Cause::StaleCookie(get32(value, 0)?),
            4 => Cause::OutOfResource,
            5 => Cause::UnresolvableAddress(value.clone()),
            6 => Cause::UnrecognizedChunk(value.clone()),
            7 => Cause::InvalidParameter,
            8 => Cause::UnrecognizedParameters(value.clone()),
            9 => Cause::NoUserData(get32(value, 0)?),
            10 => Cause::CookieWhileShuttingDown,
            11 => Cause::RestartWithNewAddresses(value.clone()),
            12 => Cause::UserInitiated(value.clone()),
            13 => Cause::ProtocolViolation(value.clone()),
            _ => Cause::Unknown(kind, value.clone()),
        })
    }
}

pub(super) fn list(value: &Bytes) -> Result<Vec<Cause>, Error> {
    let mut rest = value.clone();
    let mut all = Vec::new();
    while let Some((kind, value)) = split(&mut rest, "cause length")? {
        all.push(Cause::parse(kind, &value)?);
    }
    Ok(all)
}

/// Octets of a list: all are padded but the last one.
pub(super) fn list_len(causes: &[Cause]) -> usize {
    causes.iter().fold(0, |at, c| padded(at) + c.wire_len())
}

pub(super) fn emit_list(causes: &[Cause], out: &mut [u8]) {
    let mut at = 0;
    for cause in causes {
        at = padded(at);
        at += cause.emit(&mut out[at..]);
    }
}
