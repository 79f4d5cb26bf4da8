//! HTTP: messages, and how the versions put them on the wire.
//!
//! | part | what it is |
//! |---|---|
//! | [`message`] | heads of requests and responses, whatever the version: methods, status codes, fields |
//! | [`v1`] | HTTP/1.0 and 1.1: message syntax, lengths of bodies, chunks, persistence |
//! | [`v2`] | HTTP/2: frames, header blocks, streams, windows, priorities |
//!
//! Standards: RFC 9110 (semantics), RFC 9112 (HTTP/1.1), RFC 1945 (HTTP/1.0), RFC 9113 (HTTP/2), RFC 2616 where it differs. Left out:
//! content coding, ranges and conditional requests; nothing here opens a connection or waits.

pub mod message;
pub mod v1;
pub mod v2;
