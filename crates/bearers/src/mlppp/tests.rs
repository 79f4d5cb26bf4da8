//! Whole bundles: two ends and their members.

use airloom_base::record::Event;
use airloom_base::{
    Bearer, BearerEvent, Change, Direction, Duration, Instant, LinkState, Outbox, Parts, Station,
};
use airloom_testkit::cases;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Mlppp, MlpppConfig};

const DOWN: Direction = Direction::Downlink;
const UP: Direction = Direction::Uplink;

/// A bundle with its clock and its records.
type Bench = airloom_testkit::Bench<Mlppp>;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn bundle(config: Value) -> Bench {
    let config: MlpppConfig = airloom_base::config::read(&config).unwrap();
    let mut records = Outbox::default();
    let bearer = Mlppp::new(config, &mut Parts::new(1, "b", 1, &mut records)).unwrap();
    Bench::new(Box::new(bearer), records)
}

/// So many wires of 64 kbit/s and 20 ms, and something more.
fn wires(count: u16, more: Value) -> Bench {
    let wire = json!({ "wireline": { "rate": "64kbit/s", "delay": "20ms" } });
    let mut config = json!({ "members": [wire], "copies": count, "queue": "100000 packets" });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    bundle(config)
}

fn set(bench: &mut Bench, part: &[u16], state: LinkState) {
    bench.apply(part, Change::State(state));
}

/// Frames that were sent over a member: what they are, and their octets.
fn frames(bench: &Bench, member: u16, direction: Direction) -> Vec<(&'static str, &[u8])> {
    let name = format!("b.member.{member}.ppp.{}.tx", direction.short());
    let is_there = |r: &&airloom_base::record::PacketRecord| {
        bench.records.points()[usize::from(r.point.0)].name == name && r.facts.event == Event::Transmit
    };
    let frames = bench.records.packets.iter().filter(is_there);
    frames.map(|r| (r.facts.proto, &bench.records.octets[r.octets.clone()])).collect()
}

/// Rate in kbit/s at which 100 packets of 1500 octets come through.
fn rate(mut bench: Bench) -> f64 {
    bench.send_many(DOWN, 100, 1500);
    bench.finish();
    assert_eq!(bench.ids(DOWN), (1..=100).collect::<Vec<_>>());
    100.0 * 12.0 / bench.out.last().unwrap().0.as_secs_f64()
}

#[test]
fn rates_add_up_less_the_headers() {
    for count in 1..=6u16 {
        let (got, wanted) = (rate(wires(count, json!({}))), 64.0 * f64::from(count));
        // Ten octets in front of each of the pieces of 1500/n, and the delay once.
        let with_headers = wanted * 1500.0 / (1502.0 + 8.0 * f64::from(count));
        assert!(got < with_headers && got > with_headers * 0.97, "{count}: {got} of {with_headers}");
    }
}

#[test]
fn the_largest_packet_fits_in_however_small_its_pieces_are() {
    for size in ["1B", "8B", "200B"] {
        let config = json!({ "fragments": { "fixed": size }, "reassembly_buffer": "1500B" });
        let mut bench = wires(2, config);
        bench.send(DOWN, 1500);
        bench.finish();
        assert_eq!((bench.ids(DOWN), bench.value("downlink.mp_overflows")), (vec![1], 0.0), "{size}");
    }
}

#[test]
fn six_circuits_come_to_the_measured_rates() {
    // 296.67 and 245.65 kbit/s of file are 305 and 253 with headers of 40 octets in 1460 (Kojima and others 2000).
    let of = |copies: u16| rate(bundle(json!({ "copies": copies, "queue": "1000 packets" })));
    let (five, six) = (of(5), of(6));
    assert!((295.0..325.0).contains(&six) && (245.0..270.0).contains(&five), "{five} {six}");
    assert!((1.16..1.24).contains(&(six / five)), "{five} {six}");
}

