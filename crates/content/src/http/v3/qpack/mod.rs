//! Field sections (RFC 9204): lists of lines written with a static table, and with one that grows.
//!
//! ```text
//! lines ──> Encoder ──> section of a stream ──> Decoder ──> lines
//!              │  ▲                                │  ▲
//!              │  └── decoder stream: acknowledged ┘  │
//!              └────── encoder stream: new entries ───┘
//! ```
//!
//! A section may mean entries that have not come yet: streams of QUIC overtake each other. Such a stream is blocked until they have.
//! How many streams may be is for the decoder to say, and by itself it says none, as it says that its table has no room: the
//! static table and literals do then.
//!
//! | part | what it is |
//! |---|---|
//! | `static_table.rs` | the 99 lines that everybody knows |
//! | `table.rs` | the entries that were added |
//! | `encode.rs`, `decode.rs` | sections and instructions, written and read |
//! | `sent.rs` | sections that were written and not acknowledged |
//!
//! The encoder never duplicates an entry and never means one behind the base; the decoder reads all that there is.

mod decode;
mod encode;
mod sent;
mod static_table;
mod table;
#[cfg(test)]
mod tests;

pub use decode::{Decoder, Section};
pub use encode::Encoder;

pub use crate::http::integer::Malformed;
