//! Small whole networks, for seeing what a change costs: `cargo bench -p airloom-drive --bench worlds`.
//! The yardsticks that goals are set by are measured as whole processes (`tools/bench/run`).

use airloom_base::Duration;
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::{Builder, World};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};

/// A client and a server with one link between them.
fn pair(bearer: &str, link: &Value, server_app: &str, client_app: &str, client: &Value) -> World {
    let build = || {
        let mut b = Builder::new(1);
        let (near, far) = (b.host("client"), b.host("server"));
        b.link("link", bearer, link, &[near], far)?;
        for host in [near, far] {
            b.transport(host, "tcp", &json!({}))?;
        }
        b.app(far, server_app, &json!({}), None)?;
        b.app(near, client_app, client, Some("server"))?;
        b.build()
    };
    build().expect("the network is valid")
}

fn run(mut world: World) -> World {
    let until = Until::Done { limit: Duration::from_secs(4000) };
    assert_eq!(virtual_time::run(&mut world, until, |_, _| true), Outcome::Complete);
    world
}

fn worlds(c: &mut Criterion) {
    let mut group = c.benchmark_group("worlds");
    group.sample_size(20);
    let wire = json!({ "rate": "100Mbit/s", "delay": "10ms", "queue": "2000 packets" });
    let lossy = json!({ "rate": "384kbit/s", "delay": "150ms", "loss": { "downlink": 0.01, "uplink": 0.0 } });
    let get = json!({ "size": "1MB" });
    let radio = json!({ "loss": { "per": "pdu", "downlink": 0.05, "uplink": 0.05 } });
    let small = json!({ "size": "200kB" });
    let page = json!({ "objects": ["/10000", "/20000", "/30000"], "repeat": 10, "reaction": "0s" });
    group.bench_function("build", |b| b.iter(|| pair("wireline", &wire, "bulk-server", "bulk", &get)));
    for (name, bearer, link, server, client, config) in [
        ("1 MB without loss", "wireline", &wire, "bulk-server", "bulk", &get),
        ("1 MB with loss", "wireline", &lossy, "bulk-server", "bulk", &get),
        ("200 kB over umts-dch", "umts-dch", &radio, "bulk-server", "bulk", &small),
        ("10 pages of 3 objects", "wireline", &wire, "http-server", "http-client", &page),
    ] {
        group.bench_function(name, |b| {
            b.iter_batched(|| pair(bearer, link, server, client, config), run, BatchSize::SmallInput);
        });
    }
    group.finish();
}

criterion_group!(benches, worlds);
criterion_main!(benches);
