//! Heads: collected octet by octet up to the empty line, then parsed; and written.

use bytes::{Bytes, BytesMut};

use smart_default::SmartDefault;

use super::Error;
use crate::http::message::{Fields, Method, RequestHead, ResponseHead, Version};

/// How much memory a peer can make us spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct Limits {
    /// Longest first line in octets. At least 8000 should be supported (RFC 9112, 3).
    #[default(16_384)]
    pub line: usize,
    /// Longest head or trailer section in octets.
    #[default(32_768)]
    pub head: usize,
}

/// Most field lines of a head.
const MAX_FIELDS: usize = 128;

/// Collects a head (or a trailer section) up to the empty line that ends it.
#[derive(Default)]
pub(super) struct Collector {
    octets: BytesMut,
    /// Octets of the current line so far.
    line: usize,
    after_cr: bool,
    first_line_done: bool,
}

/// Which rules a [`Collector`] keeps to.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// Is a lone line feed an error?
    pub(super) strict: bool,
    /// Are empty lines before the first line skipped? (Trailer sections may consist of an empty line only.)
    pub(super) skip_blank: bool,
}

impl Collector {
    /// Takes octets up to the end of the head. Returns how many were taken, and the head if it is complete.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        rules: Rules,
        limits: Limits,
    ) -> Result<(usize, Option<Bytes>), Error> {
        for (place, octet) in input.iter().enumerate() {
            if self.after_cr && *octet != b'\n' {
                //= RFC 9112 (2.2): a bare CR makes the element invalid.
                return Err(Error::BareCr);
            }
            match octet {
                b'\n' => {
                    if rules.strict && !self.after_cr {
                        //= RFC 9112 (2.2): a lone LF may be recognised as a line end; in requests we refuse it.
                        return Err(Error::BareLf);
                    }
                    self.after_cr = false;
                    if self.line > 0 {
                        self.first_line_done = true;
                        self.line = 0;
                    } else if rules.skip_blank && !self.first_line_done {
                        //= RFC 9112 (2.2): at least one empty line before the request line is ignored.
                        // They count as octets of the head: no endless row of them.
                    } else {
                        self.octets.extend_from_slice(&input[..=place]);
                        let mut whole = std::mem::take(self).octets.freeze();
                        let blank = whole.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
                        if rules.skip_blank {
                            whole = whole.slice(blank..);
                        }
                        return Ok((place + 1, Some(whole)));
                    }
                }
                b'\r' => self.after_cr = true,
                _ => {
                    self.line += 1;
                    if !self.first_line_done && self.line > limits.line {
                        return Err(Error::LineTooLong);
                    }
                }
            }
            if self.octets.len() + place >= limits.head {
                return Err(Error::HeadTooLong);
            }
        }
        self.octets.extend_from_slice(input);
        Ok((input.len(), None))
    }

    /// Has nothing arrived yet (but blank lines, perhaps)?
    pub(super) fn is_empty(&self) -> bool {
        !self.first_line_done && self.line == 0
    }
}

fn version(minor: Option<u8>) -> Result<Version, Error> {
    match minor {
        Some(0) => Ok(Version::Http10),
        Some(1) => Ok(Version::Http11),
        _ => Err(Error::StartLine),
    }
}

/// The field lines as slices of the head they were parsed from. `fold` replaces folded line ends by spaces.
fn fields(head: &Bytes, parsed: &[httparse::Header], fold: bool) -> Fields {
    let mut fields = Fields::default();
    for line in parsed {
        let value = line.value.trim_ascii();
        let value = if fold && value.contains(&b'\n') {
            //= RFC 9112 (5.2): a folded line end in a response is replaced by spaces before the value is used.
            value.iter().map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }).collect()
        } else if value.is_empty() {
            Bytes::new()
        } else {
            head.slice_ref(value)
        };
        fields.push(head.slice_ref(line.name.as_bytes()), value);
    }
    fields
}

fn field_error(error: httparse::Error) -> Error {
    match error {
        httparse::Error::TooManyHeaders => Error::HeadTooLong,
        httparse::Error::HeaderName | httparse::Error::HeaderValue => Error::Field,
        _ => Error::StartLine,
    }
}

/// Is the last word of the first line `HTTP/` with a version we do not speak?
fn other_version(head: &[u8]) -> bool {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii_end();
    let word = line.rsplit(|b| *b == b' ').next().unwrap_or_default();
    matches!(word, [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
        if major.is_ascii_digit() && minor.is_ascii_digit())
}

/// Parses a whole request head, empty line included.
pub fn parse_request(head: &Bytes) -> Result<RequestHead, Error> {
    let mut lines = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut lines);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Error::Incomplete),
        Err(httparse::Error::Version) if other_version(head) => return Err(Error::Version),
        Err(error) => return Err(field_error(error)),
    }
    let (Some(method), Some(target)) = (request.method, request.path) else { return Err(Error::StartLine) };
    Ok(RequestHead {
        method: Method::from_name(method),
        target: head.slice_ref(target.as_bytes()),
        version: version(request.version)?,
        fields: fields(head, request.headers, false),
    })
}

