//! Connections of QUIC that outlive their path: another link of the client's, or another address that somebody between gives it.

use airloom_drive::virtual_time::Outcome;
use airloom_system_tests::wire;
use airloom_world::scenario::Scenario;

const SHIPPED: &str = include_str!("../../../../python/airloom/scenarios/quic-migration.toml");

/// The outcome of two simulated minutes at most, and a way to look at the numbers.
fn play(text: &str) -> (Outcome, impl Fn(&str) -> f64 + use<>) {
    let (outcome, values) = airloom_system_tests::play(text, 120);
    (outcome, move |key: &str| *values.get(key).unwrap_or_else(|| panic!("no {key}")))
}

/// A client with two links, and a server behind both of them by way of a router, or straight.
fn two_links(straight: bool, client: &str, timeline: &str) -> String {
    let near = if straight { "server" } else { "router" };
    let links = wire("first", ["client", near], "rate = \"2Mbit/s\"\ndelay = \"20ms\"")
        + &wire("second", ["client", near], "rate = \"2Mbit/s\"\ndelay = \"30ms\"");
    let wan = wire("wan", ["router", "server"], "rate = \"100Mbit/s\"\ndelay = \"1ms\"");
    let router = if straight { String::new() } else { format!("[hosts.router]\n{wan}") };
    format!(
        r#"
        [hosts.client]
        app = {{ bulk = {{ size = "1MB" }} }}
        forward = false
        transport = {{ quic = {client} }}
        [hosts.server]
        app = "bulk-server"
        transport = {{ quic = {client} }}
        {links}
        {router}
        [run]
        seed = 1
        {timeline}
        "#
    )
}

fn change(at: &str, target: &str, state: &str) -> String {
    format!("[[timeline]]\nat = \"{at}\"\ntarget = \"{target}\"\nset = {{ state = \"{state}\" }}\n")
}

/// With the feature `quinn` there is no path beside the one in use.
const WAYS: &[&str] = &[
    r#"{ migration = "at-once" }"#,
    #[cfg(not(feature = "quinn"))]
    r#"{ migration = "probe" }"#,
    #[cfg(not(feature = "quinn"))]
    r#"{ migration = "probe", session = "seeded" }"#,
];

#[test]
fn a_link_that_goes_takes_no_connection_with_it_where_another_leads_to_the_server() {
    for straight in [false, true] {
        for client in WAYS {
            let (outcome, value) = play(&two_links(straight, client, &change("1s", "first", "down")));
            assert_eq!((outcome, value("transfers")), (Outcome::Complete, 1.0), "{client}");
            assert_eq!(value("path_changes"), 1.0, "{client}");
            // One way there and back, or two where the path is validated before it is used.
            assert!((1.0..1.2).contains(&value("path_change_s")), "{client} {}", value("path_change_s"));
            assert!((0.06..0.3).contains(&value("path_silence_s")), "{client} {}", value("path_silence_s"));
            let validation = value("path_validation_s");
            assert!((0.06..0.2).contains(&validation), "{client} {validation}");
            assert!(value("second.downlink.bytes") > 600_000.0);
            // A megabyte takes four seconds, whichever way.
            assert!(value("completion_s") < 5.5, "{client} {}", value("completion_s"));
        }
    }
}

#[test]
fn what_went_away_with_a_path_is_what_its_wire_was_given_and_did_not_bring() {
    let sized = ", mtu_discovery = false, initial_datagram = 1200 }";
    for client in WAYS.iter().map(|client| client.replace(" }", sized)) {
        let (_, value) = play(&two_links(true, &client, &change("1s", "first", "down")));
        // Each packet is as large as the others: the wire says how many there were.
        let lost = value("first.downlink.lost");
        assert!(lost > 100.0, "{client} {lost}");
        // Whether its client is at the old address still (RFC 9000, 9.3.3) quinn-proto asks once, by a packet that it does not wait for.
        let asks = f64::from(u8::from(cfg!(feature = "quinn")));
        assert_eq!(value("path_lost_bytes"), 1200.0 * (lost - asks), "{client}");
    }
}

