//! Real programs in network namespaces, their datagrams through the model.
//!
//! Where namespaces cannot be made each test says so and counts as skipped; with `AIRLOOM_CI` set it fails.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};

use airloom_base::{Duration, Instant};
use airloom_drive::real_time::{self, Error, Report};
use airloom_drive::virtual_time::{Outcome, Until};
use airloom_world::{Builder, End, World};
use serde_json::json;

use support::{Folder, laboratory};

/// What the host called `origin` is.
enum Origin<'a> {
    Real,
    /// Real, with a service: its shell command.
    Serving(&'a str),
    Simulated,
}

/// Two hosts on a wire of 20 ms: `mobile` is real. With the addresses of `origin`, IPv4 and IPv6.
fn wire(origin: Origin) -> (World, Ipv4Addr, Ipv6Addr) {
    let mut b = Builder::new(1);
    let (mobile, far) = (b.host("mobile"), b.host("origin"));
    let bearer = airloom_bearers::find("wireline").unwrap();
    let bearer = (bearer.build)(&json!({ "delay": "20ms" }), &mut b.parts("cable", 1)).unwrap();
    let end = |host, n| {
        let (v4, v6) = (Ipv4Addr::new(10, 77, 0, n), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, n.into()));
        (End { host, addresses: vec![v4.into(), v6.into()] }, v4, v6)
    };
    let (there, v4, v6) = end(far, 1);
    b.link_with("cable", bearer, vec![end(mobile, 2).0], there).unwrap();
    b.real(mobile, None);
    match origin {
        Origin::Real => b.real(far, None),
        Origin::Serving(shell) => b.real(far, Some(["sh", "-c", shell].map(str::to_owned).to_vec())),
        Origin::Simulated => {}
    }
    (b.build().unwrap(), v4, v6)
}

const LIMIT: Until = Until::Done { limit: Duration::from_secs(60) };

fn run(world: &mut World, shell: &str) -> Report {
    let command = ["sh", "-c", shell].map(str::to_owned);
    real_time::run(world, Some(&command), LIMIT, |_, _| true).unwrap_or_else(|e| panic!("{e}"))
}

/// A command that asks `count` times, one after the other. (A ping that asks several times waits for the last answer for
/// two round trips only, and a machine may be held up for longer.)
fn pings(count: usize, to: Ipv4Addr, out: &str) -> String {
    vec![format!("ping -n -c 1 -W 20 {to} >> {out}"); count].join(" && ")
}

/// Round-trip times in milliseconds that ping printed.
fn round_trips(text: &str) -> Vec<f64> {
    let times = text.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next());
    times.map(|t| t.parse().unwrap()).collect()
}

#[test]
fn a_ping_between_two_real_hosts_takes_the_links_delay_and_never_less() {
    let Some(_guard) = laboratory("real_time::ping", &["ping"]) else { return };
    let folder = Folder::new("ping");
    let (mut world, origin, _) = wire(Origin::Real);
    let out = folder.file("out");
    let report = run(&mut world, &pings(5, origin, &out));
    assert_eq!((report.outcome, report.exit_code), (Outcome::Complete, Some(0)));
    let times = round_trips(&fs::read_to_string(out).unwrap());
    assert_eq!(times.len(), 5);
    assert!(times.iter().all(|t| *t >= 40.0), "{times:?}");
    // The model's own time has no wake-ups in it.
    assert_eq!(report.base_delay, Some(Duration::from_millis(20)));
    assert_eq!((report.ports.received, report.ports.sent), (10, 10));
    assert_eq!((report.malformed, report.ports.not_ip, report.ports.overflow), (0, 0, 0));
    assert_eq!(report.lateness.count(), 10);
}

#[test]
fn a_simulated_host_answers_a_real_one() {
    let Some(_guard) = laboratory("real_time::simulated", &["ping"]) else { return };
    let folder = Folder::new("simulated");
    let (mut world, origin, _) = wire(Origin::Simulated);
    let out = folder.file("out");
    let report = run(&mut world, &pings(2, origin, &out));
    assert_eq!(report.exit_code, Some(0));
    let times = round_trips(&fs::read_to_string(out).unwrap());
    assert!(times.len() == 2 && times.iter().all(|t| *t >= 40.0), "{times:?}");
}

#[test]
fn large_datagrams_and_ipv6_pass_too() {
    let Some(_guard) = laboratory("real_time::ipv6", &["ping"]) else { return };
    let (mut world, origin, v6) = wire(Origin::Real);
    let report = run(
        &mut world,
        &format!(
            "ping -n -c 1 -M do -s 1472 {origin} >/dev/null && ping -n -c 1 -s 4000 {origin} >/dev/null && ping -n -c 1 {v6} >/dev/null"
        ),
    );
    assert_eq!(report.exit_code, Some(0));
    assert_eq!(report.malformed, 0);
}

