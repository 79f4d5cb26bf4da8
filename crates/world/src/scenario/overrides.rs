//! `--set KEY=VALUE`: changes of the tree before it is understood.

use serde_json::{Map, Value};

use super::links::LINK_KEYS;
use super::read::unknown;
use super::registries::{Registries, find};
use super::renamed::{self, Met};
use super::schema::matches;
use super::tree::{Entry, Kind, Node, Place, entries_to_json, quoted};

/// Keys deeper than this are refused; no scenario is.
const DEEPEST: usize = 32;

/// A change that was made, so that it can be tried as text too.
#[derive(Clone, Debug)]
pub(super) struct Override {
    path: Vec<String>,
    text: String,
    place: Place,
}

/// Why a change cannot be made.
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) choices: Vec<String>,
}

impl From<String> for Refused {
    fn from(message: String) -> Self {
        Refused { message, choices: Vec::new() }
    }
}

/// Sets `key` to `value`: one change, or one for each name that a `*` in the key stands for.
pub(super) fn apply(
    root: &mut Node,
    registries: &Registries,
    key: &str,
    value: &str,
    place: Place,
    met: &mut Met,
) -> Result<Vec<Override>, Refused> {
    let parts = segments(key).unwrap_or_default();
    if parts.is_empty() || parts.len() > DEEPEST {
        return Err(format!("{} is not a key such as links.radio.loss.downlink", quoted(key)).into());
    }
    let paths = expand(root, &parts)?;
    let mut set_one = |mut path: Vec<String>| {
        renamed::path(&mut path, met);
        set(root, registries, path, value, place, met)
    };
    paths.into_iter().map(&mut set_one).collect()
}

/// Sets what `path` leads to.
fn set(
    root: &mut Node,
    registries: &Registries,
    path: Vec<String>,
    value: &str,
    place: Place,
    met: &mut Met,
) -> Result<Override, Refused> {
    let made = Override { path, text: value.to_owned(), place };
    let (last, parents) = made.path.split_last().ok_or_else(|| "no key".to_owned())?;
    let mut node = &mut *root;
    for (depth, segment) in parents.iter().enumerate() {
        open_short_form(node, &made.path, depth, place);
        if node.step(segment).is_none() {
            known_name(node, &made.path[..=depth])?;
            let mut fresh = Node::from_json(&first_value(node, registries, &made.path, depth));
            readdress(&mut fresh, place);
            insert(node, segment, fresh, place)
                .map_err(|what| cannot(&made.path[..depth], &what, segment))?;
        }
        node = node.step_mut(segment).ok_or_else(|| "no such key".to_owned())?;
    }
    open_short_form(node, &made.path, parents.len(), place);
    if node.step(last).is_none() {
        known_name(node, &made.path)?;
    }
    let mut given = value_of(value, place);
    renamed::below(&mut given, last, met);
    insert(node, last, given, place).map_err(|what| cannot(parents, &what, last))?;
    Ok(made)
}

/// A part of a dotted key.
#[derive(Debug, PartialEq)]
enum Part {
    Name(String),
    /// With a `*`, which stands for any text.
    Pattern(String),
}

/// The parts of a dotted key; a part with dots or stars of its own stands between double quotes. `None` if one is empty.
fn segments(key: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = key.trim();
    loop {
        let (part, behind, is_quoted) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map(|(part, behind)| (part, behind, true))?,
            None => {
                let (part, behind) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
                (part, behind, false)
            }
        };
        let part = part.trim().to_owned();
        if part.is_empty() {
            return None;
        }
        parts.push(if !is_quoted && part.contains('*') { Part::Pattern(part) } else { Part::Name(part) });
        match behind.strip_prefix('.') {
            Some(more) => rest = more,
            None => return behind.is_empty().then_some(parts),
        }
    }
}

