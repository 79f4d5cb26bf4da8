//! The sender's view of what is in flight, lost and resent (RFC 6675).
//!
//! Names of the standard and ours: HighACK + 1 is `una`, HighData + 1 is `nxt`, HighRxt + 1 is `rxt`. The standard
//! defines *pipe* octet by octet; here it is kept as counters:
//! `pipe = (nxt - una) - sacked - lost + resent`.

use super::super::ranges::Ranges;

/// DupThresh: so many duplicates mean a loss.
pub(crate) const DUP_THRESH: u32 = 3;

#[derive(Clone, Debug, Default, getset::CopyGetters)]
pub(super) struct Scoreboard {
    /// What the peer reported beyond the cumulative acknowledgement.
    sacked: Ranges,
    /// Everything not SACKed below this was resent (since recovery or loss state began).
    rxt: u64,
    /// Octets not SACKed below `rxt`.
    resent: u64,
    /// Everything not SACKed below this is lost.
    #[getset(get_copy = "pub")]
    lost_edge: u64,
    /// Octets not SACKed below `lost_edge`.
    lost: u64,
    /// A timeout declared everything below this lost.
    #[getset(get_copy = "pub")]
    timeout_mark: u64,
    /// RescueRxt: no further rescue retransmission before the cumulative acknowledgement passes it.
    rescue: Option<u64>,
}

impl Scoreboard {
    /// Nothing SACKed, lost or resent: in flight is what was sent.
    #[inline]
    fn is_blank(&self, una: u64) -> bool {
        self.sacked.is_empty() && self.lost_edge <= una && self.rxt <= una
    }

    /// Octets in flight: *pipe*.
    #[inline]
    pub fn pipe(&self, una: u64, nxt: u64) -> u64 {
        let pipe = (nxt - una + self.resent).saturating_sub(self.sacked.total() + self.lost);
        debug_assert_eq!(pipe, self.pipe_by_definition(una, nxt), "the counters follow the scoreboard");
        pipe
    }

    /// Octets SACKed.
    pub fn sacked(&self) -> u64 {
        self.sacked.total()
    }

    /// Has the peer reported `at`?
    pub fn is_sacked(&self, at: u64) -> bool {
        self.sacked.containing(at).is_some()
    }

    /// How many separate ranges the peer has reported.
    #[cfg(test)]
    pub fn ranges(&self) -> usize {
        self.sacked.count()
    }

    /// May a block be taken in with `segments` outstanding? A peer that reports what arrived has at most one range for each;
    /// one that invents octets in between would make the list as long as it likes.
    pub fn has_room(&self, segments: usize) -> bool {
        self.sacked.count() <= segments
    }

    /// The lowest octet not below `from` that is not SACKed, and the next one above it that is.
    pub fn next_gap(&self, from: u64) -> (u64, u64) {
        self.sacked.next_gap(from)
    }

    /// One past the highest octet SACKed.
    pub fn high_sacked(&self) -> Option<u64> {
        self.sacked.end()
    }

    /// One past the highest octet sent again since recovery or the loss state began.
    pub fn resent_up_to(&self) -> u64 {
        self.rxt
    }

    /// A SACK block arrived; returns how many octets are news.
    pub fn sack(&mut self, start: u64, end: u64) -> u64 {
        //= RFC 6675 (3): octets resent that arrive leave the pipe once.
        let below = if start < self.rxt { self.sacked.insert(start, end.min(self.rxt)) } else { 0 };
        self.resent -= below.min(self.resent);
        below + if end > self.rxt { self.sacked.insert(start.max(self.rxt), end) } else { 0 }
    }

    /// The cumulative acknowledgement moved from `una` to `ack`; returns how many octets of that had been SACKed.
    #[inline]
    pub fn acknowledge(&mut self, una: u64, ack: u64, mss: u64) -> u64 {
        if self.is_blank(una) { 0 } else { self.acknowledge_slowly(una, ack, mss) }
    }

    fn acknowledge_slowly(&mut self, una: u64, ack: u64, mss: u64) -> u64 {
        let before = self.sacked.total();
        let below = ack.min(self.rxt);
        if below > una {
            let sacked = self.sacked.remove_below(below);
            self.resent = self.resent.saturating_sub(below - una - sacked);
        }
        self.sacked.remove_below(ack);
        self.update(ack, mss);
        before - self.sacked.total()
    }

