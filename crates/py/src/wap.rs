//! Documents of WAP between text and WBXML.

use airloom_content::charset::Charset;
use airloom_content::markup;
use airloom_content::wbxml::{Limits, Version};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The encoded form of a document, and what was odd about it. `charset` outweighs what the document says of itself;
/// `version` is that of WBXML, without it the one that belongs to the document's type.
#[pyfunction]
#[pyo3(signature = (text, charset=None, version=None))]
pub fn wap_compile(
    py: Python<'_>,
    text: &[u8],
    charset: Option<&str>,
    version: Option<&str>,
) -> PyResult<(Vec<u8>, Vec<String>)> {
    let charset = match charset {
        Some(name) => match Charset::from_name(name) {
            Some(charset) => Some(charset),
            None => return Err(PyValueError::new_err(format!("the character set `{name}` is not known"))),
        },
        None => None,
    };
    let version = match version {
        None => None,
        Some("1.1") => Some(Version::V1_1),
        Some("1.2") => Some(Version::V1_2),
        Some("1.3") => Some(Version::V1_3),
        Some(other) => {
            return Err(PyValueError::new_err(format!("no WBXML version {other:?}; valid: 1.1, 1.2, 1.3")));
        }
    };
    let compiled = py.detach(|| markup::compile(text, charset, version));
    let compiled = compiled.map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok((compiled.octets, compiled.warnings.iter().map(ToString::to_string).collect()))
}

/// The readable form of an encoded document.
#[pyfunction]
pub fn wap_decompile(py: Python<'_>, octets: &[u8]) -> PyResult<String> {
    let text = py.detach(|| markup::decompile(octets, Limits::default()));
    text.map_err(|e| PyValueError::new_err(e.to_string()))
}
