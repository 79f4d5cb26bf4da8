//! Whole channels: two ends and the air between them.

use airloom_base::record::{Event, PointKind, Record};
use airloom_base::units::{QueueLimit, Rate};
use airloom_base::{
    Bearer, BearerEvent, Change, Cx, Direction, Duration, Instant, LinkState, Outbox, Parts, Station,
};
use serde_json::{Value, json};

use super::rlc::am::{Control, Layout, LiWidth, Sufi, Sufis, Tail};
use super::{UmtsDch, UmtsDchConfig};

const DOWN: Direction = Direction::Downlink;
const UP: Direction = Direction::Uplink;

/// A cell with its clock and its records.
pub(super) type Bench = airloom_testkit::Bench<UmtsDch>;

pub(super) fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn channel(config: Value) -> Bench {
    cell(config, 1, 1)
}

fn cell(config: Value, stations: u16, seed: u64) -> Bench {
    let config: UmtsDchConfig = airloom_base::config::read(&config).unwrap();
    let mut records = Outbox::default();
    let bearer = UmtsDch::new(config, &mut Parts::new(seed, "radio", stations, &mut records)).unwrap();
    Bench::new(Box::new(bearer), records)
}

#[test]
fn an_isolated_sdu_takes_its_intervals_and_the_fixed_delays() {
    // 384 kbit/s: 38 PDUs in 4 intervals of 10 ms; sent at 3 ms it waits 7 ms.
    let mut bench = channel(json!({ "core_delay": "0s" }));
    bench.run_until(ms(3));
    bench.send(DOWN, 1500);
    bench.finish();
    assert_eq!(bench.out[0].0, ms(10 + 40 + 30));
    // 64 kbit/s uplink: 10 intervals of 20 ms, and 20 ms of core network.
    let mut bench = channel(json!({}));
    bench.send(UP, 1500);
    bench.finish();
    assert_eq!(bench.out[0].0, ms(200 + 30 + 20));
    assert_eq!(bench.bearer.poll_timeout(), None, "an idle channel has no deadline");
}

#[test]
fn the_packet_delivered_is_the_packet_sent() {
    let mut bench = channel(json!({ "loss": 0.2 }));
    let sizes = [1, 20, 39, 40, 41, 79, 80, 116, 576, 1500];
    for n in sizes {
        bench.send(DOWN, n);
        bench.send(UP, n);
    }
    bench.finish();
    for direction in [UP, DOWN] {
        let lens: Vec<usize> =
            bench.out.iter().filter(|o| o.1 == direction).map(|(.., p)| p.wire_len()).collect();
        assert_eq!(lens, sizes.map(|n| n as usize));
    }
}

#[test]
fn a_packet_that_enters_the_rlc_buffer_says_what_waits_there_with_it() {
    let mut bench = channel(json!({ "core_delay": "0s", "queue": "3 packets" }));
    bench.records.ask(|p| (p.name == "radio.rlc.dl.tx", false));
    for n in [100, 200, 300, 400] {
        bench.send(DOWN, n);
    }
    let rows = bench.records.packets.iter().filter(|r| r.facts.queue.is_some());
    let found: Vec<_> = rows.map(|r| (r.facts.event, r.facts.len, r.facts.queue)).collect();
    let expected = [
        (Event::Enqueue, 100, Some(100)),
        (Event::Enqueue, 200, Some(300)),
        (Event::Enqueue, 300, Some(600)),
        (Event::Drop, 400, Some(600)),
    ];
    assert_eq!(found, expected);
}

/// What an independent receiver makes of a capture: headers read from octets, SDUs joined by number.
fn reassemble_capture(bench: &Bench, point_name: &str, li: LiWidth) -> Vec<Vec<u8>> {
    let point = bench.records.points().iter().position(|p| p.name == point_name).unwrap();
    let mut pdus: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut wraps = 0u64;
    let mut newest = 0u64;
    let rows =
        bench.records.packets.iter().filter(|r| !matches!(r.facts.event, Event::Drop | Event::Enqueue));
    for row in rows.filter(|r| usize::from(r.point.0) == point) {
        let octets = &bench.records.octets[row.octets.clone()];
        assert_eq!(octets.len(), 42, "every PDU has its size");
        if octets[0] & 0x80 == 0 {
            assert!(Control::parse(octets).is_ok());
            continue;
        }
        let sn = u64::from(octets[0] & 0x7F) << 5 | u64::from(octets[1] >> 3);
        assert_eq!(row.facts.seq, Some(sn));
        if newest % 4096 > 3000 && sn < 1000 && newest / 4096 == wraps {
            wraps += 1;
        }
        let number =
            if sn > 3000 && newest % 4096 < 1000 && wraps > 0 { wraps - 1 } else { wraps } * 4096 + sn;
        newest = newest.max(number);
        pdus.push((number, octets.to_vec()));
    }
    pdus.sort();
    // Copies of one PDU differ in the poll bit and in what fills their padding, in nothing else.
    pdus.dedup_by(|b, a| {
        let same = a.0 == b.0;
        if same {
            let (x, y) = (Layout::parse(&a.1, 42, li).unwrap(), Layout::parse(&b.1, 42, li).unwrap());
            assert_eq!((x.ends(), x.head_len), (y.ends(), y.head_len));
            let data = x.head_len..x.head_len + x.data_len(42).min(y.data_len(42));
            assert_eq!(a.1[data.clone()], b.1[data]);
        }
        same
    });
    let (mut done, mut current) = (Vec::new(), Vec::new());
    for (expected, (number, pdu)) in pdus.iter().enumerate() {
        assert_eq!(*number, expected as u64, "every PDU is in the capture");
        let layout = Layout::parse(pdu, 42, li).unwrap();
        let data = &pdu[layout.head_len..];
        let mut from = 0;
        for end in layout.ends().iter().map(|e| usize::from(*e)) {
            current.extend_from_slice(&data[from..end]);
            done.push(std::mem::take(&mut current));
            from = end;
        }
        match layout.tail {
            Tail::Data => current.extend_from_slice(&data[from..]),
            Tail::Status => assert!(Sufis::of(&data[from..]).all(|s| s.is_ok())),
            Tail::Padding => {}
        }
    }
    done
}

