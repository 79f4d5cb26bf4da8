//! `[hosts]`: what runs where.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use airloom_base::ConfigError;
use serde_json::{Map, Value};

use super::read::{Fault, component_fault, name, one_or_more};
use super::registries::{Known, Registries, find};
use super::schema::{Component, Host, HostSettings};
use super::tree::{Entry, Kind, Node, quoted};
use crate::port::PortDevice;
use crate::work::Work;

/// Hosts of a scenario; each costs observation points, of which a run has 65,536.
pub(super) const MOST_HOSTS: u64 = 4096;
/// Ports of the machine that lead into a laboratory: each is a socket.
pub(super) const MOST_PORTS: usize = 64;
/// Applications of one host.
const MOST_APPS: usize = 64;

pub(super) const HOST_KEYS: &[&str] = &[
    "app",
    "transport",
    "interfaces",
    "proxy",
    "work",
    "count",
    "real",
    "command",
    "port",
    "outside",
    "loopback",
    "forward",
    "routes",
];

pub(super) const INTERFACE_KEYS: &[&str] = &["transport"];

/// All hosts so far, and how the file calls them.
pub(super) struct Directory<'a> {
    pub(super) hosts: Vec<Host>,
    pub(super) groups: Vec<Group<'a>>,
    by_name: BTreeMap<&'a str, usize>,
}

/// A key of `[hosts]`.
pub(super) struct Group<'a> {
    pub(super) name: &'a str,
    /// The host's table.
    pub(super) node: &'a Node,
    /// Did the file give a `count`?
    pub(super) counted: bool,
    /// Its members.
    pub(super) members: Range<usize>,
    /// Does it pass on datagrams, if the file says?
    pub(super) forward: Option<bool>,
}

/// The key of `[hosts]` in `mobile` or `mobile[2]`.
pub(super) fn group_of(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

/// What a name stands for.
pub(super) enum Named<'d, 'a> {
    /// A host without `count`, or one of a group.
    One(usize),
    /// All members of a group.
    All(&'d Group<'a>),
}

impl<'d, 'a> Named<'d, 'a> {
    /// The host, if it is one alone; else the group.
    pub(super) fn single(self) -> Result<usize, &'d Group<'a>> {
        match self {
            Named::One(host) => Ok(host),
            Named::All(group) if group.members.len() == 1 => Ok(group.members.start),
            Named::All(group) => Err(group),
        }
    }
}

impl<'a> Directory<'a> {
    /// Is there a host (or group) of this name?
    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// What `name`, which stands at `node`, means.
    pub(super) fn find<'n>(&self, node: &'n Node, name: &str) -> Result<Named<'_, 'a>, Fault<'n>> {
        let (group_name, index) = match name.strip_suffix(']').and_then(|n| n.split_once('[')) {
            Some((group, index)) => (group, Some(index)),
            None => (name, None),
        };
        let Some(group) = self.by_name.get(group_name).map(|i| &self.groups[*i]) else {
            return Err(Fault::unknown(node, "host", group_name, self.groups.iter().map(|g| g.name)));
        };
        match index {
            None if group.counted => Ok(Named::All(group)),
            None => Ok(Named::One(group.members.start)),
            Some(_) if !group.counted => Err(Fault::at(
                node,
                format!("{} has a number, but host `{group_name}` has no `count`", quoted(name)),
            )),
            Some(index) => {
                let last = group.members.len() - 1;
                let number = index.parse::<usize>().ok().filter(|i| *i <= last && i.to_string() == index);
                let number = number.ok_or_else(|| {
                    let first = format!("{group_name}[0]");
                    Fault::at(
                        node,
                        format!("there is no host {}; valid: {first} to {group_name}[{last}]", quoted(name)),
                    )
                })?;
                Ok(Named::One(group.members.start + number))
            }
        }
    }
}

