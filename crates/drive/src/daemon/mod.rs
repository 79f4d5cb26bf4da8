//! Machines on real sockets: what `airloom serve` runs.
//!
//! A daemon is a loop around a machine that knows nothing of it: it feeds datagrams and answers of origin servers, then
//! sends what the machine has to say, and wakes up when that asks for it.

pub mod browse;
mod browser_guard;
mod clock;
pub mod fetch;
mod http_cache;
mod http_face;
pub(crate) mod listening;
pub mod origins;
mod prometheus;
pub mod settings;
mod split_tcp;
pub(crate) mod stop;
pub mod streams;
pub(crate) mod udp;
pub mod wap_gateway;

pub use listening::CannotListen;

/// Seconds since 1970 by the system's calendar.
pub fn today() -> u64 {
    clock::Clock::today()
}
