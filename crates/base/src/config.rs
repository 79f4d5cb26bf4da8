//! How a registry entry gets its configuration and its surroundings.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::direction::Direction;
use crate::random::{Fate, Stream};
use crate::record::{MOST_POINTS, Outbox, Point, PointKind};

/// A value of the scenario that cannot be used: where it stands inside the component's table, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Keys from the component's table down to the value.
    pub path: Vec<String>,
    /// What was found and what would be valid.
    pub message: String,
}

impl ConfigError {
    /// An error at `key`.
    pub fn at(key: &str, message: impl Into<String>) -> Self {
        ConfigError { path: vec![key.to_owned()], message: message.into() }
    }

    /// A check of a value.
    ///
    /// # Errors
    /// One at `key`, when something is wrong with it.
    pub fn when(is_wrong: bool, key: &str, message: impl Into<String>) -> Result<(), ConfigError> {
        if is_wrong { Err(ConfigError::at(key, message)) } else { Ok(()) }
    }

    /// The same error, of a table that stands at `key`.
    #[must_use]
    pub fn below(mut self, key: &str) -> Self {
        self.path.insert(0, key.to_owned());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path.join("."))?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

/// Reads a configuration type from its table; the error knows the path of the offending key.
pub fn read<T: DeserializeOwned>(value: &Value) -> Result<T, ConfigError> {
    serde_path_to_error::deserialize(value).map_err(|e| {
        let path = e.path().iter().map(ToString::to_string).filter(|s| s != "?").collect();
        ConfigError { path, message: e.into_inner().to_string() }
    })
}

/// One line of a registry: a name, how its table is checked, and how it is built (`B` is a function).
///
/// The doc comments of the configuration type are its reference: the first paragraph of the type is the summary,
/// each field's comment explains the key.
pub struct Entry<B> {
    /// Name in scenario files.
    pub name: &'static str,
    /// JSON schema of its table.
    pub schema: fn() -> Schema,
    /// The table with all defaults filled in, or what is wrong with it.
    pub understood: fn(&Value) -> Result<Value, ConfigError>,
    /// Builds it.
    pub build: B,
}

impl<B> Entry<B> {
    /// The entry `name` whose table is read as `C`.
    pub const fn new<C: DeserializeOwned + Serialize + JsonSchema>(name: &'static str, build: B) -> Self {
        Entry { name, schema: || schema_for!(C), understood: understood::<C>, build }
    }
}

fn understood<C: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, ConfigError> {
    let config: C = read(value)?;
    serde_json::to_value(&config)
        .map_err(|e| ConfigError { path: Vec::new(), message: format!("cannot be written back: {e}") })
}

/// What sets profiles apart whose settings these are, with their names under `profile`: the values of each that are
/// not those of the first one, by the names of profiles and keys. Keys of a table inside are written `table.key`.
pub fn differences<C: Serialize>(profiles: impl IntoIterator<Item = C>) -> Value {
    let flat = |settings: C| {
        let mut values = Map::new();
        if let Ok(Value::Object(whole)) = serde_json::to_value(settings) {
            for (key, value) in whole {
                match value {
                    Value::Object(inner) => {
                        values.extend(inner.into_iter().map(|(k, v)| (format!("{key}.{k}"), v)));
                    }
                    value => {
                        values.insert(key, value);
                    }
                }
            }
        }
        values
    };
    let mut all = profiles.into_iter().map(flat).peekable();
    let first = all.peek().cloned().unwrap_or_default();
    let own = all.map(|mut own| {
        let name = own.get("profile").and_then(Value::as_str).unwrap_or_default().to_owned();
        own.retain(|key, value| key != "profile" && first.get(key) != Some(value));
        (name, Value::Object(own))
    });
    Value::Object(own.collect())
}

/// What an application is built from besides its configuration.
pub struct AppParts<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the host it runs on.
    pub host: &'a str,
    /// Addresses by host name; an address in text form is its own name.
    pub resolve: &'a dyn Fn(&str) -> Option<IpAddr>,
    /// All names of hosts with their addresses, for those that are given names while the run goes on.
    pub hosts: &'a dyn Fn() -> Vec<(String, IpAddr)>,
    /// The same with all addresses of each.
    pub addresses: &'a dyn Fn() -> Vec<(String, IpAddr)>,
    /// Where to go if the scenario does not say: the host at the other end.
    pub far_end: Option<&'a str>,
    /// The name of a host with the proxy that is called so.
    pub proxy: &'a dyn Fn(&str) -> Option<String>,
    /// Names of the transports of its host: it connects by the first unless it says otherwise.
    pub transports: &'a [&'static str],
}

