//! Segmentation offload: the sender decides about groups of segments, the network card (or the last step before it) cuts.
//!
//! The stream stays the same; three things show on the wire, and with small windows they move who is dropped at a full
//! queue and when the receiver answers. The last segment of a group carries PSH. A receiver like Linux acknowledges at once
//! when the application has read up to a PSH, so the groups reappear in its acknowledgements. A group that the window would
//! cut short waits for the next acknowledgement, if that is due: where each acknowledgement lets out two segments and now
//! and then a third, the third waits for its partner, and bursts are of two and four segments.
//!
//! No standard describes it. The rules are those that Linux 6.x shows (sysctls `tcp_min_tso_segs`, `tcp_tso_rtt_log`,
//! `tcp_tso_win_divisor` at their defaults), recognised in transfers recorded segment by segment.

use airloom_base::{Duration, Instant};

use super::congestion::pacing;
use super::connection::Limit;
use super::connection::{Connection, Mode};
use super::send::mark;

/// Octets of payload in the largest group: a datagram of 64 KiB, less what Linux keeps free for headers.
const LARGEST: u64 = 65_536 - 321;
/// A group waits only this long after data was sent, and only for an acknowledgement due within this time.
const RECENT: Duration = Duration::from_millis(1);
/// This part of the window is worth a group of its own (`tcp_tso_win_divisor`).
const WINDOW_PART: u64 = 3;

/// Where the groups lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offload {
    /// Do segments leave in groups?
    pub on: bool,
    /// The next segment carries PSH.
    pub push: bool,
    /// The segments of the group at hand, and those of them that have not left.
    group: u64,
    left: u64,
    /// Data waits in blocks, which groups do not pass except to become whole: octets of a block.
    block: u64,
    /// Where the present one ends; 0 while data leaves as it is written.
    edge: u64,
    /// What was sent again last: its end, when, and the place in its group.
    resent_to: u64,
    resent_at: Instant,
    resent_place: u64,
}

impl Offload {
    pub fn new(on: bool) -> Self {
        Offload {
            on,
            push: false,
            group: 0,
            left: 0,
            block: 0,
            edge: 0,
            resent_to: 0,
            resent_at: Instant::ZERO,
            resent_place: 0,
        }
    }

    /// Is a group under way?
    #[inline]
    pub fn in_group(&self) -> bool {
        self.left > 0
    }

    /// A new segment leaves. Returns its marks.
    #[inline]
    pub fn leaves(&mut self) -> u8 {
        if self.left == 0 {
            return 0;
        }
        let joined = self.left < self.group;
        self.left -= 1;
        self.push = self.left == 0 && joined;
        if joined { mark::JOINED } else { 0 }
    }
}

impl Connection {
    /// The application has written.
    pub(super) fn offload_written(&mut self) {
        // Half of the largest window seen (Linux, `tcp_bound_to_half_wnd`).
        let half = if self.snd.max_wnd > 536 { self.snd.max_wnd / 2 } else { self.snd.max_wnd };
        let segments = half.min(LARGEST) / self.snd.mss.max(1);
        self.offload.block = segments.max(1) * self.snd.mss;
    }

    /// Octets of a block.
    pub(super) fn offload_block(&mut self) -> u64 {
        self.offload_written();
        self.offload.block
    }

    /// Nothing more leaves now.
    #[inline]
    pub(super) fn offload_pauses(&mut self) {
        let offload = &mut self.offload;
        offload.left = 0;
        if self.snd.nxt >= self.snd.end() {
            offload.edge = 0;
        } else if offload.edge == 0 {
            offload.edge = self.snd.nxt + offload.block;
        }
    }

