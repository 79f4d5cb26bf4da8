//! pcapng captures with one interface per observation point.
//!
//! Text: IETF draft-ietf-opsawg-pcapng. What is written, in this order: section header; an interface description
//! per captured point (later, should a point appear during the run); an enhanced packet block per packet or
//! PDU, with direction, packet number, losses and comments as options; interface statistics. Times are nanoseconds
//! since the run began, and nothing in the file tells where or when it was written, so that the same run gives the
//! same octets.
//!
//! A lost packet is written where it was last seen, with the reason as its comment; the next packet of that
//! direction that comes out of the same link says in its dropcount that something is missing before it. A
//! datagram appears once per point, however many events it had there: otherwise every reader would take the
//! second sighting for a retransmission. PDUs appear each time they are sent.
//!
//! Readers keep one state per TCP connection and not one per interface, so their analysis of a file with several
//! IP points counts each further sighting as a retransmission (and Wireshark 4.0 reports reassembly errors if
//! segments were really sent again). `tshark -r FILE -Y 'frame.interface_name == "mobile.radio.ip"' -w ONE` cuts one
//! view out. A scenario that names no points gets one view of each flow.
//!
//! Left out: name resolution, and events that are not sightings (entering and leaving a queue); they stand in the packets
//! table. Secrets of QUIC's connections go before the packets that they protect.

use std::io::{self, Write};

use airloom_base::record::{Event, PacketRecord, PointInfo, PointKind};
use airloom_base::{Instant, Outbox};

use crate::gsmtap;
use crate::umts::{self, View};

/// Reads the same in both orders of octets.
pub(crate) const SECTION_HEADER: u32 = 0x0A0D_0D0A;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const DECRYPTION_SECRETS: u32 = 10;
/// Secrets in the lines of TLS's key log.
const TLS_KEY_LOG: u32 = 0x544c_534b;
pub(crate) const ENHANCED_PACKET: u32 = 6;

pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// IPv4 or IPv6 without a link header.
const LINKTYPE_RAW: u16 = 101;
/// LINKTYPE_PPP: frames without flags and checksum.
const LINKTYPE_PPP: u16 = 9;
/// LINKTYPE_USER0: PIAFS frames, for which Wireshark has no dissector of its own.
const LINKTYPE_PIAFS: u16 = 147;

const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const EPB_DROPCOUNT: u16 = 4;
const EPB_PACKETID: u16 = 5;
const EPB_QUEUE: u16 = 6;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

const NANOSECONDS: u8 = 9;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// How many of a point's last packets are remembered, so that a loss reported after the sighting is not a second
/// sighting. A power of two.
const REMEMBERED: usize = 4096;

/// What the section header says of the run.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Scenario, seed and run-id.
    pub comment: String,
    /// Product and version.
    pub application: String,
    /// Time of day at the start of the run, in nanoseconds since 1970-01-01 00:00 UTC: 0 unless the scenario sets it.
    pub epoch: u64,
}

/// An interface of the file.
struct Interface {
    kind: PointKind,
    /// Number of a bundle's member link, or the radio bearer.
    queue: Option<u32>,
    /// Is it a receiving end?
    receives: bool,
    /// Index of its group: the points of one link that packets pass one after the other.
    group: usize,
    /// Packets written.
    written: u64,
    /// Packets that were lost on the way to here (or here, if nothing came out of the link any more).
    dropped: u64,
    /// Number of the packet last written with this number modulo [`REMEMBERED`].
    seen: Box<[u64]>,
}

/// Packets lost in a link and not yet missed at its end.
#[derive(Clone, Copy, Default)]
struct Lost {
    count: u64,
    /// Interface where the last one was lost.
    at: usize,
}

/// Writes a capture of all points whose octets were asked for.
pub struct Writer<W: Write> {
    out: W,
    block: Vec<u8>,
    frame: Vec<u8>,
    /// Interface of each point, by number.
    of_point: Vec<Option<usize>>,
    interfaces: Vec<Interface>,
    groups: Vec<String>,
    /// By group and direction.
    lost: Vec<[Lost; 2]>,
    epoch: u64,
    last: Instant,
}

