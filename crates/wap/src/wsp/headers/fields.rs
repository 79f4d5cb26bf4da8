//! Names of headers by number, and of which kind their values are (WAP-230, table 39).

use std::sync::LazyLock;

use super::index::Index;

/// Kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Accept,
    AcceptApplication,
    AcceptCharset,
    AcceptEncoding,
    AcceptLanguage,
    Application,
    CacheControl,
    Challenge,
    ContentRange,
    ContentType,
    Cookie,
    Credentials,
    Date,
    Disposition,
    EncodingVersion,
    Expect,
    FieldName,
    IfRange,
    Integer,
    Language,
    Md5,
    /// One of the methods by number.
    Method,
    /// A document of its own.
    Opaque,
    Pragma,
    ProfileWarning,
    Quoted,
    Range,
    RetryAfter,
    SetCookie,
    Te,
    Text,
    /// One of these words by number, or text.
    Token(&'static [(&'static str, u8)]),
    Warning,
}

pub(super) const ACCEPT_RANGES: &[(&str, u8)] = &[("none", 0), ("bytes", 1)];
pub(super) const CONNECTION: &[(&str, u8)] = &[("close", 0)];
pub(super) const CODINGS: &[(&str, u8)] = &[("gzip", 0), ("compress", 1), ("deflate", 2)];
pub(super) const TRANSFER: &[(&str, u8)] = &[("chunked", 0)];
pub(super) const METHODS: &[(&str, u8)] = &[
    ("GET", 0x40),
    ("OPTIONS", 0x41),
    ("HEAD", 0x42),
    ("DELETE", 0x43),
    ("TRACE", 0x44),
    ("POST", 0x60),
    ("PUT", 0x61),
];
pub(super) const SECURITY: &[(&str, u8)] = &[("close-subordinate", 0)];

/// A name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub name: &'static str,
    pub code: u8,
    /// First encoding version, 1.x.
    pub since: u8,
    pub form: Form,
}

const fn field(name: &'static str, code: u8, since: u8, form: Form) -> Field {
    Field { name, code, since, form }
}

/// All names; where one has several numbers, the latest first.
const FIELDS: &[Field] = &[
    field("Accept", 0x00, 1, Form::Accept),
    field("Accept-Application", 0x32, 2, Form::AcceptApplication),
    field("Accept-Charset", 0x3B, 3, Form::AcceptCharset),
    field("Accept-Charset", 0x01, 1, Form::AcceptCharset),
    field("Accept-Encoding", 0x3C, 3, Form::AcceptEncoding),
    field("Accept-Encoding", 0x02, 1, Form::AcceptEncoding),
    field("Accept-Language", 0x03, 1, Form::AcceptLanguage),
    field("Accept-Ranges", 0x04, 1, Form::Token(ACCEPT_RANGES)),
    field("Age", 0x05, 1, Form::Integer),
    field("Allow", 0x06, 1, Form::Method),
    field("Authorization", 0x07, 1, Form::Credentials),
    field("Bearer-Indication", 0x33, 2, Form::Integer),
    field("Cache-Control", 0x47, 4, Form::CacheControl),
    field("Cache-Control", 0x3D, 3, Form::CacheControl),
    field("Cache-Control", 0x08, 1, Form::CacheControl),
    field("Connection", 0x09, 1, Form::Token(CONNECTION)),
    field("Content-Base", 0x0A, 1, Form::Text),
    field("Content-Disposition", 0x45, 4, Form::Disposition),
    field("Content-Disposition", 0x2E, 1, Form::Disposition),
    field("Content-Encoding", 0x0B, 1, Form::Token(CODINGS)),
    field("Content-ID", 0x40, 3, Form::Quoted),
    field("Content-Language", 0x0C, 1, Form::Language),
    field("Content-Length", 0x0D, 1, Form::Integer),
    field("Content-Location", 0x0E, 1, Form::Text),
    field("Content-MD5", 0x0F, 1, Form::Md5),
    field("Content-Range", 0x3E, 3, Form::ContentRange),
    field("Content-Range", 0x10, 1, Form::ContentRange),
    field("Content-Type", 0x11, 1, Form::ContentType),
    field("Cookie", 0x42, 3, Form::Cookie),
    field("Date", 0x12, 1, Form::Date),
    field("Encoding-Version", 0x43, 3, Form::EncodingVersion),
    field("Etag", 0x13, 1, Form::Text),
    field("Expect", 0x48, 5, Form::Expect),
    field("Expect", 0x38, 3, Form::Expect),
    field("Expires", 0x14, 1, Form::Date),
    field("From", 0x15, 1, Form::Text),
    field("Host", 0x16, 1, Form::Text),
    field("If-Match", 0x18, 1, Form::Text),
    field("If-Modified-Since", 0x17, 1, Form::Date),
    field("If-None-Match", 0x19, 1, Form::Text),
    field("If-Range", 0x1A, 1, Form::IfRange),
    field("If-Unmodified-Since", 0x1B, 1, Form::Date),
    field("Last-Modified", 0x1D, 1, Form::Date),
    field("Location", 0x1C, 1, Form::Text),
    field("Max-Forwards", 0x1E, 1, Form::Integer),
    field("Pragma", 0x1F, 1, Form::Pragma),
    field("Profile", 0x35, 2, Form::Text),
    field("Profile-Diff", 0x36, 2, Form::Opaque),
    field("Profile-Warning", 0x44, 4, Form::ProfileWarning),
    field("Profile-Warning", 0x37, 2, Form::ProfileWarning),
    field("Proxy-Authenticate", 0x20, 1, Form::Challenge),
    field("Proxy-Authorization", 0x21, 1, Form::Credentials),
    field("Public", 0x22, 1, Form::Token(METHODS)),
    field("Push-Flag", 0x34, 2, Form::Integer),
    field("Range", 0x23, 1, Form::Range),
    field("Referer", 0x24, 1, Form::Text),
    field("Retry-After", 0x25, 1, Form::RetryAfter),
    field("Server", 0x26, 1, Form::Text),
    field("Set-Cookie", 0x41, 3, Form::SetCookie),
    field("TE", 0x39, 3, Form::Te),
    field("Trailer", 0x3A, 3, Form::FieldName),
    field("Transfer-Encoding", 0x27, 1, Form::Token(TRANSFER)),
    field("Upgrade", 0x28, 1, Form::Text),
    field("User-Agent", 0x29, 1, Form::Text),
    field("Vary", 0x2A, 1, Form::FieldName),
    field("Via", 0x2B, 1, Form::Text),
    field("Warning", 0x2C, 1, Form::Warning),
    field("WWW-Authenticate", 0x2D, 1, Form::Challenge),
    field("X-Wap-Application-Id", 0x2F, 2, Form::Application),
    field("X-Wap-Content-URI", 0x30, 2, Form::Text),
    field("X-Wap-Initiator-URI", 0x31, 2, Form::Text),
    field("X-Wap-Loc-Delivery", 0x4A, 5, Form::Opaque),
    field("X-Wap-Loc-Invocation", 0x49, 5, Form::Text),
    field("X-WAP-Security", 0x46, 4, Form::Token(SECURITY)),
    field("X-WAP-Tod", 0x3F, 3, Form::Date),
];

