//! What every application over streams needs: a table of its connections, and octets on their way out.

mod connections;
mod outgoing;

pub(crate) use connections::Connections;
pub(crate) use outgoing::Outgoing;
