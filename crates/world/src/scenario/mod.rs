//! A scenario file: text becomes a typed, checked network description with every default filled in.
//!
//! ```text
//! octets --Document::read--> tree with places --set, set_real--> tree --scenario--> Scenario
//!                                                     (registries check the tables of components)
//! Scenario --to_json--> the scenario as understood --Document::read--> the same Scenario
//! ```
//!
//! | file | concern |
//! |---|---|
//! | `document`, `json_text` | reading, options, the line of a fault |
//! | `tree`, `read`, `errors` | values with places; typed values; the sentence |
//! | `parse` | the order of the parts: `hosts`, `links` (with `short_form` and `addresses`), `routes`, `timeline`, `run` |
//! | `overrides` | `--set` |
//! | `renamed` | old names of keys |
//! | `check` | what only building finds |
//! | `live` | changes by hand while it runs |
//! | `canonical`, `json_schema` | the way back: as understood, for editors |
//! | `schema` | the result |
//!
//! Everything wrong is a [`ScenarioError`]: file, line, what was found, what would be valid. The tree keeps the
//! place of every key, so the line is known even for what a component's own configuration type refuses.
//! `docs/reference/scenario.md` explains the keys.

mod addresses;
mod canonical;
mod check;
mod document;
mod environments;
mod errors;
mod hosts;
mod json_schema;
mod json_text;
mod links;
mod live;
mod load;
mod overrides;
mod parse;
mod read;
mod registries;
mod renamed;
mod routes;
mod run;
mod schema;
mod short_form;
#[cfg(test)]
mod tests;
mod timeline;
mod tree;

pub use canonical::Identity;
pub use document::Document;
pub use errors::ScenarioError;
pub use json_schema::scenario_schema;
pub use live::Live;
pub use registries::{Known, Registries};
pub use schema::{
    Component, Destination, Host, HostSettings, Interface, Link, Prefix, RecordKind, Route, Run, Scenario,
    TimelineEntry, Until,
};
