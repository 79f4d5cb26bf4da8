//! Split TCP: a proxy that ends its clients' connections and opens others onward, so that each side of it recovers from its
//! own losses with its own round-trip time (RFC 3135, 2.4 and 3.2).
//!
//! ```text
//!   client ── connection ──> [ read ── work ── way of bounded length ── write ] ── connection ──> server
//!          <── connection ── [ write ── way of bounded length ── work ── read ] <── connection ──
//! ```
//!
//! A way that is full is not read from, so the sender's window closes: what a fast side has sent waits at its source. The end
//! of a direction is passed on when all before it was; a reset at once. On a simulated host the proxy is an application
//! that takes over connections which pass the host ([`Passing`](airloom_base::service::Passing)), or waits for
//! them at its own address.

mod config;
mod pair;
mod proxy;

pub use config::{Config, Connects, Mode};
pub use proxy::{Counters, SplitTcp, build};
