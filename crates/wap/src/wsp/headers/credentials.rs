//! Who somebody is, and who asks: `Authorization`, `WWW-Authenticate` and their like for proxies.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::element::{always_quoted, is_token, pair, split};
use super::media::{decode_parameters, encode_parameters};
use super::read::{Framed, string};
use super::write;

/// `Basic` as a number.
const BASIC: u8 = 0;

/// `Basic <base64>` is user and password as two texts here; another scheme has parameters.
pub(super) fn encode(value: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    let (scheme, rest) = value.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("Basic") {
        let both = String::from_utf8(BASE64.decode(rest).ok()?).ok()?;
        let (user, password) = both.split_once(':')?;
        if both.contains(|c: char| c.is_ascii_control()) {
            return None;
        }
        return write::with_length(out, |out| {
            write::short(BASIC, out);
            write::text(user, out);
            write::text(password, out);
            Some(())
        });
    }
    // Parameters are between commas in HTTP.
    if !is_token(scheme) || !split(rest, b',').all(|part| part.contains('=') && is_token(pair(part).0)) {
        return None;
    }
    write::with_length(out, |out| {
        write::text(scheme, out);
        split(rest, b',').try_for_each(|parameter| encode_parameters(parameter, minor, out))
    })
}

pub(super) fn decode(value: Framed<'_>) -> Option<String> {
    let mut rest = value.data()?;
    if rest.peek()? == 0x80 | BASIC {
        rest.octet().ok()?;
        let (user, password) = (string(rest.text().ok()?), string(rest.text().ok()?));
        return Some(format!("Basic {}", BASE64.encode(format!("{user}:{password}"))));
    }
    let scheme = string(rest.text().ok()?);
    let mut parameters = String::new();
    decode_parameters(rest, &mut parameters)?;
    Some(format!("{scheme} {}", in_list(&parameters)))
}

/// `Basic realm="x"`; other schemes have the realm first and then parameters.
pub(super) fn encode_challenge(value: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    let (scheme, rest) = value.split_once(' ')?;
    let mut parts = split(rest, b',');
    let (name, realm) = pair(parts.next()?);
    let realm = realm.filter(|_| name.eq_ignore_ascii_case("realm"))?;
    let basic = scheme.eq_ignore_ascii_case("Basic");
    let parts: Vec<&str> = parts.collect();
    if !is_token(scheme) || (basic && !parts.is_empty()) || !parts.iter().all(|part| is_token(pair(part).0)) {
        return None;
    }
    write::with_length(out, |out| {
        if basic {
            write::short(BASIC, out)
        } else {
            write::text(scheme, out)
        }
        write::text(&realm, out);
        parts.iter().try_for_each(|parameter| encode_parameters(parameter, minor, out))
    })
}

pub(super) fn decode_challenge(value: Framed<'_>) -> Option<String> {
    let mut rest = value.data()?;
    let scheme = if rest.peek()? == 0x80 | BASIC {
        rest.octet().ok()?;
        "Basic".to_owned()
    } else {
        string(rest.text().ok()?).into_owned()
    };
    let realm = always_quoted(&string(rest.text().ok()?));
    let mut parameters = String::new();
    decode_parameters(rest, &mut parameters)?;
    Some(format!(
        "{scheme} realm={realm}{}{}",
        if parameters.is_empty() { "" } else { ", " },
        in_list(&parameters)
    ))
}

/// Parameters as this header separates them.
fn in_list(parameters: &str) -> String {
    split(parameters, b';').collect::<Vec<_>>().join(", ")
}
