//! Entities: those of XML, of the WML DTD, of HTML, and those that a document declares for itself.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quick_xml::escape::{resolve_html5_entity, resolve_xml_entity};

/// Octets that a document's own entities may become in all, and that one may be: against a laugh repeated a billion times.
const MOST: usize = 1 << 20;
const MOST_EACH: usize = 1 << 14;
const MOST_DECLARED: usize = 256;

/// What entities of a document stand for.
#[derive(Default)]
pub(super) struct Entities {
    declared: BTreeMap<String, String>,
    spent: usize,
}

impl Entities {
    /// Reads the `<!ENTITY name "value">` of a document type declaration. Parameter entities and those that are elsewhere are
    /// left out; the first declaration of a name counts (XML 1.0, 4.2).
    pub fn declare(&mut self, doctype: &str) {
        for declaration in doctype.split("<!ENTITY").skip(1).take(MOST_DECLARED) {
            let (name, rest) = word(declaration);
            let rest = rest.trim_ascii_start();
            let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
            let Some((value, _)) = rest[1..].split_once(quote) else { continue };
            // References inside are replaced now, by what is declared so far: no circles, and no growth by nesting.
            if let Ok(value) = self.text(value) {
                let value = value.into_owned();
                if value.len() <= MOST_EACH && !name.is_empty() && name != "%" {
                    self.declared.entry(name.to_owned()).or_insert(value);
                }
            }
        }
    }

    /// What `&name;` stands for; `name` may be a number with `#`.
    pub fn one(&mut self, name: &str) -> Result<Cow<'static, str>, String> {
        if let Some(number) = name.strip_prefix('#') {
            let code = match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            // XML 1.0 (4.1): the character has to be one that may stand in a document.
            let fine = |c: &char| *c >= ' ' || matches!(c, '\t' | '\n' | '\r');
            let character = code.ok().and_then(char::from_u32).filter(fine);
            let plain = !number.starts_with('+') && !number.starts_with("x+");
            return match character.filter(|_| plain) {
                Some(character) => Ok(character.to_string().into()),
                None => Err(format!("`&{name};` is no character")),
            };
        }
        if let Some(text) = resolve_xml_entity(name) {
            return Ok(text.into());
        }
        if let Some(text) = self.declared.get(name) {
            self.spent += text.len();
            if self.spent > MOST {
                return Err("the document's entities become too large".into());
            }
            return Ok(text.clone().into());
        }
        resolve_html5_entity(name)
            .map(Cow::Borrowed)
            .ok_or_else(|| format!("the entity `&{name};` is not known"))
    }

    /// `raw` with every reference replaced.
    pub fn text<'r>(&mut self, raw: &'r str) -> Result<Cow<'r, str>, String> {
        let Some(first) = memchr::memchr(b'&', raw.as_bytes()) else { return Ok(Cow::Borrowed(raw)) };
        let (mut text, mut rest) = (raw[..first].to_owned(), &raw[first..]);
        while let Some(after) = rest.strip_prefix('&') {
            let (name, tail) =
                after.split_once(';').filter(|(name, _)| is_reference(name)).ok_or(UNCLOSED)?;
            text.push_str(&self.one(name)?);
            let next = memchr::memchr(b'&', tail.as_bytes()).unwrap_or(tail.len());
            text.push_str(&tail[..next]);
            rest = &tail[next..];
        }
        Ok(Cow::Owned(text))
    }
}

/// Said of an ampersand that begins no reference.
pub(super) const UNCLOSED: &str =
    "a reference begins with `&` and has no `;` (write `&amp;` for an ampersand)";

fn is_reference(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|o| o.is_ascii_alphanumeric() || b"#.-_:".contains(&o) || o >= 0x80)
}

/// The word that `text` begins with after white space, and the rest.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_ascii_start();
    text.split_at(text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_of_xml_html_and_the_document_are_known() {
        let mut entities = Entities::default();
        entities.declare("wml [<!ENTITY who 'me'><!ENTITY said \"&who; &amp; you\"><!ENTITY % p 'x'>]");
        let text = entities.text("&lt;&said;&nbsp;&shy;&eacute;&#65;&#x42;&gt;").expect("known");
        assert_eq!(text, "<me & you\u{a0}\u{ad}\u{e9}AB>");
    }

    #[test]
    fn what_is_no_entity_is_an_error() {
        let mut entities = Entities::default();
        for bad in ["&nosuch;", "a & b", "&", "&#0;", "&#xD800;", "&#+65;", "&;"] {
            assert!(entities.text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn entities_inside_entities_do_not_explode() {
        let mut laughs = String::from("<!ENTITY l0 'hahahahaha'>");
        for n in 1..30 {
            laughs.push_str(&format!("<!ENTITY l{n} '{}'>", format!("&l{};", n - 1).repeat(10)));
        }
        let mut entities = Entities::default();
        entities.declare(&laughs);
        assert!(entities.declared.values().map(String::len).sum::<usize>() <= MOST);
        assert!(entities.text(&"&l3;".repeat(1000)).is_err(), "ten octets become ten million");
    }
}
