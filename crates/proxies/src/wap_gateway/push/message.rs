//! What is to be pushed, and what can become of it.

use std::net::IpAddr;

use airloom_base::Instant;
use airloom_transports::wsp::status::Reason;
use bytes::Bytes;

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
    /// Not before then.
    pub after: Option<Instant>,
    /// Not sent any more from then on.
    pub before: Option<Instant>,
}

impl Push {
    /// Octets that are held while it waits.
    pub(super) fn held(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.content_type.len() + headers + self.body.len()
    }
}

/// Why a push was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushError {
    /// The content is not what its type says: where and why.
    Content(String),
    /// It would have to be confirmed, no session of the client takes such pushes now, and clients are not asked for one.
    NotPossible,
    /// It is larger than the client takes.
    TooLarge,
    /// It is too late.
    Expired,
    /// There are too many already.
    Busy,
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
    /// The time until which it was to be sent was over before it could be.
    Expired,
    /// The client was asked to open a session and did not.
    TimedOut,
    /// Whoever submitted it took it back.
    Cancelled,
    /// The session that the client opened does not take it.
    Undeliverable,
}
