//! Setting up devices, addresses and routes over a netlink socket (RFC 3549, linux/rtnetlink.h).
//!
//! Only what a laboratory of veth pairs needs. Every request is acknowledged before the next is sent.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const ADDR_GEN_MODE_NONE: u8 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_METRICS: u16 = 8;
const RTAX_INITCWND: u16 = 11;
const RTAX_CC_ALGO: u16 = 16;

const IFINFOMSG: usize = 16;
/// The index of `lo` in every network namespace.
pub(super) const LOOPBACK: u32 = 1;

/// One end of a veth pair.
#[derive(Clone, Debug)]
pub(super) struct Device<'a> {
    pub(super) name: &'a str,
    /// Its index, free in its namespace.
    pub(super) index: u32,
    pub(super) mac: [u8; 6],
    pub(super) mtu: u32,
}

/// An address and the number of leading bits that are the network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) address: IpAddr,
    pub(super) bits: u8,
}

impl Prefix {
    /// This address alone.
    pub(super) const fn exactly(address: IpAddr) -> Prefix {
        Prefix { address, bits: if address.is_ipv4() { 32 } else { 128 } }
    }
}

/// What TCP connections over a route are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Metrics {
    /// Name of the congestion control, as the kernel calls it.
    pub(super) congestion: Option<String>,
    /// Segments of the congestion window at the beginning.
    pub(super) initial_window: Option<u32>,
}

pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

pub(super) fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

/// A request under construction.
pub(super) struct Message {
    pub(super) octets: Vec<u8>,
}

impl Message {
    pub(super) fn new(kind: u16, flags: i32) -> Message {
        let mut octets = vec![0; 16];
        octets[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        octets[6..8].copy_from_slice(&flags.to_ne_bytes());
        Message { octets }
    }

    /// The fixed part of a request about a device.
    fn device(&mut self, index: u32, flags: u32, change: u32) {
        let mut info = [0; IFINFOMSG];
        info[4..8].copy_from_slice(&index.to_ne_bytes());
        info[8..12].copy_from_slice(&flags.to_ne_bytes());
        info[12..16].copy_from_slice(&change.to_ne_bytes());
        self.octets.extend_from_slice(&info);
    }

    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nest(kind, |m| m.octets.extend_from_slice(value));
    }

    /// An attribute whose value `fill` appends.
    pub(super) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Message)) {
        let at = self.octets.len();
        self.octets.extend_from_slice(&[0; 4]);
        fill(self);
        let len = (self.octets.len() - at) as u16;
        self.octets[at..at + 2].copy_from_slice(&len.to_ne_bytes());
        self.octets[at + 2..at + 4].copy_from_slice(&kind.to_ne_bytes());
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
    }

    /// Fills in what is known at the end: the length, and the number by which the answer is recognised.
    pub(super) fn seal(&mut self, sequence: u32) {
        let len = self.octets.len() as u32;
        self.octets[..4].copy_from_slice(&len.to_ne_bytes());
        self.octets[8..12].copy_from_slice(&sequence.to_ne_bytes());
    }

    fn describe(&mut self, device: &Device) {
        self.attribute(IFLA_IFNAME, format!("{}\0", device.name).as_bytes());
        self.attribute(IFLA_ADDRESS, &device.mac);
        self.attribute(IFLA_MTU, &device.mtu.to_ne_bytes());
    }
}

/// A netlink socket of the calling thread's network namespace.
pub(super) fn open(protocol: SockProtocol) -> io::Result<OwnedFd> {
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    Ok(socket)
}

