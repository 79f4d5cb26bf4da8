//! Blocks of headers of a chosen size.

use std::collections::BTreeMap;

use airloom_base::ConfigError;
use airloom_base::units::Octets;
use airloom_transports::wsp::headers::{Encoder, Version};
use bytes::Bytes;

use crate::pages::FORM;

/// Most octets of a block: what a gateway takes without complaint.
const MOST: u64 = 16_000;
/// A form that is sent: what it is, and how long, in front of the headers of its request.
pub(super) fn of_form(octets: usize, request: &[u8]) -> Bytes {
    let (encoder, mut out) = (Encoder::default(), Vec::new());
    encoder.content_type(FORM, &mut out);
    // The name is a token: this cannot fail. Without the length Kannel passes on a body whose end its origin cannot know.
    let _ = encoder.header("Content-Length", &octets.to_string(), &mut out);
    out.extend_from_slice(request);
    out.into()
}

/// Name of the header that fills a block up.
const PADDING: &[u8] = b"X-Padding\0";

/// The headers in their compact form, with the numbers of `version`, made as long as `least` with a header that means nothing.
pub(super) fn block(
    key: &str,
    headers: &BTreeMap<String, String>,
    least: Option<Octets>,
    version: Version,
) -> Result<Bytes, ConfigError> {
    let mut octets = Vec::new();
    for (name, value) in headers {
        let wrong = |_| ConfigError::at(key, format!("`{name}` is not the name of a header"));
        Encoder::new(version).header(name, value, &mut octets).map_err(wrong)?;
    }
    let least = least.map_or(0, |n| n.0);
    let is_long = least > MOST || octets.len() as u64 > MOST;
    ConfigError::when(is_long, key, format!("at most {MOST} octets of headers"))?;
    if let Some(short) = (least as usize).checked_sub(octets.len()).filter(|short| *short > 0) {
        octets.extend_from_slice(PADDING);
        // The value and its NUL.
        octets.extend(std::iter::repeat_n(b'p', short.saturating_sub(PADDING.len() + 1)));
        octets.push(0);
    }
    Ok(octets.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_size_that_was_asked_for() {
        let headers = BTreeMap::from([("Accept".to_owned(), "*/*".to_owned())]);
        let block = |headers: &_, least: Option<u64>| {
            block("headers", headers, least.map(Octets), Version::default())
        };
        let len = |least: u64| block(&headers, Some(least)).unwrap().len();
        assert_eq!(block(&headers, None).unwrap().as_ref(), [0x80, 0x80]);
        assert_eq!((len(0), len(2), len(13), len(14), len(500)), (2, 2, 13, 14, 500));
        let wrong = BTreeMap::from([("a b".to_owned(), String::new())]);
        assert!(block(&wrong, None).is_err());
        assert!(block(&headers, Some(16_001)).is_err());
    }
}
