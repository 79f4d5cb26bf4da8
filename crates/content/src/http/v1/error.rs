//! What can be wrong with a message.

/// Why a message cannot be read. The connection is of no use afterwards: where the next message would begin is
/// not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A carriage return that no line feed follows.
    #[error("a carriage return without a line feed")]
    BareCr,
    /// A line feed without a carriage return, in a request.
    #[error("a line feed without a carriage return")]
    BareLf,
    /// The start line is none.
    #[error("not a start line")]
    StartLine,
    /// A field line is malformed: its name, white space around the name, or an octet of its value.
    #[error("a malformed field line")]
    Field,
    /// The version is not HTTP/1.0 or 1.1.
    #[error("a version other than 1.0 and 1.1")]
    Version,
    /// The first line is too long.
    #[error("the start line is too long")]
    LineTooLong,
    /// The head (or the trailer section) is too long or has too many fields.
    #[error("the head is too long")]
    HeadTooLong,
    /// No Host field, several, or an impossible one.
    #[error("not exactly one valid Host field")]
    Host,
    /// Content-Length is not a number, or several different ones.
    #[error("not exactly one valid Content-Length")]
    ContentLength,
    /// The transfer codings do not say where the body ends.
    #[error("transfer codings that do not end with chunked")]
    TransferEncoding,
    /// A transfer coding we do not know.
    #[error("a transfer coding that is not known")]
    UnknownCoding,
    /// Not a chunk.
    #[error("a malformed chunk")]
    Chunk,
    /// The stream ended inside a message.
    #[error("the stream ended inside a message")]
    Incomplete,
    /// Octets that answer no request.
    #[error("octets that answer no request")]
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