impl<W: Write> Writer<W> {
    /// Begins a section. Interfaces follow with the first [`Writer::write`].
    pub fn new(out: W, about: &About) -> io::Result<Self> {
        let mut writer = Writer {
            out,
            block: Vec::with_capacity(2048),
            frame: Vec::with_capacity(2048),
            of_point: Vec::new(),
            interfaces: Vec::new(),
            groups: Vec::new(),
            lost: Vec::new(),
            epoch: about.epoch,
            last: Instant::ZERO,
        };
        writer.begin(SECTION_HEADER);
        writer.u32(BYTE_ORDER_MAGIC);
        writer.u16(1);
        writer.u16(0);
        writer.u64(u64::MAX); // length not known
        writer.text(OPT_COMMENT, &about.comment);
        writer.text(SHB_USERAPPL, &about.application);
        writer.end()?;
        Ok(writer)
    }

    /// Appends the packets of `outbox`, which stays as it is.
    pub fn write(&mut self, outbox: &Outbox) -> io::Result<()> {
        if self.of_point.len() < outbox.points().len() {
            self.add_points(outbox.points())?;
        }
        if !outbox.secrets.is_empty() {
            self.begin(DECRYPTION_SECRETS);
            self.u32(TLS_KEY_LOG);
            self.u32(outbox.secrets.len() as u32);
            self.block.extend_from_slice(outbox.secrets.as_bytes());
            self.pad();
            self.end()?;
        }
        for (n, record) in outbox.packets.iter().enumerate() {
            let octets = outbox.octets.get(record.octets.clone()).unwrap_or(&[]);
            // A bearer that knows the fate of a block when it sends it reports both at once, the octets once.
            let is_lost = outbox.packets.get(n + 1).is_some_and(|next| {
                next.facts.event == Event::Drop
                    && next.octets.is_empty()
                    && (next.point, next.at) == (record.point, record.at)
            });
            self.packet(record, octets, is_lost)?;
        }
        Ok(())
    }

