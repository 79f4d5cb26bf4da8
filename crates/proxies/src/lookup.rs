//! Names whose addresses a proxy asks for while it runs: of the scenario in a simulated network, of the system in a daemon.

use std::net::IpAddr;

use airloom_apps::fetch::FetchError;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Its number; never used twice.
    pub id: u64,
    /// The name of a host, or an address as text.
    pub host: String,
}

/// What came of it: addresses that may be connected to, the best first, or why there are none.
pub type Found = Result<Vec<IpAddr>, FetchError>;
