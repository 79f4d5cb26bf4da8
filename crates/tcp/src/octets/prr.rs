//! Proportional rate reduction where recovery counts octets (RFC 6937, 9937), with SACK and without. The arithmetic is
//! that of `segments/prr.rs`.

use super::super::config::ProportionalReduction;
use super::super::segments::{Delivery, Prr};
use super::super::sender::{Mode, Sender, pending};
use super::Octets;

/// Is it proportional rate reduction that says what leaves now?
#[inline]
pub(super) fn reduces_in_proportion(tx: &Sender) -> bool {
    tx.mode() == Mode::Recovery && tx.config().prr != ProportionalReduction::Off
}

impl Octets {
    /// Fast recovery has begun, after so many duplicates whose part is done, with an acknowledgement that reports `news` octets
    /// for the first time.
    pub fn prr_begins(&mut self, tx: &mut Sender, duplicates: u32, news: u64) {
        let outstanding = tx.snd.outstanding();
        let flight = match tx.config().prr {
            ProportionalReduction::Off => return,
            //= RFC 9937: RecoverFS is the flight less what had been reported before this acknowledgement.
            ProportionalReduction::Safe => outstanding - (self.board.sacked() - news).min(outstanding),
            //= RFC 6937 (3): RecoverFS = snd.nxt - snd.una.
            _ => outstanding,
        };
        self.prr = Prr::begin(flight);
        self.further_loss = false;
        //= RFC 6937 (2): without SACK each duplicate stands for a segment.
        self.duplicates_stand_for = u64::from(duplicates) * tx.snd.mss();
    }

    /// An acknowledgement in fast recovery, `delivered` octets of which are news; `safe`: SND.UNA moved, and it shows no
    /// further loss.
    pub fn prr_ack(&mut self, tx: &mut Sender, delivered: u64, safe: bool) {
        if delivered == 0 {
            return;
        }
        let (mss, outstanding, ssthresh) = (tx.snd.mss(), tx.snd.outstanding(), tx.window.ssthresh());
        let by_sack = tx.recovers_by_sack();
        // Without SACK the head is lost when it is about to be sent again.
        let head = if by_sack || !tx.wants(pending::HEAD) { 0 } else { mss };
        let in_flight = if by_sack {
            self.pipe(tx)
        } else {
            outstanding.saturating_sub(self.duplicates_stand_for + head)
        };
        self.further_loss = false;
        let news = Delivery { delivered, in_flight, ssthresh, safe };
        let allowed = self.prr.on_ack(tx.config().prr, news, mss);
        // The rest of the sender compares with *pipe*, or without SACK with all that is outstanding.
        let limit = if by_sack { in_flight + allowed } else { outstanding + allowed.saturating_sub(head) };
        tx.window.set_cwnd(limit);
    }

    /// A duplicate in fast recovery; with SACK it reports `news` octets for the first time.
    pub fn prr_duplicate(&mut self, tx: &mut Sender, news: u64) {
        if !reduces_in_proportion(tx) {
            return;
        }
        if tx.recovers_by_sack() {
            self.prr_ack(tx, news, false);
        } else {
            //= RFC 6937 (2): a duplicate delivers a segment.
            self.duplicates_stand_for += tx.snd.mss();
            self.prr_ack(tx, tx.snd.mss(), false);
        }
    }

    /// Without SACK: how much of `octets` acknowledged in fast recovery was not known to have arrived.
    pub fn news_without_sack(&mut self, tx: &mut Sender, octets: u64) -> u64 {
        //= RFC 6937 (2): what SND.UNA moved by, less a segment for each duplicate before; one was sent again.
        let known = octets.saturating_sub(tx.snd.mss()).min(self.duplicates_stand_for);
        self.duplicates_stand_for -= known;
        octets - known
    }

    /// `octets` of data leave.
    #[inline]
    pub fn prr_sent(&mut self, tx: &mut Sender, octets: u64) {
        if tx.mode() == Mode::Recovery {
            self.prr.sent(octets);
        }
    }
}
