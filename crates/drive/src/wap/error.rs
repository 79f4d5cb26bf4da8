//! What can go wrong between a client and its gateway, in one line each.

use std::net::SocketAddr;
use std::time::Duration;
use std::{fmt, io};

use airloom_transports::wsp::status::Reason;

/// Why there is no answer.
#[derive(Debug)]
pub enum Error {
    /// A socket could not be opened or used.
    Socket {
        /// What was to be done.
        what: &'static str,
        /// With which address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Nobody has that port open.
    NobodyThere(SocketAddr),
    /// Nothing was heard in time.
    TimedOut(Duration),
    /// The gateway does not want this session, or ended it.
    Disconnected(Reason),
    /// The gateway aborted the request.
    Aborted(Reason),
    /// Gateways name each other without an end, or by an address that is none.
    Redirected,
    /// The request is larger than the gateway takes, or one is outstanding already.
    TooLarge,
    /// The gateway did not agree to that.
    NotAgreed(&'static str),
    /// This is not the name of a header.
    Header(String),
    /// The reply's headers cannot be read.
    Unreadable,
    /// The caller does not want to wait any longer.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Socket { what, address, error } => write!(f, "{what} {address}: {error}"),
            Error::NobodyThere(gateway) => write!(f, "there is no gateway at {gateway}: the port is closed"),
            Error::TimedOut(time) => {
                write!(f, "the gateway did not answer within {} s", time.as_secs_f64())
            }
            Error::Disconnected(reason) => write!(f, "the gateway ended the session: {reason}"),
            Error::Aborted(reason) => write!(f, "the gateway aborted the request: {reason}"),
            Error::Redirected => f.write_str("the gateway names others, and they lead nowhere"),
            Error::TooLarge => f.write_str("the request is larger than the gateway takes"),
            Error::NotAgreed(what) => write!(f, "the gateway did not agree to {what}"),
            Error::Header(name) => write!(f, "`{name}` is not the name of a header"),
            Error::Unreadable => f.write_str("the headers of the reply cannot be read"),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
