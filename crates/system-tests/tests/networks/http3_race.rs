//! HTTP/3 beside HTTP/2: a server says that it speaks it, and its clients race QUIC against TCP.

use airloom_base::{Duration, Summary};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::scenario::Scenario;

const SHIPPED: &str = include_str!("../../../../python/airloom/scenarios/http3-race.toml");

/// Nothing of UDP comes through.
const NO_UDP: &str = r#"faults = { protocol = "udp", drop = { rate = "100%", burst = 1000000 } }"#;

/// Visits of two objects, each over new connections, a minute apart and a round trip of 100 ms away.
struct Setting {
    visits: usize,
    page: &'static str,
    /// How many there are on a page.
    objects: f64,
    http: &'static str,
    tls: &'static str,
    connections: u16,
    think: &'static str,
    client: String,
    server: String,
    link: String,
    quic: &'static str,
}

impl Default for Setting {
    fn default() -> Self {
        let (client, server, link) = (String::new(), String::new(), String::new());
        Setting {
            visits: 2,
            page: r#"["/10kB", "/20kB"]"#,
            objects: 2.0,
            http: "2",
            tls: r#"{ resumes = "never" }"#,
            connections: 1,
            think: "60s",
            client,
            server,
            link,
            quic: "{}",
        }
    }
}

impl Setting {
    fn text(&self) -> String {
        let Setting { visits, page, http, tls, connections, think, client, server, link, quic, .. } = self;
        let visits = vec![*page; *visits].join(", ");
        let follow = if client.contains("alt_svc =") { "" } else { "alt_svc = \"announced\"\n" };
        format!(
            r#"
            path = ["mobile", "wire", "origin"]
            [hosts.mobile]
            transport = ["tcp", {{ quic = {quic} }}]
            [hosts.mobile.app.http-client]
            http = "{http}"
            tls = {tls}
            connections = {connections}
            per_page = true
            think = "{think}"
            reaction = "0s"
            pages = [{visits}]
            {follow}{client}
            [hosts.origin]
            transport = ["tcp", {{ quic = {quic} }}]
            [hosts.origin.app.http-server]
            http = "{http}"
            http3 = true
            tls = {{}}
            {server}
            [links.wire]
            bearer = "wireline"
            rate = "10Mbit/s"
            delay = "50ms"
            {link}
            [run]
            seed = 1
            "#
        )
    }

