//! UDP with what QUIC wants to know of a datagram beside its octets: its ECN codepoint, and which of our addresses it came to.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use bytes::BytesMut;
use noq_proto::{EcnCodepoint, FourTuple, Transmit};
use noq_udp::{RecvMeta, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::daemon::udp::bound;

/// Reads in a row before others get their turn; each may bring several datagrams of one sender.
const BURST: usize = 64;
/// The most that the kernel gives at once.
const LARGEST: usize = 65_535;

/// A bound socket.
pub(super) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    buffer: Vec<u8>,
}

impl Socket {
    /// As [`bound`].
    pub(super) fn bind(at: SocketAddr, both: bool) -> io::Result<Socket> {
        let socket = bound(at, both)?;
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Socket { socket, state, buffer: vec![0; LARGEST] })
    }

    /// # Errors
    /// As the kernel says.
    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Waits until something is there.
    ///
    /// # Errors
    /// As the kernel says.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Gives what is there to `take`, at most a burst of it.
    pub(super) fn read(&mut self, mut take: impl FnMut(FourTuple, Option<EcnCodepoint>, BytesMut)) {
        let Socket { socket, state, buffer } = self;
        for _ in 0..BURST {
            let mut about = [RecvMeta::default()];
            let got = socket.try_io(Interest::READABLE, || {
                state.recv((&*socket).into(), &mut [IoSliceMut::new(buffer)], &mut about)
            });
            match got {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // An ICMP error about a datagram of ours: the next call gives the next datagram.
                Err(_) => continue,
            }
            let [about] = about;
            let path = FourTuple::new(about.addr, about.dst_ip);
            let ecn = about.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
            for datagram in buffer[..about.len].chunks(about.stride.max(1)) {
                take(path, ecn, BytesMut::from(datagram));
            }
        }
    }

    /// Sends a datagram. What the kernel has no room or no way for is lost, and repeated by QUIC.
    pub(super) fn send(&self, about: &Transmit, octets: &[u8]) {
        let transmit = noq_udp::Transmit {
            destination: about.destination,
            ecn: about.ecn.and_then(|ecn| noq_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: &octets[..about.size],
            segment_size: None,
            src_ip: about.src_ip,
        };
        // Not by way of the runtime: to that a socket that it has not looked at yet takes nothing, and a client's first datagram
        // is sent before it has.
        let _ = self.state.try_send((&self.socket).into(), &transmit);
    }
}
