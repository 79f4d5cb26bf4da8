//! Our TCP behind the shared-object interface of packetdrill, in virtual time.
//!
//! ```text
//! cargo build -p airloom-packetdrill
//! LD_PRELOAD=$SO packetdrill --so_filename=$SO --so_flags=profile=linux SCRIPT.pkt
//! ```
//!
//! `so_flags` is a list `key=value,key=value`: `local` (our address, `192.168.0.1` without it), `mtu`, `notsent_lowat` (as the
//! sysctl), and every setting of TCP by its name in scenario files. The table of functions is in `table.rs`, the sockets behind
//! it in `stack.rs`, their options in `options.rs` and `info.rs`. `LD_PRELOAD` is for TCP_INFO, which packetdrill asks of the
//! process. `conformance/packetdrill` in this repository runs all scripts and turns their sysctls into settings.
//!
//! Time is virtual (`wait.rs`): it passes in `usleep`, in `netdev_receive` up to the moment at which the next packet leaves, and a
//! little at each look at the clock. Calls on blocking sockets wait for another thread to make something happen.
//!
//! Left out: `epoll`, `pipe`, `splice`, options of what our TCP does not have, and flags of reads but MSG_DONTWAIT and MSG_TRUNC; they
//! fail with `ENOSYS`, `ENOPROTOOPT` or `EOPNOTSUPP`.

pub mod info;
mod options;
pub mod stack;
pub mod table;
mod wait;

pub use table::{Interface, packetdrill_interface_init};
