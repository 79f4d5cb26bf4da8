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
use super::send::{Send, mark};
use super::sender::{Limit, Mode, Sender};

/// Octets of payload in the largest group: a datagram of 64 KiB, less what Linux keeps free for headers.
const LARGEST: u64 = 65_536 - 321;
/// A group waits only this long after data was sent, and only for an acknowledgement due within this time.
const RECENT: Duration = Duration::from_millis(1);
/// This part of the window is worth a group of its own (`tcp_tso_win_divisor`).
const WINDOW_PART: u64 = 3;

/// Where the groups lie.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offload {
    /// Do segments leave in groups?
    on: bool,
    /// The segments of the group at hand, and those of them that have not left: never more.
    group: u64,
    left: u64,
    /// Data waits in blocks, which groups do not pass except to become whole: octets of a block, zero before the first.
    block: u64,
    /// Where the present one ends; 0 while data leaves as it is written.
    edge: u64,
    /// What was sent again last: its end, when, and the place in its group.
    resent_to: u64,
    resent_at: Instant,
    resent_place: u64,
}

impl Offload {
    /// No group has left.
    pub fn new(on: bool) -> Self {
        Offload { on, ..Default::default() }
    }

    /// Do segments leave in groups?
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Must a group begin before the next segment leaves?
    #[inline]
    pub fn wants_group(&self) -> bool {
        self.on && self.left == 0
    }

    /// A new segment leaves: says whether it carries PSH, and returns its marks.
    #[inline]
    pub fn leaves(&mut self, tx: &mut Sender) -> u8 {
        if self.left == 0 {
            return 0;
        }
        let joined = self.left < self.group;
        self.left -= 1;
        tx.set_push(self.left == 0 && joined);
        if joined { mark::JOINED } else { 0 }
    }

    /// The application has written. Returns the octets of a block.
    pub fn written(&mut self, snd: &Send) -> u64 {
        // Half of the largest window seen (Linux, `tcp_bound_to_half_wnd`).
        let half = if snd.max_wnd() > 536 { snd.max_wnd() / 2 } else { snd.max_wnd() };
        let segments = half.min(LARGEST) / snd.mss().max(1);
        self.block = segments.max(1) * snd.mss();
        self.block
    }

    /// Nothing more leaves now.
    #[inline]
    pub fn pauses(&mut self, snd: &Send) {
        self.left = 0;
        if snd.nxt() >= snd.end() {
            self.edge = 0;
        } else if self.edge == 0 {
            self.edge = snd.nxt() + self.block;
        }
    }

    /// May a group leave, when the window lets out `quota` segments?
    #[inline(never)]
    pub fn begin_group(&mut self, tx: &Sender, now: Instant, quota: u64) -> Result<(), Limit> {
        let snd = &tx.snd;
        let (mss, nxt, mut end) = (snd.mss(), snd.nxt(), snd.end());
        if snd.has_records() {
            end = snd.record_end(nxt);
        }
        if self.block == 0 {
            self.written(snd);
        }
        //= Linux: two groups at least share the window.
        let mut wanted = if quota == 1 { 1 } else { quota.min((tx.cwnd_segments() / 2).max(1)) };
        if wanted > u64::from(tx.config().offload_segments) {
            wanted = wanted.min(group_size(tx));
        }
        if self.edge > 0 && self.edge <= nxt {
            self.edge += ((nxt - self.edge) / self.block + 1) * self.block;
        }
        let edge = if self.edge == 0 { nxt + self.block } else { self.edge };
        // A group takes from the next block what it lacks.
        let full = wanted * mss;
        let there = edge.max(nxt + full).min(end).saturating_sub(nxt);
        let window = snd.window_edge().saturating_sub(nxt);
        if there > mss
            && now.since(tx.liveness.last_sent()) <= RECENT
            && let Some(held) = group_waits(tx, now, quota, there)
        {
            return Err(held);
        }
        let mut group = wanted;
        if there.min(window) < full {
            group = wanted.min(there.div_ceil(mss).max(1)).min((window / mss).max(1));
        }
        self.group = group;
        self.left = group;
        Ok(())
    }

    /// The segment at `index` is sent again, alone or with those of its group that are sent again too; the window lets out
    /// `room` segments. Sets its PSH.
    pub fn resend(&mut self, tx: &mut Sender, now: Instant, index: usize, alone: bool, room: u64) {
        let Some(segment) = tx.snd.sent().get(index).copied() else { return };
        let follows = !alone
            && segment.has(mark::JOINED)
            && self.resent_at == now
            && self.resent_to == tx.snd.start_of(index);
        let place = if follows { self.resent_place + 1 } else { 1 };
        let goes_on = !alone
            && room > 1
            && tx.snd.sent().get(index + 1).is_some_and(|s| {
                s.has(mark::JOINED) && s.has(mark::LOST) && !s.has(mark::SACKED | mark::RESENT)
            })
            && place < group_size(tx);
        if !goes_on && let Some(next) = tx.snd.sent_mut(index + 1) {
            // Cut off for good.
            next.clear(mark::JOINED);
        }
        self.resent_to = segment.end();
        self.resent_at = now;
        self.resent_place = place;
        tx.set_push(place > 1 && !goes_on);
    }
}

/// Does the window cut the next group so short that it waits? `quota`: segments that the congestion window lets out;
/// `there`: octets of the block at hand.
#[inline(never)]
fn group_waits(tx: &Sender, now: Instant, quota: u64, there: u64) -> Option<Limit> {
    if matches!(tx.mode(), Mode::Recovery | Mode::Loss) {
        return None;
    }
    let snd = &tx.snd;
    let room = quota * snd.mss();
    let peer = snd.window_edge().saturating_sub(snd.nxt());
    let limit = room.min(peer);
    let last_block = snd.nxt() + there >= snd.end();
    if (!last_block && limit >= there) || limit >= snd.wnd().min(tx.window.cwnd()) / WINDOW_PART {
        return None;
    }
    let (head, srtt) = (snd.sent().front()?, tx.rtt().srtt()?);
    if head.at + srtt > now + RECENT.min(srtt / 2) {
        return None;
    }
    // Last, because it takes longest to say: a whole group waits for nothing.
    let size = group_size(tx);
    if quota >= size || limit >= size * snd.mss() {
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
    if snd.is_finished() { None } else { Some(Limit::Short) }
}

/// Segments of a group: what is paced in about a millisecond, and more on short paths.
fn group_size(tx: &Sender) -> u64 {
    let octets = match pacing::linux_rate(&tx.window, tx.rtt().srtt()) {
        0 => LARGEST,
        rate => rate >> 10,
    };
    // The least round-trip time in units of 512 us (`tcp_tso_rtt_log`).
    let nearness = tx.rtt().min().map_or(u64::MAX, |m| m.as_nanos() / 512_000);
    let near = if nearness < 32 { LARGEST >> nearness } else { 0 };
    ((octets + near).min(LARGEST) / tx.snd.mss()).max(u64::from(tx.config().offload_segments))
}
