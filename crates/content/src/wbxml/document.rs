//! The tree of a document, the same whether it comes from text or from tokens.

use std::borrow::Cow;

use airloom_wire::charset::{MibEnum, UTF_8};

use super::tokens::{PUBLIC_ID_UNKNOWN, Version};

/// A name of an element or attribute: of a token table, or spelled out.
pub type Name = Cow<'static, str>;

/// Which document type a document says it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicId {
    /// A registered number.
    Number(u32),
    /// A formal public identifier, written out.
    Text(String),
}

impl Default for PublicId {
    fn default() -> PublicId {
        PublicId::Number(PUBLIC_ID_UNKNOWN)
    }
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The version of its encoded form.
    pub version: Version,
    /// Its type.
    pub public_id: PublicId,
    /// Character set of the encoded form. Text in the tree is Unicode.
    pub charset: MibEnum,
    /// The one element that holds all others.
    pub root: Element,
}

impl Document {
    /// A document around `root`, in UTF-8.
    pub fn new(version: Version, public_id: u32, root: Element) -> Document {
        Document { version, public_id: PublicId::Number(public_id), charset: UTF_8, root }
    }
}

/// An element with what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: Name,
    /// Its attributes in the order of the document.
    pub attributes: Vec<Attribute>,
    /// Its content.
    pub content: Vec<Node>,
}

impl Element {
    /// An empty element.
    pub fn new(name: impl Into<Name>) -> Element {
        Element { name: name.into(), ..Element::default() }
    }

    /// The same with an attribute more.
    #[must_use]
    pub fn with(mut self, name: impl Into<Name>, value: impl Into<String>) -> Element {
        let mut pieces = Vec::new();
        push_text(&mut pieces, &value.into());
        self.attributes.push(Attribute { name: name.into(), value: pieces });
        self
    }

    /// The same with a child more.
    #[must_use]
    pub fn child(mut self, element: Element) -> Element {
        self.content.push(Node::Element(element));
        self
    }

    /// The same with text at its end.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Element {
        self.content.push(Node::Piece(Piece::Text(text.into())));
        self
    }

    /// Its attribute called `name`.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.name == name)
    }

    /// The elements directly inside.
    pub fn elements(&self) -> impl Iterator<Item = &Element> {
        self.content.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            _ => None,
        })
    }
}

/// An attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: Name,
    /// Its value, text and extensions in turn. No two pieces of text are neighbours.
    pub value: Vec<Piece>,
}

impl Attribute {
    /// The value if it is text alone; extensions have no text of their own.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value[..] {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}

/// A part of an element's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// An element.
    Element(Element),
    /// Text and what stands among it.
    Piece(Piece),
    /// A processing instruction: its target, and the rest as value.
    Instruction(Attribute),
}

/// Text or what stands in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// An extension of the document type.
    Extension(Extension),
    /// Octets that only the application understands.
    Opaque(Vec<u8>),
}

/// An extension token. In WML: a variable, with 0 escaped, 1 unescaped and 2 as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// 0, 1 or 2.
    pub number: u8,
    /// What the token carries; a single octet carries nothing.
    pub text: Option<String>,
}

/// Appends text so that no two pieces of text become neighbours.
pub(super) fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(last)) => last.push_str(text),
        _ if text.is_empty() => {}
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}
