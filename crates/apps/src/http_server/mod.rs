//! An HTTP/1.0, 1.1, 2 and 3 server of made-up objects.
//!
//! ```text
//! socket ──> RequestReader ──> site: what is there? ──> response: head + filler ──> socket
//!               (content::http)   (site.rs)               (response.rs)
//! ```
//!
//! `/<size>` gives that many octets (`/200kB`, `/10240`), a table in the scenario gives other paths their sizes, and
//! `/` is a page that says so. A query with `octets=` and a number gives that many whatever the path is: so are objects of a
//! page set asked for. Paths that end with `.wml` or `.html` (`/10kB.wml`) are decks and pages of that size
//! (`documents.rs`), which a gateway can compile or convert. The octets of an object are a fixed function of its path: a
//! real client that fetches it twice gets the same file.
//!
//! One request of a connection is worked on at a time and further (pipelined) ones stay unread, so a peer that
//! does not read its responses is held back by the transport; nothing is buffered but heads, whose size is limited.
//! Timers: a connection without a complete request is closed after `idle_timeout`, one that takes no octets of a
//! response is reset after `stall_timeout`, and after the last response the server finishes its side and reads on
//! for a minute (an early full close would reset the connection and destroy what the client has not read). Neither
//! time runs while a response is still getting on through the transport: on a slow link that takes minutes.
//!
//! A head that is written apart (`head_apart`) leaves before its body, which follows a nanosecond later. What is shorter than a segment
//! at the end of the body then waits for the acknowledgement of the head, unless the host's TCP has `nagle = "off"`, as servers
//! set it.
//!
//! Over SCTP each stream of an association is served like a connection, but for its end: it has none of its own. A body's end
//! is marked by its length, `Connection` is not heard, and a stream on which nonsense arrived is answered once and used no more.
//! The times are the same for each stream; an association of idle streams is shut down after `idle_timeout`.
//!
//! With `http = "2"` a connection that begins with the preface of HTTP/2 speaks it (`multiplexed.rs`), and others HTTP/1.1. Requests
//! are answered side by side as they come, most urgent first (RFC 9218); a connection without requests is told that it ends
//! (GOAWAY) after `idle_timeout`, and one that takes nothing of what is sent is reset after `stall_timeout`.
//!
//! With `http = "3"` it speaks that, on a host with QUIC, and nothing else; all else is as in HTTP/2. With `http3 = true` it speaks
//! it beside another version over TCP and TLS, at the same port, and says so in its responses (`Alt-Svc`, RFC 7838). A server with
//! `names` is no other: whoever asks it for another one is told so (421).
//!
//! Standards: RFC 9112, RFC 9113, RFC 9114, RFC 9110, RFC 1945, draft-natarajan-http-over-sctp. Left out: conditional and range requests, methods but GET and HEAD.

mod association;
mod connection;
mod documents;
mod multiplexed;
mod response;
mod served;
mod server;
mod site;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use airloom_base::units::Octets;
use airloom_base::{App, AppParts, ConfigError, Duration};
use airloom_content::http::message::RequestHead;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

pub use server::Server;

use crate::net;
use crate::pages::{authority, host_of};
use crate::tls::{self, Secured, Tunnels};

/// Highest version a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Http {
    /// HTTP/1.0: one request per connection unless the client asks to keep it.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/2 towards clients that begin with it, HTTP/1.1 towards others.
    #[serde(rename = "2")]
    Http2,
    /// HTTP/3, where the transport is QUIC, and no other.
    #[serde(rename = "3")]
    Http3,
}

/// How the end of an object is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coding {
    /// By a Content-Length.
    #[default]
    Length,
    /// By chunks; for clients of version 1.0 by closing the connection, or over SCTP by a Content-Length.
    Chunked,
    /// By closing the connection; over SCTP by a Content-Length.
    Close,
}

