//! One mobile: both directions' RLC, flows, and blocks in the air.

use std::collections::VecDeque;

use airloom_base::record::{Event, PacketFacts};
use airloom_base::{
    Backlog, BearerEvent, Cx, Direction, Duration, Instant, Packet, Point, Station, Unsupported,
};

use super::coding_scheme::Mcs;
use super::config::EgprsConfig;
use super::link_adaptation::Adaptation;
use super::llc::Frames;
use super::packet_flows;
use super::radio::Radio;
use super::records::Row;
use super::rlc::{Again, Arrived, Choice, Rules, Rx, Tx};
use super::tbf::{Flow, State};
use super::wire::{AckNack, CONTROL_OCTETS, DownlinkAckNack, Error, UplinkAckNack};
use crate::air_time::{Burst, Origin, push_state};
use crate::cell::{self, Delivered, Edge, Mobile as _, Points, directions};

/// What all mobiles of a cell share.
pub struct Common {
    pub config: EgprsConfig,
    /// Name of the link, for cx.records.
    pub link: String,
    /// By direction.
    pub totals: [Totals; 2],
    pub edge: Edge,
    /// Work space.
    pub delivered: Vec<Delivered>,
}

impl Common {
    /// Are blocks without acknowledgement looked after when there is nothing else to send: repeated, or in the end given up?
    pub const fn looks_after(&self, direction: Direction) -> bool {
        self.config.pre_emptive || self.config.max_tx > 0 || matches!(direction, Direction::Uplink)
    }
}

/// What one direction counted, over all mobiles.
#[derive(Default)]
pub struct Totals {
    /// RLC data blocks sent, of these again for a report or pre-emptively, and lost.
    pub blocks: u64,
    pub resent: u64,
    pub pre_emptive: u64,
    pub blocks_lost: u64,
    /// Radio blocks with data, and the sum of the numbers of their schemes.
    pub data_blocks: u64,
    pub schemes: u64,
    /// Octets of RLC data sent.
    pub payload: u64,
    /// Radio blocks used, control blocks among them.
    pub radio_blocks: u64,
    pub control: u64,
    pub control_lost: u64,
    pub duplicates: u64,
    pub polls: u64,
    pub polls_lost: u64,
    pub failures: u64,
}

/// A radio block in the air that will arrive, at least in part.
pub struct Flight {
    pub at: Instant,
    pub load: Load,
    /// Octets for captures.
    pub octets: Vec<u8>,
}

/// What it carries.
pub enum Load {
    /// RLC data: which blocks survived; the countdown value and stall indicator of the uplink.
    Data { choice: Choice, survives: [bool; 2], cv: u8, is_stalled: bool },
    /// A report sent in this block period; `whole`: all of it, where reports are not limited by their octets.
    Control { octets: [u8; CONTROL_OCTETS], n: u64, whole: Option<Box<AckNack>> },
}

/// One direction of one mobile.
pub struct RadioDirection {
    pub direction: Direction,
    pub frames: Frames,
    pub tx: Tx,
    pub rx: Rx,
    /// The scheme in force, and what else the sender goes by.
    pub rules: Rules,
    /// What changes the scheme.
    pub adaptation: Option<Adaptation>,
    pub flow: Flow,
    pub radio: Radio,
    pub air: VecDeque<Flight>,
    pub points: Points,
    pub burst: Burst,
}

impl RadioDirection {
    /// Both ends begin a flow.
    fn begin(&mut self, config: &EgprsConfig) {
        self.tx.restart();
        self.rx.restart();
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.restart();
            self.rules = config.rules(self.direction);
        }
    }
}

/// The network's side of polling.
#[derive(Default)]
pub struct Polling {
    /// Blocks since the last poll.
    pub since: u16,
    pub is_wanted: bool,
    /// The last report did not reach to the end of the window.
    pub next_partial: bool,
    /// Answers due: their block period, and when they will have come.
    pub due: VecDeque<(u64, Instant)>,
    pub unanswered: u8,
}

/// The network's side of acknowledging.
pub struct Acking {
    /// Blocks since the last report.
    pub since: u16,
    pub is_wanted: bool,
    /// A report is sent then if nothing else causes one.
    pub at: Instant,
    pub last_cv: u8,
    pub next_partial: bool,
}

/// One mobile.
pub struct Mobile {
    pub station: Station,
    /// Its first timeslot of the uplink, which carries its control channel.
    pub pacch: u8,
    /// By direction.
    pub ways: [RadioDirection; 2],
    pub polling: Polling,
    pub acking: Acking,
    pub is_up: bool,
    told: Option<&'static str>,
}

