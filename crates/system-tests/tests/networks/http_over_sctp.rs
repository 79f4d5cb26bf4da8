//! HTTP over the streams of an association, and over TCP in the ways it is compared with.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use airloom_base::random::Stream;
use airloom_base::{App, Body, Cx, Duration, SocketEvent, SocketId, Sockets, Summary};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_system_tests::complete;
use airloom_world::{Builder, HostId, World};
use serde_json::{Value, json};

/// Hosts `client` and `server` with these transports on a wire.
fn hosts(wire: &Value, client: &Value, server: &Value) -> (Builder, HostId, HostId) {
    let mut b = Builder::new(5);
    let (near, far) = (b.host("client"), b.host("server"));
    b.link("wire", "wireline", wire, &[near], far).unwrap();
    for (host, transport) in [(near, client), (far, server)] {
        let (name, config) = transport.as_object().and_then(|t| t.iter().next()).unwrap();
        b.transport(host, name, config).unwrap();
    }
    (b, near, far)
}

/// Runs until everybody is done, then on until nothing is left to do.
fn finish(world: &mut World, what: &str) -> Summary {
    let limit = Duration::from_secs(7200);
    assert_eq!(virtual_time::run(world, Until::Done { limit }, |_, _| true), Outcome::Complete, "{what}");
    let summary = world.summary();
    let end = world.now() + Duration::from_secs(7200);
    while let Some(at) = world.poll_timeout() {
        assert!(at < end, "{what}: still busy {at} after everybody was done");
        world.handle_timeout(at);
    }
    summary
}

fn load(wire: &Value, transport: &Value, client: &Value, server: &Value) -> Summary {
    let (mut b, near, far) = hosts(wire, transport, transport);
    b.app(far, "http-server", server, None).unwrap();
    // A client that takes no time, so that what is left are round trips.
    let mut client = client.clone();
    client["reaction"] = json!("0s");
    b.app(near, "http-client", &client, Some("server")).unwrap();
    finish(&mut b.build().unwrap(), &format!("{transport} {client} {server}"))
}

fn sctp() -> Value {
    json!({ "sctp": {} })
}

#[test]
fn every_object_arrives_over_any_number_of_streams_through_losses() {
    let objects: Vec<Value> = (0..12)
        .map(|n| json!({ "path": format!("/{}", 3000 * n), "size": format!("{}B", 3000 * n) }))
        .collect();
    let wire = json!({ "rate": "2Mbit/s", "delay": "20ms", "queue": "50 packets", "loss": 0.03 });
    for transport in [
        sctp(),
        json!({ "sctp": { "profile": "sctp-2000", "send_buffer": "8kB", "receive_buffer": "16kB" } }),
        json!({ "sctp": { "interleaving": true, "scheduler": "round-robin", "message": "4kB" } }),
    ] {
        for client in [
            json!({ "http": "1.0", "connections": 1, "streams": 1 }),
            json!({ "http": "1.0", "connections": 1, "streams": 3, "per_page": true }),
            json!({ "http": "1.0", "connections": 2, "streams": 2 }),
            json!({ "http": "1.1", "connections": 1, "streams": 8, "pipeline": 12 }),
        ] {
            for server in
                [json!({}), json!({ "http": "1.0", "coding": "close" }), json!({ "coding": "chunked" })]
            {
                let mut config = client.clone();
                config["pages"] = json!([objects, objects]);
                let what = format!("{transport} {client} {server}");
                let values = load(&wire, &transport, &config, &server).values;
                assert_eq!((values["objects"], values["failed"]), (24.0, 0.0), "{what}");
                assert_eq!(values["bytes"], 2.0 * 3000.0 * 66.0, "{what}");
                assert_eq!(values["asked_again"], 0.0, "{what}");
                assert_eq!(values["requests_malformed"], 0.0, "{what}");
            }
        }
    }
}

#[test]
fn a_server_that_ends_associations_after_some_requests_is_asked_again() {
    let wire = json!({ "delay": "20ms" });
    let client = json!({ "http": "1.1", "connections": 1, "streams": 2, "objects": vec!["/1kB"; 7] });
    let values = load(&wire, &sctp(), &client, &json!({ "max_requests": 3 })).values;
    assert_eq!((values["objects"], values["failed"]), (7.0, 0.0));
    assert!(values["client.connections"] >= 2.0, "{}", values["client.connections"]);
}

