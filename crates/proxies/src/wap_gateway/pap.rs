//! The Push Access Protocol (WAP-164, WAP-247): who has something to push posts it over HTTP, in two parts: what is to be done,
//! as XML, and the content.
//!
//! Codes of answers are those of WAP-247 as far as they are known here; no second implementation was at hand to compare them
//! with. Taken is `push-message` to addresses of IP. Left out: cancellation, queries of status and of what a client can do, notes
//! of the result, and addresses of telephone networks, for which there is no bearer here.

use std::fmt::Write;
use std::net::IpAddr;

use airloom_base::Instant;
use bytes::Bytes;
use quick_xml::escape::escape;
use quick_xml::events::{BytesStart, Event};

use super::gateway::Gateway;
use super::push::{Method, Push, PushError};

/// Codes of answers.
pub mod code {
    /// Done.
    pub const OK: u16 = 1000;
    /// Taken, and under way.
    pub const ACCEPTED: u16 = 1001;
    /// Not understood.
    pub const BAD_REQUEST: u16 = 2000;
    /// The address is none.
    pub const ADDRESS_ERROR: u16 = 2002;
    /// Such a thing is not done here.
    pub const NOT_IMPLEMENTED: u16 = 3001;
    /// There is more than one address.
    pub const MULTIPLE_ADDRESSES: u16 = 3005;
    /// The content could not be put into the form in which it is pushed.
    pub const TRANSFORMATION_FAILURE: u16 = 3006;
    /// The client cannot be reached in the way that was asked for.
    pub const METHOD_NOT_POSSIBLE: u16 = 3007;
}

/// The largest message that is read.
pub const MOST: usize = 400_000;

/// An answer over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status of HTTP.
    pub status: u16,
    /// An XML document.
    pub body: String,
}

/// What a control document asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Control {
    push_id: String,
    addresses: Vec<String>,
    method: Method,
}

/// Why a message is refused: its code, and words for people.
type Refusal = (u16, String);

impl Gateway {
    /// A message came by POST, with this `Content-Type`. The answer's type is `application/xml`.
    pub fn handle_pap(&mut self, now: Instant, content_type: &str, body: &Bytes) -> Answer {
        let parts = match multipart(content_type, body) {
            Ok(parts) => parts,
            Err(refusal) => return bad(&refusal),
        };
        let control = match control(&parts[0].1) {
            Ok(control) => control,
            Err(refusal) => return bad(&refusal),
        };
        let (code, words) = match self.submit(now, &control, &parts) {
            Ok(()) => (code::ACCEPTED, "Accepted for processing".to_owned()),
            Err(refusal) => refusal,
        };
        //= WAP-247 (8): that a message was understood is 202, whatever came of it.
        Answer { status: 202, body: response(&control.push_id, code, &words) }
    }

    fn submit(&mut self, now: Instant, control: &Control, parts: &[Part]) -> Result<(), Refusal> {
        let [address] = &control.addresses[..] else {
            let words = "exactly one address is taken".to_owned();
            return Err((code::MULTIPLE_ADDRESSES, words));
        };
        let to = address_of(address)
            .ok_or_else(|| (code::ADDRESS_ERROR, format!("no address of IP: {address}")))?;
        let (headers, content) =
            parts.get(1).ok_or_else(|| (code::BAD_REQUEST, "there is no content".to_owned()))?;
        let find = |name: &str| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let content_type = find("content-type").map_or("application/octet-stream", |(_, value)| value);
        let is_entity = |name: &str| {
            !["content-type", "content-transfer-encoding", "content-id", "mime-version", "content-length"]
                .iter()
                .any(|mime| mime.eq_ignore_ascii_case(name))
        };
        let push = Push {
            to,
            method: control.method,
            content_type: content_type.to_owned(),
            headers: headers.iter().filter(|(name, _)| is_entity(name)).cloned().collect(),
            body: content.clone(),
        };
        self.push(now, push).map(drop).map_err(|why| match why {
            PushError::Content(why) => (code::TRANSFORMATION_FAILURE, why),
            PushError::NotPossible => {
                (code::METHOD_NOT_POSSIBLE, "the client has no session that takes it".to_owned())
            }
            PushError::TooLarge => {
                (code::METHOD_NOT_POSSIBLE, "it is larger than the client takes".to_owned())
            }
        })
    }
}