const UP: usize = Direction::Uplink as usize;
const DOWN: usize = Direction::Downlink as usize;

/// T3182: for so long a mobile that has sent everything waits for the final report (TS 44.060, 13.1).
const T3182: Duration = Duration::from_secs(5);

/// A report that is not prompted by blocks follows the last so many block periods later.
pub const QUIET: u64 = 8;

impl Mobile {
    pub fn new(station: Station, pacch: u8, ways: [RadioDirection; 2]) -> Self {
        let acking =
            Acking { since: 0, is_wanted: false, at: Instant::FAR_FUTURE, last_cv: 15, next_partial: false };
        Mobile { station, pacch, ways, polling: Polling::default(), acking, is_up: true, told: None }
    }

    /// Flow number of its blocks.
    pub const fn tfi(&self) -> u8 {
        (self.station.0 % 32) as u8
    }

    fn on_data(&mut self, cx: &mut Cx, common: &Common, direction: Direction) {
        if let Some(times) = common.config.times() {
            let is_associated = self.ways[direction.reverse() as usize].flow.can_send();
            self.ways[direction as usize].flow.on_data(times, direction, is_associated, cx.now);
            self.tell_state(cx, common);
        }
    }

    /// Does it need block periods?
    pub fn wants_periods(&self, common: &Common) -> bool {
        let wants = |way: &RadioDirection| {
            way.flow.can_send()
                && (way.tx.wants(&way.rules, &way.frames)
                    || common.looks_after(way.direction) && way.tx.is_outstanding())
        };
        self.is_up
            && (self.polling.is_wanted && self.ways[DOWN].flow.can_send()
                || self.acking.is_wanted
                || self.ways.iter().any(wants))
    }

    /// A radio block has come to its other end.
    fn arrive(&mut self, cx: &mut Cx, common: &mut Common, direction: Direction, flight: Flight) {
        match flight.load {
            Load::Data { choice, survives, cv, is_stalled } => {
                let is_newest = self.receive(cx, common, direction, &choice, survives, flight.octets);
                if direction == Direction::Uplink {
                    self.note_uplink(common, is_newest.then_some(cv), is_stalled, cx.now);
                }
            }
            Load::Control { octets, n, whole } => {
                let report =
                    self.report_read(direction, &octets).expect("a report that was written is read again");
                let report = whole.map_or(report, |whole| *whole);
                self.report_came(cx, common, direction, report, &flight.octets, n)
            }
        }
    }

    /// RLC receives the data blocks that survived, and packets that become whole leave; is one of the blocks the newest?
    fn receive(
        &mut self,
        cx: &mut Cx,
        common: &mut Common,
        direction: Direction,
        choice: &Choice,
        survives: [bool; 2],
        mut octets: Vec<u8>,
    ) -> bool {
        let period = common.config.grid.from(cx.now);
        let way = &mut self.ways[direction as usize];
        let mut is_newest = false;
        for (sent, survives) in choice.blocks.iter().zip(survives) {
            let Some(sent) = sent.filter(|_| survives) else { continue };
            if cx.records.wants(way.points.rx) {
                let row = Row { direction, event: Event::Receive, len: choice.mcs.octets(), reason: None };
                row.data(cx, way.points.rx, &sent, &way.frames, &octets);
                octets.clear();
            }
            match way.rx.receive(sent.bsn, choice.split, period) {
                Arrived::New => sent.layout.receive(&mut way.frames, &mut common.delivered),
                Arrived::Half => {}
                Arrived::Duplicate => common.totals[direction as usize].duplicates += 1,
            }
            is_newest |= way.rx.is_newest(sent.bsn);
            self.acking.since += u16::from(direction == Direction::Uplink);
        }
        for Delivered { packet, arrived } in common.delivered.drain(..) {
            common.edge.deliver(direction, self.station, packet, cx.now.since(arrived));
        }
        is_newest
    }

    /// The network's side: is it time to acknowledge? `cv`: the countdown of the newest block, if it was that.
    fn note_uplink(&mut self, common: &Common, cv: Option<u8>, is_stalled: bool, now: Instant) {
        let (grid, acking) = (common.config.grid, &mut self.acking);
        // The value belongs to the block: that of a repeated one says nothing of what came after it.
        acking.last_cv = cv.unwrap_or(acking.last_cv);
        //= TS 44.060 (9.3.2.4, 9.1.3): the network answers the end of the countdown and a stalled window.
        let is_due = acking.since >= common.config.uplink_ack_every;
        acking.is_wanted |= is_due || acking.last_cv == 0 || is_stalled;
        let is_open = acking.last_cv != 0 || self.ways[UP].rx.has_gap();
        acking.at = if is_open && !acking.is_wanted {
            grid.start(grid.from(now) + QUIET)
        } else {
            Instant::FAR_FUTURE
        };
    }

