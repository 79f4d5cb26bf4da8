//! Devices, addresses and routes of a laboratory.
//!
//! ```text
//!  namespace "mobile"            the engine's namespace               namespace "origin"
//!  +----------------+           +----------------------+             +----------------+
//!  | curl           |           |        World         |             | nginx          |
//!  |   radio =======|===veth====|== p0            p1 ==|====veth=====|== internet     |
//!  +----------------+           +----------------------+             +----------------+
//! ```
//!
//! On the hosts' devices no neighbour is ever asked for its link-layer address (the model would delay the question).
//! Their offloads are on: a port takes super-packets, and they are cut where a link counts datagrams.

use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use airloom_world::{PortDevice, PortInfo};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket as socket_of};

use super::lan::LAN;
use super::outside::UPLINK;
use crate::real_time::netlink::{Device, LOOPBACK, Netlink, Prefix};
use crate::real_time::port::{DeviceTable, PacketSocket, Port};
use crate::real_time::sys;
use crate::real_time::tun::Tun;

use super::tcp;

/// Indexes of our devices begin here: a fresh namespace may have devices of its own.
const FIRST_INDEX: u32 = 100;

/// What is the same in every namespace, run inside it.
pub(super) fn prepare(has_v6: bool, forwards: bool) -> io::Result<()> {
    let (v6, forwards) = (if has_v6 { "0" } else { "1" }, if forwards { "1" } else { "0" });
    let group = nix::unistd::getegid();
    for (key, value) in [
        ("ipv6/conf/all/disable_ipv6", v6),
        ("ipv6/conf/default/disable_ipv6", v6),
        ("ipv6/conf/default/router_solicitations", "0"),
        ("ipv6/conf/default/accept_ra", "0"),
        // With several interfaces, answers may come by another one than the question left by.
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        ("ipv4/ip_forward", forwards),
        ("ipv6/conf/all/forwarding", forwards),
        // A router that sends back over the link it got something from would tell its neighbour of a shorter way,
        // which a radio cell does not have.
        ("ipv4/conf/all/send_redirects", "0"),
        ("ipv4/conf/default/send_redirects", "0"),
        // Programs of plain users may serve on any port, and ping.
        ("ipv4/ip_unprivileged_port_start", "0"),
        ("ipv4/ping_group_range", &format!("{group} {group}")),
    ] {
        // Where /proc/sys is read-only (some containers) the kernel's own chatter is counted at the ports.
        let _ = fs::write(format!("/proc/sys/net/{key}"), value);
    }
    Netlink::open()?.set_up(LOOPBACK, true)
}

/// An error, which names the setting, if a host that is to forward does not; run in its namespace, after [`prepare`].
pub(super) fn check_forwarding(has_v6: bool) -> io::Result<()> {
    let keys = ["ipv4/ip_forward", "ipv6/conf/all/forwarding"];
    for key in &keys[..1 + usize::from(has_v6)] {
        // A kernel may come without IPv6.
        if fs::read_to_string(format!("/proc/sys/net/{key}")).is_ok_and(|value| value.trim() != "1") {
            let name = key.replace('/', ".");
            return Err(io::Error::other(format!(
                "net.{name} = 1 cannot be set here (is /proc/sys read-only?), so that it would pass on nothing; \
                 `forward = false` says that it need not"
            )));
        }
    }
    Ok(())
}

/// A locally administered address: the side (0 here, 1 there) and the number of the port.
fn mac(side: u8, port: usize) -> [u8; 6] {
    let [high, low] = (port as u16).to_be_bytes();
    [0x02, 0, 0, side, high, low]
}

fn index(port: usize) -> u32 {
    FIRST_INDEX + port as u32
}

/// Makes all veth pairs; run in the engine's namespace. Each port with the index of its host's namespace.
pub(super) fn cables(ports: &[(usize, PortInfo)], hosts: &[OwnedFd]) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    for (n, (host, port)) in ports.iter().enumerate().filter(|(_, (_, p))| p.device == PortDevice::Veth) {
        let name = format!("p{n}");
        let (index, mtu) = (index(n), u32::from(port.mtu));
        let here = Device { name: &name, index, mac: mac(0, n), mtu };
        let device = device_name(&port.link_name, n);
        let there = Device { name: &device, index, mac: mac(1, n), mtu };
        let host = hosts.get(*host).ok_or_else(|| io::Error::other("no such host"))?;
        netlink.add_veth(&here, &there, host.as_fd())?;
        netlink.set_up(index, false)?;
    }
    Ok(())
}

