use std::net::SocketAddr;

use airloom_base::units::Octets;
use airloom_base::{App, Duration};

use super::client::{Client, Config, Mode};
use super::server::{self, Server};
use crate::testing::{Pair, SERVER, Speaker};

fn pair(config: Config) -> Pair<Client, Server> {
    let to = SocketAddr::new(SERVER, config.port);
    let client = Client::new(&config, to, Duration::ZERO).expect("a valid configuration");
    Pair::new(client, Server::new(server::Config::default()))
}

#[test]
fn a_get_brings_as_many_octets_as_asked_for() {
    let pair = pair(Config { size: Octets(1_000_000), request: Octets(300), ..Config::default() }).ran();
    let summary = pair.summary();
    assert_eq!((summary["transfers"], summary["bytes"]), (1.0, 1e6));
    assert!(pair.a.is_done());
    assert_eq!(pair.server_summary()["received_bytes"], 284.0, "the padding of the request");
    assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
    // 64 kB per round trip of 20 ms: 16 of them, and one for the connection.
    assert!((0.3..0.4).contains(&summary["completion_s"]), "{summary:?}");
}

#[test]
fn a_put_is_complete_when_the_server_says_so() {
    let pair = pair(Config { size: Octets(200_000), mode: Mode::Put, ..Config::default() }).ran();
    assert_eq!(pair.summary()["transfers"], 1.0);
    let server = pair.server_summary();
    assert_eq!(server["received_bytes"], 200_000.0);
    assert!((pair.summary()["completion_s"] - server["last_put_s"] - 0.01).abs() < 1e-9);
}

#[test]
fn transfers_run_one_after_another_or_side_by_side() {
    for (parallel, keep, connections) in
        [(1, false, 6), (1, true, 1), (3, false, 6), (3, true, 3), (9, true, 6)]
    {
        for mode in [Mode::Get, Mode::Put] {
            let config =
                Config { size: Octets(10_240), repeat: 6, parallel, keep, mode, ..Config::default() };
            let pair = pair(config).ran();
            assert_eq!(pair.summary()["transfers"], 6.0, "{parallel} {keep} {mode:?}");
            assert_eq!(pair.net.opened(), connections, "{parallel} {keep} {mode:?}");
            assert_eq!(pair.server_summary()["transfers_served"], 6.0);
            assert_eq!(pair.server_summary()["transfers_broken"], 0.0);
            assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
        }
    }
}

#[test]
fn octets_may_arrive_one_by_one() {
    for (mode, keep) in [(Mode::Get, false), (Mode::Put, true)] {
        let config =
            Config { size: Octets(50), request: Octets(20), repeat: 2, mode, keep, ..Config::default() };
        let mut pair = pair(config);
        (pair.net.chop, pair.net.room) = (1, 7);
        pair.run();
        assert_eq!(pair.summary()["transfers"], 2.0);
    }
}

#[test]
fn a_broken_or_refused_connection_is_a_failed_transfer_and_the_next_one_starts() {
    let mut pair = pair(Config { size: Octets(100_000), repeat: 4, ..Config::default() });
    pair.net.cut.insert(1, 50_000);
    pair.net.refused.insert(2);
    pair.run();
    assert_eq!((pair.summary()["transfers"], pair.summary()["transfers_failed"]), (2.0, 2.0));
    assert!(pair.a.is_done());
    assert_eq!(pair.server_summary()["transfers_broken"], 1.0);
}

#[test]
fn a_server_resets_what_is_not_a_request_or_stops_in_the_middle() {
    let mut garbage =
        Pair::new(Speaker::new(5001, &b"GET / HTTP/1.1\r\n\r\n"[..]), Server::new(Default::default()));
    garbage.run();
    assert_eq!(garbage.a.end, Some(airloom_base::CloseReason::Reset));
    assert_eq!(garbage.server_summary()["requests_malformed"], 1.0);

    let mut half = Pair::new(Speaker::new(5001, &b"BULK\0\0"[..]), Server::new(Default::default()));
    half.a.hang_up = true;
    half.run();
    assert_eq!(half.a.end, Some(airloom_base::CloseReason::Reset));
    assert_eq!(half.server_summary()["transfers_broken"], 1.0);
    assert_eq!(half.net.alive(1), 0);
}

#[test]
fn the_start_is_delayed_by_the_configured_time() {
    let mut pair = pair(Config { start: Duration::from_secs(2), size: Octets(1), ..Config::default() });
    assert!(pair.run().as_secs_f64() > 2.0);
    assert!(pair.summary()["completion_s"] < 0.1);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let to = SocketAddr::new(SERVER, 1);
    let path = |config: &Config| Client::new(config, to, Duration::ZERO).err().map(|e| e.path.concat());
    assert_eq!(path(&Config { repeat: 0, ..Config::default() }).as_deref(), Some("repeat"));
    assert_eq!(path(&Config { parallel: 0, ..Config::default() }).as_deref(), Some("parallel"));
    assert_eq!(path(&Config { request: Octets(15), ..Config::default() }).as_deref(), Some("request"));
    assert_eq!(path(&Config { size: Octets(0), ..Config::default() }).as_deref(), Some("size"));
    assert_eq!(path(&Config::default()), None);
}
