//! Recorded transfers of Linux: the same link, with our `linux` profile at both ends.

use airloom_base::units::{Octets, Rate};
use airloom_base::{Body, Duration};
use airloom_tcp::config::InitialWindow;
use airloom_tcp::{Config, Profile, Tcp};
use airloom_testkit::{End, LinkConfig, Pair};
use serde_json::Value;

/// A number of a record.
pub fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// How fast the link of a case is.
pub fn rate(case: &Value) -> Option<Rate> {
    Rate::from_bits_per_second(number(&case["rate"]))
}

/// How long it takes one way.
pub fn delay(case: &Value) -> Duration {
    Duration::from_micros(number(&case["rtt_ms"]) * 500)
}

/// The two ends of a case; `watch` sets what is recorded.
pub fn begun(case: &Value, watch: impl FnOnce(&mut Pair)) -> Pair {
    let config = Config {
        initial_window: InitialWindow::Segments(number(&case["iw"]) as u16),
        sack: number(&case["sack"]) == 1,
        // As it was recorded: a buffer that stays as it is and limits nothing.
        receive_buffer: Octets(4 << 20),
        receive_autotuning: false,
        ..Profile::Linux.settings()
    };
    let link = LinkConfig {
        rate: [rate(case); 2],
        delay: delay(case),
        queue: number(&case["queue"]) as usize,
        overhead: 20,
    };
    let mut pair = Pair::new(Box::new(Tcp::new(config.clone(), 1)), Box::new(Tcp::new(config, 2)), link);
    watch(&mut pair);
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, number(&case["bytes"]) as u32));
    pair.finish(End::Client);
    pair
}
