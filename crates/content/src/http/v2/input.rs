//! From the octets of a stream, cut anywhere, to frames. The octets of DATA pass through by reference.

use airloom_base::Body;

use super::Error;
use super::error::{protocol, size};
use super::frame::{HEADER, Header, PREFACE, flag, kind};
use crate::http::pieces::Pieces;

/// What the octets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// DATA begins: its header.
    Data(Header),
    /// Octets of its body.
    Octets(Body),
    /// Octets of it that are padding, the length of padding included.
    Padding(u32),
    /// DATA is complete: its header.
    DataEnd(Header),
    /// A frame of another type, whole.
    Frame(Header, Vec<u8>),
}

/// Where in a frame the stream is.
enum Phase {
    Preface,
    Header,
    /// The octet that says how much padding follows.
    PadLength(Header),
    Data {
        header: Header,
        left: u32,
        padding: u32,
    },
    Payload(Header),
}

/// Cuts what the stream gives into frames.
pub(super) struct Input {
    pieces: Pieces,
    phase: Phase,
    max_frame: u32,
}

impl Input {
    /// At the beginning of a connection; a server waits for the preface.
    pub(super) fn new(is_server: bool, max_frame: u32) -> Self {
        let phase = if is_server { Phase::Preface } else { Phase::Header };
        Input { pieces: Pieces::default(), phase, max_frame }
    }

    pub(super) fn feed(&mut self, body: Body) {
        self.pieces.feed(body);
    }

    /// Nothing more will be read.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
    }

    /// The next piece; `None` if more octets are needed.
    pub(super) fn poll(&mut self) -> Result<Option<Piece>, Error> {
        loop {
            match self.phase {
                Phase::Preface => {
                    let whole = self.pieces.collect(PREFACE.len());
                    // Somebody who speaks something else is not waited for.
                    if !PREFACE.starts_with(self.pieces.so_far()) {
                        return Err(protocol("not the preface of HTTP/2"));
                    }
                    if !whole {
                        return Ok(None);
                    }
                    self.pieces.start_over();
                    self.phase = Phase::Header;
                }
                Phase::Header => {
                    if !self.pieces.collect(HEADER) {
                        return Ok(None);
                    }
                    let Some(octets) = self.pieces.so_far().first_chunk() else { return Ok(None) };
                    let header = Header::parse(octets);
                    self.pieces.start_over();
                    if header.length > self.max_frame {
                        return Err(size("a frame larger than we take"));
                    }
                    if header.kind != kind::DATA {
                        self.phase = Phase::Payload(header);
                        continue;
                    }
                    self.phase = match (header.has(flag::PADDED), header.length) {
                        (true, 0) => return Err(size("padded DATA without a length of padding")),
                        (true, _) => Phase::PadLength(header),
                        (false, left) => Phase::Data { header, left, padding: 0 },
                    };
                    return Ok(Some(Piece::Data(header)));
                }
                Phase::PadLength(header) => {
                    if !self.pieces.collect(1) {
                        return Ok(None);
                    }
                    let padding = self.pieces.so_far().iter().copied().map(u32::from).sum();
                    self.pieces.start_over();
                    let Some(left) = (header.length - 1).checked_sub(padding) else {
                        return Err(protocol("more padding than payload"));
                    };
                    self.phase = Phase::Data { header, left, padding };
                    return Ok(Some(Piece::Padding(1)));
                }
                Phase::Data { header, left: 0, padding: 0 } => {
                    self.phase = Phase::Header;
                    return Ok(Some(Piece::DataEnd(header)));
                }
                Phase::Data { header, left: 0, padding } => {
                    let Some(piece) = self.pieces.take(padding as usize) else { return Ok(None) };
                    let octets = piece.len() as u32;
                    self.phase = Phase::Data { header, left: 0, padding: padding - octets };
                    return Ok(Some(Piece::Padding(octets)));
                }
                Phase::Data { header, left, padding } => {
                    let Some(piece) = self.pieces.take(left as usize) else { return Ok(None) };
                    self.phase = Phase::Data { header, left: left - piece.len() as u32, padding };
                    return Ok(Some(Piece::Octets(piece)));
                }
                Phase::Payload(header) => {
                    if !self.pieces.collect(header.length as usize) {
                        return Ok(None);
                    }
                    self.phase = Phase::Header;
                    return Ok(Some(Piece::Frame(header, self.pieces.collected())));
                }
            }
        }
    }
}
