//! Document -> tokens.

use smart_default::SmartDefault;

use airloom_wire::charset::MibEnum;
use airloom_wire::uintvar;

use super::document::{Attribute, Document, Element, Extension, Node, Piece, PublicId};
use super::strings::{Candidate, Part, Plan, plan};
use super::table::{AttributeStart, TokenTable};
use super::tokens::{
    END, ENTITY, EXT_0, EXT_I_0, EXT_T_0, HAS_ATTRIBUTES, HAS_CONTENT, LITERAL, OPAQUE, PI,
    PUBLIC_ID_IN_TABLE, STR_I, STR_T, SWITCH_PAGE, Version,
};
use crate::charset::Charset;
use crate::service::time;

/// How to write a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct Options {
    /// Whether repeated strings go into the string table. Names without a token do in any case.
    #[default(true)]
    pub string_table: bool,
}

/// Why a document cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Text cannot be converted to this character set.
    #[error("character set {0} cannot be written")]
    Charset(MibEnum),
    /// More than 2^32 octets of strings.
    #[error("the document is too large")]
    Size,
    /// A name of an element or attribute has a character that the character set lacks.
    #[error("a name has a character that the character set lacks")]
    Name,
    /// An extension with a number above 2.
    #[error("there is no extension {0}")]
    Extension(u8),
}

/// Writes `document` with the tokens of `table`.
///
/// # Errors
/// [`EncodeError`]: what the format cannot say.
pub fn encode(document: &Document, table: &TokenTable, options: Options) -> Result<Vec<u8>, EncodeError> {
    let charset = Charset::from_mib(document.charset).ok_or(EncodeError::Charset(document.charset))?;
    let mut flat = Flat::new(table, charset);
    let public_id = match &document.public_id {
        PublicId::Number(number) => *number,
        PublicId::Text(text) => {
            flat.name(text)?;
            PUBLIC_ID_IN_TABLE
        }
    };
    flat.tree(&document.root)?;
    let total: usize = flat.strings.iter().map(|s| s.0.text.len() + 4).sum::<usize>() + flat.octets.len();
    if u32::try_from(total * 2).is_err() {
        return Err(EncodeError::Size);
    }

    let candidates: Vec<_> = flat.strings.iter().map(|s| s.0).collect();
    let len = |text: &str| encoded(charset, text).len();
    let size: &dyn Fn(&str) -> usize = if charset == Charset::UTF_8 { &str::len } else { &len };
    let plan = plan(&candidates, size, charset.nul_len(), options.string_table);

    let mut out = Vec::with_capacity(total);
    out.push(document.version.octet());
    uintvar::emit(public_id, &mut out);
    let mut strings = flat.strings.iter().enumerate().peekable();
    if public_id == PUBLIC_ID_IN_TABLE
        && let Some((n, _)) = strings.next()
    {
        offset(plan.parts(n), &mut out);
    }
    if document.version != Version::V1_0 {
        uintvar::emit(document.charset, &mut out);
    }
    let table_len: usize = plan.table.iter().map(|text| size(text) + charset.nul_len()).sum();
    uintvar::emit(u32::try_from(table_len).map_err(|_| EncodeError::Size)?, &mut out);
    for text in &plan.table {
        charset.encode(text, &mut out, |_, _| {});
        out.extend_from_slice(&[0, 0][..charset.nul_len()]);
    }
    let mut done = 0;
    for (n, &(candidate, at, form)) in strings {
        out.extend_from_slice(&flat.octets[done..at]);
        done = at;
        write(n, candidate.text, form, &plan, charset, &mut out);
    }
    out.extend_from_slice(&flat.octets[done..]);
    Ok(out)
}

fn encoded(charset: Charset, text: &str) -> Vec<u8> {
    let mut octets = Vec::new();
    charset.encode(text, &mut octets, |_, _| {});
    octets
}

/// How a string stands among the tokens.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// A name: its offset alone.
    Name,
    /// Text.
    Text,
    /// Extension of this number.
    Extension(u8),
}

