//! Reference figures of acknowledged mode, from an event simulation that is independent of this product, and the
//! set-up under which they hold.
//!
//! One-way delay 30 ms in each direction besides the TTI; reports on an uplink TTI of 20 ms, which loses half as much as
//! the downlink; polls with the last PDU, the last retransmission, a full window and (bulk) every 64 PDUs; missing
//! PDU indicator; Timer_Poll 200 ms; Timer_Status_Prohibit 150 ms; window 1024; no limit of transmissions; SDUs of 1500
//! octets. Isolated SDUs are 0.5 s or more apart, bulk is saturated.
//!
//! ASSUMPTION: the reference does not say how the grids of the two directions lie to each other, but it calls its RLC
//! round trip 90 to 120 ms: 90 ms and a wait for an uplink interval and one for a downlink interval. On grids that
//! begin together all delays here are multiples of 10 ms, every block lands exactly when an interval begins and never
//! waits for the downlink: 90 or 100 ms. So the uplink's grid begins [`OFFSET_MS`] later here. Any offset between two
//! multiples of 10 ms gives the same round trips (a test shows it), so the value is not fitted.

use airloom_base::random::Stream;
use airloom_base::record::Summary;
use airloom_base::{Body, Cx, Direction, Duration, Instant, Outbox, Packet, Parts, Station};
use airloom_bearers::umts::UmtsDch;
use serde_json::{Value, json};

const SDU_OCTETS: u32 = 1500;

/// How much later than the downlink's intervals those of the uplink begin: the middle of a downlink interval.
pub const OFFSET_MS: u64 = 5;

/// A bearer of the table's first two columns, and how its grids lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub kbit: u64,
    pub tti_ms: u64,
    /// `pdu` or `fec-frame`.
    pub per: &'static str,
    /// Block error rate of the downlink.
    pub loss: f64,
    /// `uplink_offset`.
    pub offset_ms: u64,
}

/// Figures of one cell of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub mean_ms: f64,
    pub median_ms: f64,
    pub p95_ms: f64,
    pub bulk_kbit: f64,
    /// Transmitted payload octets over delivered SDU octets.
    pub tx: f64,
}

const fn figures(mean_ms: f64, median_ms: f64, p95_ms: f64, bulk_kbit: f64, tx: f64) -> Figures {
    Figures { mean_ms, median_ms, p95_ms, bulk_kbit, tx }
}

