//! The receiver of one direction: it measures waves, answers probes and decides on the next level (sections 2.2, 2.3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use airloom_base::{Body, Instant};
use bytes::Bytes;

use super::ceiling::Ceiling;
use super::config::Config;
use super::content::{Run, emit_runs};
use super::decision::{Left, Probed, decide};
use super::levels::Baseline;
use super::pieces::{LONGEST, Piece, Pieces};
use super::queue::Queue;
use super::round_trip::RoundTrip;
use super::wire::{Header, Kind, Layout};

/// The most runs that an N-S_ACK names; what lies behind is left open.
const RUNS: usize = 128;

/// The wave that is under way, or was last.
#[derive(Debug, Default)]
struct Wave {
    number: u8,
    level: u8,
    first: Option<Instant>,
    last: Instant,
    /// Octets behind the first segment.
    octets: u64,
    seen: BTreeSet<u64>,
    /// The segment that ends a short wave was there.
    ended: bool,
    /// All of it has arrived.
    is_whole: bool,
    /// An N-S_ACK was sent.
    is_answered: bool,
}

/// How far a probe cycle has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    None,
    /// PR1_ACK was sent.
    One(Instant),
    /// PR2_ACK was sent; the first round-trip time in nanoseconds is known.
    Two(Instant, airloom_base::Duration),
    /// The N-S_ACK was sent.
    Done,
}

/// A probe cycle that is so many older than the last one is no double that came late: the last one was none of the sender's.
const CYCLES: u64 = 64;

/// After so many cycles in a row that found the way too long for any wave it is what it is: the path has changed, or the smallest
/// round-trip time was none.
const LONG: u8 = 32;

/// See the module.
#[derive(Default, getset::CopyGetters)]
pub(super) struct Receiver {
    config: Arc<Config>,
    layout: Layout,
    /// W(1), W(2), ...
    pub waves: Vec<u16>,
    /// The next segment in order: where a FIN belongs.
    #[getset(get_copy = "pub")]
    next: u64,
    /// One past the highest that has arrived.
    top: u64,
    held: BTreeMap<u64, Body>,
    /// Segments of which pieces have arrived.
    pieces: BTreeMap<u64, Pieces>,
    ready: Queue,
    wave: Wave,
    /// Waves that have begun.
    begun: u64,
    baseline: Baseline,
    ceiling: Ceiling,
    /// The end of the last wave was missing.
    was_cut: bool,
    /// The level that was told last.
    told: u8,
    cycle: u64,
    step: Step,
    /// Cycles in a row that told level 0.
    long: u8,
    /// What is to be sent.
    pub out: Vec<(Header, Bytes)>,
    /// Octets in order so far.
    pub delivered: u64,
}

impl Receiver {
    pub fn new(config: Arc<Config>) -> Self {
        let waves = config.waves.clone();
        Receiver {
            layout: config.layout(),
            wave: Wave { is_whole: true, is_answered: true, ..Wave::default() },
            baseline: Baseline::new(config.baseline, config.granularity),
            told: waves.len() as u8,
            waves,
            config,
            ..Default::default()
        }
    }

    /// The waves that were agreed on.
    pub fn agree(&mut self, waves: &[u16]) {
        self.waves = waves.to_vec();
        self.told = waves.len() as u8;
    }

    /// Octets that can be read.
    pub fn readable(&self) -> usize {
        self.ready.len()
    }

    pub fn read(&mut self, max: usize) -> Option<Body> {
        (max > 0 && !self.ready.is_empty()).then(|| self.ready.piece(max))
    }

    fn highest(&self) -> u8 {
        self.waves.len() as u8
    }

    /// Finds the wave of a header, beginning it if it is the next one. False: it is of no wave that can be, or an old one.
    fn follow(&mut self, h: &Header) -> bool {
        match h.wave.wrapping_sub(self.wave.number) {
            0 => h.level == self.wave.level,
            // The sender goes on after an N-S_ACK only.
            1 if self.wave.is_answered && (1..=self.highest()).contains(&h.level) => {
                self.wave = Wave { number: h.wave, level: h.level, ..Wave::default() };
                self.begun += 1;
                self.step = Step::None;
                true
            }
            _ => false,
        }
    }

    /// Is the header that of an earlier wave? Then there was one, and of a level that there is.
    fn is_old(&self, h: &Header) -> bool {
        let back = self.wave.number.wrapping_sub(h.wave);
        (1..128).contains(&back) && u64::from(back) < self.begun && (1..=self.highest()).contains(&h.level)
    }

    /// A segment of a wave.
    pub fn data(&mut self, now: Instant, h: &Header, body: Body) {
        let number = self.layout.unwrap(h.number, self.next);
        let is_old = self.is_old(h);
        // Longer than any segment: none of a sender of ours.
        if body.len() > usize::from(LONGEST) {
            return;
        }
        if number >= self.next.saturating_add(self.reach()) || (!self.follow(h) && !is_old) {
            return;
        }
        let octets = body.len() as u64;
        self.store(number, body);
        if is_old || self.wave.is_answered {
            return;
        }
        let wave = &mut self.wave;
        if wave.seen.insert(number) {
            if wave.first.is_some() {
                wave.octets += octets + u64::from(self.config.header);
            }
            wave.first.get_or_insert(now);
            wave.last = now;
        }
        wave.ended |= h.kind == Kind::DataLast;
        // A short wave carries all that is under way.
        let is_whole = wave.seen.len() == usize::from(self.waves[usize::from(wave.level) - 1])
            || (wave.ended && self.next == self.top);
        if is_whole {
            wave.is_whole = true;
            let time = wave.last.since(wave.first.unwrap_or(now));
            let top = self.waves.len() as u8;
            let level = self.baseline.next_level(wave.octets, time, top);
            self.ceiling.came_whole(wave.level, top);
            self.was_cut = false;
            self.answer(level);
        }
    }

