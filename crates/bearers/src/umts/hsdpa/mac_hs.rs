//! One mobile on the shared channel: its queue in the Node B, credits, HARQ processes, and the way to its RLC.

use std::collections::VecDeque;

use airloom_base::random::Fate;
use airloom_base::record::{Event, PacketFacts};
use airloom_base::{Cx, Direction, Duration, Instant, Parts, Point, Station};

use super::super::dch::{Air, Blocks};
use super::super::records::ObservedBlock;
use super::super::rlc::am::{Format, SduStore};
use super::config::UmtsHsdpaConfig;
use super::radio::{Formats, Radio, block_error};
use super::reordering::Reordering;
use super::{DECODING, ROUND_TRIP, TTI, WINDOW};

/// What is the same for all mobiles of a cell.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub formats: Formats,
    /// Least number of TTIs between two blocks to a mobile.
    pub interval: u64,
    pub max_transmissions: u8,
    pub node_b_buffer: Duration,
    pub iub_delay: Duration,
    /// Mean of the last so many TTIs, for what a mobile got.
    pub averaging: f64,
}

/// A transport block, on its way or to be sent again.
struct TransportBlock {
    tsn: u64,
    format: u8,
    attempts: u8,
    /// Sum of the signal-to-noise ratios of its transmissions: they are combined (Chase).
    energy: f64,
    blocks: Blocks,
}

/// A HARQ process: stop and wait.
#[derive(Default)]
struct Process {
    /// TTI from which it may send.
    free_from: u64,
    /// What was not acknowledged.
    failed: Option<TransportBlock>,
}

/// What was sent in a TTI.
pub struct Sent {
    pub tsn: u64,
    pub pdus: u32,
    /// Which transmission, from 1.
    pub attempt: u8,
    pub is_lost: bool,
    /// What was in it, if it will not be sent again.
    pub given_up: Option<Blocks>,
}

impl Sent {
    /// Tells of it, and of the PDUs that are given up with it.
    pub fn tell(&mut self, cx: &mut Cx, point: Point, (format, sdus): (Format, &SduStore)) {
        let direction = Direction::Downlink;
        let row = |event, reason| PacketFacts {
            len: self.pdus * u32::from(format.pdu_octets),
            seq: Some(self.tsn),
            attempt: self.attempt,
            reason,
            ..PacketFacts::bare("mac-hs", event, direction)
        };
        let event = if self.attempt > 1 { Event::Retransmit } else { Event::Transmit };
        cx.records.packet(cx.now, point, || row(event, None), |_| {});
        if self.is_lost {
            cx.records.packet(cx.now, point, || row(Event::Drop, Some("block error")), |_| {});
        }
        let mut control = Vec::new();
        while let Some(flight) = self.given_up.as_mut().and_then(|blocks| blocks.pop(&mut control)) {
            let (pdu, attempt) = (&flight.pdu, flight.attempt);
            ObservedBlock { direction, format, pdu, control: &control, attempt, sdus }.is_given_up(cx, point);
        }
    }
}

/// What it counts.
#[derive(Clone, Copy, Default)]
pub struct Counters {
    pub blocks: u64,
    pub resent: u64,
    pub given_up: u64,
    /// Sum of the formats of new blocks.
    pub formats: u64,
    pub queue_max: u64,
}

/// One mobile's MAC-hs.
pub struct MacHs {
    rules: Rules,
    radio: Radio,
    fate: Fate,
    queue: Blocks,
    processes: Vec<Process>,
    next_tsn: u64,
    /// PDUs that the RNC may send.
    pub credits: u32,
    /// Credits on their way to the RNC.
    grants: VecDeque<(Instant, u32)>,
    /// PDUs for which credits were given and that have not come yet.
    given: u32,
    in_air: VecDeque<(Instant, u64, Blocks)>,
    reordering: Reordering,
    /// In order for RLC.
    pub ready: Blocks,
    /// The TTI after which it was served last.
    pub last_served: Option<u64>,
    /// PDUs that it got in a TTI, on average until the TTI given.
    average: (f64, u64),
    pub counters: Counters,
}

