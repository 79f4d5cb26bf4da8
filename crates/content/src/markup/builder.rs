//! What stands in a document -> its tree: names from the table, white space as the document type means it, variables.

use std::collections::BTreeSet;

use airloom_wire::charset::UTF_8;

use super::source::Source;
use super::xml::Sink;
use super::{ParseError, Parsed, Warning, tables};
use crate::wbxml::{Attribute, Document, Element, Name, Node, Piece, PublicId, TokenTable, Version};
use crate::wml::variables::{self, Conversion, Part};
use crate::wml::{self, Class};

/// Warnings that are kept.
const WARNINGS: usize = 100;

/// Builds the tree of one document.
pub(super) struct Builder<'s> {
    source: &'s Source<'s>,
    table: Option<&'static TokenTable>,
    public: Option<String>,
    open: Vec<Open>,
    root: Option<Element>,
    space: Space,
    /// Prefixes that the document binds to a namespace: names stand without them in the tree.
    prefixes: BTreeSet<String>,
    warnings: Vec<Warning>,
}

struct Open {
    element: Element,
    class: Class,
    verbatim: bool,
    elements_only: bool,
}

/// What white space at this point means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    /// Nothing: a block begins here.
    Edge,
    /// There was none since the last character.
    None,
    /// There was some; it is one space if text follows.
    Pending,
}

impl<'s> Builder<'s> {
    pub fn new(source: &'s Source<'s>) -> Builder<'s> {
        Builder {
            source,
            table: None,
            public: None,
            open: Vec::new(),
            root: None,
            space: Space::Edge,
            prefixes: BTreeSet::new(),
            warnings: Vec::new(),
        }
    }

    pub fn finish(self) -> Result<Parsed, ParseError> {
        let root = self
            .root
            .ok_or_else(|| self.source.error(self.source.text.len(), "the document has no element"))?;
        let table = self.table.unwrap_or(&wml::WML_1_1);
        let number = table.document_type().number;
        let known = self.public.as_deref().is_none_or(|public| public == table.document_type().public);
        let public_id = match self.public {
            Some(public) if !known => PublicId::Text(public),
            _ => PublicId::Number(number),
        };
        // Each WML came with the WBXML of its time; a phone of that time reads no other.
        let version = match number {
            0x09 => Version::V1_2,
            0x0A | 0x110D => Version::V1_3,
            _ => Version::V1_1,
        };
        let document = Document { version, public_id, charset: UTF_8, root };
        Ok(Parsed { document, warnings: self.warnings })
    }

    fn warn(&mut self, at: usize, what: String) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(Warning { place: self.source.place(at), what });
        }
    }

    /// The table of the document type: by its public identifier, else by the outermost element.
    fn choose_table(&mut self, root: &str) -> &'static TokenTable {
        let by_name = self
            .public
            .as_deref()
            .and_then(|public| tables().into_iter().find(|table| table.document_type().public == public));
        let by_root = || tables().into_iter().find(|table| table.document_type().root == root);
        let table = by_name.or_else(by_root).unwrap_or(&wml::WML_1_1);
        self.table = Some(table);
        table
    }

    /// A name without a prefix that the document declares.
    fn local<'n>(&self, name: &'n str) -> &'n str {
        match name.split_once(':') {
            Some((prefix, local)) if self.prefixes.contains(prefix) => local,
            _ => name,
        }
    }

    fn current(&mut self) -> Option<&mut Vec<Node>> {
        self.open.last_mut().map(|open| &mut open.element.content)
    }

    fn push_text(&mut self, text: &str) {
        let Some(content) = self.current().filter(|_| !text.is_empty()) else { return };
        match content.last_mut() {
            Some(Node::Piece(Piece::Text(last))) => last.push_str(text),
            _ => content.push(Node::Piece(Piece::Text(text.to_owned()))),
        }
    }

    /// A space that was waiting for what comes after it.
    fn flush_space(&mut self) {
        // Between elements where only elements belong, space means nothing even if text strayed there.
        let means_nothing = self.open.last().is_some_and(|open| {
            open.elements_only && !matches!(open.element.content.last(), Some(Node::Piece(Piece::Text(_))))
        });
        if self.space == Space::Pending && !means_nothing {
            self.push_text(" ");
        }
        self.space = Space::None;
    }

    /// Text in which runs of white space are one space.
    fn collapsed(&mut self, text: &str) {
        let is_space = |o: u8| matches!(o, b' ' | b'\t' | b'\n' | b'\r');
        let octets = text.as_bytes();
        let mut at = 0;
        while at < octets.len() {
            if is_space(octets[at]) {
                if self.space == Space::None {
                    self.space = Space::Pending;
                }
                at += 1;
                continue;
            }
            // As far as single spaces go, nothing needs to be changed.
            let mut end = at + 1;
            while end < octets.len()
                && (!is_space(octets[end])
                    || (octets[end] == b' ' && end + 1 < octets.len() && !is_space(octets[end + 1])))
            {
                end += 1;
            }
            self.flush_space();
            self.push_text(&text[at..end]);
            at = end;
        }
    }

    /// The pieces of an attribute's value.
    fn value(&mut self, name: &str, value: String, at: usize) -> Vec<Piece> {
        if value.is_empty() {
            return Vec::new();
        }
        if !self.has_variables() || !value.contains('$') {
            return vec![Piece::Text(value)];
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for part in variables::parts(&value, Conversion::default_in(Some(name))) {
            match part {
                Part::Variable(name, conversion) => {
                    pieces.push(Piece::Extension(variables::extension(name, conversion)));
                }
                Part::Text(text) | Part::Stray(text) => match pieces.last_mut() {
                    Some(Piece::Text(last)) => last.push_str(text),
                    _ => pieces.push(Piece::Text(text.to_owned())),
                },
            }
            if let Part::Stray(_) = part {
                self.warn(at, format!("a dollar sign in `{name}` that begins no variable (write `$$`)"));
            }
        }
        pieces
    }

    fn has_variables(&self) -> bool {
        self.table.is_none_or(|table| table.document_type().root == "wml")
    }
}

