//! `[links]` and `path`: what joins the hosts.

use std::collections::{BTreeMap, BTreeSet};

use airloom_base::{ConfigError, Grade, MTU};
use airloom_bearers::faults::Faults;

use super::addresses::{self, Joined, Wanted};
use super::hosts::{Directory, Named, understood};
use super::read::{Fault, component_fault, name};
use super::registries::{Registries, find};
use super::schema::{Component, Link};
use super::short_form::{self, Ends};
use super::tree::{Entry, Node, entries_to_json};

/// Links of a scenario.
const MOST_LINKS: usize = 4096;
/// Stations of all links together. A run has 65,536 observation points: a station has one where it meets its host and
/// up to eight inside a bearer, a far end has one.
const MOST_STATIONS: usize = 6000;

/// What every link of IPv4 carries (RFC 791, 3.2).
pub(super) const LEAST_MTU: u16 = 68;

/// Keys of a link's table that are not its bearer's.
pub(super) const LINK_KEYS: &[&str] =
    &["bearer", "between", "mtu", "subnet", "subnet6", "addresses", "grade", "faults"];

/// Reads `[links]`, and `path` if there is one.
pub(super) fn read<'a>(
    root: &'a Node,
    directory: &Directory<'a>,
    registries: &Registries,
) -> Result<Vec<Link>, Fault<'a>> {
    let node =
        root.get("links").ok_or_else(|| Fault::at(root, "`[links]` is missing: what joins the hosts"))?;
    let entries = node.any_table("the table of links")?;
    Fault::when(entries.is_empty(), node, "there are no links; a scenario has at least one")?;
    Fault::when(entries.len() > MOST_LINKS, node, format_args!("a scenario has at most {MOST_LINKS} links"))?;
    for entry in entries {
        let at_key = |f| Fault { node, key: Some(entry), ..f };
        name(node, "link", &entry.key).map_err(at_key)?;
        if directory.has(&entry.key) {
            return Err(at_key(Fault::at(
                node,
                format!("`{}` is the name of a host and of a link", entry.key),
            )));
        }
    }
    // In order of the path, or of the file.
    let ordered: Vec<(&'a Entry, Ends<'a>)> = match root.get("path") {
        Some(path) => short_form::read(path, node, directory)?,
        None => entries.iter().map(|e| Ok((e, Ends::Between(between_of(e)?)))).collect::<Result<_, _>>()?,
    };
    let mut stations = 0;
    let mut wanted: Vec<Wanted<'a>> = Vec::new();
    let mut bearers = Vec::new();
    for (entry, ends) in &ordered {
        let joined = match ends {
            Ends::Between(list) => between(list, directory)?,
            Ends::Chain { near, link, far } => orient(link, directory, (near, far))?,
        };
        stations += joined.near.len();
        if stations > MOST_STATIONS {
            let message = format!("all links together have at most {MOST_STATIONS} stations");
            return Err(Fault { key: Some(entry), ..Fault::at(&entry.value, message) });
        }
        let of_its_own = (mtu(&entry.value)?, grade(&entry.value)?, faults(&entry.value)?);
        bearers.push((bearer(&entry.value, registries)?, of_its_own));
        wanted.push(Wanted { node: &entry.value, joined });
    }
    let networks = addresses::assign(&wanted, directory)?;
    Ok(ordered
        .iter()
        .zip(bearers)
        .zip(networks)
        .map(|(((entry, _), (bearer, (mtu, grade, faults))), n)| Link {
            name: entry.key.clone(),
            bearer,
            mtu,
            grade,
            faults,
            near: n.near,
            far: n.far,
            subnet: n.subnet,
            subnet6: n.subnet6,
        })
        .collect())
}

fn between_of(entry: &Entry) -> Result<&Node, Fault<'_>> {
    entry.value.get("between").ok_or_else(|| {
        let example = "between = [\"mobile\", \"gateway\"]";
        Fault::at(
            &entry.value,
            format!("the link joins no hosts: give it `{example}`, or the scenario a `path`"),
        )
    })
}

/// The bearer of a link: a name, or a table with the bearer's settings beside the link's own keys.
fn bearer<'a>(link: &'a Node, registries: &Registries) -> Result<Component, Fault<'a>> {
    let name_at = match &link.kind {
        super::tree::Kind::String(_) => link,
        _ => {
            link.any_table("a bearer's name, or a table with `bearer` and its settings")?;
            link.get("bearer").ok_or_else(|| {
                let names = registries.bearers.iter().map(|k| k.name.to_owned()).collect();
                Fault { choices: names, ..Fault::at(link, "`bearer` is missing") }
            })?
        }
    };
    let name = name_at.text("the name of a bearer")?;
    let known = find(&registries.bearers, name)
        .ok_or_else(|| Fault::unknown(name_at, "bearer", name, registries.bearers.iter().map(|k| k.name)))?;
    let own = link.entries().unwrap_or(&[]).iter().filter(|e| !LINK_KEYS.contains(&e.key.as_str()));
    understood(known, link, entries_to_json(own), LINK_KEYS)
}

