//! Headers between text and their compact form.

use airloom_transports::wsp::headers::{Encoder, Pages, Value, Version, decode, decode_content_type};
use bytes::Bytes;

use super::error::Error;

/// Names and values, in order.
pub type List = Vec<(String, String)>;

/// The octets of headers for a peer that knows the numbers of `version`, behind a content type if there is one.
pub(super) fn encode(
    version: Version,
    content_type: Option<&str>,
    headers: &[(String, String)],
) -> Result<Bytes, Error> {
    let encoder = Encoder::new(version);
    let mut out = Vec::new();
    if let Some(content_type) = content_type {
        encoder.content_type(content_type, &mut out);
    }
    for (name, value) in headers {
        encoder.header(name, value, &mut out).map_err(|_| Error::Header(name.clone()))?;
    }
    Ok(out.into())
}

/// Headers as text; values that are not known come in hexadecimal.
pub(super) fn list(octets: &[u8]) -> Result<List, Error> {
    let headers = decode(octets, &Pages::new()).map_err(|_| Error::Unreadable)?;
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        Value::Octets(octets) => octets.iter().map(|o| format!("{o:02x}")).collect(),
    };
    Ok(headers.iter().map(|h| (h.name.to_string(), text(&h.value))).collect())
}

/// The content type at the front, and the headers behind it.
pub(super) fn content(octets: &[u8]) -> Result<(String, List), Error> {
    let (content_type, len) = decode_content_type(octets).map_err(|_| Error::Unreadable)?;
    Ok((content_type, list(&octets[len..])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_behind_their_content_type() {
        let headers =
            [("Accept".to_owned(), "text/vnd.wap.wml".to_owned()), ("X-Own".to_owned(), "1".to_owned())];
        let octets = encode(Version::default(), Some("text/plain; charset=utf-8"), &headers).unwrap();
        assert_eq!(content(&octets).unwrap(), ("text/plain; charset=utf-8".to_owned(), headers.to_vec()));
        assert!(matches!(
            encode(Version::default(), None, &[("a b".into(), "c".into())]),
            Err(Error::Header(_))
        ));
        assert!(matches!(content(&[]), Err(Error::Unreadable)));
    }
}
