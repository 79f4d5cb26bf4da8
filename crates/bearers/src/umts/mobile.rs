//! One mobile: the RLC entities at both ends of its channel, and what is between them.

use std::collections::VecDeque;

use airloom_base::record::{Event, PacketFacts};
use airloom_base::{
    Backlog, BearerEvent, Cx, Direction, Duration, Instant, Packet, Point, Station, Unsupported,
};

use super::config::UmtsDchConfig;
use super::dch::{Air, Blocks, TransportFormat};
use super::hsdpa::{self, MacHs};
use super::records::ObservedBlock;
use super::rlc::am::{Am, Block, Format, Pdu, SduStore, Stores};
use super::rrc::Rrc;
use crate::air_time::{Burst, Origin, push_state};
use crate::cell::{self, Delivered, Edge, Mobile as _, Points, directions};
use crate::channel::{BlockLoss, Per};

/// What all mobiles of a bearer share.
pub struct Common {
    pub config: UmtsDchConfig,
    pub format: Format,
    pub per: Per,
    /// Formats of RACH and FACH, by direction.
    pub fach: [TransportFormat; 2],
    /// End of the last interval of the FACH that a mobile was given.
    fach_given_until: Instant,
    /// Name of the link, for cx.records.
    pub link: String,
    /// By direction.
    pub totals: [Totals; 2],
    pub edge: Edge,
    /// Work space: SDUs that a PDU completed, octets of a control PDU.
    delivered: Vec<Delivered>,
    control: Vec<u8>,
}

impl Common {
    pub fn new(
        config: UmtsDchConfig,
        format: Format,
        per: Per,
        fach: [TransportFormat; 2],
        link: String,
    ) -> Self {
        Common {
            config,
            format,
            per,
            fach,
            fach_given_until: Instant::ZERO,
            link,
            totals: Default::default(),
            edge: Edge::default(),
            delivered: Vec::new(),
            control: Vec::new(),
        }
    }
}

/// What one direction counted, over all mobiles.
#[derive(Default)]
pub struct Totals {
    pub blocks: u64,
    pub blocks_lost: u64,
    pub busy: Duration,
}

/// One direction of one mobile.
pub(super) struct ChannelDirection {
    direction: Direction,
    /// The entity that sends in this direction (and receives in the other).
    am: Am,
    /// What it sends.
    pub(super) sdus: SduStore,
    /// From RLC entity to RLC entity; on a shared channel from the RNC to the Node B.
    air: Air,
    /// Format of the dedicated channel; on a shared channel that of the Iub.
    format: TransportFormat,
    loss: BlockLoss,
    /// How long its intervals are now, and what is added to their numbers: those of before were longer or shorter.
    tti: Duration,
    slots_before: u64,
    pub(super) points: Points,
    /// The next transmission interval, if one is needed.
    next_tti: Instant,
    /// End of the last interval used.
    free_from: Instant,
    /// Packets in the core network: before the RLC buffer (downlink), after it (uplink).
    core: VecDeque<(Instant, Instant, Packet)>,
    pub(super) burst: Burst,
}

impl ChannelDirection {
    /// Its intervals are those of another grid from now on.
    fn set_tti(&mut self, tti: Duration, now: Instant) {
        self.next_tti = Instant::FAR_FUTURE;
        if tti != self.tti {
            // Intervals go on being counted: losses are theirs, and never go back.
            let number = |tti: Duration| now.as_nanos() / tti.as_nanos();
            let next = self.slots_before.wrapping_add(number(self.tti)) + 1;
            (self.tti, self.slots_before) = (tti, next.wrapping_sub(number(tti)));
        }
    }
}

/// One mobile.
pub struct Mobile {
    pub(super) station: Station,
    pub(super) ways: [ChannelDirection; 2],
    /// Its part of the shared channel, if its downlink is one.
    pub mac_hs: Option<Box<MacHs>>,
    rrc: Option<Rrc>,
    pub is_up: bool,
}

