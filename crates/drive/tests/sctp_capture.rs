//! A transfer over SCTP in a scenario, and what an independent reader says of its capture.

use std::fs;
use std::process::Command;

use airloom_drive::run;
use airloom_drive::virtual_time::Outcome;
use airloom_world::scenario::Scenario;

fn scenario(sctp: &str) -> Scenario {
    let text = format!(
        r#"
        title = "bulk over SCTP"
        path = ["mobile", "wire", "origin"]
        [hosts]
        mobile = {{ app = {{ bulk = {{ size = "301kB" }} }}, transport = {{ sctp = {{ {sctp} }} }} }}
        origin = {{ app = "bulk-server", transport = {{ sctp = {{ {sctp} }} }} }}
        [links]
        wire = {{ bearer = "wireline", rate = "2Mbit/s", delay = "30ms", queue = "40 packets", loss = {{ uplink = "2%", downlink = "2%" }} }}
        [run]
        record = ["packets", "pcapng"]
        limit = "300s"
        "#
    );
    Scenario::parse("sctp.toml", &text).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_packet_of_a_transfer_reads_well_and_has_a_good_checksum() {
    let has_tshark = Command::new("tshark").arg("--version").output().is_ok_and(|o| o.status.success());
    if !has_tshark {
        assert!(std::env::var_os("AIRLOOM_CI").is_none(), "tshark is missing and nothing may be skipped");
        eprintln!("SKIPPED drive/sctp_capture: tshark is not installed (tools/peers test)");
        return;
    }
    for (n, settings) in
        ["", "interleaving = true, ecn = true, message = \"4001B\"", "profile = \"sctp-2000\""]
            .into_iter()
            .enumerate()
    {
        let folder = std::env::temp_dir().join(format!("airloom-sctp-{n}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let trace = folder.join("trace.pcapng");
        let results = run::simulate(&scenario(settings), "0123456789", Some(&trace), |_| true).unwrap();
        assert_eq!(results.outcome, Outcome::Complete);
        assert_eq!(results.summary.values["transfers"], 1.0);
        let count = |filter: &str| {
            let output = Command::new("tshark")
                .arg("-r")
                .arg(&trace)
                .args(["-o", "sctp.checksum:CRC 32c", "-o", "ip.check_checksum:TRUE", "-Y", filter])
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).lines().count()
        };
        let all = count("sctp");
        assert!(all > 250, "{all}");
        assert_eq!(count("sctp.checksum.status == 1"), all, "{settings}: good checksums");
        assert_eq!(count("_ws.malformed || !sctp || ip.checksum.status == 0"), 0, "{settings}");
        // INIT, SACK; the run ends before the association does.
        assert!(count("sctp.chunk_type == 1") >= 1 && count("sctp.chunk_type == 3") >= 1);
        let data = if n == 1 { count("sctp.chunk_type == 64") } else { count("sctp.chunk_type == 0") };
        assert!(data > 200, "{settings}: {data}");
        fs::remove_dir_all(folder).unwrap();
    }
}
