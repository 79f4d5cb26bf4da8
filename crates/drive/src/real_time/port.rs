//! Where datagrams of real hosts enter and leave the model.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, send,
    setsockopt, socket,
};
use nix::sys::time::TimeSpec;

use airloom_base::{Instant, Packet};
use airloom_wire::edge;

use super::clock::Stamps;
use super::sys;

/// A device through which datagrams of one real host come and go.
///
/// The engine knows nothing else of devices: a TUN device, or a packet socket that hands over unsegmented
/// super-packets, is another implementation.
pub trait Port: Send {
    /// Readable when something has arrived.
    fn readable(&self) -> BorrowedFd<'_>;
    /// Takes at most `limit` datagrams that have arrived, in order. Never waits.
    fn receive(&mut self, stamps: Stamps, limit: usize, take: &mut dyn FnMut(Arrival)) -> io::Result<()>;
    /// Sends a datagram. Never waits: what the device does not take is lost and counted.
    fn send(&mut self, packet: &Packet);
    /// What it counted.
    fn counters(&mut self) -> PortCounters;
}

/// A datagram that came out of a real host.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Nominal time of its arrival.
    pub at: Instant,
    /// Its octets, possibly with padding of the link layer at the end.
    pub datagram: Bytes,
    /// Its transport checksum needs no check: the sending kernel left it open or vouches for it.
    pub transport_done: bool,
}

/// Counts of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Datagrams taken from the real host.
    pub received: u64,
    /// Datagrams given to the real host.
    pub sent: u64,
    /// Frames that were not IP (or too short to tell), thrown away.
    pub not_ip: u64,
    /// Datagrams that never leave a link (link-local, link-scope multicast), thrown away.
    pub link_local: u64,
    /// Frames lost because nobody read them in time: losses outside the model.
    pub overflow: u64,
    /// Datagrams that the device did not take: losses outside the model.
    pub unsent: u64,
}

impl PortCounters {
    /// The sum of two.
    pub fn plus(self, other: PortCounters) -> PortCounters {
        PortCounters {
            received: self.received + other.received,
            sent: self.sent + other.sent,
            not_ip: self.not_ip + other.not_ip,
            link_local: self.link_local + other.link_local,
            overflow: self.overflow + other.overflow,
            unsent: self.unsent + other.unsent,
        }
    }
}

const ETHERNET: usize = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86DD;
/// A frame of the largest datagram.
const LARGEST: usize = ETHERNET + 65_535;
/// Octets of frames that may wait to be read.
const RECEIVE_BUFFER: usize = 16 << 20;

/// One end of a veth pair, read and written as raw frames.
pub(super) struct PacketSocket {
    socket: OwnedFd,
    frame: Box<[u8]>,
    control: Vec<u8>,
    out: Vec<u8>,
    /// Destination and source of frames to the host.
    addresses: [u8; 12],
    counters: PortCounters,
}

impl PacketSocket {
    /// Opens a socket on device `index` of the calling thread's namespace. This is the only step that needs the
    /// rights of that namespace: the socket may be handed to another process.
    pub(super) fn open(index: u32) -> io::Result<OwnedFd> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // Protocol 0: nothing is received before the socket is bound to its one device.
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None::<SockProtocol>)?;
        // Larger than an ordinary user may ask for; the default has to do where that is refused.
        let _ = setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER);
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        sys::ignore_outgoing(socket.as_fd())?;
        sys::bind_to_device(socket.as_fd(), index)?;
        Ok(socket)
    }

    /// A port on `socket`; `here` and `there` are the link-layer addresses of this end and of the host's.
    pub(super) fn new(socket: OwnedFd, here: [u8; 6], there: [u8; 6]) -> PacketSocket {
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&there);
        addresses[6..].copy_from_slice(&here);
        PacketSocket {
            socket,
            frame: vec![0; LARGEST].into(),
            control: cmsg_space!(TimeSpec),
            out: Vec::with_capacity(2048),
            addresses,
            counters: PortCounters::default(),
        }
    }

    /// Reads one frame: its length and stamp.
    fn frame(&mut self, stamps: Stamps) -> io::Result<Option<(usize, Instant)>> {
        let mut parts = [IoSliceMut::new(&mut self.frame)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message = match recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut self.control), flags)
        {
            Ok(message) => message,
            // A device that is gone says so once; there is nothing to read then.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut at = stamps.now();
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmTimestampns(stamp) = control {
                at = stamps.nominal(stamp);
            }
        }
        Ok(Some((message.bytes, at)))
    }
}