impl Mobile {
    pub fn new(
        station: Station,
        common: &Common,
        formats: [TransportFormat; 2],
        losses: [BlockLoss; 2],
        points: [Points; 2],
        mac_hs: Option<Box<MacHs>>,
    ) -> Self {
        let [uplink, downlink] = Direction::BOTH;
        let [f_up, f_down] = formats;
        let [l_up, l_down] = losses;
        let way = |direction, format, loss, points| ChannelDirection {
            direction,
            am: Am::new(&common.config.rlc, common.format),
            sdus: SduStore::default(),
            air: Air::default(),
            format,
            loss,
            tti: format.tti,
            slots_before: 0,
            points,
            next_tti: Instant::FAR_FUTURE,
            free_from: Instant::ZERO,
            core: VecDeque::new(),
            burst: Burst::default(),
        };
        Mobile {
            station,
            ways: [way(uplink, f_up, l_up, points[0]), way(downlink, f_down, l_down, points[1])],
            mac_hs,
            rrc: common.config.rrc.is_some().then(Rrc::new),
            is_up: true,
        }
    }

    /// The entity that sends in `direction`.
    pub fn am(&self, direction: Direction) -> &Am {
        &self.ways[direction as usize].am
    }
    /// A new format, from the next interval on.
    pub fn set_format(&mut self, direction: Direction, format: TransportFormat, now: Instant) {
        let is_used = !self.is_on_fach();
        let way = &mut self.ways[direction as usize];
        way.format = format;
        if is_used {
            way.set_tti(format.tti, now);
        }
    }
    fn drop_packet(&self, cx: &mut Cx, direction: Direction, packet: &Packet, reason: &'static str) {
        let way = &self.ways[direction as usize];
        let facts = || PacketFacts {
            reason: Some(reason),
            queue: Some(way.sdus.backlog().1.min(u64::from(u32::MAX)) as u32),
            ..PacketFacts::of(packet, "rlc", Event::Drop, direction)
        };
        cx.records.packet(cx.now, way.points.tx, facts, |_| {});
    }

    /// A packet reaches the RLC buffer.
    fn enqueue(
        &mut self,
        cx: &mut Cx,
        common: &mut Common,
        direction: Direction,
        packet: Packet,
        arrived: Instant,
    ) {
        let way = &mut self.ways[direction as usize];
        let (sdus, octets) = way.sdus.backlog();
        let len = packet.wire_len() as u64;
        let fits = !common.config.queue.get(direction).refuses(sdus as usize, octets, len);
        if !fits || len == 0 {
            let traffic = &mut common.edge.traffic[direction as usize];
            *if fits { &mut traffic.lost } else { &mut traffic.queue_drops } += 1;
            return self.drop_packet(
                cx,
                direction,
                &packet,
                if fits { "empty packet" } else { "queue full" },
            );
        }
        let looked_at = |p: Point| cx.records.points().get(usize::from(p.0)).is_some_and(|info| info.octets);
        way.sdus.keep_copies = cx.records.wants(way.points.tx) && looked_at(way.points.tx)
            || cx.records.wants(way.points.rx) && looked_at(way.points.rx);
        if cx.records.wants(way.points.tx) {
            // As on other links: what waits with this packet.
            let queue = Some((octets + len).min(u64::from(u32::MAX)) as u32);
            let facts =
                || PacketFacts { queue, ..PacketFacts::of(&packet, "rlc", Event::Enqueue, direction) };
            cx.records.packet(cx.now, way.points.tx, facts, |_| {});
        }
        way.sdus.push(packet, arrived, cx.now);
        let traffic = &mut common.edge.traffic[direction as usize];
        traffic.queue_max = traffic.queue_max.max(octets + len);
        if let (Some(rrc), Some(config)) = (&mut self.rrc, &common.config.rrc)
            && rrc.on_data(config, direction, octets + len, cx.now)
        {
            self.rrc_changed(cx, common);
        }
    }