/// A chain of hosts joined by wires of these MTUs; the ends are real. IPv4 only: IPv6 needs 1280 octets.
fn chain(mtus: &[u16]) -> (World, Ipv4Addr) {
    let mut b = Builder::new(1);
    let names = (0..=mtus.len()).map(|n| b.host(&format!("h{n}"))).collect::<Vec<_>>();
    for (n, mtu) in mtus.iter().enumerate() {
        b.mtu(*mtu);
        let name = format!("wire{n}");
        let bearer = airloom_bearers::find("wireline").unwrap();
        let bearer = (bearer.build)(&json!({ "rate": "100Mbit/s" }), &mut b.parts(&name, 1)).unwrap();
        let end = |host, last| End { host, addresses: vec![Ipv4Addr::new(10, 77, n as u8, last).into()] };
        b.link_with(&name, bearer, vec![end(names[n], 2)], end(names[n + 1], 1)).unwrap();
    }
    b.real(names[0], None);
    b.real(names[mtus.len()], None);
    (b.build().unwrap(), Ipv4Addr::new(10, 77, mtus.len() as u8 - 1, 1))
}

#[test]
fn small_and_jumbo_links_carry_their_largest_datagrams_and_fragments() {
    let Some(_guard) = laboratory("real_time::mtu", &["ping"]) else { return };
    for mtu in [576, 9000] {
        let (mut world, far) = chain(&[mtu]);
        let report = run(
            &mut world,
            &format!(
                "ping -n -c 1 -M do -s {} {far} >/dev/null && ping -n -c 1 -s 20000 {far} >/dev/null",
                mtu - 28
            ),
        );
        assert_eq!((report.exit_code, report.malformed, report.ports.lost()), (Some(0), 0, 0), "{mtu}");
    }
}

#[test]
fn a_kernel_hears_from_a_simulated_router_that_its_datagram_is_too_big() {
    let Some(_guard) = laboratory("real_time::too_big", &["ping"]) else { return };
    let folder = Folder::new("too-big");
    let out = folder.file("out");
    let (mut world, far) = chain(&[1500, 1000]);
    // The second time the kernel knows the path and cuts the datagram itself.
    let report = run(
        &mut world,
        &format!("ping -n -c 1 -M do -s 1400 {far} > {out}; ping -n -c 1 -s 1400 {far} >> {out}"),
    );
    let said = fs::read_to_string(out).unwrap();
    assert_eq!(report.exit_code, Some(0), "{said}");
    assert!(said.contains("mtu = 1000") && said.contains("1408 bytes from"), "{said}");
}

