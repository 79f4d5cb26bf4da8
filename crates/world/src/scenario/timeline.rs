//! `[[timeline]]`: what changes while the scenario runs.

use std::collections::BTreeMap;

use airloom_base::units::{Probability, QueueLimit, Rate};
use airloom_base::{Change, Direction, Duration, LinkState};

use super::links::by_name;
use super::read::Fault;
use super::schema::{Link, TimelineEntry};
use super::tree::{Kind, Node, quoted};

/// Entries of a timeline.
pub(super) const MOST_ENTRIES: usize = 100_000;
/// Members inside members.
const DEEPEST_PART: usize = 4;

pub(super) const TIMELINE_KEYS: &[&str] = &["at", "target", "set"];
pub(super) const CHANGE_KEYS: &[&str] = &["state", "rate", "delay", "loss", "queue", "faults"];

/// Reads the timeline.
pub(super) fn read<'a>(node: &'a Node, links: &[Link]) -> Result<Vec<TimelineEntry>, Fault<'a>> {
    let list = node.list("the entries of the timeline, each under `[[timeline]]`")?;
    if list.len() > MOST_ENTRIES {
        return Err(Fault::at(node, format!("a timeline has at most {MOST_ENTRIES} entries")));
    }
    let names = by_name(links);
    list.iter()
        .map(|entry| {
            entry.table("an entry of the timeline with `at`, `target` and `set`", TIMELINE_KEYS)?;
            let at: Duration = entry.required("at")?.quantity("a time since the start, such as \"5s\"")?;
            change(at, entry, &names)
        })
        .collect()
}

/// What changes at `at`: the `target` and `set` of an entry.
pub(super) fn change<'a>(
    at: Duration,
    entry: &'a Node,
    names: &BTreeMap<&str, usize>,
) -> Result<TimelineEntry, Fault<'a>> {
    let target = entry.required("target")?;
    let text = target.text("the name of a link, such as \"radio\" or \"bundle.member.3\"")?;
    let (name, part) = text.split_once('.').map_or((text, None), |(name, part)| (name, Some(part)));
    let link = *names.get(name).ok_or_else(|| Fault::unknown(target, "link", name, names.keys().copied()))?;
    let part = match part {
        None => Vec::new(),
        Some(part) => members(part).ok_or_else(|| {
            let message =
                format!("{} is not a part of a link; a member is written \"{name}.member.3\"", quoted(text));
            Fault::at(target, message)
        })?,
    };
    Ok(TimelineEntry { at, link, part, changes: changes(entry.required("set")?)? })
}

/// `member.3`, and `member.3.member.0` for members of members.
fn members(text: &str) -> Option<Vec<u16>> {
    let words: Vec<&str> = text.split('.').collect();
    if !words.len().is_multiple_of(2) || words.len() / 2 > DEEPEST_PART {
        return None;
    }
    words
        .chunks(2)
        .map(|pair| match pair {
            ["member", n] if n.bytes().all(|b| b.is_ascii_digit()) => n.parse().ok(),
            _ => None,
        })
        .collect()
}

fn changes(node: &Node) -> Result<Vec<Change>, Fault<'_>> {
    let entries = node.table("the changes, such as { state = \"down\" }", CHANGE_KEYS)?;
    if entries.is_empty() {
        let choices = CHANGE_KEYS.iter().map(|k| (*k).to_owned()).collect();
        return Err(Fault { choices, ..Fault::at(node, "nothing is changed") });
    }
    let mut changes = Vec::new();
    for entry in entries {
        let value = &entry.value;
        match entry.key.as_str() {
            "state" => {
                changes.push(Change::State(state(value)?));
                continue;
            }
            "faults" => {
                faults(value, &mut changes)?;
                continue;
            }
            _ => {}
        }
        for (direction, value) in directions(value)? {
            changes.push(match entry.key.as_str() {
                "rate" => Change::Rate(direction, value.quantity::<Rate>("a rate such as \"384kbit/s\"")?),
                "delay" => Change::Delay(direction, value.quantity("a time such as \"20ms\"")?),
                "loss" => Change::Loss(direction, probability(value)?),
                _ => Change::Queue(
                    direction,
                    value.quantity::<QueueLimit>("a queue limit such as \"100 packets\" or \"64kB\"")?,
                ),
            });
        }
    }
    Ok(changes)
}

fn state(node: &Node) -> Result<LinkState, Fault<'_>> {
    match node.text("\"up\" or \"down\"")? {
        "up" => Ok(LinkState::Up),
        "down" => Ok(LinkState::Down),
        other => Err(Fault::unknown(node, "state", other, ["up", "down"])),
    }
}

/// Which faults are switched.
fn faults<'a>(node: &'a Node, changes: &mut Vec<Change>) -> Result<(), Fault<'a>> {
    let names: Vec<_> = airloom_base::Fault::ALL.iter().map(|fault| fault.name()).collect();
    let entries = node.table("the faults that are switched, such as { corrupt = \"off\" }", &names)?;
    if entries.is_empty() {
        return Err(Fault {
            choices: names.into_iter().map(str::to_owned).collect(),
            ..Fault::at(node, "nothing is switched")
        });
    }
    for (fault, entry) in airloom_base::Fault::ALL.iter().filter_map(|fault| {
        entries.iter().find(|entry| entry.key == fault.name()).map(|entry| (*fault, entry))
    }) {
        let on = match entry.value.text("\"on\" or \"off\"")? {
            "on" => true,
            "off" => false,
            other => return Err(Fault::unknown(&entry.value, "position", other, ["on", "off"])),
        };
        changes.push(Change::Fault(fault, on));
    }
    Ok(())
}

/// One value for both directions, or one or two under the directions' names.
fn directions(node: &Node) -> Result<Vec<(Option<Direction>, &Node)>, Fault<'_>> {
    if node.entries().is_none() {
        return Ok(vec![(None, node)]);
    }
    let entries = node.table("a table", &["uplink", "downlink"])?;
    Fault::when(entries.is_empty(), node, "neither `uplink` nor `downlink` is given")?;
    Ok(entries
        .iter()
        .map(|e| {
            let direction = if e.key == "uplink" { Direction::Uplink } else { Direction::Downlink };
            (Some(direction), &e.value)
        })
        .collect())
}

fn probability(node: &Node) -> Result<f64, Fault<'_>> {
    let number = match node.kind {
        Kind::Float(x) => x,
        Kind::Integer(n) => n as f64,
        _ => {
            return node
                .quantity::<Probability>("a probability such as 0.05 or \"5%\"")
                .map(Probability::get);
        }
    };
    Probability::new(number)
        .map(Probability::get)
        .ok_or_else(|| Fault::at(node, format!("{number} is not a probability between 0 and 1")))
}
