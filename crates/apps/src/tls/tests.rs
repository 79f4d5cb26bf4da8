use std::collections::BTreeMap;
use std::net::SocketAddr;

use airloom_base::units::Octets;
use airloom_base::{App, CloseReason, Duration};

use super::*;
use crate::http_client::{self, Client, Http, Object, Whereabouts};
use crate::http_server::{self, Server};
use crate::testing::{Answerer, Pair, SERVER, Speaker, stream};

fn client(config: http_client::Config) -> Client {
    let resolve = |name: &str| (name == "origin").then_some(SERVER);
    let places = Whereabouts { server: Some("origin"), host: "mobile", resolve: &resolve };
    Client::new(config, &places, stream).expect("a valid configuration")
}

fn secured(app: Box<dyn App>, config: &Config, alpn: &[&'static str]) -> Secured {
    Secured::new(app, config.clone(), alpn.to_vec(), Tunnels::default())
}

struct Case {
    client: Config,
    server: Config,
    http: http_client::Config,
    h2: bool,
}

impl Default for Case {
    fn default() -> Self {
        let objects = vec![Object::Path("/1000".into())];
        let http =
            http_client::Config { objects, reaction: Duration::ZERO, ..http_client::Config::default() };
        Case { client: Config::default(), server: Config::default(), http, h2: false }
    }
}

fn pair(case: Case) -> Pair<Secured, Secured> {
    let names: [&'static str; 1] = if case.h2 { ["h2"] } else { ["http/1.1"] };
    let http = if case.h2 { Http::Http2 } else { case.http.http };
    let app = client(http_client::Config { http, ..case.http });
    let server = http_server::Config { http: http_server::Http::Http2, ..Default::default() };
    let server = Server::new(server).expect("a valid configuration");
    Pair::new(
        secured(Box::new(app), &case.client, &names),
        secured(Box::new(server), &case.server, &["h2", "http/1.1"]),
    )
}

fn run(case: Case) -> BTreeMap<String, f64> {
    let mut pair = pair(case);
    pair.net.room = 1_000_000;
    pair.run();
    let summary = pair.summary();
    assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0), "{summary:?}");
    assert_eq!((summary["failed"], summary["tls_failed"]), (0.0, 0.0), "{summary:?}");
    summary
}

