use airloom_record::Values;
use airloom_transports::tcp::wire::{Flags, Header, Options as TcpOptions};
use airloom_wire::ip;
use proptest::prelude::*;

use super::*;

const CLIENT: u16 = 1000;
const SERVER: u16 = 80;

/// A capture that is being made up: segments between two hosts, one after the other.
struct Script {
    frames: Vec<(u64, Vec<u8>)>,
    /// Sequence numbers that each end begins with.
    isn: [u32; 2],
    window: u16,
    /// Shifts that their SYNs offer.
    scale: [Option<u8>; 2],
}

/// What may differ from segment to segment.
#[derive(Clone, Copy, Default)]
struct With {
    sack: Option<(u32, u32)>,
    /// A second block.
    next: Option<(u32, u32)>,
    stamps: Option<(u32, u32)>,
    window: Option<u16>,
}

impl Script {
    fn new() -> Script {
        Script { frames: Vec::new(), isn: [5000, 9000], window: 60_000, scale: [None; 2] }
    }

    /// With the handshake at the client, and a round trip of 100 ms.
    fn begun() -> Script {
        let mut s = Script::new();
        s.handshake();
        s
    }

    /// A segment `at_ms` from the client (0) or the server (1): `seq` and `ack` count from the ends' first numbers.
    fn segment(
        &mut self,
        at_ms: f64,
        side: usize,
        flags: Flags,
        seq: u32,
        ack: Option<u32>,
        len: usize,
        with: With,
    ) {
        let mut options = TcpOptions { timestamps: with.stamps, ..TcpOptions::default() };
        if flags.has(Flags::SYN) {
            options.mss = Some(1000);
            options.window_scale = self.scale[side];
        }
        for (left, right) in [with.sack, with.next].into_iter().flatten() {
            let isn = self.isn[1 - side];
            options.sack.push(isn.wrapping_add(left), isn.wrapping_add(right));
        }
        let ports = if side == 0 { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let header = Header {
            source: ports.0,
            destination: ports.1,
            seq: self.isn[side].wrapping_add(seq),
            ack: ack.map_or(0, |ack| self.isn[1 - side].wrapping_add(ack)),
            flags: if ack.is_some() { flags.with(Flags::ACK) } else { flags },
            window: with.window.unwrap_or(self.window),
            urgent: 0,
            options,
        };
        let mut tcp = [0; 60];
        let length = header.emit(&mut tcp);
        let hosts = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        let mut datagram = vec![0; ip::V4_HEADER];
        ip::emit(&mut datagram, hosts[side], hosts[1 - side], ip::protocol::TCP, 0, length + len);
        datagram.extend(&tcp[..length]);
        // The data itself was not captured.
        self.frames.push(((at_ms * 1e6) as u64, datagram));
    }

    fn data(&mut self, at_ms: f64, side: usize, seq: u32, len: usize) {
        self.segment(at_ms, side, Flags::PSH, seq, Some(1), len, With::default());
    }

    /// The other end's acknowledgement of what the client (0) or server (1) sent.
    fn ack(&mut self, at_ms: f64, of: usize, ack: u32) {
        self.segment(at_ms, 1 - of, Flags(0), 1, Some(ack), 0, With::default());
    }

    fn sacked(&mut self, at_ms: f64, of: usize, ack: u32, block: (u32, u32)) {
        let with = With { sack: Some(block), ..With::default() };
        self.segment(at_ms, 1 - of, Flags(0), 1, Some(ack), 0, with);
    }

    fn handshake(&mut self) {
        self.segment(0.0, 0, Flags::SYN, 0, None, 0, With::default());
        self.segment(100.0, 1, Flags::SYN, 0, Some(1), 0, With::default());
        self.segment(100.1, 0, Flags(0), 1, Some(1), 0, With::default());
    }

    fn file(&self) -> Vec<u8> {
        self.file_of(101, usize::MAX)
    }

    /// A capture of a link of this type, of so many octets of a frame at most.
    fn file_of(&self, link: u32, most: usize) -> Vec<u8> {
        let mut file: Vec<u8> =
            [0xA1B2_3C4D_u32, 0x0004_0002, 0, 0, 65_535, link].iter().flat_map(|n| n.to_le_bytes()).collect();
        for (at, octets) in &self.frames {
            let captured = &octets[..octets.len().min(most)];
            let numbers =
                [at / 1_000_000_000, at % 1_000_000_000, captured.len() as u64, octets.len() as u64];
            file.extend(numbers.iter().flat_map(|n| (*n as u32).to_le_bytes()));
            file.extend(captured);
        }
        file
    }

    fn analysis(&self) -> Analysis {
        analyze(Reader::new(self.file().as_slice()).unwrap(), &Options::default())
    }

    /// What the client sent, by the analysis of the only connection.
    fn client(&self) -> SideReport {
        let report = self.analysis().report;
        assert_eq!(report.unreadable, None);
        assert_eq!(report.connections.len(), 1);
        report.connections.into_iter().next().unwrap().sides.into_iter().next().unwrap()
    }
}

fn kinds(analysis: &Analysis) -> Vec<String> {
    let column = analysis.trace.iter().find(|c| c.name == "kind").unwrap();
    let Values::Category { codes, names } = &column.values else { panic!() };
    codes.iter().map(|code| names[usize::from(*code)].clone()).collect()
}

#[test]
fn a_clean_transfer_has_round_trips_and_nothing_else() {
    let mut s = Script::begun();
    (0..3).for_each(|n| s.data(101.0, 0, 1 + 1000 * n, 1000));
    (0..3).for_each(|n| s.ack(201.0 + f64::from(n), 0, 1001 + 1000 * n));
    s.segment(210.0, 0, Flags::FIN, 3001, Some(1), 0, With::default());
    s.segment(310.0, 1, Flags::FIN, 1, Some(3002), 0, With::default());
    s.ack(310.1, 1, 2);
    let analysis = s.analysis();
    let expected = "syn syn ack data data data ack ack ack fin fin ack";
    assert_eq!(kinds(&analysis).join(" "), expected);
    let connection = &analysis.report.connections[0];
    assert_eq!((connection.client.as_str(), connection.server.as_str()), ("192.0.2.1:1000", "192.0.2.2:80"));
    assert_eq!((connection.end, connection.handshake_s), (End::Closed, Some(0.1001)));
    let side = &connection.sides[0];
    assert_eq!((side.unique_octets, side.octets, side.retransmissions), (3000, 3000, 0));
    assert_eq!((side.most_in_flight, side.mss, side.seen_from), (Some(3000), Some(1000), Viewpoint::Sender));
    assert_eq!((side.rtt.count, side.rtt.min_s, side.rtt.max_s), (5, Some(0.1), Some(0.102)));
    assert!(side.stalls.is_empty());
}

#[test]
fn a_loss_that_duplicates_report_is_a_fast_retransmission() {
    let mut s = Script::begun();
    (0..5).for_each(|n| s.data(101.0, 0, 1 + 1000 * n, 1000));
    // The second was lost.
    s.ack(201.0, 0, 1001);
    (2..5).for_each(|n| s.sacked(201.0 + f64::from(n), 0, 1001, (2001, 1001 + 1000 * n)));
    s.data(206.0, 0, 1001, 1000);
    s.ack(306.0, 0, 5001);
    let side = s.client();
    assert_eq!(
        (side.retransmissions, side.fast_retransmissions, side.timer_retransmissions),
        (1, Some(1), Some(0))
    );
    assert_eq!(
        (side.fast_recoveries, side.timeouts, side.needless_retransmissions),
        (Some(1), Some(0), Some(0))
    );
    assert_eq!((side.duplicate_acks, side.selective_acks, side.unique_octets), (Some(3), Some(3), 5000));
    assert!(side.stalls.is_empty());
}

#[test]
fn silence_ended_by_a_retransmission_is_a_timeout_and_a_stall() {
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 1000);
    s.data(101.0, 0, 1001, 1000);
    s.ack(201.0, 0, 1001);
    s.data(1201.0, 0, 1001, 1000);
    s.data(3201.0, 0, 1001, 1000);
    s.ack(3301.0, 0, 2001);
    let side = s.client();
    assert_eq!(
        (side.timer_retransmissions, side.timeouts, side.needless_retransmissions),
        (Some(2), Some(2), Some(0))
    );
    let found: Vec<_> = side.stalls.iter().map(|stall| (stall.begin_s, stall.end_s, stall.why)).collect();
    assert_eq!(found, [(0.101, 1.201, Why::Timeout), (1.201, 3.201, Why::Timeout)]);
    assert_eq!(side.rtt.count, 2, "what was sent again is not measured");
}