    /// Reads a report that travelled in `direction`, and does what it says besides: the scheme may change.
    fn report_read(&mut self, direction: Direction, octets: &[u8]) -> Result<AckNack, Error> {
        let way = &mut self.ways[direction.reverse() as usize];
        match direction {
            Direction::Uplink => {
                let message = DownlinkAckNack::parse(octets)?;
                if let (Some(adaptation), Some(quality)) = (&way.adaptation, &message.quality) {
                    adaptation.follow(quality, &mut way.rules);
                }
                Ok(message.report)
            }
            Direction::Downlink => {
                let message = UplinkAckNack::parse(octets)?;
                //= TS 44.060 (9.3.2.1): the mobile uses the commanded scheme from then on.
                if let Some(mcs) = Mcs::new(message.mcs).filter(|_| way.adaptation.is_some()) {
                    way.rules.use_scheme(mcs);
                    way.rules.resegment = message.resegment;
                }
                Ok(message.report)
            }
        }
    }

    /// A report travelled in `direction`, so it is about the other one.
    fn report_came(
        &mut self,
        cx: &mut Cx,
        common: &mut Common,
        direction: Direction,
        report: AckNack,
        capture: &[u8],
        n: u64,
    ) {
        let about = direction.reverse();
        let reason = match direction {
            Direction::Uplink => "downlink ack/nack",
            Direction::Downlink => "uplink ack/nack",
        };
        let point = self.ways[direction as usize].points.rx;
        let row = Row { direction, event: Event::Receive, len: CONTROL_OCTETS, reason: Some(reason) };
        row.report(cx, point, &report, capture);
        let heard = match direction {
            Direction::Uplink => {
                // The report was made when block period `n` began.
                let grid = common.config.grid;
                let lag = (grid.duration() + common.config.processing.downlink).as_nanos();
                (1..).find(|back| {
                    let Some(sent) = n.checked_sub(*back) else { return true };
                    grid.start(n).since(grid.start(sent)).as_nanos() >= lag
                })
            }
            //= TS 44.060 (9.1.3.2): a mobile does not repeat what it sent less than BS_CV_MAX block periods before.
            Direction::Downlink => Some(u64::from(common.config.bs_cv_max)),
        };
        let heard = n as i64 - heard.unwrap_or(0) as i64;
        let way = &mut self.ways[about as usize];
        let rules = way.rules;
        way.tx.on_report(&rules, &report, heard, &mut way.frames);
        if about == Direction::Downlink {
            self.polling.due.retain(|(answer, _)| *answer != n);
            self.polling.unanswered = 0;
            self.polling.next_partial = !report.end_of_window;
            let way = &self.ways[DOWN];
            let is_idle =
                way.tx.is_outstanding() && !way.tx.wants(&rules, &way.frames) && self.polling.due.is_empty();
            self.polling.is_wanted |= !report.end_of_window || is_idle;
        } else if report.is_final
            && self.ways[UP].flow.state == State::Closing
            && !self.ways[UP].tx.is_outstanding()
        {
            self.end_flow(cx, common, Direction::Uplink);
        }
        self.check_drained(cx, common, about);
    }

    /// Is everything sent and acknowledged, or given up? Then a flow is kept for a while, and one that closes ends.
    pub fn check_drained(&mut self, cx: &mut Cx, common: &mut Common, direction: Direction) {
        let Some(times) = common.config.times() else { return };
        let way = &mut self.ways[direction as usize];
        if way.tx.is_outstanding() || way.tx.has_new(&way.frames) {
            return;
        }
        match way.flow.state {
            State::Active => way.flow.on_drained(times, direction, cx.now),
            State::Closing if direction == Direction::Downlink && way.tx.is_closing => {
                self.end_flow(cx, common, direction);
            }
            _ => {}
        }
    }

    fn end_flow(&mut self, cx: &mut Cx, common: &Common, direction: Direction) {
        self.ways[direction as usize].flow.end(cx.now);
        self.forget_air(direction);
        match direction {
            Direction::Downlink => self.polling = Polling::default(),
            Direction::Uplink => {
                (self.acking.is_wanted, self.acking.at) = (false, Instant::FAR_FUTURE);
            }
        }
        if self.ways[direction as usize].frames.has_data() {
            self.on_data(cx, common, direction);
        }
        self.tell_state(cx, common);
    }

