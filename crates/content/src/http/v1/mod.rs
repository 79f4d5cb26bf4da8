//! HTTP/1.0 and HTTP/1.1 on the wire.
//!
//! ```text
//! octets from a stream ──> reader ──> Head, Data, Data, .., End, Head, ..
//!                            │
//!        head.rs: collects up to the empty line, then parses (and writes) heads
//!        length.rs: which rule ends the body          chunked.rs: chunks and trailers
//! persist.rs: does the connection live on afterwards?
//! ```
//!
//! [`RequestReader`] and [`ResponseReader`] take what a stream gives, cut anywhere, and hand on what it means.
//! Bodies pass through by reference: a filler stays a filler. Memory is bounded by [`Limits`]; every malformed
//! message is an [`Error`] that knows the status a server answers with. Requests are read strictly, because what
//! two parsers read differently can be used to smuggle a request past one of them; responses are read as
//! leniently as RFC 9112 allows. Left out: upgrade to other protocols, and decoding of transfer codings other than
//! `chunked`.

mod chunked;
mod error;
mod head;
mod length;
mod persist;
mod reader;

pub use chunked::chunk_size_line;
pub use error::Error;
pub use head::{Limits, parse_request, parse_response};
pub use length::{BodyLength, Framing, of_request, of_response};
pub use persist::{Receiver, persists};
pub use reader::{Item, RequestReader, ResponseReader};