#[test]
fn unequal_members_need_shares() {
    let members = json!([
        { "wireline": { "rate": "384kbit/s", "delay": "20ms" } },
        { "wireline": { "rate": "64kbit/s", "delay": "60ms" } },
    ]);
    let of = |more: Value| {
        let mut config = json!({ "members": members, "copies": 1, "queue": "1000 packets" });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rate(bundle(config))
    };
    let shares = json!({ "weights": [384, 64] });
    let with = |fragments: Value| {
        let mut more = shares.clone();
        more["fragments"] = fragments;
        of(more)
    };
    let (proportional, whole) = (with(json!("proportional")), with(json!("whole")));
    let (fixed, equal) = (with(json!({ "fixed": "300B" })), of(json!({})));
    // Equal pieces let the slow one be the measure of all, but for those that it has no room for.
    assert!(proportional > 400.0 && whole > 390.0 && fixed > 390.0, "{proportional} {whole} {fixed}");
    assert!(equal < proportional, "{equal} {proportional}");
}

#[test]
fn a_small_packet_goes_in_one_piece_and_members_take_turns() {
    let mut bench = wires(3, json!({})).recorded();
    bench.send_many(UP, 6, 40);
    bench.finish();
    assert_eq!(bench.ids(UP), [1, 2, 3, 4, 5, 6]);
    let counts = (0..3).map(|member| frames(&bench, member, UP).len()).collect::<Vec<_>>();
    assert_eq!(counts, [2, 2, 2]);
}

#[test]
fn frames_have_the_octets_of_the_standards() {
    let mut bench = wires(2, json!({})).recorded();
    bench.send(DOWN, 100);
    bench.send(DOWN, 300);
    bench.finish();
    let first = frames(&bench, 1, DOWN)[0];
    // Address, control, Multilink; B and E; number 0; IPv4; the datagram.
    assert_eq!((first.0, &first.1[..12]), ("mp", &[0xFF, 3, 0, 0x3D, 0xC0, 0, 0, 0, 0, 0x21, 0x45, 0][..]));
    assert_eq!(first.1.len(), 8 + 2 + 100);
    let second = (frames(&bench, 0, DOWN)[0].1, frames(&bench, 1, DOWN)[1].1);
    assert_eq!((&second.0[..8], second.0.len()), (&[0xFF, 3, 0, 0x3D, 0x80, 0, 0, 1][..], 8 + 151));
    assert_eq!((&second.1[..8], second.1.len()), (&[0xFF, 3, 0, 0x3D, 0x40, 0, 0, 2][..], 8 + 151));

    let short = json!({ "short_sequence": true, "acfc": true, "pfc": true });
    let mut bench = wires(2, short).recorded();
    bench.send(DOWN, 100);
    bench.finish();
    assert_eq!(frames(&bench, 1, DOWN)[0].1[..5], [0x3D, 0xC0, 0x00, 0x00, 0x21]);
    assert_eq!(bench.ids(DOWN), [1]);
}

#[test]
fn a_lost_fragment_costs_its_packet_and_holds_the_others_up_until_it_is_known() {
    let lossy = json!({ "members": [
        { "wireline": { "rate": "64kbit/s", "delay": "20ms" } },
        { "wireline": { "rate": "64kbit/s", "delay": "20ms", "loss": 1.0 } },
    ], "copies": 1, "reassembly_timeout": "2s" });
    let mut bench = bundle(lossy);
    bench.send(DOWN, 1500);
    bench.send(DOWN, 40);
    bench.finish();
    // The small one went over the good member, and came when patience with the other one ended.
    assert_eq!(bench.ids(DOWN), [2]);
    assert!(bench.out[0].0 > ms(2000) && bench.out[0].0 < ms(2300), "{}", bench.out[0].0);
    assert_eq!((bench.value("downlink.lost"), bench.value("downlink.mp_expired")), (1.0, 1.0));
}

