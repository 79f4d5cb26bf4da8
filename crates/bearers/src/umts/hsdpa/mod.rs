//! HSDPA: the downlink's shared channel (HS-DSCH), in place of each mobile's own.
//!
//! ```text
//!         RNC                        Node B                             mobile
//!   [RLC AM] ── iub_delay ──► [queue of the mobile] ══ HS-DSCH ══► [reordering] ──► [RLC AM]
//!       ▲                        │     scheduler: one mobile            │   T1
//!       └──── credits ◄──────────┘     each 2 ms, HARQ ◄── ACK, NACK ───┘
//! ```
//!
//! RLC stays in the RNC and hands on what the Node B gave it credits for. Each TTI of 2 ms the scheduler gives the whole
//! channel to one mobile, in a transport block as large as the channel quality that the mobile reported allows. A block
//! in error comes again 12 ms later and is combined with what came before (HARQ); after `max_transmissions` it is given
//! up and RLC notices. Blocks overtake each other by that, so the mobile puts them in order again and waits for a
//! missing one for T1. The uplink is a dedicated channel as in `umts-dch`; reports of RLC go there.
//!
//! | file | concern |
//! |---|---|
//! | `config.rs` | the scenario's keys |
//! | `radio.rs` | channel quality, transport block sizes, block errors |
//! | `shared_channel.rs` | the TTI: who is served |
//! | `mac_hs.rs` | one mobile's queue in the Node B, its HARQ processes and credits |
//! | `reordering.rs` | the mobile's end |
//!
//! **Standards.** MAC-hs: TS 25.321 (11.6). Categories: TS 25.306 (table 5.1a). Sizes by channel quality: TS 25.214 (tables
//! 7A to 7E), from memory. Channel quality and block errors by signal-to-noise ratio: the approximation that Brouwer and
//! others published in 2004 for system simulations, from memory, too.
//!
//! **Left out, and why.** Code multiplexing of several mobiles in a TTI (with few mobiles the channel is rarely shared so);
//! power control and the share of power that dedicated channels take (they are in `snr`); lost reports of quality and
//! lost acknowledgements of HARQ (rare beside the losses of blocks); RRC states (a mobile always has its channels); priority queues
//! (one for each mobile).

mod config;
mod mac_hs;
mod radio;
mod reordering;
mod shared_channel;
#[cfg(test)]
mod tests;

pub use config::UmtsHsdpaConfig;
pub use mac_hs::MacHs;
pub use shared_channel::SharedChannel;

use airloom_base::Duration;

/// Transmission time interval (TS 25.211, 5.3.3.13: three slots).
pub const TTI: Duration = Duration::from_millis(2);
/// From one transmission of a HARQ process to the next, in TTIs: six processes fill it.
const ROUND_TRIP: u64 = 6;
/// From the end of a TTI until the mobile has decoded it: some 7.5 slots later it acknowledges (TS 25.211, 7.7).
const DECODING: Duration = Duration::from_millis(5);
/// Numbers that may be open at a time: half of those that six bits count (TS 25.321, 9.2.2).
const WINDOW: u64 = 32;
/// How often the Node B gives credits.
const ALLOCATION: Duration = Duration::from_millis(10);
