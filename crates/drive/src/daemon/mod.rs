//! Machines on real sockets: what `airloom serve` runs.
//!
//! A daemon is a loop around a machine that knows nothing of it: it feeds datagrams and answers of origin servers, then
//! sends what the machine has to say, and wakes up when that asks for it.

pub mod fetch;
pub mod origins;
