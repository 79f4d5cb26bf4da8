//! A request of a client -> a request to an origin.

use airloom_content::http::message::{Fields, Method};
use airloom_transports::wsp;
use airloom_transports::wsp::headers::Version;
use bytes::Bytes;
use url::Url;

use super::accept::Weights;
use super::fetch::FetchRequest;
use super::headers::{self, Headers};
use super::session;

/// Octets of an address.
const LONGEST_URI: usize = 8_192;

/// Fields that are about one connection (RFC 9110, section 7.6.1), about WSP, or written anew here.
const NOT_PASSED_ON: [&str; 17] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "encoding-version",
    "expect",
    "host",
    "if-range",
    "keep-alive",
    "proxy-authorization",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What a client wants.
#[derive(Clone, Debug)]
pub(super) struct ClientRequest {
    pub(super) request: FetchRequest,
    /// Media types that it takes.
    pub(super) accept: Weights,
    /// Character sets that it takes.
    pub(super) charsets: Weights,
    /// It does not want what was kept.
    pub(super) afresh: bool,
    /// Which numbers of headers it knows, if it says so here.
    pub(super) version: Option<Version>,
}

/// How the gateway asks origins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner<'a> {
    /// Its own name.
    pub(super) name: &'a str,
    /// It can make decks of web pages.
    pub(super) converts_html: bool,
}

/// The request to the origin, without cookies of ours.
///
/// # Errors
/// The status that the client gets instead; 200 where the gateway is the one that is asked.
pub(super) fn map(
    method: wsp::wire::Method,
    uri: &[u8],
    session: &Headers,
    headers: &[u8],
    body: Bytes,
    manner: Manner<'_>,
) -> Result<ClientRequest, u16> {
    let http = passed_on(method).ok_or(501_u16)?;
    let url = address(uri)?;
    let (content_type, rest) = match method.has_body() {
        true => headers::content_type(headers).map(|(text, rest)| (Some(text), rest)).ok_or(400_u16)?,
        false => (None, headers),
    };
    let all = headers::merged(session, headers::decode(rest).ok_or(400_u16)?);
    let accept = Weights::of(headers::values(&all, "accept"));
    let charsets = Weights::of(headers::values(&all, "accept-charset"));
    let mut fields = Fields::default();
    fields.push("Host", authority(&url));
    put_accept(&all, &accept, manner, &mut fields);
    put_charsets(&all, &charsets, &mut fields);
    fields.push("Accept-Encoding", "gzip, deflate");
    let named: Vec<&str> =
        headers::values(&all, "connection").flat_map(|v| v.split(',')).map(str::trim).collect();
    for (name, value) in &all {
        let lower = name.to_ascii_lowercase();
        let dropped =
            NOT_PASSED_ON.contains(&lower.as_str()) || named.iter().any(|n| n.eq_ignore_ascii_case(name));
        if !dropped {
            let value = match http {
                Method::Options if lower == "max-forwards" => one_less(value)?,
                _ => value.clone(),
            };
            fields.push(name.clone().into_bytes(), value.into_bytes());
        }
    }
    //= RFC 9110 (7.6.3): a gateway to HTTP says in each request that it was there, and by which protocol it was asked.
    fields.push("Via", format!("WSP/1.0 {}", manner.name));
    if let Some(content_type) = content_type {
        fields.push("Content-Type", content_type);
        fields.push("Content-Length", body.len().to_string());
    }
    let said =
        |name, word: &str| headers::values(&all, name).any(|value| value.to_ascii_lowercase().contains(word));
    let afresh =
        said("cache-control", "no-cache") || said("cache-control", "no-store") || said("pragma", "no-cache");
    let request = FetchRequest { method: http, url, fields, body };
    let version = session::version(&all);
    Ok(ClientRequest { request, accept, charsets, afresh, version })
}

/// `Max-Forwards` of a request that is passed on; 200 if it goes no further.
fn one_less(value: &str) -> Result<String, u16> {
    //= RFC 9110 (7.6.2): OPTIONS goes so far and no further.
    let left: u32 = value.parse().map_err(|_| 400_u16)?;
    left.checked_sub(1).map(|left| left.to_string()).ok_or(200)
}

