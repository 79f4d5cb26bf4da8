//! Applications, one folder each, and their registry: bulk transfers, FTP, HTTP clients and servers, pages and browsers (HTTP and
//! WAP), pushes, pings, and the layers of TLS and WTLS between an application and its sockets.
//!
//! Not here: the messages themselves (`content`), gateways and caches, which are applications of a host in the middle (`proxies`),
//! and real programs (`drive`).

use airloom_base::{App, AppParts, ConfigError, Entry};
use serde_json::Value;

pub mod bulk;
pub mod fetch;
pub mod ftp;
#[cfg(test)]
mod hostile_tests;

pub mod http_client;
pub mod http_server;
pub mod name_server;
pub mod net;
pub mod pages;
pub mod ping;
pub mod push;
pub mod striped;
#[cfg(test)]
mod testing;
mod times;
pub mod tls;
pub mod wap_browser;
pub mod wtls;

/// Builds an application from its table.
pub type Build = fn(&Value, &AppParts) -> Result<Box<dyn App>, ConfigError>;

/// All applications, by the name scenario files use.
pub const REGISTRY: &[Entry<Build>] = &[
    Entry::new::<bulk::client::Config>("bulk", bulk::client::build),
    Entry::new::<bulk::server::Config>("bulk-server", bulk::server::build),
    Entry::new::<ftp::Config>("ftp", ftp::build_client),
    Entry::new::<ftp::ServerConfig>("ftp-server", ftp::build_server),
    Entry::new::<http_client::Config>("http-client", http_client::build),
    Entry::new::<http_server::Config>("http-server", http_server::build),
    Entry::new::<name_server::Config>("name-server", name_server::build),
    Entry::new::<ping::Config>("ping", ping::build),
    Entry::new::<ping::ServerConfig>("ping-server", ping::build_server),
    Entry::new::<push::Config>("push", push::build),
    Entry::new::<striped::Config>("striped", striped::build_client),
    Entry::new::<striped::ServerConfig>("striped-server", striped::build_server),
    Entry::new::<wap_browser::Config>("wap-browser", wap_browser::build),
];

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Entry<Build>> {
    REGISTRY.iter().find(|e| e.name == name)
}
