//! References to variables in decks: `$name`, `$(name)`, `$(name:escape)`; `$$` is a dollar sign (WAP-191, section 10.3).

use std::borrow::Cow;

use crate::wbxml::{Extension, Piece};

/// How a variable's value is put in place: the number of its extension token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// With every octet that may not stand in a URL as `%XX`.
    Escape = 0,
    /// With `%XX` made characters again.
    Unescape = 1,
    /// As it is.
    None = 2,
}

impl Conversion {
    /// What a reference without a conversion means in the attribute `name`; `None` is text between elements. In addresses it
    /// is escaped, elsewhere left alone.
    pub fn default_in(name: Option<&str>) -> Conversion {
        let addresses = ["href", "src", "onpick", "ontimer", "onenterforward", "onenterbackward"];
        if name.is_some_and(|name| addresses.contains(&name)) { Conversion::Escape } else { Conversion::None }
    }

    fn from_name(name: &str) -> Option<Conversion> {
        let is = |whole: &str| name.eq_ignore_ascii_case(whole) || name.eq_ignore_ascii_case(&whole[..1]);
        match () {
            () if is("escape") => Some(Conversion::Escape),
            () if is("unesc") => Some(Conversion::Unescape),
            () if is("noesc") => Some(Conversion::None),
            () => None,
        }
    }
}

/// A part of text with variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text.
    Text(&'a str),
    /// A variable and its conversion.
    Variable(&'a str, Conversion),
    /// A dollar sign that begins no reference, as text. The deck has a mistake there.
    Stray(&'a str),
}

/// Cuts `text` at its references. `default` is the conversion of those that name none.
pub fn parts(text: &str, default: Conversion) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, len) = match memchr::memchr(b'$', rest.as_bytes()) {
            None => (Part::Text(rest), rest.len()),
            Some(0) => reference(rest, default),
            Some(at) => (Part::Text(&rest[..at]), at),
        };
        rest = &rest[len..];
        Some(part)
    })
}

/// What the dollar sign at the start of `text` begins, and its length.
fn reference(text: &str, default: Conversion) -> (Part<'_>, usize) {
    let stray = (Part::Stray(&text[..1]), 1);
    let after = &text[1..];
    match after.as_bytes().first() {
        Some(b'$') => (Part::Text(&text[..1]), 2),
        Some(b'(') => {
            // A name, then a colon and a conversion or not, then the parenthesis. Names are bounded by the text before it.
            let inside = &after[1..];
            let name = &inside[..name_len(inside)];
            let tail = &inside[name.len()..];
            if name.is_empty() {
                return stray;
            }
            if tail.starts_with(')') {
                return (Part::Variable(name, default), 3 + name.len());
            }
            let Some(word) = tail.strip_prefix(':') else { return stray };
            let word = &word[..word.bytes().take_while(u8::is_ascii_alphabetic).count()];
            let closed = tail[1 + word.len()..].starts_with(')');
            match Conversion::from_name(word).filter(|_| closed) {
                Some(conversion) => (Part::Variable(name, conversion), 4 + name.len() + word.len()),
                None => stray,
            }
        }
        _ => match name_len(after) {
            0 => stray,
            len => (Part::Variable(&after[..len], default), 1 + len),
        },
    }
}

/// Length of the variable's name that `text` begins with: a letter or underscore, then digits too.
fn name_len(text: &str) -> usize {
    let octets = text.as_bytes();
    if !octets.first().is_some_and(|o| o.is_ascii_alphabetic() || *o == b'_') {
        return 0;
    }
    octets.iter().take_while(|o| o.is_ascii_alphanumeric() || **o == b'_').count()
}

/// The token for a variable.
pub fn extension(name: &str, conversion: Conversion) -> Extension {
    Extension { number: conversion as u8, text: Some(name.to_owned()) }
}

/// A piece as a deck's text: references written out, dollar signs doubled. `default` is the conversion that need not be named.
pub fn text(piece: &Piece, default: Conversion) -> Cow<'_, str> {
    match piece {
        Piece::Text(text) if !text.contains('$') => Cow::Borrowed(text),
        Piece::Text(text) => Cow::Owned(text.replace('$', "$$")),
        Piece::Extension(Extension { number, text: Some(name) })
            if name_len(name) == name.len() && *number <= 2 =>
        {
            let conversion = [":escape", ":unesc", ":noesc"][usize::from(*number)];
            Cow::Owned(format!("$({name}{})", if *number == default as u8 { "" } else { conversion }))
        }
        Piece::Extension(_) | Piece::Opaque(_) => Cow::Borrowed(""),
    }
}

#[cfg(test)]
mod tests {
    use super::Conversion::{Escape, None as Plain, Unescape};
    use super::*;

    fn all(text: &str) -> Vec<Part<'_>> {
        parts(text, Plain).collect()
    }

    #[test]
    fn references_are_found_in_all_their_forms() {
        use Part::{Text, Variable};
        assert_eq!(
            all("a $x-$(y)$(z:e)$(z:UNESC)$(z:noesc)b"),
            [
                Text("a "),
                Variable("x", Plain),
                Text("-"),
                Variable("y", Plain),
                Variable("z", Escape),
                Variable("z", Unescape),
                Variable("z", Plain),
                Text("b")
            ]
        );
        assert_eq!(parts("$(p)", Conversion::default_in(Some("href"))).next(), Some(Variable("p", Escape)));
        assert_eq!(parts("$(p)", Conversion::default_in(Some("title"))).next(), Some(Variable("p", Plain)));
    }

    #[test]
    fn two_dollar_signs_are_one_and_a_stray_one_stays() {
        assert_eq!(all("$$5"), [Part::Text("$"), Part::Text("5")]);
        for text in ["$5", "$(", "$( )", "$(1x)", "$(a:z)", "$(a:e", "$(a b)", "$"] {
            assert_eq!(all(text)[0], Part::Stray("$"), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["$(x)", "$(x:escape)", "$(x:unesc)", "a$$b"] {
            let pieces: Vec<Piece> = parts(text, Plain)
                .map(|part| match part {
                    Part::Variable(name, conversion) => Piece::Extension(extension(name, conversion)),
                    Part::Text(text) | Part::Stray(text) => Piece::Text(text.to_owned()),
                })
                .collect();
            assert_eq!(pieces.iter().map(|p| super::text(p, Plain)).collect::<String>(), text);
        }
    }
}
