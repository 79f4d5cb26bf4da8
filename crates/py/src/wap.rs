//! Documents of WAP between text and WBXML.

use airloom_content::charset::Charset;
use airloom_content::markup;
use airloom_content::wbxml::{Limits, Options, Version};
use airloom_transports::wsp::headers::Encoder;
use airloom_transports::wsp::initiation::SessionInitiation;
use bytes::Bytes;
use pyo3::prelude::*;

use crate::errors::wrong;

/// The encoded form of a document, and what was odd about it. `charset` outweighs what the document says of itself;
/// `version` is that of WBXML, without it the one that belongs to the document's type. Without `string_table` all strings
/// stand in place, repeated ones too.
#[pyfunction]
#[pyo3(signature = (text, charset=None, version=None, *, string_table=true))]
pub fn wap_compile(
    py: Python<'_>,
    text: &[u8],
    charset: Option<&str>,
    version: Option<&str>,
    string_table: bool,
) -> PyResult<(Vec<u8>, Vec<String>)> {
    let unknown = |name| wrong(format!("the character set `{name}` is not known"));
    let charset = charset.map(|name| Charset::from_name(name).ok_or_else(|| unknown(name))).transpose()?;
    let version = match version {
        None => None,
        Some("1.1") => Some(Version::V1_1),
        Some("1.2") => Some(Version::V1_2),
        Some("1.3") => Some(Version::V1_3),
        Some(other) => {
            return Err(wrong(format!("no WBXML version {other:?}; valid: 1.1, 1.2, 1.3")));
        }
    };
    let compiled = py.detach(|| -> Result<_, String> {
        if string_table {
            let compiled = markup::compile(text, charset, version).map_err(|e| e.to_string())?;
            return Ok((compiled.octets, compiled.warnings));
        }
        let mut parsed = markup::parse(text, charset).map_err(|e| e.to_string())?;
        parsed.document.version = version.unwrap_or(parsed.document.version);
        let octets = markup::encode(&parsed.document, Options { string_table }).map_err(|e| e.to_string())?;
        Ok((octets, parsed.warnings))
    });
    let (octets, warnings) = compiled.map_err(wrong)?;
    Ok((octets, warnings.iter().map(ToString::to_string).collect()))
}

/// The readable form of an encoded document.
#[pyfunction]
pub fn wap_decompile(py: Python<'_>, octets: &[u8]) -> PyResult<String> {
    let text = py.detach(|| markup::decompile(octets, Limits::default()));
    text.map_err(wrong)
}

/// Reads a document and makes nothing of it: the first half of `wap_compile`, for those who measure what it takes.
#[pyfunction]
pub fn wap_parse(py: Python<'_>, text: &[u8]) -> PyResult<()> {
    let parsed = py.detach(|| markup::parse(text, None));
    parsed.map(drop).map_err(wrong)
}

/// Headers in WSP's compact encoding, with the numbers of version 1.2.
#[pyfunction]
pub fn wap_encode_headers(headers: Vec<(String, String)>) -> PyResult<Vec<u8>> {
    let mut octets = Vec::new();
    for (name, value) in &headers {
        Encoder::default()
            .header(name, value, &mut octets)
            .map_err(|_| wrong(format!("`{name}` is not the name of a header")))?;
    }
    Ok(octets)
}

/// What a session initiation request (`application/vnd.wap.sia`) says: its version, the applications that something waits for,
/// and where to open a session, as `address:port`. `ValueError` for what is none.
#[pyfunction]
pub fn wap_initiation(octets: Vec<u8>) -> PyResult<(u8, Vec<String>, Vec<String>)> {
    let request = SessionInitiation::parse(&Bytes::from(octets))
        .map_err(|error| wrong(format!("no session initiation request: {error}")))?;
    let contacts = request.contacts.iter().filter_map(|contact| contact.socket(9201));
    Ok((request.version, request.applications, contacts.map(|contact| contact.to_string()).collect()))
}
