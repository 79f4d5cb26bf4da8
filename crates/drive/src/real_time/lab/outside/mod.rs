//! The way to the outside world, for laboratories that are to have one.
//!
//! One real host, the exit, has an interface more than the scenario gives it, called `uplink`. What reaches the exit by
//! the model's links leaves there, under the exit's own address (masquerade): the machine needs no route back.
//!
//! ```text
//!   laboratory                        |  machine
//!   mobile == radio == exit [uplink]==|== veth, masquerade           with rights over the machine's network
//!                                     |== slirp4netns: its sockets   without
//! ```
//!
//! The warden makes it, who alone is in the machine's network; the keeper furnishes the exit's end. What the machine gets
//! goes by itself when the warden does, however that ends: the other end of the veth pair with the exit's namespace, the
//! table of rules with the socket that owns it. Only the setting that lets the machine forward has to be put back
//! (`forwarding`). IPv4 only: to forward IPv6 a machine would have to give up its own automatic addresses.

mod forwarding;
mod helper;
mod masquerade;

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use airloom_base::Duration;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;

use super::messages;
use super::rights::Rights;
use crate::real_time::netlink::{Device, Netlink, Prefix};
use forwarding::Forwarding;
use helper::Helper;

/// How the exit is joined to the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By a veth pair, and rules of the machine's own.
    Machine,
    /// By a program in the machine's network that has a socket for each connection.
    Slirp(PathBuf),
}

/// The exit's end.
pub(super) const UPLINK: &str = "uplink";
const UPLINK_INDEX: u32 = 99;
const MTU: u32 = 1500;
/// What a request of the keeper and its answer may take: a helper has to be started.
const PATIENCE: Duration = Duration::from_secs(10);

impl Way {
    /// The way that these rights allow; otherwise what is missing.
    pub(super) fn find(rights: Rights) -> Result<Way, String> {
        if !has_routes(&fs::read_to_string("/proc/self/net/route").unwrap_or_default()) {
            return Err(
                "this process has no network but loopback itself (as under `airloom python` without root)"
                    .to_owned(),
            );
        }
        match rights {
            Rights::Own => Ok(Way::Machine),
            Rights::UserNamespace => helper::find().map(Way::Slirp),
        }
    }

    /// Name servers that can be reached by it.
    pub(super) fn name_servers(&self) -> Vec<IpAddr> {
        // A server on the machine's own loopback is the machine's alone; systemd's stub says elsewhere whom it asks.
        let servers = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"]
            .map(|file| servers_in(&fs::read_to_string(file).unwrap_or_default()));
        match servers.into_iter().find(|s| !s.is_empty()) {
            Some(servers) => servers,
            None if matches!(self, Way::Slirp(_)) => vec![IpAddr::V4(helper::NAME_SERVER)],
            None => Vec::new(),
        }
    }
}

/// Is there a route other than by loopback in a table as `/proc/net/route` has it?
fn has_routes(table: &str) -> bool {
    table.lines().skip(1).any(|line| line.split_whitespace().next().is_some_and(|device| device != "lo"))
}

/// IPv4 servers of a resolv.conf that are not on loopback.
fn servers_in(text: &str) -> Vec<IpAddr> {
    let servers = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok());
    servers.filter(|a: &IpAddr| a.is_ipv4() && !a.is_loopback()).collect()
}

/// What the warden holds as long as the laboratory lives.
pub(super) struct Outside {
    _table: Option<OwnedFd>,
    _forwarding: Option<Forwarding>,
    _helper: Option<Helper>,
}

/// The warden's half: waits for the exit's namespace from the keeper, joins it to the network of the calling process, and
/// answers which pair of addresses it took (or what failed).
pub(super) fn make(way: &Way, keeper: BorrowedFd, patience: Duration) -> io::Result<Outside> {
    let (_, fds) = messages::receive_within(keeper, patience)?;
    let exit = fds.into_iter().next().ok_or_else(|| io::Error::other("the exit has no namespace"))?;
    let made = match way {
        Way::Machine => join(&exit),
        Way::Slirp(program) => Helper::start(program, &exit)
            .map(|helper| (0, Outside { _table: None, _forwarding: None, _helper: Some(helper) })),
    };
    match made {
        Ok((number, outside)) => {
            messages::send(keeper, &[&[0][..], &number.to_le_bytes()].concat(), &[])?;
            Ok(outside)
        }
        Err(error) => {
            let mut message = vec![1];
            message.extend_from_slice(&error.raw_os_error().unwrap_or(0).to_le_bytes());
            message.extend_from_slice(error.to_string().as_bytes());
            messages::send(keeper, &message, &[])?;
            Err(error)
        }
    }
}

