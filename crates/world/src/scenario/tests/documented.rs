//! The examples of the reference are good scenarios, and the keys it explains are the keys there are.

use super::super::hosts::HOST_KEYS;
use super::super::links::LINK_KEYS;
use super::super::parse::KEYS;
use super::super::routes::ROUTE_KEYS;
use super::super::run::RUN_KEYS;
use super::super::timeline::{CHANGE_KEYS, TIMELINE_KEYS};
use super::super::{Document, Registries, scenario_schema};

const REFERENCE: &str = include_str!("../../../../../docs/reference/scenario.md");

#[test]
fn every_example_of_the_reference_is_checked_and_runs_from_its_own_json() {
    let schema = scenario_schema(&Registries::built_in());
    let mut count = 0;
    for block in REFERENCE.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        let scenario = Document::read("scenario.md", text.as_bytes())
            .and_then(|mut d| d.check())
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(super::schema::obeys_whole(&schema, &toml::from_str(text).unwrap()), "{text}");
        let json = scenario.to_json().to_string();
        let again = Document::read("run.json", json.as_bytes()).and_then(|mut d| d.check());
        assert_eq!(again.unwrap(), scenario);
        count += 1;
    }
    assert!(count >= 8, "{count} examples");
}

#[test]
fn every_key_is_explained() {
    let families = [KEYS, HOST_KEYS, LINK_KEYS, ROUTE_KEYS, RUN_KEYS, TIMELINE_KEYS, CHANGE_KEYS];
    for key in families.concat() {
        let explained = [format!("`{key}`"), format!("[{key}]")];
        assert!(explained.iter().any(|e| REFERENCE.contains(e)), "`{key}` is not explained");
    }
}