    /// Blocks that land now.
    fn arrive(&mut self, cx: &mut Cx, common: &mut Common, direction: Direction) {
        let index = direction as usize;
        while let Some(count) = self.ways[index].air.land(cx.now) {
            if direction == Direction::Downlink
                && let Some(mac) = &mut self.mac_hs
            {
                mac.enqueue(&mut self.ways[index].air, count);
                continue;
            }
            let mut blocks = std::mem::take(&mut self.ways[index].air.blocks);
            self.receive(cx, common, direction, (&mut blocks, usize::from(count)));
            self.ways[index].air.blocks = blocks;
        }
        self.after_rlc(cx, common);
    }

    /// Blocks of the shared channel that are in order now.
    fn arrive_in_order(&mut self, cx: &mut Cx, common: &mut Common) {
        let Some(mac) = &mut self.mac_hs else { return };
        mac.advance(cx.now);
        let mut blocks = std::mem::take(&mut mac.ready);
        let count = blocks.len();
        if count > 0 {
            self.receive(cx, common, Direction::Downlink, (&mut blocks, count));
        }
        if let Some(mac) = &mut self.mac_hs {
            mac.ready = blocks;
        }
        self.after_rlc(cx, common);
    }

    /// The first `count` of these come to the receiving RLC entity.
    fn receive(
        &mut self,
        cx: &mut Cx,
        common: &mut Common,
        direction: Direction,
        (blocks, count): (&mut Blocks, usize),
    ) {
        let mut control = std::mem::take(&mut common.control);
        let mut delivered = std::mem::take(&mut common.delivered);
        let [up, down] = &mut self.ways;
        let (way, back) = match direction {
            Direction::Uplink => (up, down),
            Direction::Downlink => (down, up),
        };
        for _ in 0..count {
            let Some(flight) = blocks.pop(&mut control) else { break };
            if cx.records.wants(way.points.rx) {
                let (pdu, attempt) = (&flight.pdu, flight.attempt);
                let (control, sdus) = (&control[..], &way.sdus);
                let seen = ObservedBlock { direction, format: common.format, pdu, control, attempt, sdus };
                seen.arrives(cx, way.points.rx);
            }
            let rlc = &common.config.rlc;
            let is_data = flight.pdu.head_len() > 0;
            if is_data {
                back.am.receive_data(rlc, cx.now, &flight.pdu, &mut way.sdus, &mut delivered);
            }
            if !control.is_empty() {
                let mut stores =
                    Stores { own: &mut back.sdus, peers: &mut way.sdus, delivered: &mut delivered };
                if is_data {
                    back.am.receive_status(rlc, &control, &mut stores);
                } else {
                    back.am.receive_control(rlc, &control, &mut stores);
                }
            }
        }
        for Delivered { packet, arrived } in delivered.drain(..) {
            self.deliver(common, direction, packet, arrived, cx.now);
        }
        (common.control, common.delivered) = (control, delivered);
    }

    /// A packet leaves the receiving RLC entity.
    fn deliver(
        &mut self,
        common: &mut Common,
        direction: Direction,
        packet: Packet,
        arrived: Instant,
        now: Instant,
    ) {
        let core = common.config.core_delay;
        if direction == Direction::Uplink && !(core.is_zero() && self.ways[0].core.is_empty()) {
            let at = later(&self.ways[0].core, now + core);
            self.ways[0].core.push_back((at, arrived, packet));
        } else {
            common.edge.deliver(direction, self.station, packet, now.since(arrived));
        }
    }

    fn cross_core(&mut self, cx: &mut Cx, common: &mut Common) {
        while let Some((_, arrived, packet)) = pop_due(&mut self.ways[0].core, cx.now) {
            common.edge.deliver(Direction::Uplink, self.station, packet, cx.now.since(arrived));
        }
        while let Some((_, arrived, packet)) = pop_due(&mut self.ways[1].core, cx.now) {
            self.enqueue(cx, common, Direction::Downlink, packet, arrived);
        }
    }

