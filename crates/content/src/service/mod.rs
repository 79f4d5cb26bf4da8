//! Service indication, service loading and cache operation: the small documents that are pushed to phones.
//!
//! Source: WAP-167 (SI 1.0), WAP-168 (SL 1.0), WAP-175 (CO 1.0). Tokens as Kannel and Wireshark have them.

pub mod time;

use std::sync::LazyLock;

use crate::wbxml::{AttributeStart, AttributeValue, DocumentType, Tag, TokenTable};

/// Service indication: a message about something new, with an address.
pub static SI: LazyLock<TokenTable> = LazyLock::new(|| {
    let system = "http://www.wapforum.org/DTD/si.dtd";
    let document_type =
        DocumentType { number: 0x05, public: "-//WAPFORUM//DTD SI 1.0//EN", system, root: "si" };
    let starts = [
        (0x05, "action", "signal-none"),
        (0x06, "action", "signal-low"),
        (0x07, "action", "signal-medium"),
        (0x08, "action", "signal-high"),
        (0x09, "action", "delete"),
        (0x0A, "created", ""),
        (0x0B, "href", ""),
        (0x0C, "href", "http://"),
        (0x0D, "href", "http://www."),
        (0x0E, "href", "https://"),
        (0x0F, "href", "https://www."),
        (0x10, "si-expires", ""),
        (0x11, "si-id", ""),
        (0x12, "class", ""),
    ];
    table(document_type, &[(0x05, "si"), (0x06, "indication"), (0x07, "info"), (0x08, "item")], &starts)
});

/// Service loading: an address that the phone fetches.
pub static SL: LazyLock<TokenTable> = LazyLock::new(|| {
    let system = "http://www.wapforum.org/DTD/sl.dtd";
    let document_type =
        DocumentType { number: 0x06, public: "-//WAPFORUM//DTD SL 1.0//EN", system, root: "sl" };
    let starts = [
        (0x05, "action", "execute-low"),
        (0x06, "action", "execute-high"),
        (0x07, "action", "cache"),
        (0x08, "href", ""),
        (0x09, "href", "http://"),
        (0x0A, "href", "http://www."),
        (0x0B, "href", "https://"),
        (0x0C, "href", "https://www."),
    ];
    table(document_type, &[(0x05, "sl")], &starts)
});

/// Cache operation: what the phone shall forget.
pub static CO: LazyLock<TokenTable> = LazyLock::new(|| {
    let system = "http://www.wapforum.org/DTD/co_1.0.dtd";
    let document_type =
        DocumentType { number: 0x07, public: "-//WAPFORUM//DTD CO 1.0//EN", system, root: "co" };
    let starts = [
        (0x05, "uri", ""),
        (0x06, "uri", "http://"),
        (0x07, "uri", "http://www."),
        (0x08, "uri", "https://"),
        (0x09, "uri", "https://www."),
    ];
    table(document_type, &[(0x05, "co"), (0x06, "invalidate-object"), (0x07, "invalidate-service")], &starts)
});

fn table(
    document_type: DocumentType,
    tags: &[(u8, &'static str)],
    starts: &[(u8, &'static str, &'static str)],
) -> TokenTable {
    let values = [(0x85, ".com/"), (0x86, ".edu/"), (0x87, ".net/"), (0x88, ".org/")];
    TokenTable::new(
        document_type,
        tags.iter().map(|&(code, name)| Tag { page: 0, code, name }),
        starts.iter().map(|&(code, name, value)| AttributeStart { page: 0, code, name, value }),
        values.map(|(code, text)| AttributeValue { page: 0, code, text }),
        &["created", "si-expires"],
    )
}
