//! A cell as a whole: packets in, packets out.

use std::collections::BTreeMap;

use airloom_base::machine::{Change, LinkState};
use airloom_base::record::{Event, Record};
use airloom_base::{Body, Cx, Direction, Duration, Instant, Outbox, Packet, Parts};
use airloom_testkit::{Bench, numbered};
use serde_json::{Value, json};

use super::wire::block::pieces;
use super::wire::{CONTROL_OCTETS, DownlinkAckNack, RadioBlock, SNS, UplinkAckNack};
use super::{Egprs, gsmtap};

const UP: Direction = Direction::Uplink;
const DOWN: Direction = Direction::Downlink;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

#[test]
fn a_packet_of_sixteen_segments_passes_and_a_link_for_longer_ones_is_refused() {
    let mut records = Outbox::default();
    let mut build = |mtu: u16| {
        let mut parts = Parts { mtu, ..Parts::new(1, "radio", 1, &mut records) };
        Egprs::build(&json!({ "n201_u": 140 }), &mut parts).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(build(2191), Ok(()));
    assert_eq!(
        build(2192).unwrap_err(),
        "mtu: at most 2191 octets: SNDCP cuts a packet into no more than 16 segments, here of 140 (`n201_u`)"
    );
    let mut cell = cell_of(json!({ "n201_u": 140 }), 1);
    cell.send(DOWN, 2191);
    cell.send(DOWN, 2192);
    cell.finish();
    assert_eq!(cell.ids(DOWN), [1]);
}

fn cell_of(config: Value, stations: u16) -> Bench {
    seeded(config, stations, 1)
}

fn seeded(config: Value, stations: u16, seed: u64) -> Bench {
    let mut records = Outbox::default();
    let mut parts = Parts::new(seed, "radio", stations, &mut records);
    let bearer = Egprs::build(&config, &mut parts).expect("a valid configuration");
    Bench::new(bearer, records)
}

#[test]
fn without_loss_the_delay_is_set_up_block_periods_and_processing() {
    // 1510 octets are 35 blocks: nine periods on four timeslots.
    let mut always = cell_of(json!({ "tbf": "always" }), 1);
    always.send(DOWN, 1500);
    always.finish();
    assert_eq!(always.arrivals(DOWN), [(at(180), 1)]);
    let mut cell = cell_of(json!({}), 1);
    cell.send(DOWN, 1500);
    cell.finish();
    assert_eq!(cell.arrivals(DOWN), [(at(380), 1)]);
    // One uplink slot: 35 periods, and 20 ms to the control unit; flow set-up 200 ms.
    let mut up = cell_of(json!({}), 1);
    up.send(UP, 1500);
    up.finish();
    assert_eq!(up.arrivals(UP), [(at(200 + 35 * 20 + 20), 1)]);
}

#[test]
fn a_flow_is_kept_for_a_while_and_then_an_idle_cell_has_no_events() {
    let mut cell = cell_of(json!({}), 2);
    cell.send(DOWN, 100);
    cell.run_until(at(1000));
    cell.send(DOWN, 100);
    cell.finish();
    // The second finds a flow: no set-up; 110 octets are three blocks.
    assert_eq!(cell.arrivals(DOWN), [(at(220), 1), (at(1020), 2)]);
    assert!(cell.bearer.poll_timeout().is_none());
    assert!(cell.now > at(2500) && cell.now < at(3000), "released after 1.5 s without data: {}", cell.now);
    assert_eq!(cell.value("downlink.tbf_count"), 1.0);
    // T3192: set-up is fast soon after, slow later.
    let released = cell.now;
    cell.run_until(released + Duration::from_millis(100));
    let asked = cell.now;
    cell.send(DOWN, 10);
    cell.finish();
    let fast = cell.arrivals(DOWN)[2].0 - asked;
    assert!(fast >= Duration::from_millis(100) && fast < Duration::from_millis(121), "{fast}");
    let later = cell.now + Duration::from_secs(5);
    cell.run_until(later);
    cell.send(DOWN, 10);
    cell.finish();
    let slow = cell.arrivals(DOWN)[3].0 - later;
    assert!(slow >= Duration::from_millis(220) && slow < Duration::from_millis(241), "{slow}");
}

#[test]
fn an_uplink_flow_ends_with_a_final_report_even_if_reports_are_lost() {
    for hold in ["0s", "1s"] {
        let tbf = json!({ "hold": hold });
        let mut cell = cell_of(json!({ "tbf": tbf, "loss": 0.3 }), 1);
        cell.send(UP, 1000);
        cell.finish();
        assert_eq!(cell.arrivals(UP).len(), 1, "{hold}");
        assert!(cell.bearer.poll_timeout().is_none());
    }
}

/// Everything, both ways, at a loss that makes every mechanism work.
fn everything_comes(config: Value, stations: u16) -> Bench {
    let shown = config.to_string();
    let mut cell = seeded(config, stations, 5);
    for n in 0..30 {
        for station in 0..stations {
            cell.send_to(DOWN, station, 40 + 97 * n);
            cell.send_to(UP, station, 20 + 13 * n);
        }
    }
    cell.run_until(at(3_600_000));
    for direction in Direction::BOTH {
        for station in 0..stations {
            let got: Vec<u64> =
                cell.out.iter().filter(|o| o.1 == direction && o.2.0 == station).map(|o| o.3.id()).collect();
            assert_eq!(got.len(), 30, "{shown} {direction:?} {station}");
            assert!(got.is_sorted(), "{shown}: in order");
        }
    }
    assert!(cell.bearer.poll_timeout().is_none(), "{shown}: at rest");
    cell
}

#[test]
fn every_scheme_brings_everything_through_in_order() {
    for mcs in 1..=9 {
        everything_comes(json!({ "mcs": mcs, "loss": 0.3 }), 1);
    }
    for (mcs, again) in [(4, 1), (5, 2), (7, 2), (7, 5), (6, 3), (9, 3), (9, 6), (8, 6), (8, 3)] {
        everything_comes(json!({ "mcs": mcs, "retransmission_mcs": again, "loss": 0.3 }), 1);
    }
}

#[test]
fn everything_comes_through_whatever_the_options() {
    for config in [
        json!({ "pre_emptive": false, "loss": 0.2 }),
        json!({ "compressed_bitmap": false, "loss": 0.2 }),
        json!({ "grid": "multiframe", "loss": 0.2 }),
        json!({ "n201_u": 500, "loss": 0.2 }),
        json!({ "tbf": "always", "loss": 0.2, "pre_emptive": false }),
        json!({ "loss": { "per": "fec-frame", "model": "gilbert-elliott", "loss": 0.2, "burst": 5 } }),
        json!({ "ci": { "trace": [[0, 25], [1, 15], [2, 19]] } }),
        json!({ "pdchs": 8, "slots": { "downlink": 8, "uplink": 2 }, "window": { "downlink": 1024, "uplink": 256 }, "mcs": 9, "loss": 0.2 }),
        json!({ "pdchs": 1, "slots": 1, "window": 64, "loss": 0.2 }),
        json!({ "ideal_bitmap": true, "compressed_bitmap": false, "loss": 0.2 }),
        json!({ "ci": { "trace": [[0, 40], [1, 9], [3, 19]] }, "link_adaptation": {}, "loss": 0.1 }),
        json!({ "ci": { "trace": [[0, 40], [1, 12], [3, 19]] }, "link_adaptation": { "resegment": false } }),
        json!({ "ci": { "trace": [[0, 9]] }, "link_adaptation": { "lowest": 2 }, "mcs": 9, "tbf": "always" }),
    ] {
        everything_comes(config, 3);
    }
}

#[test]
fn resegmentation_pays_where_the_channel_is_too_bad_for_the_scheme() {
    // At 12 dB MCS-4 loses nearly all blocks, MCS-1 few.
    let ci = json!({ "trace": [[0, 12]] });
    let time = |again: u8| {
        let config = json!({ "mcs": 4, "retransmission_mcs": again, "ci": ci, "tbf": "always" });
        let mut cell = cell_of(config, 1);
        cell.send(DOWN, 1500);
        cell.finish();
        cell.arrivals(DOWN)[0].0
    };
    assert!(time(1).as_nanos() * 3 < time(4).as_nanos() * 2, "{} {}", time(1), time(4));
}

/// Seconds for 20 packets each way.
fn seconds(config: Value) -> [f64; 2] {
    let mut cell = cell_of(config, 1);
    for _ in 0..20 {
        cell.send(DOWN, 1500);
        cell.send(UP, 1500);
    }
    cell.run_until(at(3_600_000));
    Direction::BOTH.map(|direction| {
        let arrivals = cell.arrivals(direction);
        assert_eq!(arrivals.len(), 20);
        arrivals.last().map_or(0.0, |(at, _)| at.since(Instant::ZERO).as_secs_f64())
    })
}

#[test]
fn link_adaptation_finds_the_scheme_that_is_best_in_each_direction() {
    for (ratio, good) in [(35.0, 9), (22.0, 6), (8.0, 1)] {
        let ci = json!({ "trace": [[0, ratio]] });
        let fixed = |mcs: u8| seconds(json!({ "ci": ci, "mcs": mcs, "tbf": "always" }));
        let adapted = seconds(json!({ "ci": ci, "link_adaptation": {}, "tbf": "always" }));
        for (way, (adapted, best)) in adapted.iter().zip(fixed(good)).enumerate() {
            assert!(
                *adapted < 1.35 * best,
                "{ratio} dB, direction {way}: {adapted} s, MCS-{good} alone {best} s"
            );
        }
        if good != 1 {
            assert!(adapted.iter().zip(fixed(4)).all(|(a, f)| *a < 0.8 * f), "{ratio} dB: {adapted:?}");
        }
    }
}

#[test]
fn the_scheme_follows_a_channel_that_changes() {
    let ci = json!({ "trace": [[0, 35], [4, 9], [8, 9]] });
    let mean = |from: u64, until: u64| {
        let mut cell = cell_of(json!({ "ci": ci, "link_adaptation": {}, "tbf": "always" }), 1);
        cell.records.ask(|point| (point.name.contains("rlc.dl.tx"), false));
        cell.send_many(DOWN, 100, 1500);
        cell.run_until(at(until));
        let rows = cell.records.packets.iter().filter(|row| row.facts.seq.is_some() && row.at >= at(from));
        let octets: Vec<f64> = rows.map(|row| f64::from(row.facts.len)).collect();
        octets.iter().sum::<f64>() / octets.len() as f64
    };
    // Octets of a block: 74 with MCS-9; 22 with MCS-1, 28 with MCS-2, 37 where blocks of MCS-9 are cut in two.
    assert!(mean(1000, 4000) > 65.0, "{}", mean(1000, 4000));
    assert!(mean(6000, 8000) < 40.0, "{}", mean(6000, 8000));
}

#[test]
fn reports_of_the_whole_window_save_some_of_them() {
    let reports = |ideal: bool| {
        let slots = json!({ "downlink": 8, "uplink": 1 });
        let window = json!({ "downlink": 1024, "uplink": 64 });
        let mut config =
            json!({ "pdchs": 8, "slots": slots, "window": window, "mcs": 9, "loss": 0.3, "poll_every": 200 });
        config["tbf"] = json!("always");
        config["compressed_bitmap"] = json!(false);
        config["ideal_bitmap"] = json!(ideal);
        let mut cell = cell_of(config, 1);
        cell.send_many(DOWN, 60, 1500);
        cell.finish();
        assert_eq!(cell.arrivals(DOWN).len(), 60);
        (cell.value("uplink.rlc_reports"), cell.arrivals(DOWN)[59].0)
    };
    let (whole, cut) = (reports(true), reports(false));
    assert!(whole.0 < cut.0 && whole.1 < cut.1, "{whole:?} {cut:?}");
}

#[test]
fn the_countdown_value_is_that_of_the_block_even_if_it_is_repeated() {
    for (slots, mcs, per_step) in [(1u16, 4, 1), (2, 4, 2), (1, 9, 2)] {
        let slots = json!({ "uplink": slots, "downlink": 4 });
        let config = json!({ "mcs": mcs, "slots": slots, "loss": { "uplink": 0.3, "downlink": 0.0 }, "tbf": "always" });
        let mut cell = cell_of(config, 1);
        cell.records.ask(|point| (false, point.name.contains("rlc.ul.tx")));
        cell.send(UP, 1300);
        cell.finish();
        let mut sent: Vec<(u16, u8, bool)> = Vec::new();
        for row in &cell.records.packets {
            let octets = &cell.records.octets[row.octets.clone()];
            if octets.is_empty() || octets[12] == 11 {
                continue;
            }
            let block = RadioBlock::parse(UP, &octets[gsmtap::HEADER..]).expect("a data block");
            let super::wire::Header::Uplink(header) = block.header else { panic!("an uplink block") };
            sent.push((header.bsn[0].max(header.bsn[1]), header.cv, header.is_resent));
        }
        let last = sent.iter().map(|(bsn, ..)| *bsn).max().expect("blocks were sent");
        assert!(sent.iter().any(|(bsn, _, is_resent)| *is_resent && *bsn < last), "some are repeated");
        for (bsn, cv, is_resent) in sent {
            let left = (last - bsn).div_ceil(per_step);
            let expected = if left > 6 { 15 } else { left as u8 };
            assert_eq!(cv, expected, "MCS-{mcs}: block {bsn} of {last}, resent: {is_resent}");
        }
    }
}

/// A packet of SCTP with user data of a stream.
fn on_stream(stream: u8, octets: u32) -> Packet {
    let mut head = [0; 48];
    let ends = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
    airloom_wire::ip::emit(&mut head, ends[0], ends[1], 132, 0, 28 + octets as usize);
    head[32..42].copy_from_slice(&[0, 3, 0, 20, 0, 0, 0, 1, 0, stream]);
    Packet::with_head(&head, Body::filler(1, octets)).expect("a head of that length")
}

#[test]
fn packets_of_a_stream_with_priority_do_not_wait_for_others() {
    let order = |priorities: Value| {
        let mut cell = cell_of(json!({ "stream_priorities": priorities, "loss": 0.1 }), 1);
        for stream in [1, 2, 1, 0, 2, 0] {
            cell.pass(DOWN, 0, on_stream(stream, 1000));
        }
        cell.finish();
        cell.arrivals(DOWN).into_iter().map(|(_, id)| id).collect::<Vec<_>>()
    };
    assert_eq!(order(json!([])), [1, 2, 3, 4, 5, 6]);
    assert_eq!(order(json!([0, 2, 1])), [4, 6, 2, 5, 1, 3]);
}

#[test]
fn soft_combining_needs_fewer_transmissions() {
    let blocks = |g: f64| {
        let config =
            json!({ "loss": 0.5, "incremental_redundancy": g, "pre_emptive": false, "tbf": "always" });
        let mut cell = cell_of(config, 1);
        cell.send_many(DOWN, 40, 1500);
        cell.finish();
        cell.value("downlink.rlc_blocks") / (40.0 * 35.0)
    };
    // Without, 1/(1-p) = 2; with a tenth of the probability for the first repetition about 1.5 + 0.5 x 0.05.
    assert!((blocks(1.0) - 2.0).abs() < 0.1, "{}", blocks(1.0));
    assert!((blocks(0.1) - 1.53).abs() < 0.08, "{}", blocks(0.1));
}

#[test]
fn mobiles_with_a_backlog_share_the_timeslots_alike() {
    let mut cell = cell_of(json!({ "tbf": "always", "loss": 0.1 }), 4);
    for _ in 0..60 {
        for station in 0..4 {
            cell.send_to(DOWN, station, 1500);
        }
    }
    cell.run_until(at(30_000));
    let counts: Vec<usize> = (0..4).map(|s| cell.out.iter().filter(|o| o.2.0 == s).count()).collect();
    let (min, max) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(max - min <= 2, "{counts:?}");
    // Together they get what one would: 70.4 kbit/s x 0.9, less the control blocks of nobody.
    let rate = counts.iter().sum::<usize>() as f64 * 1510.0 * 8.0 / 30_000.0;
    assert!((rate / (70.4 * 0.9) - 1.0).abs() < 0.04, "{rate}");
}

#[test]
fn a_mobile_with_a_bad_channel_does_not_change_the_fate_of_another() {
    let times = |other: bool| {
        let mut cell = cell_of(json!({ "tbf": "always", "loss": 0.2, "pdchs": 4 }), 2);
        if other {
            cell.send_to(UP, 1, 800);
        }
        cell.send(UP, 800);
        cell.finish();
        cell.out.iter().filter(|o| o.2.0 == 0).map(|o| o.0).collect::<Vec<_>>()
    };
    assert_eq!(times(false), times(true), "their uplink slots are different ones");
}

#[test]
fn limited_repetition_loses_packets_as_often_as_arithmetic_says() {
    // 35 blocks, none of which may fail so many times: 1 - (1 - p^n)^35.
    for (max_tx, expected) in [(2, 0.50), (3, 0.092)] {
        let config = json!({ "loss": 0.14, "max_tx": max_tx, "tbf": "always" });
        let mut cell = cell_of(config, 1);
        let count = 1500;
        for n in 0..count {
            cell.run_until(at(n * 1500));
            cell.send(DOWN, 1500);
        }
        cell.finish();
        let lost = 1.0 - cell.arrivals(DOWN).len() as f64 / count as f64;
        let error = (expected * (1.0 - expected) / count as f64).sqrt();
        assert!((lost - expected).abs() < 4.0 * error, "{max_tx}: {lost}");
        assert_eq!(cell.value("downlink.lost"), (count as usize - cell.arrivals(DOWN).len()) as f64);
    }
}

#[test]
fn a_packet_that_the_sender_gives_up_is_lost_then_and_not_when_something_else_happens() {
    for (direction, pre_emptive) in [(UP, true), (DOWN, true), (DOWN, false)] {
        let loss = json!({ direction.name(): 0.1 });
        let config = json!({ "loss": loss, "max_tx": 1, "tbf": "always", "pre_emptive": pre_emptive });
        let mut cell = cell_of(config, 1);
        cell.records.ask(|_| (true, false));
        for n in 0..20 {
            cell.run_until(at(20_000 * n));
            cell.send(direction, 1500);
            cell.run_until(at(20_000 * n + 19_000));
            let lost = cell.value(&format!("{}.lost", direction.name()));
            assert_eq!(cell.ids(direction).len() as f64 + lost, (n + 1) as f64, "{direction:?} {n}");
        }
        let drops = cell.records.packets.iter().filter(|r| r.facts.reason == Some("rlc gave up"));
        let late: Vec<u64> = drops.map(|r| r.at.as_nanos() / 1_000_000 % 20_000).collect();
        // At most 35 periods on one timeslot, a second of patience, and a few periods until somebody looks.
        assert!(late.len() > 2 && late.iter().all(|ms| *ms < 1900), "{direction:?} {late:?}");
    }
}

#[test]
fn without_pre_emptive_transmission_limited_repetition_repeats_what_is_missing_only() {
    let cell = |pre_emptive: bool, loss: f64| {
        let config = json!({ "pre_emptive": pre_emptive, "max_tx": 3, "loss": { "downlink": loss } });
        let mut cell = cell_of(config, 2);
        for n in 0..20 {
            cell.send_to(DOWN, n % 2, 1000);
        }
        cell.finish();
        assert_eq!(cell.arrivals(DOWN).len() as f64 + cell.value("downlink.lost"), 20.0);
        assert_eq!(cell.value("downlink.rlc_resent") > 0.0, loss > 0.0);
        ["pre_emptive", "polls"].map(|name| cell.value(&format!("downlink.rlc_{name}")))
    };
    for loss in [0.0, 0.2] {
        let ([with, _], [without, polls]) = (cell(true, loss), cell(false, loss));
        // Blocks remain that take a poll along.
        assert!(without < with && without <= polls, "{loss}: {with} {without} {polls}");
    }
}

#[test]
fn a_flow_of_which_no_report_comes_ends_when_its_last_block_is_given_up() {
    // Nothing comes up: the network gives up the block that ends the flow, and sets up the next one when it has data.
    for pre_emptive in [true, false] {
        let config =
            json!({ "loss": { "uplink": 1.0, "downlink": 0.0 }, "max_tx": 2, "pre_emptive": pre_emptive });
        let mut cell = cell_of(config, 1);
        cell.send(DOWN, 500);
        cell.run_until(at(10_000));
        cell.send(DOWN, 500);
        cell.finish();
        assert_eq!(cell.arrivals(DOWN).iter().map(|(_, id)| *id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(cell.value("downlink.tbf_count"), 2.0);
    }
    // The same for a mobile that hears nothing: the control unit gets its packets, and time goes on to an end.
    let config = json!({ "loss": { "uplink": 0.0, "downlink": 1.0 }, "max_tx": 2 });
    let mut cell = cell_of(config, 1);
    cell.send(UP, 500);
    cell.run_until(at(10_000));
    cell.send(UP, 500);
    cell.run_until(at(60_000));
    assert_eq!(cell.arrivals(UP).iter().map(|(_, id)| *id).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_mobile_that_does_not_answer_loses_its_flow() {
    let config = json!({ "loss": { "uplink": 1.0, "downlink": 0.0 }, "n3105": 8 });
    let mut cell = cell_of(config, 1);
    cell.send(DOWN, 3000);
    cell.run_until(at(10_000));
    assert!(cell.value("downlink.rlc_polls_lost") >= 8.0 && cell.value("rlc_failures") >= 1.0);
    assert!(
        cell.value("downlink.tbf_count") >= 1.0 && cell.value("downlink.lost") == 0.0,
        "the packet had come"
    );
}

#[test]
fn a_mobile_that_leaves_loses_everything_and_may_come_back() {
    let mut cell = cell_of(json!({}), 2);
    cell.send_many(DOWN, 5, 1500);
    cell.send_to(DOWN, 1, 1500);
    cell.run_until(at(400));
    cell.apply(&[0], Change::State(LinkState::Down));
    cell.send(DOWN, 1500);
    cell.run_until(at(1000));
    cell.apply(&[0], Change::State(LinkState::Up));
    cell.send(DOWN, 50);
    cell.finish();
    let came = |station| cell.out.iter().filter(|o| o.2.0 == station).count();
    assert_eq!(cell.value("downlink.lost") + came(0) as f64, 7.0);
    assert_eq!((came(1), cell.out.last().map(|o| o.2.0)), (1, Some(0)));
}

#[test]
fn the_queue_has_a_limit() {
    let mut cell = cell_of(json!({ "queue": "3packets" }), 1);
    cell.send_many(DOWN, 5, 500);
    assert_eq!(cell.value("downlink.queue_drops"), 2.0);
    cell.finish();
    assert_eq!(cell.arrivals(DOWN).len(), 3);
}

#[test]
fn the_same_seed_gives_the_same_records() {
    let run = |seed| {
        let mut cell = seeded(json!({ "loss": 0.2 }), 3, seed);
        cell.records.ask(|_| (true, true));
        cell.records.ask_facts(true, false);
        for n in 0..20 {
            cell.send_to(DOWN, n % 3, 700);
            cell.send_to(UP, n % 3, 90);
        }
        cell.finish();
        (cell.records.packets, cell.records.octets, cell.records.facts)
    };
    let (first, second) = (run(1), run(1));
    assert!(first.0 == second.0 && first.1 == second.1 && first.2 == second.2);
    assert!(run(2).0 != first.0);
}

/// Octets and time on the air, as recorded.
fn air(cell: &Bench, direction: Direction) -> (u64, Duration) {
    let states =
        cell.records.facts.iter().filter_map(|r| if let Record::State(s) = r { Some(s) } else { None });
    states.filter(|s| s.direction == Some(direction)).fold((0, Duration::ZERO), |(octets, time), s| {
        (octets + s.octets, time + s.until.expect("air time has an end").since(s.at))
    })
}

#[test]
fn what_is_on_the_air_when_the_run_ends_or_the_mobile_leaves_is_recorded() {
    for leaves in [false, true] {
        let mut cell = cell_of(json!({ "tbf": "always" }), 2);
        cell.records.ask_facts(true, false);
        for station in 0..2 {
            cell.send_to(DOWN, station, 1500);
        }
        cell.run_until(at(100));
        match leaves {
            false => cell.bearer.close(&mut Cx { now: cell.now, records: &mut cell.records }),
            true => cell.apply(&[], Change::State(LinkState::Down)),
        }
        let (octets, time) = air(&cell, DOWN);
        assert_eq!(octets as f64, cell.value("downlink.rlc_bytes"), "leaves: {leaves}");
        assert_eq!(time, Duration::from_millis(20) * cell.value("downlink.radio_blocks") as u64);
    }
}

#[test]
fn records_tell_states_air_time_and_attempts() {
    let mut cell = cell_of(json!({ "loss": 0.3 }), 1);
    cell.records.ask(|point| (point.name.contains("rlc.dl"), false));
    cell.records.ask_facts(true, false);
    cell.send(DOWN, 3000);
    cell.finish();
    let states: Vec<&str> = cell
        .records
        .facts
        .iter()
        .filter_map(|r| match r {
            Record::State(s) if s.direction.is_none() => Some(s.state),
            _ => None,
        })
        .collect();
    assert_eq!(states, ["idle", "access", "transfer", "idle"]);
    for direction in Direction::BOTH {
        let (octets, time) = air(&cell, direction);
        let of = |name: &str| cell.value(&format!("{}.{name}", direction.name()));
        // Blocks of data, and of reports.
        assert_eq!(octets as f64, of("rlc_bytes") + CONTROL_OCTETS as f64 * of("rlc_reports"));
        assert_eq!(time, Duration::from_millis(20) * of("radio_blocks") as u64);
        assert!(of("radio_blocks") > 0.0);
    }
    let rows = &cell.records.packets;
    let tx = rows.iter().filter(|r| matches!(r.facts.event, Event::Transmit | Event::Retransmit)).count();
    assert_eq!(tx as f64, cell.value("downlink.rlc_blocks"));
    assert!(
        rows.iter()
            .any(|r| r.facts.event == Event::Retransmit && r.facts.attempt > 1 && r.facts.seq.is_some())
    );
}

/// LLC frames put together from the captured octets of what was received, as a mobile (or network) would.
fn reassemble(cell: &Bench, direction: Direction) -> Vec<Vec<u8>> {
    let mut blocks: BTreeMap<u16, [Option<super::wire::Unit>; 3]> = BTreeMap::new();
    for row in cell
        .records
        .packets
        .iter()
        .filter(|r| r.facts.event == Event::Receive && r.facts.direction == direction)
    {
        let octets = &cell.records.octets[row.octets.clone()];
        if octets.is_empty() {
            continue;
        }
        let body = &octets[gsmtap::HEADER..];
        if octets[12] == 11 {
            match direction {
                UP => drop(DownlinkAckNack::parse(body).expect("a report")),
                DOWN => drop(UplinkAckNack::parse(body).expect("a report")),
            }
            continue;
        }
        let block = RadioBlock::parse(direction, body).expect("a data block");
        for (unit, bsn) in block.units.iter().zip(block.header.bsn()) {
            let parts = blocks.entry(bsn).or_default();
            let mut unit = unit.clone();
            if block.header.cps().is_padded && block.header.split() != super::wire::header::Split::Second {
                unit.octets.drain(..super::coding_scheme::PADDING);
            }
            match block.header.split() {
                super::wire::header::Split::Whole => parts[0] = Some(unit),
                super::wire::header::Split::First => parts[1] = Some(unit),
                super::wire::header::Split::Second => parts[2] = Some(unit),
            }
        }
    }
    assert!(blocks.len() < usize::from(SNS), "numbers must not wrap in this test");
    let mut frames = vec![Vec::new()];
    for (_, [whole, first, second]) in blocks {
        let unit = whole.unwrap_or_else(|| {
            let (mut unit, second) = (first.expect("a first half"), second.expect("a second half"));
            unit.octets.extend(second.octets);
            unit
        });
        for piece in pieces(&unit).expect("right indicators") {
            frames.last_mut().unwrap().extend(&unit.octets[piece.from..piece.from + piece.len]);
            if piece.ends {
                frames.push(Vec::new());
            }
        }
    }
    frames.pop();
    frames
}

#[test]
fn the_octets_on_the_air_are_the_packets() {
    for (mcs, again) in [(1, 1), (4, 4), (4, 1), (9, 9), (7, 7), (8, 8), (9, 6)] {
        let config = json!({ "mcs": mcs, "retransmission_mcs": again, "loss": 0.2, "tbf": "always" });
        let mut cell = cell_of(config, 1);
        cell.records.ask(|_| (true, true));
        let lens = [1500u32, 40, 300, 34, 12, 700];
        for len in lens {
            cell.send(DOWN, len);
            cell.send(UP, len);
        }
        cell.finish();
        for (direction, first) in [(DOWN, 1), (UP, 2)] {
            let frames = reassemble(&cell, direction);
            assert_eq!(frames.len(), lens.len(), "{mcs} {again} {direction:?}");
            for (n, (frame, len)) in frames.iter().zip(lens).enumerate() {
                let mut expected = Vec::new();
                numbered(first + 2 * n as u64, len).append_to(&mut expected);
                assert_eq!(frame[7..frame.len() - 3], expected, "{mcs} {again} {direction:?} {n}");
            }
        }
    }
}