/// The keys that one with patterns stands for; at least one.
fn expand(root: &Node, parts: &[Part]) -> Result<Vec<Vec<String>>, Refused> {
    let mut paths = vec![Vec::new()];
    for part in parts {
        let pattern = match part {
            Part::Name(name) => {
                paths.iter_mut().for_each(|path: &mut Vec<String>| path.push(name.clone()));
                continue;
            }
            Part::Pattern(pattern) => pattern,
        };
        let found = paths.iter().flat_map(|path| {
            let node = path.iter().try_fold(root, |node, name| node.step(name));
            let names = node.map(names_in).unwrap_or_default().into_iter();
            names.filter(|name| matches(pattern, name)).map(move |name| {
                let mut path = path.clone();
                path.push(name);
                path
            })
        });
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return Err(nothing_like(pattern, root, paths.first().map_or(&[], Vec::as_slice)));
        }
        paths = found;
    }
    Ok(paths)
}

/// Nothing behind `path` matches `pattern`: what is there instead.
fn nothing_like(pattern: &str, root: &Node, path: &[String]) -> Refused {
    let mut node = root;
    for name in path {
        let Some(next) = node.step(name) else {
            let (message, choices) = unknown("key", name, names_in(node).iter().map(String::as_str));
            return Refused { message, choices };
        };
        node = next;
    }
    let message = match path {
        [] => format!("no key matches {}", quoted(pattern)),
        _ => format!("no name in {} matches {}", quoted(&path.join(".")), quoted(pattern)),
    };
    Refused { message, choices: names_in(node) }
}

/// The keys of a table, or the places in a list.
fn names_in(node: &Node) -> Vec<String> {
    match &node.kind {
        Kind::Table(entries) => entries.iter().map(|entry| entry.key.clone()).collect(),
        Kind::List(list) => (0..list.len()).map(|place| place.to_string()).collect(),
        _ => Vec::new(),
    }
}

/// A change does not invent hosts, links and environments: a name that is not there is a slip.
fn known_name(node: &Node, path: &[String]) -> Result<(), Refused> {
    let (what, name) = match path {
        [family, name] if family == "hosts" => ("host", name),
        [family, name] if family == "links" => ("link", name),
        [family, name] if family == "environments" => ("environment", name),
        _ => return Ok(()),
    };
    let (message, choices) =
        unknown(what, name, node.entries().unwrap_or(&[]).iter().map(|e| e.key.as_str()));
    Err(Refused { message, choices })
}

/// Turns the value that the option at `place` set, a number or the like, into its text; false if it is one already.
pub(super) fn as_text(root: &mut Node, overrides: &[Override], place: Place) -> bool {
    let mut any = false;
    for made in overrides.iter().filter(|o| o.place == place) {
        let node = made.path.iter().try_fold(&mut *root, |node, segment| node.step_mut(segment));
        let Some(node) = node else { continue };
        let is_plain =
            matches!(node.kind, Kind::Integer(_) | Kind::Float(_) | Kind::Boolean(_) | Kind::Datetime(_));
        if is_plain && node.place == place {
            node.kind = Kind::String(made.text.clone());
            any = true;
        }
    }
    any
}

/// The value as TOML, or the text itself.
fn value_of(text: &str, place: Place) -> Node {
    let line = format!("v = {text}");
    let parsed =
        toml::de::DeTable::parse(&line).ok().filter(|t| t.get_ref().len() == 1 && !text.contains('\n'));
    let mut value = parsed
        .and_then(|t| Node::from_toml(&t).ok())
        .and_then(|t| t.get("v").cloned())
        .unwrap_or_else(|| Node::new(Kind::String(text.to_owned()), place));
    readdress(&mut value, place);
    value
}

/// All of the tree was written at `place`.
fn readdress(node: &mut Node, place: Place) {
    node.place = place;
    match &mut node.kind {
        Kind::List(list) => list.iter_mut().for_each(|item| readdress(item, place)),
        Kind::Table(entries) => {
            for entry in entries {
                entry.key_place = place;
                readdress(&mut entry.value, place);
            }
        }
        _ => {}
    }
}

