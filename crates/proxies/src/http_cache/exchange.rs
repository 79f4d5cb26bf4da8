//! A client's request and the answer to it.

use std::collections::VecDeque;
use std::sync::Arc;

use airloom_base::{Body, Instant, SocketId};
use airloom_content::http::message::{Fields, Method, RequestHead, Version};
use airloom_content::http::v1::{BodyLength, chunk_size_line};
use bytes::Bytes;

use super::store::{Keeping, Stored};
use super::target::Target;

/// Octets that are joined before they are written.
const JOIN: usize = 16 * 1024;

/// The exchange of a client: its socket and the number there.
pub(super) type ExchangeId = (SocketId, u64);

/// How far an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The final answer has not begun.
    Asked,
    /// Its head was passed on.
    Answering,
    /// All of it was.
    Done,
    /// It broke off in the middle.
    Broken,
}

/// The body of a request on its way.
pub(super) struct Upload {
    pub(super) length: BodyLength,
    pub(super) held: VecDeque<Body>,
    pub(super) octets: usize,
    pub(super) taken: u64,
    pub(super) is_complete: bool,
    /// A chunk was sent already.
    pub(super) has_begun: bool,
}

impl Upload {
    /// Is some of it still to come from the client?
    pub(super) fn is_owed(&self) -> bool {
        !self.is_complete && self.length != BodyLength::None
    }
}

/// A request and its answer.
pub(super) struct Exchange {
    pub(super) number: u64,
    pub(super) head: RequestHead,
    pub(super) target: Option<Target>,
    pub(super) key: Bytes,
    pub(super) asked: Instant,
    pub(super) phase: Phase,
    pub(super) upload: Upload,
    /// It is more than its head. The answer may depend on that, which no name of a kept answer tells.
    pub(super) has_content: bool,
    /// What of the answer is not written yet.
    pub(super) out: VecDeque<Body>,
    pub(super) held: usize,
    /// The answer is sent in chunks; has one been?
    pub(super) chunks: Option<bool>,
    /// The answer ends with the connection.
    pub(super) until_close: bool,
    /// The connection ends after it.
    pub(super) closes: bool,
    pub(super) server: Option<SocketId>,
    /// When it went to its server; until then when it was asked, or another one before it went.
    pub(super) sent: Instant,
    pub(super) tried: usize,
    /// When it was last sent on a connection that ended under it, and is sent again.
    pub(super) retried: Option<Instant>,
    pub(super) keeping: Option<Keeping>,
    /// What is kept and was not fresh enough: its server is asked whether it has changed.
    pub(super) checking: Option<Arc<Stored>>,
    pub(super) status: u16,
    /// Octets of the answer's body.
    pub(super) octets: u64,
    /// Octets of these that the client's connection has taken, as they were counted.
    pub(super) passed: u64,
    pub(super) how: &'static str,
    /// Why it was refused, where there is something to be done about it.
    pub(super) why: Option<String>,
}

impl Exchange {
    pub(super) fn new(number: u64, head: RequestHead, length: BodyLength, now: Instant) -> Exchange {
        Exchange {
            number,
            head,
            target: None,
            key: Bytes::new(),
            asked: now,
            phase: Phase::Asked,
            has_content: !matches!(length, BodyLength::None | BodyLength::Exactly(0)),
            upload: Upload {
                length,
                held: VecDeque::new(),
                octets: 0,
                taken: 0,
                is_complete: false,
                has_begun: false,
            },
            out: VecDeque::new(),
            held: 0,
            chunks: None,
            until_close: false,
            closes: false,
            server: None,
            sent: now,
            tried: 0,
            retried: None,
            keeping: None,
            checking: None,
            status: 0,
            octets: 0,
            passed: 0,
            how: "own",
            why: None,
        }
    }

    /// A place for an answer to something that was no request.
    pub(super) fn of_no_request(number: u64, now: Instant) -> Exchange {
        let head = RequestHead {
            method: Method::Other(String::new()),
            target: Bytes::new(),
            version: Version::Http11,
            fields: Fields::default(),
        };
        let mut exchange = Exchange::new(number, head, BodyLength::None, now);
        exchange.closes = true;
        exchange
    }

    /// May it be sent again, or behind another one?
    pub(super) fn may_repeat(&self) -> bool {
        self.head.method.is_idempotent() && self.upload.length == BodyLength::None
    }

    /// Is all of the answer here?
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::Broken)
    }

    /// More of the answer for the client; small pieces are joined.
    pub(super) fn push(&mut self, piece: Body) {
        if piece.is_empty() {
            return;
        }
        self.held += piece.len();
        if let (Some(Body::Real(last)), Body::Real(next)) = (self.out.back_mut(), &piece)
            && last.len() + next.len() <= JOIN
        {
            *last = [&last[..], next].concat().into();
        } else {
            self.out.push_back(piece);
        }
    }

    /// A piece of the answer's body, framed as its head said.
    pub(super) fn push_body(&mut self, piece: Body) {
        if piece.is_empty() {
            return;
        }
        self.octets += piece.len() as u64;
        let Some(has_begun) = self.chunks.replace(true) else {
            self.chunks = None;
            return self.push(piece);
        };
        let line = chunk_size_line(piece.len() as u64, !has_begun);
        if let Body::Real(octets) = &piece {
            self.push(Body::Real([&line[..], octets].concat().into()));
        } else {
            self.push(Body::Real(line.into()));
            self.push(piece);
        }
    }

    /// The answer is complete.
    pub(super) fn complete(&mut self) {
        if let Some(has_begun) = self.chunks.take() {
            self.push(Body::Real(chunk_size_line(0, !has_begun).into()));
        }
        self.phase = Phase::Done;
        //= RFC 9112 (9.3): a connection is of no use if a body is not read to its end.
        self.closes |= self.upload.is_owed();
    }
}
