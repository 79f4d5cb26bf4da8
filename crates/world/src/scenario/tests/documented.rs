//! The examples of the reference are good scenarios, and the keys it explains are the keys there are.

use airloom_testkit::cases;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::hosts::{HOST_KEYS, INTERFACE_KEYS};
use super::super::links::LINK_KEYS;
use super::super::parse::KEYS;
use super::super::routes::ROUTE_KEYS;
use super::super::run::RUN_KEYS;
use super::super::timeline::{CHANGE_KEYS, TIMELINE_KEYS};
use super::super::{Document, Registries, scenario_schema};
use super::hostile::{change, changed};

const REFERENCE: &str = include_str!("../../../../../docs/reference/scenario.md");

#[test]
fn every_example_of_the_reference_is_checked_and_runs_from_its_own_json() {
    let schema = scenario_schema(&Registries::built_in());
    let mut count = 0;
    for text in examples() {
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

/// The examples.
fn examples() -> Vec<&'static str> {
    REFERENCE.split("```toml\n").skip(1).filter_map(|block| block.split("```").next()).collect()
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn mutated_examples_are_built_or_refused_by_the_real_components(
        text in select(examples()),
        changes in proptest::collection::vec(change(), 1..4),
    ) {
        let answer = Document::read("s.toml", &changed(text, &changes)).and_then(|mut d| d.check());
        if let Err(error) = answer {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn settings_of_bearers_are_built_or_refused_whatever_their_value(
        key in select(bearer_keys()),
        value in "(-|)[0-9]{1,20}(\\.[0-9]{1,3}|)(ns|ms|s|h|kbit/s|Gbit/s|B|GB|%| packets|)|\\{\\}|\\[\\]|true|[a-z]{1,8}",
    ) {
        let (bearer, key) = key;
        let registries = Registries::built_in();
        let answer = Document::for_bearer(&registries, bearer, &[(key, value)]).and_then(|mut d| d.check());
        if let Err(error) = answer {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}

/// Every key of every bearer's table, and of the tables in it, with both directions.
fn bearer_keys() -> Vec<(&'static str, String)> {
    let mut keys = Vec::new();
    for bearer in Registries::built_in().bearers {
        let Ok(Value::Object(table)) = (bearer.understood)(&json!({})) else { continue };
        for (key, value) in table {
            for inner in value.as_object().into_iter().flatten() {
                keys.push((bearer.name, format!("{key}.{}", inner.0)));
            }
            keys.push((bearer.name, format!("{key}.downlink")));
            keys.push((bearer.name, key));
        }
    }
    keys
}

#[test]
fn every_key_is_explained() {
    let families =
        [KEYS, HOST_KEYS, INTERFACE_KEYS, LINK_KEYS, ROUTE_KEYS, RUN_KEYS, TIMELINE_KEYS, CHANGE_KEYS];
    for key in families.concat() {
        let explained = [format!("`{key}`"), format!("[{key}]")];
        assert!(explained.iter().any(|e| REFERENCE.contains(e)), "`{key}` is not explained");
    }
}
