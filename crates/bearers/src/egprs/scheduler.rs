//! Block periods: who sends on which timeslot.

use std::ops::Range;

use airloom_base::record::Event;
use airloom_base::{Cx, Direction, Instant, Station};

use super::coding_scheme::{Cps, Mcs};
use super::config::EgprsConfig;
use super::link_adaptation::Adaptation;
use super::mobile::{Common, Flight, Load, Mobile, QUIET, RadioDirection};
use super::records::{Row, control_octets, data_octets, interval};
use super::rlc::{Again, Choice};
use super::tbf::State;
use super::wire::{
    AckNack, CONTROL_OCTETS, DownlinkAckNack, DownlinkHeader, Header, Poll, UplinkAckNack, UplinkHeader,
};
use crate::air_time::Origin;
use crate::cell;

const UP: usize = Direction::Uplink as usize;
const DOWN: usize = Direction::Downlink as usize;

/// USF that no mobile has.
const NOBODY: u8 = 7;
/// A poll names a block this many periods later, or up to three more (RRBP).
const FIRST_ANSWER: u64 = 3;
/// Answers are planned this far ahead at most.
const AHEAD: usize = 16;
/// ASSUMPTION: with mobiles that have something to send, one uplink block in so many goes to flows without, in turn,
/// so that they can say that they have.
const IDLE_TURN: u64 = 4;

/// An uplink block promised for the answer to a poll.
#[derive(Clone, Copy)]
struct Answer {
    mobile: usize,
    /// Did the mobile hear the poll?
    is_heard: bool,
    next_partial: bool,
    /// Is it to tell what the mobile has measured?
    measures: bool,
}

/// One timeslot, both directions.
#[derive(Default)]
struct Timeslot {
    /// By block period modulo [`AHEAD`].
    answers: [Option<Answer>; AHEAD],
    /// The mobile named by the USF, and the block period it may use.
    granted: Option<(u64, usize)>,
    /// Who was served last: control, data and pre-emptive blocks, uplink blocks.
    turns: [usize; 3],
}

/// The scheduler of a cell.
pub struct Scheduler {
    timeslots: Vec<Timeslot>,
    /// The next block period not yet served.
    next: u64,
    /// When a period begins that somebody needs.
    period: Instant,
    answers: usize,
}

/// The next of `count` after `last` for which `wants` says yes.
fn turn(last: &mut usize, count: usize, wants: impl Fn(usize) -> bool) -> Option<usize> {
    let found = (1..=count).map(|i| (*last + i) % count).find(|i| wants(*i))?;
    *last = found;
    Some(found)
}

impl Scheduler {
    pub fn new(pdchs: u8) -> Self {
        let timeslots = (0..pdchs).map(|_| Timeslot::default()).collect();
        Scheduler { timeslots, next: 0, period: Instant::FAR_FUTURE, answers: 0 }
    }

    fn uses(common: &Common, mobile: &Mobile, direction: Direction, timeslot: usize) -> bool {
        let (slots, pdchs) = (common.config.slots.get(direction), common.config.pdchs);
        // A run of slots with the one that carries the control channel among them.
        let first = mobile.pacch.min(pdchs - slots);
        (usize::from(first)..usize::from(first + slots)).contains(&timeslot)
    }

    /// Who may use the uplink block `n`.
    fn grant(&mut self, common: &Common, mobiles: &[Mobile], timeslot: usize, n: u64) -> Option<usize> {
        let slot = &mut self.timeslots[timeslot];
        let open = |i: usize| {
            let mobile = &mobiles[i];
            mobile.is_up
                && mobile.ways[UP].flow.can_send()
                && Self::uses(common, mobile, Direction::Uplink, timeslot)
        };
        // The network knows of data by the countdown value it heard last.
        let has_said =
            |i: usize| open(i) && (mobiles[i].acking.last_cv != 0 || mobiles[i].ways[UP].rx.has_gap());
        let last = &mut slot.turns[2];
        if n.is_multiple_of(IDLE_TURN)
            && let Some(i) = turn(last, mobiles.len(), |i| open(i) && !has_said(i))
        {
            return Some(i);
        }
        turn(last, mobiles.len(), has_said).or_else(|| turn(last, mobiles.len(), open))
    }

