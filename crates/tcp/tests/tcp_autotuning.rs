//! Buffers that grow: a path that needs a megabyte under way, between ends whose buffers begin small.

use airloom_base::units::{Octets, Rate};
use airloom_base::{Body, Duration, Instant, TransportEvent};
use airloom_tcp::{Config, Profile, Tcp};
use airloom_testkit::{End, LinkConfig, Pair, lose_data};

const SIZE: u32 = 10_000_000;

/// 40 Mbit/s and 200 ms: a megabyte of flight.
fn long_and_fat() -> LinkConfig {
    LinkConfig {
        rate: [Some(Rate::kbit(40_000)); 2],
        delay: Duration::from_millis(100),
        overhead: 20,
        ..LinkConfig::default()
    }
}

fn small(profile: Profile) -> Config {
    Config {
        receive_buffer: Octets(65_536),
        initial_receive_window: Octets(65_536),
        receive_buffer_max: Octets(4 << 20),
        send_buffer: Octets(16_384),
        send_buffer_max: Octets(4 << 20),
        receive_autotuning: false,
        send_autotuning: false,
        ..profile.settings()
    }
}

/// Seconds until all is read, with the largest number of octets that the sender had taken and not seen acknowledged.
fn upload(config: &Config) -> (f64, u64) {
    transfer(config, long_and_fat(), SIZE, &[])
}

/// The same for `size` octets over `link`, which loses the data segments of these numbers.
fn transfer(config: &Config, link: LinkConfig, size: u32, lost: &[u64]) -> (f64, u64) {
    let tcp = |secret| Box::new(Tcp::new(config.clone(), secret));
    let mut pair = Pair::new(tcp(1), tcp(2), link);
    pair.set_fate(lose_data(End::Client, lost));
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, size));
    pair.finish(End::Client);
    let mut most = 0;
    while pair.server().when(TransportEvent::Finished(0)).is_none() {
        let next = pair.next_step().expect("it goes on");
        pair.drive_until(next);
        most = most.max(pair.client().transport.as_ref().map_or(0, |t| t.unacknowledged(0)));
    }
    let read = pair.server().when(TransportEvent::Finished(0)).expect("all was read");
    (read.since(Instant::ZERO).as_secs_f64(), most)
}

#[test]
fn buffers_that_grow_leave_the_path_as_fast_as_large_ones_and_fixed_ones_do_not() {
    for profile in [Profile::Rfc, Profile::Linux] {
        for timestamps in [true, false] {
            let small = Config { timestamps, undo_by_timestamps: false, ..small(profile) };
            let large = Config {
                receive_buffer: Octets(4 << 20),
                initial_receive_window: Octets(4 << 20),
                send_buffer: Octets(4 << 20),
                ..small.clone()
            };
            let both = Config { receive_autotuning: true, send_autotuning: true, ..small.clone() };
            let receiver = Config { send_buffer: Octets(4 << 20), send_autotuning: false, ..both.clone() };
            let sender = Config { receive_autotuning: false, ..both.clone() };
            let times = [large, both, receiver, sender, small].map(|c| upload(&c).0);
            println!("{profile:?}, timestamps {timestamps}: {times:.2?}");
            let [large, both, receiver, sender, small] = times;
            // A window of 64 KiB passes once in a round trip: 30 s. So it is with the receiver's buffer fixed.
            assert!(sender > 30.0 && small > 30.0);
            // Both lag behind for some round trips while they grow.
            assert!(receiver < large * 1.1 && both < large * 1.15, "{times:?}");
        }
    }
}

#[test]
fn a_send_buffer_is_twice_the_congestion_window_and_not_more() {
    let config = Config {
        receive_buffer: Octets(400_000),
        initial_receive_window: Octets(400_000),
        send_autotuning: true,
        ..small(Profile::Linux)
    };
    // The flight is limited by the receiver, and the congestion window grows only while it limits.
    let (_, most) = upload(&config);
    assert!((400_000..2_000_000).contains(&most), "{most}");
    let limited = Config { send_buffer_max: Octets(100_000), ..config };
    let (_, most) = upload(&limited);
    assert!((98_000..=100_000).contains(&most), "{most}");
}

#[test]
fn a_reader_that_stops_is_offered_no_more_than_the_largest_buffer() {
    let config = Config {
        receive_autotuning: true,
        receive_buffer_max: Octets(300_000),
        send_autotuning: true,
        ..small(Profile::Linux)
    };
    let tcp = |secret| Box::new(Tcp::new(config.clone(), secret));
    let mut pair = Pair::new(tcp(1), tcp(2), long_and_fat());
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, SIZE));
    pair.drive_until(Instant::ZERO + Duration::from_secs(4));
    let before = pair.server().received;
    pair.server().paused = true;
    pair.drive_until(Instant::ZERO + Duration::from_secs(10));
    pair.resume(End::Server);
    let held = pair.server().received - before;
    assert!(held <= 300_000, "{held}");
    // It had grown to that.
    assert!(held > 250_000, "{held}");
}

#[test]
fn a_window_with_several_losses_does_not_stop_between_buffers_that_grow() {
    // 2 Mbit/s and 100 ms without a limit of the queue. The second loss is one of the same window, so it takes two round
    // trips, half a second, until something is acknowledged again.
    let link = || LinkConfig { rate: [Some(Rate::kbit(2_000)); 2], overhead: 20, ..LinkConfig::default() };
    let growing = Config { receive_autotuning: true, send_autotuning: true, ..small(Profile::Linux) };
    let large = Config {
        receive_buffer: Octets(4 << 20),
        initial_receive_window: Octets(4 << 20),
        send_buffer: Octets(4 << 20),
        ..small(Profile::Linux)
    };
    for lost in [[47, 60], [50, 70], [52, 61], [60, 75]] {
        let (growing, _) = transfer(&growing, link(), 300_000, &lost);
        let (large, _) = transfer(&large, link(), 300_000, &lost);
        println!("{lost:?}: {growing:.3} {large:.3}");
        assert!(growing < large * 1.01, "{lost:?}: {growing:.3} s, {large:.3} s between large buffers");
    }
}
