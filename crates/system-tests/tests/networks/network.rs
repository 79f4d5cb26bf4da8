//! Whole networks without a transport: routes, stations, hop limits, sizes, changes of links.

use airloom_base::record::Record;
use airloom_base::{Change, Direction, Duration, LinkState, Summary};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_system_tests::build;
use airloom_world::{Builder, HostId, LinkId, World};
use serde_json::{Value, json};

const WIRE: &str = "wireline";

fn run(mut world: World) -> Summary {
    let outcome = virtual_time::run(&mut world, Until::Elapsed(Duration::from_secs(60)), |_, _| true);
    assert_eq!(outcome, Outcome::Complete);
    world.summary()
}

fn value(summary: &Summary, key: &str) -> f64 {
    *summary.values.get(key).unwrap_or_else(|| panic!("no {key} in {:?}", summary.values))
}

/// mobile[0..n] - radio - gateway - internet - origin
fn chain(mobiles: usize) -> (Builder, Vec<HostId>, LinkId) {
    let mut b = Builder::new(1);
    let mobiles: Vec<HostId> = (0..mobiles).map(|n| b.host(&format!("mobile[{n}]"))).collect();
    let (gateway, origin) = (b.host("gateway"), b.host("origin"));
    for (n, mobile) in mobiles.iter().enumerate() {
        let wire = json!({ "rate": "1Mbit/s", "delay": "10ms" });
        b.link(&format!("radio{n}"), WIRE, &wire, &[*mobile], gateway).unwrap();
    }
    let internet = b.link("internet", WIRE, &json!({ "delay": "20ms" }), &[gateway], origin).unwrap();
    (b, mobiles, internet)
}

#[test]
fn a_ping_takes_the_delays_of_its_way_there_and_back() {
    let (mut b, mobiles, _) = chain(1);
    b.app(mobiles[0], "ping", &json!({ "count": 3, "size": "72B" }), Some("origin")).unwrap();
    let summary = run(b.build().unwrap());
    // 100 octets at 1 Mbit/s take 0.8 ms each way; 30 ms of delay each way.
    assert!((value(&summary, "rtt_min_s") - 0.0616).abs() < 1e-9);
    assert!((value(&summary, "rtt_max_s") - 0.0616).abs() < 1e-9);
}

#[test]
fn mobiles_reach_each_other_through_the_network() {
    let (mut b, mobiles, _) = chain(2);
    b.app(mobiles[0], "ping", &json!({ "count": 1, "server": "mobile[1]", "size": "72B" }), None).unwrap();
    let summary = run(b.build().unwrap());
    assert!((value(&summary, "rtt_min_s") - 2.0 * (2.0 * 0.0108)).abs() < 1e-9);
}

#[test]
fn a_router_of_many_links_answers_at_its_own_addresses_and_passes_on_the_rest() {
    let (mut b, mobiles, _) = chain(9);
    for (mobile, server) in [(0, "gateway"), (7, "gateway"), (8, "mobile[1]")] {
        let ping = json!({ "count": 1, "server": server, "size": "72B" });
        b.app(mobiles[mobile], "ping", &ping, None).unwrap();
    }
    let summary = run(b.build().unwrap());
    for (mobile, links) in [(0, 1.0), (7, 1.0), (8, 2.0)] {
        let rtt = value(&summary, &format!("mobile[{mobile}].rtt_min_s"));
        assert!((rtt - 2.0 * links * 0.0108).abs() < 1e-9, "mobile {mobile}: {rtt}");
    }
}

#[test]
fn a_link_that_is_down_loses_what_is_sent_until_it_is_up_again() {
    let (mut b, mobiles, internet) = chain(1);
    b.app(mobiles[0], "ping", &json!({ "count": 10, "interval": "1s" }), Some("origin")).unwrap();
    b.at(Duration::from_millis(2500), internet, &[], Change::State(LinkState::Down));
    b.at(Duration::from_millis(5500), internet, &[], Change::State(LinkState::Up));
    let summary = run(b.build().unwrap());
    assert_eq!(value(&summary, "lost"), 3.0);
    assert_eq!(value(&summary, "mobile[0].lost"), 3.0);
}

#[test]
fn a_datagram_without_a_way_is_not_sent_and_the_run_goes_on() {
    let (mut b, mobiles, _) = chain(1);
    b.app(mobiles[0], "ping", &json!({ "count": 2, "server": "192.0.2.7" }), None).unwrap();
    let summary = run(b.build().unwrap());
    assert_eq!(value(&summary, "packets"), 0.0, "the sender itself knows no route");
    assert_eq!(value(&summary, "no_route"), 2.0);
}

