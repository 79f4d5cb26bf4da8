//! Heads of requests and responses.

use std::borrow::Cow;
use std::fmt;

use bytes::{Bytes, BytesMut};

/// Version of a message as its sender states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2, whose messages do not state it.
    Http2,
    /// HTTP/3, whose messages do not state it either.
    Http3,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2",
            Version::Http3 => "HTTP/3",
        })
    }
}

/// What a request wants done with its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// Transfer a representation.
    Get,
    /// The same without the body.
    Head,
    /// Process the body.
    Post,
    /// Replace the target.
    Put,
    /// Remove the target.
    Delete,
    /// Become a tunnel.
    Connect,
    /// Say what is possible.
    Options,
    /// Send the request back.
    Trace,
    /// Any other token; methods are case-sensitive.
    Other(String),
}

impl Method {
    /// The method called `name`.
    pub fn from_name(name: &str) -> Method {
        match name {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "CONNECT" => Method::Connect,
            "OPTIONS" => Method::Options,
            "TRACE" => Method::Trace,
            other => Method::Other(other.to_owned()),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Connect => "CONNECT",
            Method::Options => "OPTIONS",
            Method::Trace => "TRACE",
            Method::Other(name) => name,
        }
    }

    /// Does it only ask?
    pub fn is_safe(&self) -> bool {
        //= RFC 9110 (9.2.1): GET, HEAD, OPTIONS and TRACE; of others nobody knows.
        matches!(self, Method::Get | Method::Head | Method::Options | Method::Trace)
    }

    /// May it be repeated with the same effect as once?
    pub fn is_idempotent(&self) -> bool {
        //= RFC 9110 (9.2.2): PUT, DELETE and the safe methods are idempotent.
        !matches!(self, Method::Post | Method::Connect | Method::Other(_))
    }
}

/// One field line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name as it was written.
    pub name: Bytes,
    /// Its value without the white space around it.
    pub value: Bytes,
}

/// The field lines of a message, in order, repeated names and all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<Field>);

impl Fields {
    /// Adds a line at the end. The caller vouches that neither part contains a line end.
    pub fn push(&mut self, name: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.0.push(Field { name: name.into(), value: value.into() });
    }
    /// All lines in order.
    pub fn iter(&self) -> impl Iterator<Item = &Field> {
        self.0.iter()
    }
    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// No lines?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The values of all lines called `name`, in order; names are compared without regard to case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |f| f.name.eq_ignore_ascii_case(name.as_bytes())).map(|f| &f.value[..])
    }
    /// The value of the first line called `name`.
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|f| f.name.eq_ignore_ascii_case(name.as_bytes())).map(|f| &f.value[..])
    }
    /// Removes all lines called `name`.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|f| !f.name.eq_ignore_ascii_case(name.as_bytes()));
    }
    /// The members of the comma-separated list that the lines called `name` form together, white space removed,
    /// empty members left out.
    pub fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        //= RFC 9110 (5.3, 5.6.1): repeated lines are one list; a recipient ignores empty members.
        self.all(name)
            .flat_map(|value| value.split(|b| *b == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|member| !member.is_empty())
    }
    /// The lines of a head that they make.
    pub fn lines(&self) -> Bytes {
        let octets = self.0.iter().map(|f| f.name.len() + f.value.len() + 4).sum();
        let mut lines = BytesMut::with_capacity(octets);
        for field in self.iter() {
            for part in [&field.name[..], b": ", &field.value, b"\r\n"] {
                lines.extend_from_slice(part);
            }
        }
        lines.freeze()
    }
    /// The same as parts of `lines`, which are theirs: whoever keeps fields of a message that came keeps nothing else of its head then.
    pub fn within(&self, lines: &Bytes) -> Fields {
        let mut at = 0;
        let mut next = |octets: usize| {
            let part = lines.slice(at..at + octets);
            at += octets + 2;
            part
        };
        Fields(self.iter().map(|f| Field { name: next(f.name.len()), value: next(f.value.len()) }).collect())
    }
    /// Does the list `name` contain `token`, without regard to case?
    pub fn list_has(&self, name: &str, token: &str) -> bool {
        self.list(name).any(|member| member.eq_ignore_ascii_case(token.as_bytes()))
    }
}

