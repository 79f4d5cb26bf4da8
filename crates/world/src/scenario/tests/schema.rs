//! The JSON schema says what the parser says, as far as a schema can.

use serde_json::{Value, json};

use super::super::scenario_schema;
use super::{CHAIN, GRAPH, fakes, parse};

/// Does `value` obey `schema`? The words that our schemas use; an unknown word fails the test.
fn obeys(root: &Value, schema: &Value, value: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return schema.as_bool().unwrap() };
    let all =
        |list: &Value, f: &dyn Fn(&Value) -> bool| list.as_array().unwrap().iter().filter(|s| f(s)).count();
    schema.iter().all(|(word, rule)| match word.as_str() {
        "$schema" | "$defs" | "title" | "description" | "default" | "format" | "pattern" => true,
        "$ref" => {
            let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
            obeys(root, root["$defs"].get(name).unwrap_or_else(|| panic!("no definition {name}")), value)
        }
        "type" => {
            let kinds = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
            kinds.iter().any(|kind| match kind.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "integer" => value.is_i64() || value.is_u64(),
                "number" => value.is_number(),
                "boolean" => value.is_boolean(),
                "null" => value.is_null(),
                other => panic!("type {other}"),
            })
        }
        "const" => value == rule,
        "enum" => rule.as_array().unwrap().contains(value),
        "anyOf" => all(rule, &|s| obeys(root, s, value)) > 0,
        "oneOf" => all(rule, &|s| obeys(root, s, value)) == 1,
        "minimum" => value.as_f64().is_none_or(|v| v >= rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|v| v <= rule.as_f64().unwrap()),
        "maxLength" => value.as_str().is_none_or(|v| v.chars().count() as u64 <= rule.as_u64().unwrap()),
        "minItems" => value.as_array().is_none_or(|v| v.len() as u64 >= rule.as_u64().unwrap()),
        "uniqueItems" => {
            value.as_array().is_none_or(|v| v.iter().enumerate().all(|(n, a)| !v[..n].contains(a)))
        }
        "minProperties" => value.as_object().is_none_or(|v| v.len() as u64 >= rule.as_u64().unwrap()),
        "maxProperties" => value.as_object().is_none_or(|v| v.len() as u64 <= rule.as_u64().unwrap()),
        "items" => value.as_array().is_none_or(|v| v.iter().all(|v| obeys(root, rule, v))),
        "required" => value
            .as_object()
            .is_none_or(|v| rule.as_array().unwrap().iter().all(|key| v.contains_key(key.as_str().unwrap()))),
        "properties" => value
            .as_object()
            .is_none_or(|v| v.iter().all(|(key, v)| rule.get(key).is_none_or(|s| obeys(root, s, v)))),
        "additionalProperties" => value.as_object().is_none_or(|v| {
            let own = schema.get("properties");
            v.iter().all(|(key, v)| own.is_some_and(|o| o.get(key).is_some()) || obeys(root, rule, v))
        }),
        "propertyNames" => true,
        // What the schemas say beside the rules.
        extension if extension.starts_with("x-") => true,
        other => panic!("word {other}"),
    })
}

/// Does the file obey the schema?
pub(super) fn obeys_whole(schema: &Value, file: &Value) -> bool {
    obeys(schema, schema, file)
}

fn as_json(text: &str) -> Value {
    toml::from_str(text).unwrap()
}

#[test]
fn good_files_obey_the_schema_as_written_and_as_understood() {
    let schema = scenario_schema(&fakes());
    for text in [CHAIN, GRAPH] {
        assert!(obeys(&schema, &schema, &as_json(text)), "{text}");
        let understood = parse(text).unwrap().to_json();
        assert!(obeys(&schema, &schema, &understood), "{understood:#}");
    }
}

#[test]
fn files_with_unknown_keys_names_and_types_do_not() {
    let schema = scenario_schema(&fakes());
    for (good, bad) in [
        ("title = ", "titel = "),
        ("fetch = {", "fetsch = {"),
        ("http = \"1.1\"", "http = 1.1"),
        ("profile = \"linux\"", "profile = \"linx\""),
        ("\"split-tcp\"", "\"split\""),
        ("bearer = \"cell\"", "bearer = \"sell\""),
        ("downlink = 0.2", "downlink = 1.2"),
        ("rate = \"10Mbit/s\"", "rates = \"10Mbit/s\""),
        ("seed = 7", "seed = -7"),
        ("\"pcapng\"", "\"pcap\""),
        ("state = \"down\"", "state = \"off\""),
        ("at = \"5s\"\n", ""),
    ] {
        let text = CHAIN.replacen(good, bad, 1);
        assert_ne!(text, CHAIN, "{good}");
        assert!(!obeys(&schema, &schema, &as_json(&text)), "{bad}");
        assert!(parse(&text).is_err(), "{bad}");
    }
}

#[test]
fn definitions_of_different_components_do_not_meet() {
    let schema = scenario_schema(&fakes());
    let names: Vec<&String> = schema["$defs"].as_object().unwrap().keys().collect();
    assert!(names.iter().any(|n| *n == "bearer.cell.Loss"), "{names:?}");
    assert!(names.iter().any(|n| *n == "app.fetch.Object"), "{names:?}");
    assert_eq!(schema["properties"]["hosts"]["additionalProperties"]["additionalProperties"], json!(false));
}

#[test]
fn what_several_keys_take_is_described_once() {
    let schema = scenario_schema(&fakes()).to_string();
    // Transports stand at hosts, in lists and at interfaces, applications alone and in lists, the last two in every link.
    for once in
        ["\"profile\":{", "\"http\":{", "IPv4 network of the link.", "The stations, and last the far end."]
    {
        assert_eq!(schema.matches(once).count(), 1, "{once}");
    }
}
