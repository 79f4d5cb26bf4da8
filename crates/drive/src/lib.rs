//! The two clocks: virtual time and real time, two loops around the same [`World`](airloom_world::World).
//!
//! This is the only crate that waits, reads a clock or opens a device.

pub mod batch;
pub mod daemon;
#[cfg(target_os = "linux")]
pub mod real_time;
pub mod run;
pub mod sctp;
mod secret;
pub mod sweep;
pub mod virtual_time;
pub mod wap;
pub mod wwp;
