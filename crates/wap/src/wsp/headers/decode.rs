//! Octets -> headers as text.

use std::borrow::Cow;

use airloom_wire::Error;

use super::applications::X_UP_1;
use super::encode::Version;
use super::fields::{self, Field, Form};
use super::read::{Framed, Reader, string};
use super::{cache, cookie, credentials, encode, media, names, plain, range, weighted};

/// A header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Its name; for a number that is not known, the code page and it in hexadecimal: `1:6F`.
    pub name: Cow<'a, str>,
    /// Its value.
    pub value: Value<'a>,
}

/// A header's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// As HTTP would have it.
    Text(String),
    /// As it came, with its length if it has one: of a header that is not known, or a value that does not fit its header.
    Octets(&'a [u8]),
}

impl Value<'_> {
    /// The text, if it is that.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }
}

/// Which names the numbers of pages beside the default one stand for. A session agrees on that when it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Numbers of pages that are `x-up-1`.
    x_up_1: Vec<u8>,
}

impl Pages {
    /// The default page alone.
    pub fn new() -> Pages {
        Pages::default()
    }

    /// Page `number` is the one called `name`; whether that is a known one.
    pub fn add(&mut self, number: u8, name: &str) -> bool {
        let known = name.eq_ignore_ascii_case("x-up-1") && number != DEFAULT_PAGE;
        if known && !self.x_up_1.contains(&number) {
            self.x_up_1.push(number);
        }
        known
    }
}

const DEFAULT_PAGE: u8 = 1;
const SHIFT: u8 = 0x7F;

/// Reads all headers of `octets`.
///
/// # Errors
/// [`Error`] if a header is cut short or its length is none: what comes after it cannot be found then.
pub fn decode<'a>(octets: &'a [u8], pages: &Pages) -> Result<Vec<Header<'a>>, Error> {
    let mut rest = Reader(octets);
    let mut page = DEFAULT_PAGE;
    let mut headers = Vec::new();
    while let Some(first) = rest.peek() {
        match first {
            SHIFT => {
                rest.octet()?;
                page = rest.octet()?;
            }
            0x01..=0x1F => page = rest.octet()?,
            0 => return Err(Error::Malformed("header name")),
            0x20..SHIFT => {
                let name = string(rest.until_nul()?);
                let (_, framed) = raw(&mut rest)?;
                let value = match framed {
                    Framed::Text(text) => string(text).into_owned(),
                    // Names in text have values in text; phones were seen to send a number.
                    framed => {
                        framed.integer().map(|n| n.to_string()).ok_or(Error::Malformed("text value"))?
                    }
                };
                headers.push(Header { name, value: Value::Text(value) });
            }
            _ => {
                let code = rest.octet()? & 0x7F;
                let (octets, framed) = raw(&mut rest)?;
                headers.push(known(page, code, octets, framed, pages));
            }
        }
    }
    Ok(headers)
}

/// Reads a content type by itself; says how many octets it takes.
///
/// # Errors
/// [`Error`] if it is cut short or of a number that is not known.
pub fn decode_content_type(octets: &[u8]) -> Result<(String, usize), Error> {
    let mut rest = Reader(octets);
    let framed = rest.framed()?;
    let text = media::decode(framed).ok_or(Error::Malformed("content type"))?;
    Ok((text, octets.len() - rest.0.len()))
}

/// Which numbers of headers a peer says in `octets` it knows, by a number or, as Kannel does, in text.
pub fn encoding_version(octets: &[u8]) -> Option<Version> {
    let headers = decode(octets, &Pages::new()).ok()?;
    let said = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("encoding-version"));
    said.filter_map(|header| header.value.text()).find_map(Version::from_text)
}

/// The next value as octets and as its first octet frames it.
fn raw<'a>(rest: &mut Reader<'a>) -> Result<(&'a [u8], Framed<'a>), Error> {
    let before = rest.0;
    let framed = rest.framed()?;
    Ok((&before[..before.len() - rest.0.len()], framed))
}

fn known<'a>(page: u8, code: u8, octets: &'a [u8], framed: Framed<'a>, pages: &Pages) -> Header<'a> {
    if page == DEFAULT_PAGE
        && let Some(field) = fields::by_code(code)
    {
        let value = value(field, framed).map_or(Value::Octets(octets), Value::Text);
        return Header { name: Cow::Borrowed(field.name), value };
    }
    let up = X_UP_1.iter().find(|name| name.0 == code).filter(|_| pages.x_up_1.contains(&page));
    if let Some(&(_, name)) = up {
        let text = framed.text().map(Cow::into_owned).or_else(|| framed.integer().map(|n| n.to_string()));
        return Header { name: Cow::Borrowed(name), value: text.map_or(Value::Octets(octets), Value::Text) };
    }
    Header { name: Cow::Owned(format!("{page}:{code:02X}")), value: Value::Octets(octets) }
}

/// The value as text, if it fits the header.
fn value(field: &Field, framed: Framed<'_>) -> Option<String> {
    let text = |framed: Framed<'_>| framed.text().map(Cow::into_owned);
    match field.form {
        Form::Accept | Form::ContentType => media::decode(framed),
        Form::AcceptApplication if framed == Framed::Short(0) => Some("*".into()),
        Form::AcceptApplication | Form::Application => plain::decode_application(framed),
        Form::AcceptCharset => weighted::decode(&weighted::CHARSETS, framed),
        Form::AcceptEncoding => weighted::decode(encode::codings(field), framed),
        Form::AcceptLanguage | Form::Language => weighted::decode(&weighted::LANGUAGE, framed),
        Form::CacheControl => cache::decode(framed),
        Form::Challenge => credentials::decode_challenge(framed),
        Form::ContentRange => range::decode_content(framed),
        Form::Cookie => cookie::decode(framed),
        Form::Credentials => credentials::decode(framed),
        Form::Date => plain::decode_date(framed),
        Form::Disposition => media::decode_disposition(framed),
        Form::EncodingVersion => plain::decode_encoding_version(framed),
        Form::Expect => plain::decode_expect(framed),
        Form::FieldName => names::decode_field_name(framed),
        Form::IfRange => range::decode_if(framed),
        Form::Integer => framed.integer().map(|n| n.to_string()),
        Form::Md5 => plain::decode_md5(framed),
        Form::Method => plain::decode_method(framed),
        Form::Opaque => text(framed),
        Form::Pragma => cache::decode_pragma(framed),
        Form::ProfileWarning => plain::decode_profile_warning(framed),
        Form::Quoted => plain::decode_quoted(framed),
        Form::Range => range::decode(framed),
        Form::RetryAfter => range::decode_retry(framed),
        Form::SetCookie => cookie::decode_set(framed),
        Form::Te => weighted::decode(&weighted::TE, framed),
        Form::Text => text(framed),
        Form::Token(words) => plain::decode_token(words, framed),
        Form::Warning => plain::decode_warning(framed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wsp::headers::Encoder;

    #[test]
    fn a_peer_says_which_numbers_it_knows() {
        let said = |encoder: Encoder, value: &str| {
            let mut octets = Vec::new();
            encoder.header("Encoding-Version", value, &mut octets).unwrap();
            encoding_version(&octets)
        };
        // In text, since the number is one that not everybody knows, and by that number.
        assert_eq!(said(Encoder::default(), "1.4"), Some(Version::V1_4));
        assert_eq!(said(Encoder::new(Version::V1_3), "1.4"), Some(Version::V1_4));
        assert_eq!((said(Encoder::default(), "none"), encoding_version(&[])), (None, None));
    }
}