#[test]
fn every_pdu_of_a_transfer_can_be_rebuilt_from_octets() {
    for (loss, sufi) in [(0.0, "list"), (0.1, "list"), (0.2, "bitmap"), (0.2, "rlist")] {
        let mut bench = channel(json!({
            "loss": loss, "queue": "100000 packets", "rlc": { "status_sufi": sufi, "max_dat": 0, "window": 300 },
        }));
        bench = bench.recorded();
        let mut sizes = Vec::new();
        for n in 0..400u32 {
            let size = 1 + n.wrapping_mul(2_654_435_761) % 1500;
            sizes.push(size);
            bench.send(DOWN, size);
            if n % 4 == 0 {
                bench.send(UP, 40);
            }
        }
        bench.finish();
        let got = reassemble_capture(&bench, "radio.rlc.dl.rx", LiWidth::Seven);
        assert_eq!(got, reassemble_capture(&bench, "radio.rlc.dl.tx", LiWidth::Seven));
        let delivered: Vec<Vec<u8>> = bench
            .out
            .iter()
            .filter(|o| o.1 == DOWN)
            .map(|(.., p)| {
                let mut octets = Vec::new();
                p.append_to(&mut octets);
                octets
            })
            .collect();
        assert_eq!(delivered.len(), 400, "{sufi} {loss}");
        assert!(got == delivered, "octets of PDUs and of packets agree");
        assert_eq!(reassemble_capture(&bench, "radio.rlc.ul.rx", LiWidth::Seven).len(), 100);
    }
}

#[test]
fn nothing_is_lost_duplicated_or_reordered_under_any_loss() {
    for seed in 0..12 {
        for (per, loss) in [("pdu", 0.3), ("fec-frame", 0.3)] {
            let mut bench = cell(
                json!({ "loss": { "per": per, "loss": loss }, "rlc": { "max_dat": 0, "window": 64 } }),
                1,
                seed,
            );
            let (mut down, mut up) = (vec![], vec![]);
            for n in 0..60 {
                down.push(bench.send(DOWN, 40 + 97 * (n % 15)));
                up.push(bench.send(UP, 40 + 31 * (n % 15)));
            }
            bench.finish();
            assert_eq!((bench.ids(DOWN), bench.ids(UP)), (down, up), "seed {seed} {per}");
        }
    }
}

#[test]
fn out_of_sequence_delivery_hands_up_complete_sdus_at_once() {
    let run = |in_sequence| {
        let mut bench = channel(json!({ "loss": 0.1, "rlc": { "in_sequence": in_sequence, "max_dat": 0 } }));
        for _ in 0..80 {
            bench.send(DOWN, 500);
        }
        bench.finish();
        (bench.ids(DOWN), bench.value("downlink.sdu_delay_mean_ms"))
    };
    let ((ordered, slow), (mut free, fast)) = (run(true), run(false));
    assert_eq!(ordered, (1..=80).collect::<Vec<_>>());
    assert_ne!(free, ordered);
    free.sort_unstable();
    assert_eq!(free, ordered);
    assert!(fast < slow, "{fast} {slow}");
}

#[test]
fn a_lost_status_is_polled_for_again_when_timer_poll_expires() {
    // The uplink loses everything during the first second: reports do not come.
    let mut bench = channel(json!({
        "loss": { "uplink": { "model": "on-off", "on": "1s", "off": "1h", "loss": 1.0 } },
    }));
    bench.records.ask(|p| (p.name == "radio.rlc.dl.tx", false));
    bench.send(DOWN, 100);
    bench.finish();
    let polls: Vec<(u64, &str, u8)> = bench
        .records
        .packets
        .iter()
        .filter(|r| r.facts.seq == Some(2))
        .map(|r| (r.at.as_nanos() / 1_000_000, r.facts.event.name(), r.facts.attempt))
        .collect();
    // The core network takes 20 ms, Timer_Poll 200 ms, the grid 10 ms.
    assert_eq!(
        polls,
        [
            (20, "tx", 1),
            (220, "retx", 2),
            (420, "retx", 3),
            (620, "retx", 4),
            (820, "retx", 5),
            (1020, "retx", 6)
        ]
    );
    assert_eq!(bench.ids(DOWN), [1]);
    assert_eq!(bench.value("downlink.rlc_duplicates"), 5.0);
}