/// Puts `value` under `segment`; otherwise says what `node` is.
fn insert(node: &mut Node, segment: &str, value: Node, place: Place) -> Result<(), String> {
    if let Some(old) = node.step_mut(segment) {
        *old = value;
        return Ok(());
    }
    match &mut node.kind {
        Kind::Table(entries) => {
            entries.push(Entry { key: segment.to_owned(), key_place: place, value });
            Ok(())
        }
        Kind::List(list) => Err(format!("a list of {}", list.len())),
        _ => Err(node.describe()),
    }
}

fn cannot(path: &[String], what: &str, segment: &str) -> String {
    format!("{} is {what}, which has no `{segment}`", path.join("."))
}

/// If the value at `path[..depth]` is a short form and `path[depth]` is a key of what it stands for, makes it that.
fn open_short_form(node: &mut Node, path: &[String], depth: usize, place: Place) {
    if !matches!(
        node.kind,
        Kind::String(_) | Kind::Integer(_) | Kind::Float(_) | Kind::Boolean(_) | Kind::Datetime(_)
    ) {
        return;
    }
    let Some(next) = path.get(depth) else { return };
    let old = node.clone();
    let entry = |key: &str, value: Node| Entry { key: key.to_owned(), key_place: place, value };
    let above: Vec<&str> = path[..depth].iter().map(String::as_str).collect();
    let table = match (above.as_slice(), &old.kind) {
        // `app = "bulk"` stands for `app = { bulk = {} }`, in a list too.
        (
            ["hosts", _, "app" | "transport" | "proxy"] | ["hosts", _, "app" | "transport", _],
            Kind::String(name),
        ) if name == next => {
            vec![entry(name, Node::new(Kind::Table(Vec::new()), place))]
        }
        (["links", _], Kind::String(_)) => vec![entry("bearer", old)],
        // One value stands for both directions.
        (["links" | "timeline", ..], _) if next == "uplink" || next == "downlink" => {
            vec![entry("uplink", old.clone()), entry("downlink", old)]
        }
        _ => return,
    };
    node.kind = Kind::Table(table);
}

/// What a missing table `path[depth]` of `node` begins as: empty, or, if only one direction of a bearer's setting is
/// to be set, that bearer's default, so that the other direction keeps it.
fn first_value(node: &Node, registries: &Registries, path: &[String], depth: usize) -> Value {
    let empty = Value::Object(Map::new());
    let is_direction = path.get(depth + 1).is_some_and(|s| s == "uplink" || s == "downlink");
    if depth != 2 || path[0] != "links" || !is_direction {
        return empty;
    }
    let bearer = node.get("bearer").and_then(|b| if let Kind::String(s) = &b.kind { Some(s) } else { None });
    let Some(known) = bearer.and_then(|b| find(&registries.bearers, b)) else { return empty };
    let own = node.entries().unwrap_or(&[]).iter().filter(|e| !LINK_KEYS.contains(&e.key.as_str()));
    let default = (known.understood)(&entries_to_json(own)).ok();
    match default.as_ref().and_then(|d| d.get(&path[depth])) {
        Some(table @ Value::Object(_)) => table.clone(),
        Some(Value::Null) | None => empty,
        Some(one) => {
            Value::Object(["uplink", "downlink"].map(|d| (d.to_owned(), one.clone())).into_iter().collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dotted_key_may_quote_parts_that_have_dots() {
        let name = |text: &str| Part::Name(text.to_owned());
        assert_eq!(segments(" links.radio.rate ").unwrap(), ["links", "radio", "rate"].map(name));
        assert_eq!(segments("objects.\"/a.gif\".x").unwrap(), ["objects", "/a.gif", "x"].map(name));
        let pattern = Part::Pattern("r*".to_owned());
        assert_eq!(segments("links.r*.\"*\"").unwrap(), [name("links"), pattern, name("*")]);
        for wrong in ["", ".", "a.", ".a", "a..b", "a.\"b", "a.\"b\"c", "\"\""] {
            assert_eq!(segments(wrong), None, "{wrong}");
        }
    }
}