    /// Finds out again what is lost, after `sack` or `acknowledge`.
    pub fn update(&mut self, una: u64, mss: u64) {
        self.lost_edge = self.timeout_mark.max(self.edge_by_sack(mss));
        self.lost = if self.lost_edge > una {
            let above = self.sacked.total_from(self.lost_edge);
            (self.lost_edge - una) - (self.sacked.total() - above)
        } else {
            0
        };
    }

    /// The highest number below which everything not SACKed is lost.
    fn edge_by_sack(&self, mss: u64) -> u64 {
        //= RFC 6675 (4, IsLost): at least DupThresh separate SACKed ranges above, or more than
        //= (DupThresh - 1) * SMSS octets SACKed above. At most three ranges are looked at.
        let mut above = 0;
        for (number, range) in (1..).zip(self.sacked.descending()) {
            above += range.len();
            if number == DUP_THRESH || above > u64::from(DUP_THRESH - 1) * mss {
                return range.start;
            }
        }
        0
    }

    /// Is the octet at the cumulative acknowledgement lost?
    pub fn head_is_lost(&self, una: u64) -> bool {
        self.lost_edge > una
    }

    /// Fast recovery begins: nothing was resent yet.
    pub fn begin_recovery(&mut self, una: u64) {
        self.rxt = una;
        self.resent = 0;
        self.rescue = None;
    }

    /// The head was sent again up to `end`, as the first of the recovery.
    pub fn resent_first(&mut self, end: u64) {
        //= RFC 6675 (5, step 4.3): no rescue before the head is acknowledged.
        self.rescue.get_or_insert(end);
    }

    /// A timeout: all below `nxt` is lost, and is resent from `una` on.
    pub fn time_out(&mut self, una: u64, nxt: u64, mss: u64, forget: bool) {
        if forget {
            self.sacked.clear();
        }
        self.rxt = una;
        self.resent = 0;
        self.timeout_mark = nxt;
        self.rescue = None;
        self.update(una, mss);
    }

    /// What a timeout declared lost is not: nothing is resent, what SACK blocks say stays.
    pub fn forgive(&mut self, una: u64, mss: u64) {
        self.timeout_mark = 0;
        self.rxt = una;
        self.resent = 0;
        self.update(una, mss);
    }

    /// `start..end`, the lowest hole not resent yet, was sent again; or the head, which a peer that contradicts itself may have
    /// reported before it acknowledged less (RFC 2018, 8).
    pub fn resend(&mut self, start: u64, end: u64) {
        debug_assert!(start >= self.rxt, "resending goes upwards");
        let sacked = self.sacked.total_from(start) - self.sacked.total_from(end);
        self.resent += end - start - sacked;
        self.rxt = end;
    }

    /// The lowest hole that was not resent and ends below `limit`.
    pub fn next_hole(&self, una: u64, limit: u64) -> Option<(u64, u64)> {
        let (start, end) = self.sacked.next_gap(self.rxt.max(una));
        (start < limit).then(|| (start, end.min(limit)))
    }

    /// NextSeg rule 1: the lowest hole that is lost and was not resent.
    pub fn next_lost(&self, una: u64) -> Option<(u64, u64)> {
        self.next_hole(una, self.lost_edge)
    }

    /// NextSeg rule 3: the lowest hole below what is SACKed, lost or not.
    pub fn next_unsacked(&self, una: u64) -> Option<(u64, u64)> {
        self.next_hole(una, self.high_sacked()?)
    }

    /// NextSeg rule 4: the last octets outstanding, once per recovery.
    pub fn next_rescue(&mut self, una: u64, nxt: u64, recover: u64, mss: u64) -> Option<(u64, u64)> {
        if self.rescue.is_some_and(|r| una <= r) {
            return None;
        }
        let top = match self.sacked.descending().next() {
            Some(r) if r.end == nxt => r.start,
            _ => nxt,
        };
        let bottom = self.sacked.descending().find(|r| r.end <= top).map_or(una, |r| r.end);
        if bottom >= top {
            return None;
        }
        self.rescue = Some(recover);
        Some((bottom.max(top.saturating_sub(mss)), top))
    }