#[test]
fn status_reports_keep_the_prohibit_time_between_them() {
    let mut bench =
        channel(json!({ "loss": { "downlink": 0.2 }, "queue": "1000 packets", "rlc": { "max_dat": 0 } }));
    bench.records.ask(|p| (p.name == "radio.rlc.ul.tx", false));
    for _ in 0..200 {
        bench.send(DOWN, 1500);
    }
    bench.finish();
    let times: Vec<u64> = bench.records.packets.iter().map(|r| r.at.as_nanos() / 1_000_000).collect();
    assert!(times.len() > 20);
    // A report may take several PDUs of one interval (or of the next); reports are 150 ms + 20 ms apart or more.
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap <= 20 || gap >= 160, "{gap}");
    }
}

#[test]
fn timer_based_discard_moves_the_receiving_window() {
    // The downlink dies for 3 s; SDUs are given up after 1 s, and the link goes on without a reset.
    let mut bench = channel(json!({
        "loss": { "downlink": { "model": "on-off", "first": "off", "off": "100ms", "on": "3s", "loss": 1.0 } },
        "rlc": { "discard": "timer", "timer_discard": "1s", "timer_mrw": "300ms", "max_mrw": 32 },
    }));
    bench = bench.recorded();
    let mut sent = 0;
    while bench.now < ms(3000) {
        bench.send(DOWN, 900);
        sent += 1;
        let next = bench.now + Duration::from_millis(100);
        bench.run_until(next);
    }
    bench.apply(&[], Change::Loss(Some(DOWN), 0.0));
    let last = bench.send(DOWN, 700);
    bench.finish();
    let got = bench.ids(DOWN);
    assert_eq!(got.last(), Some(&last));
    assert!(got.windows(2).all(|w| w[0] < w[1]));
    assert!(bench.value("downlink.rlc_discards") > 5.0);
    assert_eq!(bench.value("rlc_resets"), 0.0);
    assert_eq!(bench.value("downlink.lost") as usize, sent + 1 - got.len());
    let mrw = bench.records.packets.iter().filter(|r| {
        let octets = &bench.records.octets[r.octets.clone()];
        !octets.is_empty()
            && octets[0] & 0x80 == 0
            && Sufis::of(octets).flatten().any(|s| matches!(s, Sufi::Mrw(_)))
    });
    assert!(mrw.count() > 2, "MRW was sent and repeated");
    assert_eq!(bench.bearer.poll_timeout(), None);
}

#[test]
fn discard_in_the_middle_of_an_sdu_does_not_harm_its_neighbours() {
    for seed in 0..20 {
        for mode in [
            json!({ "discard": "timer", "timer_discard": "400ms" }),
            json!({ "discard": "max-dat", "max_dat": 3 }),
        ] {
            let mut rlc = mode;
            rlc["timer_mrw"] = json!("200ms");
            rlc["window"] = json!(100);
            rlc["max_mrw"] = json!(60);
            let mut bench = cell(
                json!({ "loss": 0.35, "rate": { "downlink": "64kbit/s", "uplink": "64kbit/s" }, "rlc": rlc }),
                1,
                seed,
            );
            bench = bench.recorded();
            let mut sizes = std::collections::BTreeMap::new();
            for n in 0..60u32 {
                let size = 1 + n.wrapping_mul(40_503) % 400;
                sizes.insert(bench.send(DOWN, size), size as usize);
                let next = bench.now + Duration::from_millis(30);
                bench.run_until(next);
            }
            bench.finish();
            let got = bench.ids(DOWN);
            assert!(got.windows(2).all(|w| w[0] < w[1]), "in order");
            assert!(bench.out.iter().all(|(.., p)| sizes[&p.id()] == p.wire_len()));
            assert_eq!(got.len() + bench.value("downlink.lost") as usize, 60, "seed {seed}");
            assert_eq!(bench.bearer.poll_timeout(), None);
            assert_eq!(bench.value("rlc_malformed"), 0.0);
            assert_eq!(bench.value("rlc_resets"), 0.0, "seed {seed}");
            assert!(got.len() > 4, "seed {seed}: {}", got.len());
        }
    }
}

#[test]
fn an_sdu_that_is_given_up_half_sent_does_not_take_the_next_one_with_it() {
    // The MRW comes in the interval in which the next SDU begins, or is lost with what leaves then.
    let burst = json!({ "model": "on-off", "first": "off", "off": "980ms", "on": "120ms", "loss": 1.0 });
    for loss in [json!(0.0), burst] {
        for (window, piggyback) in [(1024, true), (1024, false), (4, true), (4, false)] {
            // A PDU every 40 ms: 1500 octets would take one and a half seconds.
            let mut bench = channel(json!({
                "loss": { "downlink": loss }, "rate": "8kbit/s", "core_delay": "0s",
                "rlc": { "discard": "timer", "timer_discard": "1s", "window": window, "piggyback": piggyback },
            }));
            bench.send(DOWN, 1500);
            bench.run_until(ms(900));
            let next = bench.send(DOWN, 100);
            bench.finish();
            assert_eq!(bench.ids(DOWN), [next], "{loss} {window} {piggyback}");
            assert_eq!((bench.value("downlink.rlc_discards"), bench.value("rlc_resets")), (1.0, 0.0));
        }
    }
}

