//! Whole circuits: two ends and the air between them.

use airloom_base::record::Event;
use airloom_base::{
    Bearer, BearerEvent, Change, Direction, Duration, Environments, Instant, LinkState, Outbox, Parts,
    Station,
};
use airloom_testkit::cases;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Piafs, PiafsConfig};
use crate::ppp::hdlc::Deframer;

const DOWN: Direction = Direction::Downlink;
const UP: Direction = Direction::Uplink;

/// A circuit with its clock and its records.
type Bench = airloom_testkit::Bench<Piafs>;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn circuit(config: Value) -> Bench {
    within(config, Value::Null)
}

/// In the environment `room`.
fn within(config: Value, room: Value) -> Bench {
    let config: PiafsConfig = airloom_base::config::read(&config).unwrap();
    let environments = Environments::from([("room".to_owned(), room)]);
    let mut records = Outbox::default();
    let mut parts = Parts { environments: &environments, ..Parts::new(1, "phs", 1, &mut records) };
    let bearer = Piafs::new(config, &mut parts).unwrap();
    Bench::new(Box::new(bearer), records)
}

/// Only the air takes time.
fn plain(more: Value) -> Bench {
    let mut config = json!({ "serial": null, "flush": 0, "queue": "100000 packets" });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    circuit(config)
}

/// Numbers and events at the sending end of a direction.
fn log(bench: &Bench, direction: Direction) -> Vec<(Option<u64>, Event)> {
    let name = format!("phs.piafs.{}.tx", direction.short());
    let is_there = |r: &&airloom_base::record::PacketRecord| {
        bench.records.points()[usize::from(r.point.0)].name == name && r.facts.event != Event::Drop
    };
    bench.records.packets.iter().filter(is_there).map(|r| (r.facts.seq, r.facts.event)).collect()
}

#[test]
fn a_packet_arrives_with_the_last_frame_it_needs() {
    let mut bench = plain(json!({}));
    bench.run_until(ms(3));
    // 1000 octets, 4 of PPP header, 2 of checksum, 2 flags, some escapes: 14 frames of 73, from the next interval on.
    bench.send(DOWN, 1000);
    bench.finish();
    let (at, direction, _, packet) = &bench.out[0];
    assert_eq!((*at, *direction), (ms(10 + 13 * 10 + 25), DOWN));
    assert_eq!(packet.wire_len(), 1000);
    assert!(bench.value("downlink.piafs_bytes") > 1008.0);
    assert_eq!(bench.value("downlink.lost"), 0.0);
}

#[test]
fn serial_lines_take_ten_bits_for_an_octet_at_both_ends() {
    let time = |serial: Value| {
        let mut bench = plain(json!({ "serial": serial }));
        bench.send(DOWN, 60);
        bench.finish();
        bench.out[0].0
    };
    // 68 octets are one frame; at 9.6 kbit/s they take 71 ms into the adapter and as long out of it.
    assert_eq!(time(Value::Null), ms(25));
    let slow = time(json!("9600bit/s"));
    assert!(slow > ms(70 + 25 + 8) && slow < ms(70 + 10 + 25 + 72), "{slow}");
}

#[test]
fn a_circuit_on_which_nothing_waits_costs_nothing() {
    let mut bench = plain(json!({}));
    assert_eq!(bench.bearer.poll_timeout(), None);
    bench.send(UP, 40);
    bench.finish();
    assert_eq!(bench.bearer.poll_timeout(), None);
    // It went round while its acknowledgement was under way, and both sides spoke.
    assert!(bench.value("uplink.piafs_resent") > 0.0);
    assert_eq!(bench.value("downlink.piafs_frames"), bench.value("uplink.piafs_frames"));
}

/// Net rate in kbit/s of a full circuit with frame errors in both directions.
fn net_rate(loss: f64) -> f64 {
    let mut bench = plain(json!({ "loss": loss, "repeat_after": "60ms" }));
    let seconds = 400;
    // What is there before the end would be empty: 58.4 kbit/s at most.
    for _ in 0..seconds * 58_400 / 8 / 500 + 100 {
        bench.send(DOWN, 500);
    }
    bench.run_until(ms(seconds * 1000));
    let first_time = bench.value("downlink.piafs_bytes");
    first_time * 8.0 / seconds as f64 / 1000.0
}

#[test]
fn a_full_circuit_carries_what_the_reference_does() {
    for (loss, reference) in [(0.0, 58.40), (0.01, 57.79), (0.05, 54.91), (0.1, 50.80), (0.2, 42.29)] {
        let rate = net_rate(loss);
        assert!((rate / reference - 1.0).abs() < 0.03, "{loss}: {rate} kbit/s, reference {reference}");
    }
}

