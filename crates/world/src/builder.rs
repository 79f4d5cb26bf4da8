//! Builds a [`World`] from hosts, links and machines: what a scenario file becomes, and what Rust programs use.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use airloom_world::Builder;
//!
//! let mut b = Builder::new(1);
//! let client = b.host("client");
//! let server = b.host("server");
//! b.link("wire", "wireline", &serde_json::json!({ "rate": "1Mbit/s", "delay": "10ms" }), &[client], server)?;
//! let world = b.build()?;
//! # Ok(()) }
//! ```

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use airloom_base::random::derive;
use airloom_base::record::PointKind;
use airloom_base::{
    App, AppParts, Bearer, Change, ConfigError, Duration, Environments, Grade, Instant, MTU, Outbox, Parts,
    Protocol, ProtocolParts,
};
use airloom_wire::ip;
use serde_json::Value;

use crate::agenda::Wakeup;
use crate::fabric::LinkSlot;
use crate::host::{Host, Interface};
use crate::port::{PortDevice, PortInfo, RealTcp};
use crate::routes::{Ends, Route};
use crate::work::{Processor, Work, Worked};
use crate::world::{Planned, World};

/// A host of the world under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// A link of the world under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u32);

/// What cannot be built, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{component}: {error}")]
pub struct BuildError {
    /// The host or link.
    pub component: String,
    /// Which of the components of a host, if it is one of them.
    pub part: Option<Part>,
    /// What is wrong with it.
    pub error: ConfigError,
}

/// A component of a host, by its place there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// An application.
    App(usize),
    /// The proxy.
    Proxy,
    /// A transport of all links.
    Transport(usize),
    /// That of the link with this name.
    Interface(String),
}

impl BuildError {
    /// Of a host or link as a whole.
    pub(crate) fn new(component: impl Into<String>, error: ConfigError) -> BuildError {
        BuildError { component: component.into(), part: None, error }
    }

    /// The same, of a component of the host.
    pub(crate) fn of(self, part: Part) -> BuildError {
        BuildError { part: Some(part), ..self }
    }
}

/// How hosts call the one that leads to the machine that the laboratory is on.
const MACHINE: &str = "host.airloom";

/// The application that real hosts ask for names.
pub(crate) const NAME_SERVER: &str = "name-server";

/// An end of a link: a host and its addresses there.
#[derive(Clone, Debug)]
pub struct End {
    /// The host.
    pub host: HostId,
    /// Its addresses on this link.
    pub addresses: Vec<IpAddr>,
}

/// A world under construction. Set-up is linear in hosts and links.
pub struct Builder {
    seed: u64,
    captured: bool,
    has_real_hosts: bool,
    world: World,
    mtu: u16,
    real: Vec<(HostId, Option<Vec<String>>, RealTcp)>,
    devices: Vec<(HostId, PortDevice)>,
    proxies: Vec<(HostId, String)>,
    name_servers: Vec<HostId>,
    exit: Option<HostId>,
    loopback: Option<(HostId, Vec<u16>)>,
    environments: Environments,
    /// Processors of slow hosts.
    processors: BTreeMap<HostId, Arc<Mutex<Processor>>>,
}

impl Builder {
    /// An empty world whose random numbers follow from `seed`.
    pub fn new(seed: u64) -> Self {
        let (real, devices, proxies) = (Vec::new(), Vec::new(), Vec::new());
        Builder {
            seed,
            captured: false,
            has_real_hosts: false,
            world: World::default(),
            mtu: MTU,
            real,
            devices,
            proxies,
            name_servers: Vec::new(),
            exit: None,
            loopback: None,
            environments: Environments::new(),
            processors: BTreeMap::new(),
        }
    }

    /// Says that the run makes a capture. Before hosts get their protocols.
    pub fn captured(&mut self, captured: bool) {
        self.captured = captured;
    }

