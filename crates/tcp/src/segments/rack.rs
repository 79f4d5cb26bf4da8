//! RACK (RFC 8985): a segment is lost when one that was sent sufficiently later has arrived.
//! A circle, of which `mod.rs` says why.

use std::collections::VecDeque;

use airloom_base::{Duration, Instant};

use super::super::send::mark;
use super::super::sender::{Mode, Sender, pending};
use super::Segments;
use super::timeout::{on_tick_after, rearm_rto};
use crate::timers::Alarm;

/// Linux adds two ticks of its finest timer to the reordering timeout and to the probe timeout.
pub(super) const TIMEOUT_MIN: Duration = Duration::from_millis(2);
/// RFC 8985 (6.2, step 4): so many recoveries without D-SACK until the window falls back.
const PERSIST: u8 = 16;

/// The state of RFC 8985 (5.3), by its names.
#[derive(Debug, Default)]
pub(crate) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: the segment sent last of those that have arrived.
    pub xmit_ts: Instant,
    pub end_seq: u64,
    /// RACK.rtt: of the segment that arrived last.
    pub rtt: Duration,
    /// Something arrived since losses were looked for.
    pub advanced: bool,
    /// RACK.reo_wnd_mult and RACK.reo_wnd_persist.
    pub reo_wnd_mult: u8,
    pub reo_wnd_persist: u8,
    /// A D-SACK arrived that may come from reordering.
    pub dsack: bool,
    /// What had been delivered when the multiplier grew last; it grows once per round trip.
    pub adapted_at: u64,
    /// Segments below this that were sent once need no look any more.
    originals_from: u64,
    /// What was sent again, in the order of time: (end, when). An entry whose segment has gone or was sent yet another
    /// time is skipped.
    resent: VecDeque<(u64, Instant)>,
}

impl Rack {
    pub fn new(iss: u64, now: Instant) -> Self {
        Rack { xmit_ts: now, end_seq: iss, reo_wnd_mult: 1, originals_from: iss, ..Default::default() }
    }

    /// RACK_sent_after: was (`at`, `end`) sent before the latest segment that arrived?
    fn is_after(&self, at: Instant, end: u64) -> bool {
        //= RFC 8985 (6.2, step 2): by time, and by sequence number where the times are equal.
        self.xmit_ts > at || (self.xmit_ts == at && self.end_seq > end)
    }

    /// What was marked lost is not any more: all from `una` on is looked at again.
    pub fn look_again(&mut self, una: u64) {
        self.originals_from = una;
        self.advanced = true;
    }

    /// A segment arrived that was sent last at `at`.
    pub fn arrived(&mut self, now: Instant, at: Instant, end: u64, resent: bool, min_rtt: Option<Duration>) {
        let rtt = now.since(at);
        //= RFC 8985 (6.2, step 2): a retransmission that seems faster than the path is the original.
        if resent && min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if at > self.xmit_ts || (at == self.xmit_ts && end > self.end_seq) {
            self.xmit_ts = at;
            self.end_seq = end;
        }
    }
}

impl Segments {
    /// A segment that was sent last at `at` is acknowledged or reported for the first time.
    pub(super) fn rack_arrived(
        &mut self,
        tx: &Sender,
        now: Instant,
        at: Instant,
        end: u64,
        ever_resent: bool,
    ) {
        //= RFC 8985 (6.2, step 2): nor one whose timestamp was echoed from before the retransmission.
        if ever_resent && self.echoes_before(tx, tx.timestamp(at)) {
            return;
        }
        let min = tx.rtt().min();
        self.rack.arrived(now, at, end, ever_resent, min);
    }

    /// The reordering window (RFC 8985 6.2, step 4).
    fn reo_wnd(&self, tx: &Sender) -> Duration {
        if self.reordered == 0
            && (matches!(tx.mode(), Mode::Recovery | Mode::Loss) || self.sacked_out >= self.reordering)
        {
            return Duration::ZERO;
        }
        let quarter = tx.rtt().min().unwrap_or(Duration::ZERO) / 4;
        (quarter * u64::from(self.rack.reo_wnd_mult)).min(tx.rtt().srtt().unwrap_or(Duration::ZERO))
    }

