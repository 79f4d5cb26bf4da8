//! Addresses: every (host, link) pair is an interface with an IPv4 and an IPv6 address.
//!
//! The rule, for what the file leaves open: links take blocks of 10.0.0.0/8 from 10.77.0.0 on, in their order, each
//! the smallest of at least 256 addresses that holds its hosts; and `fd00:77:0:N::/64`, N being the link's number
//! from 0. On each link the far end is host number 1 and the stations follow from 2.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airloom_wire::ip;

use super::hosts::Directory;
use super::read::{Fault, one_or_more};
use super::schema::{Interface, Link, Prefix};
use super::tree::{Node, quoted};

/// The hosts a link joins: stations, and the far end.
pub(super) struct Joined {
    pub(super) near: Vec<usize>,
    pub(super) far: usize,
}

/// What a link needs addresses for.
pub(super) struct Wanted<'a> {
    /// The link's table.
    pub(super) node: &'a Node,
    pub(super) joined: Joined,
}

/// The networks and interfaces of a link.
pub(super) struct Network {
    pub(super) near: Vec<Interface>,
    pub(super) far: Interface,
    pub(super) subnet: Prefix,
    pub(super) subnet6: Prefix,
}

/// Assigns the addresses of all links.
pub(super) fn assign<'a>(links: &[Wanted<'a>], directory: &Directory<'a>) -> Result<Vec<Network>, Fault<'a>> {
    let (mut taken4, mut taken6) = (Taken::default(), Taken::default());
    let mut given = Vec::with_capacity(links.len());
    for link in links {
        let hosts = link.joined.near.len() as u128 + 1;
        let subnet = match link.node.get("subnet") {
            Some(node) => Some(taken4.take(node, ipv4_network(node, hosts)?)?),
            None => None,
        };
        let subnet6 = match link.node.get("subnet6") {
            Some(node) => Some(taken6.take(node, ipv6_network(node, hosts)?)?),
            None => None,
        };
        given.push((subnet, subnet6));
    }
    let mut next4 = ip::key(Ipv4Addr::new(10, 77, 0, 0).into());
    let mut networks = Vec::with_capacity(links.len());
    for ((number, link), (subnet, subnet6)) in links.iter().enumerate().zip(given) {
        let subnet = match subnet {
            Some(subnet) => subnet,
            None => free_ipv4(&mut taken4, &mut next4, link.joined.near.len())
                .ok_or_else(|| Fault::at(link.node, "10.0.0.0/8 is used up; give the link a `subnet`"))?,
        };
        let subnet6 = match subnet6 {
            Some(subnet) => subnet,
            None => free_ipv6(&mut taken6, number)
                .ok_or_else(|| Fault::at(link.node, "fd00:77::/48 is used up; give the link a `subnet6`"))?,
        };
        networks.push(interfaces(link, directory, subnet, subnet6)?);
    }
    Ok(networks)
}

