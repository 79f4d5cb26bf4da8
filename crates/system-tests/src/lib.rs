//! Tests of whole networks. Here: a scenario's text in, the numbers of its run out.
//!
//! Not here: harnesses for a single machine (`testkit`), and runs with real programs, which are Python's tests.

use std::collections::BTreeMap;

use airloom_base::Duration;
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::World;
use airloom_world::scenario::Scenario;

/// The network of a scenario.
///
/// # Panics
///
/// Where the text is wrong, with what is.
pub fn build(text: &str) -> World {
    let scenario = Scenario::parse("test.toml", text).unwrap_or_else(|e| panic!("{e}"));
    scenario.build(false).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs until all applications are done, or so many seconds: what it ended with, and its numbers.
pub fn play(text: &str, seconds: u64) -> (Outcome, BTreeMap<String, f64>) {
    let mut world = build(text);
    let limit = Duration::from_secs(seconds);
    let outcome = virtual_time::run(&mut world, Until::Done { limit }, |_, _| true);
    world.close_books();
    (outcome, world.summary().values.into_iter().collect())
}

/// The numbers of a run that takes two hours at most.
///
/// # Panics
///
/// Where it takes longer.
pub fn complete(text: &str) -> BTreeMap<String, f64> {
    let (outcome, values) = play(text, 7200);
    assert_eq!(outcome, Outcome::Complete, "{values:?}");
    values
}

/// The table of a wire between two hosts, with more keys if any.
pub fn wire(name: &str, [near, far]: [&str; 2], more: &str) -> String {
    format!("[links.{name}]\nbearer = \"wireline\"\nbetween = [\"{near}\", \"{far}\"]\n{more}\n")
}