/// The methods that origins get to see. TRACE would show the client fields that are none of its business (RFC 9110, 9.3.8);
/// no extended method is agreed on.
fn passed_on(method: wsp::wire::Method) -> Option<Method> {
    Some(match method {
        wsp::wire::Method::Get => Method::Get,
        wsp::wire::Method::Head => Method::Head,
        wsp::wire::Method::Post => Method::Post,
        wsp::wire::Method::Put => Method::Put,
        wsp::wire::Method::Delete => Method::Delete,
        wsp::wire::Method::Options => Method::Options,
        _ => return None,
    })
}

fn address(uri: &[u8]) -> Result<Url, u16> {
    if uri.len() > LONGEST_URI {
        return Err(414);
    }
    let text = std::str::from_utf8(uri).map_err(|_| 400_u16)?;
    let url = Url::parse(text).map_err(|_| 400_u16)?;
    cleaned(url).ok_or(400)
}

/// An address that can be asked: of HTTP, with a host, without a fragment and without a user's name, which is no business of
/// a line in a request.
fn cleaned(mut url: Url) -> Option<Url> {
    let is_http =
        matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty());
    url.set_fragment(None);
    let done = url.set_username("").and_then(|()| url.set_password(None));
    (is_http && done.is_ok()).then_some(url)
}

pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The client's `Accept`, and what can be made into something that it takes.
fn put_accept(all: &Headers, accept: &Weights, manner: Manner<'_>, fields: &mut Fields) {
    let mut list: Vec<&str> = headers::values(all, "accept").collect();
    for (takes, source) in [
        (super::content::WMLC, super::content::WML),
        (super::content::SIC, super::content::SI),
        (super::content::SLC, super::content::SL),
        (super::content::COC, super::content::CO),
    ] {
        if accept.names(takes) && !accept.names(source) {
            list.push(source);
        }
    }
    if manner.converts_html && accept.names(super::content::WMLC) {
        for source in ["text/html;q=0.5", "application/xhtml+xml;q=0.5"] {
            if !accept.names(source.split(';').next().unwrap_or(source)) {
                list.push(source);
            }
        }
    }
    if list.is_empty() {
        list.push("*/*");
    }
    fields.push("Accept", list.join(", "));
}

/// The client's `Accept-Charset`, and UTF-8, which can be made into others.
fn put_charsets(all: &Headers, charsets: &Weights, fields: &mut Fields) {
    if charsets.is_empty() {
        return;
    }
    let mut list: Vec<&str> = headers::values(all, "accept-charset").collect();
    if !charsets.takes("utf-8") {
        list.push("utf-8");
    }
    fields.push("Accept-Charset", list.join(", "));
}

/// The request that a redirection asks for in the place of `asked`; none if `status` is no such redirection or the new
/// address cannot be asked.
pub(super) fn redirected(asked: &FetchRequest, status: u16, fields: &Fields) -> Option<FetchRequest> {
    //= RFC 9110 (15.4): 303 asks with GET; so do 301 and 302 after a POST, as everybody does.
    let method = match (status, &asked.method) {
        (303, Method::Head) => Method::Head,
        (303, _) | (301 | 302, Method::Post) => Method::Get,
        (301 | 302 | 307 | 308, method) => method.clone(),
        _ => return None,
    };
    let location = std::str::from_utf8(fields.first("location")?).ok()?;
    let url = cleaned(asked.url.join(location).ok().filter(|_| location.len() <= LONGEST_URI)?)?;
    let mut request = FetchRequest { method, ..asked.clone() };
    if request.method != asked.method {
        request.body = Bytes::new();
        for name in ["content-length", "content-type", "content-encoding", "content-language"] {
            request.fields.remove(name);
        }
    }
    if url.origin() != asked.url.origin() {
        // What was said to one origin is not for another.
        request.fields.remove("authorization");
        request.fields.remove("cookie");
    }
    let mut with_host = Fields::default();
    with_host.push("Host", authority(&url));
    request.fields.remove("host");
    request.fields.iter().for_each(|f| with_host.push(f.name.clone(), f.value.clone()));
    Some(FetchRequest { url, fields: with_host, ..request })
}

#[cfg(test)]
mod tests {
    use airloom_transports::wsp::headers::Encoder;
    use airloom_transports::wsp::wire::Method as Wsp;

    use super::*;

    const MANNER: Manner<'static> = Manner { name: "gw", converts_html: true };

    fn compact(list: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        list.iter().for_each(|(name, value)| Encoder::default().header(name, value, &mut out).unwrap());
        out
    }