    /// Blocks of a flow that ended, and reports about it, mean nothing when they arrive.
    fn forget_air(&mut self, direction: Direction) {
        let (own, reports) = (direction as usize, direction.reverse() as usize);
        self.ways[own].air.retain(|flight| !matches!(flight.load, Load::Data { .. }));
        self.ways[reports].air.retain(|flight| matches!(flight.load, Load::Data { .. }));
    }

    fn flow_timers(&mut self, cx: &mut Cx, common: &mut Common, direction: Direction) {
        let way = &mut self.ways[direction as usize];
        match way.flow.state {
            State::SetUp(at) if at <= cx.now => {
                way.flow.state = State::Active;
                way.begin(&common.config);
                if direction == Direction::Uplink {
                    (self.acking.since, self.acking.last_cv, self.acking.next_partial) = (0, 15, false);
                }
                self.tell_state(cx, common);
                self.check_drained(cx, common, direction);
            }
            State::Active if way.flow.release_at <= cx.now => {
                way.flow.release_at = Instant::FAR_FUTURE;
                way.flow.state = State::Closing;
                match direction {
                    //= TS 44.060 (9.3.1a): delayed release ends with a block that says so; a dummy frame fills it.
                    Direction::Downlink => way.frames.push_dummy(cx.now),
                    //= TS 44.060 (9.3.1b): the network ends an extended flow with a final report.
                    Direction::Uplink => {
                        way.tx.is_closing = true;
                        way.flow.release_at = cx.now + T3182;
                        self.acking.is_wanted = true;
                    }
                }
            }
            // The final report does not come.
            State::Closing if way.flow.release_at <= cx.now => self.end_flow(cx, common, direction),
            _ => {}
        }
    }

    /// The network hears nothing of the mobile any more.
    fn lose_contact(&mut self, cx: &mut Cx, common: &mut Common) {
        common.totals[DOWN].failures += 1;
        self.polling = Polling::default();
        let way = &mut self.ways[DOWN];
        way.frames.drop_sent(false, "tbf lost contact");
        way.begin(&common.config);
        self.forget_air(Direction::Downlink);
        if common.config.times().is_some() {
            self.end_flow(cx, common, Direction::Downlink);
        }
    }

    /// Packets that RLC gave up since this was last asked for.
    pub fn report_lost(&mut self, cx: &mut Cx, common: &mut Common) {
        for way in &mut self.ways {
            common.edge.lose(cx, way.direction, way.points.tx, &mut way.frames.lost);
        }
    }

    /// Counts the blocks of a choice.
    pub fn count(totals: &mut Totals, choice: &Choice, survives: [bool; 2]) {
        totals.radio_blocks += 1;
        totals.data_blocks += 1;
        totals.schemes += u64::from(choice.mcs.number());
        for (sent, survives) in choice.blocks.iter().zip(survives) {
            let Some(sent) = sent else { continue };
            totals.blocks += 1;
            totals.payload += choice.mcs.octets() as u64;
            totals.resent += u64::from(sent.again == Again::Nacked);
            totals.pre_emptive += u64::from(sent.again == Again::PreEmptive);
            totals.blocks_lost += u64::from(!survives);
        }
    }
}

impl cell::Mobile for Mobile {
    type Common = Common;

    fn send(&mut self, cx: &mut Cx, common: &mut Common, direction: Direction, packet: Packet) {
        let way = &mut self.ways[direction as usize];
        let traffic = &mut common.edge.traffic[direction as usize];
        traffic.sdus_in += 1;
        let (sdus, octets) = way.frames.backlog();
        let len = packet.wire_len() as u64;
        let queue = |octets: u64| Some(octets.min(u64::from(u32::MAX)) as u32);
        let facts = |event, reason, octets| PacketFacts {
            reason,
            queue: queue(octets),
            ..PacketFacts::of(&packet, "rlc", event, direction)
        };
        let refused = common.config.queue.get(direction).refuses(sdus as usize, octets, len);
        let reason = match (self.is_up, refused) {
            (false, _) => Some("link down"),
            (_, true) => Some("queue full"),
            _ if len == 0 || len > u64::from(common.config.longest_packet()) => Some("n-pdu size"),
            _ => None,
        };
        if let Some(reason) = reason {
            *if refused && self.is_up { &mut traffic.queue_drops } else { &mut traffic.lost } += 1;
            cx.records.packet(cx.now, way.points.tx, || facts(Event::Drop, Some(reason), octets), |_| {});
            return;
        }
        cx.records.packet(cx.now, way.points.tx, || facts(Event::Enqueue, None, octets + len), |_| {});
        traffic.queue_max = traffic.queue_max.max(octets + len);
        let looked_at =
            |point: Point| cx.records.wants(point) && cx.records.points()[usize::from(point.0)].octets;
        way.frames.keep_copies = looked_at(way.points.tx) || looked_at(way.points.rx);
        let priority = packet_flows::priority(&packet, &common.config.stream_priorities);
        way.frames.push(packet, cx.now, priority);
        self.on_data(cx, common, direction);
    }