    /// Says that some hosts are to be real ones. Before the others get their protocols.
    pub fn with_real_hosts(&mut self, has_real_hosts: bool) {
        self.has_real_hosts = has_real_hosts;
    }

    /// Adds a host.
    pub fn host(&mut self, name: &str) -> HostId {
        let index = self.world.hosts.len() as u32;
        self.world.hosts.push(Host::new(name.to_owned(), index));
        self.world.routes.attached.push(Vec::new());
        self.world.routes.forwards.push(false);
        self.world.routes.given.push(Vec::new());
        HostId(index)
    }

    /// Says whether datagrams of others may pass through the host. Without a word a host with two or more links
    /// lets them.
    pub fn forwards(&mut self, host: HostId, yes: bool) {
        self.world.routes.forwards[host.0 as usize] = yes;
    }

    /// Largest IP datagram of the links added from now on, and of the interfaces at their ends; [`MTU`] until then.
    pub fn mtu(&mut self, octets: u16) {
        self.mtu = octets;
    }

    /// Gives a host a route that wins over shortest paths. Hosts on its own links it reaches straight all the same,
    /// unless the prefix of the route is as long as that of the link's network, or longer.
    pub fn route(&mut self, host: HostId, network: IpAddr, bits: u8, link: LinkId, via: HostId) {
        self.world.routes.given[host.0 as usize].push(Route { network, bits, link: link.0, via: via.0 });
    }

    /// The radio environments that links added from now on may name.
    pub fn environments(&mut self, environments: Environments) {
        self.environments = environments;
    }

    /// Makes the processor of a host slow on all links added from now on.
    pub fn work(&mut self, host: HostId, work: Work) {
        let name = &self.world.hosts[host.0 as usize].name;
        self.processors.insert(host, Arc::new(Mutex::new(Processor::new(work, self.seed, name))));
    }

    /// What a bearer called `name` with so many stations is built from.
    pub fn parts<'a>(&'a mut self, name: &'a str, stations: usize) -> Parts<'a> {
        let (environments, mtu) = (&self.environments, self.mtu);
        Parts { environments, mtu, ..Parts::new(self.seed, name, stations as u16, &mut self.world.records) }
    }

    /// Adds a link with the bearer `kind` of the registry, between the hosts `near` (station 0, 1, ..; uplink is
    /// from them) and `far`. Link number n gets 10.n/16.0/24: the far end .1, the stations from .2 on.
    pub fn link(
        &mut self,
        name: &str,
        kind: &str,
        config: &Value,
        near: &[HostId],
        far: HostId,
    ) -> Result<LinkId, BuildError> {
        let fail = |error| BuildError::new(format!("link {name}"), error);
        let entry = airloom_bearers::find(kind)
            .ok_or_else(|| fail(ConfigError::at("bearer", format!("there is no bearer `{kind}`"))))?;
        let mut parts = self.parts(name, near.len());
        let bearer = (entry.build)(config, &mut parts);
        parts.check_points().map_err(fail)?;
        let bearer = bearer.map_err(fail)?;
        let base = 0x0A00_0000 + ((self.world.links.len() as u32) << 8);
        let end = |host, n: usize| End { host, addresses: vec![Ipv4Addr::from(base + n as u32).into()] };
        let stations = near.iter().enumerate().map(|(n, host)| end(*host, n + 2)).collect();
        let link = self.link_with(name, bearer, stations, end(far, 1))?;
        self.networks(link, 24, 128);
        Ok(link)
    }

    /// Says the prefix lengths of a link's networks, of IPv4 and of IPv6: what is not said is a network for each
    /// address.
    pub fn networks(&mut self, link: LinkId, bits: u8, bits6: u8) {
        self.world.routes.networks[link.0 as usize] = [bits, bits6];
    }

