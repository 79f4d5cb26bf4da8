//! Which servers a gateway may fetch from.
//!
//! A gateway fetches what strangers ask for, so it must not become their way into the network it stands in. Addresses
//! that are not of the public internet are refused unless somebody allowed them; the check is made on addresses, after
//! names were looked up, for each request anew: a name may lead to another address the next time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::IpNet;

/// Networks that are no part of the public internet, or that lead to another network (RFC 6890 and the registries it
/// made: IANA IPv4 and IPv6 Special-Purpose Address Registry; RFC 5771 and 4291 for multicast).
const SPECIAL: &[&str] = &[
    "0.0.0.0/8",       // this network
    "10.0.0.0/8",      // private
    "100.64.0.0/10",   // shared (RFC 6598)
    "127.0.0.0/8",     // loopback
    "169.254.0.0/16",  // link-local: clouds keep their metadata there
    "172.16.0.0/12",   // private
    "192.0.0.0/24",    // protocol assignments
    "192.0.2.0/24",    // documentation
    "192.31.196.0/24", // AS112
    "192.52.193.0/24", // AMT
    "192.88.99.0/24",  // 6to4 relays
    "192.168.0.0/16",  // private
    "192.175.48.0/24", // AS112
    "198.18.0.0/15",   // benchmarking
    "198.51.100.0/24", // documentation
    "203.0.113.0/24",  // documentation
    "224.0.0.0/4",     // multicast
    "240.0.0.0/4",     // reserved, and broadcast
    "::/127",          // unspecified and loopback
    "64:ff9b:1::/48",  // translation inside a network
    "100::/64",        // discard
    "2001::/23",       // protocol assignments, Teredo among them
    "2001:db8::/32",   // documentation
    "3fff::/20",       // documentation
    "5f00::/16",       // segment routing
    "fc00::/7",        // unique local: some clouds keep their metadata there
    "fe80::/10",       // link-local
    "fec0::/10",       // site-local
    "ff00::/8",        // multicast
];

static NETWORKS: LazyLock<Vec<IpNet>> =
    LazyLock::new(|| SPECIAL.iter().filter_map(|net| net.parse().ok()).collect());

/// Is this an address of the public internet?
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V6(six) => match embedded(six) {
            Some(four) => is_public(four.into()),
            None => !NETWORKS.iter().any(|net| net.contains(&address)),
        },
        IpAddr::V4(_) => !NETWORKS.iter().any(|net| net.contains(&address)),
    }
}

/// The IPv4 address to which a packet for this IPv6 address goes in the end: mapped (RFC 4291 2.5.5), translated (RFC 6052),
/// 6to4 (RFC 3056).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let o = address.octets();
    let last = || Ipv4Addr::new(o[12], o[13], o[14], o[15]);
    match address.segments() {
        // Whatever is mapped: no network of the list has these.
        [0, 0, 0, 0, 0, 0xFFFF, ..] => Some(last()),
        [0, 0, 0, 0, 0, 0, ..] if o[12..] != [0, 0, 0, 0] && o[12..] != [0, 0, 0, 1] => Some(last()),
        [0x64, 0xFF9B, 0, 0, 0, 0, ..] => Some(last()),
        [0x2002, ..] => Some(Ipv4Addr::new(o[2], o[3], o[4], o[5])),
        _ => None,
    }
}

/// What `--allow-origin` cannot mean.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no host name, address or network (as 10.0.0.0/8)")]
pub struct NotAnOrigin(String);

/// The public internet, and what somebody allowed besides.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    names: Vec<String>,
    networks: Vec<IpNet>,
}

impl Origins {
    /// Allows host names (all addresses they lead to), addresses and networks.
    ///
    /// # Errors
    /// [`NotAnOrigin`] for what is none of these.
    pub fn allowing<S: AsRef<str>>(list: impl IntoIterator<Item = S>) -> Result<Origins, NotAnOrigin> {
        let mut origins = Origins::default();
        for entry in list {
            let entry = entry.as_ref().trim();
            if let Ok(network) = network(entry) {
                origins.networks.push(network);
            } else if is_host_name(entry) {
                origins.names.push(entry.trim_end_matches('.').to_ascii_lowercase());
            } else {
                return Err(NotAnOrigin(entry.to_owned()));
            }
        }
        Ok(origins)
    }

    /// The same, and this address besides.
    #[must_use]
    pub fn and(mut self, address: IpAddr) -> Origins {
        self.networks.push(address.into());
        self
    }

    /// May `address` be asked, to which the host name `name` of an URL led?
    pub fn allows(&self, name: &str, address: IpAddr) -> bool {
        let name = name.trim_end_matches('.');
        is_public(address)
            || self.names.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
            || self.networks.iter().any(|net| net.contains(&address))
    }
}

/// An address or a network.
pub(super) fn network(entry: &str) -> Result<IpNet, NotAnOrigin> {
    let entry = entry.trim();
    let bare = entry.trim_start_matches('[').trim_end_matches(']');
    let address = || bare.parse::<IpAddr>().map(IpNet::from);
    bare.parse().or_else(|_| address()).map_err(|_| NotAnOrigin(entry.to_owned()))
}

/// Labels of letters, digits, hyphens and underscores; the last one not of digits only, which would be an address.
fn is_host_name(text: &str) -> bool {
    let text = text.trim_end_matches('.');
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|o| o.is_ascii_alphanumeric() || matches!(o, b'-' | b'_'))
    };
    let is_number = |label: &str| label.bytes().all(|o| o.is_ascii_digit());
    text.len() <= 253 && text.split('.').all(label) && !text.rsplit('.').next().is_none_or(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap_or_else(|_| panic!("{text}"))
    }

    #[test]
    fn all_networks_are_written_as_networks() {
        assert_eq!(NETWORKS.len(), SPECIAL.len());
        assert!(NETWORKS.iter().all(|net| net.trunc() == *net), "no octets behind the prefix");
    }

    #[test]
    fn nothing_but_the_public_internet_is_public() {
        for inside in [
            "127.0.0.1",
            "127.8.8.8",
            "10.1.2.3",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.100.100.200",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:0.0.0.0",
            "::ffff:0.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
            "::10.0.0.1",
            "2001:db8::1",
        ] {
            assert!(!is_public(address(inside)), "{inside}");
        }
        for outside in
            ["1.1.1.1", "172.32.0.1", "2606:4700::1111", "64:ff9b::1.1.1.1", "::ffff:8.8.8.8", "2a00:1450::1"]
        {
            assert!(is_public(address(outside)), "{outside}");
        }
    }

    #[test]
    fn what_is_allowed_is_allowed_and_nothing_else() {
        let origins =
            Origins::allowing(["Origin.test", "10.77.0.0/16", "::1", "127.0.0.1"]).expect("all are fine");
        assert!(origins.allows("origin.test", address("192.168.1.1")));
        assert!(origins.allows("ORIGIN.test.", address("192.168.1.1")));
        assert!(origins.allows("other", address("10.77.3.4")));
        assert!(origins.allows("[::1]", address("::1")));
        assert!(origins.allows("other", address("8.8.8.8")));
        assert!(!origins.allows("other", address("10.78.0.1")));
        assert!(!origins.allows("x.origin.test", address("127.0.0.2")));
        for wrong in ["", "10.0.0.0/33", "a b", "http://x", "1.2.3", "a..b", "x:80"] {
            assert_eq!(Origins::allowing([wrong]).err(), Some(NotAnOrigin(wrong.into())), "{wrong}");
        }
    }
}
