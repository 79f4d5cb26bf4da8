//! An independent dissector reads every PDU of several transfers: tshark, where it is installed.

use airloom_base::{Body, Cx, Direction, Instant, Outbox, Packet, Parts, Station};
use airloom_bearers::umts::UmtsDch;
use airloom_bearers::umts::rlc::am::{Sufi, Sufis};
use airloom_testkit::tshark;
use serde_json::{Value, json};

/// What we say of a PDU: direction, sequence number, LSN, octets.
struct Seen {
    direction: Direction,
    seq: Option<u64>,
    ack: Option<u64>,
    octets: Vec<u8>,
}

/// A transfer in both directions, as seen at the sending points.
fn transfer(config: &Value, sdus: u32) -> Vec<Seen> {
    let mut records = Outbox::default();
    let mut parts = Parts::new(3, "radio", 1, &mut records);
    let mut bearer = UmtsDch::build(config, &mut parts).expect("a valid configuration");
    records.ask(|point| (false, point.name.ends_with(".tx")));
    for n in 0..sdus {
        for (direction, octets) in [(Direction::Downlink, 700 + n), (Direction::Uplink, 40)] {
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
    rows.map(|r| Seen {
        direction: r.facts.direction,
        seq: r.facts.seq,
        ack: r.facts.ack,
        octets: records.octets[r.octets.clone()].to_vec(),
    })
    .collect()
}

/// A PDU in the form of Wireshark's `rlc_udp` heuristic.
fn framed(seen: &Seen) -> Vec<u8> {
    // Mode AM, direction, UE id, bearer id, 7-bit length indicators, then the PDU.
    let head = [3, 2, 4, seen.direction as u8, 5, 0, 0, 0, 1, 6, 5, 7, 1, 1];
    [b"umts-rlc".as_slice(), &head, &seen.octets].concat()
}

#[test]
fn tshark_reads_every_pdu_as_we_wrote_it() {
    if !tshark::are_installed(&["tshark"], "bearers/tshark") {
        return;
    }
    let dying = json!({ "model": "on-off", "first": "off", "off": "300ms", "on": "2s", "loss": 1.0 });
    for (name, config, types) in [
        ("list", json!({ "loss": 0.15, "rlc": { "max_dat": 0 } }), &["2", "3"][..]),
        ("bitmap", json!({ "loss": 0.15, "rlc": { "max_dat": 0, "status_sufi": "bitmap" } }), &["2", "4"]),
        ("rlist", json!({ "loss": 0.15, "rlc": { "max_dat": 0, "status_sufi": "rlist" } }), &["2", "5"]),
        (
            "mrw",
            json!({ "loss": { "downlink": dying }, "rlc": { "discard": "timer", "timer_discard": "500ms" } }),
            &["6", "7"],
        ),
        ("window", json!({ "loss": 0.1, "rlc": { "max_dat": 0, "receive_window": 300 } }), &["1", "2", "3"]),
        ("reset", json!({ "loss": { "downlink": dying }, "rlc": { "max_dat": 3 } }), &["2"]),
        (
            "he",
            json!({ "loss": 0.1, "rlc": { "max_dat": 0, "special_he": true, "piggyback": false } }),
            &["2"],
        ),
    ] {
        let pdus = transfer(&config, 40);
        let fields = [
            "rlc.seq",
            "rlc.sufi.lsn",
            "rlc.sufi.type",
            "rlc.ctrl_pdu_type",
            "_ws.malformed",
            "_ws.expert.message",
            "rlc.sufi.wsn",
            "rlc.sufi.sn_mrw",
        ];
        let framed: Vec<_> = pdus.iter().map(framed).collect();
        let heuristic = ["--enable-heuristic", "rlc_udp"];
        let lines = tshark::dissect(name, [45_000, 45_001], &framed, &heuristic, &fields);
        assert_eq!(lines.len(), pdus.len());
        let mut all = String::new();
        let mut most_named = 0;
        for (line, seen) in lines.iter().zip(&pdus) {
            let columns: Vec<&str> = line.split('|').collect();
            let number = |text: &str| text.parse::<u64>().ok();
            assert_eq!(number(columns[0]), seen.seq, "{name}: {line} {:02x?}", seen.octets);
            assert_eq!(number(columns[1]), seen.ack, "{name}: {line} {:02x?}", seen.octets);
            assert_eq!(columns[4], "", "{name}: malformed {:02x?}", seen.octets);
            for bad in ["Invalid", "incorrect", "reserved", "too many"] {
                assert!(!columns[5].contains(bad), "{name}: {line} {:02x?}", seen.octets);
            }
            // The window offered and the ends of SDUs given up are those that our own reader finds.
            let status =
                if seen.seq.is_none() { Sufis::of(&seen.octets).flatten().collect() } else { vec![] };
            let mut expected = [String::new(), String::new()];
            for sufi in &status {
                match sufi {
                    Sufi::Window { wsn } => expected[0] = wsn.to_string(),
                    Sufi::Mrw(mrw) => {
                        most_named = most_named.max(mrw.sns().len());
                        expected[1] = mrw.sns().iter().map(u16::to_string).collect::<Vec<_>>().join(",");
                    }
                    _ => {}
                }
            }
            if seen.seq.is_none() && name != "reset" {
                assert_eq!(columns[6..8], expected, "{name}: {line} {:02x?}", seen.octets);
            }
            all += &format!(",{},", columns[2].replace(',', ",,"));
        }
        for kind in types {
            assert!(all.contains(&format!(",{kind},")), "{name}: no super-field of type {kind}");
        }
        assert_eq!(most_named > 1, name == "mrw", "{name}: SDUs given up together are named together");
        if name == "reset" {
            let control: Vec<&str> = lines.iter().filter_map(|l| l.split('|').nth(3)).collect();
            assert!(control.contains(&"1") && control.contains(&"2"), "RESET and RESET ACK");
        }
    }
}
