//! A UDP socket and the time since it was opened.
#![expect(
    clippy::disallowed_types,
    reason = "this is where the machines meet the system's clock and sockets"
)]

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use airloom_base::Instant;
use bytes::Bytes;

use super::Watch;
use super::error::Error;

/// How long is waited at a time before the caller is asked whether to go on.
const LOOK: Duration = Duration::from_millis(100);
/// The largest datagram there is.
const MOST: usize = 65_535;

/// `time` from now on, or never.
pub(super) fn after(now: Instant, time: Duration) -> Instant {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    now + airloom_base::Duration::from_nanos(nanos)
}

/// A socket; its time begins when it is opened and goes on when it is opened anew.
pub(super) struct Socket {
    socket: UdpSocket,
    peer: Option<SocketAddr>,
    began: std::time::Instant,
    buffer: Vec<u8>,
}

impl Socket {
    /// Bound to `local`; with a `peer` it hears that one only, and hears of its absence.
    pub(super) fn open(local: SocketAddr, peer: Option<SocketAddr>) -> Result<Socket, Error> {
        let fail = |what, address| move |error| Error::Socket { what, address, error };
        let socket = UdpSocket::bind(local).map_err(fail("cannot listen on", local))?;
        if let Some(peer) = peer {
            socket.connect(peer).map_err(fail("cannot reach", peer))?;
        }
        Ok(Socket { socket, peer, began: std::time::Instant::now(), buffer: vec![0; MOST] })
    }

    /// The same clock on another socket.
    pub(super) fn reopen(&mut self, local: SocketAddr, peer: Option<SocketAddr>) -> Result<(), Error> {
        let Socket { socket, peer, .. } = Socket::open(local, peer)?;
        (self.socket, self.peer) = (socket, peer);
        Ok(())
    }

    /// The address it is bound to.
    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The time.
    pub(super) fn now(&self) -> Instant {
        let nanos = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(nanos)
    }

    /// Sends a datagram to the peer.
    pub(super) fn send(&self, to: SocketAddr, datagram: &[u8]) -> Result<(), Error> {
        match self.socket.send(datagram) {
            // What a datagram before this one met: it is told by the next `wait` too, or was of no matter.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Err(Error::NobodyThere(to)),
            Err(error) => Err(Error::Socket { what: "cannot send to", address: to, error }),
            Ok(_) => Ok(()),
        }
    }

    /// Waits for a datagram, at most until `until`: from where it came, and what.
    pub(super) fn wait(
        &mut self,
        until: Instant,
        watch: Watch,
    ) -> Result<Option<(SocketAddr, Bytes)>, Error> {
        loop {
            if !watch() {
                return Err(Error::Interrupted);
            }
            let now = self.now();
            if until <= now {
                return Ok(None);
            }
            // A time-out of nothing would be none.
            let left =
                Duration::from_nanos(until.since(now).as_nanos()).min(LOOK).max(Duration::from_micros(1));
            let address = self.peer.or_else(|| self.local().ok()).unwrap_or_else(|| ([0; 4], 0).into());
            let fail = |error| Error::Socket { what: "cannot receive from", address, error };
            self.socket.set_read_timeout(Some(left)).map_err(fail)?;
            match self.socket.recv_from(&mut self.buffer) {
                Ok((len, from)) => {
                    return Ok(Some((from, Bytes::copy_from_slice(&self.buffer[..len]))));
                }
                Err(error) => match (error.kind(), self.peer) {
                    (ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted, _) => {}
                    (ErrorKind::ConnectionRefused, Some(peer)) => return Err(Error::NobodyThere(peer)),
                    _ => return Err(fail(error)),
                },
            }
        }
    }
}
