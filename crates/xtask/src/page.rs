//! One reference page: the components of a registry, key by key.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value};

use crate::value::{self, Kinds};

/// One line of a registry.
pub(crate) struct Component {
    pub(crate) name: &'static str,
    pub(crate) schema: Value,
    pub(crate) defaults: Value,
}

/// A registry and how its page begins.
pub(crate) struct Page {
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) components: Vec<Component>,
}

const NOTICE: &str =
    "<!-- Generated from the doc comments of the Rust types: `cargo run -p airloom-xtask -- docs`. -->";

impl Page {
    /// The page as Markdown.
    pub(crate) fn render(&self) -> String {
        let mut out = format!("# {}\n\n{NOTICE}\n\n{}\n", self.title, self.about);
        out.push('\n');
        for component in &self.components {
            let summary = paragraphs(&component.schema).into_iter().next().unwrap_or_default();
            line(&mut out, &format!("- [`{0}`](#{0}): {summary}", component.name));
        }
        let mut kinds = Kinds::new();
        for component in &self.components {
            component.render(&mut out, &mut kinds);
        }
        if !kinds.is_empty() {
            out.push_str("\n## Kinds of values\n\n");
            for (name, about) in &kinds {
                line(&mut out, &format!("- *{name}*: {about}"));
            }
        }
        out
    }
}

impl Component {
    fn render(&self, out: &mut String, kinds: &mut Kinds) {
        line(out, &format!("\n## {}\n", self.name));
        for paragraph in paragraphs(&self.schema) {
            line(out, &format!("{paragraph}\n"));
        }
        let none = Map::new();
        let definitions = self.schema.get("$defs").and_then(Value::as_object).unwrap_or(&none);
        let mut tables = BTreeMap::new();
        table(out, &self.schema, &self.defaults, definitions, kinds, &mut tables);
        profiles(out, &self.schema);
        // Tables inside tables: each is explained once; explaining one may bring up others.
        let mut done = Vec::new();
        while let Some((name, schema)) = tables.pop_first() {
            if done.contains(&name) {
                continue;
            }
            line(out, &format!("\nTable *{name}*:\n"));
            for paragraph in paragraphs(&schema) {
                line(out, &format!("{paragraph}\n"));
            }
            table(out, &schema, &Value::Null, definitions, kinds, &mut tables);
            done.push(name);
        }
    }
}

fn table(
    out: &mut String,
    schema: &Value,
    defaults: &Value,
    definitions: &Map<String, Value>,
    kinds: &mut Kinds,
    tables: &mut BTreeMap<String, Value>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty())
    else {
        line(out, "It has no keys.");
        return;
    };
    line(out, "| key | value | default | meaning |");
    line(out, "|---|---|---|---|");
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (key, property) in properties {
        let value = value::describe(property, definitions, kinds, tables);
        let default = defaults.get(key).or_else(|| property.get("default"));
        let default = match default {
            _ if required.contains(&key.as_str()) => "must be given".to_owned(),
            None | Some(Value::Null) => String::new(),
            Some(default) => format!("`{}`", value::toml(default)),
        };
        let mut meaning = paragraphs(property).join(" ");
        for choice in value::choices(property, definitions) {
            meaning = format!("{meaning}<br>{choice}");
        }
        let cells = [format!("`{key}`"), value, default, meaning].map(|cell| cell.replace('|', "\\|"));
        line(out, &format!("| {} |", cells.join(" | ")));
    }
}

/// What each profile of a component sets differently from the first of them, if it has profiles, and where values are from if it says so.
fn profiles(out: &mut String, schema: &Value) {
    let Some(profiles) = schema.get("x-profiles").and_then(Value::as_object) else { return };
    let first = profiles.keys().next().map_or("", String::as_str);
    line(out, &format!("\nWhat each profile sets differently from `{first}`:\n"));
    line(out, "| profile | values |");
    line(out, "|---|---|");
    for (name, values) in profiles {
        let values: Vec<String> = values
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("`{key} = {}`", value::toml(value)))
            .collect();
        let values = if values.is_empty() { "none".to_owned() } else { values.join(", ") };
        line(out, &format!("| `{name}` | {values} |"));
    }
    let Some(sources) = schema.get("x-sources").and_then(Value::as_object) else { return };
    let names: Vec<String> = sources.keys().map(|name| format!("`{name}`")).collect();
    line(
        out,
        &format!("\nWhere values are from; a profile that names no source for one has that of `{first}`:\n"),
    );
    line(out, &format!("| key | {} |", names.join(" | ")));
    line(out, &format!("|---|{}", "---|".repeat(names.len())));
    for key in sources.get(first).and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        let from: Vec<&str> = sources.values().map(|of| of[key].as_str().unwrap_or_default()).collect();
        line(out, &format!("| `{key}` | {} |", from.join(" | ")));
    }
}

/// The description of a schema, its lines joined, one string a paragraph.
fn paragraphs(schema: &Value) -> Vec<String> {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split("\n\n")
        .map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|p| !p.is_empty())
        .collect()
}

fn line(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_component_becomes_a_table_of_its_keys() {
        let schema = json!({
            "description": "First\nparagraph.\n\nSecond.",
            "required": ["must"],
            "properties": {
                "must": { "type": "string", "description": "Needed." },
                "size": { "$ref": "#/$defs/size", "description": "How | much." },
                "mode": { "$ref": "#/$defs/Mode", "description": "Which." },
                "loss": { "$ref": "#/$defs/loss", "default": { "a": 1, "b": null } },
                "way": {
                    "type": "object", "default": { "uplink": "2B", "downlink": "2B" },
                    "properties": { "up": { "$ref": "#/$defs/size" }, "down": { "$ref": "#/$defs/size" } },
                },
                "list": { "type": "array", "items": { "$ref": "#/$defs/Inner" } },
            },
            "$defs": {
                "size": { "type": "string", "pattern": "x", "description": "a size" },
                "Mode": { "oneOf": [{ "const": "get", "description": "Fetch." }, { "const": "put" }] },
                "loss": { "anyOf": [{ "$ref": "#/$defs/size" }, {
                    "type": "object", "properties": { "a": {}, "b": {}, "c": {}, "d": {} },
                }] },
                "Inner": { "type": "object", "properties": { "path": { "type": ["string", "null"] } } },
            },
            "x-profiles": { "old": {}, "new": { "size": "2MB" } },
            "x-sources": { "old": { "size": "a book" }, "new": { "size": "a letter" } },
        });
        let component = Component { name: "thing", schema, defaults: json!({ "size": "1MB" }) };
        let page = Page { file: "x", title: "X", about: "About.", components: vec![component] }.render();
        for expected in [
            "- [`thing`](#thing): First paragraph.\n",
            "| `must` | text | must be given | Needed. |\n",
            "| `size` | *size* | `\"1MB\"` | How \\| much. |\n",
            "| `mode` | `\"get\"` or `\"put\"` |  | Which.<br>`\"get\"`: Fetch. |\n",
            "| `list` | list of table *Inner* |  |  |\n",
            "Table *Inner*:\n",
            "| `path` | text |  |  |\n",
            "| `loss` | *size* or table *loss* | `{ a = 1 }` |  |\n",
            "| `way` | { up = *size*, down = *size* } | `\"2B\"` |  |\n",
            "- *size*: a size\n",
            "differently from `old`:\n",
            "| `new` | `size = \"2MB\"` |\n",
            "| key | `old` | `new` |\n|---|---|---|\n| `size` | a book | a letter |\n",
        ] {
            assert!(page.contains(expected), "{expected:?} not in\n{page}");
        }
    }
}
