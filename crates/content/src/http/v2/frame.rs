//! Frames: the header of nine octets, and what each type carries.

use super::error::{protocol, size};
use super::{Error, ErrorCode};

/// Octets of a frame header.
pub const HEADER: usize = 9;

/// What a client sends first.
//= RFC 9113 (3.4): the connection preface of the client.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The largest payload that everybody has to take, and the default.
pub const LEAST_MAX_FRAME: u32 = 1 << 14;

/// Types of frames by their number.
pub mod kind {
    /// Octets of a body.
    pub const DATA: u8 = 0x0;
    /// Opens a stream, or ends a body with trailers.
    pub const HEADERS: u8 = 0x1;
    /// Priorities of RFC 7540; read over.
    pub const PRIORITY: u8 = 0x2;
    /// Ends a stream at once.
    pub const RST_STREAM: u8 = 0x3;
    /// Settings, or their acknowledgement.
    pub const SETTINGS: u8 = 0x4;
    /// Promises a response that nobody asked for.
    pub const PUSH_PROMISE: u8 = 0x5;
    /// A question, or its answer.
    pub const PING: u8 = 0x6;
    /// The connection takes no new streams.
    pub const GOAWAY: u8 = 0x7;
    /// Room for so many octets more.
    pub const WINDOW_UPDATE: u8 = 0x8;
    /// More of a header block.
    pub const CONTINUATION: u8 = 0x9;
    /// Another priority for a stream (RFC 9218).
    pub const PRIORITY_UPDATE: u8 = 0x10;
}

/// Flags of frames.
pub mod flag {
    /// DATA, HEADERS: nothing follows on the stream from this side.
    pub const END_STREAM: u8 = 0x1;
    /// SETTINGS, PING: an answer.
    pub const ACK: u8 = 0x1;
    /// HEADERS, CONTINUATION: the block is complete.
    pub const END_HEADERS: u8 = 0x4;
    /// DATA, HEADERS: padding follows, its length comes first.
    pub const PADDED: u8 = 0x8;
    /// HEADERS: five octets of RFC 7540's priorities come first.
    pub const PRIORITY: u8 = 0x20;
}

/// The nine octets in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Octets of the payload; 24 bits.
    pub length: u32,
    /// Type.
    pub kind: u8,
    /// Flags; what they mean depends on the type.
    pub flags: u8,
    /// Stream; 0 is the connection.
    pub stream: u32,
}

impl Header {
    /// Reads it. Every nine octets are a header: what may not be is found by those who know the type.
    pub fn parse(octets: &[u8; HEADER]) -> Header {
        let [a, b, c, kind, flags, s, t, u, v] = *octets;
        //= RFC 9113 (4.1): the reserved bit is ignored.
        let stream = u32::from_be_bytes([s, t, u, v]) & 0x7fff_ffff;
        Header { length: u32::from_be_bytes([0, a, b, c]), kind, flags, stream }
    }

    /// Writes it.
    pub fn emit(&self) -> [u8; HEADER] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s, t, u, v] = (self.stream & 0x7fff_ffff).to_be_bytes();
        [a, b, c, self.kind, self.flags, s, t, u, v]
    }

    /// Is this flag set?
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A frame that is not DATA and no part of a header block, or what can be read of a HEADERS frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The block (or its beginning) is so many octets of the payload, beginning there.
    Headers {
        /// Where the block begins in the payload.
        from: usize,
        /// Behind its end.
        to: usize,
    },
    /// Priorities that nobody heeds.
    Priority,
    /// The stream is over.
    RstStream(ErrorCode),
    /// Identifiers and values, in order.
    Settings(Vec<(u16, u32)>),
    /// Ours arrived.
    SettingsAck,
    /// To be answered with the same octets.
    Ping([u8; 8]),
    /// An answer.
    Pong([u8; 8]),
    /// Nothing above this stream is or will be worked on.
    GoAway {
        /// The highest stream that may have been worked on.
        last: u32,
        /// Why.
        code: ErrorCode,
    },
    /// So many octets more may be sent.
    WindowUpdate(u32),
    /// The field value of another priority for this stream; where it begins in the payload.
    PriorityUpdate(u32),
    /// A type that we do not know.
    Unknown,
}