    fn uplink(&mut self, cx: &mut Cx, common: &mut Common, mobiles: &mut [Mobile], timeslot: usize, n: u64) {
        if let Some(answer) = self.timeslots[timeslot].answers[n as usize % AHEAD].take() {
            self.answers -= 1;
            if answer.is_heard {
                send_report(cx, common, &mut mobiles[answer.mobile], timeslot, n, answer);
            }
            return;
        }
        let granted = self.timeslots[timeslot].granted.take().filter(|(at, _)| *at == n).map(|(_, i)| i);
        // ASSUMPTION: in a cell where nothing else happens the network goes on naming its uplink flows in turn.
        if let Some(i) = granted.or_else(|| self.grant(common, mobiles, timeslot, n)) {
            send_uplink(cx, common, &mut mobiles[i], timeslot, n);
        }
    }

    fn downlink(
        &mut self,
        cx: &mut Cx,
        common: &mut Common,
        mobiles: &mut [Mobile],
        timeslot: usize,
        n: u64,
    ) {
        // The USF of this block says who may use the uplink's next.
        let mut usf = NOBODY;
        if self.timeslots[timeslot].answers[(n + 1) as usize % AHEAD].is_none()
            && let Some(i) = self.grant(common, mobiles, timeslot, n + 1)
        {
            self.timeslots[timeslot].granted = Some((n + 1, i));
            usf = (i % usize::from(NOBODY)) as u8;
        }
        let count = mobiles.len();
        let turns = &mut self.timeslots[timeslot].turns;
        let is_pacch = |m: &Mobile| usize::from(m.pacch) == timeslot;
        let reports = |i: usize| {
            let m = &mobiles[i];
            m.is_up && m.acking.is_wanted && is_pacch(m) && m.ways[UP].flow.can_send()
        };
        if let Some(i) = turn(&mut turns[0], count, reports) {
            return send_acknowledgement(cx, common, &mut mobiles[i], timeslot, n, usf);
        }
        let can = |m: &Mobile| {
            m.is_up && m.ways[DOWN].flow.can_send() && Self::uses(common, m, Direction::Downlink, timeslot)
        };
        let needs = |i: usize| {
            let m = &mobiles[i];
            let way = &m.ways[DOWN];
            can(m)
                && (way.tx.wants(&way.rules, &way.frames)
                    || m.polling.is_wanted && is_pacch(m) && m.polling.due.is_empty())
        };
        let waits = |i: usize| {
            common.looks_after(Direction::Downlink)
                && can(&mobiles[i])
                && mobiles[i].ways[DOWN].tx.is_outstanding()
        };
        let chosen = turn(&mut turns[1], count, needs).or_else(|| turn(&mut turns[1], count, waits));
        if let Some(i) = chosen {
            self.send_downlink(cx, common, mobiles, i, timeslot, n, usf);
        }
    }

