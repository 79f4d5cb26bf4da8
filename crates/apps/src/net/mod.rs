//! What every application over streams needs: a table of its connections, their deadlines, and octets on their
//! way out.

mod connections;
mod deadlines;
mod multiplexing;
mod outgoing;

pub use connections::Connections;
pub use deadlines::{Alarm, Deadlines};
pub(crate) use multiplexing::{End, H3, Happened, check_windows};
pub(crate) use outgoing::Outgoing;
