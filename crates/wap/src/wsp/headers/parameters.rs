//! Parameters of values by number (WAP-230, table 38).

/// Kinds of parameter values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Charset,
    Date,
    FieldName,
    Integer,
    /// A media type, as in the constrained form of Content-Type.
    MediaType,
    NoValue,
    Q,
    /// Who authenticates by what.
    Security,
    /// Text as it is.
    Text,
    /// Text, maybe quoted, or nothing.
    TextValue,
    Version,
}

/// A parameter: name, number, first encoding version, kind.
pub(super) type Parameter = (&'static str, u8, u8, Kind);

/// All parameters; where one has several numbers, the latest first.
#[rustfmt::skip]
pub(super) const PARAMETERS: &[Parameter] = &[
    ("charset", 0x01, 1, Kind::Charset),
    ("comment", 0x1B, 4, Kind::TextValue),
    ("comment", 0x0C, 3, Kind::Text),
    ("creation-date", 0x13, 4, Kind::Date),
    ("differences", 0x07, 1, Kind::FieldName),
    ("domain", 0x1C, 4, Kind::TextValue),
    ("domain", 0x0D, 3, Kind::Text),
    ("filename", 0x18, 4, Kind::TextValue),
    ("filename", 0x06, 1, Kind::Text),
    ("level", 0x02, 1, Kind::Version),
    ("mac", 0x12, 4, Kind::TextValue),
    ("max-age", 0x0E, 3, Kind::Integer),
    ("modification-date", 0x14, 4, Kind::Date),
    ("name", 0x17, 4, Kind::TextValue),
    ("name", 0x05, 1, Kind::Text),
    ("padding", 0x08, 1, Kind::Integer),
    ("path", 0x1D, 4, Kind::TextValue),
    ("path", 0x0F, 3, Kind::Text),
    ("q", 0x00, 1, Kind::Q),
    ("read-date", 0x15, 4, Kind::Date),
    ("sec", 0x11, 4, Kind::Security),
    ("secure", 0x10, 3, Kind::NoValue),
    ("size", 0x16, 4, Kind::Integer),
    ("start", 0x19, 4, Kind::TextValue),
    ("start", 0x0A, 2, Kind::Text),
    ("start-info", 0x1A, 4, Kind::TextValue),
    ("start-info", 0x0B, 2, Kind::Text),
    ("type", 0x09, 2, Kind::MediaType),
    ("type", 0x03, 1, Kind::Integer),
];

/// Names of [`Kind::Security`].
pub(super) const SECURITY: &[&str] = &["NETWPIN", "USERPIN", "USERNETWPIN", "USERPINMAC"];

/// The parameters called `name` that a peer of encoding version `1.minor` knows, the latest first.
pub(super) fn by_name(name: &str, minor: u8) -> impl Iterator<Item = &'static Parameter> + '_ {
    PARAMETERS.iter().filter(move |p| p.2 <= minor && p.0.eq_ignore_ascii_case(name))
}

/// The parameter with this number.
pub(super) fn by_code(code: u8) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|p| p.1 == code)
}
