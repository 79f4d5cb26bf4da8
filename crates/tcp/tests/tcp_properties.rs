//! Whatever a link does to packets: both applications read exactly what the other wrote, and then nothing is left.

use airloom_base::random::Stream;
use airloom_base::units::{Octets, Rate};
use airloom_base::{Body, CloseReason, Duration, Instant, Packet, TransportEvent};
use airloom_tcp::config::{AckPolicy, Congestion, Nagle, SackAfterRto};
use airloom_tcp::{Config, Profile, Tcp};
use airloom_testkit::{End, Fate, LinkConfig, Pair, cases, hash_of};
use proptest::prelude::*;

fn pair(config: &Config, link: LinkConfig) -> Pair {
    Pair::new(Box::new(Tcp::new(config.clone(), 1)), Box::new(Tcp::new(config.clone(), 2)), link)
}

fn config() -> impl Strategy<Value = Config> {
    let profile = prop::sample::select(Profile::ALL);
    let congestion = prop::sample::select(
        &[
            Congestion::Tahoe,
            Congestion::Reno,
            Congestion::NewReno,
            Congestion::Cubic,
            Congestion::Westwood,
            Congestion::Vegas,
        ][..],
    );
    let buffers = prop::sample::select(&[(3000, 5000), (20_000, 20_000), (200_000, 1_000_000)][..]);
    (profile, congestion, buffers, any::<[bool; 5]>()).prop_map(|(profile, congestion, buffers, flags)| {
        Config {
            congestion,
            receive_buffer: Octets(buffers.0),
            initial_receive_window: Octets(buffers.0 / 2),
            send_buffer: Octets(buffers.1),
            sack: flags[0],
            timestamps: flags[1],
            limited_transmit: flags[2],
            nagle: if flags[3] { Nagle::Off } else { Nagle::Minshall },
            sack_after_rto: if flags[4] { SackAfterRto::Forget } else { SackAfterRto::Keep },
            delayed_ack: if flags[3] { profile.settings().delayed_ack } else { AckPolicy::None },
            // Giving up has tests of its own.
            give_up: Duration::from_secs(1_000_000),
            max_retransmissions: 0,
            syn_give_up: Duration::from_secs(1_000_000),
            ..profile.settings()
        }
    })
}

/// What an application writes: real octets and fillers in turns.
fn bodies(lengths: &[u16], source: u32) -> Vec<Body> {
    let body = |(i, len): (usize, &u16)| {
        if i % 2 == 0 {
            Body::filler(source + i as u32, u32::from(*len))
        } else {
            Body::Real(vec![i as u8; usize::from(*len) / 4].into())
        }
    };
    lengths.iter().enumerate().map(body).collect()
}

/// Loses, doubles and delays at random, but spares every packet after the first `bad` of each direction, so that
/// nobody has to give up.
fn trouble(seed: u64, loss: f64, bad: u64) -> airloom_testkit::LossPattern {
    let mut random = Stream::new(seed, "link");
    Box::new(move |sent| {
        if sent.index >= bad {
            return Fate::Deliver;
        }
        if random.chance(loss) {
            Fate::Lose
        } else if random.chance(0.05) {
            Fate::Duplicate
        } else if random.chance(0.1) {
            Fate::Late(Duration::from_millis(random.below(200)))
        } else {
            Fate::Deliver
        }
    })
}

/// Both write 30 kB, and every 20 ms the latest segment arrives at one of them with so many of its bits turned round.
fn garbled(config: &Config, seed: u64, flips: usize) -> Pair {
    let mut pair = pair(config, LinkConfig::default());
    let mut random = Stream::new(seed, "garble");
    pair.watch = true;
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, 30_000));
    pair.write(End::Server, Body::filler(1, 30_000));
    pair.finish(End::Client);
    pair.finish(End::Server);
    for round in 0..60_u64 {
        pair.drive_until(Instant::ZERO + Duration::from_millis(20 * round));
        let Some(seen) = pair.seen.len().checked_sub(1).map(|n| pair.seen[n].clone()) else { continue };
        let mut head = seen.head.clone();
        for _ in 0..flips {
            let bit = random.below(head.len() as u64 * 8) as usize;
            head[bit / 8] ^= 1 << (bit % 8);
        }
        let packet = Packet::build(
            |out| {
                out[..head.len()].copy_from_slice(&head);
                head.len()
            },
            Body::filler(2, seen.body as u32),
        );
        let to = if random.chance(0.5) { End::Client } else { End::Server };
        pair.inject(to, packet);
    }
    pair
}

