//! What every application over streams needs: a table of its connections, their deadlines, and octets on their
//! way out.

mod connections;
mod deadlines;
mod multiplexing;
mod outgoing;
mod under_way;

use airloom_base::{Cx, SocketId, Sockets};

pub use connections::Connections;
pub use deadlines::{Alarm, Deadlines};
pub(crate) use multiplexing::{End, H3, Happened, check_table, check_windows};
pub(crate) use outgoing::Outgoing;
pub(crate) use under_way::UnderWay;

/// Drops what has arrived, and says how many octets that was.
pub fn drain(cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> u64 {
    let mut dropped = 0;
    while let Some(body) = net.read(cx, socket, usize::MAX) {
        dropped += body.len() as u64;
    }
    dropped
}
