//! Tokens -> document.

use std::borrow::Cow;

use smart_default::SmartDefault;

use airloom_wire::charset::{MibEnum, UTF_8};
use airloom_wire::{Error as WireError, uintvar};

use super::document::{Attribute, Document, Element, Extension, Name, Node, Piece, PublicId, push_text};
use super::error::{DecodeError, Kind};
use super::table::TokenTable;
use super::tokens::{
    END, ENTITY, EXT_0, EXT_I_0, EXT_T_0, HAS_ATTRIBUTES, HAS_CONTENT, IS_VALUE, LITERAL, OPAQUE, PI,
    PUBLIC_ID_IN_TABLE, STR_I, STR_T, SWITCH_PAGE, TAG_CODE, Version,
};
use crate::charset::Charset;
use crate::service::time;

/// How far a document may unfold: a reference of three octets can name a string of kilobytes.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub struct Limits {
    /// Octets of text in all, plus [`Limits::OF_A_NODE`] for every element, attribute and piece.
    #[default(16 << 20)]
    pub size: usize,
    /// Elements inside each other.
    #[default(128)]
    pub depth: usize,
}

impl Limits {
    /// What an element, attribute or piece counts towards the size.
    pub const OF_A_NODE: usize = 64;
}

/// Reads a document of one of the types in `tables`, chosen by its public identifier; where that says nothing, the first.
///
/// # Errors
/// [`DecodeError`] with the place and the reason.
pub fn decode(octets: &[u8], tables: &[&TokenTable], limits: Limits) -> Result<Document, DecodeError> {
    let (reader, version, public_id, charset) = Reader::new(octets)?;
    let wanted = |table: &&&TokenTable| match &public_id {
        PublicId::Number(number) => table.document_type().number == *number,
        PublicId::Text(text) => table.document_type().public == text,
    };
    let unsaid = public_id == PublicId::default();
    let table = tables.iter().find(wanted).or(tables.first().filter(|_| unsaid));
    let table: &TokenTable = table.ok_or(DecodeError { at: 1, kind: Kind::DocumentType })?;
    let mut body = Body { reader, table, limits, room: limits.size, tag_page: 0, attribute_page: 0 };
    let root = body.root()?;
    Ok(Document { version, public_id, charset, root })
}

/// The octets, and where reading stands.
struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
    charset: Charset,
    strings: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Behind what stands in front of the body: version, document type, and the character set as it is said there.
    fn new(octets: &'a [u8]) -> Result<(Reader<'a>, Version, PublicId, MibEnum), DecodeError> {
        let mut reader = Reader { octets, at: 0, charset: Charset::UTF_8, strings: &[] };
        let first = reader.octet()?;
        let version = Version::from_octet(first).ok_or(DecodeError { at: 0, kind: Kind::Version(first) })?;
        let number = reader.integer()?;
        let name_at = if number == PUBLIC_ID_IN_TABLE { Some(reader.integer()?) } else { None };
        let at = reader.at;
        let charset = if version == Version::V1_0 { UTF_8 } else { reader.integer()? };
        reader.charset =
            Charset::from_mib(charset).ok_or(DecodeError { at, kind: Kind::Charset(charset) })?;
        let table_len = reader.integer()? as usize;
        reader.strings = reader.take(table_len)?;
        let public_id = match name_at {
            Some(offset) => PublicId::Text(reader.string_at(offset)?.into_owned()),
            None => PublicId::Number(number),
        };
        Ok((reader, version, public_id, charset))
    }

    fn error(&self, kind: Kind) -> DecodeError {
        DecodeError { at: self.at, kind }
    }

    fn octet(&mut self) -> Result<u8, DecodeError> {
        let octet = *self.octets.get(self.at).ok_or(self.error(Kind::Truncated))?;
        self.at += 1;
        Ok(octet)
    }

    fn peek(&self) -> Option<u8> {
        self.octets.get(self.at).copied()
    }

    fn integer(&mut self) -> Result<u32, DecodeError> {
        let rest = self.octets.get(self.at..).unwrap_or_default();
        let (n, len) = uintvar::parse(rest).map_err(|e| {
            self.error(if e == WireError::Truncated { Kind::Truncated } else { Kind::Integer })
        })?;
        self.at += len;
        Ok(n)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let rest = &self.octets[self.at..];
        let taken = rest.get(..len).ok_or(self.error(Kind::Truncated))?;
        self.at += len;
        Ok(taken)
    }

    /// A string in place.
    fn string(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        let rest = &self.octets[self.at..];
        let len = self.charset.find_nul(rest).ok_or(self.error(Kind::Truncated))?;
        self.at += len + self.charset.nul_len();
        Ok(self.charset.decode(&rest[..len]))
    }

    /// A string of the table. One whose NUL is missing ends with the table: encoders were seen to leave out the last.
    fn string_at(&self, offset: u32) -> Result<Cow<'a, str>, DecodeError> {
        let rest = self.strings.get(offset as usize..).filter(|rest| !rest.is_empty());
        let rest = rest.ok_or(self.error(Kind::Offset(offset)))?;
        let len = self.charset.find_nul(rest).unwrap_or(rest.len());
        Ok(self.charset.decode(&rest[..len]))
    }

    fn string_from_table(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        let offset = self.integer()?;
        self.string_at(offset)
    }
}