    /// Adds a link with this bearer and these addresses.
    pub fn link_with(
        &mut self,
        name: &str,
        bearer: Box<dyn Bearer>,
        near: Vec<End>,
        far: End,
    ) -> Result<LinkId, BuildError> {
        let link = self.world.links.len() as u32;
        let processor = |end: &End| self.processors.get(&end.host).cloned();
        let (slow, slow_far) = (near.iter().map(processor).collect::<Vec<_>>(), processor(&far));
        let bearer: Box<dyn Bearer> = if slow_far.is_some() || slow.iter().any(Option::is_some) {
            Box::new(Worked::new(bearer, slow, slow_far))
        } else {
            bearer
        };
        let mut ends = Ends::default();
        for end in near {
            let at = self.attach(end, link, name)?;
            ends.near.push(at);
        }
        ends.far = self.attach(far, link, name)?;
        let fail = |error| BuildError::new(format!("link {name}"), error);
        self.parts(name, ends.near.len()).check_points().map_err(fail)?;
        self.world.routes.ends.push(ends);
        self.world.routes.networks.push([32, 128]);
        let tells = bearer.tells_events();
        let only_by_deadline = bearer.delivers_by_deadline() && !tells;
        self.world.links.push(LinkSlot {
            tells,
            only_by_deadline,
            name: name.to_owned(),
            bearer,
            wakeup: Wakeup::default(),
            forced: None,
            is_out: false,
        });
        Ok(LinkId(link))
    }

    /// Addresses that a translator at the far end of `link` gives to those at its near end: what is sent to them goes there.
    pub(crate) fn translated(&mut self, host: HostId, link: LinkId, addresses: &[IpAddr]) {
        for address in addresses {
            self.world.routes.place(*address, host.0, link.0);
        }
        self.world.routes.translated.extend_from_slice(addresses);
    }

    /// Says how a link treats the super-packets of real hosts, instead of its bearer. A grid of transmission
    /// intervals always needs them cut.
    pub fn grade(&mut self, link: LinkId, grade: Grade) -> Result<(), BuildError> {
        let slot = &mut self.world.links[link.0 as usize];
        if (slot.bearer.grade() == Grade::Radio) != (grade == Grade::Radio) {
            let message = format!("this bearer's grade is {}", slot.bearer.grade().name());
            let error = ConfigError::at("grade", message);
            return Err(BuildError::new(format!("links.{}", slot.name), error));
        }
        slot.forced = Some(grade);
        Ok(())
    }

    fn attach(&mut self, end: End, link: u32, name: &str) -> Result<(u32, u16), BuildError> {
        let End { host: HostId(host), addresses } = end;
        for address in &addresses {
            if !self.world.routes.place(*address, host, link) {
                let error = ConfigError { path: Vec::new(), message: format!("{address} is taken already") };
                return Err(BuildError::new(format!("link {name}"), error));
            }
        }
        let here = &mut self.world.hosts[host as usize];
        let point = self.world.records.add_point(format!("{}.{name}.ip", here.name), PointKind::Ip);
        here.net.own(&addresses);
        here.net.interfaces.push(Interface { addresses, mtu: self.mtu, point, protocol: None });
        self.world.routes.attached[host as usize].push(link);
        let interfaces = self.world.routes.attached[host as usize].len();
        if interfaces == 2 {
            self.world.routes.forwards[host as usize] = true;
        }
        Ok((host, interfaces as u16 - 1))
    }

    /// Gives a host a protocol of the registry; applications connect by the first one given, and accept by all. No two may have the
    /// same number in the IP header.
    pub fn transport(&mut self, host: HostId, kind: &str, config: &Value) -> Result<(), BuildError> {
        let name = self.world.hosts[host.0 as usize].name.clone();
        let protocol = self.made(host, kind, config, &name)?;
        self.protocol(host, protocol);
        Ok(())
    }

