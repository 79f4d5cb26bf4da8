//! The four yardstick scenarios that simulators are compared by, as one native program.
//!
//! ```text
//! yardsticks a                one flow, 100 MB, 100 Mbit/s, 20 ms
//! yardsticks b [seeds]        5 MB over 384/64 kbit/s, 300 ms, 1 % loss towards the client, for seeds 1..=seeds
//! yardsticks c                100 flows of 1 MB through a bottleneck of 100 Mbit/s
//! yardsticks d [objects]      1,000 clients, 20 objects of 10,240 octets each, a new connection for each
//! yardsticks rlc [seconds]    a saturated umts-dch downlink of 384 kbit/s with 5 % of PDUs in error
//! yardsticks cell [seconds]   50 idle mobiles on a umts-dch cell
//! yardsticks sctp [megabytes] one SCTP association over the link of a
//! yardsticks quic [megabytes] one QUIC connection over the link of a; `seeded` behind it: with packets protected
//! yardsticks h3 [objects]     as d, over HTTP/3: one connection for the objects of a client
//! yardsticks egprs [seconds]  four mobiles on an EGPRS cell with 5 % of blocks in error, web pages by HTTP over SCTP
//! yardsticks idle             builds the network of b and does nothing: what start-up costs
//! ```
//!
//! The word `linux` behind it gives all hosts the profile `linux` in place of plain TCP, with the same buffers.
//!
//! Prints simulated results and CPU seconds of the whole process. `tools/bench/run` runs it beside other simulators.

use airloom_base::{Duration, Summary};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::{Builder, World};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The TCP of all hosts.
#[derive(Clone, Copy)]
enum Tcp {
    /// Segments of 1460 octets without timestamps, delayed ACKs, 1 s minimum RTO, 10 segments initial window, as the
    /// programs for other simulators have it.
    Plain,
    /// The profile `linux` as it is.
    Linux,
}

impl Tcp {
    fn settings(self, window: u64) -> Value {
        let mut settings = match self {
            Tcp::Plain => {
                json!({ "profile": "rfc", "initial_window": 10, "timestamps": false, "time_wait": "240s" })
            }
            Tcp::Linux => json!({ "profile": "linux" }),
        };
        for buffer in ["receive_buffer", "initial_receive_window", "send_buffer"] {
            settings[buffer] = json!(format!("{window}B"));
        }
        settings
    }
}

fn pair(tcp: Tcp, seed: u64, link: &Value, window: u64, size: &str) -> Result<World> {
    let mut b = Builder::new(seed);
    let (client, server) = (b.host("client"), b.host("server"));
    b.link("link", "wireline", link, &[client], server)?;
    for host in [client, server] {
        b.transport(host, "tcp", &tcp.settings(window))?;
    }
    b.app(server, "bulk-server", &json!({}), None)?;
    b.app(client, "bulk", &json!({ "size": size }), Some("server"))?;
    Ok(b.build()?)
}

fn a(tcp: Tcp) -> Result<World> {
    pair(tcp, 1, &json!({ "rate": "100Mbit/s", "delay": "10ms", "queue": "2000 packets" }), 400_000, "100MB")
}

fn b(tcp: Tcp, seed: u64, size: &str) -> Result<World> {
    let link = json!({
        "rate": { "downlink": "384kbit/s", "uplink": "64kbit/s" }, "delay": "150ms", "queue": "2000 packets",
        "loss": { "downlink": 0.01, "uplink": 0.0 },
    });
    pair(tcp, seed, &link, 65_535, size)
}

