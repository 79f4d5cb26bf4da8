//! Heads as lists of lines, as HTTP/2 and 3 have them: pseudo-fields in front, names in lower case.
//! RFC 9114 (4.2, 4.3) has the rules of RFC 9113 that are named here.

use bytes::Bytes;

use super::message::{Fields, Method, RequestHead, ResponseHead, Version};

/// A field: name and value.
pub type Line = (Bytes, Bytes);

/// What a header list counts for each line beyond its octets.
//= RFC 7541 (4.1), RFC 9113 (6.5.2), RFC 9204 (3.2.1): an entry counts 32 octets more than its name and value have.
pub const ENTRY: usize = 32;

/// Fields that speak about a connection of HTTP/1.1 and may not come in later versions.
//= RFC 9113 (8.2.2): a message with fields of the connection is malformed; TE may only say trailers.
const OF_A_CONNECTION: [&[u8]; 5] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// Octets that names are made of.
const OF_A_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut octets: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~";
    while let [octet, rest @ ..] = octets {
        table[*octet as usize] = true;
        octets = rest;
    }
    table
};

/// A line that is valid in a head or in trailers.
fn is_valid(name: &[u8], value: &[u8]) -> bool {
    //= RFC 9113 (8.2.1): no upper case, no white space around values, no line ends, no NUL.
    !name.is_empty()
        && name.iter().all(|octet| OF_A_NAME[usize::from(*octet)])
        && memchr::memchr3(0, b'\r', b'\n', value).is_none()
        && value.trim_ascii().len() == value.len()
        && !OF_A_CONNECTION.contains(&name)
        && (name != b"te" || value == b"trailers")
}

/// The lines of a head without its pseudo-fields; `None` if one of them is malformed.
fn ordinary(lines: Vec<Line>, fields: &mut Fields) -> Option<()> {
    let mut cookies: Vec<Bytes> = Vec::new();
    for (name, value) in lines {
        if !is_valid(&name, &value) {
            return None;
        }
        if name != b"cookie"[..] {
            fields.push(name, value);
        } else if !(cookies.is_empty() && value.is_empty()) {
            cookies.push(value);
        }
    }
    match &cookies[..] {
        [] => {}
        [only] => fields.push("cookie", only.clone()),
        //= RFC 9113 (8.2.3): several cookie lines are joined by "; " before they are used elsewhere.
        several => fields.push("cookie", several.join(&b"; "[..])),
    }
    Some(())
}

/// Takes the pseudo-fields off the front: values in the order of `names`. `None` if one comes twice, is unknown, or comes
/// behind an ordinary line.
fn pseudo<const N: usize>(lines: &mut Vec<Line>, names: [&[u8]; N]) -> Option<[Option<Bytes>; N]> {
    //= RFC 9113 (8.3): pseudo-fields come first, none twice, and no others than those that are defined.
    let count = lines.iter().take_while(|(name, _)| name.first() == Some(&b':')).count();
    let mut values = [const { None }; N];
    for (name, value) in lines.drain(..count) {
        let place = names.iter().position(|known| *known == name)?;
        if values[place].replace(value).is_some() {
            return None;
        }
    }
    Some(values)
}

/// The request that these lines are; `None` if it is malformed.
pub fn to_request(mut lines: Vec<Line>, version: Version) -> Option<RequestHead> {
    let [method, scheme, authority, path] =
        pseudo(&mut lines, [b":method", b":scheme", b":authority", b":path"])?;
    let method = Method::from_name(std::str::from_utf8(&method?).ok()?);
    let is_three = version == Version::Http3;
    //= RFC 9114 (4.3.1): what says whom a request is for is not empty.
    if is_three && authority.as_ref().is_some_and(Bytes::is_empty) {
        return None;
    }
    let authority = authority.unwrap_or_default();
    let name = method.name();
    if !is_authority(&authority) || name.is_empty() || !name.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    let mut fields = Fields::default();
    let mut is_of_somebody = false;
    let target: Bytes = if method == Method::Connect {
        //= RFC 9113 (8.5): CONNECT has an authority, and neither scheme nor path.
        if scheme.is_some() || path.is_some() || authority.is_empty() {
            return None;
        }
        authority
    } else {
        //= RFC 9113 (8.3.1): a request has a scheme and a path; the path is empty for none but other schemes.
        let (scheme, path) = (scheme?, path?);
        let is_target = path.first() == Some(&b'/') || (path == b"*"[..] && method == Method::Options);
        if scheme.is_empty() || !is_target || !is_visible(&path) {
            return None;
        }
        is_of_somebody = [&b"http"[..], b"https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        if !authority.is_empty() {
            fields.push("host", authority);
        }
        path
    };
    let has_authority = !fields.is_empty();
    ordinary(lines, &mut fields)?;
    let mut hosts = fields.all("host");
    let first = hosts.next();
    let (has_another, are_alike) =
        hosts.fold((false, true), |(_, alike), host| (true, alike && Some(host) == first));
    if has_another {
        //= RFC 9113 (8.3.1): a Host that says another thing than the authority is malformed, one that agrees is left out.
        if !has_authority || !are_alike {
            return None;
        }
        let mut is_first = true;
        let kept = fields.iter().filter(|field| field.name != "host" || std::mem::take(&mut is_first));
        fields = kept.map(|field| (field.name.clone(), field.value.clone())).collect();
    }
    let is_valid = match fields.first("host") {
        Some(host) => is_authority(host) && !(is_three && host.is_empty()),
        //= RFC 9114 (4.3.1): a request by these schemes has an authority or Host. In HTTP/2 both may be left out (RFC 9113, 8.3.1).
        None => !(is_three && is_of_somebody),
    };
    is_valid.then_some(RequestHead { method, target, version, fields })
}