/// A forged acknowledgement left a hole, so that the window cut the last segment: its part came back as a duplicate, and the
/// whole of it was sent again at once, each round trip.
#[test]
fn a_duplicate_that_is_a_part_of_a_segment_brings_no_other_one() {
    let config = Config {
        congestion: Congestion::NewReno,
        receive_buffer: Octets(3000),
        initial_receive_window: Octets(1500),
        send_buffer: Octets(5000),
        nagle: Nagle::Off,
        limited_transmit: false,
        sack_after_rto: SackAfterRto::Forget,
        max_retransmissions: 0,
        give_up: Duration::from_secs(10_000),
        ..Profile::Linux.settings()
    };
    let mut pair = garbled(&config, 10_805_404_966_412_370_276, 3);
    let before = pair.seen.len();
    pair.drive();
    assert_eq!(pair.next_step(), None);
    assert!(pair.seen.len() - before < 1000, "{}", pair.seen.len() - before);
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn both_streams_arrive_whole_and_the_agenda_runs_empty(
        config in config(),
        up in prop::collection::vec(any::<u16>(), 0..4),
        down in prop::collection::vec(any::<u16>(), 0..6),
        seed in any::<u64>(),
        loss in 0.0..0.4_f64,
        bad in 0..200_u64,
        slow in any::<bool>(),
    ) {
        let rate = slow.then(|| Rate::kbit(500));
        let mut pair = pair(&config, LinkConfig { rate: [rate, rate], ..LinkConfig::default() });
        pair.set_fate(trouble(seed, loss, bad));
        let (up, down) = (bodies(&up, 100), bodies(&down, 200));
        pair.open(End::Client);
        up.iter().for_each(|b| pair.write(End::Client, b.clone()));
        pair.finish(End::Client);
        // The server writes as soon as there is a connection; the harness keeps what does not fit.
        down.iter().for_each(|b| pair.write(End::Server, b.clone()));
        pair.finish(End::Server);
        pair.drive();
        let len = |b: &[Body]| b.iter().map(|b| b.len() as u64).sum::<u64>();
        prop_assert_eq!(pair.client().received, len(&down), "{:?} {:?}", pair.client().events.clone(), pair.server().events.clone());
        prop_assert_eq!(pair.server().received, len(&up), "{:?} {:?}", pair.client().events.clone(), pair.server().events.clone());
        prop_assert_eq!(pair.client().hash(), hash_of(&down));
        prop_assert_eq!(pair.server().hash(), hash_of(&up));
        prop_assert_eq!(pair.client().closed(), Some(CloseReason::Finished));
        // A server whose last acknowledgement was lost may learn by RST that the client is gone.
        prop_assert!(pair.server().closed().is_some());
        pair.assert_idle();
    }

    #[test]
    fn a_reader_that_stops_and_goes_on_loses_nothing(
        config in config(),
        pauses in prop::collection::vec(1..20_000_u64, 1..6),
        seed in any::<u64>(),
        loss in 0.0..0.2_f64,
    ) {
        let mut pair = pair(&config, LinkConfig::default());
        pair.set_fate(trouble(seed, loss, 300));
        let whole = [Body::filler(8, 150_000)];
        pair.open(End::Client);
        pair.write(End::Server, whole[0].clone());
        pair.finish(End::Server);
        for ms in pauses {
            pair.client().paused = true;
            let until = pair.now + Duration::from_millis(ms);
            pair.drive_until(until);
            pair.resume(End::Client);
        }
        pair.finish(End::Client);
        pair.drive();
        prop_assert_eq!(pair.client().received, 150_000, "{:?} {:?}", pair.client().events.clone(), pair.server().events.clone());
        prop_assert_eq!(pair.client().hash(), hash_of(&whole));
        pair.assert_idle();
    }

    #[test]
    fn two_that_open_and_close_at_once_agree(
        config in config(),
        seed in any::<u64>(),
        loss in 0.0..0.5_f64,
        apart in 0..120_u64,
    ) {
        let mut pair = pair(&config, LinkConfig::default());
        pair.set_fate(trouble(seed, loss, 40));
        pair.client().listen();
        pair.open(End::Client);
        pair.drive_until(Instant::ZERO + Duration::from_millis(apart));
        if pair.server().transport.is_none() {
            pair.open(End::Server);
        }
        for end in [End::Client, End::Server] {
            pair.write(end, Body::filler(1, 5000));
            pair.finish(end);
        }
        pair.drive();
        for end in [End::Client, End::Server] {
            prop_assert!(pair.host(end).saw(TransportEvent::Opened));
            prop_assert_eq!(pair.host(end).hash(), hash_of(&[Body::filler(1, 5000)]));
        }
        pair.assert_idle();
    }

    #[test]
    fn a_connection_that_is_reset_becomes_quiet(
        config in config(),
        seed in any::<u64>(),
        loss in 0.0..0.6_f64,
        when in 0..2000_u64,
        by_client in any::<bool>(),
    ) {
        let mut pair = pair(&config, LinkConfig::default());
        pair.set_fate(trouble(seed, loss, 400));
        pair.open(End::Client);
        pair.write(End::Client, Body::filler(1, 50_000));
        pair.write(End::Server, Body::filler(1, 50_000));
        pair.drive_until(Instant::ZERO + Duration::from_millis(when));
        pair.reset(if by_client { End::Client } else { End::Server });
        // The other one finishes some day, or finds out.
        for end in [End::Client, End::Server] {
            pair.finish(end);
        }
        pair.drive();
        // One that had finished and was acknowledged may wait for a peer whose RST was lost; no timer runs for that.
        prop_assert_eq!(pair.next_step(), None);
    }

    #[test]
    fn garbled_segments_never_panic_and_never_keep_the_agenda_busy(
        config in config(),
        seed in any::<u64>(),
        flips in 1..4_usize,
    ) {
        let mut pair = garbled(&config, seed, flips);
        // A forged acknowledgement can leave an end waiting for ever, without a timer: only timers count.
        pair.drive();
        prop_assert_eq!(pair.next_step(), None);
    }
}
