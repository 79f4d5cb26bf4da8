//! `[environments]`: the radio that links share.

use airloom_base::{ConfigError, Environments, config};
use airloom_bearers::channel::Environment;
use serde_json::Value;

use super::read::{Fault, component_fault, name};
use super::tree::Node;

/// Environments of a scenario.
const MOST: usize = 256;

/// Reads `[environments]`.
pub(super) fn read(node: &Node) -> Result<Environments, Fault<'_>> {
    let entries = node.any_table("the table of environments")?;
    Fault::when(entries.len() > MOST, node, format_args!("a scenario has at most {MOST} environments"))?;
    let mut environments = Environments::new();
    for entry in entries {
        name(&entry.value, "environment", &entry.key).map_err(|f| Fault { node, key: Some(entry), ..f })?;
        entry.value.any_table("the table of an environment")?;
        let table = understood(&entry.value.to_json()).map_err(|e| component_fault(&entry.value, &e, &[]))?;
        environments.insert(entry.key.clone(), table);
    }
    Ok(environments)
}

/// The table with all defaults, or what is wrong with it.
fn understood(table: &Value) -> Result<Value, ConfigError> {
    let environment: Environment = config::read(table)?;
    environment.check()?;
    serde_json::to_value(&environment).map_err(|e| ConfigError { path: Vec::new(), message: e.to_string() })
}
