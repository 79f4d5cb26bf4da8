//! EGPRS: RLC/MAC acknowledged mode on timeslots that the mobiles of a cell share.
//!
//! ```text
//!     mobile                            air                        packet control unit
//!   IP ─► SNDCP/LLC ─► [RLC] ══ radio blocks, 20 ms, ══ [RLC] ─► LLC/SNDCP ─► IP (Gb, Gi: links of their own)
//!                        ▲      1..8 timeslots            ▲
//!                        └─ named by the USF ─┐     ┌─ scheduler: round robin over mobiles,
//!                           polled by RRBP ───┴─────┘  per timeslot and block period
//! ```
//!
//! A packet becomes LLC frames (`llc.rs`), these are cut into RLC data blocks of the coding scheme's size, numbered
//! modulo 2048. In each block period of 20 ms the network decides for each timeslot whose block it sends and, by the
//! uplink state flag, who may send in the next. Downlink blocks poll the mobile now and then (RRBP): three to six
//! periods later it answers with an EGPRS PACKET DOWNLINK ACK/NACK, in an uplink block promised for that. Uplink blocks
//! are acknowledged by PACKET UPLINK ACK/NACK, in a downlink block of the control channel's timeslot. Reports are the
//! true octets, bitmaps cut or compressed to what one control block holds; they get lost like everything else.
//! Flows exist while there is something to send and some time longer (`tbf.rs`), or always.
//!
//! One bearer object holds all mobiles of a cell. It has events only while something is to be sent, in the air or
//! timed. `channel/` decides which blocks survive, by block period and timeslot: who sends does not matter.
//!
//! | file | concern |
//! |---|---|
//! | `config.rs` | the scenario's keys |
//! | `coding_scheme.rs` | MCS-1 to MCS-9 |
//! | `wire/` | radio blocks and reports, bit for bit |
//! | `llc.rs` | SNDCP and LLC framing, frames from queue to delivery |
//! | `rlc/` | acknowledged mode: sender, receiver, layout of blocks |
//! | `packet_flows.rs` | priorities of packets by their streams |
//! | `radio.rs` | which blocks survive |
//! | `link_adaptation.rs` | the scheme follows what was measured |
//! | `grid.rs` | when blocks begin |
//! | `tbf.rs` | temporary block flows |
//! | `mobile.rs` | one mobile, both ends |
//! | `scheduler.rs` | the scheduler |
//! | `bearer.rs` | the [`Bearer`](airloom_base::Bearer) |
//! | `records.rs`, `gsmtap.rs`, `summary.rs` | what it tells |
//!
//! **Standards.** RLC/MAC: TS 44.060. LLC: TS 44.064. SNDCP: TS 44.065. Multiframe: TS 45.002.
//!
//! **Left out, and why.** Contention on the RACH and lost assignments (set-up takes a configured time); power control,
//! timing advance and handover (they appear as the error process chosen); GPRS coding schemes CS-2 to CS-4; errors of the
//! block header apart from those of the data (the data of a radio block whose data are all lost are not heard, nor is a poll
//! in it; what is measured of it counts); measurements by timeslot and of interference; ciphering, compression of headers or
//! data in SNDCP (off); several flows of a mobile in one direction (packet flows of different priority share one).

mod bearer;
pub mod coding_scheme;
mod config;
mod grid;
mod gsmtap;
mod link_adaptation;
mod llc;
mod mobile;
mod packet_flows;
mod radio;
mod records;
mod rlc;
mod scheduler;
mod summary;
mod tbf;
#[cfg(test)]
mod tests;
pub mod wire;

pub use bearer::Egprs;
pub use config::{Always, EgprsConfig, Tbf, TbfConfig};
pub use grid::Grid;
pub use link_adaptation::LinkAdaptation;
pub use radio::CiConfig;