/// A veth pair between here and the exit, and rules that let the exit's traffic leave under the machine's address.
fn join(exit: &OwnedFd) -> io::Result<(u32, Outside)> {
    use std::os::fd::AsFd;

    let forwarding = Forwarding::on()?;
    let mut netlink = Netlink::open()?;
    let (number, name) = free_pair(&mut netlink, exit.as_fd())?;
    let index = if_nametoindex(name.as_str())?;
    let [here, there] = addresses(number);
    netlink.add_address(index, Prefix { address: here.into(), bits: 31 })?;
    netlink.set_up(index, true)?;
    let table = masquerade::what_comes_from(&name, there)?;
    Ok((number, Outside { _table: Some(table), _forwarding: Some(forwarding), _helper: None }))
}

/// How many pairs of addresses 100.64.0.0/10 has (RFC 6598: for networks between a provider and its customers, so that
/// they meet no private network of either side).
const PAIRS: u32 = 1 << 21;

/// Both addresses of a pair (RFC 3021: a link of two needs no others).
fn addresses(number: u32) -> [Ipv4Addr; 2] {
    let first = u32::from(Ipv4Addr::new(100, 64, 0, 0)) + 2 * (number % PAIRS);
    [first, first + 1].map(Ipv4Addr::from)
}

/// Makes the pair of devices. Its number, which stands in the machine's end's name, is one that no other laboratory has.
fn free_pair(netlink: &mut Netlink, exit: BorrowedFd) -> io::Result<(u32, String)> {
    let first = std::process::id();
    for number in (first..first + 1000).map(|n| n % PAIRS) {
        let name = format!("airloom{number:x}");
        let [a, b, c, d] = number.to_be_bytes();
        // The kernel chooses the machine's index.
        let here = Device { name: &name, index: 0, mac: [0x02, 1, a, b, c, d], mtu: MTU };
        let there = Device { name: UPLINK, index: UPLINK_INDEX, mac: [0x02, 2, a, b, c, d], mtu: MTU };
        match netlink.add_veth(&here, &there, exit) {
            Err(error) if error.raw_os_error() == Some(Errno::EEXIST as i32) => {}
            result => return result.map(|()| (number, name)),
        }
    }
    Err(io::Error::other("no free number for the way out"))
}

/// The keeper's half: asks the warden, and furnishes the exit's end. Run in the exit's namespace, `exit`.
pub(super) fn furnish(way: &Way, warden: BorrowedFd, exit: BorrowedFd) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    messages::send(warden, &[0], &[exit.as_raw_fd()])?;
    let (answer, _) = messages::receive_within(warden, PATIENCE)?;
    let number = match answer.as_slice() {
        [0, a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
        [1, a, b, c, d, text @ ..] => {
            let code = i32::from_le_bytes([*a, *b, *c, *d]);
            let text = String::from_utf8_lossy(text).into_owned();
            return Err(if code == 0 { io::Error::other(text) } else { io::Error::from_raw_os_error(code) });
        }
        _ => return Err(io::Error::other("the warden gave no answer")),
    };
    let index = if_nametoindex(UPLINK)?;
    // IPv4 only: its own automatic addresses would be a way that leads nowhere.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{UPLINK}/disable_ipv6"), "1");
    if *way == Way::Machine {
        let [gateway, own] = addresses(number);
        let mut netlink = Netlink::open()?;
        netlink.add_address(index, Prefix { address: own.into(), bits: 31 })?;
        netlink.set_up(index, true)?;
        netlink.add_default_route(index, gateway)?;
    }
    // Lives in the exit's namespace, and goes with it.
    masquerade::what_leaves_by(index).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_addresses_is_inside_the_shared_network_whatever_its_number() {
        assert_eq!(addresses(0), [Ipv4Addr::new(100, 64, 0, 0), Ipv4Addr::new(100, 64, 0, 1)]);
        assert_eq!(addresses(PAIRS - 1)[1], Ipv4Addr::new(100, 127, 255, 255));
        assert_eq!(addresses(PAIRS), addresses(0));
    }

    #[test]
    fn servers_on_loopback_and_of_ipv6_are_left_out() {
        let text = "# a\nnameserver 127.0.0.53\nnameserver 192.0.2.1\n nameserver\t192.0.2.2\nnameserver ::1\nsearch x\n";
        assert_eq!(servers_in(text), ["192.0.2.1", "192.0.2.2"].map(|a| a.parse::<IpAddr>().unwrap()));
    }

    #[test]
    fn a_table_with_loopback_only_has_no_way() {
        let header = "Iface\tDestination\tGateway\n";
        assert!(!has_routes(header));
        assert!(!has_routes(&format!("{header}lo\t0000007F\t0\n")));
        assert!(has_routes(&format!("{header}lo\t0000007F\t0\neth0\t00000000\t0102A8C0\n")));
    }
}
