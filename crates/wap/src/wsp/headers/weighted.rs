//! Lists whose elements have a weight: `Accept-Charset`, `Accept-Encoding`, `Accept-Language`, `TE`.

use std::sync::LazyLock;

use airloom_wire::uintvar;

use super::element::{is_token, pair, q, q_text, q_value, split};
use super::index::Index;
use super::languages::LANGUAGES;
use super::read::{Framed, Reader, string};
use super::{media, plain, write};

/// How a name and its number belong together, and what the general form looks like.
pub(super) struct Names {
    number: fn(&str) -> Option<u64>,
    name: fn(u64) -> Option<&'static str>,
    /// Whether a name can have a weight in this encoding version.
    can_weigh: bool,
    /// Whether the weight is a parameter with its own number in front.
    weight_is_parameter: bool,
}

pub(super) const CHARSETS: Names = Names {
    number: plain::charset_number,
    name: plain::charset_name,
    can_weigh: true,
    weight_is_parameter: false,
};

pub(super) const LANGUAGE: Names =
    Names { number: language_number, name: language_name, can_weigh: true, weight_is_parameter: false };

/// Codings as the first number of `Accept-Encoding` takes them.
pub(super) const CODINGS_1_1: Names = Names {
    number: |name| coding_number(name).filter(|&n| n < 3),
    name: |n| coding_name(n).filter(|_| n < 3),
    can_weigh: false,
    weight_is_parameter: false,
};

/// Codings as the second number takes them.
pub(super) const CODINGS_1_3: Names =
    Names { number: coding_number, name: coding_name, can_weigh: true, weight_is_parameter: false };

/// Transfer codings; `trailers` stands in the same list.
pub(super) const TE: Names =
    Names { number: te_number, name: te_name, can_weigh: true, weight_is_parameter: true };

fn language_number(name: &str) -> Option<u64> {
    if name == "*" {
        return Some(0);
    }
    static NAMES: LazyLock<Index> = LazyLock::new(|| Index::new(LANGUAGES.iter().map(|row| row.0)));
    let row = NAMES.places(name).map(|at| &LANGUAGES[at]).find(|row| row.0.eq_ignore_ascii_case(name))?;
    Some(u64::from(row.1))
}

fn language_name(number: u64) -> Option<&'static str> {
    if number == 0 {
        return Some("*");
    }
    LANGUAGES.iter().find(|language| u64::from(language.1) == number).map(|language| language.0)
}

fn by_place(names: &[&'static str], name: &str) -> Option<u64> {
    names.iter().position(|known| known.eq_ignore_ascii_case(name)).map(|place| place as u64)
}

const CODINGS: [&str; 4] = ["gzip", "compress", "deflate", "*"];

fn coding_number(name: &str) -> Option<u64> {
    by_place(&CODINGS, name)
}

fn coding_name(number: u64) -> Option<&'static str> {
    CODINGS.get(usize::try_from(number).ok()?).copied()
}

const TRANSFER_CODINGS: [&str; 6] = ["trailers", "chunked", "identity", "gzip", "compress", "deflate"];

fn te_number(name: &str) -> Option<u64> {
    by_place(&TRANSFER_CODINGS, name).map(|place| place + 1)
}

fn te_name(number: u64) -> Option<&'static str> {
    TRANSFER_CODINGS.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
}

/// `name` or `name;q=0.5`.
pub(super) fn encode(names: &Names, value: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    let mut parts = split(value, b';');
    let name = parts.next()?;
    let weight = match parts.next().map(pair) {
        None => 1000,
        Some((key, Some(weight))) if key.eq_ignore_ascii_case("q") => q(&weight)?,
        Some(_) => return None,
    };
    if parts.next().is_some() || !is_token(name) {
        return None;
    }
    let number = (names.number)(name);
    // `trailers` alone has a short form in TE; transfer codings always have the general one.
    let short = if names.weight_is_parameter { number == Some(1) } else { number.is_none_or(|n| n < 128) };
    if weight == 1000 && short {
        return encode_name(names, name, out);
    }
    if !names.can_weigh {
        return None;
    }
    write::with_length(out, |out| {
        encode_name(names, name, out)?;
        if weight < 1000 && names.weight_is_parameter {
            media::encode_parameters(&format!("q={}", q_text(q_value(weight))?), minor, out)?;
        } else if weight < 1000 {
            uintvar::emit(q_value(weight), out);
        }
        Some(())
    })
}

/// `name` without a weight, its number whatever that takes.
pub(super) fn encode_name(names: &Names, name: &str, out: &mut Vec<u8>) -> Option<()> {
    if !is_token(name) {
        return None;
    }
    match (names.number)(name) {
        Some(number) => write::integer(number, out),
        None => write::text(name, out),
    }
    Some(())
}

pub(super) fn decode(names: &Names, value: Framed<'_>) -> Option<String> {
    match value {
        Framed::Short(number) => (names.name)(u64::from(number)).map(str::to_owned),
        Framed::Text(text) => Some(string(text).into_owned()),
        Framed::Data(data) => general(names, Reader(data)).or_else(|| {
            // A number above 127 may also stand by itself.
            (names.name)(value.integer()?).map(str::to_owned)
        }),
    }
}

fn general(names: &Names, mut rest: Reader<'_>) -> Option<String> {
    let mut text = match rest.peek()? {
        32..=127 => string(rest.text().ok()?).into_owned(),
        // One octet is a number above 127 by itself: what is below has a form without length.
        128.. if rest.0.len() == 1 && !names.weight_is_parameter => return None,
        _ => (names.name)(rest.integer().ok()?)?.to_owned(),
    };
    if names.weight_is_parameter {
        media::decode_parameters(rest, &mut text)?;
    } else if !rest.is_empty() {
        text.push_str("; q=");
        text.push_str(&q_text(rest.uintvar().ok()?)?);
        if !rest.is_empty() {
            return None;
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_leads_to_its_number() {
        for (name, number) in LANGUAGES {
            assert_eq!(language_number(&name.to_ascii_uppercase()), Some(u64::from(*number)));
        }
        assert_eq!((language_number("xx"), language_number("*")), (None, Some(0)));
    }
}
