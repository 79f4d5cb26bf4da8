//! Settings of the proxy.

use airloom_base::units::Octets;
use airloom_base::{ConfigError, Duration};
use airloom_content::http::message::is_token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// How clients come to the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They know nothing of it: connections to `ports` that pass its host are taken over. Requests go to the address that the
    /// client meant, whatever their Host field says.
    #[default]
    Transparent,
    /// They ask it for whole addresses, as a browser with a proxy set does.
    Addressed,
}

/// A forwarding HTTP/1.1 proxy with a cache (RFC 9110, 9111, 9112).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How clients come to it.
    pub mode: Mode,
    /// The ports it serves: 80 if it is transparent, 3128 if it is addressed.
    pub ports: Option<Vec<u16>>,
    /// Its name in the `Via` field, which no other proxy on the way may have: a request that carries it already goes in a circle.
    /// That of its host if not given; `airloom serve http-cache` makes one up.
    pub name: Option<String>,
    /// Keep connections of clients open where they want that?
    #[default(true)]
    pub client_keep_alive: bool,
    /// Keep them for clients of HTTP/1.0 that ask for it, as products of 2004 did? The standard forbids it.
    pub keep_alive_10: bool,
    /// Requests of one client's connection that are worked on at a time; further ones wait unread. One that changes something (any but
    /// GET, HEAD, OPTIONS and TRACE) waits for all before it, and those behind it for that one.
    #[default(4)]
    pub client_pipeline: u32,
    /// Keep connections to servers open where they want that?
    #[default(true)]
    pub server_keep_alive: bool,
    /// Requests on one connection to a server that wait for their answer; more than 1 is pipelining.
    #[default(1)]
    pub server_pipeline: u32,
    /// Connections to one server at a time; further requests to it wait.
    #[default(6)]
    pub server_connections: u32,
    /// Requests to one server that wait for a connection; further ones are answered with 503.
    #[default(1_000)]
    pub server_queue: u32,
    /// Octets of all answers that are kept together, those that are still coming included; 0 keeps none.
    #[default(Octets(1_000_000))]
    pub capacity: Octets,
    /// Octets of the largest answer that is kept.
    #[default(Octets(1_000_000))]
    pub max_object: Octets,
    /// How long an answer is fresh that says nothing about it, not even when it was changed.
    pub assume_fresh: Duration,
    /// Octets of a body that are held on their way in one direction; beyond that it does not read.
    #[default(Octets(65_536))]
    pub buffer: Octets,
    /// Octets of the largest body of a request; larger ones are answered with 413. No limit if not given.
    pub max_upload: Option<Octets>,
    /// How long a request's head may take from its first octet on.
    #[default(Duration::from_secs(15))]
    pub head_timeout: Duration,
    /// How long a connection of a client without a request stays open.
    #[default(Duration::from_secs(60))]
    pub idle_timeout: Duration,
    /// How long a client may take nothing of an answer, or give nothing of a body.
    #[default(Duration::from_secs(60))]
    pub stall_timeout: Duration,
    /// How long a server may be silent while something is expected of it, and requests wait for a connection to it
    /// while none of them gets one.
    #[default(Duration::from_secs(60))]
    pub server_timeout: Duration,
    /// How long a connection to a server without a request stays open.
    #[default(Duration::from_secs(30))]
    pub server_idle_timeout: Duration,
    /// How long nothing may move in a tunnel.
    #[default(Duration::from_secs(600))]
    pub tunnel_timeout: Duration,
    /// Ports to which tunnels may lead (CONNECT).
    #[default(vec![443])]
    pub connect_ports: Vec<u16>,
    /// Clients at a time; further ones are reset.
    #[default(10_000)]
    pub max_connections: u32,
}

impl Config {
    /// Settings that no proxy can work with?
    ///
    /// # Errors
    /// [`ConfigError`] with the key.
    pub fn check(&self) -> Result<(), ConfigError> {
        let positive = [
            ("client_pipeline", u64::from(self.client_pipeline)),
            ("server_pipeline", u64::from(self.server_pipeline)),
            ("server_connections", u64::from(self.server_connections)),
            ("server_queue", u64::from(self.server_queue)),
            ("buffer", self.buffer.0),
            ("max_connections", u64::from(self.max_connections)),
            ("head_timeout", self.head_timeout.as_nanos()),
            ("idle_timeout", self.idle_timeout.as_nanos()),
            ("stall_timeout", self.stall_timeout.as_nanos()),
            ("server_timeout", self.server_timeout.as_nanos()),
            ("server_idle_timeout", self.server_idle_timeout.as_nanos()),
            ("tunnel_timeout", self.tunnel_timeout.as_nanos()),
        ];
        if let Some((key, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(ConfigError::at(key, "must be more than 0"));
        }
        if self.ports.as_ref().is_some_and(Vec::is_empty) {
            return Err(ConfigError::at("ports", "names no port; leave it out for the usual one"));
        }
        //= RFC 9110 (7.6.3): a pseudonym is a token.
        if self.name().is_empty() || !self.name().bytes().all(is_token) {
            return Err(ConfigError::at("name", "must be a word of letters, digits, - and ."));
        }
        Ok(())
    }

    /// Its name; where nobody said anything, that of what it is.
    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("airloom")
    }

    pub(super) fn ports(&self) -> Vec<u16> {
        let usual = match self.mode {
            Mode::Transparent => 80,
            Mode::Addressed => 3128,
        };
        self.ports.clone().unwrap_or_else(|| vec![usual])
    }
}