fn of(version: Version) -> Config {
    Config { version, ..Config::default() }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

/// Round trips of 20 ms from the beginning to the end of a page of one object.
#[test]
fn a_page_takes_the_round_trips_of_its_handshake() {
    let always = Config { resumes: Resumes::Always, ..of(Version::Tls13) };
    let early = Config { early_data: true, ..always.clone() };
    let old = Config { resumes: Resumes::Always, ..of(Version::Tls12) };
    let cases = [
        // TCP, TLS, request.
        (of(Version::Tls13), of(Version::Tls13), 3.0),
        (always.clone(), of(Version::Tls13), 3.0),
        (early.clone(), of(Version::Tls13), 2.0),
        (of(Version::Tls12), of(Version::Tls12), 4.0),
        (old.clone(), of(Version::Tls12), 3.0),
        // The lower version is spoken.
        (of(Version::Tls13), of(Version::Tls12), 4.0),
        (of(Version::Tls12), of(Version::Tls13), 4.0),
        // A server that remembers nothing: early data is lost, and goes again.
        (early, Config { remembers: false, ..Config::default() }, 3.0),
        (old, Config { remembers: false, ..of(Version::Tls12) }, 4.0),
    ];
    for (n, (client, server, trips)) in cases.into_iter().enumerate() {
        for h2 in [false, true] {
            let summary = run(Case { client: client.clone(), server: server.clone(), h2, ..Case::default() });
            assert!(near(summary["page_load_s"], trips * 0.02), "{n} {h2}: {}", summary["page_load_s"]);
        }
    }
}

#[test]
fn octets_may_come_one_by_one_and_room_may_be_short() {
    for version in [Version::Tls12, Version::Tls13] {
        for (chop, room) in [(1, 50), (7, 3_000), (usize::MAX, 20_000)] {
            for h2 in [false, true] {
                let objects = ["/0", "/50", "/70000", "/"].map(|p| Object::Path(p.into())).to_vec();
                let http = http_client::Config {
                    objects,
                    reaction: Duration::ZERO,
                    ..http_client::Config::default()
                };
                let config = Config { record: Octets(1_400), ..of(version) };
                let mut pair = pair(Case { client: config.clone(), server: config, http, h2 });
                (pair.net.chop, pair.net.room) = (chop, room);
                pair.run();
                let summary = pair.summary();
                assert_eq!((summary["objects"], summary["failed"]), (4.0, 0.0), "{version:?} {chop} {h2}");
                assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
            }
        }
    }
}

#[test]
fn later_connections_resume_and_the_number_of_tickets_does_not_matter_in_tls_1_2() {
    for (version, tickets) in [(Version::Tls12, 0), (Version::Tls12, 1), (Version::Tls13, 2)] {
        let config = Config { tickets: Some(tickets), ..of(version) };
        let objects = vec![Object::Path("/10".into()); 4];
        let http = http_client::Config {
            objects,
            http: Http::Http10,
            connections: 1,
            reaction: Duration::ZERO,
            ..http_client::Config::default()
        };
        let summary = run(Case { client: config.clone(), server: config, http, h2: false });
        assert_eq!((summary["connections"], summary["tls_resumed"]), (4.0, 3.0), "{version:?}");
    }
}

#[test]
fn a_server_of_tls_1_2_is_sent_nothing_early_once_it_is_known() {
    // Where the session is of before the run, the first connection tells.
    for (resumes, failed) in [(Resumes::Later, 0.0), (Resumes::Always, 1.0)] {
        let http = http_client::Config {
            objects: vec![Object::Path("/10".into()); 4],
            http: Http::Http10,
            connections: 1,
            reaction: Duration::ZERO,
            ..http_client::Config::default()
        };
        let client = Config { resumes, early_data: true, ..of(Version::Tls13) };
        let pair = pair(Case { client, server: of(Version::Tls12), http, h2: false }).ran();
        let summary = pair.summary();
        assert_eq!((summary["objects"], summary["failed"]), (4.0, 0.0), "{resumes:?}");
        assert_eq!((summary["connections"], summary["tls_failed"]), (4.0 + failed, failed), "{resumes:?}");
        assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
    }
}

#[test]
fn what_tls_adds_is_what_its_messages_and_records_have() {
    // TLS 1.3: ClientHello 512, ServerHello 122, EncryptedExtensions 6 + 15, Certificate 3000 + 13, CertificateVerify 264, Finished
    // 36 twice, two tickets of 221 octets, CCS of 1 twice, close_notify of 2 twice. 5 octets around each record, 22 around those that are protected.
    let summary = run(Case::default());
    let server = 5 + 122 + 5 + 1 + (21 + 3_013 + 264 + 36) + 4 * 22;
    let tickets = 2 * (4 + 17 + 2 + 200 + 2 + 22);
    let client = 5 + 512 + 5 + 1 + 36 + 22;
    let around = |size: u64| size.div_ceil(16_384) * 22;
    let _ = tickets;
    assert_eq!(summary["tls_added_bytes"], f64::from(client) + around(70) as f64 + 24.0);
    let two = pair(Case::default()).ran();
    let added = two.server_summary()["tls_added_bytes"];
    assert_eq!(added, f64::from(server + tickets) + around(1_000) as f64 + 24.0);
}

#[test]
fn a_server_that_speaks_something_else_is_refused_by_name() {
    let app = client(http_client::Config { http: Http::Http2, retries: 0, ..Case::default().http });
    let server = Server::new(http_server::Config::default()).expect("a valid configuration");
    let mut pair = Pair::new(
        secured(Box::new(app), &Config::default(), &["h2"]),
        secured(Box::new(server), &Config::default(), &["http/1.1"]),
    );
    pair.run();
    let summary = pair.summary();
    assert_eq!((summary["objects"], summary["failed"], summary["tls_failed"]), (0.0, 1.0, 1.0));
    assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
}

#[test]
fn a_handshake_that_a_reset_ends_has_failed() {
    let http = http_client::Config { retries: 0, ..Case::default().http };
    let mut pair = pair(Case { http, ..Case::default() });
    // In the middle of the server's flight.
    pair.net.cut.insert(0, 100);
    pair.run();
    let summary = pair.summary();
    assert_eq!((summary["objects"], summary["failed"], summary["tls_failed"]), (0.0, 1.0, 1.0));
}

#[test]
fn nonsense_ends_a_connection_on_either_side() {
    let plain = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let early = [&[23, 3, 3, 0, 2, 1, 1][..], &[0; 40]].concat();
    let short = [22, 3, 3, 0, 6, 1, 0, 0, 2, 3, 3].to_vec();
    let huge = [22, 3, 3, 0, 4, 1, 255, 255, 255].to_vec();
    for octets in [plain, early, short, huge] {
        let server = Server::new(http_server::Config::default()).expect("a valid configuration");
        let server = secured(Box::new(server), &Config::default(), &["http/1.1"]);
        let pair = Pair::new(Speaker::new(80, octets), server).ran();
        assert_eq!(pair.a.end, Some(CloseReason::Reset));
        assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
    }
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"", &[21, 3, 3, 0, 2, 2, 40]] {
        let app = client(http_client::Config { retries: 0, ..Case::default().http });
        let app = secured(Box::new(app), &Config::default(), &["http/1.1"]);
        let pair = Pair::new(app, Answerer::new(&[answer], 1, true)).ran();
        assert_eq!(pair.summary()["failed"], 1.0);
        assert!(pair.a.is_done());
        assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
    }
}

