//! The shipped scenario of a bundle of PHS circuits.

use airloom_base::Duration;
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::scenario::Scenario;

const TEXT: &str = include_str!("../../../python/airloom/scenarios/phs-384k.toml");

/// Goodput in kbit/s, and the segments that TCP sent again.
fn run(text: &str) -> (f64, f64) {
    let scenario = Scenario::parse("phs-384k.toml", text).unwrap_or_else(|e| panic!("{e}"));
    let mut world = scenario.build(false).unwrap_or_else(|e| panic!("{e}"));
    let limit = Until::Done { limit: Duration::from_secs(600) };
    assert_eq!(virtual_time::run(&mut world, limit, |_, _| true), Outcome::Complete);
    let values = world.summary().values;
    (values["goodput_bit_s"] / 1000.0, values["resent"])
}

/// The scenario without its timeline.
fn undisturbed(copies: u16) -> String {
    let (before, behind) = TEXT.split_once("[[timeline]]").expect("it has one");
    let (_, run) = behind.split_once("[run]").expect("it has that too");
    before.replace("copies = 6", &format!("copies = {copies}")) + "[run]" + run
}

#[test]
fn a_file_comes_at_six_times_the_rate_of_one_circuit() {
    let (one, six) = (run(&undisturbed(1)), run(&undisturbed(6)));
    assert!((5.0..6.1).contains(&(six.0 / one.0)), "{one:?} {six:?}");
    assert_eq!(six.1, 0.0, "nothing is sent again");
    assert!((280.0..330.0).contains(&six.0), "{six:?}");
}

#[test]
fn a_released_circuit_makes_tcp_send_again_and_the_file_comes_later_than_over_six() {
    let (released, six) = (run(TEXT), run(&undisturbed(6)));
    assert!(released.1 > 0.0 && released.0 < six.0, "{released:?} {six:?}");
}
