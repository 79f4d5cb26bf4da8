//! The scenario as understood: every name resolved to an index, every default filled in.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use serde_json::Value;
use smart_default::SmartDefault;

use airloom_base::{Change, Duration, Environments, Grade};
use airloom_bearers::faults::Faults;
use airloom_wire::ip;

use crate::port::PortDevice;
use crate::work::Work;

/// A network under study: hosts, the links between them, what changes while it runs, and how it is run.
///
/// Made by [`Scenario::parse`] and its relatives; the fields obey what is said at each of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it is about, one line.
    pub title: String,
    /// All hosts, in order of the file; the members of a group follow each other.
    pub hosts: Vec<Host>,
    /// Radio environments that links share, by name: their tables as understood.
    pub environments: Environments,
    /// All links. In the short form in order of the path, otherwise in order of the file.
    pub links: Vec<Link>,
    /// What changes during the run, in order of the file (not of time).
    pub timeline: Vec<TimelineEntry>,
    /// How it is run and what is recorded.
    pub run: Run,
}

/// An application, transport, proxy or bearer: its name in the registry and its table. Two are the same if they are
/// understood in the same way.
#[derive(Clone, Debug)]
pub struct Component {
    /// Name in the registry.
    pub name: String,
    /// The keys that were given, as understood: files are read once. Parts are built from them: a run of a few hundred
    /// microseconds would spend a tenth of them on reading defaults.
    pub given: Value,
    /// Its table as understood, with all defaults.
    pub config: Value,
}

impl PartialEq for Component {
    fn eq(&self, other: &Component) -> bool {
        (&self.name, &self.config) == (&other.name, &other.config)
    }
}

/// One host.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// `mobile`, or `mobile[2]` if it is one of a group (a host with `count`).
    pub name: String,
    /// The name in the file, without index.
    pub group: String,
    /// Its number in the group, if the file gave a `count`.
    pub index: Option<u32>,
    /// Is it a port to real programs when the run is in real time? In virtual time it is simulated all the same.
    pub real: bool,
    /// Does it pass on datagrams that are not for it?
    pub forwards: bool,
    /// Routes that the file gave; all others are shortest paths.
    pub routes: Vec<Route>,
    /// What the members of a group share.
    pub settings: Arc<HostSettings>,
}

/// What runs on a host; shared by the members of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSettings {
    /// Applications of the simulated host.
    pub apps: Vec<Component>,
    /// The proxy on it.
    pub proxy: Option<Component>,
    /// Its transport protocols, each of another name: the first is what applications connect by that do not say. One at least.
    pub transports: Vec<Component>,
    /// Transport protocols of its own for connections over some of its links, by name of the link.
    pub interfaces: Vec<(String, Component)>,
    /// How long its processor takes for packets, if it is slow.
    pub work: Option<Work>,
    /// Program and arguments that run in the host when it is real.
    pub command: Option<Vec<String>>,
    /// What it has at its ends of links when it is real.
    pub port: PortDevice,
    /// Is it the way to the outside world when it is real?
    pub outside: bool,
    /// TCP ports that lead to the same ports of this machine's loopback when it is real.
    pub loopback: Vec<u16>,
}

/// A route the file gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where to.
    pub to: Destination,
    /// The neighbour that gets the datagrams: index of a host.
    pub via: usize,
    /// The link that leads to it: index of a link.
    pub link: usize,
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// All addresses of a host (index).
    Host(usize),
    /// All addresses of a link (index).
    Link(usize),
    /// All addresses of a prefix; of length 0: everything that has no better route.
    Prefix(Prefix),
}

/// An address and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// The address; bits behind the prefix are zero.
    pub address: IpAddr,
    /// Number of leading bits.
    pub length: u8,
}

impl Prefix {
    /// Does `address` lie in it?
    pub fn contains(&self, address: IpAddr) -> bool {
        Prefix::new(address, self.length).is_some_and(|p| p == *self)
    }

    /// The prefix of `length` bits that `address` lies in; `None` if that is more bits than it has.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(a) => {
                let zeros = 32u32.checked_sub(length.into())?;
                Ipv4Addr::from_bits(a.to_bits() & u32::MAX.checked_shl(zeros).unwrap_or(0)).into()
            }
            IpAddr::V6(a) => {
                let zeros = 128u32.checked_sub(length.into())?;
                Ipv6Addr::from_bits(a.to_bits() & u128::MAX.checked_shl(zeros).unwrap_or(0)).into()
            }
        };
        Some(Prefix { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A link: one bearer, with a station for each host on its near (mobile) side and one host at its far side.
///
/// Uplink is from near to far.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name in the file; its observation points begin with it.
    pub name: String,
    /// Which bearer.
    pub bearer: Component,
    /// Its largest IP datagram, in octets, and with it the MTU of the interfaces at its ends.
    pub mtu: u16,
    /// How it treats super-packets of real hosts, if that is not left to the bearer.
    pub grade: Option<Grade>,
    /// What goes wrong on it besides what its bearer does.
    pub faults: Option<Faults>,
    /// The near side: the host at place `i` is station `i`.
    pub near: Vec<Interface>,
    /// The far side.
    pub far: Interface,
    /// The IPv4 network of the link.
    pub subnet: Prefix,
    /// The IPv6 network of the link.
    pub subnet6: Prefix,
}

/// How many unused addresses a translator changes between.
const SPARE_ADDRESSES: usize = 8;

/// What every link of IPv6 carries (RFC 8200, 5).
const LEAST_MTU_6: u16 = 1280;

impl Link {
    /// The addresses of an end of it: without IPv6 where the MTU is below what IPv6 asks of a link.
    pub fn addresses(&self, end: &Interface) -> Vec<IpAddr> {
        //= RFC 8200 (5): a link that cannot carry 1280 octets has to cut and join below IPv6; none here does.
        let has_six = self.mtu >= LEAST_MTU_6;
        std::iter::once(end.ipv4.into()).chain(has_six.then(|| end.ipv6.into())).collect()
    }

    /// Unused addresses of its networks, from the last one down, for a translator at its far end.
    pub fn spare_addresses(&self) -> Vec<IpAddr> {
        let wants = self.faults.as_ref().and_then(|f| f.nat).is_some_and(|nat| nat.address);
        let networks = [self.subnet, self.subnet6].into_iter().filter(|_| wants);
        let is_used = |a: &IpAddr| self.interfaces().any(|i| *a == i.ipv4 || *a == i.ipv6);
        let of = |network: Prefix| {
            let bits = if network.address.is_ipv4() { 32 } else { 128 } - u32::from(network.length);
            // The last one of a network of IPv4 is for all of its hosts (RFC 922), the first for none.
            let hosts = 1..1_u128.checked_shl(bits.min(16)).unwrap_or(0).saturating_sub(1);
            let first = ip::key(network.address);
            let addresses = hosts.rev().map(move |host| ip::address(first + host));
            addresses.filter(|a| !is_used(a)).take(SPARE_ADDRESSES).collect::<Vec<_>>()
        };
        networks.flat_map(of).collect()
    }

    /// All ends, stations first.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.near.iter().chain(std::iter::once(&self.far))
    }
}

