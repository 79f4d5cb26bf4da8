//! Media types with their parameters: `Accept`, `Content-Type`, `Content-Disposition`.

use std::borrow::Cow;
use std::sync::LazyLock;

use airloom_wire::{charset, uintvar};

use super::element::{always_quoted, integer, is_token, pair, q, q_text, q_value, quoted, split};
use super::index::Index;
use super::media_types::MEDIA_TYPES;
use super::parameters::{self, Kind, SECURITY};
use super::read::{Framed, Reader, string};
use super::{date, names, write};

/// The number of the media type `name` for a peer of encoding version `1.minor`.
fn number(name: &str, minor: u8) -> Option<u16> {
    static NAMES: LazyLock<Index> = LazyLock::new(|| Index::new(MEDIA_TYPES.iter().map(|row| row.0)));
    let row = NAMES.places(name).map(|at| &MEDIA_TYPES[at]).find(|row| row.0.eq_ignore_ascii_case(name))?;
    (row.2 <= minor).then_some(row.1)
}

/// The media type with this number.
fn name(number: u64) -> Option<&'static str> {
    static BY_NUMBER: LazyLock<Vec<(u16, &str)>> = LazyLock::new(|| {
        let mut rows: Vec<_> = MEDIA_TYPES.iter().map(|row| (row.1, row.0)).collect();
        rows.sort_unstable();
        rows
    });
    let at = BY_NUMBER.binary_search_by_key(&u16::try_from(number).ok()?, |row| row.0).ok()?;
    Some(BY_NUMBER[at].1)
}

/// `type/subtype; name=value ...`: the constrained form if there are no parameters, else the general one.
pub(super) fn encode(value: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    let (media, parameters) = head(value);
    if !media.contains('/') || media.contains([' ', '\t', '"', ',']) {
        return None;
    }
    let number = number(media, minor);
    if split(parameters, b';').next().is_none() {
        match number {
            Some(number @ 0..=0x7F) => write::short(number as u8, out),
            Some(number) => {
                return write::with_length(out, |out| {
                    write::long(u64::from(number), out);
                    Some(())
                });
            }
            None => write::text(media, out),
        }
        return Some(());
    }
    write::with_length(out, |out| {
        match number {
            Some(number) => write::integer(u64::from(number), out),
            None => write::text(media, out),
        }
        encode_parameters(parameters, minor, out)
    })
}

/// What [`encode`] wrote.
pub(super) fn decode(value: Framed<'_>) -> Option<String> {
    match value {
        Framed::Short(number) => name(u64::from(number)).map(str::to_owned),
        Framed::Text(text) => Some(string(text).into_owned()),
        Framed::Data(data) => {
            let mut rest = Reader(data);
            let mut text = match rest.peek()? {
                32..=127 => string(rest.text().ok()?).into_owned(),
                _ => name(rest.integer().ok()?)?.to_owned(),
            };
            decode_parameters(rest, &mut text)?;
            Some(text)
        }
    }
}

/// `attachment; filename=x` (and `form-data`, `inline`).
pub(super) fn encode_disposition(value: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    let (kind, parameters) = head(value);
    if !is_token(kind) {
        return None;
    }
    write::with_length(out, |out| {
        match DISPOSITIONS.iter().position(|known| known.eq_ignore_ascii_case(kind)) {
            Some(number) => write::short(number as u8, out),
            None => write::text(kind, out),
        }
        encode_parameters(parameters, minor, out)
    })
}

pub(super) fn decode_disposition(value: Framed<'_>) -> Option<String> {
    let mut rest = value.data()?;
    let mut text = match rest.peek()? {
        32..=127 => string(rest.text().ok()?).into_owned(),
        _ => (*DISPOSITIONS.get(usize::try_from(rest.integer().ok()?).ok()?)?).to_owned(),
    };
    decode_parameters(rest, &mut text)?;
    Some(text)
}

const DISPOSITIONS: [&str; 3] = ["form-data", "attachment", "inline"];

/// A value without its parameters, and those.
fn head(value: &str) -> (&str, &str) {
    let (head, rest) = value.split_once(';').unwrap_or((value, ""));
    (head.trim_matches([' ', '\t']), rest)
}

/// Parameters between semicolons.
pub(super) fn encode_parameters(text: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    for parameter in split(text, b';') {
        let (name, value) = pair(parameter);
        encode_parameter(name, value, minor, out)?;
    }
    Some(())
}

fn encode_parameter(name: &str, value: Option<Cow<'_, str>>, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    if name.eq_ignore_ascii_case("q") && value.as_deref().and_then(q) == Some(1000) {
        return Some(());
    }
    let start = out.len();
    for &(_, code, _, kind) in parameters::by_name(name, minor) {
        write::short(code, out);
        if encode_typed(kind, value.as_deref(), minor, out).is_some() {
            return Some(());
        }
        out.truncate(start);
    }
    encode_untyped(name, value.as_deref(), out)
}

/// A parameter whose name is text, whether or not it has a number.
pub(super) fn encode_untyped(name: &str, value: Option<&str>, out: &mut Vec<u8>) -> Option<()> {
    if !is_token(name) {
        return None;
    }
    write::text(name, out);
    match value {
        None => out.push(0),
        Some(value) => match integer(value) {
            Some(n) => write::integer(n, out),
            None => text_value(value, out),
        },
    }
    Some(())
}