#[test]
fn a_member_that_hardly_moves_is_given_up_piece_by_piece() {
    // No rate at all is no rate (`units`); one bit a second holds a piece for hours.
    let mut bench = wires(2, json!({ "reassembly_timeout": "1s" }));
    let slowest = airloom_base::units::Rate::from_bits_per_second(1).unwrap();
    bench.apply(&[1], Change::Rate(None, slowest));
    bench.send_many(DOWN, 20, 1500);
    bench.finish();
    let (came, lost) = (bench.ids(DOWN).len() as f64, bench.value("downlink.lost"));
    assert_eq!(came + lost, 20.0);
    assert!(lost >= 1.0 && bench.value("downlink.mp_expired") >= 1.0, "{lost}");
    // What waits behind the piece goes on when patience ends, and not when the piece comes.
    let last = bench.out.last().unwrap().0;
    assert!(came >= 10.0 && last < ms(60_000), "{came} {last}");
}

#[test]
fn null_fragments_tell_of_a_loss_before_patience_ends() {
    let told = |null_fragments: bool| {
        let mut bench = wires(3, json!({ "null_fragments": null_fragments }));
        bench.apply(&[1], Change::Loss(Some(DOWN), 1.0));
        bench.send(DOWN, 1500);
        bench.apply(&[1], Change::Loss(Some(DOWN), 0.0));
        bench.send(DOWN, 150);
        bench.finish();
        assert_eq!(bench.ids(DOWN), [2]);
        (bench.out[0].0, bench.value("downlink.mp_null_fragments"))
    };
    let (with, without) = (told(true), told(false));
    assert!(with.0 < ms(200) && with.1 > 0.0, "{with:?}");
    assert_eq!(without.1, 0.0);
}

#[test]
fn a_live_control_sees_what_becomes_of_a_circuit() {
    let config = json!({ "members": ["piafs"], "copies": 2, "detect": "100ms" });
    let mut bench = bundle(config);
    let states = |bench: &Bench| {
        let mut out = Vec::new();
        bench.bearer.conditions(&mut out);
        out.iter().map(|c| (c.part.clone(), c.state, c.is_wanted)).collect::<Vec<_>>()
    };
    let up = |part: &[u16]| (part.to_vec(), "up", true);
    assert_eq!(states(&bench), [up(&[]), up(&[0]), up(&[1])]);
    bench.send(DOWN, 1000);
    bench.run_until(ms(1000));
    let mut out = Vec::new();
    bench.bearer.conditions(&mut out);
    let passed: Vec<_> = out.iter().map(|c| c.passed.unwrap()[DOWN as usize]).collect();
    assert_eq!((passed[0].frames, passed[0].octets), (2, 1000), "of the bundle: fragments, and datagrams");
    assert!(passed[1].frames > 7 && passed[1].octets > 500, "{passed:?}");

    set(&mut bench, &[1], LinkState::Down);
    assert_eq!(states(&bench), [up(&[]), up(&[0]), (vec![1], "lost", false)]);
    bench.run_until(ms(1200));
    assert_eq!(states(&bench)[2], (vec![1], "down", false));
    set(&mut bench, &[1], LinkState::Up);
    assert_eq!(states(&bench)[2], (vec![1], "setting up", true));
    bench.run_until(ms(3210));
    assert_eq!(states(&bench)[2], (vec![1], "negotiating", true));
    bench.run_until(ms(5000));
    assert_eq!(states(&bench), [up(&[]), up(&[0]), up(&[1])]);
    set(&mut bench, &[], LinkState::Down);
    bench.run_until(ms(6000));
    let down = |part: &[u16]| (part.to_vec(), "down", false);
    assert_eq!(states(&bench), [down(&[]), down(&[0]), down(&[1])]);
}

#[test]
fn members_that_say_nothing_of_themselves_are_as_the_bundle_knows_them() {
    let mut bench = wires(2, json!({ "detect": "0s" }));
    bench.send(UP, 500);
    bench.run_until(ms(500));
    set(&mut bench, &[0], LinkState::Down);
    bench.run_until(ms(501));
    let mut out = Vec::new();
    bench.bearer.conditions(&mut out);
    let states: Vec<_> = out.iter().map(|c| c.state).collect();
    assert_eq!(states, ["up", "down", "up"]);
    let sent: u64 = out[1..].iter().map(|c| c.passed.unwrap()[UP as usize].frames).sum();
    assert_eq!(sent, 2);
}

