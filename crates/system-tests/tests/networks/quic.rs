//! QUIC in whole networks: beside applications that use UDP themselves, and over a link that goes away.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use airloom_base::service::{Datagram, Identity, Path};
use airloom_base::{
    App, Body, Change, Cx, Duration, Instant, LinkState, SocketEvent, SocketId, Sockets, Summary, Transport,
};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_transports::quic::{Config, Quic};
use airloom_world::{Builder, HostId};
use serde_json::json;

fn value(summary: &Summary, key: &str) -> f64 {
    *summary.values.get(key).unwrap_or_else(|| panic!("no {key}"))
}

fn with_quic(b: &mut Builder, hosts: [HostId; 2]) {
    for host in hosts {
        b.transport(host, "quic", &json!({})).unwrap();
    }
}

/// Sends a datagram to port 9201 of a host every 50 ms, and sends back what comes to its own port 9201.
struct Chatter {
    to: Option<IpAddr>,
    next: Option<Instant>,
    answers: u32,
}

impl App for Chatter {
    fn datagram_ports(&self) -> Vec<u16> {
        vec![9201]
    }
    fn start(&mut self, cx: &mut Cx, _: &mut dyn Sockets) {
        self.next = self.to.map(|_| cx.now);
    }
    fn handle_event(&mut self, _: &mut Cx, _: &mut dyn Sockets, _: SocketId, _: SocketEvent) {}
    fn handle_datagram(&mut self, cx: &mut Cx, net: &mut dyn Sockets, datagram: Datagram) {
        self.answers += 1;
        if self.to.is_none() {
            net.send_datagram(cx, datagram);
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let Some(to) = self.to else { return };
        let (remote, body) = (SocketAddr::new(to, 9201), Body::filler(3, 100));
        net.send_datagram(cx, Datagram::Udp { local_port: 9201, remote, body });
        self.next = (self.answers < 20).then_some(cx.now + Duration::from_millis(50));
    }
    fn is_done(&self) -> bool {
        self.to.is_none() || self.answers >= 20
    }
    fn summarise(&self, out: &mut Summary) {
        out.set("chat_answers", f64::from(self.answers));
    }
}

#[test]
fn quic_and_applications_over_udp_live_on_one_host() {
    let mut b = Builder::new(1);
    let hosts = ["client", "server"].map(|name| b.host(name));
    let [client, server] = hosts;
    b.link("wire", "wireline", &json!({ "rate": "2Mbit/s", "delay": "20ms" }), &[client], server).unwrap();
    with_quic(&mut b, hosts);
    b.app(server, "bulk-server", &json!({}), None).unwrap();
    b.app(client, "bulk", &json!({ "size": "300kB" }), Some("server")).unwrap();
    let to = b.address_of(client, "server");
    b.app_with(server, Box::new(Chatter { to: None, next: None, answers: 0 }));
    b.app_with(client, Box::new(Chatter { to, next: None, answers: 0 }));
    let mut world = b.build().unwrap();
    let limit = Duration::from_secs(60);
    assert_eq!(virtual_time::run(&mut world, Until::Done { limit }, |_, _| true), Outcome::Complete);
    let summary = world.summary();
    assert_eq!((value(&summary, "client.transfers"), value(&summary, "client.transfers_failed")), (1.0, 0.0));
    assert!(value(&summary, "client.chat_answers") >= 20.0 && value(&summary, "server.chat_answers") >= 20.0);
}

/// A server with both transports and a client with one, which fetches 30 kB.
fn both(
    b: &mut Builder,
    spoken: &str,
    server_app: (&str, serde_json::Value),
    client_app: (&str, serde_json::Value),
) {
    let [client, server] = [format!("client-{spoken}"), format!("server-{spoken}")].map(|name| b.host(&name));
    let wire = json!({ "rate": "2Mbit/s", "delay": "20ms" });
    b.link(&format!("wire-{spoken}"), "wireline", &wire, &[client], server).unwrap();
    b.transport(client, spoken, &json!({})).unwrap();
    for transport in ["tcp", "quic"] {
        b.transport(server, transport, &json!({})).unwrap();
    }
    b.app(server, server_app.0, &server_app.1, None).unwrap();
    b.app(client, client_app.0, &client_app.1, Some(&format!("server-{spoken}"))).unwrap();
}

fn whole(b: Builder) -> Summary {
    let mut world = b.build().unwrap();
    let limit = Duration::from_secs(60);
    assert_eq!(virtual_time::run(&mut world, Until::Done { limit }, |_, _| true), Outcome::Complete);
    world.summary()
}

#[test]
fn an_application_accepts_connections_of_all_transports_of_its_host() {
    for spoken in ["tcp", "quic"] {
        let mut b = Builder::new(1);
        both(&mut b, spoken, ("bulk-server", json!({})), ("bulk", json!({ "size": "30kB" })));
        let summary = whole(b);
        assert_eq!(
            (value(&summary, "transfers"), value(&summary, "transfers_failed")),
            (1.0, 0.0),
            "{spoken}"
        );
    }
}

#[test]
fn ports_of_tcp_and_of_udp_are_two_spaces() {
    for (spoken, http) in [("tcp", "1.1"), ("quic", "3")] {
        let mut b = Builder::new(1);
        let fetches = json!({ "http": http, "port": 443, "objects": ["/30kB"] });
        both(&mut b, spoken, ("http-server", json!({ "http": "3" })), ("http-client", fetches));
        let server = HostId(1);
        b.app(server, "http-server", &json!({ "port": 443 }), None).unwrap();
        // What is left of the port is nothing now, whoever asks.
        for (app, config) in [
            ("http-server", json!({ "port": 443 })),
            ("http-server", json!({ "http": "3" })),
            ("name-server", json!({ "port": 443 })),
        ] {
            let refused = b.app(server, app, &config, None).expect_err("the port is taken");
            assert!(refused.to_string().contains("listens on port 443 already"), "{refused}");
        }
        let summary = whole(b);
        assert_eq!((value(&summary, "objects"), value(&summary, "failed")), (1.0, 0.0), "{spoken}");
        let served = value(&summary, &format!("server-{spoken}.app[0].connections_h3"));
        assert_eq!(served, if spoken == "quic" { 1.0 } else { 0.0 }, "{:?}", summary.values);
    }
}

#[test]
fn on_a_host_with_quic_alone_a_port_is_one_application_s() {
    let mut b = Builder::new(1);
    let host = b.host("server");
    b.transport(host, "quic", &json!({})).unwrap();
    b.app(host, "http-server", &json!({ "http": "3" }), None).unwrap();
    let refused = b.app(host, "bulk-server", &json!({ "port": 443 }), None).expect_err("the port is taken");
    assert!(refused.to_string().contains("listens on port 443 already"), "{refused}");
    b.app(host, "name-server", &json!({ "port": 53 }), None).unwrap();
    let refused = b.app(host, "bulk-server", &json!({ "port": 53 }), None).expect_err("datagrams have it");
    assert!(refused.to_string().contains("listens on port 53 already"), "{refused}");
}

#[test]
fn a_client_goes_on_over_its_other_link_when_the_first_goes_out_of_service() {
    let completion = |goes: bool| {
        let mut b = Builder::new(1);
        let hosts = ["client", "server"].map(|name| b.host(name));
        let [client, server] = hosts;
        let wire = json!({ "rate": "2Mbit/s", "delay": "20ms" });
        let gateway = b.host("gateway");
        let first = b.link("first", "wireline", &wire, &[client], gateway).unwrap();
        b.link("second", "wireline", &wire, &[client], gateway).unwrap();
        b.link("wan", "wireline", &json!({ "rate": "100Mbit/s", "delay": "1ms" }), &[gateway], server)
            .unwrap();
        with_quic(&mut b, hosts);
        b.app(server, "bulk-server", &json!({}), None).unwrap();
        b.app(client, "bulk", &json!({ "size": "1MB" }), Some("server")).unwrap();
        if goes {
            b.at(Duration::from_secs(1), first, &[], Change::State(LinkState::Down));
        }
        let mut world = b.build().unwrap();
        let limit = Duration::from_secs(60);
        let outcome = virtual_time::run(&mut world, Until::Done { limit }, |_, _| true);
        assert_eq!(outcome, Outcome::Complete);
        let summary = world.summary();
        assert_eq!(value(&summary, "transfers"), 1.0);
        value(&summary, "completion_s")
    };
    let (usual, moved) = (completion(false), completion(true));
    // A megabyte takes four seconds; finding out and validating takes less than another one.
    assert!((4.0..5.0).contains(&usual), "{usual}");
    assert!(moved > usual && moved < usual + 1.0, "{usual} {moved}");
}

/// Two pages of two objects, each over a connection of its own, a round trip of 100 ms away.
fn pages(client: serde_json::Value, transport: serde_json::Value) -> Summary {
    let mut b = Builder::new(1);
    let hosts = ["client", "server"].map(|name| b.host(name));
    let [client_host, server] = hosts;
    b.link("wire", "wireline", &json!({ "rate": "10Mbit/s", "delay": "50ms" }), &[client_host], server)
        .unwrap();
    for host in hosts {
        b.transport(host, "quic", &transport).unwrap();
    }
    b.app(server, "http-server", &json!({ "http": "3" }), None).unwrap();
    let mut config = json!({ "http": "3", "per_page": true, "pages": [["/1kB", "/2kB"], ["/1kB", "/2kB"]] });
    for (key, value) in client.as_object().unwrap() {
        config[key] = value.clone();
    }
    b.app(client_host, "http-client", &config, Some("server")).unwrap();
    let mut world = b.build().unwrap();
    let limit = Duration::from_secs(60);
    assert_eq!(virtual_time::run(&mut world, Until::Done { limit }, |_, _| true), Outcome::Complete);
    world.summary()
}

#[test]
fn a_page_over_a_session_that_goes_on_takes_a_round_trip_less_with_early_requests() {
    let usual = pages(json!({}), json!({}));
    let early = pages(json!({}), json!({ "zero_rtt": true }));
    for summary in [&usual, &early] {
        assert_eq!((value(summary, "objects"), value(summary, "failed")), (4.0, 0.0));
    }
    assert_eq!((value(&usual, "connections_early"), value(&early, "connections_early")), (0.0, 1.0));
    let saved = value(&usual, "page_load_min_s") - value(&early, "page_load_min_s");
    assert!((0.095..0.11).contains(&saved), "{saved}");
}

#[test]
fn a_form_waits_for_the_handshake() {
    let pages_of = |object: &str| {
        let posted = if object == "form" { json!({ "path": "/1kB", "post": "100B" }) } else { json!("/1kB") };
        let client = json!({ "pages": [["/1kB"], [posted]] });
        pages(client, json!({ "zero_rtt": true }))
    };
    let (form, plain) = (pages_of("form"), pages_of("plain"));
    for summary in [&form, &plain] {
        assert_eq!((value(summary, "objects"), value(summary, "failed")), (2.0, 0.0));
        assert_eq!(value(summary, "connections_early"), 1.0);
    }
    //= RFC 8470 (4): a client sends no request early that is not safe.
    let waited = value(&form, "page_load_min_s") - value(&plain, "page_load_min_s");
    assert!((0.09..0.12).contains(&waited), "{waited}");
}

/// Opens connections that it never goes on with, each from a port of its own: most of them at once, and some a minute later.
struct Flood {
    to: IpAddr,
    quic: Quic,
    next: Option<Instant>,
    answered: [BTreeSet<u16>; 2],
}

impl Flood {
    const FIRST_PORT: u16 = 10_000;
    const PORTS: u16 = 5_000;
    const LATER: u16 = 100;
    const PAUSE: Duration = Duration::from_secs(60);
}

impl App for Flood {
    fn datagram_ports(&self) -> Vec<u16> {
        (Flood::FIRST_PORT..Flood::FIRST_PORT + Flood::PORTS + Flood::LATER).collect()
    }
    fn start(&mut self, cx: &mut Cx, _: &mut dyn Sockets) {
        self.next = Some(cx.now);
    }
    fn handle_event(&mut self, _: &mut Cx, _: &mut dyn Sockets, _: SocketId, _: SocketEvent) {}
    fn handle_datagram(&mut self, _: &mut Cx, _: &mut dyn Sockets, datagram: Datagram) {
        if let Datagram::Udp { local_port, .. } = datagram {
            let is_later = local_port >= Flood::FIRST_PORT + Flood::PORTS;
            self.answered[usize::from(is_later)].insert(local_port);
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let (from, count) = match cx.now {
            Instant::ZERO => (Flood::FIRST_PORT, Flood::PORTS),
            _ => (Flood::FIRST_PORT + Flood::PORTS, Flood::LATER),
        };
        self.next = (cx.now == Instant::ZERO).then_some(cx.now + Flood::PAUSE);
        for port in from..from + count {
            let path = Path { local: [10, 0, 0, 1].into(), remote: self.to, mtu: 1500 };
            let mut opening = self.quic.connection(path, (port, 443), Identity::default());
            opening.speak("h3");
            opening.connect(cx);
            let body = opening.poll_transmit(cx).expect("it begins").packet.body().clone();
            let remote = SocketAddr::new(self.to, 443);
            net.send_datagram(cx, Datagram::Udp { local_port: port, remote, body });
        }
    }
    fn is_done(&self) -> bool {
        false
    }
    fn summarise(&self, out: &mut Summary) {
        out.set("answered", self.answered[0].len() as f64);
        out.set("answered_later", self.answered[1].len() as f64);
    }
}

#[test]
fn a_flood_of_openings_takes_the_room_of_so_many_connections_and_not_for_long() {
    let mut b = Builder::new(1);
    let hosts = ["flooder", "server"].map(|name| b.host(name));
    let [flooder, server] = hosts;
    let wire = json!({ "rate": "1Gbit/s", "delay": "1ms" });
    b.link("wire", "wireline", &wire, &[flooder], server).unwrap();
    b.transport(server, "quic", &json!({})).unwrap();
    b.app(server, "http-server", &json!({ "http": "3" }), None).unwrap();
    let to = b.address_of(flooder, "server").unwrap();
    let quic = Quic::new(Config::default(), 1, "flooder");
    b.app_with(flooder, Box::new(Flood { to, quic, next: None, answered: Default::default() }));
    let mut world = b.build().unwrap();
    let limit = Duration::from_secs(90);
    virtual_time::run(&mut world, Until::Done { limit }, |_, _| true);
    let summary = world.summary();
    // What waits for its opener is bounded as it is of TCP; when nothing has come for the idle timeout its room is free again.
    assert_eq!(value(&summary, "flooder.answered"), 4096.0);
    assert_eq!(value(&summary, "flooder.answered_later"), f64::from(Flood::LATER));
}