    fn send_downlink(
        &mut self,
        cx: &mut Cx,
        common: &mut Common,
        mobiles: &mut [Mobile],
        index: usize,
        timeslot: usize,
        n: u64,
        usf: u8,
    ) {
        let mobile = &mut mobiles[index];
        let (tfi, station) = (mobile.tfi(), mobile.station);
        let is_pacch = usize::from(mobile.pacch) == timeslot;
        let way = &mut mobile.ways[DOWN];
        let rules = way.rules;
        let may_pre_empt = common.config.pre_emptive || mobile.polling.is_wanted && is_pacch;
        let Some(choice) = way.tx.serve(&rules, &mut way.frames, n, may_pre_empt) else {
            // A poll goes with a block. Where one may be repeated for it and there is none, no poll is wanted any more.
            mobile.polling.is_wanted &= !may_pre_empt;
            // What was left may just have been given up: no report will come of it.
            mobile.report_lost(cx, common);
            return mobile.check_drained(cx, common, Direction::Downlink);
        };
        let polling = &mut mobile.polling;
        polling.since += choice.blocks.iter().flatten().count() as u16;
        // What the other timeslots of this period can still take: then this is the last block as good as any.
        let others =
            u64::from(common.config.slots.downlink - 1) * (rules.mcs.octets() * rules.mcs.blocks()) as u64;
        let is_last = !way.tx.is_stalled(&rules)
            && way.tx.nacked() == 0
            && (!way.tx.has_new(&way.frames) || way.frames.uncut() <= others && !way.tx.owes_end());
        let is_stuck = way.tx.is_stalled(&rules) && way.tx.nacked() == 0;
        let is_due = polling.since >= common.config.poll_every;
        let is_free = polling.due.is_empty();
        let mut answer = None;
        if is_due || is_free && (polling.is_wanted || is_last || is_stuck) {
            polling.is_wanted = true;
            if is_pacch {
                let answers = &self.timeslots[timeslot].answers;
                answer = (0..4u64).find(|rrbp| answers[(n + FIRST_ANSWER + rrbp) as usize % AHEAD].is_none());
            }
        }
        //= TS 44.060 (9.3.1): FBI with the last block of the flow.
        let is_final = way.flow.state == State::Closing && !way.tx.has_new(&way.frames);
        way.tx.is_closing |= is_final;
        let grid = common.config.grid;
        let (from, until) = interval(grid, n);
        let survives = fates(way, &choice, n, from, timeslot);
        let is_heard = survives.iter().any(|s| *s);
        //= TS 44.060 (10.4.4b): measurements come with the bitmap that goes on where the last one ended.
        let measures = way.adaptation.is_some();
        let next_partial = polling.next_partial || measures;
        if let Some(rrbp) = answer {
            let at = n + FIRST_ANSWER + rrbp;
            (polling.since, polling.is_wanted) = (0, false);
            polling.due.push_back((at, grid.start(at) + grid.duration() + common.config.processing.uplink));
            let promised = Answer { mobile: index, is_heard, next_partial, measures };
            self.timeslots[timeslot].answers[at as usize % AHEAD] = Some(promised);
            self.answers += 1;
            common.totals[DOWN].polls += 1;
        }
        let poll = match (answer, next_partial) {
            (None, _) => Poll::None,
            (_, false) => Poll::First,
            (_, true) if measures => Poll::NextWithMeasurement,
            (_, true) => Poll::Next,
        };
        let header = |bsn, cps| {
            let rrbp = answer.unwrap_or(0) as u8;
            Header::Downlink(DownlinkHeader { usf, poll, rrbp, tfi, pr: 0, bsn, cps, split: choice.split })
        };
        Mobile::count(&mut common.totals[DOWN], &choice, survives);
        let octets = depart(cx, way, &choice, survives, header, is_final, (timeslot, n));
        if is_heard {
            let at = until + common.config.processing.downlink;
            let load = Load::Data { choice, survives, cv: 0, is_stalled: false };
            way.air.push_back(Flight { at, load, octets });
        }
        let goes_on = way.tx.wants(&rules, &way.frames);
        note(cx, common, way, station, &choice, (from, until), goes_on);
    }
}

impl cell::Scheduler<Mobile> for Scheduler {
    fn next_turn(&self) -> Instant {
        self.period
    }

    /// The block period that begins now, if it was not served yet.
    fn turn(&mut self, cx: &mut Cx, common: &mut Common, mobiles: &mut [Mobile]) {
        let n = common.config.grid.from(cx.now);
        if n < self.next {
            return;
        }
        self.next = n + 1;
        for timeslot in 0..self.timeslots.len() {
            self.uplink(cx, common, mobiles, timeslot, n);
        }
        for timeslot in 0..self.timeslots.len() {
            self.downlink(cx, common, mobiles, timeslot, n);
        }
    }