/// The largest IP datagram of the link.
fn mtu(link: &Node) -> Result<u16, Fault<'_>> {
    let Some(node) = link.get("mtu") else { return Ok(MTU) };
    Ok(node.integer(LEAST_MTU.into(), u16::MAX.into())? as u16)
}

/// How the link treats super-packets, if the file says so.
fn grade(link: &Node) -> Result<Option<Grade>, Fault<'_>> {
    let Some(node) = link.get("grade") else { return Ok(None) };
    match node.text("a grade")? {
        "auto" => Ok(None),
        "transparent" => Ok(Some(Grade::Transparent)),
        "packet" => Ok(Some(Grade::Packet)),
        other => Err(Fault::unknown(node, "grade", other, ["auto", "transparent", "packet"])),
    }
}

/// What goes wrong on the link.
fn faults(link: &Node) -> Result<Option<Faults>, Fault<'_>> {
    let Some(node) = link.get("faults") else { return Ok(None) };
    node.any_table("a table such as { drop = { rate = \"1%\" } }")?;
    let read = airloom_base::config::read(&node.to_json());
    let checked = read.and_then(|faults: Faults| faults.check().map(|()| faults));
    checked.map(Some).map_err(|error: ConfigError| component_fault(node, &error, &[]))
}

/// The hosts that a `between` names.
fn between<'a>(node: &'a Node, directory: &Directory<'a>) -> Result<Joined, Fault<'a>> {
    const WHAT: &str = "a list of at least two hosts: the stations, and last the far end";
    let list = node.list(WHAT)?;
    match list {
        [] | [_] => Err(Fault::at(node, format!("expected {WHAT}, found {} in it", list.len()))),
        [a, b] => orient(node, directory, (a, b)),
        [stations @ .., far] => {
            let mut near = Vec::new();
            for station in stations {
                match directory.find(station, station.text("the name of a host")?)? {
                    Named::One(host) => near.push(host),
                    Named::All(group) => near.extend(group.members.clone()),
                }
            }
            let far = single(far, directory)?;
            checked(node, directory, Joined { near, far })
        }
    }
}

/// A link between two names. A group is always the mobile side: its members are the stations. Of two groups of one
/// member the last named is the far end, as of two hosts.
fn orient<'a>(
    node: &'a Node,
    directory: &Directory<'a>,
    (a, b): (&'a Node, &'a Node),
) -> Result<Joined, Fault<'a>> {
    let find = |n: &'a Node| directory.find(n, n.text("the name of a host")?);
    let joined = match (find(a)?, find(b)?) {
        (Named::One(near), Named::One(far)) => Joined { near: vec![near], far },
        (Named::All(group), Named::One(far)) | (Named::One(far), Named::All(group)) => {
            Joined { near: group.members.clone().collect(), far }
        }
        (Named::All(many), Named::All(one)) if one.members.len() == 1 => {
            Joined { near: many.members.clone().collect(), far: one.members.start }
        }
        (Named::All(one), Named::All(many)) if one.members.len() == 1 => {
            Joined { near: many.members.clone().collect(), far: one.members.start }
        }
        (Named::All(a), Named::All(b)) => {
            let message = format!(
                "`{}` and `{}` are both groups; a link has many stations on one side and one host on the other",
                a.name, b.name
            );
            return Err(Fault::at(node, message));
        }
    };
    checked(node, directory, joined)
}

fn single<'a>(node: &'a Node, directory: &Directory<'a>) -> Result<usize, Fault<'a>> {
    directory.find(node, node.text("the name of a host")?)?.single().map_err(|group| {
        let name = group.name;
        let message = format!(
            "the far end of a link is one host, but `{name}` is a group; say which, such as `{name}[0]`"
        );
        Fault::at(node, message)
    })
}

fn checked<'a>(node: &'a Node, directory: &Directory<'a>, joined: Joined) -> Result<Joined, Fault<'a>> {
    let mut seen = BTreeSet::from([joined.far]);
    match joined.near.iter().find(|h| !seen.insert(**h)) {
        Some(twice) => {
            let name = &directory.hosts[*twice].name;
            Err(Fault::at(node, format!("host `{name}` is named twice; a link joins different hosts")))
        }
        None => Ok(joined),
    }
}

/// Links by name.
pub(super) fn by_name(links: &[Link]) -> BTreeMap<&str, usize> {
    links.iter().enumerate().map(|(i, l)| (l.name.as_str(), i)).collect()
}
