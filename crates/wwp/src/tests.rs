//! Two connections on a link: waves, probes, opening, end, and what strangers send.

use airloom_base::random::splitmix64;
use airloom_base::units::{Octets, Rate};
use airloom_base::{Body, CloseReason, Duration, Instant, TransportEvent};
use airloom_testkit::{End, Fate, LinkConfig, Offered, Pair, cases, hash_of, lose};
use proptest::prelude::*;

use super::wire::{Header, Kind, Layout};
use super::*;

const MS: Duration = Duration::from_millis(1);
const SIX: Layout = Layout { header: 6, ports: false };

/// As the paper has it: six octets of header and no ports, and a first wave of the highest level.
fn paper() -> Config {
    Config { ports: false, first_level: Some(3), ..Config::default() }
}

/// Where the throughput of the link is known.
fn known() -> Config {
    Config { baseline: Some(Rate::kbit(1900)), ..paper() }
}

fn pair_of(config: &Config, link: LinkConfig) -> Pair {
    let one = |tags| Box::new(Wwp::new(config.clone(), tags).expect("a good configuration"));
    Pair::new(one(1), one(2), link)
}

/// 2 Mbit/s and 50 ms each way: a wave of level 3 takes 148 ms.
fn slow() -> LinkConfig {
    LinkConfig {
        rate: [Some(Rate::kbit(2000)), Some(Rate::kbit(2000))],
        delay: MS * 50,
        queue: 1000,
        overhead: 0,
    }
}

fn watched(config: &Config) -> Pair {
    let mut pair = pair_of(config, slow());
    pair.watch = true;
    pair
}

/// Moves octets both ways, the client's first, and ends both directions.
fn exchange(pair: &mut Pair, up: u32, down: u32) {
    pair.open(End::Client);
    let bodies = [Body::filler(1, up), Body::filler(2, down)];
    pair.write(End::Client, bodies[0].clone());
    pair.finish(End::Client);
    pair.drive_until(pair.now + MS * 1500);
    pair.write(End::Server, bodies[1].clone());
    pair.finish(End::Server);
    pair.drive();
    pair.assert_idle();
    assert_eq!(pair.server().hash(), hash_of(&bodies[..1]), "{} of {up}", pair.server().received);
    assert_eq!(pair.client().hash(), hash_of(&bodies[1..]), "{} of {down}", pair.client().received);
    for end in [End::Client, End::Server] {
        assert_eq!(pair.host(end).closed(), Some(CloseReason::Finished));
        assert!(pair.host(end).saw(TransportEvent::Finished(0)));
    }
}

/// The server finishes, too; all of `body` has come to it, and nothing is left.
fn ends_with(pair: &mut Pair, body: Body) {
    pair.finish(End::Server);
    pair.drive();
    pair.assert_idle();
    assert_eq!(pair.server().hash(), hash_of(&[body]));
}

/// A client that has opened, written this and finished.
fn says(mut pair: Pair, octets: u32) -> (Pair, Body) {
    pair.open(End::Client);
    let body = Body::filler(1, octets);
    pair.write(End::Client, body.clone());
    pair.finish(End::Client);
    (pair, body)
}

/// A segment that nobody of the two has sent.
fn forged(kind: Kind, level: u8, wave: u8, number: u32, body: Body) -> airloom_base::Packet {
    let h = Header { kind, level, wave, number };
    airloom_base::Packet::build(|out| SIX.emit(&h, (0, 0), out), body)
}

fn headers(pair: &Pair, from: End) -> Vec<(Header, Instant)> {
    let of = |s: &Offered| (SIX.parse(&s.head).expect("ours"), s.at);
    pair.seen.iter().filter(|s| s.from == from).map(of).collect()
}

fn count(pair: &Pair, from: End, kind: Kind) -> usize {
    headers(pair, from).iter().filter(|(h, _)| h.kind == kind).count()
}

