use std::collections::BTreeMap;
use std::net::SocketAddr;

use airloom_base::units::Octets;
use airloom_base::{App, CloseReason, Duration, Instant};

use super::{Client, Config, PORT, Server, ServerConfig};
use crate::bulk::client::Mode;
use crate::testing::{Answerer, Pair, SERVER, Speaker};

fn client(config: Config) -> Client {
    let to = SocketAddr::new(SERVER, config.port);
    Client::new(config, to, Duration::ZERO).expect("a valid configuration")
}

fn server(config: ServerConfig) -> Server {
    Server::new(config).expect("a valid configuration")
}

fn pair(config: Config) -> Pair<Client, Server> {
    Pair::new(client(config), server(ServerConfig::default()))
}

#[test]
fn files_come_and_go_in_passive_and_active_mode() {
    for mode in [Mode::Get, Mode::Put] {
        for active in [false, true] {
            for chop in [1000, usize::MAX] {
                let config = Config { size: Octets(300_000), repeat: 3, mode, active, ..Config::default() };
                let mut pair = pair(config);
                pair.net.chop = chop;
                pair.run();
                let (here, there) = (pair.summary(), pair.server_summary());
                assert_eq!((here["transfers"], here["transfers_failed"]), (3.0, 0.0), "{mode:?} {active}");
                assert_eq!(here["bytes"], 900_000.0);
                let moved = if mode == Mode::Get { "sent_bytes" } else { "received_bytes" };
                assert_eq!(there[moved], 900_000.0);
                assert_eq!((there["files_broken"], there["commands_refused"]), (0.0, 0.0));
                assert_eq!(pair.net.opened(), 4, "a control connection and one for each file");
                assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
                assert!(pair.a.is_done());
            }
        }
    }
}

#[test]
fn the_dialogue_is_that_of_rfc_959() {
    let say = "USER anonymous\r\nPASS guest@\r\nTYPE I\r\nSIZE 1kB\r\nRETR 1kB\r\nSYST\r\nTYPE A\r\nPASV\r\nXYZZY\r\nQUIT\r\n";
    for chop in [1, 5, usize::MAX] {
        let mut pair = Pair::new(Speaker::new(PORT, say), server(ServerConfig::default()));
        pair.net.chop = chop;
        pair.run();
        let heard = pair.a.text();
        let numbers: Vec<&str> = heard.lines().map(|line| &line[..3]).collect();
        assert_eq!(
            numbers,
            ["220", "331", "230", "200", "213", "425", "215", "504", "227", "500", "221"],
            "{heard}"
        );
        assert!(heard.contains("227 Entering Passive Mode (10,0,0,2,117,48)."), "{heard}");
        assert_eq!(pair.a.end, Some(CloseReason::Finished));
    }
}

#[test]
fn who_asks_for_features_hears_of_size() {
    let pair = Pair::new(Speaker::new(PORT, "FEAT\r\nQUIT\r\n"), server(ServerConfig::default())).ran();
    let text = pair.a.text();
    assert!(text.contains("\r\n211-Features:\r\n SIZE\r\n211 End\r\n221 "), "{text}");
}

#[test]
fn after_epsv_all_data_connections_are_asked_for_in_no_other_way() {
    let say = "USER a\r\nPASS b\r\nEPSV all\r\nPORT 10,0,0,1,30,30\r\nEPRT |1|10.0.0.1|5000|\r\nPASV\r\nEPSV\r\nQUIT\r\n";
    let pair = Pair::new(Speaker::new(PORT, say), server(ServerConfig::default())).ran();
    let text = pair.a.text();
    let numbers: Vec<&str> = text.lines().map(|line| &line[..3]).collect();
    assert_eq!(numbers, ["220", "331", "230", "200", "503", "503", "503", "229", "221"], "{text}");
}

