//! Frames: type and length in front, and what those of the control stream carry.

use super::error::{unexpected, wrong_id};
use super::varint;
use super::{Error, ErrorCode};

/// Types of frames by their number (RFC 9114, 7.2; RFC 9218, 7.2).
pub mod kind {
    /// Octets of a body.
    pub const DATA: u64 = 0x0;
    /// A head, or trailers.
    pub const HEADERS: u64 = 0x1;
    /// A push is not wanted.
    pub const CANCEL_PUSH: u64 = 0x3;
    /// Settings: once, and first.
    pub const SETTINGS: u64 = 0x4;
    /// Promises a response that nobody asked for.
    pub const PUSH_PROMISE: u64 = 0x5;
    /// The connection takes no new requests.
    pub const GOAWAY: u64 = 0x7;
    /// How many pushes there may be.
    pub const MAX_PUSH_ID: u64 = 0xd;
    /// Another priority for a request.
    pub const PRIORITY_UPDATE: u64 = 0xf_0700;
    /// Another priority for a push.
    pub const PRIORITY_UPDATE_PUSH: u64 = 0xf_0701;

    /// Does HTTP/2 have a frame of that number with no counterpart here?
    //= RFC 9114 (7.2.8): such frames are an error wherever they come.
    pub const fn is_of_http2(kind: u64) -> bool {
        matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
    }
}

/// Types of streams that go one way (RFC 9114, 6.2; RFC 9204, 4.2).
pub mod role {
    /// Settings, and what else is said of the connection.
    pub const CONTROL: u64 = 0x0;
    /// A response that nobody asked for.
    pub const PUSH: u64 = 0x1;
    /// New entries of the table.
    pub const ENCODER: u64 = 0x2;
    /// What the encoder has to know.
    pub const DECODER: u64 = 0x3;
}

/// A frame of the control stream behind the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// A push is not wanted.
    CancelPush,
    /// Nothing from this number on is or will be worked on.
    GoAway(u64),
    /// There may be pushes up to this number.
    MaxPushId(u64),
    /// A field value: another priority of this request.
    PriorityUpdate(u64, &'a [u8]),
}

/// A payload that is one integer.
fn only(payload: &[u8]) -> Result<u64, Error> {
    //= RFC 9114 (7.1): a payload that is longer or shorter than what it carries is an error.
    let wrong = Error::Connection(ErrorCode::FRAME_ERROR, "a frame that is not one integer");
    varint::parse(payload).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value).ok_or(wrong)
}

impl<'a> Control<'a> {
    /// Reads a whole frame of the peer; `None` if its type is unknown.
    pub fn parse(kind: u64, payload: &'a [u8], is_server: bool) -> Result<Option<Control<'a>>, Error> {
        let frame = match kind {
            kind::CANCEL_PUSH => {
                only(payload)?;
                Control::CancelPush
            }
            kind::GOAWAY => Control::GoAway(only(payload)?),
            //= RFC 9114 (7.2.7): a server does not send it.
            kind::MAX_PUSH_ID if !is_server => return Err(unexpected("MAX_PUSH_ID from a server")),
            kind::MAX_PUSH_ID => Control::MaxPushId(only(payload)?),
            //= RFC 9218 (7.2): a server does not send it, and there are no pushes that it could name.
            kind::PRIORITY_UPDATE | kind::PRIORITY_UPDATE_PUSH if !is_server => {
                return Err(unexpected("PRIORITY_UPDATE from a server"));
            }
            kind::PRIORITY_UPDATE_PUSH => return Err(wrong_id("PRIORITY_UPDATE of a push")),
            kind::PRIORITY_UPDATE => {
                let wrong = Error::Connection(ErrorCode::FRAME_ERROR, "PRIORITY_UPDATE names a request");
                let (stream, value) = varint::parse(payload).ok_or(wrong)?;
                Control::PriorityUpdate(stream, value)
            }
            _ => return Ok(None),
        };
        Ok(Some(frame))
    }
}

/// A whole frame.
pub fn emit(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + payload.len());
    put_header(kind, payload.len() as u64, &mut out);
    out.extend_from_slice(payload);
    out
}

/// Type and length of a frame whose payload follows.
pub fn header(kind: u64, length: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER);
    put_header(kind, length, &mut out);
    out
}

/// Octets of type and length at most.
const HEADER: usize = 16;

fn put_header(kind: u64, length: u64, out: &mut Vec<u8>) {
    varint::emit(kind, out);
    varint::emit(length, out);
}
