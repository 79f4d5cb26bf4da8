//! Links, one folder each, and their registry: wires, traces, the radio link layers of UMTS, HSDPA, EGPRS and PHS, and bundles of
//! them (PPP Multilink).
//!
//! Not here: which hosts a link joins and how packets find it (`world`), and addresses: a bearer carries datagrams between points.
//!
//! A new bearer is a folder with a `Config` (serde; its doc comments are its reference) and a type that
//! implements [`Bearer`], a `pub mod` line and a line in [`REGISTRY`]. Of a cell that type is `Cell` (`cell.rs`) around
//! a mobile of its own.

mod air_time;
mod cell;
pub mod channel;
mod deadlines;
pub mod egprs;
pub mod faults;
mod late;
pub mod mlppp;
pub mod nested;
pub mod piafs;
pub mod ppp;
mod timed;
pub mod trace;
mod traffic;
pub mod umts;
pub mod vdeldrop;
pub mod wireline;

use airloom_base::{Bearer, ConfigError, Entry, Parts};
use serde_json::Value;

/// Builds a bearer from its table.
pub type Build = fn(&Value, &mut Parts) -> Result<Box<dyn Bearer>, ConfigError>;

/// All bearers, by the name scenario files use.
pub const REGISTRY: &[Entry<Build>] = &[
    Entry::new::<egprs::EgprsConfig>("egprs", egprs::Egprs::build),
    Entry::new::<mlppp::MlpppConfig>("mlppp", mlppp::Mlppp::build),
    Entry::new::<piafs::PiafsConfig>("piafs", piafs::Piafs::build),
    Entry::new::<trace::Config>("trace", trace::build),
    Entry::new::<umts::UmtsDchConfig>("umts-dch", umts::UmtsDch::build),
    Entry::new::<umts::UmtsHsdpaConfig>("umts-hsdpa", umts::UmtsDch::build_hsdpa),
    Entry::new::<vdeldrop::Config>("vdeldrop", vdeldrop::build),
    Entry::new::<wireline::Config>("wireline", wireline::build),
];

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Entry<Build>> {
    REGISTRY.iter().find(|e| e.name == name)
}
