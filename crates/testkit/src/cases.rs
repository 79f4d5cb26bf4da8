use proptest::test_runner::Config;

/// The settings of a family of random tests: `quick` cases, or as many as `PROPTEST_CASES` asks for where that is more.
///
/// A number written into a test would override the variable, and `make nightly` would play no more cases than `make test`.
pub fn cases(quick: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    Config { cases: quick.max(asked.unwrap_or(0)), failure_persistence: None, ..Config::default() }
}
