use std::net::SocketAddr;

use airloom_base::units::Octets;
use airloom_base::{App, Duration, Instant};

use super::wire::Hello;
use super::{Client, Config, LEAST_CHUNK, MOST_WINDOW, PORT, Server, ServerConfig};
use crate::testing::{Pair, SERVER, Speaker};

fn pair(paths: usize, config: Config) -> Pair<Client, Server> {
    let to = vec![SocketAddr::new(SERVER, PORT); paths];
    let client = Client::new(&config, to, Duration::ZERO, 7).expect("a valid configuration");
    Pair::new(client, Server::new(ServerConfig::default()).expect("a valid configuration"))
}

#[test]
fn a_file_comes_over_several_connections_in_one_order() {
    for (paths, chop) in [(1, usize::MAX), (3, usize::MAX), (6, 1000), (2, 1)] {
        let mut pair = pair(paths, Config { size: Octets(50_001), ..Config::default() });
        pair.net.chop = chop;
        pair.run();
        let summary = pair.summary();
        assert_eq!((summary["transfers"], summary["bytes"]), (1.0, 50_001.0), "{paths}");
        assert_eq!((summary["chunks_again"], summary["subflows_broken"]), (0.0, 0.0));
        assert_eq!(pair.server_summary()["connections"], paths as f64);
        assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
    }
}

#[test]
fn connections_add_up_until_the_window_is_the_limit() {
    let took = |paths: usize, window: u64| {
        let config = Config { size: Octets(200_000), window: Octets(window), ..Config::default() };
        let pair = pair(paths, config).ran();
        assert!(pair.summary()["held_max_bytes"] < window as f64);
        pair.summary()["transfer_mean_s"]
    };
    // 4200 octets in a round trip of 20 ms each.
    let (one, four, held_back) = (took(1, 65_536), took(4, 65_536), took(4, 5_000));
    assert!((0.9..1.1).contains(&one), "{one}");
    assert!((one / four - 4.0).abs() < 0.5, "{one} {four}");
    assert!(held_back > 0.7 * one, "{held_back}");
}

#[test]
fn what_a_broken_connection_held_comes_over_the_others() {
    let mut pair = pair(3, Config { size: Octets(100_000), ..Config::default() });
    pair.net.cut.insert(1, 20_000);
    pair.net.refused.insert(2);
    pair.run();
    assert_eq!((pair.summary()["transfers"], pair.summary()["subflows_broken"]), (1.0, 2.0));
    assert!(pair.server_summary()["chunks_sent_again"] > 0.0);
    assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
}

#[test]
fn without_a_connection_it_has_failed() {
    let mut pair = pair(2, Config { size: Octets(100_000), ..Config::default() });
    pair.net.cut.insert(0, 20_000);
    pair.net.refused.insert(1);
    pair.run();
    assert_eq!((pair.summary()["transfers"], pair.summary()["transfers_failed"]), (0.0, 1.0));
    assert!(pair.a.is_done());
    assert_eq!(pair.net.alive(1), 0);
}

#[test]
fn the_pause_that_ends_a_transfer_counts() {
    let mut pair = pair(1, Config::default());
    pair.net.refused.insert(0);
    pair.run();
    let summary = pair.summary();
    assert_eq!(summary["transfers_failed"], 1.0);
    assert!((summary["longest_pause_s"] - 0.02).abs() < 1e-9, "{}", summary["longest_pause_s"]);
}

#[test]
fn a_silent_connection_holds_nothing_up() {
    // A peer that says hello twice, and never acknowledges anything.
    let hello = Hello { transfer: 1, size: 1_000_000, window: 100_000 }.emit().to_vec();
    let server = Server::new(ServerConfig::default()).expect("valid");
    let mut pair = Pair::new(Speaker::new(PORT, hello), server);
    pair.run_until(Instant::ZERO + Duration::from_secs(100));
    let said = pair.server_summary();
    assert_eq!((said["connections"], said["subflows_silent"], said["chunks_sent_again"]), (1.0, 1.0, 0.0));
}

#[test]
fn what_a_connection_still_holds_is_not_sent_again_over_it_when_it_speaks() {
    let mut pair = pair(1, Config { size: Octets(100_000), ..Config::default() });
    pair.run_until(Instant::ZERO + Duration::from_millis(100));
    pair.net.delay = Duration::from_secs(2);
    pair.run();
    let (summary, said) = (pair.summary(), pair.server_summary());
    assert!(said["subflows_silent"] > 0.0);
    assert_eq!((summary["transfers"], said["chunks_sent_again"], summary["chunks_again"]), (1.0, 0.0, 0.0));
}

#[test]
fn a_client_with_a_window_beyond_all_bounds_is_refused() {
    for (window, refused) in [(MOST_WINDOW, 0.0), (MOST_WINDOW + 1, 1.0), (u64::MAX, 1.0)] {
        let hello = Hello { transfer: 1, size: 1_000_000, window }.emit().to_vec();
        let server = Server::new(ServerConfig::default()).expect("valid");
        let mut pair = Pair::new(Speaker::new(PORT, hello), server);
        pair.run_until(Instant::ZERO + Duration::from_secs(1));
        assert_eq!(pair.server_summary()["requests_malformed"], refused, "{window}");
    }
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused() {
    for config in
        [Config { size: Octets(0), ..Config::default() }, Config { window: Octets(0), ..Config::default() }]
    {
        assert!(Client::new(&config, vec![], Duration::ZERO, 1).is_err());
    }
    let window = |octets| Config { window: Octets(octets), ..Config::default() };
    assert!(Client::new(&window(MOST_WINDOW), vec![], Duration::ZERO, 1).is_ok());
    assert!(Client::new(&window(MOST_WINDOW + 1), vec![], Duration::ZERO, 1).is_err());
    for (chunk, is_possible) in [(LEAST_CHUNK, true), (LEAST_CHUNK - 1, false), ((1 << 20) + 1, false)] {
        let config = ServerConfig { chunk: Octets(chunk), ..ServerConfig::default() };
        assert_eq!(Server::new(config).is_ok(), is_possible, "{chunk}");
    }
    assert!(
        Client::new(&Config::default(), vec![SocketAddr::new(SERVER, 1); 33], Duration::ZERO, 1).is_err()
    );
    assert!(Server::new(ServerConfig { chunk: Octets(0), ..ServerConfig::default() }).is_err());
}