impl Sink for Builder<'_> {
    fn doctype(&mut self, public: Option<&str>) {
        self.public = public.map(|p| p.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
    }

    fn start(&mut self, name: &str, attributes: &[(&str, String)], at: usize) {
        for (name, _) in attributes {
            if let Some(prefix) = name.strip_prefix("xmlns:")
                && self.prefixes.len() < 64
            {
                self.prefixes.insert(prefix.to_owned());
            }
        }
        let name = self.local(name);
        let table = self.table.unwrap_or_else(|| self.choose_table(name));
        let mut element = Element::new(match table.tag(name) {
            Some(tag) => Name::Borrowed(tag.name),
            None => {
                self.warn(at, format!("the element `{name}` has no token"));
                Name::Owned(name.to_owned())
            }
        });
        for (key, value) in attributes {
            if *key == "xmlns" || key.starts_with("xmlns:") {
                continue;
            }
            let key = self.local(key);
            let name = match table.starts(key).first() {
                Some(start) => Name::Borrowed(start.name),
                None => {
                    self.warn(at, format!("the attribute `{key}` of element `{name}` has no token"));
                    Name::Owned(key.to_owned())
                }
            };
            let value = self.value(&name, value.clone(), at);
            element.attributes.push(Attribute { name, value });
        }

        let class = wml::class(&element.name);
        match class {
            Class::Running => self.flush_space_before_running(),
            Class::Block | Class::Break | Class::Verbatim => self.space = Space::Edge,
            Class::Structure => {}
        }
        let preserve =
            element.attribute("xml:space").and_then(Attribute::as_text).map(|value| value == "preserve");
        let inherited = self.open.last().is_some_and(|open| open.verbatim);
        let verbatim = class == Class::Verbatim || preserve.unwrap_or(inherited);
        let elements_only = wml::holds_elements_only(&element.name);
        self.open.push(Open { element, class, verbatim, elements_only });
    }

    fn text(&mut self, text: &str, at: usize) {
        let Some((verbatim, elements_only)) =
            self.open.last().map(|open| (open.verbatim, open.elements_only))
        else {
            return;
        };
        let blank = |text: &str| text.bytes().all(|o| matches!(o, b' ' | b'\t' | b'\n' | b'\r'));
        if elements_only {
            if blank(text) {
                return;
            }
            let name = self.open.last().map_or(String::new(), |open| open.element.name.to_string());
            self.warn(at, format!("text directly in element `{name}`"));
        }
        if !self.has_variables() || memchr::memchr(b'$', text.as_bytes()).is_none() {
            return if verbatim { self.verbatim(text) } else { self.collapsed(text) };
        }
        for part in variables::parts(text, Conversion::None) {
            match part {
                Part::Text(text) if !verbatim => self.collapsed(text),
                Part::Text(text) => self.verbatim(text),
                Part::Stray(text) => {
                    self.flush_space();
                    self.push_text(text);
                    self.warn(at, "a dollar sign that begins no variable (write `$$`)".to_owned());
                }
                Part::Variable(name, conversion) => {
                    self.flush_space();
                    let piece = Node::Piece(Piece::Extension(variables::extension(name, conversion)));
                    self.current().into_iter().for_each(|content| content.push(piece.clone()));
                }
            }
        }
    }

    fn end(&mut self) {
        let Some(Open { element, class, .. }) = self.open.pop() else { return };
        match class {
            Class::Block | Class::Break | Class::Verbatim => self.space = Space::Edge,
            // A field or picture is something that space may follow; styled text has been through already.
            Class::Running if element.content.is_empty() || element.name == "select" => {
                self.space = Space::None
            }
            Class::Running | Class::Structure => {}
        }
        match self.current() {
            Some(content) => content.push(Node::Element(element)),
            None => self.root = Some(element),
        }
    }
}

impl Builder<'_> {
    /// Space before a running element belongs in front of it; at the edge of a block it stays nothing.
    fn flush_space_before_running(&mut self) {
        if self.space == Space::Pending {
            self.flush_space();
            // A second space inside the element would be shown as the same one.
            self.space = Space::Edge;
        }
    }

    fn verbatim(&mut self, text: &str) {
        self.flush_space();
        // XML 1.0 (2.11): a line ends in a line feed.
        self.push_text(&text.replace("\r\n", "\n").replace('\r', "\n"));
    }
}
