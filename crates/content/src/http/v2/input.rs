//! From the octets of a stream, cut anywhere, to frames. The octets of DATA pass through by reference.

use std::collections::VecDeque;

use airloom_base::Body;

use super::Error;
use super::error::{protocol, size};
use super::frame::{HEADER, Header, PREFACE, flag, kind};

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
    pending: VecDeque<Body>,
    /// What is collected of a header or a payload.
    collected: Vec<u8>,
    phase: Phase,
    max_frame: u32,
}

impl Input {
    /// At the beginning of a connection; a server waits for the preface.
    pub(super) fn new(is_server: bool, max_frame: u32) -> Self {
        let phase = if is_server { Phase::Preface } else { Phase::Header };
        Input { pending: VecDeque::new(), collected: Vec::new(), phase, max_frame }
    }

    pub(super) fn feed(&mut self, body: Body) {
        if !body.is_empty() {
            self.pending.push_back(body);
        }
    }

    /// Nothing more will be read.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Collects up to `wanted` octets. Are they all there?
    fn collect(&mut self, wanted: usize) -> bool {
        while self.collected.len() < wanted {
            let Some(first) = self.pending.front_mut() else { return false };
            let piece = first.split_to(wanted - self.collected.len());
            if first.is_empty() {
                self.pending.pop_front();
            }
            let from = self.collected.len();
            self.collected.resize(from + piece.len(), 0);
            piece.write(0, &mut self.collected[from..]);
        }
        true
    }

    fn take(&mut self, most: u32) -> Option<Body> {
        let first = self.pending.front_mut()?;
        let piece = first.split_to(most as usize);
        if first.is_empty() {
            self.pending.pop_front();
        }
        Some(piece)
    }

    /// The next piece; `None` if more octets are needed.
    pub(super) fn poll(&mut self) -> Result<Option<Piece>, Error> {
        loop {
            match self.phase {
                Phase::Preface => {
                    let whole = self.collect(PREFACE.len());
                    // Somebody who speaks something else is not waited for.
                    if !PREFACE.starts_with(&self.collected) {
                        return Err(protocol("not the preface of HTTP/2"));
                    }
                    if !whole {
                        return Ok(None);
                    }
                    self.collected.clear();
                    self.phase = Phase::Header;
                }
                Phase::Header => {
                    if !self.collect(HEADER) {
                        return Ok(None);
                    }
                    let Some(octets) = self.collected.first_chunk() else { return Ok(None) };
                    let header = Header::parse(octets);
                    self.collected.clear();
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
                    if !self.collect(1) {
                        return Ok(None);
                    }
                    let padding = self.collected.drain(..).map(u32::from).sum();
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
                    let Some(piece) = self.take(padding) else { return Ok(None) };
                    let octets = piece.len() as u32;
                    self.phase = Phase::Data { header, left: 0, padding: padding - octets };
                    return Ok(Some(Piece::Padding(octets)));
                }
                Phase::Data { header, left, padding } => {
                    let Some(piece) = self.take(left) else { return Ok(None) };
                    self.phase = Phase::Data { header, left: left - piece.len() as u32, padding };
                    return Ok(Some(Piece::Octets(piece)));
                }
                Phase::Payload(header) => {
                    if !self.collect(header.length as usize) {
                        return Ok(None);
                    }
                    self.phase = Phase::Header;
                    return Ok(Some(Piece::Frame(header, std::mem::take(&mut self.collected))));
                }
            }
        }
    }

    /// Is nothing of a frame waiting?
    pub(super) fn is_between_frames(&self) -> bool {
        matches!(self.phase, Phase::Header) && self.collected.is_empty() && self.pending.is_empty()
    }
}
