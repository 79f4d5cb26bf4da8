//! What the gateway knows of a client with a session.

use std::net::{IpAddr, SocketAddr};

use airloom_base::Instant;
use airloom_transports::wsp::headers::{Encoder, Version};
use bytes::Bytes;

use super::cookies::Jar;
use super::headers::{self, Headers};

/// One session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Where the client is.
    pub(super) peer: SocketAddr,
    /// Headers of all its requests.
    pub(super) headers: Headers,
    /// Which numbers of headers it knows.
    pub(super) version: Version,
    pub(super) jar: Jar,
    /// When something was asked or answered last.
    pub(super) used: Instant,
    /// The address that it proves.
    pub(super) proves: Option<IpAddr>,
}

impl Session {
    /// A session that a client asks for with these headers. None if they cannot be read.
    pub(super) fn new(now: Instant, peer: SocketAddr, octets: &[u8]) -> Option<Session> {
        let headers = headers::decode(octets)?;
        let version = version(&headers).unwrap_or_default();
        Some(Session { peer, headers, version, jar: Jar::default(), used: now, proves: None })
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