/// Segments that the client sent again.
fn resent(pair: &Pair) -> usize {
    let sent = headers(pair, End::Client);
    let data =
        sent.iter().filter(|(h, _)| matches!(h.kind, Kind::Data | Kind::DataLast)).map(|(h, _)| h.number);
    data.clone().count() - data.collect::<std::collections::BTreeSet<u32>>().len()
}

/// Waves that a host sent: number, level, segments, and when each began.
fn waves(pair: &Pair, from: End) -> Vec<(u8, u8, usize, Instant)> {
    let mut waves: Vec<(u8, u8, usize, Instant)> = Vec::new();
    for (h, at) in headers(pair, from) {
        if !matches!(h.kind, Kind::Data | Kind::DataLast) {
            continue;
        }
        match waves.last_mut().filter(|w| w.0 == h.wave) {
            Some(wave) => wave.2 += 1,
            None => waves.push((h.wave, h.level, 1, at)),
        }
    }
    waves
}

#[test]
fn a_clean_link_sees_full_waves_of_the_highest_level_and_one_answer_each() {
    let mut pair = watched(&Config { baseline: Some(Rate::kbit(1900)), ..paper() });
    exchange(&mut pair, 1024 * 100, 0);
    let seen: Vec<_> = waves(&pair, End::Client).iter().map(|w| (w.0, w.1, w.2)).collect();
    // 36 + 36 + 24 + a short one of 4: "the highest wave level for which it has enough segments".
    assert_eq!(seen, [(1, 3, 36), (2, 3, 36), (3, 2, 24), (4, 1, 4)]);
    assert_eq!(count(&pair, End::Server, Kind::Nsack), 4);
    assert_eq!(count(&pair, End::Client, Kind::DataLast), 1);
    assert_eq!(count(&pair, End::Client, Kind::Probe1), 0);
}

#[test]
fn the_segments_of_a_wave_leave_without_a_pause() {
    let mut pair = watched(&paper());
    exchange(&mut pair, 1024 * 72, 0);
    let begins: Vec<Instant> = waves(&pair, End::Client).iter().map(|w| w.3).collect();
    for (h, at) in headers(&pair, End::Client) {
        if h.kind == Kind::Data {
            assert_eq!(at, begins[usize::from(h.wave) - 1]);
        }
    }
}

#[test]
fn a_slower_link_than_the_baseline_lowers_the_level_by_thirds() {
    for (baseline, level) in [(1900, 3), (3500, 2), (5500, 1), (9000, 0)] {
        let rate = Some(Rate::kbit(baseline));
        let mut pair =
            watched(&Config { baseline: rate, granularity: Duration::ZERO, send_factor: 6.0, ..paper() });
        exchange(&mut pair, 1024 * 72, 0);
        let first = headers(&pair, End::Server).into_iter().find(|(h, _)| h.kind == Kind::Nsack).unwrap().0;
        assert_eq!(first.level, level, "{baseline} kbit/s");
        // Level 0: "the sender will immediately probe the receiver".
        let probed = headers(&pair, End::Client).iter().any(|(h, _)| h.kind == Kind::Probe1 && h.wave == 1);
        assert_eq!(probed, level == 0, "{baseline} kbit/s");
    }
}

#[test]
fn a_lost_segment_is_probed_for_and_goes_out_first_in_the_next_wave() {
    let mut pair = watched(&known());
    // The SYN, the ACK, and of the first wave the fifth segment.
    pair.set_fate(lose(End::Client, &[6]));
    exchange(&mut pair, 1024 * 72, 0);
    let sent = headers(&pair, End::Client);
    let kinds: Vec<Kind> =
        sent.iter().map(|(h, _)| h.kind).filter(|k| !matches!(k, Kind::Data | Kind::DataLast)).collect();
    assert_eq!(
        kinds,
        [Kind::Syn, Kind::Ack, Kind::Probe1, Kind::Probe2, Kind::Probe3, Kind::Fin, Kind::FinAck]
    );
    let answers: Vec<Kind> = headers(&pair, End::Server).iter().map(|(h, _)| h.kind).collect();
    assert_eq!(answers[1..5], [Kind::Pr1Ack, Kind::Pr2Ack, Kind::Nsack, Kind::Nsack]);
    let second = sent.iter().find(|(h, _)| h.kind == Kind::Data && h.wave == 2).unwrap().0;
    assert_eq!((second.number, second.level), (4, 3), "the error has passed: same level, old segment first");
    assert_eq!(count(&pair, End::Client, Kind::Data) + count(&pair, End::Client, Kind::DataLast), 73);
}