fn c(tcp: Tcp) -> Result<World> {
    let mut b = Builder::new(1);
    let (left, right) = (b.host("left"), b.host("right"));
    let access = json!({ "rate": "1Gbit/s", "delay": "1ms", "queue": "2000 packets" });
    let bottleneck = json!({ "rate": "100Mbit/s", "delay": "23ms", "queue": "417 packets" });
    b.link("bottleneck", "wireline", &bottleneck, &[left], right)?;
    for n in 0..100 {
        let (client, server) = (b.host(&format!("client{n}")), b.host(&format!("server{n}")));
        b.link(&format!("left{n}"), "wireline", &access, &[client], left)?;
        b.link(&format!("right{n}"), "wireline", &access, &[server], right)?;
        for host in [client, server] {
            b.transport(host, "tcp", &tcp.settings(1_000_000))?;
        }
        b.app(server, "bulk-server", &json!({}), None)?;
        b.app(client, "bulk", &json!({ "size": "1MB", "spread": "100ms" }), Some(&format!("server{n}")))?;
    }
    Ok(b.build()?)
}

/// As `a`, over QUIC, paced as the library paces by itself.
fn quic(megabytes: u64, session: &str) -> Result<World> {
    let mut b = Builder::new(1);
    let (client, server) = (b.host("client"), b.host("server"));
    let link = json!({ "rate": "100Mbit/s", "delay": "10ms", "queue": "2000 packets" });
    b.link("link", "wireline", &link, &[client], server)?;
    for host in [client, server] {
        let windows = json!({ "session": session, "pacing": "always", "receive_window": "400kB", "stream_window": "400kB" });
        b.transport(host, "quic", &windows)?;
    }
    b.app(server, "bulk-server", &json!({}), None)?;
    b.app(client, "bulk", &json!({ "size": format!("{megabytes}MB") }), Some("server"))?;
    Ok(b.build()?)
}

fn d(tcp: Tcp, objects: u64) -> Result<World> {
    let get = json!({ "size": "10240B", "request": "300B", "repeat": objects, "spread": "10s" });
    thousand("tcp", &tcp.settings(1_000_000), ("bulk-server", json!({})), ("bulk", get))
}

fn h3(objects: u64) -> Result<World> {
    let list = vec!["/10240"; objects as usize];
    let get = json!({
        "http": "3", "connections": 1, "objects": list, "request": "300B", "reaction": "0s", "spread": "10s",
    });
    thousand("quic", &json!({}), ("http-server", json!({ "http": "3" })), ("http-client", get))
}

/// A thousand clients behind 25 edges, and their server.
fn thousand(transport: &str, settings: &Value, serves: (&str, Value), asks: (&str, Value)) -> Result<World> {
    let mut b = Builder::new(1);
    let (server, core) = (b.host("server"), b.host("core"));
    let backbone = json!({ "rate": "1Gbit/s", "delay": "1ms", "queue": "2000 packets" });
    let access = json!({ "rate": "10Mbit/s", "delay": "18ms", "queue": "2000 packets" });
    b.link("backbone", "wireline", &backbone, &[core], server)?;
    b.transport(server, transport, settings)?;
    b.app(server, serves.0, &serves.1, None)?;
    for e in 0..25 {
        let edge = b.host(&format!("edge{e}"));
        b.link(&format!("edge{e}"), "wireline", &backbone, &[edge], core)?;
        for k in 0..40 {
            let name = format!("client{}", e * 40 + k);
            let client = b.host(&name);
            b.link(&name, "wireline", &access, &[client], edge)?;
            b.transport(client, transport, settings)?;
            b.app(client, asks.0, &asks.1, Some("server"))?;
        }
    }
    Ok(b.build()?)
}

/// One mobile that fetches without end over one connection, in pieces of 1 MB.
fn rlc(tcp: Tcp) -> Result<World> {
    let mut b = Builder::new(1);
    let (mobile, server) = (b.host("mobile"), b.host("server"));
    let link = json!({
        "rate": { "downlink": "384kbit/s", "uplink": "64kbit/s" },
        "loss": { "per": "pdu", "downlink": 0.05, "uplink": 0.0 },
    });
    b.link("radio", "umts-dch", &link, &[mobile], server)?;
    for host in [mobile, server] {
        b.transport(host, "tcp", &tcp.settings(65_535))?;
    }
    b.app(server, "bulk-server", &json!({}), None)?;
    b.app(mobile, "bulk", &json!({ "size": "1MB", "repeat": 1_000_000, "keep": true }), Some("server"))?;
    Ok(b.build()?)
}

