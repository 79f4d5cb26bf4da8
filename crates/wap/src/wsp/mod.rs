//! WSP, the session protocol of WAP 1.x (WAP-203, WAP-230): HTTP's methods and headers in compact form, over WTP or in
//! plain datagrams.
//!
//! [`client`] and [`server`] are the two ends of sessions, machines over datagrams with WTP inside; [`connectionless`] is
//! the form without a session. Their PDUs are [`wire`], what they agree on [`capabilities`], their codes [`status`],
//! the headers that travel in them [`headers`]; [`initiation`] is how a server asks for a session.

pub mod address;
pub mod capabilities;
pub mod client;
pub mod connectionless;
pub mod headers;
pub mod initiation;
pub mod server;
pub mod status;
pub mod wire;
