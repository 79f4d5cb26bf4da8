//! Whole cells: RLC, Node B, shared channel, mobiles.

use airloom_base::record::{Event, Record};
use airloom_base::units::Rate;
use airloom_base::{Bearer, BearerEvent, Change, Direction, Duration, LinkState, Outbox, Parts, Station};
use airloom_testkit::cases;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::tests::{Bench, ms};
use super::super::{UmtsDch, UmtsHsdpaConfig};

const DOWN: Direction = Direction::Downlink;
const UP: Direction = Direction::Uplink;

fn cell(config: Value, stations: u16, seed: u64) -> Bench {
    let config: UmtsHsdpaConfig = airloom_base::config::read(&config).unwrap();
    let mut records = Outbox::default();
    let bearer = UmtsDch::with_hsdpa(config, &mut Parts::new(seed, "radio", stations, &mut records)).unwrap();
    Bench::new(Box::new(bearer), records)
}

fn one(config: Value) -> Bench {
    cell(config, 1, 1)
}

/// A queue that never ends, and a window that is no limit.
fn roomy(more: Value) -> Value {
    let mut config =
        json!({ "queue": "100000 packets", "rlc": { "window": 2047, "timer_status_prohibit": "60ms" } });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

/// Octets that a mobile has got.
fn got(bench: &Bench, station: u16) -> u64 {
    let of = bench.out.iter().filter(|(_, d, s, _)| *d == DOWN && s.0 == station);
    of.map(|(.., packet)| packet.wire_len() as u64).sum()
}

fn mbit(octets: u64, seconds: f64) -> f64 {
    octets as f64 * 8.0 / seconds / 1e6
}

#[test]
fn a_packet_takes_the_fixed_delays_and_one_interval() {
    let mut bench = one(json!({}));
    bench.send(DOWN, 380);
    bench.finish();
    // Core network 20 ms, Iub 10 ms, an interval, decoding; 380 octets are five PDUs, which is one block at 0 dB.
    assert_eq!(bench.out[0].0, ms(20 + 10 + 2 + 5));
    bench.send(UP, 40);
    bench.run_until(ms(2000));
    assert_eq!(bench.ids(UP), [2]);
}

#[test]
fn without_fading_the_channel_quality_gives_the_rate() {
    for (snr, category, expected) in
        [(0.0, 6, 1.6), (0.0, 11, 0.8), (6.5, 6, 3.2), (9.0, 8, 6.72), (6.5, 1, 1.067)]
    {
        let mut bench = one(roomy(json!({ "snr": snr, "category": category, "node_b_buffer": "100ms" })));
        for _ in 0..6000 {
            bench.send(DOWN, 1500);
        }
        bench.run_until(ms(4000));
        let before = got(&bench, 0);
        bench.run_until(ms(5000));
        // A PDU of 82 octets has 80 of payload, less what tells where packets end. Some blocks come twice.
        let rate = mbit(got(&bench, 0) - before, 1.0) / expected;
        assert!(0.9 < rate && rate < 1.01, "{snr} dB, category {category}: {rate}");
        assert_eq!(bench.value("downlink.lost"), 0.0);
    }
}

#[test]
fn blocks_in_error_come_again_are_combined_and_stay_in_order() {
    let fading = json!({ "law": "rayleigh", "doppler": 10 });
    let mut bench = one(roomy(json!({ "snr": 3, "fading": fading })));
    let sent: Vec<u64> = (0..2000).map(|_| bench.send(DOWN, 700)).collect();
    bench.finish();
    assert!(bench.ids(DOWN) == sent, "{:?}", bench.summary().values);
    let [blocks, resent, given_up] =
        ["blocks", "resent", "given_up"].map(|name| bench.value(&format!("downlink.mac_hs_{name}")));
    assert!(resent > 0.02 * blocks && given_up < 0.05 * resent, "{blocks} {resent} {given_up}");
}

#[test]
fn what_harq_gives_up_rlc_sends_again() {
    let config = json!({ "snr": -6, "max_transmissions": 1, "pdu_octets": 42, "fading": { "doppler": 20 } });
    let mut bench = one(roomy(config));
    bench.records.ask(|_| (true, false));
    let sent: Vec<u64> = (0..400).map(|_| bench.send(DOWN, 700)).collect();
    bench.finish();
    assert!(bench.ids(DOWN) == sent, "{:?}", bench.summary().values);
    assert!(bench.value("downlink.mac_hs_given_up") > 10.0);
    assert!(bench.value("downlink.mac_hs_reordering_timeouts") > 0.0);
    assert!(bench.value("downlink.rlc_resent") > 10.0);
    let rows = bench.records.packets.iter().map(|row| &row.facts);
    let lost =
        rows.clone().filter(|facts| facts.reason == Some("given up by HARQ") && facts.seq.is_some()).count();
    assert!(lost >= bench.value("downlink.mac_hs_given_up") as usize, "{lost}");
    let blocks = rows.filter(|facts| facts.proto == "mac-hs" && matches!(facts.event, Event::Transmit));
    assert_eq!(blocks.count() as f64, bench.value("downlink.mac_hs_blocks"));
}

/// Mbit/s of each of two mobiles that always have something to get.
fn shares(config: Value) -> [f64; 2] {
    let mut bench = cell(roomy(config), 2, 1);
    for _ in 0..3000 {
        for station in 0..2 {
            bench.send_to(DOWN, station, 1500);
        }
    }
    bench.run_until(ms(8000));
    [0, 1].map(|station| mbit(got(&bench, station), 8.0))
}

#[test]
fn round_robin_shares_intervals_not_octets() {
    let [near, far] = shares(json!({ "snr": [6.5, -3] }));
    let [alone_near, alone_far] = [6.5, -3.0].map(|snr| {
        let mut bench = one(roomy(json!({ "snr": snr })));
        for _ in 0..3000 {
            bench.send(DOWN, 1500);
        }
        bench.run_until(ms(8000));
        mbit(got(&bench, 0), 8.0)
    });
    assert!((near / alone_near - 0.5).abs() < 0.05, "{near} of {alone_near}");
    assert!((far / alone_far - 0.5).abs() < 0.05, "{far} of {alone_far}");
}

#[test]
fn schedulers_trade_fairness_for_throughput() {
    let with = |scheduler: &str| {
        shares(json!({ "snr": [6, 2], "fading": { "doppler": 3 }, "scheduler": scheduler }))
    };
    let [round_robin, fair, best] = ["round-robin", "proportional-fair", "max-ci"].map(with);
    let sum = |shares: [f64; 2]| shares[0] + shares[1];
    assert!(sum(round_robin) < sum(fair) && sum(fair) < sum(best), "{round_robin:?} {fair:?} {best:?}");
    assert!(best[1] < round_robin[1] && round_robin[1] < fair[1], "{round_robin:?} {fair:?} {best:?}");
}

#[test]
fn the_node_b_holds_what_it_asked_for() {
    let mut bench = one(roomy(json!({ "node_b_buffer": "40ms" })));
    for _ in 0..2000 {
        bench.send(DOWN, 1500);
    }
    bench.finish();
    // 20 intervals of five PDUs, which the format of CQI 15 holds, too.
    assert!(bench.value("downlink.node_b_queue_max_bytes") <= 100.0 * 82.0);
    assert_eq!(bench.value("downlink.mac_hs_resent"), 0.0);
    assert_eq!(bench.value("downlink.cqi_mean"), 15.0);
    assert!(bench.value("downlink.busy_share") > 0.9);
}

#[test]
fn an_idle_cell_has_nothing_to_do() {
    let mut bench = cell(json!({ "fading": {} }), 3, 1);
    bench.run_until(ms(1));
    assert_eq!(bench.bearer.poll_timeout(), None);
    bench.send_to(DOWN, 1, 200);
    bench.finish();
    assert_eq!((bench.bearer.poll_timeout(), bench.out.len()), (None, 1));
}

#[test]
fn a_late_driver_changes_nothing() {
    let config = || roomy(json!({ "snr": [2, 0], "fading": { "doppler": 30 }, "uplink_loss": 0.1 }));
    let run = |step: u64| {
        let mut bench = cell(config(), 2, 7);
        for n in 0..60 {
            bench.send_to(DOWN, n % 2, 900);
            bench.send_to(UP, n % 2, 100);
        }
        if step == 0 {
            bench.finish();
        } else {
            // Timers are handled at the end of each step only.
            while bench.bearer.poll_timeout().is_some() {
                let now = bench.now + Duration::from_millis(step);
                bench.handle(now);
            }
        }
        let order: Vec<(u16, u64)> = bench.out.iter().map(|(_, _, s, packet)| (s.0, packet.id())).collect();
        (order, bench.summary().values)
    };
    assert_eq!(run(0), run(0));
    let (on_time, late) = (run(0), run(37));
    assert_eq!(on_time, late);
}

#[test]
fn a_mobile_without_its_channels_loses_what_was_under_way_and_starts_anew() {
    let mut bench = cell(roomy(json!({ "fading": {} })), 2, 1);
    for _ in 0..50 {
        bench.send_to(DOWN, 0, 1500);
        bench.send_to(DOWN, 1, 1500);
    }
    bench.run_until(ms(100));
    bench.apply(&[0], Change::State(LinkState::Down));
    bench.send_to(DOWN, 0, 1500);
    bench.run_until(ms(3000));
    let before = got(&bench, 0);
    assert!(before < 50 * 1500 && got(&bench, 1) == 50 * 1500);
    bench.apply(&[0], Change::State(LinkState::Up));
    bench.send_to(DOWN, 0, 1000);
    bench.finish();
    assert_eq!(got(&bench, 0), before + 1000);
    let told =
        |event: &BearerEvent| matches!(event, BearerEvent::Down(Station(0), _) | BearerEvent::Up(Station(0)));
    assert_eq!(bench.events.iter().filter(|(_, event)| told(event)).count(), 2);
}

#[test]
fn a_mobile_that_hears_nothing_has_its_link_set_up_again_and_again() {
    let config = json!({ "snr": -40, "rlc": { "max_dat": 4, "timer_poll": "100ms", "timer_rst": "200ms", "max_rst": 3 } });
    let mut bench = one(config);
    bench.send(DOWN, 500);
    bench.run_until(ms(20_000));
    assert!(
        bench
            .events
            .iter()
            .any(|(_, event)| matches!(event, BearerEvent::Down(_, "rlc unrecoverable error")))
    );
    assert!(bench.out.is_empty());
}

#[test]
fn changes_of_what_is_shared_are_refused_and_the_uplink_changes() {
    let mut bench = one(json!({}));
    let mut apply = |change: Change| bench.try_apply(&[], change).map_err(|e| e.0);
    assert!(apply(Change::Rate(None, Rate::kbit(384))).unwrap_err().contains("`snr`"));
    assert!(apply(Change::Loss(None, 0.1)).unwrap_err().contains("`snr`"));
    assert!(apply(Change::Loss(Some(DOWN), 0.1)).is_err());
    assert!(apply(Change::Loss(Some(UP), 0.1)).is_ok());
    assert!(apply(Change::Delay(None, Duration::from_millis(5))).is_ok());
}

#[test]
fn air_time_is_told_by_intervals() {
    let mut bench = one(json!({}));
    bench.records.ask_facts(true, false);
    bench.send(DOWN, 1500);
    bench.finish();
    let bursts: Vec<Duration> = bench
        .records
        .facts
        .iter()
        .filter_map(|record| match record {
            Record::State(state) if state.state == "tx" && state.direction == Some(DOWN) => {
                Some(state.until?.since(state.at))
            }
            _ => None,
        })
        .collect();
    // 1,500 octets are 19 PDUs: four blocks.
    assert_eq!(bursts, [Duration::from_millis(8)]);
}

#[test]
fn wrong_values_say_what_would_be_right() {
    let error = |value: Value| {
        let mut records = Outbox::default();
        let config = match airloom_base::config::read::<UmtsHsdpaConfig>(&value) {
            Ok(config) => config,
            Err(error) => return error.to_string(),
        };
        UmtsDch::with_hsdpa(config, &mut Parts::new(1, "radio", 2, &mut records))
            .err()
            .expect("an error")
            .to_string()
    };
    assert!(error(json!({ "category": 13 })).starts_with("category: an HS-DSCH category is 1 to 12"));
    assert!(error(json!({ "snr": [1, 2, 3] })).contains("for each of the 2 mobiles: there are 3"));
    assert!(error(json!({ "snr": 1e9 })).contains("from -100 to 100"));
    for octets in [0, 1, 2, 11] {
        assert!(error(json!({ "pdu_octets": octets })).contains("12 to 625"));
    }
    assert!(error(json!({ "fading": { "doppler": -1 } })).contains("0 to 1000 Hz"));
    assert!(error(json!({ "harq_processes": 0 })).contains("1 to 8"));
    assert!(error(json!({ "max_transmissions": 0 })).contains("1 to 16"));
    assert!(error(json!({ "node_b_buffer": "1ms" })).contains("from one interval"));
    assert!(error(json!({ "fairness_time": "0s" })).contains("at least one interval"));
    assert!(error(json!({ "category": 12, "pdu_octets": 600 })).contains("no transport block"));
    assert!(error(json!({ "uplink_rate": "100kbit/s" })).starts_with("uplink_rate: "));
    assert!(error(json!({ "uplink_loss": { "per": "packet" } })).starts_with("uplink_loss.per: "));
    assert!(error(json!({ "scheduler": "best" })).contains("`max-ci`"));
    assert!(error(json!({ "rrc": {} })).contains("unknown field"));
}

proptest! {
    #![proptest_config(cases(40))]
    /// Whatever the channel, packets arrive once and in order, and what is held stays bounded.
    #[test]
    fn packets_arrive_once_and_in_order(
        seed in any::<u64>(),
        snr in -12.0f64..20.0,
        doppler in prop::option::of(0.0f64..200.0),
        (category, processes, transmissions) in (1u8..13, 1u8..9, 1u8..8),
        (buffer, iub, t1) in (4u64..200, 0u64..50, 1u64..200),
        packets in prop::collection::vec((0u64..40, 0u16..2, any::<bool>(), 1u32..1500), 1..60),
    ) {
        let config = json!({
            "snr": [snr, 3], "fading": doppler.map(|doppler| json!({ "doppler": doppler })), "category": category,
            "harq_processes": processes, "max_transmissions": transmissions, "node_b_buffer": format!("{buffer}ms"),
            "iub_delay": format!("{iub}ms"), "reordering_timer": format!("{t1}ms"), "uplink_loss": 0.1, "pdu_octets": 42,
        });
        let mut bench = cell(config, 2, seed);
        let mut sent = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
        for (wait, station, is_down, octets) in packets {
            let at = bench.now + Duration::from_millis(wait);
            bench.run_until(at);
            let direction = if is_down { DOWN } else { UP };
            let id = bench.send_to(direction, station, octets);
            sent[direction as usize][usize::from(station)].push(id);
        }
        bench.run_until(bench.now + Duration::from_secs(20));
        for direction in Direction::BOTH {
            for station in 0..2u16 {
                let of = bench.out.iter().filter(|(_, d, s, _)| *d == direction && s.0 == station);
                let ids: Vec<u64> = of.map(|(.., packet)| packet.id()).collect();
                let expected = &sent[direction as usize][usize::from(station)];
                prop_assert!(ids.is_sorted() && ids.iter().all(|id| expected.contains(id)));
                if snr > -5.0 && transmissions > 1 {
                    prop_assert_eq!(&ids, expected);
                }
            }
        }
        let most = f64::from(u16::MAX) * 42.0;
        prop_assert!(bench.value("downlink.node_b_queue_max_bytes") <= most);
    }
}