/// 50 mobiles with nothing to do.
fn cell() -> Result<World> {
    let mut b = Builder::new(1);
    let mobiles: Vec<_> = (0..50).map(|n| b.host(&format!("mobile{n}"))).collect();
    let server = b.host("server");
    b.link("radio", "umts-dch", &json!({}), &mobiles, server)?;
    for host in mobiles.into_iter().chain([server]) {
        b.transport(host, "tcp", &json!({}))?;
    }
    b.app(server, "bulk-server", &json!({}), None)?;
    Ok(b.build()?)
}

/// As `a`, over SCTP.
fn sctp(megabytes: u64) -> Result<World> {
    let mut b = Builder::new(1);
    let (client, server) = (b.host("client"), b.host("server"));
    let link = json!({ "rate": "100Mbit/s", "delay": "10ms", "queue": "2000 packets" });
    b.link("link", "wireline", &link, &[client], server)?;
    for host in [client, server] {
        b.transport(host, "sctp", &json!({ "receive_buffer": "400kB", "send_buffer": "400kB" }))?;
    }
    b.app(server, "bulk-server", &json!({}), None)?;
    b.app(client, "bulk", &json!({ "size": format!("{megabytes}MB") }), Some("server"))?;
    Ok(b.build()?)
}

/// A cell under load: each mobile loads pages of three objects at least, and reads for ten seconds on average.
fn egprs() -> Result<World> {
    let mut b = Builder::new(1);
    let mobiles: Vec<_> = (0..4).map(|n| b.host(&format!("mobile{n}"))).collect();
    let (pcu, server) = (b.host("pcu"), b.host("server"));
    b.link("radio", "egprs", &json!({ "loss": { "downlink": 0.05, "uplink": 0.05 } }), &mobiles, pcu)?;
    let behind = json!({ "rate": "5Mbit/s", "delay": "20ms", "queue": "100 packets", "loss": 0.01 });
    b.link("gi", "wireline", &behind, &[pcu], server)?;
    let page = json!({
        "http": "1.0-keep-alive", "streams": 3, "reaction": "0s", "timeout": "20min", "retries": 1000,
        "traffic": {
            "model": "afif-2006", "pages": 1_000_000, "most": "100kB",
            "main": { "law": { "pareto": { "mean": 10_000, "shape": 1.2 } } },
            "inline": { "law": { "pareto": { "mean": 4_000, "shape": 1.1 } } },
            "count": { "law": { "pareto": { "mean": 3, "shape": 1.5 } }, "least": 3 },
            "reading": { "law": { "exponential": { "mean": 10 } } },
        },
    });
    b.transport(server, "sctp", &json!({ "receive_buffer": "64kB" }))?;
    b.app(server, "http-server", &json!({ "idle_timeout": "20min", "stall_timeout": "20min" }), None)?;
    for mobile in mobiles {
        b.transport(mobile, "sctp", &json!({ "receive_buffer": "64kB" }))?;
        b.app(mobile, "http-client", &page, Some("server"))?;
    }
    Ok(b.build()?)
}

fn run_for(mut world: World, seconds: u64) -> Result<(f64, Summary)> {
    let until = Until::Elapsed(Duration::from_secs(seconds));
    match virtual_time::run(&mut world, until, |_, _| true) {
        Outcome::Complete => Ok((world.now().as_secs_f64(), world.summary())),
        other => Err(format!("did not complete: {other:?}").into()),
    }
}

fn run(mut world: World) -> Result<(f64, Summary)> {
    let limit = Until::Done { limit: Duration::from_secs(4000) };
    match virtual_time::run(&mut world, limit, |_, _| true) {
        Outcome::Complete => Ok((world.now().as_secs_f64(), world.summary())),
        other => Err(format!("did not complete: {other:?}").into()),
    }
}

