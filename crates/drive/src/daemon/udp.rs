//! Datagrams of a daemon: a socket that is read in bursts and never waits when it writes.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

/// What the kernel keeps for us while we are busy: a burst of some thousand requests.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Datagrams read in a row before others get their turn.
const BURST: usize = 64;
/// The largest payload of UDP.
const LARGEST: usize = 65_535;

/// Any address and port of the family of `peer`.
pub(crate) fn anywhere(peer: SocketAddr) -> SocketAddr {
    if peer.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() }
}

/// Bound to `at`; if that is any address of IPv6 and `both` is said, to any of IPv4 as well.
///
/// # Errors
/// As the kernel says: the address is taken, or is not ours.
pub fn bound(at: SocketAddr, both: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    if at.is_ipv6() {
        socket.set_only_v6(!both)?;
    }
    // More than the system allows is cut by the system.
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    UdpSocket::from_std(socket.into())
}

/// A bound socket.
pub struct Datagrams {
    socket: UdpSocket,
    buffer: Vec<u8>,
    /// Datagrams that the kernel had no room for, or no way.
    pub unsent: u64,
}

impl Datagrams {
    /// Binds to `at`.
    ///
    /// # Errors
    /// As the kernel says: the address is taken, or is not ours.
    pub fn bind(at: SocketAddr) -> io::Result<Datagrams> {
        Ok(Datagrams { socket: bound(at, false)?, buffer: vec![0; LARGEST], unsent: 0 })
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Waits until something is there.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Gives what is there to `take`, at most a burst of it.
    pub fn read(&mut self, mut take: impl FnMut(SocketAddr, Bytes)) {
        for _ in 0..BURST {
            match self.socket.try_recv_from(&mut self.buffer) {
                Ok((len, from)) => take(from, Bytes::copy_from_slice(&self.buffer[..len])),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // An ICMP error about a datagram of ours: the next call gives the next datagram.
                Err(_) => {}
            }
        }
    }

    /// Sends a datagram, or counts it as not sent: what it belongs to is repeated by its own protocol.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        if self.socket.try_send_to(datagram, to).is_err() {
            self.unsent += 1;
        }
    }
}
