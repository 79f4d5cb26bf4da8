//! A network address translator that forgets its bindings now and then (RFC 4787 calls what it has bindings, or mappings).
//!
//! ```text
//! uplink:   source      address and port -> those of the binding; made by the first datagram
//! downlink: destination address and port -> those inside; without a binding it is not let in
//! ```
//!
//! At first a binding keeps address and port: nothing shows. From `first` on every datagram gets a new port (with `address`
//! also a new address), and what comes for the old ones is not let in. There are 32,768 bindings at most: where one
//! more is needed, the eighth of them goes by which nothing was sent for longest (RFC 4787, 4.3: what goes out
//! refreshes a binding). Checksums are filled in at the edges, as always.
//!
//! Fragments have no ports, but for the first of a datagram. Until bindings are forgotten they pass as they are, and make none;
//! from then on none passes, where a real translator follows them (RFC 4787, REQ-14).

use std::collections::BTreeMap;
use std::net::IpAddr;

use airloom_base::random::Stream;
use airloom_base::{Body, ConfigError, Duration, Instant, Packet, Station};
use airloom_wire::checksum;
use airloom_wire::ip::{self, Brief, V4_HEADER, V6_HEADER, protocol};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bindings at a time.
const MOST_BINDINGS: usize = 32_768;
/// Ports that a new binding may get.
const FIRST_PORT: u64 = 1024;

/// When a translator forgets, and what is new then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nat {
    /// When all bindings are forgotten for the first time.
    pub first: Duration,
    /// How long after that again, and again. Without it: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Is the address another one too, each time? Unused ones of the link's networks are taken.
    #[serde(default)]
    pub address: bool,
}

impl Nat {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.every == Some(Duration::ZERO) {
            return Err(
                ConfigError::at("every", "time has to pass from one rebinding to the next").below("nat")
            );
        }
        Ok(())
    }

    /// How often bindings have been forgotten by now.
    fn round(&self, now: Instant) -> u64 {
        let since = now.as_nanos().checked_sub(self.first.as_nanos());
        since.map_or(0, |since| 1 + self.every.map_or(0, |every| since / every.as_nanos().max(1)))
    }
}

/// An end of a flow; `port` is the identifier of an echo, and 0 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    protocol: u8,
    address: u128,
    port: u16,
}

/// The end outside, and when something was sent by it last: the number of that datagram.
#[derive(Clone, Copy)]
struct Binding {
    outside: End,
    used: u64,
}

/// See the module.
pub(super) struct Translator {
    config: Nat,
    /// Addresses for the outside, by family.
    pools: [Vec<u128>; 2],
    ports: Stream,
    /// How often it has forgotten its bindings, and how often it was to do so by its schedule.
    round: u64,
    scheduled: u64,
    /// Does it keep to its schedule?
    is_on: bool,
    /// Datagrams that went out.
    sent: u64,
    outward: BTreeMap<(u16, End), Binding>,
    inward: BTreeMap<End, (u16, End)>,
}

impl Translator {
    pub(super) fn new(config: Nat, spare: &[IpAddr], ports: Stream) -> Result<Translator, ConfigError> {
        let pool = |v4| spare.iter().filter(|a| a.is_ipv4() == v4).map(|a| ip::key(*a)).collect::<Vec<_>>();
        let pools = [pool(true), pool(false)];
        if config.address && pools[0].len() < 2 {
            let message = "the network of the link has not two unused addresses to change between";
            return Err(ConfigError::at("address", message).below("nat"));
        }
        let (outward, inward) = (BTreeMap::new(), BTreeMap::new());
        Ok(Translator { config, pools, ports, round: 0, scheduled: 0, is_on: true, sent: 0, outward, inward })
    }

    /// How often it has forgotten its bindings.
    pub(super) fn rebindings(&self) -> u64 {
        self.round
    }

    /// From now on it forgets at once and by its schedule, or keeps the bindings that it has.
    pub(super) fn switch(&mut self, now: Instant, on: bool) {
        self.forget(now);
        self.is_on = on;
        if on {
            self.forget_again(1);
        }
    }

    fn forget(&mut self, now: Instant) {
        let scheduled = self.config.round(now);
        let more = scheduled - std::mem::replace(&mut self.scheduled, scheduled);
        if self.is_on && more > 0 {
            self.forget_again(more);
        }
    }

    fn forget_again(&mut self, more: u64) {
        self.round += more;
        self.outward.clear();
        self.inward.clear();
    }

    /// The binding of this end inside.
    fn bind(&mut self, station: u16, inside: End) -> Option<End> {
        self.sent += 1;
        if let Some(binding) = self.outward.get_mut(&(station, inside)) {
            binding.used = self.sent;
            return Some(binding.outside);
        }
        if self.outward.len() >= MOST_BINDINGS {
            self.drop_oldest();
        }
        let mut outside = inside;
        if self.round > 0 {
            let pool = &self.pools[usize::from(!ip::is_v4_key(inside.address))];
            if self.config.address && !pool.is_empty() {
                outside.address = pool[((self.round - 1) % pool.len() as u64) as usize];
            }
            if inside.port != 0 {
                // More ports than bindings: one is free.
                while outside.port == inside.port || self.inward.contains_key(&outside) {
                    outside.port = (FIRST_PORT + self.ports.below(65_536 - FIRST_PORT)) as u16;
                }
            }
        }
        if self.inward.contains_key(&outside) {
            return None;
        }
        self.outward.insert((station, inside), Binding { outside, used: self.sent });
        self.inward.insert(outside, (station, inside));
        Some(outside)
    }

