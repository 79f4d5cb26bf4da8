//! SCTP on real sockets: associations in UDP (RFC 6951), for machines whose kernel has no SCTP.
//!
//! ```text
//!   user ── send, receive ──> Endpoint ── octets ──> UDP socket
//!                               │  which association: address and ports
//!                               └─ airloom_transports::sctp, the machine that the simulator runs
//! ```
//!
//! | part | file | standard |
//! |---|---|---|
//! | packets in datagrams, ports of the peer | `encapsulation.rs` | RFC 6951, 5 |
//! | associations, time, waiting | `endpoint.rs` | |
//!
//! Left out: SCTP straight over IP beside UDP, several addresses.

mod encapsulation;
mod endpoint;

pub use encapsulation::PORT;
pub use endpoint::{Endpoint, Event, Id, What};
