//! The short form: `path = ["mobile", "radio", "gateway", "internet", "origin"]`, a chain.

use std::collections::BTreeSet;

use super::hosts::{Directory, group_of};
use super::read::Fault;
use super::tree::{Entry, Node, quoted};

/// How the file says what a link joins.
pub(super) enum Ends<'a> {
    /// The list of its `between`.
    Between(&'a Node),
    /// Its neighbours in the path.
    Chain { near: &'a Node, link: &'a Node, far: &'a Node },
}

/// The links of the table `links` in order of the path.
pub(super) fn read<'a>(
    path: &'a Node,
    links: &'a Node,
    directory: &Directory<'a>,
) -> Result<Vec<(&'a Entry, Ends<'a>)>, Fault<'a>> {
    const WHAT: &str = "hosts and links in turn, such as [\"mobile\", \"radio\", \"gateway\"]";
    let list = path.list(WHAT)?;
    let entries = links.entries().unwrap_or(&[]);
    let find = |name: &str| entries.iter().find(|e| e.key == name);
    let mut seen = BTreeSet::new();
    for (i, node) in list.iter().enumerate() {
        let name = node.text("the name of a host or link")?;
        // A member of a group, `mobile[0]`, is looked up later.
        let host = directory.has(group_of(name));
        let fault = |message: String| Err(Fault::at(node, message));
        match (i % 2 == 0, host, find(name).is_some()) {
            (true, true, _) | (false, _, true) => {}
            (true, false, true) => {
                return fault(format!("`{name}` is a link, but a host belongs here: a path is {WHAT}"));
            }
            (false, true, false) => {
                return fault(format!("`{name}` is a host, but a link belongs here: a path is {WHAT}"));
            }
            (true, false, false) => {
                return Err(Fault::unknown(node, "host", name, directory.groups.iter().map(|g| g.name)));
            }
            (false, false, false) => {
                return Err(Fault::unknown(node, "link", name, entries.iter().map(|e| e.key.as_str())));
            }
        }
        if !seen.insert(name) {
            return fault(format!(
                "{} is in the path twice; a path is a chain, other graphs give each link a `between`",
                quoted(name)
            ));
        }
    }
    if list.len() < 3 {
        return Err(Fault::at(
            path,
            format!(
                "a path has at least two hosts and the link between them; this one has {} names",
                list.len()
            ),
        ));
    }
    if list.len().is_multiple_of(2) {
        let last = list.last().unwrap_or(path);
        return Err(Fault::at(last, "the path ends with a link; a host belongs behind it"));
    }
    if let Some(entry) = entries.iter().find(|e| !seen.contains(e.key.as_str())) {
        let message = format!("link `{}` is not in the path", entry.key);
        return Err(Fault { key: Some(entry), ..Fault::at(links, message) });
    }
    let mut chain = Vec::with_capacity(list.len() / 2);
    for three in list.windows(3).step_by(2) {
        let [near, link, far] = three else { continue };
        let Some(entry) = find(link.text("the name of a link")?) else { continue };
        if let Some(given) = entry.value.get("between") {
            let message =
                "`between` and the scenario's `path` both say what the link joins; keep one of them";
            return Err(Fault::at(given, message));
        }
        chain.push((entry, Ends::Chain { near, link, far }));
    }
    Ok(chain)
}
