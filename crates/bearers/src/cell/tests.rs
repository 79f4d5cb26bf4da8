//! What all cells do alike.

use airloom_base::{
    Bearer, BearerEvent, Change, Direction, Duration, Instant, LinkState, Outbox, Parts, Passed, Station,
};
use airloom_testkit::Bench;

use super::smallest::Paging;

const DOWN: Direction = Direction::Downlink;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

/// Three mobiles, 20 ms away.
fn bench() -> Bench<Paging> {
    let mut records = Outbox::default();
    let paging = Paging::new(Duration::from_millis(20), &mut Parts::new(1, "cell", 3, &mut records)).unwrap();
    Bench::new(Box::new(paging), records)
}

fn send(bench: &mut Bench<Paging>, at: u64, station: u16) {
    bench.now = ms(at);
    bench.send_to(DOWN, station, 100);
}

fn stations(bench: &mut Bench<Paging>) -> Vec<u16> {
    bench.out.drain(..).map(|(_, _, station, _)| station.0).collect()
}

#[test]
fn things_happen_in_the_order_of_their_times_then_of_the_mobiles_however_late_the_call() {
    let mut bench = bench();
    for (at, station) in [(0, 2), (0, 0), (5, 1), (5, 0), (7, 2)] {
        send(&mut bench, at, station);
    }
    assert_eq!(bench.bearer.poll_timeout(), Some(ms(20)));
    bench.handle(ms(26));
    assert_eq!(stations(&mut bench), [0, 2, 0, 1]);
    assert_eq!(bench.bearer.poll_timeout(), Some(ms(27)));
    // A call that comes before the timer does what should have happened first.
    send(&mut bench, 40, 1);
    assert_eq!((stations(&mut bench), bench.bearer.poll_timeout()), (vec![2], Some(ms(60))));
    let passed = Passed { frames: 6, errors: 0, octets: 500 };
    assert_eq!(bench.bearer.passed(), [Passed::default(), passed]);
}

#[test]
fn one_station_changes_its_state_and_the_rest_is_the_links() {
    let mut bench = bench();
    (0..3).for_each(|station| send(&mut bench, 0, station));
    bench.now = ms(10);
    bench.apply(&[1], Change::State(LinkState::Down));
    send(&mut bench, 10, 1);
    bench.handle(ms(30));
    assert_eq!((stations(&mut bench), bench.bearer.passed()[1].errors), (vec![0, 2], 2));
    bench.apply(&[], Change::State(LinkState::Up));
    let events: Vec<_> = bench.events.iter().map(|(_, event)| *event).collect();
    assert_eq!(events, [BearerEvent::Down(Station(1), "link down"), BearerEvent::Up(Station(1))]);
    let delay = Change::Delay(None, Duration::from_millis(5));
    bench.apply(&[], delay);
    send(&mut bench, 30, 0);
    assert_eq!(bench.bearer.poll_timeout(), Some(ms(35)));
    assert!(bench.try_apply(&[1], delay).unwrap_err().0.contains("the rest is the link's"));
    assert!(bench.try_apply(&[3], Change::State(LinkState::Up)).unwrap_err().0.contains("no such part"));
}

#[test]
fn the_architecture_page_says_how_long_the_smallest_bearer_is() {
    let page = include_str!("../../../../docs/explanation/architecture.md");
    for (file, text) in [
        ("cell/smallest.rs", include_str!("smallest.rs")),
        ("piafs/config.rs", include_str!("../piafs/config.rs")),
    ] {
        let said = format!("`{file}` has {} lines", text.lines().count());
        assert!(page.contains(&said), "the page does not say: {said}");
    }
}
