//! A proxy in the middle of a path that ends the connections of both sides.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use airloom_base::{App, Body, CloseReason, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_system_tests::build;
use airloom_world::scenario::Scenario;
use airloom_world::{Builder, World};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

/// A lossy radio link and a long way behind it, with `gateway` between them.
fn text(client: &str, gateway: &str, origin: &str) -> String {
    format!(
        r#"
        path = ["mobile", "radio", "gateway", "internet", "origin"]
        [hosts]
        mobile = {client}
        gateway = {gateway}
        origin = {origin}
        [links]
        radio = {{ bearer = "wireline", rate = "1Mbit/s", delay = "20ms", queue = "60 packets", loss = {{ downlink = 0.02, uplink = 0.02 }} }}
        internet = {{ bearer = "wireline", rate = "10Mbit/s", delay = "120ms", queue = "200 packets" }}
        "#
    )
}

fn world(client: &str, gateway: &str, origin: &str) -> World {
    build(&text(client, gateway, origin))
}

/// Runs until every application is done; the numbers of the run.
fn run(mut world: World) -> Summary {
    let limit = Until::Done { limit: Duration::from_secs(600) };
    assert_eq!(virtual_time::run(&mut world, limit, |_, _| true), Outcome::Complete);
    world.summary()
}

const PAGE: &str =
    r#"{ app = { http-client = { connections = 2, pages = [["/20kB", "/50kB", "/40kB", "/5kB"]] } } }"#;
const SERVER: &str = r#"{ app = "http-server" }"#;
const SPLIT: &str = r#"{ proxy = "split-tcp" }"#;

fn bulk(settings: &str) -> String {
    format!("{{ app = {{ bulk = {{ {settings} }} }} }}")
}

const BULK: &str = r#"{ app = "bulk-server" }"#;

#[test]
fn a_page_comes_through_a_proxy_that_nobody_knows_of() {
    let split = run(world(PAGE, SPLIT, SERVER)).values;
    assert_eq!(split["failed"], 0.0);
    assert_eq!((split["gateway.connections"], split["gateway.onward_opened"]), (2.0, 2.0));
    assert_eq!((split["gateway.resets"], split["gateway.onward_failed"]), (0.0, 0.0));
    let (objects, passed) = (115_000.0, split["gateway.downlink_bytes"]);
    assert!(passed > objects && passed < 1.02 * objects, "{passed}");
    // A handshake on the long way and nothing else goes before the first octet of data there.
    assert!((0.24..0.25).contains(&split["gateway.onward_open_mean_s"]));
}

/// The server has finished and is long rid of its octets when the proxy still passes them on.
#[test]
fn a_server_that_closes_after_its_response_does_not_break_off_what_is_still_on_its_way() {
    let page = r#"{ app = { http-client = { keep_alive = false, pages = [["/60kB", "/50kB"]] } } }"#;
    let slow = text(page, SPLIT, SERVER).replace("1Mbit/s", "64kbit/s");
    let split = run(build(&slow)).values;
    assert_eq!((split["failed"], split["asked_again"], split["gateway.resets"]), (0.0, 0.0, 0.0));
}

