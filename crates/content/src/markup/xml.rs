//! XML text -> calls for what is in it.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::ParseError;
use super::entities::{Entities, UNCLOSED};
use super::source::Source;

/// Elements inside each other, and attributes of one element.
const DEPTH: usize = 128;
const ATTRIBUTES: usize = 128;

/// Who is told what stands in a document, in its order. `at` is an octet of the source's text.
pub(super) trait Sink {
    /// The document type declaration, with its public identifier if it has one.
    fn doctype(&mut self, public: Option<&str>);
    /// An element begins.
    fn start(&mut self, name: &str, attributes: &[(&str, String)], at: usize);
    /// Text inside an element, references replaced. One text may come in several calls.
    fn text(&mut self, text: &str, at: usize);
    /// The innermost element ends.
    fn end(&mut self);
}

/// Reads the whole of `source`.
pub(super) fn read(source: &Source<'_>, sink: &mut impl Sink) -> Result<(), ParseError> {
    let mut reader = Reader::from_str(&source.text);
    let mut state = State { source, entities: Entities::default(), depth: 0, had_root: false };
    loop {
        let at = reader.buffer_position() as usize;
        match reader.read_event() {
            Ok(Event::Start(tag)) => state.start(&tag, at, sink)?,
            Ok(Event::Empty(tag)) => {
                state.start(&tag, at, sink)?;
                state.end(sink);
            }
            Ok(Event::End(_)) => state.end(sink),
            Ok(Event::Text(text)) => state.text(&text, at, sink)?,
            Ok(Event::CData(text)) => state.text(&text, at, sink)?,
            Ok(Event::GeneralRef(name)) => {
                let text = state.entities.one(&name).map_err(|reason| source.error(at, reason))?;
                state.text(&text, at, sink)?;
            }
            Ok(Event::DocType(doctype)) => {
                state.entities.declare(&doctype);
                sink.doctype(public_of(&doctype));
            }
            Ok(Event::Comment(_) | Event::PI(_) | Event::Decl(_)) => {}
            Ok(Event::Eof) if state.depth > 0 => {
                return Err(source.error(source.text.len(), "the document ends inside an element"));
            }
            Ok(Event::Eof) if !state.had_root => {
                return Err(source.error(source.text.len(), "the document has no element"));
            }
            Ok(Event::Eof) => return Ok(()),
            Err(error) => return Err(source.error(reader.error_position() as usize, reason(&error))),
        }
    }
}

/// quick-xml's own words, but for the case that writers of decks meet daily.
fn reason(error: &quick_xml::Error) -> String {
    use quick_xml::errors::IllFormedError::UnclosedReference;
    match error {
        quick_xml::Error::IllFormed(UnclosedReference) => UNCLOSED.into(),
        other => other.to_string(),
    }
}

struct State<'s, 'a> {
    source: &'s Source<'a>,
    entities: Entities,
    depth: usize,
    had_root: bool,
}

impl State<'_, '_> {
    fn start(&mut self, tag: &BytesStart<'_>, at: usize, sink: &mut impl Sink) -> Result<(), ParseError> {
        let error = |reason: String| self.source.error(at, reason);
        if self.depth == 0 && self.had_root {
            return Err(error("a second element beside the outermost one".into()));
        }
        if self.depth == DEPTH {
            return Err(error(format!("more than {DEPTH} elements inside each other")));
        }
        let name = tag.name().into_inner();
        if !is_name(name) {
            return Err(error(format!("`{name}` is no name of an element")));
        }
        let mut attributes: Vec<(&str, String)> = Vec::new();
        // The library's own check for names given twice compares every pair; here their number is bounded first.
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|e| error(format!("in element `{name}`: {e}")))?;
            let key = attribute.key.into_inner();
            if !is_name(key) {
                return Err(error(format!("`{key}` is no name of an attribute")));
            }
            if attributes.iter().any(|(other, _)| *other == key) {
                return Err(error(format!("the attribute `{key}` of element `{name}` is given twice")));
            }
            if attributes.len() == ATTRIBUTES {
                return Err(error(format!("element `{name}` has more than {ATTRIBUTES} attributes")));
            }
            let value = self.entities.text(&attribute.value);
            let value = value.map_err(|reason| error(format!("in element `{name}`: {reason}")))?;
            // XML 1.0 (3.3.3): white space in values is spaces.
            attributes.push((key, value.replace("\r\n", " ").replace(['\t', '\n', '\r'], " ")));
        }
        (self.depth, self.had_root) = (self.depth + 1, true);
        sink.start(name, &attributes, at);
        Ok(())
    }

    fn text(&mut self, text: &str, at: usize, sink: &mut impl Sink) -> Result<(), ParseError> {
        if self.depth > 0 {
            sink.text(text, at);
        } else if let Some(bad) = text.find(|c: char| !c.is_ascii_whitespace()) {
            return Err(self.source.error(at + bad, "text outside of the outermost element"));
        }
        Ok(())
    }

    fn end(&mut self, sink: &mut impl Sink) {
        self.depth -= 1;
        sink.end();
    }
}

/// The rule for names of XML 1.0 (2.3), with every character above ASCII allowed.
pub(super) fn is_name(name: &str) -> bool {
    let letter = |o: u8| o.is_ascii_alphabetic() || matches!(o, b'_' | b':') || o >= 0x80;
    let octets = name.as_bytes();
    octets.first().is_some_and(|&o| letter(o))
        && octets.iter().all(|&o| letter(o) || o.is_ascii_digit() || b"-.".contains(&o))
}

/// The public identifier in `wml PUBLIC "public" "system" [...]`.
fn public_of(text: &str) -> Option<&str> {
    let (_, rest) = text.trim_ascii().split_once(|c: char| c.is_ascii_whitespace())?;
    let mut quoted = rest.trim_ascii_start().strip_prefix("PUBLIC")?.trim_ascii_start().chars();
    let quote = quoted.next().filter(|c| matches!(c, '"' | '\''))?;
    quoted.as_str().split_once(quote).map(|(public, _)| public)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_identifier_is_found() {
        assert_eq!(public_of("wml PUBLIC '-//X//EN'\n\"http://x\" [ <!ENTITY a 'b'> ]"), Some("-//X//EN"));
        assert_eq!(public_of("wml SYSTEM 'http://x'"), None);
        assert_eq!(public_of("wml"), None);
    }

    #[test]
    fn names_are_checked() {
        assert!(is_name("xml:lang") && is_name("_a-1.x") && is_name("\u{e9}t\u{e9}"));
        assert!(!is_name("") && !is_name("1a") && !is_name("a<b") && !is_name("-a"));
    }
}
