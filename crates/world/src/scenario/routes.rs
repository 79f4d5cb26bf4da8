//! What the links say about the hosts: is each on one, does it forward, where do its routes lead.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::addresses::prefix;
use super::hosts::{Directory, Group, Named, group_of};
use super::links::by_name;
use super::read::Fault;
use super::schema::{Destination, Host, Link, Prefix, Route};
use super::tree::{Node, quoted};

/// Given routes of all hosts together.
const MOST_ROUTES: usize = 65_536;

pub(super) const ROUTE_KEYS: &[&str] = &["to", "via", "link"];

/// A host on the other side of a link.
#[derive(Clone, Copy)]
struct Neighbour {
    host: usize,
    link: usize,
}

/// The hosts, with what needs the links filled in.
pub(super) fn finish<'a>(directory: Directory<'a>, links: &[Link]) -> Result<Vec<Host>, Fault<'a>> {
    let neighbours = neighbours(directory.hosts.len(), links);
    connected(&directory, &neighbours)?;
    let link_names = by_name(links);
    let mut hosts = directory.hosts.clone();
    let mut count = 0;
    for group in &directory.groups {
        for member in group.members.clone() {
            let host = &mut hosts[member];
            let mut own_links: Vec<usize> = neighbours[member].iter().map(|n| n.link).collect();
            own_links.dedup();
            host.forwards = group.forward.unwrap_or(own_links.len() > 1);
            interfaces(group, host.real, &own_links, &link_names)?;
            host.routes = routes(group, member, &directory, &link_names, &neighbours[member])?;
            count += host.routes.len();
            if count > MOST_ROUTES {
                return Err(Fault::at(group.node, format!("a scenario has at most {MOST_ROUTES} routes")));
            }
        }
    }
    Ok(hosts)
}

/// A host can say something of those links only that it is on; a real one has the one TCP of its kernel.
fn interfaces<'a>(
    group: &Group<'a>,
    is_real: bool,
    own_links: &[usize],
    link_names: &BTreeMap<&str, usize>,
) -> Result<(), Fault<'a>> {
    let Some(node) = group.node.get("interfaces") else { return Ok(()) };
    if is_real {
        let message =
            "a real host has one TCP for all its links, that of its kernel; leave out `interfaces` or `real`";
        return Err(Fault::at(node, message));
    }
    for entry in node.entries().unwrap_or_default() {
        if !link_names.get(entry.key.as_str()).is_some_and(|link| own_links.contains(link)) {
            let own = link_names.iter().filter(|(_, link)| own_links.contains(link)).map(|(name, _)| *name);
            let fault = Fault::unknown(node, "link of this host", &entry.key, own);
            return Err(Fault { key: Some(entry), ..fault });
        }
    }
    Ok(())
}

/// Every host must be on a link, and all of them in one network: two that cannot meet are a link forgotten.
fn connected<'a>(directory: &Directory<'a>, neighbours: &[Vec<Neighbour>]) -> Result<(), Fault<'a>> {
    let mut reached = vec![false; neighbours.len()];
    let mut to_visit = vec![0];
    while let Some(host) = to_visit.pop() {
        if !std::mem::replace(&mut reached[host], true) {
            to_visit.extend(neighbours[host].iter().map(|n| n.host).filter(|n| !reached[*n]));
        }
    }
    for group in &directory.groups {
        for member in group.members.clone() {
            let name = &directory.hosts[member].name;
            if neighbours[member].is_empty() {
                return Err(Fault::at(group.node, format!("host `{name}` is on no link")));
            }
            if !reached[member] {
                let first = &directory.hosts[0].name;
                return Err(Fault::at(group.node, format!("no links lead from `{first}` to `{name}`")));
            }
        }
    }
    Ok(())
}

/// The hosts next to each host, in order of the links: two stations of a link are not neighbours.
fn neighbours(hosts: usize, links: &[Link]) -> Vec<Vec<Neighbour>> {
    let mut next_to = vec![Vec::new(); hosts];
    for (link, l) in links.iter().enumerate() {
        for station in &l.near {
            next_to[station.host].push(Neighbour { host: l.far.host, link });
            next_to[l.far.host].push(Neighbour { host: station.host, link });
        }
    }
    next_to
}

fn routes<'a>(
    group: &Group<'a>,
    member: usize,
    directory: &Directory<'a>,
    link_names: &BTreeMap<&str, usize>,
    neighbours: &[Neighbour],
) -> Result<Vec<Route>, Fault<'a>> {
    let Some(list) = group.node.get("routes") else { return Ok(Vec::new()) };
    let mut routes = Vec::new();
    for node in list.list("a list of routes such as [{ to = \"origin\", via = \"gateway\" }]")? {
        node.table("a route such as { to = \"origin\", via = \"gateway\" }", ROUTE_KEYS)?;
        let via_node = node.required("via")?;
        let via_name = via_node.text("the name of a neighbouring host")?;
        let via = directory.find(via_node, via_name)?.single().map_err(|group| {
            let name = group.name;
            Fault::at(via_node, format!("`{name}` is a group; say which, such as `{name}[0]`"))
        })?;
        let link = match node.get("link") {
            Some(node) => {
                let name = node.text("the name of a link")?;
                let link = link_names
                    .get(name)
                    .ok_or_else(|| Fault::unknown(node, "link", name, link_names.keys().copied()))?;
                Some(*link)
            }
            None => None,
        };
        let Some(first) =
            neighbours.iter().find(|n| n.host == via && link.is_none_or(|l| l == n.link)).map(|n| n.link)
        else {
            let host = &directory.hosts[member].name;
            let message = format!("no link leads from `{host}` straight to {}", quoted(via_name));
            return Err(Fault::at(node.get("link").unwrap_or(via_node), message));
        };
        for to in destinations(node.required("to")?, directory, link_names)? {
            routes.push(Route { to, via, link: first });
        }
        if routes.len() > MOST_ROUTES {
            return Err(Fault::at(node, format!("a scenario has at most {MOST_ROUTES} routes")));
        }
    }
    Ok(routes)
}

/// What `to` means: a host or all members of a group, a link, `default`, a network or an address.
fn destinations<'a>(
    node: &'a Node,
    directory: &Directory<'a>,
    link_names: &BTreeMap<&str, usize>,
) -> Result<Vec<Destination>, Fault<'a>> {
    let text = node.text("a host, a link, a network such as \"10.1.0.0/16\", or \"default\"")?;
    if text == "default" {
        let all = [IpAddr::from([0; 4]), IpAddr::from([0; 16])];
        return Ok(all.into_iter().filter_map(|a| Prefix::new(a, 0)).map(Destination::Prefix).collect());
    }
    if let Some(link) = link_names.get(text) {
        return Ok(vec![Destination::Link(*link)]);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        let length = if address.is_ipv4() { 32 } else { 128 };
        return Ok(Prefix::new(address, length).map(Destination::Prefix).into_iter().collect());
    }
    if text.contains('/') {
        let network = prefix(text).map_err(|message| Fault::at(node, message))?;
        return Ok(vec![Destination::Prefix(network)]);
    }
    if !directory.has(group_of(text)) {
        let names = directory.groups.iter().map(|g| g.name).chain(link_names.keys().copied());
        return Err(Fault::unknown(node, "destination", text, names.chain(["default"])));
    }
    match directory.find(node, text)? {
        Named::One(host) => Ok(vec![Destination::Host(host)]),
        Named::All(group) => Ok(group.members.clone().map(Destination::Host).collect()),
    }
}
