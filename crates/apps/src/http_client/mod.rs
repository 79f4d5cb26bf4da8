//! An HTTP/1.0, 1.1, 2 and 3 client that fetches lists of objects, as a browser without a screen does.
//!
//! ```text
//! page (../pages) ──> cache (cache.rs) ──> pools (servers.rs) ──> connections (connection.rs) ──> streams (lane.rs)
//!       ▲                    │                                          │
//!       └────────────────────┴── complete, failed, to be asked for again┘            client.rs holds them together
//! ```
//!
//! Each server has its pool of connections; with an addressed `proxy` there is one pool for all. An object goes to a connection
//! of its pool that waits for nothing, else to a new one while there are fewer than `connections` (`proxy_connections`), else
//! (with `pipeline` above 1) behind the requests of the connection with the fewest. Where `total_connections` are open a new one
//! takes the place of one to another server that nothing waits for. How long a connection lives depends on `http`: one object
//! in 1.0; as long as both sides want with keep-alive and in 1.1. Among pools with room the object that comes first on its page
//! goes first.
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
//! In HTTP/2 all requests to a server go side by side over one connection (`multiplexed.rs`), up to `h2_streams` and as many as the
//! server takes; more connections are opened only where `connections` allows for them and there is no room on the first. A
//! stream that the server refuses is asked for again. In clear that the server speaks it is taken for granted (prior
//! knowledge); over TLS (`../tls`) it is asked (ALPN), and a server that does not breaks the handshake off.
//!
//! HTTP/3 is the same over QUIC (`transport = "quic"` of both hosts): each request on a stream of its own, and no loss holds up
//! others than those it hit. It is asked for at once (`h2_streams` at a time): requests wait for the handshake in order, but for those
//! that may leave with it (`zero_rtt` of QUIC): GET.
//!
//! With `alt_svc` a server's word for HTTP/3 (`alternatives.rs`) is taken: a new connection to it is a race of QUIC against what TCP
//! carries, in which a request goes over the one that is up first and over no other. What is open goes on being used. A race that
//! nothing waits for any more ends without a winner where its page hangs up or another connection needs the place.
//!
//! Standards: RFC 9113, RFC 9114, RFC 9218, RFC 7838, RFC 9112 (9.3), RFC 2616 (8.1), RFC 1945, draft-natarajan-http-over-sctp. Left out: redirects (a response other than 2xx is a failed
//! object), parsing of pages: what a page contains, and which object names which, is said in the scenario. The cache asks no server
//! whether what it has is fresh: what may change says so (`changes`) and is never kept.

mod alternatives;
mod cache;
mod client;
mod connection;
mod lane;
mod log;
mod multiplexed;
mod servers;
#[cfg(test)]
mod tests;

use airloom_base::units::Octets;
use airloom_base::{App, AppParts, ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

pub use client::Client;
pub use servers::Whereabouts;

use crate::pages::List;
pub use crate::pages::{Detailed, Model, Object, PageSet, Traffic};
use crate::tls::{self, Secured};

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
    /// HTTP/2: all objects side by side on one connection.
    #[serde(rename = "2")]
    Http2,
    /// HTTP/3: the same over QUIC.
    #[serde(rename = "3")]
    Http3,
}

/// What a client makes of servers that speak HTTP/3 beside what they speak over TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Follow {
    /// Nothing.
    #[default]
    Off,
    /// The next connection to a server that has said so (`Alt-Svc`) is a race.
    Announced,
    /// All servers are known to from the beginning, as by a record of the name system (HTTPS): each first connection is a race.
    Known,
}

