//! An end of HTTP/2 and the socket below it.

use airloom_base::units::Octets;
use airloom_base::{Body, ConfigError, Cx, SocketId, Sockets};
use airloom_content::http::v2::{Connection, Event};

/// Moves octets between a socket and one end of a connection.
#[derive(Default)]
pub(crate) struct Pipe {
    /// What the socket did not take yet.
    unwritten: Option<Body>,
}

impl Pipe {
    /// Writes until the socket takes no more or nothing is left, and says how many octets it took. What is sent next is decided
    /// when there is room for it.
    pub(crate) fn write(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        end: &mut Connection,
    ) -> u64 {
        let mut written = 0;
        while let Some(mut piece) = self.unwritten.take().or_else(|| end.poll_transmit()) {
            let taken = net.write(cx, socket, piece.clone()).min(piece.len());
            written += taken as u64;
            if taken < piece.len() {
                drop(piece.split_to(taken));
                self.unwritten = Some(piece);
                break;
            }
        }
        written
    }

    /// The next thing that happened, by what can be read. Nothing is read while too much waits to be written.
    pub(crate) fn read(
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        end: &mut Connection,
    ) -> Option<Event> {
        loop {
            if let Some(event) = end.poll_event() {
                return Some(event);
            }
            if end.is_held_back() {
                return None;
            }
            end.feed(net.read(cx, socket, usize::MAX)?);
        }
    }

    /// Is everything written that was given?
    pub(crate) fn is_empty(&self) -> bool {
        self.unwritten.is_none()
    }
}

/// Refuses windows that HTTP/2 cannot have.
///
/// # Errors
/// [`ConfigError`] with the key.
pub(crate) fn check_windows(stream: Octets, connection: Octets) -> Result<(), ConfigError> {
    const MOST: u64 = 0x7fff_ffff;
    // With less, window updates are so large a part of what is sent that a server takes them for a flood.
    const LEAST: u64 = 1_000;
    if !(LEAST..=MOST).contains(&stream.0) {
        return Err(ConfigError::at("h2_stream_window", "must be 1000B to 2147483647B"));
    }
    //= RFC 9113 (6.9.2): the window of a connection begins with 65,535 octets and can only grow.
    if !(65_535..=MOST).contains(&connection.0) {
        return Err(ConfigError::at("h2_conn_window", "must be 65535B to 2147483647B"));
    }
    Ok(())
}
