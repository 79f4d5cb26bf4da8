//! Machines on real sockets: what `airloom serve` runs.
//!
//! A daemon is a loop around a machine that knows nothing of it: it feeds datagrams and answers of origin servers, then
//! sends what the machine has to say, and wakes up when that asks for it.

mod clock;
pub mod fetch;
mod http_face;
pub mod origins;
pub mod settings;
mod stop;
mod udp;
pub mod wap_gateway;
