//! The way to the outside world, for laboratories that are to have one.
//!
//! One real host, the exit, has an interface more than the scenario gives it, called `uplink`. What reaches the exit by
//! the model's links leaves there, under the exit's own address (masquerade): the machine needs no route back.
//!
//! ```text
//!   laboratory                        |  machine
//!   mobile == radio == exit [uplink]==|== veth, masquerade           with rights over the machine's network
//!                                     |== pasta or slirp4netns:      without
//!                                     |   their sockets
//! ```
//!
//! The warden makes it, who alone is in the machine's network; the keeper furnishes the exit's end. What the machine gets
//! goes by itself when the warden does, however that ends: the other end of the veth pair with the exit's namespace, the
//! tables of rules with the sockets that own them. Only the keys that let the machine's devices forward have to be put back
//! (`forwarding`), by the warden, or by the engine's process where that was killed.
//!
//! IPv6 as well, where the machine and the exit have it: by the pair where the machine forwards it anyway, or a device can
//! without making it a router (Linux 6.17); a router would have to give up its own automatic addresses.

mod forwarding;
mod helper;
mod uplink;

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use airloom_base::Duration;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;

use super::rights::Rights;
use super::rules::Owner;
use super::{messages, rules};
use crate::real_time::netlink::{Device, Netlink, Prefix};
pub(in crate::real_time::lab) use forwarding::repair;
use forwarding::{Forwarding, has_gateway_v4, has_gateway_v6, leads_on_v4, leads_on_v6, table};
use helper::Helper;
pub(super) use uplink::UPLINK;
use uplink::{MTU, UPLINK_INDEX};

/// How the exit is joined to the machine, and for which families.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WayOut {
    by: By,
    v4: bool,
    v6: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    /// A veth pair, and rules of the machine's own; and the settings that will be switched on for it.
    Pair { switched_on: Vec<String> },
    /// A program in the machine's network that has a socket for each connection.
    Program(helper::Kind, PathBuf),
}

/// What a request of the keeper and its answer may take: a helper has to be started.
const PATIENCE: Duration = Duration::from_secs(10);

impl WayOut {
    /// The way that these rights allow, for an exit with IPv6 or without; otherwise what is missing.
    pub(super) fn find(rights: Rights, exit_has_v6: bool) -> Result<WayOut, String> {
        let v4 = !leads_on_v4(&table("route")).is_empty();
        let v6 = exit_has_v6 && !leads_on_v6(&table("ipv6_route")).is_empty();
        if !v4 && !v6 {
            return Err(
                "this process has no network but loopback itself (as under `airloom python` without root)"
                    .to_owned(),
            );
        }
        Ok(match rights {
            Rights::Own => {
                let v6 = v6 && forwarding::is_possible_for_ipv6();
                WayOut { by: By::Pair { switched_on: forwarding::would_switch_on(v6) }, v4, v6 }
            }
            Rights::UserNamespace => {
                let gateways = (has_gateway_v4(&table("route")), v6 && has_gateway_v6(&table("ipv6_route")));
                let (kind, program) = helper::find(gateways != (false, false))?;
                let (v4, v6) = match kind {
                    helper::Kind::Slirp => (v4, false),
                    helper::Kind::Pasta if gateways == (false, false) => (v4, v6),
                    helper::Kind::Pasta => gateways,
                };
                WayOut { by: By::Program(kind, program), v4, v6 }
            }
        })
    }

    /// Puts back what a warden has changed that ended before it could do so.
    pub(super) fn put_back(&self) {
        if let By::Pair { switched_on } = &self.by {
            forwarding::put_back(switched_on);
        }
    }

    /// Name servers that can be reached by it.
    pub(super) fn name_servers(&self) -> Vec<IpAddr> {
        // A server on the machine's own loopback is the machine's alone; systemd's stub says elsewhere whom it asks.
        let servers = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"].map(|file| {
            let mut servers = servers_in(&fs::read_to_string(file).unwrap_or_default());
            servers.retain(|address| if address.is_ipv4() { self.v4 } else { self.v6 });
            servers
        });
        match servers.into_iter().find(|s| !s.is_empty()) {
            Some(servers) => servers,
            None if matches!(self.by, By::Program(helper::Kind::Slirp, _)) => {
                vec![IpAddr::V4(helper::NAME_SERVER)]
            }
            None => Vec::new(),
        }
    }
}

/// Servers of a resolv.conf that are not on loopback.
fn servers_in(text: &str) -> Vec<IpAddr> {
    let servers = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok());
    servers.filter(|a: &IpAddr| !a.is_loopback()).collect()
}

/// What the warden holds as long as the laboratory lives.
pub(super) struct Outside {
    _tables: Vec<OwnedFd>,
    _forwarding: Option<Forwarding>,
    helper: Option<Helper>,
}

impl Outside {
    /// Readable when the program of the way out has ended, if there is one.
    pub(super) fn program(&self) -> Option<OwnedFd> {
        self.helper.as_ref()?.process()
    }
}

/// The warden's half: waits for the exit's namespace from the keeper, joins it to the network of the calling process, and
/// answers which pair of addresses it took (or what failed).
pub(super) fn make(way: &WayOut, keeper: BorrowedFd, patience: Duration) -> io::Result<Outside> {
    let (_, fds) = messages::receive_within(keeper, patience)?;
    let exit = fds.into_iter().next().ok_or_else(|| io::Error::other("the exit has no namespace"))?;
    let made = match &way.by {
        By::Pair { .. } => join(way, &exit),
        By::Program(kind, program) => Helper::start(*kind, program, &exit, way.v4, way.v6)
            .map(|helper| (0, Outside { _tables: Vec::new(), _forwarding: None, helper: Some(helper) })),
    };
    messages::send_result(keeper, made.as_ref().map(|(number, _)| *number))?;
    made.map(|(_, outside)| outside)
}

