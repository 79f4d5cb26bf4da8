//! SCTP (RFC 9260): messages on many streams over one association, each stream in order by itself.
//!
//! ```text
//!   send, write ─► outbound.rs (scheduler.rs) ─► output.rs ─► wire.rs, chunk/ ─► poll_transmit
//!                                                   ▲ window: path.rs, in flight: flight.rs
//!                                  timers.rs ───────┤
//!   handle_packet ─► wire.rs ─► arrival.rs ─────────┘
//!                                  ├► inbound.rs ─► receive, read
//!                                  └► handshake.rs (cookie.rs), shutdown.rs
//! ```
//!
//! | part | file | standard |
//! |---|---|---|
//! | common header, walk over chunks | `wire.rs` | RFC 9260, 3 |
//! | chunks, parameters, causes | `chunk/` | RFC 9260, 3.3; 8260; 3758; 6525; 4820; 4960 (ECN) |
//! | opening, collisions | `handshake.rs`, `cookie.rs` | RFC 9260, 5 |
//! | what arrives | `arrival.rs`, `inbound.rs` | RFC 9260, 6.2 to 6.9; 8260, 2 |
//! | what is sent | `output.rs`, `outbound.rs`, `scheduler.rs` | RFC 9260, 6.1, 6.10; 8260, 3 |
//! | acknowledgement, loss, giving up | `flight.rs` | RFC 9260, 6.2.1, 6.3, 7.2.4; 3758; 7496 |
//! | windows, round trips | `path.rs` | RFC 9260, 6.3, 7.2 |
//! | timeouts, heartbeats, path failure | `timers.rs` | RFC 9260, 6.3.3, 8 |
//! | end | `shutdown.rs` | RFC 9260, 9 |
//! | streams that begin anew, more of them | `reconfiguration.rs`, `requests.rs` | RFC 6525 |
//! | settings | `config.rs` | |
//!
//! **Nothing is kept for an INIT**: the answer carries all in a cookie signed with SipHash-2-4 (128 bits), and an association
//! comes into being by the COOKIE ECHO. TSNs are 64 bits wide inside.
//!
//! For applications over *streams* what is written becomes messages of a full chunk each (or of `message` octets), and what is
//! read is their octets in order. `finish` shuts the association down: SCTP has no half close.
//!
//! The peer's addresses are told to the host ([`peer_addresses`](airloom_base::Transport::peer_addresses)), which adds the paths.
//!
//! Left out: authentication and dynamic addresses (RFC 4895, 5061).

mod arrival;
mod association;
pub mod chunk;
pub mod config;
mod cookie;
mod flight;
mod handshake;
mod inbound;
mod octets;
mod outbound;
mod output;
mod partial_delivery;
mod path;
mod protocol;
mod reconfiguration;
mod requests;
mod restart;
pub mod scheduler;
mod serial;
mod shutdown;
pub mod state;
#[cfg(test)]
mod tests;
mod timers;
pub mod wire;

pub use association::Association;
pub use config::{Config, Profile};
pub use inbound::Message;
pub use outbound::{Outgoing, Reliability};
pub use protocol::Sctp;
pub use requests::{Answer, Reconfigured, Request};
