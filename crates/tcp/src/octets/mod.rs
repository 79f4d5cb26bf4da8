//! Loss recovery with books kept by the octet, as the RFCs are written: NewReno without SACK, RFC 6675 with it.
//!
//! | part | file | standard |
//! |---|---|---|
//! | an acknowledgement, round-trip times | `acked.rs` | RFC 5681, 6298, 7323 |
//! | fast recovery, timeouts | `episode.rs` | RFC 5681, 6582, 6675 |
//! | what leaves | `resend.rs` | RFC 3042, 5681, 6675 |
//! | scoreboard | `sack.rs` | RFC 2018, 2883, 6675 |
//! | window during recovery | `prr.rs` | RFC 6937, 9937 |
//! | spurious timeouts | `frto.rs`, `eifel.rs` | RFC 5682, 3522, 4015 |
//! | spurious retransmissions | `dsack_undo.rs` | RFC 3708 |
//!
//! In use with `loss_detection = "dup-acks"`, and by controllers that have a recovery of their own. With `"rack"` it is
//! `segments/`.
//!
//! A circle of 4 files: each part has its state and what recovery does with it, as the RFCs are parted.

mod acked;
mod dsack_undo;
mod eifel;
mod episode;
mod frto;
mod prr;
mod resend;
mod sack;

use super::needless::Needless;
use super::segments::Prr;
use super::sender::Sender;
use dsack_undo::DsackUndo;
use eifel::Eifel;
use frto::Frto;
pub(super) use sack::DUP_THRESH;
use sack::Scoreboard;

/// The books of one connection.
#[derive(Debug, Default)]
pub(super) struct Octets {
    board: Scoreboard,
    /// Duplicates let so many new octets out (limited transmit); the flight size does not count them.
    limited: u64,
    /// Partial acknowledgements of this recovery.
    partial_acks: u32,
    /// SND.UNA at the last timeout, which counts once per segment.
    timed_out_at: u64,
    prr: Prr,
    /// With PRR and without SACK: octets that duplicates stand for.
    duplicates_stand_for: u64,
    /// SACK blocks have shown more to be lost than before.
    further_loss: bool,
    eifel: Eifel,
    frto: Frto,
    dsack_undo: DsackUndo,
    needless: Needless,
}

impl Octets {
    /// *Pipe* of RFC 6675: octets in flight.
    #[inline]
    pub fn pipe(&self, tx: &Sender) -> u64 {
        self.board.pipe(tx.snd.una(), tx.snd.nxt())
    }

    /// How many ranges the scoreboard keeps.
    #[cfg(test)]
    pub fn ranges(&self) -> usize {
        self.board.ranges()
    }
}
