//! `Cache-Control` and `Pragma`.

use super::element::{integer, is_token, pair, split};
use super::media::{decode_parameters, encode_parameters};
use super::read::{Framed, Reader, string};
use super::{media, names, write};

/// What a directive's value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    Seconds,
    /// Seconds or nothing.
    MaybeSeconds,
    /// Names of headers or nothing.
    Fields,
}

/// Directives by number.
const DIRECTIVES: [(&str, Value); 12] = [
    ("no-cache", Value::Fields),
    ("no-store", Value::None),
    ("max-age", Value::Seconds),
    ("max-stale", Value::MaybeSeconds),
    ("min-fresh", Value::Seconds),
    ("only-if-cached", Value::None),
    ("public", Value::None),
    ("private", Value::Fields),
    ("no-transform", Value::None),
    ("must-revalidate", Value::None),
    ("proxy-revalidate", Value::None),
    ("s-maxage", Value::Seconds),
];

/// One directive. `s-maxage` has a number since 1.3.
pub(super) fn encode(value: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    let (name, value) = pair(value);
    let known = DIRECTIVES.iter().position(|directive| directive.0.eq_ignore_ascii_case(name));
    let Some(code) = known.filter(|&code| minor >= 3 || code < 11) else {
        return extension(name, value.as_deref(), out);
    };
    match (DIRECTIVES[code].1, value) {
        (Value::None | Value::MaybeSeconds | Value::Fields, None) => write::short(code as u8, out),
        (Value::Seconds | Value::MaybeSeconds, Some(seconds)) => {
            let seconds = integer(&seconds)?;
            return write::with_length(out, |out| {
                write::short(code as u8, out);
                write::integer(seconds, out);
                Some(())
            });
        }
        (Value::Fields, Some(names)) => {
            return write::with_length(out, |out| {
                write::short(code as u8, out);
                split(&names, b',').try_for_each(|name| names::encode_field_name(name, minor, out))
            });
        }
        (Value::None, Some(_)) | (Value::Seconds, None) => return None,
    }
    Some(())
}

/// A directive without a number: a word, or a word with a value.
fn extension(name: &str, value: Option<&str>, out: &mut Vec<u8>) -> Option<()> {
    if !is_token(name) {
        return None;
    }
    let Some(value) = value else {
        write::text(name, out);
        return Some(());
    };
    // The name is text even if it has a number as a parameter: that would be read as a directive.
    write::with_length(out, |out| media::encode_untyped(name, Some(value), out))
}

pub(super) fn decode(value: Framed<'_>) -> Option<String> {
    match value {
        Framed::Short(code) => DIRECTIVES.get(usize::from(code)).map(|directive| directive.0.to_owned()),
        Framed::Text(text) => Some(string(text).into_owned()),
        Framed::Data(data) => {
            let mut rest = Reader(data);
            if rest.peek()? & 0x80 == 0 {
                return parameter(rest);
            }
            let (name, value) = *DIRECTIVES.get(usize::from(rest.octet().ok()? & 0x7F))?;
            match value {
                Value::None => None,
                Value::Seconds | Value::MaybeSeconds => {
                    let seconds = rest.integer().ok()?;
                    rest.is_empty().then(|| format!("{name}={seconds}"))
                }
                Value::Fields => {
                    let mut names = Vec::new();
                    while !rest.is_empty() {
                        names.push(names::decode_field_name(rest.framed().ok()?)?);
                    }
                    Some(format!("{name}=\"{}\"", names.join(", ").replace(['"', '\\'], "")))
                }
            }
        }
    }
}

/// `no-cache`, or a parameter.
pub(super) fn encode_pragma(value: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    if value.eq_ignore_ascii_case("no-cache") {
        write::short(0, out);
        return Some(());
    }
    split(value, b';').next()?;
    write::with_length(out, |out| encode_parameters(value, minor, out))
}

pub(super) fn decode_pragma(value: Framed<'_>) -> Option<String> {
    if value == Framed::Short(0) { Some("no-cache".into()) } else { parameter(value.data()?) }
}

fn parameter(rest: Reader<'_>) -> Option<String> {
    let mut text = String::new();
    decode_parameters(rest, &mut text)?;
    text.strip_prefix("; ").map(str::to_owned)
}
