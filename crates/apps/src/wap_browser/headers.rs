//! Blocks of headers of a chosen size.

use std::collections::BTreeMap;

use airloom_base::ConfigError;
use airloom_base::units::Octets;
use airloom_transports::wsp::headers::Encoder;
use bytes::Bytes;

/// Most octets of a block: what a gateway takes without complaint.
const MOST: u64 = 16_000;
/// Name of the header that fills a block up.
const PADDING: &[u8] = b"X-Padding\0";

/// The headers in their compact form, made as long as `least` with a header that means nothing.
pub(super) fn block(
    key: &str,
    headers: &BTreeMap<String, String>,
    least: Option<Octets>,
) -> Result<Bytes, ConfigError> {
    let mut octets = Vec::new();
    for (name, value) in headers {
        let wrong = |_| ConfigError::at(key, format!("`{name}` is not the name of a header"));
        Encoder::default().header(name, value, &mut octets).map_err(wrong)?;
    }
    let least = least.map_or(0, |n| n.0);
    if least > MOST || octets.len() as u64 > MOST {
        return Err(ConfigError::at(key, format!("at most {MOST} octets of headers")));
    }
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
        let len = |least: u64| block("headers", &headers, Some(Octets(least))).unwrap().len();
        assert_eq!(block("headers", &headers, None).unwrap().as_ref(), [0x80, 0x80]);
        assert_eq!((len(0), len(2), len(13), len(14), len(500)), (2, 2, 13, 14, 500));
        let wrong = BTreeMap::from([("a b".to_owned(), String::new())]);
        assert!(block("headers", &wrong, None).is_err());
        assert!(block("headers", &headers, Some(Octets(16_001))).is_err());
    }
}