#[test]
fn a_route_may_lead_to_a_link_of_its_own_over_another_one() {
    let rtt = |to: &str| {
        let text = format!(
            r#"
            [hosts]
            a = {{ app = {{ ping = {{ server = "b", count = 2 }} }}, routes = [{{ to = "{to}", via = "b", link = "slow" }}] }}
            b = {{}}
            [links]
            fast = {{ bearer = "wireline", delay = "1ms", between = ["a", "b"] }}
            slow = {{ bearer = "wireline", delay = "10ms", between = ["a", "b"] }}
            "#
        );
        (value(&run(build(&text)), "rtt_min_s") * 1e3).round()
    };
    assert_eq!(["fast", "b", "10.77.0.0/25", "10.77.0.0/16"].map(rtt), [20.0, 20.0, 20.0, 2.0]);
}

#[test]
fn a_router_answers_whoever_asks_from_behind_the_next_one() {
    let wires =
        ["l1", "l2", "l3"].map(|name| format!("{name} = {{ bearer = \"wireline\", delay = \"10ms\" }}\n"));
    let text = format!(
        "path = [\"a\", \"l1\", \"g1\", \"l2\", \"g2\", \"l3\", \"b\"]\n[hosts]\na = {{}}\ng1 = {{}}\ng2 = {{}}\n\
         b = {{ app = {{ ping = {{ server = \"g1\", count = 3 }} }} }}\n[links]\n{}",
        wires.concat()
    );
    let summary = run(build(&text));
    assert_eq!((value(&summary, "received"), value(&summary, "no_route")), (3.0, 0.0));
}

#[test]
fn what_a_host_counts_is_its_own_whatever_it_is_called() {
    let mut b = Builder::new(1);
    let (host, origin) = (b.host("uplink"), b.host("origin"));
    b.link("radio", WIRE, &json!({}), &[host], origin).unwrap();
    b.app(host, "ping", &json!({ "count": 3, "server": "192.0.2.7" }), None).unwrap();
    let summary = run(b.build().unwrap());
    assert_eq!(value(&summary, "radio.uplink.lost"), 0.0);
    assert_eq!(value(&summary, "uplink.lost"), 3.0);
    assert_eq!(value(&summary, "downlink.lost"), 0.0);
}

#[test]
fn addresses_can_not_be_given_twice() {
    let mut b = Builder::new(1);
    let (one, two) = (b.host("one"), b.host("two"));
    let wire = || airloom_bearers::find(WIRE).unwrap();
    let end = |host| airloom_world::End { host, addresses: vec!["10.9.9.9".parse().unwrap()] };
    let bearer = (wire().build)(&json!({}), &mut b.parts("wire", 1)).unwrap();
    let error = b.link_with("wire", bearer, vec![end(one)], end(two)).unwrap_err();
    assert_eq!(error.to_string(), "link wire: 10.9.9.9 is taken already");
}

#[test]
fn tcp_runs_over_ipv6_through_a_router() {
    let mut b = Builder::new(1);
    let (client, router, server) = (b.host("client"), b.host("router"), b.host("server"));
    let end = |host, address: &str| airloom_world::End { host, addresses: vec![address.parse().unwrap()] };
    for (name, near, far) in [
        ("one", end(client, "fd00:1::2"), end(router, "fd00:1::1")),
        ("two", end(router, "fd00:2::2"), end(server, "fd00:2::1")),
    ] {
        let wire = json!({ "rate": "1Mbit/s", "delay": "10ms" });
        let bearer = (airloom_bearers::find(WIRE).unwrap().build)(&wire, &mut b.parts(name, 1)).unwrap();
        b.link_with(name, bearer, vec![near], far).unwrap();
    }
    for host in [client, server] {
        b.transport(host, "tcp", &json!({})).unwrap();
    }
    b.app(server, "bulk-server", &json!({}), None).unwrap();
    b.app(client, "bulk", &json!({ "size": "100kB" }), Some("server")).unwrap();
    let summary = run(b.build().unwrap());
    assert_eq!(value(&summary, "client.transfers"), 1.0);
    // 1 Mbit/s less 60 octets of headers and 12 of timestamps in each 1500.
    assert!(value(&summary, "goodput_bit_s") < 1e6 * 1428.0 / 1500.0);
    assert!(value(&summary, "goodput_bit_s") > 0.8e6);
}