/// Reads `[hosts]`.
pub(super) fn read<'a>(node: &'a Node, registries: &Registries) -> Result<Directory<'a>, Fault<'a>> {
    let mut directory = Directory { hosts: Vec::new(), groups: Vec::new(), by_name: BTreeMap::new() };
    for entry in node.any_table("the table of hosts")? {
        name(&entry.value, "host", &entry.key).map_err(|f| Fault { node, key: Some(entry), ..f })?;
        let group = &entry.value;
        group.table("a table (an empty one for a host that only forwards)", HOST_KEYS)?;
        let count = group.get("count").map(|n| n.integer(1, MOST_HOSTS)).transpose()?;
        let first = directory.hosts.len();
        if first as u64 + count.unwrap_or(1) > MOST_HOSTS {
            let at = group.get("count").unwrap_or(group);
            return Err(Fault::at(at, format!("a scenario has at most {MOST_HOSTS} hosts")));
        }
        let members = count.and_then(|c| u32::try_from(c).ok());
        let real = group.get("real").map(|n| real(n, members)).transpose()?.unwrap_or(Real::None);
        let settings = Arc::new(settings(group, registries)?);
        if let Some(node) = group.get("outside").filter(|_| settings.outside) {
            if directory.hosts.iter().any(|h| h.settings.outside) {
                return Err(Fault::at(node, "another host is the way to the outside world already"));
            }
            Fault::when(count.is_some(), node, "one host is the way to the outside world, not a group")?;
        }
        if let Some(node) = group.get("loopback").filter(|_| !settings.loopback.is_empty()) {
            if directory.hosts.iter().any(|h| !h.settings.loopback.is_empty()) {
                return Err(Fault::at(node, "another host leads to this machine already"));
            }
            Fault::when(count.is_some(), node, "one host leads to this machine, not a group")?;
        }
        let host = |index: Option<u32>| Host {
            name: index.map_or_else(|| entry.key.clone(), |i| format!("{}[{i}]", entry.key)),
            group: entry.key.clone(),
            index,
            real: match &real {
                Real::All => true,
                Real::None => false,
                Real::Some(members) => index.is_some_and(|i| members.contains(&i)),
            },
            forwards: false,
            routes: Vec::new(),
            settings: Arc::clone(&settings),
        };
        match members {
            None => directory.hosts.push(host(None)),
            Some(count) => directory.hosts.extend((0..count).map(|i| host(Some(i)))),
        }
        directory.by_name.insert(&entry.key, directory.groups.len());
        directory.groups.push(Group {
            name: &entry.key,
            node: group,
            counted: members.is_some(),
            members: first..directory.hosts.len(),
            forward: group.get("forward").map(Node::boolean).transpose()?,
        });
    }
    Fault::when(directory.hosts.is_empty(), node, "there are no hosts; a scenario has at least two")?;
    Ok(directory)
}

enum Real {
    All,
    None,
    Some(BTreeSet<u32>),
}

fn port(node: &Node) -> Result<PortDevice, Fault<'_>> {
    let name = node.text("a kind of port")?;
    let found = PortDevice::ALL.into_iter().find(|d| d.name() == name);
    found.ok_or_else(|| Fault::unknown(node, "port", name, PortDevice::ALL.iter().map(|d| d.name())))
}

fn real(node: &Node, count: Option<u32>) -> Result<Real, Fault<'_>> {
    if let (Kind::List(list), Some(count)) = (&node.kind, count) {
        let members: Result<BTreeSet<u32>, Fault<'_>> = list
            .iter()
            .map(|n| n.integer(0, u64::from(count) - 1).map(|i| u32::try_from(i).unwrap_or(u32::MAX)))
            .collect();
        return members.map(|m| match m.len() {
            0 => Real::None,
            n if n == count as usize => Real::All,
            _ => Real::Some(m),
        });
    }
    Ok(if node.boolean()? { Real::All } else { Real::None })
}

/// A registry and what its entries are called in errors.
#[derive(Clone, Copy)]
struct Family<'r> {
    what: &'static str,
    known: &'r [Known],
    /// A name that means that there is none.
    none: Option<&'static str>,
}

fn settings<'a>(host: &'a Node, registries: &Registries) -> Result<HostSettings, Fault<'a>> {
    let family = |what, known| Family { what, known, none: None };
    let transports = family("transport", registries.transports.as_slice());
    let proxies = Family { none: Some("none"), ..family("proxy", registries.proxies.as_slice()) };
    let apps = match host.get("app") {
        Some(node) => apps(node, family("application", &registries.apps))?,
        None => Vec::new(),
    };
    let proxy = match host.get("proxy") {
        Some(node) if node.is_text("none") => None,
        Some(node) => Some(one(node, proxies)?),
        None => None,
    };
    let own = match host.get("transport") {
        Some(node) => several(node, transports)?,
        None => vec![short(host, "tcp", transports)?],
    };
    let interfaces = match host.get("interfaces") {
        Some(node) => interfaces(node, transports)?,
        None => Vec::new(),
    };
    let work = host.get("work").map(work).transpose()?;
    let command = host.get("command").map(command).transpose()?;
    let port = host.get("port").map(port).transpose()?.unwrap_or_default();
    let outside = host.get("outside").map(Node::boolean).transpose()?.unwrap_or(false);
    let loopback = host.get("loopback").map(loopback).transpose()?.unwrap_or_default();
    Ok(HostSettings { apps, proxy, transports: own, interfaces, work, command, port, outside, loopback })
}

/// TCP ports, in the order of the file.
fn loopback(node: &Node) -> Result<Vec<u16>, Fault<'_>> {
    let list = one_or_more(node);
    if list.len() > MOST_PORTS {
        return Err(Fault::at(node, format!("a host leads to at most {MOST_PORTS} ports of this machine")));
    }
    let mut ports = Vec::new();
    for item in list {
        let port = item.integer(1, u64::from(u16::MAX))? as u16;
        Fault::when(ports.contains(&port), item, format_args!("port {port} is here twice"))?;
        ports.push(port);
    }
    Ok(ports)
}