/// Opens the engine's end of cable `n`; run in the engine's namespace.
pub(super) fn socket(n: usize) -> io::Result<OwnedFd> {
    PacketSocket::open(index(n))
}

/// A TCP or UDP socket; it stays in the namespace in which this is called.
pub(super) fn transport(is_stream: bool, is_v6: bool) -> io::Result<OwnedFd> {
    let family = if is_v6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let kind = if is_stream { SockType::Stream } else { SockType::Datagram };
    Ok(socket_of(family, kind, SockFlag::SOCK_CLOEXEC, None)?)
}

/// Frames that may wait in a TUN device: a kernel's 500 would be full before the engine has its turn.
const TUN_FRAMES: u32 = 5000;

/// Makes a TUN device for port `n`; run in the namespace of its host.
pub(super) fn tun(n: usize, port: &PortInfo) -> io::Result<OwnedFd> {
    let name = device_name(&port.link_name, n);
    let device = sys::open_tun(&name)?;
    Netlink::open()?.set_limits(if_nametoindex(name.as_str())?, u32::from(port.mtu), TUN_FRAMES)?;
    Ok(device)
}

/// The port with number `n` on its socket. It counts what its device drops by `table`, and what the host's end of the
/// cable drops by `hosts_table`.
pub(super) fn port(
    socket: OwnedFd,
    n: usize,
    info: &PortInfo,
    table: &Arc<File>,
    hosts_table: &Arc<File>,
) -> Box<dyn Port> {
    let hosts = DeviceTable::new(Arc::clone(hosts_table), device_name(&info.link_name, n));
    match info.device {
        PortDevice::Tun => Box::new(Tun::new(socket, hosts)),
        PortDevice::Veth => {
            let mut port = PacketSocket::new(socket, mac(0, n), mac(1, n));
            port.watch(DeviceTable::new(Arc::clone(table), format!("p{n}")));
            port.watch(hosts);
            Box::new(port)
        }
    }
}

/// The counters of all devices of the calling process's namespace; of none where there is no `/proc`. Whoever reads
/// it later, it stays that namespace's.
pub(super) fn table() -> io::Result<OwnedFd> {
    Ok(File::open("/proc/self/net/dev").or_else(|_| File::open("/dev/null"))?.into())
}

/// Addresses and routes of one interface; run in the namespace of its host.
pub(super) fn configure(n: usize, port: &PortInfo) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    let index = if_nametoindex(device_name(&port.link_name, n).as_str())?;
    if port.addresses.iter().any(IpAddr::is_ipv6) {
        netlink.no_automatic_addresses(index)?;
    }
    netlink.set_up(index, false)?;
    for address in &port.addresses {
        netlink.add_address(index, Prefix::exactly(*address))?;
    }
    let metrics = tcp::metrics(&port.tcp)?;
    for (network, bits) in &port.routes {
        netlink.add_route(index, Prefix { address: *network, bits: *bits }, &metrics)?;
    }
    Ok(())
}

/// The link's name, if a device can have it; else one that no link can have given it.
fn device_name(link: &str, n: usize) -> String {
    let fits = (1..=15).contains(&link.len())
        && link.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && !["lo", ".", "..", "all", "default", UPLINK, LAN].contains(&link);
    if fits { link.to_owned() } else { format!("link~{n}") }
}

#[cfg(test)]
mod tests {
    use nix::sched::{CloneFlags, unshare};

    use super::*;

    #[test]
    fn the_setting_by_which_a_gateway_does_not_forward_is_named() {
        const SETTING: &str = "/proc/sys/net/ipv4/ip_forward";
        let tried = std::thread::spawn(|| -> io::Result<_> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            fs::write(SETTING, "0")?;
            prepare(true, true)?;
            check_forwarding(true)?;
            fs::write(SETTING, "0")?;
            Ok(check_forwarding(true).map_err(|error| error.to_string()))
        });
        match tried.join().expect("no panic") {
            Err(error)
                if [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem]
                    .contains(&error.kind()) =>
            {
                airloom_testkit::skip("drive/devices", &error.to_string());
            }
            tried => {
                let said = tried.expect("settings").expect_err("it does not forward");
                assert!(said.contains("net.ipv4.ip_forward"), "{said}");
            }
        }
    }

    #[test]
    fn a_device_is_named_after_its_link_where_that_is_possible() {
        assert_eq!(device_name("radio", 0), "radio");
        assert_eq!(device_name("a-link-with-a-long-name", 2), "link~2");
        assert_eq!(device_name("lo", 1), "link~1");
        assert_eq!(device_name("with space", 1), "link~1");
        assert_eq!(device_name("link1", 0), "link1");
    }
}
