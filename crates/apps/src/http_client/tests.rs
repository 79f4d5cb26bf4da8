use airloom_base::law::{Kind, Law};
use airloom_base::record::{ObjectRecord, ObjectSource, Record};
use airloom_base::units::Octets;
use airloom_base::{App, Duration, Instant};

use super::*;
use crate::http_server::{self, Server};
use crate::testing::{Answerer, Pair, SERVER, numbers, pages, paths, stream};

/// Every name is the one server's.
fn made(config: Config) -> Result<Client, ConfigError> {
    let places = Whereabouts { server: Some("origin"), host: "mobile", resolve: &|_| Some(SERVER) };
    Client::new(config, &places, stream)
}

fn client(config: Config) -> Client {
    made(config).expect("a valid configuration")
}

fn pair_with(config: Config, server: http_server::Config) -> Pair<Client, Server> {
    Pair::new(client(config), Server::new(server).expect("a valid configuration"))
}

fn pair(config: Config) -> Pair<Client, Server> {
    pair_with(config, http_server::Config::default())
}

/// A client that takes no time, so that what is left are round trips.
fn at_once() -> Config {
    Config { reaction: Duration::ZERO, ..Config::default() }
}

fn ten() -> Config {
    Config { objects: paths(&["/10000"; 10]), ..at_once() }
}

#[test]
fn connections_are_used_as_the_version_says() {
    let modes = [
        (Http::Http10, true, 1, 10, 10.0 * 40.0),
        (Http::Http10KeepAlive, true, 1, 1, 20.0 + 10.0 * 20.0),
        (Http::Http11, true, 1, 1, 20.0 + 10.0 * 20.0),
        (Http::Http11, false, 1, 10, 10.0 * 40.0),
        (Http::Http10, true, 2, 10, 5.0 * 40.0),
        (Http::Http11, true, 2, 2, 20.0 + 5.0 * 20.0),
        (Http::Http11, true, 99, 10, 40.0),
        (Http::Http2, true, 1, 1, 40.0),
        (Http::Http2, true, 6, 1, 40.0),
        (Http::Http3, true, 1, 1, 40.0),
        (Http::Http3, true, 6, 1, 40.0),
    ];
    for (http, keep_alive, connections, opened, load_ms) in modes {
        let spoken = if http == Http::Http3 { http_server::Http::Http3 } else { http_server::Http::Http2 };
        let server = http_server::Config { http: spoken, ..Default::default() };
        let wide = Octets(1_000_000);
        let config =
            Config { http, keep_alive, connections, h2_stream_window: wide, h2_conn_window: wide, ..ten() };
        let mut pair = pair_with(config, server);
        pair.net.room = 200_000;
        pair.run();
        let summary = pair.summary();
        let what = format!("{http:?} {keep_alive} {connections}");
        assert_eq!(numbers(&summary, &["objects", "failed", "bytes"]), [10.0, 0.0, 1e5], "{what}");
        assert_eq!(pair.net.opened(), opened, "{what}");
        assert!((summary["page_load_s"] - load_ms / 1e3).abs() < 1e-6, "{what}: {}", summary["page_load_s"]);
        assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0), "{what}");
        assert!(pair.a.is_done());
    }
}

#[test]
fn pipelining_begins_when_the_connection_has_proved_to_persist() {
    let deep = pair(Config { connections: 1, pipeline: 4, ..ten() }).ran();
    // Set-up, the first one alone, then 9 in flights of at most 4 that refill as answers come.
    let load = deep.summary()["page_load_s"];
    assert!((load - 0.1).abs() < 1e-6, "{load}");
    assert_eq!(deep.net.opened(), 1);
}

#[test]
fn octets_may_arrive_one_by_one() {
    for coding in [http_server::Coding::Length, http_server::Coding::Chunked, http_server::Coding::Close] {
        for http in [Http::Http10, Http::Http10KeepAlive, Http::Http11] {
            let server = http_server::Config { coding, chunk: Octets(7), ..Default::default() };
            let mut pair =
                pair_with(Config { http, objects: paths(&["/50", "/0", "/"]), ..at_once() }, server);
            (pair.net.chop, pair.net.room) = (1, 11);
            pair.run();
            assert_eq!(numbers(&pair.summary(), &["objects", "failed"]), [3.0, 0.0], "{coding:?} {http:?}");
        }
    }
}

