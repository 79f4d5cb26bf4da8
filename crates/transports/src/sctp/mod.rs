//! SCTP (RFC 9260): messages on many streams over one association, each stream in order by itself.

pub mod chunk;
pub mod wire;
