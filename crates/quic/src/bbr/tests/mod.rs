//! Against the library's own, over links of known rate.

mod road;

use std::cell::Cell;

use airloom_base::units::Rate;
use airloom_base::{Body, Duration, Instant};
use airloom_testkit::{End, Fate, LinkConfig, Pair};

use crate::{Config, Controller, Quic};

thread_local! {
    /// Connections of this thread have the library's BBR.
    pub(super) static LIBRARYS: Cell<bool> = const { Cell::new(false) };
}

/// A path of so many Mbit/s and milliseconds there and back, with a queue of so many products of both, that loses a share.
#[derive(Clone, Copy, Debug)]
struct Way {
    mbit: f64,
    rtt: u64,
    queue: f64,
    loss: f64,
}

/// What became of a transfer.
#[derive(Debug)]
struct Outcome {
    /// Share of the rate, from the opening to the end.
    share: f64,
    drops: u64,
}

fn transfer(way: Way, megabytes: u32, is_librarys: bool) -> Outcome {
    LIBRARYS.set(is_librarys);
    let config = Config { controller: Controller::Bbr, ..Config::default() };
    let quic = |end: &str| Box::new(Quic::new(config.clone(), 1, end));
    let packets = way.mbit * 1e6 / 8.0 * way.rtt as f64 / 1e3 / 1500.0;
    let link = LinkConfig {
        rate: [Some(Rate::kbit((way.mbit * 1e3) as u64)); 2],
        delay: Duration::from_micros(way.rtt * 500),
        queue: ((packets * way.queue) as usize).max(4),
        overhead: 20,
    };
    let mut pair = Pair::new(quic("client"), quic("server"), link);
    pair.endless = u64::MAX;
    pair.hashing = false;
    let mut state = 1u64;
    if way.loss > 0.0 {
        pair.set_fate(Box::new(move |sent| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let is_lost = sent.from == End::Client && (state >> 33) as f64 / (1u64 << 31) as f64 <= way.loss;
            if is_lost { Fate::Lose } else { Fate::Deliver }
        }));
    }
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, megabytes * 1_000_000));
    pair.finish(End::Client);
    let whole = u64::from(megabytes) * 1_000_000;
    while pair.server().received < whole {
        let at = pair.next_step().expect("something happens");
        pair.drive_until(at);
    }
    let seconds = pair.now.since(Instant::ZERO).as_secs_f64();
    LIBRARYS.set(false);
    Outcome { share: whole as f64 * 8.0 / seconds / (way.mbit * 1e6), drops: pair.link.queue_drops }
}

#[test]
fn a_path_faster_than_nanoseconds_for_octets_comes_to_its_end() {
    for (mbit, rtt) in [(10_000.0, 2), (40_000.0, 2)] {
        let outcome = transfer(Way { mbit, rtt, queue: 4.0, loss: 0.0 }, 20, false);
        assert!(outcome.share > 0.02, "{outcome:?}");
    }
}

#[test]
fn a_path_is_used_at_least_as_well_as_by_the_librarys() {
    // The share of the rate: headers are a twentieth, Startup and the first look at the path's length some of the rest.
    for (way, megabytes, least) in [
        (Way { mbit: 2.0, rtt: 50, queue: 1.0, loss: 0.0 }, 3, 0.88),
        (Way { mbit: 10.0, rtt: 40, queue: 1.0, loss: 0.0 }, 15, 0.9),
        (Way { mbit: 10.0, rtt: 40, queue: 0.25, loss: 0.0 }, 15, 0.88),
        // A hundredth less each round, for the 34 rounds of a cycle (5.3.3.5.2): 0.85 of it.
        (Way { mbit: 10.0, rtt: 40, queue: 1.0, loss: 0.01 }, 15, 0.72),
    ] {
        let [ours, librarys] = [false, true].map(|is_librarys| transfer(way, megabytes, is_librarys));
        let told = format!("{way:?}: {ours:?}, the library's {librarys:?}");
        println!("{told}");
        assert!(ours.share > least, "{told}");
        // The library's draws differ each time, and where packets are lost at random they decide: 0.4 to 0.8 of the rate.
        assert!(way.loss > 0.0 || ours.share > 0.93 * librarys.share, "{told}");
        assert!(ours.drops < 200, "{told}");
    }
}