#[test]
fn a_move_of_the_window_that_comes_twice_is_obeyed_once_whatever_the_window() {
    for window in [1024, 4090, 4095] {
        let mut bench = channel(json!({
            "loss": 0.25, "rate": "64kbit/s", "queue": "10000 packets",
            "rlc": {
                "window": window, "discard": "timer", "timer_discard": "900ms", "timer_mrw": "200ms", "max_mrw": 60,
            },
        }));
        for n in 0..2000 {
            bench.run_until(ms(20 * n));
            bench.send(DOWN, 400);
        }
        bench.finish();
        assert_eq!(bench.value("rlc_resets"), 0.0, "window {window}");
        let got = bench.ids(DOWN);
        assert!(got.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(got.len() + bench.value("downlink.lost") as usize, 2000, "window {window}");
    }
}

#[test]
fn max_dat_resets_the_link_and_sdus_that_waited_survive() {
    let mut bench = channel(json!({
        "loss": { "downlink": { "model": "on-off", "on": "1500ms", "off": "1h", "loss": 1.0 } },
        "rlc": { "max_dat": 4, "timer_rst": "300ms", "window": 30 },
    }));
    let ids: Vec<u64> = (0..20).map(|_| bench.send(DOWN, 600)).collect();
    bench.finish();
    let got = bench.ids(DOWN);
    assert_eq!(bench.value("downlink.rlc_resets"), 1.0);
    // The window of 30 PDUs held two SDUs (30 x 40 octets) and nothing of the third could be sent.
    assert_eq!(got, ids[2..]);
    assert_eq!(bench.value("downlink.lost"), 2.0);
}

#[test]
fn an_unrecoverable_error_is_reported_and_the_link_is_set_up_anew() {
    let mut bench = channel(json!({
        "loss": { "downlink": { "model": "on-off", "on": "3s", "off": "1h", "loss": 1.0 } },
        "rlc": { "max_dat": 2, "max_rst": 3, "timer_rst": "200ms" },
    }));
    bench.send(DOWN, 100);
    bench.run_until(ms(3000));
    assert_eq!(
        bench.events.iter().map(|(_, event)| *event).collect::<Vec<_>>(),
        [BearerEvent::Down(Station(0), "rlc unrecoverable error"), BearerEvent::Up(Station(0))]
    );
    let failures = ["", "downlink.", "uplink."].map(|of| bench.value(&format!("{of}rlc_failures")));
    assert_eq!(failures, [1.0, 1.0, 0.0]);
    let id = bench.send(DOWN, 100);
    bench.finish();
    assert_eq!(bench.ids(DOWN), [id]);
}

#[test]
fn both_ends_survive_losses_with_small_max_dat_whatever_is_reset_when() {
    for seed in 0..30 {
        let mut bench = cell(
            json!({ "loss": 0.3, "rlc": { "max_dat": 3, "timer_rst": "150ms", "max_rst": 32, "window": 50 } }),
            1,
            seed,
        );
        for n in 0..50 {
            bench.send(DOWN, 200 + 10 * n);
            bench.send(UP, 100 + n);
            let next = bench.now + Duration::from_millis(40);
            bench.run_until(next);
        }
        bench.finish();
        for direction in [UP, DOWN] {
            let got = bench.ids(direction);
            assert!(got.windows(2).all(|w| w[0] < w[1]), "seed {seed}: in order, once");
            let name = format!("{}.lost", direction.name());
            assert_eq!(got.len() + bench.value(&name) as usize, 50, "seed {seed}");
        }
        assert!(bench.value("rlc_resets") > 0.0);
        assert_eq!(bench.bearer.poll_timeout(), None);
    }
}

#[test]
fn periodic_reports_replace_polls_and_end_when_nothing_is_missing() {
    let mut bench = channel(json!({
        "loss": { "downlink": 0.1 },
        "rlc": {
            "max_dat": 0, "last_pdu_poll": false, "last_retransmission_pdu_poll": false, "poll_sdu": 0,
            "missing_pdu_indicator": false, "timer_poll": "0s", "timer_status_periodic": "100ms", "poll_window": 100,
            "timer_poll_periodic": "300ms",
        },
    }));
    let ids: Vec<u64> = (0..40).map(|_| bench.send(DOWN, 1000)).collect();
    bench.finish();
    assert_eq!(bench.ids(DOWN), ids);
    assert!(bench.value("uplink.rlc_status_pdus") > 8.0);
}

#[test]
fn sequence_numbers_wrap() {
    let mut bench = channel(json!({ "loss": 0.05, "queue": "100000 packets", "rlc": { "max_dat": 0 } }));
    // 12,000 PDUs: almost three times round.
    let ids: Vec<u64> = (0..320).map(|_| bench.send(DOWN, 1500)).collect();
    bench.finish();
    assert_eq!(bench.ids(DOWN), ids);
}

#[test]
fn fifty_idle_mobiles_cost_no_events() {
    let mut bench = cell(json!({}), 50, 1);
    assert_eq!(bench.run_until(ms(3_600_000)), 0);
    bench.send_to(DOWN, 17, 1500);
    bench.finish();
    assert_eq!(bench.out[0].2, Station(17));
    assert_eq!(bench.bearer.poll_timeout(), None);
}

#[test]
fn mobiles_have_channels_and_losses_of_their_own() {
    let mut bench = cell(json!({ "loss": 0.1, "rlc": { "max_dat": 0 } }), 3, 1);
    for _ in 0..20 {
        (0..3).for_each(|s| {
            bench.send_to(DOWN, s, 1000);
        });
    }
    bench.finish();
    let ends: Vec<Instant> =
        (0..3).map(|s| bench.out.iter().filter(|o| o.2 == Station(s)).map(|o| o.0).max().unwrap()).collect();
    assert!(ends[0] != ends[1] || ends[1] != ends[2]);
    let names: Vec<&str> = bench.records.points().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names.len(), 12);
    assert!(names.contains(&"radio.2.rlc.dl.tx") && names.contains(&"radio.0.rlc.ul.rx"));
}