/// A veth pair between here and the exit, and rules that let the exit's traffic leave under the machine's address.
fn join(way: &WayOut, exit: &OwnedFd) -> io::Result<(u32, Outside)> {
    use std::os::fd::AsFd;

    let mut netlink = Netlink::open()?;
    let there = |number| Device { name: UPLINK, index: UPLINK_INDEX, mac: mac(2, number), mtu: MTU };
    let (number, name) = free_pair(&mut netlink, "airloom", there, exit.as_fd())?;
    let index = if_nametoindex(name.as_str())?;
    let mut tables = Vec::new();
    netlink.set_up(index, true)?;
    for [here, there] in way.addresses(number) {
        netlink.add_address(index, pair_prefix(here))?;
        tables.push(rules::what_comes_from(&name, Owner::Socket, Prefix::exactly(there))?);
    }
    let forwarding = Forwarding::on(&name, way.v6)?;
    Ok((number, Outside { _tables: tables, _forwarding: Some(forwarding), helper: None }))
}

/// How many pairs of addresses 100.64.0.0/10 has (RFC 6598: for networks between a provider and its customers, so that
/// they meet no private network of either side).
const PAIRS: u32 = 1 << 21;
/// A network of our own (RFC 4193) with as many pairs.
const OWN_NETWORK: u128 = 0xfd61_6972_6c6f_6f6d << 64;

impl WayOut {
    /// Both addresses of a pair, the machine's first, of each family.
    fn addresses(&self, number: u32) -> impl Iterator<Item = [IpAddr; 2]> + use<> {
        let first = 2 * (number % PAIRS);
        let v4 = u32::from(Ipv4Addr::new(100, 64, 0, 0)) + first;
        let v6 = OWN_NETWORK + u128::from(first);
        let v4 = [v4, v4 + 1].map(|a| IpAddr::V4(a.into()));
        let v6 = [v6, v6 + 1].map(|a| IpAddr::V6(Ipv6Addr::from(a)));
        [(self.v4, v4), (self.v6, v6)].into_iter().filter(|(has, _)| *has).map(|(_, pair)| pair)
    }
}

/// The network of a pair: RFC 3021 and RFC 6164, a link of two needs no more.
fn pair_prefix(address: IpAddr) -> Prefix {
    Prefix { address, bits: if address.is_ipv4() { 31 } else { 127 } }
}

/// Makes a pair of devices, the one over `there`. Its number, which stands behind `prefix` in the machine's end's name,
/// is one that no other laboratory has.
pub(super) fn free_pair<'a>(
    netlink: &mut Netlink,
    prefix: &str,
    there: impl Fn(u32) -> Device<'a>,
    namespace: BorrowedFd,
) -> io::Result<(u32, String)> {
    let first = std::process::id();
    for number in (first..first + 1000).map(|n| n % PAIRS) {
        let name = format!("{prefix}{number:x}");
        let there = there(number);
        // The kernel chooses the machine's index.
        let here = Device { name: &name, index: 0, mac: mac(1, number), mtu: there.mtu };
        match netlink.add_veth(&here, &there, namespace) {
            Err(error) if error.raw_os_error() == Some(Errno::EEXIST as i32) => {}
            result => return result.map(|()| (number, name)),
        }
    }
    Err(io::Error::other("no free number for the pair of devices"))
}

/// A locally administered address for an end of a pair.
fn mac(end: u8, number: u32) -> [u8; 6] {
    let [a, b, c, d] = number.to_be_bytes();
    [0x02, end, a, b, c, d]
}

/// The keeper's half: asks the warden, and furnishes the exit's end. Run in the exit's namespace, `exit`.
pub(super) fn furnish(way: &WayOut, warden: BorrowedFd, exit: BorrowedFd) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    messages::send(warden, &[0], &[exit.as_raw_fd()])?;
    let number = messages::receive_result(warden, PATIENCE)?;
    let index = if_nametoindex(UPLINK)?;
    if !way.v6 {
        // Its own automatic addresses would be a way that leads nowhere.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{UPLINK}/disable_ipv6"), "1");
    }
    if matches!(way.by, By::Pair { .. }) {
        let mut netlink = Netlink::open()?;
        netlink.set_up(index, true)?;
        for [gateway, own] in way.addresses(number) {
            netlink.add_address(index, pair_prefix(own))?;
            netlink.add_default_route(index, gateway)?;
        }
        // The machine forwards for its whole network: whoever has a route to the pair could come in by it.
        rules::only_answers_by(index)?;
    }
    // Lives in the exit's namespace, and goes with it.
    rules::what_leaves_by(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_addresses_is_inside_its_network_whatever_its_number() {
        let pairs = |number, v6| {
            let way = WayOut { by: By::Pair { switched_on: Vec::new() }, v4: true, v6 };
            way.addresses(number).map(|pair| pair.map(|a| a.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(pairs(0, false), [["100.64.0.0", "100.64.0.1"]]);
        assert_eq!(pairs(PAIRS - 1, false)[0][1], "100.127.255.255");
        assert_eq!(pairs(PAIRS, true), pairs(0, true));
        assert_eq!(pairs(1, true)[1], ["fd61:6972:6c6f:6f6d::2", "fd61:6972:6c6f:6f6d::3"]);
    }

    #[test]
    fn servers_on_loopback_are_left_out() {
        let text = "# a\nnameserver 127.0.0.53\nnameserver 192.0.2.1\n nameserver\t2001:db8::1\nnameserver ::1\nsearch x\n";
        assert_eq!(servers_in(text), ["192.0.2.1", "2001:db8::1"].map(|a| a.parse::<IpAddr>().unwrap()));
    }
}
