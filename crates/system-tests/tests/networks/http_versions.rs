//! The same page in every version of HTTP, in clear and over TLS, through every kind of gateway.

use std::collections::BTreeMap;

use airloom_system_tests::complete;

const SPLIT: &str = r#"{ proxy = "split-tcp" }"#;
const CACHE: &str = r#"{ proxy = { http-cache = { mode = "addressed" } } }"#;
const H3: &str = "http = \"3\"";

/// Both ends turn Nagle's algorithm off, as browsers and servers do: the small frames of HTTP/2 would hold back requests behind them.
/// A page of twelve objects at `origin`, with settings of the client, the gateway and the server; `loss` on the radio link.
fn load(client: &str, gateway: &str, server: &str, loss: f64) -> BTreeMap<String, f64> {
    let transport = if server == H3 { "quic = {}" } else { "tcp = { nagle = \"off\" }" };
    let text = format!(
        r#"
        path = ["mobile", "radio", "gateway", "internet", "origin"]
        [hosts.mobile.app.http-client]
        connections = 1
        pages = [["/20kB.html", "/9kB", "/8kB", "/7kB", "/6kB", "/5kB", "/4kB", "/3kB", "/2kB", "/1kB", "/30kB", "/10"]]
        {client}
        [hosts.mobile.transport]
        {transport}
        [hosts]
        gateway = {gateway}
        origin = {{ app = {{ http-server = {{ {server} }} }}, transport = {{ {transport} }} }}
        [links]
        radio = {{ bearer = "wireline", rate = "1Mbit/s", delay = "100ms", queue = "100 packets", loss = {{ downlink = {loss}, uplink = {loss} }} }}
        internet = {{ bearer = "wireline", rate = "10Mbit/s", delay = "20ms", queue = "200 packets" }}
        "#
    );
    let values = complete(&text);
    let asked = (values["pages"], values["objects"], values["failed"], values["requests_malformed"]);
    assert_eq!(asked, (1.0, 12.0, 0.0, 0.0), "{client} {gateway}");
    values
}

#[test]
fn every_version_passes_every_gateway_and_loss() {
    for loss in [0.0, 0.05] {
        for http in ["1.0", "1.1", "2"] {
            for (tls, gateway, proxy) in [
                ("", "{}", ""),
                ("", SPLIT, ""),
                ("tls = {}", "{}", ""),
                ("tls = {}", SPLIT, ""),
                ("tls = {}", CACHE, "proxy = \"gateway\""),
                ("tls = { version = \"1.2\", sizes = \"2004\" }", CACHE, "proxy = \"gateway\""),
            ] {
                let client = format!("http = \"{http}\"\n{tls}\n{proxy}");
                let values = load(&client, gateway, &format!("http = \"2\", {tls}"), loss);
                assert_eq!(values["origin.connections_h2"] > 0.0, http == "2", "{client} {gateway}");
                if gateway == CACHE {
                    assert_eq!(values["gateway.tunnels"], values["mobile.connections"], "{client}");
                }
            }
        }
        // QUIC is for nobody between: proxies for TCP pass its datagrams on as a router does.
        let routed = load(H3, "{}", H3, loss);
        assert_eq!(routed["origin.connections_h3"], 1.0);
        assert_eq!(routed["resent"] > 0.0, loss > 0.0, "{}", routed["resent"]);
        for gateway in [SPLIT, CACHE] {
            let through = load(H3, gateway, H3, loss);
            assert_eq!(through["page_load_s"], routed["page_load_s"], "{gateway}");
        }
    }
}

/// One connection on a link of 240 ms of round trip.
#[test]
fn multiplexing_does_what_pipelining_does_and_needs_no_proof_first() {
    let time = |client: &str, server: &str| load(client, "{}", server, 0.0)["page_load_s"];
    let serial = time("", "");
    let pipelined = time("pipeline = 100", "");
    let multiplexed = time("http = \"2\"", "http = \"2\"");
    // Eleven objects one after the other wait for some ten round trips.
    assert!(serial > pipelined + 2.0, "{serial} {pipelined}");
    // The first object is alone on its connection either way; heads are shorter.
    assert!((multiplexed - pipelined).abs() < 0.1, "{multiplexed} {pipelined}");
}

#[test]
fn a_handshake_costs_its_round_trips_on_the_long_way() {
    let time = |tls: &str| load(&format!("http = \"2\"\n{tls}"), "{}", &format!("http = \"2\", {tls}"), 0.0);
    let clear = time("")["page_load_s"];
    let (new, old) = (time("tls = {}"), time("tls = { version = \"1.2\" }"));
    let (one, two) = (new["page_load_s"] - clear, old["page_load_s"] - clear);
    // 240 ms each, and what its octets take at 1 Mbit/s.
    assert!((0.24..0.33).contains(&one) && (0.48..0.6).contains(&two), "{one} {two}");
    assert!(new["tls_handshake_mean_s"] >= 0.24 && old["tls_handshake_mean_s"] >= 0.48);
}

#[test]
fn a_tunnel_costs_the_round_trip_to_the_proxy() {
    let tls = "http = \"2\", tls = {}";
    let direct = load("http = \"2\"\ntls = {}", "{}", tls, 0.0)["page_load_s"];
    let through = load("http = \"2\"\ntls = {}\nproxy = \"gateway\"", CACHE, tls, 0.0)["page_load_s"];
    // CONNECT and its answer: 200 ms on the radio link, and the proxy's own connection of 40 ms; but then TCP of both sides is
    // fast sooner, as with any proxy that ends connections.
    assert!(through > direct - 0.3 && through < direct + 0.3, "{direct} {through}");
}

/// What a server has not heard of is on its way still, or lost: QUIC drops it with the connection.
#[test]
fn a_connection_of_http_3_is_not_closed_before_its_answers_have_arrived() {
    for (page, server, rate, objects) in [
        (r#""/1kB""#, "keep_alive = false", "1Mbit/s", 1.0),
        (r#""/100""#, "keep_alive = false", "1Mbit/s", 1.0),
        (r#""/1MB", "/10kB""#, "max_requests = 2", "1Mbit/s", 2.0),
        // The last octets that are acknowledged are headers, for longer than a connection may be idle.
        (r#""/10MB""#, "", "64kbit/s", 1.0),
    ] {
        let text = format!(
            r#"
            path = ["client", "wire", "server"]
            [hosts.client]
            app = {{ http-client = {{ http = "3", connections = 1, pages = [[{page}]], timeout = "1h" }} }}
            transport = {{ quic = {{}} }}
            [hosts.server]
            app = {{ http-server = {{ http = "3", {server} }} }}
            transport = {{ quic = {{}} }}
            [links]
            wire = {{ bearer = "wireline", rate = "{rate}", delay = "20ms", queue = "100 packets" }}
            "#
        );
        let values = complete(&text);
        let got = ["objects", "failed", "asked_again", "server.timeouts"].map(|key| values[key]);
        assert_eq!(got, [objects, 0.0, 0.0, 0.0], "{page} {server}");
    }
}