#[test]
fn a_full_queue_drops() {
    let mut bench =
        channel(json!({ "queue": { "downlink": "3 packets", "uplink": "1000B" }, "core_delay": "0s" }));
    bench.records.ask(|_| (true, false));
    for _ in 0..5 {
        bench.send(DOWN, 1000);
    }
    for _ in 0..3 {
        bench.send(UP, 450);
    }
    bench.finish();
    assert_eq!((bench.ids(DOWN).len(), bench.ids(UP).len()), (3, 2));
    let dropped: Vec<u64> = bench
        .records
        .packets
        .iter()
        .filter(|r| r.facts.reason == Some("queue full"))
        .map(|r| r.facts.packet)
        .collect();
    assert_eq!(dropped, [4, 5, 8]);
    assert_eq!(bench.value("downlink.queue_max_bytes"), 3000.0);
}

#[test]
fn a_link_that_goes_down_loses_what_it_held_and_works_again_later() {
    let mut bench = channel(json!({}));
    for _ in 0..10 {
        bench.send(DOWN, 1500);
    }
    bench.run_until(ms(150));
    bench.apply(&[0], Change::State(LinkState::Down));
    let before = bench.ids(DOWN).len();
    bench.send(DOWN, 100);
    assert_eq!(bench.bearer.poll_timeout(), None);
    bench.run_until(ms(1000));
    bench.apply(&[], Change::State(LinkState::Up));
    let id = bench.send(DOWN, 100);
    bench.finish();
    assert_eq!(bench.ids(DOWN)[before..], [id]);
    assert_eq!(bench.value("downlink.lost") as usize, 12 - before - 1);
    let went = (ms(150), BearerEvent::Down(Station(0), "link down"));
    assert_eq!(bench.events, [went, (ms(1000), BearerEvent::Up(Station(0)))]);
}

#[test]
fn what_a_link_that_goes_down_loses_in_the_core_network_is_recorded() {
    let mut bench = channel(json!({ "core_delay": "500ms" }));
    bench.records.ask(|_| (true, false));
    let sent = [bench.send(UP, 40), bench.send(DOWN, 40)];
    bench.run_until(ms(200));
    bench.apply(&[], Change::State(LinkState::Down));
    assert_eq!([bench.value("uplink.lost"), bench.value("downlink.lost")], [1.0, 1.0]);
    let rows = bench.records.packets.iter().filter(|r| r.facts.event == Event::Drop);
    let dropped: Vec<_> = rows.map(|r| (r.facts.packet, r.facts.direction, r.facts.reason)).collect();
    assert_eq!(dropped, [(sent[0], UP, Some("link down")), (sent[1], DOWN, Some("link down"))]);
}

#[test]
fn the_timeline_changes_rate_delay_and_queue() {
    let mut bench = channel(json!({ "core_delay": "0s" }));
    bench.apply(&[], Change::Rate(Some(DOWN), Rate::kbit(64)));
    bench.apply(&[], Change::Delay(None, Duration::from_millis(100)));
    bench.apply(&[], Change::Queue(Some(DOWN), QueueLimit::Packets(1)));
    bench.send(DOWN, 1500);
    bench.finish();
    assert_eq!(bench.out[0].0, ms(100 + 200 + 30));
    let mut cx = Cx { now: bench.now, records: &mut bench.records };
    let mut refuse = |part: &[u16], change| bench.bearer.apply(&mut cx, part, &change).unwrap_err().0;
    assert!(refuse(&[], Change::Rate(None, Rate::kbit(100))).contains("valid: 8, 16"));
    assert!(refuse(&[7], Change::State(LinkState::Up)).contains("no such part"));
    assert!(refuse(&[0], Change::Queue(None, QueueLimit::Packets(1))).contains("one station"));
}

#[test]
fn a_core_network_without_a_delay_any_more_lets_nothing_overtake_what_is_in_it() {
    for direction in [DOWN, UP] {
        let mut bench = channel(json!({ "core_delay": "500ms" }));
        let mut sent = vec![bench.send(direction, 40)];
        bench.run_until(ms(200));
        bench.apply(&[], Change::Delay(None, Duration::ZERO));
        sent.push(bench.send(direction, 40));
        bench.run_until(ms(1000));
        sent.push(bench.send(direction, 40));
        bench.finish();
        assert_eq!(bench.ids(direction), sent);
        assert!(bench.out[2].0 < ms(1100), "nothing is in it any more");
    }
}

#[test]
fn a_change_of_rate_in_the_middle_of_a_transfer_keeps_everything() {
    let mut bench = channel(json!({ "loss": 0.05, "rlc": { "max_dat": 0 } }));
    let ids: Vec<u64> = (0..60).map(|_| bench.send(DOWN, 1500)).collect();
    for (at, kbit) in [(333, 64), (1501, 256), (2222, 8), (3003, 384)] {
        bench.run_until(ms(at));
        bench.apply(&[], Change::Rate(Some(DOWN), Rate::kbit(kbit)));
    }
    bench.finish();
    assert_eq!(bench.ids(DOWN), ids);
}

/// Share of the blocks lost from now until `end`, of a downlink that is lossy in bursts.
fn lost_until(bench: &mut Bench, end: Instant) -> f64 {
    let count = |bench: &Bench| (bench.value("downlink.blocks"), bench.value("downlink.blocks_lost"));
    let (blocks, lost) = count(bench);
    bench.run_until(end);
    let (blocks, lost) = (count(bench).0 - blocks, count(bench).1 - lost);
    lost / blocks
}