    fn timers(&mut self, cx: &mut Cx, common: &mut Common) {
        let rlc = &common.config.rlc;
        let mut any = false;
        for way in &mut self.ways {
            if way.am.next_timeout(rlc, &way.sdus, cx.now) <= cx.now {
                way.am.handle_timeout(rlc, cx.now, &mut way.sdus);
                any = true;
            }
        }
        if any {
            self.after_rlc(cx, common);
        }
        if let (Some(rrc), Some(config)) = (&mut self.rrc, &common.config.rrc) {
            if rrc.handle_timeout(config, cx.now) {
                self.rrc_changed(cx, common);
            }
            self.wake(cx, common);
        }
    }

    /// What RLC has to send that no packet brought with it (a report, a repetition, a poll) needs a channel, too.
    fn wake(&mut self, cx: &mut Cx, common: &Common) {
        let (Some(rrc), Some(config)) = (&mut self.rrc, &common.config.rrc) else { return };
        let needs = |way: &&ChannelDirection| way.am.wants_to_send(&way.sdus, cx.now);
        let mut needy = self.ways.iter().filter(needs);
        if self.is_up && needy.any(|way| rrc.on_data(config, way.direction, way.sdus.backlog().1, cx.now)) {
            self.rrc_changed(cx, common);
        }
    }

    /// SDUs that RLC gave up, and entities that gave up altogether.
    fn after_rlc(&mut self, cx: &mut Cx, common: &mut Common) {
        if self.ways.iter().any(|w| w.am.has_failed()) {
            // ASSUMPTION: upper layers establish RLC anew at once; in a network that takes a cell update.
            self.re_establish(common, "rlc unrecoverable error", cx.now);
            common.edge.events.push_back(BearerEvent::Down(self.station, "rlc unrecoverable error"));
            common.edge.events.push_back(BearerEvent::Up(self.station));
        }
        for way in &mut self.ways {
            common.edge.lose(cx, way.direction, way.points.tx, &mut way.sdus.lost);
        }
    }

    fn re_establish(&mut self, common: &Common, reason: &'static str, now: Instant) {
        for way in &mut self.ways {
            // Both ends are established anew; one of them failed, as a rule.
            way.am.counters.failures += u64::from(way.am.has_failed());
            way.sdus.drop_sent(reason);
            way.am.re_establish(&common.config.rlc, &mut way.sdus);
            way.air.clear();
        }
        if let Some(mac) = &mut self.mac_hs {
            mac.reset(now);
        }
    }

    fn is_on_fach(&self) -> bool {
        self.rrc.as_ref().is_some_and(|rrc| rrc.state() == super::rrc::State::Fach)
    }

    fn current_format(&self, common: &Common, direction: Direction) -> (TransportFormat, Duration) {
        let way = &self.ways[direction as usize];
        match &common.config.rrc {
            Some(config) if self.is_on_fach() => (common.fach[direction as usize], config.fach_delay),
            _ => (way.format, Duration::ZERO),
        }
    }

    /// The next interval of `direction`, at `from` or later.
    fn next_interval(&self, common: &mut Common, direction: Direction, from: Instant) -> Instant {
        let (format, _) = self.current_format(common, direction);
        if direction == Direction::Uplink || !self.is_on_fach() {
            return format.slot_from(from);
        }
        // The cell has one FACH. Each mobile holds at most one interval to come and asks for the next after it was
        // served, so those with data take turns. An interval held by a mobile that leaves FACH stays empty.
        let slot = format.slot_from(from.max(common.fach_given_until));
        common.fach_given_until = slot + format.tti;
        slot
    }

