//! What a page consists of, as scenario files say it.

use airloom_base::units::Octets;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Media type of a form's fields.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// One thing to fetch: a path, or a table with more about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Object {
    /// Its path.
    Path(String),
    /// Its path, the size it must have, what is sent there.
    Detailed(Detailed),
}

/// A path, and what is known of the request and the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Detailed {
    /// Path on the server.
    pub path: String,
    /// Octets of the object; an object of another size counts as failed. Any size will do if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Octets>,
    /// Octets of a form that is sent there (POST) to get the object; it is asked for (GET) if not given. What was sent is
    /// not sent again when the connection or session breaks: who knows what it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<Octets>,
}

impl Object {
    /// Its path on the server.
    pub(crate) fn path(&self) -> &str {
        match self {
            Object::Path(path) => path,
            Object::Detailed(object) => &object.path,
        }
    }

    /// Is it as large as it must be?
    pub(crate) fn has_size(&self, octets: u64) -> bool {
        match self {
            Object::Path(_) => true,
            Object::Detailed(object) => object.size.is_none_or(|size| size.0 == octets),
        }
    }

    /// Octets of the form that is sent for it.
    pub(crate) fn posts(&self) -> Option<Octets> {
        match self {
            Object::Path(_) => None,
            Object::Detailed(object) => object.post,
        }
    }

    /// The form that is sent for it, as a postfield would be.
    pub(crate) fn form(&self) -> Option<Bytes> {
        const NAME: &[u8] = b"field=";
        let octets = self.posts()?.0 as usize;
        let name = &NAME[..NAME.len().min(octets)];
        Some(name.iter().copied().chain(std::iter::repeat_n(b'v', octets - name.len())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_have_the_size_that_was_asked_for() {
        let form = |octets| {
            Object::Detailed(Detailed { post: Some(Octets(octets)), ..Detailed::default() }).form().unwrap()
        };
        assert_eq!(
            (form(0).as_ref(), form(3).as_ref(), form(8).as_ref()),
            (&b""[..], &b"fie"[..], &b"field=vv"[..])
        );
        assert_eq!(Object::Path("/".into()).form(), None);
    }
}