#[test]
fn what_was_on_its_way_all_the_time_was_sent_again_needlessly() {
    for stamped in [true, false] {
        let mut s = Script::begun();
        let stamps = |value, echo| With { stamps: stamped.then_some((value, echo)), ..With::default() };
        s.segment(101.0, 0, Flags::PSH, 1, Some(1), 1000, stamps(10, 1));
        s.segment(201.0, 1, Flags(0), 1, Some(1001), 0, stamps(2, 10));
        s.segment(202.0, 0, Flags::PSH, 1001, Some(1), 1000, stamps(20, 2));
        s.segment(702.0, 0, Flags::PSH, 1001, Some(1), 1000, stamps(30, 2));
        // The answer to the first transmission.
        s.segment(710.0, 1, Flags(0), 1, Some(2001), 0, stamps(3, 20));
        // And that it came twice.
        s.sacked(810.0, 0, 2001, (1001, 2001));
        let side = s.client();
        assert_eq!(
            (side.timer_retransmissions, side.needless_retransmissions),
            (Some(1), Some(1)),
            "{stamped}"
        );
        assert_eq!(side.duplicates_reported, Some(1));
    }
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 1000);
    s.ack(201.0, 0, 1001);
    s.data(900.0, 0, 1, 1000);
    assert_eq!(s.client().needless_retransmissions, Some(1), "it was acknowledged before");
    assert_eq!(kinds(&s.analysis()).last().map(String::as_str), Some("needless-retransmission"));
}

#[test]
fn a_clock_that_is_set_back_makes_no_round_trip_of_0() {
    let mut s = Script::begun();
    s.data(1101.0, 0, 1, 1000);
    s.ack(1201.0, 0, 1001);
    s.data(1202.0, 0, 1001, 1000);
    // By a second.
    s.ack(302.0, 0, 2001);
    s.data(303.0, 0, 2001, 1000);
    s.data(1703.0, 0, 2001, 1000);
    s.ack(803.0, 0, 3001);
    let side = s.client();
    assert_eq!((side.rtt.count, side.rtt.min_s, side.seen_from), (2, Some(0.1), Viewpoint::Sender));
    assert_eq!((side.retransmissions, side.needless_retransmissions), (1, Some(0)));
}

#[test]
fn what_was_overtaken_was_not_sent_again() {
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 1000);
    s.data(102.0, 0, 2001, 1000);
    s.data(102.5, 0, 1001, 1000);
    let side = s.client();
    assert_eq!((side.out_of_order, side.retransmissions, side.unique_octets), (1, 0, 3000));
    // Much later it was lost before the capture, and sent again.
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 1000);
    s.data(102.0, 0, 2001, 1000);
    s.data(1102.5, 0, 1001, 1000);
    let side = s.client();
    assert_eq!((side.out_of_order, side.retransmissions), (0, 1));
}