fn write(n: usize, text: &str, form: Form, plan: &Plan<'_>, charset: Charset, out: &mut Vec<u8>) {
    if let Form::Name = form {
        return offset(plan.parts(n), out);
    }
    let (in_place, in_table) = match form {
        Form::Extension(number) => (EXT_I_0 + number, EXT_T_0 + number),
        _ => (STR_I, STR_T),
    };
    for part in plan.parts(n) {
        match *part {
            Part::Inline { from, to } => {
                out.push(in_place);
                charset.encode(&text[from as usize..to as usize], out, |_, _| {});
                out.extend_from_slice(&[0, 0][..charset.nul_len()]);
            }
            Part::Table { offset } => {
                out.push(in_table);
                uintvar::emit(offset, out);
            }
        }
    }
}

fn offset(parts: &[Part], out: &mut Vec<u8>) {
    if let [Part::Table { offset }] = parts {
        uintvar::emit(*offset, out);
    }
}

/// The document as octets with strings to be put in.
struct Flat<'a> {
    table: &'a TokenTable,
    charset: Charset,
    octets: Vec<u8>,
    /// Each string with the number of octets before it and how it stands there.
    strings: Vec<(Candidate<'a>, usize, Form)>,
    tag_page: u8,
    attribute_page: u8,
}

