//! Devices behind a laboratory: what an interface of the machine is connected to is behind the first real host.
//!
//! ```text
//!   devices                |  machine              |  laboratory
//!   phone, console ======= | eth1 -> veth ======== | [lan] mobile == radio == exit == .. the outside
//!                          |      <-      frames   |       masquerade
//! ```
//!
//! The interface is not touched: it keeps its addresses and stays where it is (an access point's cannot be moved). A rule
//! takes every frame that comes by it, before the machine sees it, to a veth pair that ends in the host, and another one
//! back. So nothing of the devices passes beside the model, and the machine passes nothing on for them. The host's end
//! has the interface's own link-layer address: for the devices it is the interface.
//!
//! The warden holds the rules by the sockets that own them; pair and rules go with it and with the host's namespace.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use airloom_base::Duration;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket};

use super::outside::free_pair;
use super::rules::Owner;
use super::{messages, rules};
use crate::real_time::netlink::{Device, Netlink, Prefix};
use crate::real_time::sys;

/// An interface of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lan {
    name: String,
    index: u32,
    mac: [u8; 6],
}

/// The host's end.
pub(super) const LAN: &str = "lan";
const LAN_INDEX: u32 = 98;
/// That of Ethernet and Wi-Fi; larger frames of a device are lost as on any network that has no jumbo frames.
const MTU: u32 = 1500;
const PATIENCE: Duration = Duration::from_secs(10);

/// The host's addresses on the devices' side, each in the network of the devices: private ones (RFC 1918, RFC 4193).
pub(in crate::real_time) const ADDRESSES: [Prefix; 2] = [
    Prefix { address: IpAddr::V4(Ipv4Addr::new(10, 78, 0, 1)), bits: 24 },
    Prefix { address: IpAddr::V6(Ipv6Addr::new(0xfd61, 0x6972, 0x6c6f, 0x78, 0, 0, 0, 1)), bits: 64 },
];
/// As the router that devices are told of, which is known by an address of the link (RFC 4861, 4.2).
const ROUTER: Prefix = Prefix { address: IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)), bits: 64 };

impl Lan {
    /// The interface of this name in the calling process's network.
    pub(super) fn find(name: &str) -> io::Result<Lan> {
        let index = if_nametoindex(name)?;
        let mac = getifaddrs()?
            .filter(|one| one.interface_name == name)
            .find_map(|one| one.address?.as_link_addr()?.addr());
        let mac = mac.filter(|mac| *mac != [0; 6]);
        let mac = mac.ok_or_else(|| io::Error::other("it has no link-layer address"))?;
        Ok(Lan { name: name.to_owned(), index, mac })
    }
}

/// What the warden holds as long as the laboratory lives.
pub(super) struct Joined {
    _rules: [OwnedFd; 2],
    _multicast: OwnedFd,
}

/// The warden's half: waits for the host's namespace from the keeper, and joins it to the interface.
pub(super) fn make(lan: &Lan, keeper: BorrowedFd, patience: Duration) -> io::Result<Joined> {
    let (_, fds) = messages::receive_within(keeper, patience)?;
    let host = fds.into_iter().next().ok_or_else(|| io::Error::other("the host has no namespace"))?;
    let made = join(lan, host.as_fd());
    messages::send_result(keeper, made.as_ref().map(|_| 0))?;
    made
}

fn join(lan: &Lan, host: BorrowedFd) -> io::Result<Joined> {
    let mut netlink = Netlink::open()?;
    let there = |_| Device { name: LAN, index: LAN_INDEX, mac: lan.mac, mtu: MTU };
    let (_, pair) = free_pair(&mut netlink, "airloom-l", there, host)?;
    let index = if_nametoindex(pair.as_str())?;
    // The machine has nothing to say there.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{pair}/disable_ipv6"), "1");
    netlink.set_up(index, false)?;
    // Groups that the machine is not in are for the host.
    let flags = SockFlag::SOCK_CLOEXEC;
    let multicast = socket(AddressFamily::Packet, SockType::Raw, flags, None::<SockProtocol>)?;
    let groups = libc::packet_mreq {
        mr_ifindex: lan.index as libc::c_int,
        mr_type: libc::PACKET_MR_ALLMULTI as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    setsockopt(&multicast, sys::AddMembership, &groups)?;
    let taken = rules::redirect(&format!("airloom-{}", lan.name), &lan.name, index).map_err(|error| {
        io::Error::other(if rules::is_taken(&error) {
            format!("another laboratory has the devices of {} already", lan.name)
        } else {
            format!("{}: redirecting frames (nf_tables, netdev family): {error}", lan.name)
        })
    })?;
    let rules = [rules::redirect(&pair, &pair, lan.index)?, taken];
    Ok(Joined { _rules: rules, _multicast: multicast })
}

/// The keeper's half: asks the warden, and furnishes the host's end. Run in the host's namespace, `host`.
pub(super) fn furnish(warden: BorrowedFd, host: BorrowedFd, has_v6: bool) -> io::Result<()> {
    messages::send(warden, &[0], &[host.as_raw_fd()])?;
    messages::receive_result(warden, PATIENCE)?;
    let mut netlink = Netlink::open()?;
    let index = if_nametoindex(LAN)?;
    if has_v6 {
        netlink.no_automatic_addresses(index)?;
    }
    netlink.set_up(index, true)?;
    for prefix in ADDRESSES.into_iter().filter(|p| p.address.is_ipv4() || has_v6) {
        netlink.add_address(index, prefix)?;
        // An answer to another address could come back beside the link.
        rules::only_from(index, prefix)?;
        // To the network the devices are one of its hosts.
        rules::what_comes_from(LAN, Owner::Namespace, prefix)?;
    }
    if has_v6 {
        netlink.add_address(index, ROUTER)?;
    }
    Ok(())
}
