//! What only building can tell, said with the line of the file all the same.

use airloom_base::Change;

use super::document::Document;
use super::errors::ScenarioError;
use super::hosts::group_of;
use super::read::{one_or_more, unknown};
use super::registries::Registries;
use super::schema::{Scenario, TimelineEntry, matches};
use super::tree::{Kind, Node};
use crate::builder::{BuildError, Part};
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
        let BuildError { component, part, error } = fault;
        let (family, name) = component.split_once(['.', ' ']).unwrap_or((component, ""));
        let family = if family.starts_with("link") { "links" } else { "hosts" };
        let name = if family == "hosts" { group_of(name) } else { name };
        let mut path = vec![family.to_owned(), name.to_owned()];
        match self.root().get(family).and_then(|hosts| hosts.get(name)).zip(part.as_ref()) {
            Some((host, part)) => path.extend(inside_host(host, part, &error.path)),
            None => path.extend(error.path.iter().cloned()),
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

/// The way from a host's table to the value that `path`, which begins in the table of this component, means.
fn inside_host(host: &Node, part: &Part, path: &[String]) -> Vec<String> {
    let (mut way, number) = match part {
        Part::App(number) => (vec!["app"], *number),
        Part::Proxy => (vec!["proxy"], 0),
        Part::Transport(number) => (vec!["transport"], *number),
        Part::Interface(link) => (vec!["interfaces", link, "transport"], 0),
    };
    let node = way.iter().try_fold(host, |node, key| node.step(key));
    let place = node.map(|node| place_of(node, number)).unwrap_or_default();
    way.extend(place.iter().map(String::as_str));
    let component = way.iter().try_fold(host, |node, key| node.step(key));
    // An application may have to say something about its host.
    let is_of_host = path.first().is_some_and(|key| {
        let is_written = |node: Option<&Node>| node.is_some_and(|node| node.get(key).is_some());
        ["transport", "proxy", "interfaces"].contains(&key.as_str())
            && is_written(Some(host))
            && !is_written(component)
    });
    let before = if is_of_host { &[] } else { way.as_slice() };
    before.iter().map(|key| (*key).to_owned()).chain(path.iter().cloned()).collect()
}

/// The way from the value of `app` or the like to the table of the component of this number: a name, a table with a key
/// for each component, or a list of these.
fn place_of(node: &Node, number: usize) -> Vec<String> {
    let is_list = matches!(node.kind, Kind::List(_));
    let items = one_or_more(node).iter().enumerate().flat_map(|(n, item)| {
        let place = is_list.then(|| n.to_string());
        let names =
            item.entries().map_or(vec![None], |all| all.iter().map(|e| Some(e.key.clone())).collect());
        names.into_iter().map(move |name| place.clone().into_iter().chain(name).collect())
    });
    items.into_iter().nth(number).unwrap_or_default()
}
