//! An association between hosts with several addresses: a path between each two, and the next one where one fails.

use airloom_base::{Duration, Summary};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::scenario::Scenario;

/// A mobile with two radios, and an origin behind both; what happens to the radios, and the settings of both hosts.
fn scenario(origin_links: &str, transport: &str, timeline: &str) -> String {
    format!(
        r#"
        [hosts]
        left = {{}}
        right = {{}}
        [hosts.mobile]
        transport.sctp = {transport}
        app.bulk = {{ size = "1MB" }}
        [hosts.origin]
        transport.sctp = {transport}
        app = "bulk-server"
        [links.near]
        bearer = "wireline"
        between = ["mobile", "left"]
        rate = "1Mbit/s"
        delay = "20ms"
        [links.far]
        bearer = "wireline"
        between = ["mobile", "right"]
        rate = "300kbit/s"
        delay = "60ms"
        {origin_links}
        [run]
        seed = 3
        limit = "10min"
        {timeline}
        "#
    )
}

/// Both routers at one link of the origin's each.
const TWO: &str = r#"
    [links.a]
    bearer = "wireline"
    between = ["left", "origin"]
    rate = "10Mbit/s"
    delay = "5ms"
    [links.b]
    bearer = "wireline"
    between = ["right", "origin"]
    rate = "10Mbit/s"
    delay = "5ms"
"#;

/// Both routers at a third one, and the origin behind it with one address.
const ONE: &str = r#"
    [links.a]
    bearer = "wireline"
    between = ["left", "core"]
    rate = "10Mbit/s"
    delay = "5ms"
    [links.b]
    bearer = "wireline"
    between = ["right", "core"]
    rate = "10Mbit/s"
    delay = "5ms"
    [links.c]
    bearer = "wireline"
    between = ["core", "origin"]
    rate = "10Mbit/s"
    delay = "5ms"
    [hosts.core]
"#;

const FAILS: &str = r#"
    [[timeline]]
    at = "3s"
    target = "near"
    set = { state = "down" }
"#;

/// Plays it for ten minutes at most.
fn run(text: &str) -> (Outcome, Summary) {
    let scenario = Scenario::parse("multihoming.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let mut world = scenario.build(false).unwrap_or_else(|e| panic!("{e}"));
    let limit = Duration::from_secs(600);
    (virtual_time::run(&mut world, Until::Done { limit }, |_, _| true), world.summary())
}

/// Plays it to its end: seconds, and what each link delivered to the mobile.
fn play(text: &str) -> (f64, [f64; 2]) {
    let (outcome, summary) = run(text);
    assert_eq!(outcome, Outcome::Complete);
    let carried = ["near", "far"].map(|link| summary.values[&format!("{link}.downlink.bytes")]);
    (summary.values["completion_s"], carried)
}

/// A path is taken for broken at its third timeout in a row.
const SEVERAL: &str = "{ multihoming = true, path_max_retrans = 2 }";

#[test]
fn data_takes_the_first_path_alone_while_it_works() {
    for origin in [TWO, ONE] {
        let (seconds, [near, far]) = play(&scenario(origin, SEVERAL, ""));
        let (alone, _) = play(&scenario(origin, "{}", ""));
        assert!(near > 1_000_000.0 && far < 1000.0, "{near} {far}");
        assert!((seconds - alone).abs() < 0.5, "{seconds} {alone}: heartbeats cost next to nothing");
    }
}

#[test]
fn where_a_radio_fails_the_other_one_brings_the_rest() {
    for origin in [TWO, ONE] {
        let (seconds, [near, far]) = play(&scenario(origin, SEVERAL, FAILS));
        assert!(near < 600_000.0 && far > 500_000.0, "{near} {far}");
        assert!(seconds < 120.0, "{seconds}");
    }
}

#[test]
fn a_probe_that_would_overtake_the_end_of_the_opening_waits_for_it() {
    // The second path is the faster one by far: a heartbeat on it would be there before COOKIE ACK is on the first.
    let text = scenario(TWO, SEVERAL, "").replace("\"20ms\"", "\"200ms\"").replace("\"60ms\"", "\"5ms\"");
    let (outcome, summary) = run(&text);
    assert_eq!((outcome, summary.values["transfers"]), (Outcome::Complete, 1.0));
    assert!(summary.values["far.downlink.packets"] > 0.0, "both paths are known: {:?}", summary.values);
}

#[test]
fn without_the_setting_at_both_ends_there_is_one_path() {
    let end = run(&scenario(TWO, "{}", FAILS)).1.values;
    assert_eq!((end["transfers"], end["far.downlink.bytes"]), (0.0, 0.0), "{end:?}");
}