/// A put of 50 kB by this transport over a link in the middle of which neither end sees that it is narrow.
fn put_through_a_narrow_link(transport: &str, settings: &Value) -> Summary {
    let mut b = Builder::new(1);
    let (client, server) = (b.host("client"), b.host("server"));
    let (one, two) = (b.host("one"), b.host("two"));
    b.link("wide", WIRE, &json!({ "delay": "10ms" }), &[client], one).unwrap();
    b.link("wide too", WIRE, &json!({ "delay": "10ms" }), &[server], two).unwrap();
    b.mtu(576);
    b.link("narrow", WIRE, &json!({ "delay": "10ms" }), &[one], two).unwrap();
    for host in [client, server] {
        b.transport(host, transport, settings).unwrap();
    }
    b.app(server, "bulk-server", &json!({}), None).unwrap();
    b.app(client, "bulk", &json!({ "size": "50kB", "mode": "put" }), Some("server")).unwrap();
    run(b.build().unwrap())
}

#[test]
fn a_datagram_that_a_link_does_not_take_is_answered_with_its_mtu_and_tcp_heeds_it() {
    let summary = put_through_a_narrow_link("tcp", &json!({ "mss": 1460 }));
    assert_eq!(value(&summary, "client.transfers"), 1.0);
    assert!(value(&summary, "segments") > 50_000.0 / 536.0);
    assert!(
        value(&summary, "resent") > 0.0,
        "the first full segment was too big and had to be sent again in pieces"
    );
}

/// What a put of 200 kB by this transport looks like over links of these MTUs: segments, their mean payload, and how many were resent.
fn put_over(transport: &str, mtus: [u16; 2]) -> (f64, f64, f64) {
    let text = format!(
        r#"
        path = ["client", "one", "router", "two", "server"]
        [hosts]
        client = {{ app = {{ bulk = {{ size = "200kB", mode = "put" }} }}, transport = "{transport}" }}
        router = {{}}
        server = {{ app = "bulk-server", transport = "{transport}" }}
        [links]
        one = {{ bearer = "wireline", delay = "10ms", mtu = {} }}
        two = {{ bearer = "wireline", delay = "10ms", mtu = {} }}
        "#,
        mtus[0], mtus[1]
    );
    let summary = run(build(&text));
    assert_eq!(value(&summary, "client.transfers"), 1.0, "{transport} {mtus:?}");
    let segments = value(&summary, "segments");
    (segments, 200_000.0 / segments, value(&summary, "resent"))
}

#[test]
fn tcp_takes_its_segments_from_the_mtu_of_its_link() {
    // Timestamps take 12 octets of each segment; a few more open, acknowledge and close.
    for (mtu, payload) in [(576, 524.0), (1500, 1448.0), (2088, 2036.0), (9000, 8948.0)] {
        let (segments, ..) = put_over("tcp", [mtu, mtu]);
        let expected = (200_000.0f64 / payload).ceil();
        assert!((expected..=expected + 12.0).contains(&segments), "{mtu}: {segments} for {expected}");
    }
    // The server announces what its own link takes: nothing too large is ever sent, whichever is the wider link.
    for mtus in [[2088, 576], [576, 2088]] {
        let (segments, _, resent) = put_over("tcp", mtus);
        assert!((382.0..=394.0).contains(&segments) && resent == 0.0, "{mtus:?}: {segments}, {resent}");
    }
}

#[test]
fn sctp_and_wwp_fill_the_datagrams_of_their_link_too() {
    for transport in ["sctp", "wwp"] {
        let [narrow, usual, wide] = [576, 1500, 2088].map(|mtu| put_over(transport, [mtu, mtu]).0);
        // WWP sends segments of its own `segment`, where they fit.
        let least = if transport == "wwp" { 1.0 } else { 1.35 };
        assert!(narrow > 1.8 * usual && usual >= least * wide, "{transport}: {narrow} {usual} {wide}");
    }
    // SCTP cannot cut a chunk again that it has numbered (RFC 9260, 6.9), and nobody makes IP fragments here.
    put_over("wwp", [2088, 576]);
}

#[test]
fn quic_fills_the_datagrams_of_its_link_whether_it_finds_out_or_begins_with_them() {
    let begins = "initial_datagram = 9000, mtu_discovery = false";
    for (mtu, settings) in [(1500, ""), (9000, ""), (9000, begins)] {
        let text = format!(
            r#"
            path = ["client", "wire", "server"]
            [hosts]
            client = {{ app = {{ bulk = {{ size = "10MB" }} }}, transport = {{ quic = {{ {settings} }} }} }}
            server = {{ app = "bulk-server", transport = {{ quic = {{ {settings} }} }} }}
            [links]
            wire = {{ bearer = "wireline", rate = "100Mbit/s", delay = "5ms", mtu = {mtu} }}
            "#
        );
        let mut world = build(&text);
        world.records().ask(|_| (true, false));
        let mut largest = 0;
        let limit = Duration::from_secs(60);
        let outcome = virtual_time::run(&mut world, Until::Done { limit }, |_, records| {
            largest = records.packets.iter().map(|row| row.facts.len).fold(largest, u32::max);
            true
        });
        assert_eq!((outcome, largest), (Outcome::Complete, mtu), "{settings}");
    }
}