    /// Gives a host a protocol of the registry for its connections over one of its links: those it opens there, and those
    /// it accepts there if the number in the IP header is this protocol's.
    pub fn transport_on(
        &mut self,
        host: HostId,
        link: LinkId,
        kind: &str,
        config: &Value,
    ) -> Result<(), BuildError> {
        let link_name = &self.world.links[link.0 as usize].name;
        let Some(at) = self.world.routes.attached[host.0 as usize].iter().position(|l| *l == link.0) else {
            let message = format!("it is not on link `{link_name}`");
            return Err(self.fail(host, ConfigError::at("interfaces", message)));
        };
        let name = format!("{}.{link_name}", self.world.hosts[host.0 as usize].name);
        let protocol = self.made(host, kind, config, &name)?;
        let here = &mut self.world.hosts[host.0 as usize];
        let index = here.net.protocols.len();
        // Connections name their protocol by an octet.
        let Ok(number) = u8::try_from(index) else {
            let message = format!(
                "a host has at most {} transports, those of its links included",
                u8::MAX as usize + 1
            );
            return Err(self.fail(host, ConfigError::at("interfaces", message)));
        };
        here.add_protocol(protocol);
        here.net.of_links.push(index);
        here.net.interfaces[at].protocol = Some(number);
        Ok(())
    }

    /// A protocol of the registry; its random numbers are called after `name`.
    fn made(
        &self,
        host: HostId,
        kind: &str,
        config: &Value,
        name: &str,
    ) -> Result<Box<dyn Protocol>, BuildError> {
        let entry = airloom_transports::find(kind).ok_or_else(|| {
            self.fail(host, ConfigError::at("transport", format!("there is no transport `{kind}`")))
        })?;
        let (seed, captured) = (self.seed, self.captured);
        let parts = ProtocolParts { seed, host: name, captured, has_real_hosts: self.has_real_hosts };
        (entry.build)(config, &parts).map_err(|error| self.fail(host, error))
    }

    /// Gives a host this protocol.
    pub fn protocol(&mut self, host: HostId, protocol: Box<dyn Protocol>) {
        self.world.hosts[host.0 as usize].add_protocol(protocol);
    }

    /// Says that a host has this proxy: applications that look for one find it.
    pub fn has_proxy(&mut self, host: HostId, kind: &str) {
        self.proxies.push((host, kind.to_owned()));
    }

    /// Runs an application of the registry on a host. It may name other hosts; `far_end` is whom it talks to if it
    /// names none. Links must be there already: names become addresses here.
    pub fn app(
        &mut self,
        host: HostId,
        kind: &str,
        config: &Value,
        far_end: Option<&str>,
    ) -> Result<(), BuildError> {
        let entry = airloom_apps::find(kind)
            .ok_or_else(|| self.fail(host, ConfigError::at("app", format!("there is no app `{kind}`"))))?;
        if kind == NAME_SERVER {
            self.name_servers.push(host);
        }
        self.furnish(host, entry.build, config, far_end)
    }

    /// Runs a proxy of the registry on a host, which is an application as far as the host is concerned.
    pub fn proxy(
        &mut self,
        host: HostId,
        kind: &str,
        config: &Value,
        far_end: Option<&str>,
    ) -> Result<(), BuildError> {
        let entry = airloom_proxies::find(kind).ok_or_else(|| {
            self.fail(host, ConfigError::at("proxy", format!("there is no proxy `{kind}`")))
        })?;
        self.furnish(host, entry.build, config, far_end)
    }

    fn fail(&self, host: HostId, error: ConfigError) -> BuildError {
        BuildError::new(format!("host {}", self.world.hosts[host.0 as usize].name), error)
    }

