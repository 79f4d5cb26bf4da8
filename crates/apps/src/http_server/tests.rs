use std::collections::BTreeMap;
use std::net::SocketAddr;

use airloom_base::units::Octets;
use airloom_base::{
    App, Body, CloseReason, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, StreamKind, random,
};
use airloom_content::http::message::{Fields, Method, RequestHead, ResponseHead, Version};
use airloom_content::http::v2;

use super::*;
use crate::testing::{Pair, SERVER, Speaker};

fn ask_with(config: Config, text: &str, hang_up: bool, chop: usize) -> Pair<Speaker, Server> {
    let mut pair =
        Pair::new(Speaker::new(80, text.to_owned()), Server::new(config).expect("a valid configuration"));
    pair.a.hang_up = hang_up;
    pair.net.chop = chop;
    pair.run();
    pair
}

/// What the server says to `text`, the same whole and octet by octet.
fn ask_of(config: &Config, text: &str) -> String {
    let whole = ask_with(config.clone(), text, false, usize::MAX).a.text();
    assert_eq!(ask_with(config.clone(), text, false, 1).a.text(), whole, "octet by octet: {text:?}");
    whole
}

fn ask(text: &str) -> String {
    ask_of(&Config::default(), text)
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

fn filler(path: &str, len: u32) -> Vec<u8> {
    Body::filler(random::derive(0, path) as u32, len).to_bytes().to_vec()
}

fn body(heard: &[u8]) -> &[u8] {
    let end = heard.windows(4).position(|w| w == b"\r\n\r\n").expect("a head");
    &heard[end + 4..]
}

#[test]
fn a_1_0_request_gets_the_object_and_the_connection_closes() {
    let pair = ask_with(Config::default(), "GET /1000 HTTP/1.0\r\n\r\n", false, usize::MAX);
    let text = pair.a.text();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("Content-Length: 1000\r\n") && text.contains("Connection: close\r\n"));
    assert_eq!(body(&pair.a.heard), filler("/1000", 1000));
    assert_eq!((pair.a.end, pair.net.alive(1)), (Some(CloseReason::Finished), 0));
}

#[test]
fn keep_alive_is_echoed_to_a_1_0_client_and_pipelined_requests_are_answered_in_order() {
    let text = ask("GET /3 HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET /5 HTTP/1.0\r\n\r\n");
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2);
    assert!(text.contains("Connection: keep-alive\r\n"));
    assert!(text.find("Content-Length: 3").unwrap() < text.find("Content-Length: 5").unwrap());
}

#[test]
fn pipelining_goes_on_until_close_is_said() {
    let get = |n| format!("GET /{n} HTTP/1.1\r\nHost: x\r\n\r\n");
    let last = "GET /4 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /5 HTTP/1.1\r\nHost: x\r\n\r\n";
    let text = ask(&format!("{}{}{}{last}", get(1), get(2), get(3)));
    assert_eq!(text.matches("200 OK").count(), 4, "nothing after close");
}