    fn look(&mut self, common: &Common, mobiles: &[Mobile], _which: Range<usize>, now: Instant) {
        let grid = common.config.grid;
        let is_needed = self.answers > 0 || mobiles.iter().any(|mobile| mobile.wants_periods(common));
        self.period = if is_needed { grid.start(grid.from(now).max(self.next)) } else { Instant::FAR_FUTURE };
    }
}

/// Which RLC data blocks of a radio block survive.
fn fates(way: &mut RadioDirection, choice: &Choice, n: u64, at: Instant, timeslot: usize) -> [bool; 2] {
    let mut survives = [false; 2];
    for (place, sent) in choice.blocks.iter().enumerate() {
        if let Some(sent) = sent {
            let place_on_grid = (timeslot * 2 + place) as u32;
            survives[place] = !way.radio.loses(n, at, place_on_grid, choice.mcs, sent.attempt);
        }
    }
    if let Some(adaptation) = &mut way.adaptation
        && let Some(ratio) = way.radio.ratio_db(at)
    {
        adaptation.measure(choice.mcs, ratio);
    }
    survives
}

/// The rows of a radio block that leaves; its octets, if somebody looks at them.
fn depart(
    cx: &mut Cx,
    way: &RadioDirection,
    choice: &Choice,
    survives: [bool; 2],
    header: impl Fn([u16; 2], Cps) -> Header,
    is_final: bool,
    (timeslot, n): (usize, u64),
) -> Vec<u8> {
    let (tx, rx) = (way.points.tx, way.points.rx);
    if !cx.records.wants(tx) && !cx.records.wants(rx) {
        return Vec::new();
    }
    let mut octets = Vec::new();
    if way.frames.keep_copies {
        let [first, second] = &choice.blocks;
        let first = first.as_ref().expect("a radio block has a first block");
        let second = second.as_ref().unwrap_or(first);
        let puncturing = [first, second].map(|sent| (sent.attempt - 1) % choice.mcs.puncturing_schemes());
        let cps = Cps { mcs: choice.mcs, puncturing, is_padded: choice.is_padded };
        octets = data_octets(
            choice,
            header([first.bsn, second.bsn], cps),
            &way.frames,
            is_final,
            timeslot as u8,
            n,
        );
    }
    let mut capture = &octets[..];
    for (sent, survives) in choice.blocks.iter().zip(survives) {
        let Some(sent) = sent else { continue };
        let (event, reason) = match sent.again {
            Again::No => (Event::Transmit, None),
            Again::Nacked => (Event::Retransmit, None),
            Again::PreEmptive => (Event::Retransmit, Some("pre-emptive")),
        };
        let row = |event, reason| Row { direction: way.direction, event, len: choice.mcs.octets(), reason };
        let seen = if survives { reason } else { Some("block error") };
        row(event, seen).data(cx, tx, sent, &way.frames, capture);
        capture = &[];
        if !survives {
            row(Event::Drop, Some("block error")).data(cx, tx, sent, &way.frames, capture);
        }
    }
    octets
}

fn note(
    cx: &mut Cx,
    common: &Common,
    way: &mut RadioDirection,
    station: Station,
    choice: &Choice,
    interval: (Instant, Instant),
    goes_on: bool,
) {
    if cx.records.wants_facts() {
        let origin = Origin { link: &common.link, station, direction: way.direction };
        let octets = |again: bool| {
            let counted = choice.blocks.iter().flatten().filter(|b| !again || b.again != Again::No);
            (counted.count() * choice.mcs.octets()) as u64
        };
        way.burst.note(cx, origin, interval, (octets(false), octets(true)), goes_on);
    }
}

