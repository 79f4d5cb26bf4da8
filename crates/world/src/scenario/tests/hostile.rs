//! No input makes the parser panic, hang, or say more than a line.

use airloom_testkit::cases;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::super::{Document, Scenario, ScenarioError};
use super::{CHAIN, GRAPH, fakes};

/// Everything that is done with a file, and what must hold of any answer.
fn exercise(octets: &[u8], sets: &[(&str, &str)]) {
    let registries = fakes();
    let read = || -> Result<Scenario, ScenarioError> {
        let mut document = Document::read("s.toml", octets)?;
        for (key, value) in sets {
            document.set(&registries, key, value)?;
        }
        document.scenario(&registries)
    };
    match read() {
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains('\n') && line.chars().count() < 20_000, "{line}");
            assert!(line.starts_with("s.toml") || line.starts_with("--"), "{line}");
        }
        Ok(scenario) => {
            let json = scenario.to_json().to_string();
            let again = Document::read("s.json", json.as_bytes()).and_then(|mut d| d.scenario(&registries));
            assert_eq!(again.as_ref(), Ok(&scenario), "{json}");
            assert_eq!(again.map(|s| s.to_json().to_string()), Ok(json));
        }
    }
}

/// Pieces that mean something to TOML or to a scenario.
const PIECES: &[&str] = &[
    "\"",
    "'",
    "\"\"\"",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "#",
    "\n",
    "\r",
    "\t",
    " ",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "-1",
    "0",
    "1e400",
    "nan",
    "inf",
    "-0.0",
    "9223372036854775807",
    "18446744073709551616",
    "true",
    "2026-01-01T00:00:00Z",
    "hosts",
    "links",
    "path",
    "mobile",
    "mobile[0]",
    "radio",
    "gateway",
    "count = 0",
    "count = 4096",
    "[hosts.x]",
    "[links.x]",
    "[[timeline]]",
    "between = []",
    "a.b.c.d = 1",
    "real = [0]",
    "\"10.0.0.0/8\"",
    "subnet = \"0.0.0.0/0\"",
    "subnet6 = \"::/0\"",
    "addresses = {}",
    "routes = []",
    "at = \"1s\"",
    "set = {}",
    "null",
];

#[derive(Clone, Debug)]
pub(super) enum Change {
    Drop(Index, usize),
    Put(Index, &'static str),
    Copy(Index, Index, usize),
    Flip(Index, u8),
}

pub(super) fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<Index>(), 1usize..20).prop_map(|(at, n)| Change::Drop(at, n)),
        (any::<Index>(), select(PIECES)).prop_map(|(at, piece)| Change::Put(at, piece)),
        (any::<Index>(), any::<Index>(), 1usize..80).prop_map(|(from, to, n)| Change::Copy(from, to, n)),
        (any::<Index>(), 0u8..8).prop_map(|(at, bit)| Change::Flip(at, bit)),
    ]
}

pub(super) fn changed(text: &str, changes: &[Change]) -> Vec<u8> {
    let mut octets = text.as_bytes().to_vec();
    for change in changes {
        if octets.is_empty() {
            break;
        }
        let len = octets.len();
        match change {
            Change::Drop(at, n) => {
                let at = at.index(len);
                octets.drain(at..(at + n).min(len));
            }
            Change::Put(at, piece) => {
                let at = at.index(len);
                octets.splice(at..at, piece.bytes());
            }
            Change::Copy(from, to, n) => {
                let from = from.index(len);
                let piece = octets[from..(from + n).min(len)].to_vec();
                let to = to.index(len);
                octets.splice(to..to, piece);
            }
            Change::Flip(at, bit) => octets[at.index(len)] ^= 1 << bit,
        }
    }
    octets
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn mutated_files_are_understood_or_refused(
        text in select(&[CHAIN, GRAPH][..]),
        changes in proptest::collection::vec(change(), 1..6),
    ) {
        exercise(&changed(text, &changes), &[]);
    }

    #[test]
    fn mutated_canonical_files_are_understood_or_refused(
        text in select(&[CHAIN, GRAPH][..]),
        changes in proptest::collection::vec(change(), 1..4),
    ) {
        let json = super::parse(text).map(|s| s.to_json().to_string()).unwrap_or_default();
        exercise(&changed(&json, &changes), &[]);
    }

    #[test]
    fn any_octets_are_refused(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        exercise(&octets, &[]);
    }

    #[test]
    fn any_text_of_meaningful_pieces_is_understood_or_refused(
        pieces in proptest::collection::vec(select(PIECES), 0..60),
    ) {
        exercise(pieces.concat().as_bytes(), &[]);
    }

    #[test]
    fn any_option_is_understood_or_refused(
        key in "(hosts|links|run|timeline|path|title|x)(\\.(mobile|radio|app|fetch|set|loss|rate|uplink|0|1|x|\\[1\\])){0,5}",
        value in prop_oneof![select(PIECES).prop_map(str::to_owned), ".{0,20}", "[0-9]{1,3}(ms|kbit/s|%|)"],
    ) {
        exercise(CHAIN.as_bytes(), &[(&key, &value)]);
        exercise(GRAPH.as_bytes(), &[(&key, &value), ("run.seed", "3")]);
    }
}