#[test]
fn the_first_link_in_service_is_used_and_changed_to_without_a_pause_when_it_comes() {
    let timeline = change("0s", "first", "down") + &change("1s", "first", "up");
    for client in WAYS {
        let (outcome, value) = play(&two_links(true, client, &timeline));
        assert_eq!((outcome, value("transfers")), (Outcome::Complete, 1.0), "{client}");
        assert!(value("second.downlink.bytes") > 100_000.0 && value("first.downlink.bytes") > 600_000.0);
        assert_eq!(value("path_changes"), 1.0, "{client}");
        // The old path brings what is under way.
        assert!(value("path_silence_s") < 0.1, "{client} {}", value("path_silence_s"));
        // All of it; but what takes the new path overtakes it, and on a path with the same numbers it is taken for lost then.
        assert_eq!(value("second.downlink.lost"), 0.0, "{client}");
        assert!(client.contains("probe") || value("path_lost_bytes") > 0.0, "{client}");
    }
}

#[test]
fn the_first_link_in_service_is_used_if_it_comes_during_the_handshake_or_while_another_is_validated() {
    let during = change("0s", "first", "down") + &change("50ms", "first", "up");
    let meanwhile = change("1s", "first", "down") + &change("1020ms", "first", "up");
    for client in WAYS {
        for (timeline, changes, most) in [(&during, 1.0, 900_000.0), (&meanwhile, 2.0, 800_000.0)] {
            let (outcome, value) = play(&two_links(true, client, timeline));
            assert_eq!((outcome, value("transfers")), (Outcome::Complete, 1.0), "{client}");
            assert_eq!(value("path_changes"), changes, "{client}");
            let by_first = value("first.downlink.bytes");
            assert!(by_first > most, "{client} {by_first}");
        }
    }
}

