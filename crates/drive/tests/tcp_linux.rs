//! Our TCP on a port against the kernel's: both roles, both directions, on clean and on rough paths.
//!
//! `AIRLOOM_TRANSFER` says how many octets cross a rough path (2,000,000 without it); a clean one carries 20 MB.

#![cfg(target_os = "linux")]

mod support;

use std::collections::VecDeque;
use std::fs;
use std::net::Ipv4Addr;

use airloom_base::random::Stream;
use airloom_base::record::Summary;
use airloom_base::{
    Backlog, Bearer, Body, Change, Cx, Direction, Duration, Instant, Packet, Passed, Station, Unsupported,
};
use airloom_drive::real_time;
use airloom_drive::virtual_time::{Outcome, Until};
use airloom_world::{Builder, End, HostId};
use serde_json::{Value, json};

use support::{Folder, laboratory};

const ORIGIN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const LIMIT: Until = Until::Done { limit: Duration::from_secs(120) };
const CLEAN: u32 = 20_000_000;
/// What bulk transfers are cut from.
const SOURCE: u32 = 0x6275_6c6b;

/// What a path does to datagrams beside carrying them at 200 Mbit/s in 1 ms.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    mtu: u16,
    lose: f64,
    repeat: f64,
    overtake: f64,
}

/// A wire that loses, repeats, and lets packets be overtaken by those behind them, in both directions.
struct Rough {
    path: Path,
    random: Stream,
    free: [Instant; 2],
    flying: [Vec<(Instant, Packet)>; 2],
    arrived: VecDeque<(Direction, Packet)>,
}

impl Rough {
    fn new(path: Path) -> Rough {
        Rough {
            path,
            random: Stream::new(1, "rough"),
            free: [Instant::ZERO; 2],
            flying: Default::default(),
            arrived: VecDeque::new(),
        }
    }
}

impl Bearer for Rough {
    fn send(&mut self, cx: &mut Cx, dir: Direction, _station: Station, sdu: Packet) {
        if self.random.chance(self.path.lose) {
            return;
        }
        let time = Duration::from_nanos(sdu.wire_len() as u64 * 8 * 1000 / 200);
        let leaves = self.free[dir as usize].max(cx.now) + time;
        self.free[dir as usize] = leaves;
        let late =
            if self.random.chance(self.path.overtake) { Duration::from_millis(1) } else { Duration::ZERO };
        let at = leaves + Duration::from_millis(1) + late;
        if self.random.chance(self.path.repeat) {
            self.flying[dir as usize].push((at, sdu.duplicate()));
        }
        self.flying[dir as usize].push((at, sdu));
    }

    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        self.arrived.pop_front().map(|(dir, packet)| (dir, Station(0), packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.flying.iter().flatten().map(|(at, _)| *at).min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        for dir in Direction::BOTH {
            let (mut due, later): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.flying[dir as usize]).into_iter().partition(|(at, _)| *at <= cx.now);
            due.sort_by_key(|(at, _)| *at);
            self.arrived.extend(due.into_iter().map(|(_, packet)| (dir, packet)));
            self.flying[dir as usize] = later;
        }
    }

    fn backlog(&self, _now: Instant, _dir: Direction, _station: Station) -> Backlog {
        Backlog::default()
    }

    fn apply(&mut self, _cx: &mut Cx, _part: &[u16], _change: &Change) -> Result<(), Unsupported> {
        Err(Unsupported("change"))
    }

    fn passed(&self) -> [Passed; 2] {
        Default::default()
    }

    fn summarise(&self, _out: &mut Summary) {}
}

/// Bulk transfers in Python over the kernel's TCP: `serve FILE` takes one connection, `get|put SIZE FILE` makes one.
/// Received octets go to FILE; sent ones come from it.
const PEER: &str = r#"
import socket, struct, sys

def exactly(connection, count):
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 16))
        if not part:
            sys.exit("it ended early")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)

verb, file = sys.argv[1], sys.argv[-1]
if verb == "serve":
    server = socket.create_server(("", 5001))
    while True:
        connection, _ = server.accept()
        magic, flags, a, b, c, size = struct.unpack(">4sBBBBQ", exactly(connection, 16))
        exactly(connection, (a << 16 | b << 8 | c) - 16)
        if flags & 2:
            open(file, "wb").write(exactly(connection, size))
            connection.sendall(b"!")
        else:
            connection.sendall(open(file, "rb").read(size))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        connection.close()
size = int(sys.argv[3])
connection = socket.create_connection((sys.argv[2], 5001))
connection.sendall(struct.pack(">4sBBBBQ", b"BULK", 2 if verb == "put" else 0, 0, 0, 16, size))
if verb == "put":
    connection.sendall(open(file, "rb").read(size))
    exactly(connection, 1)
else:
    open(file, "wb").write(exactly(connection, size))
if connection.recv(1):
    sys.exit("more than was asked for")
connection.close()
"#;

/// Who is the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kernel {
    Client,
    Server,
}

/// `mobile` and `origin` on the path.
fn hosts(path: Path) -> (Builder, HostId, HostId) {
    let mut b = Builder::new(1);
    b.mtu(path.mtu);
    let (mobile, origin) = (b.host("mobile"), b.host("origin"));
    let end = |host, n| End { host, addresses: vec![Ipv4Addr::new(10, 77, 0, n).into()] };
    b.link_with("cable", Box::new(Rough::new(path)), vec![end(mobile, 2)], end(origin, 1)).unwrap();
    (b, mobile, origin)
}