/// The countdown value of a radio block.
///
//= TS 44.060 (9.3.1.1): (TBC - BSN' - 1) / (NTS x K) rounded up, 15 above BS_CV_MAX: blocks from this one, repeated or not, to
//= the last, TBC of them in all; NTS timeslots; K is 2 where a radio block carries two.
fn countdown(config: &EgprsConfig, way: &RadioDirection, choice: &Choice) -> u8 {
    let mcs = way.rules.mcs;
    let to_come = if way.tx.has_new(&way.frames) {
        (way.frames.uncut() + u64::from(way.tx.owes_end())).div_ceil(mcs.octets() as u64).max(1)
    } else {
        0
    };
    let behind = way.tx.behind(choice) as u64 + to_come;
    let left = behind.div_ceil(u64::from(config.slots.uplink) * mcs.blocks() as u64);
    if left > u64::from(config.bs_cv_max) { 15 } else { left as u8 }
}

/// Data of a mobile that was named.
fn send_uplink(cx: &mut Cx, common: &mut Common, mobile: &mut Mobile, timeslot: usize, n: u64) {
    let (tfi, station) = (mobile.tfi(), mobile.station);
    let way = &mut mobile.ways[UP];
    let rules = way.rules;
    let Some(choice) = way.tx.serve(&rules, &mut way.frames, n, true) else {
        mobile.report_lost(cx, common);
        return mobile.check_drained(cx, common, Direction::Uplink);
    };
    let grid = common.config.grid;
    let (from, until) = interval(grid, n);
    let survives = fates(way, &choice, n, from, timeslot);
    let cv = countdown(&common.config, way, &choice);
    let is_stalled = way.tx.is_stalled(&rules) && way.tx.has_new(&way.frames);
    let header = |bsn, cps| {
        let is_resent = choice.blocks.iter().flatten().any(|b| b.again != Again::No);
        let split = choice.split;
        let (retry, has_pfi) = (false, false);
        Header::Uplink(UplinkHeader { retry, is_stalled, cv, tfi, bsn, cps, split, is_resent, has_pfi })
    };
    Mobile::count(&mut common.totals[UP], &choice, survives);
    let octets = depart(cx, way, &choice, survives, header, false, (timeslot, n));
    if survives.iter().any(|s| *s) {
        let at = until + common.config.processing.uplink;
        way.air.push_back(Flight { at, load: Load::Data { choice, survives, cv, is_stalled }, octets });
    } else if way.adaptation.is_some() {
        // The network has heard nothing of what it gave leave to send: it commands a more robust scheme, if that is why.
        mobile.acking.at = mobile.acking.at.min(grid.start(n + QUIET));
    }
    let way = &mut mobile.ways[UP];
    let goes_on = way.tx.wants(&rules, &way.frames);
    note(cx, common, way, station, &choice, (from, until), goes_on);
}

/// The answer to a poll.
fn send_report(
    cx: &mut Cx,
    common: &mut Common,
    mobile: &mut Mobile,
    timeslot: usize,
    n: u64,
    answer: Answer,
) {
    let tfi = mobile.tfi();
    let way = &mut mobile.ways[DOWN];
    if !mobile.is_up || !way.flow.can_send() {
        return;
    }
    let (mut report, ssn) = way.rx.report(answer.next_partial, n);
    report.is_final = way.tx.is_closing && !way.rx.has_gap();
    let quality = way.adaptation.as_ref().filter(|_| answer.measures).map(Adaptation::report);
    let whole = common.config.ideal_bitmap.then(|| Box::new(report.clone()));
    let room = DownlinkAckNack::room(quality.as_ref());
    let fitted = report.fit(room, common.config.compressed_bitmap);
    let told = whole.as_deref().unwrap_or(fitted.report());
    way.rx.told(ssn, told.bitmap.len(), told.end_of_window);
    let block = DownlinkAckNack::emit(tfi, quality.as_ref(), &fitted).expect("a fitted report fits");
    let row = Row { direction: Direction::Uplink, event: Event::Ack, len: CONTROL_OCTETS, reason: None };
    send_control(cx, common, mobile, row, fitted.report(), (block, whole), (timeslot, n));
}

