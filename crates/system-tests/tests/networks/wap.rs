//! A phone, the WAP gateway and an origin in one simulated network.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use airloom_base::service::Datagram;
use airloom_base::{App, Body, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary};
use airloom_content::markup;
use airloom_content::wbxml::Limits;
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_system_tests::play;
use airloom_transports::wsp::capabilities::Capability;
use airloom_transports::wsp::client::{Client, Event};
use airloom_transports::wsp::headers::decode_content_type;
use airloom_transports::wsp::wire::Method;
use airloom_transports::wtp;
use airloom_world::{Builder, scenario::Scenario};
use bytes::Bytes;
use serde_json::json;

/// The status, the content type and the body of each reply.
type Replies = Arc<Mutex<Vec<(u8, String, Bytes)>>>;

/// Asks for one address after the other.
struct Phone {
    client: Client,
    left: Vec<&'static str>,
    replies: Replies,
    all: usize,
}

const PORT: u16 = 49_200;

impl Phone {
    fn new(gateway: SocketAddr, addresses: &[&'static str], replies: &Replies) -> Phone {
        let left = addresses.iter().rev().copied().collect();
        let client = Client::new(wtp::Config::default(), gateway, 1);
        Phone { client, left, replies: Arc::clone(replies), all: addresses.len() }
    }

    fn go_on(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(event) = self.client.poll_event() {
            if let Event::Reply { status, headers, data, .. } = &event {
                let (content_type, _) = decode_content_type(headers).unwrap();
                self.replies.lock().unwrap().push((*status, content_type, data.clone()));
            }
            if let (Event::Connected(_) | Event::Reply { .. }, Some(next)) = (&event, self.left.pop()) {
                let uri = Bytes::from_static(next.as_bytes());
                self.client.request(cx.now, Method::Get, uri, Bytes::new(), Bytes::new()).unwrap();
            }
        }
        while let Some((remote, octets)) = self.client.poll_transmit() {
            let body = Body::Real(octets);
            net.send_datagram(cx, Datagram::Udp { local_port: PORT, remote, body });
        }
    }
}

impl App for Phone {
    fn datagram_ports(&self) -> Vec<u16> {
        vec![PORT]
    }
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        // Accept: */*.
        self.client.connect(cx.now, vec![Capability::ClientSduSize(0)], Bytes::from_static(&[0x80, 0x80]));
        self.go_on(cx, net);
    }
    fn handle_event(&mut self, _: &mut Cx, _: &mut dyn Sockets, _: SocketId, _: SocketEvent) {}
    fn handle_datagram(&mut self, cx: &mut Cx, net: &mut dyn Sockets, datagram: Datagram) {
        let Datagram::Udp { remote, body, .. } = datagram else { return };
        self.client.handle_datagram(cx.now, remote, &body.to_bytes());
        self.go_on(cx, net);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.client.handle_timeout(cx.now);
        self.go_on(cx, net);
    }
    fn is_done(&self) -> bool {
        self.replies.lock().unwrap().len() == self.all
    }
}

/// What a phone gets from a gateway with these settings, over a link of 64 kbit/s that loses this part of its packets.
fn browse(
    config: serde_json::Value,
    loss: f64,
    addresses: &[&'static str],
) -> (Vec<(u8, String, Bytes)>, Summary) {
    let mut b = Builder::new(1);
    let (phone, gateway, origin) = (b.host("phone"), b.host("gateway"), b.host("Origin"));
    let air = json!({ "rate": "64kbit/s", "delay": "100ms", "loss": loss });
    b.link("air", "wireline", &air, &[phone], gateway).unwrap();
    b.link("wire", "wireline", &json!({ "rate": "10Mbit/s", "delay": "5ms" }), &[gateway], origin).unwrap();
    for host in [phone, gateway, origin] {
        b.transport(host, "tcp", &json!({})).unwrap();
    }
    b.app(origin, "http-server", &json!({ "objects": { "/a.gif": "500B" }, "idle_timeout": "300s" }), None)
        .unwrap();
    b.proxy(gateway, "wap-gateway", &config, None).unwrap();
    let at = SocketAddr::new(b.address_of(phone, "gateway").unwrap(), 9201);
    let replies = Replies::default();
    b.app_with(phone, Box::new(Phone::new(at, addresses, &replies)));
    let mut world = b.build().unwrap();
    let limit = Until::Done { limit: Duration::from_secs(600) };
    assert_eq!(virtual_time::run(&mut world, limit, |_, _| true), Outcome::Complete);
    let replies = replies.lock().unwrap().clone();
    (replies, world.summary())
}

#[test]
fn a_phone_reads_pages_and_files_of_an_origin_over_a_lossy_link() {
    let addresses = ["http://origin/", "http://origin/100kB", "http://origin/a.gif", "http://origin/none"];
    let (replies, summary) = browse(json!({ "keep_alive_timeout": "300s" }), 0.05, &addresses);
    let kinds: Vec<_> =
        replies.iter().map(|(status, kind, body)| (*status, kind.as_str(), body.len())).collect();
    assert_eq!(kinds[0].1, "application/vnd.wap.wmlc");
    let deck = markup::decompile(&replies[0].2, Limits::default()).unwrap();
    assert!(deck.contains("href=\"/200kB\""), "{deck}");
    assert_eq!(kinds[1], (0x20, "application/octet-stream", 100_000));
    assert_eq!(kinds[2], (0x20, "image/gif", 500));
    assert_eq!(kinds[3].0, 0x44);
    let value = |name: &str| summary.values.get(&format!("gateway.{name}")).copied();
    assert_eq!(value("requests"), Some(4.0), "{:?}", summary.values);
    // All over one connection that is kept.
    assert_eq!((value("fetches"), value("origin_connections")), (Some(4.0), Some(1.0)));
}

#[test]
fn without_keep_alive_each_request_has_a_connection_and_unknown_origins_are_an_error() {
    let addresses = ["http://origin/10", "http://origin/20", "http://nobody/", "http://origin:81/"];
    let (replies, summary) = browse(json!({ "keep_alive": false }), 0.0, &addresses);
    let statuses: Vec<_> = replies.iter().map(|reply| reply.0).collect();
    assert_eq!(statuses, [0x20, 0x20, 0x62, 0x62]);
    assert_eq!(summary.values.get("gateway.origin_connections"), Some(&3.0));
}

#[test]
fn a_scenario_names_the_gateway_as_a_proxy() {
    let text = r#"
        [run]
        until = "1s"
        [hosts]
        phone = { app = { ping = { server = "gateway" } } }
        gateway = { proxy = { wap-gateway = { processing = { fixed = "100ms" } } } }
        origin = { app = "http-server" }
        [links]
        air = { bearer = "wireline", between = ["phone", "gateway"] }
        wire = { bearer = "wireline", between = ["gateway", "origin"] }
    "#;
    assert_eq!(play(text, 1).1["gateway.requests"], 0.0);
    let error = Scenario::parse("wap", &text.replace("100ms\"", "100ms\", x = 1")).unwrap_err().to_string();
    assert!(error.contains("`x`"), "{error}");
}
