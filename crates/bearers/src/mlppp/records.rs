//! What a bundle tells about the frames on its members.

use airloom_base::record::{Event, PacketFacts, PointKind};
use airloom_base::{Direction, Instant, Outbox, Packet, Parts, Point, Station};

/// The two ends of a direction of a member, or of the bundle.
#[derive(Clone, Copy)]
pub struct Points {
    pub tx: Point,
    pub rx: Point,
}

impl Points {
    /// Those of a member: `member.3.ppp.dl.tx` and `.rx`.
    pub fn new(parts: &mut Parts, member: u16, direction: Direction) -> Points {
        let mut point = |end| {
            let name = format!("member.{member}.ppp.{}.{end}", direction.short());
            parts.point(&name, PointKind::Ppp { direction, station: Station(0) })
        };
        Points { tx: point("tx"), rx: point("rx") }
    }
}

/// What a frame is, in the `proto` column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A fragment with this number.
    Fragment(u64),
    /// Negotiation of a link.
    Lcp,
    /// Anything else.
    Other,
}

/// Records a frame.
pub fn seen(
    records: &mut Outbox,
    now: Instant,
    point: Point,
    event: Event,
    direction: Direction,
    frame: &Packet,
    kind: Kind,
) {
    let (proto, seq) = match kind {
        Kind::Fragment(number) => ("mp", Some(number)),
        Kind::Lcp => ("lcp", None),
        Kind::Other => ("ppp", None),
    };
    let facts = || PacketFacts { seq, ..PacketFacts::of(frame, proto, event, direction) };
    // Fragments hold pieces of a datagram whose checksums are written only where it is whole.
    records.packet(now, point, facts, |out| frame.append_to(out));
}

/// Records a packet that goes no further.
pub fn dropped(
    records: &mut Outbox,
    now: Instant,
    point: Point,
    direction: Direction,
    packet: &Packet,
    reason: &'static str,
) {
    let facts =
        || PacketFacts { reason: Some(reason), ..PacketFacts::of(packet, "ip", Event::Drop, direction) };
    records.packet(now, point, facts, |_| {});
}
