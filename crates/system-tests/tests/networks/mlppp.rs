//! The shipped scenario of a bundle of PHS circuits.

use airloom_system_tests::complete;

const TEXT: &str = include_str!("../../../../python/airloom/scenarios/phs-384k.toml");

/// Goodput in kbit/s, and the segments that TCP sent again.
fn run(text: &str) -> (f64, f64) {
    let values = complete(text);
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
