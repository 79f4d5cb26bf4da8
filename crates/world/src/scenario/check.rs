//! What only building can tell, said with the line of the file all the same.

use airloom_base::Change;

use super::document::Document;
use super::errors::ScenarioError;
use super::hosts::group_of;
use super::read::unknown;
use super::registries::Registries;
use super::schema::{Scenario, TimelineEntry, matches};
use super::tree::Node;
use crate::builder::BuildError;
use crate::world::World;

impl Document {
    /// The scenario, after everything in it was built once: a host that is not there, a wire with three ends, a
    /// change of the timeline that its link does not know and a point that does not exist are found here.
    pub fn check(&mut self) -> Result<Scenario, ScenarioError> {
        let scenario = self.scenario(&Registries::built_in())?;
        let mut world = scenario.build(false).map_err(|e| self.explain(&e))?;
        self.check_timeline(&scenario, &mut world)?;
        self.check_points(&scenario, &mut world)?;
        Ok(scenario)
    }

    /// What was wrong with a component when it was built, at its line.
    pub fn explain(&self, fault: &BuildError) -> ScenarioError {
        let BuildError { component, error } = fault;
        let (family, name) = component.split_once(['.', ' ']).unwrap_or((component, ""));
        let family = if family.starts_with("link") { "links" } else { "hosts" };
        let name = if family == "hosts" { group_of(name) } else { name };
        let mut path = vec![family.to_owned(), name.to_owned()];
        if let Some(host) = self.root().get("hosts").filter(|_| family == "hosts").and_then(|h| h.get(name)) {
            path.extend(inside_host(host, &error.path));
        } else {
            path.extend(error.path.iter().cloned());
        }
        self.error(&path, error.message.clone())
    }

    /// Tries every change on its link, in order of time: what a link can do may depend on what happened before.
    fn check_timeline(&self, scenario: &Scenario, world: &mut World) -> Result<(), ScenarioError> {
        let mut entries: Vec<(usize, &TimelineEntry)> = scenario.timeline.iter().enumerate().collect();
        entries.sort_by_key(|(_, e)| e.at);
        for (index, entry) in entries {
            for change in &entry.changes {
                world.rehearse(entry.link, &entry.part, change).map_err(|unsupported| {
                    let index = index.to_string();
                    self.error(&["timeline", &index, "set", key_of(change)], unsupported.0)
                })?;
            }
        }
        Ok(())
    }

    /// A pattern of points that matches none is a slip.
    fn check_points(&self, scenario: &Scenario, world: &mut World) -> Result<(), ScenarioError> {
        let points = world.records().points();
        let Some(patterns) = &scenario.run.points else { return Ok(()) };
        match patterns.iter().position(|p| !points.iter().any(|i| matches(p, &i.name))) {
            None => Ok(()),
            Some(index) => {
                let names: Vec<&str> = points.iter().map(|i| i.name.as_str()).collect();
                let pattern = patterns[index].as_str();
                let mut error = self.error(&["run", "points", &index.to_string()], String::new());
                (error.message, error.choices) = unknown("observation point", pattern, names);
                Err(error)
            }
        }
    }
}

/// The key under `set` that made this change.
pub(super) fn key_of(change: &Change) -> &'static str {
    match change {
        Change::State(_) => "state",
        Change::Rate(..) => "rate",
        Change::Delay(..) => "delay",
        Change::Loss(..) => "loss",
        Change::Queue(..) => "queue",
        Change::Fault(..) => "faults",
    }
}

/// The way from a host's table to the value that `path`, which begins in the table of one of its components, means:
/// in the first component that has such a value.
fn inside_host(host: &Node, path: &[String]) -> Vec<String> {
    let whole = |head: &[&str]| -> Option<Vec<String>> {
        let mut way: Vec<String> = head.iter().map(|s| (*s).to_owned()).collect();
        way.extend(path.iter().cloned());
        let mut node = Some(host);
        for segment in &way {
            node = node.and_then(|n| n.step(segment));
        }
        node.map(|_| way)
    };
    for family in ["app", "proxy", "transport"] {
        let Some(node) = host.get(family) else { continue };
        let names = |n: &Node| n.entries().unwrap_or(&[]).iter().map(|e| e.key.clone()).collect::<Vec<_>>();
        let found = names(node).iter().find_map(|name| whole(&[family, name])).or_else(|| {
            let items = (0..).map_while(|i: usize| Some((i.to_string(), node.step(&format!("[{i}]"))?)));
            items.into_iter().find_map(|(i, item)| {
                names(item).iter().find_map(|name| whole(&[family, &i, name])).filter(|_| !path.is_empty())
            })
        });
        if let Some(way) = found.filter(|_| !path.is_empty()) {
            return way;
        }
    }
    // Nothing of the kind was written: a default was the trouble, most likely an application's.
    if path.first().is_some_and(|p| p == "transport" || p == "proxy") {
        path.to_vec()
    } else {
        vec!["app".to_owned()]
    }
}
