//! A bearer inside another one's table.

use airloom_base::{Bearer, ConfigError, Parts};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// A bearer as scenario files say it: `"wireline"`, or `{ wireline = { rate = "1Mbit/s" } }`. Its table was checked, and
/// has all its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Nested {
    name: &'static str,
    table: Value,
}

impl Nested {
    /// The bearer `name` with this table.
    ///
    /// # Errors
    /// There is no such bearer, or its table is wrong; the path begins with its name.
    pub fn new(name: &str, table: &Value) -> Result<Nested, ConfigError> {
        let Some(entry) = crate::find(name) else {
            let known: Vec<String> = crate::REGISTRY.iter().map(|e| format!("`{}`", e.name)).collect();
            let message = format!("there is no bearer `{name}`; there are {}", known.join(", "));
            return Err(ConfigError { path: Vec::new(), message });
        };
        let table = (entry.understood)(table).map_err(|error| error.below(name))?;
        Ok(Nested { name: entry.name, table })
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Builds it.
    ///
    /// # Errors
    /// Its table makes no sense, and the path begins with its name; or the run has no more observation points.
    pub fn build(&self, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
        // A bearer that was found once is still there.
        let Some(entry) = crate::find(self.name) else { return Err(ConfigError::at(self.name, "is gone")) };
        parts.check_points()?;
        (entry.build)(&self.table, parts).map_err(|error| error.below(self.name))
    }
}

impl Default for Nested {
    /// A wire that does nothing.
    fn default() -> Self {
        let table = Value::Object(Map::new());
        Nested::new("wireline", &table).unwrap_or(Nested { name: "wireline", table })
    }
}

impl<'de> Deserialize<'de> for Nested {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let (name, table) = match Value::deserialize(d)? {
            Value::String(name) => (name, Value::Object(Map::new())),
            Value::Object(one) if one.len() == 1 => {
                one.into_iter().next().ok_or_else(|| de::Error::custom("is empty"))?
            }
            _ => {
                let wanted = "expected the name of a bearer, or { name = { .. } } with one name";
                return Err(de::Error::custom(wanted));
            }
        };
        Nested::new(&name, &table).map_err(de::Error::custom)
    }
}

impl Serialize for Nested {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(1))?;
        map.serialize_entry(self.name, &self.table)?;
        map.end()
    }
}

impl JsonSchema for Nested {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "bearer".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "object"],
            "description": "a bearer such as \"wireline\" or { wireline = { rate = \"1Mbit/s\" } }",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<Nested, String> {
        airloom_base::config::read(value).map_err(|e: ConfigError| e.to_string())
    }

    #[test]
    fn it_is_a_name_or_a_table_with_one_name() {
        let short = read(&json!("wireline")).unwrap();
        assert_eq!(short, Nested::default());
        let long = read(&json!({ "wireline": { "rate": "1Mbit/s" } })).unwrap();
        assert_eq!(serde_json::to_value(&long).unwrap()["wireline"]["rate"]["uplink"], "1Mbit/s");
        assert_eq!(read(&serde_json::to_value(&long).unwrap()).unwrap(), long);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(read(&json!("wire")).unwrap_err().contains("there is no bearer `wire`; there are `"));
        assert!(read(&json!({ "wireline": { "rat": 1 } })).unwrap_err().contains("wireline"));
        assert!(read(&json!({ "wireline": {}, "trace": {} })).unwrap_err().contains("one name"));
        assert!(read(&json!(3)).unwrap_err().contains("one name"));
    }
}