    /// Arrivals and timers.
    fn run(&mut self, cx: &mut Cx, common: &mut Common) {
        for direction in Direction::BOTH {
            while self.ways[direction as usize].air.front().is_some_and(|flight| flight.at <= cx.now) {
                if let Some(flight) = self.ways[direction as usize].air.pop_front() {
                    self.arrive(cx, common, direction, flight);
                }
            }
        }
        while self.polling.due.front().is_some_and(|(_, at)| *at <= cx.now) {
            // Everything that landed was looked at: this answer is lost.
            self.polling.due.pop_front();
            self.polling.is_wanted = true;
            self.polling.unanswered = self.polling.unanswered.saturating_add(1);
            common.totals[DOWN].polls_lost += 1;
            let way = &mut self.ways[DOWN];
            if let Some(adaptation) = &way.adaptation {
                adaptation.step_down(&mut way.rules);
            }
            let n3105 = common.config.n3105;
            if n3105 > 0 && self.polling.unanswered >= n3105 {
                self.lose_contact(cx, common);
            }
        }
        if self.acking.at <= cx.now {
            (self.acking.at, self.acking.is_wanted) = (Instant::FAR_FUTURE, true);
        }
        for direction in Direction::BOTH {
            self.flow_timers(cx, common, direction);
        }
        self.report_lost(cx, common);
    }

    fn settle(&mut self, _common: &mut Common, _now: Instant) -> Instant {
        let way = |w: &RadioDirection| {
            let landing = w.air.front().map_or(Instant::FAR_FUTURE, |flight| flight.at);
            landing.min(w.flow.next_timeout())
        };
        let poll = self.polling.due.front().map_or(Instant::FAR_FUTURE, |(_, at)| *at);
        way(&self.ways[0]).min(way(&self.ways[1])).min(poll).min(self.acking.at)
    }

    fn backlog(&self, direction: Direction) -> Backlog {
        let (sdus, octets) = self.ways[direction as usize].frames.backlog();
        Backlog { sdus, octets }
    }

    /// Names of the states are those of GPRS: packet idle, access, transfer.
    fn tell_state(&mut self, cx: &mut Cx, common: &Common) {
        let flows = || self.ways.iter().map(|way| way.flow.state);
        let state = if flows().any(|s| matches!(s, State::Active | State::Closing)) {
            "transfer"
        } else if flows().any(|s| matches!(s, State::SetUp(_))) {
            "access"
        } else {
            "idle"
        };
        if self.told != Some(state) {
            self.told = Some(state);
            push_state(cx, &common.link, self.station, state);
        }
    }

    fn tell_air_time(&mut self, cx: &mut Cx, common: &Common) {
        for way in &mut self.ways {
            let origin = Origin { link: &common.link, station: self.station, direction: way.direction };
            way.burst.flush(cx, origin);
        }
    }

    /// The mobile leaves the cell, or comes back.
    fn set_up(&mut self, cx: &mut Cx, common: &mut Common, is_up: bool) {
        if self.is_up == is_up {
            return;
        }
        self.is_up = is_up;
        if is_up {
            common.edge.events.push_back(BearerEvent::Up(self.station));
            return;
        }
        self.polling = Polling::default();
        (self.acking.is_wanted, self.acking.at) = (false, Instant::FAR_FUTURE);
        let always = common.config.times().is_none();
        for way in &mut self.ways {
            way.frames.drop_sent(true, "link down");
            way.begin(&common.config);
            way.air.clear();
            if !always {
                way.flow.end(cx.now);
            }
        }
        self.tell_air_time(cx, common);
        self.tell_state(cx, common);
        self.report_lost(cx, common);
        common.edge.events.push_back(BearerEvent::Down(self.station, "link down"));
    }

    fn set_loss(&mut self, direction: Option<Direction>, loss: f64) -> Result<(), Unsupported> {
        directions(direction).try_for_each(|d| self.ways[d as usize].radio.set_loss(loss))
    }
}