#[test]
fn octets_come_whole_in_both_directions_and_losses_are_recovered_near_where_they_happen() {
    for (mode, way) in [("get", "gateway.downlink_bytes"), ("put", "gateway.uplink_bytes")] {
        let client = bulk(&format!(r#"size = "2MB", mode = "{mode}""#));
        let direct = run(world(&client, "{}", BULK)).values;
        let split = run(world(&client, SPLIT, BULK)).values;
        assert_eq!((split["transfers"], split["transfers_failed"]), (1.0, 0.0), "{mode}");
        assert!(split[way] >= 2e6, "{mode}: {}", split[way]);
        let (with, without) = (split["completion_s"], direct["completion_s"]);
        assert!(with < 0.7 * without, "{mode}: {with} {without}");
    }
}

#[test]
fn what_waits_in_the_proxy_is_bounded_and_the_sender_is_held_back() {
    for buffer in [1_000, 20_000] {
        let gateway =
            format!(r#"{{ proxy = {{ split-tcp = {{ buffer = "{buffer}B", read_size = "700B" }} }} }}"#);
        let numbers = run(world(&bulk(r#"size = "300kB""#), &gateway, BULK)).values;
        assert_eq!(numbers["transfers_failed"], 0.0);
        assert_eq!(numbers["gateway.buffered_peak_bytes"], f64::from(buffer));
    }
}

#[test]
fn a_server_that_refuses_is_heard_of_as_a_reset() {
    let numbers = run(world(&bulk(r#"size = "1kB""#), SPLIT, SERVER)).values;
    assert_eq!((numbers["transfers"], numbers["transfers_failed"]), (0.0, 1.0));
    assert_eq!((numbers["gateway.onward_opened"], numbers["gateway.onward_failed"]), (0.0, 1.0));
}

#[test]
fn clients_may_come_to_its_own_address() {
    let gateway = r#"{ proxy = { split-tcp = { mode = "addressed", ports = [8080], server = "origin", server_port = 80 } } }"#;
    let client =
        r#"{ app = { http-client = { server = "gateway", port = 8080, pages = [["/20kB", "/5kB"]] } } }"#;
    let numbers = run(world(client, gateway, SERVER)).values;
    assert_eq!((numbers["failed"], numbers["gateway.connections"]), (0.0, 1.0));
    assert!(numbers["gateway.downlink_bytes"] > 25_000.0);
}

#[test]
fn what_is_not_asked_for_passes_untouched() {
    let gateway = r#"{ proxy = { split-tcp = { ports = [80] } } }"#;
    let numbers = run(world(&bulk(r#"size = "10kB""#), gateway, BULK)).values;
    assert_eq!((numbers["transfers"], numbers["gateway.connections"]), (1.0, 0.0));
    let ping = run(world(r#"{ app = { ping = { server = "origin", count = 20 } } }"#, SPLIT, SERVER)).values;
    // Both ways in full: the proxy does not answer for the server. A few are lost on the radio link.
    assert!(ping["received"] > 10.0 && ping["rtt_min_s"] >= 0.28, "{ping:?}");
}

#[test]
fn what_it_sends_in_the_name_of_the_server_fits_the_path_to_the_client() {
    let text = |app: &str| {
        format!(
            r#"
            path = ["mobile", "radio", "near", "narrow", "far", "wire", "gateway", "internet", "origin"]
            hosts = {{ mobile = {app}, near = {{}}, far = {{}}, gateway = {SPLIT}, origin = {BULK} }}
            [links]
            radio = {{ bearer = "wireline", delay = "10ms" }}
            narrow = {{ bearer = "wireline", delay = "10ms", mtu = 576 }}
            wire = {{ bearer = "wireline", delay = "10ms" }}
            internet = {{ bearer = "wireline", delay = "10ms" }}
            "#
        )
    };
    let numbers = run(build(&text(&bulk(r#"size = "100kB""#)))).values;
    assert_eq!((numbers["transfers"], numbers["gateway.connections"]), (1.0, 1.0));
    assert!(numbers["completion_s"] < 10.0, "{}", numbers["completion_s"]);
}

/// Connects, and says nothing for a second.
struct Silent {
    to: SocketAddr,
    socket: Option<SocketId>,
    opened: Option<Instant>,
}

impl App for Silent {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.socket = Some(net.connect(cx, self.to));
    }
    fn handle_event(&mut self, cx: &mut Cx, _: &mut dyn Sockets, _: SocketId, event: SocketEvent) {
        if event == SocketEvent::Opened {
            self.opened = Some(cx.now);
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.socket.map(|_| Instant::ZERO + Duration::from_secs(1))
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if let Some(socket) = self.socket.take() {
            net.write(cx, socket, Body::filler(1, 100)).expect("there is room");
        }
    }
    fn is_done(&self) -> bool {
        self.socket.is_none()
    }
    fn summarise(&self, out: &mut Summary) {
        out.set_some("opened_s", self.opened.map(Instant::as_secs_f64));
    }
}

#[test]
fn when_it_connects_onward_is_a_setting() {
    // Whether the connection onward is open at 0.9 s, and when the client's is: a round trip of the radio link, and one of
    // the internet first where the server is asked first.
    for (connects, open_at_once, client) in
        [("on-accept", 1.0, 0.04), ("on-request", 0.0, 0.04), ("before-answering", 1.0, 0.14)]
    {
        let mut b = Builder::new(1);
        let (mobile, gateway, origin) = (b.host("mobile"), b.host("gateway"), b.host("origin"));
        b.link("radio", "wireline", &json!({ "delay": "20ms" }), &[mobile], gateway).unwrap();
        b.link("internet", "wireline", &json!({ "delay": "50ms" }), &[gateway], origin).unwrap();
        for host in [mobile, gateway, origin] {
            b.transport(host, "tcp", &json!({})).unwrap();
        }
        b.app(origin, "http-server", &json!({}), None).unwrap();
        b.proxy(gateway, "split-tcp", &json!({ "connects": connects }), None).unwrap();
        let to = SocketAddr::new(b.address_of(mobile, "origin").unwrap(), 80);
        b.app_with(mobile, Box::new(Silent { to, socket: None, opened: None }));
        let mut world = b.build().unwrap();
        for (until, opened) in [(0.9, open_at_once), (1.5, 1.0)] {
            virtual_time::run(&mut world, Until::Elapsed(Duration::from_secs_f64(until)), |_, _| true);
            let numbers = world.summary().values;
            assert_eq!(numbers["gateway.connections"], 1.0, "{connects}");
            assert_eq!(numbers["gateway.onward_opened"], opened, "{connects} at {until} s");
            let at = numbers["opened_s"];
            assert!((client..client + 0.001).contains(&at), "{connects}: {at}");
        }
    }
}

#[test]
fn pairs_on_which_nothing_moves_end() {
    let gateway = r#"{ proxy = { split-tcp = { idle = "3s" } } }"#;
    // The server takes ten seconds for an answer; with time enough it would come.
    let server = r#"{ app = { http-server = { delay = "10s" } } }"#;
    let client = r#"{ app = { http-client = { pages = [["/20kB"]], retries = 0 } } }"#;
    let numbers = run(world(client, gateway, server)).values;
    assert_eq!((numbers["failed"], numbers["gateway.idle"]), (1.0, 1.0));
    let patient = r#"{ proxy = { split-tcp = { idle = "30s" } } }"#;
    let numbers = run(world(client, patient, server)).values;
    assert_eq!((numbers["failed"], numbers["gateway.idle"]), (0.0, 0.0));
}

#[test]
fn a_client_that_waits_is_let_in_or_refused_as_the_server_says() {
    let before = r#"{ proxy = { split-tcp = { connects = "before-answering" } } }"#;
    let page = run(world(PAGE, before, SERVER)).values;
    assert_eq!((page["failed"], page["gateway.connections"]), (0.0, 2.0));
    // The client cannot tell the proxy from the server: it is refused, not reset.
    let refused = run(world(&bulk(r#"size = "1kB""#), before, SERVER)).values;
    assert_eq!((refused["transfers_failed"], refused["gateway.onward_failed"]), (1.0, 1.0));
    assert_eq!(refused["packets"], 4.0, "a SYN and a RST on each side");
}

#[test]
fn reads_that_cost_time_are_done_one_after_the_other() {
    let costly = r#"{ proxy = { split-tcp = { cost_per_read = "20ms", read_size = "1000B" } } }"#;
    let numbers = run(world(&bulk(r#"size = "200kB", parallel = 4, repeat = 4"#), costly, BULK)).values;
    assert_eq!(numbers["transfers_failed"], 0.0);
    // At least 800 reads of at most 1,000 octets, of all four connections together.
    assert!(numbers["completion_s"] > 800.0 * 0.02, "{}", numbers["completion_s"]);
}

#[test]
fn each_side_may_have_a_stack_of_its_own() {
    // A first flight of ten segments towards the mobile and of one towards the server, and the reverse: who sends the
    // data is who matters.
    let proxy = |radio: u32, internet: u32| {
        format!(
            r#"{{ proxy = "split-tcp", interfaces = {{
                radio = {{ transport = {{ tcp = {{ initial_window = {radio} }} }} }},
                internet = {{ transport = {{ tcp = {{ initial_window = {internet} }} }} }} }} }}"#
        )
    };
    let sent_by = |mode: &str, radio, internet| {
        let client = bulk(&format!(r#"size = "14kB", mode = "{mode}""#));
        let quiet = |text: String| {
            text.replace("loss = { downlink = 0.02, uplink = 0.02 }", "loss = 0").replace("1Mbit", "10Mbit")
        };
        run(build(&quiet(text(&client, &proxy(radio, internet), BULK)))).values["completion_s"]
    };
    let (wide, narrow) = (sent_by("get", 10, 1), sent_by("get", 1, 10));
    assert!(narrow > wide + 2.0 * 0.04, "get: three more round trips of 40 ms: {wide} {narrow}");
    let (narrow, wide) = (sent_by("put", 10, 1), sent_by("put", 1, 10));
    assert!(narrow > wide + 2.0 * 0.24, "put: three more round trips of 240 ms: {wide} {narrow}");
}

#[test]
fn settings_that_no_proxy_can_work_with_are_refused() {
    for (settings, word) in [
        (r#"buffer = "0B""#, "buffer"),
        (r#"read_size = "0B""#, "read_size"),
        ("ports = []", "ports"),
        (r#"server = "origin""#, "addressed"),
        (r#"mode = "addressed", server = "nobody""#, "nobody"),
        ("max_connections = 0", "max_connections"),
        (r#"idle = "0s""#, "idle"),
    ] {
        let text = format!(
            r#"
            path = ["mobile", "radio", "gateway", "internet", "origin"]
            hosts = {{ mobile = {{}}, gateway = {{ proxy = {{ split-tcp = {{ {settings} }} }} }}, origin = {{}} }}
            links = {{ radio = {{ bearer = "wireline" }}, internet = {{ bearer = "wireline" }} }}
            "#
        );
        let built = Scenario::parse("wrong.toml", &text).map(|scenario| scenario.build(false).err());
        let error = match built {
            Err(error) => error.to_string(),
            Ok(error) => error.unwrap_or_else(|| panic!("{settings} was taken")).to_string(),
        };
        assert!(error.contains(word), "{error}");
    }
}

/// Says `say` as there is room, finishes, and remembers what it hears.
struct Speaker {
    to: SocketAddr,
    say: Bytes,
    said: usize,
    heard: Arc<Mutex<Vec<u8>>>,
    end: Option<CloseReason>,
}

impl Speaker {
    fn speak(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let before = self.said;
        self.said += net.write(cx, socket, Body::Real(self.say.slice(self.said..))).unwrap_or(0);
        if self.said == self.say.len() && (before < self.said || self.say.is_empty()) {
            net.finish(cx, socket);
        }
    }
}

/// Takes what has arrived.
fn hear(cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, into: &mut Vec<u8>) {
    while let Some(body) = net.read(cx, socket, usize::MAX) {
        into.extend_from_slice(&body.to_bytes());
    }
}

impl App for Speaker {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        net.connect(cx, self.to);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Opened | SocketEvent::Writable => self.speak(cx, net, socket),
            SocketEvent::Readable(_) => hear(cx, net, socket, &mut self.heard.lock().unwrap()),
            SocketEvent::Closed(why) => self.end = Some(why),
            _ => {}
        }
    }
    fn is_done(&self) -> bool {
        self.end.is_some()
    }
    fn summarise(&self, out: &mut Summary) {
        out.set("finished", f64::from(u8::from(self.end == Some(CloseReason::Finished))));
    }
}

/// Says back what it heard once its peer has finished: the half-closed connection carries the answer.
#[derive(Default)]
struct Echo {
    heard: Vec<u8>,
    said: usize,
    is_full: bool,
}

impl App for Echo {
    fn stream_ports(&self) -> Vec<u16> {
        vec![7]
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        hear(cx, net, socket, &mut self.heard);
        self.is_full |= event == SocketEvent::Finished;
        if self.is_full && matches!(event, SocketEvent::Finished | SocketEvent::Writable) {
            let rest = Bytes::copy_from_slice(&self.heard[self.said..]);
            self.said += net.write(cx, socket, Body::Real(rest)).unwrap_or(0);
            if self.said == self.heard.len() {
                net.finish(cx, socket);
            }
        }
    }
}

proptest! {
    #[test]
    fn octets_ends_and_half_closed_connections_pass_whatever_the_settings(
        seed: u64,
        octets in 0..60_000_usize,
        buffer in 1..40_000_u32,
        read_size in 1..20_000_u32,
        cost_us in prop_oneof![Just(0_u32), 1..3_000_u32],
        loss in 0.0..0.1,
        connects in prop_oneof![Just("on-accept"), Just("on-request"), Just("before-answering")],
        is_transparent: bool,
    ) {
        let mut b = Builder::new(seed);
        let (mobile, gateway, origin) = (b.host("mobile"), b.host("gateway"), b.host("origin"));
        let wire = json!({ "rate": "2Mbit/s", "delay": "10ms", "queue": "40 packets", "loss": loss });
        b.link("radio", "wireline", &wire, &[mobile], gateway).unwrap();
        b.link("internet", "wireline", &wire, &[gateway], origin).unwrap();
        for host in [mobile, gateway, origin] {
            b.transport(host, "tcp", &json!({})).unwrap();
        }
        // Small reads of large transfers cost what they cost: so many of them are not waited for.
        let read_size = read_size.max(octets as u32 / 2_000 + 1);
        let buffer = buffer.max(read_size);
        let mut proxy = json!({
            "connects": connects, "buffer": format!("{buffer}B"), "read_size": format!("{read_size}B"),
            "cost_per_read": format!("{cost_us}us"),
        });
        let mut to = SocketAddr::new(b.address_of(mobile, "origin").unwrap(), 7);
        if !is_transparent {
            proxy["mode"] = json!("addressed");
            proxy["ports"] = json!([7]);
            proxy["server"] = json!("origin");
            to.set_ip(b.address_of(mobile, "gateway").unwrap());
        }
        b.app_with(origin, Box::new(Echo::default()));
        b.proxy(gateway, "split-tcp", &proxy, None).unwrap();
        let say: Vec<u8> = (0..octets).map(|n| (n * 31 + n / 251) as u8).collect();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let speaker =
            Speaker { to, say: say.clone().into(), said: 0, heard: Arc::clone(&heard), end: None };
        b.app_with(mobile, Box::new(speaker));
        let numbers = run(b.build().unwrap()).values;
        prop_assert_eq!(numbers["finished"], 1.0);
        prop_assert!(*heard.lock().unwrap() == say, "{} of {} octets", heard.lock().unwrap().len(), octets);
        prop_assert_eq!(numbers["gateway.uplink_bytes"], octets as f64);
        prop_assert_eq!(numbers["gateway.downlink_bytes"], octets as f64);
        prop_assert!(numbers["gateway.buffered_peak_bytes"] <= f64::from(buffer));
    }
}
