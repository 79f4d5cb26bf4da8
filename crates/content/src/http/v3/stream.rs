//! Streams: a request and its answer (what is still to be sent of our side, what has come of the other), and those that go one way.

use std::collections::VecDeque;

use smart_default::SmartDefault;

use airloom_base::Body;

use super::Priority;
use super::frame::{self, kind};
use super::input::Input;
use crate::http::filler::LongFiller;
use crate::http::message::Fields;

/// Octets that are offered at a time: which stream is served is decided anew behind them.
const OFFER: usize = 16_384;

/// What waits to be written to a stream.
#[derive(Default)]
pub(super) struct Sending {
    /// Octets that are framed.
    framed: VecDeque<Body>,
    /// How many pieces in front of them are heads.
    heads: usize,
    /// Octets that become DATA.
    pub(super) bodies: VecDeque<Body>,
    /// What comes behind them.
    pub(super) filler: LongFiller,
    /// Does the stream end behind it all?
    pub(super) ends: bool,
    /// Octets of the offer that the transport has not answered, and whether the stream ends behind them.
    offered: Option<(usize, bool)>,
    /// Octets of DATA that has just begun.
    pub(super) begun: Option<u64>,
    /// Octets that go before those of the last DATA, and what is left of these.
    before_body: usize,
    body: usize,
    /// Does the transport take nothing at the moment?
    pub(super) is_blocked: bool,
}

impl Sending {
    /// Whole frames, or what has none.
    pub(super) fn push(&mut self, octets: Vec<u8>) {
        if !octets.is_empty() {
            self.framed.push_back(Body::Real(octets.into()));
        }
    }

    /// A frame with a head, which goes before all bodies.
    pub(super) fn push_head(&mut self, octets: Vec<u8>) {
        self.heads += 1;
        self.push(octets);
    }

    /// Is a head next, or nothing but the end?
    pub(super) fn is_short(&self) -> bool {
        self.heads > 0 || (self.framed.is_empty() && self.bodies.is_empty())
    }

    /// Is there anything, now or later?
    pub(super) fn waits(&self) -> bool {
        !self.framed.is_empty() || !self.bodies.is_empty() || self.ends
    }

    /// Is there something for which the transport may have room?
    pub(super) fn can_send(&self) -> bool {
        !self.is_blocked && self.waits()
    }

    /// What goes next, and whether the stream ends behind it. It stays until [`written`](Self::written) is told.
    pub(super) fn offer(&mut self) -> (Body, bool) {
        if self.framed.is_empty()
            && let Some(body) = self.bodies.pop_front()
        {
            self.begun = Some(body.len() as u64);
            let header = frame::header(kind::DATA, body.len() as u64);
            (self.before_body, self.body) = (header.len(), body.len());
            self.push(header);
            self.framed.push_back(body);
            self.refill();
        }
        let piece = self.framed.front().map_or(Body::EMPTY, |first| first.slice(0, OFFER));
        let whole = self.framed.front().is_none_or(|first| first.len() == piece.len());
        let ends = self.ends && whole && self.framed.len() <= 1 && self.bodies.is_empty();
        self.offered = Some((piece.len(), ends));
        (piece, ends)
    }

    /// Takes the next piece of the filler when the octets before it are gone.
    pub(super) fn refill(&mut self) {
        if self.bodies.is_empty() {
            self.bodies.extend(self.filler.next());
        }
    }

    /// How many of so many octets that the transport takes next are a body's.
    pub(super) fn of_body(&mut self, taken: usize) -> u64 {
        let before = taken.min(self.before_body);
        let body = self.body.min(taken - before);
        self.before_body -= before;
        self.body -= body;
        body as u64
    }

    /// The transport took so many octets of the offer. Was that the end?
    pub(super) fn written(&mut self, taken: usize) -> bool {
        let Some((offered, ends)) = self.offered.take() else { return false };
        self.is_blocked = taken < offered;
        if let Some(first) = self.framed.front_mut() {
            drop(first.split_to(taken.min(offered)));
            if first.is_empty() {
                self.framed.pop_front();
                self.heads = self.heads.saturating_sub(1);
            }
        }
        ends && !self.is_blocked
    }
}

/// One request and its answer.
#[derive(SmartDefault)]
pub(super) struct Stream {
    pub(super) input: Input,
    pub(super) sending: Sending,
    /// May the peer send on it?
    #[default(true)]
    pub(super) hears: bool,
    /// May we?
    #[default(true)]
    pub(super) speaks: bool,
    /// The peer has ended its side; what came before may still wait.
    pub(super) has_ended: bool,
    /// A field section whose entries have not come.
    pub(super) blocked: Option<Vec<u8>>,
    pub(super) priority: Priority,
    /// Did an update say so, which counts more than the head?
    pub(super) is_said: bool,
    /// Has the head of the message come that is not an interim response?
    pub(super) has_head: bool,
    /// Trailers, which end a message.
    pub(super) trailers: Option<Fields>,
    /// Octets of the body that are still to come by the head's Content-Length.
    pub(super) expected: Option<u64>,
    /// The answer has no body whatever its head says: HEAD was asked for.
    pub(super) is_head: bool,
    /// Was anything of an answer sent?
    pub(super) is_answered: bool,
}

/// What a stream that goes one way is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Its type has not come.
    Untold,
    Control,
    Encoder,
    Decoder,
    /// It has been refused.
    Unknown,
}

/// A stream of the peer's that goes one way.
pub(super) struct Incoming {
    pub(super) input: Input,
    pub(super) role: Role,
}
