//! Headers as text -> octets.

use airloom_wire::Error;

use super::element::{is_token, split};
use super::fields::{self, Field, Form};
use super::{cache, cookie, credentials, media, names, plain, range, weighted, write};

/// A version of the encoding: which numbers a peer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u8);

impl Version {
    /// 1.1
    pub const V1_1: Version = Version(1);
    /// 1.2, which every peer knows that says nothing else.
    pub const V1_2: Version = Version(2);
    /// 1.3
    pub const V1_3: Version = Version(3);
    /// 1.4
    pub const V1_4: Version = Version(4);
    /// 1.5
    pub const V1_5: Version = Version(5);

    /// What a peer's `Encoding-Version` says: `1.3`. Later versions keep the numbers of those before.
    pub fn from_text(text: &str) -> Option<Version> {
        let minor: u8 = text.trim().strip_prefix("1.")?.parse().ok()?;
        Some(Version(minor.clamp(1, 5)))
    }
}

impl Default for Version {
    fn default() -> Version {
        Version::V1_2
    }
}

/// Writes headers for a peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoder {
    version: Version,
}

impl Encoder {
    /// For a peer that knows the numbers of `version`.
    pub fn new(version: Version) -> Encoder {
        Encoder { version }
    }

    /// Appends the header `name: value`, as several if its value is a list. Control characters are left out of text.
    ///
    /// # Errors
    /// [`Error::Malformed`] if `name` is no token; nothing was appended then.
    pub fn header(&self, name: &str, value: &str, out: &mut Vec<u8>) -> Result<(), Error> {
        let value = value.trim_matches([' ', '\t']);
        match fields::by_name(name, self.version.0) {
            None if !is_token(name) => return Err(Error::Malformed("header name")),
            None => as_text(name, value, out),
            Some(field) if is_list(field.form) && !value.is_empty() => {
                split(value, b',').for_each(|element| self.one(field, element, out));
            }
            Some(field) => self.one(field, value, out),
        }
        Ok(())
    }

    /// Appends a content type by itself, as it stands in front of the headers of requests, replies and pushes. One that is no
    /// media type is `application/octet-stream`, which says nothing either.
    pub fn content_type(&self, value: &str, out: &mut Vec<u8>) {
        let start = out.len();
        if media::encode(value, self.version.0, out).is_none() {
            out.truncate(start);
            write::text("application/octet-stream", out);
        }
    }

    /// One header, by its number if its value can be encoded, else as text.
    fn one(&self, field: &Field, value: &str, out: &mut Vec<u8>) {
        let start = out.len();
        write::short(field.code, out);
        if self.value(field, value, out).is_none() {
            out.truncate(start);
            as_text(field.name, value, out);
        }
    }

    fn value(&self, field: &Field, value: &str, out: &mut Vec<u8>) -> Option<()> {
        let minor = self.version.0;
        match field.form {
            Form::Accept | Form::ContentType => media::encode(value, minor, out),
            Form::AcceptApplication if value == "*" => {
                write::short(0, out);
                Some(())
            }
            Form::AcceptApplication | Form::Application => plain::encode_application(value, out),
            Form::AcceptCharset => weighted::encode(&weighted::CHARSETS, value, minor, out),
            Form::AcceptEncoding => weighted::encode(codings(field), value, minor, out),
            Form::AcceptLanguage => weighted::encode(&weighted::LANGUAGE, value, minor, out),
            Form::CacheControl => cache::encode(value, minor, out),
            Form::Challenge => credentials::encode_challenge(value, minor, out),
            Form::ContentRange => range::encode_content(value, out),
            Form::Cookie => cookie::encode(value, out),
            Form::Credentials => credentials::encode(value, minor, out),
            Form::Date => plain::encode_date(value, out),
            Form::Disposition => media::encode_disposition(value, minor, out),
            Form::EncodingVersion => plain::encode_encoding_version(value, out),
            Form::Expect => plain::encode_expect(value, minor, out),
            Form::FieldName => names::encode_field_name(value, minor, out),
            Form::IfRange => range::encode_if(value, out),
            Form::Integer => plain::encode_integer(value, out),
            Form::Language => weighted::encode_name(&weighted::LANGUAGE, value, out),
            Form::Md5 => plain::encode_md5(value, out),
            Form::Method => plain::encode_method(value, out),
            Form::Opaque => None,
            Form::Pragma => cache::encode_pragma(value, minor, out),
            Form::ProfileWarning => plain::encode_profile_warning(value, out),
            Form::Quoted => plain::encode_quoted(value, out),
            Form::Range => range::encode(value, out),
            Form::RetryAfter => range::encode_retry(value, out),
            Form::SetCookie => cookie::encode_set(value, minor, out),
            Form::Te => weighted::encode(&weighted::TE, value, minor, out),
            Form::Text => {
                write::text(value, out);
                Some(())
            }
            Form::Token(words) => plain::encode_token(words, value, out),
            Form::Warning => plain::encode_warning(value, out),
        }
    }
}

/// A header that is all text.
fn as_text(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    write::text(value, out);
}

/// The two numbers of `Accept-Encoding` take different values.
pub(super) fn codings(field: &Field) -> &'static weighted::Names {
    if field.since >= 3 { &weighted::CODINGS_1_3 } else { &weighted::CODINGS_1_1 }
}

/// Whether a value is a list, each element of which is a header of its own here.
fn is_list(form: Form) -> bool {
    matches!(
        form,
        Form::Accept
            | Form::AcceptApplication
            | Form::AcceptCharset
            | Form::AcceptEncoding
            | Form::AcceptLanguage
            | Form::CacheControl
            | Form::FieldName
            | Form::Language
            | Form::Method
            | Form::Pragma
            | Form::Te
            | Form::Token(_)
            | Form::Warning
    )
}
