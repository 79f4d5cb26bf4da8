//! A WAP gateway: phones ask by WSP, origins are asked by HTTP, and what comes back is put into a form that phones take.
//!
//! ```text
//!  datagrams                                                                    orders, answers
//!  ────────> clients ── request ──> exchange ──────────────────> origins <────────────────────>
//!            (sessions)              (one of each request)       body, redirections, cache
//!  <──────── replies <── reply, headers ── content <────────────────┘
//!                                          decks kept
//! ```
//!
//! [`Gateway`] is a machine without sockets and clock: whoever runs it brings datagrams of two ports ([`Service`]), carries out
//! [`FetchOrder`]s by whatever HTTP client there is, and tells what came of them ([`Fetched`]). WTP and WSP run inside. The
//! address of an origin is for the fetcher to judge ([`FetchError::Forbidden`]), since it alone resolves names.
//!
//! [`WapGateway`] runs it on a simulated host, with the host's datagrams and, for the origins, HTTP/1.1 over its streams.
//!
//! Everything a stranger can cause is bounded by [`Config`]: sessions, requests under way, octets of bodies, replies and kept
//! decks; an address has no more than its share of them; and one that has not shown that somebody is there is sent no more than a few times what
//! came from it (`wtp::validation`).
//!
//! It pushes too ([`Gateway::push`]), on behalf of whoever asks by PAP ([`pap`], [`Gateway::handle_pap`]); on a simulated host over HTTP at
//! `push_port`.
//!
//! Source: WAP-230 (WSP), WAP-224 (WTP), WAP-164 and WAP-247 (PAP), WAP-235 (push over the air), RFC 9110 to 9112, RFC 6265. Left out: compilation of WMLScript, ranges,
//! `X-Wap-Proxy-Cookie`, user agent profiles (handed on unread).

mod accept;
mod app;
mod body;
mod cache;
mod clients;
mod config;
mod content;
mod cookies;
mod counters;
mod decks;
mod exchange;
mod gateway;
mod headers;
mod initiators;
mod origins;
pub mod pap;
mod push;
mod replies;
mod reply;
mod request;
mod session;

use airloom_apps::fetch;

pub use app::{WapGateway, build};
pub use config::{Config, Processing};
pub use content::Treatment;
pub use counters::{Counters, Exchange};
pub use fetch::{FetchError, FetchId, FetchOrder, FetchRequest, Fetched};
pub use gateway::{Gateway, Service};
pub use push::{Method as PushMethod, Push, PushError, PushId, PushOutcome};
