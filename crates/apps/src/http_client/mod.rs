//! An HTTP/1.0 and 1.1 client that fetches lists of objects, as a browser without a screen does.
//!
//! ```text
//! page (../pages) waiting objects ──> dispatch (client.rs) ──> connections (connection.rs) ──> streams (lane.rs)
//!       ▲                                                            │
//!       └────────────── complete, failed, to be asked for again ─────┘
//! ```
//!
//! An object goes to a connection that waits for nothing, else to a new connection while there are fewer than
//! `connections`, else (with `pipeline` above 1) behind the requests of the connection with the fewest. How long a
//! connection lives depends on `http`: one object in 1.0; as long as both sides want with keep-alive and in 1.1.
//!
//! When a connection ends early, the requests without an answer are asked again on another one. The request that
//! was being answered (or, if the connection never answered anything, the first one) is charged with the
//! failure, and after `retries` of those the object has failed. A connection carries one request until its first
//! response has come; only then are requests pipelined.
//!
//! Over SCTP a connection is an association that stays whatever the version: up to `streams` of its streams carry a request and
//! its response each, side by side, and objects are dealt over them in turn. Requests may leave before the association is
//! there, with its cookie. A broken response breaks the association.
//!
//! Standards: RFC 9112 (9.3), RFC 2616 (8.1), RFC 1945, draft-natarajan-http-over-sctp. Left out: redirects (a response other than 2xx is a failed
//! object), caching, parsing of pages: what a page contains is said in the scenario.

mod client;
mod connection;
mod lane;
#[cfg(test)]
mod tests;

use airloom_base::units::Octets;
use airloom_base::{App, AppParts, ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use client::Client;

use crate::pages::List;
pub use crate::pages::{Detailed, Model, Object, Traffic};

/// How a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Http {
    /// HTTP/1.0: a new connection for each object.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.0 that asks for connections to be kept.
    #[serde(rename = "1.0-keep-alive")]
    Http10KeepAlive,
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "1.1")]
    Http11,
}

/// Fetches lists of objects over HTTP/1.0 or 1.1 and measures how long that takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host to fetch from; the far end if not given.
    pub server: Option<String>,
    /// Its port.
    pub port: u16,
    /// `"1.0"`, `"1.0-keep-alive"` or `"1.1"`.
    pub http: Http,
    /// In HTTP/1.1: use connections for more than one object? If not, `Connection: close` is sent.
    pub keep_alive: bool,
    /// Most connections at a time.
    pub connections: u16,
    /// Over SCTP: streams of an association that objects are dealt over, a request and its response on each; no more than both
    /// ends have. TCP has one stream.
    pub streams: u16,
    /// Finish the connections when a page has ended: each page begins with new ones.
    pub per_page: bool,
    /// Most requests of a connection that wait for their response; more than 1 is pipelining, in HTTP/1.1 only.
    pub pipeline: u16,
    /// Objects of one page, all known from the start: paths, or tables with `path`, `size` and `post` (octets of a
    /// form to send there). `["/"]` if none of this, `pages` and `traffic` is given.
    pub objects: Vec<Object>,
    /// Pages, loaded one after another. Of each the first object is fetched alone; the others, which it is taken to
    /// name, follow when it has arrived.
    pub pages: Vec<Vec<Object>>,
    /// Pages drawn from a model of web traffic, loaded as `pages` are: other ones with each seed, and the same for every
    /// protocol.
    pub traffic: Option<Traffic>,
    /// How often everything that is listed is loaded.
    pub repeat: u32,
    /// Pause between two listed pages.
    pub think: Duration,
    /// When to begin.
    pub start: Duration,
    /// Begin later than `start` by a random time, uniform in 0 to this.
    pub spread: Duration,
    /// Give a connection up that was silent for so long while something was expected of it.
    pub timeout: Duration,
    /// How often an object is asked for again after its connection failed.
    pub retries: u16,
    /// Least octets of a request head; shorter ones are padded with a field. As short as possible if not given.
    pub request: Option<Octets>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            server: None,
            port: 80,
            http: Http::Http11,
            keep_alive: true,
            connections: 2,
            streams: 1,
            per_page: false,
            pipeline: 1,
            objects: Vec::new(),
            pages: Vec::new(),
            traffic: None,
            repeat: 1,
            think: Duration::ZERO,
            start: Duration::ZERO,
            spread: Duration::ZERO,
            timeout: Duration::from_secs(115),
            retries: 1,
            request: None,
        }
    }
}

impl Config {
    /// What is to be loaded.
    fn list(&self) -> List<'_> {
        let Config { objects, pages, traffic, repeat, think, start, spread, .. } = self;
        let (repeat, think, start, spread) = (*repeat, *think, *start, *spread);
        List { objects, pages, traffic: traffic.as_ref(), repeat, think, start, spread }
    }

    /// Does a connection carry more than one object?
    fn persists(&self) -> bool {
        match self.http {
            Http::Http10 => false,
            Http::Http10KeepAlive => true,
            Http::Http11 => self.keep_alive,
        }
    }

    /// How many requests may wait on a connection that has proved to persist.
    fn depth(&self) -> usize {
        if self.http == Http::Http11 && self.keep_alive { usize::from(self.pipeline) } else { 1 }
    }
}

/// Builds the client from its table.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    let to = parts.server("server", config.server.as_deref())?;
    let name = config.server.as_deref().or(parts.far_end).unwrap_or_default().to_owned();
    Ok(Box::new(Client::new(config, to, &name, parts.host, |name| parts.stream(name))?))
}