/// Can this be an authority, as far as its octets tell?
//= RFC 9113 (8.3.1), RFC 9114 (4.3.1): no user's name stands in front of the host.
fn is_authority(octets: &[u8]) -> bool {
    is_visible(octets) && !octets.contains(&b'@')
}

fn is_visible(octets: &[u8]) -> bool {
    octets.iter().all(|b| b.is_ascii_graphic() || *b >= 0x80)
}

/// The response that these lines are; `None` if it is malformed.
pub fn to_response(mut lines: Vec<Line>, version: Version) -> Option<ResponseHead> {
    let [status] = pseudo(&mut lines, [b":status"])?;
    let status = match status?[..] {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0')
        }
        _ => return None,
    };
    //= RFC 9113 (8.6), RFC 9114 (4.5): there is no 101.
    if status == 101 {
        return None;
    }
    let mut fields = Fields::default();
    ordinary(lines, &mut fields)?;
    Some(ResponseHead { version, status, reason: Bytes::new(), fields })
}

/// Trailers; `None` if they are malformed.
pub fn to_trailers(lines: Vec<Line>) -> Option<Fields> {
    let mut fields = Fields::default();
    //= RFC 9113 (8.1): trailers have no pseudo-fields; their colon is no token.
    ordinary(lines, &mut fields)?;
    Some(fields)
}

/// The ordinary lines of a head.
fn lines(fields: &Fields, out: &mut Vec<Line>) {
    for field in fields.iter() {
        let is_lower = !field.name.iter().any(u8::is_ascii_uppercase);
        let name = if is_lower { field.name.clone() } else { field.name.to_ascii_lowercase().into() };
        if name != b"host"[..] && is_valid(&name, &field.value) {
            out.push((name, field.value.clone()));
        }
    }
}

/// The lines of a request to a server that is spoken to by `scheme`. The authority comes from the target or the Host field;
/// lines that there is no place for are left out.
pub fn of_request(head: &RequestHead, scheme: &'static str) -> Vec<Line> {
    let mut out = Vec::with_capacity(4 + head.fields.len());
    out.push((":method".into(), Bytes::copy_from_slice(head.method.name().as_bytes())));
    if head.method == Method::Connect {
        out.push((":authority".into(), head.target.clone()));
    } else {
        out.push((":scheme".into(), scheme.into()));
        if let Some(authority) = head.authority() {
            out.push((":authority".into(), Bytes::copy_from_slice(authority)));
        }
        let path = match head.target_parts() {
            (None, _) => head.target.clone(),
            (Some(_), path) => path.into_owned().into(),
        };
        out.push((":path".into(), path));
    }
    lines(&head.fields, &mut out);
    out
}

/// The lines of a response.
pub fn of_response(head: &ResponseHead) -> Vec<Line> {
    let mut out = Vec::with_capacity(1 + head.fields.len());
    out.push((":status".into(), head.status.to_string().into()));
    lines(&head.fields, &mut out);
    out
}

/// Is it likely that the same line comes again, so that a header table of `table` octets should have it? What differs from
/// message to message only drives others out.
pub fn is_worth_keeping(name: &[u8], value: &[u8], table: usize) -> bool {
    !matches!(name, b":path" | b"content-length" | b"date" | b"etag" | b"age" | b"if-none-match")
        // A line that is larger than the table empties it (RFC 7541, 4.4).
        && name.len() + value.len() + ENTRY <= table / 2
}

