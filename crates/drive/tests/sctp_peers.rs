//! Our SCTP on real sockets against usrsctp in both roles, and as client against pion, through a wire that loses, reorders
//! and doubles.
//!
//! Both ends run in network namespaces and speak over UDP (RFC 6951); each judges every message by stream, order and octets.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use airloom_drive::virtual_time::Outcome;
use airloom_testkit::skip;
use airloom_world::scenario::Scenario;
use serde_json::{Value, json};

use support::{Folder, emulate, laboratory};

/// Octets of a transfer.
const OCTETS: u64 = 5_000_000;

/// Our program; cargo builds examples with the tests.
fn our_peer() -> String {
    let mut path = std::env::current_exe().expect("this test is a file");
    path.pop();
    path.pop();
    let path: PathBuf = path.join("examples/sctp_peer");
    assert!(path.is_file(), "{} is missing: cargo build -p airloom-drive --examples", path.display());
    path.to_str().expect("a path in plain text").to_owned()
}

/// The same on usrsctp, compiled; `None` if its library is not installed.
fn usrsctp_peer(folder: &Folder) -> Option<String> {
    let program = folder.file("peer");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/usrsctp/peer.c");
    let has_library = Command::new("cc")
        .args(["-xc", "-fsyntax-only", "-include", "usrsctp.h", "/dev/null"])
        .output()
        .is_ok_and(|o| o.status.success());
    if !has_library {
        skip("drive/sctp_peers", "libusrsctp-dev or a C compiler is not installed (tools/peers test)");
        return None;
    }
    let compiled = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-o", &program, source, "-lusrsctp", "-lpthread"])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(program)
}

/// Its server on pion, compiled from the sources that Debian packages; `None` if they are not installed.
fn pion_peer(folder: &Folder) -> Option<String> {
    /// Where Debian puts the sources of Go packages.
    const SOURCES: &str = "/usr/share/gocode";
    if !Path::new(SOURCES).join("src/github.com/pion/sctp").is_dir() {
        skip("drive/sctp_peers", "golang-github-pion-sctp-dev is not installed (tools/peers test)");
        return None;
    }
    let program = folder.file("pion");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pion/peer.go");
    // Nothing is fetched: packages come from that folder, the compiler stays as it is, what is compiled is kept here.
    let compiled = Command::new("go")
        .args(["build", "-o", &program, source])
        .env("GO111MODULE", "off")
        .env("GOPATH", SOURCES)
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "")
        .env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go"))
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(program)
}

/// Who opens the association.
#[derive(Clone, Copy, Debug)]
enum We {
    Open,
    /// The same, with an INIT that does not say which kinds of addresses there are.
    OpenPlainly,
    Are,
}

/// One transfer of [`OCTETS`] over `streams`, and what both ends report of it.
fn transfer(folder: &Folder, theirs: &str, we: We, mode: &str, streams: u16, message: usize) -> [Value; 2] {
    let ours = our_peer();
    let said = [folder.file("client"), folder.file("server")];
    let plainly = if matches!(we, We::OpenPlainly) { "no-address-types" } else { "" };
    let numbers = format!("{OCTETS} {streams} {message}");
    let (client, server) = match we {
        We::Open | We::OpenPlainly => (
            format!("{ours} send 10.77.0.2:9899 10.77.0.1:9899 5001 {mode} {numbers} {plainly} stay"),
            format!("{theirs} serve 10.77.0.1 5001 9899 9899 {mode}"),
        ),
        We::Are => (
            format!("{theirs} send 10.77.0.2 5001 9899 9899 {mode} 10.77.0.1 {numbers} stay"),
            format!("{ours} serve 10.77.0.1:9899 5001 {mode}"),
        ),
    };
    let text = format!(
        r#"
        title = "SCTP in UDP"
        path = ["mobile", "wire", "origin"]
        [hosts]
        mobile = {{ real = true }}
        origin = {{ real = true, command = ["sh", "-c", "exec {server} > {}"] }}
        [links.wire]
        bearer = "wireline"
        rate = "50Mbit/s"
        delay = "2ms"
        loss = 0.01
        reordering = {{ probability = 0.02, delay = "2ms" }}
        duplication = {{ probability = 0.01 }}
        [run]
        limit = "300s"
        "#,
        said[1]
    );
    let scenario = Scenario::parse("usrsctp.toml", &text).unwrap_or_else(|e| panic!("{e}"));
    // The server's line may come after the client's, which stays until then.
    let shell = format!(
        "{client} > {0} &
        for n in $(seq 1200); do [ -s {0} ] && [ -s {1} ] && break; kill -0 $! 2> /dev/null || break; sleep 0.1; done
        kill $! 2> /dev/null; [ -s {0} ] && [ -s {1} ]",
        said[0], said[1]
    );
    let command = ["sh", "-c", &shell].map(str::to_owned);
    let (results, report) = emulate(&scenario, Some(&command), None);
    let what = format!("{we:?} {mode} {streams} streams of {message}");
    let heard = said.map(|file| fs::read_to_string(file).unwrap_or_default());
    assert_eq!((report.outcome, report.exit_code), (Outcome::Complete, Some(0)), "{what}: {heard:?}");
    assert!(results.summary.values["lost"] > 10.0, "{what}: the wire loses");
    println!("{what}: {} {}", heard[0].trim(), heard[1].trim());
    heard.map(|line| serde_json::from_str(&line).unwrap_or_else(|e| panic!("{what}: {e}: {line}")))
}

