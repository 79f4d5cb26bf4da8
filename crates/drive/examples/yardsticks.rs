//! The four yardstick scenarios that simulators are compared by, as one native program.
//!
//! ```text
//! yardsticks a                one flow, 100 MB, 100 Mbit/s, 20 ms
//! yardsticks b [seeds]        5 MB over 384/64 kbit/s, 300 ms, 1 % loss towards the client, for seeds 1..=seeds
//! yardsticks c                100 flows of 1 MB through a bottleneck of 100 Mbit/s
//! yardsticks d [objects]      1,000 clients, 20 objects of 10,240 octets each, a new connection for each
//! yardsticks idle             builds the network of b and does nothing: what start-up costs
//! ```
//!
//! Prints simulated results and CPU seconds of the whole process.

use airloom_base::{Duration, Summary};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::{Builder, World};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Segments of 1460 octets without timestamps, delayed ACKs, 1 s minimum RTO, 10 segments initial window, as the
/// programs for other simulators have it.
fn tcp(window: u64) -> Value {
    json!({
        "profile": "rfc", "initial_window": 10, "timestamps": false, "time_wait": "240s",
        "receive_buffer": format!("{window}B"), "initial_receive_window": format!("{window}B"),
        "send_buffer": format!("{window}B"),
    })
}

fn pair(seed: u64, link: &Value, window: u64, size: &str) -> Result<World> {
    let mut b = Builder::new(seed);
    let (client, server) = (b.host("client"), b.host("server"));
    b.link("link", "wireline", link, &[client], server)?;
    for host in [client, server] {
        b.transport(host, "tcp", &tcp(window))?;
    }
    b.app(server, "bulk-server", &json!({}), None)?;
    b.app(client, "bulk", &json!({ "size": size }), Some("server"))?;
    Ok(b.build()?)
}

fn a() -> Result<World> {
    pair(1, &json!({ "rate": "100Mbit/s", "delay": "10ms", "queue": "2000 packets" }), 400_000, "100MB")
}

fn b(seed: u64, size: &str) -> Result<World> {
    let link = json!({
        "rate": { "downlink": "384kbit/s", "uplink": "64kbit/s" }, "delay": "150ms", "queue": "2000 packets",
        "loss": { "downlink": 0.01, "uplink": 0.0 },
    });
    pair(seed, &link, 65_535, size)
}

fn c() -> Result<World> {
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
            b.transport(host, "tcp", &tcp(1_000_000))?;
        }
        b.app(server, "bulk-server", &json!({}), None)?;
        b.app(client, "bulk", &json!({ "size": "1MB", "spread": "100ms" }), Some(&format!("server{n}")))?;
    }
    Ok(b.build()?)
}

fn d(objects: u64) -> Result<World> {
    let mut b = Builder::new(1);
    let (server, core) = (b.host("server"), b.host("core"));
    let backbone = json!({ "rate": "1Gbit/s", "delay": "1ms", "queue": "2000 packets" });
    let access = json!({ "rate": "10Mbit/s", "delay": "18ms", "queue": "2000 packets" });
    b.link("backbone", "wireline", &backbone, &[core], server)?;
    b.transport(server, "tcp", &tcp(1_000_000))?;
    b.app(server, "bulk-server", &json!({}), None)?;
    for e in 0..25 {
        let edge = b.host(&format!("edge{e}"));
        b.link(&format!("edge{e}"), "wireline", &backbone, &[edge], core)?;
        for k in 0..40 {
            let name = format!("client{}", e * 40 + k);
            let client = b.host(&name);
            b.link(&name, "wireline", &access, &[client], edge)?;
            b.transport(client, "tcp", &tcp(1_000_000))?;
            let get = json!({ "size": "10240B", "request": "300B", "repeat": objects, "spread": "10s" });
            b.app(client, "bulk", &get, Some("server"))?;
        }
    }
    Ok(b.build()?)
}

fn run(mut world: World) -> Result<(f64, Summary)> {
    let limit = Until::Done { limit: Duration::from_secs(4000) };
    match virtual_time::run(&mut world, limit, |_, _| true) {
        Outcome::Complete => Ok((world.now().as_secs_f64(), world.summary())),
        other => Err(format!("did not complete: {other:?}").into()),
    }
}

fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 * 1e-9
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |default| words.get(1).map_or(Ok(default), |w| w.parse::<u64>());
    match words.first().map_or("", String::as_str) {
        "a" => print(run(a()?)?),
        "b" => {
            let seeds = number(1)?;
            let mut times = Vec::new();
            for seed in 1..=seeds {
                let (_, summary) = run(b(seed, "5MB")?)?;
                times.push(summary.values.get("completion_s").copied().unwrap_or(f64::NAN));
            }
            times.sort_by(f64::total_cmp);
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            let (min, median, max) = (times[0], times[times.len() / 2], times[times.len() - 1]);
            println!("seeds={seeds} min={min:.1} median={median:.1} mean={mean:.1} max={max:.1} s");
        }
        "c" => print(run(c()?)?),
        "d" => print(run(d(number(20)?)?)?),
        "idle" => {
            b(1, "1B")?;
        }
        other => return Err(format!("no scenario `{other}`: a, b, c, d or idle").into()),
    }
    println!("cpu_s={:.4}", cpu_seconds());
    Ok(())
}

fn print((seconds, summary): (f64, Summary)) {
    let value = |key: &str| summary.values.get(key).copied().unwrap_or(f64::NAN);
    println!(
        "simulated={seconds:.4} s completion={:.4} s packets={} segments={} resent={} rto={} events={}",
        value("completion_s"),
        value("packets"),
        value("segments"),
        value("resent"),
        value("rto_count"),
        value("events"),
    );
}