struct Body<'a> {
    reader: Reader<'a>,
    table: &'a TokenTable,
    limits: Limits,
    room: usize,
    tag_page: u8,
    attribute_page: u8,
}

/// What was read: text, which may continue text before it, or something else.
enum Read<'a> {
    Text(Cow<'a, str>),
    Other(Piece),
}

impl<'a> Body<'a> {
    /// Body = instructions, the root element, instructions (WAP-192, 5.3). Those outside the root have no place in the tree.
    fn root(&mut self) -> Result<Element, DecodeError> {
        let mut root = None;
        while let Some(token) = self.reader.peek() {
            match token {
                PI => {
                    self.reader.at += 1;
                    self.instruction()?;
                }
                _ if root.is_some() => return Err(self.reader.error(Kind::Trailing)),
                _ => root = Some(self.element_tree()?),
            }
        }
        root.ok_or(self.reader.error(Kind::Truncated))
    }

    /// An element with all inside it. A stack of open elements instead of recursion: the document decides how deep.
    fn element_tree(&mut self) -> Result<Element, DecodeError> {
        let mut open: Vec<Element> = Vec::new();
        loop {
            let token = self.tag_token()?;
            let done = match token {
                END => open.pop(),
                ENTITY | STR_I | STR_T | PI | OPAQUE | EXT_I_0..PI | EXT_T_0..STR_T | EXT_0..OPAQUE => {
                    let at = self.reader.at - 1;
                    let misplaced = DecodeError { at, kind: Kind::Misplaced(token) };
                    let parent = open.last_mut().ok_or(misplaced)?;
                    if token == PI {
                        let instruction = self.instruction()?;
                        parent.content.push(Node::Instruction(instruction));
                        continue;
                    }
                    let merges = matches!(parent.content.last(), Some(Node::Piece(Piece::Text(_))));
                    match (self.piece(token, merges)?, parent.content.last_mut()) {
                        // Encoders cut a text into strings; here it is one again.
                        (Read::Text(text), Some(Node::Piece(Piece::Text(last)))) => last.push_str(&text),
                        (Read::Text(text), _) if text.is_empty() => {}
                        (Read::Text(text), _) => {
                            parent.content.push(Node::Piece(Piece::Text(text.into_owned())))
                        }
                        (Read::Other(piece), _) => parent.content.push(Node::Piece(piece)),
                    }
                    continue;
                }
                _ => {
                    let element = self.element_head(token)?;
                    if token & HAS_CONTENT == 0 {
                        Some(element)
                    } else if open.len() == self.limits.depth {
                        return Err(self.reader.error(Kind::Depth));
                    } else {
                        open.push(element);
                        continue;
                    }
                }
            };
            let done = done.ok_or(self.reader.error(Kind::Misplaced(END)))?;
            match open.last_mut() {
                Some(parent) => parent.content.push(Node::Element(done)),
                None => return Ok(done),
            }
        }
    }

    /// The next token of the tag space; switches of the page are carried out.
    fn tag_token(&mut self) -> Result<u8, DecodeError> {
        loop {
            match self.reader.octet()? {
                SWITCH_PAGE => self.tag_page = self.reader.octet()?,
                token => return Ok(token),
            }
        }
    }

    /// An element's name and attributes.
    fn element_head(&mut self, token: u8) -> Result<Element, DecodeError> {
        self.spend(Limits::OF_A_NODE)?;
        let (page, code) = (self.tag_page, token & TAG_CODE);
        let name = if code == LITERAL {
            let name = self.reader.string_from_table()?.into_owned();
            self.spend(name.len())?;
            Name::Owned(name)
        } else {
            let known = self.table.tag_called(page, code);
            let unknown = DecodeError { at: self.reader.at - 1, kind: Kind::Token { page, token } };
            Name::Borrowed(known.ok_or(unknown)?.name)
        };
        let attributes = if token & HAS_ATTRIBUTES != 0 { self.attributes()? } else { Vec::new() };
        Ok(Element { name, attributes, content: Vec::new() })
    }

