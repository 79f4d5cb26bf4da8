//! The fuzz bodies on their corpora, and on random octets: `AIRLOOM_FUZZ_CASES` sets how many per target; few by default.

use std::fs;
use std::path::Path;

use airloom_fuzz_bodies::TARGETS;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};

#[test]
fn no_target_panics_on_random_octets() {
    let cases = std::env::var("AIRLOOM_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    for (name, target) in TARGETS {
        let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        let result = runner.run(&vec(any::<u8>(), 0..600), |octets| {
            target(&octets);
            Ok(())
        });
        assert!(result.is_ok(), "{name}: {result:?}");
    }
}

#[test]
fn no_target_panics_on_what_was_found_to_lead_somewhere_else() {
    for (name, target) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
        let mut octets = 0;
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let input = fs::read(entry.expect("an entry").path()).expect("a file");
            octets += input.len();
            target(&input);
        }
        assert!((1..=100_000).contains(&octets), "the corpus of {name} has {octets} octets");
    }
}

#[test]
fn every_target_is_one_of_cargo_fuzz() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("it is there");
    let programs: Vec<&str> =
        manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")).collect();
    let targets: Vec<String> = TARGETS.iter().map(|(name, _)| format!("{name}.rs\"")).collect();
    assert_eq!(programs, targets);
    for (name, _) in TARGETS {
        let program =
            fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).expect("it is there");
        assert!(program.contains(&format!("target(\"{name}\")")), "{name}");
    }
}
