//! Streams that open and end one by one, as QUIC's do (RFC 9000, section 2).

use crate::service::PathId;

/// Which ways the octets of a stream go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamKind {
    /// Both.
    Bi,
    /// From the end that opened it only.
    Uni,
}

/// What happens on a connection whose streams open and end one by one, beside what happens on any stream. The first three concern a
/// stream, the others the connection: they come on stream 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened this stream. Comes before all else of it.
    Opened,
    /// The peer ended its side of this stream at once, with this code of its application (RESET_STREAM): nothing more is read.
    Reset(u64),
    /// The peer reads no more of our side of this stream, with this code of its application (STOP_SENDING): nothing more is taken.
    Stopped(u64),
    /// `open_stream` gives one of this kind again, after it gave none.
    More(StreamKind),
    /// `read_unreliable` gives something, where it gave nothing before.
    Unreliable,
    /// What is sent from now on until the connection is open may reach the peer more than once: what somebody repeats who listens
    /// (0-RTT, RFC 9001, 4.1.1). Comes in front of `Opened`.
    Early,
    /// The peer has taken nothing of that: the streams that were opened are gone, and the next one is the first. `Opened` follows.
    EarlyRefused,
    /// The connection goes by this path from now on, which works in both directions; or the path was given up (false).
    Path(PathId, bool),
}
