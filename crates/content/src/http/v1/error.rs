//! What can be wrong with a message.

use std::fmt;

/// Why a message cannot be read. The connection is of no use afterwards: where the next message would begin is
/// not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A carriage return that no line feed follows.
    BareCr,
    /// A line feed without a carriage return, in a request.
    BareLf,
    /// The start line is none.
    StartLine,
    /// A field line is malformed: its name, white space around the name, or an octet of its value.
    Field,
    /// The version is not HTTP/1.0 or 1.1.
    Version,
    /// The first line is too long.
    LineTooLong,
    /// The head (or the trailer section) is too long or has too many fields.
    HeadTooLong,
    /// No Host field, several, or an impossible one.
    Host,
    /// Content-Length is not a number, or several different ones.
    ContentLength,
    /// The transfer codings do not say where the body ends.
    TransferEncoding,
    /// A transfer coding we do not know.
    UnknownCoding,
    /// Not a chunk.
    Chunk,
    /// The stream ended inside a message.
    Incomplete,
    /// Octets that answer no request.
    Unsolicited,
}

impl Error {
    /// The status a server answers with.
    pub const fn status(self) -> u16 {
        match self {
            Error::Version => 505,
            Error::LineTooLong => 414,
            Error::HeadTooLong => 431,
            Error::UnknownCoding => 501,
            _ => 400,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::BareCr => "a carriage return without a line feed",
            Error::BareLf => "a line feed without a carriage return",
            Error::StartLine => "not a start line",
            Error::Field => "a malformed field line",
            Error::Version => "a version other than 1.0 and 1.1",
            Error::LineTooLong => "the start line is too long",
            Error::HeadTooLong => "the head is too long",
            Error::Host => "not exactly one valid Host field",
            Error::ContentLength => "not exactly one valid Content-Length",
            Error::TransferEncoding => "transfer codings that do not end with chunked",
            Error::UnknownCoding => "a transfer coding that is not known",
            Error::Chunk => "a malformed chunk",
            Error::Incomplete => "the stream ended inside a message",
            Error::Unsolicited => "octets that answer no request",
        })
    }
}

impl std::error::Error for Error {}