#[test]
fn a_full_window_is_told_from_a_closed_one_and_from_a_program_that_pauses() {
    let mut s = Script::new();
    s.window = 2000;
    s.handshake();
    s.data(101.0, 0, 1, 1000);
    s.data(101.0, 0, 1001, 1000);
    let closed = With { window: Some(0), ..With::default() };
    s.segment(201.0, 1, Flags(0), 1, Some(2001), 0, closed);
    s.segment(700.0, 0, Flags(0), 2001, Some(1), 1, With::default());
    s.segment(800.0, 1, Flags(0), 1, Some(2001), 0, closed);
    s.ack(1200.0, 0, 2001);
    s.data(1201.0, 0, 2001, 1000);
    s.ack(1301.0, 0, 3001);
    s.data(3000.0, 0, 3001, 1000);
    s.ack(3900.0, 0, 4001);
    s.data(3901.0, 0, 4001, 1000);
    let analysis = s.analysis();
    let side = &analysis.report.connections[0].sides[0];
    assert_eq!((side.zero_windows, side.window_full, side.window_probes), (Some(1), Some(1), 1));
    assert_eq!(side.window, Some((0, 2000)));
    let found: Vec<_> = side.stalls.iter().map(|stall| (stall.begin_s, stall.end_s, stall.why)).collect();
    let expected = [
        (0.101, 1.201, Why::ReceiverWindow),
        (1.201, 3.0, Why::Application),
        (3.0, 3.901, Why::NoAcknowledgement),
    ];
    assert_eq!(found, expected);
}

#[test]
fn rfc_7323_2_2_without_both_syns_nobody_knows_how_large_a_window_is_but_whether_it_is_closed() {
    // Captured from this segment on: what the client was offered, the last windows of the trace, and why the client paused.
    let seen = |scale, from: usize| {
        let mut s = Script::new();
        s.scale = scale;
        s.handshake();
        s.window = 20;
        s.ack(100.2, 0, 1);
        s.data(101.0, 0, 1, 1000);
        s.data(101.0, 0, 1001, 500);
        s.ack(201.0, 0, 1501);
        s.data(3000.0, 0, 1501, 1000);
        s.segment(3100.0, 1, Flags(0), 1, Some(2501), 0, With { window: Some(0), ..With::default() });
        s.frames.drain(..from);
        let analysis = s.analysis();
        let column = analysis.trace.iter().find(|c| c.name == "window").unwrap();
        let Values::U32(windows) = &column.values else { panic!() };
        let last: Vec<Option<u32>> = (windows.iter().zip(column.valid.as_ref().unwrap()))
            .map(|(window, is_known)| is_known.then_some(*window))
            .skip(windows.len() - 3)
            .collect();
        let connection = analysis.report.connections.into_iter().next().unwrap();
        let side = connection.sides.into_iter().find(|side| side.data_segments > 0).unwrap();
        let why: Vec<Why> = side.stalls.iter().map(|stall| stall.why).collect();
        (side.window, side.window_full, side.zero_windows, last, why)
    };
    let (both, one) = ([Some(7), Some(7)], [Some(7), None]);
    let known = [Some(2560), Some(2560), Some(0)].to_vec();
    assert_eq!(seen(both, 0), (Some((0, 2560)), Some(0), Some(1), known, vec![Why::Application]));
    let unscaled = [Some(20), Some(20), Some(0)].to_vec();
    assert_eq!(seen(one, 0), (Some((0, 20)), Some(3), Some(1), unscaled, vec![Why::ReceiverWindow]));
    let unknown = [None, None, Some(0)].to_vec();
    for (scale, from) in [(both, 1), (both, 3), (both, 4), (one, 1)] {
        let expected = (None, None, Some(1), unknown.clone(), vec![Why::Application]);
        assert_eq!(seen(scale, from), expected, "{scale:?} {from}");
    }
}

#[test]
fn near_the_receiver_nobody_sees_why_nothing_came() {
    // How long after what they answer the segments of the server, and of the client, are seen.
    let why = |to_server: f64, to_client: f64| {
        let mut s = Script::new();
        s.segment(0.0, 0, Flags::SYN, 0, None, 0, With::default());
        s.segment(to_server, 1, Flags::SYN, 0, Some(1), 0, With::default());
        s.ack(to_server + to_client, 1, 1);
        for (at, seq) in [(500.0, 1), (600.0, 1001), (3000.0, 2001)] {
            s.data(at, 1, seq, 1000);
            s.ack(at + to_client, 1, seq + 1000);
        }
        let analysis = s.analysis();
        analysis.report.connections[0].sides[1].stalls.iter().map(|stall| stall.why).collect::<Vec<_>>()
    };
    assert_eq!(why(80.0, 1.0), [Why::Unseen], "seen at the client");
    assert_eq!(why(1.0, 80.0), [Why::Application], "seen at the server");
    assert_eq!(why(40.0, 40.0), [Why::Application], "seen half-way");
}

#[test]
fn an_octet_that_was_acknowledged_keeps_a_connection_alive() {
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 1000);
    s.ack(201.0, 0, 1001);
    s.segment(9201.0, 0, Flags(0), 1000, Some(1), 0, With::default());
    s.segment(9301.0, 0, Flags(0), 1000, Some(1), 1, With::default());
    let side = s.client();
    assert_eq!((side.keep_alives, side.window_probes, side.retransmissions), (2, 0, 0));
    assert_eq!((side.data_segments, side.octets), (1, 1000), "with or without an octet, it takes up nothing");
    assert_eq!(kinds(&s.analysis())[5..], ["keep-alive", "keep-alive"]);
}

