//! What can go wrong, by the codes of the standards.

use crate::http::error::{self, Code};

/// Why a stream is given up or a connection closed (RFC 9114, 8.1; RFC 9204, 6). It goes with RESET_STREAM, STOP_SENDING and
/// CONNECTION_CLOSE of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorCode(pub u64);

impl ErrorCode {
    /// Nothing is wrong.
    pub const NO_ERROR: ErrorCode = ErrorCode(0x100);
    /// The peer broke a rule that has no code of its own.
    pub const GENERAL_PROTOCOL_ERROR: ErrorCode = ErrorCode(0x101);
    /// We cannot go on.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(0x102);
    /// A stream that the peer may not open.
    pub const STREAM_CREATION_ERROR: ErrorCode = ErrorCode(0x103);
    /// A stream that the connection needs has ended.
    pub const CLOSED_CRITICAL_STREAM: ErrorCode = ErrorCode(0x104);
    /// A frame where it may not be.
    pub const FRAME_UNEXPECTED: ErrorCode = ErrorCode(0x105);
    /// A frame of a wrong layout or length.
    pub const FRAME_ERROR: ErrorCode = ErrorCode(0x106);
    /// The peer does too much of what leads nowhere.
    pub const EXCESSIVE_LOAD: ErrorCode = ErrorCode(0x107);
    /// A number of a stream or a push that may not be.
    pub const ID_ERROR: ErrorCode = ErrorCode(0x108);
    /// Settings that may not be.
    pub const SETTINGS_ERROR: ErrorCode = ErrorCode(0x109);
    /// The control stream does not begin with settings.
    pub const MISSING_SETTINGS: ErrorCode = ErrorCode(0x10a);
    /// Nothing was done about the request: it may be asked for again.
    pub const REQUEST_REJECTED: ErrorCode = ErrorCode(0x10b);
    /// The request or its answer is not needed any more.
    pub const REQUEST_CANCELLED: ErrorCode = ErrorCode(0x10c);
    /// The stream ended before the request was whole.
    pub const REQUEST_INCOMPLETE: ErrorCode = ErrorCode(0x10d);
    /// A message is malformed.
    pub const MESSAGE_ERROR: ErrorCode = ErrorCode(0x10e);
    /// The connection behind a CONNECT failed.
    pub const CONNECT_ERROR: ErrorCode = ErrorCode(0x10f);
    /// The peer should speak HTTP/1.1.
    pub const VERSION_FALLBACK: ErrorCode = ErrorCode(0x110);
    /// A field section cannot be read.
    pub const QPACK_DECOMPRESSION_FAILED: ErrorCode = ErrorCode(0x200);
    /// The encoder stream cannot be read.
    pub const QPACK_ENCODER_STREAM_ERROR: ErrorCode = ErrorCode(0x201);
    /// The decoder stream cannot be read.
    pub const QPACK_DECODER_STREAM_ERROR: ErrorCode = ErrorCode(0x202);
}

impl Code for ErrorCode {
    const EXCESS: ErrorCode = ErrorCode::EXCESSIVE_LOAD;

    fn name(self) -> &'static str {
        match self.0 {
            0x101 => "H3_GENERAL_PROTOCOL_ERROR",
            0x102 => "H3_INTERNAL_ERROR",
            0x103 => "H3_STREAM_CREATION_ERROR",
            0x104 => "H3_CLOSED_CRITICAL_STREAM",
            0x105 => "H3_FRAME_UNEXPECTED",
            0x106 => "H3_FRAME_ERROR",
            0x107 => "H3_EXCESSIVE_LOAD",
            0x108 => "H3_ID_ERROR",
            0x109 => "H3_SETTINGS_ERROR",
            0x10a => "H3_MISSING_SETTINGS",
            0x10b => "H3_REQUEST_REJECTED",
            0x10c => "H3_REQUEST_CANCELLED",
            0x10d => "H3_REQUEST_INCOMPLETE",
            0x10e => "H3_MESSAGE_ERROR",
            0x10f => "H3_CONNECT_ERROR",
            0x110 => "H3_VERSION_FALLBACK",
            0x200 => "QPACK_DECOMPRESSION_FAILED",
            0x201 => "QPACK_ENCODER_STREAM_ERROR",
            0x202 => "QPACK_DECODER_STREAM_ERROR",
            //= RFC 9114 (8.1, 9): codes that are unknown or reserved are as H3_NO_ERROR.
            _ => "H3_NO_ERROR",
        }
    }
}

/// What the peer's doing leads to when it breaks a rule.
pub type Error = error::Error<u64, ErrorCode>;

/// A frame where it may not be.
pub(super) const fn unexpected(why: &'static str) -> Error {
    Error::Connection(ErrorCode::FRAME_UNEXPECTED, why)
}

/// A number that may not be.
pub(super) const fn wrong_id(why: &'static str) -> Error {
    Error::Connection(ErrorCode::ID_ERROR, why)
}