impl MacHs {
    /// That of mobile `station`, as configured.
    pub fn of_mobile(config: &UmtsHsdpaConfig, rules: Rules, parts: &Parts, station: Station) -> MacHs {
        let index = usize::from(station.0);
        let fading = config.fading.map(|fading| fading.fading());
        let draws = fading.as_ref().map(|fading| {
            let name = format!("{}.fading.{index}", parts.name);
            (fading, Fate::new(parts.seed, &name))
        });
        let radio = Radio::new(config.snr.of(index), draws, config.cqi_delay);
        let errors = Fate::new(parts.seed, &format!("{}.hs-dsch.{index}", parts.name));
        MacHs::new(radio, errors, config.harq_processes, config.reordering_timer, rules)
    }

    /// With credits for a channel of its own.
    pub fn new(radio: Radio, fate: Fate, processes: u8, t1: Duration, rules: Rules) -> MacHs {
        let mut new = MacHs {
            rules,
            radio,
            fate,
            queue: Blocks::default(),
            processes: (0..processes).map(|_| Process::default()).collect(),
            next_tsn: 0,
            credits: 0,
            grants: VecDeque::new(),
            given: 0,
            in_air: VecDeque::new(),
            reordering: Reordering::new(t1),
            ready: Blocks::default(),
            last_served: None,
            average: (0.0, 0),
            counters: Counters::default(),
        };
        new.start(Instant::ZERO);
        new
    }

    /// ASSUMPTION: the Node B gives credits for a whole buffer when a channel is set up, before anybody asks.
    fn start(&mut self, now: Instant) {
        self.given = self.target(now, 1);
        self.credits = self.given;
    }

    /// Nothing that was sent arrives any more (TS 25.321, 11.6.2.5).
    pub fn reset(&mut self, now: Instant) {
        self.queue.clear();
        self.ready.clear();
        self.in_air.clear();
        self.grants.clear();
        for process in &mut self.processes {
            process.failed = None;
        }
        self.reordering.reset(self.next_tsn);
        self.start(now);
    }

    /// One-way delay from the RNC.
    pub fn iub_delay(&self) -> Duration {
        self.rules.iub_delay
    }

    /// Has the Node B something to send?
    pub fn is_busy(&self) -> bool {
        self.queue.len() > 0 || self.processes.iter().any(|process| process.failed.is_some())
    }

    /// When [`MacHs::advance`] is needed.
    pub fn next_timeout(&self) -> Instant {
        let arrival = self.in_air.front().map_or(Instant::FAR_FUTURE, |(at, ..)| *at);
        let grant = self.grants.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        arrival.min(grant).min(self.reordering.next_timeout())
    }

    /// `count` PDUs came over the Iub.
    pub fn enqueue(&mut self, iub: &mut Air, count: u16) {
        iub.blocks.hand_on(usize::from(count), &mut self.queue);
        self.given = self.given.saturating_sub(u32::from(count));
        self.counters.queue_max = self.counters.queue_max.max(self.queue.len() as u64);
    }

    /// Credits reach the RNC, blocks the mobile, T1 expires: as far as it is time. Afterwards `ready` is for RLC.
    pub fn advance(&mut self, now: Instant) {
        while self.grants.front().is_some_and(|(at, _)| *at <= now) {
            self.credits += self.grants.pop_front().map_or(0, |(_, credits)| credits);
        }
        while self.in_air.front().is_some_and(|(at, ..)| *at <= now)
            && let Some((_, tsn, blocks)) = self.in_air.pop_front()
        {
            self.reordering.receive(now, tsn, blocks, &mut self.ready);
        }
        self.reordering.handle_timeout(now, &mut self.ready);
    }

    /// How often a missing block was given up.
    pub fn reordering_timeouts(&self) -> u64 {
        self.reordering.timeouts
    }

    /// PDUs that queue, Iub and credits together are to hold, with so many mobiles that want to be served.
    fn target(&self, now: Instant, users: u32) -> u32 {
        let pdus = u64::from(self.rules.formats.pdus(self.rules.formats.of_report(self.radio.report(now))));
        let slots = self.rules.node_b_buffer.as_nanos() / (TTI.as_nanos() * self.rules.interval);
        (pdus * slots / u64::from(users.max(1))).max(pdus).min(u64::from(u16::MAX)) as u32
    }

