//! What the gateway knows of a client with a session.

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
    /// Headers of all its requests as they came, since their text may be some forty times as long: see `headers()`.
    compact: Bytes,
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
        let version = version(&headers::decode(octets)?).unwrap_or_default();
        // A copy, so that nothing else of the Connect is kept with it.
        let compact = Bytes::copy_from_slice(octets);
        Some(Session { peer, compact, version, jar: Jar::default(), used: now, has_moved: false })
    }

    /// Octets of its headers, as they are kept.
    pub(super) fn held(&self) -> usize {
        self.compact.len()
    }

    fn all_headers(&self) -> Headers {
        // They could be read when it began.
        headers::decode(&self.compact).unwrap_or_default()
    }

    /// The headers of its requests, without secrets if its client is not trusted with them.
    pub(super) fn headers(&self, is_trusted: bool) -> Headers {
        let mut headers = self.all_headers();
        if !is_trusted {
            let is_secret = |name: &str| SECRETS.iter().any(|secret| secret.eq_ignore_ascii_case(name));
            headers.retain(|(name, _)| !is_secret(name));
        }
        headers
    }

    /// The headers that grant it: the version of the encoding, if the client said its own.
    pub(super) fn greeting(&self) -> Bytes {
        let mut out = Vec::new();
        let headers = self.all_headers();
        let said = headers::values(&headers, "encoding-version").next();
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
