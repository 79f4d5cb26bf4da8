//! HTTP: messages, and how the versions put them on the wire.
//!
//! | part | what it is |
//! |---|---|
//! | [`message`] | heads of requests and responses, whatever the version: methods, status codes, fields |
//! | [`alt_svc`] | where else an origin is served |
//! | [`v09`] | requests of HTTP/0.9 on streams of QUIC |
//! | [`v1`] | HTTP/1.0 and 1.1: message syntax, lengths of bodies, chunks, persistence |
//! | [`v2`] | HTTP/2: frames, header blocks, streams, windows |
//! | [`v3`] | HTTP/3: frames, field sections and their table, streams of roles |
//! | [`error`], `fields.rs`, `priority.rs`, `huffman.rs`, `integer.rs`, `budget.rs`, `pieces.rs`, `filler.rs` | what HTTP/2 and 3 share: errors, heads as lines, priorities, codes, integers and strings, bounds, octets cut anywhere, long bodies |
//!
//! Standards: RFC 9110 (semantics), RFC 9112 (HTTP/1.1), RFC 1945 (HTTP/1.0), RFC 9113 (HTTP/2), RFC 9114 (HTTP/3), RFC 2616 where it differs. Left out:
//! content coding, ranges and conditional requests; nothing here opens a connection or waits.

pub mod alt_svc;
mod budget;
pub mod error;
mod fields;
mod filler;
mod huffman;
mod integer;
pub mod message;
mod pieces;
mod priority;
pub mod v09;
pub mod v1;
pub mod v2;
pub mod v3;

pub use priority::Priority;