impl<N: Into<Bytes>, V: Into<Bytes>> FromIterator<(N, V)> for Fields {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(lines: T) -> Fields {
        Fields(lines.into_iter().map(|(n, v)| Field { name: n.into(), value: v.into() }).collect())
    }
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Method.
    pub method: Method,
    /// Target as it was written; valid visible octets, but any form.
    pub target: Bytes,
    /// Version.
    pub version: Version,
    /// Fields.
    pub fields: Fields,
}

impl RequestHead {
    /// Authority and path of the target: `(Some("host"), "/path?query")` for the absolute form, `(None, "/path")`
    /// for the origin form; other forms (`*`, `host:port`) are their own path.
    pub fn target_parts(&self) -> (Option<&[u8]>, Cow<'_, [u8]>) {
        let target = &self.target[..];
        let Some(scheme) = target.windows(3).position(|w| w == b"://") else { return (None, target.into()) };
        if scheme == 0 || !target[..scheme].iter().all(u8::is_ascii_alphanumeric) {
            return (None, target.into());
        }
        let rest = &target[scheme + 3..];
        let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
        //= RFC 9112 (3.2.1): an empty path is a slash, before a query, too.
        let path: Cow<'_, [u8]> = match rest[end..].first() {
            Some(b'/') => (&rest[end..]).into(),
            Some(_) => [b"/", &rest[end..]].concat().into(),
            None => b"/"[..].into(),
        };
        (Some(&rest[..end]), path)
    }

    /// The host (and port) it is for: of the target if it names one, else of the Host field.
    pub fn authority(&self) -> Option<&[u8]> {
        //= RFC 9112 (3.2.2): the authority of an absolute target replaces the Host field.
        self.target_parts().0.or_else(|| self.fields.first("host"))
    }
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Version.
    pub version: Version,
    /// Status code.
    pub status: u16,
    /// Reason phrase, for people.
    pub reason: Bytes,
    /// Fields.
    pub fields: Fields,
}

/// The usual phrase for a status code, empty for codes without one.
pub const fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        508 => "Loop Detected",
        _ => "",
    }
}

/// Is it an octet of tokens, as names of fields are (RFC 9110, 5.6.2)?
pub fn is_token(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &'static str, host: &'static str) -> RequestHead {
        let mut fields = Fields::default();
        fields.push("Host", host);
        RequestHead { method: Method::Get, target: target.into(), version: Version::Http11, fields }
    }

    #[test]
    fn an_absolute_target_overrides_the_host_field() {
        let r = request("http://a.example:81/x?y", "b.example");
        assert_eq!(r.target_parts(), (Some(&b"a.example:81"[..]), b"/x?y"[..].into()));
        assert_eq!(r.authority(), Some(&b"a.example:81"[..]));
        assert_eq!(request("/x?u=http://c/", "b.example").authority(), Some(&b"b.example"[..]));
        assert_eq!(*request("http://a.example", "").target_parts().1, *b"/");
        assert_eq!(*request("http://a.example?q=1", "").target_parts().1, *b"/?q=1");
        assert_eq!(request("*", "b.example").target_parts(), (None, b"*"[..].into()));
    }

    #[test]
    fn fields_are_found_whatever_their_case_and_lists_joined() {
        let mut fields = Fields::default();
        fields.push("Connection", "Foo , close,,");
        fields.push("X", "1");
        fields.push("connection", "bar");
        let members: Vec<_> = fields.list("CONNECTION").collect();
        assert_eq!(members, [&b"Foo"[..], b"close", b"bar"]);
        assert!(fields.list_has("Connection", "Close") && !fields.list_has("x", "close"));
        fields.remove("CONNECTION");
        assert_eq!(fields.len(), 1);
    }

    #[test]
    fn fields_are_parts_of_the_lines_they_make() {
        let fields = Fields::from_iter([("A", "b, c"), ("Empty", ""), ("D", "e")]);
        let lines = fields.lines();
        assert_eq!(&lines[..], b"A: b, c\r\nEmpty: \r\nD: e\r\n");
        let within = fields.within(&lines);
        assert_eq!(within, fields);
        assert!(within.iter().all(|field| lines.as_ptr_range().contains(&field.name.as_ptr())));
    }

    #[test]
    fn methods_are_case_sensitive() {
        assert_eq!(Method::from_name("GET"), Method::Get);
        assert_eq!(Method::from_name("get"), Method::Other("get".into()));
        assert!(Method::Put.is_idempotent() && !Method::Post.is_idempotent());
        assert!(Method::Trace.is_safe() && !Method::Put.is_safe() && !Method::from_name("get").is_safe());
    }
}
