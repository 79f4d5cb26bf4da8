//! A dedicated channel in steady state takes nothing from the allocator.
#![allow(unsafe_code, reason = "a counting allocator is one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use airloom_base::{Bearer, Body, Cx, Direction, Duration, Instant, Outbox, Packet, Parts, Station};
use airloom_bearers::umts::UmtsDch;

struct Counting;

thread_local! {
    // Of this thread alone: the test's own may still start while the harness goes on.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends may allocate after its counter is gone; nobody asks for that number.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: everything is passed on to the system's allocator; only a counter is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
    let (before, delivered) = (ALLOCATIONS.get(), run.delivered);
    run.until(Instant::ZERO + Duration::from_secs(400));
    let allocations = ALLOCATIONS.get() - before;
    let packets = run.delivered - delivered;
    assert!(packets > 7000, "{packets}");
    assert_eq!(allocations, 0, "for {packets} packets");
}
