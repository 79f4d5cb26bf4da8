//! TLS for a simulated host whose peers may be real.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, KeyLog, ServerConfig};

use crate::config::Config;
use crate::library::crypto;
use crate::library::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use crate::tls::{self, Shown, Terms, Trust};

/// Octets of a Certificate message around one certificate: its header, an empty context, lengths of the list and of its member, and no
/// extensions (RFC 8446, 4.4.2).
const AROUND: usize = 4 + 1 + 3 + 3 + 2;

/// What both sides of a host's connections are made from.
pub(crate) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    initial: rustls::quic::Suite,
}

impl Tls {
    /// With a certificate of its own, for `name`, of the size that `config` asks for, and sessions that go on as it says; `log` gets the
    /// secrets.
    ///
    /// # Errors
    /// Why there can be none.
    pub(crate) fn new(name: &str, config: &Config, log: Arc<dyn KeyLog>) -> Result<Tls, String> {
        let octets = (config.certificates.0 as usize).saturating_sub(AROUND);
        let shown = Shown::made(&[name], octets)?;
        let mut client = tls::client(Terms::HTTP3, &Trust::Anybody, false, Arc::clone(&log))?;
        let mut server = tls::server(Terms::HTTP3, shown, log)?;
        Arc::make_mut(&mut server).send_tls13_tickets = config.tickets.into();
        if !config.resumes {
            Arc::make_mut(&mut client).resumption = Resumption::disabled();
            Arc::make_mut(&mut server).session_storage = Arc::new(NoServerSessionStorage {});
        }
        Ok(Tls { client, server, initial: tls::initial()? })
    }

    /// The first key that is set and that it does not know, and what it has not.
    pub(crate) fn lacks(config: &Config) -> Option<(&'static str, &'static str)> {
        let asked = [
            (config.zero_rtt, "zero_rtt", "early data"),
            (config.post_quantum, "post_quantum", "key shares of that size"),
        ];
        asked.into_iter().find(|(is_asked, ..)| *is_asked).map(|(_, key, what)| (key, what))
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

#[cfg(test)]
mod tests {
    use airloom_base::units::Octets;
    use rustls::HandshakeKind;
    use rustls::quic::{ClientConnection, Connection, ServerConnection, Version};

    use super::*;

    /// What the server says in a handshake, in octets, and whether a session went on.
    fn flight(tls: &Tls) -> (usize, Option<HandshakeKind>) {
        let name = "server.airloom".try_into().expect("a name");
        let client = ClientConnection::new(Arc::clone(&tls.client), Version::V1, name, vec![1]);
        let server = ServerConnection::new(Arc::clone(&tls.server), Version::V1, vec![1]);
        let mut ends: [Connection; 2] =
            [client.expect("it begins").into(), server.expect("it begins").into()];
        let mut said = 0;
        for turn in 0..6 {
            let from = turn % 2;
            loop {
                let mut out = Vec::new();
                let changes = ends[from].write_hs(&mut out).is_some();
                if out.is_empty() && !changes {
                    break;
                }
                said += from * out.len();
                if !out.is_empty() {
                    ends[1 - from].read_hs(&out).expect("it is right");
                }
            }
        }
        assert!(ends.iter().all(|end| !end.is_handshaking()));
        (said, ends[0].handshake_kind())
    }

    fn tls(config: &Config) -> Tls {
        Tls::new("server.airloom", config, Arc::new(rustls::NoKeyLog {})).expect("it is made")
    }

    #[test]
    fn a_certificate_has_the_size_that_was_asked_for_but_for_its_signature() {
        for octets in [987, 2_990, 16_000] {
            let shown = Shown::made(&["server.airloom"], octets).expect("it is made");
            assert!(shown.octets().abs_diff(octets) <= 8, "{octets} {}", shown.octets());
        }
        let config = |octets| Config { certificates: Octets(octets), ..Config::default() };
        let [small, large] = [2_000, 5_000].map(|octets| flight(&tls(&config(octets))).0);
        assert!((large - small).abs_diff(3_000) <= 16, "{small} {large}");
    }

    #[test]
    fn sessions_go_on_by_as_many_tickets_as_there_are_unless_they_shall_not() {
        let of = |tickets, resumes| {
            let tls = tls(&Config { tickets, resumes, ..Config::default() });
            [flight(&tls), flight(&tls)]
        };
        let [first, second] = of(2, true);
        assert_eq!([first.1, second.1], [Some(HandshakeKind::Full), Some(HandshakeKind::Resumed)]);
        assert!(second.0 + 1_500 < first.0, "{first:?} {second:?}");
        // Each ticket is a message of its own.
        assert!(of(4, true)[0].0 > first.0 + 100);
        for without in [of(0, true), of(2, false)] {
            assert_eq!(without.map(|(_, kind)| kind), [Some(HandshakeKind::Full); 2]);
        }
    }
}