fn four(octets: &[u8]) -> Option<u32> {
    octets.first_chunk().map(|chunk| u32::from_be_bytes(*chunk))
}

impl Frame {
    /// Reads the payload behind `header`, which has the length that the header says.
    pub fn parse(header: &Header, payload: &[u8]) -> Result<Frame, Error> {
        let on_stream = |frame| match header.stream {
            0 => Err(protocol("a frame of a stream on stream 0")),
            _ => Ok(frame),
        };
        let on_connection = |frame| match header.stream {
            0 => Ok(frame),
            _ => Err(protocol("a frame of the connection on a stream")),
        };
        match header.kind {
            kind::HEADERS => {
                let (from, to) = unpadded(header, payload)?;
                let from = if header.has(flag::PRIORITY) { from + 5 } else { from };
                if from > to {
                    return Err(size("HEADERS too short for what its flags say"));
                }
                on_stream(Frame::Headers { from, to })
            }
            kind::PRIORITY => match payload.len() {
                5 => on_stream(Frame::Priority),
                //= RFC 9113 (6.3): of another length it is an error of the stream.
                _ if header.stream != 0 => Err(Error::Stream(header.stream, ErrorCode::FRAME_SIZE_ERROR)),
                _ => Err(protocol("a frame of a stream on stream 0")),
            },
            kind::RST_STREAM => match (payload.len(), four(payload)) {
                (4, Some(code)) => on_stream(Frame::RstStream(ErrorCode(code))),
                _ => Err(size("RST_STREAM is four octets")),
            },
            kind::SETTINGS if header.has(flag::ACK) => match payload.len() {
                0 => on_connection(Frame::SettingsAck),
                _ => Err(size("an acknowledgement of settings is empty")),
            },
            kind::SETTINGS => {
                let (settings, []) = payload.as_chunks::<6>() else {
                    return Err(size("a setting is six octets"));
                };
                let setting = |[i, j, a, b, c, d]: &[u8; 6]| {
                    (u16::from_be_bytes([*i, *j]), u32::from_be_bytes([*a, *b, *c, *d]))
                };
                on_connection(Frame::Settings(settings.iter().map(setting).collect()))
            }
            //= RFC 9113 (8.4): a client that forbids pushes treats one as an error; so does a server, always.
            kind::PUSH_PROMISE => Err(protocol("PUSH_PROMISE, which we have forbidden")),
            kind::PING => match payload.try_into() {
                Ok(octets) if header.has(flag::ACK) => on_connection(Frame::Pong(octets)),
                Ok(octets) => on_connection(Frame::Ping(octets)),
                Err(_) => Err(size("PING is eight octets")),
            },
            kind::GOAWAY => match (four(payload), payload.get(4..).and_then(four)) {
                (Some(last), Some(code)) => {
                    on_connection(Frame::GoAway { last: last & 0x7fff_ffff, code: ErrorCode(code) })
                }
                _ => Err(size("GOAWAY is at least eight octets")),
            },
            kind::WINDOW_UPDATE => match (payload.len(), four(payload)) {
                (4, Some(increment)) => Ok(Frame::WindowUpdate(increment & 0x7fff_ffff)),
                _ => Err(size("WINDOW_UPDATE is four octets")),
            },
            //= RFC 9113 (6.10): CONTINUATION follows HEADERS without END_HEADERS, and nothing else.
            kind::CONTINUATION => Err(protocol("CONTINUATION that continues nothing")),
            kind::PRIORITY_UPDATE => match four(payload) {
                Some(stream) => on_connection(Frame::PriorityUpdate(stream & 0x7fff_ffff)),
                None => Err(size("PRIORITY_UPDATE names a stream")),
            },
            //= RFC 9113 (4.1): frames of unknown types are ignored.
            _ => Ok(Frame::Unknown),
        }
    }
}