#[test]
fn nobody_is_served_before_the_login_and_nobody_is_connected_to_for_another() {
    let say = "RETR 1kB\r\nPASS x\r\nUSER a\r\nPASS b\r\nPORT 10,9,9,9,30,30\r\nPORT 10,0,0,1,0,25\r\nEPRT |1|10.0.0.1|5000|\r\nPORT 1,2\r\nQUIT\r\n";
    let pair = Pair::new(Speaker::new(PORT, say), server(ServerConfig::default())).ran();
    let text = pair.a.text();
    let numbers: Vec<&str> = text.lines().map(|line| &line[..3]).collect();
    assert_eq!(numbers, ["220", "530", "503", "331", "230", "504", "504", "200", "501", "221"]);
    assert_eq!(pair.net.opened(), 1);
}

#[test]
fn a_stored_file_is_there_afterwards_and_a_listed_one_has_its_size() {
    let files = BTreeMap::from([("readme".to_owned(), Octets(77))]);
    let config = ServerConfig { files, ..ServerConfig::default() };
    let put = Config { mode: Mode::Put, size: Octets(5000), file: Some("new".into()), ..Config::default() };
    let stored = Pair::new(client(put), server(config)).ran();
    let say = "USER a\r\nPASS b\r\nSIZE new\r\nSIZE /readme\r\nSIZE other\r\nQUIT\r\n";
    let asked = Pair::new(Speaker::new(PORT, say), stored.b).ran();
    let text = asked.a.text();
    assert!(text.contains("213 5000\r\n213 77\r\n550"), "{text}");
}

#[test]
fn what_is_not_there_is_refused_and_the_next_file_is_asked_for() {
    let pair = pair(Config { file: Some("nothing".into()), repeat: 2, ..Config::default() }).ran();
    let summary = pair.summary();
    assert_eq!((summary["transfers"], summary["transfers_failed"]), (0.0, 2.0));
    assert_eq!(summary["transfers_refused"], 2.0);
    assert!(pair.a.is_done());
    assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
}

#[test]
fn a_broken_data_connection_is_a_failed_file() {
    for cut in [0, 50_000] {
        let mut pair = pair(Config { size: Octets(200_000), repeat: 2, ..Config::default() });
        pair.net.cut.insert(1, cut);
        pair.run();
        let summary = pair.summary();
        assert_eq!((summary["transfers"], summary["transfers_failed"]), (1.0, 1.0), "{cut}");
        assert!(pair.a.is_done());
        assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
    }
}

#[test]
fn what_a_server_has_sent_is_what_has_left_it() {
    let mut pair = pair(Config { size: Octets(200_000), ..Config::default() });
    pair.net.cut.insert(1, 50_000);
    pair.run();
    let there = pair.server_summary();
    // What there was room for.
    assert_eq!((there["files_sent"], there["files_broken"], there["sent_bytes"]), (0.0, 1.0, 64_000.0));
}

#[test]
fn a_file_of_another_size_than_asked_for_is_a_failure() {
    let pair = pair(Config { size: Octets(2000), file: Some("1kB".into()), ..Config::default() }).ran();
    assert_eq!((pair.summary()["transfers"], pair.summary()["transfers_failed"]), (0.0, 1.0));
}

#[test]
fn refused_connections_are_failed_files() {
    // The control connection; the first data connection.
    for (connection, transfers) in [(0, 0.0), (1, 1.0)] {
        let mut pair = pair(Config { repeat: 2, ..Config::default() });
        pair.net.refused.insert(connection);
        pair.run();
        let summary = pair.summary();
        assert_eq!(summary["transfers"], transfers);
        assert_eq!(summary["transfers_failed"], 2.0 - transfers);
        assert!(pair.a.is_done());
        assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
    }
}

#[test]
fn an_active_client_that_cannot_be_reached_gets_425() {
    let mut pair = pair(Config { active: true, repeat: 1, ..Config::default() });
    pair.net.refused.insert(1);
    pair.run();
    assert_eq!((pair.summary()["transfers_failed"], pair.summary()["transfers_refused"]), (1.0, 1.0));
    assert_eq!(pair.server_summary()["files_broken"], 1.0);
    assert_eq!((pair.net.alive(0), pair.net.alive(1)), (0, 0));
}