/// Serves made-up objects over HTTP/1.0, 1.1, 2 and 3: `/<size>` (such as `/200kB`) gives that many octets, and so do the
/// paths of a table; `/<size>.wml` is a deck and `/<size>.html` a page of that size, `/<size>.xhtml` the text of that deck as a
/// page of XHTML Mobile Profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Port to listen on; 80, and 443 over TLS and in HTTP/3, if not given.
    pub port: Option<u16>,
    /// Highest version spoken: `"1.0"`, `"1.1"` or `"2"`; or `"3"`, where the transport is QUIC.
    pub http: Http,
    /// Beside that, HTTP/3 over QUIC at the same port? Needs `tls`, and a host with `transport = ["tcp", "quic"]`.
    pub http3: bool,
    /// The field `Alt-Svc` of all responses, `'h3=":8443"; ma=3600'`; nothing is said with `""`. With `http3` it names that by
    /// itself, for a day.
    pub alt_svc: Option<String>,
    /// Servers it answers for, by their names as clients know them: requests to others get a 421 (Misdirected Request). All, if
    /// none is given.
    pub names: Vec<String>,
    /// TLS below HTTP: a table of sizes and habits, `{}` for the usual ones. Without it all is in clear.
    pub tls: Option<tls::Config>,
    /// Sizes of objects by path; each path begins with `/`.
    pub objects: BTreeMap<String, Octets>,
    /// Keep connections open where version and client allow it?
    #[default(true)]
    pub keep_alive: bool,
    /// Close a connection after so many requests (an association too, over all its streams); no limit if not given.
    pub max_requests: Option<u32>,
    /// Close a connection on which no complete request arrived for so long.
    #[default(Duration::from_secs(15))]
    pub idle_timeout: Duration,
    /// Reset a connection whose client took nothing of a response for so long.
    #[default(Duration::from_secs(60))]
    pub stall_timeout: Duration,
    /// Time between a request and its response.
    pub delay: Duration,
    /// Write a head and its body apart, so that the head leaves in a packet of its own: nginx does with `sendfile` unless
    /// `tcp_nopush` is on, Python's `http.server` does, Apache and nginx by itself do not. In clear over TCP, for HTTP/1.
    pub head_apart: bool,
    /// How the end of an object is marked: `"length"`, `"chunked"` or `"close"`.
    pub coding: Coding,
    /// Size of a chunk.
    #[default(Octets(8192))]
    pub chunk: Octets,
    /// Least octets of a response head; shorter ones are padded with a field. As short as possible if not given.
    pub response: Option<Octets>,
    /// Connections beyond this number are reset.
    #[default(10_000)]
    pub max_connections: u32,
    /// In HTTP/2: requests of a connection that are worked on at a time. (In HTTP/3 that is for QUIC to say.)
    #[default(100)]
    pub h2_streams: u32,
    /// In HTTP/2: octets of a request's body that are taken before more is asked for.
    #[default(Octets(65_535))]
    pub h2_stream_window: Octets,
    /// In HTTP/2: the same over all requests of a connection; 65535 at least.
    #[default(Octets(65_535))]
    pub h2_conn_window: Octets,
    /// In HTTP/3: octets of the table that field sections may refer to, of ours and, as far as it takes as many, of the peer's; 0
    /// is the static table alone.
    pub qpack_table: Octets,
    /// In HTTP/3: streams that may wait for entries of that table.
    pub qpack_blocked: u16,
}

impl Config {
    /// Where it listens.
    fn port(&self) -> u16 {
        let usual = if self.tls.is_some() || self.http == Http::Http3 { 443 } else { 80 };
        self.port.unwrap_or(usual)
    }

    /// Is it the server that this request is to? Who does not say which takes what there is.
    fn answers_for(&self, request: &RequestHead) -> bool {
        let asked = request.authority().map(String::from_utf8_lossy);
        let is_named = |asked: &str| self.names.iter().any(|name| name.eq_ignore_ascii_case(host_of(asked)));
        self.names.is_empty() || asked.is_none_or(|asked| is_named(&asked))
    }

    /// Does a request say that it is here by way of an alternative, at this port (RFC 7838, 5)?
    fn is_alternative_of(&self, request: &RequestHead) -> bool {
        let used = request.fields.first("alt-used").map(String::from_utf8_lossy);
        used.is_some_and(|used| *used == authority(host_of(&used), self.port(), 443))
    }

    /// What it says of its alternatives.
    fn alternatives(&self) -> Option<Bytes> {
        match &self.alt_svc {
            Some(value) => Some(value.clone().into()).filter(|value: &Bytes| !value.is_empty()),
            //= RFC 7838 (3.1): a day is what is meant where nothing is said. Saying it keeps clear of clients that do not know that.
            None => self.http3.then(|| format!("{}=\":{}\"; ma=86400", net::H3, self.port()).into()),
        }
    }
}

/// Builds the server from its table.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    let is_unable = config.http3 && !parts.transports.contains(&"quic");
    ConfigError::when(is_unable, "http3", "needs a host with transport = [\"tcp\", \"quic\"]")?;
    let (tls, http) = (config.tls.clone(), config.http);
    let server = Server::new(config)?;
    Ok(match tls {
        None => Box::new(server),
        Some(tls) => {
            let alpn = match http {
                Http::Http2 => vec!["h2", "http/1.1"],
                Http::Http3 => vec!["h3"],
                Http::Http11 | Http::Http10 => vec!["http/1.1"],
            };
            Box::new(Secured::new(Box::new(server), tls, alpn, Tunnels::default()))
        }
    })
}
