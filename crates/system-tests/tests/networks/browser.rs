//! Pages whose objects are at several servers, with nothing and with proxies in between.

use std::collections::BTreeMap;

use airloom_system_tests::complete;

/// A page at three servers, loaded three times, by a browser with these settings, with `gateway` at the edge of the radio link.
fn load(browser: &str, gateway: &str) -> BTreeMap<String, f64> {
    load_over("256kbit/s", browser, gateway)
}

/// The same over a radio link of this rate.
fn load_over(rate: &str, browser: &str, gateway: &str) -> BTreeMap<String, f64> {
    let text = format!(
        r#"
        [hosts.mobile.app.http-client]
        server = "www"
        repeat = 3
        think = "1s"
        pages = [[
            {{ path = "/20kB", changes = true }},
            {{ path = "/1kB", server = "images" }},
            {{ path = "/9kB", server = "images", changes = true }},
            {{ path = "/7kB", server = "ads", after = 1 }},
            "/2kB", "/3kB", "/90kB",
        ]]
        {browser}
        [hosts]
        gateway = {gateway}
        core = {{}}
        www = {{ app = "http-server" }}
        images = {{ app = "http-server" }}
        ads = {{ app = "http-server" }}
        [links]
        radio = {{ between = ["mobile", "gateway"], bearer = "wireline", rate = "{rate}", delay = "200ms" }}
        internet = {{ between = ["gateway", "core"], bearer = "wireline", rate = "10Mbit/s", delay = "20ms" }}
        a = {{ between = ["core", "www"], bearer = "wireline", rate = "100Mbit/s" }}
        b = {{ between = ["core", "images"], bearer = "wireline", rate = "100Mbit/s" }}
        c = {{ between = ["core", "ads"], bearer = "wireline", rate = "100Mbit/s" }}
        "#
    );
    let values = complete(&text);
    assert_eq!((values["pages"], values["failed"]), (3.0, 0.0), "{browser}");
    values
}

const ADDRESSED: &str = r#"{ proxy = { http-cache = { mode = "addressed", assume_fresh = "1h" } } }"#;

#[test]
fn each_server_gets_its_connections_and_a_proxy_takes_their_place() {
    let direct = load("", "{}");
    // Two to the first server, one to each of the others, whose objects become known one at a time or are two.
    assert_eq!((direct["mobile.connections"], direct["requests_sent"]), (5.0, 21.0));
    let limited = load("connections = 1", "{}");
    assert_eq!((limited["mobile.connections"], limited["requests_sent"]), (3.0, 21.0));
    let proxied = load("proxy = \"gateway\"\nproxy_connections = 1", ADDRESSED);
    assert_eq!((proxied["mobile.connections"], proxied["requests_per_connection"]), (1.0, 21.0));
    assert_eq!(proxied["gateway.requests"], 21.0);
    // What does not change comes from the servers once.
    assert_eq!((proxied["gateway.misses"], proxied["gateway.hits"]), (11.0, 10.0));
}

#[test]
fn without_keep_alive_each_object_has_a_connection() {
    let alone = load("keep_alive = false", "{}");
    assert_eq!((alone["mobile.connections"], alone["requests_per_connection"]), (21.0, 1.0));
    let kept = load("", "{}");
    assert!(kept["page_load_s"] < alone["page_load_s"]);
}

/// Proxy and server are long rid of the last octets when these are still on their way over the radio link.
#[test]
fn a_proxy_that_closes_after_its_answer_does_not_break_it_off() {
    let slow = load_over(
        "32kbit/s",
        "keep_alive = false\nconnections = 2\nproxy = \"gateway\"\nproxy_connections = 8",
        ADDRESSED,
    );
    assert_eq!((slow["asked_again"], slow["requests_per_connection"]), (0.0, 1.0));
}

#[test]
fn a_browser_that_keeps_small_objects_asks_for_them_once() {
    let kept = load("cache = \"1MB\"\ncache_object = \"2kB\"", "{}");
    // Two small ones in the second and third round.
    assert_eq!((kept["from_cache"], kept["requests_sent"]), (4.0, 17.0));
    let all = load("cache = \"1MB\"", "{}");
    assert_eq!((all["from_cache"], all["requests_sent"]), (10.0, 11.0));
}

/// By default each of them has a name of its own: the second one does not take the first one's Via for its own.
#[test]
fn proxies_behind_each_other_do_not_take_each_other_for_a_circle() {
    for (client, first) in [("http-client", "http-cache"), ("wap-browser", "wap-gateway")] {
        let text = format!(
            r#"
            path = ["mobile", "radio", "first", "core", "second", "internet", "origin"]
            [hosts]
            mobile = {{ app = {{ {client} = {{ server = "origin", pages = [["/1kB", "/2kB"]] }} }} }}
            first = {{ proxy = "{first}" }}
            second = {{ proxy = "http-cache" }}
            origin = {{ app = "http-server" }}
            [links]
            radio = {{ bearer = "wireline", rate = "1Mbit/s", delay = "20ms" }}
            core = {{ bearer = "wireline", rate = "10Mbit/s", delay = "5ms" }}
            internet = {{ bearer = "wireline", rate = "10Mbit/s", delay = "20ms" }}
            "#
        );
        let values = complete(&text);
        let come = (values["second.requests"], values["second.errors"], values["origin.requests"]);
        assert_eq!((values["pages"], values["failed"], come), (1.0, 0.0, (2.0, 0.0, 2.0)), "{first}");
    }
}
