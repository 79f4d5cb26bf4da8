//! A forwarding proxy for HTTP/1.1 that keeps answers and uses them again.
//!
//! ```text
//!  clients ──> client.rs ── requests.rs ──> store? ──────────────> client.rs ──> clients
//!               reader        target.rs    store.rs   answers.rs      out
//!                  │          forward.rs   policy.rs     ▲
//!                  │ miss                                │ freshened (304), or new
//!                  ▼                                     │
//!            origins.rs: queue of each server ──> server.rs ──> servers ──> responses.rs
//! ```
//!
//! A request is answered from the store if that is allowed and fresh; checked with its server if it is not fresh but has a
//! validator; forwarded otherwise. Requests wait in a queue of their server until one of its connections is free or another
//! may be opened. Responses leave in the order of their requests; what a client does not take is not read from the server
//! beyond a bounded buffer, and the other way round for bodies of requests. CONNECT makes a tunnel to allowed ports.
//!
//! What a peer can make the proxy spend is bounded: heads by [`Limits`], bodies under way by `buffer`, the store and what is still to
//! go into it by `capacity`, time by the time-outs of the [`Config`]. Messages are framed anew on each side: no octet whose meaning two parsers might
//! see differently is passed on, and what one reader finds malformed ends its connection.
//!
//! The machine lives over [`Sockets`](airloom_base::Sockets): the simulated host and the daemon run the same one.
//!
//! Standards: RFC 9110, 9111, 9112. Left out: ranges from the store (such requests are forwarded), one fetch for several clients
//! that ask at once, trailers (dropped), upgrades, gateways to other protocols.
//!
//! [`Limits`]: airloom_content::http::v1::Limits

mod answers;
mod app;
mod client;
mod config;
mod counters;
mod directives;
mod exchange;
mod forward;
mod origins;
mod policy;
mod requests;
mod responses;
mod server;
mod store;
mod target;
#[cfg(test)]
mod tests;
mod tunnel;

pub use app::{HttpCache, build};
pub use config::{Config, Mode};
pub use counters::Counters;
pub use policy::date_text;