    /// Ends the section with the statistics of each interface and returns the flushed output.
    pub fn finish(mut self) -> io::Result<W> {
        for lost in self.lost.iter().flatten().filter(|l| l.count > 0) {
            self.interfaces[lost.at].dropped += lost.count;
        }
        for id in 0..self.interfaces.len() {
            let interface = &self.interfaces[id];
            let (received, dropped) = (interface.written, interface.dropped);
            self.begin(INTERFACE_STATISTICS);
            self.u32(id as u32);
            self.time(self.last);
            self.option(ISB_IFRECV, &received.to_le_bytes());
            self.option(ISB_IFDROP, &dropped.to_le_bytes());
            self.end()?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn add_points(&mut self, points: &[PointInfo]) -> io::Result<()> {
        for info in &points[self.of_point.len()..] {
            if !info.octets {
                self.of_point.push(None);
                continue;
            }
            self.of_point.push(Some(self.interfaces.len()));
            let group = self.group(info);
            self.interfaces.push(Interface {
                kind: info.kind,
                queue: queue(info),
                receives: info.name.ends_with(".rx"),
                group,
                written: 0,
                dropped: 0,
                seen: vec![0; REMEMBERED].into(),
            });
            self.begin(INTERFACE_DESCRIPTION);
            self.u16(match info.kind {
                PointKind::Piafs { .. } => LINKTYPE_PIAFS,
                PointKind::Ppp { .. } => LINKTYPE_PPP,
                _ => LINKTYPE_RAW,
            });
            self.u16(0);
            self.u32(0); // no limit on the length of a packet
            self.text(IF_NAME, &info.name);
            self.text(IF_DESCRIPTION, &description(info.kind));
            if let Some(speed) = info.speed {
                self.option(IF_SPEED, &speed.to_le_bytes());
            }
            self.option(IF_TSRESOL, &[NANOSECONDS]);
            self.end()?;
        }
        Ok(())
    }

    fn group(&mut self, info: &PointInfo) -> usize {
        let name = group_name(info);
        self.groups.iter().position(|g| g == name).unwrap_or_else(|| {
            self.groups.push(name.to_owned());
            self.lost.push([Lost::default(); 2]);
            self.groups.len() - 1
        })
    }

    fn packet(&mut self, record: &PacketRecord, octets: &[u8], is_lost: bool) -> io::Result<()> {
        let Some(id) = self.of_point.get(usize::from(record.point.0)).copied().flatten() else {
            return Ok(());
        };
        let facts = &record.facts;
        let is_sighting = match (self.interfaces[id].kind, facts.event) {
            (_, Event::Enqueue) => false,
            (_, Event::Receive | Event::Retransmit) => true,
            // There an acknowledgement is a PDU: a STATUS.
            (
                PointKind::RlcAm { .. }
                | PointKind::Gsmtap { .. }
                | PointKind::Piafs { .. }
                | PointKind::Ppp { .. },
                _,
            ) => true,
            (PointKind::Ip, Event::Ack) => false,
            (PointKind::Ip, _) => !self.interfaces[id].remember(facts.packet),
        };
        if is_sighting && !octets.is_empty() {
            self.packet_block(id, record, octets, is_lost)?;
        }
        if facts.event == Event::Drop {
            let lost = &mut self.lost[self.interfaces[id].group][facts.direction as usize];
            *lost = Lost { count: lost.count + 1, at: id };
        }
        Ok(())
    }

    fn packet_block(
        &mut self,
        id: usize,
        record: &PacketRecord,
        octets: &[u8],
        is_lost: bool,
    ) -> io::Result<()> {
        self.last = self.last.max(record.at);
        let facts = &record.facts;
        let interface = &mut self.interfaces[id];
        interface.written += 1;
        let lost = match facts.event {
            Event::Receive => std::mem::take(&mut self.lost[interface.group][facts.direction as usize]).count,
            _ => 0,
        };
        interface.dropped += lost;
        let (kind, queue) = (interface.kind, interface.queue);
        let inbound = match facts.event {
            Event::Receive => true,
            Event::Drop => interface.receives,
            _ => false,
        };

        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        match kind {
            PointKind::Ip | PointKind::Piafs { .. } | PointKind::Ppp { .. } => {
                frame.extend_from_slice(octets)
            }
            PointKind::RlcAm { direction, station, li_octets } => {
                let view = match facts.event {
                    Event::Drop => View::Lost,
                    _ if inbound => View::Received,
                    _ => View::Sent,
                };
                umts::append(&mut frame, direction, station, li_octets, view, octets);
            }
            PointKind::Gsmtap { direction, station } => {
                gsmtap::append(&mut frame, direction, station, octets)
            }
        }
        self.begin(ENHANCED_PACKET);
        self.u32(id as u32);
        self.time(record.at);
        self.u32(frame.len() as u32);
        self.u32(frame.len() as u32);
        self.block.extend_from_slice(&frame);
        self.pad();
        self.frame = frame;

        match (is_lost || facts.event == Event::Drop, facts.reason) {
            (true, Some(reason)) => self.text(OPT_COMMENT, &format!("dropped: {reason}")),
            (true, None) => self.text(OPT_COMMENT, "dropped"),
            (_, Some(reason)) => self.text(OPT_COMMENT, reason),
            (_, None) => {}
        }
        if facts.attempt > 1 {
            self.text(OPT_COMMENT, &format!("attempt {}", facts.attempt));
        }
        self.option(EPB_FLAGS, &(if inbound { INBOUND } else { OUTBOUND }).to_le_bytes());
        if lost > 0 {
            self.option(EPB_DROPCOUNT, &lost.to_le_bytes());
        }
        if facts.packet != 0 {
            self.option(EPB_PACKETID, &facts.packet.to_le_bytes());
        }
        if let Some(queue) = queue {
            self.option(EPB_QUEUE, &queue.to_le_bytes());
        }
        self.end()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        self.u32(0); // the length, known at the end
    }

    /// Closes the options, fills in both lengths and writes the block.
    fn end(&mut self) -> io::Result<()> {
        self.u32(0); // opt_endofopt
        let len = (self.block.len() + 4) as u32;
        self.u32(len);
        self.block[4..8].copy_from_slice(&len.to_le_bytes());
        self.out.write_all(&self.block)
    }

    fn u16(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    /// A time: the upper half first.
    fn time(&mut self, at: Instant) {
        let nanos = self.epoch.saturating_add(at.as_nanos());
        self.u32((nanos >> 32) as u32);
        self.u32(nanos as u32);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(value.len() as u16);
        self.block.extend_from_slice(value);
        self.pad();
    }

    /// A text option, cut (at a character) to what its length field can say; nothing if it is empty.
    fn text(&mut self, code: u16, value: &str) {
        if !value.is_empty() {
            let mut end = value.len().min(usize::from(u16::MAX));
            while !value.is_char_boundary(end) {
                end -= 1;
            }
            self.option(code, &value.as_bytes()[..end]);
        }
    }
}

impl Interface {
    /// Notes that `packet` was here; was it before?
    fn remember(&mut self, packet: u64) -> bool {
        let slot = &mut self.seen[packet as usize % REMEMBERED];
        let before = packet != 0 && *slot == packet;
        *slot = packet;
        before
    }
}

fn description(kind: PointKind) -> String {
    match kind {
        PointKind::Ip => "IP datagrams".to_owned(),
        PointKind::RlcAm { direction, station, .. } => {
            format!("UMTS RLC AM, station {}, {} ({})", station.0, direction.name(), umts::HINT)
        }
        PointKind::Piafs { direction, station } => {
            format!("PIAFS, station {}, {} (piafs.lua)", station.0, direction.name())
        }
        PointKind::Ppp { direction, station } => {
            format!("PPP, station {}, {}", station.0, direction.name())
        }
        PointKind::Gsmtap { direction, station } => {
            format!("EGPRS RLC/MAC, station {}, {} (GSMTAP)", station.0, direction.name())
        }
    }
}

/// The number after `.member.` in a bundle's point, or the radio bearer.
fn queue(info: &PointInfo) -> Option<u32> {
    match info.kind {
        PointKind::RlcAm { .. } => Some(u32::from(umts::RADIO_BEARER)),
        PointKind::Gsmtap { .. } => None,
        PointKind::Ip | PointKind::Piafs { .. } | PointKind::Ppp { .. } => {
            let (_, rest) = info.name.split_once(".member.")?;
            rest.split('.').next()?.parse().ok()
        }
    }
}

/// The points that packets pass one after the other: `radio` for `gateway.radio.ip` and `radio.queue.dl.tx`,
/// `radio.rlc.dl` for the two ends of an RLC entity.
fn group_name(info: &PointInfo) -> &str {
    let name = info.name.as_str();
    match info.kind {
        PointKind::RlcAm { .. }
        | PointKind::Gsmtap { .. }
        | PointKind::Piafs { .. }
        | PointKind::Ppp { .. } => name.rsplit_once('.').map_or(name, |(stem, _)| stem),
        PointKind::Ip => match name.strip_suffix(".ip").and_then(|n| n.split_once('.')) {
            Some((_, link)) => link,
            None => name.split('.').next().unwrap_or(name),
        },
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::record::PacketFacts;
    use airloom_base::{Direction, Station};

    use super::*;

    /// A block as a reader sees it: type, body, and options as (code, value).
    struct Block {
        kind: u32,
        body: Vec<u8>,
        options: Vec<(u16, Vec<u8>)>,
    }

    impl Block {
        fn values(&self, code: u16) -> Vec<&[u8]> {
            self.options.iter().filter(|(c, _)| *c == code).map(|(_, v)| v.as_slice()).collect()
        }
        fn comments(&self) -> Vec<&str> {
            self.values(OPT_COMMENT).iter().map(|v| std::str::from_utf8(v).unwrap()).collect()
        }
    }

    fn u32_at(octets: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(octets[at..at + 4].try_into().unwrap())
    }

    /// Reads a file back, checking every length, all padding and the end of every option list.
    fn read(mut file: &[u8]) -> Vec<Block> {
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let (kind, len) = (u32_at(file, 0), u32_at(file, 4) as usize);
            assert!(len.is_multiple_of(4) && len >= 12);
            assert_eq!(u32_at(file, len - 4) as usize, len);
            let body = &file[8..len - 4];
            let fixed = match kind {
                SECTION_HEADER => 16,
                INTERFACE_DESCRIPTION => 8,
                INTERFACE_STATISTICS => 12,
                ENHANCED_PACKET => 20 + (u32_at(body, 12) as usize).next_multiple_of(4),
                _ => panic!("unknown block {kind}"),
            };
            let mut rest = &body[fixed..];
            let mut options = Vec::new();
            loop {
                let code = u16::from_le_bytes([rest[0], rest[1]]);
                let len = usize::from(u16::from_le_bytes([rest[2], rest[3]]));
                let padded = len.next_multiple_of(4);
                assert!(rest[4 + len..4 + padded].iter().all(|b| *b == 0));
                if code == 0 {
                    assert_eq!((len, rest.len()), (0, 4));
                    break;
                }
                options.push((code, rest[4..4 + len].to_vec()));
                rest = &rest[4 + padded..];
            }
            blocks.push(Block { kind, body: body[..fixed].to_vec(), options });
            file = &file[len..];
        }
        blocks
    }

    fn facts(event: Event, packet: u64) -> PacketFacts {
        PacketFacts { packet, len: 3, ..PacketFacts::bare("udp", event, Direction::Downlink) }
    }

    fn ip_points(names: &[&str]) -> Outbox {
        let mut outbox = Outbox::default();
        for name in names {
            outbox.add_point((*name).to_owned(), PointKind::Ip);
        }
        outbox.ask(|_| (false, true));
        outbox
    }

    fn add(outbox: &mut Outbox, at: u64, point: u16, facts: PacketFacts) {
        outbox.packet(
            Instant::from_nanos(at),
            airloom_base::Point(point),
            || facts,
            |out| out.extend_from_slice(&[0x45, 1, 2]),
        );
    }

    fn write(outbox: &Outbox) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &About::default()).unwrap();
        writer.write(outbox).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn a_section_header_has_these_octets() {
        let about = About { comment: "abc".to_owned(), application: "airloom 1".to_owned(), epoch: 0 };
        let file = Writer::new(Vec::new(), &about).unwrap().finish().unwrap();
        #[rustfmt::skip]
        let expected = [
            0x0a, 0x0d, 0x0d, 0x0a, 56, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            1, 0, 3, 0, b'a', b'b', b'c', 0,
            4, 0, 9, 0, b'a', b'i', b'r', b'l', b'o', b'o', b'm', b' ', b'1', 0, 0, 0,
            0, 0, 0, 0, 56, 0, 0, 0,
        ];
        assert_eq!(file, expected);
    }

    #[test]
    fn a_packet_block_has_these_octets() {
        let mut outbox = ip_points(&["a.wire.ip"]);
        add(&mut outbox, 0x1_0000_0002, 0, facts(Event::Transmit, 7));
        let file = write(&outbox);
        #[rustfmt::skip]
        let expected = [
            6, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0,
            0x45, 1, 2, 0,
            2, 0, 4, 0, 2, 0, 0, 0,
            5, 0, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 60, 0, 0, 0,
        ];
        assert!(file.windows(expected.len()).any(|w| w == expected));
    }

    #[test]
    fn times_count_from_the_epoch() {
        let mut outbox = ip_points(&["a.wire.ip"]);
        add(&mut outbox, 7, 0, facts(Event::Transmit, 1));
        let about = About { epoch: 0x0102_0304_0506_0700, ..About::default() };
        let mut writer = Writer::new(Vec::new(), &about).unwrap();
        writer.write(&outbox).unwrap();
        let blocks = read(&writer.finish().unwrap());
        assert_eq!((u32_at(&blocks[2].body, 4), u32_at(&blocks[2].body, 8)), (0x0102_0304, 0x0506_0707));
    }

    #[test]
    fn an_interface_tells_its_name_speed_and_nanoseconds() {
        let mut outbox = ip_points(&["a.wire.ip"]);
        outbox.set_speed(airloom_base::Point(0), 384_000);
        let blocks = read(&write(&outbox));
        assert_eq!(blocks[1].body, [101, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(blocks[1].values(IF_NAME), [b"a.wire.ip"]);
        assert_eq!(blocks[1].values(IF_SPEED), [384_000u64.to_le_bytes()]);
        assert_eq!(blocks[1].values(IF_TSRESOL), [[9]]);
    }

    #[test]
    fn a_loss_is_commented_where_it_happened_and_counted_where_it_is_missed() {
        let mut outbox = ip_points(&["a.wire.ip", "wire.queue.dl.tx", "b.wire.ip", "c.other.ip"]);
        add(&mut outbox, 1, 0, facts(Event::Transmit, 1));
        add(&mut outbox, 2, 1, PacketFacts { reason: Some("queue full"), ..facts(Event::Drop, 2) });
        add(&mut outbox, 3, 3, facts(Event::Receive, 4));
        add(&mut outbox, 3, 2, facts(Event::Receive, 1));
        add(&mut outbox, 4, 1, facts(Event::Drop, 5));
        let blocks = read(&write(&outbox));
        let packets: Vec<_> = blocks.iter().filter(|b| b.kind == ENHANCED_PACKET).collect();
        assert_eq!(packets[1].comments(), ["dropped: queue full"]);
        assert!(packets[2].values(EPB_DROPCOUNT).is_empty());
        assert_eq!(packets[3].values(EPB_DROPCOUNT), [1u64.to_le_bytes()]);
        assert_eq!(packets[3].values(EPB_FLAGS), [INBOUND.to_le_bytes()]);
        let statistics = blocks.iter().filter(|b| b.kind == INTERFACE_STATISTICS);
        let drops: Vec<_> = statistics.map(|b| b.values(ISB_IFDROP)[0][0]).collect();
        assert_eq!(drops, [0, 1, 1, 0]);
    }

    #[test]
    fn a_datagram_that_was_sent_and_then_lost_is_captured_once() {
        let mut outbox = ip_points(&["a.wire.ip"]);
        add(&mut outbox, 1, 0, facts(Event::Transmit, 9));
        add(&mut outbox, 2, 0, facts(Event::Drop, 9));
        let blocks = read(&write(&outbox));
        assert_eq!(blocks.iter().filter(|b| b.kind == ENHANCED_PACKET).count(), 1);
        assert_eq!(blocks.last().unwrap().values(ISB_IFDROP), [1u64.to_le_bytes()]);
    }

    #[test]
    fn entering_a_queue_is_no_sighting() {
        let mut outbox = ip_points(&["wire.queue.dl.tx"]);
        add(&mut outbox, 1, 0, facts(Event::Enqueue, 1));
        assert!(read(&write(&outbox)).iter().all(|b| b.kind != ENHANCED_PACKET));
    }

    #[test]
    fn attempts_and_radio_bearer_of_an_rlc_pdu_are_told() {
        let mut outbox = Outbox::default();
        let kind = PointKind::RlcAm { direction: Direction::Downlink, station: Station(0), li_octets: 1 };
        outbox.add_point("radio.rlc.dl.tx".to_owned(), kind);
        outbox.ask(|_| (false, true));
        add(&mut outbox, 1, 0, PacketFacts { attempt: 2, ..facts(Event::Retransmit, 1) });
        let blocks = read(&write(&outbox));
        assert_eq!(blocks[2].comments(), ["attempt 2"]);
        assert_eq!(blocks[2].values(EPB_QUEUE), [5u32.to_le_bytes()]);
        assert_eq!(u32_at(&blocks[2].body, 12) as usize, umts::OVERHEAD + 3);
    }

    #[test]
    fn a_block_sent_and_lost_at_once_and_a_status_are_captured_once_each() {
        let mut outbox = Outbox::default();
        let kind = PointKind::RlcAm { direction: Direction::Downlink, station: Station(0), li_octets: 1 };
        outbox.add_point("radio.rlc.dl.tx".to_owned(), kind);
        outbox.ask(|_| (false, true));
        let point = airloom_base::Point(0);
        let lost = PacketFacts { reason: Some("block error"), ..facts(Event::Transmit, 1) };
        add(&mut outbox, 1, 0, lost.clone());
        outbox.packet(Instant::from_nanos(1), point, || PacketFacts { event: Event::Drop, ..lost }, |_| ());
        add(&mut outbox, 2, 0, facts(Event::Ack, 0));
        let blocks = read(&write(&outbox));
        let packets: Vec<_> = blocks.iter().filter(|b| b.kind == ENHANCED_PACKET).collect();
        assert_eq!(packets.len(), 2);
        assert_eq!(packets[0].comments(), ["dropped: block error"]);
        assert_eq!(packets[1].comments(), Vec::<&str>::new());
        assert_eq!(blocks.last().unwrap().values(ISB_IFDROP), [1u64.to_le_bytes()]);
    }

    #[test]
    fn points_without_a_capture_have_no_interface_and_later_points_get_one() {
        let mut outbox = ip_points(&["a.wire.ip", "b.wire.ip"]);
        outbox.ask(|p| (true, p.name.starts_with('b')));
        let mut writer = Writer::new(Vec::new(), &About::default()).unwrap();
        add(&mut outbox, 1, 0, facts(Event::Transmit, 1));
        writer.write(&outbox).unwrap();
        outbox.add_point("b.late.ip".to_owned(), PointKind::Ip);
        outbox.ask(|p| (true, p.name.starts_with('b')));
        outbox.clear();
        add(&mut outbox, 2, 2, facts(Event::Transmit, 2));
        writer.write(&outbox).unwrap();
        let blocks = read(&writer.finish().unwrap());
        let kinds: Vec<u32> = blocks.iter().map(|b| b.kind).collect();
        assert_eq!(kinds, [SECTION_HEADER, 1, 1, ENHANCED_PACKET, 5, 5]);
        assert_eq!(u32_at(&blocks[3].body, 0), 1);
    }

    #[test]
    fn texts_longer_than_an_option_are_cut_at_a_character() {
        let about = About { comment: "ä".repeat(40_000), ..About::default() };
        let blocks = read(&Writer::new(Vec::new(), &about).unwrap().finish().unwrap());
        assert_eq!(blocks[0].comments()[0].chars().count(), 32_767);
    }
}
