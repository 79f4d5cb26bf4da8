//! One direction of a trace-driven link: queue, opportunities, loss, delay.

use std::collections::VecDeque;

use airloom_base::record::{Event, PacketFacts, PointKind};
use airloom_base::units::QueueLimit;
use airloom_base::{
    Backlog, ConfigError, Cx, Direction, Instant, Packet, Parts, Passed, Point, Summary, Unsupported,
};

use super::delay::Delay;
use super::opportunities::Opportunities;
use super::{Config, OVERHEAD};
use crate::channel::PacketLoss;

/// A packet between entering and arriving.
struct InFlight {
    sent: Instant,
    arrival: Instant,
    packet: Packet,
    lost: bool,
}

/// One direction. `waiting` of the packets in `flight`, counted from the back, have not been sent yet.
#[derive(getset::CopyGetters)]
pub(super) struct OneWay {
    pub(super) direction: Direction,
    opportunities: Opportunities,
    pub(super) delay: Delay,
    pub(super) limit: Option<QueueLimit>,
    loss: PacketLoss,
    flight: VecDeque<InFlight>,
    waiting: usize,
    waiting_octets: u64,
    /// Up to when packets have arrived.
    now: Instant,
    point: Point,
    packets: u64,
    octets: u64,
    losses: u64,
    drops: u64,
    #[getset(get_copy = "pub(super)")]
    queue_max: u64,
}

impl OneWay {
    pub(super) fn new(config: &Config, direction: Direction, parts: &mut Parts) -> Result<Self, ConfigError> {
        config.loss.check_wire()?;
        let opportunities = if direction == Direction::Uplink { &config.up } else { &config.down };
        Ok(OneWay {
            direction,
            opportunities: Opportunities::new(opportunities, config.ramp),
            delay: config.delay.get(direction).0.clone(),
            limit: config.queue.map(|q| q.get(direction)),
            loss: PacketLoss::new(config.loss.of_direction(direction), parts.fate("loss"), direction),
            flight: VecDeque::new(),
            waiting: 0,
            waiting_octets: 0,
            now: Instant::ZERO,
            point: parts.point(&format!("queue.{}.tx", direction.short()), PointKind::Ip),
            packets: 0,
            octets: 0,
            losses: 0,
            drops: 0,
            queue_max: 0,
        })
    }

    /// Forgets those of the waiting packets that have been sent by now.
    fn settle(&mut self, now: Instant) {
        while self.waiting > 0 {
            let first = &self.flight[self.flight.len() - self.waiting];
            if first.sent > now {
                break;
            }
            self.waiting_octets -= first.packet.wire_len() as u64;
            self.waiting -= 1;
        }
    }

    pub(super) fn send(&mut self, cx: &mut Cx, packet: Packet, up: bool) {
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
        let lost = self.loss.loses(cx.now, &packet);
        self.octets += len;
        let sent = self.opportunities.send(cx.now, len + OVERHEAD, self.waiting == 0);
        self.waiting += 1;
        self.waiting_octets += len;
        self.queue_max = self.queue_max.max(self.waiting_octets);
        if lost {
            self.losses += 1;
            self.record(cx, Event::Drop, &packet, Some("lost"));
        } else {
            self.record(cx, Event::Enqueue, &packet, None);
        }
        // Order is kept when the delay becomes shorter.
        let latest = self.flight.back().map_or(Instant::ZERO, |last| last.arrival);
        let arrival = (sent + self.delay.at(sent)).max(latest);
        self.flight.push_back(InFlight { sent, arrival, packet, lost });
    }

    /// When the next packet leaves at the far end (or a lost one is forgotten).
    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.flight.front().map(|f| f.arrival)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    pub(super) fn poll_delivery(&mut self) -> Option<Packet> {
        while self.flight.front().is_some_and(|first| first.arrival <= self.now) {
            let first = self.flight.pop_front()?;
            if self.waiting > self.flight.len() {
                self.waiting -= 1;
                self.waiting_octets -= first.packet.wire_len() as u64;
            }
            if !first.lost {
                return Some(first.packet);
            }
        }
        None
    }

    /// The link is cut: what is on it is lost.
    pub(super) fn cut(&mut self, cx: &mut Cx) {
        let lost = std::mem::take(&mut self.flight);
        (self.waiting, self.waiting_octets) = (0, 0);
        for f in lost.iter().filter(|f| !f.lost) {
            self.losses += 1;
            self.record(cx, Event::Drop, &f.packet, Some("link down"));
        }
    }

    pub(super) fn set_loss(&mut self, loss: f64) -> Result<(), Unsupported> {
        self.loss.set_loss(loss)
    }

    pub(super) fn backlog(&self, now: Instant) -> Backlog {
        // Some of those counted as waiting may have been sent since the last packet came.
        let waiting = self.flight.iter().skip(self.flight.len() - self.waiting).filter(|f| f.sent > now);
        waiting.fold(Backlog::default(), |sum, f| Backlog {
            sdus: sum.sdus + 1,
            octets: sum.octets + f.packet.wire_len() as u64,
        })
    }

    pub(super) fn lost(&self) -> u64 {
        self.losses + self.drops
    }

    pub(super) fn passed(&self) -> Passed {
        Passed { frames: self.packets, errors: self.losses, octets: self.octets }
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
    }

    fn record(&self, cx: &mut Cx, event: Event, packet: &Packet, reason: Option<&'static str>) {
        if !cx.records.wants(self.point) {
            return;
        }
        let facts = || {
            let queue = Some(self.waiting_octets as u32);
            PacketFacts { reason, queue, ..PacketFacts::of(packet, "ip", event, self.direction) }
        };
        cx.records.packet(cx.now, self.point, facts, |out| airloom_wire::edge::egress(packet, out));
    }
}