impl<'a> Flat<'a> {
    fn new(table: &'a TokenTable, charset: Charset) -> Flat<'a> {
        Flat { table, charset, octets: Vec::new(), strings: Vec::new(), tag_page: 0, attribute_page: 0 }
    }

    /// Elements by a stack, as deep as the document is.
    fn tree(&mut self, root: &'a Element) -> Result<(), EncodeError> {
        let mut open = Vec::new();
        self.head(root)?;
        open.push((root, root.content.iter()));
        while let Some((element, rest)) = open.last_mut() {
            match rest.next() {
                Some(Node::Element(child)) => {
                    self.head(child)?;
                    open.push((child, child.content.iter()));
                }
                Some(Node::Piece(piece)) => self.piece(piece)?,
                Some(Node::Instruction(instruction)) => {
                    self.octets.push(PI);
                    self.attribute(instruction)?;
                    self.octets.push(END);
                }
                None => {
                    if !element.content.is_empty() {
                        self.octets.push(END);
                    }
                    open.pop();
                }
            }
        }
        Ok(())
    }

    /// Tag and attributes.
    fn head(&mut self, element: &'a Element) -> Result<(), EncodeError> {
        let mut bits = 0;
        bits |= if element.attributes.is_empty() { 0 } else { HAS_ATTRIBUTES };
        bits |= if element.content.is_empty() { 0 } else { HAS_CONTENT };
        match self.table.tag(&element.name) {
            Some(tag) => {
                if tag.page != self.tag_page {
                    self.tag_page = tag.page;
                    self.octets.extend_from_slice(&[SWITCH_PAGE, tag.page]);
                }
                self.octets.push(tag.code | bits);
            }
            None => {
                self.octets.push(LITERAL | bits);
                self.name(&element.name)?;
            }
        }
        for attribute in &element.attributes {
            self.attribute(attribute)?;
        }
        if !element.attributes.is_empty() {
            self.octets.push(END);
        }
        Ok(())
    }

    fn attribute(&mut self, attribute: &'a Attribute) -> Result<(), EncodeError> {
        let first = match attribute.value.first() {
            Some(Piece::Text(text)) => text.as_str(),
            _ => "",
        };
        let starts = self.table.starts(&attribute.name);
        // A value that is the token's whole beginning and goes on with an extension is fine too.
        let start: Option<&AttributeStart> = starts.iter().find(|start| first.starts_with(start.value));
        let said = match start {
            Some(start) => {
                self.attribute_page(start.page);
                self.octets.push(start.code);
                start.value.len()
            }
            None => {
                self.octets.push(LITERAL);
                self.name(&attribute.name)?;
                0
            }
        };
        if self.table.is_date(&attribute.name)
            && let Some(digits) = attribute.as_text().and_then(time::digits)
        {
            self.opaque(&digits);
            return Ok(());
        }
        for (i, piece) in attribute.value.iter().enumerate() {
            match piece {
                Piece::Text(text) => self.value(&text[if i == 0 { said } else { 0 }..]),
                other => self.piece(other)?,
            }
        }
        Ok(())
    }

    fn attribute_page(&mut self, page: u8) {
        if page != self.attribute_page {
            self.attribute_page = page;
            self.octets.extend_from_slice(&[SWITCH_PAGE, page]);
        }
    }

    /// A part of an attribute's value: value tokens where they make it shorter, strings between.
    fn value(&mut self, value: &'a str) {
        let (mut pending, mut at) = (0, 0);
        while at < value.len() {
            let rest = &value[at..];
            let token = self.table.value(rest).filter(|token| {
                // A token in the middle cuts a string in two, which costs two octets; at an edge it costs none.
                let cuts = at > pending && token.text.len() < rest.len();
                token.text.len() > if cuts { 3 } else { 1 }
            });
            match token {
                Some(token) => {
                    let (page, code, len) = (token.page, token.code, token.text.len());
                    self.text(&value[pending..at]);
                    self.attribute_page(page);
                    self.octets.push(code);
                    at += len;
                    pending = at;
                }
                None => at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
        self.text(&value[pending..]);
    }

    fn piece(&mut self, piece: &'a Piece) -> Result<(), EncodeError> {
        match piece {
            Piece::Text(text) => self.text(text),
            Piece::Opaque(octets) => self.opaque(octets),
            Piece::Extension(Extension { number, .. }) if *number > 2 => {
                return Err(EncodeError::Extension(*number));
            }
            Piece::Extension(Extension { number, text: None }) => self.octets.push(EXT_0 + number),
            Piece::Extension(Extension { number, text: Some(text) }) => {
                if !self.can_write(text) {
                    return Err(EncodeError::Name);
                }
                let candidate = Candidate { text, may_cut: false, must_be_in_table: false };
                self.strings.push((candidate, self.octets.len(), Form::Extension(*number)));
            }
        }
        Ok(())
    }

    fn opaque(&mut self, octets: &[u8]) {
        self.octets.push(OPAQUE);
        uintvar::emit(octets.len() as u32, &mut self.octets);
        self.octets.extend_from_slice(octets);
    }

    /// Text; characters that the set lacks, and NUL, become entities.
    fn text(&mut self, text: &'a str) {
        if self.can_write(text) {
            return self.string(text);
        }
        let mut from = 0;
        for (at, c) in text.char_indices() {
            let after = at + c.len_utf8();
            if !self.can_write(&text[at..after]) {
                self.string(&text[from..at]);
                self.octets.push(ENTITY);
                uintvar::emit(u32::from(c), &mut self.octets);
                from = after;
            }
        }
        self.string(&text[from..]);
    }

    fn string(&mut self, text: &'a str) {
        if !text.is_empty() {
            let candidate = Candidate { text, may_cut: true, must_be_in_table: false };
            self.strings.push((candidate, self.octets.len(), Form::Text));
        }
    }

    /// A name without a token, for the string table.
    fn name(&mut self, name: &'a str) -> Result<(), EncodeError> {
        if !self.can_write(name) || name.is_empty() {
            return Err(EncodeError::Name);
        }
        let candidate = Candidate { text: name, may_cut: false, must_be_in_table: true };
        self.strings.push((candidate, self.octets.len(), Form::Name));
        Ok(())
    }

    /// Whether `text` can stand as a string. U+FEFF at the start would be taken for a mark in UTF-16.
    fn can_write(&self, text: &str) -> bool {
        memchr::memchr(0, text.as_bytes()).is_none()
            && self.charset.has_all(text)
            && (self.charset.nul_len() == 1 || !text.contains(['\u{FEFF}', '\u{FFFE}']))
    }
}
