//! The sender of one direction: waves, and probes where a wave is not answered (sections 2.2, 2.3).
//!
//! ```text
//!   Idle ── enough for a wave ──► Wave ── its last segment left ──► Wait ── N-S_ACK ──► Idle
//!    └─── level 0 ──────────────────┐                                │ SEND_T
//!                                   ▼                                ▼
//!                               Probe(1) ── PR1_ACK ──► Probe(2) ── PR2_ACK ──► Probe(3) ── N-S_ACK ──► Idle
//!                                   ▲────────────── PROBE_T, a new cycle ──────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use airloom_base::timer::{Timer, earliest};
use airloom_base::{Body, Duration, Instant};

use super::config::Config;
use super::content::Run;
use super::pieces::{PIECE, Piece};
use super::queue::Queue;
use super::round_trip::RoundTrip;
use super::wire::{Header, Kind, Layout};

/// What a round trip is taken for before one was measured (the first timeout of RFC 6298).
const UNKNOWN_TRIP: Duration = Duration::from_secs(1);
/// What a segment is taken to need before a wave was measured: as on a link of 80 kbit/s.
const UNKNOWN_SEGMENT: Duration = Duration::from_millis(100);
/// PROBE_T grows so many times with every probe that was lost while nothing is known of the network: what is slow would be
/// filled with probes behind its first wave.
const UNKNOWN_BACKOFF: f64 = 2.0;
/// No probe is waited for less long, or longer.
const PROBE_T: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(10));
/// So many cycles are remembered, to learn from answers that come too late.
const CYCLES: usize = 16;

/// What the sender does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is on its way.
    #[default]
    Idle,
    /// Segments of a wave leave.
    Wave,
    /// All have left; the N-S_ACK is waited for.
    Wait,
    /// This probe was sent.
    Probe(Kind),
}

/// See the module.
#[derive(Default, getset::CopyGetters)]
pub(super) struct Sender {
    config: Arc<Config>,
    /// W(1), W(2), ...
    pub waves: Vec<u16>,
    /// Payload octets of a segment.
    pub payload: usize,
    queue: Queue,
    /// The oldest segment not acknowledged, and the next new one.
    una: u64,
    /// The number of the next new segment: what a FIN carries.
    #[getset(get_copy = "pub")]
    next: u64,
    /// Segments not acknowledged.
    flight: BTreeMap<u64, Body>,
    flight_octets: usize,
    /// Those of them that have to be sent again.
    missing: BTreeSet<u64>,
    /// The segments of the wave, oldest first, and how many of them have left.
    members: Vec<u64>,
    left: usize,
    /// Octets of the next one that have left, where it goes in pieces, and where its first piece began.
    cut: usize,
    first_cut: usize,
    /// Waves in a row after which the oldest segment was still missing.
    stuck: usize,
    /// The wave has fewer segments than its level.
    is_short: bool,
    /// The wave that was sent last.
    #[getset(get_copy = "pub")]
    wave: u8,
    level: u8,
    /// The level that the next wave may have.
    #[getset(get_copy = "pub")]
    told: u8,
    pub phase: Phase,
    /// A wave was answered and no other has begun since.
    answered: bool,
    /// What there is has waited long enough.
    held: bool,
    began: Instant,
    segment_time: Option<Duration>,
    /// The cycle that was begun last.
    #[getset(get_copy = "pub")]
    cycle: u64,
    /// Cycles, and when each began.
    cycles: VecDeque<(u64, Instant)>,
    probe_sent: Instant,
    /// The third probe has left since the wave began: its N-S_ACK may answer that.
    is_probed: bool,
    /// Twice what the answers to probes took that came too late; it shrinks while they come in time.
    slowest: Duration,
    lost: u32,
    due: Option<Kind>,
    send_t: Timer,
    probe_t: Timer,
    hold: Timer,
    /// Application octets sent.
    pub app_sent: u64,
    /// Segments sent again.
    pub resent: u64,
    /// Expiries of SEND_T.
    pub timeouts: u32,
}

impl Sender {
    pub fn new(config: Arc<Config>, payload: usize) -> Self {
        let waves = config.waves.clone();
        let told = config.first_level(&waves);
        Sender { config, waves, payload: payload.max(1), told, ..Default::default() }
    }

