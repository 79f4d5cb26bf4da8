//! What a page consists of, as scenario files say it.

use airloom_base::units::Octets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing to fetch: a path, or a path and the size it must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Object {
    /// Its path.
    Path(String),
    /// Its path and the size it must have.
    Sized(SizedObject),
}

/// A path and the size of what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizedObject {
    /// Path on the server.
    pub path: String,
    /// Octets of the object; an object of another size counts as failed.
    pub size: Octets,
}

impl Object {
    /// Its path on the server.
    pub(crate) fn path(&self) -> &str {
        match self {
            Object::Path(path) => path,
            Object::Sized(object) => &object.path,
        }
    }

    /// Is it as large as it must be?
    pub(crate) fn has_size(&self, octets: u64) -> bool {
        match self {
            Object::Path(_) => true,
            Object::Sized(object) => object.size.0 == octets,
        }
    }
}
