//! What holds for every bearer of the registry with its default settings.

use airloom_base::record::Point;
use airloom_base::{Change, Direction, Duration, Instant, LinkState, Outbox, Parts, Passed, Station};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_testkit::Bench;
use airloom_world::Builder;
use serde_json::{Value, json};

fn bench(name: &str, config: &Value, stations: u16, seed: u64) -> Bench {
    let mut records = Outbox::default();
    let mut parts = Parts::new(seed, "link", stations, &mut records);
    let entry = airloom_bearers::find(name).expect("it is in the registry");
    let bearer = (entry.build)(config, &mut parts).unwrap_or_else(|e| panic!("{name}: {e}"));
    records.ask_facts(true, true);
    Bench::new(bearer, records).recorded()
}

fn each(test: impl Fn(&'static str)) {
    assert!(!airloom_bearers::REGISTRY.is_empty());
    airloom_bearers::REGISTRY.iter().for_each(|entry| test(entry.name));
}

/// Sends 200 datagrams of various sizes each way, in bursts with pauses.
fn traffic(bench: &mut Bench, stations: u16) {
    let mut id = 0;
    for burst in 0..20u64 {
        for n in 0..10u64 {
            for direction in Direction::BOTH {
                id += 1;
                let size = 20 + (burst * 977 + n * 313) % 1400;
                bench.send_to(direction, (id % u64::from(stations)) as u16, size as u32);
            }
        }
        bench.run_until(Instant::ZERO + Duration::from_secs(2 * (burst + 1)));
    }
    bench.run_until(Instant::ZERO + Duration::from_secs(3600));
    bench.assert_intact();
}

#[test]
fn nothing_is_lost_doubled_or_reordered_without_losses() {
    each(|name| {
        let mut bench = bench(name, &json!({}), 1, 1);
        traffic(&mut bench, 1);
        for direction in Direction::BOTH {
            let ids = bench.ids(direction);
            assert_eq!(ids.len(), 200, "{name} {direction:?}");
            assert!(ids.is_sorted(), "{name} {direction:?}");
        }
    });
}

#[test]
fn it_falls_idle_and_an_idle_bearer_has_no_deadline() {
    each(|name| {
        let mut bench = bench(name, &json!({}), 1, 1);
        assert_eq!(bench.bearer.poll_timeout(), None, "{name} before the first datagram");
        traffic(&mut bench, 1);
        assert_eq!(bench.bearer.poll_timeout(), None, "{name} after the last datagram");
        for direction in Direction::BOTH {
            assert_eq!(bench.bearer.backlog(bench.now, direction, Station(0)).sdus, 0, "{name}");
        }
    });
}

#[test]
fn one_seed_gives_the_same_records_octet_by_octet() {
    each(|name| {
        let run = |seed| {
            let lossy = match name {
                // It has no losses of its own outside its phases.
                "vdeldrop" => json!({ "over": { "wireline": { "loss": 0.1 } } }),
                // Its members have them.
                "mlppp" => json!({ "members": [{ "piafs": { "loss": 0.1 } }] }),
                // Its downlink fades.
                "umts-hsdpa" => json!({ "fading": {}, "snr": 3, "uplink_loss": 0.1 }),
                _ => json!({ "loss": 0.1 }),
            };
            let mut bench = bench(name, &lossy, 1, seed);
            traffic(&mut bench, 1);
            (
                format!("{:?} {:?}", bench.records.packets, bench.records.facts),
                bench.arrivals(Direction::Uplink),
                bench.arrivals(Direction::Downlink),
                bench.records.octets,
            )
        };
        let (first, again, other) = (run(7), run(7), run(8));
        assert!(first == again, "{name}: the same seed differs");
        assert!(first.0 != other.0, "{name}: another seed gives another run");
    });
}

#[test]
fn every_row_of_the_records_has_a_point_that_was_registered_under_the_link() {
    each(|name| {
        let mut bench = bench(name, &json!({}), 1, 1);
        traffic(&mut bench, 1);
        assert!(bench.records.points().iter().all(|p| p.name.starts_with("link.")), "{name}");
        let known = |Point(n): Point| usize::from(n) < bench.records.points().len();
        assert!(bench.records.packets.iter().all(|r| known(r.point)), "{name}");
        assert!(!bench.records.packets.is_empty(), "{name}");
    });
}

#[test]
fn a_link_that_is_down_delivers_nothing_and_works_again_when_up() {
    each(|name| {
        let mut bench = bench(name, &json!({}), 1, 1);
        bench.apply(&[], Change::State(LinkState::Down));
        bench.send(Direction::Downlink, 100);
        bench.run_until(Instant::ZERO + Duration::from_secs(60));
        assert_eq!(bench.out.len(), 0, "{name}");
        bench.apply(&[], Change::State(LinkState::Up));
        bench.send(Direction::Downlink, 100);
        bench.run_until(Instant::ZERO + Duration::from_secs(120));
        assert_eq!(bench.out.last().map(|o| o.3.id()), Some(2), "{name}");
    });
}

#[test]
fn what_a_live_control_shows_as_passed_is_what_came_out() {
    each(|name| {
        let mut bench = bench(name, &json!({}), 1, 1);
        traffic(&mut bench, 1);
        let passed = bench.bearer.passed();
        for direction in Direction::BOTH {
            let came_out = bench.out.iter().filter(|o| o.1 == direction);
            let octets: usize = came_out.map(|(.., packet)| packet.wire_len()).sum();
            let Passed { frames, errors, octets: shown } = passed[direction as usize];
            assert_eq!((shown, errors), (octets as u64, 0), "{name} {direction:?}");
            assert!(frames >= 200, "{name} {direction:?}: {frames} frames carried 200 packets");
        }
    });
}

#[test]
fn late_calls_do_not_move_later_events() {
    // In real time a thread wakes up late: deliveries may be handed out late, but the model goes by its own deadlines.
    each(|name| {
        let finish = |late: Duration| {
            let mut bench = bench(name, &json!({}), 1, 1);
            bench.send_many(Direction::Downlink, 30, 1400);
            let mut last = Instant::ZERO;
            while let Some(at) = bench.bearer.poll_timeout() {
                last = at;
                bench.handle(bench.now.max(at + late));
            }
            assert_eq!(bench.out.len(), 30, "{name}");
            last
        };
        let (exact, late) = (finish(Duration::ZERO), finish(Duration::from_micros(300)));
        assert!(late.since(exact) <= Duration::from_millis(2), "{name}: {exact} became {late}");
    });
}

#[test]
fn a_page_arrives_by_http_3() {
    each(|name| {
        let mut b = Builder::new(1);
        let [client, server] = ["client", "server"].map(|host| b.host(host));
        b.link("link", name, &json!({}), &[client], server).unwrap_or_else(|e| panic!("{name}: {e}"));
        for host in [client, server] {
            b.transport(host, "quic", &json!({})).unwrap();
        }
        b.app(server, "http-server", &json!({ "http": "3" }), None).unwrap();
        let page = json!({ "http": "3", "objects": ["/1kB", "/10kB", "/100B"] });
        b.app(client, "http-client", &page, Some("server")).unwrap();
        let mut world = b.build().unwrap();
        let limit = Duration::from_secs(600);
        assert_eq!(
            virtual_time::run(&mut world, Until::Done { limit }, |_, _| true),
            Outcome::Complete,
            "{name}"
        );
        let values = world.summary().values;
        let shown = ["objects", "failed", "bytes", "server.connections_h3"].map(|key| values[key]);
        assert_eq!(shown, [3.0, 0.0, 11_100.0, 1.0], "{name}");
    });
}