    /// A piece of a segment of a wave.
    pub fn piece(&mut self, now: Instant, h: &Header, piece: Piece, body: Body) {
        let number = self.layout.unwrap(h.number, self.next);
        if !(self.next..self.next.saturating_add(self.reach())).contains(&number) {
            return;
        }
        if let Some(whole) = self.pieces.entry(number).or_default().add(piece, body) {
            self.pieces.remove(&number);
            let kind = if piece.ends_wave { Kind::DataLast } else { Kind::Data };
            self.data(now, &Header { kind, ..*h }, whole);
        }
    }

    /// How many segments from the next one in order are taken: a wave, or as many as the buffer holds while the oldest is lost
    /// again and again; never so many that numbers could be mistaken for each other.
    fn reach(&self) -> u64 {
        let wave = self.waves.last().copied().map_or(0, u64::from);
        let buffer = self.config.receive_buffer.0 / self.config.segment.0.max(1);
        wave.max(buffer).min(1 << (self.layout.number_bits() - 2))
    }

    fn store(&mut self, number: u64, body: Body) {
        if number < self.next || self.held.contains_key(&number) {
            return;
        }
        self.top = self.top.max(number + 1);
        self.held.insert(number, body);
        while let Some(body) = self.held.remove(&self.next) {
            self.delivered += body.len() as u64;
            self.ready.push(body);
            self.next += 1;
        }
        while self.pieces.first_key_value().is_some_and(|(n, _)| *n < self.next) {
            self.pieces.pop_first();
        }
    }

    /// PROBE1, PROBE2 or PROBE3.
    pub fn probe(&mut self, now: Instant, h: &Header, trip: &mut RoundTrip) {
        let cycle = self.layout.unwrap(h.number, self.cycle);
        match h.kind {
            Kind::Probe1 if cycle > self.cycle || cycle.saturating_add(CYCLES) < self.cycle => {
                // A wave of which nothing has arrived is known by its probe; before the first wave there is none.
                let is_known = h.wave == self.wave.number || self.follow(h);
                if is_known {
                    (self.cycle, self.step) = (cycle, Step::One(now));
                    self.out.push((Header { kind: Kind::Pr1Ack, ..*h }, Bytes::new()));
                }
            }
            Kind::Probe2 if cycle == self.cycle && h.wave == self.wave.number => {
                if let Step::One(sent) = self.step {
                    let first = now.since(sent);
                    trip.measured(first);
                    self.step = Step::Two(now, first);
                    self.out.push((Header { kind: Kind::Pr2Ack, ..*h }, Bytes::new()));
                }
            }
            Kind::Probe3 if cycle == self.cycle && h.wave == self.wave.number => match self.step {
                Step::Two(sent, first) => {
                    let second = now.since(sent);
                    trip.measured(second);
                    let left = self.left();
                    let probed = Probed {
                        times: (first, second),
                        smallest: trip.smallest().unwrap_or(second),
                        granularity: self.config.granularity,
                        left,
                    };
                    let decision = decide(self.config.table(), &probed, self.told, &self.waves);
                    self.long = if decision.level == 0 { self.long + 1 } else { 0 };
                    if self.long == LONG {
                        self.long = 0;
                        trip.begin_anew(first.min(second));
                    }
                    if let Some(takes) = decision.takes {
                        self.ceiling.found(takes);
                    }
                    if left != Left::default() {
                        self.was_cut = left.is_end(&self.waves);
                    }
                    self.step = Step::Done;
                    self.answer(decision.level);
                }
                Step::Done => self.report(),
                Step::None | Step::One(_) => {}
            },
            _ => {}
        }
    }

    /// What the wave at hand has left behind. The oldest segments go first, so the first that is missing of all is of this wave.
    fn left(&self) -> Left {
        let wave = &self.wave;
        if wave.is_answered || wave.level == 0 {
            return Left::default();
        }
        let of = self.waves.get(usize::from(wave.level) - 1).copied().unwrap_or(0);
        let before = (wave.seen.range(..self.next).count() as u16).min(of);
        let missing = of.saturating_sub(wave.seen.len() as u16);
        Left { before, behind: of - before, missing, again: self.was_cut }
    }

    /// Tells the level of the next wave and what is missing.
    fn answer(&mut self, level: u8) {
        // Nobody reads: the sender may probe until somebody does.
        let is_full = self.ready.len() as u64 >= self.config.receive_buffer.0;
        self.told = if is_full { 0 } else { self.ceiling.cap(level) };
        self.wave.is_answered = true;
        self.report();
    }

    /// The N-S_ACK of the wave at hand.
    fn report(&mut self) {
        let number = self.next as u32 & ((1 << self.layout.number_bits()) - 1);
        let header = Header { kind: Kind::Nsack, level: self.told, wave: self.wave.number, number };
        let content = emit_runs(&self.runs(), usize::from(self.config.report));
        self.out.push((header, content));
    }

    fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut at = self.next;
        for &n in self.held.keys() {
            while at < n {
                if runs.len() == RUNS {
                    runs.push(Run { from: at, count: None });
                    return runs;
                }
                let count = (n - at).min(255) as u8;
                runs.push(Run { from: at, count: Some(count) });
                at += u64::from(count);
            }
            at = n + 1;
        }
        if !self.wave.is_whole {
            runs.push(Run { from: self.top, count: None });
        }
        runs
    }
}
