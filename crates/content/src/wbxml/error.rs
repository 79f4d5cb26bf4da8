//! What can be wrong with an encoded document.

use std::fmt;

/// Why octets are not a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Octets before the place.
    pub at: usize,
    /// What is wrong there.
    pub kind: Kind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The document ends in the middle of something.
    Truncated,
    /// An integer does not fit.
    Integer,
    /// A version that this reader does not know.
    Version(u8),
    /// A character set that this reader does not know.
    Charset(u32),
    /// A document type without a token table.
    DocumentType,
    /// A token that the document type does not have, on this code page.
    Token {
        /// The code page.
        page: u8,
        /// The token.
        token: u8,
    },
    /// A token that may not stand at this place.
    Misplaced(u8),
    /// An offset beyond the string table.
    Offset(u32),
    /// A number that is no character.
    Character(u32),
    /// Elements inside each other beyond the limit.
    Depth,
    /// Text or elements beyond the limit.
    Size,
    /// Something after the end.
    Trailing,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "octet {}: ", self.at)?;
        match self.kind {
            Kind::Truncated => write!(f, "the document is cut short"),
            Kind::Integer => write!(f, "an integer is too large"),
            Kind::Version(octet) => write!(f, "version octet {octet:#04x} is not of WBXML 1.x"),
            Kind::Charset(mib) => write!(f, "character set {mib} is not known"),
            Kind::DocumentType => write!(f, "no token table for this document type"),
            Kind::Token { page, token } => write!(f, "token {token:#04x} of code page {page} is not known"),
            Kind::Misplaced(token) => write!(f, "token {token:#04x} may not stand here"),
            Kind::Offset(offset) => write!(f, "offset {offset} is beyond the string table"),
            Kind::Character(code) => write!(f, "{code:#x} is no character"),
            Kind::Depth => write!(f, "elements are nested too deeply"),
            Kind::Size => write!(f, "the document unfolds to more than is allowed"),
            Kind::Trailing => write!(f, "octets after the end of the document"),
        }
    }
}

impl std::error::Error for DecodeError {}