    fn furnish(
        &mut self,
        host: HostId,
        build: airloom_apps::Build,
        config: &Value,
        far_end: Option<&str>,
    ) -> Result<(), BuildError> {
        let name = self.world.hosts[host.0 as usize].name.clone();
        let resolve = |wanted: &str| self.address_of(host, wanted);
        // The random numbers of a second application are not those of the first.
        let seed = match self.world.hosts[host.0 as usize].apps.len() {
            0 => self.seed,
            n => derive(self.seed, &format!("app {n}")),
        };
        let hosts = || {
            let names = self.world.hosts.iter().map(|h| h.name.clone());
            names.filter_map(|name| self.address_of(host, &name).map(|address| (name, address))).collect()
        };
        let with_proxy = |wanted: &str| {
            let found = self.proxies.iter().find(|(_, kind)| kind == wanted)?;
            Some(self.world.hosts[found.0.0 as usize].name.clone())
        };
        let all = || self.names_for(host).iter().map(|(address, name)| (name.clone(), *address)).collect();
        let (resolve, hosts, addresses, proxy) = (&resolve, &hosts, &all, &with_proxy);
        let spoken = &self.world.hosts[host.0 as usize].net.protocols;
        let transports: Vec<&'static str> = spoken.iter().map(|protocol| protocol.name()).collect();
        let transports = transports.as_slice();
        let parts = AppParts { seed, host: &name, resolve, hosts, addresses, far_end, proxy, transports };
        let app = build(config, &parts).map_err(|error| self.fail(host, error))?;
        if let Some(port) = self.world.hosts[host.0 as usize].net.port_taken(app.as_ref()) {
            let message = format!("another application of this host listens on port {port} already");
            return Err(self.fail(host, ConfigError::at("port", message)));
        }
        self.app_with(host, app);
        Ok(())
    }

    /// Runs this application on a host.
    pub fn app_with(&mut self, host: HostId, app: Box<dyn App>) {
        self.world.hosts[host.0 as usize].add_app(app);
    }

    /// The same, for one that stands between the network and something outside: it is woken by [`World::wake`] too.
    pub fn app_at_the_edge(&mut self, host: HostId, app: Box<dyn App>) {
        let index = self.world.hosts[host.0 as usize].apps.len() as u16;
        self.world.edges.push((host.0, index));
        self.app_with(host, app);
    }

    /// The address of the host called `name` as `from` should use it: on a link they share if there is one,
    /// otherwise the first. An address in text form is its own name.
    pub fn address_of(&self, from: HostId, name: &str) -> Option<IpAddr> {
        if let Ok(address) = name.parse() {
            return Some(address);
        }
        let host = self.world.hosts.iter().position(|h| h.name == name)?;
        self.addresses_from(from, host).first().copied()
    }

    /// Makes a host a port to a real machine: its simulated stack and applications rest.
    pub fn real(&mut self, host: HostId, command: Option<Vec<String>>) {
        self.real_with(host, command, RealTcp::default());
    }

    /// The same, with settings for the host's own TCP.
    pub fn real_with(&mut self, host: HostId, command: Option<Vec<String>>, tcp: RealTcp) {
        self.real.push((host, command, tcp));
    }

    /// Says what a real host has at its ends of links.
    pub fn port_device(&mut self, host: HostId, device: PortDevice) {
        self.devices.push((host, device));
    }

    /// What is no host's address is sent to this host, which is real: the way to the outside world begins there.
    pub fn exit(&mut self, host: HostId) {
        self.exit = Some(host);
    }

    /// These TCP ports of a real host lead to the same ports of this machine's loopback. To the others it is
    /// `host.airloom` besides its own name.
    pub fn loopback(&mut self, host: HostId, ports: Vec<u16>) {
        self.loopback = Some((host, ports));
    }

