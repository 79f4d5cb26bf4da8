//! Content that nobody asked for, on its way to a client (WAP-235).
//!
//! ```text
//!            too early           no session, must be confirmed       as many outstanding as agreed
//!  push ──> [Early] ──> try ──> [Invited] ── session opened ──> try ──> [Queued] ── one confirmed ──> try
//!                        │          └─ nobody came ─> TimedOut
//!                        ├──> [Sent] in a session ──> Confirmed, Aborted
//!                        └──> a datagram, or unconfirmed in a session ──> Sent
//! ```
//!
//! A client with an open session gets it there; one without gets a single datagram at the port for pushes. A push that has to
//! be confirmed needs a session: its client is asked to open one, by a session initiation request.

mod book;
mod initiation;
mod message;

use std::net::{IpAddr, SocketAddr};

use airloom_base::Instant;
use airloom_content::charset::Charset;
use airloom_content::markup;
use airloom_transports::wsp::capabilities::option;
use airloom_transports::wsp::connectionless;
use airloom_transports::wsp::headers::{Encoder, Version};
use airloom_transports::wsp::server::{SessionId, State};
use airloom_transports::wsp::wire::Pdu;
use airloom_transports::wtp::Transaction;
use bytes::Bytes;

pub(super) use self::book::Book;
use self::book::{Open, Stage};
pub use self::message::{Method, Push, PushError, PushId, PushOutcome};
use super::content;
use super::gateway::{Due, Gateway};

/// The port at which clients take pushes without a session (WAP-259).
const PUSH_PORT: u16 = 2_948;
/// Octets of a push beside its headers and body.
const AROUND: usize = 8;

/// The way that a push takes now.
enum Route {
    Session {
        id: SessionId,
        confirmed: bool,
    },
    Datagram,
    /// A session is needed, and there is none.
    Initiation,
}

impl Gateway {
    /// Pushes something to a client. What becomes of it is told by [`Gateway::poll_push`].
    ///
    /// # Errors
    /// [`PushError`]; nothing was sent then.
    pub fn push(&mut self, now: Instant, push: Push) -> Result<PushId, PushError> {
        if push.before.is_some_and(|before| before <= now) {
            return Err(PushError::Expired);
        }
        let (content_type, body) = compiled(&push.content_type, push.body.clone())?;
        let push = Push { content_type, body, ..push };
        if self.pushes.open() >= self.config.max_pushes as usize || self.is_full(push.held()) {
            return Err(PushError::Busy);
        }
        self.next += 1;
        let id = PushId(self.next);
        let after = push.after.filter(|after| *after > now);
        self.held += push.held();
        self.pushes.insert(id, Open::new(push));
        if after.is_some() {
            self.push_at(id, after);
        } else if let Err(why) = self.try_push(now, id) {
            self.close_push(id);
            return Err(why);
        }
        self.settle(now);
        Ok(id)
    }

    /// Takes a push back. False if it is too late for that: it is on its way, or is over.
    pub fn cancel_push(&mut self, now: Instant, id: PushId) -> bool {
        let may = self.pushes.get(id).is_some_and(|open| !matches!(open.stage, Stage::Sent(_)));
        if may {
            self.push_ended(now, id, PushOutcome::Cancelled);
        }
        may
    }

    /// What became of a push. At most 4096 wait here; if nobody takes them, the oldest go.
    pub fn poll_push(&mut self) -> Option<(PushId, PushOutcome)> {
        self.pushes.poll()
    }

    /// Sends a push, or finds what it waits for. After an error it is as it was.
    fn try_push(&mut self, now: Instant, id: PushId) -> Result<(), PushError> {
        let Some(open) = self.pushes.get(id) else { return Ok(()) };
        let push = open.push.clone();
        match self.way(&push) {
            Route::Session { id: session, confirmed } => {
                self.push_in_session(now, id, &push, session, confirmed)
            }
            Route::Datagram => {
                let headers = compact(&push, Version::default());
                let pdu = Pdu::Push { confirmed: false, headers, data: push.body };
                let unit = connectionless::emit(id.0 as u8, &pdu);
                if unit.len() as u64 > self.config.connectionless_reply.0 {
                    return Err(PushError::TooLarge);
                }
                self.pushed.push_back((SocketAddr::new(push.to, PUSH_PORT), unit));
                self.counters.pushes += 1;
                self.push_ended(now, id, PushOutcome::Sent);
                Ok(())
            }
            Route::Initiation if self.config.session_wait.is_zero() => Err(PushError::NotPossible),
            Route::Initiation => {
                self.invite(now, id);
                Ok(())
            }
        }
    }

    fn way(&self, push: &Push) -> Route {
        let sessions: Vec<SessionId> = self.server.sessions_at(push.to).collect();
        let takes = |wanted| {
            let server = &self.server;
            sessions.iter().copied().find(move |session| {
                let agreed = server.agreed(*session).is_some_and(|agreed| agreed.has(wanted));
                agreed && server.state(*session) == Some(State::Connected)
            })
        };
        let confirmed = takes(option::CONFIRMED_PUSH).filter(|_| push.method != Method::Unconfirmed);
        match (push.method, confirmed) {
            (Method::Confirmed, None) => Route::Initiation,
            (_, Some(id)) => Route::Session { id, confirmed: true },
            (_, None) => {
                takes(option::PUSH).map_or(Route::Datagram, |id| Route::Session { id, confirmed: false })
            }
        }
    }

