//! A document's text, whatever character set it came in, and where in it something stands.

use std::borrow::Cow;
use std::fmt;

use airloom_wire::charset::{UTF_16BE, UTF_16LE};

use super::ParseError;
use crate::charset::Charset;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// The text of a document.
pub(super) struct Source<'a> {
    pub text: Cow<'a, str>,
}

impl<'a> Source<'a> {
    /// Finds the character set as XML 1.0 appendix F does: a byte order mark first, then the transport's word, then two
    /// octets a character, then the declaration, then UTF-8.
    pub fn new(octets: &'a [u8], said: Option<Charset>) -> Result<Source<'a>, ParseError> {
        let (utf_16be, utf_16le) = (Charset::from_mib(UTF_16BE), Charset::from_mib(UTF_16LE));
        let (charset, octets) = match octets {
            [0xEF, 0xBB, 0xBF, rest @ ..] => (Some(Charset::UTF_8), rest),
            [0xFE, 0xFF, rest @ ..] => (utf_16be, rest),
            [0xFF, 0xFE, rest @ ..] => (utf_16le, rest),
            _ if said.is_some() => (said, octets),
            [0, b'<', ..] => (utf_16be, octets),
            [b'<', 0, ..] => (utf_16le, octets),
            _ => (None, octets),
        };
        let at_start = |reason: String| ParseError { place: Place { line: 1, column: 1 }, reason };
        let charset = match (charset, declared(octets)) {
            (Some(charset), _) => charset,
            (None, None) => Charset::UTF_8,
            (None, Some(name)) => {
                let charset = Charset::from_name(&name);
                charset.ok_or_else(|| at_start(format!("the character set `{name}` is not known")))?
            }
        };
        let source = Source { text: charset.decode(octets) };
        // XML 1.0 (2.2): of the control characters a document may hold tab, line feed and carriage return only.
        let control = |o: &u8| *o < 0x20 && !matches!(o, b'\t' | b'\n' | b'\r');
        if let Some(at) = source.text.bytes().position(|o| control(&o)) {
            let code = source.text.as_bytes()[at];
            return Err(source.error(at, format!("the character U+{code:04X} may not stand in XML")));
        }
        Ok(source)
    }

    /// Where the octet `at` of the text is.
    pub fn place(&self, at: usize) -> Place {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        // Characters, counted by the octets that begin one.
        let column = before[line_start..].iter().filter(|&&o| o & 0xC0 != 0x80).count() + 1;
        Place { line: memchr::memchr_iter(b'\n', before).count() + 1, column }
    }

    pub fn error(&self, at: usize, reason: impl Into<String>) -> ParseError {
        ParseError { place: self.place(at), reason: reason.into() }
    }
}

/// The name in `<?xml ... encoding="NAME"`.
pub(crate) fn declared(octets: &[u8]) -> Option<String> {
    let head = octets.strip_prefix(b"<?xml")?;
    let head = &head[..memchr::memmem::find(&head[..head.len().min(400)], b"?>")?];
    let after = &head[memchr::memmem::find(head, b"encoding")? + b"encoding".len()..];
    let after = after.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, name) = after.split_first()?;
    let name = &name[..memchr::memchr(quote, name).filter(|_| matches!(quote, b'"' | b'\''))?];
    Some(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(octets: &[u8]) -> String {
        Source::new(octets, None).expect("readable").text.into_owned()
    }

    #[test]
    fn the_character_set_is_found_by_mark_form_or_declaration() {
        let utf_16: Vec<u8> = "<a>\u{fc}</a>".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(text(&utf_16), "<a>\u{fc}</a>");
        assert_eq!(text(&[&[0xFE, 0xFF], &utf_16[..]].concat()), "<a>\u{fc}</a>");
        assert_eq!(text(b"\xEF\xBB\xBF<a/>"), "<a/>");
        let latin = b"<?xml version='1.0' encoding = 'ISO-8859-1'?><a>\xFC</a>";
        assert!(text(latin).ends_with("<a>\u{fc}</a>"));
        let cyrillic = Charset::from_name("windows-1251");
        let source = Source::new(b"<a>\xE7</a>", cyrillic).expect("readable");
        assert_eq!(source.text, "<a>\u{437}</a>");
    }

    #[test]
    fn an_unknown_set_and_a_control_character_are_errors_with_a_place() {
        let unknown = Source::new(b"<?xml encoding='EBCDIC'?>", None).err().expect("refused");
        assert!(unknown.reason.contains("EBCDIC"));
        let nul = Source::new(b"<a>\n\xC3\xBC\0", None).err().expect("refused");
        assert_eq!(nul.to_string(), "line 2, column 2: the character U+0000 may not stand in XML");
    }
}
