//! What all cells do alike.

use airloom_base::{
    Bearer, BearerEvent, Body, Change, Cx, Direction, Duration, Instant, LinkState, Outbox, Packet, Parts,
    Passed, Station, Unsupported,
};

use super::smallest::Paging;

const DOWN: Direction = Direction::Downlink;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

struct Bench {
    cell: Paging,
    records: Outbox,
}

impl Bench {
    /// Three mobiles, 20 ms away.
    fn new() -> Bench {
        let mut records = Outbox::default();
        let parts = &mut Parts::new(1, "cell", 3, &mut records);
        Bench { cell: Paging::new(Duration::from_millis(20), parts).unwrap(), records }
    }

    fn send(&mut self, at: u64, station: u16) {
        let cx = &mut Cx { now: ms(at), records: &mut self.records };
        self.cell.send(cx, DOWN, Station(station), Packet::build(|_| 0, Body::filler(1, 100)));
    }

    fn apply(&mut self, at: u64, part: &[u16], change: Change) -> Result<(), Unsupported> {
        self.cell.apply(&mut Cx { now: ms(at), records: &mut self.records }, part, &change)
    }

    fn handle(&mut self, at: u64) {
        self.cell.handle_timeout(&mut Cx { now: ms(at), records: &mut self.records });
    }

    fn stations(&mut self) -> Vec<u16> {
        std::iter::from_fn(|| self.cell.poll_delivery()).map(|(_, station, _)| station.0).collect()
    }
}

#[test]
fn things_happen_in_the_order_of_their_times_then_of_the_mobiles_however_late_the_call() {
    let mut bench = Bench::new();
    for (at, station) in [(0, 2), (0, 0), (5, 1), (5, 0), (7, 2)] {
        bench.send(at, station);
    }
    assert_eq!(bench.cell.poll_timeout(), Some(ms(20)));
    bench.handle(26);
    assert_eq!(bench.stations(), [0, 2, 0, 1]);
    assert_eq!(bench.cell.poll_timeout(), Some(ms(27)));
    // A call that comes before the timer does what should have happened first.
    bench.send(40, 1);
    assert_eq!((bench.stations(), bench.cell.poll_timeout()), (vec![2], Some(ms(60))));
    let passed = Passed { frames: 6, errors: 0, octets: 500 };
    assert_eq!(bench.cell.passed(), [Passed::default(), passed]);
}

#[test]
fn one_station_changes_its_state_and_the_rest_is_the_links() {
    let mut bench = Bench::new();
    (0..3).for_each(|station| bench.send(0, station));
    bench.apply(10, &[1], Change::State(LinkState::Down)).unwrap();
    bench.send(10, 1);
    bench.handle(30);
    assert_eq!((bench.stations(), bench.cell.passed()[1].errors), (vec![0, 2], 2));
    bench.apply(30, &[], Change::State(LinkState::Up)).unwrap();
    let events: Vec<_> = std::iter::from_fn(|| bench.cell.poll_event()).collect();
    assert_eq!(events, [BearerEvent::Down(Station(1), "link down"), BearerEvent::Up(Station(1))]);
    let delay = Change::Delay(None, Duration::from_millis(5));
    bench.apply(30, &[], delay).unwrap();
    bench.send(30, 0);
    assert_eq!(bench.cell.poll_timeout(), Some(ms(35)));
    assert!(bench.apply(30, &[1], delay).unwrap_err().0.contains("the rest is the link's"));
    assert!(bench.apply(30, &[3], Change::State(LinkState::Up)).unwrap_err().0.contains("no such part"));
}

#[test]
fn the_architecture_page_says_how_long_the_smallest_bearer_is() {
    let page = include_str!("../../../../docs/explanation/architecture.md");
    let said = format!("`cell/smallest.rs` has {} lines", include_str!("smallest.rs").lines().count());
    assert!(page.contains(&said), "the page does not say: {said}");
}
