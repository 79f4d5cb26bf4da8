//! EGPRS goodput against the figures of an independent event simulation.
//!
//! Four timeslots, MCS-4, window 384, a poll every 20 blocks, answered after 60 ms, 40 ms on the way back, reports lost
//! like blocks. Reference in kbit/s of RLC payload at block error rates of 0, 1, 5 and 10 %: 70.40, 69.67, 66.90, 63.37,
//! with 1.000, 1.010, 1.052 and 1.111 transmissions a block; window 128 at 10 %: 63.29.

use airloom_base::record::Summary;
use airloom_base::{Bearer, Body, Cx, Direction, Duration, Instant, Outbox, Packet, Parts, Station};
use airloom_bearers::egprs::Egprs;
use serde_json::json;

const PACKET: u32 = 1500;
/// Octets of RLC payload of such a packet: LLC and SNDCP around it.
const LLC_FRAME: f64 = 1510.0;
const SECONDS: u64 = 600;

/// Goodput on the RLC layer in kbit/s, and transmissions a block.
fn bulk(loss: f64, window: u16) -> (f64, f64) {
    let config = json!({
        "tbf": "always", "loss": loss, "window": { "downlink": window, "uplink": 192 },
        "queue": "100packets",
    });
    let mut records = Outbox::default();
    let mut parts = Parts::new(1, "radio", 1, &mut records);
    let mut bearer: Box<dyn Bearer> = Egprs::build(&config, &mut parts).expect("a valid set-up");
    let send = |bearer: &mut Box<dyn Bearer>, records: &mut Outbox, now: Instant| {
        let packet = Packet::build(|_| 40, Body::filler(1, PACKET - 40));
        bearer.send(&mut Cx { now, records }, Direction::Downlink, Station(0), packet);
    };
    (0..20).for_each(|_| send(&mut bearer, &mut records, Instant::ZERO));
    let end = Instant::ZERO + Duration::from_secs(SECONDS);
    let mut delivered = 0u64;
    while let Some(now) = bearer.poll_timeout().filter(|at| *at <= end) {
        bearer.handle_timeout(&mut Cx { now, records: &mut records });
        while bearer.poll_delivery().is_some() {
            delivered += 1;
            send(&mut bearer, &mut records, now);
        }
    }
    let mut summary = Summary::default();
    bearer.summarise(&mut summary);
    let value = |name: &str| summary.values[&format!("downlink.{name}")];
    let first = value("rlc_blocks") - value("rlc_resent") - value("rlc_pre_emptive");
    // Every LLC frame but few costs one length indicator.
    (delivered as f64 * (LLC_FRAME + 1.0) * 8e-3 / SECONDS as f64, value("rlc_blocks") / first)
}

#[test]
fn goodput_and_transmissions_agree_with_the_reference() {
    let table = [
        (0.0, 384, 70.40, 1.000),
        (0.01, 384, 69.67, 1.010),
        (0.05, 384, 66.90, 1.052),
        (0.10, 384, 63.37, 1.111),
        (0.10, 128, 63.29, 1.111),
    ];
    for (loss, window, kbit, tx) in table {
        let ours = bulk(loss, window);
        println!("loss {loss} window {window}: {:.2} kbit/s, {:.3} (reference {kbit}, {tx})", ours.0, ours.1);
        assert!((ours.0 / kbit - 1.0).abs() < 0.03, "{loss} {window}: {ours:?}");
        assert!((ours.1 / tx - 1.0).abs() < 0.03, "{loss} {window}: {ours:?}");
    }
}
