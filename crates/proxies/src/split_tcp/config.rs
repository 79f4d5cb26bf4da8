//! Settings of the proxy.

use airloom_base::units::Octets;
use airloom_base::{ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// How clients come to the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They know nothing of it: connections that pass its host are taken over, and answered in the name of the server that is
    /// meant.
    #[default]
    Transparent,
    /// They connect to it, and it to one server.
    Addressed,
}

/// When the proxy opens the connection onward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connects {
    /// As soon as the client's connection is open.
    #[default]
    OnAccept,
    /// Before the client is answered at all: it is let in when the server has answered, and refused when the server refuses.
    BeforeAnswering,
    /// When the client has sent something. Protocols in which the server speaks first come to a standstill.
    OnRequest,
}

/// A proxy that ends its clients' TCP connections and opens others onward (split TCP; RFC 3135).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How clients come to it.
    pub mode: Mode,
    /// The ports whose connections it serves. None: all ports if it is transparent, 80 if it is addressed.
    pub ports: Option<Vec<u16>>,
    /// Addressed: the host it connects to; none: the host at the other end.
    pub server: Option<String>,
    /// The port it connects to; none: the one the client connected to.
    pub server_port: Option<u16>,
    /// When it opens the connection onward.
    pub connects: Connects,
    /// Octets that it holds of each direction of a connection; beyond that it does not read.
    #[default(Octets(65_536))]
    pub buffer: Octets,
    /// The most that it reads at a time.
    #[default(Octets(16_384))]
    pub read_size: Octets,
    /// What handling one read takes, of one after the other for all connections together.
    pub cost_per_read: Duration,
    /// Reset both sides of a connection on which nothing moved for so long; never if not given.
    pub idle: Option<Duration>,
    /// Clients at a time; further ones are reset.
    #[default(10_000)]
    pub max_connections: u32,
}

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let positive = [("buffer", self.buffer.0), ("read_size", self.read_size.0)];
        if let Some((key, _)) = positive.into_iter().find(|(_, octets)| *octets == 0) {
            return Err(ConfigError::at(key, "must be more than 0"));
        }
        if self.idle.is_some_and(Duration::is_zero) {
            return Err(ConfigError::at("idle", "must be more than 0; leave it out for no end"));
        }
        ConfigError::when(self.max_connections == 0, "max_connections", "must be more than 0")?;
        if self.ports.as_ref().is_some_and(Vec::is_empty) {
            return Err(ConfigError::at("ports", "names no port; leave it out for all"));
        }
        if self.mode == Mode::Transparent && self.server.is_some() {
            let message = "a transparent proxy connects to whom its clients mean; set mode = \"addressed\"";
            return Err(ConfigError::at("server", message));
        }
        Ok(())
    }
}