    fn text(fields: &Fields) -> Vec<String> {
        fields
            .iter()
            .map(|f| format!("{}: {}", String::from_utf8_lossy(&f.name), String::from_utf8_lossy(&f.value)))
            .collect()
    }

    #[test]
    fn headers_of_the_request_stand_in_the_place_of_the_sessions() {
        let session = headers::decode(&compact(&[
            ("User-Agent", "Phone/1"),
            ("Accept", "application/vnd.wap.wmlc, image/vnd.wap.wbmp"),
            ("Accept-Charset", "iso-8859-1"),
            ("Encoding-Version", "1.3"),
        ]))
        .unwrap();
        let own = compact(&[
            ("User-Agent", "Phone/2"),
            ("Connection", "X-Hop"),
            ("X-Hop", "1"),
            ("Range", "bytes=0-1"),
        ]);
        let asked =
            map(Wsp::Get, b"http://u:p@o.example:81/x?y#z", &session, &own, Bytes::new(), MANNER).unwrap();
        assert_eq!(asked.request.url.as_str(), "http://o.example:81/x?y");
        assert_eq!(
            text(&asked.request.fields),
            [
                "Host: o.example:81",
                "Accept: application/vnd.wap.wmlc, image/vnd.wap.wbmp, text/vnd.wap.wml, text/html;q=0.5, application/xhtml+xml;q=0.5",
                "Accept-Charset: iso-8859-1, utf-8",
                "Accept-Encoding: gzip, deflate",
                "User-Agent: Phone/2",
                "Via: WSP/1.0 gw",
            ]
        );
    }

    #[test]
    fn a_body_is_announced_with_its_true_length() {
        let mut own = Vec::new();
        Encoder::default().content_type("application/x-www-form-urlencoded", &mut own);
        own.extend(compact(&[("Content-Length", "99")]));
        let body = Bytes::from_static(b"a=1");
        let asked = map(Wsp::Post, b"http://o/", &Headers::new(), &own, body, MANNER).unwrap();
        assert_eq!(asked.request.method, Method::Post);
        let lengths: Vec<_> = asked.request.fields.all("content-length").collect();
        assert_eq!(lengths, [b"3"]);
        assert_eq!(asked.request.fields.first("accept"), Some(&b"*/*"[..]));
    }

    #[test]
    fn what_cannot_be_passed_on_has_a_status() {
        let status = |method, uri: &[u8], headers: &[u8]| {
            map(method, uri, &Headers::new(), headers, Bytes::new(), MANNER).err()
        };
        assert_eq!(status(Wsp::Trace, b"http://o/", b""), Some(501));
        assert_eq!(status(Wsp::Extended(0x50), b"http://o/", b""), Some(501));
        for bad in [&b"/relative"[..], b"ftp://o/", b"\xFF", b"http://", b"mailto:a@b"] {
            assert_eq!(status(Wsp::Get, bad, b""), Some(400));
        }
        assert_eq!(status(Wsp::Get, b"http://o/", &[0x00]), Some(400));
        assert_eq!(status(Wsp::Post, b"http://o/", b""), Some(400));
        assert_eq!(status(Wsp::Get, &[b'a'; 9000], b""), Some(414));
    }

    #[test]
    fn redirections_lead_on_without_what_was_for_the_first_origin() {
        let mut own = Vec::new();
        Encoder::default().content_type("text/plain", &mut own);
        own.extend(compact(&[("Authorization", "Basic YTpi")]));
        let body = Bytes::from_static(b"x");
        let asked = map(Wsp::Post, b"http://a/x/y", &Headers::new(), &own, body, MANNER).unwrap().request;
        let to = |location: &'static str, status| {
            let mut fields = Fields::default();
            fields.push("Location", location);
            redirected(&asked, status, &fields)
        };
        let see = to("../z?q#f", 302).unwrap();
        assert_eq!((see.method, see.url.as_str(), see.body.len()), (Method::Get, "http://a/z?q", 0));
        assert!(see.fields.first("content-length").is_none() && see.fields.first("authorization").is_some());
        let moved = to("http://b:8080/", 307).unwrap();
        assert_eq!((moved.method, moved.body.len()), (Method::Post, 1));
        assert_eq!(moved.fields.first("host"), Some(&b"b:8080"[..]));
        assert!(
            moved.fields.first("authorization").is_none() && moved.fields.first("content-length").is_some()
        );
        assert_eq!([to("ftp://b/", 302), to("", 304)], [None, None]);
    }
}