    #[inline]
    fn next_timeout(&self, common: &Common, now: Instant) -> Instant {
        let rlc = &common.config.rlc;
        let [a, b] = &self.ways;
        let way = |w: &ChannelDirection| {
            let core = w.core.front().map_or(Instant::FAR_FUTURE, |(at, ..)| *at);
            w.next_tti.min(w.air.next_arrival()).min(core).min(w.am.next_timeout(rlc, &w.sdus, now))
        };
        let rrc = self.rrc.as_ref().map_or(Instant::FAR_FUTURE, Rrc::next_timeout);
        let mac = self.mac_hs.as_ref().map_or(Instant::FAR_FUTURE, |mac| mac.next_timeout());
        way(a).min(way(b)).min(rrc).min(mac)
    }

    /// Transmission intervals are needed where something wants to be sent.
    #[inline]
    fn arm(&mut self, common: &mut Common, now: Instant) {
        let can_send = self.is_up && self.rrc.as_ref().is_none_or(Rrc::can_send);
        for direction in Direction::BOTH {
            let way = &self.ways[direction as usize];
            let has_credits =
                direction == Direction::Uplink || self.mac_hs.as_ref().is_none_or(|mac| mac.credits > 0);
            if way.next_tti == Instant::FAR_FUTURE
                && can_send
                && has_credits
                && way.am.wants_to_send(&way.sdus, now)
            {
                let slot = self.next_interval(common, direction, now.max(way.free_from));
                self.ways[direction as usize].next_tti = slot;
            }
        }
    }

    /// One transmission interval of `direction` begins.
    fn transmit(&mut self, cx: &mut Cx, common: &mut Common, direction: Direction) {
        let (format, more_delay) = self.current_format(common, direction);
        let way = &mut self.ways[direction as usize];
        let end = cx.now + format.tti;
        let slot = way.slots_before.wrapping_add(format.slot_number(cx.now));
        let probability = way.loss.probability(slot, cx.now);
        let frame_lost = common.per == Per::FecFrame && way.loss.loses(probability, slot, 0);
        let (mut place, mut landing, mut lost_blocks, mut again_octets) = (0, 0, 0, 0);
        let ChannelDirection { am, sdus, air, loss, points, .. } = way;
        let pdu_octets = u64::from(common.format.pdu_octets);
        am.serve(&common.config.rlc, cx.now, format.blocks, sdus, |sdus, block| {
            let is_lost = frame_lost || common.per == Per::Pdu && loss.loses(probability, slot, place);
            place += 1;
            let none = Pdu::default();
            let (event, pdu, control, attempt) = contents(&block, &none);
            again_octets += if event == Event::Retransmit { pdu_octets } else { 0 };
            if cx.records.wants(points.tx) {
                let seen = ObservedBlock { direction, format: common.format, pdu, control, attempt, sdus };
                seen.departs(cx, points.tx, event, is_lost);
            }
            if is_lost {
                lost_blocks += 1;
            } else {
                air.blocks.push(pdu, control, attempt);
                landing += 1;
            }
        });
        way.air.launch(end + common.config.radio_delay + more_delay, landing);
        way.next_tti = Instant::FAR_FUTURE;
        way.free_from = end;
        if place == 0 {
            return;
        }
        let totals = &mut common.totals[direction as usize];
        totals.blocks += u64::from(place);
        totals.blocks_lost += lost_blocks;
        totals.busy += format.tti;
        if let (Some(rrc), Some(config)) = (&mut self.rrc, &common.config.rrc) {
            rrc.on_activity(config, end);
        }
        if cx.records.wants_facts() {
            let way = &mut self.ways[direction as usize];
            let more = way.am.wants_to_send(&way.sdus, cx.now);
            let octets = u64::from(place) * pdu_octets;
            let origin = Origin { link: &common.link, station: self.station, direction };
            let interval = (cx.now, end);
            way.burst.note(cx, origin, interval, (octets, again_octets), more);
        }
    }

