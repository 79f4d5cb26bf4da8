//! What can stand in a scenario.

use airloom_world::scenario::Registries;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Name and JSON schema (as text) of each entry of a registry: `bearers`, `transports`, `apps` or `proxies`.
#[pyfunction]
pub fn registry(kind: &str) -> PyResult<Vec<(&'static str, String)>> {
    let all = Registries::built_in();
    let entries = match kind {
        "bearers" => all.bearers,
        "transports" => all.transports,
        "apps" => all.apps,
        "proxies" => all.proxies,
        other => return Err(PyKeyError::new_err(other.to_owned())),
    };
    let described = entries.iter().map(|entry| {
        let mut schema = (entry.schema)().to_value();
        // Settings that follow from a profile have no defaults in their schema: what a table without keys means says them.
        if let (Value::Object(schema), Ok(defaults)) = (&mut schema, (entry.understood)(&json!({}))) {
            schema.insert("x-defaults".to_owned(), defaults);
        }
        (entry.name, schema.to_string())
    });
    Ok(described.collect())
}
