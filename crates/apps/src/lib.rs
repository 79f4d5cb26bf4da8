//! Applications, one folder each, and their registry.

use airloom_base::{App, AppParts, ConfigError, Entry};
use serde_json::Value;

/// Builds an application from its table.
pub type Build = fn(&Value, &AppParts) -> Result<Box<dyn App>, ConfigError>;

/// All applications, by the name scenario files use.
pub const REGISTRY: &[Entry<Build>] = &[];

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Entry<Build>> {
    REGISTRY.iter().find(|e| e.name == name)
}
