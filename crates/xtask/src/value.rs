//! What a value of a key may be, in words.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Named kinds of values (quantities with units) and what they are.
pub(crate) type Kinds = BTreeMap<String, String>;

/// What a schema allows. Quantities are added to `kinds`, tables with keys of their own to `tables`.
pub(crate) fn describe(
    schema: &Value,
    definitions: &Map<String, Value>,
    kinds: &mut Kinds,
    tables: &mut BTreeMap<String, Value>,
) -> String {
    if let Some((name, target)) = follow(schema, definitions) {
        return named(name, target, definitions, kinds, tables);
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return join(values.iter().map(|value| format!("`{value}`")));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(cases) = schema.get(key).and_then(Value::as_array) {
            let cases = cases.iter().filter(|case| case.get("type") != Some(&"null".into()));
            return join(cases.map(|case| describe(case, definitions, kinds, tables)));
        }
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    join(types.iter().filter(|t| **t != "null").map(|t| match *t {
        "string" => "text".to_owned(),
        "boolean" => "`true` or `false`".to_owned(),
        "integer" => "whole number".to_owned(),
        "array" => match schema.get("items") {
            Some(items) => format!("list of {}", describe(items, definitions, kinds, tables)),
            None => "list".to_owned(),
        },
        "object" => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => {
                format!("table of {}", describe(values, definitions, kinds, tables))
            }
            _ => object(schema, definitions, kinds, tables),
        },
        other => other.to_owned(),
    }))
}

fn follow<'a>(schema: &Value, definitions: &'a Map<String, Value>) -> Option<(&'a String, &'a Value)> {
    let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
    definitions.get_key_value(name)
}

fn named(
    name: &str,
    target: &Value,
    definitions: &Map<String, Value>,
    kinds: &mut Kinds,
    tables: &mut BTreeMap<String, Value>,
) -> String {
    let is_table = target.get("properties").is_some();
    if is_table {
        tables.insert(name.to_owned(), target.clone());
        return format!("table *{name}*");
    }
    // A scalar with a name and an explanation is a quantity; everything else is explained in place.
    let about = target.get("description").and_then(Value::as_str);
    match about.filter(|_| target.get("pattern").is_some()) {
        Some(about) => {
            kinds.insert(name.to_owned(), about.to_owned());
            format!("*{name}*")
        }
        None if name == "probability" => {
            kinds.insert(name.to_owned(), "a number from 0 to 1".to_owned());
            format!("*{name}*")
        }
        None => match large_case(target) {
            Some(place) => {
                tables.insert(name.to_owned(), target["anyOf"][place].clone());
                let cases = target["anyOf"].as_array().into_iter().flatten().enumerate();
                join(cases.map(|(n, case)| match n == place {
                    true => format!("table *{name}*"),
                    false => describe(case, definitions, kinds, tables),
                }))
            }
            None => describe(target, definitions, kinds, tables),
        },
    }
}

/// Tables with more keys than this are not written in one line.
const SMALL: usize = 3;

/// The case of a choice that is a table with many keys: it is explained under the name of the choice.
fn large_case(target: &Value) -> Option<usize> {
    let keys = |case: &Value| case.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    target.get("anyOf")?.as_array()?.iter().position(|case| keys(case) > SMALL)
}

/// A table without a name: its keys in braces.
fn object(
    schema: &Value,
    definitions: &Map<String, Value>,
    kinds: &mut Kinds,
    tables: &mut BTreeMap<String, Value>,
) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "table".to_owned();
    };
    if properties.len() > SMALL {
        let keys: Vec<String> = properties.keys().map(|key| format!("`{key}`")).collect();
        return format!("table with {}", keys.join(", "));
    }
    let keys: Vec<String> = properties
        .iter()
        .map(|(key, property)| format!("{key} = {}", describe(property, definitions, kinds, tables)))
        .collect();
    format!("{{ {} }}", keys.join(", "))
}

/// The choices of an enumeration that have an explanation, one string each.
pub(crate) fn choices(schema: &Value, definitions: &Map<String, Value>) -> Vec<String> {
    let target = follow(schema, definitions).map_or(schema, |(_, target)| target);
    let cases = target.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    cases
        .filter_map(|case| {
            let about = case.get("description")?.as_str()?.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(format!("`{}`: {about}", case.get("const")?))
        })
        .collect()
}

fn join(cases: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for case in cases {
        if !different.contains(&case) {
            different.push(case);
        }
    }
    different.join(" or ")
}

/// A value as a scenario file has it. The same value for both directions is written once.
pub(crate) fn toml(value: &Value) -> String {
    match value {
        Value::Object(table) => match (table.get("uplink"), table.get("downlink")) {
            (Some(up), Some(down)) if up == down && table.len() == 2 => toml(up),
            _ if table.is_empty() => "{}".to_owned(),
            _ => {
                let set = table.iter().filter(|(_, value)| !value.is_null());
                let keys: Vec<String> = set.map(|(key, value)| format!("{key} = {}", toml(value))).collect();
                format!("{{ {} }}", keys.join(", "))
            }
        },
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}