fn encode_typed(kind: Kind, value: Option<&str>, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    let Some(value) = value else {
        return (kind == Kind::NoValue).then(|| out.push(0));
    };
    match kind {
        Kind::Charset => match value {
            "*" => write::short(0, out),
            name => write::integer(u64::from(charset::mib_enum(name)?), out),
        },
        Kind::Date => write::long(date::parse(value)?, out),
        Kind::FieldName => names::encode_field_name(value, minor, out)?,
        Kind::Integer => write::integer(integer(value)?, out),
        Kind::MediaType => match number(value, minor) {
            Some(number @ 0..=0x7F) => write::short(number as u8, out),
            _ if value.contains('/') => write::text(value, out),
            _ => return None,
        },
        Kind::NoValue => return None,
        Kind::Q => uintvar::emit(q_value(q(value)?), out),
        Kind::Security => {
            write::short(SECURITY.iter().position(|name| name.eq_ignore_ascii_case(value))? as u8, out)
        }
        Kind::Text => write::text(value, out),
        Kind::TextValue => text_value(value, out),
        Kind::Version => names::encode_version(value, out)?,
    }
    Some(())
}

/// Text-value: a token as it is, else behind a quote without a closing one.
fn text_value(value: &str, out: &mut Vec<u8>) {
    if !is_token(value) {
        out.push(b'"');
        // After the quote every first octet is allowed, so none needs another quote.
        out.extend(value.bytes().filter(|&o| o >= 32 && o != 127));
        out.push(0);
    } else {
        write::text(value, out);
    }
}

/// Appends the parameters that make up the rest of a value.
pub(super) fn decode_parameters(mut rest: Reader<'_>, text: &mut String) -> Option<()> {
    while let Some(first) = rest.peek() {
        let (name, value) = if first & 0x80 != 0 {
            let &(name, _, _, kind) = parameters::by_code(rest.octet().ok()? & 0x7F)?;
            (Cow::Borrowed(name), decode_typed(kind, &mut rest)?)
        } else {
            let name = string(rest.text().ok()?);
            if !is_token(&name) {
                return None;
            }
            (name, decode_untyped(&mut rest)?)
        };
        text.push_str("; ");
        text.push_str(&name);
        if let Some(value) = value {
            text.push('=');
            text.push_str(&value);
        }
    }
    Some(())
}

/// A value, `Some(None)` if the parameter has none.
fn decode_typed(kind: Kind, rest: &mut Reader<'_>) -> Option<Option<String>> {
    let number = |rest: &mut Reader<'_>| rest.integer().ok();
    Some(Some(match kind {
        Kind::Charset => match number(rest)? {
            0 => "*".into(),
            mib => charset::name(u32::try_from(mib).ok()?)?.to_owned(),
        },
        Kind::Date => always_quoted(&date::text(number(rest)?)?),
        Kind::FieldName => quoted(&names::decode_field_name(rest.framed().ok()?)?).into_owned(),
        Kind::Integer => number(rest)?.to_string(),
        Kind::MediaType => match rest.framed().ok()? {
            Framed::Text(text) => quoted(&string(text)).into_owned(),
            framed => always_quoted(name(framed.integer()?)?),
        },
        Kind::NoValue => {
            return (rest.octet().ok()? == 0).then_some(None);
        }
        Kind::Q => q_text(rest.uintvar().ok()?)?,
        Kind::Security => (*SECURITY.get(usize::try_from(number(rest)?).ok()?)?).to_owned(),
        // What says "text" and what says "text value" differ in the quote only, and phones mixed them.
        Kind::Text | Kind::TextValue => return decode_untyped(rest),
        Kind::Version => quoted(&names::decode_version(rest.framed().ok()?)?).into_owned(),
    }))
}

/// Nothing, a number or text.
fn decode_untyped(rest: &mut Reader<'_>) -> Option<Option<String>> {
    match rest.peek()? {
        0 => rest.octet().ok().map(|_| None),
        b'"' => {
            rest.octet().ok()?;
            Some(Some(quoted(&string(rest.until_nul().ok()?)).into_owned()))
        }
        32..=127 => Some(Some(quoted(&string(rest.text().ok()?)).into_owned())),
        _ => Some(Some(rest.integer().ok()?.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_media_type_has_a_number_of_its_own() {
        let mut numbers: Vec<_> = MEDIA_TYPES.iter().map(|row| row.1).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), MEDIA_TYPES.len());
        // Those that phones and captures use most.
        for (code, expected) in [
            (0x03, "text/plain"),
            (0x08, "text/vnd.wap.wml"),
            (0x14, "application/vnd.wap.wmlc"),
            (0x2E, "application/vnd.wap.sic"),
            (0x3E, "application/vnd.wap.mms-message"),
            (0x4F, "audio/*"),
            (0x50, "video/*"),
            (0x51, "application/vnd.oma.dd2+xml"),
            (0x58, "application/vnd.syncml.dm.notification"),
            (0x5A, "application/octet-stream"),
        ] {
            assert_eq!(name(code), Some(expected));
        }
    }
}
