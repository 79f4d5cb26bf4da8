//! Captures.

use airloom_record::capture::Reader;

/// A capture of raw datagrams, as it is and behind the head of each of both forms.
pub fn capture(octets: &[u8]) {
    let pcap = [0xA1B2_C3D4_u32, 0x0002_0004, 0, 0, 65_535, 101];
    let section = [0x0A0D_0D0A, 28, 0x1A2B_3C4D, 0x0001_0000, u32::MAX, u32::MAX, 28];
    let interface = [1, 20, 101 << 16, 0, 20];
    for head in [vec![], pcap.to_vec(), [&section[..], &interface].concat()] {
        let file: Vec<u8> = head.iter().flat_map(|n| n.to_be_bytes()).chain(octets.iter().copied()).collect();
        if let Ok(reader) = Reader::new(file.as_slice()) {
            let report = airloom_analyze::analyze(reader, &airloom_analyze::Options::default()).report;
            assert!(report.segments <= report.frames);
        }
    }
}

/// A capture of one or two TCP connections, whose segments the octets say, as a file of pcap that is analysed.
pub fn analysis(octets: &[u8]) {
    use airloom_transports::tcp::wire::{Flags, Header};

    use crate::octets::Octets;
    let mut octets = Octets::new(octets);
    let mut file: Vec<u8> =
        [0xA1B2_C3D4_u32, 0x0002_0004, 0, 0, 65_535, 101].iter().flat_map(|n| n.to_be_bytes()).collect();
    let ends = [1, 2].map(|n| std::net::IpAddr::from([10, 0, 0, n]));
    let (mut at, mut next) = (0_u64, [[1000_u32, 5000]; 2]);
    while let Some(what) = octets.next() {
        let (connection, from) = (usize::from(what >> 1 & 1), usize::from(what & 1));
        let numbers = &mut next[connection];
        let mut header = Header {
            source: [40_000 + connection as u16, 80][from],
            destination: [40_000 + connection as u16, 80][1 - from],
            seq: numbers[from],
            ack: numbers[1 - from],
            flags: Flags(if what & 4 == 0 { Flags::ACK.0 } else { octets.octet() }),
            window: 60_000,
            ..Header::default()
        };
        if what & 8 != 0 {
            header.seq = header.seq.wrapping_add_signed(i32::from(octets.number().cast_signed()));
        }
        if what & 16 != 0 {
            header.ack = header.ack.wrapping_add_signed(i32::from(octets.number().cast_signed()));
            header.window = octets.number();
        }
        if what & 32 != 0 {
            header.options.timestamps = Some((octets.number().into(), octets.number().into()));
            let left = header.ack.wrapping_add(octets.number().into());
            header.options.sack.push(left, left.wrapping_add(octets.number().into()));
            header.options.mss = Some(octets.number());
        }
        let len = if what & 64 != 0 { octets.number() % 1460 } else { 0 };
        if what & 8 == 0 {
            let controls = header.flags.0 & (Flags::SYN.0 | Flags::FIN.0);
            numbers[from] = numbers[from].wrapping_add(u32::from(len) + controls.count_ones());
        }
        at += u64::from(octets.octet()) * if what & 128 != 0 { 10_000 } else { 500 };
        let mut packet =
            airloom_base::Packet::build(|out| header.emit(out), airloom_base::Body::filler(1, len.into()));
        let len = packet.wire_len();
        let ip = packet.prepend(airloom_wire::ip::header_len(ends[0]));
        airloom_wire::ip::emit(ip, ends[from], ends[1 - from], 6, 0, len);
        let mut datagram = Vec::new();
        airloom_wire::edge::egress(&packet, &mut datagram);
        let whole = datagram.len() as u32;
        datagram.truncate(60);
        for number in [(at / 1_000_000) as u32, (at % 1_000_000) as u32, datagram.len() as u32, whole] {
            file.extend_from_slice(&number.to_be_bytes());
        }
        file.extend_from_slice(&datagram);
    }
    let reader = Reader::new(file.as_slice()).expect("it is ours");
    let report = airloom_analyze::analyze(reader, &airloom_analyze::Options::default()).report;
    assert!(report.segments <= report.frames);
}
