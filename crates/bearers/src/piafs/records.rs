//! What a circuit tells about its frames: the rows of a PIAFS monitor.

use airloom_base::record::{Event, PacketFacts};
use airloom_base::{Cx, Direction, Packet, Point};

use super::frame::{Frame, OCTETS};
use super::tap::Tap;

/// Why a frame does not arrive.
const CRC_ERROR: &str = "CRC error";

/// A frame at an observation point.
pub struct ObservedFrame<'a> {
    pub frame: &'a Frame,
    /// Has the octets.
    pub tap: &'a Tap,
    pub direction: Direction,
}

impl ObservedFrame<'_> {
    /// It came to the receiving end.
    pub fn arrives(&self, cx: &mut Cx, point: Point) {
        if cx.records.wants(point) {
            cx.records.packet(cx.now, point, || self.facts(Event::Receive), |out| self.octets(out));
        }
    }

    /// It leaves the sending end, and may be lost on its way.
    pub fn departs(&self, cx: &mut Cx, point: Point, event: Event, is_lost: bool) {
        if !cx.records.wants(point) {
            return;
        }
        let mut facts = self.facts(event);
        let lost =
            is_lost.then(|| PacketFacts { event: Event::Drop, reason: Some(CRC_ERROR), ..facts.clone() });
        if is_lost {
            // The capture holds the frame once; its comment tells what became of it.
            facts.reason = Some(CRC_ERROR);
        }
        cx.records.packet(cx.now, point, || facts, |out| self.octets(out));
        if let Some(lost) = lost {
            cx.records.packet(cx.now, point, || lost, |_| {});
        }
    }

    /// A packet that never became frames, or not all of them.
    pub fn dropped(cx: &mut Cx, point: Point, direction: Direction, packet: &Packet, reason: &'static str) {
        let facts = || PacketFacts {
            reason: Some(reason),
            ..PacketFacts::of(packet, "piafs", Event::Drop, direction)
        };
        cx.records.packet(cx.now, point, facts, |_| {});
    }

    fn facts(&self, event: Event) -> PacketFacts {
        let frame = self.frame;
        PacketFacts {
            len: OCTETS as u32,
            seq: (!frame.number.is_none()).then(|| u64::from(frame.number.get())),
            ack: Some(u64::from(frame.request.get())),
            attempt: frame.attempt.min(u32::from(u8::MAX)) as u8,
            reason: frame.number.is_none().then_some("fill"),
            ..PacketFacts::bare("piafs", event, self.direction)
        }
    }

    fn octets(&self, out: &mut Vec<u8>) {
        self.frame.append(out, |field| self.tap.copy(self.frame.span, field));
    }
}
