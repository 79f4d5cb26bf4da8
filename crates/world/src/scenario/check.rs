//! What only building can tell, said with the line of the file all the same.

use airloom_base::{Change, ConfigError, Cx, Instant, Outbox, Parts};

use super::document::Document;
use super::errors::ScenarioError;
use super::hosts::group_of;
use super::registries::Registries;
use super::schema::{Scenario, TimelineEntry};
use super::tree::Node;
use crate::builder::BuildError;

impl Document {
    /// The scenario, after everything in it was built once: a host that is not there, a wire with three ends, and a
    /// change of the timeline that its link does not know are found here.
    pub fn check(&mut self) -> Result<Scenario, ScenarioError> {
        let scenario = self.scenario(&Registries::built_in())?;
        scenario.build(false).map_err(|e| self.explain(&e))?;
        self.check_timeline(&scenario)?;
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

    fn check_timeline(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        // In order of time: what a link can do may depend on what happened to it before.
        let mut entries: Vec<(usize, &TimelineEntry)> = scenario.timeline.iter().enumerate().collect();
        entries.sort_by_key(|(_, e)| (e.link, e.at));
        for of_link in entries.chunk_by(|a, b| a.1.link == b.1.link) {
            let link = &scenario.links[of_link[0].1.link];
            let at_link = |error| BuildError { component: format!("links.{}", link.name), error };
            let mut records = Outbox::default();
            let mut parts = Parts {
                seed: scenario.run.seed,
                name: &link.name,
                stations: u16::try_from(link.near.len()).unwrap_or(u16::MAX),
                records: &mut records,
            };
            let entry = airloom_bearers::find(&link.bearer.name).ok_or_else(|| {
                self.explain(&at_link(ConfigError::at("bearer", "there is no such bearer")))
            })?;
            let mut bearer = (entry.build)(&link.bearer.config, &mut parts)
                .map_err(|error| self.explain(&at_link(error)))?;
            for (index, entry) in of_link {
                let mut cx = Cx { now: Instant::ZERO + entry.at, records: &mut records };
                for change in &entry.changes {
                    bearer.apply(&mut cx, &entry.part, change).map_err(|unsupported| {
                        let index = index.to_string();
                        self.error(&["timeline", &index, "set", key_of(change)], unsupported.0)
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// The key under `set` that made this change.
fn key_of(change: &Change) -> &'static str {
    match change {
        Change::State(_) => "state",
        Change::Rate(..) => "rate",
        Change::Delay(..) => "delay",
        Change::Loss(..) => "loss",
        Change::Queue(..) => "queue",
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