#[test]
fn a_segment_that_goes_back_by_an_octet_and_has_none_probes_a_window_that_is_closed() {
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 1000);
    let closed = With { window: Some(0), ..With::default() };
    s.segment(201.0, 1, Flags(0), 1, Some(1001), 0, closed);
    s.segment(401.0, 0, Flags(0), 1000, Some(1), 0, With::default());
    s.segment(501.0, 1, Flags(0), 1, Some(1001), 0, closed);
    // What is sent beside it is no probe, and neither is what ends the connection.
    s.segment(502.0, 0, Flags(0), 1001, Some(1), 0, With::default());
    s.segment(503.0, 0, Flags::RST, 1000, Some(1), 0, With::default());
    let side = s.client();
    assert_eq!((side.window_probes, side.keep_alives), (1, 0));
    assert_eq!(kinds(&s.analysis())[4..].join(" "), "ack window-probe ack ack reset");
}

#[test]
fn numbers_go_round_and_captures_begin_in_the_middle() {
    let mut s = Script::new();
    s.isn = [u32::MAX - 1500, u32::MAX];
    s.handshake();
    (0..4).for_each(|n| s.data(101.0, 0, 1 + 1000 * n, 1000));
    s.ack(201.0, 0, 4001);
    let side = s.client();
    assert_eq!((side.unique_octets, side.retransmissions, side.most_in_flight), (4000, 0, Some(4000)));
    s.frames.drain(..4);
    let report = s.analysis().report;
    assert!(!report.connections[0].has_handshake);
    let side = &report.connections[0].sides[0];
    assert_eq!((side.unique_octets, side.unseen_octets, side.retransmissions), (3000, 0, 0));
    // From an acknowledgement of something that was never captured.
    s.frames.drain(..2);
    let side = s.client();
    assert_eq!((side.unique_octets, side.unseen_octets), (1000, 0));
}

#[test]
fn a_segment_whose_header_says_no_length_is_as_long_as_its_frame() {
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 40_000);
    s.ack(201.0, 0, 40_001);
    let (_, octets) = &mut s.frames[3];
    octets[2..4].fill(0);
    octets.resize(octets.len() + 40_000, 0);
    let side = s.client();
    assert_eq!((side.segments, side.unique_octets, side.unseen_octets), (3, 40_000, 0));
    // The same over IPv6 and Ethernet, with a jumbogram's option (RFC 2675 2); only its beginning was captured.
    let hosts: [std::net::IpAddr; 2] = ["2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()];
    for (n, (_, octets)) in s.frames.iter_mut().enumerate() {
        let tcp = octets.split_off(ip::V4_HEADER);
        let side = usize::from(octets[15] == 2);
        let (kind, length, option): (u8, usize, &[u8]) = match n {
            3 => (0, 0, &[ip::protocol::TCP, 0, 0xC2, 4, 0, 0, 0x9C, 0x5C]),
            _ => (ip::protocol::TCP, tcp.len(), &[]),
        };
        let mut header = [0; ip::V6_HEADER];
        ip::emit(&mut header, hosts[side], hosts[1 - side], kind, 0, length);
        *octets = [&[0; 12][..], &[0x86, 0xDD], &header, option, &tcp].concat();
    }
    for most in [usize::MAX, 100] {
        let report = analyze(Reader::new(s.file_of(1, most).as_slice()).unwrap(), &Options::default()).report;
        let side = &report.connections[0].sides[0];
        assert_eq!((report.segments, side.unique_octets, side.unseen_octets), (5, 40_000, 0), "{most}");
    }
}

#[test]
fn the_same_ends_may_have_one_connection_after_the_other() {
    let mut s = Script::begun();
    s.segment(150.0, 1, Flags::RST, 1, Some(1), 0, With::default());
    s.isn = [77_000, 88_000];
    s.handshake();
    let report = s.analysis().report;
    let ends: Vec<End> = report.connections.iter().map(|c| c.end).collect();
    assert_eq!(ends, [End::Reset, End::Open]);
}

#[test]
fn data_that_nobody_answers_is_a_stall_to_the_end_of_the_capture() {
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 1000);
    s.segment(5000.0, 1, Flags(0), 1, Some(1), 0, With::default());
    let side = s.client();
    let found: Vec<_> = side.stalls.iter().map(|stall| (stall.end_s, stall.why, stall.in_flight)).collect();
    assert_eq!(found, [(5.0, Why::EndOfCapture, 1000)]);
}

#[test]
fn rows_beyond_what_is_wanted_are_counted() {
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 1000);
    let options = Options { rows: 3, ..Options::default() };
    let analysis = analyze(Reader::new(s.file().as_slice()).unwrap(), &options);
    assert_eq!((analysis.report.segments, analysis.report.rows_left_out), (4, 1));
    assert!(analysis.trace.iter().all(|column| column.values.len() == 3));
}

/// A transfer to the client, captured `to_server` ms from the server and `to_client` from the client, of rounds of
/// 320 ms; an outage after the twentieth, and a segment that was lost before.
fn rounds(to_server: f64, to_client: f64) -> Analysis {
    let mut s = Script::new();
    s.segment(0.0, 0, Flags::SYN, 0, None, 0, With::default());
    s.segment(to_server, 1, Flags::SYN, 0, Some(1), 0, With::default());
    s.ack(to_server + to_client, 1, 1);
    for n in 0..40_u32 {
        let at = 500.0 + 320.0 * f64::from(n) + if n > 20 { 3000.0 } else { 0.0 };
        // The eleventh comes a round later.
        let seq = match n {
            10 => 11_001,
            11 => 10_001,
            _ => 1 + 1000 * n,
        };
        s.data(at, 1, seq, 1000);
        s.ack(at + to_client, 1, if n == 10 { 10_001 } else { 1001 + 1000 * n });
    }
    s.analysis()
}

