//! What good files mean.

use std::net::{IpAddr, Ipv4Addr};

use airloom_base::units::Rate;
use airloom_base::{Change, ConfigError, Direction, Duration, LinkState};
use serde_json::json;

use super::super::{Destination, Document, RecordKind, Scenario, Until};
use super::{CHAIN, GRAPH, fakes, parse, with};
use crate::builder::{BuildError, Part};

fn names(scenario: &Scenario) -> Vec<&str> {
    scenario.hosts.iter().map(|h| h.name.as_str()).collect()
}

#[test]
fn the_short_form_is_a_chain_of_hosts_and_links() {
    let s = parse(CHAIN).unwrap();
    assert_eq!(s.title, "A page over a cell");
    assert_eq!(names(&s), ["mobile", "gateway", "origin"]);
    let ends: Vec<_> = s.links.iter().map(|l| (l.name.as_str(), l.near[0].host, l.far.host)).collect();
    assert_eq!(ends, [("radio", 0, 1), ("internet", 1, 2)]);
    assert_eq!(s.links[0].bearer.name, "cell");
    assert_eq!(
        s.links[0].bearer.config,
        json!({
            "rate": { "uplink": "128kbit/s", "downlink": "256kbit/s" },
            "loss": { "per": "pdu", "uplink": 0.0, "downlink": 0.2 },
            "window": u64::MAX,
            "trace": null,
        })
    );
    let mobile = &s.hosts[0].settings;
    assert_eq!(mobile.apps[0].name, "fetch");
    assert_eq!(mobile.apps[0].config["http"], "1.1");
    assert_eq!(mobile.transports[0].config, json!({ "profile": "linux" }));
    assert_eq!(s.hosts[1].settings.proxy.as_ref().unwrap().name, "split-tcp");
    assert_eq!(s.hosts[1].settings.transports[0].name, "tcp", "the default");
    assert_eq!(s.hosts.iter().map(|h| h.forwards).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(s.run.until, Until::Done);
    assert_eq!(s.run.seed, 7);
    assert_eq!(s.run.limit, Duration::from_secs(3600));
    assert!(s.run.records(RecordKind::Pcapng) && !s.run.records(RecordKind::Packets));
}

#[test]
fn the_timeline_names_links_members_and_changes() {
    let s = parse(CHAIN).unwrap();
    assert_eq!(s.timeline[0].at, Duration::from_secs(5));
    assert_eq!((s.timeline[0].link, s.timeline[0].part.as_slice()), (0, [].as_slice()));
    assert_eq!(s.timeline[0].changes, [Change::State(LinkState::Down)]);
    assert_eq!((s.timeline[1].link, s.timeline[1].part.as_slice()), (1, [3].as_slice()));
    assert_eq!(
        s.timeline[1].changes,
        [
            Change::Rate(Some(Direction::Uplink), Rate::kbit(64)),
            Change::Delay(None, Duration::from_millis(1)),
            Change::Loss(None, 0.05),
        ]
    );
}

#[test]
fn a_count_makes_numbered_hosts_that_are_stations_of_their_link() {
    let s = parse(GRAPH).unwrap();
    assert_eq!(names(&s), ["mobile[0]", "mobile[1]", "mobile[2]", "laptop", "gateway", "origin"]);
    assert_eq!(s.links[0].near.iter().map(|i| i.host).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(s.links[0].far.host, 4);
    assert_eq!(s.hosts.iter().map(|h| h.real).collect::<Vec<_>>(), [false, true, false, false, false, true]);
    assert!(!s.hosts[3].forwards && s.hosts[4].forwards);
    assert_eq!(s.hosts[0].settings.apps.len(), 2);
    assert_eq!(s.hosts[0].settings.command.as_ref().unwrap()[0], "curl");
}

#[test]
fn a_group_is_the_mobile_side_wherever_it_is_named() {
    let text = |between: &str| {
        format!(
            "[hosts]\nc = {{ count = 2 }}\nr = {{}}\n[links]\nl = {{ bearer = \"cell\", between = {between} }}\n"
        )
    };
    for between in [r#"["c", "r"]"#, r#"["r", "c"]"#, r#"["c[0]", "c[1]", "r"]"#] {
        let s = parse(&text(between)).unwrap();
        assert_eq!(s.links[0].near.iter().map(|i| i.host).collect::<Vec<_>>(), [0, 1], "{between}");
        assert_eq!(s.links[0].far.host, 2, "{between}");
    }
}

#[test]
fn of_two_groups_of_one_the_last_named_is_the_far_end() {
    for (counts, between, far) in [
        ((1, 1), r#"["c", "r"]"#, "r[0]"),
        ((1, 1), r#"["r", "c"]"#, "c[0]"),
        ((2, 1), r#"["r", "c"]"#, "r[0]"),
        ((1, 2), r#"["c", "r"]"#, "c[0]"),
    ] {
        let (c, r) = counts;
        let text = format!(
            "[hosts]\nc = {{ count = {c} }}\nr = {{ count = {r} }}\n[links]\nl = {{ bearer = \"cell\", between = {between} }}\n"
        );
        let s = parse(&text).unwrap();
        assert_eq!(s.hosts[s.links[0].far.host].name, far, "{counts:?} {between}");
    }
}

#[test]
fn addresses_follow_the_rule_where_none_are_given() {
    let s = parse(CHAIN).unwrap();
    let v4 = |l: usize| (s.links[l].near[0].ipv4.to_string(), s.links[l].far.ipv4.to_string());
    assert_eq!(v4(0), ("10.77.0.2".into(), "10.77.0.1".into()));
    assert_eq!(v4(1), ("10.77.1.2".into(), "10.77.1.1".into()));
    assert_eq!(s.links[1].far.ipv6.to_string(), "fd00:77:0:1::1");
    assert_eq!(s.links[1].near[0].ipv6.to_string(), "fd00:77:0:1::2");
    assert_eq!(s.links[0].subnet.to_string(), "10.77.0.0/24");
}

#[test]
fn given_networks_and_addresses_are_used_and_avoided() {
    let s = parse(GRAPH).unwrap();
    let lan = &s.links[1];
    assert_eq!(
        (lan.near[0].ipv4, lan.far.ipv4),
        (Ipv4Addr::new(192, 168, 1, 100), Ipv4Addr::new(192, 168, 1, 1))
    );
    assert_eq!(lan.far.ipv6.to_string(), "fd00:77:0:1::ff");
    assert_eq!(lan.near[0].ipv6.to_string(), "fd00:77:0:1::1", "the first free number");
    assert_eq!(s.links[2].far.ipv6.to_string(), "2001:db8::1");
    let taken = "[hosts]\na = {}\nb = {}\n[links]
        one = { bearer = \"cell\", between = [\"a\", \"b\"] }
        two = { bearer = \"cell\", between = [\"a\", \"b\"], subnet = \"10.77.0.0/16\", subnet6 = \"fd00:77::/64\" }";
    let s = parse(taken).unwrap();
    assert_eq!(s.links[0].subnet.to_string(), "10.78.0.0/24");
    assert_eq!(s.links[0].subnet6.to_string(), "fd00:77:0:1::/64");
}

#[test]
fn a_large_cell_gets_a_network_that_holds_it() {
    let text = "[hosts]\nm = { count = 1000 }\nb = {}\nc = {}\n[links]
        up = { bearer = \"cell\", between = [\"b\", \"c\"] }
        cell = { bearer = \"cell\", between = [\"m\", \"b\"] }";
    let s = parse(text).unwrap();
    assert_eq!(s.links[1].subnet.to_string(), "10.77.4.0/22");
    let mut all: Vec<IpAddr> =
        s.links.iter().flat_map(|l| l.interfaces()).flat_map(|i| [i.ipv4.into(), i.ipv6.into()]).collect();
    assert_eq!(all.len(), 2 * 1003);
    for link in &s.links {
        assert!(link.interfaces().all(|i| link.subnet.contains(i.ipv4.into())));
        assert!(link.interfaces().all(|i| link.subnet6.contains(i.ipv6.into())));
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2 * 1003, "no address twice");
}

#[test]
fn routes_name_hosts_links_networks_and_everything() {
    let text = |to: &str| {
        format!(
            "[hosts]\na = {{ routes = [{{ to = \"{to}\", via = \"b\" }}] }}\nb = {{}}\nc = {{ count = 2 }}\n[links]
             one = {{ bearer = \"cell\", between = [\"a\", \"b\"] }}
             two = {{ bearer = \"cell\", between = [\"b\", \"c\"] }}"
        )
    };
    let to = |word: &str| -> Vec<String> {
        let s = parse(&text(word)).unwrap();
        assert!(s.hosts[0].routes.iter().all(|r| r.via == 1 && r.link == 0));
        let shown = |d: &Destination| match d {
            Destination::Host(h) => s.hosts[*h].name.clone(),
            Destination::Link(l) => s.links[*l].name.clone(),
            Destination::Prefix(p) => p.to_string(),
        };
        s.hosts[0].routes.iter().map(|r| shown(&r.to)).collect()
    };
    assert_eq!(to("c"), ["c[0]", "c[1]"]);
    assert_eq!(to("c[1]"), ["c[1]"]);
    assert_eq!(to("two"), ["two"]);
    assert_eq!(to("10.1.0.0/16"), ["10.1.0.0/16"]);
    assert_eq!(to("fd00::1"), ["fd00::1/128"]);
    assert_eq!(to("default"), ["0.0.0.0/0", "::/0"]);
}

#[test]
fn the_scenario_as_understood_reads_back_as_the_same_scenario() {
    for text in [CHAIN, GRAPH] {
        let first = parse(text).unwrap();
        let json = first.to_json().to_string();
        let second = Document::read("run.json", json.as_bytes()).unwrap().scenario(&fakes()).unwrap();
        assert_eq!(first, second);
        assert_eq!(json, second.to_json().to_string());
        assert_eq!(first.run_id("virtual", "1"), second.run_id("virtual", "1"));
    }
}

#[test]
fn a_route_of_a_group_keeps_its_link_where_another_route_takes_a_link_of_each_member() {
    let text = r#"
        [hosts]
        m = { count = 2, routes = [{ to = "o", via = "g", link = "slow" }, { to = "x", via = "h" }] }
        g = {}
        h = {}
        o = {}
        x = {}
        [links]
        fast = { bearer = "cell", between = ["m", "g"] }
        slow = { bearer = "cell", between = ["m", "g"] }
        first = { bearer = "cell", between = ["m[0]", "h"] }
        second = { bearer = "cell", between = ["m[1]", "h"] }
        out = { bearer = "cell", between = ["g", "o"] }
        other = { bearer = "cell", between = ["h", "x"] }"#;
    let s = parse(text).unwrap();
    assert_eq!(
        s.hosts[1].routes.iter().map(|r| s.links[r.link].name.as_str()).collect::<Vec<_>>(),
        ["slow", "second"]
    );
    assert_eq!(parse(&s.to_json().to_string()).unwrap(), s);
}

#[test]
fn a_host_may_have_several_transports_and_the_first_leads() {
    let text = GRAPH.replace("forward = false", r#"transport = ["wsp", { tcp = { profile = "linux" } }]"#);
    let s = parse(&text).unwrap();
    let json = s.to_json().to_string();
    assert_eq!(s, Document::read("run.json", json.as_bytes()).unwrap().scenario(&fakes()).unwrap());
    let laptop = &s.hosts[3].settings;
    assert_eq!(laptop.transports.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["wsp", "tcp"]);
    assert_eq!(laptop.transports[1].config, json!({ "profile": "linux" }));
    // One is written as it always was, so that names of runs stay what they are.
    assert_eq!(s.to_json()["hosts"]["gateway"]["transport"], json!({ "tcp": { "profile": "rfc" } }));
}

#[test]
fn a_key_that_is_twice_in_json_is_refused_as_in_toml() {
    let json = parse(CHAIN).unwrap().to_json().to_string();
    assert_eq!(parse(&json), parse(CHAIN));
    let twice = json.replacen("{\"", "{ \"seed\": 1,\n\"seed\": 2, \"", 1);
    assert_eq!(parse(&twice).unwrap_err().to_string(), "s.toml:2:6: `seed` is here twice");
    let inside = json.replacen("\"gateway\":", "\"gateway\":{},\n\"\\u0067ateway\":", 1);
    assert_ne!(inside, json);
    assert_eq!(parse(&inside).unwrap_err().to_string(), "s.toml:2:14: `gateway` is here twice");
    assert_eq!(parse("{ 1").unwrap_err().to_string(), "s.toml:1:3: not JSON: key must be a string");
}

#[test]
fn a_byte_order_mark_and_other_line_ends_change_nothing() {
    let other = format!("\u{feff}{}", CHAIN.replace('\n', "\r\n"));
    assert_eq!(parse(&other).unwrap(), parse(CHAIN).unwrap());
    let json = format!("\u{feff}\n {}", parse(CHAIN).unwrap().to_json());
    assert_eq!(parse(&json).unwrap(), parse(CHAIN).unwrap());
}

#[test]
fn a_number_is_read_as_it_was_written() {
    // To the last digit: a reader that is off by one there makes another run of the same scenario.
    let written = 1.650_000_000_000_000_1_f64;
    assert_eq!(serde_json::from_str::<f64>(&serde_json::to_string(&written).unwrap()).unwrap(), written);
}

#[test]
fn a_seed_has_64_bits() {
    let s = with(CHAIN, &[("run.seed", "18446744073709551615")]).unwrap();
    assert_eq!(s.run.seed, u64::MAX);
    let json = s.to_json().to_string();
    assert_eq!(Document::read("run.json", json.as_bytes()).unwrap().scenario(&fakes()).unwrap(), s);
    assert!(with(CHAIN, &[("run.seed", "18446744073709551616")]).is_err());
}

#[test]
fn a_run_id_follows_from_scenario_seed_version_and_clock() {
    let s = parse(CHAIN).unwrap();
    let id = s.run_id("virtual", "0.1.0");
    assert_eq!(id.len(), 10);
    assert!(id.bytes().all(|b| b.is_ascii_hexdigit()));
    assert_eq!(
        id,
        parse(&CHAIN.replace("seed = 7", "seed = 0x7 # the same")).unwrap().run_id("virtual", "0.1.0")
    );
    assert_ne!(id, s.run_id("real", "0.1.0"));
    assert_ne!(id, s.run_id("virtual", "0.1.1"));
    let other = with(CHAIN, &[("run.seed", "8")]).unwrap();
    assert_ne!(id, other.run_id("virtual", "0.1.0"));
    let with_any_seed = s.identity("virtual", "0.1.0");
    assert_eq!([7, 8].map(|seed| with_any_seed.run_id(seed)), [id.clone(), other.run_id("virtual", "0.1.0")]);

    use sha2::{Digest, Sha256};
    let inputs = json!([s.to_json(), 7, "0.1.0", "virtual"]).to_string();
    let hash: String = Sha256::digest(inputs).iter().map(|octet| format!("{octet:02x}")).collect();
    assert_eq!(id, hash[..10]);
}

#[test]
fn a_set_changes_values_and_opens_short_forms() {
    let sets = [
        ("links.radio.loss.downlink", "0.5"),
        ("links.internet.rate.uplink", "1Mbit/s"),
        ("hosts.origin.app.http-server", "{}"),
        ("hosts.mobile.app.fetch.objects.0.size", "20kB"),
        ("hosts.mobile.app.fetch.http", "1.0"),
        ("hosts.gateway.proxy", "none"),
        ("run.record", "[\"packets\"]"),
        ("run.until", "30s"),
        ("timeline.1.set.rate.downlink", "1kbit/s"),
    ];
    let s = with(CHAIN, &sets).unwrap();
    assert_eq!(s.links[0].bearer.config["loss"], json!({ "per": "pdu", "uplink": 0.0, "downlink": 0.5 }));
    assert_eq!(s.links[1].bearer.config["rate"], json!({ "uplink": "1Mbit/s", "downlink": "10Mbit/s" }));
    assert_eq!(s.hosts[0].settings.apps[0].config["objects"], json!([{ "size": "20kB" }]));
    assert_eq!(s.hosts[0].settings.apps[0].config["http"], "1.0", "text, because the key wants text");
    assert_eq!(s.hosts[1].settings.proxy, None);
    assert_eq!(s.run.record, [RecordKind::Packets]);
    assert_eq!(s.run.until, Until::After(Duration::from_secs(30)));
    assert_eq!(s.timeline[1].changes[1], Change::Rate(Some(Direction::Downlink), Rate::kbit(1)));
}

#[test]
fn events_of_connections_bring_the_tables_that_those_of_other_layers_are_made_of() {
    let record = |kinds: &str| with(CHAIN, &[("run.record", kinds)]).unwrap().run.record;
    assert_eq!(record("qlog"), [RecordKind::Qlog, RecordKind::Packets, RecordKind::Congestion]);
    let all = [RecordKind::Packets, RecordKind::Qlog, RecordKind::Congestion];
    assert_eq!(record("[\"packets\", \"qlog\"]"), all);
    assert_eq!(
        record("[\"packets\", \"qlog\", \"congestion\"]"),
        all,
        "what is understood means the same again"
    );
}

#[test]
fn a_set_opens_the_short_form_of_one_of_several() {
    let several = CHAIN.replace(
        "app = \"http-server\", transport = \"tcp\"",
        "app = [\"http-server\", \"fetch\"], transport = [\"tcp\", \"wsp\"]",
    );
    let sets = [("hosts.origin.app.1.fetch.size", "3kB"), ("hosts.origin.transport.0.tcp.profile", "linux")];
    let s = with(&several, &sets).unwrap();
    let settings = &s.hosts[2].settings;
    assert_eq!(settings.apps[1].config["size"], "3kB");
    assert_eq!(settings.transports[0].config["profile"], "linux");
    let wrong = with(&several, &[("hosts.origin.app.1.ping.count", "3")]).unwrap_err().to_string();
    assert!(wrong.ends_with("hosts.origin.app.1 is the text `fetch`, which has no `ping`"), "{wrong}");
}

#[test]
fn setting_one_direction_keeps_the_default_of_the_other() {
    let s =
        with(GRAPH, &[("links.radio.rate.downlink", "2Mbit/s"), ("links.lan.delay.uplink", "3ms")]).unwrap();
    assert_eq!(s.links[0].bearer.config["rate"], json!({ "uplink": "64kbit/s", "downlink": "2Mbit/s" }));
    assert_eq!(s.links[1].bearer.config["delay"], json!({ "uplink": "3ms", "downlink": "0s" }));
}

#[test]
fn a_link_may_be_just_the_name_of_its_bearer() {
    let text = "path = [\"a\", \"l\", \"b\"]\nhosts = { a = {}, b = {} }\nlinks = { l = \"cell\" }\n";
    assert_eq!(parse(text).unwrap().links[0].bearer.name, "cell");
    let s = with(text, &[("links.l.window", "9")]).unwrap();
    assert_eq!(s.links[0].bearer.config["window"], 9);
}

#[test]
fn real_hosts_can_be_named_on_the_command_line() {
    let real = |hosts: &[&str]| {
        let mut document = Document::read("s.toml", GRAPH.as_bytes()).unwrap();
        for host in hosts {
            document.set_real(host).unwrap();
        }
        let s = document.scenario(&fakes()).unwrap();
        s.hosts.iter().filter(|h| h.real).map(|h| h.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(real(&["laptop"]), ["mobile[1]", "laptop", "origin"]);
    assert_eq!(real(&["mobile[2]"]), ["mobile[1]", "mobile[2]", "origin"]);
    assert_eq!(real(&["mobile"]), ["mobile[0]", "mobile[1]", "mobile[2]", "origin"]);
    assert_eq!(real(&["mobile", "mobile[0]"]), ["mobile[0]", "mobile[1]", "mobile[2]", "origin"]);
}

#[test]
fn a_star_in_a_key_stands_for_all_names_that_are_there() {
    let mtus = |settings: &[(&str, &str)]| {
        let s = with(CHAIN, settings).unwrap();
        let again = parse(&s.to_json().to_string()).unwrap();
        assert_eq!(again, s);
        s.links.iter().map(|link| link.mtu).collect::<Vec<_>>()
    };
    assert_eq!(mtus(&[]), [1500, 1500]);
    assert_eq!(mtus(&[("links.*.mtu", "2088")]), [2088, 2088]);
    assert_eq!(mtus(&[("links.*.mtu", "2088"), ("links.rad*.mtu", "576")]), [576, 2088]);
    let s = with(CHAIN, &[("hosts.*.app", "[\"fetch\"]"), ("timeline.*.at", "7s")]).unwrap();
    assert!(s.hosts.iter().all(|host| host.settings.apps[0].name == "fetch"));
    assert!(s.timeline.iter().all(|entry| entry.at == Duration::from_secs(7)));
    // A value that could be a number is tried as text in each place.
    let s = with(CHAIN, &[("hosts.*.app", "{ fetch = {} }"), ("hosts.*.app.fetch.http", "1.1")]).unwrap();
    assert!(s.hosts.iter().all(|host| host.settings.apps[0].config["http"] == "1.1"));
}

#[test]
fn a_link_too_narrow_for_ipv6_has_none() {
    for (mtu, families) in [("1279", 1), ("1280", 2)] {
        let s = with(CHAIN, &[("links.radio.mtu", mtu)]).unwrap();
        let link = &s.links[0];
        assert!(link.interfaces().all(|end| link.addresses(end).len() == families), "{mtu}");
    }
}

#[test]
fn a_bearer_alone_becomes_a_real_mobile_and_a_simulated_server() {
    let settings =
        [("window".to_owned(), "12".to_owned()), ("rate.downlink".to_owned(), "1Mbit/s".to_owned())];
    let s = Document::for_bearer(&fakes(), "cell", &settings).unwrap().scenario(&fakes()).unwrap();
    assert_eq!(names(&s), ["mobile", "origin"]);
    assert!(s.hosts[0].real && !s.hosts[1].real);
    assert_eq!(s.links[0].far.ipv4, Ipv4Addr::new(10, 77, 0, 1));
    assert_eq!(s.hosts[s.links[0].far.host].settings.apps[0].name, "http-server");
    assert_eq!(s.links[0].bearer.config["window"], 12);
    assert_eq!(s.links[0].bearer.config["rate"], json!({ "uplink": "64kbit/s", "downlink": "1Mbit/s" }));
}

#[test]
fn a_fault_found_later_is_still_shown_with_its_line() {
    let document = Document::read("s.toml", CHAIN.as_bytes()).unwrap();
    let error = document.error(&["timeline", "[1]", "set", "loss"], "this bearer has no loss");
    assert_eq!(error.to_string(), "s.toml:27:63: timeline[1].set.loss: this bearer has no loss");
    let error = document.error(&["hosts", "mobile", "app", "fetch", "server"], "there is no host `x`");
    assert_eq!(error.to_string(), "s.toml:6:28: hosts.mobile.app.fetch: there is no host `x`");
}

#[test]
fn points_are_chosen_by_pattern() {
    let s = with(CHAIN, &[("run.points", "[\"*.ip\", \"radio.rlc.*\"]")]).unwrap();
    assert!(s.run.wants_point("gateway.radio.ip"));
    assert!(s.run.wants_point("radio.rlc.dl.tx"));
    assert!(!s.run.wants_point("radio.mac.dl.tx"));
    assert!(parse(CHAIN).unwrap().run.wants_point("anything"));
}

#[test]
fn the_limit_grows_with_a_run_that_is_asked_to_be_longer() {
    let s = with(CHAIN, &[("run.until", "2h")]).unwrap();
    assert_eq!(s.run.limit, Duration::from_secs(7200));
}

#[test]
fn a_fault_of_a_component_when_it_is_built_is_shown_with_its_line() {
    let said = |component: &str, part: Option<Part>, path: &[&str]| {
        let path = path.iter().map(|s| (*s).to_owned()).collect();
        let error = ConfigError { path, message: "no".into() };
        let fault = BuildError { component: component.into(), part, error };
        Document::read("s.toml", GRAPH.replace("size = \"1MB\"", "size = \"1MB\", server = \"x\"").as_bytes())
            .unwrap()
            .explain(&fault)
            .to_string()
    };
    assert_eq!(
        said("host mobile[2]", Some(Part::App(1)), &["server"]),
        "s.toml:5:52: hosts.mobile.app[1].fetch.server: no"
    );
    let default = said("hosts.mobile[2]", Some(Part::App(1)), &["http"]);
    assert_eq!(default, "s.toml:5:27: hosts.mobile.app[1].fetch: no");
    assert_eq!(
        said("host mobile[2]", Some(Part::App(0)), &["server"]),
        "s.toml:5:8: hosts.mobile.app[0]: no"
    );
    assert_eq!(
        said("host gateway", Some(Part::Transport(0)), &["transport"]),
        "s.toml:12:1: hosts.gateway: no"
    );
    assert_eq!(said("links.radio", None, &[]), "s.toml:19:1: links.radio: no");
    assert_eq!(said("link lan", None, &["rate", "uplink"]), "s.toml:25:8: links.lan.rate: no");
}
