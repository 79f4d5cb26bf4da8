//! What a scenario may name: the registries of bearers, transports, applications and proxies.

use schemars::Schema;
use serde_json::Value;

use airloom_base::{ConfigError, Entry};

/// One thing that can be named: how its table is checked and described.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Name in scenario files.
    pub name: &'static str,
    /// JSON schema of its table.
    pub schema: fn() -> Schema,
    /// The table with all defaults filled in, or what is wrong with it.
    pub understood: fn(&Value) -> Result<Value, ConfigError>,
}

impl<B> From<&Entry<B>> for Known {
    fn from(entry: &Entry<B>) -> Self {
        Known { name: entry.name, schema: entry.schema, understood: entry.understood }
    }
}

/// Everything that can be named. Tests of the parser bring their own.
#[derive(Clone, Debug, Default)]
pub struct Registries {
    /// Links.
    pub bearers: Vec<Known>,
    /// End-to-end protocols.
    pub transports: Vec<Known>,
    /// Applications.
    pub apps: Vec<Known>,
    /// Proxies and gateways.
    pub proxies: Vec<Known>,
}

impl Registries {
    /// What this version of airloom has.
    pub fn built_in() -> Self {
        Registries {
            bearers: airloom_bearers::REGISTRY.iter().map(Known::from).collect(),
            transports: airloom_transports::REGISTRY.iter().map(Known::from).collect(),
            apps: airloom_apps::REGISTRY.iter().map(Known::from).collect(),
            proxies: airloom_proxies::REGISTRY.iter().map(Known::from).collect(),
        }
    }
}

/// The entry called `name`.
pub(super) fn find<'r>(registry: &'r [Known], name: &str) -> Option<&'r Known> {
    registry.iter().find(|k| k.name == name)
}
