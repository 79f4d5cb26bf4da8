//! Proportional rate reduction: how much may leave in answer to each acknowledgement while the window shrinks.
//! A circle, of which `mod.rs` says why.
//!
//! The arithmetic is in whole segments here, in octets in `../prr.rs`, and knows nothing of a connection.

use airloom_base::Instant;

use super::super::config::ProportionalReduction;
use super::super::congestion::Event;
use super::super::sender::{Mode, Sender};
use super::Segments;

/// The state of one reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prr {
    /// RecoverFS: what was in flight, or the window, when the reduction began; zero: no reduction is on.
    recover_fs: u64,
    /// prr_delivered.
    delivered: u64,
    /// prr_out.
    out: u64,
}

/// What one acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// DeliveredData.
    pub delivered: u64,
    pub in_flight: u64,
    pub ssthresh: u64,
    /// SafeACK: SND.UNA advanced and nothing more was marked lost.
    pub safe: bool,
}

impl Prr {
    pub fn begin(recover_fs: u64) -> Self {
        Prr { recover_fs, delivered: 0, out: 0 }
    }

    /// So many segments or octets leave.
    #[inline]
    pub fn sent(&mut self, n: u64) {
        self.out += n;
    }

    /// How many segments or octets may leave now (sndcnt).
    ///
    /// `unit`: one, or the octets of a segment where everything is in octets.
    pub fn on_ack(&mut self, rule: ProportionalReduction, d: Delivery, unit: u64) -> u64 {
        self.delivered += d.delivered;
        let owed = self.delivered.saturating_sub(self.out);
        let allowed = if d.in_flight > d.ssthresh {
            //= RFC 6937 (3): proportional: sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out.
            (self.delivered * d.ssthresh).div_ceil(self.recover_fs.max(1)).saturating_sub(self.out)
        } else {
            let limit = match rule {
                //= RFC 6937 (3): conservative bound: what was delivered and not yet answered.
                ProportionalReduction::Off | ProportionalReduction::Conservative => owed,
                //= RFC 6937 (3): slow start bound: as slow start would, at most.
                ProportionalReduction::SlowStart => owed.max(d.delivered) + unit,
                //= RFC 9937: the slow start bound only when the acknowledgement is a good sign.
                ProportionalReduction::Safe => owed.max(d.delivered) + if d.safe { unit } else { 0 },
            };
            limit.min(d.ssthresh - d.in_flight)
        };
        //= RFC 9937: the first retransmission leaves whatever the sum says (Linux likewise).
        if rule == ProportionalReduction::Safe && self.out == 0 { allowed.max(unit) } else { allowed }
    }
}

impl Segments {
    /// A reduction begins: the threshold falls, the window follows it (RFC 6937 3).
    pub(super) fn begin_reduction(&mut self, tx: &mut Sender, now: Instant, event: Event) {
        tx.begin_episode();
        self.probe = None;
        let cwnd = tx.window.cwnd();
        self.prr = Prr::begin(tx.cwnd_segments());
        let ssthresh = match event {
            Event::CongestionReported => ssthresh_after_report(tx),
            _ => ssthresh_after_loss(tx),
        };
        tx.window.cut(cwnd, ssthresh);
        tx.tell_controller(now, event);
        tx.ecn.reduced();
        if tx.samples_rate() {
            return;
        }
        if tx.config().prr == ProportionalReduction::Off {
            tx.window.settle(cwnd);
        }
    }

    /// An acknowledgement in a reduction: `delivered` segments arrived, `lost` more are marked lost.
    pub(super) fn reduce(&mut self, tx: &mut Sender, delivered: u64, lost: u64, advanced: bool) {
        let rule = tx.config().prr;
        let controlled = tx.samples_rate();
        if controlled || delivered == 0 || self.prr.recover_fs == 0 || rule == ProportionalReduction::Off {
            return;
        }
        let in_flight = self.in_flight(tx);
        let ssthresh = tx.window.ssthresh() / tx.snd.mss();
        let allowed = self.prr.on_ack(
            rule,
            Delivery { delivered, in_flight, ssthresh, safe: advanced && lost == 0 },
            1,
        );
        tx.window.set_cwnd((in_flight + allowed).max(1) * tx.snd.mss());
    }