/// The network's acknowledgement.
fn send_acknowledgement(
    cx: &mut Cx,
    common: &mut Common,
    mobile: &mut Mobile,
    timeslot: usize,
    n: u64,
    usf: u8,
) {
    let tfi = mobile.tfi();
    let is_closing = mobile.ways[UP].flow.state == State::Closing;
    let way = &mut mobile.ways[UP];
    let (mut report, ssn) = way.rx.report(mobile.acking.next_partial, n);
    report.is_final = is_closing && !way.rx.has_gap();
    let whole = common.config.ideal_bitmap.then(|| Box::new(report.clone()));
    let fitted = report.fit(UplinkAckNack::ROOM, common.config.compressed_bitmap);
    let told = whole.as_deref().unwrap_or(fitted.report());
    way.rx.told(ssn, told.bitmap.len(), told.end_of_window);
    let acking = &mut mobile.acking;
    (acking.next_partial, acking.is_wanted, acking.since) = (!told.end_of_window, !told.end_of_window, 0);
    // Until the mobile does what the report asks for, it is sent again.
    let grid = common.config.grid;
    let is_open = is_closing || acking.last_cv != 0 || way.rx.has_gap();
    acking.at = if is_open { grid.start(n + QUIET) } else { Instant::FAR_FUTURE };
    let adapted = |adaptation: &Adaptation| adaptation.command(&way.rules);
    let mcs = way.adaptation.as_ref().map_or(way.rules.again, adapted);
    let resegment = match &common.config.link_adaptation {
        Some(adaptation) => adaptation.resegment,
        None => way.rules.again != way.rules.mcs,
    };
    let message = UplinkAckNack {
        usf,
        tfi,
        mcs: mcs.number(),
        resegment,
        pre_emptive: true,
        report: fitted.report().clone(),
    };
    let block = UplinkAckNack::emit(&message, &fitted).expect("a fitted report fits");
    let row = Row { direction: Direction::Downlink, event: Event::Ack, len: CONTROL_OCTETS, reason: None };
    send_control(cx, common, mobile, row, &message.report, (block, whole), (timeslot, n));
}

fn send_control(
    cx: &mut Cx,
    common: &mut Common,
    mobile: &mut Mobile,
    row: Row,
    report: &AckNack,
    (block, whole): ([u8; CONTROL_OCTETS], Option<Box<AckNack>>),
    (timeslot, n): (usize, u64),
) {
    let direction = row.direction;
    let way = &mut mobile.ways[direction as usize];
    let (from, until) = interval(common.config.grid, n);
    // Control blocks are coded with CS-1, about as robust as MCS-1; under a plain loss probability as lossy as data.
    let is_lost = way.radio.loses(n, from, timeslot as u32 * 2, Mcs::ALL[0], 1);
    let totals = &mut common.totals[direction as usize];
    totals.radio_blocks += 1;
    totals.control += 1;
    totals.control_lost += u64::from(is_lost);
    let mut octets = Vec::new();
    if cx.records.wants(way.points.tx) || cx.records.wants(way.points.rx) {
        octets = control_octets(&block, direction, timeslot as u8, n);
        let name = match direction {
            Direction::Uplink => "downlink ack/nack",
            Direction::Downlink => "uplink ack/nack",
        };
        let reason = Some(if is_lost { "block error" } else { name });
        Row { reason, ..row }.report(cx, way.points.tx, report, &octets);
        if is_lost {
            let row = Row { direction, event: Event::Drop, len: CONTROL_OCTETS, reason: Some("block error") };
            row.report(cx, way.points.tx, report, &[]);
        }
    }
    if cx.records.wants_facts() {
        let goes_on = way.tx.wants(&way.rules, &way.frames);
        let origin = Origin { link: &common.link, station: mobile.station, direction };
        way.burst.note(cx, origin, (from, until), (CONTROL_OCTETS as u64, 0), goes_on);
    }
    if !is_lost {
        let at = until + common.config.processing.get(direction);
        way.air.push_back(Flight { at, load: Load::Control { octets: block, n, whole }, octets });
    }
}
