//! Which link a datagram takes next: shortest paths, found when first needed and remembered.

use std::collections::VecDeque;
use std::net::IpAddr;

use airloom_base::lookup::Table;
use airloom_base::{Direction, Station};
use airloom_wire::ip;

/// Where a datagram goes from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// The host has this address itself.
    Local,
    /// Out of interface `interface`, over `link`.
    Link { link: u32, interface: u16, direction: Direction, station: Station },
}

/// A given route: datagrams to `network` (its first `bits` bits) leave by `link`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Network address.
    pub network: IpAddr,
    /// Prefix length within the address family.
    pub bits: u8,
    /// Index of the link.
    pub link: u32,
    /// Index of the neighbour on that link that gets them.
    pub via: u32,
}

impl Route {
    fn covers(&self, address: u128) -> bool {
        // Inside, IPv4 addresses are mapped into IPv6: without this `::/0` would cover them too.
        if self.network.is_ipv4() != ip::is_v4_key(address) {
            return false;
        }
        let bits = u32::from(self.bits) + if self.network.is_ipv4() { 96 } else { 0 };
        let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
        (ip::key(self.network) ^ address) & mask == 0
    }
}

/// Ends of a link: the stations' hosts and the far host, each with its interface number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) near: Vec<(u32, u16)>,
    pub(crate) far: (u32, u16),
}

/// The topology and what was found out about it.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) ends: Vec<Ends>,
    /// Prefix lengths of each link's own networks, of IPv4 and of IPv6; longest where nobody said them.
    pub(crate) networks: Vec<[u8; 2]>,
    /// Links of each host, in order of its interfaces.
    pub(crate) attached: Vec<Vec<u32>>,
    /// May datagrams of others pass through the host?
    pub(crate) forwards: Vec<bool>,
    pub(crate) given: Vec<Vec<Route>>,
    /// The host that gets what is for nobody in the network, and its addresses.
    pub(crate) exit: Option<(u32, Vec<u128>)>,
    /// Addresses that no host has, but a translator puts in front of some.
    pub(crate) translated: Vec<IpAddr>,
    /// Where an address lives: host and link.
    places: Table<u128, (u32, u32)>,
    /// By host: hops towards addresses that somebody has.
    found: Vec<Table<u128, Hop>>,
}

impl Routes {
    /// `address` belongs to `host` on `link`. False if somebody has it already.
    pub(crate) fn place(&mut self, address: IpAddr, host: u32, link: u32) -> bool {
        self.places.insert(ip::key(address), (host, link)).is_none()
    }

    /// The next hop from `host` towards `address`; `None` if there is no way.
    #[inline]
    pub(crate) fn lookup(&mut self, host: u32, address: u128) -> Option<Hop> {
        if let Some(hop) = self.found.get(host as usize).and_then(|found| found.get(&address)) {
            return Some(*hop);
        }
        self.lookup_anew(host, address)
    }

    /// The next hop of a datagram that has come to `host`, if that passes on what is for others.
    #[inline]
    pub(crate) fn onward(&mut self, host: u32, address: u128) -> Option<Hop> {
        if self.forwards[host as usize] { self.lookup(host, address) } else { None }
    }

    #[inline(never)]
    fn lookup_anew(&mut self, host: u32, address: u128) -> Option<Hop> {
        let Some(hop) = self.find(host, address) else { return self.towards_the_exit(host, address) };
        // Only what is in the network is remembered: real programs may try any number of addresses elsewhere.
        if self.places.contains(&address) {
            if self.found.len() <= host as usize {
                self.found.resize_with(host as usize + 1, Table::default);
            }
            self.found[host as usize].insert(address, hop);
        }
        Some(hop)
    }

    /// The host that gets what is for `address`: the one that has it, or the exit.
    pub(crate) fn owner(&self, address: u128) -> Option<u32> {
        let place = self.places.get(&address).map(|place| place.0);
        place.or_else(|| self.exit.as_ref().map(|exit| exit.0))
    }

    /// The next hop for an address that nobody has.
    #[cold]
    pub(crate) fn towards_the_exit(&mut self, host: u32, address: u128) -> Option<Hop> {
        let (exit, addresses) = self.exit.as_ref()?;
        if *exit == host || self.places.contains(&address) {
            return None;
        }
        let same_family = |a: &&u128| ip::is_v4_key(**a) == ip::is_v4_key(address);
        let its = *addresses.iter().find(same_family)?;
        self.lookup(host, its)
    }

