//! One circuit: a frame in each direction in every interval, and the call they belong to.

use std::collections::VecDeque;

use airloom_base::record::Event;
use airloom_base::{Backlog, BearerEvent, Cx, Direction, Duration, Instant, Packet, Station, Unsupported};

use super::config::{BestEffort, PiafsConfig, Times};
use super::frame::Frame;
use super::receiver::{Arrival, Receiver};
use super::records::ObservedFrame;
use super::sender::Sender;
use super::tap::{Sdu, Tap};
use crate::cell::{self, Edge, Points, directions};
use crate::channel::{BlockLoss, Radio};

/// What one direction counted, over all circuits.
#[derive(Default)]
pub struct Totals {
    pub frames: u64,
    /// Frames with a wrong checksum.
    pub crc_errors: u64,
    /// Frames with octets that were sent before.
    pub resent: u64,
    /// Frames without user data.
    pub fill: u64,
    /// User octets of the frames that were sent for the first time.
    pub octets: u64,
    pub duplicates: u64,
}

/// What all circuits of a bearer share.
pub struct Common {
    pub config: PiafsConfig,
    pub times: Times,
    /// By direction.
    pub totals: [Totals; 2],
    pub calls_dropped: u64,
    /// Calls that did not come about.
    pub calls_failed: u64,
    /// How often a best-effort circuit fell to 32 kbit/s.
    pub falls: u64,
    pub edge: Edge,
}

/// One direction.
pub struct CircuitDirection {
    direction: Direction,
    tap: Tap,
    sender: Sender,
    /// At the far end.
    receiver: Receiver,
    /// Frames that will arrive intact.
    air: VecDeque<(Instant, Frame)>,
    loss: BlockLoss,
    points: Points,
    /// On the serial line at the far end: when a packet has crossed it, and when it came to the link.
    out: VecDeque<(Instant, Sdu)>,
    /// Place in the stream up to which octets went to that line, and when it is free.
    out_place: u64,
    out_free: Instant,
    /// Since when no frame came intact.
    silent_since: Option<Instant>,
}

impl CircuitDirection {
    pub fn new(
        direction: Direction,
        common: &Common,
        tap: Tap,
        loss: BlockLoss,
        points: Points,
    ) -> CircuitDirection {
        CircuitDirection {
            direction,
            tap,
            sender: Sender::new(common.config.window, common.times.patience),
            receiver: Receiver::new(0),
            air: VecDeque::new(),
            loss,
            points,
            out: VecDeque::new(),
            out_place: 0,
            out_free: Instant::ZERO,
            silent_since: None,
        }
    }

    fn is_busy(&self) -> bool {
        !self.sender.is_idle() || self.tap.has_more()
    }
}

/// Probability that at least one of two things happens that have nothing to do with each other.
fn either(one: f64, other: f64) -> f64 {
    one + other - one * other
}

/// The first of what arrives one after the other, if it is there by `now`.
fn due<T>(coming: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<(Instant, T)> {
    coming.front().filter(|(at, _)| *at <= now)?;
    coming.pop_front()
}

/// Is there a call?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    There,
    /// It will be there at that time.
    From(Instant),
    None,
}

/// One circuit.
pub struct Circuit {
    station: Station,
    ways: [CircuitDirection; 2],
    /// What the field at this place does, besides the losses of each direction.
    radio: Option<Radio>,
    call: Call,
    times: Times,
    /// When the rate changed last, and the intervals that there had been.
    since: Instant,
    slots_before: u64,
    /// When a best-effort circuit fell to 32 kbit/s, if it did.
    fell_at: Option<Instant>,
    /// The next interval in which frames are looked at.
    next_slot: Instant,
    /// The last one.
    last_slot: Option<Instant>,
}

impl Circuit {
    /// A circuit with a call that was set up before.
    pub fn new(station: Station, times: Times, ways: [CircuitDirection; 2], radio: Option<Radio>) -> Circuit {
        Circuit {
            station,
            ways,
            radio,
            call: Call::There,
            times,
            since: Instant::ZERO,
            slots_before: 0,
            fell_at: None,
            next_slot: Instant::FAR_FUTURE,
            last_slot: None,
        }
    }

