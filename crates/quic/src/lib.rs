//! QUIC (RFC 9000, 9001, 9002, 9221) as one more transport of the house: streams that open and end one by one, unreliable datagrams,
//! connections that survive a change of address.
//!
//! The protocol itself is a library's, noq-proto. This crate says what a host of the house needs of it:
//!
//! ```text
//!   host    --->  protocol  (units of no connection, listening ports)        config, profile: what can be set
//!                    |                                                       clock: moments of the library
//!   streams <--->  connection  (one library connection; streams: its data)   pace: its congestion controllers; bbr: one of them
//!                    |                                                       ways: its paths; guard: what goes to strangers
//!                    |
//!                  host  (endpoint, names, keys)  --->  session  (handshake, protection)
//!                                                       qlog: what becomes of each packet, told one by one
//! ```
//!
//! A stream of an application that knows of streams has QUIC's own number. One that does not (`bulk`, FTP, HTTP/1) has stream 0: what
//! it writes goes by the first unidirectional stream of its end, what it reads comes by that of the other, since either may speak
//! first. Such a connection ends when both have finished, as TCP's does.
//!
//! Not here: HTTP/3 (`content`), sockets (`drive`), data on several paths at a time.

#[cfg(not(feature = "quinn"))]
mod bbr;
mod clock;
mod config;
mod connection;
mod datagram;
mod dateless;
mod guard;
mod host;
mod keylog;
mod library;
mod pace;
mod profile;
mod protocol;
mod qlog;
mod real;
mod secret;
mod session;
mod streams;
pub mod tls;
mod ways;

pub use config::{Config, Controller, InitialWindow, InitialWindowRule, Migration, Pacing, Session};
pub use connection::Connection;
pub use guard::Guard;
pub use keylog::KeyLog;
pub use pace::cubic;
pub use profile::Profile;
pub use protocol::Quic;
pub use qlog::{About, Opening, Trace};
