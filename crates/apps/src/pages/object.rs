//! What a page consists of, as scenario files say it.

use airloom_base::Duration;
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
    /// Host that it is at, or `"host:port"`; the server of the others if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The object of its page that names it: its place there, counted from 0, which is before its own. It is not asked for before
    /// that one has arrived. The first one in `pages`, none in `objects` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// Time between its arrival and the requests for those that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parsing: Option<Duration>,
    /// Is it another one each time the list is gone through? Then `visit=` and the number of the round are put behind its path,
    /// and no cache has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changes: bool,
}

impl Object {
    fn details(&self) -> Option<&Detailed> {
        match self {
            Object::Path(_) => None,
            Object::Detailed(object) => Some(object),
        }
    }

    /// The host that it is at, if it says so.
    pub(crate) fn server(&self) -> Option<&str> {
        self.details()?.server.as_deref()
    }

    /// The object that names it, if it says so.
    pub(crate) fn after(&self) -> Option<u32> {
        self.details()?.after
    }

    /// How long it takes to be read, if it says so.
    pub(crate) fn parsing(&self) -> Option<Duration> {
        self.details()?.parsing
    }

    /// Is it another one in each round?
    pub(crate) fn changes(&self) -> bool {
        self.details().is_some_and(|object| object.changes)
    }

    /// What is asked for in this round.
    pub(crate) fn target(&self, round: u64) -> String {
        let path = self.path();
        if !self.changes() {
            return path.to_owned();
        }
        let mark = if path.contains('?') { '&' } else { '?' };
        format!("{path}{mark}visit={}", round + 1)
    }

    /// Its path on the server.
    pub(crate) fn path(&self) -> &str {
        match self {
            Object::Path(path) => path,
            Object::Detailed(object) => &object.path,
        }
    }

    /// Is it as large as it must be?
    pub(crate) fn has_size(&self, octets: u64) -> bool {
        self.details().and_then(|object| object.size).is_none_or(|size| size.0 == octets)
    }

    /// Octets of the form that is sent for it.
    pub(crate) fn posts(&self) -> Option<Octets> {
        self.details()?.post
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

    #[test]
    fn what_changes_has_another_address_in_each_round() {
        let object = |path: &str, changes| {
            Object::Detailed(Detailed { path: path.into(), changes, ..Detailed::default() })
        };
        assert_eq!(object("/a", false).target(3), "/a");
        assert_eq!(object("/a", true).target(0), "/a?visit=1");
        assert_eq!(object("/a?b", true).target(3), "/a?b&visit=4");
    }
}
