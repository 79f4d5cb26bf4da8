//! A scenario file becomes hosts and links; the network as one machine.
//!
//! ```text
//!   scenario/   text -> what was understood, or the line that is wrong
//!   builder     hosts, links, machines -> World
//!   world       the loop inside: links deliver, hosts receive, connections and applications answer
//!   fabric      the links          host/   simulated stacks          port   real hosts
//!   work        slow hosts: links that wait for their processor
//!   agenda      who wants to be called when                          routes shortest paths
//! ```
//!
//! Not here: links, protocols and applications, which come from their registries (`bearers`, `transports`, `apps`, `proxies`), and who says
//! what time it is (`drive`).

mod agenda;
mod builder;
mod fabric;
mod from_scenario;
mod host;
mod observed;
mod port;
mod port_routes;
mod routes;
pub mod scenario;
mod summary;
mod work;
mod world;

pub use builder::{BuildError, Builder, End, HostId, LinkId, Part};
pub use host::Totals;
pub use port::{PortDevice, PortId, PortInfo, RealTcp};
pub use summary::Books;
pub use work::{Away, Work, WorkLaw};
pub use world::{Strays, World};