#[test]
fn each_lost_segment_of_opening_probing_and_end_is_made_good() {
    for from in [End::Client, End::Server] {
        for index in 0..20 {
            let mut pair = pair_of(&paper(), slow());
            pair.set_fate(Box::new(move |s| {
                let first_wave = s.from == End::Client && s.index == 5;
                if (s.from == from && s.index == index) || first_wave { Fate::Lose } else { Fate::Deliver }
            }));
            exchange(&mut pair, 1024 * 50, 5000);
        }
    }
}

#[test]
fn a_wave_of_which_nothing_arrives_is_known_by_its_probe() {
    let mut pair = watched(&paper());
    let lost: Vec<u64> = (2..38).collect();
    pair.set_fate(lose(End::Client, &lost));
    exchange(&mut pair, 1024 * 36, 0);
    assert_eq!(waves(&pair, End::Client).iter().map(|w| w.2).collect::<Vec<_>>(), [36, 36]);
}

#[test]
fn an_answer_to_one_segment_that_took_its_time_does_not_make_a_lost_wave_wait_for_seconds() {
    let mut pair = watched(&Config { first_level: None, ..paper() });
    // The answer to the first wave of one segment, which SEND_T just waits for; and the whole second wave.
    pair.set_fate(Box::new(|s| match (s.from, s.index) {
        (End::Server, 1) => Fate::Late(MS * 180),
        (End::Client, 3..15) => Fate::Lose,
        _ => Fate::Deliver,
    }));
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, 100));
    pair.drive_until(pair.now + MS * 600);
    assert_eq!(count(&pair, End::Client, Kind::Probe1), 0);
    pair.write(End::Client, Body::filler(2, 36 * 1024));
    pair.finish(End::Client);
    pair.finish(End::Server);
    pair.drive();
    let wave = waves(&pair, End::Client)[1];
    assert_eq!((wave.1, wave.2), (1, 12), "one segment says nothing of the network");
    let probe = headers(&pair, End::Client).into_iter().find(|(h, _)| h.kind == Kind::Probe1).unwrap();
    assert!(probe.1.since(wave.3) < MS * 2100, "{} ms", probe.1.since(wave.3).as_millis());
}

#[test]
fn a_queue_shorter_than_a_wave_gets_waves_that_it_takes() {
    // It takes 20 packets: of 24 segments four are dropped, of the first 36, behind the ACK of the opening, 17.
    let mut pair = pair_of(&known(), LinkConfig { queue: 20, ..slow() });
    pair.watch = true;
    exchange(&mut pair, 1024 * 36 * 10, 0);
    let sizes: Vec<usize> = waves(&pair, End::Client).iter().map(|w| w.2).collect();
    // One level more is tried after 8 whole waves, and next after 16.
    assert_eq!(sizes[..27], [&[36][..], &[12; 8], &[24], &[12; 16], &[24]].concat());
    assert!(sizes[27..].iter().all(|size| *size <= 12), "{sizes:?}");
    assert_eq!(resent(&pair), 17 + 4 + 4);
}

#[test]
fn segments_behind_one_that_is_lost_again_and_again_are_kept() {
    let mut pair = watched(&known());
    // The oldest segment, in three waves; three probes stand between any two of them.
    pair.set_fate(lose(End::Client, &[2, 41, 80]));
    exchange(&mut pair, 1024 * 36 * 6, 0);
    let oldest =
        headers(&pair, End::Client).iter().filter(|(h, _)| h.kind == Kind::Data && h.number == 0).count();
    assert_eq!((resent(&pair), oldest), (3, 4), "nothing but the lost one is sent again");
}