    /// Many at once: to look for the oldest one takes a walk through all.
    fn drop_oldest(&mut self) {
        let mut used: Vec<u64> = self.outward.values().map(|binding| binding.used).collect();
        let last = *used.select_nth_unstable(MOST_BINDINGS / 8 - 1).1;
        self.outward.retain(|_, binding| binding.used > last);
        let outward = &self.outward;
        self.inward.retain(|_, inside| outward.contains_key(inside));
    }

    /// A datagram goes out; `None` if it does not pass.
    pub(super) fn out(&mut self, now: Instant, station: Station, packet: &mut Packet) -> Option<()> {
        self.forget(now);
        match Kind::of(packet)? {
            Kind::Fragment => return (self.round == 0).then_some(()),
            Kind::Error { about } => {
                // About a datagram that was let in: its destination is inside.
                let inside = end(&about, false)?;
                let outside = self.outward.get(&(station.0, inside))?.outside;
                *packet = error(packet, about, false, inside, outside)?;
                return Some(());
            }
            Kind::Plain => {}
        }
        let inside = end(packet.head(), true)?;
        let outside = self.bind(station.0, inside)?;
        write(packet.head_mut(), true, outside);
        Some(())
    }

    /// A datagram wants in, by its address to this station: to which one; `None` if it does not pass.
    pub(super) fn come(&mut self, now: Instant, station: Station, packet: &mut Packet) -> Option<Station> {
        self.forget(now);
        match Kind::of(packet)? {
            Kind::Fragment => return (self.round == 0).then_some(station),
            Kind::Error { about } => {
                let outside = end(&about, true)?;
                let (station, inside) = *self.inward.get(&outside)?;
                *packet = error(packet, about, true, outside, inside)?;
                return Some(Station(station));
            }
            Kind::Plain => {}
        }
        let outside = end(packet.head(), false)?;
        let (station, inside) = *self.inward.get(&outside)?;
        write(packet.head_mut(), false, inside);
        Some(Station(station))
    }
}

/// What kind of datagram it is.
enum Kind {
    /// One with ends of its own.
    Plain,
    /// An ICMP error, about a datagram with these octets.
    Error { about: Vec<u8> },
    /// A piece of one.
    Fragment,
}

impl Kind {
    fn of(packet: &Packet) -> Option<Kind> {
        let head = packet.head();
        let header = Brief::parse(head)?;
        if header.is_fragment {
            return Some(Kind::Fragment);
        }
        let kind = head.get(header.header_len).copied();
        let is_error = match header.protocol {
            //= RFC 792: destination unreachable, source quench, redirect, time exceeded, parameter problem.
            protocol::ICMP => matches!(kind, Some(3 | 4 | 5 | 11 | 12)),
            //= RFC 4443 (2.1): error messages have types below 128.
            protocol::ICMPV6 => kind.is_some_and(|kind| kind < 128),
            _ => false,
        };
        Some(if is_error { Kind::Error { about: packet.body().to_bytes().to_vec() } } else { Kind::Plain })
    }
}

/// Where the port of an end stands behind the IP header.
fn port_at(protocol: u8, source: bool) -> Option<usize> {
    match protocol {
        protocol::TCP | protocol::UDP | protocol::SCTP => Some(if source { 0 } else { 2 }),
        //= RFC 5508 (3.1): the identifier of an echo does what a port does.
        protocol::ICMP | protocol::ICMPV6 => Some(4),
        _ => None,
    }
}

/// The source or destination that these octets begin with.
fn end(octets: &[u8], source: bool) -> Option<End> {
    let header = Brief::parse(octets)?;
    let address = if source { header.source } else { header.destination };
    let port = match port_at(header.protocol, source) {
        Some(at) => u16::from_be_bytes(*octets.get(header.header_len + at..)?.first_chunk()?),
        None => 0,
    };
    Some(End { protocol: header.protocol, address, port })
}

/// Writes it there.
fn write(octets: &mut [u8], source: bool, end: End) {
    let Some(header) = Brief::parse(octets) else { return };
    write_address(octets, source, end.address);
    if let Some(at) = port_at(header.protocol, source)
        && let Some(port) = octets.get_mut(header.header_len + at..header.header_len + at + 2)
    {
        port.copy_from_slice(&end.port.to_be_bytes());
    }
}

fn write_address(octets: &mut [u8], source: bool, address: u128) {
    let place = match (octets.first().map(|first| first >> 4), source) {
        (Some(4), true) => 12..16,
        (Some(4), false) => 16..V4_HEADER,
        (Some(6), true) => 8..24,
        _ => 24..V6_HEADER,
    };
    if let Some(place) = octets.get_mut(place) {
        let all = address.to_be_bytes();
        place.copy_from_slice(&all[16 - place.len()..]);
    }
}

/// An ICMP error whose inner datagram has `to` where it had `from`. Its own address on the other side follows if it was the
/// same: it need not be, where a router in between tells of it.
fn error(packet: &Packet, mut about: Vec<u8>, source: bool, from: End, to: End) -> Option<Packet> {
    write(&mut about, source, to);
    let inner = Brief::parse(&about)?;
    if ip::is_v4_key(inner.source) {
        about[10..12].fill(0);
        let sum = checksum::internet(&about[..inner.header_len]);
        about[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let mut head = packet.head().to_vec();
    let outer = Brief::parse(&head)?;
    if from.address == if source { outer.destination } else { outer.source } {
        write_address(&mut head, !source, to.address);
    }
    let mut changed = Packet::with_head(&head, Body::Real(about.into()))?;
    changed.label(packet.id(), packet.flow());
    Some(changed)
}