#[test]
fn the_time_of_a_page_is_the_round_trips_of_its_pattern() {
    // A round trip is 100 ms and nothing else takes time.
    let wire = json!({ "delay": "50ms" });
    let page = |mut client: Value, transport: &Value| {
        client["objects"] = json!(vec!["/100"; 6]);
        let values = load(&wire, transport, &client, &json!({})).values;
        assert_eq!((values["objects"], values["failed"]), (6.0, 0.0), "{client}");
        (values["page_load_s"] * 1e4).round() / 1e4
    };
    let tcp = json!({ "tcp": {} });
    let one = |http: &str| json!({ "http": http, "connections": 1 });
    // One connection for each object, one for all of them, and three at a time.
    assert_eq!(page(one("1.0"), &tcp), 1.2);
    assert_eq!(page(one("1.0-keep-alive"), &tcp), 0.7);
    assert_eq!(page(json!({ "http": "1.0", "connections": 3 }), &tcp), 0.4);
    assert_eq!(page(json!({ "http": "1.0-keep-alive", "connections": 3 }), &tcp), 0.3);
    // The first request leaves with the cookie: after one round trip, as over TCP.
    let streams = |n: u16| json!({ "http": "1.0", "connections": 1, "streams": n });
    assert_eq!(page(streams(1), &sctp()), 0.7);
    assert_eq!(page(streams(3), &sctp()), 0.3);
    assert_eq!(page(streams(6), &sctp()), 0.2);
    let pipelined = json!({ "http": "1.1", "connections": 1, "pipeline": 6 });
    assert_eq!(page(pipelined, &sctp()), 0.2);
    // Streams that TCP does not have change nothing.
    assert_eq!(page(json!({ "http": "1.0-keep-alive", "connections": 1, "streams": 8 }), &tcp), 0.7);
}

#[test]
fn the_first_object_and_all_objects_are_timed_from_the_beginning_of_their_page() {
    let wire = json!({ "delay": "50ms" });
    let client = json!({
        "http": "1.0", "connections": 1, "streams": 2, "per_page": true, "repeat": 2,
        "pages": [["/100", "/100", "/100", "/100"]],
    });
    let values = load(&wire, &sctp(), &client, &json!({})).values;
    assert_eq!(values["client.connections"], 2.0, "an association for each page");
    let ms = |key: &str| (values[key] * 1e3).round();
    assert_eq!((ms("first_object_mean_s"), ms("first_object_max_s")), (200.0, 200.0));
    // The first after two round trips, two of the others after one more, the last after another.
    assert_eq!((ms("arrival_min_s"), ms("arrival_mean_s"), ms("arrival_max_s")), (200.0, 300.0, 400.0));
    assert_eq!((ms("object_min_s"), ms("object_max_s")), (100.0, 200.0));
    assert_eq!(ms("page_load_s"), 400.0);
}

#[test]
fn no_more_streams_are_used_than_both_ends_have() {
    let wire = json!({ "delay": "20ms" });
    let client = json!({ "http": "1.0", "connections": 1, "streams": 5, "objects": vec!["/1kB"; 9] });
    for (ours, theirs, used) in [
        (json!({}), json!({ "outbound_streams": 2 }), 2.0),
        (json!({}), json!({ "inbound_streams": 3 }), 3.0),
        (json!({ "inbound_streams": 4 }), json!({}), 4.0),
        (json!({ "outbound_streams": 1 }), json!({}), 1.0),
        (json!({}), json!({}), 5.0),
    ] {
        let (mut b, near, far) = hosts(&wire, &json!({ "sctp": ours }), &json!({ "sctp": theirs }));
        b.app(far, "http-server", &json!({}), None).unwrap();
        b.app(near, "http-client", &client, Some("server")).unwrap();
        let what = format!("{ours} {theirs}");
        let values = finish(&mut b.build().unwrap(), &what).values;
        assert_eq!((values["objects"], values["failed"], values["streams"]), (9.0, 0.0, used), "{what}");
    }
}

/// What a program does with its connections: told of each event, with octets that were read.
type Say = Box<dyn FnMut(&mut Cx, &mut dyn Sockets, SocketId, SocketEvent, &[u8]) + Send>;

/// A program of a test: listens on port 80, or connects to `to`, and says what `say` says.
struct Program {
    to: Option<SocketAddr>,
    say: Say,
}

impl App for Program {
    fn stream_ports(&self) -> Vec<u16> {
        if self.to.is_some() { Vec::new() } else { vec![80] }
    }
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if let Some(to) = self.to {
            net.connect(cx, to);
        }
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        let mut octets = Vec::new();
        while let Some(body) = net.read(cx, socket, usize::MAX) {
            octets.extend_from_slice(&body.to_bytes());
        }
        (self.say)(cx, net, socket, event, &octets);
    }
}

