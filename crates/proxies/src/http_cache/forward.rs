//! Fields of messages that are passed on.

use airloom_content::http::message::{Field, Fields, Version};

/// What is about one connection and never passed on (RFC 9110, 7.6.1); framing is made anew.
const OF_THE_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    //= RFC 9110 (11.7): for this hop; nobody is asked for a password here.
    "proxy-authorization",
    "proxy-authenticate",
    "proxy-authentication-info",
];

/// The fields that are passed on: without those of the hop, which the Connection field may name more of.
pub(super) fn end_to_end(fields: &Fields) -> impl Iterator<Item = &Field> {
    //= RFC 9110 (7.6.1): Connection is looked at before anything is passed on.
    let named: Vec<&[u8]> =
        if fields.first("connection").is_some() || fields.first("proxy-connection").is_some() {
            fields.list("connection").chain(fields.list("proxy-connection")).collect()
        } else {
            Vec::new()
        };
    let is_of_the_hop = move |name: &[u8]| {
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        OF_THE_HOP.iter().any(|word| is(word)) || named.iter().any(|word| name.eq_ignore_ascii_case(word))
    };
    fields.iter().filter(move |field| !is_of_the_hop(&field.name))
}

/// What our Via says of a message of this version.
pub(super) fn via(version: Version, name: &str) -> String {
    //= RFC 9110 (7.6.3): the version that was received, without the name of the protocol.
    let version = match version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
        Version::Http2 => "2",
        Version::Http3 => "3",
    };
    format!("{version} {name}")
}

/// Has a request come through here before?
pub(super) fn is_circle(fields: &Fields, name: &str) -> bool {
    fields.list("via").any(|hop| {
        let mut words = hop.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.nth(1).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
    })
}

/// The fields of a request as they are passed on, without those about its body's length.
pub(super) fn request(fields: &Fields, version: Version, authority: &str, name: &str) -> Fields {
    let mut out = Fields::default();
    //= RFC 9112 (3.2.2): Host says what the target says.
    out.push("Host", authority.to_owned());
    for field in end_to_end(fields).filter(|field| !field.name.eq_ignore_ascii_case(b"host")) {
        out.push(field.name.clone(), field.value.clone());
    }
    out.push("Via", via(version, name));
    out
}

/// The fields of a response as they are passed on and kept, without those about its body's length.
pub(super) fn response(fields: &Fields, version: Version, name: &str) -> Fields {
    let mut out = Fields::default();
    for field in end_to_end(fields) {
        out.push(field.name.clone(), field.value.clone());
    }
    out.push("Via", via(version, name));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(fields: &Fields) -> Vec<String> {
        fields.iter().map(|f| String::from_utf8_lossy(&f.name).into_owned()).collect()
    }

    #[test]
    fn fields_of_the_hop_stay_here_and_the_others_keep_their_order() {
        let fields = Fields::from_iter([
            ("Host", "other"),
            ("X-B", "1"),
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("Keep-Alive", "5"),
            ("Proxy-Connection", "x-other"),
            ("X-Other", "1"),
            ("TE", "trailers"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "h2c"),
            ("Proxy-Authorization", "secret"),
            ("X-A", "1"),
            ("X-B", "2"),
            ("Via", "1.0 fred"),
        ]);
        let out = request(&fields, Version::Http10, "a:81", "me");
        assert_eq!(names(&out), ["Host", "X-B", "X-A", "X-B", "Via", "Via"]);
        assert_eq!(out.first("host"), Some(&b"a:81"[..]));
        assert_eq!(out.list("via").last(), Some(&b"1.0 me"[..]));
    }

    #[test]
    fn a_request_that_was_here_before_is_known() {
        let via = |text: &'static str| is_circle(&Fields::from_iter([("Via", text)]), "me");
        assert!(via("1.0 fred, 1.1  ME (comment)"));
        assert!(!via("1.1 menu") && !via("me 1.1 fred") && !via(""));
    }
}
