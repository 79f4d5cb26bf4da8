//! Scenario files.

use airloom_world::scenario::Scenario;

/// A scenario file is understood or refused in one line.
pub fn scenario(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    match Scenario::parse("fuzzed.toml", &text) {
        Ok(scenario) => {
            let _ = scenario.to_json();
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}
