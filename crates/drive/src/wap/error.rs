//! What can go wrong between a client and its gateway, in one line each.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use airloom_transports::wsp::status::Reason;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A socket could not be opened or used.
    #[error("{what} {address}: {error}")]
    Socket {
        /// What was to be done.
        what: &'static str,
        /// With which address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Nobody has that port open.
    #[error("there is no gateway at {0}: the port is closed")]
    NobodyThere(SocketAddr),
    /// Nothing was heard in time.
    #[error("the gateway did not answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The gateway does not want this session, or ended it.
    #[error("the gateway ended the session: {0}")]
    Disconnected(Reason),
    /// The gateway aborted the request.
    #[error("the gateway aborted the request: {0}")]
    Aborted(Reason),
    /// Gateways name each other without an end, or by an address that is none.
    #[error("the gateway names others, and they lead nowhere")]
    Redirected,
    /// The request is larger than the gateway takes, or one is outstanding already.
    #[error("the request is larger than the gateway takes")]
    TooLarge,
    /// The gateway did not agree to that.
    #[error("the gateway did not agree to {0}")]
    NotAgreed(&'static str),
    /// This is not the name of a header.
    #[error("`{0}` is not the name of a header")]
    Header(String),
    /// The reply's headers cannot be read.
    #[error("the headers of the reply cannot be read")]
    Unreadable,
    /// The caller does not want to wait any longer.
    #[error("interrupted")]
    Interrupted,
}