    /// The next hop from `host` towards `address` of another host, over this link of its own.
    pub(crate) fn lookup_over(&self, host: u32, link: u32, address: u128) -> Option<Hop> {
        let (owner, target) = self.places.get(&address).copied().filter(|(owner, _)| *owner != host)?;
        if target == link {
            return self.over(host, link, Some(owner));
        }
        let given = self.given[host as usize].iter().filter(|r| r.link == link && r.covers(address));
        let via = given.max_by_key(|r| r.bits).map(|route| route.via);
        let via =
            via.or_else(|| self.first_step(host, owner, target, |l| l == link).map(|(_, next)| next))?;
        self.over(host, link, Some(via))
    }

    /// The next hop to another host over this link that both are on, whichever link its address belongs to: a host takes what comes
    /// for any of its addresses.
    pub(crate) fn straight_over(&self, host: u32, link: u32, address: u128) -> Option<Hop> {
        let (owner, _) = self.places.get(&address).copied().filter(|(owner, _)| *owner != host)?;
        self.interface(owner, link)?;
        self.over(host, link, Some(owner))
    }

    fn find(&self, host: u32, address: u128) -> Option<Hop> {
        let place = self.places.get(&address).copied();
        if place.is_some_and(|(owner, _)| owner == host) {
            return Some(Hop::Local);
        }
        let on_link = place.is_some_and(|(_, link)| self.interface(host, link).is_some());
        // As in a kernel, to which the network of an own link is a route too: the longest prefix wins. Of two as long
        // the given one does, which was written for something.
        let own = place.filter(|_| on_link).map_or(0, |(_, link)| self.bits_of(link, address));
        let given = self.given[host as usize].iter().filter(|r| r.covers(address) && r.bits >= own);
        if let Some(route) = given.max_by_key(|r| r.bits) {
            return self.over(host, route.link, Some(route.via));
        }
        let (owner, link) = place?;
        if on_link {
            return self.over(host, link, Some(owner));
        }
        let step = self.first_step(host, owner, link, |_| true);
        let (first_link, next) = step.or_else(|| self.first_step_to(host, owner))?;
        self.over(host, first_link, Some(next))
    }

    /// Prefix length of the link's network that is of the family of `address`.
    fn bits_of(&self, link: u32, address: u128) -> u8 {
        let family = usize::from(!ip::is_v4_key(address));
        self.networks.get(link as usize).map_or([32, 128][family], |bits| bits[family])
    }

    /// The way from `host` through forwarding hosts other than `owner` to one on `target`; gives the first link, which
    /// must be one of those `by`, and the host behind it.
    fn first_step(&self, host: u32, owner: u32, target: u32, by: impl Fn(u32) -> bool) -> Option<(u32, u32)> {
        let passes = |next: u32| self.forwards[next as usize] && next != owner;
        self.search(host, by, passes, |at| self.interface(at, target).is_some())
    }

    /// The same to `owner`, over any of its links: the only way to the address of a router on a link behind it. A host
    /// takes what comes for any of its addresses.
    fn first_step_to(&self, host: u32, owner: u32) -> Option<(u32, u32)> {
        let passes = |next: u32| self.forwards[next as usize] || next == owner;
        self.search(host, |_| true, passes, |at| at == owner)
    }

    /// Breadth-first search. Ties: links in the order of the scenario.
    fn search(
        &self,
        host: u32,
        by: impl Fn(u32) -> bool,
        passes: impl Fn(u32) -> bool,
        is_there: impl Fn(u32) -> bool,
    ) -> Option<(u32, u32)> {
        let mut seen = vec![false; self.attached.len()];
        let mut queue = VecDeque::from([(host, None)]);
        seen[host as usize] = true;
        while let Some((at, first)) = queue.pop_front() {
            if let (Some(first), true) = (first, is_there(at)) {
                return Some(first);
            }
            for &link in &self.attached[at as usize] {
                if at == host && !by(link) {
                    continue;
                }
                let ends = &self.ends[link as usize];
                for next in ends.near.iter().chain([&ends.far]).map(|e| e.0) {
                    if !seen[next as usize] && passes(next) {
                        seen[next as usize] = true;
                        queue.push_back((next, first.or(Some((link, next)))));
                    }
                }
            }
        }
        None
    }

