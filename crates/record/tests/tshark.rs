//! An independent reader judges what is written: tshark and capinfos.

use std::path::{Path, PathBuf};
use std::process::Command;

use airloom_base::record::{Event, PacketFacts, PointKind};
use airloom_base::{Body, Direction, Instant, Outbox, Packet, Point, Station};
use airloom_record::{About, CaptureFile};
use airloom_testkit::{Folder, tshark};
use airloom_wire::{edge, ip, udp};

/// Is there somebody to ask?
fn have_tshark() -> bool {
    tshark::are_installed(&["tshark", "capinfos"], "record/tshark")
}

struct Capture {
    _folder: Folder,
    path: PathBuf,
}

impl Capture {
    fn write(name: &str, outbox: &Outbox) -> Capture {
        let folder = Folder::new(&format!("tshark-{name}"));
        // tshark gives up its rights when root starts it, so others must be able to read.
        let path = folder.0.join("trace.pcapng");
        let about = About {
            comment: "scenario test, seed 1, run 0123456789".to_owned(),
            application: "airloom 0.1.0".to_owned(),
            epoch: 0,
        };
        let mut file = CaptureFile::create(&path, &about).unwrap();
        file.write(outbox).unwrap();
        file.finish().unwrap();
        Capture { _folder: folder, path }
    }

    /// The fields of every frame that `filter` shows, one line each.
    fn fields(&self, filter: &str, fields: &[&str]) -> Vec<String> {
        tshark::fields(&self.path, &["--enable-heuristic", "rlc_udp", "-Y", filter], fields)
    }
}

