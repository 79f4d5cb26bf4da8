//! From the octets of a stream, cut anywhere, to frames. The octets of DATA pass through by reference.

use smart_default::SmartDefault;

use airloom_base::Body;

use super::frame::kind;
use super::varint;
use super::{Error, ErrorCode};
use crate::http::pieces::Pieces;

/// What the octets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A frame begins: its type.
    Begins(u64),
    /// Octets of DATA.
    Data(Body),
    /// A frame of another type that is known, whole.
    Frame(u64, Vec<u8>),
    /// So many octets of a frame that is not, or of DATA that carries nothing.
    Skipped(usize),
}

/// Where in a frame the stream is.
#[derive(Clone, Copy)]
enum Phase {
    Kind,
    Length(u64),
    Data(u64),
    Payload(u64, usize),
    Skip(u64),
}

/// Octets of a frame that carries nothing, at least.
pub(super) const EMPTY: usize = 2;

/// The most octets of a frame that is read as a whole and carries no header block.
const MOST_CONTROL: u64 = 4096;

/// Cuts what a stream gives into frames.
#[derive(SmartDefault)]
pub(super) struct Input {
    pieces: Pieces,
    #[default(Phase::Kind)]
    phase: Phase,
    /// Octets of DATA that has just begun.
    pub(super) begun: Option<u64>,
}

impl Input {
    pub(super) fn feed(&mut self, body: Body) {
        self.pieces.feed(body);
    }

    /// The integer that comes next.
    pub(super) fn integer(&mut self) -> Option<u64> {
        // It came at once as a rule: nothing need be collected.
        let next = self.pieces.next();
        if self.pieces.so_far().is_empty()
            && let Some((value, rest)) = varint::parse(next)
        {
            self.pieces.take(next.len() - rest.len());
            return Some(value);
        }
        let whole = self.pieces.collect(1)
            && self.pieces.collect(varint::length(self.pieces.so_far().first().copied().unwrap_or_default()));
        if !whole {
            return None;
        }
        let (value, _) = varint::parse(self.pieces.so_far())?;
        self.pieces.start_over();
        Some(value)
    }

    /// What waits, as it came, of a stream that has no frames.
    pub(super) fn rest(&mut self) -> Option<Body> {
        self.pieces.take(usize::MAX)
    }

    /// The next piece; `None` if more octets are needed.
    pub(super) fn poll(&mut self) -> Result<Option<Piece>, Error> {
        loop {
            match self.phase {
                Phase::Kind => {
                    let Some(kind) = self.integer() else { return Ok(None) };
                    self.phase = Phase::Length(kind);
                    return Ok(Some(Piece::Begins(kind)));
                }
                Phase::Length(kind) => {
                    let Some(length) = self.integer() else { return Ok(None) };
                    let most = match kind {
                        kind::DATA if length == 0 => {
                            self.phase = Phase::Kind;
                            return Ok(Some(Piece::Skipped(EMPTY)));
                        }
                        kind::DATA => {
                            self.phase = Phase::Data(length);
                            self.begun = Some(length);
                            continue;
                        }
                        kind::HEADERS => crate::http::budget::BLOCK as u64,
                        kind::SETTINGS
                        | kind::CANCEL_PUSH
                        | kind::GOAWAY
                        | kind::MAX_PUSH_ID
                        | kind::PRIORITY_UPDATE
                        | kind::PRIORITY_UPDATE_PUSH => MOST_CONTROL,
                        _ => {
                            self.phase = Phase::Skip(length);
                            continue;
                        }
                    };
                    if length > most {
                        return Err(Error::Connection(
                            ErrorCode::EXCESSIVE_LOAD,
                            "a frame larger than we take",
                        ));
                    }
                    self.phase = Phase::Payload(kind, length as usize);
                }
                Phase::Data(0) | Phase::Skip(0) => self.phase = Phase::Kind,
                Phase::Data(left) => {
                    let Some(piece) = self.take(left) else { return Ok(None) };
                    self.phase = Phase::Data(left - piece.len() as u64);
                    return Ok(Some(Piece::Data(piece)));
                }
                Phase::Skip(left) => {
                    let Some(piece) = self.take(left) else { return Ok(None) };
                    self.phase = Phase::Skip(left - piece.len() as u64);
                    return Ok(Some(Piece::Skipped(piece.len())));
                }
                Phase::Payload(kind, length) => {
                    if !self.pieces.collect(length) {
                        return Ok(None);
                    }
                    self.phase = Phase::Kind;
                    return Ok(Some(Piece::Frame(kind, self.pieces.collected())));
                }
            }
        }
    }

    fn take(&mut self, left: u64) -> Option<Body> {
        self.pieces.take(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Is nothing of a frame waiting?
    pub(super) fn is_between_frames(&self) -> bool {
        matches!(self.phase, Phase::Kind | Phase::Data(0) | Phase::Skip(0)) && self.pieces.is_empty()
    }
}
