//! Our TCP behind the shared-object interface of packetdrill, in virtual time.
//!
//! ```text
//! cargo build -p airloom-packetdrill
//! packetdrill --so_filename=target/debug/libairloom_packetdrill.so --so_flags=profile=linux SCRIPT.pkt
//! ```
//!
//! `so_flags` is a list `key=value,key=value`: `local` (our address, `192.168.0.1` without it), `mtu`, and every setting
//! of TCP by its name in scenario files. The table of functions is in `table.rs`, the sockets behind it in `stack.rs`.
//!
//! Time is virtual: it passes in `usleep`, and in `netdev_receive` up to the moment at which the next packet leaves.
//! Calls on blocking sockets wait for another thread to make that happen, as packetdrill's own do.
//!
//! Left out: `epoll`, `pipe`, `splice`, and options of sockets that no script of TCP's own behaviour needs; they fail
//! with `ENOSYS` or `ENOPROTOOPT`. Options of a connection are those that its socket had when it was opened.

pub mod stack;
pub mod table;

pub use table::{Interface, packetdrill_interface_init};
