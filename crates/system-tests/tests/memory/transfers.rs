//! In steady state no packet costs a heap allocation, from application to application.

use airloom_base::{Duration, Instant};
use airloom_world::{Builder, World};
use serde_json::{Value, json};

use super::allocations;

/// Over TCP. Buffers that grow make lists grow with them for minutes: they are as large as they become.
fn pair(bearer: &str, link: &Value, client: &Value) -> World {
    let buffers = json!({ "receive_buffer": "576KiB", "send_buffer": "4MiB" });
    pair_over("tcp", &buffers, bearer, link, client)
}

fn pair_over(transport: &str, settings: &Value, bearer: &str, link: &Value, client: &Value) -> World {
    let mut b = Builder::new(1);
    let (near, far) = (b.host("client"), b.host("server"));
    b.link("link", bearer, link, &[near], far).unwrap();
    for host in [near, far] {
        b.transport(host, transport, settings).unwrap();
    }
    b.app(far, "bulk-server", &json!({}), None).unwrap();
    b.app(near, "bulk", client, Some("server")).unwrap();
    b.build().unwrap()
}

fn run_until(world: &mut World, seconds: u64) {
    let end = Instant::ZERO + Duration::from_secs(seconds);
    while let Some(at) = world.poll_timeout().filter(|at| *at <= end) {
        world.handle_timeout(at);
        world.records().clear();
    }
}

/// Packets and allocations between two moments.
fn between(mut world: World, from: u64, to: u64) -> (u64, u64) {
    run_until(&mut world, from);
    let before = (world.records().packet_count(), allocations());
    run_until(&mut world, to);
    (world.records().packet_count() - before.0, allocations() - before.1)
}

#[test]
fn the_counter_counts() {
    let before = allocations();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(allocations() - before, 1);
}

#[test]
fn a_transfer_without_loss_allocates_nothing() {
    let link = json!({ "rate": "100Mbit/s", "delay": "10ms", "queue": "2000 packets" });
    for mode in ["get", "put"] {
        // CUBIC takes some seconds to open the whole window; lists grow with it.
        let world = pair("wireline", &link, &json!({ "size": "1GB", "mode": mode }));
        let (packets, allocations) = between(world, 8, 14);
        assert!(packets > 50_000, "{packets} packets");
        assert_eq!(allocations, 0, "{mode}: {packets} packets");
    }
}

#[test]
fn a_transfer_over_sctp_allocates_nothing() {
    let link = json!({ "rate": "100Mbit/s", "delay": "10ms", "queue": "2000 packets" });
    let buffers = json!({ "receive_buffer": "576KiB", "send_buffer": "576KiB" });
    for mode in ["get", "put"] {
        let client = json!({ "size": "1GB", "mode": mode });
        let (packets, allocations) = between(pair_over("sctp", &buffers, "wireline", &link, &client), 8, 14);
        assert!(packets > 50_000, "{packets} packets");
        assert_eq!(allocations, 0, "{mode}: {packets} packets");
    }
}

#[test]
fn a_transfer_with_losses_allocates_nothing() {
    let link = json!({ "rate": "10Mbit/s", "delay": "20ms", "queue": "100 packets", "loss": 0.01 });
    // Lists grow to the largest burst of losses there was: they are given time to meet one.
    let (packets, allocations) = between(pair("wireline", &link, &json!({ "size": "1GB" })), 500, 600);
    assert!(packets > 5_000, "{packets} packets");
    assert_eq!(allocations, 0, "{packets} packets");
}

#[test]
fn a_transfer_over_a_dedicated_channel_with_errors_allocates_nothing() {
    let link = json!({ "loss": { "per": "pdu", "downlink": 0.05, "uplink": 0.02 } });
    // So are the lists of the radio link: the longest stay without an answer comes after hours.
    let world = pair("umts-dch", &link, &json!({ "size": "4GB" }));
    let (packets, allocations) = between(world, 20_000, 21_000);
    assert!(packets > 30_000, "{packets} packets");
    assert_eq!(allocations, 0, "{packets} packets");
}
