//! Bodies of several parts (RFC 2046, section 5.1).

use bytes::Bytes;

use crate::wap_gateway::content::parameter;

/// Headers and content of a part.
pub(super) type Part = (Vec<(String, String)>, Bytes);

/// The parts of a body (RFC 2046, section 5.1); at least one.
pub(super) fn multipart(content_type: &str, body: &Bytes) -> Result<Vec<Part>, String> {
    //= WAP-247 (8): multipart/related. No other kind: a form of a web page is multipart/form-data.
    let media = content_type.split(';').next().unwrap_or_default().trim();
    let boundary = parameter(content_type, "boundary").filter(|b| !b.is_empty());
    let boundary = boundary
        .filter(|_| media.eq_ignore_ascii_case("multipart/related"))
        .ok_or_else(|| "not a message of related parts".to_owned())?;
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
    if parts.is_empty() { Err("there are no parts".to_owned()) } else { Ok(parts) }
}

/// A part: lines of headers, an empty line, the content. The line end in front of the delimiter belongs to that.
fn part(octets: &Bytes) -> Result<Part, String> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut at = 0;
    loop {
        let rest = &octets[at..];
        let end = memchr::memchr(b'\n', rest).ok_or_else(|| "a part has no end of its headers".to_owned())?;
        let line = String::from_utf8_lossy(rest[..end].trim_ascii_end()).into_owned();
        at += end + 1;
        if line.is_empty() {
            break;
        }
        if headers.len() > 50 {
            return Err("a part has too many headers".to_owned());
        }
        match (line.split_once(':'), headers.last_mut()) {
            (_, Some((_, value))) if line.starts_with([' ', '\t']) => {
                value.push(' ');
                value.push_str(line.trim());
            }
            (Some((name, value)), _) => headers.push((name.trim().to_owned(), value.trim().to_owned())),
            (None, _) => return Err("a header without a colon".to_owned()),
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
    fn parts_are_cut_at_lines_of_the_boundary() {
        let body = "preamble\r\n--b\r\nContent-Type: text/plain;\r\n  charset=utf-8\r\n\r\none\r\n--bx\r\n--b\r\n\r\n\r\n--b--\r\nrest";
        let parts = multipart("Multipart/Related; boundary=\"b\"", &Bytes::from(body)).unwrap();
        assert_eq!(parts[0].0, [("Content-Type".to_owned(), "text/plain; charset=utf-8".to_owned())]);
        assert_eq!((&parts[0].1[..], &parts[1].1[..], parts.len()), (&b"one\r\n--bx"[..], &b""[..], 2));
        for (content_type, body) in [
            ("text/plain", "x"),
            ("multipart/related; boundary=b", "--b\nx"),
            ("multipart/related", ""),
            ("multipart/form-data; boundary=b", "--b\n\nx\n--b--"),
            ("multipart/mixed; boundary=b", "--b\n\nx\n--b--"),
            ("multipart/relatedx; boundary=b", "--b\n\nx\n--b--"),
        ] {
            assert!(multipart(content_type, &Bytes::from(body)).is_err(), "{content_type} {body}");
        }
    }
}