    /// Adapts the reordering window to D-SACKs (RFC 8985 6.2, step 4). Linux counts rounds by what was delivered.
    pub(super) fn adapt_reo_wnd(&mut self, prior_delivered: u64) {
        let delivered = self.delivered;
        let rack = &mut self.rack;
        if prior_delivered < rack.adapted_at {
            rack.dsack = false;
        }
        if rack.dsack {
            rack.reo_wnd_mult = rack.reo_wnd_mult.saturating_add(1);
            rack.dsack = false;
            rack.adapted_at = delivered;
            rack.reo_wnd_persist = PERSIST;
        } else if rack.reo_wnd_persist == 0 {
            rack.reo_wnd_mult = 1;
        }
    }

    /// How long until the segment counts as lost; zero if it does.
    pub(super) fn rack_remaining(&self, now: Instant, sent: Instant, reo_wnd: Duration) -> Duration {
        (sent + self.rack.rtt + reo_wnd).since(now)
    }

    /// Marks what is lost (RFC 8985 6.2, step 5); returns the time after which to look again.
    pub(super) fn rack_detect(&mut self, tx: &mut Sender, now: Instant) -> Option<Duration> {
        let reo_wnd = self.reo_wnd(tx);
        let mut longest: Option<Duration> = None;
        let mut wait = |remaining: Duration| longest = Some(longest.map_or(remaining, |l| l.max(remaining)));
        // First transmissions left in the order of the numbers: walk up until one that was sent too late.
        let mut index = tx.snd.index_above(self.rack.originals_from);
        let mut settled = true;
        while let Some(segment) = tx.snd.sent().get(index).copied() {
            if !segment.has(mark::EVER | mark::SACKED | mark::LOST) {
                if !self.rack.is_after(segment.at, segment.end()) {
                    break;
                }
                let remaining = self.rack_remaining(now, segment.at, reo_wnd);
                if remaining.is_zero() {
                    self.mark_lost(tx, index);
                } else {
                    wait(remaining);
                    settled = false;
                }
            }
            if settled {
                self.rack.originals_from = segment.end();
            }
            index += 1;
        }
        // Retransmissions, in the order in which they left.
        let mut looked = 0;
        while let Some((end, at)) = self.rack.resent.get(looked).copied() {
            let index = tx.snd.index_above(end - 1);
            let under_way = tx.snd.sent().get(index).is_some_and(|s| {
                s.end() == end
                    && s.at == at
                    && s.has(mark::EVER)
                    && !s.has(mark::SACKED)
                    && (s.has(mark::RESENT) || !s.has(mark::LOST))
            });
            if under_way {
                if !self.rack.is_after(at, end) {
                    break;
                }
                let remaining = self.rack_remaining(now, at, reo_wnd);
                if !remaining.is_zero() {
                    wait(remaining);
                    looked += 1;
                    continue;
                }
                self.mark_lost(tx, index);
            }
            if looked == 0 {
                self.rack.resent.pop_front();
            } else {
                looked += 1;
            }
        }
        longest
    }

    /// After an acknowledgement: marks what is lost and, where it is too early to say, sets the timer. Says whether it did.
    pub(super) fn rack_mark_lost(&mut self, tx: &mut Sender, now: Instant) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let Some(wait) = self.rack_detect(tx, now) else { return false };
        let at = on_tick_after(tx.config(), now, wait + TIMEOUT_MIN);
        tx.timers.arm(Alarm::Reordering, at);
        true
    }

    /// A segment was sent again at `at`.
    pub(super) fn rack_resent(&mut self, tx: &Sender, end: u64, at: Instant) {
        let resent = &mut self.rack.resent;
        if resent.len() >= 4 * tx.snd.sent().len() + 64 {
            // Entries that are skipped anyway are dropped: one is left for each segment at most, and room for many more.
            resent.retain(|&(end, at)| {
                tx.snd.sent().get(tx.snd.index_above(end - 1)).is_some_and(|s| s.end() == end && s.at == at)
            });
        }
        resent.push_back((end, at));
    }

    /// The reordering timer expired (RFC 8985 6.3).
    pub fn reorder_timeout(&mut self, tx: &mut Sender, now: Instant) {
        let before = self.in_flight(tx);
        let marked = self.marked;
        // What is not lost yet is looked at with the next acknowledgement.
        let _ = self.rack_detect(tx, now);
        if self.in_flight(tx) != before {
            if tx.mode() != Mode::Recovery {
                self.enter_recovery(tx, now);
                let lost = self.marked - marked;
                self.reduce(tx, 1, lost, false);
            }
            self.resend_lost();
            tx.want(pending::DATA);
        }
        rearm_rto(tx, now);
    }
}