    /// The waves that were agreed on.
    pub fn agree(&mut self, waves: &[u16]) {
        self.waves = waves.to_vec();
        self.told = self.config.first_level(waves);
    }

    /// Octets written and not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.queue.len() + self.flight_octets
    }

    /// Octets sent and not acknowledged.
    pub fn in_flight(&self) -> usize {
        self.flight_octets
    }

    /// Is all that was written acknowledged?
    pub fn is_drained(&self) -> bool {
        self.unacknowledged() == 0 && self.phase == Phase::Idle
    }

    pub fn write(&mut self, body: Body) {
        self.queue.push(body);
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        earliest(&[self.send_t, self.probe_t, self.hold])
    }

    pub fn stop(&mut self) {
        for timer in [&mut self.send_t, &mut self.probe_t, &mut self.hold] {
            timer.stop();
        }
        (self.phase, self.due) = (Phase::Idle, None);
    }

    pub fn expire(&mut self, now: Instant, trip: &RoundTrip) {
        if self.hold.take_due(now) {
            self.held = true;
        }
        if self.send_t.take_due(now) {
            self.timeouts += 1;
            self.probe(now, Kind::Probe1, trip);
        }
        if self.probe_t.take_due(now) {
            // A round-trip time is never measured over a loss.
            self.lost += 1;
            self.probe(now, Kind::Probe1, trip);
        }
    }

    /// Begins what can begin: a wave, or a probe cycle where the level is 0. `finished`: nothing more will be written.
    pub fn proceed(&mut self, now: Instant, finished: bool, trip: &RoundTrip) {
        if self.phase != Phase::Idle {
            return;
        }
        let flush = finished || self.held;
        let fresh =
            if flush { self.queue.len().div_ceil(self.payload) } else { self.queue.len() / self.payload };
        let ready = self.missing.len() + fresh;
        if ready == 0 && self.queue.is_empty() {
            self.hold.stop();
            return;
        }
        if self.told == 0 {
            self.probe(now, Kind::Probe1, trip);
            return;
        }
        let size = |level: u8| usize::from(self.waves[usize::from(level) - 1]);
        // "does not start transmitting segments until it has a sufficient number to make up a complete wave"; after an
        // N-S_ACK "at the highest wave level for which it has enough segments".
        let may_be_lower = self.answered || flush || !self.missing.is_empty();
        let highest = (1..=self.told).rev().find(|l| self.is_in_time(size(*l), trip)).unwrap_or(1);
        let level = (1..=highest).rev().find(|l| size(*l) <= ready);
        match level {
            Some(level) if level == highest || may_be_lower => self.begin(now, level, size(level)),
            // ASSUMPTION(wave-and-wait): less than the smallest wave leaves when something is missing, the application has
            // finished, or nothing was added to it for a while; its last segment says so.
            None if flush || !self.missing.is_empty() => self.begin(now, 1, ready),
            _ if !self.hold.is_armed() => self.hold.arm_after(now, self.config.hold),
            _ => {}
        }
    }

    /// Puts a wave together: old segments before new ones.
    fn begin(&mut self, now: Instant, level: u8, count: usize) {
        self.members.clear();
        self.members.extend(self.missing.iter().take(count));
        self.resent += self.members.len() as u64;
        while self.members.len() < count && !self.queue.is_empty() {
            let body = self.queue.take(self.payload);
            self.flight_octets += body.len();
            self.app_sent += body.len() as u64;
            self.flight.insert(self.next, body);
            self.members.push(self.next);
            self.next += 1;
        }
        self.is_short = self.members.len() < usize::from(self.waves[usize::from(level) - 1]);
        (self.level, self.wave) = (level, self.wave.wrapping_add(1));
        (self.left, self.cut) = (0, 0);
        (self.phase, self.answered, self.held, self.began) = (Phase::Wave, false, false, now);
        self.is_probed = false;
        self.hold.stop();
    }

    /// The next unit to leave: its header, which piece of a segment it is if it is one, and its octets.
    pub fn poll(
        &mut self,
        now: Instant,
        layout: Layout,
        trip: &RoundTrip,
    ) -> Option<(Header, Option<Piece>, Body)> {
        let mask = (1 << layout.number_bits()) - 1;
        let (wave, level) = (self.wave, self.level);
        if let Some(kind) = self.due.take() {
            let header = Header { kind, level, wave, number: self.cycle as u32 & mask };
            return Some((header, None, Body::EMPTY));
        }
        if self.phase != Phase::Wave {
            return None;
        }
        let number = *self.members.get(self.left)?;
        let body = self.flight.get(&number).cloned().unwrap_or_default();
        let is_last = self.left + 1 == self.members.len();
        let ends_wave = is_last && self.is_short;
        let usual = if ends_wave { Kind::DataLast } else { Kind::Data };
        let (kind, piece, body) = match self.piece(body, ends_wave) {
            Ok((piece, body)) => (Kind::Piece, Some(piece), body),
            Err(whole) => (usual, None, whole),
        };
        if self.cut == 0 {
            self.left += 1;
            if is_last {
                self.phase = Phase::Wait;
                self.send_t.arm_after(now, self.send_time(trip));
            }
        }
        Some((Header { kind, level, wave, number: number as u32 & mask }, piece, body))
    }

    /// The next piece of a segment that is longer than the path takes by now; the segment itself if it is not.
    ///
    /// A short queue takes the first few pieces of a wave and drops the rest. Were they always the same, no segment would ever be
    /// whole: each time the oldest is still missing, its pieces begin one further on, and go round.
    fn piece(&mut self, body: Body, ends_wave: bool) -> Result<(Piece, Body), Body> {
        if body.len() <= self.payload && self.cut == 0 {
            return Err(body);
        }
        let (most, of) = (self.payload.saturating_sub(PIECE).max(1), body.len());
        if self.cut == 0 {
            self.first_cut = self.stuck % of.div_ceil(most) * most;
        }
        let from = (self.first_cut + self.cut) % of;
        let octets = body.slice(from, most.min(of - self.cut));
        self.cut = (self.cut + octets.len()) % of;
        Ok((Piece { from: from as u16, of: of as u16, ends_wave }, octets))
    }

    /// Does [`Sender::poll`] have nothing?
    pub fn is_quiet(&self) -> bool {
        self.due.is_none() && self.phase != Phase::Wave
    }

    /// SEND_T of the wave at hand.
    pub fn send_time(&self, trip: &RoundTrip) -> Duration {
        self.send_time_of(self.members.len(), trip)
    }

    /// SEND_T of a wave of so many segments.
    fn send_time_of(&self, segments: usize, trip: &RoundTrip) -> Duration {
        let segment = match self.config.baseline {
            Some(rate) => rate.time_for((self.payload + usize::from(self.config.header)) as u64),
            None => self.segment_time.unwrap_or(UNKNOWN_SEGMENT),
        };
        let whole = trip.smoothed().unwrap_or(UNKNOWN_TRIP) + segment * segments as u64;
        scaled(whole, self.config.send_factor) + self.config.granularity
    }

    /// Is a wave of so many segments answered long before the peer is given up? It says nothing while one is under way.
    ///
    /// ASSUMPTION(wave-and-wait): ours. Half of the time is for what delays the wave or its answer beyond SEND_T.
    fn is_in_time(&self, segments: usize, trip: &RoundTrip) -> bool {
        self.is_unknown() || self.send_time_of(segments, trip) * 2 <= self.config.give_up
    }

    /// Is it still unknown what a segment needs?
    fn is_unknown(&self) -> bool {
        self.config.baseline.is_none() && self.segment_time.is_none()
    }

    /// PROBE_T now.
    fn probe_time(&self, trip: &RoundTrip) -> Duration {
        let usual = scaled(trip.smoothed().unwrap_or(UNKNOWN_TRIP), self.config.probe_factor);
        let growth = self.config.probe_backoff();
        let growth = if self.is_unknown() { growth.max(UNKNOWN_BACKOFF) } else { growth };
        let backoff = growth.powi(self.lost.min(64) as i32);
        scaled(usual.max(PROBE_T.0).max(self.slowest), backoff).min(PROBE_T.1)
    }

    fn probe(&mut self, now: Instant, kind: Kind, trip: &RoundTrip) {
        if kind == Kind::Probe1 {
            self.cycle += 1;
            self.cycles.push_back((self.cycle, now));
            if self.cycles.len() > CYCLES {
                self.cycles.pop_front();
            }
        }
        self.send_t.stop();
        self.hold.stop();
        self.is_probed |= kind == Kind::Probe3;
        (self.phase, self.due, self.probe_sent) = (Phase::Probe(kind), Some(kind), now);
        self.probe_t.arm_after(now, self.probe_time(trip));
    }

    /// PR1_ACK or PR2_ACK of this cycle.
    pub fn probe_answered(&mut self, now: Instant, kind: Kind, cycle: u64, trip: &mut RoundTrip) {
        let next = match (kind, self.phase) {
            (Kind::Pr1Ack, Phase::Probe(Kind::Probe1)) => Some(Kind::Probe2),
            (Kind::Pr2Ack, Phase::Probe(Kind::Probe2)) => Some(Kind::Probe3),
            _ => None,
        };
        match next {
            Some(next) if cycle == self.cycle => {
                self.lost = 0;
                let took = now.since(self.probe_sent);
                trip.measured(took);
                if !self.slowest.is_zero() {
                    self.slowest = (self.slowest * 3 / 4).max(took * 2);
                }
                self.probe(now, next, trip);
            }
            // Too late: the path has become slower than PROBE_T, and no cycle would ever be completed.
            _ if kind == Kind::Pr1Ack => {
                let of = self.cycles.iter().find(|(c, _)| *c == cycle && cycle < self.cycle);
                if let Some((_, at)) = of {
                    self.slowest = self.slowest.max(now.since(*at) * 2).min(PROBE_T.1);
                }
            }
            _ => {}
        }
    }

    /// The N-S_ACK of a wave: all before `cumulative` has arrived, and what of the wave is not in `runs`. Returns whether it
    /// is one that was waited for.
    pub fn answered(
        &mut self,
        now: Instant,
        wave: u8,
        level: u8,
        cumulative: u64,
        runs: &[Run],
        trip: &RoundTrip,
    ) -> bool {
        let is_due = wave == self.wave && matches!(self.phase, Phase::Wait | Phase::Probe(_));
        if !is_due || !(self.una..=self.next).contains(&cumulative) || usize::from(level) > self.waves.len() {
            return false;
        }
        // Before the third probe an N-S_ACK is the answer to a whole wave, however late: so a link is learnt that is slower than
        // SEND_T believed.
        if !self.is_probed {
            self.measure(now, trip);
        }
        let is_missing = |n: u64| {
            runs.iter()
                .any(|r| n >= r.from && r.count.is_none_or(|c| n < r.from.saturating_add(u64::from(c))))
        };
        for n in std::mem::take(&mut self.members) {
            if n >= cumulative && is_missing(n) {
                self.missing.insert(n);
            } else {
                self.acknowledge(n);
            }
        }
        while let Some((&n, _)) = self.flight.first_key_value().filter(|(n, _)| **n < cumulative) {
            self.acknowledge(n);
        }
        let una = self.flight.keys().next().copied().unwrap_or(self.next);
        self.stuck = if una == self.una { self.stuck.wrapping_add(1) } else { 0 };
        self.una = una;
        // A few segments that came fast say nothing of how long a large wave takes.
        self.told = if self.is_unknown() { level.min(self.config.first_level(&self.waves)) } else { level };
        (self.lost, self.due) = (0, None);
        self.send_t.stop();
        self.probe_t.stop();
        (self.phase, self.answered) = (Phase::Idle, true);
        true
    }

    fn acknowledge(&mut self, n: u64) {
        self.missing.remove(&n);
        self.flight_octets -= self.flight.remove(&n).map_or(0, |body| body.len());
    }

    /// What a segment of this wave needed: a longer time counts at once, but no more than twofold, a shorter one by an eighth.
    ///
    /// The time of a few segments is that of the host that answers them; taken for that of the link it would make SEND_T of a large
    /// wave so many times too long.
    fn measure(&mut self, now: Instant, trip: &RoundTrip) {
        if self.members.len() < self.waves.first().copied().map_or(1, usize::from) {
            return;
        }
        let trip = trip.smallest().unwrap_or(Duration::ZERO);
        let each = now.since(self.began).saturating_sub(trip) / (self.members.len() as u64).max(1);
        let before = self.segment_time.unwrap_or(each);
        self.segment_time = Some(if each > before { each.min(before * 2) } else { (before * 7 + each) / 8 });
    }
}

fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::from_secs_f64(duration.as_secs_f64() * factor)
}
