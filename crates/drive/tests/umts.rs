//! Real curl and a real nginx over a UMTS dedicated channel, and what an independent reader says of the capture.

#![cfg(target_os = "linux")]

mod support;

use std::fs;

use airloom_drive::virtual_time::Outcome;
use airloom_testkit::tshark::tshark;
use airloom_world::scenario::Scenario;

use support::{Folder, emulate, laboratory, nginx};

/// Octets of the object: with 38 to 40 in a PDU more than half of the sequence numbers.
const SIZE: usize = 100_000;

fn scenario(command: &[String]) -> Scenario {
    let command: Vec<_> = command.iter().map(|word| format!("{word:?}")).collect();
    let text = format!(
        r#"
        title = "curl and nginx over UMTS"
        path = ["mobile", "radio", "gateway", "internet", "origin"]
        [hosts]
        mobile = {{ real = true }}
        gateway = {{}}
        origin = {{ real = true, command = [{}] }}
        [links.radio]
        bearer = "umts-dch"
        rate = {{ downlink = "384kbit/s", uplink = "64kbit/s" }}
        loss = {{ per = "pdu", downlink = 0.05, uplink = 0.05 }}
        [links.internet]
        bearer = "wireline"
        rate = "10Mbit/s"
        delay = "20ms"
        queue = "100 packets"
        [run]
        record = ["packets", "pcapng"]
        limit = "120s"
        "#,
        command.join(", ")
    );
    Scenario::parse("umts.toml", &text).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn curl_fetches_over_a_lossy_dedicated_channel_and_every_pdu_is_dissected() {
    let Some(_guard) = laboratory("umts::curl", &["curl", "nginx", "tshark"]) else { return };
    let folder = Folder::new("umts");
    let scenario = scenario(&nginx(&folder, SIZE));
    let (body, trace) = (folder.file("body"), folder.file("trace.pcapng"));
    let url = format!("http://{}/object", scenario.links[1].far.ipv4);
    let command = ["curl", "-sS", "-o", &body, &url].map(str::to_owned);
    let (results, report) = emulate(&scenario, Some(&command), Some(&folder));
    assert_eq!((report.outcome, report.exit_code), (Outcome::Complete, Some(0)));
    assert_eq!(fs::metadata(&body).unwrap().len(), SIZE as u64);
    // RLC repairs all losses; and nothing is faster than the channel.
    let value = |name: &str| results.summary.values[name];
    assert!(value("rlc_resent") > 0.0);
    assert_eq!(value("lost"), 0.0);
    assert!(value("simulated_s") > SIZE as f64 * 8.0 / 384e3, "{}", value("simulated_s"));

    let checks = ["ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "udp.check_checksum:TRUE"];
    let options =
        ["--enable-heuristic", "rlc_udp"].into_iter().chain(checks.iter().flat_map(|check| ["-o", check]));
    let options: Vec<&str> = options.collect();
    let count =
        |filter: &str| tshark(trace.as_ref(), &[&options[..], &["-Y", filter]].concat()).lines().count();
    assert_eq!(count("_ws.malformed || _ws.expert.severity >= 8388608"), 0);
    let all = count("frame");
    assert_eq!(
        count("ip.checksum.status == 1 && (tcp.checksum.status == 1 || udp.checksum.status == 1)"),
        all
    );
    let sent = count("rlc.dc == 1 && frame.interface_name == \"radio.rlc.dl.tx\"");
    let lost = count("frame.comment contains \"dropped\" && frame.interface_name == \"radio.rlc.dl.tx\"");
    let arrived = count("rlc && frame.interface_name == \"radio.rlc.dl.rx\"");
    assert_eq!(sent as f64, value("downlink.rlc_pdus"));
    assert_eq!(lost as f64, value("downlink.blocks_lost"));
    assert!(arrived <= count("rlc && frame.interface_name == \"radio.rlc.dl.tx\"") - lost);
    assert!(count("rlc.sufi && frame.interface_name == \"radio.rlc.ul.tx\"") > 0, "there are STATUS PDUs");
    assert!(count("frame.comment == \"attempt 2\"") > 0);
    assert!(count("tcp && frame.interface_name == \"mobile.radio.ip\"") > SIZE / 1500);
}
