//! Takes sessions on a UDP port.
#![expect(
    clippy::disallowed_types,
    reason = "this is where the machine meets the system's clock and sockets"
)]

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::envelope::{self, Greeting};
use super::failure::Failure;
use super::session::Session;
use super::socket::{LARGEST, SHORTEST, is_passing, prepare};
use crate::secret;

/// No SYN is longer: what strangers send is not worth more work.
const LONGEST_FIRST: usize = 128;

/// Takes sessions on a UDP port, one at a time.
pub struct Listener {
    socket: UdpSocket,
    secret: (u64, u64),
}

impl Listener {
    /// A listener at this address.
    ///
    /// # Errors
    /// As the system says: the address is taken, or is not ours.
    pub fn bind(at: SocketAddr) -> io::Result<Listener> {
        let socket = UdpSocket::bind(at)?;
        prepare(&socket);
        Ok(Listener { socket, secret: secret::key()? })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The next session, if one begins within `wait`. It ends when nothing is heard from its peer for `patience`.
    ///
    /// # Errors
    /// As the system says of the socket.
    pub fn accept(&mut self, wait: Duration, patience: Duration) -> Result<Option<Session>, Failure> {
        let began = std::time::Instant::now();
        let mut buffer = vec![0; LARGEST];
        loop {
            let left = wait.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left.max(SHORTEST)))?;
            let (len, from) = match self.socket.recv_from(&mut buffer) {
                Ok(came) => came,
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            let datagram = &buffer[..len];
            let name = envelope::name(self.secret, from);
            if let Some((Greeting::Hello, nonce)) = envelope::greeted(datagram) {
                let _ = self.socket.send_to(&envelope::greet(Greeting::Welcome(name), nonce), from);
            } else if len <= LONGEST_FIRST
                && let Some(unit) = envelope::open(name, datagram)
                && let Some(session) = Session::accepted(&self.socket, from, name, unit, patience)?
            {
                // The next session has another name, so that nothing late of this one is taken for it.
                self.secret = secret::key()?;
                return Ok(Some(session));
            }
        }
    }
}
