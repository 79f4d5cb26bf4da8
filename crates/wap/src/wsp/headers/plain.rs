//! Values of one piece: words, numbers, dates, versions, names, and those with a fixed few parts.

use airloom_wire::charset;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::applications::APPLICATIONS;
use super::element::{always_quoted, integer, is_token, pair, quoted, split, unquoted};
use super::media::{decode_parameters, encode_parameters};
use super::names::{decode_version, encode_version};
use super::read::{Framed, Reader, string};
use super::{date, fields, write};

/// One of a few words, or another token as text.
pub(super) fn encode_token(words: &[(&str, u8)], value: &str, out: &mut Vec<u8>) -> Option<()> {
    match words.iter().find(|word| word.0.eq_ignore_ascii_case(value)) {
        Some(&(_, code)) => write::short(code, out),
        None if is_token(value) => write::text(value, out),
        None => return None,
    }
    Some(())
}

pub(super) fn decode_token(words: &[(&str, u8)], value: Framed<'_>) -> Option<String> {
    match value {
        Framed::Short(code) => words.iter().find(|word| word.1 == code).map(|word| word.0.to_owned()),
        value => value.text().map(|text| text.into_owned()),
    }
}

pub(super) fn encode_integer(value: &str, out: &mut Vec<u8>) -> Option<()> {
    write::integer(integer(value)?, out);
    Some(())
}

/// A date; that of zero is X-Wap-Tod's question for the time.
pub(super) fn encode_date(value: &str, out: &mut Vec<u8>) -> Option<()> {
    write::long(date::parse(value)?, out);
    Some(())
}

pub(super) fn decode_date(value: Framed<'_>) -> Option<String> {
    date::text(value.integer()?)
}

/// A method by number.
pub(super) fn encode_method(value: &str, out: &mut Vec<u8>) -> Option<()> {
    let &(_, code) = fields::METHODS.iter().find(|method| method.0 == value)?;
    write::short(code, out);
    Some(())
}

pub(super) fn decode_method(value: Framed<'_>) -> Option<String> {
    decode_token(fields::METHODS, value)
}

/// The version of the default page; one of another page is `page=version` here.
pub(super) fn encode_encoding_version(value: &str, out: &mut Vec<u8>) -> Option<()> {
    let (page, version) = pair(value);
    let Some(version) = version else { return encode_version(value, out) };
    let page = integer(page).filter(|&page| page < 128)?;
    write::with_length(out, |out| {
        write::short(page as u8, out);
        if version.is_empty() { Some(()) } else { encode_version(&version, out) }
    })
}

pub(super) fn decode_encoding_version(value: Framed<'_>) -> Option<String> {
    let Framed::Data(data) = value else { return decode_version(value) };
    let mut rest = Reader(data);
    let page = rest.integer().ok()?;
    let version = if rest.is_empty() { String::new() } else { decode_version(rest.framed().ok()?)? };
    rest.is_empty().then(|| format!("{page}={version}"))
}

/// A digest: base64 in HTTP, its sixteen octets here.
pub(super) fn encode_md5(value: &str, out: &mut Vec<u8>) -> Option<()> {
    let digest = BASE64.decode(value).ok().filter(|digest| digest.len() == 16)?;
    write::with_length(out, |out| {
        out.extend_from_slice(&digest);
        Some(())
    })
}

pub(super) fn decode_md5(value: Framed<'_>) -> Option<String> {
    match value {
        Framed::Data(digest) if digest.len() == 16 => Some(BASE64.encode(digest)),
        _ => None,
    }
}

/// The application that a push is for: a number, with or without the registry's prefix, or an address.
pub(super) fn encode_application(value: &str, out: &mut Vec<u8>) -> Option<()> {
    let name = value.strip_prefix("x-wap-application:").unwrap_or(value);
    match APPLICATIONS.iter().find(|app| app.0.eq_ignore_ascii_case(name)) {
        Some(&(_, number)) => write::short(number, out),
        None => match integer(value).filter(|&n| n > 127) {
            Some(number) => write::integer(number, out),
            None if value.is_empty() => return None,
            None => write::text(value, out),
        },
    }
    Some(())
}

pub(super) fn decode_application(value: Framed<'_>) -> Option<String> {
    if let Some(text) = value.text() {
        return Some(text.into_owned());
    }
    let number = value.integer()?;
    let known = APPLICATIONS.iter().find(|app| u64::from(app.1) == number).map(|app| app.0.to_owned());
    known.or_else(|| (number > 127).then(|| number.to_string()))
}

/// Quoted-string: a quote, the text, no closing quote.
pub(super) fn encode_quoted(value: &str, out: &mut Vec<u8>) -> Option<()> {
    out.push(b'"');
    out.extend(unquoted(value).bytes().filter(|&o| o >= 32 && o != 127));
    out.push(0);
    Some(())
}

