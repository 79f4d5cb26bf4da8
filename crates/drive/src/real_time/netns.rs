//! The laboratory: a network namespace per real host, and one for the engine's ends of their cables.
//!
//! ```text
//!  namespace "mobile"            the engine's namespace               namespace "origin"
//!  +----------------+           +----------------------+             +----------------+
//!  | curl           |           |        World         |             | nginx          |
//!  |   radio =======|===veth====|== p0            p1 ==|====veth=====|== internet     |
//!  +----------------+           +----------------------+             +----------------+
//! ```
//!
//! Namespaces have no names: descriptors hold them. When the process ends, however it ends, the kernel takes them
//! down with everything in them. The machine's own interfaces are not touched. On the hosts' devices no neighbour
//! is ever asked for its link-layer address (the model would delay the question), and offloads are off: what
//! arrives at a port is a datagram as it would stand on a wire.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

use airloom_world::PortInfo;
use nix::sched::{CloneFlags, setns, unshare};

use super::netlink::{Device, LOOPBACK, Netlink, Prefix};
use super::port::PacketSocket;
use super::{Error, process, sys};

/// Indexes of our devices begin here: a fresh namespace may have devices of its own.
const FIRST_INDEX: u32 = 100;

/// A network namespace without a name.
pub(super) struct Namespace(OwnedFd);

impl Namespace {
    /// Makes a namespace and runs `setup` in it.
    pub(super) fn new<T: Send>(setup: impl FnOnce() -> io::Result<T> + Send) -> io::Result<(Namespace, T)> {
        in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let namespace = File::open("/proc/thread-self/ns/net")?;
            Ok((Namespace(namespace.into()), setup()?))
        })
    }

    /// Runs `work` in the namespace.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_thread(|| {
            setns(self.0.as_fd(), CloneFlags::CLONE_NEWNET)?;
            work()
        })
    }

    /// The descriptor that holds it.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Namespaces belong to threads: a thread of its own leaves the caller where it is.
fn in_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        scope.spawn(work).join().unwrap_or_else(|_| Err(io::Error::other("a set-up thread panicked")))
    })
}

/// All namespaces of a run, and its ports in the order in which they were asked for.
pub(super) struct Laboratory {
    /// By name of the host. They outlive everything that runs in them.
    pub(super) hosts: BTreeMap<String, Namespace>,
    pub(super) ports: Vec<PacketSocket>,
    _engine: Namespace,
}

impl Laboratory {
    /// Builds namespaces, cables, addresses and routes for `ports`.
    pub(super) fn build(ports: &[PortInfo]) -> Result<Laboratory, Error> {
        let failed = |what: &str, error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::NotAllowed(format!("{what}: {error}")),
            _ => Error::SetUp(format!("{what}: {error}")),
        };
        let mut hosts = BTreeMap::new();
        for port in ports {
            if hosts.contains_key(&port.host_name) {
                continue;
            }
            let has_v6 = ports
                .iter()
                .any(|p| p.host_name == port.host_name && p.addresses.iter().any(IpAddr::is_ipv6));
            let (namespace, ()) = Namespace::new(|| prepare(has_v6))
                .map_err(|e| failed(&format!("a network namespace for host `{}`", port.host_name), e))?;
            hosts.insert(port.host_name.clone(), namespace);
        }
        let (engine, sockets) = Namespace::new(|| cables(ports, &hosts))
            .map_err(|e| failed("veth pairs between the engine and the real hosts", e))?;
        for (n, port) in ports.iter().enumerate() {
            let is_first = ports[..n].iter().all(|p| p.host_name != port.host_name);
            hosts[&port.host_name].run(|| configure(n, port, is_first)).map_err(|e| {
                failed(&format!("interface `{}` of host `{}`", port.link_name, port.host_name), e)
            })?;
        }
        Ok(Laboratory { hosts, ports: sockets, _engine: engine })
    }
}

impl Drop for Laboratory {
    fn drop(&mut self) {
        for namespace in self.hosts.values() {
            process::clear(namespace);
        }
    }
}

/// What is the same in every namespace, run inside it.
fn prepare(has_v6: bool) -> io::Result<()> {
    for (key, value) in [
        ("ipv6/conf/all/disable_ipv6", if has_v6 { "0" } else { "1" }),
        ("ipv6/conf/default/disable_ipv6", if has_v6 { "0" } else { "1" }),
        ("ipv6/conf/default/router_solicitations", "0"),
        // With several interfaces, answers may come by another one than the question left by.
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
    ] {
        // Where /proc/sys is read-only (some containers) the kernel's own chatter is counted at the ports.
        let _ = fs::write(format!("/proc/sys/net/{key}"), value);
    }
    Netlink::open()?.set_up(LOOPBACK, true)
}

/// A locally administered address: the side (0 here, 1 there) and the number of the port.
fn mac(side: u8, port: usize) -> [u8; 6] {
    let [high, low] = (port as u16).to_be_bytes();
    [0x02, 0, 0, side, high, low]
}

fn index(port: usize) -> u32 {
    FIRST_INDEX + port as u32
}

/// Makes all veth pairs; run in the engine's namespace.
fn cables(ports: &[PortInfo], hosts: &BTreeMap<String, Namespace>) -> io::Result<Vec<PacketSocket>> {
    prepare(false)?;
    let mut netlink = Netlink::open()?;
    let mut sockets = Vec::new();
    for (n, port) in ports.iter().enumerate() {
        let name = format!("p{n}");
        let (index, mtu) = (index(n), u32::from(port.mtu));
        let here = Device { name: &name, index, mac: mac(0, n), mtu };
        let device = device_name(&port.link_name, n);
        let there = Device { name: &device, index, mac: mac(1, n), mtu };
        netlink.add_veth(&here, &there, hosts[&port.host_name].as_fd())?;
        sockets.push(PacketSocket::new(PacketSocket::open(index)?, here.mac, there.mac));
        netlink.set_up(index, false)?;
    }
    Ok(sockets)
}

/// Addresses and routes of one interface; run in the namespace of its host. By the first interface everything is
/// reached that has no better route.
fn configure(n: usize, port: &PortInfo, is_first: bool) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    let index = index(n);
    sys::switch_offloads_off(netlink.as_fd(), &device_name(&port.link_name, n))?;
    if port.addresses.iter().any(IpAddr::is_ipv6) {
        netlink.no_automatic_addresses(index)?;
    }
    netlink.set_up(index, false)?;
    for address in &port.addresses {
        netlink.add_address(index, Prefix::exactly(*address))?;
    }
    for gateway in &port.gateways {
        netlink.add_route(index, Prefix::exactly(*gateway))?;
        if is_first {
            netlink.add_route(index, Prefix::everything(*gateway))?;
        }
    }
    Ok(())
}

/// The link's name, if a device can have it.
fn device_name(link: &str, n: usize) -> String {
    let fits = (1..=15).contains(&link.len())
        && link.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && !["lo", ".", "..", "all", "default"].contains(&link);
    if fits { link.to_owned() } else { format!("link{n}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_after_its_link_where_that_is_possible() {
        assert_eq!(device_name("radio", 0), "radio");
        assert_eq!(device_name("a-link-with-a-long-name", 2), "link2");
        assert_eq!(device_name("lo", 1), "link1");
        assert_eq!(device_name("with space", 1), "link1");
    }
}