#[test]
fn a_client_that_says_nothing_is_ended_by_the_server_inside() {
    let server = http_server::Config { idle_timeout: Duration::from_secs(5), ..Default::default() };
    let server = Server::new(server).expect("a valid configuration");
    let server = secured(Box::new(server), &Config::default(), &["http/1.1"]);
    let mut pair = Pair::new(Speaker::new(80, &b"\x16\x03"[..]), server);
    let end = pair.run();
    assert!((5.0..15.0).contains(&end.as_secs_f64()), "{end}");
    assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
}

/// A proxy that answers CONNECT with `head`, and nothing after it.
#[test]
fn a_proxy_is_asked_for_the_way_and_may_refuse_it() {
    let proxy = Some(SocketAddr::new(SERVER, 80));
    let names = BTreeMap::from([(SocketAddr::new(SERVER, 80), "origin:443".to_owned())]);
    let run = |answer: &[u8]| {
        let app = client(http_client::Config { retries: 0, ..Case::default().http });
        let tunnels = Tunnels { proxy, names: names.clone() };
        let app = Secured::new(Box::new(app), Config::default(), vec!["http/1.1"], tunnels);
        Pair::new(app, Answerer::new(&[answer], 20, true)).ran()
    };
    let refused = run(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(refused.summary()["failed"], 1.0);
    let said = String::from_utf8_lossy(&refused.b.heard[0]).into_owned();
    assert!(said.starts_with("CONNECT origin:443 HTTP/1.1\r\nHost: origin:443\r\n"), "{said}");
    // The way is free, and the hello follows it.
    let free = run(b"HTTP/1.1 200 Connection Established\r\n\r\n");
    assert!(free.b.heard[0].len() > said.len() || free.summary()["failed"] == 1.0);
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let path = |config: Config| config.check().err().map(|e| e.path.join("."));
    assert_eq!(path(Config::default()), None);
    let record = |n| Config { record: Octets(n), ..Config::default() };
    assert_eq!(path(record(0)).as_deref(), Some("tls.record"));
    assert_eq!(path(record(16_385)).as_deref(), Some("tls.record"));
    let early = Config { early_data: true, version: Version::Tls12, ..Config::default() };
    assert_eq!(path(early).as_deref(), Some("tls.early_data"));
    let chacha = Config { cipher: Some(Cipher::Chacha20), ..Config::default() };
    assert_eq!(path(chacha.clone()), None);
    for config in [
        Config { sizes: Profile::Y2004, ..chacha.clone() },
        Config { server_key_exchange: Some(Octets(0)), version: Version::Tls12, ..chacha },
    ] {
        assert_eq!(path(config).as_deref(), Some("tls.cipher"));
    }
    let large = Config { certificates: Some(Octets(60_001)), ..Config::default() };
    assert_eq!(path(large).as_deref(), Some("tls.certificates"));
}