#[test]
fn no_more_is_kept_behind_a_hole_than_the_buffer_holds() {
    let mut pair = watched(&Config { receive_buffer: Octets(60 * 1024), ..known() });
    pair.set_fate(lose(End::Client, &[2, 41, 80]));
    exchange(&mut pair, 1024 * 36 * 6, 0);
    // Up to the 60th: 24 of the second wave, and none of the third.
    assert!(resent(&pair) > 3, "{}", resent(&pair));
}

#[test]
fn a_first_wave_over_a_slow_link_is_waited_for() {
    for (kbit, probes) in [(64, 0..=0), (9, 1..=6)] {
        let link = LinkConfig { rate: [Some(Rate::kbit(kbit)); 2], ..slow() };
        let mut pair = pair_of(&Config { first_level: None, ..paper() }, link);
        pair.watch = true;
        exchange(&mut pair, 1024 * 120, 0);
        let waves = waves(&pair, End::Client);
        assert_eq!((waves[0].1, waves[0].2), (1, 12), "nothing is known: the smallest wave comes first");
        assert_eq!((waves[1].1, waves[1].2), (3, 36), "and then the largest");
        assert_eq!(resent(&pair), 0, "{kbit} kbit/s");
        let sent = headers(&pair, End::Client);
        let probed: Vec<u8> =
            sent.iter().filter(|(h, _)| h.kind == Kind::Probe1).map(|(h, _)| h.wave).collect();
        assert!(probes.contains(&probed.len()), "{kbit} kbit/s: {probed:?}");
        assert!(probed.iter().all(|wave| *wave == 1), "what a segment takes is known after the first wave");
    }
}

#[test]
fn no_wave_takes_longer_than_the_peer_s_silence_is_borne() {
    // As `airloom wwp` has it. The largest wave takes 90 s at 64 kbit/s.
    let config = Config {
        segment: Octets(1400),
        waves: vec![16, 32, 64, 128, 256, 512],
        send_buffer: Octets(2 << 20),
        receive_buffer: Octets(2 << 20),
        give_up: Duration::from_secs(30),
        first_level: None,
        ..paper()
    };
    let link = LinkConfig { rate: [Some(Rate::kbit(64)); 2], ..slow() };
    let mut pair = pair_of(&config, link);
    pair.watch = true;
    exchange(&mut pair, 1_000_000, 0);
    let sizes: Vec<usize> = waves(&pair, End::Client).iter().map(|w| w.2).collect();
    assert_eq!((sizes[..4].to_vec(), resent(&pair)), (vec![16, 32, 32, 32], 0), "{sizes:?}");
}

#[test]
fn a_path_that_was_slow_for_a_while_is_probed_as_often_as_before() {
    let mut pair = watched(&known());
    let at = |ms: u64| Instant::ZERO + MS * ms;
    // What comes back takes two seconds longer for a while; then single segments are lost, so that there are probes; much
    // later everything is.
    pair.set_fate(Box::new(move |s| match s.from {
        End::Server if (at(400)..at(20_000)).contains(&s.at) => Fate::Late(MS * 2000),
        End::Client if (at(20_000)..at(60_000)).contains(&s.at) && s.index % 60 == 30 => Fate::Lose,
        End::Client if (at(60_000)..at(63_000)).contains(&s.at) => Fate::Lose,
        _ => Fate::Deliver,
    }));
    pair.open(End::Client);
    for second in 0..64 {
        pair.drive_until(at(second * 1000));
        pair.write(End::Client, Body::filler(second as u32, 50_000));
    }
    pair.finish(End::Client);
    pair.finish(End::Server);
    pair.drive();
    pair.assert_idle();
    let probes: Vec<Instant> = headers(&pair, End::Client)
        .into_iter()
        .filter(|(h, at_)| h.kind == Kind::Probe1 && (at(60_000)..at(63_000)).contains(at_))
        .map(|(_, at)| at)
        .collect();
    assert!(probes.len() >= 4, "{probes:?}");
    assert!(probes.windows(2).all(|two| two[1].since(two[0]) < Duration::from_secs(1)), "{probes:?}");
}

