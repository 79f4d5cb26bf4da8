//! What can be wrong with an encoded document.

/// Why octets are not a document, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("octet {at}: {kind}")]
pub struct DecodeError {
    /// Octets before the place.
    pub at: usize,
    /// What is wrong there.
    pub kind: Kind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Kind {
    /// The document ends in the middle of something.
    #[error("the document is cut short")]
    Truncated,
    /// An integer does not fit.
    #[error("an integer is too large")]
    Integer,
    /// A version that this reader does not know.
    #[error("version octet {0:#04x} is not of WBXML 1.x")]
    Version(u8),
    /// A character set that this reader does not know.
    #[error("character set {0} is not known")]
    Charset(u32),
    /// A document type without a token table.
    #[error("no token table for this document type")]
    DocumentType,
    /// A token that the document type does not have, on this code page.
    #[error("token {token:#04x} of code page {page} is not known")]
    Token {
        /// The code page.
        page: u8,
        /// The token.
        token: u8,
    },
    /// A token that may not stand at this place.
    #[error("token {0:#04x} may not stand here")]
    Misplaced(u8),
    /// An offset beyond the string table.
    #[error("offset {0} is beyond the string table")]
    Offset(u32),
    /// A number that is no character.
    #[error("{0:#x} is no character")]
    Character(u32),
    /// Elements inside each other beyond the limit.
    #[error("elements are nested too deeply")]
    Depth,
    /// Text or elements beyond the limit.
    #[error("the document unfolds to more than is allowed")]
    Size,
    /// Something after the end.
    #[error("octets after the end of the document")]
    Trailing,
}
