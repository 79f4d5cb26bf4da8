//! Where a body ends (RFC 9112, 6.3): the first rule that fits.

use super::Error;
use crate::http::message::{Fields, Method, RequestHead, ResponseHead, Version};

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is none: the message ends with its head.
    None,
    /// So many octets.
    Exactly(u64),
    /// Chunks, the last one empty.
    Chunked,
    /// When the server closes.
    UntilClose,
    /// Never: what follows is a tunnel.
    Tunnel,
}

/// How a message is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Where its body ends.
    pub length: BodyLength,
    /// The framing is suspicious (two lengths, or chunks in HTTP/1.0): the connection is closed after this exchange.
    pub must_close: bool,
}

const fn framing(length: BodyLength) -> Framing {
    Framing { length, must_close: false }
}

/// How the body of a request is framed.
pub fn of_request(head: &RequestHead) -> Result<Framing, Error> {
    match codings(&head.fields) {
        Codings::None => Ok(framing(match content_length(&head.fields)? {
            //= RFC 9112 (6.3): a request without either field has no body.
            None | Some(0) => BodyLength::None,
            Some(n) => BodyLength::Exactly(n),
        })),
        Codings::Unknown => Err(Error::UnknownCoding),
        //= RFC 9112 (6.3): a request whose codings do not end with chunked has no reliable end.
        Codings::NotChunked => Err(Error::TransferEncoding),
        Codings::Chunked { alone } if alone => Ok(chunked(head.version, &head.fields)),
        //= RFC 9112 (6.1): a server answers a coding it does not implement with 501.
        Codings::Chunked { .. } => Err(Error::UnknownCoding),
    }
}

/// How the body of the response to a request with `method` is framed.
pub fn of_response(head: &ResponseHead, method: &Method) -> Result<Framing, Error> {
    //= RFC 9112 (6.3): responses to HEAD and those with 1xx, 204 or 304 end with the head whatever the fields say.
    if *method == Method::Head || matches!(head.status, 100..=199 | 204 | 304) {
        return Ok(framing(BodyLength::None));
    }
    if *method == Method::Connect && matches!(head.status, 200..=299) {
        return Ok(framing(BodyLength::Tunnel));
    }
    match codings(&head.fields) {
        Codings::None => Ok(framing(match content_length(&head.fields)? {
            None => BodyLength::UntilClose,
            Some(0) => BodyLength::None,
            Some(n) => BodyLength::Exactly(n),
        })),
        Codings::Chunked { alone } if alone => Ok(chunked(head.version, &head.fields)),
        //= RFC 9112 (7.4): without TE in the request chunked is all that the response may have. What is coded otherwise
        //= is not the content, and would be taken for it.
        Codings::Chunked { .. } | Codings::NotChunked | Codings::Unknown => Err(Error::UnknownCoding),
    }
}

fn chunked(version: Version, fields: &Fields) -> Framing {
    //= RFC 9112 (6.1): Transfer-Encoding beside Content-Length, or in HTTP/1.0, may be an attempt at smuggling:
    //= the message is read by its chunks and the connection closed afterwards.
    let suspicious = fields.first("content-length").is_some() || version == Version::Http10;
    Framing { length: BodyLength::Chunked, must_close: suspicious }
}

enum Codings {
    None,
    Chunked { alone: bool },
    NotChunked,
    Unknown,
}

fn codings(fields: &Fields) -> Codings {
    if fields.first("transfer-encoding").is_none() {
        return Codings::None;
    }
    let (mut count, mut chunked, mut last) = (0, 0, false);
    for coding in fields.list("transfer-encoding") {
        count += 1;
        last = coding.eq_ignore_ascii_case(b"chunked");
        chunked += usize::from(last);
        let known = ["chunked", "gzip", "x-gzip", "deflate", "compress", "x-compress"];
        if !known.iter().any(|name| coding.eq_ignore_ascii_case(name.as_bytes())) {
            return Codings::Unknown;
        }
    }
    //= RFC 9112 (6.1): chunked is applied once, and last.
    if last && chunked == 1 { Codings::Chunked { alone: count == 1 } } else { Codings::NotChunked }
}