#[test]
fn near_the_receiver_causes_round_trips_and_flight_do_not_show() {
    let analysis = rounds(80.0, 0.1);
    let side = &analysis.report.connections[0].sides[1];
    assert_eq!((side.seen_from, side.retransmissions), (Viewpoint::Receiver, 1));
    assert_eq!((side.fast_retransmissions, side.timer_retransmissions, side.timeouts), (None, None, None));
    assert_eq!((side.rtt.count, side.rtt.median_s, side.most_in_flight), (0, None, None));
    assert!(kinds(&analysis).contains(&"retransmission".to_owned()));
    assert!(!kinds(&analysis).contains(&"timer-retransmission".to_owned()));
    // The same without the beginning: a hole that was filled later says that something was lost before it came here.
    let mut s = Script::new();
    for (at, seq) in [(0.0, 1), (10.0, 2001), (500.0, 1001)] {
        s.data(at, 1, seq, 1000);
        s.ack(at + 0.1, 1, if seq == 1001 { 3001 } else { 1001 });
    }
    // Who sent first is taken for the client.
    assert_eq!(s.analysis().report.connections[0].sides[0].seen_from, Viewpoint::Receiver);
    let analysis = rounds(0.1, 80.0);
    let side = &analysis.report.connections[0].sides[1];
    assert_eq!((side.seen_from, side.fast_retransmissions.is_some()), (Viewpoint::Sender, true));
    assert!(side.rtt.median_s >= Some(0.08));
}

#[test]
fn pauses_that_come_all_the_time_are_a_rhythm_and_the_outage_is_the_stall() {
    for (to_server, to_client) in [(80.0, 0.1), (0.1, 80.0)] {
        let analysis = rounds(to_server, to_client);
        let side = &analysis.report.connections[0].sides[1];
        let long: Vec<_> = side.stalls.iter().filter(|stall| stall.end_s - stall.begin_s > 3.0).collect();
        assert_eq!(long.len(), 1);
        assert!(
            side.stalls.iter().all(|stall| stall.why == Why::Timeout || stall.end_s - stall.begin_s > 3.0)
        );
        let rhythm = side.rhythm.unwrap();
        assert!((30..40).contains(&rhythm.count) && (rhythm.median_s - 0.32).abs() < 1e-6);
    }
}

#[test]
fn a_direction_that_was_not_captured_leaves_causes_and_windows_open() {
    let mut s = Script::new();
    (0..3).for_each(|n| s.data(100.0 * f64::from(n), 0, 1 + 1000 * n, 1000));
    s.data(2000.0, 0, 1, 1000);
    let side = s.client();
    assert_eq!(
        (side.seen_from, side.retransmissions, side.unique_octets),
        (Viewpoint::OneDirection, 1, 3000)
    );
    assert_eq!((side.timeouts, side.duplicate_acks, side.zero_windows), (None, None, None));
    assert!(side.stalls.is_empty());
}

#[test]
fn what_was_dropped_is_counted_and_is_no_connection() {
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 1000);
    // As our captures have it: a second interface, whose frames have a comment.
    let word = |n: usize| (n as u32).to_le_bytes();
    let block = |kind: usize, body: &[u8]| {
        let length = word(body.len() + 12);
        [&word(kind)[..], &length, body, &length].concat()
    };
    let mut file = block(0x0A0D_0D0A, &[&word(0x1A2B_3C4D)[..], &[1, 0, 0, 0], &[0xFF; 8]].concat());
    (0..2).for_each(|_| file.extend(block(1, &[101, 0, 0, 0, 0, 0, 0, 0])));
    for (number, (at, octets)) in s.frames.iter().enumerate() {
        let is_last = number + 1 == s.frames.len();
        let (at_us, length) = ((*at / 1000) as usize, word(octets.len()));
        let mut body = [word(usize::from(is_last)), word(at_us >> 32), word(at_us), length, length].concat();
        body.extend(octets);
        body.resize(body.len().next_multiple_of(4), 0);
        if is_last {
            body.extend(b"\x01\x00\x13\x00dropped: queue full\0\0\0\0\0");
        }
        file.extend(block(6, &body));
    }
    let report = analyze(Reader::new(file.as_slice()).unwrap(), &Options::default()).report;
    assert_eq!((report.unreadable, report.connections.len(), report.segments), (None, 1, 4));
    let [dropped] = report.dropped.as_slice() else { panic!("{:?}", report.dropped) };
    assert_eq!((dropped.interface.as_str(), dropped.segments, dropped.octets), ("1", 1, 1000));
}

proptest! {
    #[test]
    fn any_segments_are_counted_without_a_panic(
        made in proptest::collection::vec(
            (0.0..1e4_f64, 0..2_usize, any::<u8>(), any::<u32>(), any::<Option<u32>>(), 0..3000_usize,
             any::<Option<(u32, u32)>>(), any::<Option<(u32, u32)>>(), any::<Option<u16>>()),
            0..200,
        ),
        small in any::<bool>(),
    ) {
        let mut s = Script::new();
        for (at_ms, side, flags, seq, ack, len, sack, stamps, window) in made {
            let (seq, ack) = if small { (seq % 10_000, ack.map(|a| a % 10_000)) } else { (seq, ack) };
            s.segment(at_ms, side, Flags(flags), seq, ack, len, With { sack, stamps, window, ..With::default() });
        }
        let report = s.analysis().report;
        prop_assert_eq!(report.segments, s.frames.len() as u64);
        let segments: u64 = report.connections.iter().flat_map(|c| &c.sides).map(|side| side.segments).sum();
        prop_assert_eq!(segments, report.segments);
        for side in report.connections.iter().flat_map(|c| &c.sides) {
            if let (Some(fast), Some(timer)) = (side.fast_retransmissions, side.timer_retransmissions) {
                prop_assert_eq!(fast + timer, side.retransmissions);
            }
            prop_assert!(side.stall_count >= side.stalls.len() as u64);
            prop_assert!(side.stalls.iter().all(|stall| stall.end_s >= stall.begin_s));
        }
    }
}

