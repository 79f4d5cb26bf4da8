//! Parts of a body, and moments: `Range`, `Content-Range`, `If-Range`, `Retry-After`.

use airloom_wire::uintvar;

use super::element::integer;
use super::read::{Framed, Reader};
use super::{date, write};

/// Of `Range`: octets from a place on, or the last ones. Of `Retry-After`: a date, or seconds.
const FIRST_FORM: u8 = 0;
const SECOND_FORM: u8 = 1;

fn number(text: &str) -> Option<u32> {
    integer(text)?.try_into().ok()
}

/// `bytes=0-499`, `bytes=500-` or `bytes=-500`; several ranges have no encoded form.
pub(super) fn encode(value: &str, out: &mut Vec<u8>) -> Option<()> {
    let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
    write::with_length(out, |out| {
        if first.is_empty() {
            write::short(SECOND_FORM, out);
            uintvar::emit(number(last)?, out);
        } else {
            write::short(FIRST_FORM, out);
            uintvar::emit(number(first)?, out);
            if !last.is_empty() {
                uintvar::emit(number(last)?, out);
            }
        }
        Some(())
    })
}

pub(super) fn decode(value: Framed<'_>) -> Option<String> {
    let mut rest = value.data()?;
    let form = rest.octet().ok()?;
    let first = rest.uintvar().ok()?;
    let last = if rest.is_empty() { None } else { Some(rest.uintvar().ok()?) };
    match (form & 0x7F, last) {
        _ if !rest.is_empty() || form & 0x80 == 0 => None,
        (FIRST_FORM, Some(last)) => Some(format!("bytes={first}-{last}")),
        (FIRST_FORM, None) => Some(format!("bytes={first}-")),
        (SECOND_FORM, None) => Some(format!("bytes=-{first}")),
        _ => None,
    }
}

/// `bytes 0-499/1234`. The last octet is not sent: it follows from the length of the body that comes with the header, so
/// decoding leaves it open (`bytes 0-/1234`).
pub(super) fn encode_content(value: &str, out: &mut Vec<u8>) -> Option<()> {
    let (range, length) = value.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.trim().split_once('-')?;
    if !last.is_empty() {
        number(last)?;
    }
    write::with_length(out, |out| {
        uintvar::emit(number(first)?, out);
        match length.trim() {
            "*" => write::short(0, out),
            length => uintvar::emit(number(length)?, out),
        }
        Some(())
    })
}

pub(super) fn decode_content(value: Framed<'_>) -> Option<String> {
    let mut rest = value.data()?;
    let first = rest.uintvar().ok()?;
    if rest.0 == [0x80] {
        return Some(format!("bytes {first}-/*"));
    }
    let length = rest.uintvar().ok()?;
    rest.is_empty().then(|| format!("bytes {first}-/{length}"))
}

/// A date, or text that names a state of the entity.
pub(super) fn encode_if(value: &str, out: &mut Vec<u8>) -> Option<()> {
    match date::parse(value) {
        Some(seconds) => write::long(seconds, out),
        None => write::text(value, out),
    }
    Some(())
}

pub(super) fn decode_if(value: Framed<'_>) -> Option<String> {
    match value.text() {
        Some(text) => Some(text.into_owned()),
        None => date::text(value.integer()?),
    }
}

/// Seconds, or a date.
pub(super) fn encode_retry(value: &str, out: &mut Vec<u8>) -> Option<()> {
    write::with_length(out, |out| {
        if let Some(seconds) = integer(value) {
            write::short(SECOND_FORM, out);
            write::integer(seconds, out);
        } else {
            write::short(FIRST_FORM, out);
            write::long(date::parse(value)?, out);
        }
        Some(())
    })
}

pub(super) fn decode_retry(value: Framed<'_>) -> Option<String> {
    let mut rest: Reader<'_> = value.data()?;
    let form = rest.octet().ok()?;
    let n = rest.integer().ok()?;
    match form & 0x7F {
        _ if !rest.is_empty() || form & 0x80 == 0 => None,
        FIRST_FORM => date::text(n),
        SECOND_FORM => Some(n.to_string()),
        _ => None,
    }
}