/// One row: rate, TTI, unit of loss, and the figures at 1, 5, 10 and 20 %.
pub type Row = (u64, u64, &'static str, [Figures; 4]);

pub const LOSSES: [f64; 4] = [0.01, 0.05, 0.10, 0.20];

pub const TABLE: [Row; 5] = [
    (
        384,
        10,
        "fec-frame",
        [
            figures(81.0, 75.0, 80.0, 375.0, 1.024),
            figures(108.0, 76.0, 375.0, 360.0, 1.068),
            figures(150.0, 78.0, 430.0, 341.0, 1.128),
            figures(264.0, 168.0, 809.0, 299.0, 1.282),
        ],
    ),
    (
        384,
        10,
        "pdu",
        [
            figures(108.0, 78.0, 179.0, 375.0, 1.024),
            figures(227.0, 172.0, 449.0, 360.0, 1.069),
            figures(339.0, 304.0, 630.0, 341.0, 1.128),
            figures(572.0, 459.0, 1173.0, 295.0, 1.275),
        ],
    ),
    (
        256,
        20,
        "fec-frame",
        [
            figures(105.0, 100.0, 110.0, 250.0, 1.023),
            figures(130.0, 102.0, 413.0, 240.0, 1.066),
            figures(168.0, 103.0, 447.0, 227.0, 1.127),
            figures(268.0, 109.0, 814.0, 198.0, 1.294),
        ],
    ),
    (
        256,
        20,
        "pdu",
        [
            figures(136.0, 104.0, 229.0, 250.0, 1.024),
            figures(267.0, 270.0, 515.0, 240.0, 1.069),
            figures(390.0, 333.0, 703.0, 227.0, 1.129),
            figures(624.0, 511.0, 1217.0, 201.0, 1.279),
        ],
    ),
    (
        64,
        20,
        "fec-frame",
        [
            figures(248.0, 241.0, 284.0, 62.6, 1.024),
            figures(289.0, 247.0, 557.0, 60.1, 1.066),
            figures(353.0, 275.0, 699.0, 56.9, 1.128),
            figures(528.0, 425.0, 1150.0, 49.7, 1.291),
        ],
    ),
];

/// Keys of `rlc` that differ from the set-up above.
pub type Changes<'a> = &'a [(&'a str, Value)];

fn config(case: Case, poll_pdu: u16, changes: Changes) -> Value {
    let mut rlc = json!({
        "window": 1024, "max_dat": 0, "poll_sdu": 0, "poll_pdu": poll_pdu, "poll_window": 100,
        "timer_poll": "200ms", "timer_status_prohibit": "150ms",
    });
    for (key, value) in changes {
        rlc[*key] = value.clone();
    }
    json!({
        "rate": { "downlink": format!("{}kbit/s", case.kbit), "uplink": "64kbit/s" },
        "tti": { "downlink": format!("{}ms", case.tti_ms), "uplink": "20ms" },
        "loss": { "per": case.per, "downlink": case.loss, "uplink": case.loss / 2.0 },
        "uplink_offset": format!("{}ms", case.offset_ms),
        "core_delay": "0s",
        "rlc": rlc,
    })
}

struct Run {
    bearer: Box<dyn airloom_base::Bearer>,
    records: Outbox,
    now: Instant,
}

impl Run {
    fn new(case: Case, poll_pdu: u16, changes: Changes, seed: u64) -> Run {
        let mut records = Outbox::default();
        let mut parts = Parts::new(seed, "radio", 1, &mut records);
        let bearer = UmtsDch::build(&config(case, poll_pdu, changes), &mut parts).expect("a valid set-up");
        Run { bearer, records, now: Instant::ZERO }
    }
    fn send(&mut self) {
        let packet = Packet::build(|_| 40, Body::filler(1, SDU_OCTETS - 40));
        let mut cx = Cx { now: self.now, records: &mut self.records };
        self.bearer.send(&mut cx, Direction::Downlink, Station(0), packet);
    }
    /// Goes on to the next wake-up at `end` or before, or to `end`.
    fn step(&mut self, end: Instant) {
        let at = self.bearer.poll_timeout().filter(|at| *at <= end);
        self.now = at.unwrap_or(end);
        if at.is_some() {
            let mut cx = Cx { now: self.now, records: &mut self.records };
            self.bearer.handle_timeout(&mut cx);
        }
    }
}

/// Delays of `count` isolated SDUs in ms, sorted.
pub fn isolated(case: Case, changes: Changes, seed: u64, count: usize) -> Vec<f64> {
    let mut run = Run::new(case, 0, changes, seed);
    let mut gaps = Stream::new(seed, "gaps");
    let mut delays = Vec::with_capacity(count);
    while delays.len() < count {
        let start = run.now + Duration::from_millis(500) + Duration::from_nanos(gaps.below(500_000_000));
        while run.now < start {
            run.step(start);
        }
        run.send();
        while run.bearer.poll_delivery().is_none() {
            assert!(
                run.bearer.poll_timeout().is_some(),
                "stuck at {} after {} of {:?}",
                run.now,
                delays.len(),
                {
                    let mut s = Summary::default();
                    run.bearer.summarise(&mut s);
                    s.values
                }
            );
            run.step(Instant::FAR_FUTURE);
        }
        delays.push((run.now - start).as_secs_f64() * 1e3);
    }
    delays.sort_by(f64::total_cmp);
    delays
}

/// Rate in kbit/s and transmitted over delivered octets of a saturated link.
pub fn bulk(case: Case, changes: Changes, seed: u64, seconds: u64) -> (f64, f64) {
    let mut run = Run::new(case, 64, changes, seed);
    let end = Instant::ZERO + Duration::from_secs(seconds);
    (0..80).for_each(|_| run.send());
    let mut delivered = 0u64;
    while run.now < end {
        run.step(end);
        while run.bearer.poll_delivery().is_some() {
            delivered += u64::from(SDU_OCTETS);
            run.send();
        }
    }
    let mut summary = Summary::default();
    run.bearer.summarise(&mut summary);
    let sent = summary.values["downlink.rlc_pdus"] * 40.0;
    (delivered as f64 * 8e-3 / seconds as f64, sent / delivered as f64)
}

/// Mean and its standard error.
pub fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// The value that a share `q` of sorted `values` does not exceed.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    values[((values.len() as f64 * q) as usize).min(values.len() - 1)]
}

/// Our figures for one cell, and the standard error of the mean.
pub fn measure(case: Case, changes: Changes, seed: u64, count: usize, seconds: u64) -> (Figures, f64) {
    let delays = isolated(case, changes, seed, count);
    let (bulk_kbit, tx) = bulk(case, changes, seed, seconds);
    let (mean_ms, error) = mean(&delays);
    let figures = Figures {
        mean_ms,
        median_ms: quantile(&delays, 0.5),
        p95_ms: quantile(&delays, 0.95),
        bulk_kbit,
        tx,
    };
    (figures, error)
}
