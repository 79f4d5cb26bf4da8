//! What the gateway knows of a client with a session.

use std::borrow::Cow;
use std::net::SocketAddr;

use airloom_base::Instant;
use airloom_transports::wsp::headers::{Encoder, Version};
use bytes::Bytes;

use super::cookies::Jar;
use super::headers::{self, Headers};

/// Headers that are a client's secrets.
pub(super) const SECRETS: [&str; 2] = ["authorization", "cookie"];

/// One session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Where the client is.
    pub(super) peer: SocketAddr,
    /// Headers of all its requests: see `headers()`.
    headers: Headers,
    /// Which numbers of headers it knows.
    pub(super) version: Version,
    pub(super) jar: Jar,
    /// When something was asked or answered last.
    pub(super) used: Instant,
    /// It was opened at another address.
    pub(super) has_moved: bool,
}

impl Session {
    /// A session that a client asks for with these headers. None if they cannot be read.
    pub(super) fn new(now: Instant, peer: SocketAddr, octets: &[u8]) -> Option<Session> {
        let headers = headers::decode(octets)?;
        let version = version(&headers).unwrap_or_default();
        Some(Session { peer, headers, version, jar: Jar::default(), used: now, has_moved: false })
    }

    /// The headers of its requests, without secrets if its client is not trusted with them.
    pub(super) fn headers(&self, is_trusted: bool) -> Cow<'_, Headers> {
        if is_trusted {
            return Cow::Borrowed(&self.headers);
        }
        let is_secret = |name: &str| SECRETS.iter().any(|secret| secret.eq_ignore_ascii_case(name));
        Cow::Owned(self.headers.iter().filter(|(name, _)| !is_secret(name)).cloned().collect())
    }

    /// The headers that grant it: the version of the encoding, if the client said its own.
    pub(super) fn greeting(&self) -> Bytes {
        let mut out = Vec::new();
        let said = headers::values(&self.headers, "encoding-version").next();
        if let Some(said) = said.filter(|said| Version::from_text(said).is_some()) {
            let known = if Version::from_text(said) >= Some(Version::V1_5) { "1.5" } else { said };
            // The name is a token: this cannot fail.
            let _ = Encoder::new(self.version).header("Encoding-Version", known, &mut out);
        }
        out.into()
    }
}

/// The version of the header encoding that `headers` name.
pub(super) fn version(headers: &Headers) -> Option<Version> {
    headers::values(headers, "encoding-version").find_map(Version::from_text)
}
