//! Exchanges over HTTP/1.1 for machines that have something to ask: a gateway, an initiator of pushes.
//!
//! What is asked and what comes of it ([`FetchRequest`], [`Fetched`]) is the seam between such a machine and whoever runs HTTP for
//! it; [`Fetcher`] does so over the streams of a simulated host.

mod connection;
mod fetcher;
#[cfg(test)]
mod tests;

use airloom_content::http::message::{Fields, Method};
use bytes::Bytes;
use url::Url;

pub use fetcher::{Fetcher, Settings};

/// The name of one HTTP exchange; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub u64);

/// One request to an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// Method.
    pub method: Method,
    /// Absolute address, `http` or `https`, without a fragment or the name of a user.
    pub url: Url,
    /// All fields of the request in HTTP/1.1, `Host` and `Content-Length` among them; what is about the connection alone
    /// (`Connection`) is the fetcher's.
    pub fields: Fields,
    /// Body; empty if there is none.
    pub body: Bytes,
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchOrder {
    /// Ask an origin. Redirections are answers: the machine follows them itself, by further orders.
    Start {
        /// The exchange's name.
        id: FetchId,
        /// What to ask.
        request: Box<FetchRequest>,
    },
    /// Nobody is interested in this one any more. What comes of it nevertheless is ignored.
    Cancel(FetchId),
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The head of the final response; heads of interim ones (1xx) are not told.
    Head {
        /// Status code.
        status: u16,
        /// Fields as they came.
        fields: Fields,
    },
    /// A piece of the body with its content coding, but without a transfer coding.
    Chunk(Bytes),
    /// The body is complete, as far as the fetcher can tell. The machine may compare it with `Content-Length`.
    End,
    /// Nothing more comes.
    Failed(FetchError),
}

/// Why an order could not be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The origin's address is one that must not be asked. To find that out is the fetcher's job: it alone knows to which
    /// addresses a name resolves. It has to look at those that it connects to, of every order.
    #[error("The origin's address must not be asked")]
    Forbidden,
    /// The origin's name has no address.
    #[error("The origin's name has no address")]
    Unresolved,
    /// The origin cannot be connected to.
    #[error("The origin cannot be connected to")]
    Unreachable,
    /// The scheme is one that the fetcher does not speak.
    #[error("The address has a scheme that is not spoken here")]
    Unsupported,
    /// The origin took too long.
    #[error("The origin takes too long")]
    TimedOut,
    /// What came is no HTTP, or was broken off.
    #[error("The origin's answer is no HTTP, or was broken off")]
    Broken,
    /// The fetcher has no room for another exchange.
    #[error("There is no room for another exchange")]
    Busy,
}

impl FetchError {
    /// The status that tells a client of it.
    pub fn status(self) -> u16 {
        match self {
            FetchError::Forbidden => 403,
            FetchError::Unsupported => 501,
            FetchError::Unresolved | FetchError::Unreachable | FetchError::Broken => 502,
            FetchError::Busy => 503,
            FetchError::TimedOut => 504,
        }
    }
}
