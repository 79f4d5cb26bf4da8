//! A scenario file: text becomes a typed, checked network description with every default filled in.

mod schema;

pub use schema::{
    Component, Destination, Host, HostSettings, Interface, Link, Prefix, RecordKind, Route, Run, Scenario,
    TimelineEntry, Until,
};
