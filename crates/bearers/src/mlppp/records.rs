//! What a bundle tells about the frames on its members.

use airloom_base::record::{Event, PacketFacts};
use airloom_base::{Cx, Direction, Packet, Point};

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
pub fn seen(cx: &mut Cx, point: Point, event: Event, direction: Direction, frame: &Packet, kind: Kind) {
    let (proto, seq) = match kind {
        Kind::Fragment(number) => ("mp", Some(number)),
        Kind::Lcp => ("lcp", None),
        Kind::Other => ("ppp", None),
    };
    let facts = || PacketFacts { seq, ..PacketFacts::of(frame, proto, event, direction) };
    // Fragments hold pieces of a datagram whose checksums are written only where it is whole.
    cx.records.packet(cx.now, point, facts, |out| frame.append_to(out));
}

/// Records a packet that goes no further.
pub fn dropped(cx: &mut Cx, point: Point, direction: Direction, packet: &Packet, reason: &'static str) {
    let facts =
        || PacketFacts { reason: Some(reason), ..PacketFacts::of(packet, "ip", Event::Drop, direction) };
    cx.records.packet(cx.now, point, facts, |_| {});
}