#[test]
fn clients_beyond_the_limit_and_silent_ones_are_sent_away() {
    let config = ServerConfig { max_clients: 0, ..ServerConfig::default() };
    let full = Pair::new(Speaker::new(PORT, "NOOP\r\n"), server(config)).ran();
    assert_eq!(full.a.end, Some(CloseReason::Reset));

    let mut silent = Pair::new(Speaker::new(PORT, "USER a\r\n"), server(ServerConfig::default()));
    assert!(silent.run() >= Instant::ZERO + Duration::from_secs(300));
    assert!(silent.a.text().ends_with("421 Timeout, closing control connection.\r\n"), "{}", silent.a.text());
    assert_eq!(silent.net.alive(1), 0);
    assert_eq!(silent.server_summary()["session_timeouts"], 1.0);
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let config = Config { port: 80, repeat: 3, timeout: Duration::from_secs(20), ..Config::default() };
    let mut pair = Pair::new(client(config), Answerer::new(&[b"220 hello\r\n"], 0, false));
    let end = pair.run();
    assert!(pair.a.is_done());
    assert_eq!(pair.summary()["transfers_failed"], 3.0);
    assert!(
        (Instant::ZERO + Duration::from_secs(20)..Instant::ZERO + Duration::from_secs(21)).contains(&end)
    );
}

#[test]
fn a_file_that_a_send_buffer_holds_for_minutes_is_waited_for_while_it_moves() {
    for mode in [Mode::Get, Mode::Put] {
        let mut pair = pair(Config { mode, size: Octets(1_000_000), ..Config::default() });
        // All of it is taken at once, and takes 1,000 s.
        pair.net.room = 2_000_000;
        (pair.net.chop, pair.net.pace) = (1000, Duration::from_secs(1));
        pair.run();
        let summary = pair.summary();
        assert_eq!((summary["transfers"], summary["transfers_failed"]), (1.0, 0.0), "{mode:?}");
        assert_eq!(pair.server_summary()["session_timeouts"], 0.0, "{mode:?}");
        assert!(pair.a.is_done());
    }
}

#[test]
fn a_file_that_stands_still_is_given_up() {
    for mode in [Mode::Get, Mode::Put] {
        let mut pair = pair(Config { mode, size: Octets(100_000), ..Config::default() });
        // The first piece arrives, and no other one.
        pair.run_until(Instant::ZERO + Duration::from_millis(135));
        pair.net.room = 2_000_000;
        (pair.net.chop, pair.net.pace) = (1000, Duration::from_secs(100_000));
        let end = pair.run();
        let summary = pair.summary();
        assert_eq!((summary["transfers"], summary["transfers_failed"]), (0.0, 1.0), "{mode:?}");
        assert_eq!(summary["bytes_under_way"], 0.0, "{mode:?}");
        // Whoever receives knows of the pause that ended it.
        let said = if mode == Mode::Get { summary } else { pair.server_summary() };
        assert!(said["longest_pause_s"] > 290.0, "{mode:?}: {}", said["longest_pause_s"]);
        assert!(end <= Instant::ZERO + Duration::from_secs(601), "{mode:?}: {end}");
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let to = SocketAddr::new(SERVER, 1);
    let path = |config| Client::new(config, to, Duration::ZERO).err().map(|e| e.path.concat());
    assert_eq!(path(Config { repeat: 0, ..Config::default() }).as_deref(), Some("repeat"));
    assert_eq!(path(Config { size: Octets(0), ..Config::default() }).as_deref(), Some("size"));
    assert_eq!(path(Config { file: Some("a\r\nb".into()), ..Config::default() }).as_deref(), Some("file"));
    assert_eq!(path(Config::default()), None);
    let path = |config| Server::new(config).err().map(|e| e.path.concat());
    assert_eq!(
        path(ServerConfig { passive_ports: 0, ..Default::default() }).as_deref(),
        Some("passive_ports")
    );
    let wide = ServerConfig { passive_port: 65_500, ..Default::default() };
    assert_eq!(path(wide).as_deref(), Some("passive_port"));
    let over = ServerConfig { passive_port: 20, ..Default::default() };
    assert_eq!(path(over).as_deref(), Some("passive_port"));
}
