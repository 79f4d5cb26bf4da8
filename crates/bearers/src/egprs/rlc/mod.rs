//! RLC acknowledged mode (TS 44.060 9): what both directions share.
//!
//! | file | concern |
//! |---|---|
//! | `layout.rs` | how a block is cut from LLC frames, and its octets |
//! | `tx.rs` | V(S), V(A), V(B): new blocks, repetitions, stalled window |
//! | `rx.rs` | V(R), V(Q), V(N): what came, reports |

mod layout;
mod rx;
mod tx;

pub use layout::{Layout, half, pad};
pub use rx::{Arrived, Rx};
pub use tx::{Again, Choice, Rules, Sent, Tx};