/// Where the payload of DATA or HEADERS begins and ends without its padding.
fn unpadded(header: &Header, payload: &[u8]) -> Result<(usize, usize), Error> {
    if !header.has(flag::PADDED) {
        return Ok((0, payload.len()));
    }
    let padding = payload.first().copied().map(usize::from);
    //= RFC 9113 (6.1): padding of the length of the payload or more is an error of the connection.
    let end = padding.and_then(|padding| payload.len().checked_sub(padding)).filter(|end| *end >= 1);
    end.map(|end| (1, end)).ok_or(protocol("more padding than payload"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::Code;

    fn read(octets: &[u8]) -> Result<Frame, Error> {
        let (head, payload) = octets.split_first_chunk().expect("a header");
        let header = Header::parse(head);
        assert_eq!(header.emit(), *head);
        assert_eq!(payload.len(), header.length as usize);
        Frame::parse(&header, payload)
    }

    // The vectors below were sent by nghttp2 1.52 (curl 7.88.1) and nginx 1.22.1, read from a capture.
    #[test]
    fn settings_and_window_update_of_curl() {
        let settings = b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\x04\x02\0\0\0\0\x02\0\0\0\0";
        let values = vec![(3, 100), (4, 1 << 25), (2, 0)];
        assert_eq!(read(settings), Ok(Frame::Settings(values)));
        let update = b"\0\0\x04\x08\0\0\0\0\0\x01\xff\0\x01";
        assert_eq!(read(update), Ok(Frame::WindowUpdate(0x01ff_0001)));
        assert_eq!(read(b"\0\0\0\x04\x01\0\0\0\0"), Ok(Frame::SettingsAck));
    }

    #[test]
    fn lengths_and_streams_that_may_not_be() {
        let code = |octets: &[u8]| match read(octets) {
            Err(Error::Connection(code, _) | Error::Stream(_, code)) => code.name(),
            Ok(_) => "",
        };
        assert_eq!(code(b"\0\0\x03\x03\0\0\0\0\x01\0\0\0"), "FRAME_SIZE_ERROR");
        assert_eq!(code(b"\0\0\x04\x03\0\0\0\0\0\0\0\0\x08"), "PROTOCOL_ERROR");
        assert_eq!(code(b"\0\0\x01\x04\x01\0\0\0\0\0"), "FRAME_SIZE_ERROR");
        assert_eq!(code(b"\0\0\x07\x04\0\0\0\0\0\0\x01\0\0\0\x01\0"), "FRAME_SIZE_ERROR");
        assert_eq!(code(b"\0\0\0\x04\0\0\0\0\x01"), "PROTOCOL_ERROR");
        assert_eq!(code(b"\0\0\x07\x06\0\0\0\0\0abcdefg"), "FRAME_SIZE_ERROR");
        assert_eq!(code(b"\0\0\x04\x07\0\0\0\0\0abcd"), "FRAME_SIZE_ERROR");
        assert_eq!(code(b"\0\0\x03\x08\0\0\0\0\0abc"), "FRAME_SIZE_ERROR");
        assert_eq!(code(b"\0\0\x04\x02\0\0\0\0\x01abcd"), "FRAME_SIZE_ERROR");
        assert_eq!(code(b"\0\0\x01\x09\x04\0\0\0\x01a"), "PROTOCOL_ERROR");
        assert_eq!(code(b"\0\0\x01\x05\x04\0\0\0\x01a"), "PROTOCOL_ERROR");
        assert_eq!(code(b"\0\0\x02\x01\x0c\0\0\0\x01\x02a"), "PROTOCOL_ERROR");
        assert_eq!(code(b"\0\0\x04\x01\x24\0\0\0\x01abcd"), "FRAME_SIZE_ERROR");
        assert_eq!(code(b"\0\0\x01\x01\x04\0\0\0\0a"), "PROTOCOL_ERROR");
        assert_eq!(code(b"\0\0\x03\x10\0\0\0\0\0abc"), "FRAME_SIZE_ERROR");
    }

    #[test]
    fn padding_and_old_priorities_are_left_out_of_a_block() {
        let padded = b"\0\0\x0a\x01\x2c\0\0\0\x01\x02\0\0\0\0\x10ab\0\0";
        assert_eq!(read(padded), Ok(Frame::Headers { from: 6, to: 8 }));
        assert_eq!(read(b"\0\0\x01\x01\x0c\0\0\0\x01\0"), Ok(Frame::Headers { from: 1, to: 1 }));
        assert_eq!(read(b"\0\0\x02\x77\xff\0\0\0\x01ab"), Ok(Frame::Unknown));
    }
}
