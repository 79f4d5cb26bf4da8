//! The shipped scenario of a PHS circuit.

use airloom_system_tests::complete;

const TEXT: &str = include_str!("../../../../python/airloom/scenarios/phs-circuit.toml");

#[test]
fn a_file_comes_over_a_circuit_at_nearly_its_rate() {
    let values = complete(TEXT);
    assert!(values["phs.downlink.piafs_crc_errors"] > 10.0, "the radio spoils frames: {values:?}");
    assert_eq!(values["phs.downlink.lost"], 0.0);
    assert_eq!(values["resent"], values["spurious"], "what PIAFS repeats, TCP need not");
    // 58.4 kbit/s less 2 %, headers, and the frames that are not filled up.
    assert!(values["goodput_bit_s"] > 40_000.0 && values["goodput_bit_s"] < 57_000.0, "{values:?}");
}
