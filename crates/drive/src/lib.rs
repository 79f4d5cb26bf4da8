//! The two clocks: virtual time and real time, two loops around the same [`World`](airloom_world::World).
//!
//! This is the crate that waits, reads clocks and opens devices and sockets: no other one does, below it.
//!
//! In it: the loops, runs and sweeps of simulations; laboratories (namespaces, devices, real programs); daemons and clients on
//! real sockets.
//!
//! Not here: any protocol's rules, which are those of the crates below in both clocks, and files (`record`).

pub mod batch;
pub mod daemon;
#[cfg(not(feature = "quinn"))]
pub mod h3;
#[cfg(target_os = "linux")]
pub mod real_time;
pub mod run;
pub mod sctp;
mod secret;
pub mod sweep;
pub mod virtual_time;
pub mod wap;
pub mod wwp;