    /// May a group leave, when the window lets out `quota` segments?
    #[inline(never)]
    pub(super) fn begin_group(&mut self, now: Instant, quota: u64) -> Result<(), Limit> {
        let (mss, nxt, mut end) = (self.snd.mss, self.snd.nxt, self.snd.end());
        if self.snd.has_records() {
            end = self.snd.record_end(nxt);
        }
        if self.offload.block == 0 {
            self.offload_written();
        }
        //= Linux: two groups at least share the window.
        let mut wanted = if quota == 1 { 1 } else { quota.min((self.cwnd_segments() / 2).max(1)) };
        if wanted > u64::from(self.config.offload_segments) {
            wanted = wanted.min(self.group_size());
        }
        let offload = &mut self.offload;
        if offload.edge > 0 && offload.edge <= nxt {
            offload.edge += ((nxt - offload.edge) / offload.block + 1) * offload.block;
        }
        let edge = if offload.edge == 0 { nxt + offload.block } else { offload.edge };
        // A group takes from the next block what it lacks.
        let full = wanted * mss;
        let there = edge.max(nxt + full).min(end).saturating_sub(nxt);
        let window = self.snd.window_edge().saturating_sub(nxt);
        if there > mss
            && now.since(self.liveness.last_sent) <= RECENT
            && let Some(held) = self.group_waits(now, quota, there)
        {
            return Err(held);
        }
        let mut group = wanted;
        if there.min(window) < full {
            group = wanted.min(there.div_ceil(mss).max(1)).min((window / mss).max(1));
        }
        self.offload.group = group;
        self.offload.left = group;
        Ok(())
    }

    /// Does the window cut the next group so short that it waits? `quota`: segments that the congestion window lets out;
    /// `there`: octets of the block at hand.
    #[inline(never)]
    fn group_waits(&self, now: Instant, quota: u64, there: u64) -> Option<Limit> {
        if matches!(self.mode, Mode::Recovery | Mode::Loss) {
            return None;
        }
        let room = quota * self.snd.mss;
        let peer = self.snd.window_edge().saturating_sub(self.snd.nxt);
        let limit = room.min(peer);
        let last_block = self.snd.nxt + there >= self.snd.end();
        if (!last_block && limit >= there) || limit >= self.snd.wnd.min(self.window.cwnd) / WINDOW_PART {
            return None;
        }
        let (head, srtt) = (self.snd.sent.front()?, self.rtt.srtt()?);
        if head.at + srtt > now + RECENT.min(srtt / 2) {
            return None;
        }
        // Last, because it takes longest to say: a whole group waits for nothing.
        let size = self.group_size();
        if quota >= size || limit >= size * self.snd.mss {
            return None;
        }
        if room < peer {
            if room <= there {
                return Some(Limit::Congestion);
            }
        } else if peer <= there {
            return Some(Limit::Window);
        }
        // The application may write more.
        if self.snd.finished { None } else { Some(Limit::Short) }
    }

    /// Segments of a group: what is paced in about a millisecond, and more on short paths.
    fn group_size(&self) -> u64 {
        let octets = match pacing::linux_rate(&self.window, self.rtt.srtt()) {
            0 => LARGEST,
            rate => rate >> 10,
        };
        // The least round-trip time in units of 512 us (`tcp_tso_rtt_log`).
        let nearness = self.rtt.min().map_or(u64::MAX, |m| m.as_nanos() / 512_000);
        let near = if nearness < 32 { LARGEST >> nearness } else { 0 };
        ((octets + near).min(LARGEST) / self.snd.mss).max(u64::from(self.config.offload_segments))
    }

    /// The segment at `index` is sent again, alone or with those of its group that are sent again too. Sets its PSH.
    pub(super) fn resend_in_group(&mut self, now: Instant, index: usize, alone: bool) {
        let Some(segment) = self.snd.sent.get(index).copied() else { return };
        let follows = !alone
            && segment.has(mark::JOINED)
            && self.offload.resent_at == now
            && self.offload.resent_to == self.start_of(index);
        let place = if follows { self.offload.resent_place + 1 } else { 1 };
        let room = self.cwnd_segments().saturating_sub(self.segments_in_flight());
        let goes_on = !alone
            && room > 1
            && self.snd.sent.get(index + 1).is_some_and(|s| {
                s.has(mark::JOINED) && s.has(mark::LOST) && !s.has(mark::SACKED | mark::RESENT)
            })
            && place < self.group_size();
        if !goes_on && let Some(next) = self.snd.sent.get_mut(index + 1) {
            // Cut off for good.
            next.clear(mark::JOINED);
        }
        self.offload.resent_to = segment.end;
        self.offload.resent_at = now;
        self.offload.resent_place = place;
        self.offload.push = place > 1 && !goes_on;
    }
}