#[test]
fn rfc_2883_5_a_duplicate_may_lie_above_what_is_acknowledged() {
    for (next, duplicates) in
        [(Some((1001, 5001)), 1), (Some((2001, 3001)), 1), (Some((4001, 5001)), 0), (None, 0)]
    {
        let mut s = Script::begun();
        for n in 0..5 {
            s.data(200.0 + f64::from(n), 0, 1 + 1000 * n, 1000);
        }
        let with = With { sack: Some((2001, 3001)), next, ..With::default() };
        s.segment(301.0, 1, Flags(0), 1, Some(1), 0, with);
        assert_eq!(s.client().duplicates_reported, Some(duplicates), "{next:?}");
    }
}

#[test]
fn rfc_6675_2_a_selective_block_that_says_something_new_is_a_duplicate_whatever_its_window_or_data() {
    // What duplicates carry, how much is sent again, and whether another loss shows then.
    for (len, again, is_partial) in [(0, 1000, false), (100, 1000, false), (0, 1000, true), (0, 4000, false)]
    {
        let mut s = Script::begun();
        (0..8).for_each(|n| s.data(101.0, 0, 1 + 1000 * n, 1000));
        s.ack(201.0, 0, 1001);
        for n in 2..5 {
            let with = With {
                sack: Some((2001, 1001 + 1000 * n)),
                window: Some(50_000 - n as u16),
                ..With::default()
            };
            let seq = 1 + (n - 2) * len as u32;
            s.segment(201.0 + f64::from(n), 1, Flags(0), seq, Some(1001), len, with);
        }
        s.data(206.0, 0, 1001, again);
        if is_partial {
            // The sixth was lost, too: what comes next acknowledges up to there.
            let with = With { sack: Some((6001, 7001)), ..With::default() };
            s.segment(306.0, 1, Flags(0), 1, Some(5001), 0, with);
            s.data(307.0, 0, 5001, 1000);
        }
        let side = s.client();
        let fast = 1 + u64::from(is_partial);
        let found = (side.fast_retransmissions, side.timer_retransmissions, side.duplicate_acks);
        assert_eq!(found, (Some(fast), Some(0), Some(0)), "{len} {again} {is_partial}");
        assert_eq!((side.timeouts, side.fast_recoveries), (Some(0), Some(1)));
    }
    // A hole that the receiver reported a round trip ago was no segment that was overtaken.
    let mut s = Script::new();
    s.segment(0.0, 0, Flags::SYN, 0, None, 0, With::default());
    s.segment(0.2, 1, Flags::SYN, 0, Some(1), 0, With::default());
    s.segment(0.3, 0, Flags(0), 1, Some(1), 0, With::default());
    s.data(101.0, 0, 1, 1000);
    s.data(102.0, 0, 2001, 1000);
    let with = With { sack: Some((2001, 3001)), window: Some(50_000), ..With::default() };
    s.segment(102.2, 1, Flags(0), 1, Some(1001), 0, with);
    s.data(102.5, 0, 1001, 1000);
    let side = s.client();
    assert_eq!((side.out_of_order, side.retransmissions), (0, 1));
}

#[test]
fn near_the_receiver_a_hole_is_reported_at_once_and_sent_again_a_round_trip_later() {
    // When it was filled, the timestamps of what was behind it and of what filled it, and whether that was overtaken.
    for (filled_ms, stamps, is_overtaken) in [
        (203.0, None, true),
        (302.0, None, false),
        (260.0, Some((10, 10)), true),
        (260.0, Some((10, 11)), false),
    ] {
        let mut s = Script::begun();
        let with = |stamp: Option<u32>| With { stamps: stamp.map(|stamp| (stamp, 1)), ..With::default() };
        s.data(200.0, 1, 1, 1000);
        s.segment(201.0, 1, Flags::PSH, 2001, Some(1), 1000, with(stamps.map(|(behind, _)| behind)));
        s.sacked(201.0, 1, 1001, (2001, 3001));
        // Another hole shows meanwhile.
        s.data(filled_ms - 0.5, 1, 4001, 1000);
        s.segment(filled_ms, 1, Flags::PSH, 1001, Some(1), 1000, with(stamps.map(|(_, own)| own)));
        let report = s.analysis().report;
        let side = &report.connections[0].sides[1];
        assert_eq!(side.seen_from, Viewpoint::Receiver);
        let expected = if is_overtaken { (1, 0) } else { (0, 1) };
        assert_eq!((side.out_of_order, side.retransmissions), expected, "{filled_ms} {stamps:?}");
    }
}

#[test]
fn rfc_8985_7_what_the_answer_to_a_tail_loss_probe_reports_is_sent_again_by_the_answer() {
    let mut s = Script::begun();
    (0..8).for_each(|n| s.data(101.0, 0, 1 + 1000 * n, 1000));
    // The last four were lost.
    s.ack(201.0, 0, 4001);
    s.data(401.0, 0, 7001, 1000);
    s.sacked(501.0, 0, 4001, (7001, 8001));
    (4..7).for_each(|n| s.data(501.1, 0, 1 + 1000 * n, 1000));
    s.ack(601.0, 0, 8001);
    let side = s.client();
    assert_eq!((side.timer_retransmissions, side.fast_retransmissions), (Some(1), Some(3)));
    assert_eq!((side.timeouts, side.fast_recoveries), (Some(1), Some(1)));
}

