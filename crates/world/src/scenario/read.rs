//! Reading typed values out of the tree; what does not fit becomes a [`Fault`] at its node.

use std::fmt::Display;
use std::str::FromStr;

use airloom_base::ConfigError;

use super::errors::closest;
use super::tree::{Entry, Kind, Node, quoted};

/// Something wrong with a node of the tree.
#[derive(Debug)]
pub(super) struct Fault<'a> {
    /// The table or value at fault.
    pub(super) node: &'a Node,
    /// The key to point at, if not the node itself: one of the node's own.
    pub(super) key: Option<&'a Entry>,
    pub(super) message: String,
    pub(super) choices: Vec<String>,
}

impl<'a> Fault<'a> {
    pub(super) fn at(node: &'a Node, message: impl Into<String>) -> Self {
        Fault { node, key: None, message: message.into(), choices: Vec::new() }
    }

    /// A check of what stands at `node`.
    pub(super) fn when(is_wrong: bool, node: &'a Node, message: impl Display) -> Result<(), Self> {
        if is_wrong { Err(Fault::at(node, message.to_string())) } else { Ok(()) }
    }

    /// `what` called `found` is none of `choices`.
    pub(super) fn unknown<'c>(
        node: &'a Node,
        what: &str,
        found: &str,
        choices: impl IntoIterator<Item = &'c str>,
    ) -> Self {
        let (message, choices) = unknown(what, found, choices);
        Fault { node, key: None, message, choices }
    }

    /// The table `node` has a key it should not have.
    pub(super) fn unknown_key<'c>(
        node: &'a Node,
        entry: &'a Entry,
        choices: impl IntoIterator<Item = &'c str>,
    ) -> Self {
        Fault { key: Some(entry), ..Fault::unknown(node, "key", &entry.key, choices) }
    }

    fn expected(node: &'a Node, what: &str) -> Self {
        Fault::at(node, format!("expected {what}, found {}", node.describe()))
    }
}

/// The sentence about a name that is none of `choices`, and these.
pub(super) fn unknown<'c>(
    what: &str,
    found: &str,
    choices: impl IntoIterator<Item = &'c str>,
) -> (String, Vec<String>) {
    let choices: Vec<String> = choices.into_iter().map(str::to_owned).collect();
    let mut message = format!("unknown {what} {}", quoted(found));
    if let Some(meant) = closest(found, choices.iter().map(String::as_str)) {
        message += &format!(" (did you mean `{meant}`?)");
    } else if choices.is_empty() {
        message += "; there are none";
    }
    (message, choices)
}

impl Node {
    /// The entries of a table, with no key besides `keys`.
    pub(super) fn table(&self, what: &str, keys: &[&str]) -> Result<&[Entry], Fault<'_>> {
        let entries = self.any_table(what)?;
        match entries.iter().find(|e| !keys.contains(&e.key.as_str())) {
            Some(entry) => Err(Fault::unknown_key(self, entry, keys.iter().copied())),
            None => Ok(entries),
        }
    }

    /// The entries of a table with keys of any name.
    pub(super) fn any_table(&self, what: &str) -> Result<&[Entry], Fault<'_>> {
        self.entries().ok_or_else(|| Fault::expected(self, what))
    }

    /// The value of a key that must be there.
    pub(super) fn required(&self, key: &str) -> Result<&Node, Fault<'_>> {
        self.get(key).ok_or_else(|| Fault::at(self, format!("`{key}` is missing")))
    }

    pub(super) fn list(&self, what: &str) -> Result<&[Node], Fault<'_>> {
        if let Kind::List(list) = &self.kind { Ok(list) } else { Err(Fault::expected(self, what)) }
    }

    pub(super) fn text(&self, what: &str) -> Result<&str, Fault<'_>> {
        if let Kind::String(s) = &self.kind { Ok(s) } else { Err(Fault::expected(self, what)) }
    }

    pub(super) fn boolean(&self) -> Result<bool, Fault<'_>> {
        if let Kind::Boolean(b) = self.kind { Ok(b) } else { Err(Fault::expected(self, "true or false")) }
    }

    /// An integer of `low..=high`.
    pub(super) fn integer(&self, low: u64, high: u64) -> Result<u64, Fault<'_>> {
        let what = || format!("an integer from {low} to {high}");
        let Kind::Integer(n) = self.kind else { return Err(Fault::expected(self, &what())) };
        u64::try_from(n)
            .ok()
            .filter(|n| (low..=high).contains(n))
            .ok_or_else(|| Fault::expected(self, &what()))
    }

    /// A quantity in text form.
    pub(super) fn quantity<T: FromStr<Err = String>>(&self, what: &str) -> Result<T, Fault<'_>> {
        self.text(what)?.parse().map_err(|message| Fault::at(self, message))
    }

    /// Is it this text?
    pub(super) fn is_text(&self, text: &str) -> bool {
        matches!(&self.kind, Kind::String(s) if s == text)
    }
}

