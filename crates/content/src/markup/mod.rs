//! Documents of WAP as text: read into trees and written from them.
//!
//! ```text
//! octets -> source (character set) -> xml (quick-xml, entities) -> builder (names, white space, variables) -> Document
//! ```
//!
//! [`parse`] is strict where XML is: a document that is not well-formed gets a line and a column. It is lenient where
//! phones were: unknown elements, attributes and document types are kept, entities of HTML are understood, a stray
//! dollar sign stays; such things are [`Warning`]s. Nothing is fetched: of a DTD only what stands inside the document is
//! read.

mod builder;
mod entities;
mod source;
mod write;
mod xml;

use std::fmt;

use crate::charset::Charset;
use crate::wbxml::{
    self, DecodeError, Document, EncodeError, Limits, Options, PublicId, TokenTable, Version,
};
use crate::{service, wml};

pub use source::Place;
pub(crate) use source::declared;
pub use write::write;

/// All document types with a token table. The first is what a WML document without a type is.
pub fn tables() -> [&'static TokenTable; 9] {
    [
        &wml::WML_1_1,
        &wml::WML_1_2,
        &wml::WML_1_3,
        &wml::PHONE_COM_1_1,
        &wml::PHONE_COM_1_3,
        &wml::WML_1_0_AS_1_1,
        &service::SI,
        &service::SL,
        &service::CO,
    ]
}

/// The table by which `document` is written.
pub fn table_of(document: &Document) -> Option<&'static TokenTable> {
    tables().into_iter().find(|table| match &document.public_id {
        PublicId::Number(number) => table.document_type().number == *number,
        PublicId::Text(public) => table.document_type().public == public,
    })
}

/// Why text is not a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct ParseError {
    /// Where.
    pub place: Place,
    /// Why, as a sentence without its full stop.
    pub reason: String,
}

/// Something that should not be in a document but does no harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub place: Place,
    /// What.
    pub what: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// A document that was read, and what was odd about it: the first hundred things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The document, to be written in UTF-8 in the version that belongs to its type.
    pub document: Document,
    /// What was odd.
    pub warnings: Vec<Warning>,
}

/// Reads a document. `charset` is what the transport says, which outweighs the document's own declaration (RFC 7303).
///
/// # Errors
/// [`ParseError`]: not well-formed, or nested more than 128 deep.
pub fn parse(octets: &[u8], charset: Option<Charset>) -> Result<Parsed, ParseError> {
    let source = source::Source::new(octets, charset)?;
    let mut builder = builder::Builder::new(&source);
    xml::read(&source, &mut builder)?;
    builder.finish()
}

/// A compiled document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The encoded form.
    pub octets: Vec<u8>,
    /// What was odd about the text.
    pub warnings: Vec<Warning>,
}

/// Text -> WBXML, by the table of the document's own type. `version` replaces the version that belongs to the type.
///
/// # Errors
/// [`ParseError`] if the text is no document. What was parsed in UTF-8 can always be encoded.
pub fn compile(
    octets: &[u8],
    charset: Option<Charset>,
    version: Option<Version>,
) -> Result<Compiled, ParseError> {
    let mut parsed = parse(octets, charset)?;
    parsed.document.version = version.unwrap_or(parsed.document.version);
    match encode(&parsed.document, Options::default()) {
        Ok(octets) => Ok(Compiled { octets, warnings: parsed.warnings }),
        Err(why) => Err(ParseError { place: Place { line: 1, column: 1 }, reason: why.to_string() }),
    }
}

/// Writes `document` by the table of its type; one of an unknown type with WML's.
///
/// # Errors
/// [`EncodeError`]: what the format cannot say.
pub fn encode(document: &Document, options: Options) -> Result<Vec<u8>, EncodeError> {
    wbxml::encode(document, table_of(document).unwrap_or(&wml::WML_1_1), options)
}

/// WBXML -> tree, for every document type that has a table.
///
/// # Errors
/// [`DecodeError`] with the place and the reason.
pub fn decode(octets: &[u8], limits: Limits) -> Result<Document, DecodeError> {
    wbxml::decode(octets, &tables(), limits)
}

/// WBXML -> readable text.
///
/// # Errors
/// [`DecodeError`] with the place and the reason.
pub fn decompile(octets: &[u8], limits: Limits) -> Result<String, DecodeError> {
    decode(octets, limits).map(|document| write(&document))
}
