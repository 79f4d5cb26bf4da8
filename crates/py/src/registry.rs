//! What can stand in a scenario.

use airloom_world::scenario::Registries;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

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
    Ok(entries.iter().map(|e| (e.name, (e.schema)().to_value().to_string())).collect())
}
