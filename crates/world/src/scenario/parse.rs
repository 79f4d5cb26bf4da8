//! From the tree to the scenario: the parts in the order in which they need each other.

use airloom_base::Environments;

use super::read::Fault;
use super::registries::Registries;
use super::schema::Scenario;
use super::tree::Node;
use super::{environments, hosts, links, routes, run, timeline};

pub(super) const KEYS: &[&str] = &["title", "path", "hosts", "environments", "links", "run", "timeline"];

/// The scenario that the document says.
pub(super) fn scenario<'a>(root: &'a Node, registries: &Registries) -> Result<Scenario, Fault<'a>> {
    if root.entries().is_some_and(<[_]>::is_empty) {
        return Err(Fault::at(root, "the file is empty; a scenario has at least `[hosts]` and `[links]`"));
    }
    root.table("a scenario", KEYS)?;
    let title = match root.get("title") {
        Some(node) => title(node)?,
        None => String::new(),
    };
    let directory = hosts::read(
        root.get("hosts").ok_or_else(|| Fault::at(root, "`[hosts]` is missing: who takes part"))?,
        registries,
    )?;
    let environments = match root.get("environments") {
        Some(node) => environments::read(node)?,
        None => Environments::new(),
    };
    let links = links::read(root, &directory, registries)?;
    let hosts = routes::finish(directory, &links)?;
    let timeline = match root.get("timeline") {
        Some(node) => timeline::read(node, &links)?,
        None => Vec::new(),
    };
    let run = run::read(root.get("run"))?;
    Ok(Scenario { title, hosts, environments, links, timeline, run })
}

fn title(node: &Node) -> Result<String, Fault<'_>> {
    const LONGEST: usize = 200;
    let title = node.text("the title, a text of one line")?;
    if title.chars().count() > LONGEST || title.chars().any(char::is_control) {
        return Err(Fault::at(node, format!("a title is one line of at most {LONGEST} characters")));
    }
    Ok(title.to_owned())
}