    /// Mean field strength where it is, dBuV, if it is in an environment.
    pub fn mean_field(&self) -> Option<f64> {
        self.radio.as_ref().map(Radio::mean_field)
    }

    /// What becomes of its call, in a word.
    pub fn state(&self) -> &'static str {
        match self.call {
            Call::There if self.fell_at.is_some() => "up, 32 kbit/s",
            Call::There => "up",
            Call::From(_) => "setting up",
            Call::None => "down",
        }
    }

    /// Is there a call, or will there be?
    pub fn is_wanted(&self) -> bool {
        self.call != Call::None
    }

    /// The rate has changed; a fall of before is over.
    pub fn set_times(&mut self, times: Times, now: Instant) {
        self.fell_at = None;
        // Intervals go on being counted: losses are theirs, and never go back.
        (self.slots_before, self.since) = (self.slot_at(now) + 1, now);
        self.times = times;
        self.ways.iter_mut().for_each(|way| way.sender.set_patience(times.patience));
        self.next_slot = Instant::FAR_FUTURE;
        self.arm(now);
    }

    /// Number of the interval that begins then.
    fn slot_at(&self, at: Instant) -> u64 {
        let slot = self.times.slot.as_nanos();
        self.slots_before + (at.as_nanos() / slot).saturating_sub(self.since.as_nanos() / slot)
    }

    /// Frames, and packets on the serial line, that arrive now.
    fn arrive(&mut self, cx: &mut Cx, common: &mut Common, direction: Direction) {
        let [up, down] = &mut self.ways;
        let (way, back) = match direction {
            Direction::Uplink => (up, down),
            Direction::Downlink => (down, up),
        };
        let totals = &mut common.totals[direction as usize];
        while let Some((at, frame)) = due(&mut way.air, cx.now) {
            let then = &mut Cx { now: at, records: &mut *cx.records };
            ObservedFrame { frame: &frame, tap: &way.tap, direction }.arrives(then, way.points.rx);
            // It also says what its sender has received of the other direction.
            back.sender.take(frame.request, frame.acknowledged.number);
            back.forget();
            if frame.number.is_none() {
                way.receiver.receive_fill();
                continue;
            }
            match way.receiver.receive(frame.number, frame.span) {
                Arrival::Duplicate => totals.duplicates += 1,
                Arrival::Ahead => {}
                Arrival::UpTo(place) => way.hand_out(&common.config, place, at),
            }
        }
        while let Some((at, sdu)) = due(&mut way.out, cx.now) {
            common.edge.deliver(direction, self.station, sdu.packet, at.since(sdu.since));
        }
    }

    /// The frames of the interval that begins now.
    fn exchange(&mut self, cx: &mut Cx, common: &mut Common) {
        let now = cx.now;
        let slot = self.slot_at(now);
        let mut silence = None;
        for direction in Direction::BOTH {
            let (request, acknowledged) = {
                let receiver = &self.ways[direction.reverse() as usize].receiver;
                (receiver.request(), receiver.acknowledged())
            };
            let air =
                self.radio.as_mut().map_or(0.0, |radio| radio.probability(direction, now, self.times.slot));
            let way = &mut self.ways[direction as usize];
            let tap = &mut way.tap;
            let next = way.sender.next(now, || tap.take(now));
            let frame =
                Frame { number: next.number, span: next.span, request, acknowledged, attempt: next.attempt };
            let probability = either(way.loss.probability(slot, now), air);
            let is_lost = way.loss.loses(probability, slot, 0);
            let totals = &mut common.totals[direction as usize];
            totals.frames += 1;
            totals.crc_errors += u64::from(is_lost);
            match frame.attempt {
                0 => totals.fill += 1,
                1 => totals.octets += u64::from(frame.span.len),
                _ => totals.resent += 1,
            }
            let event = if frame.attempt > 1 { Event::Retransmit } else { Event::Transmit };
            ObservedFrame { frame: &frame, tap: &way.tap, direction }.departs(
                cx,
                way.points.tx,
                event,
                is_lost,
            );
            if is_lost {
                let since = *way.silent_since.get_or_insert(now);
                silence = silence.max(Some(now.since(since)));
            } else {
                way.silent_since = None;
                way.air.push_back((now + self.times.delay, frame));
            }
        }
        if silence.is_some_and(|silence| silence >= common.config.call_drop) {
            common.calls_dropped += 1;
            self.release(cx, common, "call dropped");
        } else if let Some(best_effort) = common.config.best_effort {
            self.adapt(common, best_effort, silence, now);
        }
    }

    /// A best-effort circuit falls, or tries the full rate again.
    fn adapt(&mut self, common: &mut Common, of: BestEffort, silence: Option<Duration>, now: Instant) {
        let is_full = self.times.slot == common.config.times_of(true).slot;
        match self.fell_at {
            None if is_full && silence.is_some_and(|silence| silence >= of.fall_after) => {
                common.falls += 1;
                self.set_times(common.config.times_of(false), now);
                self.fell_at = Some(now);
            }
            Some(at) if now.since(at) >= of.return_after => {
                self.set_times(common.config.times_of(true), now);
            }
            _ => {}
        }
    }

    /// Were enough of the frames intact in which the two sides find each other?
    fn comes_about(&mut self, config: &PiafsConfig, now: Instant) -> bool {
        let slot = self.times.slot;
        let count = config.set_up.min(Duration::from_secs(1)).as_nanos() / slot.as_nanos();
        let begin = now.as_nanos().saturating_sub(count * slot.as_nanos());
        let first = self.slot_at(Instant::from_nanos(begin));
        let mut intact = [0u64; 2];
        for n in 0..count {
            let at = Instant::from_nanos(begin + n * slot.as_nanos());
            for (way, intact) in self.ways.iter_mut().zip(&mut intact) {
                let air = self.radio.as_mut().map_or(0.0, |radio| radio.probability(way.direction, at, slot));
                let probability = either(way.loss.probability(first + n, at), air);
                *intact += u64::from(!way.loss.loses(probability, first + n, 0));
            }
        }
        intact.iter().all(|intact| *intact as f64 >= config.set_up_intact.get() * count as f64)
    }

    /// The call ends, and with it everything under way.
    fn release(&mut self, cx: &mut Cx, common: &mut Common, why: &'static str) {
        let was_there = std::mem::replace(&mut self.call, Call::None) == Call::There;
        if self.fell_at.is_some() {
            // The next call begins at the rate that calls have.
            self.set_times(common.times, cx.now);
        }
        for way in &mut self.ways {
            way.air.clear();
            let crossing = std::mem::take(&mut way.out).into_iter().map(|(_, sdu)| sdu);
            for sdu in crossing.chain(way.tap.clear()) {
                common.edge.traffic[way.direction as usize].lost += 1;
                ObservedFrame::dropped(cx, way.points.tx, way.direction, &sdu.packet, why);
            }
            way.out_place = way.tap.end();
            way.silent_since = None;
            // Those of the next call.
            way.sender = Sender::new(common.config.window, self.times.patience);
            way.receiver = Receiver::new(way.tap.end());
        }
        self.next_slot = Instant::FAR_FUTURE;
        if was_there {
            common.edge.events.push_back(BearerEvent::Down(self.station, why));
        }
    }

    fn next_timeout(&self) -> Instant {
        let mut next = self.next_slot;
        for way in &self.ways {
            let arrival = way.air.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
            let out = way.out.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
            next = next.min(arrival).min(out);
        }
        match self.call {
            Call::From(at) => next.min(at),
            _ => next,
        }
    }

    /// The next interval is the first one of the grid that was not used, if there is something to say.
    fn arm(&mut self, now: Instant) {
        if self.next_slot != Instant::FAR_FUTURE || self.call != Call::There {
            return;
        }
        if !self.ways.iter().any(CircuitDirection::is_busy) {
            self.ways.iter_mut().for_each(|way| way.silent_since = None);
            return;
        }
        let slot = self.times.slot.as_nanos();
        let from = self.last_slot.map_or(now, |last| now.max(last + Duration::from_nanos(1)));
        self.next_slot = Instant::from_nanos(from.as_nanos().div_ceil(slot).saturating_mul(slot));
    }
}