/// Where a host meets a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Index of the host.
    pub host: usize,
    /// Its IPv4 address on this link.
    pub ipv4: Ipv4Addr,
    /// Its IPv6 address on this link.
    pub ipv6: Ipv6Addr,
}

/// How it is run and what is recorded.
#[derive(Clone, Debug, PartialEq, SmartDefault)]
pub struct Run {
    /// When it ends.
    #[default(Until::Done)]
    pub until: Until,
    /// A run that is not done by then is an error, not a result.
    #[default(Duration::from_secs(3600))]
    pub limit: Duration,
    /// All random numbers follow from it.
    #[default(1)]
    pub seed: u64,
    /// What is written besides the summary, flows, pages and states; each kind at most once.
    #[default(vec![RecordKind::Packets])]
    pub record: Vec<RecordKind>,
    /// Observation points whose packets are recorded, `*` stands for any text. `None`: all of them, but a capture
    /// shows datagrams only inside links and at the client's end, so that each flow is seen once.
    pub points: Option<Vec<String>>,
    /// Time of day at the start of the run in virtual time, nanoseconds since 1970-01-01 00:00 UTC.
    pub epoch: u64,
    /// In real time, processors do not fall asleep: an idle one would be woken late.
    #[default(true)]
    pub keep_awake: bool,
    /// In real time, how late departures may be for the run to be valid; `None`: as its delays allow.
    pub lateness_limit: Option<Duration>,
}

impl Run {
    /// Is this kind of record wanted?
    pub fn records(&self, kind: RecordKind) -> bool {
        self.record.contains(&kind)
    }

    /// Are packets at the point of this name wanted, if packets are wanted at all?
    pub fn wants_point(&self, name: &str) -> bool {
        self.points.as_ref().is_none_or(|patterns| patterns.iter().any(|p| matches(p, name)))
    }
}

/// Does `name` match `pattern`, in which `*` stands for any text?
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When every application is done.
    Done,
    /// After this time.
    After(Duration),
}

/// A kind of record that costs something and is therefore asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum RecordKind {
    /// The packets table: a row per packet or PDU and event.
    Packets,
    /// A capture with the octets of every packet.
    Pcapng,
    /// Samples of congestion window and round-trip time.
    Congestion,
    /// The objects table: a row per object of each page.
    Objects,
    /// The events of each QUIC connection, in a file for each end; and packets and congestion, which have those of TCP, SCTP and RLC.
    Qlog,
}

impl RecordKind {
    /// All kinds.
    pub const ALL: &[RecordKind] = <Self as strum::VariantArray>::VARIANTS;

    /// As in scenario files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Something that changes during the run.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEntry {
    /// When.
    pub at: Duration,
    /// Which link (index).
    pub link: usize,
    /// Which part of it: `[3]` is member 3 of a bundle; empty is the link itself.
    pub part: Vec<u16>,
    /// The changes, made in this order at the same moment.
    pub changes: Vec<Change>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_a_point_pattern_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("gateway.radio.ip", "gateway.radio.ip", true),
            ("gateway.radio.ip", "gateway.radio.ip2", false),
            ("radio.*", "radio.rlc.dl.tx", true),
            ("*.ip", "gateway.radio.ip", true),
            ("*.ip", "radio.rlc.dl.tx", false),
            ("radio.*.dl.*", "radio.2.rlc.dl.tx", true),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_prefix_contains_the_addresses_that_share_its_bits() {
        let prefix = Prefix::new("10.77.3.9".parse().unwrap(), 22).unwrap();
        assert_eq!(prefix.to_string(), "10.77.0.0/22");
        assert!(prefix.contains("10.77.3.255".parse().unwrap()));
        assert!(!prefix.contains("10.77.4.0".parse().unwrap()));
        assert!(!prefix.contains("fd00::".parse().unwrap()));
        assert!(Prefix::new("::".parse().unwrap(), 0).unwrap().contains("fd00::1".parse().unwrap()));
        assert!(Prefix::new("10.0.0.0".parse().unwrap(), 33).is_none());
    }
}
