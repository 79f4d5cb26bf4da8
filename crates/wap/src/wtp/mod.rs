//! WTP, the Wireless Transaction Protocol (WAP-201, WAP-224): transactions of one message, or of one message and its
//! result, over datagrams.
//!
//! ```text
//!   user            initiator                              responder           user
//!   TR-Invoke.req -> Invoke ------------------------------> TR-Invoke.ind
//!                    [Ack  <------- hold-on, after A] <---- (the user takes its time)
//!   TR-Result.ind <- Result, in groups of packets <-------- TR-Result.req
//!   TR-Result.res -> Ack ---------------------------------> TR-Result.cnf
//! ```
//!
//! [`Provider`] is one end with all its transactions, a machine over datagrams: simulated hosts feed it from their UDP
//! ports, daemons from sockets. Its parts: [`wire`] the PDUs, [`initiator`] and [`responder`] the state tables of one
//! transaction, [`sar`] segmentation and re-assembly, [`transfer`] a message under way, [`tid`] the counting of
//! transactions, [`validation`] what addresses may be sent that have not shown that they are there. There is no estimate of the round-trip time and no congestion control in WTP.

mod config;
mod counters;
pub mod initiator;
mod provider;
pub mod responder;
pub mod sar;
pub mod tid;
pub mod transfer;
pub mod validation;
pub mod wire;

pub use config::Config;
pub use counters::Counters;
pub use provider::{Event, Provider, Role, Transaction};
pub use transfer::Indication;
