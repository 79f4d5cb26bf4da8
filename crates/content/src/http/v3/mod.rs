//! HTTP/3 on the wire.
//!
//! ```text
//! streams ──> feed, ended ──> input ──> frames ──> receiving.rs ──> Request, Response, Data, End, Reset, ..
//!                                                      │  roles, settings, tables
//! streams <── poll_transmit, written <── connection.rs <── request, respond, send, reset
//!             (settings and tables first, then heads, then DATA by urgency)
//! ```
//!
//! [`Connection`] is one end. It knows nothing of packets: its caller opens streams, gives it what comes on each of them (QUIC
//! orders the octets of a stream, and no more), and asks what to write where while there is room, so that a response that became
//! urgent goes first. Bodies pass through by reference both ways: a filler stays a filler. Flow control is the transport's: who
//! does not read a stream holds the peer back.
//!
//! | part | what it is |
//! |---|---|
//! | `varint.rs`, `frame.rs`, `settings.rs` | integers, frames, settings |
//! | `input.rs` | octets to frames |
//! | [`qpack`] | field sections to lines, with the static table alone or with one that grows |
//! | `stream.rs` | a request and its answer |
//! | `streams.rs` | [`Streams`]: what is below, and the loop that moves octets between both |
//!
//! Heads, priorities and the bounds on what leads nowhere are those of HTTP/2 (`../fields.rs`, `../priority.rs`, `../budget.rs`).
//!
//! Standards: RFC 9114, RFC 9204, RFC 9218. Left out: pushes (never allowed, never made), extended CONNECT and datagrams.

mod connection;
mod error;
mod frame;
mod input;
mod log;
pub mod qpack;
mod receiving;
mod settings;
mod stream;
mod streams;
#[cfg(test)]
mod tests;
mod varint;

pub use connection::{Connection, Event, Options, Transmit};
pub use error::{Error, ErrorCode};
pub use log::{Frame as LoggedFrame, Logged};
pub use settings::Settings;
pub use streams::{Read, Streams};

pub use super::priority::Priority;