    /// The RNC hands on to the Node B what it has credits for.
    fn submit(&mut self, cx: &mut Cx, common: &mut Common) {
        let Some(mac) = &mut self.mac_hs else { return };
        let direction = Direction::Downlink;
        let way = &mut self.ways[direction as usize];
        let ChannelDirection { am, sdus, air, points, .. } = way;
        let mut count = 0;
        let room = u16::try_from(mac.credits).unwrap_or(u16::MAX);
        am.serve(&common.config.rlc, cx.now, room, sdus, |sdus, block| {
            count += 1;
            let none = Pdu::default();
            let (event, pdu, control, attempt) = contents(&block, &none);
            if cx.records.wants(points.tx) {
                let seen = ObservedBlock { direction, format: common.format, pdu, control, attempt, sdus };
                seen.departs(cx, points.tx, event, false);
            }
            air.blocks.push(pdu, control, attempt);
        });
        mac.credits -= u32::from(count);
        way.air.launch(cx.now + mac.iub_delay(), count);
        way.next_tti = Instant::FAR_FUTURE;
        way.free_from = cx.now + way.format.tti;
    }

    /// Is there anything for the shared channel, in the RNC or in the Node B?
    pub fn wants_shared_channel(&self, now: Instant) -> bool {
        let way = &self.ways[Direction::Downlink as usize];
        self.is_up
            && self.mac_hs.as_ref().is_some_and(|mac| mac.is_busy() || way.am.wants_to_send(&way.sdus, now))
    }

    /// TTI `slot` of the shared channel, which begins at `now`, is its.
    pub fn serve_shared_channel(&mut self, cx: &mut Cx, common: &mut Common, slot: u64) {
        let Some(mac) = &mut self.mac_hs else { return };
        let Some(mut sent) = mac.serve(slot, cx.now) else { return };
        let direction = Direction::Downlink;
        let way = &mut self.ways[direction as usize];
        let octets = u64::from(sent.pdus) * u64::from(common.format.pdu_octets);
        let totals = &mut common.totals[direction as usize];
        totals.blocks += u64::from(sent.pdus);
        totals.blocks_lost += u64::from(sent.pdus) * u64::from(sent.is_lost);
        totals.busy += hsdpa::TTI;
        if cx.records.wants(way.points.tx) {
            sent.tell(cx, way.points.tx, (common.format, &way.sdus));
        }
        if cx.records.wants_facts() {
            let more = mac.is_busy();
            let again = if sent.attempt > 1 { octets } else { 0 };
            let origin = Origin { link: &common.link, station: self.station, direction };
            let interval = (cx.now, cx.now + hsdpa::TTI);
            way.burst.note(cx, origin, interval, (octets, again), more);
        }
    }

    fn rrc_changed(&mut self, cx: &mut Cx, common: &Common) {
        for direction in Direction::BOTH {
            // The grids of the new state are others.
            let (format, _) = self.current_format(common, direction);
            self.ways[direction as usize].set_tti(format.tti, cx.now);
        }
        self.tell_state(cx, common);
    }
}

impl cell::Mobile for Mobile {
    type Common = Common;

    fn send(&mut self, cx: &mut Cx, common: &mut Common, direction: Direction, packet: Packet) {
        common.edge.traffic[direction as usize].sdus_in += 1;
        if !self.is_up {
            common.edge.traffic[direction as usize].lost += 1;
            return self.drop_packet(cx, direction, &packet, "link down");
        }
        let core = common.config.core_delay;
        if direction == Direction::Downlink && !(core.is_zero() && self.ways[1].core.is_empty()) {
            let at = later(&self.ways[1].core, cx.now + core);
            self.ways[1].core.push_back((at, cx.now, packet));
        } else {
            self.enqueue(cx, common, direction, packet, cx.now);
        }
    }

    /// Arrivals, the core network, timers, then the transmission intervals.
    fn run(&mut self, cx: &mut Cx, common: &mut Common) {
        for direction in Direction::BOTH {
            self.arrive(cx, common, direction);
        }
        if self.mac_hs.is_some() {
            self.arrive_in_order(cx, common);
        }
        self.cross_core(cx, common);
        self.timers(cx, common);
        self.arm(common, cx.now);
        for direction in Direction::BOTH {
            if self.ways[direction as usize].next_tti <= cx.now {
                if direction == Direction::Downlink && self.mac_hs.is_some() {
                    self.submit(cx, common);
                } else {
                    self.transmit(cx, common, direction);
                }
            }
        }
    }

