//! TLS for a simulated host whose peers may be real.

use std::sync::Arc;

use rustls::{ClientConfig, KeyLog, ServerConfig};

use crate::library::crypto;
use crate::library::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use crate::tls::{self, Shown, Terms, Trust};

/// What both sides of a host's connections are made from.
pub(crate) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    initial: rustls::quic::Suite,
}

impl Tls {
    /// With a certificate of its own, for `name`; `log` gets the secrets.
    ///
    /// # Errors
    /// Why there can be none.
    pub(crate) fn new(name: &str, log: Arc<dyn KeyLog>) -> Result<Tls, String> {
        let shown = Shown::made(&[name])?;
        Ok(Tls {
            client: tls::client(Terms::HTTP3, &Trust::Anybody, false, Arc::clone(&log))?,
            server: tls::server(Terms::HTTP3, shown, log)?,
            initial: tls::initial()?,
        })
    }

    /// A client's side in which this protocol is spoken.
    pub(crate) fn client(&self, spoken: &str) -> Option<Arc<dyn crypto::ClientConfig>> {
        let mut config = ClientConfig::clone(&self.client);
        config.alpn_protocols = vec![spoken.into()];
        Some(Arc::new(QuicClientConfig::with_initial(Arc::new(config), self.initial).ok()?))
    }

    /// A server's side in which this protocol is spoken.
    pub(crate) fn server(&self, spoken: &str) -> Option<Arc<dyn crypto::ServerConfig>> {
        let mut config = ServerConfig::clone(&self.server);
        config.alpn_protocols = vec![spoken.into()];
        Some(Arc::new(QuicServerConfig::with_initial(Arc::new(config), self.initial).ok()?))
    }
}
