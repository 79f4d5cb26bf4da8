//! HTTP/0.9 over QUIC: what the endpoints of the QUIC interop runner speak.
//!
//! A request is a stream with `GET /path` and a line end, the answer the octets of the file, then the stream's end: no fields, no
//! status. What there is not is answered by a reset. It shows what QUIC can do with as little above it as there can be, so what a
//! case of the runner wants (a Retry each time, ChaCha20 alone, new keys, early data) is said here and not to `serve h3` or `h3 get`.

mod client;
mod server;

pub use client::{Visits, get};
pub use server::{Options, serve};

use super::tls::Terms;

/// What it is called in TLS by those who speak it.
const ALPN: &[u8] = b"hq-interop";

/// What is told of a stream that is not answered.
const NO: noq_proto::VarInt = noq_proto::VarInt::from_u32(1);

fn terms(chacha20: bool, early: bool) -> Terms {
    Terms { alpn: ALPN, chacha20, early }
}