/// A netlink socket of the namespace in which it was made.
pub(super) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// A socket of the calling thread's network namespace.
    pub(super) fn open() -> io::Result<Netlink> {
        Ok(Netlink { socket: open(SockProtocol::NetlinkRoute)?, sequence: 0 })
    }

    fn request(&mut self, mut message: Message) -> io::Result<()> {
        self.sequence += 1;
        message.seal(self.sequence);
        sendto(self.socket.as_raw_fd(), &message.octets, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answer = [0; 4096];
        loop {
            let len = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
            if let Some(result) = acknowledgement(&answer[..len], self.sequence) {
                return result;
            }
        }
    }

    /// Makes a veth pair: `here` in this namespace, `there` in the one of `namespace`.
    pub(super) fn add_veth(
        &mut self,
        here: &Device,
        there: &Device,
        namespace: BorrowedFd,
    ) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        message.device(here.index, 0, 0);
        message.describe(here);
        message.nest(IFLA_LINKINFO, |m| {
            m.attribute(IFLA_INFO_KIND, b"veth");
            m.nest(IFLA_INFO_DATA, |m| {
                m.nest(VETH_INFO_PEER, |m| {
                    m.device(there.index, 0, 0);
                    m.describe(there);
                    m.attribute(IFLA_NET_NS_FD, &(namespace.as_raw_fd() as u32).to_ne_bytes());
                });
            });
        });
        self.request(message)
    }

    /// Brings a device up; `neighbours` false: nobody is asked for link-layer addresses on it.
    pub(super) fn set_up(&mut self, index: u32, neighbours: bool) -> io::Result<()> {
        let flags = (libc::IFF_UP | if neighbours { 0 } else { libc::IFF_NOARP }) as u32;
        let mut message = Message::new(libc::RTM_NEWLINK, 0);
        message.device(index, flags, flags);
        self.request(message)
    }

    /// Sets the largest datagram of a device, and how many frames may wait in it.
    pub(super) fn set_limits(&mut self, index: u32, mtu: u32, frames: u32) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWLINK, 0);
        message.device(index, 0, 0);
        message.attribute(IFLA_MTU, &mtu.to_ne_bytes());
        message.attribute(IFLA_TXQLEN, &frames.to_ne_bytes());
        self.request(message)
    }

    /// Keeps the kernel from giving a device IPv6 addresses that the scenario did not give.
    pub(super) fn no_automatic_addresses(&mut self, index: u32) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWLINK, 0);
        message.device(index, 0, 0);
        message.nest(IFLA_AF_SPEC, |m| {
            m.nest(libc::AF_INET6 as u16, |m| m.attribute(IFLA_INET6_ADDR_GEN_MODE, &[ADDR_GEN_MODE_NONE]));
        });
        self.request(message)
    }

    /// Gives a device an address.
    pub(super) fn add_address(&mut self, index: u32, prefix: Prefix) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        let scope = libc::RT_SCOPE_UNIVERSE;
        message.octets.extend_from_slice(&[family(prefix.address), prefix.bits, IFA_F_NODAD, scope]);
        message.octets.extend_from_slice(&index.to_ne_bytes());
        message.attribute(IFA_LOCAL, &octets(prefix.address));
        message.attribute(IFA_ADDRESS, &octets(prefix.address));
        self.request(message)
    }

    /// Routes `destination` through a device. There is no next hop: the other end of the pair takes everything.
    pub(super) fn add_route(&mut self, index: u32, destination: Prefix, metrics: &Metrics) -> io::Result<()> {
        self.route(index, destination, None, metrics)
    }

    /// Routes everything of its family through a device to `gateway`, which is a neighbour there.
    pub(super) fn add_default_route(&mut self, index: u32, gateway: IpAddr) -> io::Result<()> {
        let address = match gateway {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        self.route(index, Prefix { address, bits: 0 }, Some(gateway), &Metrics::default())
    }

    fn route(
        &mut self,
        index: u32,
        destination: Prefix,
        gateway: Option<IpAddr>,
        metrics: &Metrics,
    ) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        message.octets.extend_from_slice(&[
            family(destination.address),
            destination.bits,
            0,
            0,
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            if gateway.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK },
            libc::RTN_UNICAST,
            0,
            0,
            0,
            0,
        ]);
        if destination.bits > 0 {
            message.attribute(RTA_DST, &octets(destination.address));
        }
        message.attribute(RTA_OIF, &index.to_ne_bytes());
        if let Some(gateway) = gateway {
            message.attribute(RTA_GATEWAY, &octets(gateway));
        }
        if *metrics != Metrics::default() {
            message.nest(RTA_METRICS, |m| {
                if let Some(name) = &metrics.congestion {
                    m.attribute(RTAX_CC_ALGO, format!("{name}\0").as_bytes());
                }
                if let Some(segments) = metrics.initial_window {
                    m.attribute(RTAX_INITCWND, &segments.to_ne_bytes());
                }
            });
        }
        self.request(message)
    }
}

/// The result in an answer to request `sequence`; `None` if there is none in it.
fn acknowledgement(answer: &[u8], sequence: u32) -> Option<io::Result<()>> {
    let mut ours = messages_of(answer).filter(|(kind, of, ..)| (*kind, *of) == (libc::NLMSG_ERROR, sequence));
    let code = ours.find_map(|(.., body)| body.first_chunk())?;
    Some(match i32::from_ne_bytes(*code) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    })
}

/// The messages of an answer: of each its kind, its number, its flags, and what is behind its header.
pub(super) fn messages_of(mut answer: &[u8]) -> impl Iterator<Item = (i32, u32, i32, &[u8])> {
    std::iter::from_fn(move || {
        let header: &[u8; 16] = answer.first_chunk()?;
        let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let [kind, flags] = [4, 6].map(|at| i32::from(u16::from_ne_bytes([header[at], header[at + 1]])));
        let number = u32::from_ne_bytes([header[8], header[9], header[10], header[11]]);
        let body = &answer[16..len.clamp(16, answer.len())];
        answer = answer.get(len.max(16).next_multiple_of(4)..).unwrap_or_default();
        Some((kind, number, flags, body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_but_their_lengths_are_not() {
        let mut message = Message { octets: Vec::new() };
        message.nest(7, |m| m.attribute(1, b"abcde"));
        let mut expected = Vec::new();
        expected.extend_from_slice(&16u16.to_ne_bytes());
        expected.extend_from_slice(&7u16.to_ne_bytes());
        expected.extend_from_slice(&9u16.to_ne_bytes());
        expected.extend_from_slice(&1u16.to_ne_bytes());
        expected.extend_from_slice(b"abcde\0\0\0");
        assert_eq!(message.octets, expected);
    }

    #[test]
    fn an_answer_tells_the_kernels_error() {
        let mut answer = vec![0; 36];
        answer[..4].copy_from_slice(&36u32.to_ne_bytes());
        answer[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        answer[8..12].copy_from_slice(&9u32.to_ne_bytes());
        answer[16..20].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        assert!(acknowledgement(&answer, 8).is_none());
        let error = acknowledgement(&answer, 9).unwrap().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        for cut in 0..20 {
            assert!(acknowledgement(&answer[..cut], 9).is_none());
        }
    }
}