    /// *Pipe* as the standard defines it, hole by hole (SetPipe, RFC 6675 section 4).
    pub fn pipe_by_definition(&self, una: u64, nxt: u64) -> u64 {
        let mut pipe = 0;
        let mut at = una;
        while at < nxt {
            let (start, end) = self.sacked.next_gap(at);
            let end = end.min(nxt);
            if start < end {
                let not_lost = end - start.max(self.lost_edge).min(end);
                let resent = end.min(self.rxt) - start.min(end.min(self.rxt));
                pipe += not_lost + resent;
            }
            at = end.max(start);
        }
        pipe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn board(blocks: &[(u64, u64)]) -> Scoreboard {
        let mut b = Scoreboard::default();
        for (start, end) in blocks {
            b.sack(*start, *end);
        }
        b.update(0, MSS);
        b
    }

    #[test]
    fn rfc_6675_is_lost_by_octets_and_by_ranges() {
        assert_eq!(board(&[(1000, 3000)]).lost_edge, 0);
        assert_eq!(board(&[(1000, 3001)]).lost_edge, 1000);
        assert_eq!(board(&[(1000, 1001), (2000, 2001)]).lost_edge, 0);
        assert_eq!(board(&[(1000, 1001), (2000, 2001), (3000, 3001)]).lost_edge, 1000);
        // The highest of the three counts, not the lowest of all.
        assert_eq!(board(&[(1000, 1001), (2000, 2001), (3000, 3001), (4000, 4001)]).lost_edge, 2000);
    }

    #[test]
    fn holes_are_resent_in_order_and_each_once() {
        let mut b = board(&[(1000, 2000), (3000, 4000), (5000, 6000)]);
        b.begin_recovery(0);
        assert_eq!(b.pipe(0, 8000), 8000 - 3000 - 1000);
        assert_eq!(b.next_lost(0), Some((0, 1000)));
        b.resend(0, 1000);
        assert_eq!(b.next_lost(0), None);
        assert_eq!(b.next_unsacked(0), Some((2000, 3000)));
        b.resend(2000, 3000);
        assert_eq!(b.pipe(0, 8000), 6000);
        assert_eq!(b.next_rescue(0, 8000, 8000, MSS), Some((7000, 8000)));
        assert_eq!(b.next_rescue(0, 8000, 8000, MSS), None);
    }

    #[test]
    fn a_head_that_was_reported_and_not_acknowledged_is_sent_again_and_fills_no_pipe() {
        let mut b = board(&[(3000, 8000)]);
        b.acknowledge(0, 3100, MSS);
        b.begin_recovery(3100);
        b.resend(3100, 4100);
        assert_eq!((b.resent_up_to(), b.pipe(3100, 8000)), (4100, 0));
        b.acknowledge(3100, 4100, MSS);
        assert_eq!(b.pipe(4100, 9000), 1000);
    }

    #[test]
    fn after_a_timeout_all_is_lost_and_filled_from_the_bottom() {
        let mut b = board(&[(2000, 3000)]);
        b.time_out(0, 5000, MSS, false);
        assert_eq!(b.pipe(0, 5000), 0);
        assert_eq!(b.next_lost(0), Some((0, 2000)));
        b.resend(0, 1000);
        assert_eq!(b.pipe(0, 5000), 1000);
        b.acknowledge(0, 1000, MSS);
        assert_eq!(b.pipe(1000, 5000), 0);
        assert_eq!(b.next_lost(1000), Some((1000, 2000)));
        b.time_out(1000, 5000, MSS, true);
        assert_eq!(b.sacked(), 0);
        assert_eq!(b.next_lost(1000), Some((1000, 5000)));
    }

    #[test]
    fn the_counters_agree_with_the_definition_of_pipe() {
        let mut x = 7_u64;
        let mut draw = |n: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % n
        };
        for _ in 0..200 {
            let (mut b, mut una, mut nxt) = (Scoreboard::default(), 0, 20_000);
            for _ in 0..60 {
                match draw(6) {
                    0 | 1 => {
                        let start = una + 100 + draw(nxt - una - 200);
                        b.sack(start, (start + draw(2000)).min(nxt));
                        b.update(una, MSS);
                    }
                    2 => {
                        // A cumulative acknowledgement never ends inside a SACKed range.
                        let (to, _) = b.sacked.next_gap(una + draw(1500));
                        let to = to.min(nxt - 1000);
                        if to > una && b.sacked.containing(to).is_none() {
                            b.acknowledge(una, to, MSS);
                            una = to;
                        }
                    }
                    3 => {
                        if let Some((start, end)) = b.next_lost(una) {
                            b.resend(start, end.min(start + MSS));
                        }
                    }
                    4 if draw(8) == 0 => b.time_out(una, nxt, MSS, draw(2) == 0),
                    4 if draw(8) == 0 => b.begin_recovery(una),
                    _ => nxt += draw(2000),
                }
                assert_eq!(b.pipe(una, nxt), b.pipe_by_definition(una, nxt));
            }
        }
    }
}