#[test]
fn losses_in_bursts_go_on_when_intervals_become_longer() {
    let loss = json!({ "downlink": { "model": "gilbert-elliott", "loss": 0.3, "burst": 5 } });
    for seed in 0..8 {
        // 10 ms, then 20.
        let mut bench =
            cell(json!({ "loss": loss, "queue": "10000 packets", "rlc": { "max_dat": 0 } }), 1, seed);
        bench.send_many(DOWN, 2000, 1500);
        bench.run_until(ms(20_000));
        bench.apply(&[], Change::Rate(Some(DOWN), Rate::kbit(64)));
        let lost = lost_until(&mut bench, ms(35_000));
        assert!((0.1..0.6).contains(&lost), "seed {seed}: {lost}");
        // FACH has 10 ms; the channel that follows it, 20.
        let mut bench =
            cell(json!({ "rrc": {}, "rate": "64kbit/s", "loss": loss, "rlc": { "max_dat": 0 } }), 1, seed);
        bench.send(DOWN, 1500);
        for second in 8..30 {
            bench.run_until(ms(1000 * second));
            bench.send(DOWN, 100);
        }
        bench.send_many(DOWN, 60, 1500);
        let lost = lost_until(&mut bench, ms(40_000));
        assert!((0.1..0.6).contains(&lost), "seed {seed}, after FACH: {lost}");
    }
}

#[test]
fn channel_switching_delays_the_first_packet_and_is_recorded() {
    let mut bench = channel(json!({ "rrc": {}, "core_delay": "0s" }));
    bench.records.ask_facts(true, false);
    bench.send(DOWN, 1500);
    bench.finish();
    assert_eq!(bench.out[0].0, ms(2000 + 40 + 30));
    // On FACH a small packet goes at once, with 200 ms more.
    let states: Vec<(&str, u64, u64)> = bench
        .records
        .facts
        .iter()
        .filter_map(|r| match r {
            Record::State(s) if s.direction.is_none() => {
                Some((s.state, s.at.as_nanos() / 1_000_000, s.octets))
            }
            _ => None,
        })
        .collect();
    let names: Vec<&str> = states.iter().map(|s| s.0).collect();
    assert_eq!(names, ["idle", "idle-dch", "dch", "fach", "idle"]);
    assert_eq!((states[0].1, states[2].1), (0, 2000));
    let air: u64 = bench
        .records
        .facts
        .iter()
        .filter_map(|r| match r {
            Record::State(s) if s.direction == Some(DOWN) => Some(s.octets),
            _ => None,
        })
        .sum();
    assert_eq!(air, 38 * 42);
    assert_eq!(bench.bearer.poll_timeout(), None);
}

#[test]
fn every_mobile_has_a_radio_state_from_the_beginning() {
    for (config, name) in [(json!({}), "dch"), (json!({ "rrc": {} }), "idle")] {
        let mut bench = cell(config, 3, 1);
        bench.records.ask_facts(true, false);
        bench.run_until(ms(5000));
        bench.send_to(DOWN, 1, 100);
        bench.run_until(ms(5030));
        let stays: Vec<_> = bench.records.facts.iter().filter_map(stay).collect();
        let first = |station| (ms(0), Station(station), name);
        assert_eq!(stays[..3], [first(0), first(1), first(2)]);
        // What is the state already is not told again.
        assert_eq!(
            stays[3..],
            if name == "idle" { vec![(ms(5020), Station(1), "idle-dch")] } else { vec![] }
        );
    }
}

/// A row of the states table that is a stay.
fn stay(row: &Record) -> Option<(Instant, Station, &'static str)> {
    match row {
        Record::State(s) if s.direction.is_none() => Some((s.at, s.station, s.state)),
        _ => None,
    }
}

/// A packet each way, one after the other, every 30 s; how many rounds came to their end before the next began.
fn rounds(config: Value, count: u64, octets: u32) -> u64 {
    let mut bench = channel(config);
    let mut whole = 0;
    for n in 0..count {
        bench.run_until(ms(30_000 * n));
        let (up, end) = (bench.send(UP, octets), ms(30_000 * n + 29_000));
        while bench.now < end && !bench.ids(UP).contains(&up) {
            let next = bench.now + Duration::from_millis(1);
            bench.run_until(next);
        }
        let down = bench.send(DOWN, octets);
        bench.run_until(end);
        whole += u64::from(bench.ids(DOWN).contains(&down));
    }
    assert_eq!(bench.bearer.poll_timeout(), None, "in IDLE in the end");
    whole
}

#[test]
fn a_mobile_whose_rlc_has_something_to_send_does_not_stay_in_idle() {
    let timers = |ms: &str| json!({ "dch_inactivity": ms, "fach_inactivity": ms });
    let lossy = json!({ "loss": 0.1, "rlc": { "timer_poll": "3s" }, "rrc": timers("1s") });
    assert_eq!(rounds(lossy, 30, 400), 30);
    assert_eq!(rounds(json!({ "rrc": timers("100ms") }), 10, 1000), 10);
    let straight = json!({ "dch_inactivity": "100ms", "fach_inactivity": "0s" });
    assert_eq!(rounds(json!({ "rrc": straight }), 10, 1000), 10);
}