const DOCUMENT: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE pap PUBLIC \"-//WAPFORUM//DTD PAP 1.0//EN\" \
    \"http://www.wapforum.org/DTD/pap_1.0.dtd\">\n";

fn response(push_id: &str, code: u16, words: &str) -> String {
    let mut out = DOCUMENT.to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<pap><push-response push-id=\"{}\"><response-result code=\"{code}\" desc=\"{}\"/></push-response></pap>",
        escape(push_id),
        escape(words)
    );
    out
}

/// The answer to what could not be read.
fn bad((code, words): &Refusal) -> Answer {
    let mut body = DOCUMENT.to_owned();
    let _ = writeln!(body, "<pap><badmessage-response code=\"{code}\" desc=\"{}\"/></pap>", escape(words));
    Answer { status: 400, body }
}

fn unread(words: &str) -> Refusal {
    (code::BAD_REQUEST, words.to_owned())
}

/// Reads the control document.
fn control(octets: &[u8]) -> Result<Control, Refusal> {
    let text = std::str::from_utf8(octets).map_err(|_| unread("the control document is not UTF-8"))?;
    let mut reader = quick_xml::Reader::from_str(text);
    let mut control: Option<Control> = None;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) => match tag.name().as_ref() {
                "pap" => {}
                "push-message" if control.is_none() => {
                    let push_id =
                        attribute(&tag, "push-id").ok_or_else(|| unread("the message has no push-id"))?;
                    control = Some(Control { push_id, ..Control::default() });
                }
                "address" => {
                    let value = attribute(&tag, "address-value");
                    let control =
                        control.as_mut().ok_or_else(|| unread("an address outside of a message"))?;
                    control.addresses.extend(value);
                }
                "quality-of-service" => {
                    let control = control.as_mut().ok_or_else(|| unread("a quality outside of a message"))?;
                    control.method = match attribute(&tag, "delivery-method").as_deref() {
                        Some("confirmed") => Method::Confirmed,
                        Some("preferconfirmed") => Method::PreferConfirmed,
                        _ => Method::Unconfirmed,
                    };
                }
                _ if control.is_none() => {
                    return Err((code::NOT_IMPLEMENTED, "only push-message is understood".to_owned()));
                }
                _ => {}
            },
            Ok(Event::Eof) => {
                return control.ok_or_else(|| unread("there is no message in the control document"));
            }
            Ok(_) => {}
            Err(why) => {
                return Err((code::BAD_REQUEST, format!("the control document is not well-formed: {why}")));
            }
        }
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = tag.try_get_attribute(name).ok().flatten()?;
    quick_xml::escape::unescape(&attribute.value).ok().map(|value| value.into_owned())
}

/// `WAPPUSH=127.0.0.5/TYPE=IPv4@host`; `TYPE=IPV6` likewise.
fn address_of(value: &str) -> Option<IpAddr> {
    let client = value.split('@').next()?;
    let (address, kind) = client.split_once('=')?.1.rsplit_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let kind = kind.strip_prefix("TYPE=").or_else(|| kind.strip_prefix("type="))?;
    let fits = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    kind.eq_ignore_ascii_case(fits).then_some(address)
}

/// Headers and content of a part.
type Part = (Vec<(String, String)>, Bytes);

/// The parts of a body (RFC 2046, section 5.1); at least one.
fn multipart(content_type: &str, body: &Bytes) -> Result<Vec<Part>, Refusal> {
    if body.len() > MOST {
        return Err(unread("the message is too large"));
    }
    let is_multipart =
        content_type.trim_start().get(..10).is_some_and(|t| t.eq_ignore_ascii_case("multipart/"));
    let boundary = super::content::parameter(content_type, "boundary").filter(|b| !b.is_empty());
    let boundary =
        boundary.filter(|_| is_multipart).ok_or_else(|| unread("not a message of several parts"))?;
    let delimiter = format!("--{boundary}");
    let (mut parts, mut begin, mut at) = (Vec::new(), None, 0);
    while at < body.len() {
        let end = memchr::memchr(b'\n', &body[at..]).map_or(body.len(), |len| at + len + 1);
        let line = body[at..end].trim_ascii_end();
        let is_last = line.strip_suffix(b"--") == Some(delimiter.as_bytes());
        if line == delimiter.as_bytes() || is_last {
            if let Some(begin) = begin {
                parts.push(part(&body.slice(begin..at))?);
            }
            begin = Some(end);
            if is_last || parts.len() > 8 {
                break;
            }
        }
        at = end;
    }
    if parts.is_empty() { Err(unread("there are no parts")) } else { Ok(parts) }
}

