//! PHS: circuits of 32 or 64 kbit/s with PIAFS, which repeats what the radio spoils.
//!
//! ```text
//!   host ── PPP frames, serial line ──► [TAP] ═══ a frame of 640 bits ═══ [TAP] ── serial line ──► host
//!                                         ▲       every 10 ms (or 20)      ▲
//!                                         └──── both ways, in step ────────┘
//! ```
//!
//! A packet becomes a PPP frame (FCS-16, octet stuffing), crosses the serial line into the terminal adapter and is part of
//! an octet stream there. Every interval one frame of 640 bits leaves in each direction with up to 73 octets of that
//! stream, its own number, the number that its sender wants next, and that of the frame it received last. What is not
//! acknowledged a round trip later is sent again before anything new, and while there is nothing new what may still be under
//! way is sent again and again. The far end puts the stream together and hands it over its own serial line.
//!
//! A best-effort circuit that hears nothing for a while falls from 64 to 32 kbit/s and tries 64 again later. A call that is set
//! up comes about only if enough of the frames arrive.
//!
//! A circuit on which nothing waits and everything is acknowledged costs nothing: frames without user data are not looked
//! at then, though the radio would send them.
//!
//! | file | concern |
//! |---|---|
//! | `config.rs` | the scenario's keys; times |
//! | `number.rs`, `frame.rs` | numbers from 1 to 127; what a frame says, and its octets |
//! | `sender.rs`, `receiver.rs` | the repetition procedure |
//! | `tap.rs` | the terminal adapter: serial line, PPP frames, octet stream |
//! | `circuit.rs` | one circuit: grid, air, the call |
//! | `bearer.rs` | the [`Bearer`](airloom_base::Bearer): mobiles, changes, summary |
//! | `records.rs` | what it tells about frames |
//!
//! **Sources.** The text of the PIAFS standard is not public. Sizes and rates are those of public descriptions; numbers, REQ,
//! ACK and the order of repetitions are read from the monitor's log in Kojima and others 2000, Fig. 2; which bit of the
//! three octets of header means what is ours, as are the window of 16 and the times of set-up and release. PPP: RFC 1661, 1662.
//!
//! **Left out, and why.** Negotiation and synchronisation frames (their format is not public: the time they take is
//! `set_up`); TDMA bursts and hand-over (they appear as the loss process).

mod bearer;
mod circuit;
mod config;
mod frame;
mod number;
mod receiver;
mod records;
mod sender;
mod tap;
#[cfg(test)]
mod tests;

pub use bearer::Piafs;
pub use config::{BestEffort, PiafsConfig};
