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
