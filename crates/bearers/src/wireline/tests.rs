use airloom_base::units::{EachWay, QueueLimit, Rate};
use airloom_base::{
    Bearer, Body, Change, Cx, Direction, Duration, Instant, LinkState, Outbox, Packet, Parts, Station,
};
use serde_json::json;

struct Bench {
    wire: Box<dyn Bearer>,
    records: Outbox,
    now: Instant,
}

impl Bench {
    fn new(config: serde_json::Value) -> Self {
        let mut records = Outbox::default();
        let mut parts = Parts { seed: 1, name: "wire", stations: 1, records: &mut records };
        let wire = super::build(&config, &mut parts).unwrap();
        Bench { wire, records, now: Instant::ZERO }
    }
    fn send(&mut self, id: u64, octets: u32) {
        let mut packet = Packet::build(|_| 0, Body::filler(0, octets));
        packet.set_id(id);
        self.wire.send(
            &mut Cx { now: self.now, records: &mut self.records },
            Direction::Uplink,
            Station(0),
            packet,
        );
    }
    fn apply(&mut self, change: Change) {
        self.wire.apply(&mut Cx { now: self.now, records: &mut self.records }, &[], &change).unwrap();
    }
    /// Runs until idle: (arrival in us, id).
    fn drive(&mut self) -> Vec<(u64, u64)> {
        let mut arrivals = Vec::new();
        while let Some(at) = self.wire.poll_timeout() {
            self.now = at;
            self.wire.handle_timeout(&mut Cx { now: at, records: &mut self.records });
            while let Some((_, _, packet)) = self.wire.poll_delivery() {
                arrivals.push((at.as_nanos() / 1000, packet.id()));
            }
        }
        arrivals
    }
}

#[test]
fn packets_queue_for_the_rate_and_then_take_the_delay() {
    let mut bench = Bench::new(json!({ "rate": "1Mbit/s", "delay": "10ms" }));
    bench.send(1, 1250);
    bench.send(2, 1250);
    assert_eq!(bench.drive(), [(20_000, 1), (30_000, 2)]);
    assert_eq!(bench.wire.poll_timeout(), None, "an idle wire has no deadline");
}

#[test]
fn the_packet_in_service_counts_towards_the_queue_limit() {
    let mut bench = Bench::new(json!({ "rate": "1Mbit/s", "queue": "2 packets" }));
    (1..=4).for_each(|id| bench.send(id, 125));
    assert_eq!(bench.drive(), [(1000, 1), (2000, 2)]);
    bench.send(5, 125);
    assert_eq!(bench.drive(), [(3000, 5)], "room again once they have departed");
}

#[test]
fn an_octet_limit_counts_octets() {
    let mut bench = Bench::new(json!({ "rate": "1Mbit/s", "queue": "300B" }));
    [(1, 200), (2, 200), (3, 100)].into_iter().for_each(|(id, len)| bench.send(id, len));
    assert_eq!(bench.drive().len(), 2);
}

#[test]
fn a_lost_packet_has_used_the_wire() {
    let mut bench = Bench::new(json!({ "rate": "1Mbit/s", "loss": { "model": "list", "list": [0] } }));
    bench.send(1, 125);
    bench.send(2, 125);
    assert_eq!(bench.drive(), [(2000, 2)]);
}

#[test]
fn a_cut_wire_loses_what_is_on_it() {
    let mut bench = Bench::new(json!({ "rate": "1Mbit/s", "delay": "10ms" }));
    bench.send(1, 125);
    bench.apply(Change::State(LinkState::Down));
    bench.send(2, 125);
    assert_eq!(bench.drive(), []);
    bench.apply(Change::State(LinkState::Up));
    bench.send(3, 125);
    assert_eq!(bench.drive(), [(11_000, 3)]);
}

#[test]
fn changes_touch_only_what_is_not_in_service_and_keep_the_order() {
    let mut bench = Bench::new(json!({ "rate": "1Mbit/s", "delay": "10ms", "queue": "9 packets" }));
    (1..=3).for_each(|id| bench.send(id, 125));
    bench.apply(Change::Rate(None, Rate::kbit(125)));
    bench.apply(Change::Delay(Some(Direction::Uplink), Duration::ZERO));
    bench.apply(Change::Queue(None, QueueLimit::Packets(4)));
    bench.send(4, 125);
    bench.send(5, 125);
    assert_eq!(bench.drive(), [(11_000, 1), (19_000, 2), (27_000, 3), (27_000, 4)]);
}

#[test]
fn directions_are_independent() {
    let config: super::Config =
        serde_json::from_value(json!({ "rate": { "uplink": "64kbit/s", "downlink": "384kbit/s" } })).unwrap();
    assert_eq!(config.rate, Some(EachWay { uplink: Rate::kbit(64), downlink: Rate::kbit(384) }));
}

#[test]
fn rfc_3168_a_queue_above_the_threshold_marks_packets_of_senders_that_know_ecn() {
    let mut bench = Bench::new(json!({ "rate": "1Mbit/s", "queue": "10 packets", "ecn": "2 packets" }));
    let (a, b) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
    // Codepoints ECT(0), not-ECT, ECT(1) in turn.
    for id in 0..6_u8 {
        let ecn = [2, 0, 1][usize::from(id % 3)];
        let mut packet = Packet::build(|_| 0, Body::filler(0, 105));
        airloom_wire::ip::emit(packet.prepend(20), a, b, 6, ecn, 105);
        let mut cx = Cx { now: bench.now, records: &mut bench.records };
        bench.wire.send(&mut cx, Direction::Uplink, Station(0), packet);
    }
    let mut seen = Vec::new();
    while let Some(at) = bench.wire.poll_timeout() {
        bench.wire.handle_timeout(&mut Cx { now: at, records: &mut bench.records });
        while let Some((_, _, packet)) = bench.wire.poll_delivery() {
            seen.push(airloom_wire::ip::Ip::parse(packet.head()).unwrap().ecn);
        }
    }
    assert_eq!(seen, [2, 0, 3, 3, 0, 3]);
    let mut summary = airloom_base::Summary::default();
    bench.wire.summarise(&mut summary);
    assert_eq!(summary.values["uplink.ecn_marked"], 3.0);
}
