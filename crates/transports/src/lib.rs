//! End-to-end protocols, one crate each, and their registry: TCP, SCTP, QUIC, WWP, and WTP with WSP above it.
//!
//! A protocol makes connections (`Transport`), or is a library that applications speak over datagrams (WTP, WSP).
//!
//! Not here: UDP and ICMP, which a host does itself (`world`), and headers that no protocol owns (`wire`).

pub use airloom_quic as quic;
pub use airloom_sctp as sctp;
pub use airloom_tcp as tcp;
pub use airloom_wap::{shares, unpredictable, wsp, wtp};
pub use airloom_wwp as wwp;

use airloom_base::{ConfigError, Entry, Protocol, ProtocolParts};
use serde_json::Value;

/// Builds a host's instance of a protocol from its table.
pub type Build = fn(&Value, &ProtocolParts) -> Result<Box<dyn Protocol>, ConfigError>;

/// All transports, by the name scenario files use.
pub const REGISTRY: &[Entry<Build>] = &[
    Entry::new::<quic::Config>("quic", quic::Quic::from_table),
    Entry::new::<sctp::Config>("sctp", sctp::Sctp::from_table),
    Entry::new::<tcp::Config>("tcp", tcp::Tcp::from_table),
    Entry::new::<wwp::Config>("wwp", wwp::Wwp::from_table),
];

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Entry<Build>> {
    REGISTRY.iter().find(|e| e.name == name)
}