/// A part: lines of headers, an empty line, the content. The line end in front of the delimiter belongs to that.
fn part(octets: &Bytes) -> Result<Part, Refusal> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut at = 0;
    loop {
        let rest = &octets[at..];
        let end = memchr::memchr(b'\n', rest).ok_or_else(|| unread("a part has no end of its headers"))?;
        let line = String::from_utf8_lossy(rest[..end].trim_ascii_end()).into_owned();
        at += end + 1;
        if line.is_empty() {
            break;
        }
        if headers.len() > 50 {
            return Err(unread("a part has too many headers"));
        }
        match (line.split_once(':'), headers.last_mut()) {
            (_, Some((_, value))) if line.starts_with([' ', '\t']) => {
                value.push(' ');
                value.push_str(line.trim());
            }
            (Some((name, value)), _) => headers.push((name.trim().to_owned(), value.trim().to_owned())),
            (None, _) => return Err(unread("a header without a colon")),
        }
    }
    let content = octets.slice(at..);
    let content_end = content
        .strip_suffix(b"\r\n")
        .or_else(|| content.strip_suffix(b"\n"))
        .map_or(content.len(), <[u8]>::len);
    Ok((headers, content.slice(..content_end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_ip_are_found() {
        assert_eq!(address_of("WAPPUSH=127.0.0.5/TYPE=IPv4@ppg.example"), "127.0.0.5".parse().ok());
        assert_eq!(address_of("wappush=::1/type=IPV6@ppg"), "::1".parse().ok());
        for bad in ["WAPPUSH=+491701234567/TYPE=PLMN@ppg", "127.0.0.5", "WAPPUSH=127.0.0.5/TYPE=IPv6@x", ""] {
            assert_eq!(address_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn parts_are_cut_at_lines_of_the_boundary() {
        let body = "preamble\r\n--b\r\nContent-Type: text/plain;\r\n  charset=utf-8\r\n\r\none\r\n--bx\r\n--b\r\n\r\n\r\n--b--\r\nrest";
        let parts = multipart("Multipart/Related; boundary=\"b\"", &Bytes::from(body)).unwrap();
        assert_eq!(parts[0].0, [("Content-Type".to_owned(), "text/plain; charset=utf-8".to_owned())]);
        assert_eq!((&parts[0].1[..], &parts[1].1[..], parts.len()), (&b"one\r\n--bx"[..], &b""[..], 2));
        for (content_type, body) in
            [("text/plain", "x"), ("multipart/x; boundary=b", "--b\nx"), ("multipart/x", "")]
        {
            assert_eq!(multipart(content_type, &Bytes::from(body)).unwrap_err().0, code::BAD_REQUEST);
        }
    }

    #[test]
    fn control_documents_say_what_to_do() {
        let text = "<?xml version=\"1.0\"?><!DOCTYPE pap><pap><push-message push-id=\"a&amp;b\">\
            <address address-value=\"X\"></address><quality-of-service delivery-method=\"confirmed\"/></push-message></pap>";
        let read = control(text.as_bytes()).unwrap();
        assert_eq!(
            read,
            Control { push_id: "a&b".into(), addresses: vec!["X".into()], method: Method::Confirmed }
        );
        assert!(response(&read.push_id, code::OK, "<ok>").contains("push-id=\"a&amp;b\""));
        assert_eq!(control(b"<pap><cancel-message/></pap>").unwrap_err().0, code::NOT_IMPLEMENTED);
        assert_eq!(control(b"<pap><push-message></pap>").unwrap_err().0, code::BAD_REQUEST);
        assert_eq!(control(b"").unwrap_err().0, code::BAD_REQUEST);
    }
}
