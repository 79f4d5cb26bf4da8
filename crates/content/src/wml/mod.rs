//! WML 1.1, 1.2 and 1.3: decks of cards for small screens.
//!
//! Token tables, variables, and what of a deck is structure, block or running text. Reading and writing decks as text is
//! [`crate::markup`]'s, as for every document type of WAP; [`html`] makes decks from web pages, [`split`] small decks from a
//! large one.
//!
//! Source: WAP-191 and WAP-238. Left out: WML 1.0, whose attribute tokens are in no source at hand. Documents that carry its
//! number (2) are read as WML 1.1: a widespread encoder writes it where the public identifier is missing.

pub mod html;
pub mod split;
mod tokens;
pub mod variables;

use std::sync::LazyLock;

use crate::wbxml::{AttributeStart, AttributeValue, DocumentType, Tag, TokenTable};

/// WML 1.1.
pub static WML_1_1: LazyLock<TokenTable> = LazyLock::new(|| {
    table(
        DocumentType {
            number: 0x04,
            public: "-//WAPFORUM//DTD WML 1.1//EN",
            system: SYSTEM_1_1,
            root: "wml",
        },
        1,
    )
});

/// WML 1.2.
pub static WML_1_2: LazyLock<TokenTable> = LazyLock::new(|| {
    let system = "http://www.wapforum.org/DTD/wml12.dtd";
    table(DocumentType { number: 0x09, public: "-//WAPFORUM//DTD WML 1.2//EN", system, root: "wml" }, 2)
});

/// WML 1.3.
pub static WML_1_3: LazyLock<TokenTable> = LazyLock::new(|| {
    let system = "http://www.wapforum.org/DTD/wml13.dtd";
    table(DocumentType { number: 0x0A, public: "-//WAPFORUM//DTD WML 1.3//EN", system, root: "wml" }, 3)
});

/// WML 1.1 as Phone.com's browsers ask for it: its own number, the same tokens. Its additional elements are spelled out.
pub static PHONE_COM_1_1: LazyLock<TokenTable> = LazyLock::new(|| {
    let system = "http://www.phone.com/dtd/wml11.dtd";
    table(DocumentType { number: 0x1108, public: "-//PHONE.COM//DTD WML 1.1//EN", system, root: "wml" }, 1)
});

/// WML 1.3 as Phone.com's browsers ask for it.
pub static PHONE_COM_1_3: LazyLock<TokenTable> = LazyLock::new(|| {
    let system = "http://www.phone.com/dtd/wml13.dtd";
    table(DocumentType { number: 0x110D, public: "-//PHONE.COM//DTD WML 1.3//EN", system, root: "wml" }, 3)
});

/// Number 2, WML 1.0 by the registry; see the module.
pub static WML_1_0_AS_1_1: LazyLock<TokenTable> = LazyLock::new(|| {
    table(
        DocumentType {
            number: 0x02,
            public: "-//WAPFORUM//DTD WML 1.0//EN",
            system: SYSTEM_1_1,
            root: "wml",
        },
        1,
    )
});

const SYSTEM_1_1: &str = "http://www.wapforum.org/DTD/wml_1.1.xml";

fn table(document_type: DocumentType, version: tokens::Since) -> TokenTable {
    let tags = tokens::TAGS.iter().map(|&(code, name, _)| Tag { page: 0, code, name });
    let starts =
        tokens::STARTS.iter().map(|&(code, name, value, _)| AttributeStart { page: 0, code, name, value });
    let values = tokens::VALUES.iter().map(|&(code, text)| AttributeValue { page: 0, code, text });
    let later = |code: u8, since: tokens::Since| (since > version).then_some(code);
    let tags_later: Vec<u8> = tokens::TAGS.iter().filter_map(|t| later(t.0, t.2)).collect();
    let starts_later: Vec<u8> = tokens::STARTS.iter().filter_map(|s| later(s.0, s.3)).collect();
    TokenTable::new(document_type, tags, starts, values, &[])
        .writing(|tag| !tags_later.contains(&tag.code), |start| !starts_later.contains(&start.code))
}

/// What an element's content is, which decides about white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Elements only; white space between them means nothing.
    Structure,
    /// A line of its own: space at its edges is not shown.
    Block,
    /// Among the text of a block.
    Running,
    /// Ends a line, so that space around it is not shown; it is among the text otherwise.
    Break,
    /// Text as it is written.
    Verbatim,
}

/// The class of the element called `name`, of WML and of the notices. One that is unknown counts as running text: nothing is
/// lost then.
pub fn class(name: &str) -> Class {
    match name {
        "wml" | "head" | "template" | "card" | "do" | "onevent" | "go" | "prev" | "refresh" | "noop"
        | "setvar" | "postfield" | "access" | "meta" | "timer" | "tr" | "optgroup" | "si" | "info" | "sl"
        | "co" | "invalidate-object" | "invalidate-service" => Class::Structure,
        "p" | "td" | "option" | "indication" | "item" => Class::Block,
        "table" | "br" => Class::Break,
        "pre" => Class::Verbatim,
        _ => Class::Running,
    }
}

/// Whether elements called `name` hold elements only, although they stand among text.
pub fn holds_elements_only(name: &str) -> bool {
    matches!(class(name), Class::Structure) || matches!(name, "table" | "select")
}