/// One transfer of `size` octets with our TCP as `tcp` says; every octet must arrive.
fn transfer(tcp: &Value, kernel: Kernel, verb: &str, size: u32, path: Path) {
    let what = format!("{tcp}, the kernel is the {kernel:?}, {verb} {size}, {path:?}");
    let folder = Folder::new("tcp-linux");
    let (script, file) = (folder.file("peer.py"), folder.file("octets"));
    fs::write(&script, PEER).unwrap();
    let octets = Body::filler(SOURCE, size).to_bytes();
    // Who sends has the octets; who receives writes them.
    let kernel_sends = (kernel == Kernel::Client) == (verb == "put");
    if kernel_sends {
        fs::write(&file, &octets).unwrap();
    }
    let (mut b, mobile, origin) = hosts(path);
    let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let report = match kernel {
        Kernel::Client => {
            b.real(mobile, None);
            b.transport(origin, "tcp", tcp).unwrap();
            b.app(origin, "bulk-server", &json!({}), None).unwrap();
            let mut world = b.build().unwrap();
            let command = words(&["python3", &script, verb, &ORIGIN.to_string(), &size.to_string(), &file]);
            let report = real_time::run(&mut world, Some(&command), LIMIT, |_, _| true);
            let values = world.summary().values;
            assert_eq!((values["transfers_served"], values["transfers_broken"]), (1.0, 0.0), "{what}");
            if kernel_sends {
                assert_eq!(values["received_bytes"], f64::from(size), "{what}");
            }
            report
        }
        Kernel::Server => {
            b.real(origin, Some(words(&["python3", &script, "serve", &file])));
            b.transport(mobile, "tcp", tcp).unwrap();
            let config = json!({ "mode": verb, "size": format!("{size}B") });
            b.app(mobile, "bulk", &config, Some("origin")).unwrap();
            let mut world = b.build().unwrap();
            let report = real_time::run(&mut world, None, LIMIT, |_, _| true);
            let values = world.summary().values;
            assert_eq!((values["transfers"], values["transfers_failed"]), (1.0, 0.0), "{what}");
            assert_eq!(values["bytes"], f64::from(size), "{what}");
            report
        }
    };
    let report = report.unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!((report.outcome, report.malformed), (Outcome::Complete, 0), "{what}");
    assert!(matches!(report.exit_code, None | Some(0)), "{what}: {:?}", report.exit_code);
    if !kernel_sends {
        assert!(fs::read(&file).unwrap() == octets, "{what}: other octets");
    }
    println!("{what}: all octets");
}

fn everything(size: u32, path: Path) {
    everything_with(&json!({ "profile": "linux" }), size, path);
}

fn everything_with(tcp: &Value, size: u32, path: Path) {
    for kernel in [Kernel::Client, Kernel::Server] {
        for verb in ["get", "put"] {
            transfer(tcp, kernel, verb, size, path);
        }
    }
}

/// Octets of a transfer over a rough path.
fn rough_size() -> u32 {
    std::env::var("AIRLOOM_TRANSFER").map_or(2_000_000, |text| text.parse().expect("a number of octets"))
}

#[test]
fn twenty_megabytes_cross_a_clean_path_both_ways_in_both_roles() {
    let Some(_guard) = laboratory("tcp_linux::clean", &["python3"]) else { return };
    everything(CLEAN, Path { mtu: 1500, ..Path::default() });
}

#[test]
fn small_datagrams_carry_all_octets() {
    let Some(_guard) = laboratory("tcp_linux::small", &["python3"]) else { return };
    everything(rough_size(), Path { mtu: 576, ..Path::default() });
}

#[test]
fn all_octets_arrive_although_three_of_a_hundred_packets_are_lost() {
    let Some(_guard) = laboratory("tcp_linux::loss", &["python3"]) else { return };
    for mtu in [576, 1500] {
        everything(rough_size(), Path { mtu, lose: 0.03, ..Path::default() });
    }
}

#[test]
fn each_option_can_be_missing() {
    let Some(_guard) = laboratory("tcp_linux::options", &["python3"]) else { return };
    for option in ["timestamps", "sack", "window_scaling", "dsack"] {
        for loss_detection in ["rack", "dup-acks"] {
            let mut tcp = json!({ "profile": "linux", "loss_detection": loss_detection });
            tcp[option] = json!(false);
            everything_with(&tcp, rough_size() / 4, Path { mtu: 1500, lose: 0.01, ..Path::default() });
        }
    }
}

#[test]
fn what_can_be_added_to_recovery_and_buffers_loses_no_octet() {
    let Some(_guard) = laboratory("tcp_linux::settings", &["python3"]) else { return };
    for tcp in [
        json!({ "profile": "rfc", "frto": true, "eifel": true, "undo_by_dsack": true, "prr": "safe" }),
        json!({ "profile": "rfc", "sack": false, "frto": true, "prr": "conservative" }),
        json!({ "profile": "linux", "receive_autotuning": true, "send_autotuning": true, "receive_buffer": "64KiB",
                "send_buffer": "16KiB" }),
        // The kernel does not know its option.
        json!({ "profile": "rfc", "congestion": "probing" }),
    ] {
        let path = Path { mtu: 1500, lose: 0.01, repeat: 0.01, overtake: 0.01 };
        everything_with(&tcp, rough_size() / 2, path);
    }
}

#[test]
fn all_octets_arrive_once_although_packets_are_repeated_and_overtake_each_other() {
    let Some(_guard) = laboratory("tcp_linux::order", &["python3"]) else { return };
    everything(rough_size(), Path { mtu: 1500, repeat: 0.05, overtake: 0.05, lose: 0.0 });
}
