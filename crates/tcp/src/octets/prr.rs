//! Proportional rate reduction where recovery counts octets (RFC 6937, 9937), with SACK and without. The arithmetic is
//! that of `segments/prr.rs`.

use super::super::config::ProportionalReduction;
use super::super::connection::{Connection, Mode, pending};
use super::super::segments::{Delivery, Prr};

impl Connection {
    /// Is it proportional rate reduction that says what leaves now?
    #[inline]
    pub fn reduces_in_proportion(&self) -> bool {
        self.mode == Mode::Recovery && self.config.prr != ProportionalReduction::Off
    }

    /// Fast recovery has begun with an acknowledgement that reported `news` octets for the first time.
    pub fn prr_begins(&mut self, news: u64) {
        let outstanding = self.snd.outstanding();
        let flight = match self.config.prr {
            ProportionalReduction::Off => return,
            //= RFC 9937: RecoverFS is the flight less what had been reported before this acknowledgement.
            ProportionalReduction::Safe => outstanding - (self.octets.board.sacked() - news).min(outstanding),
            //= RFC 6937 (3): RecoverFS = snd.nxt - snd.una.
            _ => outstanding,
        };
        self.octets.prr = Prr::begin(flight);
        self.octets.further_loss = false;
        //= RFC 6937 (2): without SACK each duplicate stands for a segment; the last of them is news.
        self.octets.duplicates_stand_for = (u64::from(self.octets.dupacks) - 1) * self.snd.mss;
    }

    /// An acknowledgement in fast recovery, `delivered` octets of which are news; `safe`: SND.UNA moved, and it shows no
    /// further loss.
    pub fn prr_ack(&mut self, delivered: u64, safe: bool) {
        if delivered == 0 {
            return;
        }
        let (mss, outstanding, ssthresh) = (self.snd.mss, self.snd.outstanding(), self.window.ssthresh);
        let by_sack = self.recovers_by_sack();
        // Without SACK the head is lost when it is about to be sent again.
        let head = if by_sack || self.pending & pending::HEAD == 0 { 0 } else { mss };
        let in_flight = if by_sack {
            self.in_flight()
        } else {
            outstanding.saturating_sub(self.octets.duplicates_stand_for + head)
        };
        self.octets.further_loss = false;
        let news = Delivery { delivered, in_flight, ssthresh, safe };
        let allowed = self.octets.prr.on_ack(self.config.prr, news, mss);
        // The rest of the sender compares with *pipe*, or without SACK with all that is outstanding.
        self.window.cwnd =
            if by_sack { in_flight + allowed } else { outstanding + allowed.saturating_sub(head) }.max(1);
    }

    /// A duplicate in fast recovery; with SACK it reports `news` octets for the first time.
    pub fn prr_duplicate(&mut self, news: u64) {
        if !self.reduces_in_proportion() {
            return;
        }
        if self.recovers_by_sack() {
            self.prr_ack(news, false);
        } else {
            //= RFC 6937 (2): a duplicate delivers a segment.
            self.octets.duplicates_stand_for += self.snd.mss;
            self.prr_ack(self.snd.mss, false);
        }
    }

    /// Without SACK: how much of `octets` acknowledged in fast recovery was not known to have arrived.
    pub fn news_without_sack(&mut self, octets: u64) -> u64 {
        //= RFC 6937 (2): what SND.UNA moved by, less a segment for each duplicate before; one was sent again.
        let known = octets.saturating_sub(self.snd.mss).min(self.octets.duplicates_stand_for);
        self.octets.duplicates_stand_for -= known;
        octets - known
    }

    /// `octets` of data leave.
    #[inline]
    pub fn prr_sent(&mut self, octets: u64) {
        if self.mode == Mode::Recovery {
            self.octets.prr.out += octets;
        }
    }
}