#[test]
fn what_is_on_the_air_when_the_run_ends_or_the_mobile_leaves_is_recorded() {
    for leaves in [false, true] {
        let mut bench = cell(json!({}), 2, 1);
        bench.records.ask_facts(true, false);
        (0..2).for_each(|station| {
            bench.send_to(DOWN, station, 1500);
        });
        bench.run_until(ms(45));
        match leaves {
            false => bench.bearer.close(&mut Cx { now: bench.now, records: &mut bench.records }),
            true => bench.apply(&[], Change::State(LinkState::Down)),
        }
        let air = |row: &Record| match row {
            Record::State(s) if s.direction == Some(DOWN) => Some((s.station, s.at, s.until, s.octets)),
            _ => None,
        };
        let rows: Vec<_> = bench.records.facts.iter().filter_map(air).collect();
        // Three intervals of 12 PDUs since the packets came out of the core network, the third of which is not over.
        let row = |station| (Station(station), ms(20), Some(ms(50)), 3 * 12 * 42);
        assert_eq!(rows, [row(0), row(1)], "leaves: {leaves}");
    }
}

#[test]
fn the_share_of_the_run_in_which_a_channel_was_busy_has_the_time_in_which_nothing_happened() {
    let mut bench = channel(json!({}));
    bench.send(DOWN, 1500);
    bench.finish();
    let busy_s = |bench: &Bench| bench.value("downlink.busy_share") * bench.now.as_secs_f64();
    let before = busy_s(&bench);
    bench.run_until(ms(10_000));
    bench.bearer.close(&mut Cx { now: bench.now, records: &mut bench.records });
    assert!(before > 0.03 && (busy_s(&bench) - before).abs() < 1e-9, "{before}");
}

#[test]
fn little_data_stays_on_fach_and_more_is_promoted() {
    let mut bench = channel(json!({ "rrc": {}, "core_delay": "0s" }));
    bench.send(DOWN, 1500);
    bench.run_until(ms(7000));
    bench.send(DOWN, 100);
    bench.run_until(ms(9000));
    // 100 octets: 3 PDUs, one every 10 ms, 30 + 200 ms.
    assert_eq!(bench.out[1].0, ms(7000 + 30 + 230));
    bench.send(DOWN, 1500);
    bench.finish();
    assert_eq!(bench.out[2].0, ms(9000 + 1500 + 40 + 30));
}

#[test]
fn the_fach_is_shared_by_turns_and_the_rach_is_not() {
    // Ten mobiles come to FACH together; then there are 100 octets (3 PDUs) for each, or of each, at the same moment.
    let ends = |direction| -> Vec<(u16, Instant)> {
        let mut bench = cell(json!({ "rrc": {}, "core_delay": "0s" }), 10, 1);
        (0..10).for_each(|s| {
            bench.send_to(DOWN, s, 40);
        });
        bench.run_until(ms(7000));
        bench.out.clear();
        (0..10).for_each(|s| {
            bench.send_to(direction, s, 100);
        });
        bench.run_until(ms(8500));
        bench.out.iter().map(|(at, _, station, _)| (station.0, *at)).collect()
    };
    // By turns, every mobile's third PDU lies in the third round of ten intervals of 10 ms.
    let down: Vec<(u16, Instant)> = (0..10).map(|n| (n, ms(7000 + 210 + 10 * u64::from(n) + 230))).collect();
    assert_eq!(ends(DOWN), down);
    // On RACH each sends one PDU in 20 ms.
    assert!(ends(UP).iter().all(|(_, at)| *at == ms(7000 + 3 * 20 + 230)) && ends(UP).len() == 10);
}

#[test]
fn a_receiver_short_of_memory_slows_its_sender_down() {
    let run = |receive_window: Value, loss: f64| {
        let mut bench = channel(json!({
            "loss": loss, "core_delay": "0s",
            "rlc": { "max_dat": 0, "receive_window": receive_window, "piggyback": false },
        }));
        bench = bench.recorded();
        let ids: Vec<u64> = (0..60).map(|_| bench.send(DOWN, 1500)).collect();
        bench.finish();
        assert_eq!(bench.ids(DOWN), ids, "nothing is lost");
        let reports: Vec<Vec<Sufi>> = bench
            .records
            .packets
            .iter()
            .filter(|r| r.facts.event == Event::Ack && r.facts.direction == UP)
            .map(|r| Sufis::of(&bench.records.octets[r.octets.clone()]).map(|s| s.unwrap()).collect())
            .collect();
        (bench.out.last().unwrap().0, reports)
    };
    let offers =
        |reports: &[Vec<Sufi>]| reports.iter().filter(|r| r.contains(&Sufi::Window { wsn: 16 })).count();
    let (free, reports) = run(Value::Null, 0.0);
    assert_eq!(offers(&reports), 0);
    let (slow, reports) = run(json!(16), 0.0);
    // The offer goes first and alone, then again with every report: each fits into one PDU here.
    assert_eq!(reports[0], [Sufi::Window { wsn: 16 }, Sufi::NoMore]);
    assert_eq!(offers(&reports), reports.len());
    // 60 SDUs of 38 PDUs, 16 PDUs a round trip of 90 ms at the most.
    assert!(slow > ms(60 * 37 / 16 * 90) && free < ms(3500), "{slow} {free}");
    // A lost offer is made again, and a window that closes behind PDUs sent without a poll does not stop the link.
    for loss in [0.1, 0.3] {
        assert!(run(json!(16), loss).0 > slow);
    }
}