/// The number for `name` that a peer of encoding version `1.minor` knows.
pub(super) fn by_name(name: &str, minor: u8) -> Option<&'static Field> {
    static NAMES: LazyLock<Index> = LazyLock::new(|| Index::new(FIELDS.iter().map(|f| f.name)));
    let of_name = |f: &&Field| f.name.eq_ignore_ascii_case(name) && f.since <= minor;
    NAMES.places(name).map(|at| &FIELDS[at]).find(of_name)
}

/// The field with this number.
pub(super) fn by_code(code: u8) -> Option<&'static Field> {
    // Numbers are dense, so a table by number is complete; it is made when the program is.
    const BY_CODE: [u8; 0x4B] = {
        let mut by_code = [0; 0x4B];
        let mut n = 0;
        while n < FIELDS.len() {
            by_code[FIELDS[n].code as usize] = n as u8;
            n += 1;
        }
        by_code
    };
    BY_CODE.get(usize::from(code)).map(|&n| &FIELDS[usize::from(n)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_sorted_and_every_number_is_there_once() {
        let lower = |field: &Field| field.name.to_ascii_lowercase();
        assert!(FIELDS.is_sorted_by(|a, b| lower(a).cmp(&lower(b)).then(b.since.cmp(&a.since)).is_le()));
        let mut codes: Vec<u8> = FIELDS.iter().map(|f| f.code).collect();
        codes.sort_unstable();
        assert_eq!(codes, (0..0x4B).collect::<Vec<_>>());
        assert!(FIELDS.iter().all(|f| by_code(f.code) == Some(f)));
    }

    #[test]
    fn a_peer_gets_the_latest_number_it_knows() {
        let code = |name, minor| by_name(name, minor).map(|f| f.code);
        assert_eq!(
            (code("cache-control", 1), code("Cache-Control", 3), code("CACHE-CONTROL", 4)),
            (Some(0x08), Some(0x3D), Some(0x47))
        );
        assert_eq!((code("Set-Cookie", 2), code("Set-Cookie", 3)), (None, Some(0x41)));
        assert_eq!(code("X-Own", 5), None);
    }
}