    /// The numbers of the run, which came to its end, and the times that its pages took.
    fn run(&self) -> Summary {
        let text = self.text();
        let scenario = Scenario::parse("race.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut world = scenario.build(false).unwrap_or_else(|e| panic!("{e}"));
        let limit = Duration::from_secs(100_000);
        assert_eq!(virtual_time::run(&mut world, Until::Done { limit }, |_, _| true), Outcome::Complete);
        let summary = world.summary();
        let objects = self.objects * self.visits as f64;
        assert_eq!(numbers(&summary, ["objects", "failed", "mobile.timeouts"]), [objects, 0.0, 0.0]);
        // What was asked for once was answered once, whatever it was asked over.
        assert_eq!(
            numbers(&summary, ["requests_sent", "origin.requests", "asked_again"]),
            [objects, objects, 0.0]
        );
        summary
    }
}

fn numbers<const N: usize>(summary: &Summary, keys: [&str; N]) -> [f64; N] {
    keys.map(|key| *summary.values.get(key).unwrap_or_else(|| panic!("no {key}: {:?}", summary.values)))
}

/// Why a scenario is refused; nothing if it is not.
fn said(text: &str) -> String {
    let built = Scenario::parse("race.toml", text).map(|s| s.build(false).err().map(|e| e.to_string()));
    built.map_or_else(|e| e.to_string(), Option::unwrap_or_default)
}

const RACES: [&str; 4] = ["races", "races_won_by_quic", "races_won_by_tcp", "alternatives_broken"];

#[test]
fn the_second_connection_is_http3_where_the_first_has_learnt_of_it() {
    for http in ["1.1", "2"] {
        let summary = Setting { http, ..Setting::default() }.run();
        assert_eq!(numbers(&summary, RACES), [1.0, 1.0, 0.0, 0.0], "{http}");
        assert_eq!(numbers(&summary, ["requests_h3", "origin.connections_h3"]), [2.0, 1.0], "{http}");
        // Those two, and no others, say that they go to an alternative.
        assert_eq!(numbers(&summary, ["origin.requests_as_alternative"]), [2.0], "{http}");
    }
    // Nobody who does not ask for it is led elsewhere.
    let off = Setting { client: "alt_svc = \"off\"".into(), ..Setting::default() }.run();
    assert_eq!(numbers(&off, ["origin.connections_h2", "origin.connections_h3"]), [2.0, 0.0]);
    assert!(!off.values.contains_key("races"));
}

#[test]
fn what_is_known_beforehand_is_raced_for_at_once_and_saves_most_of_a_round_trip() {
    // Small enough for one flight each, as the certificates are.
    let (page, quic) = (r#"["/1kB", "/2kB"]"#, "{ certificates = \"2kB\" }");
    let client = "alt_svc = \"known\"".to_owned();
    let known = Setting { visits: 1, page, quic, client, ..Setting::default() };
    let learnt = Setting { visits: 1, page, quic, ..Setting::default() };
    let (known, learnt) = (known.run(), learnt.run());
    assert_eq!(numbers(&known, RACES), [1.0, 1.0, 0.0, 0.0]);
    assert_eq!(numbers(&learnt, RACES), [0.0; 4]);
    // TCP and TLS take two round trips before the first request leaves, QUIC one; acknowledgements of QUIC may wait for 25 ms. Where none
    // does it is all of a round trip, and the millisecond at most that TLS has more octets.
    let [known, learnt] = [&known, &learnt].map(|summary| numbers(summary, ["page_load_s"])[0]);
    assert!((0.05..0.101).contains(&(learnt - known)), "{learnt} {known}");
}

#[test]
fn a_lifetime_is_respected() {
    for (age, races) in [(59, 0.0), (3600, 1.0), (0, 0.0)] {
        let server = format!("alt_svc = 'h3=\":443\"; ma={age}'");
        let summary = Setting { server, ..Setting::default() }.run();
        assert_eq!(numbers(&summary, ["races"]), [races], "{age}");
    }
}

#[test]
fn where_udp_does_not_come_through_tcp_wins_and_the_alternative_is_left_alone_for_longer_each_time() {
    let summary = Setting { visits: 3, link: NO_UDP.into(), ..Setting::default() }.run();
    // The third visit is within five minutes of the failure of the second's.
    assert_eq!(numbers(&summary, RACES), [1.0, 0.0, 1.0, 1.0]);
    // The first of all races waits for nothing: it costs no time.
    let free =
        Setting { visits: 3, client: "alt_svc = \"off\"".into(), link: NO_UDP.into(), ..Setting::default() };
    let [slow, usual] = [&summary, &free.run()].map(|summary| numbers(summary, ["page_load_s"])[0]);
    assert!((slow - usual).abs() < 0.003, "{slow} {usual}");
    // 40 visits at intervals of a minute: broken for 5, 10 and 20 minutes, each from 10 s after its race.
    let summary = Setting { visits: 40, link: NO_UDP.into(), ..Setting::default() }.run();
    assert_eq!(numbers(&summary, RACES), [4.0, 0.0, 4.0, 3.0]);
}

#[test]
fn a_race_that_tcp_is_late_for_costs_the_delay_where_quic_is_not_to_be_had() {
    let late = |delay: &str| {
        let client = format!("alt_svc = \"known\"\nrace_delay = \"{delay}\"");
        Setting { visits: 1, client, link: NO_UDP.into(), ..Setting::default() }.run()
    };
    let [at_once, late] = ["0s", "300ms"].map(|delay| numbers(&late(delay), ["page_load_s"])[0]);
    // QUIC's first packet takes a millisecond of the wire.
    assert!((late - at_once - 0.3).abs() < 0.003, "{late} {at_once}");
}

#[test]
fn tcp_may_win_although_quic_comes_up_and_later_requests_go_over_quic() {
    // A server that asks for a second hello, and has certificates that do not fit into a flight: QUIC is up after TCP.
    let quic = "{ retry = true, certificates = \"16kB\" }";
    let client = "alt_svc = \"known\"\nrace_delay = \"0s\"\nparsing = \"100ms\"".to_owned();
    let summary = Setting { visits: 1, client, quic, ..Setting::default() }.run();
    assert_eq!(numbers(&summary, RACES), [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(numbers(&summary, ["origin.connections_h2", "origin.connections_h3"]), [1.0, 1.0]);
    // The page's first object leaves over TCP, and the second, which that one names, over what is up by then.
    assert_eq!(numbers(&summary, ["requests_h3"]), [1.0]);
}

#[test]
fn early_requests_leave_with_the_hello_and_what_is_lost_with_them_is_asked_for_over_tcp() {
    let quic = "{ zero_rtt = true }";
    let summary = Setting { visits: 3, quic, ..Setting::default() }.run();
    assert_eq!(numbers(&summary, RACES), [2.0, 2.0, 0.0, 0.0]);
    assert_eq!(numbers(&summary, ["connections_early", "requests_h3"]), [1.0, 4.0]);
}

#[test]
fn other_hosts_are_followed_only_where_that_is_allowed() {
    let server = "alt_svc = 'h3=\"elsewhere:443\", h3=\"origin:444\"'".to_owned();
    let client = "alt_svc_hosts = [\"elsewhere\"]".to_owned();
    let unknown = said(&Setting { server, client, ..Setting::default() }.text());
    assert!(unknown.contains("there is no host `elsewhere`"), "{unknown}");
    // The origin's own name is its own: nothing answers at that port, which shows that it was tried.
    let summary = Setting {
        server: "alt_svc = 'h3=\"elsewhere:443\", h3=\"ORIGIN:444\"'".into(),
        ..Setting::default()
    }
    .run();
    assert_eq!(numbers(&summary, RACES), [1.0, 0.0, 1.0, 0.0]);
    let summary = Setting { server: "alt_svc = 'h3=\"10.77.0.1:443\"'".into(), ..Setting::default() }.run();
    assert_eq!(numbers(&summary, ["races"]), [0.0], "another name of the same address is another host");
    let client = "alt_svc_hosts = [\"10.77.0.1\"]".to_owned();
    let summary =
        Setting { server: "alt_svc = 'h3=\"10.77.0.1:443\"'".into(), client, ..Setting::default() }.run();
    assert_eq!(numbers(&summary, RACES), [1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn an_alternative_that_is_another_server_is_left_and_what_was_asked_there_is_asked_of_the_origin() {
    let text = |names: &str| {
        format!(
            r#"
            path = ["mobile", "wire", "origin"]
            [hosts.mobile]
            transport = ["tcp", "quic"]
            [hosts.mobile.app.http-client]
            http = "2"
            tls = {{ resumes = "never" }}
            connections = 1
            per_page = true
            think = "60s"
            alt_svc = "announced"
            pages = [["/10kB", "/20kB"], ["/1kB", {{ path = "/2kB", post = "5kB" }}], [{{ path = "/3kB", post = "5kB" }}]]
            [hosts.origin]
            transport = ["tcp", "quic"]
            app = [
                {{ http-server = {{ http = "2", tls = {{}}, alt_svc = 'h3=":444"' }} }},
                {{ http-server = {{ http = "3", port = 444, names = {names}, alt_svc = 'h3=":444"' }} }},
            ]
            [links.wire]
            bearer = "wireline"
            rate = "10Mbit/s"
            delay = "50ms"
            "#
        )
    };
    let counts = ["failed", "requests_h3", "races_won_by_quic", "requests_misdirected", "asked_again"];
    let own = play(&text("[\"else\", \"Origin\"]"));
    assert_eq!(numbers(&own, counts), [0.0, 3.0, 2.0, 0.0, 0.0]);
    // Each visit begins with the alternative, which the origin has named again since; what such an answer names itself is not
    // believed, or the page's second object would be asked for there. A form is sent again: it was not for whoever got it.
    let other = play(&text("[\"else\"]"));
    assert_eq!(numbers(&other, counts), [0.0, 2.0, 2.0, 2.0, 2.0]);
    assert_eq!(numbers(&other, ["objects", "requests_sent"]), [5.0, 7.0]);
}

/// A client with these settings and pages, before servers a round trip of 100 ms away: those in capitals speak HTTP/3 too.
fn among(servers: &[&str], client: &str, link: &str) -> Summary {
    let host = |name: &&str| {
        let beside = name.to_uppercase() == **name;
        let name = name.to_lowercase();
        format!(
            r#"
            [hosts.{name}]
            transport = ["tcp", "quic"]
            app = {{ http-server = {{ http = "2", http3 = {beside}, tls = {{}} }} }}
            [links.to-{name}]
            between = ["core", "{name}"]
            bearer = "wireline"
            rate = "100Mbit/s"
            "#
        )
    };
    let hosts: String = servers.iter().map(host).collect();
    play(&format!(
        r#"
        [hosts.mobile]
        transport = ["tcp", "quic"]
        [hosts.mobile.app.http-client]
        http = "2"
        tls = {{ resumes = "never" }}
        connections = 1
        reaction = "0s"
        {client}
        [hosts.core]
        [links.wire]
        between = ["mobile", "core"]
        bearer = "wireline"
        rate = "10Mbit/s"
        delay = "50ms"
        {link}
        {hosts}
        "#
    ))
}

#[test]
fn a_race_that_requests_wait_for_is_not_given_up_for_another_connection() {
    // The second page has a race for `a`, while a third server's connection is to take the place of one there is.
    let page = ["b", "a", "c", "d", "e"].map(|server| format!(r#"{{ path = "/1kB", server = "{server}" }}"#));
    let pages = format!(r#"pages = [[{{ path = "/1kB", server = "a" }}], [{}]]"#, page.join(", "));
    let client = format!("alt_svc = \"announced\"\ntotal_connections = 2\nper_page = true\n{pages}");
    let summary = among(&["A", "b", "c", "d", "e"], &client, "");
    assert_eq!(numbers(&summary, ["objects", "failed", "asked_again"]), [6.0, 0.0, 0.0]);
    assert_eq!(numbers(&summary, RACES), [1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn a_race_among_few_connections_lasts_as_long_as_a_race() {
    let page = ["a", "b", "c"].map(|server| format!(r#"{{ path = "/1kB", server = "{server}" }}"#));
    let load = |most: usize| {
        let client = format!("alt_svc = \"known\"\nrace_delay = \"1s\"\ntotal_connections = {most}");
        let summary = among(&["A", "B", "C"], &format!("{client}\nobjects = [{}]", page.join(", ")), "");
        assert_eq!(numbers(&summary, RACES), [3.0, 3.0, 0.0, 0.0], "{most}");
        numbers(&summary, ["page_load_s"])[0]
    };
    let [few, many] = [load(2), load(6)];
    // The third server's connection takes the place of one that has done its work.
    assert!((0.15..0.25).contains(&(few - many)), "{few} {many}");
}

#[test]
fn what_only_tries_an_alternative_makes_room_for_what_is_asked_for() {
    let page = ["a", "b", "c"].map(|server| format!(r#"{{ path = "/1kB", server = "{server}" }}"#));
    let objects = format!("objects = [{}]", page.join(", "));
    let load = |follow: &str| {
        let client = format!("alt_svc = \"{follow}\"\ntotal_connections = 1\n{objects}");
        let summary = among(&["A", "B", "C"], &client, NO_UDP);
        assert_eq!(numbers(&summary, ["objects", "failed"]), [3.0, 0.0], "{follow}");
        numbers(&summary, ["page_load_s"])[0]
    };
    let [raced, usual] = [load("known"), load("off")];
    // Not ten seconds for each, in which QUIC might come up.
    assert!(raced - usual < 0.1, "{raced} {usual}");
}

#[test]
fn a_page_ends_its_races() {
    // The page's first connection has fetched all before the second one, which a race is about, is up.
    let load = |follow: &str| {
        let setting = Setting {
            visits: 3,
            page: r#"["/2kB.html", "/1kB", "/1kB"]"#,
            objects: 3.0,
            http: "1.1",
            tls: r#"{ version = "1.2", resumes = "never" }"#,
            connections: 2,
            think: "0s",
            client: format!("alt_svc = \"{follow}\""),
            link: NO_UDP.into(),
            ..Setting::default()
        };
        setting.run()
    };
    let (raced, usual) = (load("announced"), load("off"));
    assert_eq!(numbers(&raced, RACES), [1.0, 0.0, 0.0, 0.0], "nobody was waiting for the end");
    let [raced, usual] = [&raced, &usual].map(|summary| numbers(summary, ["page_load_max_s"])[0]);
    // Requests that wait for a race are not bound to a connection: they may go over another that is free first.
    assert!(raced < usual + 0.01, "{raced} {usual}");
}

#[test]
fn an_alternative_that_lost_its_race_takes_no_connection_from_the_next_page() {
    // The third page begins while QUIC may still come up for ten seconds.
    let load = |follow: &str| {
        let client = format!("alt_svc = \"{follow}\"");
        Setting { visits: 3, think: "0s", client, link: NO_UDP.into(), ..Setting::default() }.run()
    };
    let (raced, usual) = (load("announced"), load("off"));
    assert_eq!(numbers(&raced, RACES), [1.0, 0.0, 1.0, 0.0]);
    let [raced, usual] = [&raced, &usual].map(|summary| numbers(summary, ["page_load_max_s"])[0]);
    assert!(raced - usual < 0.1, "{raced} {usual}");
}

#[test]
fn nonsense_is_not_followed_and_the_word_that_there_is_nothing_more_is() {
    for (value, races) in [
        ("clear", 0.0),
        ("h2=\":443\"", 0.0),
        ("h3-29=\":443\"", 0.0),
        ("h3=\":443\"; ma=99999999999999999999", 1.0),
    ] {
        let summary = Setting { server: format!("alt_svc = '{value}'"), ..Setting::default() }.run();
        assert_eq!(numbers(&summary, ["races"]), [races], "{value}");
    }
    // What was known beforehand is forgotten at the first word.
    let client = "alt_svc = \"known\"".to_owned();
    let summary = Setting { client, server: "alt_svc = 'clear'".into(), ..Setting::default() }.run();
    assert_eq!(numbers(&summary, ["races"]), [1.0]);
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let text = Setting::default().text();
    assert_eq!(said(&text), "");
    let without = [
        ("tls = { resumes = \"never\" }", "", "alt_svc: needs http"),
        (
            "transport = [\"tcp\", { quic = {} }]",
            "transport = \"tcp\"",
            "alt_svc: needs a host with transport",
        ),
        (
            "transport = [\"tcp\", { quic = {} }]",
            "transport = [\"quic\", \"tcp\"]",
            "alt_svc: needs a host with transport",
        ),
        ("tls = {}\n", "\n", "http3: HTTP/3 beside"),
        ("http3 = true", "http3 = true\nalt_svc = 'h3=443'", "alt_svc: is not a value of the field Alt-Svc"),
    ];
    for (from, to, why) in without {
        let said = said(&text.replacen(from, to, 1));
        assert!(said.contains(why), "{from}: {said}");
    }
}

fn play(text: &str) -> Summary {
    let scenario = Scenario::parse("http3-race.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let mut world = scenario.build(false).unwrap();
    let limit = Duration::from_secs(1000);
    assert_eq!(virtual_time::run(&mut world, Until::Done { limit }, |_, _| true), Outcome::Complete);
    world.summary()
}

#[test]
fn the_shipped_scenario_says_what_its_comments_say() {
    let usual = play(SHIPPED);
    assert_eq!(numbers(&usual, RACES), [1.0, 1.0, 0.0, 0.0]);
    assert_eq!(
        numbers(&usual, ["origin.connections_h2", "origin.connections_h3", "failed"]),
        [1.0, 1.0, 0.0]
    );
    let blocked = play(&SHIPPED.replace("delay = \"20ms\"", &format!("delay = \"20ms\"\n{NO_UDP}")));
    assert_eq!(numbers(&blocked, RACES), [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(
        numbers(&blocked, ["origin.connections_h2", "origin.connections_h3", "failed"]),
        [2.0, 0.0, 0.0]
    );
}
