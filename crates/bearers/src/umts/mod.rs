//! UMTS: a dedicated channel with RLC acknowledged mode, its core network and, if wanted, its RRC states.
//!
//! ```text
//!             mobile                        UTRAN                      core
//!   IP ──► [RLC AM] ══ blocks, one set ══ [RLC AM] ──► core_delay ──► IP
//!             ▲        a TTI, radio_delay    ▲
//!             └──────── DCH (dch.rs) ────────┘
//! ```
//!
//! A packet towards the mobile crosses the core network (`core_delay`), waits in the RNC's RLC buffer, is cut into
//! PDUs of fixed size and sent in transport block sets, one a transmission time interval (TTI), on a grid that is
//! aligned to the beginning of the run (the uplink's to `uplink_offset` later). A set arrives one TTI (its transmission) and `radio_delay` (processing, Iub)
//! later. `channel/` decides which blocks survive, each on its own or all of a TTI together. STATUS PDUs travel on
//! the grid of the other direction, share its capacity and get lost like everything else. Packets towards the
//! network take the same way in the other order.
//!
//! One bearer object holds all mobiles of a cell, each with its own dedicated channel. It has events only while
//! something is to be sent, in flight, or timed; an idle mobile costs nothing.
//!
//! | file | concern |
//! |---|---|
//! | `config.rs` | the scenario's keys |
//! | `dch.rs` | rates, TTIs, blocks a TTI; sets in flight |
//! | `bearer.rs` | the [`Bearer`](airloom_base::Bearer): queues, core delay, changes, summary |
//! | `mobile.rs` | one mobile: both RLC entities and what is between them |
//! | `records.rs` | what it tells about blocks, air time and radio states |
//! | `rrc.rs` | IDLE, FACH, DCH and the switching between them |
//! | `rlc/am/` | acknowledged mode (TS 25.322) |
//! | `hsdpa/` | the downlink's shared channel in place of the mobiles' own |
//!
//! **Standards.** RLC: TS 25.322. Block sizes and TTIs: TS 34.108 6.11 (reference radio bearers of 336-bit blocks).
//!
//! **Left out, and why.** MAC multiplexing of several channels (one logical channel is modelled, so there is no MAC
//! header, as in the reference bearers); power control and handover (they appear as the error process chosen); PDCP
//! header compression (off in the networks modelled); the contention for the RACH (each mobile has its rate for itself,
//! as if no two chose the same access slot; the FACH is shared); HSUPA.

mod bearer;
mod config;
mod dch;
mod hsdpa;
mod mobile;
mod records;
pub mod rlc;
mod rrc;
mod summary;
#[cfg(test)]
mod tests;

pub use bearer::UmtsDch;
pub use config::UmtsDchConfig;
pub use hsdpa::UmtsHsdpaConfig;
pub use rrc::RrcConfig;