/// Parses a whole response head, empty line included.
pub fn parse_response(head: &Bytes) -> Result<ResponseHead, Error> {
    let mut lines = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut lines);
    let mut parser = httparse::ParserConfig::default();
    //= RFC 9112 (5.1): white space between a name and its colon is removed from responses.
    parser.allow_spaces_after_header_name_in_responses(true);
    parser.allow_obsolete_multiline_headers_in_responses(true);
    match parser.parse_response(&mut response, head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Error::Incomplete),
        Err(httparse::Error::Version) => return Err(Error::Version),
        Err(error) => return Err(field_error(error)),
    }
    let reason = response.reason.unwrap_or_default();
    Ok(ResponseHead {
        version: version(response.version)?,
        status: response.code.filter(|code| *code >= 100).ok_or(Error::StartLine)?,
        reason: if reason.is_empty() { Bytes::new() } else { head.slice_ref(reason.as_bytes()) },
        fields: fields(head, response.headers, true),
    })
}

/// Parses a trailer section, empty line included.
pub(super) fn parse_trailers(section: &Bytes) -> Result<Fields, Error> {
    let mut lines = [httparse::EMPTY_HEADER; MAX_FIELDS];
    match httparse::parse_headers(section, &mut lines) {
        Ok(httparse::Status::Complete((_, parsed))) => Ok(fields(section, parsed, false)),
        Ok(httparse::Status::Partial) => Err(Error::Incomplete),
        Err(error) => Err(field_error(error)),
    }
}

fn emit_fields(fields: &Fields, out: &mut Vec<u8>) {
    for field in fields.iter() {
        out.extend_from_slice(&field.name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(&field.value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

impl RequestHead {
    /// Appends the head to `out` as HTTP/1.x writes it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.method.name().as_bytes());
        out.push(b' ');
        out.extend_from_slice(&self.target);
        out.extend_from_slice(format!(" {}\r\n", self.version).as_bytes());
        emit_fields(&self.fields, out);
    }
}

impl ResponseHead {
    /// Appends the head to `out` as HTTP/1.x writes it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{} {:03} ", self.version, self.status).as_bytes());
        out.extend_from_slice(&self.reason);
        out.extend_from_slice(b"\r\n");
        emit_fields(&self.fields, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_parsed_as_they_were_written() {
        let octets = Bytes::from_static(b"GET /a%20b?c HTTP/1.1\r\nHost: x\r\nEmpty:\r\nA: b, c\r\n\r\n");
        let head = parse_request(&octets).unwrap();
        assert_eq!((&head.target[..], head.version), (&b"/a%20b?c"[..], Version::Http11));
        assert_eq!(head.fields.first("empty"), Some(&b""[..]));
        let mut out = Vec::new();
        head.emit(&mut out);
        assert_eq!(out, b"GET /a%20b?c HTTP/1.1\r\nHost: x\r\nEmpty: \r\nA: b, c\r\n\r\n");

        let octets = Bytes::from_static(b"HTTP/1.0 404 Not Found\r\nServer: s\r\n\r\n");
        let head = parse_response(&octets).unwrap();
        assert_eq!((head.status, &head.reason[..]), (404, &b"Not Found"[..]));
        let mut out = Vec::new();
        head.emit(&mut out);
        assert_eq!(out, &octets[..]);
    }

    #[test]
    fn a_response_may_fold_lines_and_put_spaces_before_the_colon() {
        let octets = Bytes::from_static(b"HTTP/1.1 200 OK\r\nServer : x\r\n  y\r\nB: 1\r\n\r\n");
        let head = parse_response(&octets).unwrap();
        assert_eq!(head.fields.first("server"), Some(&b"x    y"[..]));
        assert_eq!(head.fields.first("b"), Some(&b"1"[..]));
    }

    #[test]
    fn every_truncation_of_a_head_is_an_error() {
        let whole = Bytes::from_static(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        for end in 0..whole.len() {
            assert!(parse_request(&whole.slice(..end)).is_err(), "{end}");
        }
        let whole = Bytes::from_static(b"HTTP/1.1 200 OK\r\nA: x\r\n\r\n");
        for end in 0..whole.len() {
            assert!(parse_response(&whole.slice(..end)).is_err(), "{end}");
        }
    }

    #[test]
    fn other_versions_are_told_from_nonsense() {
        let error = |text: &'static str| parse_request(&Bytes::from_static(text.as_bytes())).unwrap_err();
        assert_eq!(error("GET / HTTP/2.0\r\n\r\n"), Error::Version);
        assert_eq!(error("GET / HTTP/0.9\r\n\r\n"), Error::Version);
        assert_eq!(error("GET / HTTP/1.11\r\n\r\n"), Error::StartLine);
        assert_eq!(error("GET / FTP/1.0\r\n\r\n"), Error::StartLine);
        assert_eq!(error("GET /\r\n\r\n"), Error::StartLine);
    }
}