    fn push_in_session(
        &mut self,
        now: Instant,
        id: PushId,
        push: &Push,
        session: SessionId,
        confirmed: bool,
    ) -> Result<(), PushError> {
        let version = self.sessions.get(&session).map_or_else(Version::default, |s| s.version);
        let headers = compact(push, version);
        let limit = self.server.agreed(session).map_or(0, |agreed| agreed.client_sdu as usize);
        // A push of class 0 has no segments (WAP-224): it is one datagram.
        let one = if confirmed { usize::MAX } else { self.config.wtp.segment.0 as usize };
        let len = headers.len() + push.body.len() + AROUND;
        if len > one || limit > 0 && len > limit {
            return Err(PushError::TooLarge);
        }
        match self.server.push(now, session, confirmed, headers, push.body.clone()) {
            Some(transaction) => {
                self.counters.pushes += 1;
                if confirmed {
                    self.push_at(id, None);
                    self.pushes.sent(id, transaction);
                } else {
                    self.push_ended(now, id, PushOutcome::Sent);
                }
                Ok(())
            }
            //= WAP-230 (8.3.2.7): no more confirmed pushes outstanding than was agreed; this one waits for its turn.
            None if confirmed && self.pushes.is_outstanding_at(push.to) => {
                self.pushes.stage(id, Stage::Queued);
                self.push_at(id, push.before);
                Ok(())
            }
            None => Err(PushError::NotPossible),
        }
    }

    /// The moment of a push has come.
    pub(super) fn push_due(&mut self, now: Instant, id: PushId) {
        let Some(open) = self.pushes.get_mut(id) else { return };
        open.due = None;
        if open.push.before.is_some_and(|before| before <= now) {
            return self.push_ended(now, id, PushOutcome::Expired);
        }
        if matches!(open.stage, Stage::Invited { until, .. } if until <= now) {
            return self.push_ended(now, id, PushOutcome::TimedOut);
        }
        self.retry_push(now, id);
    }

    /// Something has changed for pushes to this client that wait: a session was opened or is gone, one was confirmed.
    pub(super) fn retry_pushes(&mut self, now: Instant, to: IpAddr) {
        for id in self.pushes.waiting_at(to) {
            self.retry_push(now, id);
        }
    }

    fn retry_push(&mut self, now: Instant, id: PushId) {
        if self.try_push(now, id).is_err() {
            self.push_ended(now, id, PushOutcome::Undeliverable);
        }
    }

    /// A push in a session is over.
    pub(super) fn push_over(&mut self, now: Instant, transaction: Transaction, outcome: PushOutcome) {
        if let Some(id) = self.pushes.of(transaction) {
            self.push_ended(now, id, outcome);
            self.retry_pushes(now, transaction.peer.ip());
        }
    }

    fn push_ended(&mut self, now: Instant, id: PushId, outcome: PushOutcome) {
        self.close_push(id);
        match outcome {
            PushOutcome::Sent => {}
            PushOutcome::Confirmed => self.counters.pushes_confirmed += 1,
            _ => self.counters.pushes_failed += 1,
        }
        self.pushes.tell(id, outcome);
        self.pap_ended(now, id, outcome);
    }

    /// Takes a push out of all books.
    fn close_push(&mut self, id: PushId) {
        self.push_at(id, None);
        if let Some(open) = self.pushes.remove(id) {
            self.held -= open.push.held();
        }
    }

    /// When something has to be done about a push.
    fn push_at(&mut self, id: PushId, at: Option<Instant>) {
        let Some(open) = self.pushes.get_mut(id) else { return };
        if let Some(before) = std::mem::replace(&mut open.due, at) {
            self.agenda.remove(&(before, Due::Push(id)));
        }
        if let Some(at) = at {
            self.agenda.insert((at, Due::Push(id)));
        }
    }
}

/// Content in the form in which it is pushed.
fn compiled(content_type: &str, body: Bytes) -> Result<(String, Bytes), PushError> {
    let Some(tokens) = content::compiled_type(content_type) else {
        return Ok((content_type.to_owned(), body));
    };
    let charset = content::parameter(content_type, "charset").and_then(Charset::from_name);
    let compiled =
        markup::compile(&body, charset, None).map_err(|why| PushError::Content(why.to_string()))?;
    Ok((tokens.to_owned(), compiled.octets.into()))
}

fn compact(push: &Push, version: Version) -> Bytes {
    let encoder = Encoder::new(version);
    let mut out = Vec::new();
    encoder.content_type(&push.content_type, &mut out);
    for (name, value) in &push.headers {
        // A name that is none is left out.
        let _ = encoder.header(name, value, &mut out);
    }
    out.into()
}