impl cell::Mobile for Circuit {
    type Common = Common;

    fn send(&mut self, cx: &mut Cx, common: &mut Common, direction: Direction, packet: Packet) {
        let limit = common.config.queue.get(direction);
        let way = &mut self.ways[direction as usize];
        let traffic = &mut common.edge.traffic[direction as usize];
        traffic.sdus_in += 1;
        let len = packet.wire_len() as u64;
        // While a call is set up packets wait for it.
        if self.call == Call::None {
            traffic.lost += 1;
            return ObservedFrame::dropped(cx, way.points.tx, direction, &packet, "link down");
        }
        if way.tap.refuses(limit, len) {
            traffic.queue_drops += 1;
            return ObservedFrame::dropped(cx, way.points.tx, direction, &packet, "queue full");
        }
        way.tap.push(Sdu { packet, since: cx.now }, cx.now);
        traffic.queue_max = traffic.queue_max.max(way.tap.queued());
    }

    /// Arrivals, then the interval.
    fn run(&mut self, cx: &mut Cx, common: &mut Common) {
        let now = cx.now;
        if matches!(self.call, Call::From(at) if at <= now) {
            if self.comes_about(&common.config, now) {
                self.call = Call::There;
                common.edge.events.push_back(BearerEvent::Up(self.station));
            } else {
                common.calls_failed += 1;
                common.edge.events.push_back(BearerEvent::Down(self.station, "no call came about"));
                self.release(cx, common, "no call came about");
            }
        }
        for direction in Direction::BOTH {
            self.arrive(cx, common, direction);
        }
        if self.next_slot <= now {
            self.next_slot = Instant::FAR_FUTURE;
            self.last_slot = Some(now);
            self.exchange(cx, common);
        }
    }

