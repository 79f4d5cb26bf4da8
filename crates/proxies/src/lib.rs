//! Performance enhancing proxies and gateways, one folder each, and their registry.
//!
//! A proxy that ends its clients' connections is, to its host, an application: it has ports and opens connections.
//!
//! Not here: HTTP's and WAP's formats (`content`, `wap`), and the daemons that put the same machines on real sockets (`drive`).

pub use airloom_apps::{Build, fetch};
use airloom_base::Entry;

pub mod http_cache;
pub mod lookup;
mod relay;
pub mod split_tcp;
pub mod wap_gateway;

/// All proxies, by the name scenario files use.
pub const REGISTRY: &[Entry<Build>] = &[
    Entry::new::<http_cache::Config>("http-cache", http_cache::build),
    Entry::new::<split_tcp::Config>("split-tcp", split_tcp::build),
    Entry::new::<wap_gateway::Config>("wap-gateway", wap_gateway::build),
];

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Entry<Build>> {
    REGISTRY.iter().find(|e| e.name == name)
}