#[test]
fn usrsctp_in_both_roles_moves_five_megabytes_on_eight_streams_over_a_bad_wire() {
    let Some(_guard) = laboratory("sctp_peers", &["cc"]) else { return };
    let folder = Folder::new("usrsctp");
    let Some(theirs) = usrsctp_peer(&folder) else { return };
    // Fitting a chunk, and cut into several.
    for message in [1200, 8000] {
        for we in [We::Open, We::Are] {
            for mode in ["discard", "echo"] {
                let [client, server] = transfer(&folder, &theirs, we, mode, 8, message);
                assert_eq!(server, heard("server", message));
                assert_eq!(client, if mode == "echo" { heard("client", message) } else { nothing() });
            }
        }
    }
}

/// What an end reports that got all messages of this length.
fn heard(role: &str, message: usize) -> Value {
    let count = OCTETS.div_ceil(message as u64);
    json!({ "role": role, "messages": count, "octets": OCTETS, "streams": 8, "wrong": 0, "changes": [0, 0, 0, 0], "end": "finished" })
}

/// What a client reports that nothing was sent back to.
fn nothing() -> Value {
    json!({ "role": "client", "messages": 0, "octets": 0, "streams": 0, "wrong": 0, "changes": [0, 0, 0, 0], "end": "finished" })
}

#[test]
fn pion_as_server_moves_five_megabytes_on_eight_streams_over_a_bad_wire() {
    let Some(_guard) = laboratory("sctp_peers_pion", &["go"]) else { return };
    let folder = Folder::new("pion");
    let Some(theirs) = pion_peer(&folder) else { return };
    for message in [1200, 8000] {
        for mode in ["discard", "echo"] {
            let [client, server] = transfer(&folder, &theirs, We::OpenPlainly, mode, 8, message);
            assert_eq!(server, heard("server", message));
            assert_eq!(client, if mode == "echo" { heard("client", message) } else { nothing() });
        }
    }
}

#[test]
fn usrsctp_and_we_begin_streams_anew_and_add_more_in_the_middle_of_a_transfer() {
    let Some(_guard) = laboratory("sctp_peers_reset", &["cc"]) else { return };
    let folder = Folder::new("usrsctp-reset");
    let Some(theirs) = usrsctp_peer(&folder) else { return };
    for we in [We::Open, We::Are] {
        let [client, server] = transfer(&folder, &theirs, we, "reset", 8, 1200);
        for (role, said) in [("client", &client), ("server", &server)] {
            let mut said = said.clone();
            said["changes"].take();
            let count = OCTETS.div_ceil(1200);
            let all = json!({ "role": role, "messages": count, "octets": OCTETS, "streams": 10, "wrong": 0, "changes": null, "end": "finished" });
            assert_eq!(said, all, "{we:?}");
        }
        // Ours, the peer's, all with the TSNs, more of them: ten in the end.
        let changes = |said: &Value| [0, 1, 2, 3].map(|n| said["changes"][n].as_u64().unwrap());
        let opens = matches!(we, We::Open);
        let (by_us, by_them) = if opens { (&client, &server) } else { (&server, &client) };
        let (by_us, by_them) = (changes(by_us), changes(by_them));
        // usrsctp may reset its streams twice: asked for that and for all with the TSNs in one packet, or when it could not at
        // once what its user wanted, and was told so again.
        let its = by_us[1];
        assert!(its == 1 || its == 2, "{we:?}: {by_us:?}");
        assert_eq!(by_us, [1, its, u64::from(opens), 1], "{we:?}");
        // It tells its user of the streams of both when all begin anew, and of the peer's as often as it was asked for them.
        let all = u64::from(opens);
        assert!(by_them[1] > all, "{we:?}: {by_them:?}");
        assert_eq!(by_them, [its + all, by_them[1], all, 1], "{we:?}");
    }
}
