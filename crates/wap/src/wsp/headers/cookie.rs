//! `Set-Cookie` and `Cookie`, which have numbers since encoding version 1.3.
//!
//! A cookie of HTTP says its version only if it is 1; one that does not say is encoded as version 0.

use airloom_wire::uintvar;

use super::element::{integer, is_token, pair, quoted, split};
use super::media::{decode_parameters, encode_parameters};
use super::read::{Framed, Reader, string};
use super::{names, write};

/// Version 0 without a minor number.
const UNSAID: u8 = 0x0F;

/// `name=value; Path=/; Max-Age=60`.
pub(super) fn encode_set(value: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    let (first, rest) = value.split_once(';').unwrap_or((value, ""));
    let (name, content) = first.trim().split_once('=')?;
    let version = split(rest, b';').map(pair).find(|(key, _)| key.eq_ignore_ascii_case("version"));
    if !is_token(name) || content.starts_with(' ') {
        return None;
    }
    write::with_length(out, |out| {
        encode_version(version.map(|(_, version)| version.unwrap_or_default()).as_deref(), out)?;
        write::text(name, out);
        write::text(content.trim_end(), out);
        for parameter in split(rest, b';').filter(|p| !pair(p).0.eq_ignore_ascii_case("version")) {
            // `Expires` and other values with spaces stand without quotes in cookies.
            let (key, value) = pair(parameter);
            match value {
                Some(value) => encode_parameters(&format!("{key}={}", quoted(&value)), minor, out)?,
                None => encode_parameters(key, minor, out)?,
            }
        }
        Some(())
    })
}

pub(super) fn decode_set(value: Framed<'_>) -> Option<String> {
    let mut rest = value.data()?;
    let version = decode_version(&mut rest)?;
    let mut text = format!("{}={}", string(rest.text().ok()?), string(rest.text().ok()?));
    decode_parameters(rest, &mut text)?;
    if let Some(version) = version {
        text.push_str("; Version=");
        text.push_str(&version);
    }
    Some(text)
}

/// `name=value; name=value`, or `$Version=1; name=value; $Path=/; $Domain=x; ...`.
pub(super) fn encode(value: &str, out: &mut Vec<u8>) -> Option<()> {
    let mut version = None;
    let mut cookies: Vec<Cookie<'_>> = Vec::new();
    for part in split(value, b';') {
        let (name, content) = part.split_once('=')?;
        match name.to_ascii_lowercase().as_str() {
            "$version" if cookies.is_empty() && version.is_none() => {
                version = Some(content.trim_matches('"'))
            }
            "$path" if cookies.last()?.path.is_none() => {
                cookies.last_mut()?.path = Some(content.trim_matches('"'))
            }
            "$domain" if cookies.last()?.domain.is_none() => {
                cookies.last_mut()?.domain = Some(content.trim_matches('"'));
            }
            _ if name.starts_with('$') || !is_token(name) => return None,
            _ => cookies.push(Cookie { name, content, path: None, domain: None }),
        }
    }
    if cookies.is_empty() {
        return None;
    }
    write::with_length(out, |out| {
        encode_version(version, out)?;
        for cookie in &cookies {
            let mut one = Vec::new();
            write::text(cookie.name, &mut one);
            write::text(cookie.content, &mut one);
            // What comes later is told by its place, so an empty path stands for one that was not said.
            match (cookie.path, cookie.domain) {
                (None, None) => {}
                (path, None) => write::text(path.unwrap_or(""), &mut one),
                (path, Some(domain)) => {
                    write::text(path.unwrap_or(""), &mut one);
                    write::text(domain, &mut one);
                }
            }
            uintvar::emit(one.len() as u32, out);
            out.extend_from_slice(&one);
        }
        Some(())
    })
}

struct Cookie<'a> {
    name: &'a str,
    content: &'a str,
    path: Option<&'a str>,
    domain: Option<&'a str>,
}

pub(super) fn decode(value: Framed<'_>) -> Option<String> {
    let mut rest = value.data()?;
    let version = decode_version(&mut rest)?;
    let mut parts: Vec<String> = version.map(|version| format!("$Version={version}")).into_iter().collect();
    while !rest.is_empty() {
        let len = rest.uintvar().ok()? as usize;
        let mut one = Reader(rest.take(len).ok()?);
        let (name, content) = (string(one.text().ok()?), string(one.text().ok()?));
        parts.push(format!("{name}={content}"));
        for attribute in ["$Path", "$Domain", "$Port"] {
            if one.is_empty() {
                break;
            }
            let text = string(one.text().ok()?);
            if !text.is_empty() {
                parts.push(format!("{attribute}=\"{}\"", text.replace(['"', ';'], "")));
            }
        }
        if !one.is_empty() {
            return None;
        }
    }
    Some(parts.join("; "))
}

fn encode_version(version: Option<&str>, out: &mut Vec<u8>) -> Option<()> {
    match version {
        None => write::short(UNSAID, out),
        Some(version) => {
            integer(version)?;
            names::encode_version(version, out)?;
        }
    }
    Some(())
}

/// The version; `Some(None)` if it was not said.
fn decode_version(rest: &mut Reader<'_>) -> Option<Option<String>> {
    let version = rest.framed().ok()?;
    if version == Framed::Short(UNSAID) { Some(None) } else { names::decode_version(version).map(Some) }
}