    fn settle(&mut self, _common: &mut Common, now: Instant) -> Instant {
        self.arm(now);
        self.next_timeout()
    }

    fn backlog(&self, direction: Direction) -> Backlog {
        let (sdus, octets) = self.ways[direction as usize].tap.backlog();
        Backlog { sdus, octets }
    }

    fn set_up(&mut self, cx: &mut Cx, common: &mut Common, is_up: bool) {
        match (is_up, self.call) {
            (true, Call::None) => self.call = Call::From(cx.now + common.config.set_up),
            (false, Call::There | Call::From(_)) => self.release(cx, common, "link down"),
            _ => {}
        }
    }

    fn set_loss(&mut self, direction: Option<Direction>, loss: f64) -> Result<(), Unsupported> {
        directions(direction).try_for_each(|d| self.ways[d as usize].loss.set_loss(loss))
    }
}

impl CircuitDirection {
    /// Octets of frames that are neither under way nor may be sent again are not needed any more.
    fn forget(&mut self) {
        let in_air = self.air.iter().filter(|(_, frame)| frame.attempt > 0).map(|(_, frame)| frame.span.from);
        let needed = in_air.chain(self.sender.oldest()).fold(self.receiver.complete(), u64::min);
        self.tap.forget(needed);
    }

    /// The stream is complete up to `place`: its octets go over the serial line, and packets with their last one.
    fn hand_out(&mut self, config: &PiafsConfig, place: u64, now: Instant) {
        let line = config.line();
        self.out_free = self.out_free.max(now);
        while let Some((end, sdu)) = self.tap.arrived(place) {
            self.out_free += line.time_for(end - self.out_place);
            self.out_place = end;
            self.out.push_back((self.out_free, sdu));
        }
        self.out_free += line.time_for(place - self.out_place);
        self.out_place = place;
    }
}
