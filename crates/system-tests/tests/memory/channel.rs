//! A dedicated channel in steady state takes nothing from the allocator.

use airloom_base::{Bearer, Body, Cx, Direction, Duration, Instant, Outbox, Packet, Parts, Station};
use airloom_bearers::umts::UmtsDch;

use super::allocations;

struct Run {
    bearer: Box<dyn Bearer>,
    records: Outbox,
    delivered: u64,
}

impl Run {
    fn send(&mut self, now: Instant, direction: Direction, octets: u32) {
        let packet = Packet::build(|_| 40, Body::filler(1, octets - 40));
        self.bearer.send(&mut Cx { now, records: &mut self.records }, direction, Station(0), packet);
    }

    fn until(&mut self, end: Instant) {
        while let Some(now) = self.bearer.poll_timeout().filter(|at| *at <= end) {
            self.bearer.handle_timeout(&mut Cx { now, records: &mut self.records });
            while let Some((direction, _, packet)) = self.bearer.poll_delivery() {
                self.delivered += 1;
                // Data down, and an acknowledgement up for every second packet, as TCP does.
                if direction == Direction::Downlink {
                    drop(packet);
                    self.send(now, Direction::Downlink, 1500);
                    if self.delivered.is_multiple_of(2) {
                        self.send(now, Direction::Uplink, 52);
                    }
                }
            }
        }
    }
}

#[test]
fn a_saturated_channel_with_losses_allocates_nothing_in_steady_state() {
    let config = serde_json::json!({
        "loss": { "downlink": 0.05, "uplink": 0.025 },
        "rlc": { "max_dat": 0, "status_sufi": "bitmap" },
    });
    let mut records = Outbox::default();
    let mut parts = Parts::new(1, "radio", 1, &mut records);
    let bearer = UmtsDch::build(&config, &mut parts).expect("a valid configuration");
    let mut run = Run { bearer, records, delivered: 0 };
    (0..60).for_each(|_| run.send(Instant::ZERO, Direction::Downlink, 1500));
    // Queues and tables take their size; the largest bursts of losses come early or late.
    run.until(Instant::ZERO + Duration::from_secs(200));
    let (before, delivered) = (allocations(), run.delivered);
    run.until(Instant::ZERO + Duration::from_secs(400));
    let allocations = allocations() - before;
    let packets = run.delivered - delivered;
    assert!(packets > 7000, "{packets}");
    assert_eq!(allocations, 0, "for {packets} packets");
}
