use std::collections::BTreeMap;

use airloom_base::{Direction, Duration, Instant, Outbox, Parts};
use serde_json::{Value, json};

use super::{Placed, Radio};

const SLOT: Duration = Duration::from_millis(10);

fn radio_of(environment: &Value, seed: u64, unit: u16, circuit: &str) -> Result<Radio, String> {
    let environments = BTreeMap::from([("room".to_owned(), environment.clone())]);
    let mut records = Outbox::default();
    let parts = Parts { environments: &environments, ..Parts::new(seed, "link", 1, &mut records) };
    let placed = Placed { name: "room".into(), unit };
    Radio::new(&placed, &parts, circuit).map_err(|e| e.to_string())
}

fn radio(environment: &Value, seed: u64, unit: u16, circuit: &str) -> Radio {
    radio_of(environment, seed, unit, circuit).expect("a valid environment")
}

fn slots(n: u64) -> impl Iterator<Item = Instant> {
    (0..n).map(|n| Instant::ZERO + SLOT * n)
}

/// An environment without anything random.
fn bare(more: Value) -> Value {
    let mut table = json!({ "shadowing": { "unit": 0, "unit_per_decade": 0 }, "fading": null });
    let (Value::Object(table_of), Value::Object(more)) = (&mut table, more) else { panic!("tables") };
    table_of.extend(more);
    table
}

#[test]
fn kojima_2000_table_1_the_field_follows_the_four_indoor_points() {
    for (distance, measured) in [(10.0, 67.3), (20.0, 65.8), (26.4, 60.4), (31.6, 58.2)] {
        let field = radio(&bare(json!({ "distance": distance })), 1, 0, "a").mean_field();
        // The law's own deviation from the points is 2.3 dB.
        assert!((field - measured).abs() < 3.5, "{distance} m: {field}");
    }
}

#[test]
fn units_differ_by_their_offsets_and_by_a_shadowing_that_grows() {
    let offsets = bare(json!({ "offsets": [2.0, -3.0] }));
    let fields: Vec<f64> = (0..3).map(|unit| radio(&offsets, 1, unit, "a").mean_field()).collect();
    assert_eq!(fields, [70.3, 65.3, 68.3]);
    let spread = |distance: f64| {
        let environment = json!({ "distance": distance, "fading": null });
        let fields = (0..400).map(|seed| {
            radio(&environment, seed, 0, "a").mean_field() - radio(&environment, seed, 1, "a").mean_field()
        });
        let squares: f64 = fields.map(|d| d * d).sum();
        (squares / 400.0).sqrt()
    };
    // Two units of 1 dB each at 10 m, and of 3 dB at 100 m.
    let (near, far) = (spread(10.0), spread(100.0));
    assert!((near - 2f64.sqrt()).abs() < 0.15, "{near}");
    assert!((far - 3.0 * 2f64.sqrt()).abs() < 0.45, "{far}");
}

#[test]
fn a_rayleigh_channel_has_the_outage_and_the_crossings_of_the_formulas() {
    let environment = bare(json!({ "fading": { "law": "rayleigh", "doppler": 9.5 } }));
    let margin = 10.0;
    let (mut below, mut crossings, mut count) = (0u64, 0u64, 0u64);
    for seed in 0..20 {
        let mut radio = radio(&environment, seed, 0, "a");
        let threshold = radio.mean_field() - margin;
        let mut was_below = true;
        for at in (0..100_000u64).map(|n| Instant::ZERO + Duration::from_millis(1) * n) {
            let is_below = radio.field(at) < threshold;
            below += u64::from(is_below);
            crossings += u64::from(is_below && !was_below);
            was_below = is_below;
            count += 1;
        }
    }
    let rho = 10f64.powf(-margin / 20.0);
    let outage = 1.0 - (-rho * rho).exp();
    let rate = (2.0 * std::f64::consts::PI).sqrt() * 9.5 * rho * (-rho * rho).exp();
    let (share, per_second) = (below as f64 / count as f64, crossings as f64 / (count as f64 / 1000.0));
    assert!((share / outage - 1.0).abs() < 0.1, "{share} {outage}");
    assert!((per_second / rate - 1.0).abs() < 0.1, "{per_second} {rate}");
}