/// The Content-Length of a message: `Some(None)` if there is none, `None` if it is not one number.
pub fn content_length(fields: &Fields) -> Option<Option<u64>> {
    let mut found = None;
    for value in fields.all("content-length") {
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()?;
        if found.is_some_and(|before| before != length) {
            return None;
        }
        found = Some(length);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(lines: &[(&str, &str)]) -> Option<RequestHead> {
        let line = |(n, v): &(&str, &str)| ((*n).to_owned().into(), (*v).to_owned().into());
        to_request(lines.iter().map(line).collect(), Version::Http2)
    }

    fn get(more: &[(&'static str, &'static str)]) -> Option<RequestHead> {
        let mut lines = vec![(":method", "GET"), (":scheme", "http"), (":path", "/a")];
        lines.extend_from_slice(more);
        request(&lines)
    }

    #[test]
    fn a_request_there_and_back() {
        let mut fields = Fields::default();
        fields.push("Host", "a.example:81");
        fields.push("Accept", "*/*");
        fields.push("Connection", "keep-alive");
        let head =
            RequestHead { method: Method::Get, target: "/x?y".into(), version: Version::Http11, fields };
        let back = to_request(of_request(&head, "https"), Version::Http2).unwrap();
        assert_eq!(
            (back.version, &back.method, &back.target[..]),
            (Version::Http2, &Method::Get, &b"/x?y"[..])
        );
        assert_eq!(back.authority(), Some(&b"a.example:81"[..]));
        assert_eq!((back.fields.first("accept"), back.fields.len()), (Some(&b"*/*"[..]), 2));
        let connect = RequestHead { method: Method::Connect, target: "a:443".into(), ..head };
        assert_eq!(to_request(of_request(&connect, "http"), Version::Http3).unwrap().target, "a:443");
    }

    #[test]
    fn malformed_requests() {
        assert!(get(&[]).is_some());
        for more in [
            [("Accept", "x")],
            [("connection", "close")],
            [("transfer-encoding", "chunked")],
            [("te", "gzip")],
            [("a", "b\r\nc: d")],
            [("a", " b")],
            [("a b", "c")],
            [("", "c")],
            [(":path", "/b")],
            [(":status", "200")],
            [(":authority", "a b")],
        ] {
            assert_eq!(get(&more), None, "{more:?}");
        }
        assert_eq!(get(&[("a", "b"), (":authority", "late")]), None);
        assert_eq!(get(&[(":authority", "a"), ("host", "b")]), None);
        assert_eq!(get(&[("host", "a"), ("host", "a")]), None);
        assert_eq!(get(&[(":authority", "a"), ("host", "a"), ("te", "trailers")]).unwrap().fields.len(), 2);
        assert_eq!(request(&[(":method", "GET"), (":scheme", "http")]), None);
        assert_eq!(request(&[(":method", "GET"), (":scheme", "http"), (":path", "")]), None);
        assert_eq!(request(&[(":method", "GET"), (":scheme", "http"), (":path", "*")]), None);
        assert_eq!(request(&[(":method", "CONNECT"), (":path", "/"), (":authority", "a:1")]), None);
        assert_eq!(request(&[(":method", ""), (":scheme", "http"), (":path", "/")]), None);
    }

    #[test]
    fn requests_of_http_3_say_whom_they_are_for() {
        let of = |version: Version, scheme: &'static str, more: &[(&'static str, &'static str)]| {
            let line = |(n, v): &(&'static str, &'static str)| ((*n).into(), (*v).into());
            let all = [&[(":method", "GET"), (":scheme", scheme), (":path", "/a")], more].concat();
            to_request(all.iter().map(line).collect(), version)
        };
        let wrong: [&[(&str, &str)]; 5] = [
            &[],
            &[(":authority", "")],
            &[("host", "")],
            &[(":authority", ""), ("host", "a")],
            &[(":authority", ""), ("host", "")],
        ];
        for more in wrong {
            for scheme in ["http", "https", "HTTPS"] {
                assert_eq!(of(Version::Http3, scheme, more), None, "{more:?}");
            }
            assert!(of(Version::Http2, "https", more).is_some(), "{more:?}");
        }
        let right: [&[(&str, &str)]; 3] =
            [&[(":authority", "a:1")], &[("host", "[::1]")], &[(":authority", "a"), ("host", "a")]];
        for more in right {
            assert!(of(Version::Http3, "https", more).is_some(), "{more:?}");
        }
        assert!(of(Version::Http3, "other", &[]).is_some());
        for version in [Version::Http2, Version::Http3] {
            assert_eq!(of(version, "https", &[(":authority", "u@h")]), None);
            assert_eq!(of(version, "https", &[("host", "u:p@h")]), None);
            let connect = [(":method".into(), "CONNECT".into()), (":authority".into(), "u@h:1".into())];
            assert_eq!(to_request(connect.to_vec(), version), None);
        }
    }

    #[test]
    fn responses_and_trailers() {
        let lines = |list: &[(&str, &str)]| -> Vec<Line> {
            list.iter().map(|(n, v)| ((*n).to_owned().into(), (*v).to_owned().into())).collect()
        };
        let head = to_response(lines(&[(":status", "404"), ("server", "x")]), Version::Http2).unwrap();
        assert_eq!((head.status, of_response(&head).len()), (404, 2));
        for status in ["", "20", "2000", "abc", "101", "099"] {
            assert_eq!(to_response(lines(&[(":status", status)]), Version::Http2), None, "{status}");
        }
        assert_eq!(to_trailers(lines(&[("a", "b")])).unwrap().len(), 1);
        assert_eq!(to_trailers(lines(&[(":status", "200")])), None);
    }

    #[test]
    fn cookies_in_pieces_are_one() {
        let head = get(&[("cookie", "a=b"), ("x", "y"), ("cookie", "c=d")]).unwrap();
        assert_eq!(head.fields.first("cookie"), Some(&b"a=b; c=d"[..]));
    }
}
