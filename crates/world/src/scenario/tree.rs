//! The file as a tree of values that know where they stand.

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where a value (or a key) was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At this octet of the file.
    File(usize),
    /// In the option of this number of the command line.
    Option(usize),
    /// Nowhere that could be shown.
    Unknown,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) place: Place,
}

/// What kind of value.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    String(String),
    /// Wide enough for the signed and the unsigned 64 bits.
    Integer(i128),
    Float(f64),
    Boolean(bool),
    /// A date or time, as text.
    Datetime(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// Only in JSON.
    Null,
}

/// A key of a table and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_place: Place,
    pub(super) value: Node,
}

/// A number the file cannot mean.
pub(super) struct BadNumber {
    pub(super) text: String,
    pub(super) offset: usize,
}

impl Node {
    pub(super) fn new(kind: Kind, place: Place) -> Self {
        Node { kind, place }
    }

    /// The tree of a TOML document.
    pub(super) fn from_toml(table: &Spanned<DeTable<'_>>) -> Result<Node, BadNumber> {
        table_from_toml(table.get_ref(), table.span().start)
    }

    /// The tree of a JSON document.
    pub(super) fn from_json(value: &Value) -> Node {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(b) => Kind::Boolean(*b),
            Value::String(s) => Kind::String(s.clone()),
            Value::Array(list) => Kind::List(list.iter().map(Node::from_json).collect()),
            Value::Object(map) => Kind::Table(
                map.iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        key_place: Place::Unknown,
                        value: Node::from_json(value),
                    })
                    .collect(),
            ),
            Value::Number(n) => match n.as_i128() {
                Some(n) => Kind::Integer(n),
                None => Kind::Float(n.as_f64().unwrap_or(f64::NAN)),
            },
        };
        Node::new(kind, Place::Unknown)
    }

    /// As JSON, for the registries. Numbers that JSON does not know become null, and are refused as such.
    pub(super) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Boolean(b) => Value::Bool(*b),
            Kind::String(s) | Kind::Datetime(s) => Value::String(s.clone()),
            Kind::Integer(n) => match (i64::try_from(*n), u64::try_from(*n)) {
                (Ok(n), _) => n.into(),
                (_, Ok(n)) => n.into(),
                _ => Value::Null,
            },
            Kind::Float(n) => (*n).into(),
            Kind::List(list) => Value::Array(list.iter().map(Node::to_json).collect()),
            Kind::Table(entries) => entries_to_json(entries.iter()),
        }
    }

    /// The entries, if it is a table.
    pub(super) fn entries(&self) -> Option<&[Entry]> {
        if let Kind::Table(entries) = &self.kind { Some(entries) } else { None }
    }

    /// The value of `key`, if it is a table that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|e| e.key == key).map(|e| &e.value)
    }

    /// The value one step down: of a key, or of a place in a list written as `3` or `[3]`.
    pub(super) fn step(&self, segment: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Table(_) => self.get(segment),
            Kind::List(list) => list.get(index(segment)?),
            _ => None,
        }
    }

    /// The same, to change it.
    pub(super) fn step_mut(&mut self, segment: &str) -> Option<&mut Node> {
        match &mut self.kind {
            Kind::Table(entries) => entries.iter_mut().find(|e| e.key == segment).map(|e| &mut e.value),
            Kind::List(list) => list.get_mut(index(segment)?),
            _ => None,
        }
    }

    /// What it is, for errors: `the integer 5`, `a table`.
    pub(super) fn describe(&self) -> String {
        match &self.kind {
            Kind::String(s) => format!("the text {}", quoted(s)),
            Kind::Integer(n) => format!("the integer {n}"),
            Kind::Float(n) => format!("the number {n}"),
            Kind::Boolean(b) => format!("{b}"),
            Kind::Datetime(s) => format!("the date {s}"),
            Kind::List(_) => "a list".to_owned(),
            Kind::Table(_) => "a table".to_owned(),
            Kind::Null => "null".to_owned(),
        }
    }

    /// The first option that set something in it.
    pub(super) fn option_within(&self) -> Option<usize> {
        let inner = match &self.kind {
            Kind::Table(entries) => entries.iter().find_map(|e| e.value.option_within()),
            Kind::List(list) => list.iter().find_map(Node::option_within),
            _ => None,
        };
        if let Place::Option(number) = self.place { Some(number) } else { inner }
    }

    /// The dotted key that leads from here to `target`; `None` if it is not below.
    pub(super) fn path_to(&self, target: &Node) -> Option<String> {
        if std::ptr::eq(self, target) {
            return Some(String::new());
        }
        let join = |head: String, tail: String| {
            if tail.is_empty() || tail.starts_with('[') { head + &tail } else { head + "." + &tail }
        };
        match &self.kind {
            Kind::Table(entries) => {
                entries.iter().find_map(|e| e.value.path_to(target).map(|tail| join(e.key.clone(), tail)))
            }
            Kind::List(list) => list
                .iter()
                .enumerate()
                .find_map(|(i, n)| n.path_to(target).map(|tail| join(format!("[{i}]"), tail))),
            _ => None,
        }
    }
}

/// A table of JSON with these entries.
pub(super) fn entries_to_json<'a>(entries: impl Iterator<Item = &'a Entry>) -> Value {
    Value::Object(entries.map(|e| (e.key.clone(), e.value.to_json())).collect())
}

/// Text between back quotes, shortened.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("`{}...`", &text[..at]),
        None => format!("`{text}`"),
    }
}

fn index(segment: &str) -> Option<usize> {
    let inner = segment.strip_prefix('[').and_then(|s| s.strip_suffix(']')).unwrap_or(segment);
    if inner.bytes().all(|b| b.is_ascii_digit()) { inner.parse().ok() } else { None }
}

fn table_from_toml(table: &DeTable<'_>, offset: usize) -> Result<Node, BadNumber> {
    let entries = table
        .iter()
        .map(|(key, value)| {
            Ok(Entry {
                key: key.get_ref().to_string(),
                key_place: Place::File(key.span().start),
                value: value_from_toml(value)?,
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(Node::new(Kind::Table(entries), Place::File(offset)))
}

fn value_from_toml(value: &Spanned<DeValue<'_>>) -> Result<Node, BadNumber> {
    let offset = value.span().start;
    let bad = |text: String| BadNumber { text, offset };
    let kind = match value.get_ref() {
        DeValue::String(s) => Kind::String(s.to_string()),
        DeValue::Integer(n) => {
            let number = i128::from_str_radix(n.as_str(), n.radix())
                .ok()
                .filter(|v| i64::try_from(*v).is_ok() || u64::try_from(*v).is_ok());
            Kind::Integer(number.ok_or_else(|| bad(n.to_string()))?)
        }
        DeValue::Float(x) => {
            let number = x.as_str().parse::<f64>().ok().filter(|v| v.is_finite());
            Kind::Float(number.ok_or_else(|| bad(x.to_string()))?)
        }
        DeValue::Boolean(b) => Kind::Boolean(*b),
        DeValue::Datetime(d) => Kind::Datetime(d.to_string()),
        DeValue::Array(list) => Kind::List(list.iter().map(value_from_toml).collect::<Result<_, _>>()?),
        DeValue::Table(table) => return table_from_toml(table, offset),
    };
    Ok(Node::new(kind, Place::File(offset)))
}
