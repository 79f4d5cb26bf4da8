//! One direction of a wire, or of a link that sends when a trace says: queue, serialisation, loss, delay.

use std::collections::VecDeque;

use airloom_base::record::{Event, PacketFacts, PointKind};
use airloom_base::units::{QueueLimit, Rate};
use airloom_base::{
    Backlog, ConfigError, Cx, Direction, Duration, Instant, Packet, Parts, Passed, Point, Summary,
    Unsupported,
};

use airloom_wire::ip;

use super::Config;
use crate::channel::PacketLoss;
use crate::trace::delay::Delay;
use crate::trace::opportunities::{OVERHEAD, Opportunities};

/// A packet between entering and arriving.
struct InFlight {
    /// End of its serialisation.
    departure: Instant,
    /// When it arrives at the far end; meaningless if it is lost.
    arrival: Instant,
    packet: Packet,
    /// Time of its serialisation.
    service: Duration,
    /// Octets of the packet.
    len: u32,
    lost: bool,
}

/// What says when packets leave.
pub(crate) enum Pace {
    /// One behind the other at this rate; without it they take no time.
    Rate(Option<Rate>),
    /// At the opportunities of a trace.
    Trace(Opportunities),
}

/// One direction. `waiting` of the packets in `flight`, counted from the back, have not departed yet.
#[derive(getset::CopyGetters)]
pub(super) struct OneWay {
    pub(super) direction: Direction,
    pace: Pace,
    pub(super) delay: Delay,
    pub(super) limit: Option<QueueLimit>,
    /// From so much waiting on packets are marked.
    ecn: Option<QueueLimit>,
    loss: PacketLoss,
    flight: VecDeque<InFlight>,
    waiting: usize,
    waiting_octets: u64,
    /// Arrival of the first packet in `flight`.
    #[getset(get_copy = "pub(super)")]
    next_arrival: Instant,
    /// Size of the last packet and the time it took: most packets are like the one before.
    last: (u64, Duration),
    point: Point,
    packets: u64,
    octets: u64,
    losses: u64,
    /// Of those that were lost behind the queue.
    lost_octets: u64,
    drops: u64,
    marked: u64,
    #[getset(get_copy = "pub(super)")]
    queue_max: u64,
    busy: Duration,
}

impl OneWay {
    /// What packets do besides is in `config`.
    pub(super) fn new(
        (pace, delay): (Pace, Delay),
        config: &Config,
        direction: Direction,
        parts: &mut Parts,
    ) -> Result<Self, ConfigError> {
        config.loss.check_wire()?;
        let point = parts.point(&format!("queue.{}.tx", direction.short()), PointKind::Ip);
        if let Pace::Rate(Some(rate)) = pace {
            parts.records.set_speed(point, rate.bits_per_second());
        }
        Ok(OneWay {
            direction,
            pace,
            delay,
            limit: config.queue.map(|q| q.get(direction)),
            ecn: config.ecn.map(|q| q.get(direction)),
            loss: PacketLoss::new(config.loss.of_direction(direction), parts.fate("loss"), direction),
            flight: VecDeque::new(),
            waiting: 0,
            waiting_octets: 0,
            next_arrival: Instant::FAR_FUTURE,
            last: (0, Duration::ZERO),
            point,
            packets: 0,
            octets: 0,
            losses: 0,
            lost_octets: 0,
            drops: 0,
            marked: 0,
            queue_max: 0,
            busy: Duration::ZERO,
        })
    }

