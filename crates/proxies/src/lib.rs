//! Performance enhancing proxies and gateways, one folder each, and their registry.
//!
//! A proxy that ends its clients' connections is, to its host, an application: it has ports and opens connections.

pub use airloom_apps::Build;
use airloom_base::Entry;

pub mod split_tcp;
pub mod wap_gateway;

/// All proxies, by the name scenario files use.
pub const REGISTRY: &[Entry<Build>] = &[
    Entry::new::<split_tcp::Config>("split-tcp", split_tcp::build),
    Entry::new::<wap_gateway::Config>("wap-gateway", wap_gateway::build),
];

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Entry<Build>> {
    REGISTRY.iter().find(|e| e.name == name)
}
