//! The links of a world, and what goes into them.

use std::collections::VecDeque;

use airloom_base::record::{Event, PacketFacts};
use airloom_base::service::Described;
use airloom_base::{Bearer, Cx, Direction, Instant, Packet, Point, Protocol};
use airloom_wire::ip::Ip;

use crate::routes::Hop;

/// A link and its wake-up.
pub(crate) struct LinkSlot {
    pub(crate) name: String,
    pub(crate) bearer: Box<dyn Bearer>,
    pub(crate) armed: Instant,
    pub(crate) dirty: bool,
}

/// All links.
#[derive(Default)]
pub(crate) struct Fabric {
    pub(crate) links: Vec<LinkSlot>,
    /// Links that were fed and must be drained, in order.
    pub(crate) fed: VecDeque<u32>,
}

impl Fabric {
    /// Puts a datagram into the link that `hop` names.
    #[inline]
    pub(crate) fn send(&mut self, cx: &mut Cx, hop: Hop, packet: Packet) {
        if let Hop::Link { link, direction, station, .. } = hop {
            let slot = &mut self.links[link as usize];
            slot.bearer.send(cx, direction, station, packet);
            self.touch(link);
        }
    }

    #[inline]
    pub(crate) fn touch(&mut self, link: u32) {
        let slot = &mut self.links[link as usize];
        if !slot.dirty {
            slot.dirty = true;
            self.fed.push_back(link);
        }
    }
}

/// Records a datagram where it enters or leaves a host.
#[inline]
pub(crate) fn record(
    cx: &mut Cx,
    point: Point,
    event: Event,
    direction: Direction,
    packet: &Packet,
    protocols: &[Box<dyn Protocol>],
) {
    if cx.records.wants(point) {
        record_slowly(cx, point, event, direction, packet, protocols);
    }
}

#[cold]
fn record_slowly(
    cx: &mut Cx,
    point: Point,
    event: Event,
    direction: Direction,
    packet: &Packet,
    protocols: &[Box<dyn Protocol>],
) {
    let facts = || {
        let ip = Ip::parse(packet.head()).ok();
        let protocol = ip.map_or(0, |ip| ip.protocol);
        let known = protocols.iter().find(|p| p.ip_protocol() == protocol);
        let unit = ip.and_then(|ip| packet.head().get(ip.header_len..)).unwrap_or_default();
        let Described { seq, ack } = known.map(|p| p.describe(unit)).unwrap_or_default();
        PacketFacts {
            event,
            direction,
            packet: packet.id(),
            flow: packet.flow(),
            proto: known.map_or_else(|| name(protocol), |p| p.name()),
            len: packet.wire_len() as u32,
            seq,
            ack,
            attempt: 0,
            reason: None,
            queue: None,
        }
    };
    cx.records.packet(cx.now, point, facts, |out| airloom_wire::edge::egress(packet, out));
}

fn name(protocol: u8) -> &'static str {
    match protocol {
        1 => "icmp",
        6 => "tcp",
        17 => "udp",
        58 => "icmpv6",
        132 => "sctp",
        _ => "ip",
    }
}