#[test]
fn segments_that_the_path_no_longer_takes_whole_go_in_pieces() {
    for at in [0, 600] {
        let (mut pair, body) = says(watched(&known()), 150_000);
        pair.drive_until(Instant::ZERO + MS * at);
        pair.with_transport(End::Client, |t, cx| t.path_mtu(cx, airloom_base::PathId(0), 296));
        ends_with(&mut pair, body);
        let longest = pair.seen.iter().filter(|s| s.at > Instant::ZERO + MS * (at + 1)).map(|s| s.body).max();
        assert_eq!(longest, Some(296 - 20 - 6));
    }
}

#[test]
fn a_queue_that_takes_the_first_pieces_of_a_wave_alone_gets_all_of_them_in_the_end() {
    for queue in [1, 3] {
        let mut pair = pair_of(&known(), LinkConfig { queue, ..slow() });
        pair.endless = 100_000;
        pair.open(End::Client);
        let body = Body::filler(1, 5_000);
        pair.drive_until(Instant::ZERO + MS * 500);
        pair.write(End::Client, body.clone());
        pair.with_transport(End::Client, |t, cx| t.path_mtu(cx, airloom_base::PathId(0), 68));
        pair.finish(End::Client);
        pair.finish(End::Server);
        pair.drive();
        pair.assert_idle();
        assert_eq!(pair.server().hash(), hash_of(&[body]), "{queue}");
    }
}

#[test]
fn an_outage_is_waited_out_with_probes_alone() {
    let mut pair = watched(&paper());
    let second = Duration::from_secs(1);
    let outage = Instant::ZERO + second..Instant::ZERO + second * 11;
    let dead = outage.clone();
    pair.set_fate(Box::new(move |s| if dead.contains(&s.at) { Fate::Lose } else { Fate::Deliver }));
    exchange(&mut pair, 1024 * 400, 0);
    let lost_waves: Vec<_> =
        waves(&pair, End::Client).into_iter().filter(|w| outage.contains(&w.3)).collect();
    assert!(lost_waves.len() <= 1, "{lost_waves:?}");
    let begin = waves(&pair, End::Client).into_iter().find(|w| w.3 > outage.end).unwrap();
    assert_eq!(begin.1, 3, "back at the highest level at once");
    assert!(begin.3 < outage.end + second);
}

#[test]
fn a_path_that_becomes_slower_than_its_probes_is_learnt() {
    let mut pair = pair_of(&paper(), slow());
    let from = Instant::ZERO + MS * 400;
    pair.set_fate(Box::new(move |s| if s.at > from { Fate::Late(MS * 900) } else { Fate::Deliver }));
    exchange(&mut pair, 1024 * 200, 0);
}

#[test]
fn a_path_that_has_become_longer_for_good_is_no_queue_for_ever() {
    let mut pair = pair_of(&paper(), slow());
    pair.endless = 100_000;
    let from = Instant::ZERO + MS * 400;
    pair.set_fate(Box::new(move |s| match s.from {
        End::Client if s.data_index % 40 == 30 => Fate::Lose,
        _ if s.at > from => Fate::Late(MS * 400),
        _ => Fate::Deliver,
    }));
    exchange(&mut pair, 1024 * 200, 0);
}

#[test]
fn waves_without_favour_for_energy_are_sent_into_a_queue_that_energy_waits_for() {
    let transfer = |favour| {
        let mut pair = watched(&Config { favour, ..paper() });
        // The fifth packet is lost, and what comes back takes 80 ms longer from then on.
        pair.set_fate(Box::new(|s| match (s.from, s.index) {
            (End::Client, 5) => Fate::Lose,
            (End::Server, 1..20) => Fate::Late(MS * 80),
            _ => Fate::Deliver,
        }));
        exchange(&mut pair, 1024 * 72, 0);
        count(&pair, End::Client, Kind::Probe1)
    };
    assert_eq!(transfer(Favour::Throughput), 1);
    assert!(transfer(Favour::Energy) > 2);
}

