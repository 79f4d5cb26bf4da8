//! The fuzz bodies on random octets. `AIRLOOM_FUZZ_CASES` sets how many per target; few by default.

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};

#[test]
fn no_target_panics_on_random_octets() {
    let cases = std::env::var("AIRLOOM_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    for (name, target) in airloom_fuzz_bodies::TARGETS {
        let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        let result = runner.run(&vec(any::<u8>(), 0..600), |octets| {
            target(&octets);
            Ok(())
        });
        assert!(result.is_ok(), "{name}: {result:?}");
    }
}