fn content_length(fields: &Fields) -> Result<Option<u64>, Error> {
    let mut length = None;
    for member in fields.all("content-length").flat_map(|value| value.split(|b| *b == b',')) {
        let digits = member.trim_ascii();
        //= RFC 9110 (8.6): only digits; a sign or an overflow is not a length.
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(Error::ContentLength);
        }
        let number = digits
            .iter()
            .try_fold(0u64, |n, d| n.checked_mul(10)?.checked_add(u64::from(d - b'0')))
            .ok_or(Error::ContentLength)?;
        //= RFC 9112 (6.3): identical values may be taken as one, different ones are an error.
        if length.is_some_and(|before| before != number) {
            return Err(Error::ContentLength);
        }
        length = Some(number);
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::http::v1::{parse_request, parse_response};

    fn request(lines: &str) -> Result<Framing, Error> {
        let text = format!("POST / HTTP/1.1\r\nHost: x\r\n{lines}\r\n");
        of_request(&parse_request(&Bytes::from(text)).unwrap())
    }
    fn response(start: &str, lines: &str, method: Method) -> Result<Framing, Error> {
        let text = format!("{start}\r\n{lines}\r\n");
        of_response(&parse_response(&Bytes::from(text)).unwrap(), &method)
    }
    const OK: &str = "HTTP/1.1 200 OK";
    const CL: &str = "Content-Length: 5\r\n";
    const TE: &str = "Transfer-Encoding: chunked\r\n";

    #[test]
    fn rule_1_head_1xx_204_and_304_have_no_body() {
        assert_eq!(response(OK, CL, Method::Head), Ok(framing(BodyLength::None)));
        for status in ["100 Continue", "204 No Content", "304 Not Modified"] {
            let start = format!("HTTP/1.1 {status}");
            assert_eq!(response(&start, TE, Method::Get), Ok(framing(BodyLength::None)), "{status}");
        }
    }

    #[test]
    fn rule_2_a_successful_connect_is_a_tunnel() {
        assert_eq!(response(OK, CL, Method::Connect), Ok(framing(BodyLength::Tunnel)));
        let refused = response("HTTP/1.1 403 No", CL, Method::Connect);
        assert_eq!(refused, Ok(framing(BodyLength::Exactly(5))));
    }

    #[test]
    fn rule_3_transfer_encoding_wins_over_content_length_and_the_connection_closes() {
        let both = format!("{CL}{TE}");
        let suspicious = Ok(Framing { length: BodyLength::Chunked, must_close: true });
        assert_eq!(request(&both), suspicious);
        assert_eq!(response(OK, &both, Method::Get), suspicious);
        assert_eq!(response("HTTP/1.0 200 OK", TE, Method::Get), suspicious);
    }

    #[test]
    fn rule_4_chunked_must_come_last() {
        assert_eq!(request(TE), Ok(framing(BodyLength::Chunked)));
        assert_eq!(request("Transfer-Encoding: CHUNKED\r\n"), Ok(framing(BodyLength::Chunked)));
        assert_eq!(request("Transfer-Encoding: chunked, gzip\r\n"), Err(Error::TransferEncoding));
        assert_eq!(
            request("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            Err(Error::TransferEncoding)
        );
        assert_eq!(request("Transfer-Encoding: gzip\r\n"), Err(Error::TransferEncoding));
        assert_eq!(request("Transfer-Encoding:\r\n"), Err(Error::TransferEncoding));
        assert_eq!(request("Transfer-Encoding: gzip, chunked\r\n"), Err(Error::UnknownCoding));
        assert_eq!(request("Transfer-Encoding: xchunked\r\n"), Err(Error::UnknownCoding));
        assert_eq!(response(OK, "Transfer-Encoding: gzip\r\n", Method::Get), Err(Error::UnknownCoding));
        for coded in ["gzip, chunked", "xchunked", "chunked, chunked"] {
            let field = format!("Transfer-Encoding: {coded}\r\n");
            assert_eq!(response(OK, &field, Method::Get), Err(Error::UnknownCoding), "{coded}");
        }
    }

    #[test]
    fn rule_5_a_content_length_is_one_number() {
        for bad in ["5, 6", "-5", "+5", "0x5", "5 5", "", "5,", "18446744073709551616"] {
            assert_eq!(request(&format!("Content-Length: {bad}\r\n")), Err(Error::ContentLength), "{bad}");
            assert_eq!(
                response(OK, &format!("Content-Length: {bad}\r\n"), Method::Get),
                Err(Error::ContentLength),
                "{bad}"
            );
        }
        assert_eq!(request("Content-Length: 5\r\nContent-Length: 6\r\n"), Err(Error::ContentLength));
        assert_eq!(
            request("Content-Length: 5\r\nContent-Length: 05\r\n"),
            Ok(framing(BodyLength::Exactly(5)))
        );
        assert_eq!(request("Content-Length: 5, 5\r\n"), Ok(framing(BodyLength::Exactly(5))));
    }

    #[test]
    fn rule_6_a_content_length_is_the_length() {
        assert_eq!(request(CL), Ok(framing(BodyLength::Exactly(5))));
        assert_eq!(response(OK, "Content-Length: 0\r\n", Method::Get), Ok(framing(BodyLength::None)));
    }

    #[test]
    fn rules_7_and_8_without_a_length_a_request_is_empty_and_a_response_lasts_until_close() {
        assert_eq!(request(""), Ok(framing(BodyLength::None)));
        assert_eq!(response(OK, "", Method::Get), Ok(framing(BodyLength::UntilClose)));
    }
}
