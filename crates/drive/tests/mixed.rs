//! Real and simulated ends in one run, and the capture of it.

#![cfg(target_os = "linux")]

mod support;

use std::fs;

use airloom_drive::virtual_time::Outcome;
use airloom_testkit::tshark::tshark;
use airloom_world::scenario::Scenario;

use support::{Folder, emulate, laboratory, nginx};

const CHAIN: &str = r#"
title = "real curl, simulated server"
path = ["mobile", "radio", "gateway", "internet", "origin"]
[hosts]
mobile = { real = true }
gateway = {}
origin = { app = "http-server" }
[links]
radio = { bearer = "wireline", rate = "1Mbit/s", delay = "20ms", queue = "50 packets", loss = { downlink = "3%" } }
internet = { bearer = "wireline", rate = "10Mbit/s", delay = "10ms" }
[run]
record = ["packets", "pcapng"]
points = ["*"]
limit = "120s"
"#;

#[test]
fn real_curl_fetches_from_a_simulated_server_over_a_lossy_link_and_the_capture_is_clean() {
    let Some(_guard) = laboratory("mixed::curl", &["curl", "tshark"]) else { return };
    let folder = Folder::new("mixed");
    let scenario = Scenario::parse("mixed.toml", CHAIN).unwrap_or_else(|e| panic!("{e}"));
    let origin = scenario.links[1].far.ipv4;
    let (body, trace) = (folder.file("body"), folder.file("trace.pcapng"));
    let command = ["curl", "-sS", "-o", &body, &format!("http://{origin}/150000")].map(str::to_owned);
    let (results, report) = emulate(&scenario, Some(&command), Some(&folder));
    assert_eq!((report.outcome, report.exit_code), (Outcome::Complete, Some(0)));
    assert_eq!(fs::metadata(&body).unwrap().len(), 150_000);
    assert_eq!(report.malformed, 0);
    assert_eq!(results.summary.values["port.malformed"], 0.0);
    assert!(results.summary.values["lateness_p99_us"] > 0.0);

    let count = |file: &str, filter: &str| {
        let checks = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-Y", filter];
        tshark(file.as_ref(), &checks).lines().count()
    };
    let all = count(&trace, "tcp");
    assert!(all > 400, "{all}");
    assert_eq!(count(&trace, "tcp.checksum.status == 1 && ip.checksum.status == 1"), all);
    assert!(count(&trace, "frame.comment contains \"dropped\"") > 0);
    assert!(count(&trace, "frame.drop_count > 0") > 0);
    // Readers keep one state per connection, so each point is judged by itself.
    for point in ["mobile.radio.ip", "gateway.radio.ip", "gateway.internet.ip", "origin.internet.ip"] {
        let one = folder.file(point);
        tshark(trace.as_ref(), &["-Y", &format!("frame.interface_name == \"{point}\""), "-w", &one]);
        assert!(count(&one, "tcp") > 100, "{point}");
        assert_eq!(count(&one, "_ws.malformed || tcp.analysis.ack_lost_segment"), 0, "{point}");
    }
    // The sender's side sees each segment that was sent again, as the model counted them.
    let resent = sent_again(&folder.file("origin.internet.ip"), &origin.to_string());
    assert_eq!(resent as f64, results.summary.values["resent"]);
}

/// How many segments of `sender` in a capture brought nothing that had not left before. By numbers: what tshark calls a
/// retransmission depends on times, too.
fn sent_again(file: &str, sender: &str) -> usize {
    let fields = ["tcp.seq", "tcp.len", "tcp.flags"];
    let from = format!("ip.src == {sender}");
    let words = ["-Y", &from, "-T", "fields"].into_iter().chain(fields.iter().flat_map(|f| ["-e", f]));
    let mut highest = 0;
    let mut again = 0;
    for line in tshark(file.as_ref(), &words.collect::<Vec<_>>()).lines() {
        let [seq, len, flags] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (seq, len): (u64, u64) = (seq.parse().unwrap(), len.parse().unwrap());
        let flags = u64::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap();
        let (syn, fin) = (flags >> 1 & 1, flags & 1);
        let end = seq + len + syn + fin;
        // One octet alone asks whether the window is open; the model does not count that as sent.
        let is_probe = len == 1 && fin == 0;
        if end > seq && end <= highest && !is_probe {
            again += 1;
        }
        highest = highest.max(end);
    }
    again
}

