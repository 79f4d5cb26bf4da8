//! Pushes without a session: what gateways send to a phone's port 2948.

use std::net::SocketAddr;
use std::time::Duration;

use airloom_transports::wsp::connectionless;
use airloom_transports::wsp::wire::Pdu;

use super::Watch;
use super::error::Error;
use super::headers::{self, List};
use super::socket::{Socket, after};

/// The port of connectionless push (WAP-259).
pub const PORT: u16 = 2948;

/// A push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// Who sent it.
    pub from: SocketAddr,
    /// What it is.
    pub content_type: String,
    /// Its headers.
    pub headers: List,
    /// Its body.
    pub body: bytes::Bytes,
}

/// An open port for pushes.
pub struct Listener {
    socket: Socket,
}

impl Listener {
    /// Listens on `address`.
    pub fn open(address: SocketAddr) -> Result<Listener, Error> {
        Ok(Listener { socket: Socket::open(address, None)? })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local()
    }

    /// The next push; none if none came in time. What is no push is passed over.
    pub fn next(&mut self, time: Duration, watch: Watch) -> Result<Option<Push>, Error> {
        let until = after(self.socket.now(), time);
        while let Some((from, datagram)) = self.socket.wait(until, watch)? {
            let Ok((_, Pdu::Push { headers, data, .. })) = connectionless::parse(&datagram) else { continue };
            if let Ok((content_type, headers)) = headers::content(&headers) {
                return Ok(Some(Push { from, content_type, headers, body: data }));
            }
        }
        Ok(None)
    }
}