    /// Target and value of a processing instruction: a single attribute in form.
    fn instruction(&mut self) -> Result<Attribute, DecodeError> {
        let at = self.reader.at;
        let mut attributes = self.attributes()?.into_iter();
        match (attributes.next(), attributes.next()) {
            (Some(instruction), None) => Ok(instruction),
            _ => Err(DecodeError { at, kind: Kind::Misplaced(PI) }),
        }
    }

    /// Attributes up to END.
    fn attributes(&mut self) -> Result<Vec<Attribute>, DecodeError> {
        let mut attributes: Vec<Attribute> = Vec::new();
        loop {
            let token = self.reader.octet()?;
            let at = self.reader.at - 1;
            let misplaced = DecodeError { at, kind: Kind::Misplaced(token) };
            let unknown = DecodeError { at, kind: Kind::Token { page: self.attribute_page, token } };
            match token {
                END => return Ok(attributes),
                SWITCH_PAGE => self.attribute_page = self.reader.octet()?,
                LITERAL => {
                    let name = self.reader.string_from_table()?.into_owned();
                    self.spend(Limits::OF_A_NODE + name.len())?;
                    attributes.push(Attribute { name: Name::Owned(name), value: Vec::new() });
                }
                ENTITY | STR_I | STR_T | OPAQUE | EXT_I_0..PI | EXT_T_0..STR_T | EXT_0..OPAQUE => {
                    let Attribute { name, value } = attributes.last_mut().ok_or(misplaced)?;
                    if token == OPAQUE && self.table.is_date(name) {
                        let len = self.reader.integer()? as usize;
                        let digits = self.reader.take(len)?;
                        match time::text(digits) {
                            Some(text) => push_text(value, &text),
                            None => value.push(Piece::Opaque(digits.to_vec())),
                        }
                        self.spend(Limits::OF_A_NODE + 4 * digits.len())?;
                    } else {
                        let merges = matches!(value.last(), Some(Piece::Text(_)));
                        match self.piece(token, merges)? {
                            Read::Text(text) => push_text(value, &text),
                            Read::Other(piece) => value.push(piece),
                        }
                    }
                }
                PI | 0x44 | 0x84 | 0xC4 => return Err(misplaced),
                _ if token & IS_VALUE != 0 => {
                    let text = self.table.value_called(self.attribute_page, token).ok_or(unknown)?.text;
                    self.spend(text.len())?;
                    push_text(&mut attributes.last_mut().ok_or(misplaced)?.value, text);
                }
                _ => {
                    let start = self.table.start_called(self.attribute_page, token).ok_or(unknown)?;
                    self.spend(Limits::OF_A_NODE + start.value.len())?;
                    let mut value = Vec::new();
                    push_text(&mut value, start.value);
                    attributes.push(Attribute { name: Name::Borrowed(start.name), value });
                }
            }
        }
    }

    /// What follows a token of text, extension or octets; `merges` if text comes after text.
    fn piece(&mut self, token: u8, merges: bool) -> Result<Read<'a>, DecodeError> {
        let read = match token {
            STR_I => Read::Text(self.reader.string()?),
            STR_T => Read::Text(self.reader.string_from_table()?),
            ENTITY => {
                let code = self.reader.integer()?;
                let character = char::from_u32(code).ok_or(self.reader.error(Kind::Character(code)))?;
                Read::Text(character.to_string().into())
            }
            OPAQUE => {
                let len = self.reader.integer()? as usize;
                Read::Other(Piece::Opaque(self.reader.take(len)?.to_vec()))
            }
            _ => {
                let text = match token {
                    EXT_I_0..PI => Some(self.reader.string()?.into_owned()),
                    EXT_T_0..STR_T => Some(self.reader.string_from_table()?.into_owned()),
                    _ => None,
                };
                Read::Other(Piece::Extension(Extension { number: token & 0x03, text }))
            }
        };
        let len = match &read {
            Read::Text(text) => text.len(),
            Read::Other(Piece::Opaque(octets)) => octets.len(),
            Read::Other(Piece::Extension(extension)) => extension.text.as_ref().map_or(0, String::len),
            Read::Other(Piece::Text(_)) => unreachable!("text is Read::Text"),
        };
        self.spend(len + if merges && matches!(read, Read::Text(_)) { 0 } else { Limits::OF_A_NODE })?;
        Ok(read)
    }

    fn spend(&mut self, size: usize) -> Result<(), DecodeError> {
        self.room = self.room.checked_sub(size).ok_or(self.reader.error(Kind::Size))?;
        Ok(())
    }
}