    /// The reduction is over: the window is the threshold.
    pub(super) fn end_reduction(&mut self, tx: &mut Sender) {
        if !tx.samples_rate()
            && tx.window.ssthresh() < u64::MAX
            && (tx.mode() == Mode::Cwr || self.undo.marker.is_some())
        {
            tx.window.settle(u64::MAX);
        }
    }
}

/// The threshold after a loss, in whole segments.
pub(super) fn ssthresh_after_loss(tx: &mut Sender) -> u64 {
    whole_segments(tx.threshold_after_loss(0), tx.snd.mss())
}

/// The threshold after a report of congestion, in whole segments.
pub(super) fn ssthresh_after_report(tx: &mut Sender) -> u64 {
    whole_segments(tx.threshold_after_report(0), tx.snd.mss())
}

fn whole_segments(ssthresh: u64, mss: u64) -> u64 {
    match ssthresh {
        // A controller that sets none.
        u64::MAX => u64::MAX,
        octets => (octets / mss).max(2) * mss,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drives the arithmetic as section 3.1 of RFC 6937 does and returns how many segments leave at each acknowledgement
    /// from `first` on. `lost` segments of the 20 are known to be lost at the beginning.
    fn row(rule: ProportionalReduction, recover_fs: u64, in_flight: u64, acks: usize) -> Vec<u64> {
        let mut prr = Prr::begin(recover_fs);
        let mut flight = in_flight;
        let mut sent = Vec::new();
        for _ in 0..acks {
            flight -= 1;
            let n =
                prr.on_ack(rule, Delivery { delivered: 1, in_flight: flight, ssthresh: 10, safe: false }, 1);
            prr.out += n;
            flight += n;
            sent.push(n);
        }
        sent
    }

    #[test]
    fn rfc_6937_3_1_a_long_burst_of_losses() {
        // Segments 0-14 of 20 are lost; limited transmit has sent two new ones for 15 and 16; at 17 the flight is the
        // two new ones and those that still come: 17, 18, 19.
        assert_eq!(row(ProportionalReduction::Conservative, 20, 2 + 3, 3), [1, 1, 1]);
        assert_eq!(row(ProportionalReduction::SlowStart, 20, 2 + 3, 3), [2, 2, 2]);
    }

    #[test]
    fn rfc_6937_3_1_one_loss_is_spread_over_the_whole_round_trip() {
        // Only segment 0 of 20 is lost, limited transmit has sent two new ones; acknowledgement 3 finds it: 22 outstanding,
        // three of them reported, one lost. The picture in the RFC differs in places from its own formulas.
        let new = |recover_fs| {
            let sent = row(ProportionalReduction::Conservative, recover_fs, 19, 17);
            assert_eq!(sent[0], 1, "the retransmission");
            assert!(sent.iter().all(|n| *n <= 1));
            (4..20).zip(&sent[1..]).filter(|(_, n)| **n == 1).map(|(ack, _)| ack).collect::<Vec<_>>()
        };
        assert_eq!(new(20), [5, 7, 9, 11, 13, 15, 17]);
        assert_eq!(new(22), [5, 7, 9, 11, 14, 16, 19]);
    }

    #[test]
    fn rfc_9937_the_first_retransmission_is_forced_and_a_safe_acknowledgement_adds_one() {
        let mut prr = Prr::begin(20);
        let d = Delivery { delivered: 1, in_flight: 10, ssthresh: 10, safe: false };
        assert_eq!(prr.on_ack(ProportionalReduction::Safe, d, 1), 1);
        prr.out += 1;
        assert_eq!(prr.on_ack(ProportionalReduction::Safe, Delivery { in_flight: 5, ..d }, 1), 1);
        prr.out += 1;
        assert_eq!(prr.on_ack(ProportionalReduction::Safe, Delivery { in_flight: 5, safe: true, ..d }, 1), 2);
        // Never beyond the threshold.
        prr.out += 2;
        assert_eq!(
            prr.on_ack(
                ProportionalReduction::Safe,
                Delivery { in_flight: 9, delivered: 5, safe: true, ..d },
                1
            ),
            1
        );
    }
}