#[test]
fn wwp_sends_in_pieces_what_the_path_does_not_take_with_ports_and_without() {
    for ports in [true, false] {
        let summary = put_through_a_narrow_link("wwp", &json!({ "ports": ports }));
        assert_eq!((value(&summary, "client.transfers"), value(&summary, "bytes")), (1.0, 50_000.0));
        assert!(value(&summary, "segments") > 50_000.0 / 550.0);
        // The first wave, of twelve, was too big and went out again in pieces; nothing after it was.
        assert!((1.0..=12.0).contains(&value(&summary, "resent")), "{}", value(&summary, "resent"));
    }
}

#[test]
fn what_is_planned_for_the_beginning_holds_before_anybody_sends() {
    let (mut b, mobiles, _) = chain(1);
    b.app(mobiles[0], "ping", &json!({ "count": 2, "server": "gateway" }), None).unwrap();
    b.at(Duration::ZERO, LinkId(0), &[], Change::Loss(Some(Direction::Uplink), 1.0));
    b.at(Duration::from_millis(500), LinkId(0), &[], Change::Loss(None, 0.0));
    let summary = run(b.build().unwrap());
    assert_eq!((value(&summary, "received"), value(&summary, "mobile[0].lost")), (1.0, 1.0));
}

#[test]
fn two_applications_can_not_listen_on_one_port() {
    let (mut b, mobiles, _) = chain(1);
    b.app(mobiles[0], "http-server", &json!({}), None).unwrap();
    let error = b.app(mobiles[0], "http-server", &json!({}), None).unwrap_err();
    assert!(error.to_string().contains("listens on port 80 already"), "{error}");
    b.app(mobiles[0], "http-server", &json!({ "port": 8080 }), None).unwrap();
}

#[test]
fn two_applications_of_a_host_draw_random_numbers_of_their_own() {
    let (mut b, mobiles, _) = chain(1);
    for host in [mobiles[0], HostId(2)] {
        b.transport(host, "tcp", &json!({})).unwrap();
    }
    b.app(HostId(2), "bulk-server", &json!({}), None).unwrap();
    for _ in 0..2 {
        b.app(mobiles[0], "bulk", &json!({ "size": "1kB", "spread": "10s" }), Some("origin")).unwrap();
    }
    b.records().ask_facts(true, false);
    let mut world = b.build().unwrap();
    let mut starts = Vec::new();
    virtual_time::run(&mut world, Until::Elapsed(Duration::from_secs(30)), |_, records| {
        starts.extend(records.facts.iter().filter_map(|r| match r {
            Record::Flow(flow) if flow.opener => Some(flow.open),
            _ => None,
        }));
        true
    });
    assert_eq!(starts.len(), 2);
    assert_ne!(starts[0], starts[1]);
}

#[test]
fn a_host_can_talk_to_itself() {
    let (mut b, mobiles, _) = chain(1);
    b.transport(mobiles[0], "tcp", &json!({})).unwrap();
    b.app(mobiles[0], "bulk-server", &json!({}), None).unwrap();
    b.app(mobiles[0], "bulk", &json!({ "size": "10MB" }), Some("mobile[0]")).unwrap();
    b.app(mobiles[0], "ping", &json!({ "count": 2 }), Some("mobile[0]")).unwrap();
    let summary = run(b.build().unwrap());
    assert_eq!((value(&summary, "transfers"), value(&summary, "received")), (1.0, 2.0));
    assert_eq!(value(&summary, "malformed"), 0.0);
}

#[test]
fn what_several_applications_of_a_host_count_is_told_apart() {
    let (mut b, mobiles, _) = chain(1);
    b.app(mobiles[0], "ping", &json!({ "count": 1 }), Some("gateway")).unwrap();
    b.app(mobiles[0], "ping", &json!({ "count": 2 }), Some("origin")).unwrap();
    let summary = run(b.build().unwrap());
    let received = [0, 1].map(|n| value(&summary, &format!("mobile[0].app[{n}].received")));
    assert_eq!(received, [1.0, 2.0]);
    assert!(!summary.values.contains_key("mobile[0].received"));
}

#[test]
fn a_datagram_larger_than_the_senders_own_link_takes_is_refused_and_counted() {
    let (mut b, mobiles, _) = chain(1);
    b.app(mobiles[0], "ping", &json!({ "count": 2, "size": "2000B" }), Some("origin")).unwrap();
    let summary = run(b.build().unwrap());
    assert_eq!((value(&summary, "received"), value(&summary, "too_big")), (0.0, 2.0));
    assert_eq!(value(&summary, "packets"), 0.0);
}