#[test]
fn inline_objects_follow_the_page_and_pages_follow_each_other() {
    let all = vec![paths(&["/1000", "/2000", "/3000"]), paths(&["/10"])];
    let think = Duration::from_secs(1);
    let pair = pair(Config { pages: all, connections: 4, think, repeat: 2, ..at_once() }).ran();
    let records = pages(&pair);
    assert_eq!(records.len(), 4);
    assert_eq!((records[0].objects, records[0].bytes, records[0].connections), (3, 6000, 2));
    assert_eq!(records[0].url, "http://origin/1000");
    assert_eq!(records[0].client, "mobile");
    assert_eq!(records[0].load, Some(Duration::from_millis(80)), "set-up, page, set-up of another, objects");
    assert_eq!(records[1].load, Some(Duration::from_millis(20)), "connections are kept between pages");
    assert_eq!(records[1].start - records[0].start, Duration::from_millis(1080));
    assert_eq!(records.iter().map(|r| r.page).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn what_is_not_there_or_has_another_size_has_failed() {
    let sized = |size| {
        Object::Detailed(Detailed { path: "/100".into(), size: Some(Octets(size)), ..Detailed::default() })
    };
    let objects = vec![Object::Path("/none".into()), sized(100), sized(101)];
    let pair = pair(Config { objects, ..at_once() }).ran();
    let summary = pair.summary();
    assert_eq!(numbers(&summary, &["objects", "failed", "pages_failed"]), [1.0, 2.0, 1.0]);
    assert!(!summary.contains_key("page_load_s"), "a failed page has no load time");
    assert_eq!((pages(&pair)[0].load, pages(&pair)[0].failed), (None, 2));
}

fn form(path: &str, octets: u64) -> Object {
    Object::Detailed(Detailed { path: path.into(), post: Some(Octets(octets)), ..Detailed::default() })
}

#[test]
fn forms_are_posted_and_never_twice() {
    let objects = || vec![form("/1000", 5_000), Object::Path("/10".into()), Object::Path("/20".into())];
    let whole = pair(Config { objects: objects(), connections: 1, pipeline: 3, ..at_once() }).ran();
    assert_eq!(numbers(&whole.summary(), &["objects", "failed", "bytes"]), [3.0, 0.0, 1_030.0]);
    // The request has arrived and its answer breaks off.
    let mut cut = pair(Config { objects: objects(), connections: 1, ..at_once() });
    cut.net.cut.insert(0, 500);
    cut.run();
    assert_eq!(numbers(&cut.summary(), &["objects", "failed", "asked_again"]), [2.0, 1.0, 0.0]);
    let sent = answered(&[b"HTTP/1.0 200 OK\r\n\r\n"], Config { objects: vec![form("/f", 8)], ..at_once() });
    let heard = String::from_utf8(sent.b.heard[0].clone()).unwrap();
    assert!(
        heard.starts_with("POST /f HTTP/1.1\r\n") && heard.ends_with("Content-Length: 8\r\n\r\nfield=vv"),
        "{heard}"
    );
    assert!(heard.contains("Content-Type: application/x-www-form-urlencoded\r\n"));
}

#[test]
fn requests_without_an_answer_are_asked_again() {
    // The first connection breaks in the middle of the third response, with a fourth request behind it.
    let mut pair = pair(Config { connections: 1, pipeline: 2, ..ten() });
    pair.net.cut.insert(0, 25_000);
    pair.run();
    let summary = pair.summary();
    assert_eq!(
        numbers(&summary, &["objects", "failed", "connections", "asked_again"]),
        [10.0, 0.0, 2.0, 2.0]
    );
    assert!(summary["wasted_bytes"] > 0.0);
}

#[test]
fn an_object_fails_when_its_connections_fail_too_often() {
    let mut pair = pair(Config { objects: paths(&["/1", "/2"]), connections: 1, retries: 2, ..at_once() });
    pair.net.refused.extend([0, 1, 2]);
    pair.run();
    assert_eq!(numbers(&pair.summary(), &["objects", "failed", "connections"]), [1.0, 1.0, 4.0]);
    assert!(pair.a.is_done());
}

#[test]
fn as_many_failures_as_can_be_allowed_have_an_end() {
    let mut pair = pair(Config { objects: paths(&["/1"]), connections: 1, retries: u16::MAX, ..at_once() });
    pair.net.refused.extend(0..=65_535);
    pair.run();
    assert_eq!(numbers(&pair.summary(), &["objects", "failed"]), [0.0, 1.0]);
}

#[test]
fn a_server_that_closes_after_each_response_is_not_to_blame_for_the_rest() {
    let server = http_server::Config { max_requests: Some(3), ..Default::default() };
    let pair = pair_with(Config { connections: 1, pipeline: 8, retries: 0, ..ten() }, server).ran();
    assert_eq!(numbers(&pair.summary(), &["objects", "failed", "connections"]), [10.0, 0.0, 4.0]);
}

fn answered(answers: &[&[u8]], config: Config) -> Pair<Client, Answerer> {
    Pair::new(client(config), Answerer::new(answers, 1, true)).ran()
}

#[test]
fn a_response_until_close_is_complete_when_the_server_finishes() {
    let config = Config { objects: paths(&["/a", "/b"]), ..at_once() };
    let pair = answered(&[b"HTTP/1.0 200 OK\r\n\r\nhello"], config);
    assert_eq!(numbers(&pair.summary(), &["objects", "bytes", "failed"]), [2.0, 10.0, 0.0]);
}

#[test]
fn the_first_octet_of_an_answer_is_that_of_its_head() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let mut pair = Pair::new(client(at_once()), Answerer::new(&[answer], 1, true));
    // The head comes in two pieces, the body with the second one.
    (pair.net.chop, pair.net.pace) = (20, Duration::from_millis(100));
    pair.run();
    let summary = pair.summary();
    // Asked for at once, on a connection that is open after 20 ms.
    assert!((summary["first_byte_mean_s"] - 0.04).abs() < 1e-6, "{}", summary["first_byte_mean_s"]);
    assert!((summary["object_mean_s"] - 0.14).abs() < 1e-6, "{}", summary["object_mean_s"]);
}

#[test]
fn interim_responses_are_passed_over() {
    let config = Config { ..at_once() };
    let pair = answered(
        &[b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 204 No\r\n\r\n"],
        config,
    );
    assert_eq!(numbers(&pair.summary(), &["objects", "failed"]), [1.0, 0.0]);
}

#[test]
fn nonsense_and_broken_off_responses_are_tried_once_more_and_then_failed() {
    for answer in [
        &b"220 mail.example ESMTP\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"",
        b"\0\0\0",
    ] {
        let pair = answered(&[answer], at_once());
        assert_eq!(
            numbers(&pair.summary(), &["objects", "failed", "connections"]),
            [0.0, 1.0, 2.0],
            "{answer:?}"
        );
        let pair = answered(&[answer, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"], at_once());
        assert_eq!(numbers(&pair.summary(), &["objects", "failed"]), [1.0, 0.0], "{answer:?}");
        assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0), "{answer:?}");
    }
}

#[test]
fn octets_behind_the_response_end_the_connection_and_nothing_else() {
    let answer =
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny";
    let config = Config { objects: paths(&["/a", "/b"]), connections: 1, ..at_once() };
    let pair = answered(&[answer], config);
    assert_eq!(numbers(&pair.summary(), &["objects", "failed", "connections"]), [2.0, 0.0, 2.0]);
}

#[test]
fn a_silent_server_times_out() {
    let config = Config { timeout: Duration::from_secs(5), retries: 1, ..at_once() };
    let mut pair = Pair::new(client(config), Answerer::new(&[b"never"], 1_000_000, false));
    let end = pair.run();
    assert_eq!(numbers(&pair.summary(), &["failed", "timeouts"]), [1.0, 2.0]);
    assert!((10.0..10.1).contains(&end.as_secs_f64()), "{end}");
}

#[test]
fn requests_say_what_the_mode_needs_and_can_be_padded() {
    let heard = |config| {
        let pair = answered(&[b"HTTP/1.0 200 OK\r\n\r\n"], config);
        String::from_utf8(pair.b.heard[0].clone()).unwrap()
    };
    let plain = heard(Config { http: Http::Http10, ..at_once() });
    assert_eq!(plain, "GET / HTTP/1.0\r\nHost: origin\r\nUser-Agent: airloom\r\nAccept: */*\r\n\r\n");
    let kept = heard(Config { http: Http::Http10KeepAlive, ..at_once() });
    assert!(kept.contains("HTTP/1.0\r\n") && kept.contains("Connection: Keep-Alive\r\n"));
    let single = heard(Config { keep_alive: false, port: Some(80), ..at_once() });
    assert!(single.contains("HTTP/1.1\r\n") && single.contains("Connection: close\r\n"));
    let padded = heard(Config { request: Some(Octets(350)), ..at_once() });
    assert_eq!(padded.len(), 350);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let path = |config| made(config).err().map(|e| e.path.concat());
    let base = Config::default;
    assert_eq!(path(Config { connections: 0, ..base() }).as_deref(), Some("connections"));
    assert_eq!(path(Config { pipeline: 0, ..base() }).as_deref(), Some("pipeline"));
    assert_eq!(path(Config { h2_streams: 0, ..base() }).as_deref(), Some("h2_streams"));
    assert_eq!(path(Config { h2_stream_window: Octets(999), ..base() }).as_deref(), Some("h2_stream_window"));
    assert_eq!(path(Config { h2_conn_window: Octets(65_534), ..base() }).as_deref(), Some("h2_conn_window"));
    assert_eq!(path(Config { qpack_table: Octets(1 << 32), ..base() }).as_deref(), Some("qpack_table"));
    assert_eq!(path(Config { pipeline: 2, http: Http::Http10, ..base() }).as_deref(), Some("pipeline"));
    assert_eq!(path(Config { repeat: 0, ..base() }).as_deref(), Some("repeat"));
    assert_eq!(path(Config { timeout: Duration::ZERO, ..base() }).as_deref(), Some("timeout"));
    assert_eq!(path(Config { objects: paths(&["a"]), ..base() }).as_deref(), Some("objects"));
    assert_eq!(path(Config { pages: vec![paths(&["/a b"])], ..base() }).as_deref(), Some("pages"));
    assert_eq!(path(Config { pages: vec![Vec::new()], ..base() }).as_deref(), Some("pages"));
    let both = Config { pages: vec![paths(&["/"])], objects: paths(&["/"]), ..base() };
    assert_eq!(path(both).as_deref(), Some("pages"));
    let both = Config { traffic: Some(Traffic::default()), objects: paths(&["/"]), ..base() };
    assert_eq!(path(both).as_deref(), Some("traffic"));
}

/// An object of `path` at `server`.
fn at(server: &str, path: &str) -> Detailed {
    Detailed { path: path.into(), server: Some(server.into()), ..Detailed::default() }
}

fn objects(of: impl IntoIterator<Item = Detailed>) -> Vec<Object> {
    of.into_iter().map(Object::Detailed).collect()
}

#[test]
fn each_server_has_connections_of_its_own_and_none_waits_for_another() {
    let all = ["/1", "/2", "/3", "/4"].map(|path| at("a", path)).into_iter().chain([at("b", "/5")]);
    let pair = pair(Config { objects: objects(all), connections: 1, ..at_once() }).ran();
    // 20 ms of set-up side by side, then four objects from the one while the other has done.
    let summary = pair.summary();
    assert_eq!(
        numbers(&summary, &["objects", "failed", "connections", "requests_sent"]),
        [5.0, 0.0, 2.0, 5.0]
    );
    assert!((summary["page_load_s"] - 0.1).abs() < 1e-6, "{}", summary["page_load_s"]);
    assert!((summary["arrival_min_s"] - 0.04).abs() < 1e-6);
    assert!((summary["requests_per_connection"] - 2.5).abs() < 1e-9);
}

#[test]
fn a_proxy_is_asked_for_whole_addresses_over_connections_of_its_own() {
    let config = Config {
        objects: objects([at("a", "/1"), at("b:81", "/2"), at("a:80", "/3")]),
        proxy: Some("proxy:80".into()),
        connections: 1,
        proxy_connections: Some(3),
        ..at_once()
    };
    let one = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let pair = answered(&[one], config);
    assert_eq!(numbers(&pair.summary(), &["objects", "failed", "connections"]), [3.0, 0.0, 3.0]);
    let heard: Vec<_> = pair.b.heard.iter().map(|h| String::from_utf8_lossy(h).into_owned()).collect();
    let said = |line: &str| heard.iter().filter(|h| h.starts_with(line)).count();
    assert_eq!(said("GET http://a/1 HTTP/1.1\r\nHost: a\r\n"), 1, "{heard:?}");
    assert_eq!(said("GET http://b:81/2 HTTP/1.1\r\nHost: b:81\r\n"), 1, "{heard:?}");
    assert_eq!(said("GET http://a/3 HTTP/1.1\r\nHost: a\r\n"), 1, "{heard:?}");
}

#[test]
fn a_connection_that_nobody_needs_makes_room_for_one_to_another_server() {
    let servers = ["a", "b", "c"];
    let page = |path: &str| objects(servers.map(|server| at(server, path)));
    let mut pair =
        pair(Config { objects: page("/10"), connections: 2, total_connections: Some(2), ..at_once() });
    pair.run();
    assert_eq!(numbers(&pair.summary(), &["objects", "failed", "connections"]), [3.0, 0.0, 3.0]);
    assert!((pair.summary()["page_load_s"] - 0.08).abs() < 1e-6, "the third opens when the first is done");
    assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
}

#[test]
fn small_objects_are_kept_and_large_ones_and_changed_ones_fetched_again() {
    let page = || {
        vec![objects([
            Detailed { changes: true, ..at("a", "/3000") },
            at("a", "/45"),
            at("b", "/45"),
            at("a", "/9000"),
        ])]
    };
    let config = |cache, cache_object| Config { pages: page(), repeat: 3, cache, cache_object, ..at_once() };
    let load = |config| {
        let pair = pair(config).ran();
        let summary = pair.summary();
        assert_eq!(numbers(&summary, &["pages", "failed"]), [3.0, 0.0]);
        assert!(pages(&pair).iter().all(|page| page.objects == 4 && page.load.is_some()));
        numbers(&summary, &["from_cache", "objects"])
    };
    assert_eq!(load(config(Octets(1_000_000), Some(Octets(2_000)))), [4.0, 8.0]);
    assert_eq!(load(config(Octets(1_000_000), None)), [6.0, 6.0]);
    assert_eq!(load(config(Octets(0), None)), [0.0, 12.0]);
}

#[test]
fn what_names_others_is_fetched_and_read_before_them() {
    let after = |after, path: &str| Detailed { after: Some(after), ..at("a", path) };
    let page = objects([
        at("a", "/1"),
        Detailed { parsing: Some(Duration::from_millis(100)), ..after(0, "/2") },
        after(1, "/3"),
    ]);
    let config = |parsing| Config { pages: vec![page.clone()], connections: 4, parsing, ..at_once() };
    let load = |config| {
        let pair = pair(config).ran();
        assert_eq!(numbers(&pair.summary(), &["objects", "connections"]), [3.0, 1.0]);
        pair.summary()["page_load_s"]
    };
    assert!((load(config(Duration::ZERO)) - 0.18).abs() < 1e-6);
    assert!((load(config(Duration::from_millis(30))) - 0.21).abs() < 1e-6);
}

#[test]
fn servers_that_are_not_there_and_orders_that_cannot_be_are_refused() {
    let known = |name: &str| (name == "a").then_some(SERVER);
    let path = |config: Config, server| {
        let places = Whereabouts { server, host: "mobile", resolve: &known };
        Client::new(config, &places, stream).err().map(|e| e.to_string())
    };
    let config = |of: Detailed| Config { objects: objects([of]), ..at_once() };
    assert_eq!(path(config(at("a", "/")), None), None);
    assert_eq!(path(config(at("b", "/")), Some("a")).as_deref(), Some("server: there is no host `b`"));
    let unnamed = path(Config { objects: paths(&["/"]), ..at_once() }, None);
    assert_eq!(unnamed.as_deref(), Some("server: no host to talk to; name one"));
    let proxied = Config { proxy: Some("p".into()), ..config(at("a", "/")) };
    assert_eq!(path(proxied, None).as_deref(), Some("proxy: there is no host `p`"));
    let circle = path(config(Detailed { after: Some(0), ..at("a", "/x") }), None);
    assert!(circle.is_some_and(|said| said.starts_with("objects: `/x`: `after` is the place")));
    let none = Config { total_connections: Some(0), ..config(at("a", "/")) };
    assert!(path(none, None).is_some_and(|said| said.starts_with("total_connections")));
}

#[test]
fn a_set_is_visited_and_each_object_written_down() {
    let config = |visit: &[u32]| Config {
        page_set: serde_json::from_value(serde_json::json!("news-2004")).unwrap(),
        visit: visit.to_vec(),
        cache: Octets(1_000_000),
        cache_object: Some(Octets(2_000)),
        repeat: 2,
        ..at_once()
    };
    let mut pair = pair(config(&[3, 1]));
    pair.ask_objects();
    pair.run();
    assert_eq!(numbers(&pair.summary(), &["pages", "failed", "pages_failed"]), [4.0, 0.0, 0.0]);
    let objects: Vec<ObjectRecord> = pair
        .records()
        .facts
        .iter()
        .filter_map(|record| if let Record::Object(object) = record { Some(object.clone()) } else { None })
        .collect();
    let of_pages: u32 = pages(&pair).iter().map(|page| page.objects).sum();
    assert_eq!(objects.len(), of_pages as usize);
    assert!(objects[0].url.starts_with("http://") && objects[0].url.contains("/page-3.html?octets="));
    let cached = objects.iter().filter(|o| o.source == ObjectSource::Cache).count();
    assert_eq!(cached as f64, pair.summary()["from_cache"]);
    assert!(cached > 0);
    for object in &objects {
        assert!(object.known <= object.done);
        match object.source {
            ObjectSource::Network => {
                let (asked, first) = (object.asked.unwrap(), object.first_byte.unwrap());
                assert!(object.known <= asked && asked < first && first <= object.done, "{object:?}");
                assert!(object.bytes > 0 && object.status == Some(200) && object.flow.is_some());
            }
            ObjectSource::Cache => assert_eq!((object.asked, object.flow), (None, None)),
            ObjectSource::Failed => panic!("{object:?}"),
        }
    }
    // What the first round has fetched and is small is not fetched in the second.
    let mut seen = std::collections::BTreeSet::new();
    let fetched =
        objects.iter().filter(|o| o.asked.is_some() && !o.url.contains("visit=") && o.bytes <= 2_000);
    assert!(fetched.clone().count() > 10);
    assert!(fetched.into_iter().all(|o| seen.insert(&o.url)));
    // Each connection's requests are counted from 1.
    let of_one: Vec<_> =
        objects.iter().filter(|o| o.flow == objects[0].flow).filter_map(|o| o.request).collect();
    assert!(of_one.iter().copied().eq(1..=of_one.len() as u32), "{of_one:?}");
    assert!(made(Config { page_set: None, ..config(&[1]) }).is_err());
}

#[test]
fn drawn_pages_are_the_same_for_every_way_to_load_them() {
    let traffic = Traffic { pages: Some(20), most: Some(Octets(50_000)), ..Traffic::default() };
    let load = |http, connections| {
        let pair = pair(Config { http, connections, traffic: Some(traffic.clone()), ..at_once() }).ran();
        assert_eq!(numbers(&pair.summary(), &["pages", "pages_failed", "failed"]), [20.0, 0.0, 0.0]);
        pages(&pair).into_iter().map(|page| (page.url, page.objects, page.bytes)).collect::<Vec<_>>()
    };
    let serial = load(Http::Http10, 1);
    assert_eq!(serial, load(Http::Http11, 4));
    assert!(serial.iter().all(|(_, objects, _)| *objects >= 4));
    assert!(serial.windows(2).any(|two| two[0] != two[1]));
}

#[test]
fn people_read_pages_and_browsers_too() {
    let law = |seconds| Some(Law::of(Kind::Fixed(seconds)));
    let traffic = Traffic {
        within: Some(Duration::from_secs(100)),
        main: law(1000.0),
        inline: law(500.0),
        count: law(2.0),
        reading: law(30.0),
        parsing: law(0.5),
        ..Traffic::default()
    };
    let pair = pair(Config { traffic: Some(traffic), connections: 1, ..at_once() }).ran();
    // Set-up and three round trips of 20 ms, half a second for the first object to be understood.
    let pages = pages(&pair);
    let times: Vec<f64> = pages.iter().map(|page| page.start.as_secs_f64()).collect();
    assert_eq!(times.len(), 4, "the fifth would begin after 100 s: {times:?}");
    assert!((times[1] - 30.58).abs() < 1e-6, "{times:?}");
    assert!(pages.iter().all(|page| page.objects == 3 && page.bytes == 2000));
}

#[test]
fn the_table_of_a_scenario_is_understood() {
    let table = serde_json::json!({
        "http": "1.0-keep-alive", "connections": 4,
        "objects": ["/", { "path": "/a.png", "size": "12kB" }],
        "think": "2s", "request": "350B",
    });
    let config: Config = airloom_base::config::read(&table).unwrap();
    assert_eq!((config.http, config.connections, config.objects.len()), (Http::Http10KeepAlive, 4, 2));
    let understood = (crate::find("http-client").unwrap().understood)(&table).unwrap();
    assert_eq!(airloom_base::config::read::<Config>(&understood).unwrap(), config);
    let wrong = serde_json::json!({ "http": "4" });
    assert_eq!(airloom_base::config::read::<Config>(&wrong).unwrap_err().path, ["http"]);
}

fn two(config: Config, server: http_server::Config) -> Pair<Client, Server> {
    let server = http_server::Config { http: http_server::Http::Http2, ..server };
    pair_with(Config { http: Http::Http2, ..config }, server)
}

#[test]
fn http2_works_whatever_the_cuts_and_the_room() {
    for (chop, room) in [(1, 11), (7, 1_000), (usize::MAX, 64_000)] {
        let objects = paths(&["/50", "/0", "/", "/3000", "/none"]);
        let mut pair = two(Config { objects, ..at_once() }, http_server::Config::default());
        (pair.net.chop, pair.net.room) = (chop, room);
        pair.run();
        assert_eq!(numbers(&pair.summary(), &["objects", "failed", "connections"]), [4.0, 1.0, 1.0]);
        let server = pair.server_summary();
        assert_eq!(numbers(&server, &["requests", "connections_h2", "requests_malformed"]), [5.0, 1.0, 0.0]);
        assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
    }
}

#[test]
fn windows_of_http2_cost_round_trips() {
    let load = |stream, connection| {
        let objects = paths(&["/300000"]);
        let (h2_stream_window, h2_conn_window) = (Octets(stream), Octets(connection));
        let config = Config { objects, h2_stream_window, h2_conn_window, ..at_once() };
        let mut pair = two(config, http_server::Config::default());
        pair.net.room = 1_000_000;
        pair.run();
        pair.summary()["page_load_s"]
    };
    // Set-up and a round trip with everything in it; with windows of 65,535 octets half of one comes back each half trip.
    assert!((load(1_000_000, 1_000_000) - 0.04).abs() < 1e-6);
    let narrow = load(65_535, 65_535);
    assert!(narrow > 0.11, "{narrow}");
    assert_eq!(load(1_000_000, 65_535), narrow);
    assert_eq!(load(65_535, 1_000_000), narrow);
}

#[test]
fn what_a_server_that_ends_a_connection_did_not_answer_is_asked_again() {
    let server = http_server::Config { max_requests: Some(3), ..Default::default() };
    let pair = two(Config { connections: 1, retries: 0, ..ten() }, server).ran();
    assert_eq!(numbers(&pair.summary(), &["objects", "failed", "connections"]), [10.0, 0.0, 4.0]);
    let mut cut = two(Config { connections: 1, ..ten() }, http_server::Config::default());
    cut.net.cut.insert(0, 45_000);
    cut.run();
    let summary = cut.summary();
    assert_eq!(numbers(&summary, &["objects", "failed", "connections"]), [10.0, 0.0, 2.0]);
    assert!(summary["asked_again"] >= 5.0, "{summary:?}");
}

#[test]
fn a_server_that_thinks_for_longer_than_it_waits_for_others_answers_whatever_the_version() {
    for (http, spoken) in VERSIONS {
        let (delay, timeout) = (Duration::from_secs(90), Duration::from_secs(300));
        let server = http_server::Config { http: spoken, delay, ..Default::default() };
        let pair = pair_with(Config { http, timeout, objects: paths(&["/1000"]), ..at_once() }, server).ran();
        let got = numbers(&pair.summary(), &["objects", "failed", "asked_again"]);
        assert_eq!(got, [1.0, 0.0, 0.0], "{http:?}");
        assert_eq!(pair.server_summary()["timeouts"], 0.0, "{http:?}");
    }
}

/// Each version, and a server that speaks it.
const VERSIONS: [(Http, http_server::Http); 3] = [
    (Http::Http11, http_server::Http::Http11),
    (Http::Http2, http_server::Http::Http2),
    (Http::Http3, http_server::Http::Http3),
];

#[test]
fn a_connection_has_as_many_requests_as_its_server_takes_whatever_the_version() {
    // Forms are so long that others begin while the first is on its way.
    let lists = [paths(&["/1000"; 6]), (0..6).map(|_| form("/1000", 50_000)).collect()];
    for ((http, spoken), objects) in VERSIONS.into_iter().flat_map(|v| lists.each_ref().map(|l| (v, l))) {
        for (max_requests, keep_alive, connections) in [(Some(2), true, 3.0), (None, false, 6.0)] {
            let server = http_server::Config { http: spoken, max_requests, keep_alive, ..Default::default() };
            let config = Config { http, objects: objects.clone(), connections: 1, retries: 0, ..at_once() };
            let pair = pair_with(config, server).ran();
            let what = format!("{http:?} {max_requests:?} {:?}", objects[0]);
            let counted = numbers(&pair.summary(), &["objects", "failed", "connections"]);
            assert_eq!(counted, [6.0, 0.0, connections], "{what}");
            assert_eq!(pair.server_summary()["requests"], 6.0, "{what}");
        }
    }
}

#[test]
fn what_a_server_has_sent_is_what_has_left_it() {
    use http_server::Coding;
    for ((http, spoken), coding) in
        VERSIONS.into_iter().flat_map(|v| [Coding::Length, Coding::Chunked, Coding::Close].map(|c| (v, c)))
    {
        let server = || http_server::Config { http: spoken, coding, ..Default::default() };
        let what = format!("{http:?} {coding:?}");
        // All of it, texts of the server's own too, however little room there is.
        for room in [11, 64_000] {
            let objects = paths(&["/50", "/0", "/", "/30000", "/none", "/10.html"]);
            let mut whole = pair_with(Config { http, objects, ..at_once() }, server());
            whole.net.room = room;
            whole.run();
            let got: f64 = numbers(&whole.summary(), &["bytes", "wasted_bytes"]).iter().sum();
            assert_eq!(whole.server_summary()["sent_bytes"], got, "{what} {room}");
        }
        // The request is there after 30 ms, and the client reads nothing before 40: what there was room for.
        let mut begun = pair_with(Config { http, objects: paths(&["/10MB"]), ..at_once() }, server());
        begun.run_until(Instant::ZERO + Duration::from_millis(35));
        let sent = begun.server_summary()["sent_bytes"];
        assert!((63_000.0..64_000.0).contains(&sent), "{what}: {sent}");
    }
}

#[test]
fn a_server_may_take_few_requests_at_a_time() {
    let server = http_server::Config { h2_streams: 2, delay: Duration::from_millis(1), ..Default::default() };
    let pair = two(Config { connections: 1, retries: 0, ..ten() }, server).ran();
    // The first flight does not know the limit: what was too much is refused, and asked for again.
    let summary = pair.summary();
    assert_eq!(
        numbers(&summary, &["objects", "failed", "connections", "asked_again"]),
        [10.0, 0.0, 1.0, 8.0]
    );
}

#[test]
fn a_form_that_was_refused_is_posted_again_and_one_that_broke_off_is_not() {
    let objects = || vec![Object::Path("/10".into()), form("/1000", 500)];
    let server =
        || http_server::Config { h2_streams: 1, delay: Duration::from_millis(1), ..Default::default() };
    let refused = two(Config { objects: objects(), retries: 0, ..at_once() }, server()).ran();
    assert_eq!(numbers(&refused.summary(), &["objects", "failed", "asked_again"]), [2.0, 0.0, 1.0]);
    let mut cut = two(Config { objects: vec![form("/1000", 500)], ..at_once() }, server());
    cut.net.cut.insert(0, 500);
    cut.run();
    assert_eq!(numbers(&cut.summary(), &["objects", "failed", "asked_again"]), [0.0, 1.0, 0.0]);
}

#[test]
fn urgent_objects_come_first_in_http2() {
    let order = |priorities| {
        let objects = paths(&["/30kB.html", "/40kB.png", "/20000", "/10kB.css"]);
        let mut pair = two(
            Config { objects, priorities, ..at_once() },
            http_server::Config {
                objects: [("/40kB.png".to_owned(), Octets(40_000)), ("/10kB.css".to_owned(), Octets(10_000))]
                    .into(),
                delay: Duration::from_millis(50),
                ..Default::default()
            },
        );
        pair.net.room = 2_000;
        pair.run();
        assert_eq!(numbers(&pair.summary(), &["objects", "failed"]), [4.0, 0.0]);
        pair.summary()["arrival_mean_s"]
    };
    assert!(order(true) < order(false), "{} {}", order(true), order(false));
}

#[test]
fn forms_answers_after_a_time_and_silence_in_http2() {
    let objects = vec![form("/1000", 50_000), Object::Path("/10".into())];
    let server = http_server::Config { delay: Duration::from_secs(3), ..Default::default() };
    let pair = two(Config { objects, ..at_once() }, server).ran();
    assert_eq!(numbers(&pair.summary(), &["objects", "failed", "bytes"]), [2.0, 0.0, 1_010.0]);
    assert!(pair.summary()["object_mean_s"] > 3.0);
    // An idle connection is ended by the server, and a silent server by the client.
    let pages = vec![paths(&["/10"]), paths(&["/20"])];
    let config = Config { pages, think: Duration::from_secs(60), ..at_once() };
    let idle = two(config, http_server::Config::default()).ran();
    assert_eq!(numbers(&idle.summary(), &["objects", "connections", "asked_again"]), [2.0, 2.0, 0.0]);
    let config = Config { http: Http::Http2, timeout: Duration::from_secs(5), retries: 1, ..at_once() };
    let silent = Pair::new(client(config), Answerer::new(&[b"never"], 1_000_000, false)).ran();
    assert_eq!(numbers(&silent.summary(), &["failed", "timeouts"]), [1.0, 2.0]);
}

#[test]
fn a_server_of_http2_serves_older_clients_and_an_older_server_refuses_http2() {
    let server = || http_server::Config { http: http_server::Http::Http2, ..Default::default() };
    for http in [Http::Http10, Http::Http11] {
        let pair = pair_with(Config { http, ..ten() }, server()).ran();
        assert_eq!(numbers(&pair.summary(), &["objects", "failed"]), [10.0, 0.0]);
        assert_eq!(pair.server_summary()["connections_h2"], 0.0);
    }
    let pair = pair_with(Config { http: Http::Http2, ..at_once() }, http_server::Config::default()).ran();
    assert_eq!(numbers(&pair.summary(), &["objects", "failed"]), [0.0, 1.0]);
    assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
}

#[test]
fn a_client_that_takes_a_time_to_react_asks_later_after_the_opening_and_after_each_answer() {
    let reaction = Duration::from_millis(1);
    let pair = pair(Config { connections: 1, reaction, ..ten() }).ran();
    let summary = pair.summary();
    assert_eq!(numbers(&summary, &["objects", "failed"]), [10.0, 0.0]);
    // As without it (20 ms of set-up, 20 for each), and a millisecond after the opening and each answer that
    // another request follows.
    assert!((summary["page_load_s"] - 0.230).abs() < 1e-6, "{}", summary["page_load_s"]);
    assert!(pair.a.is_done());
}

#[test]
fn a_client_that_takes_a_time_to_react_closes_its_connections_later_too() {
    for (http, keep_alive) in [(Http::Http10, true), (Http::Http11, false)] {
        let reaction = Duration::from_millis(1);
        let pair = pair(Config { http, keep_alive, connections: 1, reaction, ..ten() }).ran();
        assert_eq!(numbers(&pair.summary(), &["objects", "failed", "connections"]), [10.0, 0.0, 10.0]);
        assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
    }
}

/// A client and a server of HTTP/3, with a table of header compression or without one.
fn three(config: Config, table: u64, blocked: u16) -> Pair<Client, Server> {
    let (http, qpack_table, qpack_blocked) = (Http::Http3, Octets(table), blocked);
    let config = Config { http, qpack_table, qpack_blocked, ..config };
    let http = http_server::Http::Http3;
    pair_with(config, http_server::Config { http, qpack_table, qpack_blocked, ..Default::default() })
}

#[test]
fn http3_brings_everything_however_octets_are_cut_and_with_any_table() {
    for (chop, room) in [(1, 11), (7, 1000), (usize::MAX, 64_000)] {
        for (table, blocked) in [(0, 0), (4096, 0), (4096, 16), (200, 2)] {
            let objects = ["/50", "/0", "/", "/3000", "/20", "/none", "/10.html"];
            let mut pair = three(Config { objects: paths(&objects), ..at_once() }, table, blocked);
            (pair.net.chop, pair.net.room) = (chop, room);
            pair.run();
            let what = format!("{chop} {room} {table} {blocked}");
            assert_eq!(numbers(&pair.summary(), &["objects", "failed"]), [6.0, 1.0], "{what}");
            let counted =
                numbers(&pair.server_summary(), &["requests", "requests_malformed", "responses_error"]);
            assert_eq!(counted, [7.0, 0.0, 1.0], "{what}");
            assert_eq!((pair.net.opened(), pair.net.alive(0), pair.net.alive(1)), (1, 0, 0), "{what}");
        }
    }
}

#[test]
fn http3_sends_forms_and_waits_where_there_is_no_stream() {
    let mut pair = three(Config { objects: vec![form("/100", 50_000), form("/100", 3)], ..at_once() }, 0, 0);
    pair.run();
    assert_eq!(numbers(&pair.summary(), &["objects", "failed", "bytes"]), [2.0, 0.0, 200.0]);
    // Nobody tells of more streams: what there is a stream for is fetched, and the rest is given up.
    let mut few = three(Config { timeout: Duration::from_secs(9), ..ten() }, 0, 0);
    few.net.most_streams = 4;
    few.run();
    assert_eq!(numbers(&few.summary(), &["objects"]), [10.0], "on further connections");
    assert!(few.net.opened() > 1);
}

#[test]
fn http3_asks_again_where_a_connection_was_refused_and_not_where_there_is_nobody() {
    let mut pair = three(Config { retries: 1, connections: 1, ..ten() }, 0, 0);
    pair.net.refused.insert(0);
    pair.run();
    assert_eq!(numbers(&pair.summary(), &["objects", "failed", "asked_again"]), [10.0, 0.0, 10.0]);
    let mut nobody = three(Config { retries: 1, connections: 1, ..ten() }, 0, 0);
    nobody.net.refused.extend(0..100);
    nobody.run();
    assert_eq!(numbers(&nobody.summary(), &["objects", "failed"]), [0.0, 10.0]);
}

#[test]
fn http3_asks_elsewhere_for_what_has_no_stream_when_the_server_goes_away() {
    let (http, max_requests) = (http_server::Http::Http3, Some(3));
    let server = http_server::Config { http, max_requests, ..Default::default() };
    let config = Config { http: Http::Http3, objects: paths(&["/1000"; 6]), connections: 1, ..at_once() };
    let mut pair = pair_with(config, server);
    // Three have one; there is room for others when the client hears that they are not taken.
    pair.net.most_streams = 3;
    pair.run_until(Instant::ZERO + Duration::from_millis(35));
    pair.net.most_streams = u32::MAX;
    pair.run();
    let counted = numbers(&pair.summary(), &["objects", "failed", "timeouts", "asked_again"]);
    assert_eq!(counted, [6.0, 0.0, 0.0, 3.0]);
}

#[test]
fn http3_has_tls_of_its_own_and_no_proxy() {
    for config in [
        Config { tls: Some(tls::Config::default()), ..at_once() },
        Config { proxy: Some("proxy".into()), ..at_once() },
    ] {
        assert!(made(Config { http: Http::Http3, ..config }).is_err());
    }
    let tls = Some(tls::Config::default());
    let server = http_server::Config { http: http_server::Http::Http3, tls, ..Default::default() };
    assert!(Server::new(server).is_err());
    assert_eq!(Server::new(http_server::Config::default()).unwrap().speaks(), None);
}

#[test]
fn an_idle_http3_connection_is_closed_when_everything_has_arrived() {
    let mut pair = three(
        Config {
            pages: vec![paths(&["/500000"]), paths(&["/1"])],
            think: Duration::from_secs(40),
            ..at_once()
        },
        0,
        0,
    );
    pair.run();
    assert_eq!(numbers(&pair.summary(), &["objects", "failed", "connections"]), [2.0, 0.0, 2.0]);
    assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
}