fn capinfos(file: &Path) -> String {
    let output = Command::new("capinfos").args(["-M", "-c", "-E", "-I", "-k"]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn facts(event: Event, packet: u64) -> PacketFacts {
    PacketFacts { packet, ..PacketFacts::bare("udp", event, Direction::Downlink) }
}

fn datagram(len: u32) -> Vec<u8> {
    let total = udp::HEADER + len as usize;
    let mut packet = Packet::build(
        |out| udp::Udp { source: 40_000, destination: 40_001, len: total as u16 }.emit(out),
        Body::filler(1, len),
    );
    let (a, b) = ("10.1.0.1".parse().unwrap(), "10.1.0.2".parse().unwrap());
    ip::emit(packet.prepend(ip::V4_HEADER), a, b, ip::protocol::UDP, 0, total);
    let mut out = Vec::new();
    edge::egress(&packet, &mut out);
    out
}

fn add(outbox: &mut Outbox, ms: u64, point: Point, facts: PacketFacts, octets: &[u8]) {
    let at = Instant::from_nanos(ms * 1_000_000 + 1);
    outbox.packet(at, point, || facts, |out| out.extend_from_slice(octets));
}

#[test]
fn datagrams_are_read_with_names_directions_numbers_comments_and_good_checksums() {
    if !have_tshark() {
        return;
    }
    let mut outbox = Outbox::default();
    let origin = outbox.add_point("origin.internet.ip".to_owned(), PointKind::Ip);
    let queue = outbox.add_point("internet.queue.dl.tx".to_owned(), PointKind::Ip);
    let gateway = outbox.add_point("gateway.internet.ip".to_owned(), PointKind::Ip);
    outbox.set_speed(queue, 10_000_000);
    outbox.ask(|_| (false, true));
    for n in 1..=5 {
        let octets = datagram(100 + n as u32);
        add(&mut outbox, n, origin, facts(Event::Transmit, n), &octets);
        if n == 3 {
            let lost = PacketFacts { reason: Some("queue full"), ..facts(Event::Drop, n) };
            add(&mut outbox, n, queue, lost, &octets);
        } else {
            add(&mut outbox, n + 20, gateway, facts(Event::Receive, n), &octets);
        }
    }
    let capture = Capture::write("ip", &outbox);

    let checks = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let good = ["-Y", "udp.checksum.status == 1 && ip.checksum.status == 1"];
    let counts = tshark::fields(&capture.path, &[&checks[..], &good].concat(), &["frame.number"]);
    assert_eq!(counts.len(), 10);
    assert!(capture.fields("_ws.malformed", &["frame.number"]).is_empty());
    let seen =
        capture.fields("frame.packet_id == 3", &["frame.interface_name", "frame.packet_flags_direction"]);
    assert_eq!(seen, ["origin.internet.ip\t0x00000002", "internet.queue.dl.tx\t0x00000002"]);
    let dropped = capture.fields("frame.comment contains \"dropped: queue full\"", &["frame.time_epoch"]);
    assert_eq!(dropped, ["0.003000001"]);
    let missed = capture.fields("frame.drop_count == 1", &["frame.packet_id", "frame.interface_name"]);
    assert_eq!(missed, ["4\tgateway.internet.ip"]);

    let about = capinfos(&capture.path);
    assert!(about.contains("Number of packets:   10"), "{about}");
    assert!(about.contains("Encapsulation = Raw IP"), "{about}");
    assert!(about.contains("Speed = 10000000"), "{about}");
    assert!(about.contains("scenario test, seed 1"), "{about}");
}

/// Data PDUs of TS 25.322 (9.2.1.4), 12-bit sequence numbers, 7-bit length indicators: `datagram` cut into PDUs
/// of 40 octets.
fn pdus(datagram: &[u8]) -> Vec<Vec<u8>> {
    const PDU: usize = 40;
    let mut rest = datagram;
    let mut out = Vec::new();
    for sn in 0u16.. {
        let mut pdu = vec![0x80 | (sn >> 5) as u8, (sn << 3) as u8];
        if rest.len() >= PDU - 2 {
            pdu.extend_from_slice(&rest[..PDU - 2]);
            rest = &rest[PDU - 2..];
        } else {
            // HE says that a length indicator follows; after the end of the SDU all is padding.
            pdu[1] |= 0b01;
            pdu.extend([(rest.len() as u8) << 1 | 1, 0x7f << 1]);
            pdu.extend_from_slice(rest);
            pdu.resize(PDU, 0);
            out.push(pdu);
            return out;
        }
        out.push(pdu);
    }
    out
}

#[test]
fn rlc_pdus_are_dissected_and_the_datagrams_in_them_reassembled() {
    if !have_tshark() {
        return;
    }
    let mut outbox = Outbox::default();
    let kind = PointKind::RlcAm { direction: Direction::Downlink, station: Station(0), li_octets: 1 };
    let tx = outbox.add_point("radio.rlc.dl.tx".to_owned(), kind);
    let rx = outbox.add_point("radio.rlc.dl.rx".to_owned(), kind);
    outbox.ask(|_| (false, true));
    let pdus = pdus(&datagram(300));
    for (n, pdu) in pdus.iter().enumerate() {
        let ms = n as u64 * 10;
        add(&mut outbox, ms, tx, PacketFacts { attempt: 1, ..facts(Event::Transmit, 7) }, pdu);
        if n == 2 {
            let lost = PacketFacts { reason: Some("block error"), ..facts(Event::Drop, 7) };
            add(&mut outbox, ms + 10, rx, lost, pdu);
        } else {
            add(&mut outbox, ms + 10, rx, facts(Event::Receive, 7), pdu);
        }
    }
    add(&mut outbox, 200, tx, PacketFacts { attempt: 2, ..facts(Event::Retransmit, 7) }, &pdus[2]);
    add(&mut outbox, 210, rx, facts(Event::Receive, 7), &pdus[2]);
    let capture = Capture::write("rlc", &outbox);

    assert_eq!(capture.fields("rlc", &["frame.number"]).len(), 2 * pdus.len() + 2);
    assert!(capture.fields("_ws.malformed", &["frame.number"]).is_empty());
    let numbers = capture.fields("rlc.dc == 1 && frame.interface_name == \"radio.rlc.dl.tx\"", &["rlc.seq"]);
    let expected: Vec<String> = (0..pdus.len()).chain([2]).map(|n| n.to_string()).collect();
    assert_eq!(numbers, expected);
    assert_eq!(capture.fields("frame.comment == \"attempt 2\"", &["rlc.seq"]), ["2"]);
    assert_eq!(capture.fields("frame.comment contains \"block error\"", &["rlc.seq"]), ["2"]);
    let whole = capture.fields("rlc.reassembled_data", &["frame.interface_name"]);
    assert_eq!(whole, ["radio.rlc.dl.tx"], "an SDU is put together as sent");
    assert!(capture.fields("_ws.expert.severity >= 6291456", &["frame.number"]).is_empty());
    let marked = capture.fields("rlc.dc == 1", &["rlc.channel.rbid", "frame.interface_queue"]);
    assert!(marked.iter().all(|m| m == "5\t5"), "{marked:?}");
}