    #[inline]
    fn settle(&mut self, common: &mut Common, now: Instant) -> Instant {
        self.arm(common, now);
        self.next_timeout(common, now)
    }

    fn backlog(&self, direction: Direction) -> Backlog {
        let way = &self.ways[direction as usize];
        let (mut sdus, mut octets) = way.sdus.backlog();
        if direction == Direction::Downlink {
            sdus += way.core.len() as u32;
            octets += way.core.iter().map(|(.., p)| p.wire_len() as u64).sum::<u64>();
        }
        Backlog { sdus, octets }
    }

    fn tell_state(&mut self, cx: &mut Cx, common: &Common) {
        let state = self.rrc.as_ref().map_or(super::rrc::State::Dch, Rrc::state);
        push_state(cx, &common.link, self.station, state.name());
    }

    fn tell_air_time(&mut self, cx: &mut Cx, common: &Common) {
        for way in &mut self.ways {
            let origin = Origin { link: &common.link, station: self.station, direction: way.direction };
            way.burst.flush(cx, origin);
        }
    }

    /// Nothing that was sent before it was released arrives.
    fn set_up(&mut self, cx: &mut Cx, common: &mut Common, is_up: bool) {
        if self.is_up == is_up {
            return;
        }
        self.is_up = is_up;
        if is_up {
            common.edge.events.push_back(BearerEvent::Up(self.station));
            return;
        }
        for way in &mut self.ways {
            way.sdus.drop_all("link down");
            way.am.re_establish(&common.config.rlc, &mut way.sdus);
            way.air.clear();
            way.next_tti = Instant::FAR_FUTURE;
        }
        for direction in Direction::BOTH {
            for (.., packet) in std::mem::take(&mut self.ways[direction as usize].core) {
                common.edge.traffic[direction as usize].lost += 1;
                self.drop_packet(cx, direction, &packet, "link down");
            }
        }
        if let Some(mac) = &mut self.mac_hs {
            mac.reset(cx.now);
        }
        self.after_rlc(cx, common);
        self.tell_air_time(cx, common);
        common.edge.events.push_back(BearerEvent::Down(self.station, "link down"));
    }

    fn set_loss(&mut self, direction: Option<Direction>, loss: f64) -> Result<(), Unsupported> {
        if self.mac_hs.is_some() && direction != Some(Direction::Uplink) {
            return Err(Unsupported(
                "block errors of the shared channel come from `snr`: change those of the uplink",
            ));
        }
        directions(direction).try_for_each(|d| self.ways[d as usize].loss.set_loss(loss))
    }
}

/// What a block from RLC is: what is told of it, its data PDU (or none) and its control octets, which transmission.
fn contents<'a>(block: &Block<'a>, none: &'a Pdu) -> (Event, &'a Pdu, &'a [u8], u8) {
    match *block {
        Block::Data { pdu, attempt, again, status, .. } => {
            let event = if again { Event::Retransmit } else { Event::Transmit };
            (event, pdu, status, attempt.min(255) as u8)
        }
        Block::Control(octets) => (Event::Ack, none, octets, 0),
    }
}

/// Not before what is already in the queue.
fn later(queue: &VecDeque<(Instant, Instant, Packet)>, at: Instant) -> Instant {
    queue.back().map_or(at, |(before, ..)| at.max(*before))
}

fn pop_due(
    queue: &mut VecDeque<(Instant, Instant, Packet)>,
    now: Instant,
) -> Option<(Instant, Instant, Packet)> {
    queue.front().is_some_and(|(at, ..)| *at <= now).then(|| queue.pop_front()).flatten()
}
