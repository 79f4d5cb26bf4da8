//! Performance enhancing proxies and gateways, one folder each.

pub mod wap_gateway;