#[test]
fn cut_and_flipped_datagrams_are_counted_and_dropped_and_the_run_goes_on() {
    let Some(_guard) = laboratory("real_time::malformed", &["ping", "python3"]) else { return };
    let (mut world, origin, _) = wire(Origin::Real);
    let folder = Folder::new("malformed");
    let script = folder.file("inject.py");
    fs::write(
        &script,
        r#"
import socket, struct, sys

def checksum(octets):
    total = sum(struct.unpack(">%dH" % (len(octets) // 2), octets))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF

destination = socket.inet_aton(sys.argv[1])
icmp = bytearray(struct.pack(">BBHHH", 8, 0, 0, 1, 1) + bytes(56))
icmp[2:4] = struct.pack(">H", checksum(bytes(icmp)))
ip = bytearray(struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(icmp), 0, 0, 64, 1, 0) + bytes(4) + destination)
ip[10:12] = struct.pack(">H", checksum(bytes(ip)))
good = bytes(ip + icmp)

port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind(("cable", 0))
ethernet = bytes.fromhex("020000000000 020000010000".replace(" ", ""))

def send(kind, datagram):
    port.send(ethernet + struct.pack(">H", kind) + datagram)

for cut in range(len(good)):
    send(0x0800, good[:cut])
for bit in range(4, 20 * 8):
    bad = bytearray(good)
    bad[bit // 8] ^= 0x80 >> (bit % 8)
    send(0x0800, bytes(bad))
for kind in (0x0806, 0x88CC, 0x0000):
    send(kind, bytes(28))
"#,
    )
    .unwrap();
    let ping = format!("python3 {script} {origin} && ping -n -c 1 {origin} > /dev/null");
    let report = run(&mut world, &ping);
    assert_eq!(report.exit_code, Some(0));
    let cuts = 20 + 8 + 56;
    assert_eq!(report.malformed, cuts + 20 * 8 - 4);
    assert_eq!(report.ports.not_ip, 3);
    assert_eq!(report.ports.sent, 2);
}

/// Command lines of all processes.
fn command_lines() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}

fn interfaces() -> Vec<String> {
    let names = fs::read_dir("/sys/class/net").unwrap().flatten();
    let mut names: Vec<_> = names.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Descriptors of this process that hold a network namespace or a socket.
fn descriptors() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(|e| fs::read_link(e.path()).ok());
    links
        .filter(|l| l.to_string_lossy().starts_with("net:[") || l.to_string_lossy().starts_with("socket:"))
        .count()
}

#[test]
fn nothing_is_left_behind_after_a_run_an_error_or_a_stop() {
    let Some(_guard) = laboratory("real_time::nothing_left", &["python3"]) else { return };
    let before = (interfaces(), descriptors());
    // A service that leaves its process group, and a command that leaves children behind.
    let service = || {
        let listen = "import socket, time; s = socket.create_server((\"\", 80)); time.sleep(86412)";
        format!("setsid sleep 86411 & exec python3 -c '{listen}'")
    };

    let (mut world, ..) = wire(Origin::Serving(&service()));
    let report = run(&mut world, "sleep 86413 & setsid sleep 86414 & exit 3");
    assert_eq!((report.outcome, report.exit_code), (Outcome::Complete, Some(3)));

    let (mut world, ..) = wire(Origin::Serving(&service()));
    let missing = ["airloom-no-such-program".to_owned()];
    let error = real_time::run(&mut world, Some(&missing), LIMIT, |_, _| true).err().unwrap();
    assert_eq!(error.exit_code(), 127);
    let folder = ["/".to_owned()];
    let error = real_time::run(&mut world, Some(&folder), LIMIT, |_, _| true).err().unwrap();
    assert_eq!(error.exit_code(), 126);

    let (mut world, ..) = wire(Origin::Serving(&service()));
    let sleep = ["sleep", "86415"].map(str::to_owned);
    let is_running = || command_lines().iter().any(|line| line.contains("sleep 86415"));
    let report = real_time::run(&mut world, Some(&sleep), LIMIT, |_, _| !is_running()).unwrap();
    assert_eq!((report.outcome, report.exit_code), (Outcome::Stopped, None));

    // Stopped before there was anything to run.
    let (mut world, ..) = wire(Origin::Serving(&service()));
    let error = real_time::run(&mut world, Some(&sleep), LIMIT, |now, _| now < Instant::ZERO).err();
    assert!(matches!(error, Some(Error::Stopped)), "{error:?}");

    // Digits alone may stand in anybody's command line.
    let ours = |line: &String| line.contains("sleep 8641") || line.contains("sleep(8641");
    let left: Vec<_> = command_lines().into_iter().filter(ours).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!((interfaces(), descriptors()), before);
}

#[test]
fn a_command_ended_by_a_signal_has_the_shells_exit_code() {
    let Some(_guard) = laboratory("real_time::signal", &[]) else { return };
    let (mut world, ..) = wire(Origin::Real);
    assert_eq!(run(&mut world, "kill -TERM $$").exit_code, Some(143));
}

#[test]
fn a_service_that_ends_at_once_is_an_error_that_names_it() {
    let Some(_guard) = laboratory("real_time::service", &[]) else { return };
    let (mut world, ..) = wire(Origin::Serving("exit 1"));
    let error = real_time::run(&mut world, None, LIMIT, |_, _| true).err().unwrap();
    assert_eq!(error, Error::Service { program: "sh".to_owned(), code: 1 });
}

#[test]
fn without_a_command_a_run_lasts_as_long_as_it_says() {
    let Some(_guard) = laboratory("real_time::duration", &[]) else { return };
    let (mut world, ..) = wire(Origin::Real);
    let time = Duration::from_millis(50);
    let report = real_time::run(&mut world, None, Until::Elapsed(time), |_, _| true).unwrap();
    assert_eq!((report.outcome, report.exit_code), (Outcome::Complete, None));
}

#[test]
fn a_command_is_waited_for_however_long_the_run_says_that_it_lasts() {
    let Some(_guard) = laboratory("real_time::command", &[]) else { return };
    let command = ["sh", "-c", "sleep 0.5; exit 7"].map(str::to_owned);
    let time = Duration::from_millis(50);
    for until in [Until::Done { limit: time }, Until::Elapsed(time)] {
        let (mut world, ..) = wire(Origin::Real);
        let report = real_time::run(&mut world, Some(&command), until, |_, _| true).unwrap();
        assert_eq!((report.outcome, report.exit_code), (Outcome::Complete, Some(7)));
    }
}

#[test]
fn a_scenario_without_real_hosts_cannot_be_emulated() {
    let mut b = Builder::new(1);
    b.host("lonely");
    let error = real_time::run(&mut b.build().unwrap(), None, LIMIT, |_, _| true).err().unwrap();
    assert_eq!((error.exit_code(), error), (2, Error::NothingReal));
}
