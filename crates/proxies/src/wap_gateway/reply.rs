//! An origin's answer -> a reply to the client: status, content type, headers.

use airloom_content::http::message::Fields;
use airloom_transports::wsp::headers::{Encoder, Version};
use bytes::Bytes;

/// Fields that are about one connection (RFC 9110, section 7.6.1), or no longer true here: a reply of WSP says its length by
/// itself, and parts of what was converted make no sense.
const NOT_PASSED_ON: [&str; 14] = [
    "accept-ranges",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "set-cookie2",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "alt-svc",
];

/// Octets of an origin's fields.
const MOST_FIELDS: usize = 32_768;

/// A reply before it is put into octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// Of HTTP.
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) fields: Fields,
    pub(super) body: Bytes,
}

impl Reply {
    /// A status and nothing else.
    pub(super) fn bare(status: u16) -> Reply {
        let content_type = "text/plain".to_owned();
        Reply { status, content_type, fields: Fields::default(), body: Bytes::new() }
    }

    /// Content type and headers in compact form, with at most `own` octets of what has no number.
    pub(super) fn headers(&self, version: Version, own: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        Encoder::new(version).content_type(&self.content_type, &mut out);
        compact(&self.fields, version, own, &mut out);
        out
    }
}

/// Appends `fields` in compact form. Those without a number are text, which is many octets for little: so many octets of them
/// are sent, and the others not.
fn compact(fields: &Fields, version: Version, own: usize, out: &mut Vec<u8>) {
    let encoder = Encoder::new(version);
    let mut left = own;
    for field in fields.iter() {
        let start = out.len();
        let (name, value) = (String::from_utf8_lossy(&field.name), String::from_utf8_lossy(&field.value));
        if encoder.header(&name, &value, out).is_err() {
            continue;
        }
        let has_number = out.get(start).is_some_and(|first| first & 0x80 != 0);
        let octets = out.len() - start;
        if !has_number && octets > left {
            out.truncate(start);
        } else if !has_number {
            left -= octets;
        }
    }
}

/// The fields of an origin's answer that a client gets. None if there are too many.
pub(super) fn passed_on(fields: &Fields, keeps_cookies: bool) -> Option<Fields> {
    let octets: usize = fields.iter().map(|f| f.name.len() + f.value.len()).sum();
    if octets > MOST_FIELDS {
        return None;
    }
    let mut passed = Fields::default();
    for field in fields.iter() {
        let name = String::from_utf8_lossy(&field.name).to_ascii_lowercase();
        let dropped = NOT_PASSED_ON.contains(&name.as_str())
            || keeps_cookies && name == "set-cookie"
            || fields.list_has("connection", &name);
        if !dropped {
            passed.push(field.name.clone(), field.value.clone());
        }
    }
    Some(passed)
}

/// The body is not the origin's any more: what was said of its octets does not hold.
pub(super) fn altered(fields: &mut Fields) {
    fields.remove("content-md5");
    fields.remove("digest");
    //= RFC 9110 (8.8.1): a validator of what means the same with other octets is a weak one.
    if let Some(tag) = fields.first("etag").filter(|tag| !tag.starts_with(b"W/")).map(<[u8]>::to_vec) {
        fields.remove("etag");
        fields.push("ETag", [b"W/", tag.as_slice()].concat());
    }
}

#[cfg(test)]
mod tests {
    use airloom_transports::wsp::headers::{self, Pages};

    use super::*;

    #[test]
    fn fields_of_the_connection_stay_behind() {
        let origin = Fields::from_iter([
            ("Server", "x"),
            ("Connection", "close, X-Hop"),
            ("X-Hop", "1"),
            ("Content-Length", "7"),
            ("Set-Cookie", "a=1"),
            ("ETag", "\"t\""),
        ]);
        let mut passed = passed_on(&origin, true).unwrap();
        assert_eq!(passed, Fields::from_iter([("Server", "x"), ("ETag", "\"t\"")]));
        assert!(passed_on(&origin, false).unwrap().first("set-cookie").is_some());
        altered(&mut passed);
        altered(&mut passed);
        assert_eq!(passed.first("etag"), Some(&b"W/\"t\""[..]));
        assert_eq!(passed_on(&Fields::from_iter([("A", "x")]), true).unwrap().len(), 1);
    }

    #[test]
    fn fields_without_a_number_are_sent_while_there_is_room() {
        let (short, long) = ("X-A", "X-Long-Name-Of-A-Field");
        let fields = Fields::from_iter([(short, "1"), ("Server", "s"), (long, "1")]);
        let reply = Reply { status: 200, content_type: "text/html".into(), fields, body: Bytes::new() };
        let octets = reply.headers(Version::V1_2, 10);
        let (content_type, len) = headers::decode_content_type(&octets).unwrap();
        let decoded = headers::decode(&octets[len..], &Pages::new()).unwrap();
        let names: Vec<_> = decoded.iter().map(|h| h.name.as_ref()).collect();
        assert_eq!((content_type.as_str(), names), ("text/html", vec!["X-A", "Server"]));
    }
}