#[test]
fn a_client_that_may_not_move_stays_on_a_link_that_is_gone() {
    let text = two_links(true, r#"{ migration = "off" }"#, &change("1s", "first", "down"));
    let (_, value) = play(&text);
    assert_eq!((value("transfers"), value("path_changes")), (0.0, 0.0));
    assert_eq!(value("second.downlink.bytes"), 0.0);
}

#[test]
fn a_server_sends_three_times_what_came_from_an_address_that_has_not_shown_itself() {
    // The new path carries requests and no answers: nothing that the server says there arrives, so the client never shows itself.
    let timeline = change("1s", "first", "down");
    for client in WAYS {
        let text = two_links(true, client, &timeline)
            .replace("delay = \"30ms\"", "delay = \"30ms\"\nloss = { downlink = 1.0 }");
        let (_, value) = play(&text);
        assert_eq!(value("transfers"), 0.0);
        // What the wire was given, lost or not, without the headers of IP and UDP.
        let sent = |way: &str| {
            value(&format!("second.{way}.bytes")) - 28.0 * value(&format!("second.{way}.packets"))
        };
        let (up, down) = (sent("uplink"), sent("downlink"));
        //= RFC 9000 (8.1, 9.3.1): no more than three times what it received, before the address is validated. quinn-proto fills its
        //= challenges all the same, goes back to the old address when nothing has shown itself, and challenges anew with each datagram that
        //= comes then.
        let challenges = if cfg!(feature = "quinn") { value("second.uplink.packets") } else { 0.0 };
        let most = 1200.0 * challenges + 3.0 * up;
        assert!(up > 0.0 && (1.0..=most).contains(&down), "{client} {up} {down} {challenges}");
        let packets = value("second.downlink.packets");
        assert!(packets < 9.0 + challenges || client.contains("probe"), "{client} {packets} {challenges}");
    }
}

#[test]
fn a_translator_that_forgets_its_bindings_ends_no_connection() {
    for (nat, client) in
        [("{ first = \"1s\", every = \"1s\" }", WAYS[0]), ("{ first = \"1s\", address = true }", WAYS[0])]
    {
        let text = two_links(true, client, "").replacen(
            "delay = \"20ms\"",
            &format!("delay = \"20ms\"\nfaults = {{ nat = {nat} }}"),
            1,
        );
        let (outcome, value) = play(&text);
        assert_eq!((outcome, value("transfers")), (Outcome::Complete, 1.0), "{nat}");
        assert!(value("nat_rebindings") >= 1.0);
        assert_eq!(value("path_changes"), value("nat_rebindings"), "{nat}");
        assert!(
            value("path_validation_s") > 0.0 && value("completion_s") < 6.0,
            "{nat} {}",
            value("completion_s")
        );
    }
}

#[test]
fn the_shipped_transfer_changes_to_the_wireless_lan_and_over_tcp_ends_with_the_cell() {
    if cfg!(feature = "quinn") {
        let said = Scenario::parse("quic-migration.toml", SHIPPED).unwrap_err().to_string();
        assert!(said.contains("migration: this build's library of QUIC has no second path"), "{said}");
    } else {
        let (outcome, probed) = play(SHIPPED);
        assert_eq!((outcome, probed("transfers"), probed("path_changes")), (Outcome::Complete, 1.0, 1.0));
        assert!((4.0..4.5).contains(&probed("path_change_s")), "{}", probed("path_change_s"));
        // The rest came by the cell before.
        let by_wlan = probed("wlan.downlink.bytes");
        assert!((1_500_000.0..1_950_000.0).contains(&by_wlan), "{by_wlan}");
    }
    let (outcome, at_once) = play(&SHIPPED.replace("migration = \"probe\"", "migration = \"at-once\""));
    assert_eq!((outcome, at_once("transfers")), (Outcome::Complete, 1.0));
    let tcp = SHIPPED
        .replace("[hosts.mobile.transport.quic]\nmigration = \"probe\"", "")
        .replace("[hosts.server.transport.quic]\ncontroller = \"cubic\"\nmigration = \"probe\"", "");
    assert!(!tcp.contains("quic]"));
    let (_, stalled) = play(&tcp);
    assert_eq!((stalled("transfers"), stalled("path_changes")), (0.0, 0.0));
    assert_eq!(stalled("wlan.downlink.bytes"), 0.0);
}

#[test]
#[cfg(not(feature = "quinn"))]
fn going_back_and_forth_costs_the_same_whether_packets_are_protected_or_not() {
    // Numbers begin anew on each path, so the library takes what comes late by the old one, behind a change of keys, for sent with
    // the next ones. No key opens that then, and it is lost.
    let last = "at = \"6s\"\ntarget = \"radio\"";
    assert!(SHIPPED.contains(last));
    let back = SHIPPED.replace(last, "at = \"6s\"\ntarget = \"wlan\"");
    for way in ["probe", "at-once"] {
        let [model, seeded] = ["model", "seeded"].map(|session| {
            let keys = format!("migration = \"{way}\"\nsession = \"{session}\"");
            airloom_system_tests::play(&back.replace("migration = \"probe\"", &keys), 120)
        });
        assert_eq!((model.0, model.1["path_changes"]), (Outcome::Complete, 2.0), "{way}");
        assert_eq!(model, seeded, "{way}");
    }
}

#[test]
fn in_another_network_an_alternative_has_to_be_announced_again_unless_it_persists() {
    // The second of three visits, which goes over HTTP/3, takes four seconds, in which its client changes to another link.
    let timeline = change("0s", "first", "down") + &change("12s", "first", "up");
    let links = wire("first", ["client", "server"], "rate = \"2Mbit/s\"\ndelay = \"20ms\"")
        + &wire("second", ["client", "server"], "rate = \"2Mbit/s\"\ndelay = \"30ms\"");
    for (said, visits) in [("", 1.0), ("; persist=1", 2.0)] {
        let text = format!(
            r#"
            [hosts.client]
            transport = ["tcp", "quic"]
            forward = false
            [hosts.client.app.http-client]
            http = "2"
            tls = {{ resumes = "never" }}
            connections = 1
            per_page = true
            think = "10s"
            alt_svc = "announced"
            pages = [["/1kB"], ["/1MB"], ["/1kB"]]
            [hosts.server]
            transport = ["tcp", "quic"]
            [hosts.server.app.http-server]
            http = "2"
            tls = {{}}
            http3 = true
            alt_svc = 'h3=":443"{said}'
            {links}
            [run]
            seed = 1
            {timeline}
            "#
        );
        let (outcome, value) = play(&text);
        assert_eq!((outcome, value("objects"), value("path_changes")), (Outcome::Complete, 3.0, 1.0));
        //= RFC 7838 (2.2): a client that finds itself in another network forgets alternatives that do not persist.
        assert_eq!(value("requests_h3"), visits, "{said}");
    }
}