#[test]
fn a_member_that_is_lost_costs_what_is_sent_until_its_ends_know() {
    let mut bench = wires(3, json!({ "detect": "500ms" }));
    let stream = |bench: &mut Bench, from: u64, to: u64| {
        for n in from / 100..to / 100 {
            bench.run_until(ms(100 * n));
            bench.send(DOWN, 600);
        }
    };
    stream(&mut bench, 0, 1000);
    bench.run_until(ms(1000));
    set(&mut bench, &[1], LinkState::Down);
    stream(&mut bench, 1000, 3000);
    bench.finish();
    let lost: Vec<u64> = (1..=30).filter(|id| !bench.ids(DOWN).contains(id)).collect();
    assert!(lost.iter().all(|id| (9..=16).contains(id)) && lost.len() >= 5, "{lost:?}");
    assert_eq!(bench.value("downlink.lost"), lost.len() as f64);
    assert_eq!((bench.value("links_lost"), bench.events.len()), (1.0, 0));
}

#[test]
fn a_member_that_comes_negotiates_and_then_carries_its_share() {
    let mut bench = wires(2, json!({ "detect": "10ms" })).recorded();
    set(&mut bench, &[1], LinkState::Down);
    bench.run_until(ms(100));
    bench.send(DOWN, 1000);
    bench.run_until(ms(1000));
    assert_eq!(frames(&bench, 1, DOWN).len(), 0);
    set(&mut bench, &[1], LinkState::Up);
    bench.send(DOWN, 1000);
    assert_eq!(frames(&bench, 1, DOWN).len(), 1, "its first request, and no fragment yet");
    bench.run_until(ms(1200));
    bench.send(DOWN, 1000);
    bench.finish();
    let kinds: Vec<_> = frames(&bench, 1, DOWN).iter().map(|frame| frame.0).collect();
    assert_eq!(kinds, ["lcp", "lcp", "mp"]);
    // Configure-Request: ACCM 0, a magic number, MRRU 1500, an endpoint discriminator.
    let request = frames(&bench, 1, DOWN)[0].1;
    assert_eq!(request[..7], [0xFF, 0x03, 0xC0, 0x21, 1, 1, 0]);
    assert_eq!(request[8..14], [2, 6, 0, 0, 0, 0]);
    assert_eq!(request[14..16], [5, 6]);
    assert_eq!(request[20..24], [17, 4, 0x05, 0xDC]);
    assert_eq!(request[24..], *b"\x13\x0a\x01network");
    assert_eq!(bench.ids(DOWN), [1, 2, 3]);
    assert!(bench.events.is_empty(), "the bundle was never gone");
}

#[test]
fn a_bundle_without_members_is_gone_and_begins_anew_with_the_first_that_comes() {
    let mut bench = wires(2, json!({})).recorded();
    bench.send_many(DOWN, 5, 1000);
    bench.run_until(ms(100));
    set(&mut bench, &[], LinkState::Down);
    bench.run_until(ms(5000));
    assert_eq!(bench.events, [(ms(1100), BearerEvent::Down(Station(0), "no member left"))]);
    bench.send(DOWN, 1000);
    set(&mut bench, &[0], LinkState::Up);
    let waited = bench.send(DOWN, 1000);
    bench.finish();
    assert!(
        matches!(bench.events[1], (at, BearerEvent::Up(_)) if at > ms(5080) && at < ms(5200)),
        "{:?}",
        bench.events
    );
    assert_eq!(bench.ids(DOWN).last(), Some(&waited));
    assert!(!bench.ids(DOWN).contains(&(waited - 1)), "nothing waits for nobody");
    let last = frames(&bench, 0, DOWN);
    let kinds: Vec<_> = last.iter().map(|frame| frame.0).collect();
    assert_eq!(kinds[kinds.len() - 5..], ["lcp", "lcp", "mp", "mp", "mp"]);
    // Its numbers begin with 0, which is IPCP's.
    assert_eq!(last[last.len() - 3].1[4..10], [0xC0, 0, 0, 0, 0x80, 0x21]);
    assert_eq!(
        bench.value("downlink.packets"),
        bench.value("downlink.delivered") + bench.value("downlink.lost")
    );
}

