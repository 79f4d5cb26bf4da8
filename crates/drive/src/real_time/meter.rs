//! What goes over the links of a run, for somebody who watches.

use airloom_base::record::{Event, Record};
use airloom_base::{Direction, Outbox};

/// Counts since the run began, and the latest state. Made from records: what a scenario does not record is not
/// seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meter {
    /// Octets of datagrams that hosts which pass nothing on gave to their links.
    pub sent: u64,
    /// .. and got from them.
    pub received: u64,
    /// Packets or PDUs that were lost or thrown away.
    pub dropped: u64,
    /// PDUs that a link sent again.
    pub resent: u64,
    /// Octets in the longest queue: at the moment of the look, or before it where a link says.
    pub queue: u64,
    /// The state of the last radio that changed it.
    pub state: Option<&'static str>,
}

impl Meter {
    /// Takes note of the records made since the last look, and of what waits in the longest queue now.
    pub fn look(&mut self, backlog: u64, records: &Outbox) {
        self.queue = backlog;
        for packet in &records.packets {
            let facts = &packet.facts;
            let point = records.points().get(usize::from(packet.point.0));
            let at_host = point.is_some_and(|p| p.name.ends_with(".ip"));
            let len = u64::from(facts.len);
            match (facts.event, facts.direction) {
                (Event::Transmit, Direction::Uplink) if at_host => self.sent += len,
                (Event::Receive, Direction::Downlink) if at_host => self.received += len,
                (Event::Drop, _) => self.dropped += 1,
                (Event::Retransmit, _) => self.resent += 1,
                _ => {}
            }
            self.queue = self.queue.max(facts.queue.map_or(0, u64::from));
        }
        for record in &records.facts {
            if let Record::State(state) = record
                && state.direction.is_none()
            {
                self.state = Some(state.state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::record::{PacketFacts, PointKind};
    use airloom_base::{Cx, Instant};

    use super::*;

    #[test]
    fn datagrams_are_counted_at_hosts_and_queues_inside_links() {
        let mut records = Outbox::default();
        let host = records.add_point("mobile.radio.ip".to_owned(), PointKind::Ip);
        let queue = records.add_point("radio.queue.ul.tx".to_owned(), PointKind::Ip);
        records.ask(|_| (true, false));
        let cx = Cx { now: Instant::ZERO, records: &mut records };
        for (point, event, direction, waiting) in [
            (host, Event::Transmit, Direction::Uplink, None),
            (queue, Event::Enqueue, Direction::Uplink, Some(4000)),
            (queue, Event::Drop, Direction::Uplink, Some(3000)),
            (host, Event::Receive, Direction::Downlink, None),
        ] {
            let facts = || PacketFacts {
                packet: 1,
                flow: 1,
                len: 1500,
                queue: waiting,
                ..PacketFacts::bare("tcp", event, direction)
            };
            cx.records.packet(cx.now, point, facts, |_| {});
        }
        let mut meter = Meter::default();
        meter.look(700, &records);
        assert_eq!(meter, Meter { sent: 1500, received: 1500, dropped: 1, queue: 4000, ..Meter::default() });
        records.clear();
        meter.look(700, &records);
        assert_eq!((meter.sent, meter.queue), (1500, 700), "what no record says is what waits now");
    }
}