#[test]
fn deep_nesting_is_refused_without_deep_recursion() {
    for n in [100, 100_000] {
        exercise(format!("a = {}{}", "[".repeat(n), "]".repeat(n)).as_bytes(), &[]);
        exercise(format!("a = {}", "{a=".repeat(n)).as_bytes(), &[]);
        exercise(format!("{}a = 1", "a.".repeat(n)).as_bytes(), &[]);
        exercise(format!("[{}a]", "a.".repeat(n)).as_bytes(), &[]);
        exercise("{\"a\":".repeat(n).as_bytes(), &[]);
        exercise(CHAIN.as_bytes(), &[("run.x", &"[".repeat(n))]);
        exercise(CHAIN.as_bytes(), &[(&format!("run{}", ".x".repeat(n)), "1")]);
    }
}

#[test]
fn large_files_are_answered() {
    let mut many = "[hosts]\n".to_owned();
    for i in 0..60_000 {
        many += &format!("h{i} = {{}}\n");
    }
    exercise(many.as_bytes(), &[]);
    exercise(format!("title = \"{}\"", "x".repeat(1 << 20)).as_bytes(), &[]);
    exercise(format!("{} = 1", "x".repeat(1 << 20)).as_bytes(), &[]);
    exercise("#\n".repeat(1 << 19).as_bytes(), &[]);
    exercise(format!("path = [{}]", "\"a\",".repeat(1 << 18)).as_bytes(), &[]);
    exercise(format!("{}[[timeline]]\n", CHAIN).repeat(1).as_bytes(), &[]);
    exercise(
        (CHAIN.to_owned()
            + &"[[timeline]]\nat = \"1s\"\ntarget = \"radio\"\nset = { loss = 0 }\n".repeat(15_000))
            .as_bytes(),
        &[],
    );
}

#[test]
fn the_largest_scenario_is_understood() {
    let mut chain = "[hosts]\n".to_owned();
    for i in 0..4096 {
        chain += &format!("h{i} = {{}}\n");
    }
    chain += "[links]\n";
    for i in 0..4095 {
        chain += &format!("l{i} = {{ bearer = \"cell\", between = [\"h{i}\", \"h{}\"] }}\n", i + 1);
    }
    exercise(chain.as_bytes(), &[]);
    let cell = "[hosts]\nm = { count = 4095 }\nb = {}\n[links]\nl = { bearer = \"cell\", between = [\"m\", \"b\"] }\n";
    exercise(cell.as_bytes(), &[]);
    let scenario = super::parse(cell).unwrap();
    assert_eq!(scenario.links[0].near.len(), 4095);
}

#[test]
fn stations_of_links_are_bounded() {
    let mut text = "[hosts]\nm = { count = 4000 }\nb = {}\n[links]\n".to_owned();
    for i in 0..100 {
        text += &format!("l{i} = {{ bearer = \"cell\", between = [\"m\", \"b\"] }}\n");
    }
    let error = super::parse(&text).unwrap_err().to_string();
    assert_eq!(error, "s.toml:6:1: links.l1: all links together have at most 6000 stations");
}