/// Gives each end of the link its addresses: what `addresses` says, and the free ones in order to the others.
fn interfaces<'a>(
    link: &Wanted<'a>,
    directory: &Directory<'a>,
    subnet: Prefix,
    subnet6: Prefix,
) -> Result<Network, Fault<'a>> {
    let mut given: BTreeMap<(usize, bool), IpAddr> = BTreeMap::new();
    let mut used: BTreeSet<IpAddr> = BTreeSet::new();
    if let Some(table) = link.node.get("addresses") {
        for entry in table.any_table("a table from host to address")? {
            let at_key = |f| Fault { node: table, key: Some(entry), ..f };
            let host = directory.find(table, &entry.key).map_err(at_key)?.single().map_err(|group| {
                let name = group.name;
                at_key(Fault::at(
                    table,
                    format!("`{name}` is a group; name its members, such as \"{name}[0]\""),
                ))
            })?;
            if host != link.joined.far && !link.joined.near.contains(&host) {
                return Err(at_key(Fault::at(table, format!("host `{}` is not on this link", entry.key))));
            }
            for node in one_or_more(&entry.value) {
                let text = node.text("an address, or a list of an IPv4 and an IPv6 address")?;
                let address: IpAddr = text.parse().map_err(|_| {
                    Fault::at(node, format!("{} is not an IPv4 or IPv6 address", quoted(text)))
                })?;
                let network = if address.is_ipv4() { subnet } else { subnet6 };
                Fault::when(
                    !is_host_of(network, address),
                    node,
                    format_args!("{address} is no host address of the link's {network}"),
                )?;
                Fault::when(!used.insert(address), node, format_args!("{address} is given twice"))?;
                Fault::when(
                    given.insert((host, address.is_ipv4()), address).is_some(),
                    node,
                    format_args!("host `{}` has two addresses of one kind", entry.key),
                )?;
            }
        }
    }
    let mut free = |network: Prefix, next: &mut u128| loop {
        let address = host_address(network, *next)?;
        *next += 1;
        if used.insert(address) {
            return Some(address);
        }
    };
    let (mut next4, mut next6) = (1, 1);
    let mut interface = |host: usize| {
        let full = || Fault::at(link.node, format!("{subnet} is too small for the hosts of the link"));
        let v4 = given.get(&(host, true)).copied().or_else(|| free(subnet, &mut next4));
        let v6 = given.get(&(host, false)).copied().or_else(|| free(subnet6, &mut next6));
        match (v4, v6) {
            (Some(IpAddr::V4(ipv4)), Some(IpAddr::V6(ipv6))) => Ok(Interface { host, ipv4, ipv6 }),
            _ => Err(full()),
        }
    };
    let far = interface(link.joined.far)?;
    let near = link.joined.near.iter().map(|h| interface(*h)).collect::<Result<_, _>>()?;
    Ok(Network { near, far, subnet, subnet6 })
}

/// Are the addresses those that the link's networks alone would give?
pub(super) fn is_by_rule(link: &Link) -> bool {
    std::iter::once(&link.far).chain(&link.near).zip(1..).all(|(interface, number)| {
        host_address(link.subnet, number) == Some(interface.ipv4.into())
            && host_address(link.subnet6, number) == Some(interface.ipv6.into())
    })
}

/// The address of host number `number` from 1; `None` behind the last, which in IPv4 is before the broadcast address.
fn host_address(network: Prefix, number: u128) -> Option<IpAddr> {
    let (first, last) = range(network);
    let address = first.checked_add(number)?;
    (address < last || address == last && network.address.is_ipv6()).then(|| ip::address(address))
}

fn is_host_of(network: Prefix, address: IpAddr) -> bool {
    let (first, last) = range(network);
    let bits = ip::key(address);
    network.contains(address) && bits != first && (address.is_ipv6() || bits != last)
}

/// First and last address.
fn range(network: Prefix) -> (u128, u128) {
    let width = if network.address.is_ipv4() { 32 } else { 128 } - u32::from(network.length);
    let first = ip::key(network.address);
    (first, first | 1u128.checked_shl(width).map_or(u128::MAX, |size| size - 1))
}

/// Networks of one address family that are in use: first address to last.
#[derive(Default)]
struct Taken(BTreeMap<u128, u128>);

impl Taken {
    /// The last address of a network that overlaps.
    fn overlap(&self, network: Prefix) -> Option<u128> {
        let (first, last) = range(network);
        self.0.range(..=last).next_back().filter(|(_, end)| **end >= first).map(|(_, end)| *end)
    }

    fn insert(&mut self, network: Prefix) {
        let (first, last) = range(network);
        self.0.insert(first, last);
    }

    fn take<'a>(&mut self, node: &'a Node, network: Prefix) -> Result<Prefix, Fault<'a>> {
        if self.overlap(network).is_some() {
            return Err(Fault::at(node, format!("{network} overlaps the network of another link")));
        }
        self.insert(network);
        Ok(network)
    }
}