#[test]
fn a_simulated_client_fetches_from_a_real_nginx_and_the_run_ends_when_it_is_done() {
    let Some(_guard) = laboratory("mixed::nginx", &["nginx"]) else { return };
    let folder = Folder::new("mixed-nginx");
    let command: Vec<_> = nginx(&folder, 60_000).into_iter().map(|word| format!("{word:?}")).collect();
    let text = format!(
        r#"
        title = "simulated client, real server"
        path = ["mobile", "cable", "origin"]
        [hosts]
        mobile = {{ app = {{ http-client = {{ objects = [{{ path = "/object", size = "60kB" }}] }} }} }}
        origin = {{ real = true, command = [{}] }}
        [links]
        cable = {{ bearer = "wireline", rate = "4Mbit/s", delay = "10ms", queue = "100 packets" }}
        [run]
        limit = "60s"
        "#,
        command.join(", ")
    );
    let scenario = Scenario::parse("mixed.toml", &text).unwrap_or_else(|e| panic!("{e}"));
    let (results, report) = emulate(&scenario, None, None);
    assert_eq!((report.outcome, report.exit_code, report.malformed), (Outcome::Complete, None, 0));
    // Set-up and request take two round trips, the object its time at the rate.
    let seconds = results.summary.values["page_load_s"];
    assert!(seconds >= 0.04 + 60_000.0 * 8.0 / 4e6, "{seconds}");
    assert_eq!(results.summary.values["failed"], 0.0);
}

#[test]
fn a_simulated_proxy_ends_the_connections_of_real_ends_that_know_nothing_of_it() {
    let Some(_guard) = laboratory("mixed::split", &["curl", "nginx"]) else { return };
    let folder = Folder::new("mixed-split");
    let command: Vec<_> = nginx(&folder, 150_000).into_iter().map(|word| format!("{word:?}")).collect();
    let text = format!(
        r#"
        title = "real curl, simulated split TCP, real nginx"
        path = ["mobile", "radio", "gateway", "internet", "origin"]
        [hosts]
        mobile = {{ real = true }}
        gateway = {{ proxy = "split-tcp" }}
        origin = {{ real = true, command = [{}] }}
        [links]
        radio = {{ bearer = "wireline", rate = "2Mbit/s", delay = "20ms", queue = "50 packets", loss = {{ downlink = "1%" }} }}
        internet = {{ bearer = "wireline", rate = "10Mbit/s", delay = "60ms" }}
        [run]
        limit = "60s"
        "#,
        command.join(", ")
    );
    let scenario = Scenario::parse("split.toml", &text).unwrap_or_else(|e| panic!("{e}"));
    let body = folder.file("body");
    let url = format!("http://{}/object", scenario.links[1].far.ipv4);
    let words =
        ["curl", "-sS", "--retry", "8", "--retry-connrefused", "--retry-all-errors", "-o", &body, &url];
    let (results, report) = emulate(&scenario, Some(&words.map(str::to_owned)), None);
    assert_eq!((report.outcome, report.exit_code, report.malformed), (Outcome::Complete, Some(0), 0));
    assert_eq!(fs::metadata(&body).unwrap().len(), 150_000);
    let numbers = &results.summary.values;
    assert!(numbers["gateway.onward_opened"] >= 1.0, "{numbers:?}");
    assert!(numbers["gateway.downlink_bytes"] > 150_000.0, "{numbers:?}");
    // Neither side waits for the other's acknowledgements: the handshake onward took the long way alone.
    assert!(numbers["gateway.onward_open_mean_s"] >= 0.12, "{numbers:?}");
}