#[test]
fn a_fragment_directly_behind_the_answer_that_opens_a_link_is_taken() {
    let wire = json!({ "wireline": { "delay": { "uplink": "50ms", "downlink": "20ms" } } });
    let mut bench = bundle(json!({ "members": [wire], "copies": 1, "detect": "10ms" }));
    set(&mut bench, &[], LinkState::Down);
    bench.run_until(ms(100));
    set(&mut bench, &[], LinkState::Up);
    // The mobile's Configure-Ack takes half a second, and nothing that it sends later is there before.
    for (at, delay) in [(110, 500), (130, 0)] {
        bench.run_until(ms(at));
        bench.apply(&[0], Change::Delay(Some(UP), Duration::from_millis(delay)));
    }
    let waited = bench.send(DOWN, 1000);
    bench.finish();
    // The request of IPCP comes with it, and need not be repeated three seconds later.
    assert!(matches!(bench.events[1], (at, BearerEvent::Up(_)) if at < ms(700)), "{:?}", bench.events);
    assert_eq!((bench.value("uplink.mp_late"), bench.ids(DOWN)), (0.0, vec![waited]));
}

#[test]
fn negotiation_over_a_dead_link_is_given_up() {
    let mut bench = wires(1, json!({ "detect": "0s" }));
    set(&mut bench, &[], LinkState::Down);
    bench.run_until(ms(10));
    bench.apply(&[], Change::Loss(None, 1.0));
    set(&mut bench, &[], LinkState::Up);
    bench.send(UP, 100);
    bench.finish();
    // Ten requests, three seconds apart.
    assert_eq!(bench.now, ms(30_010));
    assert_eq!((bench.value("uplink.lost"), bench.bearer.poll_timeout()), (1.0, None));
    bench.send(UP, 100);
    assert_eq!(bench.value("uplink.lost"), 2.0);
}

#[test]
fn a_call_that_does_not_come_about_is_waited_for_no_more() {
    let mut bench = bundle(json!({ "copies": 2, "members": [{ "piafs": { "set_up": "100ms" } }] }));
    set(&mut bench, &[], LinkState::Down);
    bench.run_until(ms(2000));
    bench.apply(&[], Change::Loss(None, 0.9));
    set(&mut bench, &[1], LinkState::Up);
    bench.send(UP, 100);
    assert_eq!(bench.value("uplink.lost"), 0.0);
    bench.finish();
    assert_eq!((bench.value("uplink.lost"), bench.value("member.1.calls_failed")), (1.0, 1.0));
}

#[test]
fn packets_wait_while_members_are_full_and_the_queue_has_an_end() {
    let mut bench = wires(2, json!({ "queue": "4 packets", "ahead": "2kB" }));
    bench.send_many(DOWN, 20, 1500);
    assert!(bench.value("downlink.queue_drops") >= 8.0);
    bench.finish();
    assert_eq!(bench.out.len() as f64 + bench.value("downlink.queue_drops"), 20.0);
}