fn free_ipv4(taken: &mut Taken, next: &mut u128, stations: usize) -> Option<Prefix> {
    // Stations, far end, network address, broadcast address.
    let size = (stations as u128 + 3).next_power_of_two().max(256);
    let length = u8::try_from(32 - size.trailing_zeros()).ok()?;
    loop {
        let first = next.next_multiple_of(size);
        if first + size > ip::key(Ipv4Addr::new(11, 0, 0, 0).into()) {
            return None;
        }
        let network = Prefix::new(ip::address(first), length)?;
        match taken.overlap(network) {
            Some(last) => *next = last + 1,
            None => {
                taken.insert(network);
                *next = first + size;
                return Some(network);
            }
        }
    }
}

fn free_ipv6(taken: &mut Taken, number: usize) -> Option<Prefix> {
    let mut segment = u16::try_from(number).ok()?;
    loop {
        let network = Prefix::new(Ipv6Addr::new(0xfd00, 0x77, 0, segment, 0, 0, 0, 0).into(), 64)?;
        let Some(last) = taken.overlap(network) else {
            taken.insert(network);
            return Some(network);
        };
        // A given network lies here: go on behind it.
        let end = Ipv6Addr::from_bits(last).segments();
        if end[..3] != [0xfd00, 0x77, 0] {
            return None;
        }
        segment = end[3].checked_add(1)?;
    }
}

/// Reads `10.1.0.0/16`.
pub(super) fn prefix(text: &str) -> Result<Prefix, String> {
    let bad = || format!("{} is not a network such as \"10.1.0.0/16\" or \"fd00:1::/64\"", quoted(text));
    let (address, length) = text.split_once('/').ok_or_else(bad)?;
    let address: IpAddr = address.parse().map_err(|_| bad())?;
    let length = length.parse().map_err(|_| bad())?;
    let prefix = Prefix::new(address, length).ok_or_else(bad)?;
    if prefix.address != address {
        return Err(format!("{} has bits behind its prefix; the network is {prefix}", quoted(text)));
    }
    Ok(prefix)
}

fn ipv4_network(node: &Node, hosts: u128) -> Result<Prefix, Fault<'_>> {
    let text = node.text("a network such as \"10.1.0.0/16\"")?;
    let network = prefix(text).map_err(|message| Fault::at(node, message))?;
    let IpAddr::V4(first) = network.address else {
        return Err(Fault::at(node, format!("{network} is not an IPv4 network; `subnet6` is for IPv6")));
    };
    let (low, high) = range(network);
    // 0/8 is no place for hosts, 127/8 is each host itself, 224/3 is multicast and reserved.
    let usable = |block: Prefix| !block.contains(first.into()) && !network.contains(block.address);
    let reserved = [([0, 0, 0, 0], 8), ([127, 0, 0, 0], 8), ([224, 0, 0, 0], 3)];
    if !reserved.iter().all(|(a, l)| Prefix::new(Ipv4Addr::from(*a).into(), *l).is_none_or(usable)) {
        return Err(Fault::at(node, format!("{network} has addresses that no host may have")));
    }
    if high - low < hosts + 1 {
        return Err(Fault::at(node, format!("{network} is too small for the {hosts} hosts of the link")));
    }
    Ok(network)
}

fn ipv6_network(node: &Node, hosts: u128) -> Result<Prefix, Fault<'_>> {
    let text = node.text("a network such as \"fd00:1::/64\"")?;
    let network = prefix(text).map_err(|message| Fault::at(node, message))?;
    let IpAddr::V6(first) = network.address else {
        return Err(Fault::at(node, format!("{network} is not an IPv6 network; `subnet` is for IPv4")));
    };
    let (low, high) = range(network);
    // Global unicast is 2000::/3, unique local addresses are fc00::/7 (RFC 4291, RFC 4193).
    let usable = [(0x2000, 3), (0xfc00, 7)].iter().any(|(segment, length)| {
        let block = Prefix::new(Ipv6Addr::new(*segment, 0, 0, 0, 0, 0, 0, 0).into(), *length);
        block.is_some_and(|b| network.length >= b.length && b.contains(first.into()))
    });
    Fault::when(
        !usable,
        node,
        format_args!("{network} is neither in 2000::/3 nor in fc00::/7, where hosts live"),
    )?;
    if high - low < hosts {
        return Err(Fault::at(node, format!("{network} is too small for the {hosts} hosts of the link")));
    }
    Ok(network)
}