#[test]
fn a_reader_that_pauses_holds_the_sender_back_and_lets_it_go_on() {
    let mut pair = watched(&Config { receive_buffer: Octets(50_000), ..paper() });
    pair.open(End::Client);
    pair.server().paused = true;
    let body = Body::filler(1, 400_000);
    pair.write(End::Client, body.clone());
    pair.finish(End::Client);
    pair.drive_until(Instant::ZERO + Duration::from_secs(20));
    let sent = pair.client().transport.as_ref().unwrap().facts().app_sent;
    assert!(sent < 50_000 + 2 * 36 * 1024, "{sent}");
    pair.resume(End::Server);
    ends_with(&mut pair, body);
}

#[test]
fn less_than_a_wave_leaves_after_a_while() {
    let mut pair = watched(&Config { hold: MS * 30, ..paper() });
    pair.open(End::Client);
    pair.drive_until(Instant::ZERO + MS * 500);
    pair.write(End::Client, Body::filler(1, 16));
    pair.drive_until(Instant::ZERO + MS * 1500);
    assert_eq!(pair.server().received, 16);
    assert_eq!(waves(&pair, End::Client)[0].3, Instant::ZERO + MS * 530);
    pair.finish(End::Client);
    pair.finish(End::Server);
    pair.drive();
    pair.assert_idle();
}

#[test]
fn headers_of_four_octets_and_long_reports_carry_as_well() {
    for header in 4..=9 {
        for ports in [false, true] {
            let config =
                Config { header, ports, report: 36, waves: vec![5, 100], first_level: None, ..paper() };
            let mut pair = pair_of(&config, slow());
            pair.set_fate(Box::new(|s| if s.index % 13 == 7 { Fate::Lose } else { Fate::Deliver }));
            exchange(&mut pair, 300_000, 70_001);
        }
    }
}

#[test]
fn the_opener_s_waves_are_those_of_both_directions() {
    let wwp =
        |waves: Vec<u16>| Box::new(Wwp::new(Config { waves, first_level: Some(2), ..paper() }, 5).unwrap());
    let mut pair = Pair::new(wwp(vec![3, 7]), wwp(vec![1, 2, 4, 8]), slow());
    pair.watch = true;
    exchange(&mut pair, 1024 * 14, 1024 * 14);
    for end in [End::Client, End::Server] {
        assert_eq!(waves(&pair, end).iter().map(|w| w.2).collect::<Vec<_>>(), [7, 7]);
    }
}

#[test]
fn loss_duplication_and_reordering_leave_the_octets_whole() {
    for seed in 0..60u64 {
        let favour = [Favour::Balanced, Favour::Throughput, Favour::Energy][seed as usize % 3];
        let mut pair = pair_of(&Config { favour, ..paper() }, slow());
        let mut n = 0;
        pair.set_fate(Box::new(move |_| {
            n += 1;
            match splitmix64(seed, n) % 100 {
                0..10 => Fate::Lose,
                10..15 => Fate::Duplicate,
                15..22 => Fate::Late(MS * 130),
                _ => Fate::Deliver,
            }
        }));
        exchange(&mut pair, 200_000, 50_000);
    }
}

#[test]
fn a_dead_peer_is_found_out_and_nobody_at_home_is_said_at_once() {
    let mut pair = pair_of(&paper(), slow());
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, 500_000));
    pair.drive_until(Instant::ZERO + MS * 600);
    pair.set_fate(Box::new(|_| Fate::Lose));
    pair.drive_until(Instant::ZERO + Duration::from_secs(200));
    assert_eq!(pair.client().closed(), Some(CloseReason::TimedOut));
    let mut away = pair_of(&paper(), slow());
    away.server().stop_listening();
    away.open(End::Client);
    away.drive();
    assert_eq!((away.client().closed(), away.refused), (Some(CloseReason::Refused), 1));
    let mut silent = pair_of(&paper(), slow());
    silent.set_fate(Box::new(|_| Fate::Lose));
    silent.open(End::Client);
    silent.drive();
    assert_eq!(silent.client().closed(), Some(CloseReason::TimedOut));
}

