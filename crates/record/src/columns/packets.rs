//! One row per packet or PDU event.

use std::mem::take;

use airloom_base::Direction;
use airloom_base::record::{Event, PacketRecord, PointInfo};
use strum::VariantArray;

use super::column::{Category, Cells, Column, Optional, OptionalCategory, Table, Values, full, nanos};

/// The packets table.
#[derive(Default)]
pub(super) struct Packets {
    t_ns: Vec<i64>,
    point: Vec<u16>,
    points: Vec<String>,
    dir: Vec<u16>,
    event: Vec<u16>,
    pkt_id: Vec<u64>,
    flow: Vec<u32>,
    proto: Category,
    len: Vec<u32>,
    seq: Optional<u64>,
    ack: Optional<u64>,
    attempt: Vec<u8>,
    reason: OptionalCategory,
    q_bytes: Optional<u32>,
}

impl Packets {
    /// The code of a point is its number.
    pub(super) fn name_points(&mut self, points: &[PointInfo]) {
        for info in points.iter().skip(self.points.len()) {
            self.points.push(info.name.clone());
        }
    }

    pub(super) fn push(&mut self, record: &PacketRecord) {
        let facts = &record.facts;
        self.t_ns.push(nanos(record.at.as_nanos()));
        self.point.push(record.point.0);
        self.dir.push(facts.direction as u16);
        self.event.push(facts.event as u16);
        self.pkt_id.push(facts.packet);
        self.flow.push(facts.flow);
        self.proto.push(facts.proto);
        self.len.push(facts.len);
        self.seq.push(facts.seq);
        self.ack.push(facts.ack);
        self.attempt.push(facts.attempt);
        self.reason.push(facts.reason);
        self.q_bytes.push(facts.queue);
    }

    pub(super) fn into_columns(self) -> Vec<Column> {
        let directions = Direction::BOTH.map(Direction::short);
        let events: Vec<_> = Event::VARIANTS.iter().map(|event| event.name()).collect();
        vec![
            self.t_ns.column("t_ns"),
            full("point", Values::Category { codes: self.point, names: self.points }),
            full("dir", Values::out_of(&directions, self.dir)),
            full("event", Values::out_of(&events, self.event)),
            self.pkt_id.column("pkt_id"),
            self.flow.column("flow"),
            self.proto.column("proto"),
            self.len.column("len"),
            self.seq.column("seq"),
            self.ack.column("ack"),
            self.attempt.column("attempt"),
            self.reason.column("reason"),
            self.q_bytes.column("q_bytes"),
        ]
    }
}

impl Table for Packets {
    fn rows(&self) -> usize {
        self.t_ns.len()
    }

    fn take_rows(&mut self) -> Vec<Column> {
        // Points are named again by whoever brings the next packets.
        take(self).into_columns()
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::record::{PacketFacts, PointKind};
    use airloom_base::{Instant, Outbox};

    use super::super::Tables;
    use super::*;

    #[test]
    fn only_points_whose_rows_were_asked_for_have_rows() {
        let mut outbox = Outbox::default();
        let a = outbox.add_point("a.wire.ip".to_owned(), PointKind::Ip);
        let b = outbox.add_point("b.wire.ip".to_owned(), PointKind::Ip);
        outbox.ask(|p| (p.name.starts_with('b'), true));
        for (at, point) in [(1, a), (2, b)] {
            let facts = PacketFacts {
                packet: 3,
                flow: 4,
                len: 1500,
                seq: Some(5),
                reason: Some("queue full"),
                ..PacketFacts::bare("tcp", Event::Drop, Direction::Downlink)
            };
            outbox.packet(Instant::from_nanos(at), point, || facts, |_| ());
        }
        let mut tables = Tables::default();
        tables.take(&outbox);
        let columns = tables.into_columns().remove("packets").unwrap();
        let get = |name: &str| columns.iter().find(|c| c.name == name).unwrap();
        assert_eq!(get("t_ns").values, Values::I64(vec![2]));
        assert_eq!(get("seq").valid, Some(vec![true]));
        assert_eq!(get("ack").valid, Some(vec![false]));
        let Values::Category { codes, names } = &get("event").values else { panic!("a category") };
        assert_eq!(names[usize::from(codes[0])], "drop");
        let Values::Category { codes, names } = &get("point").values else { panic!("a category") };
        assert_eq!(names[usize::from(codes[0])], "b.wire.ip");
        let order: Vec<_> = columns.iter().map(|c| c.name).collect();
        let expected = "t_ns point dir event pkt_id flow proto len seq ack attempt reason q_bytes";
        assert_eq!(order, expected.split(' ').collect::<Vec<_>>());
    }
}
