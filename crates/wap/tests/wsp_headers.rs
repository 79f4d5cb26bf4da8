//! Headers: what Kannel and its clients sent, every kind of value both ways, and anything at all.

use airloom_testkit::cases;
use airloom_wap::wsp::headers::{Encoder, Pages, Value, Version, decode, decode_content_type};
use proptest::prelude::*;

fn encoded(version: Version, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in headers {
        Encoder::new(version).header(name, value, &mut out).expect("a name");
    }
    out
}

fn text(octets: &[u8]) -> Vec<(String, String)> {
    let headers = decode(octets, &Pages::new()).expect("well framed");
    let text = |value: &Value<'_>| value.text().map(str::to_owned);
    headers
        .into_iter()
        .map(|h| (text(&h.value).unwrap_or_else(|| panic!("{h:?}")), h.name))
        .map(|(v, n)| (n.into_owned(), v))
        .collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits = |i| u8::from_str_radix(&text[i..i + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digits).collect()
}

/// Every kind of value in its own normal form: it comes back letter by letter, by numbers alone.
const VALUES: &[(&str, &str)] = &[
    ("Accept", "*/*"),
    ("Accept", "text/vnd.wap.wml"),
    ("Accept", "application/vnd.uplanet.signal"),
    ("Accept", "text/x-own"),
    ("Accept", "text/html; level=1; q=0.5"),
    ("Accept", "application/vnd.wap.wmlc; q=0.123"),
    ("Accept-Charset", "utf-8"),
    ("Accept-Charset", "big5"),
    ("Accept-Charset", "*"),
    ("Accept-Charset", "x-own"),
    ("Accept-Charset", "iso-8859-1; q=0"),
    ("Accept-Charset", "big5; q=0.25"),
    ("Accept-Encoding", "gzip"),
    ("Accept-Encoding", "deflate; q=0.5"),
    ("Accept-Encoding", "*; q=0"),
    ("Accept-Language", "en"),
    ("Accept-Language", "na"),
    ("Accept-Language", "en-gb"),
    ("Accept-Language", "na; q=0.2"),
    ("Accept-Language", "en-gb; q=0.8"),
    ("Accept-Ranges", "bytes"),
    ("Age", "0"),
    ("Age", "86400"),
    ("Allow", "GET"),
    ("Allow", "PUT"),
    ("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
    ("Authorization", "Digest username=me, realm=\"a, b\", nc=1"),
    ("Cache-Control", "no-cache"),
    ("Cache-Control", "no-cache=\"Set-Cookie, X-Own\""),
    ("Cache-Control", "max-age=60"),
    ("Cache-Control", "max-stale"),
    ("Cache-Control", "s-maxage=100000"),
    ("Cache-Control", "community=UCI"),
    ("Cache-Control", "own"),
    ("Cache-Control", "q=0"),
    ("Connection", "close"),
    ("Connection", "keep-alive"),
    ("Content-Base", "http://example.com/"),
    ("Content-Encoding", "gzip"),
    ("Content-Language", "de"),
    ("Content-Language", "rm"),
    ("Content-Length", "127"),
    ("Content-Length", "4294967296"),
    ("Content-Location", "/a"),
    ("Content-MD5", "Q2hlY2sgSW50ZWdyaXR5IQ=="),
    ("Content-Range", "bytes 500-/1234"),
    ("Content-Range", "bytes 0-/*"),
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Type", "application/vnd.wap.multipart.related; type=\"application/smil\"; start=\"<a@b>\""),
    ("Content-Type", "text/x-own; own=5; other=\"a; b\"; flag"),
    ("Content-Type", "application/vnd.wap.connectivity-wbxml; sec=USERPIN; mac=ABCDEF"),
    ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("Etag", "\"x, y\""),
    ("Etag", "W/\"1\""),
    ("Expires", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("From", "a@example.com"),
    ("Host", "example.com:8080"),
    ("If-Modified-Since", "Mon, 18 Jan 2038 03:14:08 GMT"),
    ("If-Match", "*"),
    ("If-Range", "\"tag\""),
    ("If-Range", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("Location", "http://example.com/?a=b&c=d"),
    ("Max-Forwards", "10"),
    ("Pragma", "no-cache"),
    ("Pragma", "own=\"a b\""),
    ("Proxy-Authenticate", "Basic realm=\"the gateway\""),
    ("WWW-Authenticate", "Digest realm=\"r\", nonce=abc, stale=FALSE"),
    ("Public", "TRACE"),
    ("Public", "PROPFIND"),
    ("Range", "bytes=0-499"),
    ("Range", "bytes=500-"),
    ("Range", "bytes=-500"),
    ("Referer", ""),
    ("Retry-After", "120"),
    ("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("Transfer-Encoding", "chunked"),
    ("User-Agent", "\u{fc}ber/1.0"),
    ("Vary", "Accept-Charset"),
    ("Vary", "X-Own"),
    ("Warning", "110"),
    ("Warning", "214 gateway \"said \\\"so\\\"\""),
    ("Content-Disposition", "attachment; filename=\"a b.txt\"; size=100"),
    ("Content-Disposition", "form-data; name=field"),
    ("Content-Disposition", "inline; creation-date=\"Sun, 06 Nov 1994 08:49:37 GMT\""),
    ("X-Wap-Application-Id", "wml.ua"),
    ("X-Wap-Application-Id", "http://example.com/app"),
    ("X-Wap-Application-Id", "4660"),
    ("X-Wap-Content-URI", "http://example.com/"),
    ("Accept-Application", "*"),
    ("Accept-Application", "mms.ua"),
    ("Bearer-Indication", "11"),
    ("Push-Flag", "5"),
    ("Profile-Warning", "102"),
    ("Profile-Warning", "203 http://example.com/"),
    ("Profile-Warning", "200 gateway \"Sun, 06 Nov 1994 08:49:37 GMT\""),
    ("Expect", "100-continue"),
    ("Expect", "own=\"a b\"; more=1"),
    ("TE", "trailers"),
    ("TE", "chunked"),
    ("TE", "gzip; q=0.5"),
    ("TE", "own; q=0.5"),
    ("Trailer", "Content-MD5"),
    ("X-WAP-Tod", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("Content-ID", "\"<a@b>\""),
    ("Set-Cookie", "id=a b; path=\"/x\"; max-age=60; secure"),
    ("Set-Cookie", "id=1; domain=.example.com; Version=1"),
    ("Cookie", "a=1; b=two"),
    ("Cookie", "$Version=1; a=1; $Path=\"/x\"; b=2; $Domain=\".example.com\""),
    ("Encoding-Version", "1.4"),
    ("Encoding-Version", "5=1.2"),
    ("X-WAP-Security", "close-subordinate"),
    ("X-Wap-Loc-Invocation", "http://example.com/"),
];

#[test]
fn every_kind_of_value_comes_back_as_it_was() {
    for &(name, value) in VALUES {
        let octets = encoded(Version::V1_5, &[(name, value)]);
        assert!(octets[0] & 0x80 != 0, "{name}: {value} has a number: {octets:02x?}");
        assert_eq!(text(&octets), [(name.to_owned(), value.to_owned())], "{octets:02x?}");
    }
    // All in one, so that every value ends where it should.
    assert_eq!(text(&encoded(Version::V1_5, VALUES)).len(), VALUES.len());
}

#[test]
fn a_language_of_content_is_a_number_by_itself_however_large() {
    let numbers = [("Content-Language", "de"), ("Content-Language", "rm"), ("Accept-Language", "rm")];
    // One that is taken has a general form for what is no short integer.
    let octets = [0x8C, 0x96, 0x8C, 0x01, 0x8C, 0x83, 0x02, 0x01, 0x8C];
    assert_eq!(encoded(Version::V1_2, &numbers), octets);
}

#[test]
fn older_peers_get_text_for_what_they_do_not_know() {
    for version in [Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4] {
        for &(name, value) in VALUES {
            let headers = text(&encoded(version, &[(name, value)]));
            assert_eq!(headers, [(name.to_owned(), value.to_owned())], "{version:?}");
        }
    }
    assert_eq!(encoded(Version::V1_2, &[("Set-Cookie", "a=b")]), b"Set-Cookie\0a=b\0");
    assert_eq!(encoded(Version::V1_2, &[("Cache-Control", "no-cache")]), [0x88, 0x80]);
    assert_eq!(encoded(Version::V1_3, &[("Cache-Control", "no-cache")]), [0xBD, 0x80]);
    assert_eq!(encoded(Version::V1_4, &[("Cache-Control", "no-cache")]), [0xC7, 0x80]);
    assert_eq!(
        encoded(Version::V1_2, &[("Accept", "application/vnd.wap.mms-message")]),
        b"\x80application/vnd.wap.mms-message\0"
    );
}

#[test]
fn what_numbers_cannot_say_is_text_and_lists_become_headers() {
    for (name, value) in [
        ("Content-Length", "many"),
        ("Date", "yesterday"),
        ("Range", "bytes=0-1,5-9"),
        ("Authorization", "Basic !"),
        ("Content-Range", "lines 1-2/3"),
        ("Warning", "999 x \"y\""),
        ("Content-MD5", "AA=="),
        ("Accept", "nonsense"),
    ] {
        let octets = encoded(Version::V1_5, &[(name, value)]);
        assert_eq!(octets, [name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        assert_eq!(text(&octets), [(name.to_owned(), value.to_owned())]);
    }
    let octets =
        encoded(Version::V1_2, &[("accept", "text/plain, text/html;q=0.5 ,, image/gif"), ("X-Own", "a, b")]);
    let names: Vec<_> = text(&octets).into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(names, ["Accept: text/plain", "Accept: text/html; q=0.5", "Accept: image/gif", "X-Own: a, b"]);
    assert!(Encoder::default().header("no name", "x", &mut Vec::new()).is_err());
    assert!(Encoder::default().header("", "x", &mut Vec::new()).is_err());
}

#[test]
fn no_value_can_begin_a_header_of_its_own() {
    let octets = encoded(Version::V1_2, &[("X-Own", "a\r\nX-Evil: b\0c"), ("User-Agent", "d\r\ne")]);
    assert_eq!(text(&octets), [("X-Own".into(), "aX-Evil: bc".into()), ("User-Agent".into(), "de".into())]);
    let from_the_air = decode(b"X-Own\0a\r\nX-Evil: b\0", &Pages::new()).expect("well framed");
    assert_eq!(from_the_air[0].value.text(), Some("a  X-Evil: b"));
}

#[test]
fn other_code_pages_shift_the_numbers() {
    let mut pages = Pages::new();
    assert!(pages.add(0x10, "x-up-1") && !pages.add(0x11, "x-own"));
    // Long and short shift; page one again; a page that nobody named.
    let octets = b"\x7F\x10\x81all\0\x01\xA9me\0\x11\x80\x81";
    let headers = decode(octets, &pages).expect("well framed");
    let shown: Vec<_> = headers.iter().map(|h| (&*h.name, h.value.clone())).collect();
    assert_eq!(
        shown,
        [
            ("x-up-proxy-push-accept", Value::Text("all".into())),
            ("User-Agent", Value::Text("me".into())),
            ("17:00", Value::Octets(&[0x81])),
        ]
    );
}

#[test]
fn headers_of_real_exchanges_are_read_and_come_out_the_same() {
    let mut same = 0;
    for line in include_str!("data/wsp_headers.txt").lines().filter(|l| !l.starts_with('#')) {
        let mut words = line.split(' ');
        let mut next = || words.next().expect("three words");
        let (capture, kind, octets) = (next(), next(), hex(next()));
        let (mut rest, mut again) = (&octets[..], Vec::new());
        if kind == "content" {
            let (content_type, len) = decode_content_type(rest).expect(capture);
            rest = &rest[len..];
            // One of them has a number that came after 1.3.
            let version = if content_type.ends_with("octet-stream") { Version::V1_5 } else { Version::V1_3 };
            Encoder::new(version).content_type(&content_type, &mut again);
        }
        let headers = text(rest);
        let pairs: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        again.extend(encoded(Version::V1_3, &pairs));
        let differs = match capture {
            // Names as text where they have numbers: Kannel's reply to a session without headers, and its version.
            "raw-no-accept" => true,
            "fw-get-deck-20k" => kind == "headers" && rest.starts_with(b"Encoding-Version"),
            // Numbers of 1.1, and sixty seconds in two octets.
            "raw-headers" => kind == "headers",
            _ => false,
        };
        assert_eq!(again != octets, differs, "{capture}: {headers:?}");
        same += usize::from(!differs);
    }
    assert_eq!(same, 34);
}

#[test]
fn a_header_that_is_cut_short_is_an_error_and_one_that_is_unknown_is_not() {
    for bad in [
        &b"\x80"[..],
        b"\xA9abc",
        b"\x83\x05\x01",
        b"\x88\x1F\x85\x80",
        b"name\0",
        b"name",
        b"\x7F",
        b"\0\0",
        b"\xA9\x1F\x8F\xFF\xFF\xFF\xFF",
    ] {
        assert!(decode(bad, &Pages::new()).is_err(), "{bad:02x?}");
    }
    let headers = decode(b"\xEF\x81\x8D\x89\x80\xFE\xA9x\0", &Pages::new()).expect("well framed");
    let shown: Vec<_> = headers.iter().map(|h| (&*h.name, h.value.text())).collect();
    assert_eq!(
        shown,
        [("1:6F", None), ("Content-Length", Some("9")), ("Accept", None), ("User-Agent", Some("x"))]
    );
}

#[test]
fn a_profile_warning_of_a_number_beyond_all_others_is_a_header_that_is_not_understood() {
    // Profile-Warning, ten octets: an integer of eight, which overflowed when it was taken apart, and one that is no text.
    let headers = hex("b70a086865696700040a0a0a");
    assert!(decode(&headers, &Pages::new()).is_ok_and(|found| found[0].value.text().is_none()));
}

fn name() -> impl Strategy<Value = String> {
    let known: Vec<&str> = VALUES.iter().map(|value| value.0).collect();
    prop_oneof![8 => proptest::sample::select(known).prop_map(str::to_owned), 1 => "[A-Za-z][A-Za-z0-9-]{0,8}"]
}

fn value() -> impl Strategy<Value = String> {
    let known: Vec<&str> = VALUES.iter().map(|value| value.1).collect();
    prop_oneof![
        3 => proptest::sample::select(known).prop_map(str::to_owned),
        3 => "((text/|\\*|a|b=|\"|; ?|, ?|=|q=0\\.|bytes|[0-9]{1,3}|-|/|Basic | |utf-8|\\\\|charset=){0,8})",
        1 => "\\PC{0,12}",
    ]
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn text_settles_after_one_round(headers in proptest::collection::vec((name(), value()), 0..6), version in 0..5usize) {
        let version = [Version::V1_1, Version::V1_2, Version::V1_3, Version::V1_4, Version::V1_5][version];
        let pairs: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (&n[..], &v[..])).collect();
        let once = text(&encoded(version, &pairs));
        let pairs: Vec<(&str, &str)> = once.iter().map(|(n, v)| (&n[..], &v[..])).collect();
        let again = text(&encoded(version, &pairs));
        prop_assert_eq!(again, once);
    }

    #[test]
    fn random_octets_do_no_harm(octets in proptest::collection::vec(any::<u8>(), 0..100)) {
        let mut pages = Pages::new();
        pages.add(0x10, "x-up-1");
        if let Ok(headers) = decode(&octets, &pages) {
            for header in headers.iter().filter(|h| h.value.text().is_some()) {
                let _ = Encoder::default().header(&header.name, header.value.text().unwrap_or_default(), &mut Vec::new());
            }
        }
        let _ = decode_content_type(&octets);
    }
}
