//! TCP (RFC 9293): a byte stream each way, with the recovery and congestion control of its successive standards.
//!
//! ```text
//!      write ─► send.rs ──► output.rs ──► wire.rs ──► poll_transmit
//!                 ▲            ▲ what leaves: recovery.rs (octets/ or segments/), window: congestion/
//!               acks.rs ───────┘ rtt.rs
//!                 ▲
//!   handle_packet ─► wire.rs ─► arrival.rs ──► recv.rs ──► read
//!                                  └► ack_policy.rs (when to acknowledge)
//! ```
//!
//! `output.rs`, `acks.rs`, `arrival.rs` and `timeouts.rs` are the connection's (`connection/`); all else are parts that do not
//! know it.
//!
//! | part | file | standard |
//! |---|---|---|
//! | header and options | `wire.rs` | RFC 9293 3.1, 2018, 7323 |
//! | states, segment arrival | `state.rs`, `connection/arrival.rs` | RFC 9293 3.3.2, 3.10.7; 5961 |
//! | what is sent | `connection/output.rs`, `send.rs` | RFC 9293 3.7, 3.8; 896; 3042 |
//! | in which groups | `offload.rs` | Linux |
//! | acknowledging | `recv.rs`, `ack_policy.rs` | RFC 5681 4.2; 2018; 2883 |
//! | buffers that grow | `autotuning.rs` | Linux |
//! | acknowledgements | `connection/acks.rs` | RFC 9293 3.8, 3.10.7.4 |
//! | which recovery, and what it is lent | `recovery.rs`, `sender.rs` | |
//! | loss and recovery by the octet | `octets/` | RFC 5681, 6582, 6675, 6937, 9937; 3522, 4015, 5682, 3708 |
//! | the same by the segment | `segments/` | RFC 8985, 6937, 9937, 5682, 3522, 3708; Linux |
//! | window | `congestion/` | RFC 5681, 3465, 2861, 3390, 6928 |
//! | what was sent again for nothing, counted | `needless.rs` | RFC 2883, 3522, 5682 |
//! | probes before anything is repaired | `probing.rs` | TCP-Probing |
//! | timeouts | `rtt.rs`, `timers.rs`, `connection/timeouts.rs` | RFC 6298, 7323 |
//! | is the peer there? | `liveness.rs` | RFC 9293 3.8, 5961 |
//! | after the end | `time_wait.rs` | RFC 9293 3.6 |
//! | options and questions of a socket | `connection/socket.rs` | Linux |
//! | settings | `config.rs`, `profile.rs` | |
//!
//! Sequence numbers are 64 bits wide inside a connection, so that they never wrap; the wire carries the low half. *Pipe*
//! is kept as counters over a sorted list of intervals, not as a scan over segments. Timers are moments; the deadline the
//! host sees may be early, never late, so that a timer which moves with every packet costs one wake-up per timeout.
//!
//! Left out: the urgent mechanism (read over, not delivered: no application here uses it) and TCP Fast Open. The response of
//! RFC 4015 to spurious timeouts (`octets/eifel.rs`) goes with RFC 6675; where recovery counts segments it is Linux's undo.
//! Which settings go together is in `combine.rs`.

mod ack_policy;
mod autotuning;
mod combine;
pub mod config;
pub mod congestion;
mod connection;
mod ecn;
mod events;
mod liveness;
mod needless;
mod octets;
mod offload;
mod pace;
mod pieces;
mod probing;
pub mod profile;
mod protocol;
pub mod ranges;
mod recovery;
mod recv;
mod rtt;
mod segments;
mod send;
mod sender;
pub mod state;
mod time_wait;
mod timers;
pub mod wire;

pub use config::Config;
pub use connection::socket;
pub use profile::Profile;
pub use protocol::Tcp;