#[test]
fn a_peer_that_answers_probes_and_never_a_wave_is_given_up_too() {
    let mut pair = pair_of(&paper(), slow());
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, 500_000));
    // The link is dead for a while; then of each cycle the third probe is lost, whose answer would be a wave's.
    let (dead, alive) = (Instant::ZERO + MS * 600, Instant::ZERO + MS * 3000);
    let mut probes = 0;
    pair.set_fate(Box::new(move |sent| {
        probes += u32::from(sent.at >= alive && sent.from == End::Client);
        let lost =
            (dead..alive).contains(&sent.at) || sent.from == End::Client && probes % 3 == 0 && probes > 0;
        if lost { Fate::Lose } else { Fate::Deliver }
    }));
    pair.drive_until(Instant::ZERO + Duration::from_secs(1190));
    assert_eq!(pair.client().closed(), None, "its probes are answered");
    pair.drive();
    assert_eq!(pair.client().closed(), Some(CloseReason::TimedOut));
    assert!(pair.now < Instant::ZERO + Duration::from_secs(1210), "{:?}", pair.now);
}

#[test]
fn a_reset_ends_both_ends() {
    for end in [End::Client, End::Server] {
        let mut pair = pair_of(&paper(), slow());
        pair.open(End::Client);
        pair.drive_until(Instant::ZERO + MS * 400);
        pair.reset(end);
        pair.drive();
        pair.assert_idle();
        assert_eq!(pair.host(end.other()).closed(), Some(CloseReason::Reset));
    }
}

#[test]
fn segments_of_impossible_waves_levels_and_numbers_change_nothing() {
    let (mut pair, body) = says(pair_of(&paper(), slow()), 300_000);
    pair.drive_until(Instant::ZERO + MS * 700);
    for wave in [0, 9, 77, 128, 200] {
        for level in [0, 4, 15] {
            for kind in [Kind::Data, Kind::DataLast, Kind::Probe1, Kind::Probe3] {
                pair.inject(End::Server, forged(kind, level, wave, 0x00_FFFF, Body::filler(9, 1024)));
            }
            pair.inject(End::Client, forged(Kind::Nsack, level, wave, 0x12_3456, Body::filler(3, 900)));
            pair.inject(End::Client, forged(Kind::Rst, 0, wave, 0, Body::EMPTY));
        }
    }
    ends_with(&mut pair, body);
    assert_eq!(pair.client().closed(), Some(CloseReason::Finished));
}

#[test]
fn segments_that_could_be_of_the_wave_but_cannot_be_true_change_nothing() {
    let (mut pair, body) = says(watched(&known()), 300_000);
    pair.finish(End::Server);
    // In the middle of each wave: the numbers of this wave and the next with levels that no wave has, segments beyond any
    // buffer, answers that acknowledge what was never sent, cycles that nobody began.
    for step in 2..16 {
        pair.drive_until(Instant::ZERO + MS * (100 * step));
        for wave in 0..=255 {
            for level in [0, 4, 15] {
                pair.inject(End::Server, forged(Kind::Data, level, wave, 9, Body::filler(9, 1024)));
                pair.inject(End::Client, forged(Kind::Nsack, level.max(4), wave, 9, Body::filler(3, 900)));
            }
            pair.inject(End::Server, forged(Kind::Data, 3, wave, 5000, Body::filler(9, 1024)));
            pair.inject(End::Server, forged(Kind::Piece, 3, wave, 5000, Body::filler(9, 1024)));
            pair.inject(End::Client, forged(Kind::Nsack, 3, wave, 0x12_3456, Body::Real(vec![0, 0].into())));
            pair.inject(End::Server, forged(Kind::Probe2, 3, wave, 77, Body::EMPTY));
            pair.inject(End::Server, forged(Kind::Probe3, 3, wave, 77, Body::EMPTY));
        }
    }
    pair.drive();
    pair.assert_idle();
    assert_eq!(pair.server().hash(), hash_of(&[body]));
    assert_eq!(pair.client().closed(), Some(CloseReason::Finished));
    assert_eq!(resent(&pair), 0);
}