#[test]
fn a_bundle_takes_what_its_link_takes_and_offers_an_mrru_for_it() {
    let passed = |mtu: u16, octets: u32| {
        let config: MlpppConfig = airloom_base::config::read(&json!({ "members": ["wireline"] })).unwrap();
        let mut records = Outbox::default();
        let mut parts = Parts { mtu, ..Parts::new(1, "b", 1, &mut records) };
        let bearer = Mlppp::new(config, &mut parts).unwrap();
        let options = bearer.config.options("mobile");
        let mut bench = Bench::new(Box::new(bearer), records);
        bench.send(DOWN, octets);
        bench.finish();
        (options.mrru, options.mru, bench.out.len())
    };
    assert_eq!(passed(576, 1500), (Some(1500), 1500, 1));
    assert_eq!(passed(1500, 2088), (Some(1500), 1500, 0), "no link has the MTU for it");
    assert_eq!(passed(2088, 2088), (Some(2088), 2094, 1));
    assert_eq!(passed(65_535, 65_535), (Some(65_535), 65_535, 1));
}

#[test]
fn what_makes_no_sense_is_said() {
    let error = |value: Value| {
        let mut records = Outbox::default();
        let mut parts = Parts::new(1, "b", 1, &mut records);
        Mlppp::build(&value, &mut parts).err().unwrap().to_string()
    };
    assert!(error(json!({ "members": [] })).starts_with("members: a bundle has at least one"));
    assert!(error(json!({ "copies": 65 })).starts_with("copies: 65 members"));
    assert!(error(json!({ "weights": [1, 2] })).starts_with("weights: one for each of the 1"));
    assert!(error(json!({ "weights": [0] })).starts_with("weights: a member without"));
    assert!(error(json!({ "fragments": { "fixed": "0B" } })).starts_with("fragments"));
    assert!(error(json!({ "mrru": "1000B" })).starts_with("mrru: 1500 to 65535"));
    assert!(error(json!({ "members": ["wire"] })).contains("there is no bearer `wire`"));
    assert!(
        error(json!({ "members": [{ "piafs": { "window": 99 } }] })).starts_with("members.0.piafs.window")
    );
}

proptest! {
    #![proptest_config(cases(48))]

    /// Whatever happens to the members, packets arrive whole, in order and once, and every other one is counted.
    #[test]
    fn nothing_is_lost_that_is_not_counted(
        steps in prop::collection::vec((0u8..12, 0u16..4, 21u32..1500, 0u64..600), 1..60),
        fragments in prop::sample::select(vec![json!("equal"), json!("proportional"), json!("whole"), json!({ "fixed": "200B" })]),
        loss in 0.0..0.3f64,
        short: bool,
        empty: bool,
    ) {
        let mut bench = bundle(json!({
            "members": [
                { "wireline": { "rate": "128kbit/s", "delay": "50ms", "loss": loss } },
                { "piafs": { "loss": loss, "call_drop": "700ms", "set_up": "50ms" } },
                "umts-dch",
                { "wireline": { "rate": "1Mbit/s" } },
            ],
            "copies": 1, "weights": [128, 64, 384, 1000], "fragments": fragments, "short_sequence": short,
            "null_fragments": empty, "detect": "200ms", "reassembly_timeout": "1s", "queue": "20 packets",
        }));
        for (what, member, octets, wait) in steps {
            match what {
                0 => set(&mut bench, &[member], LinkState::Down),
                1 | 2 => set(&mut bench, &[member], LinkState::Up),
                3 if wait < 100 => set(&mut bench, &[], LinkState::Down),
                4..=6 => bench.send_many(UP, 1, octets),
                _ => bench.send_many(DOWN, wait % 8, octets),
            }
            let end = bench.now + Duration::from_millis(wait);
            bench.run_until(end);
        }
        bench.finish();
        for direction in Direction::BOTH {
            let ids = bench.ids(direction);
            prop_assert!(ids.is_sorted_by(|a, b| a < b), "{:?}", ids);
            let value = |name: &str| bench.value(&format!("{}.{name}", direction.name()));
            let counted = value("delivered") + value("lost") + value("queue_drops");
            // What is lost behind the last one that came is not known to be.
            prop_assert!(counted <= value("packets"));
            prop_assert!(value("delivered") == ids.len() as f64);
            if loss == 0.0 {
                prop_assert_eq!(counted, value("packets"));
            }
        }
    }
}
