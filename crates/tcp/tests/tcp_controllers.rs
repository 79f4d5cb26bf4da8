//! What each controller does to a link: does it fill it, does it keep the queue short, what does a loss cost?

use airloom_base::record::Record;
use airloom_base::units::Rate;
use airloom_base::{Body, Duration, Instant};
use airloom_tcp::config::{Congestion, EcnUse, IdleRestart, Pacing, SlowStartExit};
use airloom_tcp::{Config, Profile, Tcp};
use airloom_testkit::{End, Fate, LinkConfig, Pair};

const MSS: u64 = 1448;

/// One way of 2 Mbit/s and 50 ms: 17 segments there and back.
fn link(queue: usize) -> LinkConfig {
    let rate = Rate::from_bits_per_second(2_000_000);
    LinkConfig { rate: [rate, rate], delay: Duration::from_millis(50), queue, overhead: 20 }
}

struct Outcome {
    /// Octets per second of what was read, over the time until all was.
    goodput: f64,
    resent: u64,
    drops: u64,
    marks: u64,
    timeouts: u32,
    /// (time, window in segments, octets in flight, smoothed round-trip time) at each change.
    trace: Vec<(f64, u64, u64, Duration)>,
}

/// A transfer of `octets` to the server; every packet with data whose number `lost` picks is lost.
fn transfer(config: &Config, link: LinkConfig, octets: u32, lost: impl Fn(u64) -> bool + 'static) -> Outcome {
    transfer_marked(config, link, usize::MAX, octets, lost)
}

/// The same; the queue marks from `mark_from` packets on.
fn transfer_marked(
    config: &Config,
    link: LinkConfig,
    mark_from: usize,
    octets: u32,
    lost: impl Fn(u64) -> bool + 'static,
) -> Outcome {
    let mut pair =
        Pair::new(Box::new(Tcp::new(config.clone(), 1)), Box::new(Tcp::new(config.clone(), 2)), link);
    pair.set_fate(Box::new(move |sent| {
        let hit = sent.from == End::Client && sent.body > 0 && lost(sent.data_index);
        if hit { Fate::Lose } else { Fate::Deliver }
    }));
    pair.link.mark_from = mark_from;
    pair.outbox.ask_facts(false, true);
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, octets));
    let mut read = Instant::ZERO;
    while pair.server().received < u64::from(octets) {
        read += Duration::from_millis(10);
        assert!(read < Instant::ZERO + Duration::from_secs(1000), "{:?} comes to a stop", config.congestion);
        pair.drive_until(read);
    }
    let facts = pair.client().transport.as_ref().map(|t| t.facts()).expect("a connection");
    let mut trace = Vec::new();
    for record in &pair.outbox.facts {
        if let Record::Congestion(c) = record
            && c.in_flight > 0
        {
            trace.push((c.at.as_secs_f64(), c.cwnd / MSS, c.in_flight, c.srtt.unwrap_or_default()));
        }
    }
    Outcome {
        goodput: f64::from(octets) / read.as_secs_f64(),
        resent: facts.resent,
        drops: pair.link.queue_drops,
        marks: pair.link.ce_marks,
        timeouts: facts.rto_count,
        trace,
    }
}

fn with(congestion: Congestion) -> Config {
    Config { congestion, ..Profile::Linux.settings() }
}

/// A fixed choice of about one packet in a hundred.
fn one_in_a_hundred(n: u64) -> bool {
    let mut x = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 29;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 32).is_multiple_of(100)
}

/// What the link carries of payload, octets per second.
const LINE: f64 = 250_000.0 * 1448.0 / 1500.0;

/// The round trip of this link without a queue, a segment's own serialisation included.
const BASE: Duration = Duration::from_micros(106_200);

fn never(_: u64) -> bool {
    false
}

#[test]
fn every_controller_fills_a_clean_link() {
    for congestion in [
        Congestion::Reno,
        Congestion::NewReno,
        Congestion::Cubic,
        Congestion::Westwood,
        Congestion::Vegas,
        Congestion::Bbr,
    ] {
        for queue in [20, 200] {
            let share = transfer(&with(congestion), link(queue), 8_000_000, never).goodput / LINE;
            assert!((0.95..=1.0).contains(&share), "{congestion:?}, queue {queue}: {share:.3}");
        }
    }
    // Tahoe has no recovery, so that it pays more for each overflow.
    let share = transfer(&with(Congestion::Tahoe), link(20), 8_000_000, never).goodput / LINE;
    assert!((0.85..=1.0).contains(&share), "{share:.3}");
}

#[test]
fn one_loss_in_a_hundred_halves_newreno_and_hardly_touches_bbr_and_westwood() {
    let share = |c| transfer(&with(c), link(200), 8_000_000, one_in_a_hundred).goodput / LINE;
    let (newreno, westwood, bbr) =
        (share(Congestion::NewReno), share(Congestion::Westwood), share(Congestion::Bbr));
    assert!(newreno < 0.65, "NewReno {newreno:.3}");
    assert!(westwood > 0.8, "Westwood+ {westwood:.3}");
    assert!(bbr > 0.93, "BBR {bbr:.3}");
}