#[test]
fn the_default_fails_around_30_dbuv_and_hardly_at_40() {
    let share = |field: f64| {
        let environment = json!({
            "field_at_10m": field, "shadowing": { "unit": 0, "unit_per_decade": 0 }, "fading": { "doppler": 9.5 },
        });
        let means = (0..40).map(|seed| {
            let mut radio = radio(&environment, seed, 0, "a");
            slots(3000).map(|at| radio.probability(Direction::Downlink, at, SLOT)).sum::<f64>() / 3000.0
        });
        means.sum::<f64>() / 40.0
    };
    let shares = [30.0, 35.0, 40.0, 45.0].map(share);
    assert!((0.45..0.65).contains(&shares[0]), "{shares:?}");
    assert!((0.01..0.05).contains(&shares[1]), "{shares:?}");
    assert!((0.0..0.004).contains(&shares[2]), "{shares:?}");
    assert!(shares[3] < 1e-4, "{shares:?}");
}

#[test]
fn fades_and_people_are_common_to_those_who_share_them() {
    for (shared, same_unit, other_unit) in
        [("all", true, true), ("unit", true, false), ("circuit", false, false)]
    {
        let environment = bare(json!({
            "fading": { "shared": shared }, "people": { "shared": shared, "from": "0s" },
        }));
        let course = |unit, circuit| {
            let mut radio = radio(&environment, 5, unit, circuit);
            slots(2000).map(|at| radio.field(at)).collect::<Vec<_>>()
        };
        let one = course(0, "a");
        assert_eq!(one, course(0, "a"));
        assert_eq!(one == course(0, "b"), same_unit, "{shared}");
        assert_eq!(one == course(1, "c"), other_unit, "{shared}");
    }
}

#[test]
fn people_block_the_path_for_moments_of_a_visit() {
    let people = json!({ "from": "2s", "lasting": "20s", "every": "60s", "blocked": "300ms", "free": "1s", "depth": 50 });
    let environment = bare(json!({ "people": people }));
    let (mut blocked, mut moments) = (0u64, 0u64);
    for seed in 0..50 {
        let mut radio = radio(&environment, seed, 0, "a");
        let mut before = false;
        for at in slots(12_000) {
            let now = radio.probability(Direction::Uplink, at, SLOT) > 0.5;
            let second = at.as_secs_f64() % 60.0;
            assert!(!now || (1.99..22.01).contains(&second), "{second}");
            blocked += u64::from(now);
            moments += u64::from(now && !before);
            before = now;
        }
    }
    let share = blocked as f64 * 0.01 / (50.0 * 40.0);
    assert!((share - 0.3 / 1.3).abs() < 0.03, "{share}");
    let length = blocked as f64 * 0.01 / moments as f64;
    assert!((length - 0.3).abs() < 0.04, "{length}");
}

#[test]
fn what_happens_at_a_time_does_not_depend_on_when_it_was_looked_at_before() {
    let environment = bare(json!({
        "fading": { "doppler": 5 }, "people": { "from": "1s", "lasting": "10s", "every": "15s" },
    }));
    let (mut all, mut few) = (radio(&environment, 3, 0, "a"), radio(&environment, 3, 0, "a"));
    for (n, at) in slots(20_000).enumerate() {
        let field = all.field(at);
        if n.is_multiple_of(371) {
            assert_eq!(few.field(at), field);
        }
    }
}

#[test]
fn what_is_wrong_is_said() {
    let error = |environment: Value, unit| radio_of(&environment, 1, unit, "a").err().unwrap_or_default();
    assert!(error(json!({ "units": 2 }), 2).contains("0 to 1"));
    for (key, value) in [
        ("distance", json!(0)),
        ("units", json!(0)),
        ("offsets", json!([1, 2, 3, 4])),
        ("exponent", json!(-1)),
        ("fading", json!({ "doppler": -1 })),
        ("people", json!({ "blocked": "0s" })),
        ("people", json!({ "free": "999us" })),
        ("people", json!({ "every": "1s" })),
        ("frame_errors", json!({ "slope": -1 })),
        ("shadowing", json!({ "unit": 99 })),
    ] {
        assert!(error(json!({ key: value }), 0).contains(key), "{key}");
    }
    let mut records = Outbox::default();
    let parts = Parts::new(1, "link", 1, &mut records);
    let placed = Placed { name: "street".into(), unit: 0 };
    let error = Radio::new(&placed, &parts, "a").expect_err("there is none").to_string();
    assert!(error.contains("no environment `street`; there are: none"), "{error}");
}
