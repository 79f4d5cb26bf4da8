//! What holds for every transport of the registry: transfers arrive whole over links that lose, reorder and double,
//! and when all is closed nothing is left to do.

use std::collections::BTreeMap;

use airloom_base::random::Fate;
use airloom_base::{
    Backlog, Bearer, Change, Cx, Direction, Duration, Instant, Packet, Passed, Station, Summary, Unsupported,
};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::{Builder, End, World};
use serde_json::json;

/// A link that loses, delays at random (so that packets overtake each other) and doubles.
struct Mangler {
    fate: Fate,
    loss: f64,
    double: f64,
    spread: Duration,
    sent: u64,
    flight: BTreeMap<(Instant, u64), (Direction, Packet)>,
    due: Instant,
}

impl Mangler {
    fn new(seed: u64, loss: f64, double: f64, spread: Duration) -> Self {
        let (fate, flight) = (Fate::new(seed, "mangler"), BTreeMap::new());
        Mangler { fate, loss, double, spread, sent: 0, flight, due: Instant::ZERO }
    }
    fn draw(&self, place: u32) -> f64 {
        self.fate.at(self.sent, Direction::Uplink, Station(0), place)
    }
}

impl Bearer for Mangler {
    fn send(&mut self, cx: &mut Cx, dir: Direction, _: Station, sdu: Packet) {
        self.sent += 1;
        if self.draw(0) < self.loss {
            return;
        }
        let late = |x: f64| {
            cx.now + Duration::from_millis(20) + Duration::from_secs_f64(x * self.spread.as_secs_f64())
        };
        if self.draw(1) < self.double {
            self.flight.insert((late(self.draw(2)), 2 * self.sent), (dir, sdu.duplicate()));
        }
        self.flight.insert((late(self.draw(3)), 2 * self.sent + 1), (dir, sdu));
    }
    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        let first = self.flight.first_entry().filter(|e| e.key().0 <= self.due)?;
        let (dir, packet) = first.remove();
        Some((dir, Station(0), packet))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.flight.first_key_value().map(|(k, _)| k.0)
    }
    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.due = cx.now;
    }
    fn backlog(&self, _: Instant, _: Direction, _: Station) -> Backlog {
        Backlog::default()
    }
    fn apply(&mut self, _: &mut Cx, _: &[u16], _: &Change) -> Result<(), Unsupported> {
        Err(Unsupported("nothing"))
    }
    fn passed(&self) -> [Passed; 2] {
        Default::default()
    }
    fn summarise(&self, _: &mut Summary) {}
}

fn world(transport: &str, bulk: serde_json::Value, link: Mangler) -> World {
    let mut b = Builder::new(1);
    let (client, server) = (b.host("client"), b.host("server"));
    let end = |host, address: &str| End { host, addresses: vec![address.parse().unwrap()] };
    b.link_with("link", Box::new(link), vec![end(client, "10.0.0.2")], end(server, "10.0.0.1")).unwrap();
    for host in [client, server] {
        b.transport(host, transport, &json!({})).unwrap();
    }
    b.app(server, "bulk-server", &json!({}), None).unwrap();
    b.app(client, "bulk", &bulk, Some("server")).unwrap();
    b.build().unwrap()
}

/// Runs until everybody is done, then on until nothing is left to do.
fn finish(world: &mut World, what: &str) -> Summary {
    let limit = Duration::from_secs(7200);
    let outcome = virtual_time::run(world, Until::Done { limit }, |_, _| true);
    assert_eq!(outcome, Outcome::Complete, "{what}");
    let end = world.now() + Duration::from_secs(7200);
    while let Some(at) = world.poll_timeout() {
        assert!(at < end, "{what}: still busy {} after everybody was done", at);
        world.handle_timeout(at);
    }
    world.summary()
}

fn each(test: impl Fn(&'static str)) {
    assert!(!airloom_transports::REGISTRY.is_empty());
    airloom_transports::REGISTRY.iter().for_each(|entry| test(entry.name));
}

fn value(summary: &Summary, key: &str) -> f64 {
    *summary.values.get(key).unwrap_or_else(|| panic!("no {key}"))
}

#[test]
fn transfers_arrive_whole_over_links_that_lose_reorder_and_double() {
    each(|name| {
        for (loss, double, spread_ms) in
            [(0.0, 0.0, 0), (0.05, 0.0, 0), (0.2, 0.0, 0), (0.0, 0.3, 0), (0.0, 0.0, 50), (0.1, 0.1, 30)]
        {
            for mode in ["get", "put"] {
                let what = format!("{name} {mode} loss {loss} double {double} spread {spread_ms} ms");
                let link = Mangler::new(3, loss, double, Duration::from_millis(spread_ms));
                let bulk = json!({ "size": "100kB", "mode": mode, "repeat": 2 });
                let summary = finish(&mut world(name, bulk, link), &what);
                assert_eq!(value(&summary, "transfers"), 2.0, "{what}");
                assert_eq!(value(&summary, "transfers_failed"), 0.0, "{what}");
                let moved = if mode == "get" { "client.bytes" } else { "server.received_bytes" };
                assert!(value(&summary, moved) >= 200_000.0, "{what}: {}", value(&summary, moved));
            }
        }
    });
}

#[test]
fn nothing_is_left_to_do_after_close_whatever_was_lost() {
    each(|name| {
        for seed in 0..60 {
            let what = format!("{name} seed {seed}");
            let link = Mangler::new(seed, 0.25, 0.05, Duration::from_millis(20));
            let summary = finish(&mut world(name, json!({ "size": "3kB", "repeat": 3 }), link), &what);
            assert_eq!(value(&summary, "transfers") + value(&summary, "transfers_failed"), 3.0, "{what}");
        }
    });
}

#[test]
fn many_connections_side_by_side_do_not_mix() {
    each(|name| {
        let link = Mangler::new(5, 0.02, 0.0, Duration::from_millis(5));
        let bulk = json!({ "size": "20kB", "repeat": 40, "parallel": 8 });
        let summary = finish(&mut world(name, bulk, link), name);
        assert_eq!(value(&summary, "transfers"), 40.0, "{name}");
        assert_eq!(value(&summary, "bytes"), 800_000.0, "{name}");
    });
}

#[test]
fn a_transport_of_one_link_serves_no_other() {
    let transfers = |host: &str| {
        let text = r#"
            [hosts]
            mobile = {}
            laptop = {}
            server = { app = "bulk-server", transport = "sctp", interfaces = { radio = { transport = "tcp" } } }
            [links]
            radio = { bearer = "wireline", delay = "10ms", between = ["mobile", "server"] }
            lan = { bearer = "wireline", delay = "10ms", between = ["laptop", "server"] }
            "#;
        let bulk = format!("{host} = {{ app = {{ bulk = {{ size = \"10kB\", server = \"server\" }} }} }}");
        let (_, values) = airloom_system_tests::play(&text.replace(&format!("{host} = {{}}"), &bulk), 10);
        (values.get("transfers").copied().unwrap_or(0.0), values["malformed"] > 0.0)
    };
    assert_eq!(transfers("mobile"), (1.0, false));
    assert_eq!(transfers("laptop"), (0.0, true), "there is no TCP at that link");
}