#[test]
fn a_syn_that_was_sent_again_makes_no_long_round_trip() {
    // When SYNs, their answers and the third segment were seen: both times in seconds.
    let times = |syns: &[f64], answers: &[f64], third: f64| {
        let mut s = Script::new();
        syns.iter().for_each(|at| s.segment(*at, 0, Flags::SYN, 0, None, 0, With::default()));
        answers.iter().for_each(|at| s.segment(*at, 1, Flags::SYN, 0, Some(1), 0, With::default()));
        s.segment(third, 0, Flags(0), 1, Some(1), 0, With::default());
        s.frames.sort_by_key(|(at, _)| *at);
        // An overtaken segment is one of within a round trip; after so much time it is none.
        s.data(third + 1.0, 0, 1, 1000);
        s.data(third + 2.0, 0, 2001, 1000);
        s.data(third + 802.0, 0, 1001, 1000);
        let connection = s.analysis().report.connections.into_iter().next().unwrap();
        assert_eq!(connection.sides[0].out_of_order, 0);
        (connection.handshake_s, connection.handshake_round_trip_s)
    };
    assert_eq!(times(&[0.0, 1000.0, 3000.0], &[3080.0], 3081.0), (Some(3.081), Some(0.081)));
    assert_eq!(times(&[0.0, 1000.0], &[80.0, 1080.0], 1081.0), (Some(1.081), Some(0.081)));
    // At the server, whose answer was lost.
    assert_eq!(times(&[0.0], &[1.0, 1001.0], 1081.0), (Some(1.081), Some(0.081)));
}

#[test]
fn rfc_7413_4_2_2_data_of_a_syn_that_was_not_taken_is_sent_again_by_no_timer() {
    let mut s = Script::new();
    s.segment(0.0, 0, Flags::SYN, 0, None, 500, With::default());
    s.segment(100.0, 1, Flags::SYN, 0, Some(1), 0, With::default());
    s.data(100.1, 0, 1, 500);
    s.ack(200.1, 0, 501);
    let side = s.client();
    assert_eq!((side.retransmissions, side.fast_retransmissions, side.timeouts), (1, Some(1), Some(0)));
    assert_eq!((side.unique_octets, side.unseen_octets), (500, 0));
}

#[test]
fn a_handshake_has_three_segments_with_or_without_options() {
    let mut s = Script::begun();
    for (_, octets) in &mut s.frames[..2] {
        // The data offset says that there are no options; what they were is one of the length, then.
        octets.truncate(40);
        octets[2..4].copy_from_slice(&[0, 40]);
        octets[32] = 0x50;
    }
    assert_eq!(s.analysis().report.connections[0].handshake_s, Some(0.1001));
    for flags in [Some(Flags::RST), None] {
        let mut s = Script::begun();
        s.frames.pop();
        if let Some(flags) = flags {
            s.segment(100.1, 0, flags, 1, Some(1), 0, With::default());
        }
        let connection = &s.analysis().report.connections[0];
        assert_eq!((connection.handshake_s, connection.handshake_round_trip_s), (None, None));
    }
}

#[test]
fn a_syn_or_fin_that_is_sent_again_was_not_lost_before_it_came_here() {
    for is_syn in [true, false] {
        let mut s = Script::new();
        if is_syn {
            s.segment(0.0, 0, Flags::SYN, 0, None, 0, With::default());
            s.segment(1000.0, 0, Flags::SYN, 0, None, 0, With::default());
            s.segment(1000.1, 1, Flags::SYN, 0, Some(1), 0, With::default());
            s.segment(1000.2, 0, Flags(0), 1, Some(1), 0, With::default());
        }
        s.data(1001.0, 0, 1, 1000);
        s.ack(1001.1, 0, 1001);
        s.segment(2000.0, 0, Flags::FIN, 1001, Some(1), 0, With::default());
        if !is_syn {
            s.segment(2300.0, 0, Flags::FIN, 1001, Some(1), 0, With::default());
        }
        s.ack(2300.1, 0, 1002);
        let side = s.client();
        assert_eq!((side.seen_from, side.retransmissions), (Viewpoint::Unknown, 1), "{is_syn}");
    }
}

#[test]
fn segments_whose_options_were_cut_or_are_impossible_count() {
    let mut s = Script::new();
    s.scale = [Some(7); 2];
    s.handshake();
    for n in 0..3 {
        let with = With { stamps: Some((n, n)), sack: Some((1, 2)), ..With::default() };
        s.segment(101.0, 0, Flags::PSH, 1 + 1000 * n, Some(1), 1000, with);
    }
    s.ack(201.0, 0, 3001);
    // Up to the length of an option; and in the third data segment one of length 0.
    s.frames[5].1[43] = 0;
    for most in [40, 46, usize::MAX] {
        let report =
            analyze(Reader::new(s.file_of(101, most).as_slice()).unwrap(), &Options::default()).report;
        let side = &report.connections[0].sides[0];
        assert_eq!((report.segments, side.unique_octets), (7, 3000), "{most}");
        assert_eq!(side.mss, (most > 40).then_some(1000), "what was captured is read");
        assert_eq!(side.window.is_some(), most > 46, "and nobody knows what shift was not");
    }
    // Duplicates that only their selective blocks, which were cut, make such.
    let mut s = Script::begun();
    (0..5).for_each(|n| s.data(101.0, 0, 1 + 1000 * n, 1000));
    s.ack(201.0, 0, 1001);
    for n in 2..5 {
        let with = With {
            sack: Some((2001, 1001 + 1000 * n)),
            window: Some(50_000 - n as u16),
            stamps: Some((n, n)),
            ..With::default()
        };
        s.segment(201.0 + f64::from(n), 1, Flags(0), 1, Some(1001), 0, with);
    }
    s.data(206.0, 0, 1001, 1000);
    let report = analyze(Reader::new(s.file_of(101, 54).as_slice()).unwrap(), &Options::default()).report;
    assert_eq!(report.connections[0].sides[0].fast_retransmissions, Some(1));
}

