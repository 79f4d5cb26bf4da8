//! The shipped scenario of a PHS circuit.

use airloom_base::Duration;
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::scenario::Scenario;

const TEXT: &str = include_str!("../../../python/airloom/scenarios/phs-circuit.toml");

#[test]
fn a_file_comes_over_a_circuit_at_nearly_its_rate() {
    let scenario = Scenario::parse("phs-circuit.toml", TEXT).unwrap_or_else(|e| panic!("{e}"));
    let mut world = scenario.build(false).unwrap_or_else(|e| panic!("{e}"));
    let limit = Until::Done { limit: Duration::from_secs(600) };
    assert_eq!(virtual_time::run(&mut world, limit, |_, _| true), Outcome::Complete);
    let values = world.summary().values;
    assert!(values["phs.downlink.piafs_crc_errors"] > 10.0, "the radio spoils frames: {values:?}");
    assert_eq!(values["phs.downlink.lost"], 0.0);
    assert_eq!(values["resent"], values["spurious"], "what PIAFS repeats, TCP need not");
    // 58.4 kbit/s less 2 %, headers, and the frames that are not filled up.
    assert!(values["goodput_bit_s"] > 40_000.0 && values["goodput_bit_s"] < 57_000.0, "{values:?}");
}