    /// Makes the ports of the real hosts, once all their links are there.
    fn make_ports(&mut self) {
        for (HostId(host), command, tcp) in std::mem::take(&mut self.real) {
            // Who has a name server asks it.
            let asked = |server: &HostId| self.addresses_from(HostId(host), server.0 as usize);
            let name_servers: Vec<IpAddr> = self.name_servers.iter().flat_map(asked).copied().collect();
            let mut names = self.names_for(HostId(host));
            if !name_servers.is_empty() {
                let own = self.world.hosts[host as usize].name.as_str();
                names = names.iter().filter(|(_, name)| name == own || name == MACHINE).cloned().collect();
            }
            let device = self.devices.iter().rev().find(|d| d.0.0 == host).map(|d| d.1).unwrap_or_default();
            let forwards = self.world.routes.forwards[host as usize];
            let here = &mut self.world.hosts[host as usize];
            let links = &self.world.routes.attached[host as usize];
            let mut ports = Vec::new();
            for (interface, (link, facts)) in links.iter().zip(&here.net.interfaces).enumerate() {
                ports.push(self.world.ports.len() as u32);
                self.world.ports.push(PortInfo {
                    host_name: here.name.clone(),
                    link_name: self.world.links[*link as usize].name.clone(),
                    addresses: facts.addresses.clone(),
                    routes: Vec::new(),
                    mtu: facts.mtu,
                    device,
                    forwards,
                    is_exit: self.exit == Some(HostId(host)),
                    loopback: match &self.loopback {
                        Some((door, ports)) if *door == HostId(host) => ports.clone(),
                        _ => Vec::new(),
                    },
                    names: names.clone(),
                    name_servers: name_servers.clone(),
                    tcp: tcp.clone(),
                    command: command.clone(),
                    host,
                    interface: interface as u16,
                });
            }
            here.ports = Some(ports);
        }
    }

    /// The addresses of host `of` as `from` should use them: on a link they share if there is one.
    fn addresses_from(&self, from: HostId, of: usize) -> &[IpAddr] {
        let attached = &self.world.routes.attached;
        let shared = attached[of].iter().position(|l| attached[from.0 as usize].contains(l));
        let facts = self.world.hosts[of].net.interfaces.get(shared.unwrap_or(0));
        facts.map_or(&[], |i| &i.addresses)
    }

    /// Every host's addresses as `from` should use them: one of each family.
    fn names_for(&self, from: HostId) -> Arc<[(IpAddr, String)]> {
        let hosts = self.world.hosts.iter().enumerate();
        hosts
            .flat_map(|(n, host)| {
                let addresses = self.addresses_from(from, n);
                let is_machine = self.loopback.as_ref().is_some_and(|(door, _)| door.0 as usize == n);
                let alias = is_machine.then(|| MACHINE.to_owned());
                let names: Vec<String> = std::iter::once(host.name.clone()).chain(alias).collect();
                names
                    .into_iter()
                    .flat_map(move |name| addresses.iter().map(move |address| (*address, name.clone())))
            })
            .collect()
    }

    /// Plans a change of a link.
    pub fn at(&mut self, at: Duration, link: LinkId, part: &[u16], change: Change) {
        self.world.timeline.push(Planned {
            at: Instant::ZERO + at,
            link: link.0,
            part: part.to_vec(),
            change,
        });
    }

    /// Where the run will put its records: for asking for them.
    pub fn records(&mut self) -> &mut Outbox {
        &mut self.world.records
    }

    /// The world, at rest at time zero.
    pub fn build(mut self) -> Result<World, BuildError> {
        if let Some(HostId(exit)) = self.exit {
            let interfaces = self.world.hosts[exit as usize].net.interfaces.iter();
            let addresses = interfaces.flat_map(|i| i.addresses.iter().map(|a| ip::key(*a))).collect();
            self.world.routes.exit = Some((exit, addresses));
        }
        // The ways out of the laboratory come last: the command of a run is for the others.
        let doors = [self.exit, self.loopback.as_ref().map(|(door, _)| *door)];
        self.real.sort_by_key(|(host, ..)| doors.contains(&Some(*host)));
        for host in &mut self.world.hosts {
            host.net.tell_protocols();
        }
        self.make_ports();
        self.world.find_routes_of_ports();
        self.world.timeline.sort_by_key(|p| p.at);
        Ok(self.world)
    }
}
