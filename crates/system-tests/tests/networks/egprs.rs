//! The shipped scenario of an EGPRS cell.

use airloom_system_tests::complete;

const TEXT: &str = include_str!("../../../../python/airloom/scenarios/egprs-page.toml");

#[test]
fn four_mobiles_in_a_cell_load_their_pages() {
    let values = complete(TEXT);
    let of =
        |name: &str| -> f64 { values.iter().filter(|(key, _)| key.ends_with(name)).map(|(_, v)| *v).sum() };
    assert!(of("downlink.rlc_resent") > 0.0, "the radio loses blocks: {values:?}");
    // 40 kB each through a Gb of 64 kbit/s: 20 s at least.
    assert!(values["simulated_s"] > 20.0 && values["simulated_s"] < 120.0, "{}", values["simulated_s"]);
    assert_eq!((of("].pages"), of("].failed")), (4.0, 0.0));
}