#[test]
fn head_has_the_fields_and_no_body() {
    let text = ask("HEAD /1000 HTTP/1.0\r\n\r\n");
    assert!(text.contains("Content-Length: 1000\r\n") && text.ends_with("\r\n\r\n"));
    assert!(ask("HEAD /none HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
}

#[test]
fn errors_have_their_status() {
    let host = "Host: x\r\nConnection: close\r\n\r\n";
    for (request, expected) in [
        (format!("GET /none HTTP/1.1\r\n{host}"), "404"),
        (format!("DELETE /1 HTTP/1.1\r\n{host}"), "405"),
        (format!("BREW /1 HTTP/1.1\r\n{host}"), "501"),
        ("GET / HTTP/2.0\r\n\r\n".to_owned(), "505"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\nTransfer-Encoding: cow\r\n{host}"), "501"),
        ("\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n".to_owned(), "400"),
        (format!("GET /{} HTTP/1.1\r\n{host}", "a".repeat(20_000)), "414"),
        (format!("GET / HTTP/1.1\r\nA: {}\r\n{host}", "a".repeat(40_000)), "431"),
    ] {
        let answer = ask(&request);
        assert_eq!(status(&answer), expected, "{request:.60}");
        assert!(answer.contains("Connection: close\r\n"), "{request:.60}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{request:.60}");
    }
    assert!(ask("PUT /1 HTTP/1.0\r\nContent-Length: 1\r\n\r\nx").contains("Allow: GET, HEAD, POST"));
}

#[test]
fn a_server_with_names_is_no_other() {
    let config = Config { names: vec!["here".into(), "[::1]".into()], ..Config::default() };
    let ask = |target: &str, host: &str| {
        let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        status(&ask_of(&config, &text)).to_owned()
    };
    for (host, expected) in
        [("here", "200"), ("HERE:8080", "200"), ("[::1]:80", "200"), ("there", "421"), ("here.org", "421")]
    {
        assert_eq!(ask("/1", host), expected, "{host}");
    }
    assert_eq!(ask("http://there/1", "here"), "421", "the target says more than the field");
    // Who has heard of no other servers asks whoever is there.
    assert_eq!(status(&ask_of(&config, "GET /1 HTTP/1.0\r\n\r\n")), "200");
}

#[test]
fn a_body_nobody_needs_is_read_away_and_the_next_request_served() {
    let text = ask(
        "PUT /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /GET /7 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(text.matches("HTTP/1.1 405").count(), 1);
    assert_eq!(text.matches("HTTP/1.1 200").count(), 1);
}

#[test]
fn what_is_posted_gets_what_is_there() {
    let answer = ask("POST /9 HTTP/1.0\r\nContent-Length: 3\r\n\r\na=b");
    assert_eq!(status(&answer), "200");
    assert!(answer.contains("Content-Length: 9\r\n"));
}

#[test]
fn who_waits_for_100_continue_gets_the_answer_at_once() {
    let answer = ask("PUT /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(status(&answer), "405");
    assert!(answer.contains("Connection: close"));
    // HTTP/1.0 knows no such thing.
    let post =
        "POST /9 HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\na=b";
    let answers = ask(&[post, "GET /7 HTTP/1.0\r\n\r\n"].concat());
    assert!(
        answers.contains("Content-Length: 9\r\n") && answers.contains("Content-Length: 7\r\n"),
        "{answers}"
    );
}

#[test]
fn chunks_are_for_1_1_and_closing_for_1_0() {
    let config = Config { coding: Coding::Chunked, chunk: Octets(4), ..Config::default() };
    let text = ask_with(config.clone(), "GET /10 HTTP/1.1\r\nHost: x\r\n\r\n", true, usize::MAX);
    let octets = filler("/10", 10);
    let expected =
        [b"4\r\n", &octets[..4], b"\r\n4\r\n", &octets[4..8], b"\r\n2\r\n", &octets[8..], b"\r\n0\r\n\r\n"]
            .concat();
    assert_eq!(body(&text.a.heard), expected);
    let old = ask_of(&config, "GET /10 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(old.contains("Connection: close") && !old.contains("Content-Length") && !old.contains("chunked"));
    let empty = ask_with(config, "GET /0 HTTP/1.1\r\nHost: x\r\n\r\n", true, 1);
    assert_eq!(body(&empty.a.heard), b"0\r\n\r\n");
}

#[test]
fn a_1_0_server_keeps_connections_only_when_asked() {
    let config = Config { http: Http::Http10, ..Config::default() };
    let text = ask_of(&config, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(text.matches("HTTP/1.0 200").count(), 1);
    let two = ask_of(
        &config,
        "GET /1 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\nGET /2 HTTP/1.0\r\n\r\n",
    );
    assert_eq!(two.matches("HTTP/1.0 200").count(), 2);
    assert!(two.contains("Connection: keep-alive"));
}

#[test]
fn the_number_of_requests_can_be_limited() {
    let config = Config { max_requests: Some(2), ..Config::default() };
    let text = ask_of(&config, &"GET /1 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3));
    assert_eq!(text.matches("200 OK").count(), 2);
    assert_eq!(text.matches("Connection: close").count(), 1);
    let config = Config { keep_alive: false, ..Config::default() };
    assert_eq!(ask_of(&config, &"GET /1 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3)).matches("200 OK").count(), 1);
}

#[test]
fn an_idle_connection_is_closed_and_half_a_request_told_so() {
    let idle = ask_with(Config::default(), "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n", false, usize::MAX);
    assert!(idle.a.finished);
    assert_eq!(idle.net.alive(1), 0);
    let half = ask_with(Config::default(), "GET /1 HTTP/1.1\r\nHo", false, usize::MAX);
    assert_eq!(status(&half.a.text()), "408");
    let body =
        ask_with(Config::default(), "POST / HTTP/1.0\r\nContent-Length: 9\r\n\r\nabc", false, usize::MAX);
    assert_eq!(status(&body.a.text()), "408");
    // So is one on which nothing was said that tells by which version.
    for http in [Http::Http11, Http::Http2] {
        let silent = ask_with(Config { http, ..Config::default() }, "", false, usize::MAX);
        assert_eq!((silent.a.text().as_str(), silent.a.end), ("", Some(CloseReason::Finished)), "{http:?}");
    }
    let half = ask_with(Config { http: Http::Http2, ..Config::default() }, "PRI * HT", false, usize::MAX);
    assert_eq!(status(&half.a.text()), "408");
}

#[test]
fn a_client_that_closes_in_the_middle_of_a_request_gets_nothing() {
    let pair = ask_with(Config::default(), "GET /1 HTTP/1.1\r\nHo", true, usize::MAX);
    assert_eq!((pair.a.text().as_str(), pair.a.end), ("", Some(CloseReason::Finished)));
}

#[test]
fn a_client_that_half_closes_still_gets_its_answers() {
    let two = "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2);
    let pair = ask_with(Config::default(), &two, true, usize::MAX);
    assert_eq!(pair.a.text().matches("200 OK").count(), 2);
    assert_eq!(pair.a.end, Some(CloseReason::Finished));
}

#[test]
fn the_answer_comes_after_the_configured_time() {
    let config = Config { delay: Duration::from_secs(3), ..Config::default() };
    let mut pair = Pair::new(
        Speaker::new(80, &b"GET /1 HTTP/1.0\r\n\r\n"[..]),
        Server::new(config).expect("a valid configuration"),
    );
    pair.run_until(Instant::ZERO + Duration::from_millis(3030));
    assert!(pair.a.heard.is_empty());
    pair.run_until(Instant::ZERO + Duration::from_millis(3050));
    assert!(!pair.a.heard.is_empty());
}

/// Connects and never reads.
struct Deaf(Speaker);

impl App for Deaf {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.0.start(cx, net);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if !matches!(event, SocketEvent::Readable(_)) {
            self.0.handle_event(cx, net, socket, event);
        }
    }
    fn handle_timeout(&mut self, _: &mut Cx, _: &mut dyn Sockets) {}
    fn summarise(&self, _: &mut airloom_base::Summary) {}
}

#[test]
fn a_client_that_does_not_read_is_reset_after_the_stall_timeout() {
    let speaker = Speaker::new(80, &b"GET /1GB HTTP/1.0\r\n\r\n"[..]);
    let mut pair = Pair::new(Deaf(speaker), Server::new(Config::default()).expect("a valid configuration"));
    let end = pair.run();
    assert_eq!(pair.a.0.end, Some(CloseReason::Reset));
    assert!((60.0..61.0).contains(&end.as_secs_f64()), "{end}");
    assert_eq!(pair.server_summary()["timeouts"], 1.0);
}

#[test]
fn a_response_that_is_getting_on_is_not_reset_though_there_is_no_room_for_more() {
    let speaker = Speaker::new(80, &b"GET /1GB HTTP/1.0\r\n\r\n"[..]);
    let mut pair = Pair::new(Deaf(speaker), Server::new(Config::default()).expect("a valid configuration"));
    // The 64 kB that the network has room for arrive within 128 s; then nothing more does.
    (pair.net.chop, pair.net.pace) = (1000, Duration::from_secs(2));
    let end = pair.run();
    assert_eq!(pair.a.0.end, Some(CloseReason::Reset));
    assert!((180.0..181.0).contains(&end.as_secs_f64()), "{end}");
    assert_eq!(pair.server_summary()["timeouts"], 1.0);
}

#[test]
fn a_response_of_which_nothing_leaves_is_reset_after_the_stall_timeout() {
    let speaker = Speaker::new(80, &b"GET /1GB HTTP/1.0\r\n\r\n"[..]);
    let mut pair = Pair::new(Deaf(speaker), Server::new(Config::default()).expect("a valid configuration"));
    // The request is on its way; what answers it will be for an hour.
    pair.run_until(Instant::ZERO + Duration::from_millis(25));
    pair.net.delay = Duration::from_secs(3600);
    pair.run_until(Instant::ZERO + Duration::from_secs(61));
    assert_eq!(pair.server_summary()["timeouts"], 1.0);
}

#[test]
fn what_is_too_large_is_not_there_whatever_the_version() {
    for (path, expected) in [
        ("/18446744073709551615", 404),
        ("/a.gif?octets=18446744073709551615", 404),
        ("/1000000000001", 404),
        ("/1000000000000", 200),
        ("/most", 200),
    ] {
        let mut config = Config::default();
        config.objects.insert("/most".into(), Octets(u64::MAX));
        for coding in [Coding::Length, Coding::Chunked] {
            let config = Config { coding, ..config.clone() };
            let head = ask_of(&config, &format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(status(&head), expected.to_string(), "{path}");
            assert!(head.ends_with("\r\n\r\n"), "{path}");
            // Only as much is written as there is room for.
            let get = Speaker::new(80, format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let pair = Pair::new(Deaf(get), Server::new(config).expect("a valid configuration")).ran();
            assert_eq!(pair.server_summary()["timeouts"], f64::from(u8::from(expected == 200)), "{path}");
        }
        let config = Config { http: Http::Http2, ..config };
        let (heads, server) =
            ask_h2(&config, &[(Method::Head, path), (Method::Get, path), (Method::Get, path)]);
        assert_eq!(heads.iter().map(|head| head.status).collect::<Vec<_>>(), [expected; 3], "{path}");
        if expected == 200 {
            // The size of the object, whether it is sent or not.
            let length = if path == "/most" { u64::MAX } else { 1_000_000_000_000 };
            for head in &heads {
                assert_eq!(head.fields.first("content-length"), Some(length.to_string().as_bytes()));
            }
            // The windows of a client that opens none again.
            assert_eq!(server["sent_bytes"], 65_535.0);
        }
    }
}

/// The heads with which a server of HTTP/2 answers, in the order of the requests, and its results.
fn ask_h2(config: &Config, asked: &[(Method, &str)]) -> (Vec<ResponseHead>, BTreeMap<String, f64>) {
    let mut client = v2::Connection::client(v2::Options::default());
    let mut say = Vec::new();
    for (method, path) in asked {
        let mut fields = Fields::default();
        fields.push("Host", "a");
        let (method, target) = (method.clone(), (*path).to_owned().into());
        let head = RequestHead { method, target, version: Version::Http2, fields };
        client.request(&head, v2::Priority::default(), true).expect("room for a stream");
        while let Some(octets) = client.poll_transmit() {
            say.extend_from_slice(&octets.to_bytes());
        }
    }
    let mut pair =
        Pair::new(Speaker::new(80, say), Server::new(config.clone()).expect("a valid configuration"));
    pair.run();
    client.feed(Body::Real(std::mem::take(&mut pair.a.heard).into()));
    let mut heads = BTreeMap::new();
    while let Some(event) = client.poll_event() {
        if let v2::Event::Response(stream, head) = event {
            heads.insert(stream, head);
        }
    }
    (heads.into_values().collect(), pair.server_summary())
}

/// A connection of HTTP/2 on which so many HEADs are said at once.
fn many_heads(count: u32) -> Vec<u8> {
    let mut say = [&v2::PREFACE[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    for n in 0..count {
        // HEADERS that end both themselves and the stream: `HEAD / http`, by the static table.
        let block = [&[0x02, 4][..], b"HEAD", &[0x86, 0x84]].concat();
        say.extend_from_slice(&[0, 0, block.len() as u8, 1, 5]);
        say.extend_from_slice(&(2 * n + 1).to_be_bytes());
        say.extend_from_slice(&block);
    }
    say
}

#[test]
fn who_asks_over_http2_and_does_not_read_is_held_back_and_reset() {
    // Heads that are too long for the table of the header compression.
    let config = Config { http: Http::Http2, response: Some(Octets(8000)), ..Config::default() };
    let server = || Server::new(config.clone()).expect("a valid configuration");
    let mut deaf = Pair::new(Deaf(Speaker::new(80, many_heads(2000))), server());
    let end = deaf.run();
    let results = deaf.server_summary();
    assert!((5.0..50.0).contains(&results["requests"]), "{}", results["requests"]);
    assert_eq!((results["timeouts"], deaf.a.0.end), (1.0, Some(CloseReason::Reset)));
    assert!((60.0..61.0).contains(&end.as_secs_f64()), "{end}");
    // Who reads gets everything, though the server is held back again and again.
    let pair = Pair::new(Speaker::new(80, many_heads(2000)), server()).ran();
    let results = pair.server_summary();
    assert_eq!((results["requests"], results["timeouts"], results["requests_malformed"]), (2000.0, 0.0, 0.0));
    assert!(pair.a.finished && pair.a.heard.len() > 2000 * 5000);
}

/// Asks for much over HTTP/3, and breaks a rule as soon as it comes: a body on the control stream.
#[derive(Default)]
struct Rude(Option<CloseReason>);

impl App for Rude {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        net.connect(cx, SocketAddr::new(SERVER, 443));
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        // HEADERS with `GET https://a/1MB`, by the static table; the control stream with settings that say nothing.
        const ASKS: &[u8] = b"\x01\x0d\0\0\xd1\xd7\x50\x01a\x51\x04/1MB";
        const SETTINGS: &[u8] = b"\0\x04\0";
        const DATA: &[u8] = b"\0\x01x";
        fn say(cx: &mut Cx, net: &mut dyn Sockets, stream: SocketId, octets: &'static [u8]) {
            let taken = net.write(cx, stream, Body::Real(octets.into()));
            assert_eq!(taken.expect("it is open"), octets.len());
        }
        let (request, control) = (socket.with_stream(0), socket.with_stream(2));
        match event {
            SocketEvent::Opened => {
                assert_eq!(net.open_stream(cx, socket, StreamKind::Bi), Some(request));
                assert_eq!(net.open_stream(cx, socket, StreamKind::Uni), Some(control));
                say(cx, net, request, ASKS);
                say(cx, net, control, SETTINGS);
                net.finish(cx, request);
            }
            SocketEvent::Readable(_) if socket == request => say(cx, net, control, DATA),
            SocketEvent::Closed(why) => self.0 = Some(why),
            _ => {}
        }
    }
}

#[test]
fn a_client_that_breaks_a_rule_of_http3_is_told_while_its_answer_is_under_way() {
    let config = Config { http: Http::Http3, ..Config::default() };
    let mut pair = Pair::new(Rude::default(), Server::new(config).expect("a valid configuration"));
    // What there is room for takes 640 ms to arrive.
    (pair.net.chop, pair.net.pace) = (1000, Duration::from_millis(10));
    pair.run_until(Instant::ZERO + Duration::from_millis(100));
    //= RFC 9114 (7.2.1, 8.1): H3_FRAME_UNEXPECTED.
    assert_eq!(pair.a.0, Some(CloseReason::Application(0x105)));
    assert_eq!(pair.server_summary()["requests_malformed"], 1.0);
}

#[test]
fn connections_beyond_the_limit_are_reset() {
    let config = Config { max_connections: 0, ..Config::default() };
    let pair = ask_with(config, "GET / HTTP/1.0\r\n\r\n", false, usize::MAX);
    assert_eq!(pair.a.end, Some(CloseReason::Reset));
    assert_eq!(pair.server_summary()["connections_turned_away"], 1.0);
}

#[test]
fn decks_come_with_their_type_and_length() {
    let answer = ask("GET /1kB.wml HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&answer), "200");
    assert!(answer.contains("Content-Type: text/vnd.wap.wml\r\nContent-Length: 1000\r\n"), "{answer}");
    assert_eq!(answer.split_once("\r\n\r\n").unwrap().1.len(), 1000);
}

#[test]
fn a_response_head_is_as_long_as_asked_for() {
    for (least, wanted) in [(0, None), (250, Some(250)), (1000, Some(1000))] {
        let config = Config { response: Some(Octets(least)), ..Config::default() };
        let answer = ask_of(&config, "GET /5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let head = answer.split_once("\r\n\r\n").unwrap().0.len() + 4;
        assert!(wanted.map_or(head < 150, |wanted| head == wanted), "{least}: {head}");
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let path = |config| Server::new(config).err().map(|e| e.path.join("."));
    assert_eq!(path(Config { chunk: Octets(0), ..Config::default() }).as_deref(), Some("chunk"));
    assert_eq!(path(Config { max_requests: Some(0), ..Config::default() }).as_deref(), Some("max_requests"));
    let table = Config { qpack_table: Octets(1 << 32), ..Config::default() };
    assert_eq!(path(table).as_deref(), Some("qpack_table"));
    let mut config = Config::default();
    config.objects.insert("a".into(), Octets(1));
    assert_eq!(path(config).as_deref(), Some("objects.a"));
}

#[test]
fn a_head_that_is_written_apart_changes_no_octet() {
    let texts = [
        "GET /1000 HTTP/1.1\r\n\r\nGET /5 HTTP/1.1\r\n\r\nHEAD /7 HTTP/1.1\r\n\r\n",
        "GET /0 HTTP/1.1\r\n\r\nGET /none HTTP/1.1\r\n\r\nGET /9 HTTP/1.0\r\n\r\n",
    ];
    for coding in [Coding::Length, Coding::Chunked, Coding::Close] {
        for text in texts {
            let config = Config { coding, chunk: Octets(3), ..Config::default() };
            let apart = Config { head_apart: true, ..config.clone() };
            assert_eq!(ask_of(&apart, text), ask_of(&config, text));
        }
    }
}
