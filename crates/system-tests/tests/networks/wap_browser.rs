//! The WAP browser and the gateway in whole networks.

use airloom_base::Duration;
use airloom_base::record::Record;
use airloom_drive::virtual_time::{self, Until};
use airloom_system_tests::{build, complete};

/// A phone, a gateway and an origin; what `browser` and `wire` add.
fn scenario(seed: u64, browser: &str, air: &str) -> String {
    format!(
        r#"
        path = ["mobile", "air", "gateway", "wire", "origin"]
        [run]
        seed = {seed}
        [hosts.mobile.app.wap-browser]
        {browser}
        [hosts]
        gateway = {{ proxy = "wap-gateway" }}
        origin = {{ app = "http-server" }}
        [links]
        air = {{ {air} }}
        wire = {{ bearer = "wireline", rate = "10Mbit/s", delay = "5ms" }}
        "#
    )
}

const LOSSY: &str = r#"bearer = "wireline", rate = "384kbit/s", delay = "60ms", loss = 0.05"#;

#[test]
fn a_hundred_kilobytes_arrive_through_losses_and_the_same_way_each_time() {
    let browser = r#"pages = [[{ path = "/100kB", size = "100kB" }], ["/", "/500"]]
        wtp = { maximum_group = "32kB" }"#;
    for seed in 1..6 {
        let first = complete(&scenario(seed, browser, LOSSY));
        assert_eq!((first["objects"], first["failed"]), (3.0, 0.0), "seed {seed}: {first:?}");
        assert_eq!(first["mobile.sessions"], 1.0);
        assert!(first["group_waits"] >= 3.0);
        assert_eq!(complete(&scenario(seed, browser, LOSSY)), first, "seed {seed}");
    }
}

#[test]
fn larger_groups_wait_less_often_and_take_less_time() {
    let air = r#"bearer = "wireline", rate = "384kbit/s", delay = "130ms""#;
    let load = |group: &str| {
        let browser = format!("pages = [[\"/100kB\"]]\nwtp = {{ maximum_group = \"{group}\" }}");
        let numbers = complete(&scenario(1, &browser, air));
        assert_eq!(numbers["retransmissions"], 0.0);
        (numbers["group_waits"], numbers["page_load_s"])
    };
    let (few, many) = (load("4200B"), load("32kB"));
    assert_eq!((few.0, many.0), (23.0, 3.0));
    // Each further group costs the way there and back, and the acknowledgement's own time on the wire.
    assert!(few.1 - many.1 > 20.0 * 0.26, "{few:?} {many:?}");
}

#[test]
fn a_browser_that_puts_no_segments_together_hears_of_what_the_link_does_not_carry() {
    let air = r#"bearer = "wireline", rate = "384kbit/s", delay = "60ms", mtu = 1000"#;
    let browser = "pages = [[\"/800\"], [\"/2kB\"], [\"/700\"]]\nwtp = { sar = false }";
    let numbers = complete(&scenario(1, browser, air));
    assert_eq!((numbers["gateway.replies_2xx"], numbers["gateway.replies_5xx"]), (2.0, 1.0), "{numbers:?}");
    assert_eq!((numbers["objects"], numbers["retransmissions"]), (2.0, 0.0));
}

#[test]
fn every_page_may_have_its_own_session_over_the_radio() {
    let air = r#"bearer = "umts-dch", loss = { per = "pdu", downlink = 0.05, uplink = 0.05 }"#;
    let browser = r#"pages = [["/2kB"], ["/2kB"]]
        session = "each-page""#;
    let numbers = complete(&scenario(3, browser, air));
    assert_eq!((numbers["objects"], numbers["mobile.sessions"]), (2.0, 2.0));
    assert_eq!(numbers["gateway.requests"], 2.0);
    assert!(numbers["page_load_min_s"] > numbers["connect_min_s"]);
}

#[test]
fn a_session_that_the_end_of_the_run_cuts_off_has_a_row() {
    for wtls in ["", "wtls = {}"] {
        let text = scenario(1, &format!("pages = [[\"/100kB\"]]\n{wtls}"), LOSSY);
        let gateway = "proxy = { wap-gateway = { wtls = {} } }";
        let mut world = build(&text.replace(r#"proxy = "wap-gateway""#, gateway));
        world.records().ask_facts(true, false);
        let mut rows = Vec::new();
        virtual_time::run(&mut world, Until::Elapsed(Duration::from_secs(1)), |_, records| {
            rows.extend(records.facts.iter().filter_map(|r| match r {
                Record::Flow(flow) if flow.proto == "wsp" => Some((flow.opener, flow.close, flow.facts.end)),
                _ => None,
            }));
            true
        });
        assert_eq!(rows, [(true, None, None)], "{wtls}");
    }
}
