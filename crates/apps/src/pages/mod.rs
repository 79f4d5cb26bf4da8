//! Lists of objects to load, page after page: what browsers of every protocol have in common.
//!
//! [`Plan`] says which page begins when, [`Page`] which objects of it wait and what has come of the others, [`Loads`]
//! keeps the results. Pages are listed, or drawn from a model ([`Traffic`]).

mod loads;
mod object;
mod page;
mod plan;
mod set;
mod traffic;

use std::net::IpAddr;

pub(crate) use loads::Loads;
pub(crate) use object::FORM;
pub use object::{Detailed, Object};
pub(crate) use page::{Job, Page};
pub(crate) use plan::{List, Plan};
pub use set::PageSet;
pub use traffic::{Model, Traffic};

/// `host` and `port` as they stand between a scheme and the path; the port that the scheme has by itself is not said.
pub(crate) fn authority(host: &str, port: u16, usual: u16) -> String {
    let host = match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => host.to_owned(),
    };
    if port == usual { host } else { format!("{host}:{port}") }
}

/// An authority without its port: an address of IPv6 stays in its brackets.
pub(crate) fn host_of(authority: &str) -> &str {
    authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(authority, |(host, _)| host)
}
