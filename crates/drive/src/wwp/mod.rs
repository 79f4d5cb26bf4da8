//! WWP in real time: the simulated machine over UDP, one stream of octets each way.
//!
//! ```text
//!   Session ── write, read, finish ── the machine (airloom_transports::wwp) ── envelope.rs ── UDP
//! ```
//!
//! What UDP adds to a simulated wire is strangers. Every datagram is sealed with the session's name, which only who receives at the
//! opener's address can know ([`envelope`]), so nobody beside the path can open, feed or end a session, and nobody is sent more
//! than was heard from him.

mod envelope;
mod failure;
mod listener;
mod session;
mod socket;

pub use failure::Failure;
pub use listener::Listener;
pub use session::Session;
