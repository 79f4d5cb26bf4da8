//! Compact headers of the clients as text.

use airloom_content::http::message::is_token;
use airloom_transports::wsp::headers::{self, Pages};

/// Names and values.
pub(super) type Headers = Vec<(String, String)>;

/// Octets of compact headers that a client may send at a time. As text they may become some forty times as much.
const MOST: usize = 16_384;

/// The headers in `octets`; those that have no text are left out. None if they cannot be read, or are too many.
pub(super) fn decode(octets: &[u8]) -> Option<Headers> {
    if octets.len() > MOST {
        return None;
    }
    let decoded = headers::decode(octets, &Pages::new()).ok()?;
    let text = decoded.into_iter().filter_map(|header| {
        let value = header.value.text()?.to_owned();
        // What would end a line of HTTP has no place in one.
        let fine =
            header.name.bytes().all(is_token) && !value.bytes().any(|o| o < b' ' && o != b'\t' || o == 127);
        fine.then(|| (header.name.into_owned(), value))
    });
    Some(text.collect())
}

/// A content type by itself, and what follows it.
pub(super) fn content_type(octets: &[u8]) -> Option<(String, &[u8])> {
    let (text, len) = headers::decode_content_type(octets).ok()?;
    let fine = !text.bytes().any(|o| o < b' ' || o == 127);
    fine.then_some((text, octets.get(len..)?))
}

/// The values of all headers called `name`.
pub(super) fn values<'a>(headers: &'a Headers, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Headers of a session with those of a request: these stand in the place of all of the same name.
pub(super) fn merged(session: &Headers, request: Headers) -> Headers {
    let replaced = |name: &str| request.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut all: Headers = session.iter().filter(|(name, _)| !replaced(name)).cloned().collect();
    all.extend(request);
    all
}