/// Checks that `name` (at `node`) can name a host or link: observation points, addresses of pages and network
/// namespaces are made of it.
pub(super) fn name<'a>(node: &'a Node, what: &str, name: &str) -> Result<(), Fault<'a>> {
    const LONGEST: usize = 32;
    let fine = name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if !fine {
        return Err(Fault::at(
            node,
            format!(
                "{} cannot name a {what}: a name is a letter and then letters, digits, `-` or `_`, at most {LONGEST} in all",
                quoted(name)
            ),
        ));
    }
    if name == "default" {
        return Err(Fault::at(node, format!("a {what} cannot be called `default`: routes use that word")));
    }
    Ok(())
}

/// What the registry said about the table at `node` becomes a fault at the key it meant. `other_keys` are keys of
/// the same table that are not the component's.
pub(super) fn component_fault<'a>(
    node: &'a Node,
    error: &ConfigError,
    other_keys: &[&'static str],
) -> Fault<'a> {
    let mut chain = vec![node];
    for segment in &error.path {
        match chain.last().and_then(|n| n.step(segment)) {
            Some(next) => chain.push(next),
            None => break,
        }
    }
    let at = chain.last().copied().unwrap_or(node);
    let message = error.message.as_str();
    let (first, rest) = message.split_once(", ").unwrap_or((message, ""));
    let named = |prefix: &str| first.strip_prefix(prefix)?.strip_prefix('`')?.strip_suffix('`');
    if let Some(key) = named("unknown field ") {
        // Whether the path ends in the key itself depends on how the type is read: look upwards for it.
        let entry_of = |n: &&'a Node| Some((*n, n.entries()?.iter().find(|e| e.key == key)?));
        if let Some((table, entry)) = chain.iter().rev().find_map(entry_of) {
            let mut choices = between_quotes(rest);
            if std::ptr::eq(table, node) {
                choices.extend(other_keys);
            }
            return Fault::unknown_key(table, entry, choices);
        }
    }
    if let Some(found) = named("unknown variant ") {
        return Fault::unknown(at, "value", found, between_quotes(rest));
    }
    if let Some(key) = named("missing field ") {
        return Fault::at(at, format!("`{key}` is missing"));
    }
    if let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|m| m.split_once(", expected "))
    {
        // The node says better what was found, unless the type looked at a part of it.
        let found = if chain.len() > error.path.len() { at.describe() } else { found.to_owned() };
        return Fault::at(at, format!("expected {}, found {found}", in_words(expected)));
    }
    if message.starts_with("data did not match any variant") {
        return Fault::at(at, format!("{} is none of the forms that this value can have", at.describe()));
    }
    // What was checked for the table as a whole may begin with the key it is about.
    if let Some((key, about)) = message.split_once(": ")
        && let Some(value) = at.get(key)
    {
        return Fault::at(value, about);
    }
    Fault::at(at, message)
}

/// What a type of the program is called in a file.
fn in_words(expected: &str) -> &str {
    match expected {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "usize" => "an integer from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string" => "a text",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    }
}

/// The texts between back quotes.
fn between_quotes(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// A list, or one value that stands for a list of itself.
pub(super) fn one_or_more(node: &Node) -> &[Node] {
    if let Kind::List(list) = &node.kind { list } else { std::slice::from_ref(node) }
}
