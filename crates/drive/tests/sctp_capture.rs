//! A transfer over SCTP in a scenario, and what an independent reader says of its capture.

use airloom_drive::run;
use airloom_drive::virtual_time::Outcome;
use airloom_testkit::{Folder, tshark};
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
    if !tshark::are_installed(&["tshark"], "drive/sctp_capture") {
        return;
    }
    for (n, settings) in
        ["", "interleaving = true, ecn = true, message = \"4001B\"", "profile = \"sctp-2000\""]
            .into_iter()
            .enumerate()
    {
        let folder = Folder::new(&format!("sctp-{n}"));
        let trace = folder.0.join("trace.pcapng");
        let results = run::simulate(&scenario(settings), "0123456789", Some(&folder.0), |_| true).unwrap();
        assert_eq!(results.outcome, Outcome::Complete);
        assert_eq!(results.summary.values["transfers"], 1.0);
        let count = |filter: &str| {
            let checks = ["-o", "sctp.checksum:CRC 32c", "-o", "ip.check_checksum:TRUE", "-Y", filter];
            tshark::tshark(&trace, &checks).lines().count()
        };
        let all = count("sctp");
        assert!(all > 250, "{all}");
        assert_eq!(count("sctp.checksum.status == 1"), all, "{settings}: good checksums");
        assert_eq!(count("_ws.malformed || !sctp || ip.checksum.status == 0"), 0, "{settings}");
        // INIT, SACK; the run ends before the association does.
        assert!(count("sctp.chunk_type == 1") >= 1 && count("sctp.chunk_type == 3") >= 1);
        let data = if n == 1 { count("sctp.chunk_type == 64") } else { count("sctp.chunk_type == 0") };
        assert!(data > 200, "{settings}: {data}");
    }
}