    /// Forgets those of the waiting packets that have departed by now.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant) {
        while self.waiting > 0 {
            let first = &self.flight[self.flight.len() - self.waiting];
            if first.departure > now {
                break;
            }
            self.waiting_octets -= u64::from(first.len);
            self.waiting -= 1;
        }
    }

    pub(super) fn send(&mut self, cx: &mut Cx, mut packet: Packet, up: bool) {
        self.settle(cx.now);
        let len = packet.wire_len() as u64;
        self.packets += 1;
        if !up {
            self.losses += 1;
            return self.record(cx, Event::Drop, &packet, Some("link down"));
        }
        if self.limit.is_some_and(|limit| limit.refuses(self.waiting, self.waiting_octets, len)) {
            self.drops += 1;
            return self.record(cx, Event::Drop, &packet, Some("queue full"));
        }
        if self.ecn.is_some() {
            self.mark(&mut packet, len);
        }
        let lost = self.loss.loses(cx.now, &packet);
        self.octets += len;
        let (start, latest) = match self.flight.back() {
            Some(last) => (last.departure.max(cx.now), last.arrival),
            None => (cx.now, Instant::ZERO),
        };
        let (departure, service) = match &mut self.pace {
            Pace::Rate(rate) => {
                if self.last.0 != len {
                    self.last = (len, rate.map_or(Duration::ZERO, |r| r.time_for(len)));
                }
                (start + self.last.1, self.last.1)
            }
            Pace::Trace(chances) => (chances.send(cx.now, len + OVERHEAD, self.waiting == 0), Duration::ZERO),
        };
        self.busy += service;
        self.waiting += 1;
        self.waiting_octets += len;
        self.queue_max = self.queue_max.max(self.waiting_octets);
        if lost {
            self.losses += 1;
            self.lost_octets += len;
            self.record(cx, Event::Drop, &packet, Some("lost"));
        } else {
            self.record(cx, Event::Enqueue, &packet, None);
        }
        // Order is kept when the delay was shortened meanwhile.
        let arrival = (departure + self.delay.at(departure)).max(latest);
        self.next_arrival = self.next_arrival.min(arrival);
        self.flight.push_back(InFlight { departure, arrival, packet, service, len: len as u32, lost });
    }

    /// Marks a packet that finds as much waiting as the threshold says.
    fn mark(&mut self, packet: &mut Packet, len: u64) {
        let congested = self.ecn.is_some_and(|limit| limit.refuses(self.waiting, self.waiting_octets, len));
        if congested && ip::mark_ce(packet.head_mut()) {
            self.marked += 1;
        }
    }

    #[inline]
    fn find_next_arrival(&mut self) {
        self.next_arrival = self.flight.front().map_or(Instant::FAR_FUTURE, |f| f.arrival);
    }

    /// Takes out the next packet that arrives before `end`; lost ones are forgotten on the way.
    #[inline]
    pub(super) fn take(&mut self, end: Instant) -> Option<Packet> {
        while self.next_arrival < end {
            let InFlight { packet, len, lost, .. } = self.flight.pop_front()?;
            self.find_next_arrival();
            if self.waiting > self.flight.len() {
                self.waiting -= 1;
                self.waiting_octets -= u64::from(len);
            }
            if !lost {
                return Some(packet);
            }
        }
        None
    }

    /// The wire is cut: what is on it is lost.
    pub(super) fn cut(&mut self, cx: &mut Cx) {
        self.settle(cx.now);
        let lost = std::mem::take(&mut self.flight);
        self.busy -=
            lost.iter().skip(lost.len() - self.waiting).fold(Duration::ZERO, |sum, f| sum + f.service);
        (self.waiting, self.waiting_octets) = (0, 0);
        self.next_arrival = Instant::FAR_FUTURE;
        if let Pace::Trace(chances) = &mut self.pace {
            // The opportunities that were meant for them are free.
            chances.begin(cx.now);
        }
        for f in lost.iter().filter(|f| !f.lost) {
            self.losses += 1;
            self.lost_octets += u64::from(f.len);
            self.record(cx, Event::Drop, &f.packet, Some("link down"));
        }
    }

    /// A new rate, for all packets that are not in service yet.
    pub(super) fn set_rate(&mut self, now: Instant, rate: Rate) -> Result<(), Unsupported> {
        self.settle(now);
        let Pace::Rate(pace) = &mut self.pace else {
            return Err(Unsupported("the rate of a trace is in its file"));
        };
        *pace = Some(rate);
        self.last = (0, Duration::ZERO);
        let first_waiting = self.flight.len() - self.waiting;
        let Some(in_service) = self.flight.get(first_waiting) else { return Ok(()) };
        let (mut departure, mut arrival) = (in_service.departure, in_service.arrival);
        for f in self.flight.iter_mut().skip(first_waiting + 1) {
            let service = rate.time_for(u64::from(f.len));
            self.busy = self.busy - f.service + service;
            f.service = service;
            departure += service;
            arrival = arrival.max(departure + self.delay.at(departure));
            (f.departure, f.arrival) = (departure, arrival);
        }
        self.find_next_arrival();
        Ok(())
    }

    /// Does it do anything to packets but hold them?
    pub(super) fn only_delays(&self) -> bool {
        matches!(self.pace, Pace::Rate(None)) && self.limit.is_none() && self.loss.is_never()
    }

    pub(super) fn set_loss(&mut self, loss: f64) -> Result<(), Unsupported> {
        self.loss.set_loss(loss)
    }

    pub(super) fn backlog(&self, now: Instant) -> Backlog {
        // Some of those counted as waiting may have departed since the last packet came.
        let waiting = self.flight.iter().skip(self.flight.len() - self.waiting).filter(|f| f.departure > now);
        waiting.fold(Backlog::default(), |sum, f| Backlog {
            sdus: sum.sdus + 1,
            octets: sum.octets + u64::from(f.len),
        })
    }

    pub(super) fn lost(&self) -> u64 {
        self.losses + self.drops
    }

    pub(super) fn passed(&self) -> Passed {
        let under_way: u64 = self.flight.iter().filter(|f| !f.lost).map(|f| u64::from(f.len)).sum();
        let octets = self.octets - self.lost_octets - under_way;
        Passed { frames: self.packets, errors: self.losses, octets }
    }

    /// Serialisation time of what waits; it was counted when it entered.
    fn still_to_serve(&self) -> Duration {
        let waiting = self.flight.iter().skip(self.flight.len() - self.waiting);
        waiting.fold(Duration::ZERO, |sum, f| sum + f.service)
    }

    pub(super) fn summarise(&self, direction: Direction, out: &mut Summary) {
        let name = direction.name();
        for (what, value) in [
            ("packets", self.packets),
            ("bytes", self.octets),
            ("lost", self.losses),
            ("queue_drops", self.drops),
            ("queue_max_bytes", self.queue_max),
        ] {
            out.set(&format!("{name}.{what}"), value as f64);
        }
        if let Pace::Rate(_) = self.pace {
            self.summarise_rate(name, out);
        }
    }

    /// What a link without a trace counts besides.
    fn summarise_rate(&self, name: &str, out: &mut Summary) {
        out.set(&format!("{name}.busy_s"), (self.busy - self.still_to_serve()).as_secs_f64());
        if self.ecn.is_some() {
            out.set(&format!("{name}.ecn_marked"), self.marked as f64);
        }
    }

    #[inline]
    fn record(&self, cx: &mut Cx, event: Event, packet: &Packet, reason: Option<&'static str>) {
        if cx.records.wants(self.point) {
            self.record_slowly(cx, event, packet, reason);
        }
    }

    #[cold]
    fn record_slowly(&self, cx: &mut Cx, event: Event, packet: &Packet, reason: Option<&'static str>) {
        let facts = || {
            let queue = Some(self.waiting_octets as u32);
            PacketFacts { reason, queue, ..PacketFacts::of(packet, "ip", event, self.direction) }
        };
        cx.records.packet(cx.now, self.point, facts, |out| airloom_wire::edge::egress(packet, out));
    }
}
