//! HTTP/2 on the wire.
//!
//! ```text
//! octets ──> input ──> frames ──> receiving.rs ──> Request, Response, Data, End, Reset, ..
//!                                     │  streams, windows, settings, header table
//! octets <── poll_transmit <── connection.rs <── request, respond, send, reset
//!            (answers and heads first, then DATA by urgency)
//! ```
//!
//! [`Connection`] is one end. What it is given is cut anywhere; what it gives is asked for when the transport has room, so that
//! a response that became urgent goes first. Bodies pass through by reference both ways: a filler stays a filler, and a
//! response of a gigabyte takes as much memory as one of ten octets. Octets of DATA open the windows again when they are
//! handed out: who does not poll holds the peer back.
//!
//! | part | what it is |
//! |---|---|
//! | `frame.rs`, `settings.rs` | frame header, payloads, settings |
//! | `input.rs` | octets to frames |
//! | `hpack.rs` | header blocks to lines (through libraries) |
//! | `flow.rs`, `stream.rs` | windows, states of a stream |
//!
//! What HTTP/3 has as well is beside this folder: `fields.rs` (lines to heads), `priority.rs` (RFC 9218: `u` and `i`), and
//! `budget.rs` (bounds on what leads nowhere: floods of pings, settings, empty frames, CONTINUATION, rapid resets).
//!
//! Standards: RFC 9113, RFC 7541, RFC 9218. Left out: pushes (forbidden to the peer, never made), the priorities of RFC 7540 (read
//! over), and the upgrade from HTTP/1.1 that RFC 9113 retired.

mod connection;
mod error;
mod flow;
mod frame;
mod hpack;
mod input;
mod receiving;
mod settings;
mod stream;
#[cfg(test)]
mod tests;

pub use connection::{Connection, Event, Options};
pub use error::{Error, ErrorCode};
pub use frame::PREFACE;
pub use settings::Settings;

pub use super::priority::Priority;
