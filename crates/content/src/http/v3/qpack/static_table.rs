//! The lines that both ends know (RFC 9204, appendix A).

/// Names and values by their index.
pub const STATIC: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// The line of an index.
pub fn get(index: u64) -> Option<(&'static [u8], &'static [u8])> {
    let (name, value) = STATIC.get(usize::try_from(index).ok()?)?;
    Some((name.as_bytes(), value.as_bytes()))
}

/// Octets of the longest name.
const LONGEST: usize = 32;

/// Indexes by the length of their names, and where those of each length begin.
const BY_LENGTH: ([u8; STATIC.len()], [u8; LONGEST + 2]) = {
    let (mut order, mut begin, mut place) = ([0; STATIC.len()], [0; LONGEST + 2], 0);
    let mut length = 0;
    while length <= LONGEST {
        begin[length] = place as u8;
        let mut index = 0;
        while index < STATIC.len() {
            if STATIC[index].0.len() == length {
                order[place] = index as u8;
                place += 1;
            }
            index += 1;
        }
        length += 1;
    }
    begin[LONGEST + 1] = place as u8;
    assert!(place == STATIC.len(), "a name that is longer");
    (order, begin)
};

/// Where a line stands, or its name alone (`false`).
pub fn find(name: &[u8], value: &[u8]) -> Option<(u64, bool)> {
    let (order, begin) = &BY_LENGTH;
    let (from, to) = (*begin.get(name.len())?, *begin.get(name.len() + 1)?);
    let mut of_name = None;
    for index in &order[usize::from(from)..usize::from(to)] {
        let (known, its) = STATIC[usize::from(*index)];
        // Most that are as long begin otherwise.
        if known.as_bytes().first() == name.first() && known.as_bytes() == name {
            if its.as_bytes() == value {
                return Some((u64::from(*index), true));
            }
            of_name.get_or_insert((u64::from(*index), false));
        }
    }
    of_name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_found_where_it_stands_and_its_name_where_it_stands_first() {
        for (index, (name, value)) in STATIC.iter().enumerate() {
            assert_eq!(find(name.as_bytes(), value.as_bytes()), Some((index as u64, true)));
            let first = STATIC.iter().position(|(other, _)| other == name).unwrap();
            assert_eq!(find(name.as_bytes(), b"another"), Some((first as u64, false)), "{name}");
        }
        for name in ["", "x", "access-control-allow-credentialsx", &"a".repeat(100)] {
            assert_eq!(find(name.as_bytes(), b""), None);
        }
    }
}
