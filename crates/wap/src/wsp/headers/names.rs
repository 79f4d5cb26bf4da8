//! Names of fields, and versions: values by themselves, and in parameters of others.

use super::element::{integer, is_token};
use super::read::Framed;
use super::{fields, write};

/// The name of a header, by number where that is known.
pub(super) fn encode_field_name(value: &str, minor: u8, out: &mut Vec<u8>) -> Option<()> {
    match fields::by_name(value, minor) {
        Some(field) => write::short(field.code, out),
        None if is_token(value) => write::text(value, out),
        None => return None,
    }
    Some(())
}

pub(super) fn decode_field_name(value: Framed<'_>) -> Option<String> {
    match value {
        Framed::Short(code) => fields::by_code(code).map(|field| field.name.to_owned()),
        value => value.text().map(|text| text.into_owned()),
    }
}

/// Version-value: major and minor in an octet, text where they do not fit.
pub(super) fn encode_version(value: &str, out: &mut Vec<u8>) -> Option<()> {
    let (major, minor) = value.split_once('.').map_or((value, None), |(major, minor)| (major, Some(minor)));
    let major = integer(major).filter(|n| (1..=7).contains(n));
    let minor = match minor {
        None => Some(15),
        Some(minor) => integer(minor).filter(|&n| n < 15),
    };
    match (major, minor) {
        (Some(major), Some(minor)) => write::short((major << 4 | minor) as u8, out),
        _ if is_token(value) => write::text(value, out),
        _ => return None,
    }
    Some(())
}

pub(super) fn decode_version(value: Framed<'_>) -> Option<String> {
    match value {
        Framed::Short(version) => Some(version_text(version)),
        value => value.text().map(|text| text.into_owned()),
    }
}

fn version_text(version: u8) -> String {
    match (version >> 4, version & 15) {
        (major, 15) => major.to_string(),
        (major, minor) => format!("{major}.{minor}"),
    }
}