#[test]
fn repetitions_are_those_of_the_monitors_log() {
    // All frames of the base station's side are lost from 20 ms to 390 ms: a burst of 370 ms.
    let loss = json!({ "downlink": { "model": "on-off", "first": "off", "off": "20ms", "on": "370ms", "loss": 1.0 } });
    let mut bench = plain(json!({ "loss": loss }));
    bench.records.ask(|_| (true, false));
    bench.send(DOWN, 2000);
    bench.run_until(ms(390));
    let numbers: Vec<u64> = log(&bench, DOWN).iter().map(|(number, _)| number.unwrap_or(0)).collect();
    // Two arrive; new ones follow as long as the window allows and nothing is known to be missing for a round trip.
    assert_eq!(numbers[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(
        numbers.iter().all(|number| *number <= 18),
        "no more than sixteen beyond what arrived: {numbers:?}"
    );
    // In the burst every number that is missing goes round.
    let missing: Vec<u64> = numbers[20..].to_vec();
    assert!((3..=8).all(|number| missing.contains(&number)), "{missing:?}");
    bench.run_until(ms(409));
    bench.finish();
    assert_eq!(bench.out.len(), 1);
}

#[test]
fn a_call_ends_after_a_long_silence_and_what_was_under_way_is_lost() {
    let mut bench = plain(json!({ "loss": { "downlink": 1.0 }, "call_drop": "2s" }));
    bench.send(DOWN, 500);
    bench.send(UP, 500);
    bench.run_until(ms(1000));
    bench.finish();
    assert_eq!(bench.events, [(ms(2000), BearerEvent::Down(Station(0), "call dropped"))]);
    // The uplink's frames arrived, though nobody heard that they did.
    assert_eq!((bench.value("downlink.lost"), bench.value("uplink.lost")), (1.0, 0.0));
    assert_eq!(bench.value("calls_dropped"), 1.0);
    bench.send(DOWN, 100);
    assert_eq!(bench.value("downlink.lost"), 2.0);
}

#[test]
fn a_released_circuit_is_set_up_again_and_begins_anew() {
    let mut bench = plain(json!({ "set_up": "1500ms" }));
    bench.send_many(DOWN, 20, 1000);
    bench.run_until(ms(500));
    let before = bench.out.len() as f64;
    bench.apply(&[], Change::State(LinkState::Down));
    assert_eq!(bench.value("downlink.lost"), 20.0 - before);
    assert_eq!(bench.bearer.poll_timeout(), None);
    bench.apply(&[], Change::State(LinkState::Up));
    // What comes meanwhile waits for the call.
    bench.send(DOWN, 60);
    bench.run_until(ms(3000));
    assert_eq!(bench.events[1], (ms(2000), BearerEvent::Up(Station(0))));
    bench.send(DOWN, 1000);
    bench.finish();
    assert_eq!(bench.out.len() as f64, before + 2.0);
    assert_eq!(bench.out[bench.out.len() - 2].0, ms(2025));
}

#[test]
fn a_call_comes_about_where_enough_frames_arrive() {
    let tried = |loss: f64| {
        let mut bench = plain(json!({ "set_up": "2s" }));
        bench.apply(&[], Change::State(LinkState::Down));
        bench.apply(&[], Change::Loss(None, loss));
        bench.apply(&[], Change::State(LinkState::Up));
        bench.send(DOWN, 60);
        bench.run_until(ms(2000));
        (bench.events.pop(), bench.value("calls_failed"), bench.value("downlink.lost"))
    };
    assert_eq!(tried(0.2), (Some((ms(2000), BearerEvent::Up(Station(0)))), 0.0, 0.0));
    let none = BearerEvent::Down(Station(0), "no call came about");
    assert_eq!(tried(0.8), (Some((ms(2000), none)), 1.0, 1.0));
}

#[test]
fn the_field_decides_about_frames_and_calls() {
    let tried = |field: f64| {
        let shadowing = json!({ "unit": 0, "unit_per_decade": 0 });
        let room = json!({ "field_at_10m": field, "shadowing": shadowing, "fading": { "doppler": 9.5 } });
        let mut bench = within(json!({ "environment": { "name": "room" } }), room);
        bench.send_many(DOWN, 100, 700);
        bench.run_until(ms(5000));
        let share = bench.value("piafs_crc_errors") / (2.0 * bench.value("downlink.piafs_frames"));
        bench.apply(&[], Change::State(LinkState::Down));
        bench.apply(&[], Change::State(LinkState::Up));
        bench.run_until(ms(8000));
        (share, bench.value("calls_failed"))
    };
    let (strong, fair, weak) = (tried(45.0), tried(34.0), tried(27.0));
    assert_eq!(strong, (0.0, 0.0));
    assert!((0.01..0.2).contains(&fair.0) && fair.1 == 0.0, "{fair:?}");
    assert!(weak.0 > 0.6 && weak.1 == 1.0, "{weak:?}");
}

/// A full circuit that hears nothing for half a second, and falls.
fn falling(return_after: &str) -> Bench {
    let burst = json!({ "model": "on-off", "on": "500ms", "off": "100s", "first": "on", "loss": 1.0 });
    let effort = json!({ "loss": burst, "call_drop": "5s", "best_effort": { "return_after": return_after } });
    let mut bench = plain(effort);
    bench.send_many(DOWN, 60, 700);
    bench
}

fn frames_in(bench: &mut Bench, from: u64, to: u64) -> f64 {
    bench.run_until(ms(from));
    let before = bench.value("downlink.piafs_frames");
    bench.run_until(ms(to));
    bench.value("downlink.piafs_frames") - before
}

#[test]
fn a_best_effort_circuit_falls_to_32_kbit_s_and_comes_back() {
    let mut bench = falling("2s");
    assert_eq!(frames_in(&mut bench, 0, 200), 20.0);
    assert_eq!(frames_in(&mut bench, 600, 1600), 50.0);
    assert_eq!(frames_in(&mut bench, 3000, 4000), 100.0);
    bench.finish();
    assert_eq!((bench.out.len(), bench.value("falls_to_32k"), bench.value("calls_dropped")), (60, 1.0, 0.0));
}

#[test]
fn a_circuit_that_fell_keeps_the_rate_that_it_is_told() {
    let mut bench = falling("2s");
    bench.run_until(ms(600));
    bench.apply(&[], Change::Rate(None, airloom_base::units::Rate::kbit(32)));
    // It does not try 64 kbit/s by itself.
    assert_eq!(frames_in(&mut bench, 3000, 4000), 50.0);
    let mut bench = falling("100s");
    bench.run_until(ms(600));
    bench.apply(&[], Change::Rate(None, airloom_base::units::Rate::kbit(64)));
    assert_eq!(frames_in(&mut bench, 1000, 2000), 100.0);
    assert_eq!(bench.value("falls_to_32k"), 1.0);
}

#[test]
fn a_call_that_follows_one_that_fell_has_the_full_rate() {
    let mut bench = falling("100s");
    bench.run_until(ms(600));
    bench.apply(&[], Change::State(LinkState::Down));
    bench.apply(&[], Change::State(LinkState::Up));
    bench.send_many(DOWN, 60, 700);
    // The call is there at 2.6 s.
    assert_eq!(frames_in(&mut bench, 3000, 4000), 100.0);
    let mut conditions = Vec::new();
    bench.bearer.conditions(&mut conditions);
    assert_eq!(conditions[0].state, "up");
}

#[test]
fn at_32_kbit_s_a_frame_takes_twice_as_long() {
    let mut bench = plain(json!({ "rate": "32kbit/s" }));
    bench.send(DOWN, 200);
    bench.finish();
    // 208 octets: three frames, one every 20 ms.
    assert_eq!(bench.out[0].0, ms(2 * 20 + 35));
    bench.apply(&[], Change::Rate(None, airloom_base::units::Rate::kbit(64)));
    let begin = bench.now;
    bench.send(DOWN, 60);
    bench.finish();
    assert!(bench.out[1].0.since(begin) <= Duration::from_millis(35));
}

#[test]
fn what_the_queue_does_not_take_is_dropped() {
    let mut bench = plain(json!({ "queue": "2 packets", "buffer": "100B" }));
    bench.send_many(UP, 10, 500);
    bench.finish();
    assert!(bench.value("uplink.queue_drops") >= 6.0);
    assert_eq!(bench.out.len() as f64 + bench.value("uplink.queue_drops"), 10.0);
}

#[test]
fn frames_that_are_not_filled_up_cost_room() {
    let frames = |flush: f64| {
        let mut bench = plain(json!({ "flush": flush }));
        bench.send_many(DOWN, 50, 262);
        bench.finish();
        (bench.value("downlink.piafs_frames"), bench.out.len())
    };
    let (filled, flushed) = (frames(0.0), frames(1.0));
    assert_eq!((filled.1, flushed.1), (50, 50));
    // 270 octets and some escapes are 3.7 frames, and 4 if the last is not filled up.
    assert!(flushed.0 / filled.0 > 1.04, "{flushed:?} {filled:?}");
}

#[test]
fn the_octets_of_the_frames_are_ppp() {
    let mut bench = plain(json!({ "loss": 0.1 }));
    bench.records.ask(|_| (true, true));
    bench.send_many(DOWN, 5, 700);
    bench.finish();
    // What arrives is what was sent, however late: a frame has the same octets at both ends and each time.
    let user_of = |end: &str, number: u64| -> Vec<&[u8]> {
        let is_of = |r: &&airloom_base::record::PacketRecord| {
            let name = &bench.records.points()[usize::from(r.point.0)].name;
            name.ends_with(end) && r.facts.seq == Some(number) && !r.octets.is_empty()
        };
        bench
            .records
            .packets
            .iter()
            .filter(is_of)
            .map(|r| &bench.records.octets[r.octets.clone()][3..76])
            .collect()
    };
    for number in 1..=40 {
        let first = user_of("dl.tx", number)[0];
        let is_first = |seen: &&[u8]| *seen == first;
        assert!(["dl.tx", "dl.rx"].iter().all(|end| user_of(end, number).iter().all(is_first)), "{number}");
    }
    // The receiving end, from the capture alone: frames in the order of their numbers.
    let mut stream: Vec<(u64, Vec<u8>)> = Vec::new();
    for record in &bench.records.packets {
        let info = &bench.records.points()[usize::from(record.point.0)];
        let octets = &bench.records.octets[record.octets.clone()];
        let is_data = info.name == "phs.piafs.dl.rx" && octets[0] >> 1 != 0;
        let number = u64::from(octets.first().map_or(0, |first| first >> 1));
        if is_data && !stream.iter().any(|(known, _)| *known == number) {
            let user =
                if octets[2] & 3 == 1 { &octets[3..76] } else { &octets[4..4 + usize::from(octets[3])] };
            stream.push((number, user.to_vec()));
        }
    }
    stream.sort_unstable();
    let (mut deframer, mut datagrams) = (Deframer::new(0), Vec::new());
    for octet in stream.iter().flat_map(|(_, user)| user) {
        deframer.push(*octet, |frame| datagrams.push(frame.to_vec()));
    }
    assert_eq!((datagrams.len(), deframer.errors), (5, 0));
    for datagram in &datagrams {
        assert_eq!(datagram[..5], [0xFF, 0x03, 0x00, 0x21, 0x45]);
        assert_eq!(datagram.len(), 704);
    }
}

#[test]
fn what_makes_no_sense_is_said() {
    let error = |value: Value| {
        let config: Result<PiafsConfig, _> = airloom_base::config::read(&value);
        config.and_then(|config| config.check()).unwrap_err().to_string()
    };
    assert!(error(json!({ "rate": "128kbit/s" })).starts_with("rate: a PIAFS circuit has 64 or 32"));
    assert!(error(json!({ "window": 64 })).starts_with("window: 1 to 63"));
    assert!(error(json!({ "loss": { "per": "packet" } })).starts_with("loss.per"));
    assert!(error(json!({ "serial": "10bit/s" })).starts_with("serial"));
    assert!(error(json!({ "widow": 1 })).contains("unknown field `widow`"));
}

proptest! {
    #![proptest_config(cases(64))]

    /// Whatever happens to the circuit, packets that arrive do so in order and once, and every other one is counted.
    #[test]
    fn nothing_is_lost_that_is_not_counted(
        steps in prop::collection::vec((0u8..10, 21u32..1500, 0u64..400), 1..60),
        loss in 0.0..0.6f64,
        window in 1u8..=63,
    ) {
        let mut bench = circuit(json!({ "loss": loss, "window": window, "call_drop": "700ms", "set_up": "50ms" }));
        for (what, octets, wait) in steps {
            match what {
                0 => bench.apply(&[], Change::State(LinkState::Down)),
                1 | 2 => bench.apply(&[], Change::State(LinkState::Up)),
                3 => bench.apply(&[], Change::Rate(None, airloom_base::units::Rate::kbit(if wait > 200 { 32 } else { 64 }))),
                4..=6 => bench.send_many(UP, 1, octets),
                _ => bench.send_many(DOWN, 1, octets),
            }
            let end = bench.now + Duration::from_millis(wait);
            bench.run_until(end);
        }
        bench.finish();
        for direction in Direction::BOTH {
            let ids: Vec<u64> =
                bench.out.iter().filter(|(_, d, ..)| *d == direction).map(|(.., packet)| packet.id()).collect();
            prop_assert!(ids.is_sorted_by(|a, b| a < b), "{:?}", ids);
            let value = |name: &str| bench.value(&format!("{}.{name}", direction.name()));
            prop_assert_eq!(value("packets"), value("delivered") + value("lost") + value("queue_drops"));
        }
    }
}