    fn interface(&self, host: u32, link: u32) -> Option<u16> {
        let ends = &self.ends[link as usize];
        if ends.far.0 == host {
            return Some(ends.far.1);
        }
        // A host has few links, a link may have many stations.
        let index = self.attached[host as usize].iter().position(|l| *l == link)?;
        u16::try_from(index).ok()
    }

    /// The hop from `host` over `link` to `next`. Between stations everything goes by the far end.
    fn over(&self, host: u32, link: u32, next: Option<u32>) -> Option<Hop> {
        let interface = self.interface(host, link)?;
        let ends = &self.ends[link as usize];
        let station_of = |host| ends.near.iter().position(|e| e.0 == host).map(|s| Station(s as u16));
        let (direction, station) = if ends.far == (host, interface) {
            (Direction::Downlink, next.and_then(station_of)?)
        } else {
            (Direction::Uplink, station_of(host)?)
        };
        Some(Hop::Link { link, interface, direction, station })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// mobile[0], mobile[1] = radio = gateway - wire - origin
    fn cell() -> Routes {
        let mut r = Routes {
            ends: vec![
                Ends { near: vec![(0, 0), (1, 0)], far: (2, 0) },
                Ends { near: vec![(2, 1)], far: (3, 0) },
            ],
            attached: vec![vec![0], vec![0], vec![0, 1], vec![1]],
            forwards: vec![false, false, true, false],
            given: vec![vec![]; 4],
            ..Routes::default()
        };
        for (host, link, address) in [
            (0, 0, "10.0.0.2"),
            (1, 0, "10.0.0.3"),
            (2, 0, "10.0.0.1"),
            (2, 1, "10.0.1.1"),
            (3, 1, "10.0.1.2"),
        ] {
            assert!(r.place(address.parse().unwrap(), host, link));
        }
        r
    }

    fn key(text: &str) -> u128 {
        ip::key(text.parse().unwrap())
    }

    #[test]
    fn datagrams_take_the_shortest_path_and_the_right_station() {
        let mut r = cell();
        let up = |station| Hop::Link {
            link: 0,
            interface: 0,
            direction: Direction::Uplink,
            station: Station(station),
        };
        assert_eq!(r.lookup(0, key("10.0.1.2")), Some(up(0)));
        assert_eq!(r.lookup(1, key("10.0.1.2")), Some(up(1)));
        assert_eq!(r.lookup(1, key("10.0.0.2")), Some(up(1)), "mobile to mobile goes through the network");
        let down = Hop::Link { link: 0, interface: 0, direction: Direction::Downlink, station: Station(1) };
        assert_eq!(r.lookup(2, key("10.0.0.3")), Some(down));
        assert_eq!(r.lookup(2, key("10.0.1.1")), Some(Hop::Local));
        assert_eq!(r.lookup(0, key("192.0.2.1")), None);
    }

    #[test]
    fn a_router_is_reached_at_its_address_on_a_link_behind_it() {
        let mut r = cell();
        let up = Hop::Link { link: 0, interface: 0, direction: Direction::Uplink, station: Station(0) };
        assert_eq!(r.lookup(0, key("10.0.1.1")), Some(up));
        let out = Hop::Link { link: 1, interface: 0, direction: Direction::Downlink, station: Station(0) };
        assert_eq!(r.lookup(3, key("10.0.0.1")), Some(out));
        // Where others lead to that link, by these as ever.
        r.ends.push(Ends { near: vec![(0, 1)], far: (3, 1) });
        (r.attached[0], r.attached[3]) = (vec![0, 2], vec![1, 2]);
        r.forwards[3] = true;
        r.found.clear();
        let by_the_origin =
            Hop::Link { link: 2, interface: 1, direction: Direction::Uplink, station: Station(0) };
        assert_eq!(r.lookup(0, key("10.0.1.1")), Some(by_the_origin));
    }

    #[test]
    fn what_nobody_has_goes_to_the_exit_and_nobody_else_moves() {
        let mut r = cell();
        let before: Vec<_> = (0..4).map(|host| r.lookup(host, key("10.0.0.3"))).collect();
        r.exit = Some((3, vec![key("10.0.1.2")]));
        assert_eq!(r.lookup(0, key("192.0.2.1")), r.lookup(0, key("10.0.1.2")));
        assert!(r.lookup(2, key("192.0.2.1")).is_some());
        assert_eq!(r.lookup(3, key("192.0.2.1")), None, "what it sends back is for somebody");
        assert_eq!(r.lookup(0, key("2001:db8::1")), None, "it has no address of that family");
        assert_eq!((r.owner(key("192.0.2.1")), r.owner(key("10.0.0.2"))), (Some(3), Some(0)));
        assert_eq!((0..4).map(|host| r.lookup(host, key("10.0.0.3"))).collect::<Vec<_>>(), before);
        // Not remembered: a real program may try any number of addresses.
        assert!(!r.found[0].contains(&key("192.0.2.1")));
    }

    #[test]
    fn a_given_route_wins() {
        let mut r = cell();
        r.given[3] = vec![Route { network: "0.0.0.0".parse().unwrap(), bits: 0, link: 1, via: 2 }];
        let out = Hop::Link { link: 1, interface: 0, direction: Direction::Downlink, station: Station(0) };
        assert_eq!(r.lookup(3, key("192.0.2.1")), Some(out));
    }

    #[test]
    fn a_neighbour_is_reached_straight_unless_a_route_names_it() {
        let route = |network: &str, bits| Route { network: network.parse().unwrap(), bits, link: 1, via: 3 };
        let straight =
            Hop::Link { link: 0, interface: 0, direction: Direction::Downlink, station: Station(1) };
        let given = Hop::Link { link: 1, interface: 1, direction: Direction::Uplink, station: Station(0) };
        let mut r = cell();
        r.given[2] = vec![route("0.0.0.0", 0)];
        assert_eq!(r.lookup(2, key("10.0.0.3")), Some(straight), "the default route is for all others");
        assert_eq!(r.lookup(2, key("192.0.2.1")), Some(given));
        let mut r = cell();
        r.given[2] = vec![route("10.0.0.3", 32)];
        assert_eq!(r.lookup(2, key("10.0.0.3")), Some(given));
    }

    #[test]
    fn a_route_wins_over_the_network_of_an_own_link_where_its_prefix_is_as_long() {
        let straight =
            Hop::Link { link: 0, interface: 0, direction: Direction::Downlink, station: Station(1) };
        let given = Hop::Link { link: 1, interface: 1, direction: Direction::Uplink, station: Station(0) };
        for (network, bits, expected) in [
            ("10.0.0.0", 23, straight),
            ("10.0.0.0", 24, given),
            ("10.0.0.0", 25, given),
            ("10.0.0.128", 25, straight),
        ] {
            let mut r = cell();
            r.networks = vec![[24, 64]; 2];
            r.given[2] = vec![Route { network: network.parse().unwrap(), bits, link: 1, via: 3 }];
            assert_eq!(r.lookup(2, key("10.0.0.3")), Some(expected), "{network}/{bits}");
        }
    }

    #[test]
    fn routes_of_one_family_say_nothing_about_the_other() {
        let mut r = cell();
        r.given[2] = vec![Route { network: "::".parse().unwrap(), bits: 0, link: 1, via: 3 }];
        assert_eq!(r.lookup(2, key("192.0.2.1")), None);
        assert!(r.lookup(2, key("2001:db8::1")).is_some());
    }

    #[test]
    fn addresses_that_nobody_has_are_not_remembered() {
        let mut r = cell();
        r.given[3] = vec![Route { network: "0.0.0.0".parse().unwrap(), bits: 0, link: 1, via: 2 }];
        for n in 0..1000u32 {
            assert!(r.lookup(3, ip::key(std::net::Ipv4Addr::from(0xC000_0000 + n).into())).is_some());
        }
        assert!(r.found.iter().all(Table::is_empty));
        assert!(r.lookup(3, key("10.0.0.3")).is_some());
        assert_eq!(r.found[3].len(), 1);
    }

    #[test]
    fn hosts_that_do_not_forward_are_no_way_through() {
        let mut r = cell();
        r.forwards[2] = false;
        assert_eq!(r.lookup(0, key("10.0.1.2")), None);
    }
}