#[test]
fn a_cycle_that_nobody_began_does_not_stop_those_that_come() {
    let mut pair = watched(&known());
    pair.set_fate(lose(End::Client, &[6]));
    let (mut pair, body) = says(pair, 1024 * 72);
    pair.drive_until(Instant::ZERO + MS * 350);
    pair.inject(End::Server, forged(Kind::Probe1, 3, 1, 500_000, Body::EMPTY));
    ends_with(&mut pair, body);
}

#[test]
fn an_answer_is_never_longer_than_what_a_stranger_sends() {
    for ports in [false, true] {
        let config = Config { ports, ..Config::default() };
        let mut wwp = Wwp::new(config.clone(), 1).unwrap();
        for &kind in Kind::ALL {
            for content in [0, 3, 4, 40] {
                let h = Header { kind, level: 15, wave: 255, number: 0xFF_FFFF };
                let body = Body::filler(1, content);
                let unit = airloom_base::Packet::build(|out| config.layout().emit(&h, (1, 2), out), body);
                let answer = airloom_base::Protocol::refuse(&mut wwp, &unit);
                assert!(answer.is_none_or(|a| a.wire_len() <= unit.wire_len()), "{kind:?}, {content} octets");
            }
        }
    }
}

/// An episode: what the link does to each packet, in per cent, and how both ends are set.
#[derive(Clone, Debug)]
struct Episode {
    seed: u64,
    chances: [u64; 3],
    late: u64,
    sizes: (u32, u32),
    config: Config,
}

fn episodes() -> impl Strategy<Value = Episode> {
    let favour = prop_oneof![Just(Favour::Balanced), Just(Favour::Throughput), Just(Favour::Energy)];
    let waves = prop_oneof![Just(vec![12, 24, 36]), Just(vec![1]), Just(vec![2, 3, 5, 8, 13, 21])];
    let settings = (favour, waves, 4u8..9, any::<bool>(), 100u64..1400, 0u64..100, 0u64..3);
    let link = (any::<u64>(), [0u64..30, 0..10, 0..20], 1u64..400);
    (settings, link, (0u32..150_000, 0u32..60_000)).prop_map(|(s, l, sizes)| {
        let (favour, waves, header, ports, segment, hold, baseline) = s;
        let config = Config {
            favour,
            waves,
            first_level: None,
            header,
            ports,
            segment: Octets(segment),
            hold: MS * hold,
            baseline: Rate::from_bits_per_second(baseline * 1_500_000),
            // Longer than any trouble lasts: giving up has a test of its own.
            give_up: Duration::from_secs(1_000_000),
            ..paper()
        };
        Episode { seed: l.0, chances: l.1, late: l.2, sizes, config }
    })
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn whatever_the_link_does_the_octets_are_whole_and_nothing_is_left(episode in episodes()) {
        let mut pair = pair_of(&episode.config, slow());
        let [lose, double, delay] = episode.chances;
        let (seed, late, mut n) = (episode.seed, episode.late, 0);
        pair.set_fate(Box::new(move |_| {
            n += 1;
            let drawn = splitmix64(seed, n);
            match drawn % 100 {
                x if x < lose => Fate::Lose,
                x if x < lose + double => Fate::Duplicate,
                x if x < lose + double + delay => Fate::Late(MS * (1 + (drawn >> 32) % late)),
                _ => Fate::Deliver,
            }
        }));
        exchange(&mut pair, episode.sizes.0, episode.sizes.1);
    }
}
