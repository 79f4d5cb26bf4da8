//! An association between hosts with several addresses: a path between each two, and the next one where one fails.

use airloom_system_tests::{complete, play, wire};

/// A mobile with two radios, and an origin behind both; what happens to the radios, and the settings of both hosts.
fn scenario(origin_links: &str, transport: &str, timeline: &str) -> String {
    let radios = wire("near", ["mobile", "left"], "rate = \"1Mbit/s\"\ndelay = \"20ms\"")
        + &wire("far", ["mobile", "right"], "rate = \"300kbit/s\"\ndelay = \"60ms\"");
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
        {radios}
        {origin_links}
        [run]
        seed = 3
        limit = "10min"
        {timeline}
        "#
    )
}

/// Both routers at one link of the origin's each; and both at a third one, and the origin behind it with one address.
fn origins() -> [String; 2] {
    let fast = |name, ends| wire(name, ends, "rate = \"10Mbit/s\"\ndelay = \"5ms\"");
    let core = ["a", "b", "c"].into_iter().zip([["left", "core"], ["right", "core"], ["core", "origin"]]);
    let one = core.map(|(name, ends)| fast(name, ends)).collect::<String>() + "[hosts.core]\n";
    [fast("a", ["left", "origin"]) + &fast("b", ["right", "origin"]), one]
}

const FAILS: &str = r#"
    [[timeline]]
    at = "3s"
    target = "near"
    set = { state = "down" }
"#;

/// Plays it to its end: seconds, and what each link delivered to the mobile.
fn load(text: &str) -> (f64, [f64; 2]) {
    let values = complete(text);
    (values["completion_s"], ["near", "far"].map(|link| values[&format!("{link}.downlink.bytes")]))
}

/// A path is taken for broken at its third timeout in a row.
const SEVERAL: &str = "{ multihoming = true, path_max_retrans = 2 }";

#[test]
fn data_takes_the_first_path_alone_while_it_works() {
    for origin in origins() {
        let (seconds, [near, far]) = load(&scenario(&origin, SEVERAL, ""));
        let (alone, _) = load(&scenario(&origin, "{}", ""));
        assert!(near > 1_000_000.0 && far < 1000.0, "{near} {far}");
        assert!((seconds - alone).abs() < 0.5, "{seconds} {alone}: heartbeats cost next to nothing");
    }
}

#[test]
fn where_a_radio_fails_the_other_one_brings_the_rest() {
    for origin in origins() {
        let (seconds, [near, far]) = load(&scenario(&origin, SEVERAL, FAILS));
        assert!(near < 600_000.0 && far > 500_000.0, "{near} {far}");
        assert!(seconds < 120.0, "{seconds}");
    }
}

#[test]
fn what_times_out_goes_over_the_other_link_at_once() {
    // Hosts have an IPv4 and an IPv6 address at each link: another pair of the link that fails is no way out.
    let timeouts = "{ multihoming = true, rto_max = \"1s\" }";
    let text = scenario(&origins()[0], timeouts, &FAILS.replace("3s", "2500ms"));
    let (_, end) = play(&text, 4);
    assert!(end["far.downlink.bytes"] > 1000.0, "after one timeout: {end:?}");
}

#[test]
fn a_probe_that_would_overtake_the_end_of_the_opening_waits_for_it() {
    // The second path is the faster one by far: a heartbeat on it would be there before COOKIE ACK is on the first.
    let text =
        scenario(&origins()[0], SEVERAL, "").replace("\"20ms\"", "\"200ms\"").replace("\"60ms\"", "\"5ms\"");
    let values = complete(&text);
    assert_eq!(values["transfers"], 1.0);
    assert!(values["far.downlink.packets"] > 0.0, "both paths are known: {values:?}");
}

#[test]
fn without_the_setting_at_both_ends_there_is_one_path() {
    let (_, end) = play(&scenario(&origins()[0], "{}", FAILS), 600);
    assert_eq!((end["transfers"], end["far.downlink.bytes"]), (0.0, 0.0), "{end:?}");
}
