//! Tree -> readable text.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::xml::is_name;
use super::{table_of, tables};
use crate::wbxml::{Attribute, Document, Element, Node, Piece, PublicId};
use crate::wml::variables::{self, Conversion};
use crate::wml::{Class, class};

/// Writes `document` as XML: structure a line an element, indented; text as it is, so that reading it gives the same tree.
///
/// What XML cannot say becomes something near: characters that it has not, U+FFFD; names that are none, with underscores.
/// Opaque octets become a processing instruction `<?opaque ...?>` in hexadecimal, in attributes nothing.
pub fn write(document: &Document) -> String {
    let mut text = Text { out: String::new(), has_variables: true };
    text.out.push_str("<?xml version=\"1.0\"?>\n");
    let known = table_of(document).or_else(|| {
        // A type that is only known by its outermost element.
        let unsaid = document.public_id == PublicId::default();
        tables().into_iter().find(|table| unsaid && table.document_type().root == document.root.name)
    });
    if let Some(table) = known {
        let doctype = table.document_type();
        text.has_variables = doctype.root == "wml";
        let _ = writeln!(
            text.out,
            "<!DOCTYPE {} PUBLIC \"{}\" \"{}\">",
            doctype.root, doctype.public, doctype.system
        );
    } else if let PublicId::Text(public) = &document.public_id {
        let public: String =
            public.chars().filter(|c| c.is_ascii_graphic() && *c != '"' && *c != '>' || *c == ' ').collect();
        let _ = writeln!(text.out, "<!DOCTYPE {} PUBLIC \"{public}\" \"\">", name(&document.root.name));
    }
    text.tree(&document.root);
    text.out.push('\n');
    text.out
}

struct Text {
    out: String,
    has_variables: bool,
}

impl Text {
    /// Elements by a stack: documents decide how deep they are. An element is laid out in lines if nothing but elements is
    /// inside it and white space there means nothing.
    fn tree(&mut self, root: &Element) {
        let mut open: Vec<(&Element, std::slice::Iter<'_, Node>, bool)> = Vec::new();
        let mut next = Some(root);
        loop {
            if let Some(element) = next.take() {
                self.head(element);
                if element.content.is_empty() {
                    self.out.push_str("/>");
                } else {
                    self.out.push('>');
                    let in_lines = open.last().is_none_or(|(_, _, lines)| *lines) && may_break(element);
                    open.push((element, element.content.iter(), in_lines));
                }
            }
            let depth = open.len();
            let Some((element, rest, in_lines)) = open.last_mut() else { return };
            let (element, in_lines) = (*element, *in_lines);
            match rest.next() {
                Some(node) => {
                    if in_lines {
                        self.line(depth);
                    }
                    match node {
                        Node::Element(child) => next = Some(child),
                        Node::Piece(piece) => self.piece(piece),
                        Node::Instruction(instruction) => self.instruction(instruction),
                    }
                }
                None => {
                    if in_lines {
                        self.line(depth - 1);
                    }
                    let _ = write!(self.out, "</{}>", name(&element.name));
                    open.pop();
                }
            }
        }
    }

    fn line(&mut self, depth: usize) {
        self.out.push('\n');
        for _ in 0..depth.min(32) {
            self.out.push_str("  ");
        }
    }

    fn head(&mut self, element: &Element) {
        let _ = write!(self.out, "<{}", name(&element.name));
        let mut said = BTreeSet::new();
        for attribute in &element.attributes {
            let key = name(&attribute.name);
            if said.contains(&key) {
                // Tokens can repeat an attribute, text cannot. The first counts.
                continue;
            }
            let _ = write!(self.out, " {key}=\"");
            said.insert(key);
            let default = Conversion::default_in(Some(&attribute.name));
            for piece in &attribute.value {
                self.escaped(&self.text_of(piece, default), true);
            }
            self.out.push('"');
        }
    }

    fn piece(&mut self, piece: &Piece) {
        if let Piece::Opaque(octets) = piece {
            self.out.push_str("<?opaque ");
            for octet in octets {
                let _ = write!(self.out, "{octet:02x}");
            }
            self.out.push_str("?>");
        } else {
            self.escaped(&self.text_of(piece, Conversion::None), false);
        }
    }

    fn text_of(&self, piece: &Piece, default: Conversion) -> String {
        match piece {
            Piece::Text(text) if !self.has_variables => text.clone(),
            piece => variables::text(piece, default).into_owned(),
        }
    }

    fn instruction(&mut self, instruction: &Attribute) {
        let value: String =
            instruction.value.iter().map(|piece| self.text_of(piece, Conversion::None)).collect();
        let _ = write!(self.out, "<?{} ", name(&instruction.name));
        value.replace("?>", "? >").chars().for_each(|c| self.out.push(character(c)));
        self.out.push_str("?>");
    }

    fn escaped(&mut self, text: &str, in_attribute: bool) {
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' if in_attribute => self.out.push_str("&quot;"),
                // White space that reading would change.
                '\n' | '\t' if in_attribute => _ = write!(self.out, "&#{};", c as u32),
                '\r' => self.out.push_str("&#13;"),
                c => self.out.push(character(c)),
            }
        }
    }
}

/// Whether lines may be broken inside `element`.
fn may_break(element: &Element) -> bool {
    let lines =
        matches!(class(&element.name), Class::Structure) || matches!(&*element.name, "table" | "select");
    lines
        && !element.attributes.iter().any(|a| a.name == "xml:space")
        && element
            .content
            .iter()
            .all(|node| !matches!(node, Node::Piece(Piece::Text(_) | Piece::Extension(_))))
}

/// `c`, if XML has it.
fn character(c: char) -> char {
    match c {
        '\t' | '\n' => c,
        '\0'..=' ' if c != ' ' => '\u{FFFD}',
        '\u{FFFE}' | '\u{FFFF}' => '\u{FFFD}',
        c => c,
    }
}

/// `name`, if it is one.
fn name(name: &str) -> std::borrow::Cow<'_, str> {
    if is_name(name) {
        return name.into();
    }
    let fine = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    format!("_{}", name.chars().map(|c| if fine(c) { c } else { '_' }).collect::<String>()).into()
}
