//! What a mobile tells about its blocks, its air time and its radio state.

use airloom_base::record::{Event, PacketFacts};
use airloom_base::{Cx, Direction, Point};

use super::rlc::am::{Control, Format, Pdu, SduStore, Sufi, Sufis};

/// A block at an observation point.
pub struct ObservedBlock<'a> {
    pub direction: Direction,
    pub format: Format,
    /// The data PDU (without header octets if the block is a control PDU).
    pub pdu: &'a Pdu,
    /// Octets of the control PDU, or of the piggybacked STATUS.
    pub control: &'a [u8],
    /// Which transmission, from 1.
    pub attempt: u8,
    /// The SDUs that the data PDU is made of.
    pub sdus: &'a SduStore,
}

impl ObservedBlock<'_> {
    /// It came to the receiving end.
    #[cold]
    pub fn arrives(&self, cx: &mut Cx, point: Point) {
        cx.records.packet(cx.now, point, || self.facts(Event::Receive), |out| self.octets(out));
    }

    /// It leaves the sending end, and may be lost on its way.
    #[cold]
    pub fn departs(&self, cx: &mut Cx, point: Point, event: Event, is_lost: bool) {
        let mut facts = self.facts(event);
        if matches!(facts.reason, Some("reset" | "reset ack")) {
            facts.event = Event::Transmit;
        }
        let lost =
            is_lost.then(|| PacketFacts { event: Event::Drop, reason: Some("block error"), ..facts.clone() });
        if is_lost {
            // The capture holds the block once; its comment tells what became of it.
            facts.reason = Some("block error");
        }
        cx.records.packet(cx.now, point, || facts, |out| self.octets(out));
        if let Some(lost) = lost {
            cx.records.packet(cx.now, point, || lost, |_| {});
        }
    }

    /// It was lost on its way, as far as the link layer below is concerned for good.
    #[cold]
    pub fn is_given_up(&self, cx: &mut Cx, point: Point) {
        let facts = || PacketFacts { reason: Some("given up by HARQ"), ..self.facts(Event::Drop) };
        cx.records.packet(cx.now, point, facts, |_| {});
    }

    fn is_data(&self) -> bool {
        self.pdu.head_len() > 0
    }

    /// What the packets table says of it.
    fn facts(&self, event: Event) -> PacketFacts {
        let is_data = self.is_data();
        let sdu = is_data.then(|| self.sdus.get(self.pdu.sdu)).flatten();
        let kind = if is_data { None } else { Control::parse(self.control).ok() };
        let reason = match kind {
            Some(Control::Reset(_)) => Some("reset"),
            Some(Control::ResetAck(_)) => Some("reset ack"),
            Some(Control::Status) => Some("status"),
            None => None,
        };
        let has_status = matches!(kind, Some(Control::Status)) || is_data && !self.control.is_empty();
        let lsn = has_status.then(|| {
            let lsn = |sufi| if let Sufi::Ack { lsn } = sufi { Some(lsn) } else { None };
            Sufis::of(self.control).flatten().find_map(lsn)
        });
        PacketFacts {
            packet: sdu.map_or(0, |s| s.id),
            flow: sdu.map_or(0, |s| s.flow),
            len: u32::from(self.format.pdu_octets),
            seq: is_data.then(|| u64::from(self.pdu.sn())),
            ack: lsn.flatten().map(u64::from),
            attempt: self.attempt,
            reason,
            ..PacketFacts::bare("rlc", event, self.direction)
        }
    }

    /// The whole PDU as it is on the air.
    fn octets(&self, out: &mut Vec<u8>) {
        if self.is_data() {
            self.pdu.append_octets(self.format, self.sdus, self.control, out);
        } else {
            let start = out.len();
            out.extend_from_slice(self.control);
            out.resize(start + usize::from(self.format.pdu_octets), 0);
        }
    }
}