#[test]
fn the_window_is_offered_again_after_a_reset() {
    let mut bench = channel(json!({
        "loss": { "downlink": { "model": "on-off", "on": "1500ms", "off": "1h", "loss": 1.0 } },
        "rlc": { "max_dat": 4, "timer_rst": "300ms", "window": 30, "receive_window": 20 },
    }));
    bench = bench.recorded();
    (0..20).for_each(|_| {
        bench.send(DOWN, 600);
    });
    bench.finish();
    assert!(bench.value("downlink.rlc_resets") >= 1.0);
    let sent: Vec<&[u8]> = bench
        .records
        .packets
        .iter()
        .filter(|r| r.facts.direction == UP && !r.octets.is_empty())
        .map(|r| &bench.records.octets[r.octets.clone()])
        .collect();
    let ack = sent.iter().position(|o| matches!(Control::parse(o), Ok(Control::ResetAck(_)))).unwrap();
    let status = sent[ack..].iter().find(|o| matches!(Control::parse(o), Ok(Control::Status))).unwrap();
    assert_eq!(Sufis::of(status).next(), Some(Ok(Sufi::Window { wsn: 20 })));
}

#[test]
fn sdus_given_up_together_are_named_together() {
    // Four SDUs that came together die together: one MRW names the end of each, and the receiver goes on behind it.
    let mut bench = channel(json!({
        "loss": { "downlink": { "model": "on-off", "first": "off", "off": "100ms", "on": "3s", "loss": 1.0 } },
        "rlc": { "discard": "timer", "timer_discard": "1s", "max_mrw": 32, "piggyback": false },
    }));
    bench = bench.recorded();
    bench.run_until(ms(200));
    (0..4).for_each(|_| {
        bench.send(DOWN, 100);
    });
    bench.run_until(ms(3000));
    bench.apply(&[], Change::Loss(Some(DOWN), 0.0));
    let last = bench.send(DOWN, 100);
    bench.finish();
    assert_eq!(bench.ids(DOWN), [last]);
    assert_eq!((bench.value("downlink.rlc_discards"), bench.value("rlc_resets")), (4.0, 0.0));
    let named: Vec<usize> = bench
        .records
        .packets
        .iter()
        .filter(|r| r.facts.reason == Some("status"))
        .flat_map(|r| Sufis::of(&bench.records.octets[r.octets.clone()]))
        .filter_map(|s| if let Ok(Sufi::Mrw(mrw)) = s { Some(mrw.sns().len()) } else { None })
        .collect();
    assert!(named.len() > 1 && named.iter().all(|n| *n == 4), "{named:?}");
}

#[test]
fn points_say_what_is_seen_at_them() {
    let bench = channel(json!({ "pdu_octets": 82 }));
    let point = &bench.records.points()[2];
    assert_eq!((point.name.as_str(), point.speed), ("radio.rlc.dl.tx", Some(384_000)));
    assert_eq!(point.kind, PointKind::RlcAm { direction: DOWN, station: Station(0), li_octets: 1 });
}

#[test]
fn rows_tell_attempts_and_block_errors() {
    let mut bench = channel(json!({ "loss": { "downlink": 0.3 }, "rlc": { "max_dat": 0 } }));
    bench.records.ask(|p| (p.name.contains("dl"), false));
    for _ in 0..20 {
        bench.send(DOWN, 1500);
    }
    bench.finish();
    let count = |name: &str, event: Event| {
        let point = bench.records.points().iter().position(|p| p.name == name).unwrap();
        bench
            .records
            .packets
            .iter()
            .filter(|r| usize::from(r.point.0) == point && r.facts.event == event)
            .count()
    };
    let (tx, retx) = (count("radio.rlc.dl.tx", Event::Transmit), count("radio.rlc.dl.tx", Event::Retransmit));
    let (drop, rx) = (count("radio.rlc.dl.tx", Event::Drop), count("radio.rlc.dl.rx", Event::Receive));
    assert_eq!(tx + retx, drop + rx);
    assert_eq!(retx as f64, bench.value("rlc_resent"));
    assert!(bench.records.packets.windows(2).all(|w| w[0].at <= w[1].at), "rows are in order of time");
    let most = bench.records.packets.iter().map(|r| r.facts.attempt).max();
    assert!(most >= Some(3));
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let run = |seed| {
        let mut bench = cell(json!({ "loss": 0.1 }), 2, seed);
        for n in 0..40 {
            bench.send_to(DOWN, n % 2, 900);
            bench.send_to(UP, n % 2, 90);
        }
        bench.finish();
        let trace: Vec<(Instant, u64)> = bench.out.iter().map(|(at, .., p)| (*at, p.id())).collect();
        (trace, format!("{:?}", bench.summary()))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn a_late_driver_changes_nothing() {
    // Real time: timeouts are handled late, packets are fed before.
    let run = |lateness: u64| {
        let mut bench = channel(json!({ "loss": 0.1 }));
        for n in 0..30 {
            bench.now = ms(n * 50);
            bench.send(DOWN, 1200);
            while let Some(at) = bench
                .bearer
                .poll_timeout()
                .filter(|at| *at + Duration::from_millis(lateness) < ms((n + 1) * 50))
            {
                bench.handle(at + Duration::from_millis(lateness));
            }
        }
        bench.finish();
        (bench.ids(DOWN), bench.value("downlink.sdu_delay_mean_ms"))
    };
    assert_eq!(run(0), run(7));
}
