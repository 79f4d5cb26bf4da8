//! A saturated downlink of 384 kbit/s with 5 % block errors: how much simulated time one CPU second buys.
//!
//! `cargo run --release -p airloom-bearers --example rlc384 [SIMULATED_SECONDS]`

use airloom_base::record::Summary;
use airloom_base::{Body, Cx, Direction, Duration, Instant, Outbox, Packet, Parts, Station};
use airloom_bearers::umts::UmtsDch;

/// SDUs kept in the sender's hands: more than its window of 1024 PDUs.
const WAITING: usize = 60;

fn packet() -> Packet {
    Packet::build(|_| 40, Body::filler(1, 1460))
}

/// Nanoseconds this process has spent on a CPU.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn main() {
    let seconds: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2000);
    let config = serde_json::json!({
        "rate": { "downlink": "384kbit/s", "uplink": "64kbit/s" },
        "loss": { "per": "pdu", "downlink": 0.05, "uplink": 0.025 },
        "rlc": { "max_dat": 0 },
    });
    let mut records = Outbox::default();
    let mut parts = Parts::new(1, "radio", 1, &mut records);
    let mut bearer = UmtsDch::build(&config, &mut parts).expect("the configuration is valid");
    let end = Instant::ZERO + Duration::from_secs(seconds);
    let before = cpu_ns();

    let mut cx = Cx { now: Instant::ZERO, records: &mut records };
    for _ in 0..WAITING {
        bearer.send(&mut cx, Direction::Downlink, Station(0), packet());
    }
    let mut octets = 0u64;
    while let Some(at) = bearer.poll_timeout().filter(|at| *at <= end) {
        cx.now = at;
        bearer.handle_timeout(&mut cx);
        while let Some((_, _, delivered)) = bearer.poll_delivery() {
            octets += delivered.wire_len() as u64;
            bearer.send(&mut cx, Direction::Downlink, Station(0), packet());
        }
    }

    let cpu_s = (cpu_ns() - before) as f64 * 1e-9;
    let mut summary = Summary::default();
    bearer.summarise(&mut summary);
    let pdus = summary.values["downlink.rlc_pdus"];
    println!("simulated_s {seconds}");
    println!("goodput_kbit_s {:.1}", octets as f64 * 8e-3 / seconds as f64);
    println!("rlc_pdus {pdus}");
    println!("rlc_resent {}", summary.values["downlink.rlc_resent"]);
    println!("rlc_status_pdus {}", summary.values["uplink.rlc_status_pdus"]);
    println!("cpu_s {cpu_s:.4}");
    println!("ns_per_pdu {:.1}", cpu_s * 1e9 / pdus);
    println!("realtime_factor {:.0}", seconds as f64 / cpu_s);
}
