//! Performance enhancing proxies and gateways.