#[test]
fn what_was_on_its_way_when_the_capture_began_was_not_acknowledged_yet() {
    let mut s = Script::begun();
    (0..6).for_each(|n| s.data(101.0, 0, 1 + 1000 * n, 1000));
    for n in 3..6 {
        s.sacked(201.0 + f64::from(n), 0, 2001, (3001, 1001 + 1000 * n));
    }
    s.data(207.0, 0, 2001, 1000);
    s.ack(307.0, 0, 6001);
    // From the fifth segment of data on.
    s.frames.drain(..7);
    let side = s.client();
    assert_eq!((side.retransmissions, side.needless_retransmissions), (1, Some(0)));
    assert_eq!((side.fast_retransmissions, side.most_in_flight), (Some(1), Some(4000)));
    assert_eq!((side.unique_octets, side.unseen_octets), (3000, 0));
    // Nor is anything known to be needless before the first acknowledgement.
    s.frames.drain(2..5);
    assert_eq!(s.client().needless_retransmissions, Some(0));
}

#[test]
fn holes_that_were_acknowledged_are_what_was_not_captured() {
    let mut s = Script::begun();
    for n in [0, 1, 4, 5] {
        s.data(101.0, 0, 1 + 1000 * n, 1000);
    }
    // And what was sent once more, up to beyond the last one captured.
    s.ack(201.0, 0, 6001);
    s.ack(202.0, 0, 6501);
    s.segment(203.0, 0, Flags::FIN, 6501, Some(1), 0, With::default());
    s.ack(303.0, 0, 6502);
    let side = s.client();
    assert_eq!((side.unique_octets, side.unseen_octets), (4000, 2500));
}

#[test]
fn an_octet_that_a_closed_window_took_was_seen() {
    let mut s = Script::begun();
    s.data(101.0, 0, 1, 1000);
    let closed = With { window: Some(0), ..With::default() };
    s.segment(201.0, 1, Flags(0), 1, Some(1001), 0, closed);
    s.data(401.0, 0, 1001, 1);
    s.ack(501.0, 0, 1002);
    s.data(502.0, 0, 1002, 1000);
    s.ack(602.0, 0, 2002);
    let side = s.client();
    assert_eq!((side.window_probes, side.unique_octets, side.unseen_octets), (1, 2001, 0));
}

#[test]
fn what_came_twice_by_the_receivers_report_was_needless() {
    let mut s = Script::begun();
    (0..2).for_each(|n| s.data(101.0, 0, 1 + 1000 * n, 1000));
    (0..2).for_each(|n| s.data(601.0, 0, 1 + 1000 * n, 1000));
    for n in 0..2 {
        s.sacked(701.0, 0, 2001, (1 + 1000 * n, 1001 + 1000 * n));
    }
    let side = s.client();
    assert_eq!((side.retransmissions, side.duplicates_reported), (2, Some(2)));
    assert_eq!(side.needless_retransmissions, Some(2));
}

#[test]
fn rfc_9293_3_5_both_ends_may_open_at_the_same_time() {
    let mut s = Script::new();
    (0..2).for_each(|side| s.segment(side as f64, side, Flags::SYN, 0, None, 0, With::default()));
    (0..2).for_each(|side| s.segment(100.0, side, Flags::SYN, 0, Some(1), 0, With::default()));
    s.data(101.0, 0, 1, 1000);
    let side = s.client();
    assert_eq!((side.segments, side.unique_octets), (3, 1000));
    assert_eq!(s.analysis().report.connections[0].handshake_round_trip_s, None);
}

#[test]
fn a_frame_that_passes_two_devices_was_not_sent_again() {
    let mut s = Script::begun();
    (0..3).for_each(|n| s.data(101.0, 0, 1 + 1000 * n, 1000));
    s.ack(201.0, 0, 3001);
    // As a router's `tcpdump -i any` has it.
    let passed = |(at, datagram): &(u64, Vec<u8>)| {
        [2, 3].map(|index| (*at, [&[8, 0, 0, 0, 0, 0, 0, index][..], &[0; 12], datagram].concat()))
    };
    s.frames = s.frames.iter().flat_map(passed).collect();
    let file = s.file_of(276, usize::MAX);
    let report = analyze(Reader::new(file.as_slice()).unwrap(), &Options::default()).report;
    let seen: Vec<_> = (report.connections.iter())
        .map(|c| (c.interface.as_str(), c.sides[0].unique_octets, c.sides[0].retransmissions))
        .collect();
    assert_eq!(seen, [("0/2", 3000, 0), ("0/3", 3000, 0)]);
}

#[test]
fn links_that_nobody_knows_are_named() {
    let s = Script::begun();
    for (link, expected) in [(101, vec![]), (127, vec![127])] {
        let report =
            analyze(Reader::new(s.file_of(link, usize::MAX).as_slice()).unwrap(), &Options::default()).report;
        assert_eq!(report.unknown_links, expected);
    }
}
