//! Content that nobody asked for, on its way to a client (WAP-235).
//!
//! A client with an open session gets it there; one without gets a single datagram at the port for pushes. A push that has to
//! be confirmed needs a session: phones are not asked to open one.

use std::net::{IpAddr, SocketAddr};

use airloom_base::Instant;
use airloom_content::charset::Charset;
use airloom_content::markup;
use airloom_transports::wsp::capabilities::option;
use airloom_transports::wsp::connectionless;
use airloom_transports::wsp::headers::{Encoder, Version};
use airloom_transports::wsp::server::{SessionId, State};
use airloom_transports::wsp::status::Reason;
use airloom_transports::wsp::wire::Pdu;
use airloom_transports::wtp::Transaction;
use bytes::Bytes;

use super::content;
use super::gateway::Gateway;

/// The port at which clients take pushes without a session (WAP-259).
const PUSH_PORT: u16 = 2_948;
/// Outcomes that are kept for whoever takes them.
const MOST_OUTCOMES: usize = 4_096;

/// How a push is to be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The client has to confirm it.
    Confirmed,
    /// Confirmed if that is possible.
    PreferConfirmed,
    /// Without a confirmation.
    #[default]
    Unconfirmed,
}

/// The name of a push; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PushId(pub u64);

/// A push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// The client's address.
    pub to: IpAddr,
    /// How.
    pub method: Method,
    /// Type of the content; text of documents of WAP is compiled.
    pub content_type: String,
    /// Further headers, such as `X-Wap-Application-Id`.
    pub headers: Vec<(String, String)>,
    /// The content.
    pub body: Bytes,
}

/// Why a push was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushError {
    /// The content is not what its type says: where and why.
    Content(String),
    /// It would have to be confirmed, and no session of the client takes such pushes now.
    NotPossible,
    /// It is larger than the client takes.
    TooLarge,
}

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// It was sent, and no confirmation was asked for.
    Sent,
    /// The client has taken it.
    Confirmed,
    /// The client has not, or is not there.
    Aborted(Reason),
}

impl Gateway {
    /// Pushes something to a client. What becomes of it is told by [`Gateway::poll_push`].
    ///
    /// # Errors
    /// [`PushError`]; nothing was sent then.
    pub fn push(&mut self, now: Instant, push: Push) -> Result<PushId, PushError> {
        let (content_type, body) = compiled(&push.content_type, push.body)?;
        let sessions: Vec<SessionId> = self.server.sessions_at(push.to).collect();
        let takes = |wanted| {
            let server = &self.server;
            sessions.iter().copied().find(move |session| {
                let agreed = server.agreed(*session).is_some_and(|agreed| agreed.has(wanted));
                agreed && server.state(*session) == Some(State::Connected)
            })
        };
        let confirmed = takes(option::CONFIRMED_PUSH).filter(|_| push.method != Method::Unconfirmed);
        let session = match (push.method, confirmed) {
            (Method::Confirmed, None) => return Err(PushError::NotPossible),
            (_, Some(session)) => Some(session),
            (_, None) => takes(option::PUSH),
        };
        let version =
            session.and_then(|id| self.sessions.get(&id)).map_or_else(Version::default, |s| s.version);
        let headers = compact(&content_type, &push.headers, version);
        self.next += 1;
        let id = PushId(self.next);
        match session {
            Some(session) => {
                let limit = self.server.agreed(session).map_or(0, |agreed| agreed.client_sdu as usize);
                // A push of class 0 has no segments (WAP-224): it is one datagram.
                let one = if confirmed.is_none() { self.config.wtp.segment.0 as usize } else { usize::MAX };
                if headers.len() + body.len() + 8 > one || limit > 0 && headers.len() + body.len() + 8 > limit
                {
                    return Err(PushError::TooLarge);
                }
                let sent = self.server.push(now, session, confirmed.is_some(), headers, body);
                let sent = sent.ok_or(PushError::NotPossible)?;
                if confirmed.is_some() {
                    self.pushes.insert(sent, id);
                } else {
                    self.tell(id, PushOutcome::Sent);
                }
            }
            None => {
                let pdu = Pdu::Push { confirmed: false, headers, data: body };
                let unit = connectionless::emit(id.0 as u8, &pdu);
                if unit.len() as u64 > self.config.connectionless_reply.0 {
                    return Err(PushError::TooLarge);
                }
                self.pushed.push_back((SocketAddr::new(push.to, PUSH_PORT), unit));
                self.tell(id, PushOutcome::Sent);
            }
        }
        self.counters.pushes += 1;
        self.settle(now);
        Ok(id)
    }

    /// What became of a push. At most 4096 wait here; if nobody takes them, the oldest go.
    pub fn poll_push(&mut self) -> Option<(PushId, PushOutcome)> {
        self.outcomes.pop_front()
    }

    pub(super) fn push_over(&mut self, push: Transaction, outcome: PushOutcome) {
        if let Some(id) = self.pushes.remove(&push) {
            self.tell(id, outcome);
        }
    }

    fn tell(&mut self, id: PushId, outcome: PushOutcome) {
        if self.outcomes.len() >= MOST_OUTCOMES {
            self.outcomes.pop_front();
        }
        self.outcomes.push_back((id, outcome));
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

fn compact(content_type: &str, headers: &[(String, String)], version: Version) -> Bytes {
    let encoder = Encoder::new(version);
    let mut out = Vec::new();
    encoder.content_type(content_type, &mut out);
    for (name, value) in headers {
        // A name that is none is left out.
        let _ = encoder.header(name, value, &mut out);
    }
    out.into()
}