#[test]
fn vegas_keeps_the_queue_between_alpha_and_beta() {
    let outcome = transfer(&with(Congestion::Vegas), link(200), 8_000_000, never);
    let (.., window, _, srtt) = outcome.trace.last().map(|t| ((), t.1, t.2, t.3)).expect("a trace");
    // Segments that wait: what is in the window and not on the path.
    let queued = window as f64 * (1.0 - BASE.as_secs_f64() / srtt.as_secs_f64());
    // Vegas judges by the least round-trip time of a round, this is the smoothed one: half a segment more.
    assert!((2.0..=4.5).contains(&queued), "{queued:.2} segments of {window} wait, {srtt:?}");
    assert_eq!(outcome.drops, 0);
}

#[test]
fn bbr_keeps_about_one_more_window_in_flight_and_looks_for_the_least_delay_every_ten_seconds() {
    let outcome = transfer(&with(Congestion::Bbr), link(200), 8_000_000, never);
    let calm = outcome.trace.iter().filter(|t| t.0 > 5.0);
    let most = calm.clone().map(|t| t.3).max().expect("a trace");
    assert!(most < BASE * 5 / 2, "{most:?}");
    // ProbeRtt: four segments in flight after ten seconds, and again after twenty.
    for from in [10.0, 20.0] {
        let mut probes = calm.clone().filter(|t| t.0 > from && t.0 < from + 5.0);
        assert!(probes.any(|t| t.1 == 4), "after {from} s");
    }
}

#[test]
fn hystart_leaves_slow_start_before_the_queue_overflows() {
    for congestion in [Congestion::NewReno, Congestion::Cubic] {
        let drops = |hystart| {
            let config = Config { hystart, ..with(congestion) };
            transfer(&config, link(80), 500_000, never).drops
        };
        let off = drops(SlowStartExit::Off);
        assert!(off > 40, "{congestion:?}: {off}");
        assert_eq!(drops(SlowStartExit::Linux), 0, "{congestion:?}");
        // HyStart++ goes on for five rounds at a quarter of the speed: three times the window.
        let plus = drops(SlowStartExit::Rfc9406);
        assert!(plus * 10 < off, "{congestion:?}: {plus} of {off}");
    }
}

#[test]
fn ecn_keeps_the_queue_short_without_a_loss() {
    for (profile, congestion) in [
        (Profile::Rfc, Congestion::NewReno),
        (Profile::Rfc, Congestion::Cubic),
        (Profile::Linux, Congestion::NewReno),
        (Profile::Linux, Congestion::Cubic),
    ] {
        let config = |ecn| Config { congestion, ecn, ..profile.settings() };
        let off = transfer_marked(&config(EcnUse::Off), link(60), 20, 8_000_000, never);
        let on = transfer_marked(&config(EcnUse::On), link(60), 20, 8_000_000, never);
        assert!(off.drops > 0 && off.marks == 0, "{profile:?} {congestion:?}");
        assert!(on.marks > 0, "{profile:?} {congestion:?}");
        assert_eq!((on.drops, on.resent, on.timeouts), (0, 0, 0), "{profile:?} {congestion:?}");
        assert!(on.goodput > 0.9 * LINE, "{profile:?} {congestion:?}: {:.3}", on.goodput / LINE);
    }
}

#[test]
fn rfc_8511_abe_shrinks_the_window_less_and_keeps_more_of_a_link_with_a_short_queue() {
    let config =
        |abe| Config { abe, ecn: EcnUse::On, congestion: Congestion::NewReno, ..Profile::Rfc.settings() };
    let outcome = |abe| transfer_marked(&config(abe), link(100), 3, 8_000_000, never);
    let (without, with) = (outcome(false), outcome(true));
    assert!(with.goodput > 1.03 * without.goodput, "{:.0} {:.0}", with.goodput, without.goodput);
}

#[test]
fn a_paced_sender_does_not_overflow_a_queue_with_a_burst_after_an_idle_time() {
    let drops = |pacing| {
        let config = Config { pacing, idle_restart: IdleRestart::Off, ..with(Congestion::NewReno) };
        let mut pair =
            Pair::new(Box::new(Tcp::new(config.clone(), 1)), Box::new(Tcp::new(config, 2)), link(15));
        pair.open(End::Client);
        pair.write(End::Client, Body::filler(1, 1_000_000));
        pair.drive_until(Instant::ZERO + Duration::from_secs(30));
        assert_eq!(pair.server().received, 1_000_000);
        let before = pair.link.queue_drops;
        // More than the queue holds, less than the window.
        pair.write(End::Client, Body::filler(2, 20 * MSS as u32));
        pair.drive_until(Instant::ZERO + Duration::from_secs(60));
        assert_eq!(pair.server().received, 1_000_000 + 20 * MSS);
        pair.link.queue_drops - before
    };
    assert!(drops(Pacing::Off) > 0);
    assert_eq!(drops(Pacing::On), 0);
}