/// One component, or a list of some that are not the same.
fn several<'a>(node: &'a Node, family: Family<'_>) -> Result<Vec<Component>, Fault<'a>> {
    let what = family.what;
    let mut found: Vec<Component> = Vec::new();
    for item in one_or_more(node) {
        let component = one(item, family)?;
        if found.iter().any(|other| other.name == component.name) {
            return Err(Fault::at(item, format!("{what} `{}` is here twice", component.name)));
        }
        found.push(component);
    }
    Fault::when(found.is_empty(), node, format_args!("expected one {what} at least, found an empty list"))?;
    Ok(found)
}

/// `{ radio = { transport = .. } }`: whether there are such links is looked at when the links are known.
fn interfaces<'a>(node: &'a Node, transports: Family<'_>) -> Result<Vec<(String, Component)>, Fault<'a>> {
    let mut interfaces = Vec::new();
    for entry in node.any_table("a table of links such as { radio = { transport = \"tcp\" } }")? {
        entry.value.table("what the host has at this link", INTERFACE_KEYS)?;
        interfaces.push((entry.key.clone(), one(entry.value.required("transport")?, transports)?));
    }
    interfaces.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(interfaces)
}

fn apps<'a>(node: &'a Node, family: Family<'_>) -> Result<Vec<Component>, Fault<'a>> {
    const WHAT: &str = "the name of an application, a table `{ name = {..} }`, or a list of these";
    let mut apps = Vec::new();
    for item in one_or_more(node) {
        match &item.kind {
            Kind::String(name) => apps.push(short(item, name, family)?),
            _ => {
                for entry in item.any_table(WHAT)? {
                    apps.push(long(item, entry, family)?);
                }
            }
        }
        if apps.len() > MOST_APPS {
            return Err(Fault::at(item, format!("a host has at most {MOST_APPS} applications")));
        }
    }
    Ok(apps)
}

/// The one component at `node`, in short form `"tcp"` or long form `{ tcp = {..} }`.
fn one<'a>(node: &'a Node, family: Family<'_>) -> Result<Component, Fault<'a>> {
    let what = family.what;
    if let Kind::String(name) = &node.kind {
        return short(node, name, family);
    }
    match node.any_table(&format!("the name of a {what} or a table `{{ name = {{..}} }}`"))? {
        [entry] => long(node, entry, family),
        entries => Err(Fault::at(node, format!("expected one {what}, found {}", entries.len()))),
    }
}

/// A component with nothing but its name: all defaults hold.
fn short<'a>(node: &'a Node, name: &str, family: Family<'_>) -> Result<Component, Fault<'a>> {
    let known = family.find(node, None, name)?;
    understood(known, node, Value::Object(Map::new()), &[])
}

/// A component whose name is a key of `node` and whose table is the key's value.
fn long<'a>(node: &'a Node, entry: &'a Entry, family: Family<'_>) -> Result<Component, Fault<'a>> {
    let known = family.find(node, Some(entry), &entry.key)?;
    entry.value.any_table(&format!("the table of `{}`", known.name))?;
    understood(known, &entry.value, entry.value.to_json(), &[])
}

impl<'r> Family<'r> {
    fn find<'a>(self, node: &'a Node, key: Option<&'a Entry>, name: &str) -> Result<&'r Known, Fault<'a>> {
        find(self.known, name).ok_or_else(|| {
            let names = self.known.iter().map(|k| k.name).chain(self.none);
            Fault { key, ..Fault::unknown(node, self.what, name, names) }
        })
    }
}

/// The component with its table as the registry understands it. `other_keys` of the table at `node` are not its own.
pub(super) fn understood<'a>(
    known: &Known,
    node: &'a Node,
    mut given: Value,
    other_keys: &[&'static str],
) -> Result<Component, Fault<'a>> {
    let config = (known.understood)(&given).map_err(|e| component_fault(node, &e, other_keys))?;
    if let Value::Object(given) = &mut given {
        for (key, value) in given {
            if let Some(understood) = config.get(key) {
                value.clone_from(understood);
            }
        }
    }
    Ok(Component { name: known.name.to_owned(), given, config })
}

fn work(node: &Node) -> Result<Work, Fault<'_>> {
    node.any_table("a table such as { send = \"20ms\" }")?;
    let read = airloom_base::config::read(&node.to_json()).and_then(|work: Work| work.check().map(|()| work));
    read.map_err(|error| {
        let path = error.path.iter().filter(|key| *key != "work").cloned().collect();
        component_fault(node, &ConfigError { path, message: error.message }, &[])
    })
}

fn command(node: &Node) -> Result<Vec<String>, Fault<'_>> {
    const WHAT: &str = "a program and its arguments, a list of texts such as [\"curl\", \"http://origin/\"]";
    let list = node.list(WHAT)?;
    let words = list.iter().map(|n| n.text("a text").map(str::to_owned)).collect::<Result<Vec<_>, _>>()?;
    if words.first().is_none_or(String::is_empty) {
        return Err(Fault::at(node, format!("expected {WHAT}, found no program")));
    }
    match words.iter().position(|w| w.contains('\0')) {
        Some(at) => Err(Fault::at(&list[at], "an argument cannot contain the character NUL")),
        None => Ok(words),
    }
}
