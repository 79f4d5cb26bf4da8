//! Super-packets of real kernels through every grade, and what should not break an engine.
//!
//! Where namespaces cannot be made each test says so and counts as skipped; with `AIRLOOM_CI` set it fails.

#![cfg(target_os = "linux")]

mod support;

use std::fs;

use airloom_base::{Duration, Grade};
use airloom_drive::real_time::{self, Report};
use airloom_testkit::skip;
use airloom_world::scenario::Scenario;

use support::{Folder, emulate, laboratory};

/// Receives a stream on port 7 and answers with its SHA-256; sends back what comes on UDP port 7.
const SERVER: &str = r#"
import hashlib, socket, threading

def streams(family, address):
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind((address, 7))
    listener.listen()
    while True:
        there, _ = listener.accept()
        digest = hashlib.sha256()
        while octets := there.recv(1 << 20):
            digest.update(octets)
        there.sendall(digest.digest())
        there.close()

def datagrams(family, address):
    here = socket.socket(family, socket.SOCK_DGRAM)
    here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    if family == socket.AF_INET6:
        here.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    here.bind((address, 7))
    while True:
        octets, there = here.recvfrom(65536)
        here.sendto(octets, there)

for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
    threading.Thread(target=datagrams, args=(family, address), daemon=True).start()
    threading.Thread(target=streams, args=(family, address), daemon=True).start()
threading.Event().wait()
"#;

/// Sends a stream and UDP super-packets to `origin`, by both families, and checks what comes back.
const CLIENT: &str = r#"
import hashlib, socket, struct, sys, time

UDP_SEGMENT = 103

def connected(family, address):
    # The host is ready when one of the server's sockets is there; this one may be the last.
    end = time.monotonic() + 30
    while True:
        there = socket.socket(family, socket.SOCK_STREAM)
        try:
            there.connect(address)
            return there
        except ConnectionRefusedError:
            there.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)

