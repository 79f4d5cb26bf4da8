//! The routes of real hosts: what the model does with a datagram, told to a kernel.
//!
//! By its first interface, or the one that leads to the exit, or where a given default route says, a real host reaches
//! everything that has no better route. Given networks are routes of the kernel too. For every address of the network on which longest-prefix
//! matching over these would choose another interface than the model does, there is a route of its own.

use std::net::IpAddr;

use airloom_wire::ip;

use crate::routes::Hop;
use crate::world::World;

/// A network and the interface it lies behind.
type Entry = (IpAddr, u8, u16);

impl World {
    /// Fills in `routes` of all ports.
    pub(crate) fn find_routes_of_ports(&mut self) {
        let mut known: Vec<IpAddr> = self.routes.translated.clone();
        for host in &self.hosts {
            known.extend(host.net.interfaces.iter().flat_map(|i| i.addresses.iter().copied()));
        }
        let mut entries: Vec<(u32, Vec<Entry>)> = Vec::new();
        for port in &self.ports {
            if entries.last().is_none_or(|(host, _)| *host != port.host) {
                entries.push((port.host, Vec::new()));
            }
        }
        for (host, found) in &mut entries {
            *found = self.routes_of(*host, &known);
        }
        for port in &mut self.ports {
            let of_host = entries.iter().find(|(host, _)| *host == port.host).map(|(_, e)| e.as_slice());
            let own =
                of_host.unwrap_or_default().iter().filter(|(_, _, interface)| *interface == port.interface);
            port.routes = own.map(|(network, bits, _)| (*network, *bits)).collect();
        }
    }

    fn routes_of(&mut self, host: u32, known: &[IpAddr]) -> Vec<Entry> {
        let links = &self.routes.attached[host as usize];
        let mut entries: Vec<Entry> = Vec::new();
        for route in &self.routes.given[host as usize] {
            if let Some(interface) = links.iter().position(|l| *l == route.link) {
                entries.push((route.network, route.bits, interface as u16));
            }
        }
        let is_exit = self.routes.exit.as_ref().is_some_and(|(exit, _)| *exit == host);
        for default in [IpAddr::from([0; 4]), IpAddr::from([0; 16])] {
            let same_family = |a: &IpAddr| a.is_ipv4() == default.is_ipv4();
            let interfaces = &self.hosts[host as usize].net.interfaces;
            let first = interfaces.iter().position(|i| i.addresses.iter().any(same_family));
            // Of everything else the exit knows more than the model.
            let first = first.filter(|_| !is_exit).map(|first| {
                let to_exit = self.routes.towards_the_exit(host, ip::key(default));
                if let Some(Hop::Link { interface, .. }) = to_exit { usize::from(interface) } else { first }
            });
            let given = entries.iter().any(|(network, bits, _)| *bits == 0 && same_family(network));
            if let (Some(first), false) = (first, given) {
                entries.push((default, 0, first as u16));
            }
        }
        for address in known {
            let key = ip::key(*address);
            let Some(Hop::Link { interface, .. }) = self.routes.lookup(host, key) else { continue };
            if longest_match(&entries, *address) != Some(interface) {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                entries.retain(|(network, length, _)| (network, *length) != (address, bits));
                entries.push((*address, bits, interface));
            }
        }
        entries
    }
}

/// The interface that a kernel with these routes would choose.
fn longest_match(entries: &[Entry], address: IpAddr) -> Option<u16> {
    let covering = entries.iter().filter(|(network, bits, _)| covers(*network, *bits, address));
    covering.max_by_key(|(_, bits, _)| *bits).map(|(_, _, interface)| *interface)
}

fn covers(network: IpAddr, bits: u8, address: IpAddr) -> bool {
    if network.is_ipv4() != address.is_ipv4() {
        return false;
    }
    let bits = u32::from(bits) + if network.is_ipv4() { 96 } else { 0 };
    let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
    (ip::key(network) ^ ip::key(address)) & mask == 0
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::json;

    use crate::builder::{Builder, HostId, LinkId};

    fn v4(text: &str, bits: u8) -> (std::net::IpAddr, u8) {
        (text.parse::<Ipv4Addr>().unwrap().into(), bits)
    }

    /// mobile = radio = gateway - wire - origin, and mobile = wlan = gateway: the gateway is real.
    fn network(
        real: usize,
        settle: impl FnOnce(&mut Builder, &[HostId], &[LinkId]),
    ) -> Vec<Vec<(std::net::IpAddr, u8)>> {
        let mut b = Builder::new(1);
        let hosts = ["mobile", "gateway", "origin"].map(|name| b.host(name));
        let mut link = |name, near, far| b.link(name, "wireline", &json!({}), &[near], far).unwrap();
        let links = [
            link("radio", hosts[0], hosts[1]),
            link("wlan", hosts[0], hosts[1]),
            link("wire", hosts[1], hosts[2]),
        ];
        b.real(hosts[real], None);
        settle(&mut b, &hosts, &links);
        b.build().unwrap().ports().iter().map(|p| p.routes.clone()).collect()
    }

    #[test]
    fn a_real_gateway_finds_every_host_behind_the_right_interface() {
        let routes = network(1, |_, _, _| {});
        assert_eq!(routes[0], [v4("0.0.0.0", 0)]);
        assert_eq!(routes[1], [v4("10.0.1.2", 32)]);
        assert_eq!(routes[2], [v4("10.0.2.1", 32)]);
    }

    #[test]
    fn a_real_gateway_sends_what_it_does_not_know_towards_the_exit_which_keeps_it() {
        let routes = network(1, |b, hosts, _| b.exit(hosts[2]));
        assert_eq!(routes[0], [v4("10.0.0.2", 32)]);
        assert_eq!(routes[2], [v4("0.0.0.0", 0)]);
        let routes = network(2, |b, hosts, _| b.exit(hosts[2]));
        assert!(!routes[0].is_empty());
        assert!(routes[0].iter().all(|(_, bits)| *bits == 32), "{routes:?}");
    }

    #[test]
    fn a_real_host_with_two_links_takes_the_one_that_is_given() {
        let routes = network(0, |b, hosts, links| {
            b.route(hosts[0], "0.0.0.0".parse().unwrap(), 0, links[1], hosts[1]);
        });
        assert_eq!(routes[1], [v4("0.0.0.0", 0)]);
        // What the model reaches over the first link all the same.
        assert_eq!(routes[0], [v4("10.0.0.1", 32)]);
    }
}
