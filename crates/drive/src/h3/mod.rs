//! HTTP/3 on real sockets: files served (`airloom serve h3`) and fetched (`airloom h3 get`).
//!
//! ```text
//!  UDP ──> endpoint.rs ──> QUIC (noq-proto, TLS by rustls) ──> link.rs ──> content::http::v3 ──> files.rs, client.rs
//! ```
//!
//! Beside it HTTP/0.9 over QUIC, which is what endpoints of the QUIC interop runner speak ([`hq`]).
//!
//! QUIC is the library that simulated hosts have, HTTP/3 the machine that they have; here are the clock, the socket, the certificates
//! and the files. One thread does it all: what a peer does not read is held back by QUIC's windows, and files are read as there is
//! room, so that memory does not grow with them.

mod client;
mod clock;
mod endpoint;
mod files;
pub mod hq;
mod link;
mod qlog;
mod server;
mod socket;
#[cfg(test)]
mod tests;
mod tls;

pub use client::{Failure, Fetched, Fetching, Wanted, get};
pub use server::{Options, serve};
pub use tls::Trust;
