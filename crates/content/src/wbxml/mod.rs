//! WBXML: XML documents as tokens, the form in which WAP sends decks and notices over the air.
//!
//! ```text
//! version  public id  charset  string table   body
//! 03       04         6A       00             7F E7 55 03 'a' 00 01 ... 01
//! ```
//!
//! A [`Document`] is the tree between both forms. [`encode`] writes it by a [`TokenTable`], which says what is a token in
//! documents of one type; [`decode`] reads it back. What is no token is a string: in place, or in the string table if that
//! is shorter ([`strings`] decides, in time linear in the document). Tables of WAP's own types are in [`crate::wml`] and
//! [`crate::service`].
//!
//! Source: WAP-192 (WBXML 1.3, which reads 1.0 to 1.2 too). Left out: nothing of the format; documents are whole trees in
//! memory, bounded by [`Limits`].

mod decode;
mod document;
mod encode;
mod error;
mod intern;
mod strings;
mod table;
pub mod tokens;

pub use decode::{Limits, decode};
pub use document::{Attribute, Document, Element, Extension, Name, Node, Piece, PublicId};
pub use encode::{EncodeError, Options, encode};
pub use error::DecodeError;
pub use table::{AttributeStart, AttributeValue, DocumentType, Tag, TokenTable};
pub use tokens::Version;