pub(super) fn decode_quoted(value: Framed<'_>) -> Option<String> {
    let text = value.text()?;
    Some(always_quoted(text.strip_prefix('"').unwrap_or(&text)))
}

/// `100-continue`, or `name=value` with parameters.
pub(super) fn encode_expect(value: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    if value.eq_ignore_ascii_case("100-continue") {
        write::short(0, out);
        return Some(());
    }
    let (first, parameters) = value.split_once(';').unwrap_or((value, ""));
    let (name, value) = pair(first.trim());
    let value = value.filter(|_| is_token(name))?;
    write::with_length(out, |out| {
        write::text(name, out);
        write::text(&value, out);
        encode_parameters(parameters, minor, out)
    })
}

pub(super) fn decode_expect(value: Framed<'_>) -> Option<String> {
    if value == Framed::Short(0) {
        return Some("100-continue".into());
    }
    let mut rest = value.data()?;
    let name = string(rest.text().ok()?).into_owned();
    let value = string(rest.text().ok()?).into_owned();
    let mut text = format!("{name}={}", quoted(&value));
    decode_parameters(rest, &mut text)?;
    is_token(&name).then_some(text)
}

/// Numbers of warnings: those of HTTP less a hundred, in the order of WAP-230; 199 and 299 share one.
const WARNINGS: &[(&str, u8)] =
    &[("110", 10), ("111", 11), ("112", 12), ("113", 13), ("214", 14), ("199", 99), ("299", 99)];

/// `110 agent "text"`, or the number alone.
pub(super) fn encode_warning(value: &str, out: &mut Vec<u8>) -> Option<()> {
    let (number, rest) = value.split_once(' ').unwrap_or((value, ""));
    let &(_, code) = WARNINGS.iter().find(|warning| warning.0 == number)?;
    let rest = rest.trim();
    if rest.is_empty() {
        write::short(code, out);
        return Some(());
    }
    let (agent, text) = rest.split_once(' ')?;
    // A date at the end has no place in the encoded form.
    let text = text.trim();
    let inside = split(text, b' ').next().filter(|only| *only == text && text.starts_with('"'))?;
    write::with_length(out, |out| {
        write::short(code, out);
        write::text(agent, out);
        write::text(&unquoted(inside), out);
        Some(())
    })
}

pub(super) fn decode_warning(value: Framed<'_>) -> Option<String> {
    let name =
        |code: u64| WARNINGS.iter().find(|warning| u64::from(warning.1) == code).map(|warning| warning.0);
    let Framed::Data(data) = value else { return Some(name(value.integer()?)?.to_owned()) };
    let mut rest = Reader(data);
    let number = name(rest.integer().ok()?)?;
    let agent = string(rest.text().ok()?);
    let text = string(rest.text().ok()?);
    Some(format!("{number} {agent} {}", always_quoted(&text)))
}

/// Numbers of profile warnings: the hundred in the high half of an octet, the rest in the low, as tshark reads them.
const PROFILE_WARNINGS: [u16; 7] = [100, 101, 102, 200, 201, 202, 203];

fn profile_warning_code(number: u16) -> u8 {
    (number / 100 * 16 + number % 100) as u8
}

/// `102 target`, maybe with a date in quotes; the number alone.
pub(super) fn encode_profile_warning(value: &str, out: &mut Vec<u8>) -> Option<()> {
    let mut words = split(value, b' ');
    let number: u16 = words.next()?.parse().ok().filter(|number| PROFILE_WARNINGS.contains(number))?;
    let code = profile_warning_code(number);
    let Some(target) = words.next() else {
        write::short(code, out);
        return Some(());
    };
    let when = words.next().map(|when| date::parse(&unquoted(when)));
    if words.next().is_some() || when == Some(None) {
        return None;
    }
    write::with_length(out, |out| {
        write::short(code, out);
        write::text(target, out);
        when.flatten().into_iter().for_each(|when| write::long(when, out));
        Some(())
    })
}

pub(super) fn decode_profile_warning(value: Framed<'_>) -> Option<String> {
    let name = |code: u64| {
        PROFILE_WARNINGS.iter().find(|&&known| u64::from(profile_warning_code(known)) == code).copied()
    };
    let Framed::Data(data) = value else { return Some(name(value.integer()?)?.to_string()) };
    let mut rest = Reader(data);
    let mut text = format!("{} {}", name(rest.integer().ok()?)?, string(rest.text().ok()?));
    if !rest.is_empty() {
        text.push(' ');
        text.push_str(&always_quoted(&date::text(rest.integer().ok()?)?));
    }
    Some(text)
}

/// The number of a character set, `*` for any.
pub(super) fn charset_number(name: &str) -> Option<u64> {
    if name == "*" { Some(0) } else { charset::mib_enum(name).map(u64::from) }
}

/// The character set with this number.
pub(super) fn charset_name(number: u64) -> Option<&'static str> {
    if number == 0 { Some("*") } else { charset::name(u32::try_from(number).ok()?) }
}