impl Port for PacketSocket {
    fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self, stamps: Stamps, limit: usize, take: &mut dyn FnMut(Arrival)) -> io::Result<()> {
        for _ in 0..limit {
            let Some((len, at)) = self.frame(stamps)? else { break };
            match classify(&self.frame[..len]) {
                Frame::Datagram(datagram) => {
                    self.counters.received += 1;
                    let datagram = Bytes::copy_from_slice(datagram);
                    // The device's offloads are off, so checksums are there to be verified.
                    take(Arrival { at, datagram, transport_done: false });
                }
                Frame::LinkLocal => self.counters.link_local += 1,
                Frame::NotIp => self.counters.not_ip += 1,
            }
        }
        Ok(())
    }

    fn send(&mut self, packet: &Packet) {
        self.out.clear();
        self.out.extend_from_slice(&self.addresses);
        let is_v6 = packet.head().first().is_some_and(|octet| octet >> 4 == 6);
        let kind = if is_v6 { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 };
        self.out.extend_from_slice(&kind.to_be_bytes());
        edge::egress(packet, &mut self.out);
        match send(self.socket.as_raw_fd(), &self.out, MsgFlags::MSG_DONTWAIT) {
            Ok(_) => self.counters.sent += 1,
            Err(_) => self.counters.unsent += 1,
        }
    }

    fn counters(&mut self) -> PortCounters {
        // The kernel forgets its count when it is read.
        self.counters.overflow += sys::dropped_frames(self.socket.as_fd()).unwrap_or(0);
        self.counters
    }
}

#[derive(Debug, PartialEq)]
enum Frame<'a> {
    Datagram(&'a [u8]),
    LinkLocal,
    NotIp,
}

fn classify(frame: &[u8]) -> Frame<'_> {
    let Some((header, datagram)) = frame.split_at_checked(ETHERNET) else { return Frame::NotIp };
    match u16::from_be_bytes([header[12], header[13]]) {
        ETHERTYPE_IPV4 => match datagram.get(16..20) {
            //= RFC 5771 (4): 224.0.0.0/24 is not forwarded, whatever the hop limit says.
            Some([224, 0, 0, _] | [255, 255, 255, 255]) => Frame::LinkLocal,
            _ => Frame::Datagram(datagram),
        },
        ETHERTYPE_IPV6 => match (datagram.get(8..10), datagram.get(24..26)) {
            //= RFC 4291 (2.5.6, 2.7): fe80::/10, and multicast of interface and link scope, stay on the link.
            (Some([0xfe, 0x80..=0xbf]), _) | (_, Some([0xfe, 0x80..=0xbf])) => Frame::LinkLocal,
            (_, Some([0xff, scope])) if scope & 0x0f <= 2 => Frame::LinkLocal,
            _ => Frame::Datagram(datagram),
        },
        _ => Frame::NotIp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u16, datagram: &[u8]) -> Vec<u8> {
        [&[0; 12][..], &kind.to_be_bytes(), datagram].concat()
    }

    #[test]
    fn frames_that_are_not_ip_or_too_short_are_told_apart() {
        for len in 0..ETHERNET {
            assert_eq!(classify(&vec![0; len]), Frame::NotIp);
        }
        assert_eq!(classify(&frame(0x0806, &[0; 28])), Frame::NotIp);
        assert_eq!(classify(&frame(ETHERTYPE_IPV4, &[0x45])), Frame::Datagram(&[0x45]));
    }

    #[test]
    fn what_never_leaves_a_link_is_kept_from_the_model() {
        let mut v4 = [0; 20];
        v4[16..].copy_from_slice(&[224, 0, 0, 22]);
        assert_eq!(classify(&frame(ETHERTYPE_IPV4, &v4)), Frame::LinkLocal);
        v4[16..].copy_from_slice(&[224, 0, 1, 1]);
        assert!(matches!(classify(&frame(ETHERTYPE_IPV4, &v4)), Frame::Datagram(_)));
        let mut v6 = [0; 40];
        v6[24..26].copy_from_slice(&[0xff, 0x02]);
        assert_eq!(classify(&frame(ETHERTYPE_IPV6, &v6)), Frame::LinkLocal);
        v6[24..26].copy_from_slice(&[0xff, 0x0e]);
        assert!(matches!(classify(&frame(ETHERTYPE_IPV6, &v6)), Frame::Datagram(_)));
    }
}