/// What the process has used so far.
#[cfg(target_os = "linux")]
fn cpu_seconds() -> f64 {
    let clock = nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID;
    clock.now().map_or(f64::NAN, |used| used.tv_sec() as f64 + used.tv_nsec() as f64 * 1e-9)
}

#[cfg(not(target_os = "linux"))]
fn cpu_seconds() -> f64 {
    f64::NAN
}

/// Results by name of one scenario, sorted: of all clients together, not of the run.
fn clients(summary: &Summary, key: &str) -> Vec<f64> {
    let suffix = format!(".{key}");
    let mut values: Vec<f64> =
        summary.values.iter().filter(|(name, _)| name.ends_with(&suffix)).map(|(_, v)| *v).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn spread(name: &str, values: &[f64]) -> String {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    match values {
        [] => format!("{name}=none"),
        [one] => format!("{name}={one:.4} s"),
        [min, .., max] => {
            let median = values[values.len() / 2];
            format!("{name}: min={min:.4} median={median:.4} mean={mean:.4} max={max:.4} s")
        }
    }
}

fn main() -> Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let tcp = if words.last().is_some_and(|w| w == "linux") { Tcp::Linux } else { Tcp::Plain };
    words.retain(|w| w != "linux");
    let number = |default| words.get(1).map_or(Ok(default), |w| w.parse::<u64>());
    match words.first().map_or("", String::as_str) {
        "a" => print(&run(a(tcp)?)?),
        "b" => {
            let seeds = number(1)?;
            let mut times = Vec::new();
            let mut packets = 0.0;
            for seed in 1..=seeds {
                let (_, summary) = run(b(tcp, seed, "5MB")?)?;
                times.extend(clients(&summary, "completion_s"));
                packets += summary.values.get("packets").copied().unwrap_or(f64::NAN);
            }
            times.sort_by(f64::total_cmp);
            println!("seeds={seeds} {} packets={packets}", spread("completion", &times));
        }
        "c" => print(&run(c(tcp)?)?),
        "d" => print(&run(d(tcp, number(20)?)?)?),
        "rlc" => {
            let seconds = number(2000)?;
            let (_, summary) = run_for(rlc(tcp)?, seconds)?;
            let received = summary.values.get("goodput_bit_s").copied().unwrap_or(f64::NAN);
            println!("simulated={seconds} s goodput={received:.0} bit/s events={}", summary.values["events"]);
        }
        "cell" => {
            let seconds = number(3600)?;
            let (_, summary) = run_for(cell()?, seconds)?;
            println!("simulated={seconds} s events={}", summary.values["events"]);
        }
        "sctp" => print(&run(sctp(number(100)?)?)?),
        "quic" => {
            let session = if words.iter().any(|w| w == "seeded") { "seeded" } else { "model" };
            print(&run(quic(number(100)?, session)?)?);
        }
        "h3" => print(&run(h3(number(20)?)?)?),
        "egprs" => {
            let seconds = number(3600)?;
            let (_, summary) = run_for(egprs()?, seconds)?;
            let value = |key: &str| summary.values.get(key).copied().unwrap_or(f64::NAN);
            let objects: f64 = clients(&summary, "objects").iter().sum();
            println!("simulated={seconds} s objects={objects} events={}", value("events"));
        }
        "idle" => {
            b(tcp, 1, "1B")?;
        }
        other => {
            return Err(format!(
                "no scenario `{other}`: a, b, c, d, rlc, cell, sctp, quic, h3, egprs or idle"
            )
            .into());
        }
    }
    println!("cpu_s={:.4}", cpu_seconds());
    Ok(())
}

fn print((seconds, summary): &(f64, Summary)) {
    let value = |key: &str| summary.values.get(key).copied().unwrap_or(f64::NAN);
    println!("simulated={seconds:.4} s {}", spread("completion", &clients(summary, "completion_s")));
    println!(
        "packets={} segments={} resent={} rto={} events={}",
        value("packets"),
        value("segments"),
        value("resent"),
        value("rto_count"),
        value("events"),
    );
}
