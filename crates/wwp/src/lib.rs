//! WWP, the Wave and Wait Protocol (Tsaoussidis, Lahanas, Badr 2000): data in waves of a fixed number of segments, the next
//! wave as large as the receiver says, and probes instead of data where a wave was not answered.
//!
//! ```text
//!   write ─► queue.rs ─► send.rs: waves ──────────────► poll_transmit
//!                           ▲   └ silence: probes           (wire.rs, content.rs)
//!                           │ N-S_ACK: what is missing, next level
//!   handle_packet ─► connection.rs ─► receive.rs ─► read
//!                           │            ├ wave complete: levels.rs
//!                           │            └ probed twice:  decision.rs
//!                           └► setup.rs: opening, end
//! ```
//!
//! | part | file | paper |
//! |---|---|---|
//! | header, kinds of segments | `wire.rs` | 2.2, 2.3 (layout ours) |
//! | what control segments carry | `content.rs` | ours |
//! | waves, SEND_T, PROBE_T | `send.rs` | 2.2, 2.3, figure 1 |
//! | wave measured, probes answered, N-S_ACK | `receive.rs` | 2.2, 2.3 |
//! | next level after a whole wave | `levels.rs` | 2.2 |
//! | next level after a probe cycle | `decision.rs` | 2.3 (table ours) |
//! | no level above what a queue took | `ceiling.rs` | ours |
//! | segments that the path does not take whole | `pieces.rs` | ours |
//! | opening, end | `setup.rs` | ours |
//! | settings | `config.rs` | |
//!
//! A connection carries data both ways; each direction has a sender and a receiver of its own. The paper refers to another one
//! for the header, the opening and the decision table, of which only the abstract was at hand. What stands here for those is ours
//! and is marked `ASSUMPTION(wave-and-wait)`.
//!
//! **Ports.** Six octets of header have no room for them. By default four octets stand in front of every header for them;
//! with `ports = false` a host has one connection at a time, and its ports are told in the SYN.
//!
//! **Flow control** is level 0: a receiver whose buffer is full lets the sender probe until there is room.
//!
//! Left out: checksums over data (a link's must do; over UDP each datagram has a seal).

mod ceiling;
pub mod config;
mod connection;
mod content;
pub mod decision;
pub mod levels;
mod pieces;
mod protocol;
mod queue;
mod receive;
mod round_trip;
mod send;
mod setup;
#[cfg(test)]
mod tests;
pub mod wire;

pub use config::{Config, Favour};
pub use connection::Connection;
pub use protocol::Wwp;