/// Fetches lists of objects over HTTP/1.0, 1.1, 2 or 3 and measures how long that takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host to fetch from, or `"host:port"`; the far end if not given. An object may name another.
    pub server: Option<String>,
    /// Port of servers without one; 80, and 443 over TLS and in HTTP/3, if not given.
    pub port: Option<u16>,
    /// Host of a proxy that is asked for whole addresses (`http-cache` with `mode = "addressed"`), or `"host:port"`; over
    /// TLS it is asked for a tunnel to each server (CONNECT). Without it servers are asked themselves.
    pub proxy: Option<String>,
    /// Port of the proxy.
    #[default(3128)]
    pub proxy_port: u16,
    /// `"1.0"`, `"1.0-keep-alive"`, `"1.1"`, `"2"`, or `"3"` where the transport is QUIC.
    pub http: Http,
    /// What comes of servers that speak HTTP/3 over QUIC, too: `"off"`; `"announced"`: once a server has said so (`Alt-Svc`), the next
    /// connection to it is a race between QUIC and TCP; `"known"`: so is the first. Over TCP `http` is spoken, `"1.1"` or `"2"`.
    /// Needs `tls`, and a host with `transport = ["tcp", "quic"]`.
    pub alt_svc: Follow,
    /// Hosts whose word is taken for another's: an alternative at any other than the server itself is not followed.
    pub alt_svc_hosts: Vec<String>,
    /// How long TCP waits for QUIC in a race. If not given as in Chromium: not at all until QUIC was up once, nor where it
    /// was broken and not up since; else 1.5 times as long as QUIC's last handshake with that server took, or 300 ms.
    pub race_delay: Option<Duration>,
    /// TLS below HTTP: a table of sizes and habits, `{}` for the usual ones. Without it all is in clear.
    pub tls: Option<tls::Config>,
    /// In HTTP/1.1: use connections for more than one object? If not, `Connection: close` is sent.
    #[default(true)]
    pub keep_alive: bool,
    /// Most connections to one server at a time.
    #[default(2)]
    pub connections: u16,
    /// Most connections to the proxy at a time; `connections` if not given.
    pub proxy_connections: Option<u16>,
    /// Most connections at a time, to all servers together; no limit if not given.
    pub total_connections: Option<u16>,
    /// Over SCTP: streams of an association that objects are dealt over, a request and its response on each; no more than both
    /// ends have. TCP has one stream.
    #[default(1)]
    pub streams: u16,
    /// Finish the connections when a page has ended: each page begins with new ones.
    pub per_page: bool,
    /// Most requests of a connection that wait for their response; more than 1 is pipelining, in HTTP/1.1 only.
    #[default(1)]
    pub pipeline: u16,
    /// In HTTP/2 and 3: most requests of a connection at a time.
    #[default(100)]
    pub h2_streams: u16,
    /// In HTTP/2: octets of a response that may be on their way. Browsers have megabytes.
    #[default(Octets(65_535))]
    pub h2_stream_window: Octets,
    /// In HTTP/2: the same over all responses of a connection; 65535 at least.
    #[default(Octets(65_535))]
    pub h2_conn_window: Octets,
    /// In HTTP/3: octets of the table that field sections may refer to, of ours and, as far as it takes as many, of the peer's; 0
    /// is the static table alone.
    pub qpack_table: Octets,
    /// In HTTP/3: streams that may wait for entries of that table.
    pub qpack_blocked: u16,
    /// In HTTP/2 and 3: say how urgent objects are (RFC 9218): documents before styles and scripts, pictures in parts?
    #[default(true)]
    pub priorities: bool,
    /// Octets that are kept of what was fetched; 0 keeps nothing. What was used longest ago goes first.
    pub cache: Octets,
    /// Octets of the largest object that is kept: as large as the cache if not given.
    pub cache_object: Option<Octets>,
    /// Objects of one page, all known from the start: paths, or tables with `path`, `size`, `server`, `post` (octets of a
    /// form to send there) and more. `["/"]` if none of this, `pages` and `traffic` is given.
    pub objects: Vec<Object>,
    /// Pages, loaded one after another. Of each the first object is fetched alone; the others, which it is taken to
    /// name, follow when it has arrived. Of others in turn `after` says which one names them.
    pub pages: Vec<Vec<Object>>,
    /// Pages drawn from a model of web traffic, loaded as `pages` are: other ones with each seed, and the same for every
    /// protocol.
    pub traffic: Option<Traffic>,
    /// Pages out of a file that `airloom pages` made, or a set that is built in (`"news-2004"`). They are loaded as `pages` are.
    pub page_set: Option<PageSet>,
    /// Pages of the set by their number, from 1, in the order of visits; all of them if not given.
    pub visit: Vec<u32>,
    /// How often everything that is listed is loaded.
    #[default(1)]
    pub repeat: u32,
    /// Pause between two listed pages.
    pub think: Duration,
    /// Time between the arrival of an object that names others and the requests for those, where the object does not say.
    pub parsing: Duration,
    /// Time between what arrives (an answer, a connection that is open) and the requests that follow from it, as a program
    /// has it that is woken: TCP's acknowledgement leaves before them. curl takes 0.1 to 0.3 ms.
    #[default(Duration::from_micros(200))]
    pub reaction: Duration,
    /// When to begin.
    pub start: Duration,
    /// Begin later than `start` by a random time, uniform in 0 to this.
    pub spread: Duration,
    /// Give a connection up that was silent for so long while something was expected of it.
    #[default(Duration::from_secs(115))]
    pub timeout: Duration,
    /// How often an object is asked for again after its connection failed.
    #[default(1)]
    pub retries: u16,
    /// Least octets of a request head; shorter ones are padded with a field. As short as possible if not given.
    pub request: Option<Octets>,
}

impl Config {
    /// What is to be loaded.
    fn list(&self) -> List<'_> {
        let Config { objects, pages, traffic, repeat, think, parsing, start, spread, .. } = self;
        let (repeat, think, parsing, start, spread) = (*repeat, *think, *parsing, *start, *spread);
        let set = self.page_set.as_ref().map(|set| (set, self.visit.as_slice()));
        List { objects, pages, traffic: traffic.as_ref(), set, repeat, think, parsing, start, spread }
    }

    /// Is what it asks for protected on its way?
    fn is_secured(&self) -> bool {
        self.tls.is_some() || self.http == Http::Http3
    }

    /// The scheme of its servers.
    fn scheme(&self) -> &'static str {
        if self.is_secured() { "https" } else { "http" }
    }

    /// The port that the scheme has by itself.
    fn scheme_port(&self) -> u16 {
        if self.is_secured() { 443 } else { 80 }
    }

    /// Does a connection carry more than one object?
    fn persists(&self) -> bool {
        match self.http {
            Http::Http10 => false,
            Http::Http10KeepAlive | Http::Http2 | Http::Http3 => true,
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
    let server = config.server.clone().or_else(|| parts.far_end.map(str::to_owned));
    let places = Whereabouts { server: server.as_deref(), host: parts.host, resolve: parts.resolve };
    let is_able = parts.transports.first() != Some(&"quic") && parts.transports.contains(&"quic");
    let message = "needs a host with transport = [\"tcp\", \"quic\"]";
    ConfigError::when(config.alt_svc != Follow::Off && !is_able, "alt_svc", message)?;
    let (tls, http) = (config.tls.clone(), config.http);
    let client = Client::new(config, &places, |name| parts.stream(name))?;
    Ok(match tls {
        None => Box::new(client),
        Some(tls) => {
            let alpn = if http == Http::Http2 { "h2" } else { "http/1.1" };
            let tunnels = client.tunnels();
            Box::new(Secured::new(Box::new(client), tls, vec![alpn], tunnels))
        }
    })
}