impl AppParts<'_> {
    /// The random stream of this application for `purpose`.
    pub fn stream(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, &format!("{}.app.{purpose}", self.host))
    }
    /// The address of `server`, or of the far end if `server` is `None`; `key` names the setting in errors.
    pub fn server(&self, key: &str, server: Option<&str>) -> Result<IpAddr, ConfigError> {
        let name =
            server.or(self.far_end).ok_or_else(|| ConfigError::at(key, "no host to talk to; name one"))?;
        (self.resolve)(name).ok_or_else(|| ConfigError::at(key, format!("there is no host `{name}`")))
    }
}

/// What a protocol of a host is built from besides its configuration.
pub struct ProtocolParts<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the host.
    pub host: &'a str,
    /// Are its packets captured, with their octets?
    pub captured: bool,
    /// Is some host of the run a real one?
    pub has_real_hosts: bool,
}

impl ProtocolParts<'_> {
    /// The random stream of this protocol for `purpose`.
    pub fn stream(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, &format!("{}.transport.{purpose}", self.host))
    }
}

/// Radio environments that links share, by name: the tables of the scenario.
pub type Environments = BTreeMap<String, Value>;

/// None.
static NO_ENVIRONMENTS: Environments = Environments::new();

/// Largest IP datagram of a link unless its scenario says otherwise: that of Ethernet, PPP and packet bearers alike.
pub const MTU: u16 = 1500;

/// What a bearer is built from besides its configuration.
pub struct Parts<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the link in the scenario.
    pub name: &'a str,
    /// Number of mobiles.
    pub stations: u16,
    /// Largest IP datagram of the link.
    pub mtu: u16,
    /// Where points are registered.
    pub records: &'a mut Outbox,
    /// What it may share with other links.
    pub environments: &'a Environments,
}

impl<'a> Parts<'a> {
    /// Parts of a link with the usual MTU that shares nothing with others.
    pub fn new(seed: u64, name: &'a str, stations: u16, records: &'a mut Outbox) -> Self {
        Parts { seed, name, stations, mtu: MTU, records, environments: &NO_ENVIRONMENTS }
    }
}

impl Parts<'_> {
    /// The random stream of this link for `purpose`.
    pub fn stream(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, &format!("{}.{purpose}", self.name))
    }
    /// The position-addressed random numbers of this link for `purpose`.
    pub fn fate(&self, purpose: &str) -> Fate {
        Fate::new(self.seed, &format!("{}.{purpose}", self.name))
    }
    /// The random stream of one direction.
    pub fn stream_of(&self, purpose: &str, direction: Direction) -> Stream {
        self.stream(&format!("{}.{purpose}", direction.name()))
    }
    /// Has the run no numbers left for the observation points of the link? What is built of many parts looks here after
    /// each, so that it comes to an end.
    ///
    /// # Errors
    /// It has none.
    pub fn check_points(&self) -> Result<(), ConfigError> {
        let message =
            || format!("with it the network has more than the {MOST_POINTS} observation points of a run");
        if self.records.is_overfull() {
            return Err(ConfigError { path: Vec::new(), message: message() });
        }
        Ok(())
    }
    /// Registers the observation point `<link>.<suffix>`.
    pub fn point(&mut self, suffix: &str, kind: PointKind) -> Point {
        let name = format!("{}.{suffix}", self.name);
        self.records.add_point(name, kind)
    }
}
