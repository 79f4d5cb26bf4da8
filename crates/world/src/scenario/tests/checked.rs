//! With the real registries: what only building finds, and what every entry owes the scenario file.

use serde_json::json;

use super::super::links::LINK_KEYS;
use super::super::{Document, Known, Registries, ScenarioError};

fn check(text: &str) -> Result<(), ScenarioError> {
    Document::read("s.toml", text.as_bytes())?.check().map(|_| ())
}

const GOOD: &str = r#"
path = ["a", "wire", "b"]
[hosts]
a = { app = [{ ping = { server = "b" } }, { bulk = { size = "1kB" } }], transport = { tcp = {} } }
b = { app = "bulk-server" }
[links.wire]
bearer = "wireline"
rate = "1Mbit/s"
[[timeline]]
at = "2s"
target = "wire"
set = { loss = 0.1, rate = { downlink = "5kbit/s" } }
"#;

#[test]
fn what_only_building_finds_is_said_with_its_line() {
    check(GOOD).unwrap();
    for (good, bad, expected) in [
        ("server = \"b\"", "server = \"c\"", "s.toml:4:34: hosts.a.app[0].ping.server: there is no host `c`"),
        (
            "a = { app",
            "a = { count = 2, app",
            "s.toml:6:1: links.wire: it has two ends, and is no cell of stations",
        ),
        (
            "[[timeline]]",
            "[run]\npoints = [\"a.*\", \"b.wire.ipp\"]\n[[timeline]]",
            "s.toml:10:18: run.points[1]: unknown observation point `b.wire.ipp` (did you mean `b.wire.ip`?); \
             valid: wire.queue.ul.tx, wire.queue.dl.tx, a.wire.ip, b.wire.ip",
        ),
        (
            "target = \"wire\"",
            "target = \"wire.member.2\"",
            "s.toml:12:16: timeline[0].set.loss: it has no members",
        ),
    ] {
        let text = GOOD.replacen(good, bad, 1);
        assert_ne!(text, GOOD);
        assert_eq!(check(&text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn what_only_building_finds_is_said_of_the_component_that_has_it() {
    for (host, expected) in [
        (
            "app = [{ ping = { server = \"b\" } }, { bulk = { server = \"no\" } }]",
            "hosts.a.app[1].bulk.server: there is no host `no`",
        ),
        (
            "app = [\"ping\", { bulk = {}, ping = { server = \"no\" } }]",
            "hosts.a.app[1].ping.server: there is no host `no`",
        ),
        (
            "app = { bulk = { server = \"b\" }, ping = { server = \"no\" } }",
            "hosts.a.app.ping.server: there is no host `no`",
        ),
        (
            "app = { ping = { server = \"b\" } }, proxy = { split-tcp = { mode = \"addressed\", server = \"no\" } }",
            "hosts.a.proxy.split-tcp.server: ",
        ),
    ] {
        let text = GOOD.lines().map(|line| match line.strip_prefix("a = ") {
            Some(_) => format!("a = {{ {host} }}\n"),
            None => format!("{line}\n"),
        });
        let error = check(&text.collect::<String>()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn options_are_checked_by_building_too() {
    let mut document = Document::read("s.toml", GOOD.as_bytes()).unwrap();
    document.set(&Registries::built_in(), "hosts.a.app.0.ping.server", "nowhere").unwrap();
    assert_eq!(
        document.check().unwrap_err().to_string(),
        "--set hosts.a.app.0.ping.server=nowhere: hosts.a.app[0].ping.server: there is no host `nowhere`"
    );
}

fn everything() -> Vec<Known> {
    let Registries { bearers, transports, apps, proxies } = Registries::built_in();
    [bearers, transports, apps, proxies].concat()
}

#[test]
fn a_table_as_understood_is_understood_as_itself() {
    let mut count = 0;
    for known in everything() {
        // A component with a key that must be given is tested where it is.
        let Ok(once) = (known.understood)(&json!({})) else { continue };
        assert_eq!((known.understood)(&once), Ok(once.clone()), "{}", known.name);
        count += 1;
    }
    assert!(count > 5, "{count} components have defaults");
}

#[test]
fn what_was_given_is_understood_as_the_whole_table() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/airloom/scenarios");
    let all = everything();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let s = Document::read("s.toml", &std::fs::read(&path).unwrap()).unwrap().check().unwrap();
        let settings = s.hosts.iter().map(|host| &host.settings);
        let of_hosts = settings.flat_map(|s| s.transports.iter().chain(&s.apps).chain(&s.proxy));
        for part in of_hosts.chain(s.links.iter().map(|link| &link.bearer)) {
            let known = all.iter().find(|known| known.name == part.name).unwrap();
            assert_eq!((known.understood)(&part.given), Ok(part.config.clone()), "{path:?}: {}", part.name);
            count += 1;
        }
    }
    assert!(count > 50, "{count} parts");
}

#[test]
fn a_file_is_read_once() {
    let file = std::env::temp_dir().join(format!("airloom-read-once-{}", std::process::id()));
    std::fs::write(&file, "1\n2\n").unwrap();
    let text = format!(
        "path = [\"a\", \"l\", \"b\"]\n[hosts]\na = {{ app = \"ping\" }}\nb = {{}}\n\
         [links.l]\nbearer = \"trace\"\nup = \"{}\"\n",
        file.display()
    );
    let s = Document::read("s.toml", text.as_bytes()).unwrap().check().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(s.build(false).is_ok(), "a run needs the file no more");
}

#[test]
fn no_bearer_has_a_key_that_belongs_to_links() {
    for bearer in Registries::built_in().bearers {
        let schema = (bearer.schema)().to_value();
        for key in LINK_KEYS {
            assert!(schema["properties"].get(key).is_none(), "`{key}` of {}", bearer.name);
        }
    }
}

#[test]
fn no_component_has_an_unknown_key() {
    for known in everything() {
        let error = (known.understood)(&json!({ "no such key": 1 })).expect_err(known.name);
        assert!(error.message.contains("unknown field `no such key`"), "{}: {error}", known.name);
    }
}

#[test]
fn a_bearer_alone_fetches_over_every_bearer_that_needs_no_keys() {
    for bearer in Registries::built_in().bearers {
        let scenario = super::super::Scenario::for_bearer(bearer.name, &[]);
        assert!(scenario.is_ok_and(|s| s.hosts[0].real), "{}", bearer.name);
    }
}

#[test]
fn the_largest_cell_is_built() {
    let text = "[hosts]\nm = { count = 4095 }\nb = {}\n[links]\nl = { bearer = \"umts-dch\", between = [\"m\", \"b\"] }\n";
    check(text).unwrap();
}

#[test]
fn as_many_stations_as_there_can_be_are_built() {
    let mut text = "[hosts]\nm = { count = 1500 }\nb = {}\n[links]\n".to_owned();
    for i in 0..4 {
        text += &format!("l{i} = {{ bearer = \"umts-dch\", between = [\"m\", \"b\"] }}\n");
    }
    check(&text).unwrap();
}

#[test]
fn more_observation_points_than_a_run_has_are_refused_at_the_link() {
    let refused = "with it the network has more than the 65536 observation points of a run";
    let bundle = "{ bearer = \"mlppp\", members = [\"piafs\"], copies = 64, between = [\"a\", \"b\"] }\n";
    let hosts = "[hosts]\na = {}\nb = {}\n[links]\n";
    let many: String = (0..129).map(|n| format!("l{n} = {bundle}")).collect();
    let error = check(&format!("{hosts}{many}")).unwrap_err().to_string();
    assert_eq!(error, format!("s.toml:132:8: links.l127: {refused}"));
    let (mut nested, mut deep) = (String::from("\"piafs\""), String::new());
    for _ in 0..4 {
        deep = format!("members = [{nested}], copies = 64");
        nested = format!("{{ mlppp = {{ {deep} }} }}");
    }
    let text = format!("{hosts}l = {{ bearer = \"mlppp\", between = [\"a\", \"b\"], {deep} }}\n");
    assert_eq!(check(&text).unwrap_err().to_string(), format!("s.toml:5:5: links.l: {refused}"));
}

#[test]
fn more_transports_of_links_than_a_host_can_have_are_refused() {
    let with = |links: usize| {
        let all = |one: fn(usize) -> String| (0..links).map(one).collect::<Vec<_>>();
        let interfaces = all(|n| format!("l{n} = {{ transport = \"tcp\" }}")).join(", ");
        let hosts = all(|n| format!("b{n} = {{}}\n")).concat();
        let links =
            all(|n| format!("l{n} = {{ bearer = \"wireline\", between = [\"a\", \"b{n}\"] }}\n")).concat();
        check(&format!("[hosts]\na = {{ interfaces = {{ {interfaces} }} }}\n{hosts}[links]\n{links}"))
    };
    assert_eq!(with(255), Ok(()));
    let error = with(256).unwrap_err().to_string();
    assert!(
        error.starts_with("s.toml:2:20: hosts.a.interfaces: a host has at most 256 transports"),
        "{error}"
    );
}