#[test]
fn objects_are_dealt_over_the_streams_in_turn_and_answered_on_their_own() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let say: Say = Box::new(move |cx, net, socket, _, octets| {
        if !octets.is_empty() {
            let text = String::from_utf8_lossy(octets).into_owned();
            assert!(text.ends_with("\r\n\r\n") && text.matches("GET ").count() == 1, "{text}");
            log.lock().unwrap().push((socket.stream, text.split(' ').nth(1).unwrap().to_owned()));
            let answer = "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx";
            net.write(cx, socket, Body::Real(answer.into())).expect("there is room");
        }
    });
    let (mut b, near, far) = hosts(&json!({ "delay": "5ms" }), &sctp(), &sctp());
    b.app_with(far, Box::new(Program { to: None, say }));
    let client = json!({
        "http": "1.0", "connections": 1, "streams": 3,
        "objects": ["/a", "/b", "/c", "/d", "/e", "/f", "/g"],
    });
    b.app(near, "http-client", &client, Some("server")).unwrap();
    let _ = finish(&mut b.build().unwrap(), "dealt");
    let asked: Vec<_> = asked.lock().unwrap().iter().map(|(n, path)| format!("{n}{path}")).collect();
    assert_eq!(asked, ["0/a", "1/b", "2/c", "0/d", "1/e", "2/f", "0/g"]);
}

/// Random octets that now and then mean something.
fn octets(random: &mut Stream) -> Vec<u8> {
    const WORDS: [&[u8]; 10] = [
        b"GET /100 HTTP/1.0\r\n\r\n",
        b"GET /70kB HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n",
        b"Content-Length: 3\r\n",
        b"Connection: close\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"\r\n",
        b"abc",
    ];
    (0..=random.below(5)).flat_map(|_| WORDS[random.below(10) as usize].to_vec()).collect()
}

/// Says anything on any stream, shuts down or breaks off at some time.
fn rude(seed: u64) -> Say {
    let mut random = Stream::new(seed, "rude");
    let mut left = 12;
    Box::new(move |cx, net, socket, event, _| {
        if matches!(event, SocketEvent::Closed(_)) || left == 0 {
            return;
        }
        left -= 1;
        let stream = random.below(12) as u16;
        let _ = net.write(cx, socket.with_stream(stream.into()), Body::Real(octets(&mut random).into()));
        match (left, random.below(10)) {
            (0, 0..5) | (_, 0) => net.finish(cx, socket),
            (0, _) | (_, 1) => net.reset(cx, socket),
            _ => {}
        }
    })
}

#[test]
fn a_server_outlives_clients_that_say_anything_on_any_stream() {
    for seed in 0..300 {
        // Stream numbers that the server cannot answer on are among them.
        let theirs = json!({ "sctp": { "outbound_streams": 6 } });
        let (mut b, near, far) = hosts(&json!({ "delay": "5ms" }), &sctp(), &theirs);
        b.app(far, "http-server", &json!({}), None).unwrap();
        let to = SocketAddr::new(b.address_of(near, "server").unwrap(), 80);
        b.app_with(near, Box::new(Program { to: Some(to), say: rude(seed) }));
        let mut world = b.build().unwrap();
        let _ = finish(&mut world, &format!("seed {seed}"));
        assert_eq!(world.summary().values["connections"], 1.0, "seed {seed}");
    }
}

#[test]
fn a_client_comes_to_an_end_whatever_servers_say_on_any_stream() {
    for seed in 0..300 {
        let (mut b, near, far) = hosts(&json!({ "delay": "5ms" }), &sctp(), &sctp());
        b.app_with(far, Box::new(Program { to: None, say: rude(seed) }));
        let client = json!({
            "http": if seed % 2 == 0 { "1.0" } else { "1.1" },
            "connections": 1 + seed % 2, "streams": 1 + seed % 4,
            "objects": ["/1", "/2", "/3", "/4"],
        });
        b.app(near, "http-client", &client, Some("server")).unwrap();
        let values = finish(&mut b.build().unwrap(), &format!("seed {seed}")).values;
        assert_eq!(values["objects"] + values["failed"], 4.0, "seed {seed}");
    }
}

#[test]
fn the_shipped_scenario_loads_the_same_pages_over_sctp_and_over_tcp() {
    const TEXT: &str = include_str!("../../../../python/airloom/scenarios/sctp-page.toml");
    let over = |text: &str| {
        let values = complete(text);
        assert_eq!((values["pages"], values["failed"], values["pages_failed"]), (20.0, 0.0, 0.0));
        values
    };
    let sctp = over(TEXT);
    assert_eq!((sctp["mobile.connections"], sctp["streams"]), (20.0, 3.0));
    let one = over(&TEXT.replace("streams = 3\nper", "streams = 1\nper"));
    assert_eq!(one["streams"], 1.0);
    let tables = TEXT.replace("transport.sctp", "ignored");
    let begin = tables.find("# The agents").unwrap();
    let end = tables.find("[links.radio]").unwrap();
    let tcp = format!("{}{}", &tables[..begin], &tables[end..]);
    let tcp = over(&tcp.replace("http = \"1.0\"", "http = \"1.0-keep-alive\""));
    for other in [&one, &tcp] {
        assert_eq!((other["bytes"], other["objects"]), (sctp["bytes"], sctp["objects"]), "the same pages");
    }
    // Three objects at a time are there before one after another are.
    assert!(sctp["page_load_s"] < one["page_load_s"], "{} {}", sctp["page_load_s"], one["page_load_s"]);
}
