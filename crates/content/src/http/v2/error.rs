//! What can go wrong, by the codes of the standard.

use crate::http::error::{self, Code};

/// Why a stream was reset or a connection is given up (RFC 9113, 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Nothing is wrong.
    pub const NO_ERROR: ErrorCode = ErrorCode(0x0);
    /// The peer broke a rule that has no code of its own.
    pub const PROTOCOL_ERROR: ErrorCode = ErrorCode(0x1);
    /// We cannot go on.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(0x2);
    /// More was sent than a window allows, or a window grew too large.
    pub const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(0x3);
    /// Settings were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: ErrorCode = ErrorCode(0x4);
    /// A frame for a stream that is half closed or closed.
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(0x5);
    /// A frame of an impossible length.
    pub const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(0x6);
    /// Nothing was done about the stream: it may be asked for again.
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(0x7);
    /// The stream is not needed any more.
    pub const CANCEL: ErrorCode = ErrorCode(0x8);
    /// The state of the header compression is lost.
    pub const COMPRESSION_ERROR: ErrorCode = ErrorCode(0x9);
    /// The connection behind a CONNECT failed.
    pub const CONNECT_ERROR: ErrorCode = ErrorCode(0xa);
    /// The peer does too much of what leads nowhere.
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(0xb);
    /// The cryptography below is too weak.
    pub const INADEQUATE_SECURITY: ErrorCode = ErrorCode(0xc);
    /// The peer should speak HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: ErrorCode = ErrorCode(0xd);
}

impl Code for ErrorCode {
    const EXCESS: ErrorCode = ErrorCode::ENHANCE_YOUR_CALM;

    /// Its name in the standard; codes without one count as INTERNAL_ERROR.
    fn name(self) -> &'static str {
        match self.0 {
            0x0 => "NO_ERROR",
            0x1 => "PROTOCOL_ERROR",
            0x3 => "FLOW_CONTROL_ERROR",
            0x4 => "SETTINGS_TIMEOUT",
            0x5 => "STREAM_CLOSED",
            0x6 => "FRAME_SIZE_ERROR",
            0x7 => "REFUSED_STREAM",
            0x8 => "CANCEL",
            0x9 => "COMPRESSION_ERROR",
            0xa => "CONNECT_ERROR",
            0xb => "ENHANCE_YOUR_CALM",
            0xc => "INADEQUATE_SECURITY",
            0xd => "HTTP_1_1_REQUIRED",
            //= RFC 9113 (7): unknown codes are treated as INTERNAL_ERROR.
            _ => "INTERNAL_ERROR",
        }
    }
}

/// What the peer's doing leads to when it breaks a rule.
pub type Error = error::Error<u32, ErrorCode>;

/// A PROTOCOL_ERROR of the connection.
pub(super) const fn protocol(why: &'static str) -> Error {
    Error::Connection(ErrorCode::PROTOCOL_ERROR, why)
}

/// A FRAME_SIZE_ERROR of the connection.
pub(super) const fn size(why: &'static str) -> Error {
    Error::Connection(ErrorCode::FRAME_SIZE_ERROR, why)
}
