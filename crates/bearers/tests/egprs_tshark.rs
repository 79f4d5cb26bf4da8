//! An independent dissector reads every EGPRS block of several transfers: tshark, where it is installed.

use airloom_base::{Body, Cx, Direction, Instant, Outbox, Packet, Parts, Station};
use airloom_bearers::egprs::Egprs;
use airloom_testkit::tshark;
use serde_json::{Value, json};

/// GSMTAP messages of a transfer both ways, with the sequence number of the first RLC block (none: a report).
fn transfer(config: &Value) -> Vec<(Option<u64>, Vec<u8>)> {
    let mut records = Outbox::default();
    let mut parts = Parts::new(3, "radio", 1, &mut records);
    let mut bearer = Egprs::build(config, &mut parts).expect("a valid configuration");
    records.ask(|point| (false, point.name.ends_with(".tx")));
    for n in 0..20 {
        for (direction, octets) in [(Direction::Downlink, 700 + n), (Direction::Uplink, 140)] {
            let packet = Packet::build(|_| 20, Body::filler(n, octets - 20));
            let mut cx = Cx { now: Instant::ZERO, records: &mut records };
            bearer.send(&mut cx, direction, Station(0), packet);
        }
    }
    while let Some(now) = bearer.poll_timeout() {
        bearer.handle_timeout(&mut Cx { now, records: &mut records });
        while bearer.poll_delivery().is_some() {}
    }
    let rows = records.packets.iter().filter(|r| !r.octets.is_empty());
    rows.map(|r| (r.facts.seq, records.octets[r.octets.clone()].to_vec())).collect()
}

/// One line of `fields` a message.
fn dissect(name: &str, messages: &[(Option<u64>, Vec<u8>)], fields: &[&str]) -> Vec<String> {
    let octets: Vec<_> = messages.iter().map(|(_, octets)| octets.clone()).collect();
    tshark::dissect(&format!("egprs-{name}"), [4729, 4729], &octets, &[], fields)
}

#[test]
fn tshark_reads_what_mobiles_have_measured() {
    if !tshark::are_installed(&["tshark"], "bearers/egprs_tshark") {
        return;
    }
    let ci = json!({ "trace": [[0, 30], [0.5, 14]] });
    // Not cut in two: tshark takes the second half of a block for the beginning of one.
    let adaptation = json!({ "resegment": false });
    let messages =
        transfer(&json!({ "ci": ci, "link_adaptation": adaptation, "loss": 0.05, "tbf": "always" }));
    let fields = ["_ws.malformed", "gsm_rlcmac.ul.message_type", "gsm_rlcmac.ul.prr_mean_bep_gmsk"];
    let lines = dissect("measured", &messages, &fields);
    assert_eq!(lines.len(), messages.len());
    assert!(lines.iter().all(|line| line.starts_with('|')), "malformed: {lines:?}");
    let reports: Vec<&String> = lines.iter().filter(|line| line.contains("|8|")).collect();
    assert!(!reports.is_empty());
    for line in reports {
        let mean: Option<u8> = line.rsplit('|').next().and_then(|mean| mean.parse().ok());
        assert!(mean.is_some_and(|mean| mean < 32), "{line}");
    }
}

#[test]
fn tshark_reads_every_block_as_we_wrote_it() {
    if !tshark::are_installed(&["tshark"], "bearers/egprs_tshark") {
        return;
    }
    for mcs in 1..=9 {
        let messages = transfer(&json!({ "mcs": mcs, "loss": 0.15, "tbf": "always" }));
        let name = format!("mcs-{mcs}");
        let lines = dissect(
            &name,
            &messages,
            &[
                "_ws.malformed",
                "gsm_rlcmac.bsn",
                "gsm_rlcmac.ul.message_type",
                "gsm_rlcmac.dl.message_type",
                "frame.protocols",
            ],
        );
        assert_eq!(lines.len(), messages.len(), "{name}");
        let malformed = lines.iter().filter(|line| !line.starts_with('|')).count();
        assert_eq!(malformed, 0, "{name}: {:?}", lines.iter().find(|line| !line.starts_with('|')));
        for (line, (seq, _)) in lines.iter().zip(&messages) {
            assert!(line.contains("gsmtap:gsm_rlcmac"), "{name}: {line}");
            let read: Vec<&str> = line.split('|').collect();
            match seq {
                Some(seq) => {
                    let first = read[1].split(',').next().and_then(|bsn| bsn.parse::<u64>().ok());
                    assert_eq!(first, Some(*seq), "{name}: {line}");
                }
                // A report, by its type: EGPRS PACKET DOWNLINK ACK/NACK or PACKET UPLINK ACK/NACK.
                None => assert!(read[2] == "8" || read[3] == "9", "{name}: {line}"),
            }
        }
    }
}
