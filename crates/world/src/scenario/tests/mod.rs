//! The parser against registries of its own, so that its tests stay when bearers and applications change.

mod checked;
mod documented;
mod hostile;
mod schema;
mod understood;
mod wrong;

use airloom_base::units::{EachWay, Octets, Probability, QueueLimit, Rate};
use airloom_base::{Duration, Entry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Document, Known, Registries, Scenario, ScenarioError};

/// A wire.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wire {
    rate: EachWay<Rate>,
    #[serde(default = "no_delay")]
    delay: EachWay<Duration>,
    #[serde(default = "hundred")]
    queue: QueueLimit,
}

fn no_delay() -> EachWay<Duration> {
    EachWay::both(Duration::ZERO)
}

fn hundred() -> QueueLimit {
    QueueLimit::Packets(100)
}

/// A radio cell.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Cell {
    rate: EachWay<Rate>,
    loss: Loss,
    window: u64,
    trace: Option<String>,
}

impl Default for Cell {
    fn default() -> Self {
        let rate = EachWay { uplink: Rate::kbit(64), downlink: Rate::kbit(384) };
        Cell { rate, loss: Loss::default(), window: u64::MAX, trace: None }
    }
}

/// Losses of the cell.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
struct Loss {
    per: Per,
    uplink: Probability,
    downlink: Probability,
}

#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "kebab-case")]
enum Per {
    #[default]
    Pdu,
    FecFrame,
}

/// Fetches.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
struct Fetch {
    http: String,
    server: Option<String>,
    size: Octets,
    objects: Vec<Object>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Object {
    size: Octets,
}

/// Has nothing to set.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
struct Nothing {}

/// A transport.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
struct Tcp {
    profile: Profile,
}

#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "kebab-case")]
enum Profile {
    #[default]
    Rfc,
    Linux,
}

fn known<C>(name: &'static str) -> Known
where
    C: Serialize + serde::de::DeserializeOwned + JsonSchema,
{
    Known::from(&Entry::new::<C>(name, ()))
}

fn fakes() -> Registries {
    Registries {
        bearers: vec![known::<Wire>("wire"), known::<Cell>("cell")],
        transports: vec![known::<Tcp>("tcp"), known::<Nothing>("wsp")],
        apps: vec![known::<Fetch>("fetch"), known::<Nothing>("http-server")],
        proxies: vec![known::<Nothing>("split-tcp")],
    }
}

/// The scenario of the text with these `--set` options.
fn with(text: &str, sets: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let registries = fakes();
    let mut document = Document::read("s.toml", text.as_bytes())?;
    for (key, value) in sets {
        document.set(&registries, key, value)?;
    }
    document.scenario(&registries)
}

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    with(text, &[])
}

/// A chain with everything in it.
const CHAIN: &str = r#"
title = "A page over a cell"
path = ["mobile", "radio", "gateway", "internet", "origin"]

[hosts]
mobile = { app = { fetch = { http = "1.1", objects = [{ size = "10kB" }] } }, transport = { tcp = { profile = "linux" } } }
gateway = { proxy = "split-tcp" }
origin = { app = "http-server", transport = "tcp" }

[links]
radio = { bearer = "cell", rate = { downlink = "256kbit/s", uplink = "128kbit/s" }, loss = { per = "pdu", downlink = 0.2 } }
internet = { bearer = "wire", rate = "10Mbit/s", delay = "20ms", queue = "100 packets" }

[run]
until = "done"
seed = 7
record = ["pcapng", "congestion"]

[[timeline]]
at = "5s"
target = "radio"
set = { state = "down" }

[[timeline]]
at = "6s"
target = "internet.member.3"
set = { rate = { uplink = "64kbit/s" }, delay = "1ms", loss = "5%" }
"#;

/// A graph with groups, real hosts, routes and given addresses.
const GRAPH: &str = r#"
[hosts.mobile]
count = 3
real = [1]
app = ["fetch", { fetch = { size = "1MB" } }]
command = ["curl", "http://origin/"]
routes = [{ to = "default", via = "gateway" }, { to = "origin", via = "gateway", link = "radio" }]

[hosts.laptop]
forward = false

[hosts.gateway]

[hosts.origin]
real = true
command = ["nginx"]
app = "http-server"

[links.radio]
bearer = "cell"
between = ["mobile", "laptop", "gateway"]

[links.lan]
bearer = "wire"
rate = "1Gbit/s"
between = ["laptop", "gateway"]
subnet = "192.168.1.0/24"
addresses = { laptop = "192.168.1.100", gateway = ["192.168.1.1", "fd00:77:0:1::ff"] }

[links.core]
bearer = "wire"
rate = "1Gbit/s"
between = ["gateway", "origin"]
subnet6 = "2001:db8::/64"
"#;
