//! Certificates: what `airloom_transports::quic::tls` has, for the library's connections on real sockets.

use std::path::Path;
use std::sync::Arc;

use airloom_transports::quic::tls::{self, Shown};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::KeyLogFile;

pub(super) use airloom_transports::quic::tls::Terms;
pub use airloom_transports::quic::tls::Trust;

/// A client's side of TLS towards a host that is `is_loopback` or not. Secrets go where SSLKEYLOGFILE says, if it does.
///
/// # Errors
/// What is wrong with the file, in words.
pub(super) fn client(terms: Terms, trust: &Trust, is_loopback: bool) -> Result<QuicClientConfig, String> {
    let config = tls::client(terms, trust, is_loopback, Arc::new(KeyLogFile::new()))?;
    QuicClientConfig::with_initial(config, tls::initial()?).map_err(|e| e.to_string())
}

/// A server's side of TLS: with the certificates and the key of these files (PEM), or with a certificate that is made for this
/// run, for `localhost` and the loopback addresses.
///
/// # Errors
/// What is wrong with the files, in words.
pub(super) fn server(terms: Terms, files: Option<(&Path, &Path)>) -> Result<QuicServerConfig, String> {
    let shown = match files {
        Some((certificates, key)) => Shown::of_files(certificates, key)?,
        None => Shown::made(&["localhost", "127.0.0.1", "::1"], 0)?,
    };
    let config = tls::server(terms, shown, Arc::new(KeyLogFile::new()))?;
    QuicServerConfig::with_initial(config, tls::initial()?).map_err(|e| e.to_string())
}
