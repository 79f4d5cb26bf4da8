//! WWP as the transport of whole hosts: the applications over it, the shipped scenario, several connections.

use airloom_system_tests::{complete, wire};

const SHIPPED: &str = include_str!("../../../../python/airloom/scenarios/wwp-transfer.toml");

#[test]
fn the_shipped_scenario_waits_the_bad_phases_out() {
    let bad = complete(SHIPPED);
    assert_eq!((bad["transfers"], bad["transfers_failed"], bad["bytes"]), (1.0, 0.0, 5_242_864.0));
    let good = complete(&SHIPPED.replace("every = 3\n", "").replace("to = 0.2", "to = 0.0"));
    // Table 1, rows 1.2 and 5.2: 40.5 s and 85.9 s.
    assert!((39.0..42.0).contains(&good["completion_s"]), "{} s", good["completion_s"]);
    assert!((77.0..94.0).contains(&bad["completion_s"]), "{} s", bad["completion_s"]);
}

#[test]
fn connections_beside_each_other_need_ports_and_one_carries_many_transfers() {
    let wire = wire("wire", ["a", "b"], "rate = \"10Mbit/s\"\ndelay = \"10ms\"");
    let with = |app: &str, transport: &str| {
        complete(&format!(
            "[hosts.a.app.bulk]\nsize = \"200kB\"\nrepeat = 6\n{app}\n[hosts.a.transport.wwp]\n{transport}\n\
             [hosts.b]\napp = \"bulk-server\"\n[hosts.b.transport.wwp]\n{transport}\n\
             [run]\nlimit = \"1h\"\n{wire}"
        ))
    };
    assert_eq!(with("keep = true", "ports = false")["transfers"], 6.0);
    assert_eq!(with("", "")["transfers"], 6.0);
    assert_eq!(with("parallel = 3", "")["transfers"], 6.0);
    // Without ports there is one at a time, and the others are refused.
    let refused = with("parallel = 3", "ports = false");
    assert!(refused["transfers"] >= 1.0 && refused["transfers"] + refused["transfers_failed"] == 6.0);
}