payload = bytes((n * 7 + n // 251) % 256 for n in range(100_000)) * int(sys.argv[1])
for family in (socket.AF_INET, socket.AF_INET6):
    address = socket.getaddrinfo("origin", 7, family, socket.SOCK_STREAM)[0][4]
    there = connected(family, address)
    there.sendall(payload)
    there.shutdown(socket.SHUT_WR)
    answer = b""
    while octets := there.recv(100):
        answer += octets
    assert answer == hashlib.sha256(payload).digest(), (family, "the stream came another way")
    there.close()

    here = socket.socket(family, socket.SOCK_DGRAM)
    here.settimeout(10)
    here.connect(address)
    # Ten datagrams of 1000 octets and one of 500 in one call: the kernel makes them one super-packet.
    whole = payload[:10_500]
    here.sendmsg([whole], [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("H", 1000))])
    parts = [here.recv(65536) for _ in range(11)]
    assert [len(p) for p in parts] == [1000] * 10 + [500], [len(p) for p in parts]
    assert b"".join(parts) == whole
    # What does not fit is cut into fragments by the kernel, and joined by the other one.
    large = payload[:9_000]
    here.send(large)
    assert here.recv(65536) == large
print("fine")
"#;

/// Runs the client in `mobile` and the server in `origin` over links given as TOML.
fn exchange(name: &str, head: &str, links: &str, times: u32) -> Report {
    let folder = Folder::new(name);
    let (server, client) = (folder.file("server.py"), folder.file("client.py"));
    fs::write(&server, SERVER).unwrap();
    fs::write(&client, CLIENT).unwrap();
    let text = format!(
        "{head}\n[hosts]\nmobile = {{ real = true }}\ngateway = {{}}\n\
         origin = {{ real = true, command = [\"python3\", \"{server}\"] }}\n[links]\n{links}\n[run]\nrecord = \"none\"\n"
    );
    let tun = "mobile = { real = true, port = \"tun\" }";
    let text = if name == "tun" { text.replace("mobile = { real = true }", tun) } else { text };
    let text = if head.contains("gateway") { text } else { text.replace("gateway = {}\n", "") };
    let scenario = Scenario::parse("test", &text).unwrap_or_else(|e| panic!("{e}"));
    let out = folder.file("out");
    let command = ["sh", "-c", &format!("python3 {client} {times} > {out} 2>&1")].map(str::to_owned);
    let (results, report) = emulate(&scenario, Some(&command), None);
    let said = fs::read_to_string(out).unwrap();
    assert_eq!((said.as_str(), report.exit_code), ("fine\n", Some(0)));
    assert_eq!((report.malformed, report.early, report.ports.lost()), (0, 0, 0));
    assert_eq!(results.summary.values["port.received"], report.ports.received as f64);
    report
}

#[test]
fn a_link_that_only_delays_passes_super_packets_whole() {
    let Some(_guard) = laboratory("super_packets::whole", &["python3"]) else { return };
    let report = exchange(
        "whole",
        "path = [\"mobile\", \"wire\", \"origin\"]",
        "wire = { bearer = \"wireline\", delay = \"2ms\" }",
        40,
    );
    assert_eq!(report.grades, [("wire".to_owned(), Grade::Transparent)]);
    // 8 MB in datagrams of 1500 octets would be more than 5,000.
    assert!(report.ports.sent < 4_000, "{:?}", report.ports);
    assert_eq!(report.base_delay, Some(Duration::from_millis(2)));
}

#[test]
fn a_link_that_counts_datagrams_gets_them_cut_and_nothing_changes_for_programs() {
    let Some(_guard) = laboratory("super_packets::cut", &["python3"]) else { return };
    let head = "path = [\"mobile\", \"wire\", \"origin\"]";
    for (name, link) in [
        ("rate", "bearer = \"wireline\", rate = \"100Mbit/s\", delay = \"2ms\""),
        ("fast", "bearer = \"wireline\", rate = \"5Gbit/s\""),
        ("forced", "bearer = \"wireline\", grade = \"packet\""),
    ] {
        let report = exchange(name, head, &format!("wire = {{ {link} }}"), 40);
        assert_eq!(report.grades, [("wire".to_owned(), Grade::Packet)]);
        // Two streams of 4 MB, in segments of at most 1448 octets.
        assert!(report.ports.sent > 2 * 4_000_000 / 1448, "{name}: {:?}", report.ports);
        let joined = report.ports.sent_frames < report.ports.sent;
        assert!(joined || name == "rate", "{name}: {:?}", report.ports);
    }
}

#[test]
fn a_radio_bearer_and_a_router_between_two_grades_get_datagrams() {
    let Some(_guard) = laboratory("super_packets::radio", &["python3"]) else { return };
    let radio =
        "radio = { bearer = \"umts-dch\", rate = { downlink = \"384kbit/s\", uplink = \"384kbit/s\" } }";
    let report = exchange(
        "radio",
        "path = [\"mobile\", \"radio\", \"gateway\", \"internet\", \"origin\"]",
        &format!("{radio}\ninternet = {{ bearer = \"wireline\", delay = \"1ms\" }}"),
        1,
    );
    assert_eq!(report.grades[0].1, Grade::Radio);
    assert_eq!(report.grades[1].1, Grade::Transparent);
    let report = exchange(
        "router",
        "path = [\"mobile\", \"near\", \"gateway\", \"far\", \"origin\"]",
        "near = { bearer = \"wireline\", delay = \"1ms\" }\nfar = { bearer = \"wireline\", rate = \"1Gbit/s\" }",
        2,
    );
    assert_eq!([report.grades[0].1, report.grades[1].1], [Grade::Transparent, Grade::Packet]);
}

#[test]
fn a_tun_device_does_what_a_cable_does() {
    let Some(_guard) = laboratory("super_packets::tun", &["python3"]) else { return };
    if real_time::capabilities().tun.is_err() {
        skip("drive/super_packets::tun", "no /dev/net/tun");
        return;
    }
    for link in ["delay = \"2ms\"", "rate = \"1Gbit/s\", delay = \"1ms\""] {
        let link = format!("wire = {{ bearer = \"wireline\", {link} }}");
        exchange("tun", "path = [\"mobile\", \"wire\", \"origin\"]", &link, 20);
    }
}

#[test]
fn a_bearer_with_a_grid_refuses_to_keep_super_packets_whole() {
    let text = "path = [\"a\", \"radio\", \"b\"]\nhosts = { a = { real = true }, b = {} }\n\
                links.radio = { bearer = \"umts-dch\", grade = \"transparent\" }\n";
    let error = Scenario::parse("test", text).expect_err("it is wrong");
    assert!(error.to_string().contains("grade"), "{error}");
}

#[test]
fn a_flood_into_a_slow_link_costs_frames_and_not_memory() {
    let Some(_guard) = laboratory("super_packets::flood", &["python3"]) else { return };
    // A slow link without a queue limit: what it cannot send it keeps. (Not connected: nobody hears that the port is
    // closed.)
    let text = "path = [\"mobile\", \"wire\", \"origin\"]\n\
                [hosts]\nmobile = { real = true }\norigin = {}\n\
                [links]\nwire = { bearer = \"wireline\", rate = \"64kbit/s\" }\n[run]\nrecord = \"none\"\n";
    let scenario = Scenario::parse("test", text).unwrap_or_else(|e| panic!("{e}"));
    let flood = "import socket, struct, time\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        s.setsockopt(socket.IPPROTO_UDP, 103, 1400)\n\
        for n in range(8000):\n    s.sendto(bytes(1400 * 40), ('10.77.0.1', 9))\n";
    let command = ["python3", "-c", flood].map(str::to_owned);
    let before = resident();
    let (_, report) = emulate(&scenario, Some(&command), None);
    assert_eq!(report.exit_code, Some(0));
    // 450 MB were sent; the model may hold 256 MB of them.
    assert!(report.ports.no_memory + report.ports.overflow > 0, "{:?}", report.ports);
    assert!(resident() < before + (700 << 20), "{} -> {}", before, resident());
    assert_eq!(report.verdict().name(), "invalid");
    assert!(!report.verdict().reasons().is_empty());
}

/// The largest resident set of this process so far, in octets.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