    /// The Node B gives what is missing to its target.
    pub fn allocate(&mut self, now: Instant, users: u32) {
        let wanted = self.target(now, users).saturating_sub(self.queue.len() as u32 + self.given);
        if wanted > 0 {
            self.given += wanted;
            self.grants.push_back((now + self.rules.iub_delay, wanted));
        }
    }

    /// Could it be served in TTI `slot`?
    pub fn can_be_served(&self, slot: u64) -> bool {
        let is_apart = self.last_served.is_none_or(|last| slot >= last + self.rules.interval);
        is_apart && self.process_for(slot).is_some()
    }

    /// The process that would send in TTI `slot`: the one with the oldest block to repeat, else one that is free.
    fn process_for(&self, slot: u64) -> Option<usize> {
        let failed = |process: &Process| process.failed.as_ref().map(|block| block.tsn);
        let processes = || self.processes.iter().enumerate();
        let due = || processes().filter(|(_, process)| process.free_from <= slot);
        let repeats = due().filter_map(|(index, process)| Some((failed(process)?, index)));
        if let Some((_, index)) = repeats.min() {
            return Some(index);
        }
        let oldest = processes().filter_map(|(_, process)| failed(process)).min().unwrap_or(self.next_tsn);
        if self.queue.len() == 0 || self.next_tsn >= oldest + WINDOW {
            return None;
        }
        due().map(|(index, _)| index).next()
    }

    /// PDUs that a TTI would carry to it now.
    pub fn rate(&self, now: Instant) -> f64 {
        f64::from(self.rules.formats.pdus(self.rules.formats.of_report(self.radio.report(now))))
    }

    /// PDUs that it got in a TTI, on average.
    pub fn average(&self, slot: u64) -> f64 {
        let (average, until) = self.average;
        average * (1.0 - 1.0 / self.rules.averaging).powf(slot.saturating_sub(until) as f64)
    }

    /// TTI `slot`, which begins at `now`, is its.
    pub fn serve(&mut self, slot: u64, now: Instant) -> Option<Sent> {
        let index = self.process_for(slot)?;
        let mut block = match self.processes[index].failed.take() {
            Some(block) => block,
            None => self.compose(now),
        };
        block.attempts += 1;
        block.energy += 10f64.powf(self.radio.ratio(now + TTI / 2) / 10.0);
        let error = block_error(block.format, 10.0 * block.energy.log10());
        let (tsn, attempt) = (block.tsn, block.attempts);
        let pdus = block.blocks.len() as u32;
        let is_lost = self.fate.nth(slot) < error;
        let mut given_up = None;
        self.counters.blocks += 1;
        self.counters.resent += u64::from(attempt > 1);
        if !is_lost {
            self.in_air.push_back((now + TTI + DECODING, tsn, block.blocks));
        } else if attempt < self.rules.max_transmissions {
            self.processes[index].failed = Some(block);
        } else {
            self.counters.given_up += 1;
            given_up = Some(block.blocks);
        }
        self.processes[index].free_from = slot + ROUND_TRIP;
        self.last_served = Some(slot);
        let got = if is_lost { 0.0 } else { f64::from(pdus) };
        self.average = (self.average(slot) + got / self.rules.averaging, slot);
        Some(Sent { tsn, pdus, attempt, is_lost, given_up })
    }

    fn compose(&mut self, now: Instant) -> TransportBlock {
        let reported = self.rules.formats.of_report(self.radio.report(now));
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        let format = self.rules.formats.smallest(reported, waiting);
        let mut blocks = Blocks::default();
        self.queue.hand_on(self.rules.formats.pdus(format) as usize, &mut blocks);
        let tsn = self.next_tsn;
        self.next_tsn += 1;
        self.counters.formats += u64::from(format);
        TransportBlock { tsn, format, attempts: 0, energy: 0.0, blocks }
    }
}
